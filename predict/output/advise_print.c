/* advise_print.c - see the header. */
#include "predict/output/advise_print.h"

#include <math.h>

#include "model/core/text.h"

static const struct dl_column columns[] = {
    {"advice", "advice", "", DL_COLUMN_STRING, 0, 0},
    {"change", "change", "", DL_COLUMN_STRING, 0, 0},
    {"effect", "effect", "", DL_COLUMN_STRING, 0, 0},
    {"gain_frac", "gain", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"gain_low_frac", "low", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"gain_high_frac", "high", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"iteration_s", "iter", "ms", DL_COLUMN_NUMBER, 1e-3, 3},
    {"throughput_samples_per_s", "samples", "1/s", DL_COLUMN_NUMBER, 1, 0},
    {"fits", "fits", "", DL_COLUMN_BOOL, 0, 0},
};

static void add_row(struct dl_table *table, const struct dl_advised *a) {
    union dl_cell *c = dl_table_row(table);
    c[0].string = a->change.item->name;
    c[1].string = a->change.text;
    c[2].string = dl_advise_effect_names[a->change.item->effect];
    c[3].number = a->gain.ratio - 1;
    c[4].number = a->gain.low - 1;
    c[5].number = a->gain.high - 1;
    c[6].number = a->verdict.prediction.iteration_s;
    c[7].number = a->verdict.prediction.throughput_samples_per_s;
    c[8].boolean = a->verdict.prediction.fits;
}

static enum dl_code print_csv(struct dl_context *context, const struct dl_options *options,
                              const struct dl_advise_report *r, struct dl_err *err) {
    struct dl_table table;
    dl_table_init(&table, context->arena, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < r->count; i++)
        if (r->rows[i].verdict.possible) add_row(&table, &r->rows[i]);
    return context->output(options, dl_table_csv(&table), err);
}

static void write_one(struct dl_json_writer *w, const struct dl_advised *a) {
    const struct dl_advise_item *item = a->change.item;
    dl_jw_object(w, NULL);
    dl_jw_string(w, "advice", item->name);
    dl_jw_string(w, "change", a->change.text);
    dl_jw_string(w, "effect", dl_advise_effect_names[item->effect]);
    dl_jw_string(w, "mathematics", item->mathematics);
    dl_jw_string(w, "setting", a->change.setting);
    dl_jw_string(w, "source", item->source);
    dl_jw_bool(w, "possible", a->verdict.possible);
    if (a->verdict.possible) {
        dl_jw_number(w, "gain_frac", a->gain.ratio - 1);
        dl_jw_number(w, "gain_low_frac", a->gain.low - 1);
        dl_jw_number(w, "gain_high_frac", a->gain.high - 1);
        dl_jw_number(w, "iteration_s", a->verdict.prediction.iteration_s);
        dl_jw_number(w, "throughput_samples_per_s", a->verdict.prediction.throughput_samples_per_s);
        dl_jw_bool(w, "fits", a->verdict.prediction.fits);
    } else {
        dl_jw_string(w, "why", a->verdict.why);
    }
    dl_jw_string(w, "command", a->command);
    dl_jw_end(w);
}

static enum dl_code print_json(struct dl_context *context, const struct dl_options *options,
                               const struct dl_advise_report *r, struct dl_err *err) {
    struct dl_json_writer w;
    dl_jw_init(&w, context->arena, false);
    dl_output_header(&w, "dlmodel-advice");
    dl_inputs_json(context, r->inputs, options, &w);
    dl_jw_string(&w, "framework", r->framework->name);
    dl_jw_string(&w, "objective", r->by_energy ? "energy" : "time");
    dl_jw_object(&w, "base");
    dl_jw_number(&w, "iteration_s", r->base.prediction.iteration_s);
    dl_jw_number(&w, "throughput_samples_per_s", r->base.prediction.throughput_samples_per_s);
    dl_jw_bool(&w, "fits", r->base.prediction.fits);
    dl_jw_end(&w);
    dl_jw_array(&w, "advice");
    for (int i = 0; i < r->count; i++) write_one(&w, &r->rows[i]);
    dl_jw_end(&w);
    dl_jw_object(&w, "combination");
    dl_jw_string(&w, "allowed", dl_advise_effect_names[r->allowed]);
    dl_jw_number(&w, "gain_frac", r->gain.ratio - 1);
    dl_jw_number(&w, "gain_low_frac", r->gain.low - 1);
    dl_jw_number(&w, "gain_high_frac", r->gain.high - 1);
    dl_jw_string(&w, "command", r->command);
    dl_jw_array(&w, "steps");
    for (int i = 0; i < r->step_count; i++) write_one(&w, &r->steps[i]);
    dl_jw_end(&w);
    dl_jw_end(&w);
    dl_jw_end(&w);
    return context->output(options,
                           w.failed ? NULL : dl_arena_printf(context->arena, "%s\n", w.text), err);
}

static void add_combination(struct dl_text *text, const struct dl_advise_report *r) {
    static const char *const allowed[] = {"exact", "exact or equal up to rounding", "of any kind"};
    const struct dl_verdict *last =
        r->step_count > 0 ? &r->steps[r->step_count - 1].verdict : &r->base;
    if (r->step_count == 0) {
        dl_text_printf(text, "\nNo change that is %s gains %.3g %% or more.\n", allowed[r->allowed],
                       100 * r->least_gain_frac);
        return;
    }
    dl_text_printf(text, "\nTogether (changes %s, the best one at a time):\n", allowed[r->allowed]);
    for (int i = 0; i < r->step_count; i++)
        dl_text_printf(text, "  %+6.1f %%  %s\n            set: %s\n            %s: %s\n",
                       100 * (r->steps[i].gain.ratio - 1), r->steps[i].change.text,
                       r->steps[i].change.setting,
                       dl_advise_effect_names[r->steps[i].change.item->effect],
                       r->steps[i].change.item->mathematics);
    dl_text_printf(text,
                   "  %+6.1f %%  in all (80 %% interval %+.1f to %+.1f %%): %.4g samples/s\n"
                   "Predicted by: %s\n",
                   100 * (r->gain.ratio - 1), 100 * (r->gain.low - 1), 100 * (r->gain.high - 1),
                   last->prediction.throughput_samples_per_s, r->command);
}

static enum dl_code print_text(struct dl_context *context, const struct dl_options *options,
                               const struct dl_advise_report *r, struct dl_err *err) {
    struct dl_table table;
    struct dl_text text = {.arena = context->arena};
    int less = 0, impossible = 0;
    dl_table_init(&table, context->arena, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < r->count; i++) {
        const struct dl_advised *a = &r->rows[i];
        if (!dl_advised_is_first(r, i)) continue;
        if (!a->verdict.possible)
            impossible++;
        else if (a->gain.ratio < 1 + r->least_gain_frac && a->verdict.prediction.fits)
            less++;
        else
            add_row(&table, a);
    }
    const struct dl_prediction *p = &r->base.prediction;
    dl_text_printf(&text, "%s with %s on %s: %.4g ms, %.4g samples/s%s, bottleneck %s\n\n",
                   r->inputs->workload->name, r->framework->name, r->inputs->system->name,
                   1e3 * p->iteration_s, p->throughput_samples_per_s,
                   p->fits ? "" : ", does not fit in memory", dl_bottleneck_names[p->bottleneck]);
    if (table.row_count > 0) dl_text_add(&text, dl_table_text(&table));
    dl_text_printf(&text,
                   "%sEach alone. %d others gain less, %d cannot run here; --json lists all "
                   "with their commands.\n",
                   table.row_count > 0 ? "\n" : "", less, impossible);
    add_combination(&text, r);
    return context->output(options, dl_text_string(&text), err);
}

enum dl_code dl_advise_print(struct dl_context *context, const struct dl_options *options,
                             const struct dl_advise_report *report, enum dl_format format,
                             struct dl_err *err) {
    if (format == DL_FORMAT_JSON) return print_json(context, options, report, err);
    return format == DL_FORMAT_CSV ? print_csv(context, options, report, err)
                                   : print_text(context, options, report, err);
}

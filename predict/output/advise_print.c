/* advise_print.c - see the header. */
#include "predict/output/advise_print.h"

#include <math.h>

#include "model/core/columns.h"
#include "predict/options/results.h"
#include "model/core/figure.h"
#include "model/core/text.h"

/* What the columns show of one change. */
struct facts {
    const char *advice, *change, *effect, *mathematics, *setting, *source, *unmeasured, *why,
        *command;
    const char *gain_text; /* in text alone */
    double gain, low, high, iteration_s, samples_per_s;
    bool possible, fits;
};
#define SHOWN(member, key, heading, unit, scale, digits, help)                                     \
    DL_SHOWN(struct facts, member, key, heading, unit, scale, digits, 0, help)
#define HIDDEN(member, key, help) DL_HIDDEN(struct facts, member, key, help)
static const struct dl_list_column columns[] = {
    SHOWN(advice, "advice", "advice", "", 0, 0, "kind of change"),
    SHOWN(change, "change", "change", "", 0, 0, "what to change"),
    SHOWN(effect, "effect", "effect", "", 0, 0,
          "what it does to the mathematics: none, rounding or another optimization"),
    HIDDEN(mathematics, "mathematics", "the effect on the mathematics, in words"),
    HIDDEN(setting, "setting", "the change as an option"),
    HIDDEN(source, "source", "where the method comes from"),
    HIDDEN(unmeasured, "unmeasured", "the part of the gain that no measurement confirms"),
    HIDDEN(possible, "possible", "the change is possible here"),
    SHOWN(gain_text, NULL, "gain", "% (80 %)", 0, 0, NULL),
    HIDDEN(gain, "gain_frac", "throughput gained, as a fraction"),
    HIDDEN(low, "gain_low_frac", "low end of the 80 % interval"),
    HIDDEN(high, "gain_high_frac", "high end of the 80 % interval"),
    HIDDEN(iteration_s, "iteration_s", "time of an iteration with it"),
    HIDDEN(samples_per_s, "throughput_samples_per_s", "samples per second with it"),
    SHOWN(fits, "fits", "fits", "", 0, 0, "the plan fits in memory"),
    HIDDEN(why, "why", "why it is not possible"),
    HIDDEN(command, "command", "the command that predicts it"),
};
const struct dl_result dl_advice_result = {"advice", "advice", DL_LIST(columns)};

/* "17.3 (12.3 to 22.5)" */
static const char *gain_text(const struct dl_advised *a, struct dl_arena *arena) {
    return dl_arena_printf(arena, "%s (%s to %s)",
                           dl_figure_text(arena, 100 * (a->gain.ratio - 1), 3),
                           dl_figure_text(arena, 100 * (a->gain.low - 1), 3),
                           dl_figure_text(arena, 100 * (a->gain.high - 1), 3));
}

static struct facts facts_of(const struct dl_advised *a, struct dl_arena *arena) {
    const struct dl_advise_item *item = a->change.item;
    const bool possible = a->verdict.possible;
    const struct dl_prediction *p = &a->verdict.prediction;
    return (struct facts){.advice = item->name,
                          .change = a->change.text,
                          .effect = dl_advise_effect_names[item->effect],
                          .mathematics = item->mathematics,
                          .setting = a->change.setting,
                          .source = item->source,
                          .unmeasured = a->change.unmeasured,
                          .why = possible ? NULL : a->verdict.why,
                          .command = a->command,
                          .gain_text = possible ? gain_text(a, arena) : NULL,
                          .gain = possible ? a->gain.ratio - 1 : NAN,
                          .low = possible ? a->gain.low - 1 : NAN,
                          .high = possible ? a->gain.high - 1 : NAN,
                          .iteration_s = possible ? p->iteration_s : NAN,
                          .samples_per_s = possible ? p->throughput_samples_per_s : NAN,
                          .possible = possible,
                          .fits = possible && p->fits};
}

static void add_row(struct dl_table *table, const struct dl_advised *a) {
    const struct facts facts = facts_of(a, table->arena);
    dl_list_add(table, columns, &facts);
}

static void table_of(struct dl_table *table, struct dl_context *context) {
    dl_list_table(table, context->arena, DL_LIST(columns), 0);
}

static enum dl_code print_csv(struct dl_context *context, const struct dl_options *options,
                              const struct dl_advise_report *r, struct dl_err *err) {
    struct dl_table table;
    table_of(&table, context);
    for (int i = 0; i < r->count; i++)
        if (r->rows[i].verdict.possible) add_row(&table, &r->rows[i]);
    return context->output(options, dl_table_csv(&table), err);
}

static void write_list(struct dl_json_writer *w, const char *key, const struct dl_advised *list,
                       int count) {
    dl_jw_array(w, key);
    for (int i = 0; i < count; i++) {
        const struct facts facts = facts_of(&list[i], w->arena);
        dl_jw_object(w, NULL);
        dl_list_json(w, DL_LIST(columns), &facts);
        dl_jw_end(w);
    }
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
    write_list(&w, "advice", r->rows, r->count);
    dl_jw_object(&w, "combination");
    dl_jw_string(&w, "allowed", dl_advise_effect_names[r->allowed]);
    dl_jw_number(&w, "gain_frac", r->gain.ratio - 1);
    dl_jw_number(&w, "gain_low_frac", r->gain.low - 1);
    dl_jw_number(&w, "gain_high_frac", r->gain.high - 1);
    dl_jw_string(&w, "command", r->command);
    write_list(&w, "steps", r->steps, r->step_count);
    return context->output(options, dl_jw_text(&w), err);
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
                   "  %+6.1f %%  in all (80 %% interval %+.1f to %+.1f %%): %s samples/s\n"
                   "Predicted by: %s\n",
                   100 * (r->gain.ratio - 1), 100 * (r->gain.low - 1), 100 * (r->gain.high - 1),
                   dl_figure_text(text->arena, last->prediction.throughput_samples_per_s, 4),
                   r->command);
}

static enum dl_code print_text(struct dl_context *context, const struct dl_options *options,
                               const struct dl_advise_report *r, enum dl_format format,
                               struct dl_err *err) {
    struct dl_table table;
    struct dl_text text = {.arena = context->arena};
    int less = 0, impossible = 0;
    table_of(&table, context);
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
    if (format == DL_FORMAT_LATEX) return context->output(options, dl_table_latex(&table), err);
    const struct dl_prediction *p = &r->base.prediction;
    dl_text_printf(&text, "%s with %s on %s: %s, %s samples/s%s, bottleneck %s\n\n",
                   r->inputs->workload->name, r->framework->name, r->inputs->system->name,
                   dl_duration_text(context->arena, p->iteration_s),
                   dl_figure_text(context->arena, p->throughput_samples_per_s, 4),
                   p->fits ? "" : ", does not fit in memory", dl_bottleneck_names[p->bottleneck]);
    if (table.row_count > 0) dl_text_add(&text, dl_table_text(&table));
    dl_text_printf(&text,
                   "%sEach change on its own. %d more gain%s less%s; --json lists all with their "
                   "commands.\n",
                   table.row_count > 0 ? "\n" : "", less, less == 1 ? "s" : "",
                   impossible == 0
                       ? ""
                       : dl_arena_printf(context->arena, ", and %d cannot run here", impossible));
    add_combination(&text, r);
    return context->output(options, dl_text_string(&text), err);
}

enum dl_code dl_advise_print(struct dl_context *context, const struct dl_options *options,
                             const struct dl_advise_report *report, enum dl_format format,
                             struct dl_err *err) {
    if (format == DL_FORMAT_JSON) return print_json(context, options, report, err);
    return format == DL_FORMAT_CSV ? print_csv(context, options, report, err)
                                   : print_text(context, options, report, format, err);
}

/* best_of_each.c - see best_of_each.h. */
#include "predict/output/best_of_each.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/catalog/data.h"
#include "model/core/columns.h"
#include "model/core/figure.h"
#include "model/core/text.h"
#include "predict/output/rows.h"

struct line {
    struct dl_best best;
    const char *why; /* NULL: there is a plan */
    const char *bottleneck, *iteration_text;
    double iteration_s, low_s, high_s, samples_per_s, memory_bytes;
};
#define SHOWN(member, key, heading, unit, scale, digits)                                           \
    DL_SHOWN(struct line, member, key, heading, unit, scale, digits, 0, NULL)
#define HIDDEN(member, key) DL_HIDDEN(struct line, member, key, NULL)
static const struct dl_list_column columns[] = {
    SHOWN(best.system, "system", "system", "", 0, 0),
    SHOWN(best.framework, "framework", "framework", "", 0, 0),
    SHOWN(best.precision, "precision", "precision", "", 0, 0),
    SHOWN(best.devices, "devices", "dev", "", 0, 0),
    SHOWN(best.plan, "plan", "best plan", "", 0, 0),
    SHOWN(iteration_text, NULL, "iteration", "ms (80 %)", 0, 0),
    HIDDEN(iteration_s, "iteration_s"),
    HIDDEN(low_s, "iteration_low_s"),
    HIDDEN(high_s, "iteration_high_s"),
    SHOWN(samples_per_s, "throughput_samples_per_s", "samples/s", "", 0, 4),
    SHOWN(memory_bytes, "memory_bytes", "memory", "GiB", 1 << 30, 3),
    HIDDEN(bottleneck, "bottleneck"),
    HIDDEN(best.command, "command"),
    HIDDEN(why, "why"),
};

bool dl_best_is_list(const struct dl_options *options, const char *name) {
    const char *text = dl_option_text(options, name);
    return text != NULL && strchr(text, ',') != NULL;
}

/* Names of a list; without one, what was given (NULL: nothing). */
static const char **names_of(const char *given, struct dl_arena *arena, int *count) {
    const size_t most = given != NULL ? strlen(given) + 1 : 1;
    const char **names = dl_arena_alloc(arena, most, sizeof *names), *rest = given;
    *count = 0;
    for (const char *name; (name = dl_list_next(&rest, arena)) != NULL;)
        if (name[0] != 0) names[(*count)++] = name;
    if (*count == 0) names[(*count)++] = given;
    return names;
}

static void replace(struct dl_options *options, const char *name, const char *value) {
    for (int i = 0; value != NULL && i < options->given_count; i++)
        if (strcmp(options->given[i].option->name, name) == 0) options->given[i].value = value;
}

static enum dl_code find_line(struct dl_context *context, const struct dl_options *options,
                              dl_best_fn *find, const char *system, const char *framework,
                              struct line *out, struct dl_err *err) {
    struct dl_context quiet = *context;
    struct dl_options *one = dl_arena_alloc(context->arena, 1, sizeof *one);
    struct dl_err inner = {.code = DL_OK};
    quiet.note = dl_drop_note;
    *one = *options;
    replace(one, "system", system);
    replace(one, "framework", framework);
    *out = (struct line){.best = {.system = system, .framework = framework, .devices = DL_ABSENT},
                         .iteration_s = NAN,
                         .low_s = NAN,
                         .high_s = NAN,
                         .samples_per_s = NAN,
                         .memory_bytes = NAN};
    const enum dl_code code = find(&quiet, one, &out->best, &inner);
    if (code == DL_ERR_NO || code == DL_ERR_USAGE) {
        out->why = dl_arena_strdup(context->arena, inner.message);
        return DL_OK;
    }
    if (code != DL_OK) {
        *err = inner;
        return code;
    }
    const struct dl_prediction *p = out->best.prediction;
    out->bottleneck = dl_bottleneck_names[p->bottleneck];
    out->iteration_s = p->iteration_s;
    out->low_s = p->iteration_low_s;
    out->high_s = p->iteration_high_s;
    out->samples_per_s = p->throughput_samples_per_s;
    out->memory_bytes = p->memory.total_bytes;
    return DL_OK;
}

/* The fastest first, then those without a plan. */
static int by_rate(const void *a, const void *b) {
    const struct line *x = a, *y = b;
    const double xs = x->why != NULL ? -1 : x->samples_per_s,
                 ys = y->why != NULL ? -1 : y->samples_per_s;
    return xs > ys ? -1 : xs < ys;
}

static const char *table_of(struct dl_arena *arena, struct line *list, int count,
                            enum dl_format format) {
    const bool people = format == DL_FORMAT_TEXT || format == DL_FORMAT_LATEX,
               in_s = list[0].iteration_s >= 1;
    struct dl_table table;
    struct dl_column *shown = dl_list_table(&table, arena, DL_LIST(columns), 0);
    for (int c = 0; c < table.column_count; c++)
        if (in_s && columns[c].at == offsetof(struct line, iteration_text))
            shown[c].unit = "s (80 %)";
    for (int i = 0; i < count; i++) {
        if (people && list[i].why != NULL) continue;
        if (people)
            list[i].iteration_text = dl_rows_iteration_text(list[i].best.prediction, in_s, arena);
        dl_list_add(&table, columns, &list[i]);
    }
    if (format != DL_FORMAT_TEXT) return dl_table_render(&table, format);
    struct dl_table_layout layout = {0};
    dl_table_measure(&table, arena, &layout);
    dl_table_narrow(&table, &layout, "best plan", 12);
    return dl_table_text_part(&table, &layout, true);
}

/* "dgx-h100 with megatron: why" */
static const char *refusal(const struct line *l, struct dl_arena *arena) {
    const char *framework = l->best.framework;
    return dl_arena_printf(arena, "%s%s%s: %s", l->best.system != NULL ? l->best.system : "",
                           framework != NULL ? " with " : "", framework != NULL ? framework : "",
                           l->why);
}

static enum dl_code print(struct dl_context *context, const struct dl_options *options,
                          struct line *list, int count, struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct dl_arena *arena = context->arena;
    struct dl_text out = {.arena = arena};
    DL_TRY(dl_output_format(options, &format, err));
    qsort(list, (size_t)count, sizeof *list, by_rate);
    if (list[0].why != NULL)
        return dl_fail(err, DL_ERR_NO, "no plan on any of them; %s", refusal(&list[0], arena));
    const char *table = table_of(arena, list, count, format);
    if (format != DL_FORMAT_TEXT) return context->output(options, table, err);
    dl_text_printf(&out, "Fastest: %s on %s: %s, %s samples/s.\n\n%s", list[0].best.framework,
                   list[0].best.system, list[0].best.plan,
                   dl_figure_text(arena, list[0].samples_per_s, 4), table);
    for (int i = 0; i < count; i++)
        if (list[i].why != NULL) dl_text_printf(&out, "No plan: %s\n", refusal(&list[i], arena));
    dl_text_printf(&out, "\nThe fastest: %s\n", list[0].best.command);
    return context->output(options, dl_text_string(&out), err);
}

enum dl_code dl_best_of_each(struct dl_context *context, const struct dl_options *options,
                             dl_best_fn *find, bool each_framework, struct dl_err *err) {
    struct dl_arena *arena = context->arena;
    int system_count, framework_count, count = 0;
    const char **systems = names_of(dl_option_text(options, "system"), arena, &system_count),
               **frameworks = names_of(each_framework ? dl_option_text(options, "framework") : NULL,
                                       arena, &framework_count);
    struct line *list =
        dl_arena_alloc(arena, (size_t)system_count * (size_t)framework_count, sizeof *list);
    for (int s = 0; systems[0] != NULL && s < system_count; s++) {
        const struct dl_system *known;
        DL_TRY(dl_data_system(&context->data, systems[s], arena, &known, err));
    }
    for (int f = 0; frameworks[0] != NULL && f < framework_count; f++) {
        const struct dl_framework *known;
        DL_TRY(dl_data_framework(&context->data, frameworks[f], arena, &known, err));
    }
    for (int s = 0; s < system_count; s++) {
        for (int f = 0; f < framework_count; f++)
            DL_TRY(
                find_line(context, options, find, systems[s], frameworks[f], &list[count++], err));
    }
    return print(context, options, list, count, err);
}

/* plot_pareto.c - the output of `search --pareto --csv`: plans that no other plan beats in time
 * and memory, one symbol per strategy. */
#include <stdlib.h>
#include <string.h>

#include "model/core/csv.h"
#include "model/core/text.h"
#include "plots/figures/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "strategy", "", DL_COLUMN_STRING, 0, 0},
    {"memory_bytes", "memory", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"iteration_s", "iteration", "s", DL_COLUMN_NUMBER, 0, 4},
    {"best", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"devices", "devices", "", DL_COLUMN_INTEGER, 0, 0},
    {"plan", "plan", "", DL_COLUMN_STRING, 0, 0},
    {"name", NULL, NULL, DL_COLUMN_STRING, 0, 0},
};
enum column {
    STRATEGY,
    DEVICES,
    DP,
    TP,
    PP,
    SP,
    MICRO,
    RECOMPUTE,
    ZERO,
    ITERATION,
    MEMORY,
    FRONT,
    COLUMNS
};
static const char *const names[COLUMNS] = {
    "strategy",  "devices", "dp",          "tp",           "pp",    "sp", "micro_batch_samples",
    "recompute", "zero",    "iteration_s", "memory_bytes", "front",
};

struct plan {
    int group;
    const char *strategy, *text, *name;
    double memory_bytes, iteration_s, devices;
    int best;
};

static int by_group_and_memory(const void *a, const void *b) {
    const struct plan *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return x->memory_bytes < y->memory_bytes ? -1 : x->memory_bytes > y->memory_bytes;
}

/* What differs from plain data parallelism, for a label: "tp8 pp2 mb1 full". */
static const char *name_of(struct dl_arena *arena, const char *const *c, const int *at) {
    static const struct {
        enum column column;
        const char *letters, *usual;
    } parts[] = {{DP, "dp", ""},    {TP, "tp", "1"},     {PP, "pp", "1"},        {SP, "cp", "1"},
                 {MICRO, "mb", ""}, {ZERO, "zero", "0"}, {RECOMPUTE, "", "none"}};
    const char *name = "";
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *value = c[at[parts[i].column]];
        if (strcmp(value, parts[i].usual) != 0)
            name = dl_arena_printf(arena, "%s%s%s%s", name, name[0] != 0 ? " " : "",
                                   parts[i].letters, value);
    }
    return name;
}

static enum dl_code read_plan(const struct dl_csv *csv, int row, const int *at,
                              struct dl_arena *arena, struct plan *out, struct dl_err *err) {
    DL_TRY(dl_csv_number(csv, row, at[MEMORY], &out->memory_bytes, err));
    DL_TRY(dl_csv_number(csv, row, at[ITERATION], &out->iteration_s, err));
    DL_TRY(dl_csv_number(csv, row, at[DEVICES], &out->devices, err));
    if (!(out->memory_bytes > 0 && out->iteration_s > 0 && out->devices >= 1)) {
        return dl_fail_at(err, csv->name, csv->row_lines[row], 1, NULL,
                          "expected memory_bytes, iteration_s and devices above 0");
    }
    const char *const *c = csv->rows[row];
    out->strategy = c[at[STRATEGY]];
    out->text = dl_arena_printf(
        arena, "dp %s, tp %s, pp %s, sp %s, micro-batch %s, zero %s, recompute %s", c[at[DP]],
        c[at[TP]], c[at[PP]], c[at[SP]], c[at[MICRO]], c[at[ZERO]], c[at[RECOMPUTE]]);
    out->name = name_of(arena, c, at);
    return DL_OK;
}

static enum dl_code read_front(const struct dl_csv *csv, struct dl_arena *arena, struct plan *plans,
                               int *count, struct dl_err *err) {
    int at[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) {
        at[c] = dl_csv_column(csv, names[c]);
        if (at[c] < 0)
            return dl_fail_at(
                err, csv->name, 1, 1, names[c],
                "expected what 'dlmodel search --pareto --csv' prints; this column is missing");
    }
    for (int row = 0; row < csv->row_count; row++) {
        if (atoi(csv->rows[row][at[FRONT]]) != 1) continue;
        DL_TRY(read_plan(csv, row, at, arena, &plans[*count], err));
        ++*count;
    }
    return DL_OK;
}

/* Numbers the front of time and memory from 1 on, by memory. Plans that another beats in both
 * are included because they need fewer devices: they stay 0 and are drawn hollow. */
static void mark_best(struct plan *plans, int count) {
    for (int i = 0; i < count; i++) {
        plans[i].best = 1;
        for (int k = 0; k < count; k++) {
            const bool no_worse = plans[k].iteration_s <= plans[i].iteration_s &&
                                  plans[k].memory_bytes <= plans[i].memory_bytes;
            const bool better = plans[k].iteration_s < plans[i].iteration_s ||
                                plans[k].memory_bytes < plans[i].memory_bytes;
            if (no_worse && better) plans[i].best = 0;
        }
    }
    for (int i = 0; i < count; i++) {
        if (plans[i].best == 0) continue;
        for (int k = 0; k < count; k++) {
            if (plans[k].best == 0 || k == i) continue;
            const bool equal = plans[k].memory_bytes <= plans[i].memory_bytes &&
                               plans[k].memory_bytes >= plans[i].memory_bytes;
            plans[i].best += equal ? k < i : plans[k].memory_bytes < plans[i].memory_bytes;
        }
    }
}

/* A group for each strategy. */
static enum dl_code number_groups(const struct dl_csv *csv, struct plan *plans, int count,
                                  struct dl_figure *out, struct dl_err *err) {
    for (int i = 0; i < count; i++) {
        plans[i].group =
            dl_text_place(out->labels, &out->group_count, DL_PLOT_CURVES, plans[i].strategy) + 1;
        if (plans[i].group == 0)
            return dl_fail(err, DL_ERR_USAGE, "more than %d strategies in %s", (int)DL_PLOT_CURVES,
                           csv->name);
    }
    return DL_OK;
}

/* "dp, pp, micro-batch": in what the plans of the front differ. */
static const char *varied_columns(const struct dl_csv *csv, struct dl_arena *arena) {
    const char *list = "";
    for (int c = STRATEGY; c < ITERATION; c++) {
        const int at = dl_csv_column(csv, names[c]), front = dl_csv_column(csv, names[FRONT]);
        const char *first = NULL;
        bool varies = false;
        for (int row = 0; row < csv->row_count && !varies; row++) {
            if (atoi(csv->rows[row][front]) != 1) continue;
            if (first == NULL) first = csv->rows[row][at];
            varies = strcmp(first, csv->rows[row][at]) != 0;
        }
        if (varies) list = dl_plot_join(arena, list, c == MICRO ? "micro-batch" : names[c]);
    }
    return list;
}

enum dl_code dl_plot_pareto(struct dl_context *context, const struct dl_options *options,
                            struct dl_figure *out, struct dl_err *err) {
    struct dl_csv csv;
    if (options->positional_count != 2) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "plot pareto takes one file that 'dlmodel search --pareto --csv -o FILE' wrote");
    }
    DL_TRY(dl_csv_read(options->positional[1], context->arena, &csv, err));
    struct plan *plans = dl_arena_alloc(context->arena, (size_t)csv.row_count + 1, sizeof *plans);
    int count = 0;
    DL_TRY(read_front(&csv, context->arena, plans, &count, err));
    if (count == 0)
        return dl_fail_at(err, csv.name, 1, 1, "front",
                          "expected a plan of the front: search with --pareto");
    mark_best(plans, count);
    DL_TRY(number_groups(&csv, plans, count, out, err));
    qsort(plans, (size_t)count, sizeof *plans, by_group_and_memory);
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < count; i++) {
        dl_table_add(&out->table, {.integer = plans[i].group}, {.string = plans[i].strategy},
                     {.number = plans[i].memory_bytes}, {.number = plans[i].iteration_s},
                     {.integer = plans[i].best}, {.integer = (int64_t)plans[i].devices},
                     {.string = plans[i].text}, {.string = plans[i].name});
    }
    const char *varied = varied_columns(&csv, context->arena);
    out->title =
        dl_arena_printf(context->arena, "Pareto front of time and memory: %d plans", count);
    out->subtitle =
        dl_arena_printf(context->arena, "only plans that no other beats; lower left is better%s%s",
                        varied[0] != 0 ? "; varied: " : "", varied);
    out->curves = (struct dl_plot_curves){.x = 2,
                                          .curve = -1,
                                          .point = 3,
                                          .log_x = true,
                                          .log_y = true,
                                          .x_scale = 1073741824,
                                          .y_scale = 1,
                                          .x_name = "memory per device (GiB)",
                                          .y_name = "time per iteration (s)"};
    return DL_OK;
}

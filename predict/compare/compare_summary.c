/* compare_summary.c - errors by source, by system, and over all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/statistics/classes.h"
#include "model/statistics/stats.h"
#include "model/machine/kernel_match.h"
#include "predict/compare/compare.h"

bool dl_compare_is_runs(const struct dl_csv *csv) {
    return dl_csv_column(csv, "workload") >= 0 || dl_csv_column(csv, "metric") >= 0 ||
           dl_csv_column(csv, "framework") >= 0;
}

static enum dl_code compare_others(const struct dl_data *data, const struct dl_csv *csv,
                                   struct dl_comparison *out, struct dl_err *err) {
    if (dl_csv_column(csv, "format") >= 0 && dl_csv_column(csv, "write_s") >= 0)
        return dl_compare_checkpoints(data, csv, out, err);
    if (dl_csv_column(csv, "collective") >= 0) return dl_compare_collectives(data, csv, out, err);
    if ((dl_csv_column(csv, "op") >= 0 && dl_csv_column(csv, "pass") >= 0) || dl_kernel_header(csv))
        return dl_compare_kernels(data, csv, out, err);
    return dl_fail_at(err, csv->name, 1, 1, NULL,
                      "expected the header of a table of runs (workload, metric, ...), collectives "
                      "(collective, ...), kernels (op, pass, ...) or checkpoints (format, write_s, "
                      "...)");
}

enum dl_code dl_compare_table(const struct dl_data *data, const struct dl_csv *csv, bool anchor,
                              struct dl_comparison *out, struct dl_err *err) {
    const int first = out->count;
    if (dl_compare_is_runs(csv)) return dl_compare_runs(data, csv, anchor, out, err);
    if (anchor) return dl_fail(err, DL_ERR_USAGE, "--anchor: %s is not a table of runs", csv->name);
    DL_TRY(compare_others(data, csv, out, err));
    for (int i = first; i < out->count; i++) /* runs share themselves out, by groups */
        out->rows[i].elsewhere = !dl_comparison_mine(out, i - first);
    return DL_OK;
}

static const char *group_of(const struct dl_compared *row, int kind) {
    return kind == 0 ? row->source : kind == 1 ? row->system : "all";
}

struct group_keys {
    const struct dl_comparison *c;
    int kind;
};

/* Which of the groups of one kind the cases belong to, and the rows of each one after the other. */
struct grouping {
    struct dl_classes classes; /* of cases: those of one group */
    int *begin; /* of the first case of each group: where its rows begin in `order`; then: end */
    int *order; /* numbers of rows */
};

static uint64_t group_hash(const void *context, int item) {
    const struct group_keys *keys = context;
    return dl_hash_text(DL_HASH_START, group_of(&keys->c->rows[item], keys->kind));
}

static bool group_equal(const void *context, int a, int b) {
    const struct group_keys *keys = context;
    return strcmp(group_of(&keys->c->rows[a], keys->kind),
                  group_of(&keys->c->rows[b], keys->kind)) == 0;
}

/* Rows in the order of their groups, and within a group in their own: bytes for each row, not a
 * search for each group. */
static enum dl_code group_rows(const struct dl_comparison *c, int kind, int *order,
                               struct grouping *out, struct dl_err *err) {
    const struct group_keys context = {c, kind};
    const struct dl_class_keys keys = {group_hash, group_equal, &context};
    const int rows = dl_comparison_row_count(c);
    int begin = 0;
    *out = (struct grouping){.order = order};
    DL_TRY(dl_classes_make(&keys, c->count, c->arena, &out->classes, err));
    out->begin = dl_arena_alloc(c->arena, 2 * (size_t)c->count + 1, sizeof *out->begin);
    int *next = out->begin + c->count;
    for (int i = 0; i < rows; i++) next[out->classes.first[dl_comparison_case(c, i)]]++;
    for (int k = 0; k < c->count; k++) {
        const int size = next[k];
        out->begin[k] = next[k] = begin;
        begin += size;
    }
    for (int i = 0; i < rows; i++) order[next[out->classes.first[dl_comparison_case(c, i)]]++] = i;
    return DL_OK;
}

/* |error| and error of the rows of one group, `count` numbers in `order`; scratch holds as many
 * doubles. */
static struct dl_error_summary summarize(const struct dl_comparison *c, int kind, const char *group,
                                         const int *order, int count, double *scratch) {
    static const char *const kinds[] = {"source", "system", "all"};
    struct dl_error_summary s = {.kind = kinds[kind], .group = group};
    double bias = 0;
    int inside = 0, with_interval = 0;
    for (int i = 0; i < count; i++) {
        const struct dl_compared row = dl_comparison_row(c, order[i], NULL);
        if (row.skipped || !dl_known(row.low)) continue;
        scratch[with_interval++] = row.high / row.low;
        if (row.measured >= row.low && row.measured <= row.high) inside++;
    }
    s.inside_pct = with_interval > 0 ? 100.0 * inside / with_interval : NAN;
    dl_sort(scratch, (size_t)with_interval);
    s.interval_ratio_median = dl_quantile_sorted(scratch, (size_t)with_interval, 0.5);
    for (int i = 0; i < count; i++) {
        const struct dl_compared row = dl_comparison_row(c, order[i], NULL);
        if (row.skipped) {
            s.skipped++;
            continue;
        }
        scratch[s.rows++] = fabs(row.error_pct);
        bias += row.error_pct;
    }
    if (s.rows == 0) {
        s.mape_pct = s.median_ape_pct = s.p90_ape_pct = s.max_ape_pct = s.bias_pct = NAN;
        return s;
    }
    const size_t n = (size_t)s.rows;
    dl_sort(scratch, n);
    s.mape_pct = dl_mean(scratch, n);
    s.median_ape_pct = dl_quantile_sorted(scratch, n, 0.5);
    s.p90_ape_pct = dl_quantile_sorted(scratch, n, 0.9);
    s.max_ape_pct = scratch[n - 1];
    s.bias_pct = bias / s.rows;
    return s;
}

static struct dl_error_summary mean_of_sources(const struct dl_error_summary *list, int count) {
    struct dl_error_summary mean = {.kind = "all", .group = "all-by-source"};
    double sums[7] = {0};
    int sources = 0, with_interval = 0;
    for (int i = 0; i < count; i++) {
        const struct dl_error_summary *s = &list[i];
        if (strcmp(s->kind, "source") != 0) continue;
        mean.skipped += s->skipped;
        if (s->rows == 0) continue;
        sums[0] += s->mape_pct;
        sums[1] += s->median_ape_pct;
        sums[2] += s->p90_ape_pct;
        sums[3] = fmax(sums[3], s->max_ape_pct);
        sums[4] += s->bias_pct;
        mean.rows += s->rows;
        if (dl_known(s->inside_pct)) {
            sums[5] += s->inside_pct;
            sums[6] += s->interval_ratio_median;
            with_interval++;
        }
        sources++;
    }
    if (sources == 0) {
        mean.mape_pct = mean.median_ape_pct = mean.p90_ape_pct = mean.max_ape_pct = mean.bias_pct =
            mean.inside_pct = mean.interval_ratio_median = NAN;
        return mean;
    }
    mean.mape_pct = sums[0] / sources;
    mean.median_ape_pct = sums[1] / sources;
    mean.p90_ape_pct = sums[2] / sources;
    mean.max_ape_pct = sums[3];
    mean.bias_pct = sums[4] / sources;
    mean.inside_pct = with_interval > 0 ? sums[5] / with_interval : NAN;
    mean.interval_ratio_median = with_interval > 0 ? sums[6] / with_interval : NAN;
    return mean;
}

enum dl_code dl_compare_summarize(const struct dl_comparison *c, struct dl_error_summary **out,
                                  int *count_out, struct dl_err *err) {
    const int rows = dl_comparison_row_count(c);
    struct dl_error_summary *list =
        dl_arena_alloc(c->arena, 2 * (size_t)c->count + 2, sizeof *list);
    double *scratch = malloc(((size_t)rows + 1) * sizeof *scratch);
    int *order = malloc(((size_t)rows + 1) * sizeof *order);
    enum dl_code code = list != NULL && scratch != NULL && order != NULL
                            ? DL_OK
                            : dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    int count = 0;
    for (int kind = 0; kind < 3 && code == DL_OK; kind++) {
        struct grouping g;
        code = group_rows(c, kind, order, &g, err);
        for (int i = 0; i < c->count && code == DL_OK; i++) {
            if (g.classes.first[i] != i) continue;
            /* after group_rows the second half of `begin` has the ends */
            list[count++] = summarize(c, kind, group_of(&c->rows[i], kind), order + g.begin[i],
                                      g.begin[c->count + i] - g.begin[i], scratch);
        }
    }
    free(scratch);
    free(order);
    DL_TRY(code);
    if (count > 0) {
        list[count] = mean_of_sources(list, count);
        count++;
    }
    *out = list;
    *count_out = count;
    return DL_OK;
}

static const struct dl_column summary_columns[] = {
    {"group", "group", "", DL_COLUMN_STRING, 0, 0},
    {"by", "by", "", DL_COLUMN_STRING, 0, 0},
    {"rows", "rows", "", DL_COLUMN_INTEGER, 0, 0},
    {"skipped", "not predicted", "", DL_COLUMN_INTEGER, 0, 0},
    {"mape_pct", "mean", "%", DL_COLUMN_NUMBER, 0, 3},
    {"median_ape_pct", "median", "%", DL_COLUMN_NUMBER, 0, 3},
    {"p90_ape_pct", "90th", "%", DL_COLUMN_NUMBER, 0, 3},
    {"max_ape_pct", "worst", "%", DL_COLUMN_NUMBER, 0, 3},
    {"bias_pct", "bias", "%", DL_COLUMN_NUMBER, 0, 3},
    {"coverage_pct", "interval coverage", "%", DL_COLUMN_NUMBER, 0, 3},
    {"interval_ratio_median", "interval ratio", "", DL_COLUMN_NUMBER, 0, 3},
};

void dl_compare_summary_init(struct dl_table *table, struct dl_arena *arena) {
    dl_table_init(table, arena, summary_columns,
                  sizeof summary_columns / sizeof summary_columns[0]);
}

void dl_compare_summary_row(struct dl_table *table, const struct dl_error_summary *summary,
                            const char *group) {
    union dl_cell *cells = dl_table_row(table);
    const double errors_pct[] = {summary->mape_pct,
                                 summary->median_ape_pct,
                                 summary->p90_ape_pct,
                                 summary->max_ape_pct,
                                 summary->bias_pct,
                                 summary->inside_pct,
                                 summary->interval_ratio_median};
    cells[0].string = group;
    cells[1].string = summary->kind;
    cells[2].integer = summary->rows;
    cells[3].integer = summary->skipped;
    for (int e = 0; e < 7; e++) cells[4 + e].number = errors_pct[e];
}

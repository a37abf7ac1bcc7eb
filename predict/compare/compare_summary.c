/* compare_summary.c - errors by source, by system, and over all. */
#include <math.h>
#include <string.h>

#include "model/statistics/classes.h"
#include "model/statistics/stats.h"
#include "model/machine/kernel_match.h"
#include "predict/compare/compare.h"
#include "predict/compare/first_sight.h"
#include "model/core/columns.h"

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
    if (dl_first_sight_is(csv) && !anchor) return dl_compare_first_sight(data, csv, out, err);
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

/* Which of the groups of one kind the cases belong to, and where the rows of each are. */
struct grouping {
    struct dl_classes classes; /* of cases: those of one group */
    int *begin; /* of the first case of each group: where its rows begin in `order`; then: end */
};

static const char *group_at(const void *context, int item) {
    const struct group_keys *keys = context;
    return group_of(&keys->c->rows[item], keys->kind);
}

/* Rows in the order of their groups, and within a group in their own: bytes for each row, not a
 * search for each group. */
static struct grouping group_rows(const struct dl_comparison *c, int kind, int *order) {
    const struct group_keys keys = {c, kind};
    const int rows = dl_comparison_row_count(c);
    int begin = 0;
    struct grouping out = {dl_text_classes(group_at, &keys, c->count, c->arena),
                           dl_arena_alloc(c->arena, 2 * (size_t)c->count + 1, sizeof *out.begin)};
    int *next = out.begin + c->count;
    for (int i = 0; i < rows; i++) next[out.classes.first[dl_comparison_case(c, i)]]++;
    for (int k = 0; k < c->count; k++) {
        const int size = next[k];
        out.begin[k] = next[k] = begin;
        begin += size;
    }
    for (int i = 0; i < rows; i++) order[next[out.classes.first[dl_comparison_case(c, i)]]++] = i;
    return out;
}

/* Rows hold times or rates; depending on their unit. */
static bool is_time(const struct dl_compared *row) {
    static const char *const units[] = {"s", "ms", "us"};
    for (size_t i = 0; i < sizeof units / sizeof *units && row->unit != NULL; i++) {
        if (strcmp(row->unit, units[i]) == 0) return true;
    }
    return false;
}

double dl_compared_time_error_pct(const struct dl_compared *row) {
    if (row->skipped) return NAN;
    return 100 *
           (is_time(row) ? row->predicted / row->measured - 1 : row->measured / row->predicted - 1);
}

/* F-INTERVAL-SCORE: ln(high / low), and ten times the logarithm by which the measurement lies
 * outside. */
static double interval_score(const struct dl_compared *row) {
    return log(row->high / row->low) +
           10 * (fmax(0, log(row->low / row->measured)) + fmax(0, log(row->measured / row->high)));
}

/* Of the intervals of the rows; scratch holds as many doubles. */
static void summarize_intervals(const struct dl_comparison *c, const int *order, int count,
                                double *scratch, struct dl_error_summary *s) {
    int inside = 0, with_interval = 0;
    double score = 0;
    for (int i = 0; i < count; i++) {
        const struct dl_compared row = dl_comparison_row(c, order[i], NULL);
        if (row.skipped || !dl_known(row.low)) continue;
        scratch[with_interval++] = row.high / row.low;
        score += interval_score(&row);
        if (row.measured >= row.low && row.measured <= row.high) inside++;
    }
    s->inside_pct = with_interval > 0 ? 100.0 * inside / with_interval : NAN;
    s->interval_score = with_interval > 0 ? score / with_interval : NAN;
    dl_sort(scratch, (size_t)with_interval);
    s->interval_ratio_median = dl_quantile_sorted(scratch, (size_t)with_interval, 0.5);
}

struct sizes {
    double mean_pct, median_pct, p90_pct, max_pct;
};

/* Of absolute errors, which it sorts; NAN without any. */
static struct sizes sizes_of(double *errors_pct, size_t n) {
    if (n == 0) return (struct sizes){NAN, NAN, NAN, NAN};
    dl_sort(errors_pct, n);
    return (struct sizes){dl_mean(errors_pct, n), dl_quantile_sorted(errors_pct, n, 0.5),
                          dl_quantile_sorted(errors_pct, n, 0.9), errors_pct[n - 1]};
}

/* |error| and error of the rows of one group, `count` numbers in `order`; scratch holds as many
 * doubles. */
static struct dl_error_summary summarize(const struct dl_comparison *c, int kind, const char *group,
                                         const int *order, int count, double *scratch) {
    static const char *const kinds[] = {"source", "system", "all"};
    struct dl_error_summary s = {.kind = kinds[kind], .group = group};
    double biases[2];
    int times = 0;
    summarize_intervals(c, order, count, scratch, &s);
    for (int of_time = 0; of_time < 2; of_time++) {
        double sum = 0;
        s.rows = s.skipped = 0, times = 0;
        for (int i = 0; i < count; i++) {
            const struct dl_compared row = dl_comparison_row(c, order[i], NULL);
            s.skipped += row.skipped;
            if (row.skipped) continue;
            const double error_pct = of_time ? dl_compared_time_error_pct(&row) : row.error_pct;
            scratch[s.rows++] = fabs(error_pct);
            sum += error_pct;
            times += is_time(&row);
        }
        const struct sizes sizes = sizes_of(scratch, (size_t)s.rows);
        biases[of_time] = s.rows > 0 ? sum / (double)s.rows : NAN;
        if (of_time) {
            s.time_mape_pct = sizes.mean_pct, s.time_median_ape_pct = sizes.median_pct;
            s.time_p90_ape_pct = sizes.p90_pct, s.time_max_ape_pct = sizes.max_pct;
        } else {
            s.mape_pct = sizes.mean_pct, s.median_ape_pct = sizes.median_pct;
            s.p90_ape_pct = sizes.p90_pct, s.max_ape_pct = sizes.max_pct;
        }
    }
    s.bias_pct = times == 0 || times == s.rows ? biases[0] : NAN;
    s.time_bias_pct = biases[1];
    return s;
}

/* Each quantity's mean over the sources that have it; the worst error is the worst of all. */
static struct dl_error_summary mean_of_sources(const struct dl_error_summary *list, int count) {
    static const size_t averaged[] = {
        offsetof(struct dl_error_summary, mape_pct),
        offsetof(struct dl_error_summary, median_ape_pct),
        offsetof(struct dl_error_summary, p90_ape_pct),
        offsetof(struct dl_error_summary, bias_pct),
        offsetof(struct dl_error_summary, inside_pct),
        offsetof(struct dl_error_summary, interval_ratio_median),
        offsetof(struct dl_error_summary, time_mape_pct),
        offsetof(struct dl_error_summary, time_median_ape_pct),
        offsetof(struct dl_error_summary, time_p90_ape_pct),
        offsetof(struct dl_error_summary, time_bias_pct),
        offsetof(struct dl_error_summary, interval_score),
    };
    struct dl_error_summary mean = {
        .kind = "all", .group = "all-by-source", .max_ape_pct = NAN, .time_max_ape_pct = NAN};
    for (size_t k = 0; k < sizeof averaged / sizeof *averaged; k++) {
        double sum = 0;
        int sources = 0;
        for (int i = 0; i < count; i++) {
            const double value = *(const double *)((const char *)&list[i] + averaged[k]);
            if (strcmp(list[i].kind, "source") != 0 || !dl_known(value)) continue;
            sum += value;
            sources++;
        }
        *(double *)((char *)&mean + averaged[k]) = sources > 0 ? sum / sources : NAN;
    }
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i].kind, "source") != 0) continue;
        mean.skipped += list[i].skipped;
        mean.rows += list[i].rows;
        mean.max_ape_pct = fmax(mean.max_ape_pct, list[i].max_ape_pct);
        mean.time_max_ape_pct = fmax(mean.time_max_ape_pct, list[i].time_max_ape_pct);
    }
    return mean;
}

void dl_compare_summarize(const struct dl_comparison *c, struct dl_error_summary **out,
                          int *count_out) {
    const size_t rows = (size_t)dl_comparison_row_count(c);
    struct dl_error_summary *list =
        dl_arena_alloc(c->arena, 2 * (size_t)c->count + 2, sizeof *list);
    struct dl_arena scratch = {0};
    double *numbers = dl_arena_alloc(&scratch, rows, sizeof *numbers);
    int *order = dl_arena_alloc(&scratch, rows, sizeof *order);
    int count = 0;
    for (int kind = 0; kind < 3; kind++) {
        const struct grouping g = group_rows(c, kind, order);
        for (int i = 0; i < c->count; i++) {
            if (g.classes.first[i] != i) continue;
            /* after group_rows the second half of `begin` has the ends */
            list[count++] = summarize(c, kind, group_of(&c->rows[i], kind), order + g.begin[i],
                                      g.begin[c->count + i] - g.begin[i], numbers);
        }
    }
    dl_arena_free(&scratch);
    if (count > 0) {
        list[count] = mean_of_sources(list, count);
        if (!dl_known(list[count - 1].bias_pct)) list[count].bias_pct = NAN; /* of all rows */
        count++;
    }
    *out = list;
    *count_out = count;
}

#define SHOWN(member, key, heading, unit)                                                          \
    DL_SHOWN(struct dl_error_summary, member, key, heading, unit, 0, 3, 0, NULL)
#define HIDDEN(member, key) DL_HIDDEN(struct dl_error_summary, member, key, NULL)
static const struct dl_list_column columns[] = {
    HIDDEN(group, "group"),
    SHOWN(kind, "by", "by", ""),
    SHOWN(rows, "rows", "rows", ""),
    SHOWN(skipped, "skipped", "not predicted", ""),
    HIDDEN(mape_pct, "mape_pct"),
    HIDDEN(median_ape_pct, "median_ape_pct"),
    HIDDEN(p90_ape_pct, "p90_ape_pct"),
    HIDDEN(max_ape_pct, "max_ape_pct"),
    HIDDEN(bias_pct, "bias_pct"),
    SHOWN(time_mape_pct, "time_mape_pct", "error", "%"),
    SHOWN(time_median_ape_pct, "time_median_ape_pct", "median", "%"),
    HIDDEN(time_p90_ape_pct, "time_p90_ape_pct"),
    SHOWN(time_max_ape_pct, "time_max_ape_pct", "worst", "%"),
    SHOWN(time_bias_pct, "time_bias_pct", "bias", "%"),
    SHOWN(inside_pct, "coverage_pct", "covered", "%"),
    HIDDEN(interval_ratio_median, "interval_ratio_median"),
    HIDDEN(interval_score, "interval_score"),
    SHOWN(group, NULL, "group", ""), /* text alone: names are long */
};

void dl_compare_summary_init(struct dl_table *table, struct dl_arena *arena) {
    dl_list_table(table, arena, columns, sizeof columns / sizeof *columns, 0);
}

void dl_compare_summary_row(struct dl_table *table, const struct dl_error_summary *summary) {
    dl_list_add(table, columns, summary);
}

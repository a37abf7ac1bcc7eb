/* first_sight_print.c - see first_sight_print.h. */
#include "fits/first_sight_print.h"

#include <math.h>
#include <string.h>

#include "model/core/columns.h"

/* Sums over the rows of a source, then over sources. */
struct sums {
    double rows, error, bias, inside, ratio, score, left_inside, left_ratio, left_score;
};
enum { SUMS = sizeof(struct sums) / sizeof(double) };

struct facts {
    const char *kind;
    int64_t sources, rows;
    double time_mape_pct, time_bias_pct, coverage_pct, interval_ratio, interval_score,
        left_out_coverage_pct, left_out_interval_ratio, left_out_interval_score;
};
#define SHOWN(member, heading, unit)                                                               \
    DL_SHOWN(struct facts, member, #member, heading, unit, 0, 3, 0, NULL)
static const struct dl_list_column columns[] = {
    SHOWN(kind, "first sight of", ""),
    SHOWN(sources, "sources", ""),
    SHOWN(rows, "rows", ""),
    SHOWN(time_mape_pct, "mean error of time", "%"),
    SHOWN(time_bias_pct, "bias", "%"),
    SHOWN(coverage_pct, "coverage", "%"),
    SHOWN(interval_ratio, "interval ratio", ""),
    SHOWN(interval_score, "score", ""),
    SHOWN(left_out_coverage_pct, "coverage, left out", "%"),
    SHOWN(left_out_interval_ratio, "interval ratio, left out", ""),
    SHOWN(left_out_interval_score, "score, left out", ""),
};

/* Whether a kind, words between slashes, has that word; NULL: any. */
static bool of_kind(const char *kind, const char *word) {
    const size_t length = word == NULL ? 0 : strlen(word);
    for (const char *at = kind; word != NULL; at++) {
        if (strncmp(at, word, length) == 0 && (at[length] == '/' || at[length] == 0)) return true;
        at = strchr(at, '/');
        if (at == NULL) return false;
    }
    return true;
}

/* F-INTERVAL-SCORE of errors log(measured / predicted) and ends around 0. */
static double score(double error, double low, double high) {
    return high - low + 10 * (fmax(0, low - error) + fmax(0, error - high));
}

/* log(end / prediction) of this version's interval, left out. */
struct ends {
    double low, high;
};

static struct ends ends_of(const struct dl_first_sight_row *seen,
                           const struct dl_fit_prediction *now, double measured_s) {
    const double error = dl_stranger_error_log(seen);
    return (struct ends){log(now->low_s / measured_s) + error,
                         log(now->high_s / measured_s) + error};
}

static void add_row(const struct dl_first_sight_row *seen, const struct dl_fit_prediction *now,
                    double measured_s, struct sums *sums) {
    const double error = dl_stranger_error_log(seen);
    /* rates: the ends of the time are those of the rate, reversed */
    const bool time = seen->time_error_pct * (seen->predicted - seen->measured) > 0;
    const double a = log(seen->low / seen->predicted), b = log(seen->high / seen->predicted);
    const double low = time ? a : -b, high = time ? b : -a;
    const struct ends left = ends_of(seen, now, measured_s);
    sums->rows++;
    sums->error += fabs(seen->time_error_pct);
    sums->bias += seen->time_error_pct;
    sums->inside += seen->in_interval == 1 ? 100 : 0;
    sums->ratio += high - low;
    sums->score += score(error, low, high);
    sums->left_inside += error >= left.low && error <= left.high ? 100 : 0;
    sums->left_ratio += left.high - left.low;
    sums->left_score += score(error, left.low, left.high);
}

static struct facts facts_of(const struct dl_strangers *s, const char *kind, bool *done) {
    struct sums all = {0};
    struct facts facts = {.kind = kind == NULL ? "all" : kind};
    memset(done, 0, s->rows.count * sizeof *done);
    for (size_t i = 0; i < s->rows.count; i++) {
        struct sums one = {0};
        for (size_t k = i; k < s->rows.count; k++) {
            const struct dl_first_sight_row *seen = s->seen[k];
            if (seen == NULL || done[k] || !of_kind(seen->kind, kind) ||
                strcmp(s->rows.rows[k].source, s->rows.rows[i].source) != 0)
                continue;
            done[k] = true;
            add_row(seen, &s->predictions[k], s->rows.rows[k].measured_s, &one);
        }
        if (one.rows == 0) continue;
        facts.sources++;
        facts.rows += (int64_t)one.rows;
        for (int m = 1; m < SUMS; m++) ((double *)&all)[m] += ((double *)&one)[m] / one.rows;
    }
    const double n = (double)facts.sources;
    facts.time_mape_pct = all.error / n;
    facts.time_bias_pct = all.bias / n;
    facts.coverage_pct = all.inside / n;
    facts.interval_ratio = exp(all.ratio / n);
    facts.interval_score = all.score / n;
    facts.left_out_coverage_pct = all.left_inside / n;
    facts.left_out_interval_ratio = exp(all.left_ratio / n);
    facts.left_out_interval_score = all.left_score / n;
    return facts;
}

void dl_first_sight_table(const struct dl_strangers *strangers, struct dl_arena *arena,
                          struct dl_table *out) {
    static const char *const kinds[] = {NULL,        "dense",    "moe",           "cnn",
                                        "encoder",   "one-node", "several-nodes", "samples",
                                        "no-samples"};
    bool *done = dl_arena_alloc(arena, strangers->rows.count + 1, sizeof *done);
    dl_list_table(out, arena, DL_LIST(columns), 0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const struct facts facts = facts_of(strangers, kinds[i], done);
        if (facts.rows > 0) dl_list_add(out, columns, &facts);
    }
}

struct row_facts {
    const char *file, *id;
    double low_log, high_log;
};
#define ROW(member) DL_SHOWN(struct row_facts, member, #member, #member, "", 0, 0, 0, NULL)
static const struct dl_list_column row_columns[] = {ROW(file), ROW(id), ROW(low_log),
                                                    ROW(high_log)};

void dl_first_sight_rows_table(const struct dl_strangers *strangers, struct dl_arena *arena,
                               struct dl_table *out) {
    dl_list_table(out, arena, DL_LIST(row_columns), 0);
    for (size_t i = 0; i < strangers->rows.count; i++) {
        const struct dl_first_sight_row *seen = strangers->seen[i];
        if (seen == NULL) continue;
        const struct ends ends =
            ends_of(seen, &strangers->predictions[i], strangers->rows.rows[i].measured_s);
        const struct row_facts facts = {seen->file, seen->id, round(1e5 * ends.low) / 1e5,
                                        round(1e5 * ends.high) / 1e5};
        dl_list_add(out, row_columns, &facts);
    }
}

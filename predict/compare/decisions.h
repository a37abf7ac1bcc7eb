/* decisions.h - what an oracle is for: among measured alternatives of one job, how much slower is
 * the one that is predicted best than the one that is (F-REGRET), and how alike are both orders?
 * Alternatives are plans of one model by one framework on the same devices and global batch, or
 * frameworks with the same plan, measured by the same source. */
#ifndef DL_PREDICT_COMPARE_DECISIONS_H
#define DL_PREDICT_COMPARE_DECISIONS_H

#include "predict/compare/compare_runs.h"

struct dl_decision_keys dl_decision_keys(const struct dl_run_rows *runs, int row);

struct dl_decision_row {
    struct dl_decision_keys keys;
    double predicted_s, measured_s; /* of an iteration; NAN: does not count */
    /* half of the 80 % interval that is its own among plans, and among frameworks (F-TIE) */
    double plan_half_log, framework_half_log;
};

struct dl_decision {
    const char *group; /* the job */
    bool frameworks;   /* else plans */
    int alternatives;
    bool distinguished; /* no alternative is tied with the predicted best (F-TIE) */
    double regret_pct, rank_correlation; /* NAN: for two that are equal */
};

struct dl_decision_list {
    struct dl_decision *list;
    int count;
};
/* One for each job with at least two alternatives; those measured several times count with their
 * mean. In the arena. */
struct dl_decision_list dl_decisions(const struct dl_decision_row *rows, size_t count,
                                     struct dl_arena *arena);
/* Of the runs of a comparison, in its arena. */
struct dl_decision_list dl_decisions_of(const struct dl_comparison *comparison);

/* Means over plans or frameworks; rank correlation over jobs with three alternatives and more.
 * distinguished: jobs whose best alternative the intervals separate from the others; NAN: none. */
struct dl_decision_summary {
    int jobs, ranked_jobs, distinguished_jobs;
    double regret_mean_pct, regret_max_pct, rank_correlation;
    double distinguished_mean_pct, distinguished_max_pct;
};
struct dl_decision_summary dl_decision_summary(const struct dl_decision_list *all, bool frameworks);

/* "decisions": [...] as a member of the open object. */
void dl_decisions_json(const struct dl_decision_list *all, struct dl_json_writer *w);
/* A line for plans and one for frameworks; "" without jobs. */
const char *dl_decisions_text(const struct dl_decision_list *all, struct dl_arena *arena);

#endif

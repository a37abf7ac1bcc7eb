/* plan_choice.h - the one completion of a plan that a user left open: `predict`, `search`,
 * `explain`, `advise`, `campaign` and figures predict through it. */
#ifndef DL_MODEL_SEARCH_PLAN_CHOICE_H
#define DL_MODEL_SEARCH_PLAN_CHOICE_H

#include "model/search/search.h"

/* An open plan. Members of `plan` that are 0 are open; where 0 is a value, `given` says whether it
 * was chosen. */
struct dl_plan_question {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    struct dl_plan plan; /* nodes and a batch are set, unless max_batch */
    struct dl_plan_given given;
    bool max_batch;            /* the largest batch per device (F-MAX-BATCH) */
    bool max_micro_batch;      /* the largest micro-batch that fits */
    struct dl_cost_memo *memo; /* NULL: none */
};

/* --zero 0: devices keep all states, also under a framework that shards them by itself.
 * DL_ERR_USAGE: the strategy shards. */
enum dl_code dl_plan_keep_states_whole(const struct dl_framework *framework,
                                       const struct dl_plan_given *given, struct dl_plan *plan,
                                       struct dl_err *err);

/* The search among the plans that the question leaves open: on its nodes, by time, keeping one. */
void dl_plan_search_request(const struct dl_plan_question *question, struct dl_search_request *out);

/* F-DEFAULT-PLAN: completes the plan and predicts it. Where the framework splits or shards a
 * transformer and the user named no strategy, what is open comes from the search; where no plan
 * fits, it is the one that needs least memory. Otherwise strategy and framework complete it
 * (dl_plan_complete). DL_ERR_USAGE: impossible; DL_ERR_NO: with max_batch or max_micro_batch, not
 * even one sample fits. */
enum dl_code dl_plan_predict(const struct dl_plan_question *question, bool terms,
                             struct dl_arena *arena, struct dl_plan *plan_out,
                             struct dl_prediction *out, struct dl_err *err);

#endif

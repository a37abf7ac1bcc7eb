/* search_internal.h - what the files of the search share. Private to the model.
 */
#ifndef DL_MODEL_SEARCH_SEARCH_INTERNAL_H
#define DL_MODEL_SEARCH_SEARCH_INTERNAL_H

#include "model/search/search.h"

enum { DL_SEARCH_DIVISORS = 256 };
struct dl_search_divisors {
    int64_t value[DL_SEARCH_DIVISORS];
    int count;
};

/* One arrangement of ranks. strategy: of a network that is no stack, predicted whole; NULL: made
 * from micro-batch costs and a rank mapping. stride: place in `strides` of the distance between
 * expert ranks, which their messages depend on and which pipeline and mapping decide. */
struct dl_search_task {
    struct dl_transformer_split split;
    int64_t order;
    const struct dl_strategy *strategy;
    int stride;
    int micro; /* a task of all `pipelines` with that of `batches`; else -1 */
};
struct dl_search_tasks {
    struct dl_search_task *items;
    int64_t count;
};

/* Of a network at one size of micro-batch: costs of all layers, recomputed as the search fixes it,
 * else not; the seconds that all together and the longest alone take on one device. */
struct dl_search_micro {
    bool wanted;
    struct dl_cost cost;
    double step_s, longest_s;
};

struct dl_search {
    struct dl_search_request request;
    /* One search for each combination of settings: all of them, of the first; the place of this
     * one among them. */
    struct dl_search **variants;
    int variant_count, variant;
    struct dl_transformer tf;
    /* no stack, or a framework that neither splits nor shards one: search_network.c */
    bool by_network;
    struct dl_search_divisors batches; /* of the global batch: the micro-batches there can be */
    struct dl_search_tasks tasks;
    struct dl_search_tasks pipelines; /* arrangements of stages: search_network.c */
    int64_t listed;                   /* arrangements so far */
    /* micro-batch costs by key; wanted: keys of those that tasks need */
    struct dl_transformer_micro_batch **costs;
    int64_t *wanted;
    int64_t cost_count;
    struct dl_search_divisors tp, sp, ep;
    struct dl_search_divisors strides; /* of expert ranks, as tasks have them */
    struct dl_search_micro *micros;    /* by place among `batches`; NULL: no network */
    double *cut_elements;              /* dl_pipeline_cuts(), for pipelines */
    int64_t rejected_count[DL_REJECTIONS];
    double capacity_bytes;
    struct dl_arena *arena;
};

/* Divisors of `whole`, or the one that is `only` (above 0). */
void dl_search_list_divisors(int64_t whole, int64_t only, struct dl_search_divisors *out);
void dl_search_add_task(struct dl_search *s, struct dl_search_tasks *to,
                        const struct dl_search_task *task);
/* Place of a micro-batch cost: by everything that dl_transformer_micro_batch_make reads of an
 * arrangement (number of nodes, tp, sp, ep, stride of expert ranks), the micro-batch and sequence
 * parallelism. Plans that differ in one of them must not share a cost. */
int64_t dl_search_cost_key(const struct dl_search *s, const struct dl_search_task *task, int micro,
                           bool sequence_parallel);
/* Whether a micro-batch divides what a data rank of the task gets, and sequence parallelism may be
 * on (or off) in a split. */
bool dl_search_takes(const struct dl_search *s, const struct dl_search_task *task, int micro);
bool dl_search_sequence_allowed(const struct dl_search *s, const struct dl_transformer_split *split,
                                bool on);
/* Is task `index` in the part that this search does? */
bool dl_search_mine(const struct dl_search *s, int64_t index);
/* Counts an evaluated plan, and keeps it where it belongs. found: all but fits and score. */
void dl_search_consider(const struct dl_search *s, struct dl_search_worker *worker,
                        struct dl_search_candidate *found);

/* F-SEARCH-BOUND: whether plans may be left out for the time that they take at least; the longest
 * iteration with which one on these devices may be kept (INFINITY: any); whether it takes longer.
 */
bool dl_search_bounds_time(const struct dl_search *s);
double dl_search_limit_s(const struct dl_search *s, const struct dl_search_worker *worker,
                         const struct dl_transformer_split *split);
bool dl_search_is_beyond(double least_s, double limit_s);

/* The schedule asked for, or each that has an end and that the release has. */
bool dl_search_tries_schedule(const struct dl_search_request *request, enum dl_schedule schedule);

/* Networks that are no stack of equal layers: search_network.c. Arrangements of some nodes; then,
 * after all of them, what they share. */
void dl_search_network_tasks(struct dl_search *s, int64_t nodes);
void dl_search_network_share(struct dl_search *s);
/* What costs of layers depend on, for one size of micro-batch. */
struct dl_plan dl_search_micro_plan(const struct dl_search *s, double micro_samples);
int64_t dl_search_network_cost_count(const struct dl_search *s);
enum dl_code dl_search_network_make_cost(struct dl_search *s, int64_t micro, struct dl_err *err);
enum dl_code dl_search_network_run(const struct dl_search *s, const struct dl_search_task *task,
                                   struct dl_search_worker *worker, struct dl_err *err);

#endif

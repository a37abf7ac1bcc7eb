/* search.h - every plan on given devices. Of a transformer: tensor, sequence, expert, pipeline and
 * data ranks, micro-batch, schedule, recomputation, sharding, mapping. Of another network: data
 * parallelism, spatial, filter, channel and pipeline splits, their products with data parallelism,
 * micro-batches, schedules, sharded states. Of both, settings of the framework's release that the
 * request varies: each combination is a search of its own (F-SEARCH-SETTINGS). The best of them by
 * an objective, and those that nothing beats in time and memory.
 *
 * Exhaustive: what is left out is impossible or provably no better (F-SEARCH-BOUND). Of a
 * transformer: states alone larger than the memory; activations of one layer larger than it; the
 * slowest stage's layers, without bubble, recomputation and gradient synchronization, slower than
 * the worst plan that is kept. Of another network: slower than that in what is sure of a pipeline
 * before its stages are balanced, or before its messages are timed; of other plans in their compute
 * and the messages inside their layers.
 *
 * Threads may take the work in any order: first all micro-batch costs, then all tasks, which
 * combine them with rank mappings. Pure.
 */
#ifndef DL_MODEL_SEARCH_SEARCH_H
#define DL_MODEL_SEARCH_SEARCH_H

#include "model/engine/transformer/transformer.h"

enum dl_objective {
    DL_BY_TIME,
    DL_BY_THROUGHPUT,
    DL_BY_MEMORY,
    DL_BY_DEVICES,
    DL_BY_ENERGY,
    DL_BY_COST
};
/* "time","throughput","memory","devices","energy","cost", NULL */
extern const char *const dl_objective_names[];

enum dl_rejection {
    DL_NOT_HEADS,
    DL_NOT_LAYERS,
    DL_NOT_TOKENS,
    DL_NOT_BATCH,
    DL_NOT_MEMORY,
    DL_NOT_DEADLINE,
    DL_NOT_FASTER,
    DL_NOT_PARTS,
    DL_NOT_HOST,
    DL_REJECTIONS
};
extern const char *const dl_rejection_names[]; /* NULL-terminated */

enum {
    DL_SEARCH_KEPT = 64,
    DL_SEARCH_SIZES = 64,
    DL_SEARCH_FRONT = 512,
    DL_SEARCH_SIMPLE = 64,
    DL_SEARCH_VIRTUAL = 4
};

struct dl_search_request {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    /* what is given (above 0) is not searched; precision, optimizer, global batch */
    struct dl_plan fixed;
    /* these are searched; otherwise as fixed; recompute: fixed.recompute_open */
    bool any_schedule, any_shard, any_mapping;
    bool any_sequence_parallel;
    unsigned vary; /* settings of the framework's release (dl_settings_varied); 0: as fixed */
    int64_t nodes[DL_SEARCH_SIZES];
    int node_count;
    enum dl_objective objective;
    double memory_bytes;                  /* limit of a device; 0: the device's */
    double iteration_limit_s;             /* of an iteration; 0: none */
    double device_w, node_price_per_hour; /* for energy and cost; 0: unknown */
    int keep;                             /* best plans wanted, at most DL_SEARCH_KEPT */
    /* also the plans that nothing beats in time and memory; switches the bound on time off */
    bool front;
    bool every; /* no bounds: each plan is evaluated (tests, timings) */
    /* this search does tasks i with i mod count = index; count 0: all */
    int64_t shard_index, shard_count;
    /* kernels that are timed already, of a search in one thread; NULL: none */
    struct dl_cost_memo *memo;
};

struct dl_search_candidate { /* one plan */
    struct dl_transformer_split split;
    struct dl_transformer_choice choice;
    double micro_samples, iteration_s, memory_bytes, score;
    int shard;
    int variant; /* of the settings that vary; 0: as given */
    bool fits;
    /* of a network that is no stack: data, spatial, filter, ...; NULL: as the split says */
    const struct dl_strategy *strategy;
    int64_t order;      /* place in the enumeration: decides between equals */
    int64_t complexity; /* F-DEFAULT-PLAN; lower is simpler */
};

struct dl_search; /* prepared once; constant but for its micro-batch costs, made once each */

/* Lists all micro-batch costs and tasks. DL_ERR_USAGE with why and the nearest when nothing can be
 * enumerated.
 */
enum dl_code dl_search_prepare(const struct dl_search_request *request, struct dl_arena *arena,
                               struct dl_search **out, struct dl_err *err);
int64_t dl_search_cost_count(const struct dl_search *search);
int64_t dl_search_tasks(const struct dl_search *search);
/* Different micro-batch costs may be made by different threads at once. */
enum dl_code dl_search_make_cost(struct dl_search *search, int64_t index, struct dl_err *err);

struct dl_search_worker { /* one a thread; merged afterwards */
    struct dl_search_candidate best[DL_SEARCH_KEPT];
    int best_count; /* best first */
    struct dl_search_candidate front[DL_SEARCH_FRONT];
    int front_count;
    /* of the plans within DL_SIMPLER_FRAC of the best, those that no simpler one beats in score;
     * simplest first */
    struct dl_search_candidate simple[DL_SEARCH_SIMPLE];
    int simple_count;
    struct dl_search_candidate nearest;
    bool has_nearest; /* least memory of what did not fit */
    int64_t evaluated_count, feasible_count, rejected_count[DL_REJECTIONS];
};
/* How much worse than the best a simpler plan may be and still be chosen (F-DEFAULT-PLAN). */
#define DL_SIMPLER_FRAC 0.03
/* F-DEFAULT-PLAN: the simplest of the plans within DL_SIMPLER_FRAC of the best one, where the
 * objective follows the time; else the best. best_count must be above 0. */
const struct dl_search_candidate *dl_search_choice(const struct dl_search_worker *worker);

/* The choice, then the best others, best first: at most request->keep, and in a part of a search
 * (shard_count) also every simple one, from which parts that are merged choose. `out` has room for
 * DL_SEARCH_KEPT + DL_SEARCH_SIMPLE. Returns how many. */
int dl_search_ranking(const struct dl_search_request *request,
                      const struct dl_search_worker *worker, struct dl_search_candidate *out);

/* Has found nothing; does not touch the room for what it will find. */
void dl_search_worker_clear(struct dl_search_worker *worker);
enum dl_code dl_search_run_task(const struct dl_search *search, int64_t index,
                                struct dl_search_worker *worker, struct dl_err *err);
/* Adds what another worker found. */
void dl_search_merge(const struct dl_search *search, struct dl_search_worker *into,
                     const struct dl_search_worker *from);
/* Arrangements that were impossible before any task, by reason. */
void dl_search_rejected(const struct dl_search *search, struct dl_search_worker *into);

/* The plan of a found one, complete, for dl_predict. */
struct dl_plan dl_search_plan(const struct dl_search *search,
                              const struct dl_search_candidate *found);

/* The framework with its settings. */
const struct dl_framework *dl_search_framework(const struct dl_search *search,
                                               const struct dl_search_candidate *found);

/* True for strategies that a search tries on networks that are no stack: data, spatial, filter,
 * channel, pipeline, their products. */
bool dl_search_serves_network(const struct dl_strategy *strategy);

/* By the objective; smaller is better. */
double dl_search_score(const struct dl_search_request *request,
                       const struct dl_search_candidate *found);

/* Keeps `found` among the best, or on the front, where it belongs. */
void dl_search_keep(const struct dl_search_request *request, struct dl_search_worker *worker,
                    const struct dl_search_candidate *found);
void dl_search_keep_front(struct dl_search_worker *worker, const struct dl_search_candidate *found);
/* The worst score with which a plan may be kept; INFINITY: any. */
double dl_search_worst_score(const struct dl_search_request *request,
                             const struct dl_search_worker *worker);

#endif

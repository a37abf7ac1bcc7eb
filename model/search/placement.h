/* placement.h - work on nodes of several kinds: how many nodes of each kind a job takes, and which
 * job goes to which kind. Exact.
 */
#ifndef DL_MODEL_SEARCH_PLACEMENT_H
#define DL_MODEL_SEARCH_PLACEMENT_H

#include "model/search/heterogeneous.h"

enum dl_placement_objective { DL_PLACE_TIME, DL_PLACE_ENERGY, DL_PLACE_COST };
extern const char *const dl_placement_objectives[]; /* "time","energy","cost", NULL */

/* Prices of the job's nodes, of all kinds, per second; NAN without a price of each kind in use, in
 * one currency. */
double dl_placement_price_per_s(const struct dl_heterogeneous_job *job);

/* ---- one job: which nodes to leave out ---- */

struct dl_subset {
    int64_t nodes[DL_MIXED_GROUPS]; /* of each kind */
    bool balanced;                  /* batches by speed, else equal ones */
    bool fits;
    double samples_per_s, low_samples_per_s, high_samples_per_s;
    double iteration_s, sample_energy_j, cost_per_sample; /* NAN: unknown */
};

/* F-HETEROGENEOUS-NODES: every choice of 0 to N_k nodes of each kind k, with equal and with
 * balanced batches, in the order of the objective per sample; those that do not fit in memory last.
 * All counts where these are at most DL_SUBSETS choices, else powers of two and N_k. Nodes that are
 * left out cost nothing: others may use them. `plan` as dl_heterogeneous_predict takes it; with a
 * batch of the job every choice trains the same batch. DL_ERR_USAGE: the error of the last choice,
 * when none is possible; a cost needs prices in one currency. */
enum { DL_SUBSETS = 4096 };
enum dl_code dl_subsets(const struct dl_heterogeneous_question *question,
                        enum dl_placement_objective objective, struct dl_arena *arena,
                        struct dl_subset **out, int *count, struct dl_err *err);

/* ---- several jobs: which kind of nodes each gets ---- */

enum { DL_PLACED_JOBS = 16, DL_PLACED_STATES = 200000 };

/* What a job takes on n nodes of a kind: [job][kind][n - 1]; NAN: impossible. */
struct dl_job_times {
    double time_s, energy_j, cost;
};
struct dl_placement_request {
    int jobs, kinds;
    int64_t nodes[DL_MIXED_GROUPS];
    /* of `job` on n nodes of `kind`, 1 <= n <= nodes[kind] */
    const struct dl_job_times *(*times)(const void *data, int job, int kind, int64_t n);
    const void *data;
    enum dl_placement_objective objective;
};
struct dl_placement {
    int kind[DL_PLACED_JOBS]; /* of each job */
    int64_t nodes[DL_PLACED_JOBS];
    double time_s; /* until the last job ends */
    double energy_j, cost;
};

/* F-HETEROGENEOUS-JOBS: all jobs at once, each on its own nodes of one kind: least makespan, or
 * least sum of energy or cost. Exact, by dynamic programming over the jobs and the nodes of each
 * kind in use. DL_ERR_NO: they do not fit on the nodes together; DL_ERR_USAGE: too many. */
enum dl_code dl_placement_of(const struct dl_placement_request *request, struct dl_arena *arena,
                             struct dl_placement *out, struct dl_err *err);

#endif

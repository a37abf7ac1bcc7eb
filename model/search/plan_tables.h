/* plan_tables.h - many plans of one network, fast. F-TABLES.
 *
 * dl_predict evaluates every kernel and every collective of a plan: about a millisecond for
 * ResNet-50. Plans of one search share nearly all of them, so tables keep, once for each (split,
 * parts, samples), the sums over the layers at the split shape, and once for each (group, bytes),
 * the collectives. A plan is then a few look-ups and one walk over its gradient messages:
 * dl_plan_tables_evaluate() takes about a microsecond and gives what dl_predict gives (property
 * test); where a framework broadcasts buffers before forward, within 0.5 %.
 *
 * Strategies: data, spatial, filter, channel, pipeline and their products with data.
 *
 *   struct dl_plan_tables *tables;
 *   DL_TRY(dl_plan_tables_build(system, workload, framework, &base, arena, &tables, err));
 *   for each plan, in one thread: DL_TRY(dl_plan_tables_add(tables, &plan, err));
 *   for each plan, in any number of threads: dl_plan_tables_evaluate(tables, &plan, &value);
 *
 * dl_plan_tables_add() completes and checks the plan; tables stay constant afterwards.
 */
#ifndef DL_MODEL_SEARCH_PLAN_TABLES_H
#define DL_MODEL_SEARCH_PLAN_TABLES_H

#include "model/predict/predict.h"

struct dl_plan_tables; /* lives in the arena it was built in */

/* Every term of one plan; seconds of one iteration, as in struct dl_prediction. */
struct dl_plan_value {
    double iteration_s, throughput_samples_per_s;
    double forward_s, backward_s, update_s, compute_s;
    double comm_s, exposed_comm_s, input_s, exposed_input_s, bubble_s, overhead_s;
    struct dl_memory memory;
    bool fits;
};

/* Empty tables. `base` fixes what all plans share: precision, optimizer, recomputation, library,
 * input; the rest of it is not read. DL_ERR_SYSTEM without memory; DL_ERR_USAGE when the device has
 * no rate for the precision. */
enum dl_code dl_plan_tables_build(const struct dl_system *system,
                                  const struct dl_workload *workload,
                                  const struct dl_framework *framework, const struct dl_plan *base,
                                  struct dl_arena *arena, struct dl_plan_tables **out,
                                  struct dl_err *err);

/* True for the strategies that tables serve. */
bool dl_plan_tables_serve(const struct dl_plan *plan);

/* Completes *plan (dl_plan_complete) and computes what is missing to evaluate it. DL_ERR_USAGE with
 * the limit and the nearest that is possible for a plan that cannot be. Not to be called while
 * another thread evaluates. */
enum dl_code dl_plan_tables_add(struct dl_plan_tables *tables, struct dl_plan *plan,
                                struct dl_err *err);

/* Evaluates a plan that was added, or one that differs from added ones in combination only (samples
 * and parts of one, replicas of another). False when an entry is missing; *out is then unchanged.
 */
bool dl_plan_tables_evaluate(const struct dl_plan_tables *tables, const struct dl_plan *plan,
                             struct dl_plan_value *out);

/* Entries held: (splits, groups), for reports. */
void dl_plan_tables_count(const struct dl_plan_tables *tables, int *splits_out, int *groups_out);

#endif

/* compose.h - one iteration from its parts, the same for every strategy: F-ITERATION,
 * F-STRAGGLER, F-BACKUP, exposed input, throughput, epoch and scaling efficiency.
 *
 * The files that simulate or sum a plan (replica.c, pipe.c,
 * transformer/transformer_time.c) fill a struct dl_evidence and compose nothing themselves. */
#ifndef DL_MODEL_ENGINE_COMPOSE_H
#define DL_MODEL_ENGINE_COMPOSE_H

#include "model/framework/input.h"
#include "model/engine/evidence.h"
#include "model/engine/predict.h"

/* F-ITERATION: iteration = compute + exposed communication + exposed input + bubble + overhead. */
struct dl_iteration {
    double compute_s, straggler_s, overhead_s, exposed_input_s, iteration_s;
};
void dl_compose_iteration(const struct dl_evidence *evidence, struct dl_iteration *out);

/* What input adds to a step of `step_s`: the feed, and the part of loading that prefetching does
 * not hide. F-INPUT */
double dl_compose_exposed_input_s(double load_s, double feed_s, bool prefetches, double step_s);

/* The input of a plan into its evidence. extra_s: reading for others on top of the feed. */
void dl_compose_input(const struct dl_input_time *input, const struct dl_framework *framework,
                      double extra_s, struct dl_evidence *out);

/* Wait for the slowest device / compute: jitter x expected maximum over the devices, in standard
 * deviations of a step (F-STRAGGLER); with backup workers, the last device of the last node that
 * counts (F-BACKUP). 0 for one device, where the jitter is unknown, and for frameworks whose
 * devices do not wait for each other (asynchronous, the bound). */
double dl_straggler_frac(const struct dl_system *system, const struct dl_framework *framework,
                         const struct dl_plan *plan);

/* The evidence as a prediction, without memory, diagnosis and terms. alone_s: one device that
 * computes a device's share of the work without the others, with its input; for the scaling
 * efficiency. */
void dl_compose(const struct dl_evidence *evidence, const struct dl_workload *workload,
                const struct dl_plan *plan, double alone_s, struct dl_prediction *out);

#endif

/* pipe.h - one pipeline in parts. st_pipeline.c predicts a whole plan from them, search_pipes.c
 * fills tables for many plans: both get the same numbers. F-PIPE-GPIPE.
 *
 *   cost of every layer for one micro-batch -> dl_pipe_split()
 *   -> dl_pipe_evidence(), dl_pipe_memory() of each plan with this split
 */
#ifndef DL_MODEL_ENGINE_PIPE_H
#define DL_MODEL_ENGINE_PIPE_H

#include "model/framework/cost.h"
#include "model/framework/gradient_sync.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/compose.h"
#include "model/plan/pipeline_schedule.h"

struct dl_pipe {
    /* of the split: stages x virtual stages, one size of micro-batch */
    int stages, parts; /* parts: of the network */
    enum dl_placing placing;
    int *first; /* of each part */
    /* of each stage: one micro-batch forward and backward, with and without host stalls; of
     * several chains the mean */
    double *step_s, *compute_s;
    double *forward_step_s, *backward_step_s; /* step_s by direction */
    double *weights_step_s;                   /* of backward_step_s gradients of weights */
    double *parameters;                       /* elements of each stage */
    const double *cut_elements; /* of one sample, across each boundary between layers */
    int slowest;
    double step_max_s, boundary_elements; /* the largest between parts */
    double forward_s, backward_s;         /* of the slowest stage, one micro-batch */
    double update_s;                      /* of the stage with the most parameters */
    /* of a plan */
    const struct dl_predict_request *request;
    struct dl_plan plan; /* complete; micro_batch_samples > 0 */
    double micro_batches;
    double message_s; /* between neighbouring parts, where the schedule shows it */
    double *sum_s;    /* of each stage: the all-reduce of its gradients, in the evidence */
    struct dl_message *messages;
    int message_count; /* NULL: not wanted; room for stages + 1 */
};

double dl_pipe_virtual_stages(const struct dl_plan *plan);

/* Sets the stages and the parts of the network that the plan's schedule has on them. */
void dl_pipe_place(struct dl_pipe *pipe, const struct dl_plan *plan);
/* Devices that hold the same part: data ranks, of each chain. */
int64_t dl_pipe_replicas(const struct dl_pipe *pipe);
/* Parts of a stage, and which part of the network the i-th of them is. */
int dl_pipe_stage_parts(const struct dl_pipe *pipe);
int dl_pipe_part(const struct dl_pipe *pipe, int stage, int i);

/* Host and device seconds of layers [from, to) on one device, one micro-batch forward and backward.
 */
double dl_pipe_step_s(const struct dl_predict_request *request, const struct dl_cost *cost,
                      int from, int to);

/* The same of each layer alone: what is balanced. */
void dl_pipe_layer_steps(const struct dl_predict_request *request, const struct dl_cost *cost,
                         double *step_s);

/* Room for the split's arrays; stages and parts are set. */
void dl_pipe_room(struct dl_pipe *pipe, struct dl_arena *arena);

/* Fills what belongs to the split; first and cut_elements are filled. */
void dl_pipe_split(struct dl_pipe *pipe, const struct dl_predict_request *request,
                   const struct dl_cost *cost);

/* What an iteration is made of at least, but for all-reduces, waits for slower devices and input,
 * and without `messages` for those between stages: no plan takes less than their sum.
 * F-SEARCH-BOUND */
enum dl_code dl_pipe_least(struct dl_pipe *pipe, bool messages, struct dl_evidence *out,
                           struct dl_err *err);
/* All of it, by a run of the schedule, but for the causes of its parts. */
enum dl_code dl_pipe_evidence(struct dl_pipe *pipe, struct dl_evidence *out, struct dl_err *err);
/* Of it the iteration alone, by fewer runs; its communication may count as a bubble. */
enum dl_code dl_pipe_iteration(struct dl_pipe *pipe, struct dl_iteration *out, struct dl_err *err);

/* The schedule of its stages; message_s is set once the evidence is known. */
struct dl_pipeline_order dl_pipe_order(const struct dl_pipe *pipe);

/* Micro-batches that a stage's device holds at most. */
double dl_pipe_held(const struct dl_pipe *pipe, int stage);

/* Memory of the fullest device. layers: room for the network's. unknown, samples_max (samples per
 * device at which it is full; NAN: unknown) may be NULL. */
void dl_pipe_memory(const struct dl_pipe *pipe, struct dl_layer *layers, struct dl_memory *out,
                    const char **unknown, double *samples_max);

/* Memory of one stage's device that holds `held` micro-batches. Returns the samples at which it is
 * full, where most_too asks for them; else NAN. layers, unknown: as above. */
double dl_pipe_stage_memory(const struct dl_pipe *pipe, int stage, double held,
                            struct dl_layer *layers, struct dl_memory *out, const char **unknown,
                            bool most_too);

/* The same in parts, for many schedules on one split: the layers of a stage's device as a network
 * of its own, the memory for that many micro-batches in flight, and what the schedule adds. The
 * network lives as long as `layers`. */
struct dl_workload dl_pipe_stage_workload(const struct dl_pipe *pipe, int stage,
                                          struct dl_layer *layers);
void dl_pipe_hold(const struct dl_pipe *pipe, const struct dl_workload *own, double held,
                  struct dl_memory *out, const char **unknown);
void dl_pipe_add_schedule(const struct dl_pipe *pipe, int stage, const struct dl_workload *own,
                          struct dl_memory *memory);

#endif

/* schedule.h - the program of a pipeline: which pass of which micro-batch runs when on each stage.
 * F-PIPE-ORDER: the schedule's row (plan/pipeline_schedule.h) orders the passes of a stage.
 *
 * A pass begins when its stage is free and the neighbour's message with the same micro-batch is
 * there. Messages have lanes of their own, one for each stage and direction, or the receiving stage
 * waits for them (blocks). Source: megatron-source (schedules.py).
 */
#ifndef DL_MODEL_ENGINE_SCHEDULE_H
#define DL_MODEL_ENGINE_SCHEDULE_H

#include "model/core/arena.h"
#include "model/core/status.h"
#include "model/plan/pipeline_schedule.h"

/* A pass, and the message that brings its input from another stage. */
struct dl_pipeline_pass {
    int stage, part; /* the part of the stage, from 0 */
    int micro_batch; /* of its chain, from 0 */
    enum dl_pass_kind kind;
    double start_s, end_s;
    double sent_s, received_s; /* of the message; NAN: no message */
    bool critical;             /* F-CRITICAL-PATH */
    bool message_critical;
};

/* All passes of an iteration, stage by stage in the order in which each runs them. */
struct dl_pipeline_passes {
    struct dl_pipeline_pass *list;
    int count, stages, parts;
    enum dl_placing placing;
    int micro_batches; /* of a chain, in the list */
    double end_s;      /* of the last pass */
    /* F-PIPE-PERIOD: how many micro-batches of all chains are left out, and the time of their
     * periods; no pass starts in it. 0: none */
    int left_out;
    double left_from_s, left_to_s;
};

enum { DL_PASSES_SHOWN = 4096 };

/* In the arena. Where there are more passes than `most` and they repeat, whole periods are left
 * out. after_s: of each stage, what follows its passes, for the critical path; NULL: nothing.
 * DL_ERR_USAGE: an interleaved schedule whose micro-batches are no multiple of the stages. */
enum dl_code dl_pipeline_list(const struct dl_pipeline_order *order, int most,
                              const double *after_s, struct dl_arena *arena,
                              struct dl_pipeline_passes *out, struct dl_err *err);

/* When a stage has run its last pass. */
double dl_pipeline_stage_end_s(const struct dl_pipeline_passes *passes, int stage);

/* When each stage has run its last backward pass, into end_s[stages]; returns the latest. Many
 * micro-batches are not simulated one by one: where all passes of a few of them end by the same
 * time after those of the few before, so do all that follow (F-PIPE-PERIOD). Asynchronous: what an
 * iteration takes of many. micro_batches of the order is not read. */
double dl_pipeline_span(const struct dl_pipeline_order *order, double micro_batches,
                        struct dl_arena *arena, double *end_s);

/* An iteration of a pipeline. */
struct dl_pipeline_spans {
    double quiet_s; /* all passes without messages; as span_s where it is not wanted */
    double span_s;  /* with messages */
    double end_s;   /* and with what follows the passes of each stage */
};
/* after_s: seconds that follow the passes of each stage; NULL: nothing. */
struct dl_pipeline_spans dl_pipeline_spans_of(const struct dl_pipeline_order *order,
                                              double micro_batches, const double *after_s,
                                              bool quiet_too, struct dl_arena *arena);

/* F-SEARCH-BOUND: no schedule ends earlier. A stage works on all micro-batches after the first one
 * has come through the stages before it, and before the last one goes back through them. */
double dl_pipeline_least_s(const struct dl_pipeline_order *order, double micro_batches);

/* The same whatever the cut: `all_s` of a micro-batch, both ways, on `stages` stages of `parts`
 * parts each. Stages that each keep to T = (time before it)/v + m (own time) hold all of them at
 * T = all_s/(v (1 - (1 - 1/(v m))^p)). */
double dl_pipeline_least_of_any_s(double all_s, double stages, double parts, double micro_batches);

#endif

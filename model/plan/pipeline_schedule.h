/* pipeline_schedule.h - pipeline schedules: one row each, from one file each (schedules/).
 *
 * A schedule orders the passes of micro-batches on each stage. Whatever depends on it asks its row.
 * A new schedule is a file that defines its row, and a line of DL_SCHEDULE_ROWS. When the passes
 * run: engine/schedule.h.
 */
#ifndef DL_MODEL_PLAN_PIPELINE_SCHEDULE_H
#define DL_MODEL_PLAN_PIPELINE_SCHEDULE_H

#include <stdbool.h>

/* ROW(index, row, name): DL_index is the value in plans, dl_schedule_row the row, `name` the word
 * of options and files. */
#define DL_SCHEDULE_ROWS(ROW)                                                                      \
    ROW(1F1B, 1f1b, "1f1b")                                                                        \
    ROW(GPIPE, gpipe, "gpipe")                                                                     \
    ROW(INTERLEAVED, interleaved, "interleaved")                                                   \
    ROW(ASYNC, async, "async")                                                                     \
    ROW(ZERO_BUBBLE, zero_bubble, "zero-bubble")

#define DL_SCHEDULE_INDEX(index, row, name) DL_##index,
enum dl_schedule { DL_SCHEDULE_ROWS(DL_SCHEDULE_INDEX) DL_SCHEDULES };
#undef DL_SCHEDULE_INDEX

/* The names with "|" between them, as a constant expression. */
#define DL_SCHEDULE_BAR(index, row, name) "|" name
#define DL_SCHEDULE_CHOICES (&(DL_SCHEDULE_ROWS(DL_SCHEDULE_BAR))[1])

/* BACKWARD: with the gradients of the weights, unless the schedule splits these off. */
enum dl_pass_kind { DL_PASS_FORWARD, DL_PASS_BACKWARD, DL_PASS_WEIGHTS, DL_PASS_KINDS };

struct dl_pipeline_order {
    enum dl_schedule schedule;
    int stages, parts;                    /* parts: of each stage; 1 without virtual stages */
    int micro_batches;                    /* where they go in groups: a multiple of stages */
    const double *forward_s, *backward_s; /* of each stage, one micro-batch through all its parts */
    const double *weights_s; /* of backward_s the gradients of weights; read where split off */
    double message_s;        /* between neighbouring parts */
    bool blocks;             /* a stage waits for each message that it receives */
};

/* Passes that a stage has begun, of all its parts. */
struct dl_stage_progress {
    int count[DL_PASS_KINDS], all;
};

struct dl_stage_pass {
    enum dl_pass_kind kind;
    int part; /* of the stage, from 0; its micro-batches come in order */
};

struct dl_schedule_row {
    const char *summary;
    const char *formula, *source;
    const char *torch_name; /* of torch.distributed.pipelining; NULL: none */
    /* Virtual stages of a device; most 1: it has none. A plan that gives none has the least. */
    int least_parts, most_parts;
    bool in_groups;         /* groups of `stages` micro-batches pass through part after part */
    bool asynchronous;      /* no iteration waits for the end of the one before */
    bool all_forward_first; /* a stage has all forward passes behind it when it goes back */
    bool usual;             /* a framework that lists no schedules has it */
    bool splits_backward;   /* DL_PASS_WEIGHTS has passes of its own */
    /* The pass that a stage runs next; it is not done. */
    struct dl_stage_pass (*next)(const struct dl_pipeline_order *order, int stage,
                                 const struct dl_stage_progress *done);
    /* Micro-batches whose activations a stage holds at most, in units of all its parts.
     * F-TRANSFORMER-IN-FLIGHT */
    double (*held)(double stage, double stages, double micro_batches, double parts);
    /* No order of this schedule ends earlier, beyond what dl_pipeline_least_s() knows of all;
     * NULL: no more is known. F-SEARCH-BOUND */
    double (*least_s)(const struct dl_pipeline_order *order, double micro_batches);
};
extern const struct dl_schedule_row
    *const dl_schedules[];                    /* by enum dl_schedule, NULL-terminated */
extern const char *const dl_schedule_names[]; /* the same */

/* Virtual stages of a device: those given (0: none), or the schedule's own number. */
double dl_schedule_parts(enum dl_schedule schedule, double given);

/* Whether a stage has no work until a micro-batch has come through the stages before it, and after
 * the last one has left it. */
bool dl_schedule_waits(enum dl_schedule schedule);

/* The part that has the i-th forward or backward pass of a stage: groups of `stages` micro-batches
 * pass through part after part. */
int dl_schedule_grouped_part(const struct dl_pipeline_order *order, int i, bool backward);

/* After `first` forward passes one forward and one backward pass alternate, then backward passes
 * that are left. */
struct dl_stage_pass dl_schedule_alternating(const struct dl_pipeline_order *order, int first,
                                             const struct dl_stage_progress *done);

/* Where a stage goes back as soon as it can: min(p - s, m). */
double dl_schedule_held_in_turn(double stage, double stages, double micro_batches, double parts);

/* A micro-batch through one part of each stage and back; its messages between a part and the one
 * after it, in both directions. */
double dl_schedule_round_trip_s(const struct dl_pipeline_order *order);
double dl_schedule_messages_s(const struct dl_pipeline_order *order);

#endif

/* pipeline_schedule.h - pipeline schedules: one row each, from one file each (schedules/).
 *
 * A schedule orders the passes of micro-batches on each stage. Whatever depends on it asks its row.
 * A new schedule is a file that defines its row, and a line of DL_SCHEDULE_ROWS. When the passes
 * run: engine/schedule.h.
 */
#ifndef DL_MODEL_PLAN_PIPELINE_SCHEDULE_H
#define DL_MODEL_PLAN_PIPELINE_SCHEDULE_H

#include <stdbool.h>

#include "model/core/status.h"

/* ROW(index, row, name): DL_index is the value in plans, dl_schedule_row the row, `name` the word
 * of options and files. */
#define DL_SCHEDULE_ROWS(ROW)                                                                      \
    ROW(1F1B, 1f1b, "1f1b")                                                                        \
    ROW(GPIPE, gpipe, "gpipe")                                                                     \
    ROW(INTERLEAVED, interleaved, "interleaved")                                                   \
    ROW(ASYNC, async, "async")                                                                     \
    ROW(ZERO_BUBBLE, zero_bubble, "zero-bubble")                                                   \
    ROW(ZBV, zbv, "zbv")                                                                           \
    ROW(DUALPIPE, dualpipe, "dualpipe")                                                            \
    ROW(DUALPIPEV, dualpipev, "dualpipev")

#define DL_SCHEDULE_INDEX(index, row, name) DL_##index,
enum dl_schedule { DL_SCHEDULE_ROWS(DL_SCHEDULE_INDEX) DL_SCHEDULES };
#undef DL_SCHEDULE_INDEX

/* The names with "|" between them, as a constant expression. */
#define DL_SCHEDULE_BAR(index, row, name) "|" name
#define DL_SCHEDULE_CHOICES (&(DL_SCHEDULE_ROWS(DL_SCHEDULE_BAR))[1])

/* BACKWARD: with the gradients of the weights, unless the schedule splits these off. */
enum dl_pass_kind { DL_PASS_FORWARD, DL_PASS_BACKWARD, DL_PASS_WEIGHTS, DL_PASS_KINDS };

/* Which parts of the network the stages of p devices have. A chain is all of it, part by part. */
enum dl_placing {
    DL_PLACED_IN_TURN,   /* part k on device k mod p */
    DL_PLACED_IN_V,      /* every second lap goes back: both ends of 2 p parts on device 0 */
    DL_PLACED_BOTH_WAYS, /* two chains of p parts each, one from device 0 on, one from device p - 1
                            back, with half of the micro-batches each */
    DL_PLACINGS
};

struct dl_pipeline_order {
    enum dl_schedule schedule;
    int stages, parts; /* parts: of each stage; 1 without virtual stages */
    int micro_batches; /* of all chains; where they go in groups: a multiple of stages */
    /* of each stage, one micro-batch through all its parts; with several chains their mean */
    const double *forward_s, *backward_s;
    const double *weights_s; /* of backward_s the gradients of weights; read where split off */
    double message_s;        /* between neighbouring parts */
    bool blocks;             /* a stage waits for each message that it receives */
};

/* Passes that a stage has begun, of all its parts. */
struct dl_stage_progress {
    int count[DL_PASS_KINDS], all;
    int position; /* in an order that may name passes of more micro-batches than there are */
};

struct dl_stage_pass {
    enum dl_pass_kind kind;
    int part; /* of the stage, from 0; its micro-batches come in order */
    /* Begins with the next one, when the inputs of both are there; what they give leaves at the end
     * of the last. */
    bool with_next;
};

/* Passes that repeat: f, i, w are the forward pass, the gradients of inputs and those of weights of
 * part 0, F, I, W of part 1; & after a pass: with_next. */
struct dl_schedule_block {
    int times;
    const char *passes;
};
/* The pass at a position in blocks; positions beyond them: false, and *position is what is left. */
bool dl_schedule_find(const struct dl_schedule_block *blocks, int count, int *position,
                      struct dl_stage_pass *out);

struct dl_schedule_row {
    const char *summary;
    const char *formula, *source;
    const char *torch_name; /* of torch.distributed.pipelining; NULL: none */
    /* Virtual stages of a device; most 1: it has none. A plan that gives none has the least. */
    int least_parts, most_parts;
    enum dl_placing placing;
    bool in_groups;         /* groups of `stages` micro-batches pass through part after part */
    bool asynchronous;      /* no iteration waits for the end of the one before */
    bool all_forward_first; /* a stage has all forward passes behind it when it goes back */
    bool usual;             /* a framework that lists no schedules has it */
    bool splits_backward;   /* DL_PASS_WEIGHTS has passes of its own */
    bool pairs;             /* a forward pass and the backward pass of another part run as one */
    bool p2p_behind;        /* messages move behind passes where the framework has them do so */
    /* Why it does not take so many stages and micro-batches, with what to change; NULL: it does. */
    const char *(*refuses)(double stages, double micro_batches);
    /* The pass that a stage runs next; it is not done. */
    struct dl_stage_pass (*next)(const struct dl_pipeline_order *order, int stage,
                                 const struct dl_stage_progress *done);
    /* Micro-batches whose activations a stage holds at most, in units of all its parts; of several
     * chains in units of their mean. F-TRANSFORMER-IN-FLIGHT */
    double (*held)(double stage, double stages, double micro_batches, double parts);
    /* Of which a stage holds the first part of the network; NULL: as many. */
    double (*held_first)(double stages, double micro_batches);
    /* No order of this schedule ends earlier, beyond what dl_pipeline_least_s() knows of all;
     * NULL: no more is known. F-SEARCH-BOUND */
    double (*least_s)(const struct dl_pipeline_order *order, double micro_batches);
};
extern const struct dl_schedule_row
    *const dl_schedules[];                    /* by enum dl_schedule, NULL-terminated */
extern const char *const dl_schedule_names[]; /* the same */

/* Virtual stages of a device: those given (0: none), or the schedule's own number. */
double dl_schedule_parts(enum dl_schedule schedule, double given);

/* DL_ERR_USAGE: the schedule does not take so many virtual stages (0: none given), stages or
 * micro-batches. */
enum dl_code dl_schedule_check(enum dl_schedule schedule, double given_parts, double stages,
                               double micro_batches, struct dl_err *err);

/* Chains of a placing: copies of the network's parameters. */
int dl_placing_chains(enum dl_placing placing);
/* Where a part of a stage is along all chains, and its stage. */
int dl_placing_place(enum dl_placing placing, int stages, int stage, int part);
int dl_placing_stage(enum dl_placing placing, int stages, int place);
/* Whether a part is the first, the last one of its chain, of `parts` of each stage. */
bool dl_placing_begins(enum dl_placing placing, int stages, int place);
bool dl_placing_ends(enum dl_placing placing, int stages, int parts, int place);

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

/* The pass of a stage of a DualPipe at a position of its order, with `each` micro-batches in each
 * direction. */
struct dl_stage_pass dl_schedule_dualpipe_pass(int stages, int each, int stage, int position);

/* Where a stage goes back as soon as it can: min(p - s, m). */
double dl_schedule_held_in_turn(double stage, double stages, double micro_batches, double parts);

/* A micro-batch through one part of each stage and back; its messages between a part and the one
 * after it, in both directions. */
double dl_schedule_round_trip_s(const struct dl_pipeline_order *order);
double dl_schedule_messages_s(const struct dl_pipeline_order *order);

#endif

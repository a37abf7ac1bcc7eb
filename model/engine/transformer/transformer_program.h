/* transformer_program.h - one stage of a transformer as tasks on two lanes (run.h): computation,
 * and the collectives of data parallelism. Private to the model.
 */
#ifndef DL_MODEL_ENGINE_TRANSFORMER_TRANSFORMER_PROGRAM_H
#define DL_MODEL_ENGINE_TRANSFORMER_TRANSFORMER_PROGRAM_H

#include "model/engine/run.h"
#include "model/engine/transformer/transformer.h"

enum dl_direction { DL_FORWARDS, DL_BACKWARDS, DL_DIRECTIONS };

struct dl_transformer_stage { /* one micro-batch on it */
    /* how often it runs each part, the body's layer by layer; of several chains the mean */
    double part_count[DL_TRANSFORMER_PARTS];
    double seconds[DL_TRANSFORMER_PARTS][DL_DIRECTIONS];
    double weights_s[DL_TRANSFORMER_PARTS]; /* of backward: gradients of weights */
    /* of a pass: the wait for collectives of data parallelism (stages 2 and 3), and the time that
     * computation loses to them */
    double exposed_s[DL_DIRECTIONS];
};

/* A pass without what it waits for. */
double dl_transformer_pass_s(const struct dl_transformer_stage *stage, enum dl_direction way);
double dl_transformer_weights_s(const struct dl_transformer_stage *stage);

/* What the seconds of a stage's parts depend on. */
struct dl_transformer_uses {
    struct dl_resource_use of[DL_TRANSFORMER_PARTS][DL_DIRECTIONS];
};

/* How much of each message shows: the time in which the compute lane waits for it. */
struct dl_exposure {
    double s, error_s; /* error_s: sum of time x sigma */
};

struct dl_transformer_program {
    const struct dl_transformer *tf;
    const struct dl_transformer_mapping *mapping;
    const struct dl_transformer_choice *choice;
    const struct dl_transformer_stage *stage;
    const struct dl_transformer_uses *uses; /* NULL: no path or tasks are wanted */
    /* F-SEARCH-BOUND: messages move whenever the lane is free, as far as the last piece of the sums
     * and the first of the parameters allow: nothing takes longer than it does */
    bool least;
    struct dl_arena *arena; /* where the tasks of the iteration are kept; NULL: nowhere */
};

/* Fills stage.exposed_s. */
void dl_transformer_run_passes(const struct dl_transformer_program *program,
                               struct dl_transformer_stage *stage);

/* One task of the program: a message, other micro-batches (rest), or a part of the stage. */
struct dl_transformer_span {
    bool is_message, rest;
    bool critical; /* F-CRITICAL-PATH */
    int part;
    enum dl_direction way;
    struct dl_message message;
    double start_s, end_s;
};

/* All micro-batches of an iteration: what shows of data parallelism; the path through the stage's
 * work with it (F-CRITICAL-PATH). */
struct dl_transformer_run {
    struct dl_exposure exposed;
    double slowdown_s; /* F-SLOWDOWN: that computation loses to them */
    struct dl_resource_use path;
    struct dl_transformer_span *spans; /* in the arena, where there is one */
    int span_count;
};
void dl_transformer_run_iteration(const struct dl_transformer_program *program,
                                  struct dl_transformer_run *out);

#endif

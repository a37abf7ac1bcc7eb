/* transformer_program.h - one stage of a transformer as tasks on two lanes (run.h): computation,
 * and the collectives of data parallelism. Private to the model.
 */
#ifndef DL_MODEL_ENGINE_TRANSFORMER_TRANSFORMER_PROGRAM_H
#define DL_MODEL_ENGINE_TRANSFORMER_TRANSFORMER_PROGRAM_H

#include "model/engine/run.h"
#include "model/engine/transformer/transformer.h"

enum dl_direction { DL_FORWARDS, DL_BACKWARDS, DL_DIRECTIONS };

struct dl_transformer_stage { /* one micro-batch on it */
    bool has[DL_TRANSFORMER_PARTS];
    double layers;
    /* body: of one layer */
    double seconds[DL_TRANSFORMER_PARTS][DL_DIRECTIONS];
    double weights_s[DL_TRANSFORMER_PARTS]; /* of backward: gradients of weights */
    /* of a pass: the wait for collectives of data parallelism (stages 2 and 3) */
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
    struct dl_resource_use comm;
};

struct dl_transformer_program {
    const struct dl_transformer *tf;
    const struct dl_transformer_mapping *mapping;
    const struct dl_transformer_choice *choice;
    const struct dl_transformer_stage *stage;
    const struct dl_transformer_uses *uses; /* NULL: no path is wanted */
    /* F-SEARCH-BOUND: messages move whenever the lane is free, as far as the last piece of the sums
     * and the first of the parameters allow: nothing takes longer than it does */
    bool least;
};

/* Fills stage.exposed_s. */
void dl_transformer_run_passes(const struct dl_transformer_program *program,
                               struct dl_transformer_stage *stage);

/* All micro-batches of an iteration: what shows of data parallelism, of which once_s once an
 * iteration; and the path through the stage's work with it (F-CRITICAL-PATH). */
struct dl_transformer_run {
    double once_s;
    struct dl_exposure exposed;
    struct dl_resource_use path;
};
void dl_transformer_run_iteration(const struct dl_transformer_program *program,
                                  struct dl_transformer_run *out);

#endif

/* campaign_space.h - the space of a search for hyper-parameters: `--space batch=32,64,128`. */
#ifndef DL_PREDICT_INPUTS_CAMPAIGN_SPACE_H
#define DL_PREDICT_INPUTS_CAMPAIGN_SPACE_H

#include "model/core/option.h"

enum { DL_SPACE_AXES = 16, DL_SPACE_VALUES = 64 };

struct dl_space_axis {
    const char *name;
    const char *values[DL_SPACE_VALUES]; /* as written */
    int count;
};
struct dl_space {
    struct dl_space_axis axes[DL_SPACE_AXES];
    int axis_count;
    int batch_axis;                        /* the axis that changes the time of a step; -1: none */
    double batch_samples[DL_SPACE_VALUES]; /* its values: samples per device */
    double size;                           /* points */
};

/* Reads each --space NAME=VALUE,... DL_ERR_USAGE names the option and what was expected. */
enum dl_code dl_space_read(const struct dl_options *options, struct dl_arena *arena,
                           struct dl_space *out, struct dl_err *err);

/* Which batch each of `count` trials has, as a place in batch_samples: all points of the grid in
 * order and again from the start, or drawn at random. No batch axis: 0. */
void dl_space_batches(const struct dl_space *space, bool random, uint64_t seed, int count,
                      int *batch_out);

/* The value of an axis for trial `i`, as a place in its values: that of dl_space_batches for the
 * batch, and drawn on its own for the others. */
int dl_space_value(const struct dl_space *space, int axis, bool random, uint64_t seed, int i);

#endif

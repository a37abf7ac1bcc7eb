/* campaign_space.c - see the header. */
#include "predict/inputs/campaign_space.h"

#include <string.h>

#include "model/core/text.h"
#include "model/search/campaign/campaign_internal.h"

static enum dl_code read_axis(const char *text, struct dl_arena *arena, struct dl_space *out,
                              struct dl_err *err) {
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--space: expected NAME=VALUE,VALUE,... such as batch=32,64, got \"%.60s\"",
                       text);
    if (out->axis_count == DL_SPACE_AXES)
        return dl_fail(err, DL_ERR_USAGE, "--space: expected at most %d of them", DL_SPACE_AXES);
    struct dl_space_axis *axis = &out->axes[out->axis_count++];
    axis->name = dl_arena_strndup(arena, text, (size_t)(equals - text));
    const char *rest = equals + 1;
    for (const char *value; (value = dl_list_next(&rest, arena)) != NULL;) {
        if (value[0] == 0 || axis->count == DL_SPACE_VALUES)
            return dl_fail(err, DL_ERR_USAGE, "--space %s: expected 1 to %d values between commas",
                           axis->name, DL_SPACE_VALUES);
        axis->values[axis->count++] = value;
    }
    for (int i = 0; i + 1 < out->axis_count; i++) {
        if (strcmp(out->axes[i].name, axis->name) == 0)
            return dl_fail(err, DL_ERR_USAGE, "--space: %s is given twice", axis->name);
    }
    out->size *= (double)axis->count;
    return DL_OK;
}

enum dl_code dl_space_read(const struct dl_options *options, struct dl_arena *arena,
                           struct dl_space *out, struct dl_err *err) {
    *out = (struct dl_space){.batch_axis = -1, .size = 1};
    for (int i = 0; i < options->given_count; i++) {
        if (strcmp(options->given[i].option->name, "space") != 0) continue;
        DL_TRY(read_axis(options->given[i].value, arena, out, err));
        const struct dl_space_axis *axis = &out->axes[out->axis_count - 1];
        if (strcmp(axis->name, "batch") != 0) continue;
        out->batch_axis = out->axis_count - 1;
        for (int v = 0; v < axis->count; v++) {
            double *samples = &out->batch_samples[v];
            if (dl_units_parse(axis->values[v], DL_UNIT_COUNT, samples, err) != DL_OK ||
                !(*samples >= 1 && *samples <= 1e7))
                return dl_fail(err, DL_ERR_USAGE,
                               "--space batch: expected samples per device from 1 to 1e7, got "
                               "\"%.40s\"",
                               axis->values[v]);
        }
    }
    return DL_OK;
}

/* Points of the grid between two changes of an axis: later axes run first. */
static int64_t stride_of(const struct dl_space *space, int axis) {
    int64_t stride = 1;
    for (int i = space->axis_count - 1; i > axis && axis >= 0; i--) stride *= space->axes[i].count;
    return stride;
}

void dl_space_batches(const struct dl_space *space, bool random, uint64_t seed, int count,
                      int *batch_out) {
    const int axis = space->batch_axis;
    const int64_t values = axis < 0 ? 1 : space->axes[axis].count, stride = stride_of(space, axis);
    for (int i = 0; i < count; i++) {
        const int64_t drawn = (int64_t)(dl_campaign_random(&seed) * (double)values);
        batch_out[i] = (int)(random ? drawn : (i / stride) % values);
    }
}

int dl_space_value(const struct dl_space *space, int axis, bool random, uint64_t seed, int i) {
    const int64_t values = space->axes[axis].count;
    double drawn = 0;
    if (!random) return (int)((i / stride_of(space, axis)) % values);
    if (axis != space->batch_axis) seed += 1000003U * (uint64_t)(axis + 1);
    for (int k = 0; k <= i; k++) drawn = dl_campaign_random(&seed);
    return (int)(drawn * (double)values);
}

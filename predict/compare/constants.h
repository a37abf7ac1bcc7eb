/* constants.h - data/constants.json: every scalar that was chosen by looking at training runs, with
 * the range that physics allows. The value itself stands in the file of the object that owns it. */
#ifndef DL_PREDICT_COMPARE_CONSTANTS_H
#define DL_PREDICT_COMPARE_CONSTANTS_H

#include "model/catalog/data.h"

struct dl_constant {
    /* as --set takes it, with the object's name: framework.megatron.dispatch_s; for a release
     * framework.NAME@RELEASE.KEY; several objects that share the value: system.a,b.KEY */
    const char *key;
    double low, high;
    const char *why;
    double value; /* in the (first) object's file */
};

struct dl_constants {
    const char *path;
    struct dl_constant *list;
    int count;
    uint64_t hash; /* of keys, ranges and values */
};

extern const struct dl_schema dl_constants_schema;

/* Reads constants.json of the first data directory that has it, and each value from its file.
 * DL_ERR_INPUT names file and key of a constant whose object or number does not exist, or is
 * outside its range. No file: no constants. */
enum dl_code dl_constants_read(const struct dl_data *data, struct dl_arena *arena,
                               struct dl_constants *out, struct dl_err *err);

/* Writes a value into the file of every object that shares the constant, and leaves the rest of
 * these files as it is. */
enum dl_code dl_constants_write(const struct dl_data *data, const struct dl_constant *constant,
                                double value, struct dl_arena *arena, struct dl_err *err);

#endif

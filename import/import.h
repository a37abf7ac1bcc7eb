/* import.h - what `dlmodel import` reads: one function for each kind of input, called by
 * cmd_import.c. */
#ifndef DL_IMPORT_IMPORT_H
#define DL_IMPORT_IMPORT_H

#include "model/catalog/command.h"

/* The options; NULL, 0 and false: not given. */
struct dl_import_asked {
    const char *name, *system, *device, *workload, *framework, *batch;
    const char *collective, *library, *library_version, *network, *dtype, *profile, *path, *plan;
    const char *arguments; /* of a script */
    const char *config;    /* of a Python configuration: function or variable */
    int64_t nodes, ranks, steps, vocabulary;
    int rows; /* of nccl-tests: DL_IMPORT_BOTH, ... */
    enum dl_precision precision;
    bool skip_unknown, quartile;
};
enum { DL_IMPORT_BOTH, DL_IMPORT_OUT_OF_PLACE, DL_IMPORT_IN_PLACE };

typedef enum dl_code dl_import_fn(struct dl_context *context, const struct dl_options *options,
                                  const struct dl_import_asked *asked, struct dl_err *err);

/* positional[0] is the kind, the others are files. */
dl_import_fn dl_import_onnx, dl_import_nccl_tests, dl_import_osu, dl_import_trace, dl_import_config,
    dl_import_log, dl_import_run, dl_import_keras, dl_import_torch_nccl;

extern const struct dl_option dl_import_options[];

/* A name of a workload: letters, digits, '_', '-' and '.'; other characters become '_'. */
const char *dl_import_name(struct dl_arena *arena, const char *text, size_t length);

/* Files after the kind: at least one, at most `most`. */
enum dl_code dl_import_files(const struct dl_options *options, int most, struct dl_err *err);

#endif

/* export.h - a plan in the words of a framework: `predict --export NAME`. One format is one file
 * and one row of dl_exports.
 *
 * An exporter refuses what its framework cannot run; it never leaves out a part of the plan that
 * changes the time. Everything that comes from a name or a file is quoted for where it goes. */
#ifndef DL_PREDICT_EXPORT_EXPORT_H
#define DL_PREDICT_EXPORT_EXPORT_H

#include "model/core/text.h"
#include "predict/output/rows.h"

struct dl_export_request {
    const struct dl_prediction_row *row; /* its plan is complete */
    const struct dl_framework *target;   /* that the format is for; NULL: that of the row */
    struct dl_arena *arena;
};

struct dl_export {
    const char *name, *summary;
    const char *framework;       /* that runs what it writes; NULL: that of the plan */
    bool takes_mtp, takes_tower; /* layers that predict further tokens; a vision tower */
    enum dl_code (*write)(const struct dl_export_request *request, struct dl_text *out,
                          struct dl_err *err);
};
extern const struct dl_export dl_exports[]; /* ended by name NULL */
extern const char *const dl_export_names[]; /* "megatron", ..., NULL */

/* The format with that name; NULL: unknown. */
const struct dl_export *dl_export_find(const char *name);
/* DL_ERR_USAGE: what the framework of the plan, or the target, lacks. The text, in the arena, ends
 * with a new line. */
enum dl_code dl_export_write(const char *name, const struct dl_export_request *request,
                             const char **text_out, struct dl_err *err);

/* The formats: export_NAME.c. */
enum dl_code dl_export_megatron(const struct dl_export_request *request, struct dl_text *out,
                                struct dl_err *err);
enum dl_code dl_export_torchtitan(const struct dl_export_request *request, struct dl_text *out,
                                  struct dl_err *err);
enum dl_code dl_export_deepspeed(const struct dl_export_request *request, struct dl_text *out,
                                 struct dl_err *err);
enum dl_code dl_export_sbatch(const struct dl_export_request *request, struct dl_text *out,
                              struct dl_err *err);

/* A parameter of a workload ("kv_heads"): its number, its word; the fallback where the workload has
 * none of that name. */
double dl_export_number(const struct dl_workload *workload, const char *key, double fallback);
const char *dl_export_word(const struct dl_workload *workload, const char *key,
                           const char *fallback);

/* What frameworks call a plan's numbers. */
double dl_export_share(const struct dl_plan *plan);       /* samples of a data rank */
double dl_export_micro_batch(const struct dl_plan *plan); /* samples at once */

#endif

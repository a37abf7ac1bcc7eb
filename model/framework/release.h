/* release.h - which release of a framework a run used.
 *
 * The version in column `framework_version` decides; for a release that covers only some runs of
 * a version, the columns in its `where` do too. */
#ifndef DL_MODEL_FRAMEWORK_RELEASE_H
#define DL_MODEL_FRAMEWORK_RELEASE_H

#include "model/framework/framework.h"

/* Columns of a run. NULL or "": not given. */
struct dl_release_facts {
    const char *version; /* framework_version */
    /* columns that `where` may name */
    const char *workload, *layout, *compiler, *strategy, *precision;
};

enum dl_release_origin {
    DL_RELEASE_DESCRIBED, /* a release of that name, or one that covers the version */
    DL_RELEASE_ONLY,      /* the file has no other */
    DL_RELEASE_NEAREST,   /* none covers the version: the nearest of the same product */
    DL_RELEASE_USUAL      /* nor is one near: usual on the device when it was in use */
};

struct dl_release_choice {
    /* NULL: the file's own constants */
    const struct dl_framework_release *release;
    const struct dl_framework_release *kernels; /* of the framework whose kernels it runs */
    enum dl_release_origin origin;
};

/* The releases of a version: the name of one, the first that covers the version as it is written,
 * from its first digit on ("torch 2.1" as "2.1") or, where that is a year and month, as a container
 * ("pytorch:20.03-py3" as "NGC 20.03", "26.04" as "NeMo 26.04"); else the nearest described version
 * of the same product ("NeMo 26.04": "NeMo 26.02"); else what was usual on the architecture. The
 * same for `kernels` (NULL: none), the framework whose kernels `framework` runs. */
void dl_release_choose(const struct dl_framework *framework, const struct dl_framework *kernels,
                       const struct dl_release_facts *facts, const char *architecture,
                       struct dl_release_choice *out);

/* Whether a text that no release is called or covers may be a version: it has a digit. */
bool dl_release_is_version(const char *text);

/* DL_ERR_USAGE: --release names no release; lists those of the frameworks. */
enum dl_code dl_release_refuse(const char *name, const struct dl_framework *const *frameworks,
                               int count, struct dl_arena *arena, struct dl_err *err);

/* DL_ERR_INPUT: a release's `where` names a column that selects no runs, or its `from` no release.
 * To be called before any release is set. */
enum dl_code dl_framework_release_check(const struct dl_framework *framework,
                                        const struct dl_json *doc, struct dl_err *err);

#endif

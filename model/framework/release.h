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

/* The first release of the file that covers the run; NULL: the file's own constants. A version
 * that nothing covers as it is written is tried from its first digit on ("torch 2.1" as "2.1")
 * and, where that is a year and month, as NVIDIA's container ("pytorch:20.03-py3" as "NGC 20.03").
 * *covered_out is false where these are a fallback: the file has releases and none of them, nor
 * the file's own `versions`, covers the version. */
const struct dl_framework_release *dl_framework_release_of(const struct dl_framework *framework,
                                                           const struct dl_release_facts *facts,
                                                           bool *covered_out);

/* The latest version that the file names, of the same product and not later than `version`
 * ("NeMo 26.04": "NeMo 26.02"); NULL: none. */
const char *dl_framework_earlier_version(const struct dl_framework *framework, const char *version);

/* DL_ERR_INPUT: a release's `where` names a column that selects no runs, or its `from` no release.
 * To be called before any release is set. */
enum dl_code dl_framework_release_check(const struct dl_framework *framework,
                                        const struct dl_json *doc, struct dl_err *err);

#endif

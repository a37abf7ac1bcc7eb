/* release.h - which release of a framework a run used.
 *
 * Facts decide, not prose: the version that the table prints in `framework_version`, and for a
 * release that covers some of a version's runs alone, the columns in its `where`.
 */
#ifndef DL_MODEL_FRAMEWORK_RELEASE_H
#define DL_MODEL_FRAMEWORK_RELEASE_H

#include "model/framework/framework.h"

/* Columns of a run. NULL or "": not given. */
struct dl_release_facts {
    const char *version;           /* framework_version */
    const char *workload, *layout; /* columns that `where` may name */
};

/* The first release of the file that covers the run; NULL: the file's own constants. *covered_out
 * is false where these are a fallback: the file has releases and none of them, nor the file's own
 * `versions`, covers the version. */
const struct dl_framework_release *dl_framework_release_of(const struct dl_framework *framework,
                                                           const struct dl_release_facts *facts,
                                                           bool *covered_out);

/* DL_ERR_INPUT: a release's `where` names a column that no run is selected by. */
enum dl_code dl_framework_release_check(const struct dl_framework *framework,
                                        const struct dl_json *doc, struct dl_err *err);

#endif

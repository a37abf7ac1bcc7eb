/* provenance.h - source of each number of a data file.
 *
 * An object of a data file names one bibliography key of data/SOURCES.md in `source`, for all
 * its numbers, and lists the exceptions in `sources`: {"member": "key"}. The key "unverified"
 * ("mem" in files of release 0.1) marks an unverified fact. Several keys are separated by ", ".
 * The data lint test checks that every key is in the bibliography; this file does not. */
#ifndef DL_MODEL_CORE_PROVENANCE_H
#define DL_MODEL_CORE_PROVENANCE_H

#include "model/core/json.h"

/* Every key of `sources` is a member of `schema` and has a text. `path` is the object's place in
 * the document ("" for the document itself, "links.intra"), for the error. */
enum dl_code dl_provenance_check(const struct dl_map_entry *sources, int source_count,
                                 const struct dl_schema *schema, const struct dl_json *doc,
                                 const char *path, struct dl_err *err);

#endif

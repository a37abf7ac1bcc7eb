/* data_internal.h - shared by the data*.c files. Private to them. */
#ifndef DL_MODEL_CATALOG_DATA_INTERNAL_H
#define DL_MODEL_CATALOG_DATA_INTERNAL_H

#include "model/catalog/data.h"

extern const struct dl_data_kind_words {
    const char *word, *folder, *prefix; /* prefix: of --set keys */
} dl_data_kinds[];                      /* by enum dl_data_kind */
extern const int dl_data_kind_count;

/* Below one of the data directories, without "/../"; or the profile "local". */
bool dl_data_is_inside(const struct dl_data *data, const char *path);
/* A workload that no data directory has: the name of a file. */
bool dl_data_is_loose(const struct dl_data *data, enum dl_data_kind kind, const char *name);
/* Existing but unreadable files count as present: reading them reports the error. */
bool dl_data_exists(const char *path);

/* The overrides of one document: those with its prefix (replaced) and those without a kind's
 * prefix. */
struct dl_selection {
    struct dl_override *list;
    struct dl_override **origin;
    int count;
};
/* Selects those of a kind ("device."), with `replacement` for the prefix; bare: also those without
 * a prefix. */
void dl_data_select(const struct dl_data *data, enum dl_data_kind kind, const char *replacement,
                    bool bare, struct dl_arena *arena, struct dl_selection *out);
/* Selects those that name the object: "framework.megatron.dispatch_s"; of a release, or NULL. */
void dl_data_select_named(const struct dl_data *data, enum dl_data_kind kind, const char *object,
                          const char *release, struct dl_arena *arena, struct dl_selection *out);
/* Marks the overrides that the document used; whether there is any. */
bool dl_data_mark_used(const struct dl_selection *selection);
/* Select and apply: overrides of the kind and bare ones; overrides that name the object. */
enum dl_code dl_data_set_document(const struct dl_data *data, enum dl_data_kind kind,
                                  struct dl_json *doc, const struct dl_schema *schema,
                                  struct dl_arena *arena, struct dl_err *err);
enum dl_code dl_data_set_framework(const struct dl_data *data, const char *name,
                                   const char *release, struct dl_json *doc, struct dl_arena *arena,
                                   struct dl_err *err);
/* An override that this framework does not read stays as used as it was. */
void dl_data_ignore_unread(const struct dl_data *data, const struct dl_framework *framework,
                           const bool *was_used);

/* Sets the row of optimizers.json that a loaded framework names. DL_ERR_INPUT: no such row. */
enum dl_code dl_data_optimizer(const struct dl_data *data, struct dl_framework *framework,
                               const struct dl_json *doc, struct dl_arena *arena,
                               struct dl_err *err);

/* Sets the release of host_counts.json that a loaded framework names. DL_ERR_INPUT: no such. */
enum dl_code dl_data_host_counts(const struct dl_data *data, struct dl_framework *framework,
                                 const struct dl_json *doc, struct dl_arena *arena,
                                 struct dl_err *err);

#endif

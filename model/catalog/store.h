/* store.h - loaded inputs that many predictions share. Without a store each load reads its files;
 * with one (dl_data.store) a system, device, workload or framework is read once and kept until the
 * store is closed. What is kept never changes, so several threads may share it.
 *
 * Kept: names of the data directories that --set does not change, with their release, and workloads
 * with parameters ("gpt:layers=24,..."), until STORE_BYTES are in use; after that, loads read files
 * again. Not kept: paths, files of a request, the profile "local". */
#ifndef DL_MODEL_CATALOG_STORE_H
#define DL_MODEL_CATALOG_STORE_H

#include "model/catalog/data.h"

/* NULL: memory is exhausted. */
struct dl_store *dl_store_open(void);
/* Everything that was loaded through the store is gone. store may be NULL. */
void dl_store_close(struct dl_store *store);

/* Loads `name` into the arena. */
typedef enum dl_code dl_load_fn(const struct dl_data *data, const char *name,
                                struct dl_arena *arena, const void **out, struct dl_err *err);
/* What the store keeps under that name, else what `load` gives; kept where it may be. Threads that
 * ask for the same name at once may each load it; all get the first. */
enum dl_code dl_store_load(const struct dl_data *data, enum dl_data_kind kind, const char *name,
                           dl_load_fn *load, struct dl_arena *arena, const void **out,
                           struct dl_err *err);

/* Whether it is a value that the store keeps until it is closed. */
bool dl_store_holds(struct dl_store *store, const void *value);

#endif

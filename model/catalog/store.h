/* store.h - cache of loaded inputs. Without a store each load reads its files; with one
 * (dl_data.store) a system, device, workload or framework is loaded once and kept until the store
 * is closed. Entries are immutable, so threads may share them.
 *
 * Cached: names in the data directories that --set does not change, by release, and workloads with
 * parameters ("gpt:layers=24,..."), up to STORE_BYTES. Not cached: paths, files of a request, the
 * profile "local". */
#ifndef DL_MODEL_CATALOG_STORE_H
#define DL_MODEL_CATALOG_STORE_H

#include "model/catalog/data.h"

/* NULL: memory is exhausted. */
struct dl_store *dl_store_open(void);
/* Frees everything that was loaded through the store. store may be NULL. */
void dl_store_close(struct dl_store *store);

/* Loads `name` into the arena. */
typedef enum dl_code dl_load_fn(const struct dl_data *data, const char *name,
                                struct dl_arena *arena, const void **out, struct dl_err *err);
/* The cached value of that name, else the result of `load`, which is cached where allowed. Threads
 * that request the same name concurrently may each load it; all get the first. */
enum dl_code dl_store_load(const struct dl_data *data, enum dl_data_kind kind, const char *name,
                           dl_load_fn *load, struct dl_arena *arena, const void **out,
                           struct dl_err *err);

/* Whether the store holds this value until it is closed. */
bool dl_store_holds(struct dl_store *store, const void *value);

#endif

/* cost_memo.h - times of kernels that were computed before: a plan is predicted again on systems
 * that differ in links alone, a search tries splits that others tried, and calls of a library ask
 * for one network again and again. For one thread.
 *
 * Devices, workloads, frameworks and measured layer times are known by their addresses: none of
 * them may change, nor end, while entries that name it are in the memo. Whoever keeps a memo longer
 * than the objects of one prediction drops the others with dl_cost_memo_settle. */
#ifndef DL_MODEL_FRAMEWORK_COST_MEMO_H
#define DL_MODEL_FRAMEWORK_COST_MEMO_H

#include "model/core/arena.h"
#include "model/framework/framework.h"
#include "model/machine/device.h"
#include "model/workload/workload.h"

struct dl_layer_times; /* layer_times.h */

enum dl_memo_kind {
    DL_MEMO_LAYERS, /* of all layers of a workload: cost.c */
    DL_MEMO_STACK,  /* of a stack of equal layers: transformer_micro_batch.c */
    DL_MEMO_BATCH,  /* largest batch that fits: memory.c */
    DL_MEMO_KINDS
};
enum { DL_MEMO_BUCKETS = 64 };

/* First member of what is remembered. */
struct dl_memo_entry {
    struct dl_memo_entry *next;  /* of its bucket */
    struct dl_memo_entry *older; /* not settled either; NULL: the first */
    const struct dl_device *device;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    const struct dl_layer_times *layer_times; /* NULL: none */
    double samples;
    int64_t parts; /* of a layer; any number that spreads entries */
};

/* A device with more or less of one resource. */
struct dl_memo_device {
    struct dl_memo_device *next;
    const struct dl_device *of;
    int resource;
    double by_ratio;
    struct dl_device device;
};

/* {.arena = ...} is empty. */
struct dl_cost_memo {
    struct dl_arena *arena; /* holds them */
    struct dl_memo_entry *entries[DL_MEMO_KINDS][DL_MEMO_BUCKETS];
    struct dl_memo_entry *newest; /* of those that are not settled */
    struct dl_memo_device *devices;
};

/* The entries among which one like `asked` is, if there is one; NULL: none. */
const struct dl_memo_entry *dl_cost_memo_first(const struct dl_cost_memo *memo,
                                               enum dl_memo_kind kind,
                                               const struct dl_memo_entry *asked);
/* Whether both have the same members, but for their places. */
bool dl_memo_entry_same(const struct dl_memo_entry *a, const struct dl_memo_entry *b);
void dl_cost_memo_add(struct dl_cost_memo *memo, enum dl_memo_kind kind,
                      struct dl_memo_entry *made);

/* The device `of` with `by_ratio` times that resource; NULL: not yet. */
const struct dl_device *dl_cost_memo_device(const struct dl_cost_memo *memo,
                                            const struct dl_device *of, int resource,
                                            double by_ratio);

/* Drops what was added since the last time and names an object that does not stay. */
typedef bool dl_memo_stays_fn(void *user, const void *object);
void dl_cost_memo_settle(struct dl_cost_memo *memo, dl_memo_stays_fn *stays, void *user);

#endif

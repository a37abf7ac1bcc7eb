/* checkpoint_cost.h - the time to write a checkpoint, from a probe of the machine: a table that
 * tests/checkpoint/run.sh measured. The probe writes few large tensors, more that fit in a core's
 * cache, many small ones, and one, so each cost is a difference of two of them.
 */
#ifndef DL_MODEL_FRAMEWORK_CHECKPOINT_CHECKPOINT_COST_H
#define DL_MODEL_FRAMEWORK_CHECKPOINT_CHECKPOINT_COST_H

#include "model/core/csv.h"
#include "model/framework/checkpoint/checkpoint_format.h"

/* F-CKPT-SERIALIZE. Costs of one core; NAN: the probe lacks it. */
struct dl_checkpoint_cost {
    double base_s;            /* of a checkpoint */
    double rank_s;            /* the same for each rank beyond the first */
    double layer_s;           /* of a layer, where the format has groups of layers */
    double tensor_s;          /* of a tensor, on the first rank while the others wait */
    double rank_tensor_s;     /* the same, for each rank that plans to write it */
    double every_tensor_s;    /* of a tensor, on every rank: planned, and copied if asynchronous */
    double shared_tensor_s;   /* of a tensor, on the rank that writes it */
    double cached_s_per_byte; /* of tensors in a core's cache, without the storage */
    double large_s_per_byte;  /* of larger ones */
    double staged_cached_s_per_byte; /* of the copy in memory that an asynchronous format makes */
    double staged_large_s_per_byte;
    double storage_s_per_byte; /* of the probe's storage, as the format uses it (fsync or not) */
    double collection_s;       /* a full collection of the garbage of a Python process, */
    double object_count;       /* which holds so many objects; 0: it has none */
};

/* Who writes, and on what. */
struct dl_checkpoint_scale {
    double ranks;
    bool is_sharded; /* each rank holds a part of each tensor; false: all hold the same tensors */
    double node_rank_count, node_core_count; /* NAN: unknown, a core for each rank */
    double storage_s_per_byte;               /* of all writers together; NAN: that of the probe */
};

/* Fits the format's costs to the rows "probe-*" of a table; blocking: to what training waits
 * for (column blocking_s). DL_ERR_INPUT: a broken table. *known: whether it has the format. */
enum dl_code dl_checkpoint_cost_read(const struct dl_csv *csv,
                                     const struct dl_checkpoint_format *format, bool blocking,
                                     struct dl_checkpoint_cost *out, bool *known,
                                     struct dl_err *err);

/* F-CKPT-COLLECT: how often CPython walks all objects of a process that holds object_count (> 0)
 * of them while it keeps kept_objects more: when those that outlived its two young generations are
 * more than a quarter of the others. The number of most checkpoints: rounded. */
double dl_checkpoint_collections(double kept_objects, double object_count);

/* F-CKPT-SERIALIZE: base + rank (r - 1) + layer L + (tensor + rank_tensor r + every o + shared o k)
 * n + (cached B_c + large B_l) o / w + (staged_cached B_c + staged_large B_l) o h + storage B +
 * collections; w writers, o ranks that time-slice a core; where all r ranks hold the same tensors
 * each writes k = 1/w of them and copies all (h = 1), else a part of each (k = 1, h = 1/r). Bytes
 * are those of memory: a compressed format's costs count them too. */
double dl_checkpoint_write_s(const struct dl_checkpoint_format *format,
                             const struct dl_checkpoint_cost *cost,
                             const struct dl_checkpoint_content *content,
                             const struct dl_checkpoint_scale *scale);

#endif

/* memory.h - bytes on one device while training. Formulas: F-MEM-*. */
#ifndef DL_MODEL_ENGINE_MEMORY_H
#define DL_MODEL_ENGINE_MEMORY_H

#include "model/engine/predict.h"
#include "model/framework/cost_memo.h"
#include "model/framework/workspace.h"
#include "model/workload/kernel_facts.h"

/* Bytes per parameter of weights (in fp32 and tf32 4; below, 2 of the 16-bit copy that kernels
 * read, also in 8-bit and narrower training, and 4 of the fp32 master, which pure fp16 never has),
 * optimizer; gradients: dl_framework_gradient_width. F-MEM-STATES */
double dl_memory_weight_bytes(enum dl_precision precision, enum dl_master_weights masters);
/* F-FROZEN: the same of weights that are not trained: without fp32 masters, but for autocast, which
 * casts fp32 weights. */
double dl_memory_frozen_bytes(enum dl_precision precision, enum dl_master_weights masters);
double dl_memory_optimizer_bytes(enum dl_optimizer optimizer);

/* Whether a layer belongs to a repeated block, by its name. */
bool dl_memory_is_repeated(const struct dl_layer *layer);

/* Bytes that a layer keeps from forward to backward for one sample, without full recomputation.
 * Selective recomputation frees what only `recomputable` layers need (attention scores, their
 * masks). attention: whose kernels of attention run; OPEN: those that layers name. */
double dl_memory_layer_bytes(const struct dl_layer *layer, enum dl_precision precision,
                             enum dl_recompute recompute, enum dl_attention_kernel attention);

/* Full recomputation of one sample: the input of each block is kept (of a transformer hidden x
 * tokens elements), and what lies before and after the blocks; one block at a time is repeated, the
 * largest counts. NAN where the network has no blocks. */
struct dl_recomputed {
    double before_bytes, inputs_bytes, one_bytes, after_bytes;
    int repeated; /* layers of all blocks */
};
void dl_memory_recompute(const struct dl_workload *workload, enum dl_precision precision,
                         enum dl_attention_kernel attention, struct dl_recomputed *out);

/* Bytes kept from forward to backward for one sample, F-MEM-ACTIVATIONS. Full recomputation holds a
 * repeated block only once what follows the blocks is freed. */
double dl_memory_activation_bytes(const struct dl_workload *workload, enum dl_precision precision,
                                  enum dl_recompute recompute, enum dl_attention_kernel attention);

/* F-MEM-COMPOSED: bytes kept for one sample beyond dl_memory_layer_bytes where operations are
 * composed of several kernels (`facts`, of the compiled plan) and nothing is recomputed; of a layer
 * and of all. */
double dl_memory_composed_layer_bytes(const struct dl_layer *layer,
                                      const struct dl_kernel_facts *facts);
double dl_memory_composed_bytes(const struct dl_workload *workload,
                                const struct dl_kernel_facts *facts);

/* Memory for data parallelism at `batch` samples per device; parts that are unknown count 0 and
 * are listed in *unknown (words for the warning, NULL when all are known). */
void dl_memory_compute(const struct dl_system *system, const struct dl_workload *workload,
                       const struct dl_framework *framework, const struct dl_plan *plan,
                       double batch, struct dl_memory *out, const char **unknown);

/* Within the capacity, or the capacity is unknown. */
bool dl_memory_fits(const struct dl_memory *memory);

/* F-MEM-FITS: what the allocator reserves of the total, of which the part that no tensor fills goes
 * to the workspace, and the probability that it fits. */
void dl_memory_weigh(struct dl_prediction *prediction);

/* Largest whole batch per device that fits, 0 when none does, NAN when the capacity is unknown.
 * From the memo where the same was asked before; memo NULL: computes. */
double dl_memory_max_batch(const struct dl_system *system, const struct dl_workload *workload,
                           const struct dl_framework *framework, const struct dl_plan *plan,
                           struct dl_cost_memo *memo);

#endif

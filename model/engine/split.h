/* split.h - a network as one of several devices computes it that split the work within its layers:
 * some of the filters (F-FILTER) or input channels (F-CHANNEL) of each layer, or a part of each
 * image (F-SPATIAL). Shapes become smaller, so the kernels are looked up again at the smaller
 * shape: a convolution does not get p times faster.
 */
#ifndef DL_MODEL_ENGINE_SPLIT_H
#define DL_MODEL_ENGINE_SPLIT_H

#include "model/workload/workload.h"

enum dl_split_kind { DL_SPLIT_FILTER, DL_SPLIT_CHANNEL, DL_SPLIT_SPATIAL };

struct dl_split {
    enum dl_split_kind kind;
    double parts;
    /* spatial: parts along each dimension, outermost first; their product is `parts` */
    double grid[DL_DIMS];
};

/* Which layers are split: is_split[0..layers). Not those that cannot be, nor what follows them in
 * space. */
void dl_split_layers(const struct dl_workload *whole, const struct dl_split *split, bool *is_split);

/* The network with the shapes of the device that has most to do (parts rounded up). Layers that are
 * not split keep theirs. Parameters, saved activations and the workload's totals are those of the
 * one device. DL_ERR_SYSTEM without memory. */
void dl_split_workload(const struct dl_workload *whole, const struct dl_split *split,
                       const bool *is_split, struct dl_arena *arena, struct dl_workload *out);

/* Most parts that every layer which is split at all allows: fewest filters, fewest input channels
 * (without the layers that read the workload's input), smallest product of extents over `dims`
 * dimensions. 1: nothing can be split. *layer_out (may be NULL): the layer that sets the limit. */
double dl_split_limit(const struct dl_workload *whole, enum dl_split_kind kind, int dims,
                      const char **layer_out);

/* Parts along each dimension for `parts` devices over at most `dims` dimensions, such that no layer
 * has fewer positions than parts and the halos are least. False when there is none. */
bool dl_split_grid(const struct dl_workload *whole, double parts, int dims, double grid[DL_DIMS]);

/* Elements of one sample that an inner device sends to both neighbours together along dimension
 * `dim`, F-HALO: rows that a window reaches beyond the device's own, x channels x the local extents
 * of the other dimensions (with the halos of the dimensions exchanged before: corners). `layer`: of
 * the whole network. of_output: of the gradient of its output. 0: none. */
double dl_split_halo_elements(const struct dl_layer *layer, const struct dl_split *split, int dim,
                              bool of_output);

#endif

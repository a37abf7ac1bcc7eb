/* coll_copy.h - what a single process does with the devices of one node by plain copies: Keras'
 * multi_gpu_model, PyTorch's DataParallel, TensorFlow's mirrored hierarchical copy, Caffe's tree,
 * MXNet's "device" store. Sums run on the device and are charged at its memory bandwidth. Not
 * modelled: the host time to issue the copies (the framework's business).
 */
#ifndef DL_MODEL_COLLECTIVE_ALGORITHMS_COLL_COPY_H
#define DL_MODEL_COLLECTIVE_ALGORITHMS_COLL_COPY_H

#include "model/collective/coll_parts.h"

/* All return false when the system gives no bandwidth for the path. `devices` >= 1; 1 costs 0
 * except for the host's. */

/* F-COPY-HOST: `bytes` from the host to each of the devices (or back), devices on one host link in
 * turn. */
bool dl_copy_host_cost(const struct dl_system *system, int64_t devices, double bytes,
                       struct dl_cost_parts *out);
/* F-COPY-STAR: device 0 to each other device (or back); links of their own at once, shared ones in
 * turn. Where the links are a graph (cube mesh), devices that no link joins to device 0 take turns
 * on its host link, or on the bridge between sockets. */
bool dl_copy_star_cost(const struct dl_system *system, int64_t devices, double bytes,
                       struct dl_cost_parts *out);
/* Devices to which device 0 has neither a link nor, within its peer group, peer access: copies to
 * them go through the host. */
int64_t dl_copy_staged_devices(const struct dl_system *system, int64_t devices);
/* F-COPY-TREE: ceil(lg g) rounds of pairs. */
bool dl_copy_tree_cost(const struct dl_system *system, int64_t devices, double bytes,
                       struct dl_cost_parts *out);
/* F-COPY-SHARDED: each device owns S/g: gathers its part from the others, sums, and hands it back
 * (all-reduce). */
bool dl_copy_sharded_cost(const struct dl_system *system, int64_t devices, double bytes,
                          struct dl_cost_parts *out);
/* F-COPY-RING: one ring in the order of the devices' numbers, whatever joins neighbours: NCCL 1, in
 * one process (all-reduce). */
bool dl_copy_ring_cost(const struct dl_system *system, int64_t devices, double bytes,
                       struct dl_cost_parts *out);
/* F-COPY-HIERARCHICAL: stars in two halves, the heads exchange, stars back (all-reduce; TensorFlow
 * on DGX-1). */
bool dl_copy_hierarchical_cost(const struct dl_system *system, int64_t devices, double bytes,
                               struct dl_cost_parts *out);

#endif

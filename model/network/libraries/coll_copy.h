/* coll_copy.h - collectives that one process performs by plain copies between the devices of a
 * node: Keras' multi_gpu_model, PyTorch's DataParallel, TensorFlow's mirrored hierarchical copy,
 * Caffe's tree, MXNet's KVStore "device". Sums run on the device at its memory bandwidth. Not
 * modelled: the host time to issue the copies, which the framework adds.
 */
#ifndef DL_MODEL_NETWORK_LIBRARIES_COLL_COPY_H
#define DL_MODEL_NETWORK_LIBRARIES_COLL_COPY_H

#include "model/network/coll_internal.h"

/* Each sets *out to the cost of `bytes` over `devices` >= 1 devices and returns true; false when
 * the system has no bandwidth for the path. One device costs 0, except for copies from the host;
 * a ring and a hierarchy have at least two. */

/* F-COPY-HOST: `bytes` from the host to each device (or back); devices on the same host link one
 * after another. */
bool dl_copy_host_cost(const struct dl_system *system, int64_t devices, double bytes,
                       struct dl_cost_parts *out);
/* F-COPY-STAR: device 0 to each other device (or back); concurrently over separate links, one after
 * another over shared ones. In a cube mesh, devices without a link to device 0 are served one after
 * another over its host link, or over the bridge between sockets. */
bool dl_copy_star_cost(const struct dl_system *system, int64_t devices, double bytes,
                       struct dl_cost_parts *out);
/* Number of devices that device 0 reaches only through the host: no link joins them, and they are
 * outside its peer group. */
int64_t dl_copy_staged_devices(const struct dl_system *system, int64_t devices);
/* F-COPY-TREE: ceil(lg g) rounds of pairs. */
bool dl_copy_tree_cost(const struct dl_system *system, int64_t devices, double bytes,
                       struct dl_cost_parts *out);
/* F-COPY-SHARDED: an all-reduce in which each device owns a shard of S/g: it gathers the shard from
 * the others, sums it and sends it back. */
bool dl_copy_sharded_cost(const struct dl_system *system, int64_t devices, double bytes,
                          struct dl_cost_parts *out);
/* F-COPY-RING: an all-reduce around one ring in the order of device numbers, over whatever joins
 * neighbours, as NCCL 1 does in one process. */
bool dl_copy_ring_cost(const struct dl_system *system, int64_t devices, double bytes,
                       struct dl_cost_parts *out);
/* F-COPY-HIERARCHICAL: an all-reduce in two halves: a star in each, a transfer between their
 * roots, and the stars back (TensorFlow on DGX-1). */
bool dl_copy_hierarchical_cost(const struct dl_system *system, int64_t devices, double bytes,
                               struct dl_cost_parts *out);

/* What limits copies between these devices: "intra" or "host-copy". */
const char *dl_copy_limit(const struct dl_system *system, int64_t devices);

#endif

/* split_internal.h - shared by the files that make the messages of a split replica
 * (split_replica.h): private to them. */
#ifndef DL_MODEL_ENGINE_SPLIT_INTERNAL_H
#define DL_MODEL_ENGINE_SPLIT_INTERNAL_H

#include "model/engine/split.h"
#include "model/engine/replica.h"

/* Layers between the first output that two layers read and the last addition: inside of residual
 * blocks. fork -1: the network has none. */
struct dl_split_blocks {
    int fork, last_add;
};

struct dl_split_context {
    struct dl_replica *replica;
    const struct dl_split *split;
    const struct dl_workload *whole;
    bool *is_split;     /* of each layer */
    bool *is_gathered;  /* a split one whose output a layer reads that is not */
    double width_bytes; /* of one activation element */
    struct dl_split_blocks blocks;
    int last;      /* last split layer */
    int last_conv; /* last split convolution */
    int capacity;  /* of the replica's messages */
    int library;   /* 1 + the library to take in place of the framework's; 0: the framework's */
};

/* One collective or halo exchange among `group` devices, every `stride`-th one. */
struct dl_group_message {
    enum dl_collective_op op;
    int library; /* enum dl_library; -1: the replica's */
    double bytes;
    int64_t group, stride;
    double host_s;
    double copies; /* passes over the bytes on the device */
    double hops;   /* messages one after the other; at most 1: one */
};

/* Time and description of one message of `talk`. */
enum dl_code dl_split_time_message(const struct dl_split_context *w,
                                   const struct dl_group_message *talk, struct dl_message *out,
                                   struct dl_err *err);
/* Appends `talk` to the replica's messages: after the layer's forward pass, or before its backward
 * pass. */
enum dl_code dl_split_add_message(struct dl_split_context *w, const struct dl_group_message *talk,
                                  int layer, bool backward, double hidden_frac, struct dl_err *err);

/* The halos of one layer and pass: F-HALO, by the framework's halo_exchange and halo_forward.
 * F-HALO-CHAIN: with synchronous sends that precede the receive, p devices in a line take 2 (p - 1)
 * messages one after the other. */
enum dl_code dl_split_add_halos(struct dl_split_context *w, int index, bool backward,
                                struct dl_err *err);
struct dl_split_blocks dl_split_blocks_of(const struct dl_workload *whole);
/* Whether a layer lies in a residual block. */
bool dl_split_in_block(const struct dl_split_blocks *blocks, int index);

#endif

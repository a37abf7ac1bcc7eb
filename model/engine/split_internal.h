/* split_internal.h - shared by the files that make the messages of a split replica
 * (split_replica.h): private to them. */
#ifndef DL_MODEL_ENGINE_SPLIT_INTERNAL_H
#define DL_MODEL_ENGINE_SPLIT_INTERNAL_H

#include "model/engine/split.h"
#include "model/engine/replica.h"

struct dl_split_context {
    struct dl_replica *replica;
    const struct dl_split *split;
    const struct dl_workload *whole;
    bool *is_split;     /* of each layer */
    bool *is_gathered;  /* a split one whose output a layer reads that is not */
    double width_bytes; /* of one activation element */
    int last;           /* last split layer */
    int capacity;       /* of the replica's messages */
    int library; /* 1 + the library to take in place of the framework's; 0: the framework's */
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

/* Appends a collective of `elements` of each sample among the devices of the replica. */
enum dl_code dl_split_add_collective(struct dl_split_context *w, enum dl_collective_op op,
                                     double elements, int layer, bool backward, struct dl_err *err);

/* The halos of one layer and pass, to both neighbours at once. F-HALO */
enum dl_code dl_split_add_halos(struct dl_split_context *w, int index, bool backward,
                                struct dl_err *err);

/* What a framework's own code does in its own way: a row in the file of the behaviour
 * (dl_framework_behaviour.split). A function that is NULL: nothing of the kind. */
struct dl_split_behaviour {
    /* instead of dl_split_add_halos */
    enum dl_code (*halos)(struct dl_split_context *w, int index, bool backward, struct dl_err *err);
    /* messages with the gradient of a layer whose output was gathered */
    enum dl_code (*gathered_backward)(struct dl_split_context *w, int index, struct dl_err *err);
    /* the last layer that backward does not reach; -1: it reaches all */
    int (*last_untrained)(const struct dl_split_context *w);
    /* how the input reaches the devices, `local` the network of one */
    enum dl_code (*input)(const struct dl_split_context *w, struct dl_workload *local,
                          struct dl_err *err);
    /* whether devices may take more memory than they have, and the time that paging adds to a step
     */
    bool (*is_managed)(const struct dl_framework *framework);
    double (*paging_s)(const struct dl_replica *replica, const struct dl_memory *memory);
};

#endif

/* plan.c - names of strategies, optimizers and recomputation modes. */
#include "model/plan.h"

#include <string.h>

const char *const dl_optimizer_names[] = {"sgd", "momentum", "adam", "lamb", NULL};
const char *const dl_recompute_names[] = {"none", "selective", "full", NULL};

const struct dl_strategy dl_strategies[] = {
    {"data", "every device holds the whole network and a share of the batch; gradients are summed", true},
    {"spatial", "every device holds all filters and a part of each image; halos are exchanged", false},
    {"filter", "every device computes some of each layer's filters; activations are gathered", false},
    {"channel", "every device holds some input channels of each layer; activations are summed", false},
    {"pipeline", "every device holds some consecutive layers; micro-batches flow through", false},
    {"tensor", "matrices of each transformer layer are split over the devices", false},
    {"data+spatial", "spatial inside a node, data across nodes", false},
    {"data+filter", "filter inside a node, data across nodes", false},
    {"data+channel", "channel inside a node, data across nodes", false},
    {"data+pipeline", "pipeline inside a group, data across groups", false},
    {"data+tensor", "tensor inside a node, data across nodes", false},
    {"3d", "data, tensor and pipeline together", false},
    {"zero1", "data parallel with sharded optimizer state", false},
    {"zero2", "data parallel with sharded optimizer state and gradients", false},
    {"zero3", "data parallel with sharded optimizer state, gradients and weights", false},
    {"mlsl-hybrid", "model parallel inside a node, data parallel across nodes, on CPUs", false},
    {"expert", "experts of a mixture spread over the devices", false},
    {NULL, NULL, false},
};

const struct dl_strategy *dl_strategy_find(const char *name) {
    for (const struct dl_strategy *s = dl_strategies; s->name != NULL; s++) {
        if (strcmp(s->name, name) == 0) return s;
    }
    return NULL;
}

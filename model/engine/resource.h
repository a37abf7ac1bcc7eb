/* resource.h - what the time of an iteration depends on, and how much of it on each. */
#ifndef DL_MODEL_ENGINE_RESOURCE_H
#define DL_MODEL_ENGINE_RESOURCE_H

#include <stdbool.h>

#include "model/framework/cost.h"
#include "model/framework/gradient_sync.h"

enum dl_resource {
    DL_ON_ARITHMETIC, /* rates of the device's units */
    DL_ON_MEMORY,     /* bandwidth of its memory */
    DL_ON_LATENCY,    /* of kernels and messages */
    DL_ON_NODE_LINKS,
    DL_ON_NETWORK,
    DL_ON_HOST_COPY,  /* copies of messages through host memory */
    DL_ON_HOST_CORES, /* that copy and sum messages, and their memory */
    DL_ON_SERVERS,
    DL_ON_HOST, /* dispatch, fixed time, cycles; the slowest device */
    DL_ON_INPUT,
    DL_ON_STAGES, /* other stages of a pipeline */
    DL_RESOURCES
};

struct dl_resource_use {
    double s[DL_RESOURCES];
};

double dl_resource_sum_s(const struct dl_resource_use *use);
void dl_resource_add(struct dl_resource_use *to, const struct dl_resource_use *from, double times);
/* Adds `from` scaled to `total_s` seconds in all; where it is empty, these to `otherwise`. */
void dl_resource_share(const struct dl_resource_use *from, double total_s,
                       enum dl_resource otherwise, struct dl_resource_use *out);

/* Adds `seconds` of kernels, as their cost divides; beyond its time the host's. */
void dl_resource_kernels(const struct dl_pass_cost *cost, double seconds,
                         struct dl_resource_use *out);
/* Of the link that limits a message, as dl_collective_time names it. */
enum dl_resource dl_resource_of_link(const char *limit);
/* "limited by ..." of the same: "inter link" */
const char *dl_resource_link_text(const char *limit);
/* Adds `seconds` of a message: latency, and the bandwidth of the link that limits it. servers: of
 * parameter servers. */
void dl_resource_message(const struct dl_message *message, double seconds, bool servers,
                         struct dl_resource_use *out);

#endif

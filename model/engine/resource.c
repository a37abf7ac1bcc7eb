/* resource.c - see resource.h. */
#include "model/engine/resource.h"

#include <math.h>
#include <string.h>

double dl_resource_sum_s(const struct dl_resource_use *use) {
    double sum_s = 0;
    for (int i = 0; i < DL_RESOURCES; i++) sum_s += use->s[i];
    return sum_s;
}

void dl_resource_add(struct dl_resource_use *to, const struct dl_resource_use *from, double times) {
    for (int i = 0; i < DL_RESOURCES; i++) to->s[i] += times * from->s[i];
}

void dl_resource_share(const struct dl_resource_use *from, double total_s,
                       enum dl_resource otherwise, struct dl_resource_use *out) {
    const double sum_s = dl_resource_sum_s(from);
    if (sum_s > 0)
        dl_resource_add(out, from, total_s / sum_s);
    else
        out->s[otherwise] += total_s;
}

void dl_resource_kernels(const struct dl_pass_cost *cost, double seconds,
                         struct dl_resource_use *out) {
    const double kernels_s = fmin(seconds, cost->time_s),
                 limits_s = cost->by_limit_s[0] + cost->by_limit_s[1] + cost->by_limit_s[2],
                 scale = limits_s > 0 ? kernels_s / limits_s : 0;
    out->s[DL_ON_ARITHMETIC] += scale * cost->by_limit_s[DL_LIMIT_COMPUTE];
    out->s[DL_ON_MEMORY] += scale * cost->by_limit_s[DL_LIMIT_MEMORY];
    out->s[DL_ON_LATENCY] += scale * cost->by_limit_s[DL_LIMIT_LATENCY];
    out->s[DL_ON_HOST] += seconds - (limits_s > 0 ? kernels_s : 0);
}

enum dl_resource dl_resource_of_link(const char *limit) {
    if (limit != NULL && strcmp(limit, "inter") == 0) return DL_ON_NETWORK;
    if (limit != NULL && strcmp(limit, "host") == 0) return DL_ON_HOST_CORES;
    return limit != NULL && strcmp(limit, "host-copy") == 0 ? DL_ON_HOST_COPY : DL_ON_NODE_LINKS;
}

const char *dl_resource_link_text(const char *limit) {
    if (limit == NULL) return "no link";
    switch (dl_resource_of_link(limit)) {
    case DL_ON_NETWORK: return "inter link";
    case DL_ON_HOST_COPY: return "copies through the host";
    case DL_ON_HOST_CORES: return "cores of the host";
    default: return "intra link";
    }
}

void dl_resource_message(const struct dl_message *m, double seconds, bool servers,
                         struct dl_resource_use *out) {
    const double known_s = m->latency_s + m->bandwidth_s,
                 latency = known_s > 0 ? m->latency_s / known_s : 0;
    out->s[DL_ON_LATENCY] += latency * seconds;
    out->s[servers ? DL_ON_SERVERS : dl_resource_of_link(m->limit)] += (1 - latency) * seconds;
}

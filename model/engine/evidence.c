/* evidence.c - see evidence.h. */
#include "model/engine/evidence.h"

#include <math.h>

static void add_pass(const struct dl_pass_cost *pass, double times, struct dl_evidence *out) {
    for (int i = 0; i < 3; i++) out->by_limit_s[i] += times * pass->by_limit_s[i];
    out->error_s += times * pass->error_s;
    out->error_square_s2 += times * times * pass->error_square_s2;
}

void dl_evidence_of_cost(const struct dl_cost *cost, int layer_count, double micro_batches,
                         struct dl_evidence *out) {
    for (int i = 0; i < layer_count; i++) {
        const struct dl_pass_cost *passes[] = {&cost->layers[i].forward, &cost->layers[i].backward};
        for (int p = 0; p < 2; p++) {
            add_pass(passes[p], micro_batches, out);
            if (passes[p]->extrapolated) out->outside_s += micro_batches * passes[p]->time_s;
        }
    }
    add_pass(&cost->update, 1, out);
    add_pass(&cost->accumulation, micro_batches - 1, out);
}

void dl_evidence_of_messages(const struct dl_message *messages, int count, bool servers,
                             struct dl_evidence *out) {
    double error_s = 0, all_s = 0;
    for (int m = 0; m < count; m++) {
        const struct dl_message *message = &messages[m];
        dl_resource_message(message, message->latency_s + message->bandwidth_s, servers,
                            &out->comm);
        error_s += message->duration_s * message->sigma_log;
        all_s += message->duration_s;
    }
    out->comm_error_s = all_s > 0 ? out->exposed_comm_s * error_s / all_s : 0;
}

void dl_evidence_serial_path(struct dl_evidence *e) {
    const struct dl_resource_use kernels = {{[DL_ON_ARITHMETIC] = e->by_limit_s[DL_LIMIT_COMPUTE],
                                             [DL_ON_MEMORY] = e->by_limit_s[DL_LIMIT_MEMORY],
                                             [DL_ON_LATENCY] = e->by_limit_s[DL_LIMIT_LATENCY]}};
    const double all_s = e->forward_s + e->backward_s + e->update_s,
                 /* kernels during which the host sets the pace */
        host_bound_s = fmin(fmax(0, e->host_bound_s - e->host_s), all_s);
    e->path = (struct dl_resource_use){
        {[DL_ON_HOST] = e->host_s + host_bound_s, [DL_ON_STAGES] = e->bubble_s}};
    dl_resource_share(&kernels, all_s - host_bound_s, DL_ON_ARITHMETIC, &e->path);
    dl_resource_share(&e->comm, e->exposed_comm_s, DL_ON_NODE_LINKS, &e->path);
}

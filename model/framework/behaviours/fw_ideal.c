/* fw_ideal.c - the bound: no host cost, no slowdown, every gradient moved by the cheapest way
 * that the model knows, overlapped with backward and with the next forward where data
 * dependences allow. F-FW-IDEAL.
 *
 * However they are split, S bytes take at least S min T(s)/s over sizes s <= S, T the time of
 * one collective. The gradients of layers 0..x are ready once the backward pass of x has run,
 * and the forward pass of a layer l >= x needs them. It cannot begin before ready_x + time(bytes
 * of 0..x), whatever order a framework sends them in. The latest of these over x <= l is when l
 * may begin. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "model/framework/gradient_sync.h"
#include "model/network/path.h"

enum { HALVINGS = 12 }; /* of the whole: smaller pieces have latency alone */

/* The cheapest size of one library, into *best (with its bytes). */
static enum dl_code try_library(const struct dl_gradient_sync_request *r, enum dl_library library,
                                struct dl_message *best, struct dl_err *err) {
    struct dl_gradient_sync_request own = *r;
    own.library = library;
    double bytes = r->total_bytes;
    for (int i = 0; i < HALVINGS && bytes > 1; i++, bytes /= 2) {
        struct dl_message m = {.name = NULL};
        DL_TRY(dl_gradient_sync_collective(&own, DL_COLL_ALL_REDUCE, bytes, &m, err));
        if (best->name == NULL || m.duration_s * best->bytes < best->duration_s * m.bytes)
            *best = m;
    }
    return DL_OK;
}

/* Servers or merging devices that move each byte once each way, the two ways at once. */
static void try_servers(const struct dl_gradient_sync_request *r, struct dl_message *best) {
    const double devices = (double)r->plan->devices_per_node;
    const bool gpu = r->system->device->kind == DL_DEVICE_GPU;
    double s_per_byte = dl_gradient_sync_server_s_per_byte(r, 1);
    bool copies = false;
    if (r->plan->nodes <= 1) { /* the host sums, or the devices themselves */
        const double copy_s = gpu ? dl_gradient_sync_host_copy_s(r, 1, true) : 0;
        const double peers_s =
            dl_path_has_peers(r->system)
                ? 2 * (devices - 1) / devices / dl_path_device_bytes_per_s(r->system)
                : INFINITY;
        s_per_byte = fmin(peers_s, fmax(copy_s, dl_gradient_sync_host_sum_s(r, 1, devices)));
        copies = s_per_byte == copy_s;
    }
    if (!(s_per_byte > 0) || !(s_per_byte * best->bytes < best->duration_s)) return;
    best->duration_s = best->bandwidth_s = s_per_byte * best->bytes;
    best->latency_s = 0;
    best->algorithm = "servers";
    best->protocol = NULL;
    best->formula = "F-PS-LINK";
    best->limit = copies ? "host-copy" : r->plan->nodes > 1 ? "inter" : "intra";
    best->origin = "model";
}

enum dl_code dl_gradient_sync_cheapest(const struct dl_gradient_sync_request *r,
                                       struct dl_message *out, struct dl_err *err) {
    memset(out, 0, sizeof *out);
    DL_TRY(try_library(r, r->library, out, err));
    if (r->plan->library != NULL || out->name == NULL) return DL_OK; /* as asked for */
    if (r->system->device->kind == DL_DEVICE_CPU) {
        for (int i = 0; i < DL_LIBRARIES; i++)
            if (dl_libraries[i]->on_cpus && !dl_libraries[i]->single_node)
                DL_TRY(try_library(r, (enum dl_library)i, out, err));
    }
    try_servers(r, out);
    return DL_OK;
}

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    struct dl_message way;
    const int count = r->gradient_count;
    DL_TRY(dl_gradient_sync_cheapest(r, &way, err));
    dl_gradient_sync_messages(r, count, out);
    const double share = way.bytes > 0 ? 1 / way.bytes : 0;
    double end_s = 0;
    for (int g = 0; g < count; g++) { /* as they come */
        struct dl_message *m = &out->messages[g];
        const double part = r->gradients[g].bytes * share;
        *m = way;
        m->first = g;
        m->count = 1;
        m->bytes = r->gradients[g].bytes;
        m->ready_s = r->gradients[g].ready_s;
        m->duration_s = part * way.duration_s;
        m->latency_s = part * way.latency_s;
        m->bandwidth_s = part * way.bandwidth_s;
        end_s = fmax(end_s, m->ready_s) + m->duration_s;
        m->tail_s = -end_s;
    }
    double bytes = 0, usable_s = 0;
    for (int g = count - 1; g >= 0; g--) { /* first layers first */
        bytes += r->gradients[g].bytes;
        usable_s = fmax(usable_s, r->gradients[g].ready_s + bytes * share * way.duration_s);
        out->messages[g].tail_s += usable_s;
    }
    out->per_layer_wait = true;
    return DL_OK;
}

static const char *const keys[] = {"bucket_bytes", NULL};

const struct dl_framework_behaviour dl_fw_ideal = {
    .name = "ideal",
    .is_bound = true,
    .summary = "no framework overhead; communication overlaps backward and the next forward",
    .source = "formulas",
    .keys = keys,
    .required = keys,
    .synchronize = synchronize,
};

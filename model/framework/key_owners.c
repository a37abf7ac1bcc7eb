/* key_owners.c - see key_owners.h. F-KEY-OWNER: n - 1 copies of S bytes into the owner's slot take
 * S ((n - 1 - h) / B + h 2 / H), h: copies through the host, B: bandwidth of the slot's link, H: of
 * a copy to the host. Over NVLink: as F-COPY-STAR. S times the number of devices on other sockets
 * passes the bridge. */
#include "model/framework/key_owners.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "model/network/libraries/coll_copy.h"
#include "model/network/path.h"

/* peer connections of one device: CUDA C++ Programming Guide, peer-to-peer memory access */
enum { PEERS = 8 };

int dl_key_owner_staged(const struct dl_key_owners *owners, int owner) {
    return owner >= owners->peers && owners->devices > owners->peers + 1
               ? owners->devices - 1 - owners->peers
               : 0;
}

/* Most peers of a device, in the order of device numbers. */
static int most_peers(const struct dl_system *system) {
    if (!dl_path_has_peers(system)) return 0;
    return dl_path_inside_kind(system) == DL_PATH_NVSWITCH ? INT_MAX / 2 : PEERS;
}

struct key {
    double bytes;
    int gradient;
};

/* Larger first; equal ones in the order of registration. */
static int by_size(const void *a, const void *b) {
    const struct key *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return y->gradient - x->gradient;
}

static void assign(const struct dl_gradient_sync_request *r, struct dl_key_owners *out) {
    const size_t count = (size_t)r->gradient_count;
    struct key *keys = dl_arena_alloc(r->arena, count + 1, sizeof *keys);
    double *load = dl_arena_alloc(r->arena, (size_t)out->devices, sizeof *load);
    out->owner_of = dl_arena_alloc(r->arena, count + 1, sizeof *out->owner_of);
    out->slot_free_s = dl_arena_alloc(r->arena, (size_t)out->devices, sizeof(double));
    for (size_t g = 0; g < count; g++) keys[g] = (struct key){r->gradients[g].bytes, (int)g};
    qsort(keys, count, sizeof *keys, by_size);
    for (size_t k = 0; k < count; k++) {
        int least = 0;
        for (int d = 1; d < out->devices; d++) {
            if (load[d] < load[least]) least = d;
        }
        load[least] += keys[k].bytes;
        out->owner_of[keys[k].gradient] = least;
    }
}

enum dl_code dl_key_owners_of(const struct dl_gradient_sync_request *r, struct dl_key_owners *out,
                              struct dl_err *err) {
    const struct dl_system *system = r->system;
    const enum dl_path_kind kind = dl_path_inside_kind(system);
    const double bridge = dl_path_bridge_bytes_per_s(system);
    const int devices = (int)r->plan->devices_per_node;
    const double host = system->has_host ? system->host.copy_bandwidth_bytes_per_s : NAN;
    enum { MANY = 1 << 28 }; /* bytes, so that a launch does not count */
    *out = (struct dl_key_owners){
        .devices = devices, .per_slot = 1, .peers = most_peers(system), .star_s_per_byte = NAN};
    out->sum_s_per_byte = dl_gradient_sync_device_stream_s(r, (devices + 1.0) * MANY) / MANY;
    const bool peers = out->peers > 0;
    const bool nvlink = peers && (kind == DL_PATH_NVLINK || kind == DL_PATH_NVSWITCH);
    if (!nvlink && system->has_host && system->host.devices_per_copy_link > 1)
        out->per_slot = (int)fmin((double)system->host.devices_per_copy_link, devices);
    struct dl_cost_parts star;
    if (nvlink && dl_path_has_edges(system) && dl_copy_star_cost(system, devices, 1, &star))
        out->star_s_per_byte = star.bandwidth_s;
    out->peer_s_per_byte = peers ? 1 / dl_path_device_bytes_per_s(system) : 0;
    out->staged_s_per_byte = 2 / host;
    if (peers && dl_known(bridge) && !dl_known(out->star_s_per_byte))
        out->bridge_s_per_byte = (double)dl_path_beyond_socket(system, devices) / bridge;
    const bool some_staged = devices > out->peers + 1;
    if (!dl_known(out->star_s_per_byte) && ((peers && !dl_known(out->peer_s_per_byte)) ||
                                            (some_staged && !dl_known(out->staged_s_per_byte)))) {
        return dl_fail(err, DL_ERR_INPUT,
                       "system %s lacks links.intra or host.copy_bandwidth_bytes_per_s",
                       system->name);
    }
    assign(r, out);
    return DL_OK;
}

double dl_key_owner_copy_s(const struct dl_key_owners *owners, int gradient, double bytes) {
    if (dl_known(owners->star_s_per_byte)) return bytes * owners->star_s_per_byte;
    const int staged = dl_key_owner_staged(owners, owners->owner_of[gradient]);
    return bytes * ((owners->devices - 1 - staged) * owners->peer_s_per_byte +
                    (staged > 0 ? staged * owners->staged_s_per_byte : 0));
}

double dl_key_owner_pass(struct dl_key_owners *owners, int gradient, double bytes, int ways,
                         double ready_s) {
    double *slot_s = &owners->slot_free_s[owners->owner_of[gradient] / owners->per_slot];
    if (owners->devices <= 1) return ready_s;
    *slot_s = fmax(ready_s, *slot_s) + ways * dl_key_owner_copy_s(owners, gradient, bytes);
    double end_s = *slot_s;
    /* there in one direction of the bridge, back in the other */
    if (owners->bridge_s_per_byte > 0) {
        owners->bridge_free_s =
            fmax(ready_s, owners->bridge_free_s) + 0.5 * ways * owners->bridge_s_per_byte * bytes;
        end_s = fmax(end_s, owners->bridge_free_s);
    }
    return end_s + owners->sum_s_per_byte * bytes;
}

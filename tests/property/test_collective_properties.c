/* Properties of dl_collective_time() over 1000 random systems and requests: one rank is free; time
 * = latency + bandwidth; longer messages and higher latency never make it faster; doubling a
 * bandwidth never slows it. The textbook rows likewise in bytes, alpha and beta. */
#include "model/network/collective.h"
#include "tests/check.h"

enum { CASES = 1000 };

/* Marsaglia's xorshift with a fixed seed: the same cases everywhere. */
static uint64_t random_state;
static double uniform(double low, double high) {
    random_state ^= random_state << 13, random_state ^= random_state >> 7,
        random_state ^= random_state << 17;
    return low + (high - low) * ((double)(random_state >> 11) / 9007199254740992.0);
}
static double log_uniform(double low, double high) { return exp(uniform(log(low), log(high))); }
static int64_t whole(int64_t low, int64_t high) {
    return (int64_t)floor(uniform((double)low, (double)high + 1.0));
}

static struct dl_device device;
static struct dl_system random_system(void) {
    static const char *const kinds[] = {"nvlink2", "nvlink3", "nvswitch", "pcie3", "shm"};
    static const char *const architectures[] = {"pascal", "volta", "ampere", "hopper", "blackwell"};
    static const char *const versions[] = {NULL,     "2.0",    "2.4.8",  "2.5.6",  "2.7.8", "2.8.3",
                                           "2.12.7", "2.17.1", "2.18.3", "2.21.5", "2.27.7"};
    static const char *const mpis[] = {NULL, "openmpi-3.1", "openmpi-4.1", "mpich-3"};
    static const char *const distances[] = {NULL, "PIX", "PHB"};
    struct dl_system system = {.name = "random",
                               .nodes = 4096,
                               .devices_per_node = 8,
                               .has_intra = true,
                               .has_inter = true,
                               .has_host = true,
                               .has_fabric = true};
    device = (struct dl_device){.kind = DL_DEVICE_GPU,
                                .architecture = architectures[whole(0, 4)],
                                .memory_bandwidth_bytes_per_s = log_uniform(1e11, 3e12),
                                .memory_efficiency = 0.8};
    system.device = &device;
    system.software.nccl_version = versions[whole(0, 10)], system.software.mpi = mpis[whole(0, 3)];
    system.host = (struct dl_host){.memory_bandwidth_bytes_per_s = log_uniform(2e10, 4e11),
                                   .copy_bandwidth_bytes_per_s = log_uniform(3e9, 5e10),
                                   .devices_per_copy_link = whole(1, 2)};
    system.intra = (struct dl_link){.kind = kinds[whole(0, 4)],
                                    .bandwidth_bytes_per_s = log_uniform(3e9, 4e11),
                                    .latency_s = log_uniform(1e-7, 1e-5),
                                    .channels = whole(0, 1) ? DL_ABSENT : whole(1, 12),
                                    .channel_bandwidth_bytes_per_s = NAN,
                                    .peer_group = whole(0, 1) ? DL_ABSENT : 4,
                                    .cross_bandwidth_bytes_per_s = log_uniform(3e9, 2e10),
                                    .peer_to_peer = whole(0, 1) != 0};
    if (strcmp(system.intra.kind, "nvswitch") == 0)
        system.intra.domain_nodes = whole(0, 1) ? DL_ABSENT : whole(2, 18);
    system.inter =
        (struct dl_link){.kind = "infiniband",
                         .bandwidth_bytes_per_s = log_uniform(1e8, 5e10),
                         .latency_s = log_uniform(1e-6, 1e-4),
                         .adapters_per_node = whole(1, 8),
                         .rdma = whole(0, 1) != 0,
                         .gpudirect = whole(0, 1) != 0,
                         .distance = distances[whole(0, 2)],
                         .per_message_cpu_s = whole(0, 1) ? NAN : log_uniform(1e-6, 3e-5),
                         .channel_bandwidth_bytes_per_s = NAN,
                         .cross_bandwidth_bytes_per_s = NAN};
    system.fabric = (struct dl_fabric){
        .oversubscription = uniform(1, 3), .nodes_per_leaf = whole(8, 40), .hop_latency_s = 2e-7};
    return system;
}

static struct dl_collective_request random_request(void) {
    struct dl_collective_request r = {.op = (enum dl_collective_op)whole(0, DL_COLL_OPS - 1),
                                      .library = (enum dl_library)whole(0, DL_LIBRARIES - 1),
                                      .bytes = log_uniform(1, 1e10),
                                      .nodes = whole(1, 3) == 1 ? 1 : whole(1, 600),
                                      .ranks_per_node = whole(1, 8),
                                      .flows_per_adapter = (double)whole(1, 4)};
    if (r.library == DL_LIB_COPY) r.nodes = 1;
    return r;
}

static double time_of(const struct dl_system *system, const struct dl_collective_request *request) {
    struct dl_collective_time t;
    struct dl_err err = {0};
    if (dl_collective_time(system, request, &t, &err) != DL_OK) fail_msg("%s", err.message);
    check_close(t.latency_s + t.bandwidth_s, t.time_s, 1e-12);
    assert_true(isfinite(t.time_s) && t.latency_s >= 0.0 && t.bandwidth_s >= 0.0 &&
                t.sigma_log >= 0.0);
    assert_non_null(t.algorithm);
    assert_non_null(t.formula);
    assert_non_null(t.origin);
    return t.time_s;
}

#define never_less(what, after, before, i)                                                         \
    do {                                                                                           \
        if ((after) < (before) * (1.0 - 1e-9))                                                     \
            fail_msg("case %d (%s, %s): %s: %.9g after %.9g", i, dl_library_names[r.library],      \
                     dl_collective_op_names[r.op], what, after, before);                           \
    } while (0)

static void libraries(void **state) {
    random_state = 20190501u;
    for (int i = 0; i < CASES; i++) {
        struct dl_system system = random_system(), other = system;
        struct dl_collective_request r = random_request(), more = r;
        double time_s = time_of(&system, &r);
        more.bytes = r.bytes * uniform(1.0, 3.0);
        never_less("more bytes", time_of(&system, &more), time_s, i);
        other = system, other.inter.latency_s *= 2.0, other.intra.latency_s *= 2.0;
        never_less("more latency", time_of(&other, &r), time_s, i);
        other = system, other.inter.bandwidth_bytes_per_s *= 2.0;
        never_less("half the network", time_s, time_of(&other, &r), i);
        other = system, other.intra.channels = system.intra.channels,
        other.intra.bandwidth_bytes_per_s *= 2.0;
        never_less("half the links inside", time_s, time_of(&other, &r), i);
        other = system, other.intra.cross_bandwidth_bytes_per_s *= 2.0;
        never_less("half the crossing", time_s, time_of(&other, &r), i);
        other = system, other.host.copy_bandwidth_bytes_per_s *= 2.0,
        other.host.memory_bandwidth_bytes_per_s *= 2.0;
        never_less("half the host", time_s, time_of(&other, &r), i);
        more = r, more.nodes = 1, more.ranks_per_node = 1;
        check_close(time_of(&system, &more), 0.0, 0.0);
        more = r, more.flows_per_adapter *= 2.0;
        never_less("more flows", time_of(&system, &more), time_s, i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(libraries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

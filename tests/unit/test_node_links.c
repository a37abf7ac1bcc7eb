/* What the links of a node and its host make of a plan, one condition at a time: link graphs,
 * what-ifs, shares of the network, copies between devices, owners of keys, devices that share a
 * host, releases of a framework. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/network/algorithms/coll_copy.h"
#include "model/framework/key_owners.h"
#include "model/framework/release.h"
#include "model/framework/shared_host.h"
#include "model/machine/net_share.h"
#include "model/machine/topology.h"
#include "model/machine/what_if.h"
#include "tests/check.h"
#include "tests/fake.h"

/* Edges that name no two devices of the node, or no link, are none. Three double links of a
 * triangle: two rings each way. */
static void edges_that_are_none(void **state) {
    (void)state;
    const struct dl_edge edges[] = {{0, 1, 2, ""},  {1, 2, 2, ""}, {2, 0, 2, ""}, {-1, 0, 9, ""},
                                    {0, -1, 9, ""}, {3, 0, 9, ""}, {0, 3, 9, ""}, {1, 1, 9, ""},
                                    {0, 1, 0, ""},  {0, 1, -3, ""}};
    assert_int_equal(dl_topology_rings(edges, 10, 3), 4);
    assert_int_equal(dl_topology_rings(edges, 10, 2), 2);
    assert_int_equal(dl_topology_rings(edges, 10, 0), 0);
    assert_true(dl_topology_connected(edges, 10, 3));
    assert_true(dl_topology_connected(edges, 0, 1));
    assert_false(dl_topology_connected(edges, 0, 0));
    assert_false(dl_topology_connected(edges, 10, DL_LINK_DEVICES + 1));
    assert_int_equal(dl_topology_rings(edges, 10, DL_LINK_DEVICES + 1), 0);
    assert_false(dl_topology_connected(edges, 2, 4));
}

/* Six devices: 0-1 two links, 2-3 one, 4 and 5 apart. The worst pair of neighbours decides;
 * 0-2-4 has no links. */
static void worst_group_of_a_node(void **state) {
    (void)state;
    struct dl_edge edges[] = {{0, 1, 2, "nvlink2"}, {2, 3, 1, "nvlink2"}, {3, 4, 1, "nvlink2"}};
    struct dl_link link = {.edges = edges, .edge_count = 3};
    dl_topology_fill(&link, 4);
    assert_int_equal(link.group_channels[1][2], 1); /* of 2 and 1 */
    assert_int_equal(link.group_channels[2][2], DL_GROUP_APART);
    assert_int_equal(link.group_channels[1][3], DL_GROUP_APART);
    assert_int_equal(link.group_channels[3][2], DL_GROUP_UNKNOWN); /* does not fit */
    assert_true(link.connected[2] && !link.connected[3]);
    assert_int_equal(link.ring_channels[2], 2);
    dl_topology_fill(&link, 6);
    assert_int_equal(link.group_channels[1][2],
                     DL_GROUP_APART); /* 4-5: apart, whatever comes first */
    edges[2] = (struct dl_edge){4, 5, 3, "nvlink2"};
    dl_topology_fill(&link, 6);
    assert_int_equal(link.group_channels[1][2], 1);
    struct dl_edge chain[] = {
        {0, 1, 1, ""}, {1, 2, 1, ""}, {3, 4, 1, ""}, {4, 5, 1, ""}, {3, 5, 1, ""}};
    link = (struct dl_link){.edges = chain, .edge_count = 5};
    dl_topology_fill(&link, 6);
    assert_int_equal(link.group_channels[1][3],
                     DL_GROUP_CHAIN); /* 0-1-2 closes no ring, 3-4-5 two */
    chain[2] = (struct dl_edge){0, 2, 1, ""}, chain[4] = (struct dl_edge){3, 4, 0, ""};
    dl_topology_fill(&link, 6);
    assert_int_equal(link.group_channels[1][3], DL_GROUP_APART); /* 3 hangs on nothing */
    struct dl_edge both[] = {{0, 1, 1, ""}, {1, 2, 1, ""}, {3, 4, 1, ""}};
    link = (struct dl_link){.edges = both, .edge_count = 3};
    dl_topology_fill(&link, 6);
    assert_int_equal(link.group_channels[1][3], DL_GROUP_APART); /* a chain, then 5 apart */
    both[0] = (struct dl_edge){3, 5, 1, ""};                     /* and the other way round */
    both[1] = (struct dl_edge){1, 2, 1, ""};
    dl_topology_fill(&link, 6);
    assert_int_equal(link.group_channels[1][3], DL_GROUP_APART);
    link.edge_count = 0;
    dl_topology_fill(&link, 6);
    assert_int_equal(link.group_channels[1][3], DL_GROUP_UNKNOWN);
}

static struct dl_link measured_link(void) {
    return (struct dl_link){.bandwidth_bytes_per_s = 10e9,
                            .latency_s = 2e-6,
                            .channels = 2,
                            .channel_bandwidth_bytes_per_s = 5e9,
                            .cross_bandwidth_bytes_per_s = NAN,
                            .nccl_bandwidth_bytes_per_s = NAN,
                            .assumed = true};
}

/* Links inside a node: twice the rate of a channel makes twice the bandwidth of both; other
 * nodes follow nothing. */
static void links_follow(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_system measured = {.devices_per_node = 4,
                                 .has_intra = true,
                                 .intra = measured_link()},
                     s = measured;
    s.intra.channel_bandwidth_bytes_per_s = 10e9;
    assert_int_equal(dl_system_what_if(&measured, &s, &arena, &err), DL_OK);
    check_close(s.intra.bandwidth_bytes_per_s, 20e9, 1e-12);
    assert_true(s.intra.assumed);
    s = measured, s.intra.channel_bandwidth_bytes_per_s = 10e9, s.devices_per_node = 2;
    assert_int_equal(dl_system_what_if(&measured, &s, &arena, &err), DL_OK);
    check_close(s.intra.bandwidth_bytes_per_s, 10e9, 0);
    s = measured, s.intra.channel_bandwidth_bytes_per_s = 10e9, s.has_intra = false;
    assert_int_equal(dl_system_what_if(&measured, &s, &arena, &err), DL_OK);
    check_close(s.intra.bandwidth_bytes_per_s, 10e9, 0);
    /* an unknown channel is the link's share: 10 / 2 GB/s, and 15 are three times that */
    measured.intra.channel_bandwidth_bytes_per_s = NAN;
    s = measured, s.intra.channel_bandwidth_bytes_per_s = 15e9;
    assert_int_equal(dl_system_what_if(&measured, &s, &arena, &err), DL_OK);
    check_close(s.intra.bandwidth_bytes_per_s, 30e9, 1e-12);
    /* no channels: those of the graph, 4 over 4 devices; then one */
    measured.intra.channels = DL_ABSENT, measured.intra.ring_channels[4] = 4;
    s = measured, s.intra.channel_bandwidth_bytes_per_s = 5e9;
    assert_int_equal(dl_system_what_if(&measured, &s, &arena, &err), DL_OK);
    check_close(s.intra.bandwidth_bytes_per_s, 20e9, 1e-12);
    measured.intra.ring_channels[4] = 0;
    s = measured, s.intra.channel_bandwidth_bytes_per_s = 5e9;
    assert_int_equal(dl_system_what_if(&measured, &s, &arena, &err), DL_OK);
    check_close(s.intra.bandwidth_bytes_per_s, 5e9, 1e-12);
    /* half the rings of a changed graph: half the rate; none known on either side: the same */
    measured.intra.ring_channels[4] = 4;
    s = measured, s.intra.ring_channels[4] = 2;
    assert_int_equal(dl_system_what_if(&measured, &s, &arena, &err), DL_OK);
    check_close(s.intra.bandwidth_bytes_per_s, 5e9, 1e-12);
    s = measured, s.intra.ring_channels[4] = 0;
    assert_int_equal(dl_system_what_if(&measured, &s, &arena, &err), DL_OK);
    check_close(s.intra.bandwidth_bytes_per_s, 10e9, 0);
    dl_arena_free(&arena);
}

/* Pieces follow unless they are set themselves; without a latency beside them, the first piece's
 * start is it. */
static void pieces_follow(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_piece pieces[] = {{1e3, 4e-6, 1e-9}, {1e9, 8e-6, 1e-10}},
                    other[] = {{1e3, 4e-6, 1e-9}, {1e9, 8e-6, 2e-10}};
    struct dl_system measured = {.has_inter = true, .inter = measured_link()}, s;
    measured.inter.pieces = pieces, measured.inter.piece_count = 2, measured.inter.latency_s = NAN;
    s = measured, s.inter.latency_s = 2e-6; /* half of 4 us */
    assert_int_equal(dl_system_what_if(&measured, &s, &arena, &err), DL_OK);
    check_close(s.inter.pieces[0].alpha_s, 2e-6, 1e-12);
    check_close(s.inter.pieces[1].alpha_s, 4e-6, 1e-12);
    check_close(s.inter.pieces[1].beta_s_per_byte, 1e-10, 1e-12);
    s = measured, s.inter.bandwidth_bytes_per_s = 20e9, s.inter.pieces = other;
    assert_int_equal(dl_system_what_if(&measured, &s, &arena, &err), DL_OK);
    check_close(s.inter.pieces[1].beta_s_per_byte, 2e-10, 0);
    assert_false(s.inter.assumed);
    s = measured, s.inter.bandwidth_bytes_per_s = 20e9,
    s.inter.piece_count = 1; /* another number of pieces: set */
    assert_int_equal(dl_system_what_if(&measured, &s, &arena, &err), DL_OK);
    check_close(s.inter.pieces[0].beta_s_per_byte, 1e-9, 0);
    s = measured, s.inter.bandwidth_bytes_per_s = NAN; /* no ratio */
    assert_int_equal(dl_system_what_if(&measured, &s, &arena, &err), DL_OK);
    check_close(s.inter.pieces[1].beta_s_per_byte, 1e-10, 1e-12);
    s = measured, s.has_inter = false, s.inter.bandwidth_bytes_per_s = 20e9;
    assert_int_equal(dl_system_what_if(&measured, &s, &arena, &err), DL_OK);
    check_close(s.inter.pieces[1].beta_s_per_byte, 1e-10, 0);
    dl_arena_free(&arena);
}

static double pageable(double was_copy, double copy, double was, double now, bool there) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_system measured = {.has_host = true}, s = {.has_host = there};
    measured.host.copy_bandwidth_bytes_per_s = was_copy,
    measured.host.pageable_bandwidth_bytes_per_s = was;
    s.host.copy_bandwidth_bytes_per_s = copy, s.host.pageable_bandwidth_bytes_per_s = now;
    assert_int_equal(dl_system_what_if(&measured, &s, &arena, &err), DL_OK);
    return s.host.pageable_bandwidth_bytes_per_s;
}

static void copies_of_the_host_follow(void **state) {
    (void)state;
    check_close(pageable(10e9, 20e9, 4e9, 4e9, true), 5e9, 1e-12);
    check_close(pageable(10e9, 10e9, 4e9, 4e9, true), 4e9, 0);
    check_close(pageable(10e9, 20e9, 4e9, 6e9, true), 6e9, 0); /* set itself */
    check_close(pageable(10e9, 20e9, 4e9, 4e9, false), 4e9, 0);
    check_close(pageable(NAN, 20e9, 4e9, 4e9, true), 4e9, 0);
    check_close(pageable(10e9, NAN, 4e9, 4e9, true), 4e9, 0);
    check_nan(pageable(10e9, 20e9, NAN, NAN, true));
    check_close(pageable(10e9, 20e9, 12e9, 12e9, true), 20e9, 1e-12); /* never negative staging */
}

static void members_without_effect(void **state) {
    (void)state;
    static const char *const none[] = {"links.inter.comment",
                                       "samples.0.shape",
                                       "storage.kind",
                                       "storage.open",
                                       "links.intra.rdma",
                                       "links.inter.channels",
                                       "links.inter.channel_bandwidth",
                                       "links.intra.per_message_cpu_s",
                                       "links.intra.nccl_bandwidth_bytes_per_s",
                                       "host.sources"};
    static const char *const some[] = {"links.intra.channels",
                                       "tdp_w",
                                       "links.inter.rdma",
                                       "tdpx",
                                       "sum",
                                       "storage.ope",
                                       "links.inter.channel",
                                       "links.intra.rdm",
                                       "links.intra.channelsx",
                                       "tdp_x",
                                       "rates.0.peak",
                                       "host.samples",
                                       "links.inter.channel_bandwidth_bits"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (dl_what_if_reason(none[i]) == NULL) fail_msg("%s: no reason", none[i]);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (dl_what_if_reason(some[i]) != NULL)
            fail_msg("%s: %s", some[i], dl_what_if_reason(some[i]));
}

/* One group of 4 ranks over one adapter of 12 GB/s. Without GPUDirect a copy of 10 GB/s limits,
 * half behind a PCIe switch. */
static void paths_to_the_adapter(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_link *inter = &f.system.inter;
    f.system.host.copy_bandwidth_bytes_per_s = 10e9,
    f.system.host.memory_bandwidth_bytes_per_s = NAN;
    struct dl_network_share share = dl_network_share(&f.system, 12e9, 2, 4, 1, true);
    check_close(share.bytes_per_s, 10e9, 1e-12);
    assert_int_equal(share.limit, DL_NET_COPY);
    check_close(dl_network_share(&f.system, 12e9, 2, 4, 1, false).bytes_per_s, 12e9, 1e-12);
    static const char *const near[] = {"PIX", "PXB"}, *const far[] = {NULL,  "",     "P",
                                                                      "PHB", "NODE", "SYS"};
    for (int i = 0; i < 2; i++) {
        inter->distance = near[i];
        check_close(dl_network_share(&f.system, 12e9, 2, 4, 1, true).bytes_per_s, 5e9, 1e-12);
    }
    for (int i = 0; i < 6; i++) {
        inter->distance = far[i];
        check_close(dl_network_share(&f.system, 12e9, 2, 4, 1, true).bytes_per_s, 10e9, 1e-12);
    }
    f.system.has_host = false;
    check_close(dl_network_share(&f.system, 12e9, 2, 4, 1, true).bytes_per_s, 12e9, 1e-12);
    f.system.has_host = true;
    inter->gpudirect = true, inter->distance = "SYS";
    check_close(dl_network_share(&f.system, 12e9, 2, 4, 1, true).bytes_per_s, 12e9, 1e-12);
    f.system.intra.cross_bandwidth_bytes_per_s = 8e9; /* the adapter sits on the other socket */
    share = dl_network_share(&f.system, 12e9, 2, 4, 1, true);
    check_close(share.bytes_per_s, 8e9, 1e-12);
    assert_int_equal(share.limit, DL_NET_CROSS);
    check_close(dl_network_share(&f.system, 12e9, 2, 4, 1, false).bytes_per_s, 12e9, 1e-12);
    f.system.has_intra = false;
    check_close(dl_network_share(&f.system, 12e9, 2, 4, 1, true).bytes_per_s, 12e9, 1e-12);
    f.system.has_intra = true, inter->distance = "PHB";
    check_close(dl_network_share(&f.system, 12e9, 2, 4, 1, true).bytes_per_s, 12e9, 1e-12);
    inter->distance = NULL;
    check_close(dl_network_share(&f.system, 12e9, 2, 4, 1, true).bytes_per_s, 12e9, 1e-12);
    /* two groups share the adapter; staged in memory of 24 GB/s, four passes a byte, 6 GB/s in
     * all */
    inter->gpudirect = false, f.system.host.memory_bandwidth_bytes_per_s = 24e9;
    share = dl_network_share(&f.system, 12e9, 2, 4, 2, true);
    check_close(share.bytes_per_s, 3e9, 1e-12);
    assert_int_equal(share.limit, DL_NET_MEMORY);
    check_close(dl_network_share_joined(&f.system, 12e9, 2, 8, 2, true, 2).bytes_per_s, 6e9, 1e-12);
    dl_arena_free(&f.arena);
}

/* Copies through the host at 10 GB/s, two devices a link: 2 turns of 10 us, and 4 devices read
 * 100 MB at 20 GB/s. */
static void copies_through_the_host(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_cost_parts cost;
    fake_make(&f);
    f.system.host.copy_bandwidth_bytes_per_s = 10e9,
    f.system.host.memory_bandwidth_bytes_per_s = NAN;
    assert_true(dl_copy_host_cost(&f.system, 4, 100e6, &cost));
    check_close(cost.latency_s, 20e-6, 1e-12);
    check_close(cost.bandwidth_s, 0.02, 1e-12);
    assert_true(dl_copy_host_cost(&f.system, 1, 100e6, &cost));
    check_close(cost.bandwidth_s, 0.01, 1e-12);
    f.system.host.memory_bandwidth_bytes_per_s = 10e9;
    assert_true(dl_copy_host_cost(&f.system, 4, 100e6, &cost));
    check_close(cost.bandwidth_s, 0.04, 1e-12);
    f.system.host.devices_per_copy_link = DL_ABSENT,
    f.system.host.memory_bandwidth_bytes_per_s = NAN;
    assert_true(dl_copy_host_cost(&f.system, 4, 100e6, &cost));
    check_close(cost.bandwidth_s, 0.01, 1e-12);
    f.system.host.copy_bandwidth_bytes_per_s = NAN;
    assert_false(dl_copy_host_cost(&f.system, 4, 100e6, &cost));
    f.system.host.copy_bandwidth_bytes_per_s = 10e9, f.system.has_host = false;
    assert_false(dl_copy_host_cost(&f.system, 4, 100e6, &cost));
    f.system.has_intra = false; /* no path at all */
    assert_false(dl_copy_star_cost(&f.system, 4, 100e6, &cost));
    assert_false(dl_copy_ring_cost(&f.system, 4, 100e6, &cost));
    assert_false(dl_copy_tree_cost(&f.system, 4, 100e6, &cost));
    assert_false(dl_copy_sharded_cost(&f.system, 4, 100e6, &cost));
    assert_false(dl_copy_hierarchical_cost(&f.system, 4, 100e6, &cost));
    f.system.has_host = true; /* the host's link is all: three copies of 10 ms out of device 0 */
    assert_true(dl_copy_star_cost(&f.system, 4, 100e6, &cost));
    check_close(cost.bandwidth_s, 0.03, 1e-12);
    check_close(cost.steps, 3, 0);
    assert_true(
        dl_copy_ring_cost(&f.system, 4, 100e6, &cost)); /* 6 steps of a quarter; 10 us each */
    check_close(cost.bandwidth_s, 6 * 25e6 / 10e9, 1e-12);
    check_close(cost.latency_s, 60e-6, 1e-12);
    assert_true(dl_copy_tree_cost(&f.system, 5, 100e6, &cost)); /* 3 rounds */
    check_close(cost.bandwidth_s, 0.03, 1e-12);
    /* 3/4 of 100 MB twice over the link, and summed at 3 B of traffic: 3 / (500 GB/s x 0.8) */
    assert_true(dl_copy_sharded_cost(&f.system, 4, 100e6, &cost));
    check_close(cost.bandwidth_s, 75e6 * (2 / 10e9 + 3 / 400e9), 1e-12);
    f.device.memory_efficiency = NAN;
    assert_true(dl_copy_sharded_cost(&f.system, 4, 100e6, &cost));
    check_close(cost.bandwidth_s, 75e6 * (2 / 10e9 + 3 / 500e9), 1e-12);
    f.device.memory_bandwidth_bytes_per_s = NAN;
    assert_true(dl_copy_sharded_cost(&f.system, 4, 100e6, &cost));
    check_close(cost.bandwidth_s, 75e6 * 2 / 10e9, 1e-12);
    f.system.device = NULL;
    assert_true(dl_copy_sharded_cost(&f.system, 4, 100e6, &cost));
    check_close(cost.bandwidth_s, 75e6 * 2 / 10e9, 1e-12);
    /* halves of 2: star of one copy twice, and one exchange of pairs */
    assert_true(dl_copy_hierarchical_cost(&f.system, 4, 100e6, &cost));
    check_close(cost.bandwidth_s, 0.03, 1e-12);
    check_close(cost.latency_s, 30e-6, 1e-12);
    check_close(cost.steps, 3, 0);
    dl_arena_free(&f.arena);
}

/* A reduction is half an all-reduce by the same pattern, and a sum of none; an all-reduce there
 * and back. */
static void patterns_of_copies(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_err err = {0};
    struct dl_collective_time t;
    fake_make(&f);
    f.system.has_intra = false, f.system.device = NULL;
    f.system.host.copy_bandwidth_bytes_per_s = 10e9;
    static const struct {
        const char *algorithm;
        double all_reduce_s, broadcast_s; /* of bandwidth, 100 MB over 4 devices */
    } cases[] = {{NULL, 0.06, 0.03},           {"star", 0.06, 0.03},       {"tree", 0.04, 0.02},
                 {"host", 0.04, 0.02},         {"sharded", 0.015, 0.0075}, {"ring", 0.015, 0.0075},
                 {"hierarchical", 0.03, 0.015}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                          .library = DL_LIB_COPY,
                                          .bytes = 100e6,
                                          .nodes = 1,
                                          .ranks_per_node = 4,
                                          .flows_per_adapter = 1,
                                          .algorithm = cases[i].algorithm};
        assert_int_equal(dl_collective_time(&f.system, &r, &t, &err), DL_OK);
        check_close(t.bandwidth_s, cases[i].all_reduce_s, 1e-12);
        assert_string_equal(t.algorithm, cases[i].algorithm == NULL ? "star" : cases[i].algorithm);
        r.op = DL_COLL_BROADCAST;
        assert_int_equal(dl_collective_time(&f.system, &r, &t, &err), DL_OK);
        check_close(t.bandwidth_s, cases[i].broadcast_s, 1e-12);
        r.algorithm = "mesh";
        assert_int_equal(dl_collective_time(&f.system, &r, &t, &err), DL_ERR_USAGE);
        r.algorithm = NULL, r.nodes = 2;
        assert_int_equal(dl_collective_time(&f.system, &r, &t, &err), DL_ERR_INPUT);
    }
    dl_arena_free(&f.arena);
}

static struct dl_key_owners owners_of(struct dl_fake *f, enum dl_code expected) {
    struct dl_key_owners out;
    struct dl_err err = {0};
    struct dl_gradient gradients[] = {{.bytes = 10}, {.bytes = 30}, {.bytes = 20}, {.bytes = 10}};
    const struct dl_gradient_sync_request r = {.system = &f->system,
                                               .workload = &f->workload,
                                               .framework = &f->framework,
                                               .plan = &f->plan,
                                               .gradients = gradients,
                                               .gradient_count = 4,
                                               .arena = &f->arena};
    assert_int_equal(dl_key_owners_of(&r, &out, &err), expected);
    return out;
}

/* 30 to device 0, 20 to 1, 10 and 10 to 2 and 3: by falling size, equal ones in the order of
 * registration, the reverse of backward. */
static void owners_of_keys(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_link *intra = &f.system.intra;
    intra->kind = "pcie3", intra->bandwidth_bytes_per_s = 10e9;
    struct dl_key_owners o = owners_of(&f, DL_OK);
    assert_int_equal(o.owner_of[1], 0);
    assert_int_equal(o.owner_of[2], 1);
    assert_int_equal(o.owner_of[3], 2);
    assert_int_equal(o.owner_of[0], 3);
    assert_int_equal(o.peers, 8);
    assert_int_equal(o.per_slot, 2);
    check_close(o.peer_s_per_byte, 1e-10, 1e-12);
    check_nan(o.star_s_per_byte);
    check_close(dl_key_owner_copy_s(&o, 1, 1e9), 0.3, 1e-12); /* three copies into it */
    check_close(o.bridge_s_per_byte, 0, 0);
    intra->cross_bandwidth_bytes_per_s = 5e9;
    check_close(owners_of(&f, DL_OK).bridge_s_per_byte, 0, 0); /* one socket */
    intra->peer_group = 3;
    check_close(owners_of(&f, DL_OK).bridge_s_per_byte, 1 / 5e9, 1e-12);
    intra->peer_group = 4;
    check_close(owners_of(&f, DL_OK).bridge_s_per_byte, 0, 0);
    intra->kind = "nvswitch";
    o = owners_of(&f, DL_OK);
    assert_true(o.peers > 1000000);
    assert_int_equal(o.per_slot, 1);
    check_nan(o.star_s_per_byte); /* no graph */
    intra->kind = NULL;
    assert_int_equal(owners_of(&f, DL_OK).peers, 8);
    assert_int_equal(owners_of(&f, DL_OK).per_slot, 2);
    intra->bandwidth_bytes_per_s = NAN;
    owners_of(&f, DL_ERR_INPUT);
    intra->bandwidth_bytes_per_s = 10e9, intra->peer_to_peer = false;
    assert_int_equal(owners_of(&f, DL_OK).peers, 0);
    assert_int_equal(dl_key_owner_staged(&o, 0), 0);
    f.system.host.copy_bandwidth_bytes_per_s = NAN; /* staged through a host of unknown rate */
    owners_of(&f, DL_ERR_INPUT);
    f.plan.devices_per_node = 1;
    owners_of(&f, DL_OK); /* nothing to copy */
    f.plan.devices_per_node = 4, f.system.has_intra = false, intra->peer_to_peer = true;
    owners_of(&f, DL_ERR_INPUT);
    dl_arena_free(&f.arena);
}

/* 16 devices with 8 peers each: owners 8 and up reach 7 through the host. */
static void keys_beyond_the_peers(void **state) {
    (void)state;
    int owner_of[] = {7, 8};
    double free_s[16] = {0};
    struct dl_key_owners o = {.devices = 16,
                              .per_slot = 2,
                              .peers = 8,
                              .owner_of = owner_of,
                              .peer_s_per_byte = 1,
                              .staged_s_per_byte = 10,
                              .star_s_per_byte = NAN,
                              .sum_s_per_byte = 0.5,
                              .slot_free_s = free_s};
    assert_int_equal(dl_key_owner_staged(&o, 7), 0);
    assert_int_equal(dl_key_owner_staged(&o, 8), 7);
    check_close(dl_key_owner_copy_s(&o, 0, 2), 30, 0);
    check_close(dl_key_owner_copy_s(&o, 1, 2), 2 * (8 + 70), 0);
    check_close(dl_key_owner_pass(&o, 0, 2, 1, 5), 5 + 30 + 1, 0);
    check_close(dl_key_owner_pass(&o, 0, 2, 2, 0), 35 + 60 + 1, 0); /* the slot is taken until 35 */
    check_close(o.slot_free_s[3], 95, 0);
    o.bridge_s_per_byte = 100; /* there and back in two directions: 100 a byte */
    check_close(dl_key_owner_pass(&o, 0, 2, 2, 200), 200 + 200 + 1, 0);
    check_close(dl_key_owner_pass(&o, 0, 1, 1, 0), 400 + 50 + 0.5, 0);
    o.star_s_per_byte = 3;
    check_close(dl_key_owner_copy_s(&o, 1, 2), 6, 0);
    o.devices = 9;
    assert_int_equal(dl_key_owner_staged(&o, 8), 0);
    o.devices = 1;
    check_close(dl_key_owner_pass(&o, 0, 2, 2, 7), 7, 0);
}

static void hosts_that_are_shared(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    assert_false(dl_shared_host_matters(&f.system));
    f.system.nodes_share_host = true;
    assert_false(dl_shared_host_matters(&f.system)); /* GPUs do not */
    f.device.kind = DL_DEVICE_CPU;
    assert_true(dl_shared_host_matters(&f.system));
    f.system.nodes_share_host = false;
    assert_false(dl_shared_host_matters(&f.system));
    f.device.together_ratio = 1;
    assert_true(dl_shared_host_matters(&f.system));
    f.device.together_ratio = 0.9;
    assert_false(dl_shared_host_matters(&f.system));
    assert_false(dl_shared_host_carries(&f.system));
    f.system.inter.kind = "loopback";
    assert_true(dl_shared_host_carries(&f.system));
    f.system.has_inter = false;
    assert_false(dl_shared_host_carries(&f.system));
    f.system.has_inter = true, f.system.inter.kind = NULL;
    assert_false(dl_shared_host_carries(&f.system));
    /* a thread of the library on 2 of 10 cores: 10 / 8; on Knights Landing, its own number */
    f.device.unit_count = 10, f.framework.sync.endpoint_cores = 2,
    f.framework.sync.knl_endpoint_cores = 5;
    check_close(dl_shared_host_endpoint_ratio(&f.system, &f.framework, &f.plan), 1.25, 1e-12);
    f.device.architecture = "knl";
    check_close(dl_shared_host_endpoint_ratio(&f.system, &f.framework, &f.plan), 2, 1e-12);
    f.framework.sync.knl_endpoint_cores = 0;
    check_close(dl_shared_host_endpoint_ratio(&f.system, &f.framework, &f.plan), 1.25, 1e-12);
    f.framework.sync.endpoint_cores = 10; /* none would be left */
    check_close(dl_shared_host_endpoint_ratio(&f.system, &f.framework, &f.plan), 1, 0);
    f.device.architecture = NULL, f.framework.sync.endpoint_cores = 2;
    check_close(dl_shared_host_endpoint_ratio(&f.system, &f.framework, &f.plan), 1.25, 1e-12);
    f.plan.nodes = f.plan.devices_per_node = 1;
    check_close(dl_shared_host_endpoint_ratio(&f.system, &f.framework, &f.plan), 1, 0);
    dl_arena_free(&f.arena);
}

static bool covered(const char *version, const char *release, const char *also) {
    struct dl_framework_release of = {.name = "other"};
    struct dl_framework framework = {.release = release,
                                     .releases = &of,
                                     .release_count = 1,
                                     .versions = &also,
                                     .version_count = also != NULL};
    const struct dl_release_facts facts = {.version = version};
    bool out;
    assert_null(dl_framework_release_of(&framework, &facts, &out));
    return out;
}

static void releases_of_a_framework(void **state) {
    (void)state;
    assert_true(covered("20.03", "20.03", NULL));
    assert_true(covered("20.03-py3", "20.03", NULL));
    assert_false(covered("20.031", "20.03", NULL));
    assert_false(covered("20.03a", "20.03", NULL));
    assert_false(covered("20.0", "20.03", NULL));
    assert_false(covered("20.03", "", NULL));
    assert_true(covered("7.1", "7", NULL));
    assert_true(covered("1.8.1", "1.7", "1.8"));
    assert_false(covered("1.9", "1.7", "1.8"));
    assert_false(covered(NULL, "1.7", "1.8"));
    assert_true(covered("PyTorch 1.8", "1.7", "pytorch 1.8"));
    assert_true(covered("torch 1.8.1+cu111", "1.7", "1.8"));
    assert_true(covered("v1.8", "1.7", "1.8"));
    assert_false(covered("torch 1.80", "1.7", "1.8"));
    assert_false(covered("torch", "1.7", "1.8"));
    assert_true(covered("pytorch:20.03-py3", "1.7", "NGC 20.03"));
    assert_true(covered("20.03-py3", "1.7", "NGC 20.03"));
    assert_false(covered("20.3-py3", "1.7", "NGC 20.3")); /* neither a year and month */
    assert_false(covered("120.03", "1.7", "NGC 120.03"));
    assert_false(covered("20.031", "1.7", "NGC 20.031"));
    assert_false(covered("20-03", "1.7", "NGC 20-03"));
    const char *version = "1.8";
    struct dl_map_entry where[] = {{.key = "layout", .text = "NCHW,NHWC"},
                                   {.key = "workload", .text = "resnet50"}};
    struct dl_framework_release of = {
        .name = "r", .versions = &version, .version_count = 1, .where = where, .where_count = 2};
    struct dl_framework framework = {.release = "x", .releases = &of, .release_count = 1};
    struct dl_release_facts facts = {.version = "1.8", .layout = "NHWC", .workload = "resnet50"};
    bool out;
    assert_ptr_equal(dl_framework_release_of(&framework, &facts, &out), &of);
    facts.layout = "NHW"; /* part of a word */
    assert_null(dl_framework_release_of(&framework, &facts, &out));
    facts.layout = "NCHW";
    assert_ptr_equal(dl_framework_release_of(&framework, &facts, &out), &of);
    facts.workload = NULL;
    assert_null(dl_framework_release_of(&framework, &facts, &out));
    facts.workload = "";
    assert_null(dl_framework_release_of(&framework, &facts, &out));
    facts.workload = "resnet50:height=160"; /* parameters do not change which network it is */
    assert_ptr_equal(dl_framework_release_of(&framework, &facts, &out), &of);
    facts.workload = "resnet:50";
    assert_null(dl_framework_release_of(&framework, &facts, &out));
    facts.workload = "resnet50_v1:height=160";
    assert_null(dl_framework_release_of(&framework, &facts, &out));
    facts.workload = "resnet50", where[0].key = "precision", where[0].text = "fp32,tf32";
    assert_null(dl_framework_release_of(&framework, &facts, &out));
    facts.precision = "tf32";
    assert_ptr_equal(dl_framework_release_of(&framework, &facts, &out), &of);
    where[0].key = "color";
    assert_null(dl_framework_release_of(&framework, &facts, &out));
    where[0].key = "layout", facts.version = "1.9";
    assert_null(dl_framework_release_of(&framework, &facts, &out));
    assert_false(out);
    framework.release_count = 0;
    assert_null(dl_framework_release_of(&framework, &facts, &out));
    assert_true(out);
}

static void usual_version_of_a_run(void **state) {
    (void)state;
    const char *old[] = {"1.1", "1.2"}, *new[] = {"2.0"};
    struct dl_framework_release releases[] = {
        {.name = "first", .versions = old, .version_count = 2},
        {.name = "second", .versions = new, .version_count = 1},
        {.name = "third"},
    };
    struct dl_map_entry runs[] = {{.key = "kepler", .text = "first"},
                                  {.key = "pascal", .text = "third"},
                                  {.key = "maxwell", .text = "none"}};
    struct dl_map_entry devices[] = {{.key = "ampere", .text = "second"},
                                     {.key = "kepler", .text = "second"}};
    const struct dl_framework framework = {.releases = releases,
                                           .release_count = 3,
                                           .run_releases = runs,
                                           .run_release_count = 3,
                                           .device_releases = devices,
                                           .device_release_count = 2};
    assert_string_equal(dl_framework_usual_version(&framework, "kepler"), "1.1");
    assert_string_equal(dl_framework_usual_version(&framework, "ampere-rtx"), "2.0");
    assert_null(dl_framework_usual_version(&framework, "pascal"));  /* has no version */
    assert_null(dl_framework_usual_version(&framework, "maxwell")); /* is not described */
    assert_null(dl_framework_usual_version(&framework, "volta"));
    assert_null(dl_framework_usual_version(&framework, "kep"));
    assert_null(dl_framework_usual_version(&framework, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_version_of_a_run),  cmocka_unit_test(edges_that_are_none),
        cmocka_unit_test(worst_group_of_a_node),   cmocka_unit_test(links_follow),
        cmocka_unit_test(pieces_follow),           cmocka_unit_test(copies_of_the_host_follow),
        cmocka_unit_test(members_without_effect),  cmocka_unit_test(paths_to_the_adapter),
        cmocka_unit_test(copies_through_the_host), cmocka_unit_test(patterns_of_copies),
        cmocka_unit_test(owners_of_keys),          cmocka_unit_test(keys_beyond_the_peers),
        cmocka_unit_test(hosts_that_are_shared),   cmocka_unit_test(releases_of_a_framework)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Rings on link graphs. The cube mesh is DGX-1's with V100: each device has six NVLinks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/collective/collective.h"
#include "model/hardware/topology.h"
#include "tests/check.h"

static struct dl_edge cube_mesh[] = {
    {0, 1, 1, "nvlink2"}, {0, 2, 1, "nvlink2"}, {0, 3, 2, "nvlink2"}, {0, 4, 2, "nvlink2"},
    {1, 2, 2, "nvlink2"}, {1, 3, 1, "nvlink2"}, {1, 5, 2, "nvlink2"}, {2, 3, 2, "nvlink2"},
    {2, 6, 1, "nvlink2"}, {3, 7, 1, "nvlink2"}, {4, 5, 1, "nvlink2"}, {4, 6, 1, "nvlink2"},
    {4, 7, 2, "nvlink2"}, {5, 6, 2, "nvlink2"}, {5, 7, 1, "nvlink2"}, {6, 7, 2, "nvlink2"}};

static struct dl_system cube_mesh_system(void) {
    struct dl_system system = {.name = "cube mesh",
                               .nodes = 1,
                               .devices_per_node = 8,
                               .has_intra = true,
                               .has_host = true};
    system.host.copy_bandwidth_bytes_per_s = 11e9;
    system.host.memory_bandwidth_bytes_per_s = NAN;
    system.intra = (struct dl_link){.kind = "nvlink2",
                                    .bandwidth_bytes_per_s = NAN,
                                    .latency_s = NAN,
                                    .channels = DL_ABSENT,
                                    .channel_bandwidth_bytes_per_s = NAN,
                                    .edges = cube_mesh,
                                    .edge_count = 16,
                                    .peer_group = DL_ABSENT,
                                    .cross_bandwidth_bytes_per_s = NAN,
                                    .peer_to_peer = true};
    dl_topology_fill(&system.intra, 8);
    return system;
}

/* 2: one link. 3: the cycle 0-1-2, both ways. 4: 0-1-2-3 and 0-2-1-3. 5: device 4 hangs on device 0
 * alone. 6: the one link 4-5 is in every cycle. 7: devices 4 and 6 have four links each. 8: six
 * links each, three cycles. */
static void rings_of_the_cube_mesh(void **state) {
    (void)state;
    static const int rings[9] = {0, 0, 1, 2, 4, 0, 2, 4, 6};
    struct dl_system system = cube_mesh_system();
    for (int n = 2; n <= 8; n++) {
        assert_int_equal(system.intra.ring_channels[n], rings[n]);
        assert_true(system.intra.connected[n]);
    }
    assert_int_equal(dl_topology_rings(cube_mesh, 16, 1), 0);
    assert_int_equal(dl_topology_rings(cube_mesh, 16, 9), 0);
    assert_false(dl_topology_connected(cube_mesh, 16, 9));
}

/* Links to devices that are not counted add no ring: the six of eight devices stay. */
static void links_outside(void **state) {
    (void)state;
    struct dl_edge edges[20];
    memcpy(edges, cube_mesh, sizeof cube_mesh);
    edges[16] = (struct dl_edge){DL_LINK_DEVICES, 0, 9, "nvlink2"};
    edges[17] = (struct dl_edge){0, DL_LINK_DEVICES, 9, "nvlink2"};
    edges[18] = (struct dl_edge){1, 1, 9, "nvlink2"};
    edges[19] = (struct dl_edge){3, 8, 9, "nvlink2"};
    assert_int_equal(dl_topology_rings(edges, 20, 8), 6);
    assert_int_equal(dl_topology_rings(edges, 20, 4), 4);
}

/* Full mesh of 4 with double links (C4140): six links each, three cycles. A path: connected, no
 * ring. */
static void other_graphs(void **state) {
    (void)state;
    struct dl_edge mesh[6], path[] = {{0, 1, 2, ""}, {1, 2, 2, ""}};
    int count = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) mesh[count++] = (struct dl_edge){i, j, 2, ""};
    assert_int_equal(dl_topology_rings(mesh, 6, 4), 6);
    assert_int_equal(dl_topology_rings(mesh, 6, 3), 4);
    assert_int_equal(dl_topology_rings(mesh, 6, 2), 2);
    assert_int_equal(dl_topology_rings(path, 2, 3), 0);
    assert_true(dl_topology_connected(path, 2, 3));
}

/* Measured with 1 GiB over 2 to 8 V100 (vTrain tables): 22.55 45.14 85.36 37.17 45.74 87.01 134.5
 * GB/s on the bus. The graph alone gives them: not monotonic, with 5 devices below 4. */
static void bus_bandwidth_is_not_monotonic(void **state) {
    (void)state;
    static const double measured[9] = {0, 0, 22.55, 45.14, 85.36, 37.17, 45.74, 87.01, 134.5};
    struct dl_system system = cube_mesh_system();
    for (int n = 2; n <= 8; n++) {
        struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                          .library = DL_LIB_NCCL,
                                          .bytes = 1073741824.0,
                                          .nodes = 1,
                                          .ranks_per_node = n,
                                          .flows_per_adapter = 1};
        struct dl_collective_time t;
        assert_int_equal(dl_collective_time(&system, &r, &t, NULL), DL_OK);
        check_close(1.073741824 / t.time_s * 2.0 * (n - 1) / n, measured[n], 0.12);
    }
}

/* Four devices, every pair with two links of 20 GB/s: six rings, 120 GB/s in all. A message between
 * two of them by MPI on device memory has the pair's two links, 40 GB/s: 100 MB in 2.5 ms and a
 * latency. NCCL held to two rings takes 1.5 x 120 MB / 40 GB/s = 4.5 ms, with all six 1.5. */
static void pairs_and_fewer_rings(void **state) {
    (void)state;
    struct dl_edge mesh[6];
    int count = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) mesh[count++] = (struct dl_edge){j, i, 2, "nvlink2"};
    struct dl_system system = cube_mesh_system();
    system.devices_per_node = 4;
    system.nccl_version = "2.4.8";
    system.intra.edges = mesh, system.intra.edge_count = count;
    system.intra.bandwidth_bytes_per_s = 120e9, system.intra.latency_s = 2e-6;
    dl_topology_fill(&system.intra, 4);
    struct dl_collective_request request = {.op = DL_COLL_P2P,
                                            .library = DL_LIB_MPI,
                                            .bytes = 100e6,
                                            .nodes = 1,
                                            .ranks_per_node = 2,
                                            .flows_per_adapter = 1,
                                            .device_direct = true};
    struct dl_collective_time t;
    struct dl_err err = {0};
    if (dl_collective_time(&system, &request, &t, &err) != DL_OK) fail_msg("%s", err.message);
    check_close(t.bandwidth_s, 2.5e-3, 1e-9);
    request = (struct dl_collective_request){.op = DL_COLL_ALL_REDUCE,
                                             .library = DL_LIB_NCCL,
                                             .bytes = 120e6,
                                             .nodes = 1,
                                             .ranks_per_node = 4,
                                             .flows_per_adapter = 1};
    assert_int_equal(dl_collective_time(&system, &request, &t, &err), DL_OK);
    check_close(t.time_s, 1.5e-3, 0.1);
    system.intra.channels = 2;
    assert_int_equal(dl_collective_time(&system, &request, &t, &err), DL_OK);
    check_close(t.time_s, 4.5e-3, 0.1);
    system.intra.channels = 12; /* more than the links allow: as they do */
    assert_int_equal(dl_collective_time(&system, &request, &t, &err), DL_OK);
    check_close(t.time_s, 1.5e-3, 0.1);
}

/* One device, none, or more than a node holds have no ring, whatever links there are. */
static void rings_of_no_group(void **state) {
    (void)state;
    const struct dl_edge edges[] = {{.from = 0, .to = 1, .links = 2},
                                    {.from = 0, .to = 0, .links = 4}};
    assert_int_equal(dl_topology_rings(edges, 2, 2), 2);
    assert_int_equal(dl_topology_rings(edges, 2, 1), 0);
    assert_int_equal(dl_topology_rings(edges, 2, 0), 0);
    assert_int_equal(dl_topology_rings(edges, 2, DL_LINK_DEVICES + 1), 0);
    assert_true(dl_topology_connected(edges, 2, 1));
    assert_true(dl_topology_connected(edges, 2, 2));
    assert_false(dl_topology_connected(edges, 2, 3));
    assert_false(dl_topology_connected(edges, 2, 0));
    assert_false(dl_topology_connected(edges, 2, DL_LINK_DEVICES + 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_and_fewer_rings), cmocka_unit_test(rings_of_the_cube_mesh),
        cmocka_unit_test(links_outside),         cmocka_unit_test(other_graphs),
        cmocka_unit_test(rings_of_no_group),     cmocka_unit_test(bus_bandwidth_is_not_monotonic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

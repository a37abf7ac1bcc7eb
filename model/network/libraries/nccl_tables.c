/* nccl_tables.c - NCCL's constants by version (key "nccl-tuning": src/graph/tuning.cc of each
 * release; us). A release that was not read takes the numbers of the one before. */
#include "model/network/libraries/nccl.h"

const struct dl_collective_algorithm dl_nccl_algorithms[] = {
    [DL_NCCL_TREE] = {"tree", "two complementary binary trees between nodes, chains inside",
                      DL_ON(ALL_REDUCE), "F-NCCL", "nccl-tuning"},
    [DL_NCCL_RING] = {"ring", "blocks passed around rings, one for each channel",
                      DL_ON(ALL_REDUCE) | DL_ON(BROADCAST) | DL_ON(REDUCE) | DL_ON(ALL_GATHER) |
                          DL_ON(REDUCE_SCATTER),
                      "F-NCCL", "nccl-tuning"},
    [DL_NCCL_COLLNET_DIRECT] = {"collnet_direct",
                                "in-network reduction (SHARP), all devices of a node directly",
                                DL_ON(ALL_REDUCE), "F-NCCL", "nccl-tuning"},
    [DL_NCCL_COLLNET_CHAIN] = {"collnet_chain",
                               "in-network reduction (SHARP), devices of a node in a chain",
                               DL_ON(ALL_REDUCE), "F-NCCL", "nccl-tuning"},
    [DL_NCCL_NVLS] = {"nvls", "reduction and multicast in the NVSwitch of a node",
                      DL_ON(ALL_REDUCE), "F-NCCL", "nccl-tuning"},
    [DL_NCCL_NVLS_TREE] = {"nvls_tree", "reduction in the NVSwitch of each node, trees between",
                           DL_ON(ALL_REDUCE), "F-NCCL", "nccl-tuning"},
    [DL_NCCL_PAT] = {"pat", "parallel aggregated trees, one device per node",
                     DL_ON(ALL_GATHER) | DL_ON(REDUCE_SCATTER), "F-NCCL", "nccl-tuning"},
    [DL_NCCL_SENDS] = {"sends", "messages to all peers, over links and adapters at once",
                       DL_ON(P2P) | DL_ON(ALL_TO_ALL) | DL_ON(GATHER) | DL_ON(SCATTER) |
                           DL_ON(HALO),
                       "F-NCCL-SENDS", "nccl-source"},
    {.name = NULL}};
const char *const dl_nccl_protocol_names[] = {"LL", "LL128", "Simple", NULL};

/* clang-format off */
#define BASE_OLD {{4.4, 4.4, 0.0}, {3.6, 3.6, 8.4}}
#define BASE_27 {{4.4, 4.4, 0.0}, {3.6, 10.0, 8.4}}
#define BASE_218 {{6.8, 14.0, 0.0}, {6.6, 14.0, 8.4}}
#define PCI {{1.0, 1.9, 28.0}, {1.0, 2.5, 5.7}}
/* clang-format on */

static const struct dl_nccl_latencies v2_5 = {
    BASE_OLD, {{.5, 1.9, 28.0}, {.4, 2.5, 5.7}}, PCI, {{5.0, 7.5, 50.0}, {.9, 2.5, 6.6}}};
static const struct dl_nccl_latencies v2_7 = {
    BASE_27, {{.52, 1.2, 28.0}, {.47, 1.9, 3.4}}, PCI, {{5.0, 8.5, 50.0}, {2.7, 4.0, 9.6}}};
static const struct dl_nccl_latencies v2_8 = {
    BASE_27, {{.52, 1.25, 28.0}, {.47, 1.9, 3.4}}, PCI, {{5.0, 8.5, 28.0}, {2.7, 4.0, 9.6}}};
static const struct dl_nccl_latencies v2_12 = {
    BASE_27, {{.52, 1.25, 28.0}, {.47, 1.9, 3.4}}, PCI, {{5.0, 8.5, 28.0}, {2.7, 4.0, 28.0}}};
static const struct dl_nccl_latencies v2_18_1 = {
    BASE_218, {{.6, 1.25, 28.0}, {.6, 1.9, 3.4}}, PCI, {{5.0, 8.5, 28.0}, {2.7, 4.0, 14.0}}};
static const struct dl_nccl_latencies v2_18_3 = {BASE_218,
                                                 {{.6, 1.25, 4.0}, {.6, 1.9, 3.4}},
                                                 {{1.0, 1.9, 6.0}, {1.0, 2.5, 5.7}},
                                                 {{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}}};
static const struct dl_nccl_latencies v2_23 = {{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}},
                                               {{.6, 1.25, 4.0}, {.6, 1.9, 3.4}},
                                               {{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}},
                                               {{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}}};

/* 2.0 to 2.4 published no latencies; they take those of 2.5, which has the same code paths. */
const struct dl_nccl_version dl_nccl_versions[] = {{0, "2.0", &v2_5},
                                                   {400, "2.4", &v2_5},
                                                   {500, "2.5", &v2_5},
                                                   {600, "2.6", &v2_5},
                                                   {700, "2.7", &v2_7},
                                                   {800, "2.8", &v2_8},
                                                   {1200, "2.12", &v2_12},
                                                   {1400, "2.14", &v2_8},
                                                   {1700, "2.17", &v2_8},
                                                   {1800, "2.18.1", &v2_18_1},
                                                   {1803, "2.18.3", &v2_18_3},
                                                   {1900, "2.19", &v2_18_1},
                                                   {2100, "2.21", &v2_18_1},
                                                   {2300, "2.23", &v2_23},
                                                   {2400, "2.24", &v2_23},
                                                   {2800, "2.28", &v2_23},
                                                   {0, NULL, NULL}};

const struct dl_nccl_version *dl_nccl_version_find(const char *text, int *number_out) {
    int parts[3] = {0, 0, 0}, part = 0;
    const char *at = text;
    for (; part < 3 && *at >= '0' && *at <= '9'; part++) {
        for (; *at >= '0' && *at <= '9'; at++)
            if (parts[part] < 100) parts[part] = parts[part] * 10 + (*at - '0');
        if (*at == '.') at++;
    }
    if (parts[0] != 2) return NULL;
    int number = parts[1] * 100 + (parts[2] > 99 ? 99 : parts[2]);
    const struct dl_nccl_version *row = dl_nccl_versions;
    while (row[1].text != NULL && row[1].first <= number) row++;
    *number_out = number;
    return row;
}

/* [generation]; the rows of the fit deviate by 3 to 11 % rms, sends by 7 to 24 %. Blackwell: LL128
 * and the start of short messages in the switch are Hopper's (borrowed), their rate is of B200 at
 * 32 MiB. */
static const struct dl_nccl_attained attained[DL_NCCL_GENERATIONS] = {
    [DL_NCCL_AMPERE] = {.ll_base_us = 9.39,
                        .ll_hop_us = 0.96,
                        .simple_base_us = 29.7,
                        .simple_hop_us = 6.18,
                        .ll128_frac = 0.58,
                        .copy_s_per_byte = 2.04e-12,
                        .sends_us = 12.7,
                        .sends_bytes_per_s = 86e9,
                        .sends_frac = 0.94},
    [DL_NCCL_HOPPER] = {.ll_base_us = 4.90,
                        .ll_hop_us = 0.89,
                        .simple_base_us = 24.6,
                        .simple_hop_us = 1.19,
                        .ll128_frac = 0.78,
                        .copy_s_per_byte = 1.40e-12,
                        .nvls_us = 67.0,
                        .nvls_short_us = 29.0,
                        .nvls_short_frac = 0.69,
                        .sends_us = 8.6,
                        .sends_bytes_per_s = 144e9,
                        .sends_frac = 1.0},
    [DL_NCCL_BLACKWELL] = {.ll_base_us = 7.93,
                           .ll_hop_us = 1.39,
                           .simple_base_us = 12.2,
                           .simple_hop_us = 4.68,
                           .ll128_frac = 0.78,
                           .copy_s_per_byte = 1.01e-12,
                           .nvls_us = 94.0,
                           .nvls_short_us = 29.0,
                           .nvls_short_frac = 0.53,
                           .sends_us = 11.2,
                           .sends_bytes_per_s = 179e9,
                           .sends_frac = 0.71}};

const struct dl_nccl_attained dl_rccl_attained = {
    .ll_base_us = 13.7, .simple_base_us = 60.0, .ll128_us = 20.4, .ll128_frac = 0.72};

const struct dl_nccl_attained *dl_nccl_attained_of(enum dl_nccl_generation generation) {
    return attained[generation].ll_base_us > 0.0 ? &attained[generation] : NULL;
}

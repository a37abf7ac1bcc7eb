/* nccl_caps.h - corrections and caps of NCCL's cost model, for nccl.c alone. */
#ifndef DL_MODEL_NETWORK_LIBRARIES_NCCL_CAPS_H
#define DL_MODEL_NETWORK_LIBRARIES_NCCL_CAPS_H

#include "model/network/libraries/nccl.h"

enum { TREE_BINS = 23 };
/* Tree correction by floor(lg(S / 64)): 64 B to 256 MB; 1 beyond. */
static const double tree_correction[DL_NCCL_PROTOCOLS][TREE_BINS] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};
/* Up to 2.7, to 128 MB. */
static const double tree_correction_2_7[DL_NCCL_PROTOCOLS][TREE_BINS] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9, 1}};

/* Bandwidth caps in GB/s, [generation][one node, two nodes, more]. */
static const double ll_max[DL_NCCL_GENERATIONS][3] = {
    {39, 39, 20.4}, {87.7, 22.5, 19}, {87.7, 22.5, 19}, {282, 90, 70}};
static const double ll_max_2_21[3] = {141, 45, 35}; /* Hopper from 2.21 */
/* Blackwell from 2.28 */
static const double tree_cap_2_28[3] = {70, 42.8, 24}, tree_ll128_cap_2_28[3] = {55.6, 31.67, 20};
static const double tree_cap[DL_NCCL_GENERATIONS][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {77.4, 82.8, 72}};
static const double ring_ll128_cap[DL_NCCL_GENERATIONS] = {20, 20, 36.7, 73.4};
static const double tree_ll128_cap[DL_NCCL_GENERATIONS][3] = {
    {20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {73.4, 73.4, 58}};
/* NCCL 2.5 to 2.7: LL128 caps in GB/s, of the whole operation (2.5, 2.6) and per channel (2.7). */
struct ll128_old {
    double bandwidth, rate; /* GB/s: of the whole operation, of a channel */
};
static const struct ll128_old ll128_old_caps[DL_COLL_OPS] = {[DL_COLL_ALL_REDUCE] = {100, 16.7},
                                                             [DL_COLL_BROADCAST] = {113, 18.8},
                                                             [DL_COLL_REDUCE] = {72, 12},
                                                             [DL_COLL_ALL_GATHER] = {110, 18.3},
                                                             [DL_COLL_REDUCE_SCATTER] = {91, 15.2}};

#endif

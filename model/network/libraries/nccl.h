/* nccl.h - NCCL's own cost model and choice (F-NCCL), by version. Source: NCCL's
 * src/graph/tuning.cc and src/enqueue.cc, key "nccl-tuning" of data/SOURCES.md. Not modelled: fewer
 * channels for small messages, aggregation of several operations in one group, user buffer
 * registration.
 */
#ifndef DL_MODEL_NETWORK_LIBRARIES_NCCL_H
#define DL_MODEL_NETWORK_LIBRARIES_NCCL_H

#include "model/network/coll_internal.h"

enum dl_nccl_algorithm {
    DL_NCCL_TREE,
    DL_NCCL_RING,
    DL_NCCL_COLLNET_DIRECT,
    DL_NCCL_COLLNET_CHAIN,
    DL_NCCL_NVLS,
    DL_NCCL_NVLS_TREE,
    DL_NCCL_PAT,
    DL_NCCL_ALGORITHMS, /* that rings and trees choose from */
    DL_NCCL_SENDS = DL_NCCL_ALGORITHMS
};
extern const struct dl_collective_algorithm dl_nccl_algorithms[]; /* ends with name NULL */
enum dl_nccl_protocol { DL_NCCL_LL, DL_NCCL_LL128, DL_NCCL_SIMPLE, DL_NCCL_PROTOCOLS };
extern const char *const dl_nccl_protocol_names[]; /* "LL", "LL128", "Simple", NULL */
enum dl_nccl_generation {
    DL_NCCL_VOLTA,
    DL_NCCL_AMPERE,
    DL_NCCL_HOPPER,
    DL_NCCL_BLACKWELL,
    DL_NCCL_GENERATIONS
};

/* Latencies in us (as NCCL prints them) [tree, ring][LL, LL128, Simple]. */
struct dl_nccl_latencies {
    double base_us[2][3], nvlink_us[2][3], pci_us[2][3], net_us[2][3];
};
/* A span of versions with the same constants; first: minor * 100 + patch (2.18.3 is 1803). */
struct dl_nccl_version {
    int first;
    const char *text; /* "2.18.3" */
    const struct dl_nccl_latencies *latencies;
};
/* The span that holds `text` ("2.18.3", "2.8"); NULL: unknown. Before 2.4 the first row serves
 * (rings only). */
const struct dl_nccl_version *dl_nccl_version_find(const char *text, int *number_out);
extern const struct dl_nccl_version dl_nccl_versions[]; /* ascending, ends with text NULL */

/* F-NCCL-ATTAINED: what NCCL's kernels attain on the links of a generation of GPUs behind NVSwitch,
 * in place of the constants by which NCCL chooses. tools/fit_nccl.py fits them to
 * nccl-tests of published_2.csv (key "aiconfigurator"; LL128 and short messages in the switch:
 * "vidur"; NVLS of Hopper: "mlperf-nccl"; RCCL: "rccl-mi300x"). */
struct dl_nccl_attained {
    double ll_base_us, ll_hop_us;         /* ring of LL: start, one step inside a node */
    double simple_base_us, simple_hop_us; /* of Simple: start with the filling of its buffers */
    double ll128_us;                      /* start of LL128, all steps; 0: NCCL's latencies */
    double ll128_frac;                    /* bandwidth of LL128 inside a node / that of the links */
    double copy_s_per_byte;               /* of a rank's own block, which it also copies or reads */
    /* in-switch reduction: start and rate / NCCL's rate; small chunks of short messages start
     * sooner and move slower */
    double nvls_us, nvls_short_us, nvls_short_frac;
    double sends_us, sends_bytes_per_s; /* short sends inside a node: start, rate of all bytes */
    double sends_frac;                  /* bandwidth of long sends / that of a ring */
};
/* By the generation of NVIDIA's GPUs; NULL: not measured. */
const struct dl_nccl_attained *dl_nccl_attained_of(enum dl_nccl_generation generation);
/* RCCL over Infinity Fabric (MI300X), measured over 8 devices alone: starts hold all steps, and
 * sends are not known (sends_us 0). */
extern const struct dl_nccl_attained dl_rccl_attained;

/* What NCCL's topology search would find. */
struct dl_nccl_graph {
    const struct dl_nccl_attained *attained; /* NULL: NCCL's own constants */
    double ranks, nodes;                     /* ranks per node = ranks / nodes */
    double channels, tree_channels;
    double ring_bytes_per_s, tree_bytes_per_s; /* of one channel */
    double net_latency_s;                      /* of the adapter, in addition to NCCL's constant */
    double attained_frac; /* rate of the limiting links / the rate that NCCL assumes; 0: 1 */
    enum dl_nccl_generation generation;
    bool nvlink;        /* devices of a node communicate over NVLink, else PCIe */
    bool amd_host;      /* an AMD CPU */
    bool ll128;         /* LL128 is safe on all paths */
    bool nvls, collnet; /* reduction in the NVSwitch; in-network reduction (SHARP) */
    /* link that limits rings, trees, messages inside a node, those that leave it: as in
     * dl_collective_time */
    const char *limit, *tree_limit, *inside_limit, *outside_limit;
};

/* The graph of a caller's last rank set, with everything that it depends on. */
struct dl_nccl_memo {
    const struct dl_system *system; /* NULL: nothing yet */
    const struct dl_nccl_version *row;
    int64_t nodes, ranks_per_node, domain_nodes, group_stride, concurrent, node_stride, span_nodes;
    double flows_per_adapter;
    enum dl_collective_op op;
    int number;
    bool allow_decreasing, assumed;
    struct dl_nccl_graph graph;
};

/* One operation of one release on one graph. */
struct dl_nccl_operation {
    int version; /* minor * 100 + patch */
    const struct dl_nccl_version *row;
    const struct dl_nccl_graph *graph;
    enum dl_collective_op op;
    double bytes;
    bool monotone; /* for predictions: the tree's correction factor never makes a longer message
                      faster; false: NCCL's formula to the letter */
};

/* Sets *out to the cost of one algorithm and protocol, by NCCL's own constants, and returns true;
 * false when the combination does not exist. */
bool dl_nccl_cost(const struct dl_nccl_operation *operation, enum dl_nccl_algorithm algorithm,
                  enum dl_nccl_protocol protocol, struct dl_cost_parts *out);

/* Chooses the cheapest combination by NCCL's own constants and rates of its links and sets *out to
 * its attained cost. A monotone operation with measured constants (graph->attained) chooses by
 * these, so that a longer message never takes less time where NCCL's choice is not the best.
 * force_* impose an algorithm or protocol (-1: free). False: no combination exists. */
bool dl_nccl_choose(const struct dl_nccl_operation *operation, int force_algorithm,
                    int force_protocol, enum dl_nccl_algorithm *algorithm,
                    enum dl_nccl_protocol *protocol, struct dl_cost_parts *out);

/* F-NCCL-GRAPH: the graph for a request, from the links of the system. DL_ERR_INPUT when a link is
 * missing. */
enum dl_code dl_nccl_graph_build(const struct dl_system *system,
                                 const struct dl_collective_request *request,
                                 struct dl_nccl_graph *out, struct dl_err *err);

/* Sets system->nccl. The loader calls it to save time; results do not depend on it. */
void dl_nccl_prepare(struct dl_system *system);

/* NCCL's version: system->nccl_version, else the usual one of the device's generation, with
 * *assumed set. */
const struct dl_nccl_version *dl_nccl_version_of(const struct dl_system *system, int *number_out,
                                                 bool *assumed);

#endif

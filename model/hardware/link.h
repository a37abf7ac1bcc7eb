/* link.h - the fabric: links between devices of a node, and between nodes. Bandwidths are per
 * direction.
 */
#ifndef DL_MODEL_HARDWARE_LINK_H
#define DL_MODEL_HARDWARE_LINK_H

#include "model/base/json.h"

/* Two devices joined by `links` parallel links. */
struct dl_edge {
    int64_t from, to, links;
    const char *kind;
};

enum { DL_LINK_DEVICES = 16 }; /* devices of a node whose link graph is searched for rings */

enum { DL_GROUP_UNKNOWN = 0, DL_GROUP_APART = -1, DL_GROUP_CHAIN = -2 };

/* One measured or fitted piece: messages up to max_bytes cost alpha_s + bytes * beta_s_per_byte. */
struct dl_piece {
    double max_bytes, alpha_s, beta_s_per_byte;
};

struct dl_link {
    /* "nvlink1".."nvlink5", "nvswitch", "pcie2".."pcie5", "qpi", "upi", "xbus", "shm",
     * "infiniband", "ethernet", "omnipath", "aries", "efa", "loopback" */
    const char *kind;
    const char *source;
    /* attained payload. intra: what one device can send to its peers in a ring; inter: one adapter
     */
    double bandwidth_bytes_per_s;
    /* one small message, one way, hardware and transport (verbs, TCP) */
    double latency_s;
    /* intra */
    /* rings that NCCL builds; DL_ABSENT: derived */
    int64_t channels;
    double channel_bandwidth_bytes_per_s;
    /* link graph where it is not uniform (DGX-1 cube mesh) */
    struct dl_edge *edges;
    int edge_count;
    /* devices that reach each other without crossing sockets; DL_ABSENT: all */
    int64_t peer_group;
    /* between peer groups (QPI, UPI), shared by all flows */
    double cross_bandwidth_bytes_per_s;
    /* devices copy to each other without host staging */
    bool peer_to_peer;
    /* inter */
    int64_t adapters_per_node;
    /* verbs-like transport; false: TCP through the kernel */
    bool rdma;
    /* what NCCL attains where it cannot use the adapter as MPI can (sockets); NAN: the same */
    double nccl_bandwidth_bytes_per_s;
    /* adapter reads device memory */
    bool gpudirect;
    /* GPU to adapter: "PIX","PXB","PHB","NODE","SYS" */
    const char *distance;
    /* TCP stacks: host time per message */
    double per_message_cpu_s;
    /* neither measured here nor from documentation: predictions say so */
    bool assumed;
    /* point to point, ascending max_bytes; measured first */
    struct dl_piece *pieces;
    int piece_count;
    struct dl_map_entry *sources;
    int source_count;
    /* choices between sources that disagree; free text */
    const char *comment;
    /* derived from edges by dl_topology_fill(); [n]: over devices 0..n-1. All 0 without edges. */
    /* link-disjoint rings, each direction of a ring counted once */
    int ring_channels[DL_LINK_DEVICES + 1];
    /* a spanning tree of links exists */
    bool connected[DL_LINK_DEVICES + 1];
    /* [stride][n]: rings of the worst placed group of n devices that stand `stride` apart, when
     * such groups fill the node: DL_GROUP_UNKNOWN, DL_GROUP_APART (no links join them),
     * DL_GROUP_CHAIN (joined, but no ring closes) or how many */
    int group_channels[DL_LINK_DEVICES + 1][DL_LINK_DEVICES + 1];
};

extern const struct dl_schema dl_link_schema;
extern const struct dl_schema dl_piece_schema;

/* Checks across members of the link at `path` ("links.intra") of a document; `devices`: of one
 * node. */
enum dl_code dl_link_check(const struct dl_link *link, int64_t devices, const struct dl_json *doc,
                           const char *path, struct dl_err *err);
/* Pieces ascend in max_bytes, for a list at `path`. */
enum dl_code dl_pieces_check(const struct dl_piece *pieces, int piece_count,
                             const struct dl_json *doc, const char *path, struct dl_err *err);

#endif

/* link.h - links between the devices of a node, and between nodes. Bandwidths are per direction.
 */
#ifndef DL_MODEL_MACHINE_LINK_H
#define DL_MODEL_MACHINE_LINK_H

#include "model/core/json.h"

/* Two devices joined by `links` parallel links. */
struct dl_edge {
    int64_t from, to, links;
    const char *kind;
};

enum { DL_LINK_DEVICES = 16 }; /* largest link graph that is searched for rings */

/* Values of group_channels that are not a number of rings: not searched; no links join the
 * devices; they are joined, but no ring closes. */
enum { DL_GROUP_UNKNOWN = 0, DL_GROUP_APART = -1, DL_GROUP_CHAIN = -2 };

/* One measured or fitted piece: messages up to max_bytes cost alpha_s + bytes * beta_s_per_byte. */
struct dl_piece {
    double max_bytes, alpha_s, beta_s_per_byte;
};

struct dl_link {
    /* "nvlink1".."nvlink5", "nvswitch", "infinity" (AMD), "pcie2".."pcie5", "qpi", "upi",
     * "xbus", "shm", "infiniband", "ethernet", "omnipath", "aries", "slingshot", "efa",
     * "loopback" */
    const char *kind;
    const char *source;
    double bandwidth_bytes_per_s; /* attained payload; intra: of one device in a ring;
                                     inter: of one adapter */
    double latency_s; /* one small message, one way, hardware and transport (verbs, TCP) */

    /* intra */
    int64_t channels; /* rings that NCCL builds; DL_ABSENT: derived */
    double channel_bandwidth_bytes_per_s;
    struct dl_edge *edges; /* link graph where it is not uniform (DGX-1 cube mesh) */
    int edge_count;
    int64_t peer_group; /* devices that reach each other within a socket; DL_ABSENT: all */
    double cross_bandwidth_bytes_per_s; /* between peer groups (QPI, UPI), shared by all flows */
    bool peer_to_peer;                  /* devices copy to each other without host staging */
    int64_t domain_nodes; /* nodes whose devices the links join, one switch domain (NVL72: 18 trays
                             of 4); DL_ABSENT: 1 */

    /* inter */
    int64_t adapters_per_node;
    bool rdma;                         /* verbs-like transport; false: TCP through the kernel */
    double nccl_bandwidth_bytes_per_s; /* NCCL's where it cannot use the adapter as MPI can
                                          (sockets); NAN: the same */
    double flow_bandwidth_bytes_per_s; /* of one TCP connection, where the network limits it; NAN:
                                          the adapter's */
    int64_t sockets_per_ring;          /* that NCCL opens on such machines; DL_ABSENT: 1 */
    bool gpudirect;                    /* the adapter reads device memory */
    bool sockets_instead;     /* derived: a plan uses sockets on adapters described with verbs */
    const char *distance;     /* GPU to adapter: "PIX","PXB","PHB","NODE","SYS" */
    double per_message_cpu_s; /* TCP stacks: host time per message */

    bool assumed;            /* neither measured here nor documented: predictions say so */
    struct dl_piece *pieces; /* measured point to point, ascending max_bytes */
    int piece_count;
    struct dl_map_entry *sources;
    int source_count;
    const char *comment; /* free text: how conflicting sources were weighed */

    /* Derived from edges by dl_topology_fill(); [n]: over devices 0..n-1. All 0 without edges. */
    int ring_channels[DL_LINK_DEVICES + 1]; /* link-disjoint rings, each direction counted once */
    bool connected[DL_LINK_DEVICES + 1];    /* a spanning tree of links exists */
    /* [stride][n]: rings of the worst placed group of n devices, `stride` apart, when such groups
     * fill the node; or DL_GROUP_* */
    int group_channels[DL_LINK_DEVICES + 1][DL_LINK_DEVICES + 1];
};

extern const struct dl_schema dl_link_schema;
extern const struct dl_schema dl_piece_schema;

/* Checks conditions between members of the link at `path` ("links.intra") of a document; `devices`:
 * of one node. DL_ERR_INPUT names the member. */
enum dl_code dl_link_check(const struct dl_link *link, int64_t devices, const struct dl_json *doc,
                           const char *path, struct dl_err *err);
/* Checks that the pieces at `path` ascend in max_bytes. */
enum dl_code dl_pieces_check(const struct dl_piece *pieces, int piece_count,
                             const struct dl_json *doc, const char *path, struct dl_err *err);

#endif

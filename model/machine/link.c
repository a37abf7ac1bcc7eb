/* link.c - fields of a link and their checks. */
#include "model/machine/link.h"

#include <stdio.h>
#include <string.h>

#include "model/core/provenance.h"

#define STRING(member, need, text)                                                                 \
    DL_FIELD(struct dl_link, member, STRING, .required = need, .help = text)
#define NUMBER(member, low, high, measure, text)                                                   \
    DL_FIELD(struct dl_link, member, NUMBER, DL_RANGE(low, high, measure), .help = text)
#define INTEGER(member, low, high, text)                                                           \
    DL_FIELD(struct dl_link, member, INTEGER, DL_RANGE(low, high, DL_UNIT_COUNT), .help = text)
#define FLAG(member, text) DL_FIELD(struct dl_link, member, BOOL, .help = text)

static const struct dl_field edge_fields[] = {
    DL_FIELD(struct dl_edge, from, INTEGER, DL_RANGE(0, 1023, DL_UNIT_NONE), .required = true,
             .help = "device, counted from 0"),
    DL_FIELD(struct dl_edge, to, INTEGER, DL_RANGE(0, 1023, DL_UNIT_NONE), .required = true,
             .help = "the other device, counted from 0"),
    DL_FIELD(struct dl_edge, links, INTEGER, DL_RANGE(1, 64, DL_UNIT_NONE), .required = true,
             .help = "parallel links between the two"),
    DL_FIELD(struct dl_edge, kind, STRING,
             .help = "kind of these links; absent: that of the link object"),
    {.key = NULL},
};

static const struct dl_schema edge_schema = {
    .name = "edge",
    .summary = "two devices of a node and the links between them",
    .size = sizeof(struct dl_edge),
    .fields = edge_fields,
};

static const struct dl_field piece_fields[] = {
    DL_FIELD(struct dl_piece, max_bytes, NUMBER, DL_RANGE(0, 1e18, DL_UNIT_BYTE), .required = true,
             .help = "largest message of this piece"),
    DL_FIELD(struct dl_piece, alpha_s, NUMBER, DL_RANGE(0, 10, DL_UNIT_S), .required = true,
             .help = "start-up time of a message"),
    DL_FIELD(struct dl_piece, beta_s_per_byte, NUMBER, DL_RANGE(0, 1, DL_UNIT_S_PER_BYTE),
             .required = true, .help = "seconds per byte"),
    {.key = NULL},
};

const struct dl_schema dl_piece_schema = {
    .name = "piece",
    .summary = "messages up to max_bytes cost alpha_s + bytes * beta_s_per_byte",
    .size = sizeof(struct dl_piece),
    .fields = piece_fields,
};

static const struct dl_field link_fields[] = {
    STRING(kind, true,
           "nvlink1..nvlink5, nvswitch, pcie3.., shm, infiniband, ethernet, omnipath, aries, efa"),
    STRING(source, false, "key of data/SOURCES.md for numbers without their own"),
    NUMBER(
        bandwidth_bytes_per_s, 1e3, 1e15, DL_UNIT_BYTE_PER_S,
        "attained payload, one direction; intra: of one device in a ring, inter: of one adapter"),
    NUMBER(latency_s, 0, 1, DL_UNIT_S,
           "time of one small message, one way, hardware and transport"),
    INTEGER(channels, 1, 64, "rings that NCCL builds over all devices; absent: derived"),
    NUMBER(channel_bandwidth_bytes_per_s, 1e3, 1e15, DL_UNIT_BYTE_PER_S,
           "bandwidth of one such ring"),
    DL_FIELD(struct dl_link, edges, LIST, .count_offset = offsetof(struct dl_link, edge_count),
             .child = &edge_schema,
             .help = "links between single devices, where they are not uniform"),
    INTEGER(peer_group, 1, 1024,
            "devices that reach each other without crossing sockets; absent: all"),
    NUMBER(cross_bandwidth_bytes_per_s, 1e3, 1e15, DL_UNIT_BYTE_PER_S,
           "bandwidth between peer groups, shared by all flows"),
    FLAG(peer_to_peer, "devices copy to each other without host staging"),
    INTEGER(domain_nodes, 1, 1024,
            "nodes whose devices these links join (NVL72: 18 trays of 4); absent: 1"),
    INTEGER(adapters_per_node, 1, 64, "network adapters of a node"),
    FLAG(rdma, "verbs-like transport; false: TCP through the kernel"),
    NUMBER(nccl_bandwidth_bytes_per_s, 1e3, 1e15, DL_UNIT_BYTE_PER_S,
           "bandwidth for NCCL where it cannot use the adapter as MPI can (sockets); absent: the "
           "same"),
    NUMBER(flow_bandwidth_bytes_per_s, 1e3, 1e15, DL_UNIT_BYTE_PER_S,
           "limit of one TCP connection; absent: that of the adapter"),
    INTEGER(sockets_per_ring, 1, 256,
            "TCP connections that NCCL 2.4.8 and later opens for a ring on such machines, one "
            "before; absent: 1"),
    FLAG(gpudirect, "the adapter reads device memory"),
    STRING(distance, false, "device to adapter: PIX, PXB, PHB, NODE or SYS"),
    NUMBER(per_message_cpu_s, 0, 1, DL_UNIT_S, "host time that the transport takes per message"),
    FLAG(assumed, "neither measured on this machine nor documented"),
    DL_FIELD(struct dl_link, pieces, LIST, .count_offset = offsetof(struct dl_link, piece_count),
             .child = &dl_piece_schema,
             .help = "measured point-to-point times, ascending max_bytes"),
    DL_FIELD(struct dl_link, sources, MAP, .count_offset = offsetof(struct dl_link, source_count),
             .help = "member -> key of data/SOURCES.md"),
    STRING(comment, false, "free text: how conflicting sources were weighed"),
    {.key = NULL},
};

const struct dl_schema dl_link_schema = {
    .name = "link",
    .summary = "links between the devices of a node, or between nodes; bandwidths per direction",
    .size = sizeof(struct dl_link),
    .fields = link_fields,
};

enum dl_code dl_pieces_check(const struct dl_piece *pieces, int piece_count,
                             const struct dl_json *doc, const char *path, struct dl_err *err) {
    for (int i = 1; i < piece_count; i++) {
        char where[192];
        snprintf(where, sizeof where, "%s.pieces[%d].max_bytes", path, i);
        if (!(pieces[i].max_bytes > pieces[i - 1].max_bytes))
            return dl_json_fail(doc, where, err, "expected more than that of the piece before");
    }
    return DL_OK;
}

static enum dl_code check_edges(const struct dl_link *link, int64_t devices,
                                const struct dl_json *doc, const char *path, struct dl_err *err) {
    for (int i = 0; i < link->edge_count; i++) {
        const struct dl_edge *edge = &link->edges[i];
        char where[192];
        snprintf(where, sizeof where, "%s.edges[%d].to", path, i);
        if (edge->from == edge->to)
            return dl_json_fail(doc, where, err, "an edge joins two different devices");
        if (edge->from >= devices || edge->to >= devices)
            return dl_json_fail(doc, where, err, "expected devices below devices_per_node = %lld",
                                (long long)devices);
        for (int j = 0; j < i; j++) {
            const struct dl_edge *other = &link->edges[j];
            if ((other->from == edge->from && other->to == edge->to) ||
                (other->from == edge->to && other->to == edge->from))
                return dl_json_fail(doc, where, err,
                                    "the same two devices as edges[%d]; give their links together",
                                    j);
        }
    }
    return DL_OK;
}

static bool is_one_of(const char *word, const char *const *words) {
    for (; *words != NULL; words++)
        if (strcmp(word, *words) == 0) return true;
    return false;
}

enum dl_code dl_link_check(const struct dl_link *link, int64_t devices, const struct dl_json *doc,
                           const char *path, struct dl_err *err) {
    static const char *const kinds[] = {
        "nvlink1",  "nvlink2",   "nvlink3", "nvlink4",    "nvlink5",  "nvswitch",
        "infinity", "pcie2",     "pcie3",   "pcie4",      "pcie5",    "qpi",
        "upi",      "shm",       "xbus",    "infiniband", "ethernet", "omnipath",
        "aries",    "slingshot", "efa",     "loopback",   NULL};
    static const char *const distances[] = {"PIX", "PXB", "PHB", "NODE", "SYS", NULL};
    char where[192];
    snprintf(where, sizeof where, "%s.kind", path);
    if (!is_one_of(link->kind, kinds)) {
        const char *near = dl_suggest(link->kind, kinds);
        return dl_json_fail(doc, where, err, "no such kind of link \"%s\"%s%s", link->kind,
                            near ? "; nearest: " : "", near ? near : "");
    }
    snprintf(where, sizeof where, "%s.distance", path);
    if (link->distance != NULL && !is_one_of(link->distance, distances))
        return dl_json_fail(doc, where, err, "expected PIX, PXB, PHB, NODE or SYS, found \"%s\"",
                            link->distance);
    snprintf(where, sizeof where, "%s.cross_bandwidth_bytes_per_s", path);
    if (dl_known(link->cross_bandwidth_bytes_per_s) && link->peer_group == DL_ABSENT)
        return dl_json_fail(doc, where, err, "needs peer_group as well");
    snprintf(where, sizeof where, "%s.peer_group", path);
    if (link->peer_group != DL_ABSENT && link->peer_group > devices)
        return dl_json_fail(doc, where, err, "expected at most devices_per_node = %lld",
                            (long long)devices);
    snprintf(where, sizeof where, "%s.domain_nodes", path);
    if (link->domain_nodes > 1 && strcmp(link->kind, "nvswitch") != 0)
        return dl_json_fail(doc, where, err, "needs a switch: kind nvswitch");
    if (!dl_known(link->bandwidth_bytes_per_s) && link->piece_count == 0)
        return dl_json_fail(doc, path, err, "expected bandwidth_bytes_per_s or pieces");
    DL_TRY(check_edges(link, devices, doc, path, err));
    DL_TRY(dl_pieces_check(link->pieces, link->piece_count, doc, path, err));
    return dl_provenance_check(link->sources, link->source_count, &dl_link_schema, doc, path, err);
}

/* system.c - fields of data/systems/NAME.json and their checks. */
#include "model/machine/system.h"

#include <stdio.h>

#include "model/core/provenance.h"

#define STRING(type_, member, need, text)                                                          \
    DL_FIELD(type_, member, STRING, .required = need, .help = text)
#define NUMBER(type_, member, low, high, measure, text)                                            \
    DL_FIELD(type_, member, NUMBER, DL_RANGE(low, high, measure), .help = text)
#define INTEGER(type_, member, low, high, need, text)                                              \
    DL_FIELD(type_, member, INTEGER, DL_RANGE(low, high, DL_UNIT_COUNT), .required = need,         \
             .help = text)
#define STRING_IN(group, member, text)                                                             \
    DL_FIELD_IN(struct dl_system, group, member, STRING, .help = text)
#define NUMBER_IN(group, member, low, high, measure, text)                                         \
    DL_FIELD_IN(struct dl_system, group, member, NUMBER, DL_RANGE(low, high, measure), .help = text)
#define LIST(type_, member, count, schema, text)                                                   \
    DL_FIELD(type_, member, LIST, .count_offset = offsetof(type_, count), .child = schema,         \
             .help = text)
#define MAP(type_, member, count, text)                                                            \
    DL_FIELD(type_, member, MAP, .count_offset = offsetof(type_, count), .help = text)
/* The key of an object may differ from its member. */
#define OBJECT(name, member, present, schema, text)                                                \
    {                                                                                              \
        .key = name, .type = DL_FIELD_OBJECT, .offset = offsetof(struct dl_system, member),        \
        .count_offset = offsetof(struct dl_system, present), .child = schema, .help = text         \
    }
#define SOURCE_HELP "key of data/SOURCES.md for numbers without their own"
#define SOURCES_HELP "member -> key of data/SOURCES.md"
#define COMMENT_HELP "free text: how conflicting sources were weighed"

static const struct dl_field host_fields[] = {
    STRING(struct dl_host, cpu, false, "model of the CPU"),
    STRING(struct dl_host, source, false, SOURCE_HELP),
    INTEGER(struct dl_host, sockets, 1, 64, false, "CPU sockets of a node"),
    INTEGER(struct dl_host, cores, 1, 4096, false, "cores of the whole node"),
    NUMBER(struct dl_host, call_scale, 0.01, 1000, DL_UNIT_NONE,
           "host time of a framework's calls and operations over that of the processor on which "
           "host_counts.json was measured; absent: by the name of the CPU"),
    NUMBER(struct dl_host, memory_bytes, 1e6, 1e15, DL_UNIT_BYTE, "memory of a node"),
    NUMBER(struct dl_host, memory_bandwidth_bytes_per_s, 1e6, 1e14, DL_UNIT_BYTE_PER_S,
           "memory bandwidth of the whole node"),
    NUMBER(struct dl_host, copy_bandwidth_bytes_per_s, 1e6, 1e14, DL_UNIT_BYTE_PER_S,
           "bandwidth between host and one device, pinned memory, one direction"),
    NUMBER(struct dl_host, pageable_bandwidth_bytes_per_s, 1e6, 1e14, DL_UNIT_BYTE_PER_S,
           "bandwidth between host and one device, pageable memory"),
    INTEGER(struct dl_host, devices_per_copy_link, 1, 1024, false,
            "devices that share one host link; absent: 1"),
    MAP(struct dl_host, sources, source_count, SOURCES_HELP),
    STRING(struct dl_host, comment, false, COMMENT_HELP),
    {.key = NULL},
};

static const struct dl_schema host_schema = {.name = "host",
                                             .summary = "CPUs and memory of a node",
                                             .size = sizeof(struct dl_host),
                                             .fields = host_fields};

static const struct dl_field fabric_fields[] = {
    STRING(struct dl_fabric, topology, true, "fat-tree, dragonfly, single-switch or none"),
    STRING(struct dl_fabric, source, false, SOURCE_HELP),
    NUMBER(struct dl_fabric, oversubscription, 1, 100, DL_UNIT_NONE,
           "bandwidth down / up of a leaf switch"),
    INTEGER(struct dl_fabric, nodes_per_leaf, 1, 100000, false, "nodes on one leaf switch"),
    NUMBER(struct dl_fabric, hop_latency_s, 0, 1e-3, DL_UNIT_S, "latency of one switch"),
    MAP(struct dl_fabric, sources, source_count, SOURCES_HELP),
    STRING(struct dl_fabric, comment, false, COMMENT_HELP),
    {.key = NULL},
};

static const struct dl_schema fabric_schema = {.name = "fabric",
                                               .summary = "switches between nodes",
                                               .size = sizeof(struct dl_fabric),
                                               .fields = fabric_fields};

static const struct dl_field storage_fields[] = {
    STRING(struct dl_storage, kind, true, "lustre, gpfs, nvme or cloud-disk"),
    STRING(struct dl_storage, source, false, SOURCE_HELP),
    NUMBER(struct dl_storage, read_bytes_per_s, 1e3, 1e14, DL_UNIT_BYTE_PER_S,
           "read bandwidth of one node"),
    NUMBER(struct dl_storage, write_bytes_per_s, 1e3, 1e14, DL_UNIT_BYTE_PER_S,
           "write bandwidth of one node"),
    NUMBER(struct dl_storage, total_read_bytes_per_s, 1e3, 1e16, DL_UNIT_BYTE_PER_S,
           "read bandwidth of the shared file system, all nodes together"),
    NUMBER(struct dl_storage, total_write_bytes_per_s, 1e3, 1e16, DL_UNIT_BYTE_PER_S,
           "write bandwidth of the shared file system, all nodes together"),
    NUMBER(struct dl_storage, local_write_bytes_per_s, 1e3, 1e14, DL_UNIT_BYTE_PER_S,
           "write bandwidth of one node to its own disk or memory, for checkpoints of two levels"),
    NUMBER(struct dl_storage, local_recovery_frac, 0, 1, DL_UNIT_NONE,
           "share of failures after which checkpoints on the nodes' own storage, with their copies "
           "on other nodes, are still there"),
    NUMBER(struct dl_storage, open_s, 0, 10, DL_UNIT_S, "time to open a small file"),
    MAP(struct dl_storage, sources, source_count, SOURCES_HELP),
    STRING(struct dl_storage, comment, false, COMMENT_HELP),
    {.key = NULL},
};

static const struct dl_schema storage_schema = {.name = "storage",
                                                .summary =
                                                    "storage that training reads samples from",
                                                .size = sizeof(struct dl_storage),
                                                .fields = storage_fields};

static const struct dl_field sample_fields[] = {
    NUMBER(struct dl_coll_sample, bytes, 0, 1e18, DL_UNIT_BYTE,
           "size, counted as the operation counts it"),
    NUMBER(struct dl_coll_sample, time_s, 0, 1e4, DL_UNIT_S, "median time"),
    NUMBER(struct dl_coll_sample, low_s, 0, 1e4, DL_UNIT_S, "lower end of the interval"),
    NUMBER(struct dl_coll_sample, high_s, 0, 1e4, DL_UNIT_S, "upper end of the interval"),
    {.key = NULL},
};

static const struct dl_schema sample_schema = {.name = "sample",
                                               .summary = "one measured time",
                                               .size = sizeof(struct dl_coll_sample),
                                               .fields = sample_fields};

static const struct dl_field collective_fields[] = {
    STRING(struct dl_coll_measured, library, true, "library: nccl, mpi, gloo, ..."),
    STRING(struct dl_coll_measured, library_version, false, "version of the library"),
    STRING(struct dl_coll_measured, operation, true, "operation: all_reduce, ..."),
    STRING(struct dl_coll_measured, source, false, "key of data/SOURCES.md; absent: the system's"),
    STRING(struct dl_coll_measured, buffers, false,
           "device: in device memory; absent: where the library usually has them"),
    INTEGER(struct dl_coll_measured, nodes, 1, 1e9, true, "nodes that took part"),
    INTEGER(struct dl_coll_measured, ranks, 1, 1e9, true, "ranks that took part"),
    LIST(struct dl_coll_measured, samples, sample_count, &sample_schema, "ascending bytes"),
    LIST(struct dl_coll_measured, pieces, piece_count, &dl_piece_schema,
         "fit for sizes beyond the samples"),
    {.key = NULL},
};

static const struct dl_schema collective_schema = {
    .name = "collective",
    .summary = "samples of one library, operation and rank set",
    .size = sizeof(struct dl_coll_measured),
    .fields = collective_fields};

static const struct dl_field raw_sample_fields[] = {
    STRING(struct dl_raw_sample, probe, true, "probe of calibrate"),
    STRING(struct dl_raw_sample, shape, true, "shape that it measured: m=64 n=64 k=64"),
    STRING(struct dl_raw_sample, pass, false,
           "fwd, bwd_data or bwd_filter; a variant for other probes"),
    STRING(struct dl_raw_sample, precision, false, "precision of the operands"),
    STRING(struct dl_raw_sample, implementation, false, "library and kernel that ran"),
    NUMBER(struct dl_raw_sample, median_s, 0, 1e5, DL_UNIT_S, "median time of one call"),
    NUMBER(struct dl_raw_sample, low_s, 0, 1e5, DL_UNIT_S,
           "lower end of the 95 % interval of the median"),
    NUMBER(struct dl_raw_sample, high_s, 0, 1e5, DL_UNIT_S,
           "upper end of the 95 % interval of the median"),
    NUMBER(struct dl_raw_sample, clock_hz, 1e6, 1e11, DL_UNIT_HZ,
           "clock of the device right after the measurement"),
    NUMBER(struct dl_raw_sample, power_w, 0, 1e5, DL_UNIT_W,
           "power of the device right after the measurement"),
    NUMBER(struct dl_raw_sample, min_s, 0, 1e5, DL_UNIT_S, "time of the fastest block"),
    NUMBER(struct dl_raw_sample, drift_frac, -1, 1e6, DL_UNIT_NONE,
           "change from the first to the second half of the blocks; absent: steady"),
    NUMBER(struct dl_raw_sample, load_average, 0, 1e6, DL_UNIT_NONE,
           "load of the machine at the end of the sample"),
    INTEGER(struct dl_raw_sample, repeats, 1, 1e9, false, "timed blocks that count"),
    INTEGER(struct dl_raw_sample, outliers, 0, 1e9, false,
            "blocks far from the median, which includes them"),
    INTEGER(struct dl_raw_sample, preempted, 0, 1e9, false,
            "blocks left out because another program took a core"),
    {.key = NULL},
};

const struct dl_schema dl_raw_sample_schema = {.name = "raw sample",
                                               .summary = "one shape that a probe measured",
                                               .size = sizeof(struct dl_raw_sample),
                                               .fields = raw_sample_fields};

/* The members of the file's object "links" lie in the system itself, from `intra` to `has_inter`.
 */
enum { LINKS_AT = offsetof(struct dl_system, intra) };

static const struct dl_field links_fields[] = {
    {.key = "intra",
     .type = DL_FIELD_OBJECT,
     .offset = 0,
     .count_offset = offsetof(struct dl_system, has_intra) - LINKS_AT,
     .child = &dl_link_schema,
     .help = "between the devices of a node"},
    {.key = "inter",
     .type = DL_FIELD_OBJECT,
     .offset = offsetof(struct dl_system, inter) - LINKS_AT,
     .count_offset = offsetof(struct dl_system, has_inter) - LINKS_AT,
     .child = &dl_link_schema,
     .help = "between nodes"},
    {.key = NULL},
};

static const struct dl_schema links_schema = {
    .name = "links",
    .summary = "links between devices and between nodes",
    .size = offsetof(struct dl_system, has_inter) + sizeof(bool) - LINKS_AT,
    .fields = links_fields,
};

static const struct dl_field system_fields[] = {
    STRING(struct dl_system, name, true, "name of the file"),
    STRING(struct dl_system, summary, true, "one line"),
    STRING(struct dl_system, source, false, SOURCE_HELP),
    STRING(
        struct dl_system, extends, false,
        "name or path of another system: this file gives what differs, and what it leaves out is "
        "as there; measured collectives only where device, node and links are the same"),
    {.key = "device",
     .type = DL_FIELD_STRING,
     .offset = offsetof(struct dl_system, device_name),
     .help = "name of a device file; or give device_profile"},
    OBJECT("device_profile", profile, has_profile, &dl_device_schema, "the device itself"),
    INTEGER(struct dl_system, nodes, 1, 1e7, true, "nodes of the system"),
    INTEGER(struct dl_system, devices_per_node, 1, 1024, true, "devices of a node"),
    DL_FIELD(struct dl_system, nodes_share_host, BOOL,
             .help = "virtual nodes (a test bed): all share the cores and memory of one host"),
    NUMBER(struct dl_system, jitter_frac, 0, 10, DL_UNIT_NONE,
           "standard deviation of the step time across devices / mean"),
    NUMBER_IN(operation, node_mtbf_s, 1, 1e12, DL_UNIT_S, "mean time between failures of one node"),
    NUMBER_IN(
        operation, restart_s, 0, 1e7, DL_UNIT_S,
        "time from a failure until training resumes from its checkpoint; absent: 20 s to start "
        "and the time to read it, at least 5 s"),
    NUMBER_IN(operation, price_per_node_hour, 1e-9, 1e12, DL_UNIT_NONE,
              "price of a node for an hour, on demand, in price_currency"),
    STRING_IN(operation, price_currency, "currency of the price: USD, EUR"),
    STRING_IN(operation, price_date, "when the price held"),
    NUMBER_IN(operation, host_w, 0, 1e6, DL_UNIT_W,
              "power of a node without its devices, at load; absent: 0.3 of their rated power"),
    NUMBER_IN(operation, pue, 1, 5, DL_UNIT_NONE,
              "power usage effectiveness of the site; absent: 1"),
    OBJECT("host", host, has_host, &host_schema, "CPUs and memory of a node"),
    OBJECT("links", intra, has_links, &links_schema, "links between devices and between nodes"),
    OBJECT("fabric", fabric, has_fabric, &fabric_schema, "switches between nodes"),
    OBJECT("storage", storage, has_storage, &storage_schema, "storage that training reads from"),
    STRING_IN(software, nccl_version, "NCCL release, as 2.4.8"),
    DL_FIELD_IN(
        struct dl_system, software, nccl_rings, INTEGER, DL_RANGE(1, 64, DL_UNIT_COUNT),
        .help =
            "rings between nodes that NCCL_MIN_NRINGS (later NCCL_MIN_NCHANNELS) asks for; absent: "
            "NCCL's own"),
    STRING_IN(software, nccl_algorithm,
              "algorithm that NCCL_ALGO imposes: ring, tree, nvls, nvls_tree, collnet_direct, "
              "collnet_chain, pat"),
    STRING_IN(software, nccl_protocol, "protocol that NCCL_PROTO imposes: LL, LL128 or Simple"),
    STRING_IN(software, mpi, "MPI library: openmpi-3.1, mpich-3, intel, ..."),
    LIST(struct dl_system, collectives, collective_count, &collective_schema,
         "measured collectives"),
    STRING_IN(calibration, measured_on, "host name of a calibrated profile"),
    STRING_IN(calibration, measured_at, "date and time of a calibrated profile"),
    DL_FIELD_IN(struct dl_system, calibration, measurement, MAP,
                .count_offset = offsetof(struct dl_system, calibration.measurement_count),
                .help = "facts of the measurement: kernel, versions, load"),
    MAP(struct dl_system, sources, source_count, SOURCES_HELP),
    STRING(struct dl_system, comment, false, COMMENT_HELP),
    DL_FIELD_IN(struct dl_system, calibration, samples, LIST,
                .count_offset = offsetof(struct dl_system, calibration.sample_count),
                .child = &dl_raw_sample_schema, .help = "raw samples of a calibrated profile"),
    {.key = NULL},
};

static bool lacks_bandwidth(const struct dl_link *link) {
    return !dl_known(link->bandwidth_bytes_per_s) && link->piece_count == 0;
}

static bool system_needs(const void *object, int i, const char **path, const char **why) {
    const struct dl_system *s = object;
    const bool intra = s->devices_per_node > 1 && !s->has_intra,
               inter = s->nodes > 1 && !s->has_inter;
    const struct {
        bool lacking;
        const char *path, *why;
    } rules[] = {
        {!s->has_profile && s->device_name == NULL, "device",
         "expected a name of data/devices, or device_profile"},
        {intra, "links.intra.kind", "several devices in a node need a link"},
        {intra || (s->has_intra && lacks_bandwidth(&s->intra)), "links.intra.bandwidth_bytes_per_s",
         "expected it or pieces"},
        {inter, "links.inter.kind", "several nodes need a link"},
        {inter || (s->has_inter && lacks_bandwidth(&s->inter)), "links.inter.bandwidth_bytes_per_s",
         "expected it or pieces"},
    };
    if (i >= (int)(sizeof rules / sizeof *rules)) return false;
    *path = rules[i].lacking ? rules[i].path : NULL;
    *why = rules[i].why;
    return true;
}

const struct dl_schema dl_system_schema = {
    .name = "dlmodel-system",
    .summary = "nodes with devices, connected by links",
    .size = sizeof(struct dl_system),
    .fields = system_fields,
    .needs = system_needs,
    .top_level = true,
};

void dl_system_extend(struct dl_json *doc, const struct dl_json *base) {
    static const struct {
        const char *given, *without;
    } rules[] = {
        {"extends", "name"},
        {"extends", "summary"},
        {"device", "device_profile"},
        {"device_profile", "device"},
        {"device", "collectives"},
        {"device_profile", "collectives"},
        {"devices_per_node", "collectives"},
        {"links", "collectives"},
        {"price_per_node_hour", "price_currency"},
        {"price_per_node_hour", "price_date"},
    };
    const char *without[sizeof rules / sizeof *rules + 1];
    int count = 0;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (dl_json_has(doc, rules[i].given)) without[count++] = rules[i].without;
    without[count] = NULL;
    dl_json_extend(doc, base, without);
    dl_json_remove(doc, "extends");
}

static enum dl_code check_collectives(const struct dl_system *system, const struct dl_json *doc,
                                      struct dl_err *err) {
    for (int i = 0; i < system->collective_count; i++) {
        const struct dl_coll_measured *measured = &system->collectives[i];
        char where[192], sample[240];
        snprintf(where, sizeof where, "collectives[%d]", i);
        for (int j = 0; j < measured->sample_count; j++) {
            snprintf(sample, sizeof sample, "%s.samples[%d]", where, j);
            if (!dl_known(measured->samples[j].bytes) || !(measured->samples[j].time_s > 0))
                return dl_json_fail(doc, sample, err, "expected bytes and a time_s above 0");
            if (j > 0 && !(measured->samples[j].bytes > measured->samples[j - 1].bytes))
                return dl_json_fail(doc, sample, err, "expected more bytes than the sample before");
        }
        if (measured->ranks < measured->nodes)
            return dl_json_fail(doc, where, err, "expected at least one rank on each node");
        DL_TRY(dl_pieces_check(measured->pieces, measured->piece_count, doc, where, err));
    }
    return DL_OK;
}

static enum dl_code check_links(const struct dl_system *system, const struct dl_json *doc,
                                struct dl_err *err) {
    if (system->has_intra)
        DL_TRY(dl_link_check(&system->intra, system->devices_per_node, doc, "links.intra", err));
    if (system->has_inter)
        DL_TRY(dl_link_check(&system->inter, system->devices_per_node, doc, "links.inter", err));
    return DL_OK;
}

enum dl_code dl_system_check(const struct dl_system *system, const struct dl_json *doc,
                             struct dl_err *err) {
    if (system->has_profile && system->device_name != NULL)
        return dl_json_fail(doc, "device", err, "give device or device_profile, not both");
    DL_TRY(dl_json_needs(doc, &dl_system_schema, system, err));
    if (system->has_profile)
        DL_TRY(dl_device_check_at(&system->profile, doc, "device_profile", err));
    if (dl_known(system->operation.price_per_node_hour) && system->operation.price_currency == NULL)
        return dl_json_fail(doc, "price_currency", err, "expected the currency of the price");
    DL_TRY(check_links(system, doc, err));
    DL_TRY(check_collectives(system, doc, err));
    const struct dl_host *host = &system->host;
    if (system->has_host && host->sockets != DL_ABSENT && host->cores != DL_ABSENT &&
        host->cores < host->sockets)
        return dl_json_fail(doc, "host.cores", err, "expected the cores of all sockets together");
    if (system->has_host)
        DL_TRY(
            dl_provenance_check(host->sources, host->source_count, &host_schema, doc, "host", err));
    if (system->has_fabric)
        DL_TRY(dl_provenance_check(system->fabric.sources, system->fabric.source_count,
                                   &fabric_schema, doc, "fabric", err));
    if (system->has_storage)
        DL_TRY(dl_provenance_check(system->storage.sources, system->storage.source_count,
                                   &storage_schema, doc, "storage", err));
    return dl_provenance_check(system->sources, system->source_count, &dl_system_schema, doc, "",
                               err);
}

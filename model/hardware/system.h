/* system.h - nodes of devices joined by links: data/systems/NAME.json, or what calibrate wrote.
 */
#ifndef DL_MODEL_HARDWARE_SYSTEM_H
#define DL_MODEL_HARDWARE_SYSTEM_H

#include "model/hardware/device.h"
#include "model/hardware/link.h"

struct dl_host {
    const char *cpu, *source;
    /* cores: of the whole node */
    int64_t sockets, cores;
    double memory_bytes;
    /* of the whole node; reductions on the host run at a third of it */
    double memory_bandwidth_bytes_per_s;
    /* host <-> one device, pinned, one direction */
    double copy_bandwidth_bytes_per_s;
    double pageable_bandwidth_bytes_per_s;
    /* devices that share one host link (PCIe switch); DL_ABSENT: 1 */
    int64_t devices_per_copy_link;
    struct dl_map_entry *sources;
    int source_count;
    const char *comment;
};

struct dl_fabric {
    const char *topology, *source; /* "fat-tree", "dragonfly", "single-switch", "none" */
    double oversubscription;       /* down : up bandwidth at the leaf, >= 1 */
    int64_t nodes_per_leaf;
    double hop_latency_s;
    struct dl_map_entry *sources;
    int source_count;
    const char *comment;
};

struct dl_storage {
    const char *kind, *source;                  /* "lustre", "gpfs", "nvme", "cloud-disk" */
    double read_bytes_per_s, write_bytes_per_s; /* of one node */
    double total_read_bytes_per_s;              /* of the shared file system, all nodes together */
    double total_write_bytes_per_s;             /* the same of writing */
    double open_s;
    struct dl_map_entry *sources;
    int source_count;
    const char *comment;
};

/* A measured collective: samples of one library, operation and rank set. */
struct dl_coll_sample {
    double bytes, time_s, low_s, high_s;
};
struct dl_coll_base {
    double time_s;
    const char *algorithm, *protocol;
};
struct dl_coll_measured {
    /* "nccl"; "all_reduce" */
    const char *library, *library_version, *operation, *source;
    /* of a host library: "device", when it took the devices' memory itself; NULL: the host's */
    const char *buffers;
    int64_t nodes, ranks;
    struct dl_coll_sample *samples;
    /* ascending bytes */
    int sample_count;
    struct dl_piece *pieces;
    /* fit, for sizes beyond the samples */
    int piece_count;
    /* derived: the model at each sample, by dl_coll_measured_fill(); NULL: when asked */
    struct dl_coll_base *bases;
};

/* One shape that a probe of calibrate measured, as it was measured. */
struct dl_raw_sample {
    /* "gemm", "m=64 n=64 k=64", "fwd", "fp32" */
    const char *probe, *shape, *pass, *precision;
    /* which library or kernel did it */
    const char *implementation;
    /* of one call; 95 % interval of the median */
    double median_s, low_s, high_s;
    /* of a GPU, right after; NAN: unknown */
    double clock_hz, power_w;
    /* the fastest block */
    double min_s;
    /* second half of the blocks against the first, where they differ for sure; NAN: steady */
    double drift_frac;
    /* of the machine, when the sample was finished */
    double load_average;
    /* blocks that count, those of them far from the median; blocks left out */
    int64_t repeats, outliers, preempted;
};

/* What NCCL's model reads out of names, worked out once by dl_nccl_prepare(); in force while the
 * pointers are the system's. */
struct dl_nccl_known {
    const char *version, *cpu;
    const struct dl_device *device;
    const void *row; /* struct dl_nccl_version */
    int number, generation;
    bool ready, assumed, before_volta, amd_host;
};

struct dl_system {
    const char *name, *summary, *source;
    /* "device": a file of data/devices/ ... */
    const char *device_name;
    /* ... or "device_profile": the device itself, as calibrate writes it */
    struct dl_device profile;
    bool has_profile;
    /* the one of the two that is in force; set by the loader (data.h) */
    const struct dl_device *device;
    int64_t nodes, devices_per_node;
    /* virtual nodes: all of them are one host, whose cores and memory they share */
    bool nodes_share_host;
    /* standard deviation of a step between devices / its mean; NAN: unknown */
    double jitter_frac;
    /* mean time between failures of one node; NAN: unknown */
    double node_mtbf_s;
    /* from a failure until training goes on from its checkpoint; NAN: unknown */
    double restart_s;
    struct dl_host host;
    bool has_host;
    /* "links": {"intra": {...}, "inter": {...}} */
    struct dl_link intra, inter;
    bool has_intra, has_inter;
    struct dl_fabric fabric;
    bool has_fabric;
    struct dl_storage storage;
    bool has_storage;
    /* derived */
    struct dl_nccl_known nccl;
    /* imposed, as NCCL_ALGO and NCCL_PROTO do; NULL: NCCL chooses */
    const char *nccl_algorithm, *nccl_protocol;
    /* "2.4.8"; "openmpi-3.1", "mpich-3", "intel" */
    const char *nccl_version, *mpi;
    struct dl_coll_measured *collectives;
    int collective_count;
    /* what calibrate adds and prediction does not need (host name, date, raw samples) */
    const char *measured_on, *measured_at;
    /* free facts: host, kernel, library versions, load */
    struct dl_map_entry *measurement;
    int measurement_count;
    struct dl_map_entry *sources;
    int source_count;
    bool has_links;
    /* choices between sources that disagree; free text */
    const char *comment;
    /* what the fits of a calibrated profile rest on */
    struct dl_raw_sample *samples;
    int sample_count;
};

extern const struct dl_schema dl_system_schema;
extern const struct dl_schema dl_raw_sample_schema;
/* Checks across members, and of the nested objects and the profile. */
enum dl_code dl_system_check(const struct dl_system *system, const struct dl_json *doc,
                             struct dl_err *err);

#endif

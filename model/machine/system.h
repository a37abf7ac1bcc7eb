/* system.h - nodes with devices, connected by links: data/systems/NAME.json, or what calibrate
 * wrote. */
#ifndef DL_MODEL_MACHINE_SYSTEM_H
#define DL_MODEL_MACHINE_SYSTEM_H

#include "model/machine/device.h"
#include "model/machine/link.h"

struct dl_host {
    const char *cpu, *source;
    int64_t sockets;
    int64_t cores; /* of the whole node */
    /* host time of a call, an operation, a node of autograd over that of the processor on which
     * data/host_counts.json was measured; NAN: by the name of the CPU (F-HOST-COUNT) */
    double call_scale;
    double memory_bytes;
    double memory_bandwidth_bytes_per_s; /* of the node; host reductions run at a third of it */
    double copy_bandwidth_bytes_per_s;   /* host to or from one device, pinned, one direction */
    double pageable_bandwidth_bytes_per_s;
    int64_t devices_per_copy_link; /* devices that share a host link (PCIe switch); DL_ABSENT: 1 */
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
    double local_write_bytes_per_s;             /* of a node to its own disk or memory */
    double local_recovery_frac; /* failures after which what nodes wrote locally is still there */
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
    const char *library, *library_version; /* "nccl" */
    const char *operation, *source;        /* "all_reduce" */
    const char *buffers; /* of a host library: "device" if it moved device memory itself;
                            NULL: host memory */
    int64_t nodes, ranks;
    struct dl_coll_sample *samples; /* ascending bytes */
    int sample_count;
    struct dl_piece *pieces; /* fit, for sizes beyond the samples */
    int piece_count;
    struct dl_coll_base *bases; /* the model at each sample, set by dl_coll_measured_fill();
                                   NULL: computed when asked */
};

/* One shape that a probe of calibrate measured. */
struct dl_raw_sample {
    const char *probe, *shape, *pass, *precision; /* "gemm", "m=64 n=64 k=64", "fwd", "fp32" */
    const char *implementation;                   /* library or kernel that ran */
    double median_s, low_s, high_s;               /* of one call; 95 % interval of the median */
    double clock_hz, power_w;                     /* of a GPU, right after; NAN: unknown */
    double min_s;                                 /* the fastest block */
    double drift_frac;   /* second half of the blocks / first - 1 if significant; NAN: steady */
    double load_average; /* of the machine at the end of the sample */
    int64_t repeats;     /* timed blocks that count */
    int64_t outliers;    /* of these, blocks far from the median */
    int64_t preempted;   /* blocks left out: another program took a core */
};

/* What the model of NCCL derives from names, once, in dl_nccl_prepare(). Valid while the pointers
 * are those of the system. */
struct dl_nccl_known {
    const char *version, *cpu;
    const struct dl_device *device;
    const void *row; /* struct dl_nccl_version */
    int number, generation;
    bool ready, assumed, before_volta, amd_host;
};

/* What running it takes. NAN: unknown */
struct dl_operation {
    double node_mtbf_s; /* mean time between failures of one node */
    double restart_s;   /* from a failure until training resumes */
    double price_per_node_hour;
    const char *price_currency, *price_date;
    double host_w; /* power of a node without its devices, at load */
    double pue;    /* power of the site / power of its machines */
};

/* Communication libraries as installed. */
struct dl_software {
    const char *nccl_algorithm,
        *nccl_protocol;             /* imposed as by NCCL_ALGO, NCCL_PROTO; NULL: free */
    int64_t nccl_rings;             /* at least, as by NCCL_MIN_NRINGS; DL_ABSENT: NCCL's choice */
    const char *nccl_version, *mpi; /* "2.4.8"; "openmpi-3.1", "mpich-3", "intel" */
};

/* Members that calibrate adds and predictions ignore. */
struct dl_calibration {
    const char *measured_on, *measured_at; /* host name, date */
    struct dl_map_entry *measurement;      /* free-form facts: kernel, library versions, load */
    int measurement_count;
    struct dl_raw_sample *samples; /* basis of the fits */
    int sample_count;
};

struct dl_system {
    const char *name, *summary, *source;
    const char *extends; /* name or path of another system; NULL once the loader has resolved it */
    const char *device_name;  /* "device": a file of data/devices/ ... */
    struct dl_device profile; /* ... or "device_profile": the device itself, as calibrate writes */
    bool has_profile;
    const struct dl_device *device; /* the one of the two in force; set by the loader (data.h) */
    /* F-WHAT-IF: the system without what-ifs, of which `collectives` were measured; NULL: this
     * one */
    const struct dl_system *as_measured;
    int64_t nodes, devices_per_node;
    bool nodes_share_host; /* virtual nodes: one host, whose cores and memory they share */
    double jitter_frac;    /* standard deviation of a step between devices / mean; NAN: unknown */
    struct dl_operation operation;
    struct dl_host host;
    bool has_host;
    struct dl_link intra, inter; /* "links": {"intra": {...}, "inter": {...}} */
    bool has_intra, has_inter;
    struct dl_fabric fabric;
    bool has_fabric;
    const char *borrowed; /* what the loader took from the usual machine of the device; NULL */
    struct dl_storage storage;
    bool has_storage;
    struct dl_nccl_known nccl; /* derived */
    struct dl_software software;
    struct dl_coll_measured *collectives;
    int collective_count;

    struct dl_calibration calibration;
    struct dl_map_entry *sources;
    int source_count;
    bool has_links;
    const char *comment; /* free text: how conflicting sources were weighed */
};

extern const struct dl_schema dl_system_schema;
extern const struct dl_schema dl_raw_sample_schema;
/* Completes the document of a system by that of the one that it extends: not its name and summary,
 * its measured collectives where device, node or links differ, nor the currency and date of a price
 * that the document gives. Removes "extends". */
void dl_system_extend(struct dl_json *doc, const struct dl_json *base);
/* Checks conditions between members, the nested objects and the profile. DL_ERR_INPUT names the
 * member. */
enum dl_code dl_system_check(const struct dl_system *system, const struct dl_json *doc,
                             struct dl_err *err);

#endif

/* match.h - compares machines for workloads: every combination of the systems,
 * networks and frameworks of the options, predicted as `dlmodel predict` does. */
#ifndef DL_PREDICT_INPUTS_MATCH_H
#define DL_PREDICT_INPUTS_MATCH_H

#include "predict/inputs/advise_judge.h"

enum { DL_MATCH_NAMES = 64, DL_MATCH_ROWS = 4096, DL_MATCH_REASONS = 32 };

extern const struct dl_option dl_match_options[]; /* --systems, --workloads, --weights, --prices */

/* One combination on the nodes asked for; samples/s and, hosts included, samples/J of all nodes,
 * with the ends of their 80 % intervals. NAN: unknown power, or a plan that does not fit. */
struct dl_match_row {
    const char *workload, *framework, *system, *device, *release, *precision;
    int64_t devices;
    double samples_per_s_per_device;
    double cost_per_million_samples;      /* at the system's price; NAN: unknown */
    double carbon_kg_per_million_samples; /* NAN without --carbon or power */
    double samples_per_s, low_samples_per_s, high_samples_per_s;
    double samples_per_j, low_samples_per_j, high_samples_per_j;
    bool fits;
    bool usual;        /* the default framework of data parallelism */
    bool bound;        /* the ideal, which no framework reaches */
    bool asynchronous; /* whose steps do not wait for each other: other training */
};

struct dl_match {
    const char *systems[DL_MATCH_NAMES], *workloads[DL_MATCH_NAMES];
    int system_count, workload_count;
    const char *why_not[DL_MATCH_NAMES]; /* why a workload cannot run on a system; NULL: it can */
    double weights[DL_MATCH_NAMES];      /* of the workloads, sum 1; all 0: not given */
    double price_per_node_hour[DL_MATCH_NAMES]; /* of a node-hour of each system; 0: not given */
    int64_t nodes;
    enum dl_precision precision; /* of all combinations */
    bool precision_chosen;       /* not given, and not the default of every device */
    struct dl_match_row *rows;   /* by workload, framework, system */
    int count, impossible;
    struct dl_match_reason { /* why combinations cannot run, in the words of `predict` */
        const char *why;
        int count;
    } reasons[DL_MATCH_REASONS];
    int reason_count;
};

/* A machine on the weighted workloads, relative to the first system: how many times as fast, and
 * the cost and energy of the same work. A weight is the share of the first system's time that its
 * workload takes. NAN: a workload does not run, or no price or power is known. */
struct dl_match_mix {
    const char *system, *missing; /* missing: a workload that does not fit there, or NULL */
    int64_t devices;
    double speed_ratio, cost_ratio, energy_ratio;
};
/* One for each system, fastest first; returns how many, 0 without weights. */
int dl_match_mixes(const struct dl_match *match, struct dl_match_mix out[DL_MATCH_NAMES]);

/* Whether options ask for a match: --systems or --workloads are given. */
bool dl_match_asked(const struct dl_options *options);

/* --system and --workload may hold the lists, too. DL_ERR_USAGE: unknown names; DL_ERR_NO: no
 * combination can run. */
enum dl_code dl_match_run(struct dl_context *context, const struct dl_options *options,
                          struct dl_match *out, struct dl_err *err);

/* The best combination of a workload that fits, by samples per second or per joule, on one system
 * (NULL: on any); the default framework where its interval reaches the best one's; the bound and
 * asynchronous frameworks count only where nothing else runs. NULL: none. */
const struct dl_match_row *dl_match_best(const struct dl_match *match, const char *workload,
                                         const char *system, bool by_energy);

#endif

/* cal_nodes.h - the survey of nodes: each pair exchanges messages; a node that does not answer, or
 * is slow with every partner, is reported and excluded. */
#ifndef DL_CALIBRATE_RUN_CAL_NODES_H
#define DL_CALIBRATE_RUN_CAL_NODES_H

#include "calibrate/run/cal_launch.h"

struct dl_cal_progress {
    void *context;
    void (*sample)(void *context, const struct dl_raw_sample *sample, size_t done, size_t all);
    void (*warn)(void *context, const char *text);
};

/* A message time of the survey: probe "pair", shape "bytes=B from=I to=J". */
struct dl_cal_pair {
    double bytes, time_s;
    int from, to;
};

/* Finds nodes whose best time with any partner is far above that of the others: slow_frac[i] is the
 * ratio to the median node, 0 for normal nodes. Needs at least 3 nodes. Returns their number. */
size_t dl_cal_slow_nodes(const struct dl_cal_pair *pairs, size_t pair_count, size_t nodes,
                         double *slow_frac, struct dl_arena *arena);

/* Runs the survey over all nodes, excludes those that fail or are slow, and records the pairs in
 * the journal. Sets hosts_left. DL_ERR_BACKEND: fewer than two nodes are left. */
enum dl_code dl_cal_nodes_survey(struct dl_cal_launch *launch, struct dl_cal_tools *tools,
                                 struct dl_cal_journal *journal,
                                 const struct dl_cal_progress *progress, struct dl_arena *arena,
                                 struct dl_err *err);

#endif

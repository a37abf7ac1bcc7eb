/* cal_nodes.h - which nodes take part: each pair of them exchanges messages once; a node that does
 * not answer, or is slow with every partner, is named and left out. */
#ifndef DL_CALIBRATE_RUN_CAL_NODES_H
#define DL_CALIBRATE_RUN_CAL_NODES_H

#include "calibrate/run/cal_launch.h"

struct dl_cal_progress {
    void *context;
    void (*sample)(void *context, const struct dl_raw_sample *sample, size_t done, size_t all);
    void (*warn)(void *context, const char *text);
};

/* Times of messages between the nodes, as the survey writes them: probe "pair", shape "bytes=B
 * from=I to=J". */
struct dl_cal_pair {
    double bytes, time_s;
    int from, to;
};

/* Nodes whose best partner is far slower than the others' best: slow[i] is how many times slower
 * they are than the median node, 0 for the others. At least 3 nodes are needed to tell. Returns the
 * count. */
size_t dl_cal_slow_nodes(const struct dl_cal_pair *pairs, size_t pair_count, size_t nodes,
                         double *slow_frac, struct dl_arena *arena);

/* Start the survey over all nodes; find and drop those that fail or are slow; pairs go into the
 * journal. Sets hosts_left. DL_ERR_BACKEND: fewer than two nodes are left. */
enum dl_code dl_cal_nodes_survey(struct dl_cal_launch *launch, struct dl_cal_tools *tools,
                                 struct dl_cal_journal *journal,
                                 const struct dl_cal_progress *progress, struct dl_arena *arena,
                                 struct dl_err *err);

#endif

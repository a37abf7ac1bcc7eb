/* checkpoint.h - how often to write a checkpoint, and what that and the failures of nodes cost.
 * Source: formulas (Young 1974, Daly 2006). Failures are independent, so a job's time between
 * failures is a node's / nodes.
 */
#ifndef DL_MODEL_SEARCH_CHECKPOINT_H
#define DL_MODEL_SEARCH_CHECKPOINT_H

#include "model/predict/predict.h"

struct dl_checkpoint {
    double bytes; /* of one checkpoint: weights as held, optimizer, buffers */
    /* nodes that write it: all with sharded states, else the one of rank 0 */
    int64_t writer_nodes;
    double write_s;    /* the job waits: copy from the devices and writing */
    double job_mtbf_s; /* mean time between failures of any of its nodes */
    double restart_s;  /* after a failure until training goes on */
    /* best interval of work between two checkpoints, first order and Daly's */
    double young_s, daly_s;
    double interval_s, steps; /* the one in use, in whole iterations */
    /* expected time, with checkpoints, failures and what they lose / time without any */
    double stretch_ratio;
    /* what one failure costs on average: half an interval and the restart */
    double loss_s;
    double epoch_s; /* epoch x stretch; NAN when the epoch is unknown */
};

/* F-CKPT-YOUNG: sqrt(2 d M) seconds of work between checkpoints that take d = write_s, failures M =
 * mtbf_s apart. */
double dl_checkpoint_young_s(double write_s, double mtbf_s);
/* F-CKPT-DALY: sqrt(2 d M) (1 + sqrt(d/2M)/3 + (d/2M)/9) - d for d < 2 M, else M. */
double dl_checkpoint_daly_s(double write_s, double mtbf_s);
/* F-CKPT-TIME: M e^(R/M) (e^((t+d)/M) - 1) / t, expected over failure-free time with checkpoints
 * every interval_s = t of work. >= 1. */
double dl_checkpoint_stretch_ratio(double interval_s, double write_s, double mtbf_s,
                                   double restart_s);

/* F-CKPT-COST and all of the above for a predicted plan; interval_s 0: the best. DL_ERR_INPUT when
 * the system lacks node_mtbf_s or what its storage writes; DL_ERR_NO when the job would not get
 * through. */
enum dl_code dl_checkpoint_plan(const struct dl_system *system, const struct dl_workload *workload,
                                const struct dl_plan *plan, const struct dl_prediction *prediction,
                                double interval_s, struct dl_checkpoint *out, struct dl_err *err);

#endif

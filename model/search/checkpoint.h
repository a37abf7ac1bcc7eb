/* checkpoint.h - how often to write a checkpoint, and what that and the failures of nodes cost.
 * Source: formulas (Young 1974, Daly 2006). Failures are independent, so a job's time between
 * failures is a node's / nodes.
 */
#ifndef DL_MODEL_SEARCH_CHECKPOINT_H
#define DL_MODEL_SEARCH_CHECKPOINT_H

#include "model/framework/checkpoint/checkpoint_cost.h"
#include "model/engine/predict.h"

/* Assumed where a system or campaign does not say it (unverified): launch, imports and graph of a
 * job, and the least time in which one that continues loads its checkpoint. */
enum { DL_JOB_STARTUP_S = 20, DL_JOB_RESUME_S = 5 };

/* Device time per failure of a job, where a system does not say more: 419 unexpected interruptions
 * in 54 days on 16,384 H100 (llama3-failures); BLOOM's 384 A100 had one or two in a week, 32,000
 * to 65,000 device-hours each (bloom-failures). */
#define DL_DEVICE_MTBF_S (54.0 * 86400 * 16384 / 419)

/* How checkpoints are written. */
struct dl_checkpoint_way {
    double interval_s;                         /* 0: the best */
    const struct dl_checkpoint_format *format; /* NULL: its overhead and its cost are left out */
    const struct dl_checkpoint_cost *cost;     /* of one core; NULL: unknown, not counted */
    const struct dl_checkpoint_cost *blocking; /* of an asynchronous format; NULL: not one */
};

struct dl_checkpoint {
    double
        bytes; /* of one checkpoint: weights as held, optimizer, buffers, the format's overhead */
    /* nodes that write it: all with sharded states, else the one of rank 0 */
    int64_t writer_nodes;
    double serialize_s; /* part of write_s on the cores; NAN: unknown */
    double write_s;     /* until it is complete: copy from the devices, serialization, storage */
    double blocked_s;   /* the job waits; write_s unless the format is asynchronous */
    double job_mtbf_s;  /* mean time between failures of any of its nodes */
    bool mtbf_assumed;  /* the system does not say how often a node fails: DL_DEVICE_MTBF_S */
    double restart_s;   /* after a failure until training goes on */
    /* best interval of work between two checkpoints, first order and Daly's */
    double young_s, daly_s;
    double interval_s, steps; /* the one in use, in whole iterations */
    /* expected time, with checkpoints, failures and what they lose / time without any */
    double stretch_ratio;
    /* what one failure costs on average: half an interval and the restart */
    double loss_s;
    double epoch_s;      /* epoch x stretch; NAN when the epoch is unknown */
    double goodput_frac; /* 1 / stretch: share of the time that trains and is not lost */
    /* node-local checkpoints between those on the file system; NAN: the system does not say what a
     * node writes locally and how many failures that survives, or rank 0 writes all */
    double local_write_s, local_interval_s, global_interval_s, two_level_goodput_frac;
};

/* F-CKPT-TWO-LEVEL: of failures M apart a share f is repaired from a local checkpoint (d1 seconds),
 * the others from one on the file system (d2). First order: t1 = sqrt(2 d1 M/f), t2 = n t1 with
 * n = round(sqrt(2 d2 M/(1-f)) / t1), at least 1; every n-th goes to the file system. Waste
 * (d1 (n-1)/n + d2/n)/t1 + (f t1/2 + (1-f) t2/2 + R)/M. Returns the goodput 1/(1 + waste); f in
 * (0, 1). */
struct dl_two_levels {
    double local_interval_s, global_interval_s, goodput_frac;
};
struct dl_two_levels dl_checkpoint_two_level(double local_s, double global_s, double mtbf_s,
                                             double restart_s, double local_frac);

/* F-CKPT-YOUNG: sqrt(2 d M) seconds of work between checkpoints that take d = write_s, failures M =
 * mtbf_s apart. */
double dl_checkpoint_young_s(double write_s, double mtbf_s);
/* F-CKPT-DALY: sqrt(2 d M) (1 + sqrt(d/2M)/3 + (d/2M)/9) - d for d < 2 M, else M. */
double dl_checkpoint_daly_s(double write_s, double mtbf_s);
/* F-CKPT-TIME: M e^(R/M) (e^((t+d)/M) - 1) / t, expected over failure-free time with checkpoints
 * every interval_s = t of work. >= 1. */
double dl_checkpoint_stretch_ratio(double interval_s, double write_s, double mtbf_s,
                                   double restart_s);

/* F-CKPT-COST and all of the above for a predicted plan. DL_ERR_INPUT when the system lacks
 * node_mtbf_s or what its storage writes; DL_ERR_NO when the job would not get through. */
enum dl_code dl_checkpoint_plan(const struct dl_system *system, const struct dl_workload *workload,
                                const struct dl_plan *plan, const struct dl_prediction *prediction,
                                const struct dl_checkpoint_way *way, struct dl_checkpoint *out,
                                struct dl_err *err);

#endif

/* campaign.h - many trainings as tasks on one machine: a search for hyper-parameters, or any list
 * of trials. F-CAMPAIGN: a discrete-event simulation of tasks on equal slots, with bounds from
 * scheduling theory beside it.
 *
 * A slot is what one trial trains on: some devices of a node, or whole nodes. A trial runs as one
 * task or, where the policy compares trials at rungs, as one task per rung, resumed from its
 * checkpoint. A task waits for the scheduler (which starts tasks one after another), starts up,
 * waits until its node holds the data, and trains. Nodes copy the data once, all at the same time
 * sharing the file system's rate. Failed tasks go back into the queue.
 *
 * Not modelled: trials of unequal width, contention between trials of a node (the time of a trial
 * is the caller's), data that do not fit on a node.
 */
#ifndef DL_MODEL_SEARCH_CAMPAIGN_CAMPAIGN_H
#define DL_MODEL_SEARCH_CAMPAIGN_CAMPAIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "model/core/arena.h"
#include "model/core/status.h"

enum dl_campaign_policy {
    DL_CAMPAIGN_ALL,         /* every trial in full: grid and random search */
    DL_CAMPAIGN_HALVING,     /* successive halving: rungs, each waits for all its trials */
    DL_CAMPAIGN_HYPERBAND,   /* brackets of successive halving (Li et al. 2018) */
    DL_CAMPAIGN_ASHA,        /* halving without waiting (Li et al. 2020) */
    DL_CAMPAIGN_MEDIAN_STOP, /* stops trials at checks; the caller states how many survive */
    DL_CAMPAIGN_POLICIES
};

enum dl_campaign_order { DL_CAMPAIGN_FIFO, DL_CAMPAIGN_LONGEST_FIRST };
/* "fifo","longest-first", NULL */
extern const char *const dl_campaign_order_names[];

enum { DL_CAMPAIGN_CHECKS = 16 };

struct dl_campaign {
    /* Machine and width: slots = nodes x (devices_per_node / devices_per_trial), or nodes / (nodes
     * of a trial), rounded down. */
    int64_t nodes, devices_per_node, devices_per_trial;

    const double *trial_s; /* training time of each trial in full, on one slot */
    int trial_count;

    enum dl_campaign_policy policy;
    enum dl_campaign_order order;
    double reduction; /* eta of halving, hyperband and ASHA: one of so many goes on; above 1 */
    int rungs;        /* of them: a trial's first rung is reduction^-(rungs - 1) of its training */
    /* median-stop: at check i of evenly spaced ones, this fraction of the running trials goes on */
    double survive_frac[DL_CAMPAIGN_CHECKS];
    int check_count;

    double dispatch_s; /* the scheduler starts one task per this time; 0: all at once */
    double startup_s;  /* of a task on its slot: launch, imports, graph */
    double resume_s;   /* further start-up of a task that continues: saves and loads a checkpoint */
    double stage_bytes; /* copied to each node before its first task; 0: nothing */
    double node_bytes_per_s, shared_bytes_per_s; /* rate of one node's copy, of all together */

    double device_failures_per_s; /* of one device; 0: none */
    double repair_s;              /* until a slot is back */
    double checkpoint_s;          /* training between checkpoints; 0: a failed task begins again */

    uint64_t seed; /* of scores (which trials survive) and failures */
};

struct dl_campaign_task {
    int trial, rung;
    int64_t slot;
    double start_s, train_s, end_s; /* reserved, trains from, ends */
    bool failed;
};

struct dl_campaign_result {
    int64_t slots, slot_devices, slot_nodes;
    double makespan_s;
    double train_s; /* sum over tasks, lost training included */
    double lost_s, startup_s, stage_wait_s;
    double utilization_frac; /* training that counts / (slots x makespan) */
    double longest_trial_s;  /* with start-ups, alone on the machine */
    double lower_bound_s;    /* max of work / slots, longest trial */
    /* Graham's bound on list scheduling, work / slots + (1 - 1 / slots) longest; NAN where tasks
     * depend on each other */
    double list_bound_s;
    /* no schedule is shorter than the longest-first makespan / (4/3 - 1 / (3 slots)); NAN: not
     * longest-first, or tasks depend on each other */
    double longest_first_bound_s;
    int task_count, failure_count, full_count; /* tasks, failures, trials trained in full */
    const struct dl_campaign_task *tasks;      /* by end; NULL unless asked for */
};

/* Simulates a campaign. DL_ERR_USAGE where a number is out of range or a trial is wider than the
 * machine; time is O(tasks log tasks). */
enum dl_code dl_campaign_simulate(const struct dl_campaign *campaign, bool keep_tasks,
                                  struct dl_arena *arena, struct dl_campaign_result *out,
                                  struct dl_err *err);

/* What a campaign would gain, each cause removed alone: makespan without it / makespan - 1, so 0 or
 * negative. */
struct dl_campaign_limits {
    double dispatch_frac, startup_frac, staging_frac, failures_frac;
    double longest_frac; /* trials cut to the mean length */
    double slots_frac;   /* twice the nodes */
};
enum dl_code dl_campaign_find_limits(const struct dl_campaign *campaign, double makespan_s,
                                     struct dl_arena *arena, struct dl_campaign_limits *out,
                                     struct dl_err *err);

#endif

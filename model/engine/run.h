/* run.h - tasks on lanes, and the one scheduler that says when each runs.
 *
 * A lane is a stream of one kind of rank: computation, the host that issues it, the collectives of
 * one group. It is first in, first out. A task starts when its lane is free and what it waits for
 * is there: with durations known, its times follow from those of earlier tasks, so that a strategy
 * adds tasks in the order in which they are issued and each is placed at once. Behaviours see when
 * gradients are ready and add tasks in turn.
 *
 * F-SLOWDOWN: while a task of one lane (a collective) runs, it holds a share of the
 * multiprocessors or cores that the tasks of another lane (computation) use. Those run at the rate
 * that is left. A task must therefore be added after the holders that it overlaps.
 *
 * Every task remembers which end it waited for, in its iteration or in the one before. A walk back
 * from the last end computes the derivative of that end by the end of each task: 1 along the
 * critical path, which branches where tasks share a resource. Once the derivatives equal those of a
 * later iteration, the state is steady and the walk stops. Each second of an iteration belongs to a
 * task and so to a resource: the derivative of the iteration by the logarithm of that resource.
 * F-CRITICAL-PATH
 */
#ifndef DL_MODEL_ENGINE_RUN_H
#define DL_MODEL_ENGINE_RUN_H

#include "model/core/arena.h"
#include "model/engine/resource.h"

enum dl_task_kind {
    DL_TASK_KERNELS, /* of: struct dl_pass_cost */
    DL_TASK_MESSAGE, /* of: struct dl_message; NULL: a message like the others of the run */
    DL_TASK_COPY,    /* device memory bandwidth */
    DL_TASK_HOST,
    DL_TASK_LAYER_MESSAGE, /* of: struct dl_message, inside a replica: not of servers */
    DL_TASK_SHARES, /* of: struct dl_resource_use, in any unit: the shares of the task's time */
};

/* In place of a task: the last of the iteration before, or any other of it. */
enum { DL_BEGIN = -1, DL_NONE = -1 };
#define DL_PREVIOUS(task) (-2 - (task)) /* its own inverse */

struct dl_task {
    double start_s, end_s;
    int after; /* the task whose end set the start; DL_BEGIN, DL_PREVIOUS() */
    enum dl_task_kind kind;
    bool critical;    /* on the path of dl_run_path */
    int first_holder; /* the first task that holds a share while this one runs; DL_NONE */
    const void *of;
    double held_from_s, held_until_s; /* of a task of the lane that holds shares */
    int next;                         /* the holder after this one; DL_NONE */
};

/* When something is there, and the task that makes it so. */
struct dl_instant {
    double s;
    int task;
};

struct dl_sharing {
    int by, of;        /* lanes: tasks of `by` hold a share of what those of `of` run on */
    double frac;       /* 0: none */
    double held_ratio; /* time for which a share is held / duration of the task */
    int first, last;   /* tasks of `by`: the first that may still hold its share, the last */
};

struct dl_run {
    struct dl_arena *arena;
    struct dl_task *tasks;
    int count, capacity;
    struct dl_instant *lanes; /* from when each is free */
    struct dl_sharing sharing;
};

/* Lanes are free from 0 on. */
void dl_run_begin(struct dl_run *run, int lane_count, struct dl_arena *arena);
/* The same with lanes and room for tasks of the caller; more tasks come from the arena. */
void dl_run_begin_in(struct dl_run *run, struct dl_instant *lanes, int lane_count,
                     struct dl_task *room, int capacity, struct dl_arena *arena);
/* Makes room for so many tasks at once. */
void dl_run_reserve(struct dl_run *run, int task_count);

/* From now on each task of lane `by` holds the share held_frac of what tasks of lane `of` run on.
 * At 1 they stop, above 1 they stop for held_frac times its duration. earlier: a task of `by` that
 * still holds its share, with held_until_s; DL_NONE. */
void dl_run_share(struct dl_run *run, int by, int of, double held_frac, int earlier);

/* Adds a task to a lane and returns its end. duration_s: without shared rates. */
struct dl_instant dl_run_add(struct dl_run *run, int lane, struct dl_instant ready,
                             double duration_s, enum dl_task_kind kind, const void *of);

static inline struct dl_instant dl_later(struct dl_instant a, struct dl_instant b) {
    return b.s > a.s ? b : a;
}
/* The lane waits. */
static inline void dl_run_hold(struct dl_run *run, int lane, struct dl_instant until) {
    run->lanes[lane] = dl_later(run->lanes[lane], until);
}

/* Divides period_s by what the critical path to the end of task `end` depends on, in a run whose
 * iterations follow each other at that period. Time in which a message waits for something that is
 * no task (a cycle, a server) is the host's, or the servers'. Marks the tasks of the path. */
void dl_run_path(struct dl_run *run, int end, double period_s, bool servers,
                 struct dl_resource_use *out);

#endif

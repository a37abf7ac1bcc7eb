/* search_pipes.c - pipelines of networks that are no stack: what many plans share, computed once.
 * F-TABLES.
 *
 * Each micro-batch size has its own: the costs of the layers, the balance of all numbers of parts
 * (one dynamic program), the splits that tasks need, and the memory of each schedule on them, which
 * depends on the micro-batches under way as far as they are fewer than the schedule keeps. A plan
 * is then its messages and a few sums (pipe.h): what dl_predict() gives (property test).
 */
#include <math.h>
#include <string.h>

#include "model/predict/memory.h"
#include "model/parallel/pipe.h"
#include "model/parallel/pipeline.h"
#include "model/search/search_parts.h"

struct filled {
    enum dl_schedule schedule;
    double micro_batches;
    bool synchronizes;
    double total_bytes;
};

struct split {
    int64_t stages, virtual_stages;
    struct dl_pipe pipe;
    struct filled *filled;
    int filled_count, filled_capacity;
};

struct dl_search_pipes {
    double micro_samples;
    struct split *splits;
    int split_count, split_capacity;
};

static int64_t virtual_stages(const struct dl_plan *plan) {
    return (int64_t)dl_pipe_virtual_stages(plan);
}

static struct split *find_split(const struct dl_search_pipes *pipes, const struct dl_plan *plan) {
    const int64_t v = virtual_stages(plan);
    for (int i = 0; i < pipes->split_count; i++) {
        if (pipes->splits[i].stages == plan->pp && pipes->splits[i].virtual_stages == v)
            return &pipes->splits[i];
    }
    return NULL;
}

/* What of the micro-batches memory depends on: no stage holds more than the first one of the
 * schedule. */
static double under_way(const struct dl_plan *plan, double micro_batches) {
    return dl_pipeline_in_flight(plan->schedule, 0, (double)plan->pp, micro_batches,
                                 dl_pipe_virtual_stages(plan));
}

static struct filled *find_filled(const struct split *split, const struct dl_plan *plan,
                                  double micro_batches) {
    const double held = under_way(plan, micro_batches);
    for (int i = 0; i < split->filled_count; i++) {
        struct filled *f = &split->filled[i];
        if (f->schedule == plan->schedule && f->synchronizes == (plan->dp > 1) &&
            !(f->micro_batches < held || f->micro_batches > held))
            return f;
    }
    return NULL;
}

/* A longer array with what the shorter one had. */
static void *grown(struct dl_arena *arena, const void *had, int count, int *capacity,
                   size_t bytes_each) {
    *capacity = *capacity > 0 ? 2 * *capacity : 8;
    char *more = dl_arena_alloc(arena, (size_t)*capacity, bytes_each);
    if (more != NULL && count > 0) memcpy(more, had, (size_t)count * bytes_each);
    return more;
}

enum dl_code dl_search_pipes_want(struct dl_search *s, int micro, const struct dl_plan *plan,
                                  double micro_batches, struct dl_err *err) {
    const size_t sizes = (size_t)s->batches.count;
    if (s->pipes == NULL) s->pipes = dl_arena_alloc(s->arena, sizes, sizeof *s->pipes);
    if (s->pipes == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    struct dl_search_pipes *pipes = s->pipes[micro];
    if (pipes == NULL) {
        pipes = s->pipes[micro] = dl_arena_alloc(s->arena, 1, sizeof *pipes);
        if (pipes == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        pipes->micro_samples = (double)s->batches.value[micro];
    }
    struct split *split = find_split(pipes, plan);
    if (split == NULL) {
        if (pipes->split_count == pipes->split_capacity) {
            pipes->splits = grown(s->arena, pipes->splits, pipes->split_count,
                                  &pipes->split_capacity, sizeof *pipes->splits);
        }
        if (pipes->splits == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        split = &pipes->splits[pipes->split_count++];
        *split = (struct split){.stages = plan->pp, .virtual_stages = virtual_stages(plan)};
        split->pipe.stages = (int)split->stages;
        split->pipe.parts = (int)(split->stages * split->virtual_stages);
        DL_TRY(dl_pipe_room(&split->pipe, s->arena, err));
    }
    if (find_filled(split, plan, micro_batches) != NULL) return DL_OK;
    if (split->filled_count == split->filled_capacity) {
        split->filled = grown(s->arena, split->filled, split->filled_count, &split->filled_capacity,
                              sizeof *split->filled);
    }
    if (split->filled == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    split->filled[split->filled_count++] =
        (struct filled){plan->schedule, under_way(plan, micro_batches), plan->dp > 1, NAN};
    return DL_OK;
}

int64_t dl_search_pipes_count(const struct dl_search *s) {
    return s->pipes != NULL ? s->batches.count : 0;
}

/* The pipeline with one of its schedules. */
static void set_schedule(struct split *split, const struct filled *f) {
    struct dl_pipe *pipe = &split->pipe;
    pipe->plan.schedule = f->schedule;
    pipe->plan.virtual_stages = split->virtual_stages > 1 ? split->virtual_stages : 0;
    pipe->plan.dp = f->synchronizes ? 2 : 1;
    pipe->micro_batches = f->micro_batches;
}

/* Micro-batches that a stage holds. */
static double held_by(const struct split *split, const struct filled *f, int stage) {
    return dl_pipeline_in_flight(f->schedule, stage, split->pipe.stages, f->micro_batches,
                                 (double)split->virtual_stages);
}

/* The first schedule whose stage holds as much; its memory before what the schedule adds is that
 * of the other. */
static int alike(const struct split *split, int which, int stage) {
    const struct filled *f = &split->filled[which];
    const double held = held_by(split, f, stage);
    int i = 0;
    while (split->filled[i].synchronizes != f->synchronizes ||
           held_by(split, &split->filled[i], stage) != held)
        i++;
    return i;
}

/* The memory of all schedules on a split: of each the fullest stage. room: one for each schedule.
 */
static void fill(struct split *split, const struct dl_predict_request *request,
                 struct dl_layer *layers, struct dl_memory *room) {
    struct dl_pipe *pipe = &split->pipe;
    pipe->request = request;
    pipe->plan = *request->plan;
    pipe->plan.pp = split->stages;
    for (int i = 0; i < split->filled_count; i++) split->filled[i].total_bytes = -1;
    for (int s = 0; s < pipe->stages; s++) {
        const struct dl_workload own = dl_pipe_stage_workload(pipe, s, layers);
        for (int i = 0; i < split->filled_count; i++) {
            struct filled *f = &split->filled[i];
            const int same = alike(split, i, s);
            set_schedule(split, f);
            if (same < i)
                room[i] = room[same];
            else
                dl_pipe_hold(pipe, &own, held_by(split, f, s), &room[i], NULL);
            struct dl_memory whole = room[i];
            dl_pipe_add_schedule(pipe, s, &own, &whole);
            f->total_bytes = fmax(f->total_bytes, whole.total_bytes);
        }
    }
    pipe->request = NULL; /* set for each plan */
}

enum dl_code dl_search_pipes_make(struct dl_search *s, int64_t micro, struct dl_err *err) {
    struct dl_search_pipes *pipes = s->pipes[micro];
    if (pipes == NULL) return DL_OK;
    const struct dl_search_request *r = &s->request;
    const int layers = r->workload->layer_count;
    struct dl_arena scratch = {0};
    struct dl_plan plan = r->fixed;
    plan.micro_batch_samples = pipes->micro_samples;
    if (plan.recompute_open) plan.recompute = DL_RECOMPUTE_NONE;
    const struct dl_predict_request request = {.system = r->system,
                                               .workload = r->workload,
                                               .framework = r->framework,
                                               .plan = &plan,
                                               .arena = &scratch};
    int most = 1, schedules = 1;
    for (int i = 0; i < pipes->split_count; i++) {
        const struct split *one = &pipes->splits[i];
        most = one->pipe.parts > most ? one->pipe.parts : most;
        schedules = one->filled_count > schedules ? one->filled_count : schedules;
    }
    struct dl_cost cost;
    double *step_s = dl_arena_alloc(&scratch, (size_t)layers, sizeof *step_s),
           *cuts = dl_arena_alloc(&scratch, (size_t)layers + 1, sizeof *cuts);
    double *work =
        dl_arena_alloc(&scratch, 2 * ((size_t)most + 1) * ((size_t)layers + 1), sizeof *work);
    struct dl_layer *room = dl_arena_alloc(&scratch, (size_t)layers, sizeof *room);
    struct dl_memory *held = dl_arena_alloc(&scratch, (size_t)schedules, sizeof *held);
    enum dl_code code =
        step_s == NULL || cuts == NULL || work == NULL || room == NULL || held == NULL
            ? dl_fail(err, DL_ERR_SYSTEM, "out of memory")
            : DL_OK;
    if (code == DL_OK)
        code = dl_cost_compute(r->system->device, r->workload, r->framework, &plan,
                               pipes->micro_samples, &scratch, &cost, err);
    if (code == DL_OK) {
        dl_pipe_layer_steps(&request, &cost, step_s);
        dl_pipeline_balances(step_s, layers, most, work);
        dl_pipeline_cuts(r->workload, cuts);
        for (int i = 0; i < pipes->split_count; i++) {
            struct dl_pipe *pipe = &pipes->splits[i].pipe;
            pipe->cut_elements = cuts;
            dl_pipeline_cut(work, layers, most, pipe->parts, pipe->first);
            dl_pipe_split(pipe, &request, &cost);
            fill(&pipes->splits[i], &request, room, held);
            pipe->cut_elements = NULL;
        }
    }
    dl_arena_free(&scratch);
    return code;
}

enum dl_code dl_search_pipes_evaluate(const struct dl_search *s, int micro,
                                      const struct dl_plan *plan, double *iteration_s,
                                      double *memory_bytes, struct dl_err *err) {
    const struct dl_search_request *r = &s->request;
    const double micro_batches =
        round(plan->batch_per_device_samples * (double)plan->pp / plan->micro_batch_samples);
    const struct split *split = find_split(s->pipes[micro], plan);
    const struct filled *filled = split != NULL ? find_filled(split, plan, micro_batches) : NULL;
    if (filled == NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "search: a pipeline that was not prepared");
    const struct dl_predict_request request = {
        .system = r->system, .workload = r->workload, .framework = r->framework, .plan = plan};
    struct dl_pipe pipe = split->pipe;
    struct dl_evidence evidence;
    struct dl_iteration iteration;
    pipe.request = &request;
    pipe.plan = *plan;
    pipe.micro_batches = micro_batches;
    DL_TRY(dl_pipe_evidence(&pipe, &evidence, err));
    dl_compose_iteration(&evidence, &iteration);
    *iteration_s = iteration.iteration_s;
    *memory_bytes = filled->total_bytes;
    return DL_OK;
}

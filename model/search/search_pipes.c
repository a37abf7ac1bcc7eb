/* search_pipes.c - see search_pipes.h.
 *
 * From the costs of the layers: the balance of all numbers of parts (one dynamic program), the
 * splits that plans need, and where plans are not left out for their time the memory of each
 * schedule on them, which depends on the micro-batches under way where they are fewer than the
 * schedule keeps. A plan is then its messages and a few sums (pipe.h): what dl_predict() gives
 * (property test).
 */
#include "model/search/search_pipes.h"

#include <math.h>
#include <string.h>

#include "model/engine/memory.h"
#include "model/engine/pipe.h"
#include "model/engine/pipeline.h"

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
    int filled_count;
};

struct dl_search_pipes {
    const struct dl_search *search;
    const struct dl_cost *cost;
    double micro_samples;
    struct dl_arena *arena;
    struct split *splits;
    int split_count;
    struct dl_layer *room; /* for the layers of a stage */
};

static int64_t virtual_stages(const struct dl_plan *plan) {
    return (int64_t)dl_pipe_virtual_stages(plan);
}

static struct split *find_split(const struct dl_search_pipes *pipes, const struct dl_plan *plan) {
    const int64_t v = virtual_stages(plan);
    for (int i = 0; i < pipes->split_count; i++) {
        if (pipes->splits[i].stages == plan->pp && pipes->splits[i].virtual_stages == v &&
            pipes->splits[i].pipe.placing == dl_schedules[plan->schedule]->placing)
            return &pipes->splits[i];
    }
    return NULL;
}

/* What of the micro-batches memory depends on: no stage holds more than the first one of the
 * schedule. */
static double under_way(const struct dl_plan *plan, double micro_batches) {
    return dl_schedules[plan->schedule]->held(0, (double)plan->pp, micro_batches,
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

enum dl_code dl_search_pipes_new(const struct dl_search *s, int micro, struct dl_arena *arena,
                                 struct dl_search_pipes **out, struct dl_err *err) {
    (void)err;
    *out = dl_arena_alloc(arena, 1, sizeof **out);
    **out = (struct dl_search_pipes){.search = s,
                                     .cost = &s->micros[micro].cost,
                                     .micro_samples = (double)s->batches.value[micro],
                                     .arena = arena};
    return DL_OK;
}

static void add_split(struct dl_search_pipes *pipes, const struct dl_plan *plan,
                      struct split **out) {
    pipes->splits = dl_arena_grow(pipes->arena, pipes->splits, (size_t)pipes->split_count,
                                  sizeof *pipes->splits);
    struct split *split = *out = &pipes->splits[pipes->split_count++];
    *split = (struct split){.stages = plan->pp, .virtual_stages = virtual_stages(plan)};
    dl_pipe_place(&split->pipe, plan);
    dl_pipe_room(&split->pipe, pipes->arena);
}

static double micro_batches_of(const struct dl_plan *plan) {
    return round(plan->batch_per_device_samples * (double)plan->pp / plan->micro_batch_samples);
}

void dl_search_pipes_want(struct dl_search_pipes *pipes, const struct dl_plan *plan) {
    const double micro_batches = micro_batches_of(plan);
    struct split *split = find_split(pipes, plan);
    if (split == NULL) add_split(pipes, plan, &split);
    if (dl_search_bounds_time(pipes->search) || find_filled(split, plan, micro_batches) != NULL)
        return;
    split->filled = dl_arena_grow(pipes->arena, split->filled, (size_t)split->filled_count,
                                  sizeof *split->filled);
    split->filled[split->filled_count++] =
        (struct filled){plan->schedule, under_way(plan, micro_batches), plan->dp > 1, NAN};
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
    return dl_schedules[f->schedule]->held(stage, split->pipe.stages, f->micro_batches,
                                           (double)split->virtual_stages) /
           dl_placing_chains(split->pipe.placing);
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

void dl_search_pipes_make(struct dl_search_pipes *pipes) {
    const struct dl_search_request *r = &pipes->search->request;
    const int layers = r->workload->layer_count;
    struct dl_arena *arena = pipes->arena;
    const struct dl_plan plan = dl_search_micro_plan(pipes->search, pipes->micro_samples);
    const struct dl_predict_request request = {.system = r->system,
                                               .workload = r->workload,
                                               .framework = r->framework,
                                               .plan = &plan,
                                               .arena = arena};
    int most = 1, schedules = 0;
    for (int i = 0; i < pipes->split_count; i++) {
        const struct split *one = &pipes->splits[i];
        most = one->pipe.parts > most ? one->pipe.parts : most;
        schedules = one->filled_count > schedules ? one->filled_count : schedules;
    }
    double *step_s = dl_arena_alloc(arena, (size_t)layers, sizeof *step_s);
    double *work = dl_arena_alloc(arena, DL_PIPELINE_WORK(layers, most), sizeof *work);
    pipes->room = dl_arena_alloc(arena, (size_t)layers, sizeof *pipes->room);
    struct dl_memory *held = dl_arena_alloc(arena, (size_t)schedules, sizeof *held);
    dl_pipe_layer_steps(&request, pipes->cost, step_s);
    dl_pipeline_balances(step_s, layers, most, work);
    for (int i = 0; i < pipes->split_count; i++) {
        struct dl_pipe *pipe = &pipes->splits[i].pipe;
        pipe->cut_elements = pipes->search->cut_elements;
        dl_pipeline_cut(work, layers, most, pipe->parts, pipe->first);
        dl_pipe_split(pipe, &request, pipes->cost);
        if (schedules > 0) fill(&pipes->splits[i], &request, pipes->room, held);
    }
}

/* Memory of the fullest device, as filled or of this plan alone. */
static double memory_of(const struct dl_search_pipes *pipes, const struct split *split,
                        const struct dl_pipe *pipe) {
    const struct filled *filled = find_filled(split, &pipe->plan, pipe->micro_batches);
    struct dl_memory memory;
    if (filled != NULL) return filled->total_bytes;
    dl_pipe_memory(pipe, pipes->room, &memory, NULL, NULL);
    return memory.total_bytes;
}

enum dl_code dl_search_pipes_evaluate(const struct dl_search_pipes *pipes,
                                      const struct dl_plan *plan, double limit_s,
                                      double *iteration_s, double *memory_bytes,
                                      struct dl_err *err) {
    const struct dl_search_request *r = &pipes->search->request;
    const struct split *split = find_split(pipes, plan);
    if (split == NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "search: a pipeline that was not prepared");
    const struct dl_predict_request request = {
        .system = r->system, .workload = r->workload, .framework = r->framework, .plan = plan};
    struct dl_pipe pipe = split->pipe;
    struct dl_evidence evidence;
    struct dl_iteration iteration;
    pipe.request = &request;
    pipe.plan = *plan;
    pipe.micro_batches = micro_batches_of(plan);
    *memory_bytes = NAN;
    for (int messages = 0; messages < 2; messages++) {
        DL_TRY(dl_pipe_least(&pipe, messages, &evidence, err));
        dl_compose_iteration(&evidence, &iteration);
        *iteration_s = iteration.iteration_s;
        if (dl_search_is_beyond(*iteration_s, limit_s)) return DL_OK;
    }
    DL_TRY(dl_pipe_iteration(&pipe, &iteration, err));
    *iteration_s = iteration.iteration_s;
    if (!dl_search_is_beyond(*iteration_s, limit_s)) *memory_bytes = memory_of(pipes, split, &pipe);
    return DL_OK;
}

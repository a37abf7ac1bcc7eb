/* timeline.c - see timeline.h. */
#include "model/engine/timeline.h"

#include <math.h>
#include <string.h>

#include "model/engine/run.h"
#include "model/framework/host_dispatch.h"

enum { MAX_ITERATIONS = 96 };

enum lane { DEVICE, HOST, NETWORK, HALOS, LANES };

/* F-HOST-QUEUE: passes that the host has issued, in order. */
struct issued {
    double launches; /* of this pass and all before it */
    struct dl_instant end;
};

struct queue {
    int count, done; /* passes issued; of these, done before the host may go on */
};

/* Times are since the iteration began. */
struct state {
    struct dl_timeline_request *request;
    struct dl_timeline *out;
    struct dl_run run;
    struct dl_instant *parameters_ready; /* per layer */
    double *first_ready_s;               /* per layer, at the first of the workers (F-PS-SKEW) */
    int *backward_task;                  /* per layer */
    struct issued *issued;               /* all passes of an iteration */
    struct queue queue;
    double prologue_s;
    double stall_s;
    double lane_s;    /* sum of the messages of an iteration */
    double carried_s; /* lane time of the previous iteration that extends into this one */
    /* Without shared rates, as the behaviour sees it: ends of the backward pass of each layer, and
     * of all. */
    double *unshared_end_s;
    double unshared_backward_end_s;
    int sent, layer_sent; /* messages on their lanes, of gradients and of layers */
    /* Computation that neither waits for messages nor shares with them: the same in every phase. */
    struct {
        bool known;
        double prologue_s, stall_s;
        struct queue queue;
        int task_count;
        struct dl_instant device, host;
    } computed;
};

static struct dl_instant at_begin(void) { return (struct dl_instant){0, DL_BEGIN}; }
static struct dl_instant free_of(const struct state *s, enum lane lane) {
    return s->run.lanes[lane];
}

/* F-HOST-QUEUE: a GPU's stream takes DL_LAUNCH_QUEUE kernels; then the host waits for the oldest.
 * Launches of all passes with this one. */
static double wait_for_queue(struct state *s, double launches) {
    struct queue *q = &s->queue;
    const double sum = launches + (q->count > 0 ? s->issued[q->count - 1].launches : 0);
    if (s->request->sync.system->device->kind != DL_DEVICE_GPU) return sum;
    while (q->done < q->count && s->issued[q->done].launches <= sum - DL_LAUNCH_QUEUE) q->done++;
    if (q->done > 0) dl_run_hold(&s->run, HOST, s->issued[q->done - 1].end);
    return sum;
}

/* The device waits for the host where it is late. */
static struct dl_instant issued_by_host(struct state *s, double launches) {
    const struct dl_instant device = free_of(s, DEVICE), host = free_of(s, HOST);
    if (!(launches > 0) || !(host.s > device.s)) return device;
    s->stall_s += host.s - device.s;
    return host;
}

/* The next message inside layers, if it belongs to this pass and is hidden or not; NULL. */
static struct dl_layer_message *next_in_layer(const struct state *s, int layer, bool backward,
                                              bool hidden) {
    const struct dl_timeline_request *r = s->request;
    if (s->layer_sent == r->layer_message_count) return NULL;
    struct dl_layer_message *next = &r->layer_messages[s->layer_sent];
    return next->layer == layer && next->backward == backward && (next->hidden_frac > 0) == hidden
               ? next
               : NULL;
}

static struct dl_instant send_in_layer(struct state *s, enum lane lane, struct dl_instant ready,
                                       struct dl_layer_message *own) {
    const struct dl_instant end = dl_run_add(&s->run, lane, ready, own->message.duration_s,
                                             DL_TASK_LAYER_MESSAGE, &own->message);
    own->message.start_s = s->run.tasks[end.task].start_s;
    s->layer_sent++;
    return end;
}

/* Device and host both wait for messages of a layer. */
static void run_blocking(struct state *s, int layer, bool backward) {
    struct dl_layer_message *own;
    while ((own = next_in_layer(s, layer, backward, false)) != NULL)
        s->run.lanes[HOST] = send_in_layer(s, DEVICE, issued_by_host(s, 1), own);
}

/* Halos travel while the inner positions of a layer are computed; device and host wait for them
 * before the others. Returns the seconds of the pass that are left. */
static double run_inner(struct state *s, const struct dl_pass_cost *pass, double seconds,
                        struct dl_instant ready, int layer, bool backward) {
    struct dl_layer_message *own;
    double inner_s = 0;
    while ((own = next_in_layer(s, layer, backward, true)) != NULL) {
        send_in_layer(s, HALOS, ready, own);
        inner_s = own->hidden_frac * seconds;
    }
    if (!(inner_s > 0)) return seconds;
    dl_run_add(&s->run, DEVICE, ready, inner_s, DL_TASK_KERNELS, pass);
    dl_run_hold(&s->run, DEVICE, free_of(s, HALOS));
    dl_run_hold(&s->run, HOST, free_of(s, HALOS));
    return seconds - inner_s;
}

/* Queues one pass, of a layer or (-1) of none: the device starts when it is free, the host has
 * issued the pass and its inputs are ready. */
static struct dl_instant run_pass(struct state *s, const struct dl_pass_cost *pass,
                                  struct dl_instant inputs, int layer, bool backward,
                                  double *start_s) {
    const struct dl_timeline_request *r = s->request;
    const double host_s = pass->launches * r->dispatch_s + dl_host_count_s(&r->host, &pass->host);
    if (host_s > 0) dl_run_add(&s->run, HOST, at_begin(), host_s, DL_TASK_HOST, NULL);
    const double launches = wait_for_queue(s, pass->launches), gaps_s = pass->launches * r->gap_s;
    const struct dl_instant ready = dl_later(issued_by_host(s, pass->launches), inputs);
    *start_s = dl_later(free_of(s, DEVICE), ready).s;
    const double left_s = run_inner(s, pass, pass->time_s + gaps_s, ready, layer, backward);
    const struct dl_instant end = dl_run_add(&s->run, DEVICE, ready, left_s, DL_TASK_KERNELS, pass);
    s->stall_s += gaps_s;
    s->issued[s->queue.count++] = (struct issued){launches, end};
    return end;
}

/* The layer whose backward pass a message waits for: that of its last gradient, or the last pass;
 * DL_NONE: none. */
static int awaited_layer(const struct state *s, const struct dl_message *m) {
    const struct dl_timeline_request *r = s->request;
    if (m->ready_s >= s->unshared_backward_end_s) return 0;
    if (m->count <= 0 || m->first + m->count > r->sync.gradient_count) return DL_NONE;
    const int layer = r->gradients[m->first + m->count - 1].layer;
    return r->sync.framework->sync.overlaps_backward && s->unshared_end_s[layer] <= m->ready_s
               ? layer
               : DL_NONE;
}

/* Adds a message to the network lane, with the delay that the behaviour gave it after its cause. */
static void send_message(struct state *s, struct dl_message *message, int awaited) {
    const struct dl_timeline_request *r = s->request;
    struct dl_instant ready = {message->ready_s, DL_BEGIN};
    if (awaited != DL_NONE) {
        ready.task = s->backward_task[awaited];
        ready.s += s->run.tasks[ready.task].end_s - s->unshared_end_s[awaited];
    }
    const struct dl_instant end =
        dl_run_add(&s->run, NETWORK, ready, message->duration_s, DL_TASK_MESSAGE, message);
    message->ready_s = ready.s;
    message->start_s = s->run.tasks[end.task].start_s;
    message->end_s = end.s;
    s->lane_s += message->duration_s;
    s->out->comm_s += message->duration_s;
    s->out->comm_latency_s += message->latency_s;
    if (!message->returns) return;
    const struct dl_instant usable = {end.s + message->tail_s, end.task};
    for (int g = message->first; g < message->first + message->count; g++) {
        const int layer = r->gradients[g].layer;
        s->parameters_ready[layer] = dl_later(s->parameters_ready[layer], usable);
        s->first_ready_s[layer] = fmax(s->first_ready_s[layer], usable.s - message->lead_s);
    }
}

/* Messages in their order, up to the first that waits for an earlier layer's backward pass. */
static void send_messages(struct state *s, int layer) {
    struct dl_gradient_sync *x = &s->out->sync;
    for (; s->sent < x->message_count; s->sent++) {
        const int awaited = awaited_layer(s, &x->messages[s->sent]);
        if (awaited != DL_NONE && awaited < layer) return;
        send_message(s, &x->messages[s->sent], awaited);
    }
}

static void run_forward(struct state *s) {
    const struct dl_timeline_request *r = s->request;
    const struct dl_workload *workload = r->sync.workload;
    const bool per_layer_wait = s->out->sync.per_layer_wait;
    double first_s = free_of(s, DEVICE).s; /* the first worker's device is free */
    for (int i = 0; i < workload->layer_count; i++) {
        const struct dl_pass_cost *pass = &r->cost->layers[i].forward;
        const struct dl_instant end =
            run_pass(s, pass, per_layer_wait ? s->parameters_ready[i] : at_begin(), i, false,
                     &s->out->forward_start_s[i]);
        if (pass->launches > 0) first_s = fmax(first_s, free_of(s, HOST).s);
        if (per_layer_wait) first_s = fmax(first_s, s->first_ready_s[i]);
        first_s += end.s - s->out->forward_start_s[i];
        run_blocking(s, i, false);
        first_s += free_of(s, DEVICE).s - end.s;
    }
    s->request->sync.lead_s = fmax(0, free_of(s, DEVICE).s - first_s);
}

/* sends: add the known messages as well. */
static void run_backward(struct state *s, bool sends) {
    const struct dl_timeline_request *r = s->request;
    int next = 0; /* gradients are in backward order */
    for (int i = r->sync.workload->layer_count - 1; i >= 0; i--) {
        run_blocking(s, i, true);
        const struct dl_instant end = run_pass(s, &r->cost->layers[i].backward, at_begin(), i, true,
                                               &s->out->backward_start_s[i]);
        s->backward_task[i] = end.task;
        while (next < r->sync.gradient_count && r->gradients[next].layer == i) {
            if (r->gradient_host_s > 0)
                dl_run_add(&s->run, HOST, at_begin(), r->gradient_host_s, DL_TASK_HOST, NULL);
            r->gradients[next].issued_s = free_of(s, HOST).s;
            r->gradients[next++].ready_s = end.s;
        }
        if (sends)
            send_messages(s, i);
        else
            s->unshared_end_s[i] = end.s;
    }
    s->out->backward_end_s = free_of(s, DEVICE).s;
    if (!r->sync.framework->sync.overlaps_backward) {
        for (int g = 0; g < r->sync.gradient_count; g++)
            r->gradients[g].ready_s = s->out->backward_end_s;
    }
}

static double busy_overlap_s(const struct dl_gradient_sync *x, double carried_s, double until_s) {
    double sum_s = fmin(carried_s, until_s);
    for (int m = 0; m < x->message_count; m++) {
        const double end_s = fmin(x->messages[m].end_s, until_s);
        if (end_s > x->messages[m].start_s) sum_s += end_s - x->messages[m].start_s;
    }
    return sum_s;
}

/* Forward and backward pass. held_frac above 0: with the known messages, which hold that share. */
static void compute(struct state *s, double held_frac) {
    const bool sends = held_frac > 0;
    const bool again = s->computed.known && !s->out->sync.per_layer_wait &&
                       s->computed.prologue_s == s->prologue_s;
    if (again) {
        s->run.count = s->computed.task_count;
        s->run.lanes[DEVICE] = s->computed.device;
        s->run.lanes[HOST] = s->computed.host;
        s->stall_s = s->computed.stall_s;
        s->queue = s->computed.queue;
        return;
    }
    s->stall_s = 0;
    s->queue = (struct queue){0};
    s->run.count = 1; /* after what the lane carries over */
    s->layer_sent = 0;
    s->run.lanes[DEVICE] = s->run.lanes[HOST] = s->run.lanes[HALOS] = at_begin();
    dl_run_share(&s->run, NETWORK, DEVICE, held_frac, 0);
    dl_run_add(&s->run, HOST, at_begin(), s->request->iteration_host_s, DL_TASK_HOST, NULL);
    dl_run_add(&s->run, DEVICE, at_begin(), s->prologue_s, DL_TASK_MESSAGE, NULL);
    run_forward(s);
    run_backward(s, sends);
    if (!sends) s->unshared_backward_end_s = s->out->backward_end_s;
    s->computed.known = s->request->slowdown_frac == 0;
    s->computed.prologue_s = s->prologue_s;
    s->computed.stall_s = s->stall_s;
    s->computed.queue = s->queue;
    s->computed.task_count = s->run.count;
    s->computed.device = free_of(s, DEVICE);
    s->computed.host = free_of(s, HOST);
}

static void occupy_device(struct state *s, double seconds, enum dl_task_kind kind) {
    if (seconds > 0) dl_run_add(&s->run, DEVICE, at_begin(), seconds, kind, NULL);
}

/* F-SLOWDOWN: the behaviour groups gradients by when they would be ready at full rate; messages
 * that wait for a slowed pass then start as much later. */
static enum dl_code synchronize(struct state *s, struct dl_err *err) {
    struct dl_timeline_request *r = s->request;
    struct dl_timeline *out = s->out;
    r->sync.backward_end_s = out->backward_end_s;
    const struct dl_gradient_sync before = out->sync;
    out->sync = (struct dl_gradient_sync){.reusable_messages = before.messages,
                                          .reusable_count = before.message_count};
    DL_TRY(r->behaviour->synchronize(&r->sync, &out->sync, err));
    if (r->slowdown_frac > 0) compute(s, r->slowdown_frac);
    send_messages(s, 0);
    out->overlap_s = busy_overlap_s(&out->sync, s->carried_s, out->backward_end_s);
    out->slowdown_s = out->backward_end_s - s->unshared_backward_end_s;
    out->comm_s += out->sync.device_copy_s + out->sync.host_s + out->sync.prologue_s;
    occupy_device(s, out->sync.device_copy_s, DL_TASK_COPY);
    if (!out->sync.per_layer_wait) dl_run_hold(&s->run, DEVICE, free_of(s, NETWORK));
    occupy_device(s, out->sync.host_s, DL_TASK_HOST);
    return DL_OK;
}

static enum dl_code run_iteration(struct state *s, struct dl_err *err) {
    struct dl_timeline_request *r = s->request;
    struct dl_timeline *out = s->out;
    const struct dl_pass_cost *update = r->accumulates ? &r->cost->accumulation : &r->cost->update;
    out->comm_s = 0;
    out->comm_latency_s = 0;
    s->lane_s = 0;
    s->sent = 0;
    s->prologue_s = out->sync.prologue_s; /* known from the iteration before */
    compute(s, 0);
    if (r->behaviour != NULL) DL_TRY(synchronize(s, err));
    if (r->checks_overflow) dl_run_hold(&s->run, HOST, free_of(s, DEVICE));
    double start_s = free_of(s, DEVICE).s;
    if (!out->sync.update_remote) run_pass(s, update, at_begin(), -1, false, &start_s);
    out->update_start_s = start_s;
    out->stall_s = s->stall_s;
    return DL_OK;
}

static int previous(int task) { return task > 0 ? DL_PREVIOUS(task) : DL_BEGIN; }

/* Task 0 stands for the last message of the iteration before, where that still is under way. */
static void carry(struct state *s, double period_s) {
    const struct dl_instant lane = free_of(s, NETWORK);
    s->carried_s = fmax(0, lane.s - period_s);
    s->run.tasks[0] = (struct dl_task){.start_s = s->carried_s,
                                       .end_s = s->carried_s,
                                       .after = previous(lane.task),
                                       .kind = DL_TASK_MESSAGE,
                                       .first_holder = DL_NONE,
                                       .held_until_s = s->carried_s,
                                       .next = DL_NONE};
    s->run.lanes[NETWORK] = (struct dl_instant){s->carried_s, 0};
    for (int i = 0; i < s->request->sync.workload->layer_count; i++) {
        struct dl_instant *ready = &s->parameters_ready[i];
        *ready = (struct dl_instant){ready->s - period_s, previous(ready->task)};
        s->first_ready_s[i] -= period_s;
    }
}

/* How long after the device's work the last message of the iteration arrives. */
static double behind_s(const struct state *s, int layers) {
    double last_s = free_of(s, NETWORK).s;
    for (int i = 0; i < layers; i++) last_s = fmax(last_s, s->parameters_ready[i].s);
    return last_s - free_of(s, DEVICE).s;
}

static void start(struct dl_timeline_request *request, struct dl_timeline *out, struct state *s) {
    const size_t layers = (size_t)request->sync.workload->layer_count;
    struct dl_arena *arena = request->sync.arena;
    memset(out, 0, sizeof *out);
    *s = (struct state){.request = request, .out = out};
    out->forward_start_s = dl_arena_alloc(arena, layers, sizeof(double));
    out->backward_start_s = dl_arena_alloc(arena, layers, sizeof(double));
    s->parameters_ready = dl_arena_alloc(arena, layers, sizeof *s->parameters_ready);
    s->first_ready_s = dl_arena_alloc(arena, layers, sizeof *s->first_ready_s);
    s->backward_task = dl_arena_alloc(arena, layers, sizeof *s->backward_task);
    s->unshared_end_s = dl_arena_alloc(arena, layers, sizeof *s->unshared_end_s);
    s->issued = dl_arena_alloc(arena, 2 * layers + 1, sizeof *s->issued);
    dl_run_begin(&s->run, LANES, arena);
    dl_run_reserve(&s->run, 8 * (int)layers + 2 * request->sync.gradient_count + 8);
    dl_run_add(&s->run, NETWORK, at_begin(), 0, DL_TASK_MESSAGE, NULL);
}

/* Iterations until the state comes back: the last `cycle` ones repeat those before; 0: none do. */
static int cycle_of(const double *periods_s, const double *carried_s, int count) {
    for (int cycle = 1; 2 * cycle <= count; cycle++) {
        int same = 0;
        for (int i = count - cycle; i < count; i++) {
            const double near_s = 1e-9 * periods_s[i];
            if (!(fabs(periods_s[i] - periods_s[i - cycle]) <= near_s &&
                  fabs(carried_s[i] - carried_s[i - cycle]) <= near_s))
                break;
            same++;
        }
        if (same == cycle) return cycle;
    }
    return 0;
}

/* By how much messages fall further behind the device in an iteration, in the last `count`: until
 * the device waits for them, their period is longer than its own by that much. */
static double growth_s(const double *carried_s, int count) {
    const int last = MAX_ITERATIONS - 1;
    return fmax(0, carried_s[last] - carried_s[last - count]) / count;
}

/* From the first iteration on; another phase of the cycles begins with no messages under way. */
static enum dl_code run_steady(struct state *s, struct dl_err *err) {
    struct dl_timeline *out = s->out;
    const int layers = s->request->sync.workload->layer_count;
    double periods_s[MAX_ITERATIONS], carried_s[MAX_ITERATIONS], mean_s = 0;
    memset(&out->sync, 0, sizeof out->sync);
    for (int i = 0; i < layers; i++) {
        s->parameters_ready[i] = (struct dl_instant){-INFINITY, DL_BEGIN};
        s->first_ready_s[i] = -INFINITY;
    }
    s->run.lanes[NETWORK] = (struct dl_instant){-INFINITY, DL_BEGIN};
    for (int i = 0; i < MAX_ITERATIONS; i++) {
        carry(s, i == 0 ? 0 : out->period_s);
        DL_TRY(run_iteration(s, err));
        out->period_s = free_of(s, DEVICE).s;
        if (isnan(out->period_s))
            return dl_fail(err, DL_ERR_INPUT,
                           "framework %s: the time of an iteration is not a number",
                           s->request->sync.framework->name);
        /* Without carry-over the next iteration differs by the prologue alone. */
        if (!out->sync.per_layer_wait && out->sync.prologue_s == s->prologue_s) return DL_OK;
        /* With it, messages may fall behind for some iterations before one waits for them. */
        periods_s[i] = out->period_s;
        carried_s[i] = fmax(0, behind_s(s, layers));
        if (i > 0 && cycle_of(periods_s + i - 1, carried_s + i - 1, 2) == 1) return DL_OK;
    }
    /* When messages fill the lane, short and long iterations can alternate: the period is the mean
     * of a cycle, or of the second half where none is found. */
    const int cycle = cycle_of(periods_s, carried_s, MAX_ITERATIONS),
              count = cycle > 0 ? cycle : MAX_ITERATIONS - MAX_ITERATIONS / 2;
    for (int i = MAX_ITERATIONS - count; i < MAX_ITERATIONS; i++) mean_s += periods_s[i] / count;
    out->period_s = fmax(mean_s + growth_s(carried_s, count), s->lane_s);
    return DL_OK;
}

enum { PHASES = 5 }; /* odd, so that the middle one is among them */

/* F-CYCLE-PHASE: the period and what the device waits are means over the phases; the lanes, with
 * all messages, are those of the middle phase. In one phase alone a gradient that is ready a
 * microsecond later can cost a whole cycle. */
enum dl_code dl_timeline_run(struct dl_timeline_request *request, struct dl_timeline *out,
                             struct dl_err *err) {
    double *const times[] = {&out->period_s, &out->stall_s, &out->slowdown_s, &out->overlap_s};
    enum { TIMES = sizeof times / sizeof times[0] };
    double sums_s[TIMES] = {0};
    struct state s;
    start(request, out, &s);
    if (request->behaviour == NULL || !request->behaviour->has_phase) {
        DL_TRY(run_steady(&s, err));
    } else {
        for (int p = 0; p < PHASES; p++) { /* the middle one last */
            request->sync.phase_frac = ((p + PHASES / 2 + 1) % PHASES + 0.5) / PHASES;
            DL_TRY(run_steady(&s, err));
            for (int i = 0; i < TIMES; i++) sums_s[i] += *times[i];
        }
        for (int i = 0; i < TIMES; i++) *times[i] = sums_s[i] / PHASES;
    }
    dl_run_path(&s.run, free_of(&s, DEVICE).task, out->period_s, out->sync.bound != NULL,
                &out->path);
    return DL_OK;
}

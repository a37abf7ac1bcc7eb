/* timeline.c - simulates iterations until their period is constant. */
#include "model/framework/timeline.h"

#include <math.h>
#include <string.h>

#include "model/framework/host_dispatch.h"

enum { MAX_ITERATIONS = 96 };

/* F-HOST-QUEUE: passes that the host has issued, in order. */
struct issued {
    double launches; /* of this pass and all before it */
    double end_s;    /* on the device, since the iteration began */
};

struct queue {
    int count, done; /* passes issued; of these, done before the host may go on */
};

struct state {
    struct dl_timeline_request *request;
    struct dl_timeline *out;
    double *parameters_ready_s; /* absolute, per layer */
    double lane_free_s, device_free_s, host_s, begin_s;
    struct issued *issued; /* all passes of an iteration */
    struct queue queue;
    double stall_s;
    double backward_stall_s; /* of it, from the first backward pass to the last */
    double lane_s;           /* sum of the messages of an iteration */
    double carried_s;        /* lane time of the previous iteration that extends into this one */
    /* Since the iteration began, when nothing waits for messages: the next iteration, and the next
     * phase, begin alike. */
    struct {
        bool known;
        double prologue_s, host_s, stall_s;
        struct queue queue;
    } computed;
};

/* F-HOST-QUEUE: a GPU's stream takes DL_LAUNCH_QUEUE kernels; then the host waits for the oldest.
 * Launches of all passes with this one. */
static double wait_for_queue(struct state *s, double launches) {
    struct queue *q = &s->queue;
    const double sum = launches + (q->count > 0 ? s->issued[q->count - 1].launches : 0);
    if (s->request->sync.system->device->kind != DL_DEVICE_GPU) return sum;
    while (q->done < q->count && s->issued[q->done].launches <= sum - DL_LAUNCH_QUEUE) q->done++;
    if (q->done > 0) s->host_s = fmax(s->host_s, s->begin_s + s->issued[q->done - 1].end_s);
    return sum;
}

/* Queues one pass of one layer: the device starts when it is free, the host has issued the pass and
 * its inputs are ready. */
static void run_pass(struct state *s, const struct dl_pass_cost *pass, double not_before_s,
                     double *start_s) {
    const struct dl_timeline_request *r = s->request;
    s->host_s += pass->launches * r->dispatch_s;
    const double launches = wait_for_queue(s, pass->launches);
    double begin_s = s->device_free_s;
    if (s->host_s > begin_s && pass->launches > 0) {
        s->stall_s += s->host_s - begin_s;
        begin_s = s->host_s;
    }
    if (not_before_s > begin_s) begin_s = not_before_s;
    *start_s = begin_s - s->begin_s;
    s->device_free_s = begin_s + pass->time_s + pass->launches * r->gap_s;
    s->stall_s += pass->launches * r->gap_s;
    s->issued[s->queue.count++] = (struct issued){launches, s->device_free_s - s->begin_s};
}

/* Device and host both wait for a layer's own communication. */
static void run_blocking(struct state *s, const double *seconds, int layer) {
    if (seconds == NULL || !(seconds[layer] > 0)) return;
    if (s->host_s > s->device_free_s) {
        s->stall_s += s->host_s - s->device_free_s;
        s->device_free_s = s->host_s;
    }
    s->device_free_s += seconds[layer];
    s->host_s = s->device_free_s;
}

static void run_compute(struct state *s) {
    const struct dl_timeline_request *r = s->request;
    const struct dl_workload *workload = r->sync.workload;
    const bool wait_each = s->out->sync.wait_each;
    for (int i = 0; i < workload->layer_count; i++) {
        const double ready_s = wait_each ? s->parameters_ready_s[i] : 0;
        run_pass(s, &r->cost->layers[i].forward, ready_s, &s->out->forward_start_s[i]);
        run_blocking(s, r->after_forward_s, i);
    }
    int next = 0; /* gradients are in backward order */
    const double forward_stall_s = s->stall_s;
    for (int i = workload->layer_count - 1; i >= 0; i--) {
        run_blocking(s, r->before_backward_s, i);
        run_pass(s, &r->cost->layers[i].backward, 0, &s->out->backward_start_s[i]);
        while (next < r->sync.gradient_count && r->gradients[next].layer == i) {
            s->host_s += r->gradient_host_s;
            r->gradients[next].issued_s = s->host_s - s->begin_s;
            r->gradients[next++].ready_s = s->device_free_s - s->begin_s;
        }
    }
    s->out->backward_end_s = s->device_free_s - s->begin_s;
    s->backward_stall_s = s->stall_s - forward_stall_s;
}

/* Messages through the one network lane, in order. */
static void run_lane(struct state *s) {
    struct dl_gradient_sync *x = &s->out->sync;
    const struct dl_timeline_request *r = s->request;
    double free_s = s->lane_free_s > s->begin_s ? s->lane_free_s - s->begin_s : 0;
    s->carried_s = free_s;
    s->lane_s = 0;
    for (int m = 0; m < x->message_count; m++) {
        struct dl_message *message = &x->messages[m];
        message->start_s = fmax(message->ready_s, free_s);
        message->end_s = message->start_s + message->duration_s;
        free_s = message->end_s;
        s->lane_s += message->duration_s;
        s->out->comm_s += message->duration_s;
        s->out->comm_latency_s += message->latency_s;
        if (!message->returns) continue;
        for (int g = message->first; g < message->first + message->count; g++) {
            const int layer = r->gradients[g].layer;
            s->parameters_ready_s[layer] =
                fmax(s->parameters_ready_s[layer], s->begin_s + message->end_s + message->tail_s);
        }
    }
    s->lane_free_s = s->begin_s + free_s;
}

static double busy_overlap_s(const struct dl_gradient_sync *x, double carried_s, double until_s) {
    double sum_s = fmin(carried_s, until_s);
    for (int m = 0; m < x->message_count; m++) {
        const double end_s = fmin(x->messages[m].end_s, until_s);
        if (end_s > x->messages[m].start_s) sum_s += end_s - x->messages[m].start_s;
    }
    return sum_s;
}

/* Forward and backward, as before where nothing differs. */
static bool compute_again(struct state *s) {
    const struct dl_timeline *out = s->out;
    const double prologue_s = out->sync.prologue_s; /* known from the iteration before */
    const bool waits = out->sync.wait_each;
    if (!waits && s->computed.known && s->computed.prologue_s == prologue_s) {
        s->device_free_s = s->begin_s + out->backward_end_s;
        s->host_s = s->begin_s + s->computed.host_s;
        s->stall_s = s->computed.stall_s;
        s->queue = s->computed.queue;
        return false;
    }
    s->stall_s = 0;
    s->queue = (struct queue){0};
    s->host_s = s->begin_s + s->request->iteration_host_s;
    s->device_free_s = s->begin_s + prologue_s;
    run_compute(s);
    s->computed.known = !waits;
    s->computed.prologue_s = prologue_s;
    s->computed.host_s = s->host_s - s->begin_s;
    s->computed.stall_s = s->stall_s;
    s->computed.queue = s->queue;
    return true;
}

static enum dl_code run_iteration(struct state *s, struct dl_err *err) {
    struct dl_timeline_request *r = s->request;
    struct dl_timeline *out = s->out;
    const struct dl_pass_cost *update = r->accumulates ? &r->cost->accumulation : &r->cost->update;
    out->comm_s = 0;
    out->comm_latency_s = 0;
    out->slowdown_s = 0;
    const bool changed = compute_again(s);
    if (r->behaviour != NULL) {
        if (changed || out->sync.messages == NULL) {
            r->sync.backward_end_s = out->backward_end_s;
            const struct dl_gradient_sync before = out->sync;
            out->sync = (struct dl_gradient_sync){.room = before.messages,
                                                  .room_count = before.message_count};
            DL_TRY(r->behaviour->synchronize(&r->sync, &out->sync, err));
        }
        run_lane(s);
        out->overlap_s = busy_overlap_s(&out->sync, s->carried_s, out->backward_end_s);
        /* slower kernels first take the time in which the device waits for the host */
        out->slowdown_s = fmax(0, r->slowdown_frac * out->overlap_s - s->backward_stall_s);
        s->device_free_s += out->slowdown_s;
        out->comm_s += out->sync.device_copy_s + out->sync.host_s + out->sync.prologue_s;
        s->device_free_s += out->sync.device_copy_s;
        if (!out->sync.wait_each) s->device_free_s = fmax(s->device_free_s, s->lane_free_s);
        s->device_free_s += out->sync.host_s;
    }
    if (r->checks_overflow) s->host_s = fmax(s->host_s, s->device_free_s);
    double start_s = s->device_free_s - s->begin_s;
    if (!out->sync.update_remote) run_pass(s, update, 0, &start_s);
    out->update_start_s = start_s;
    out->stall_s = s->stall_s;
    return DL_OK;
}

/* How long after the device's work the last message of the iteration arrives. */
static double behind_s(const struct state *s, int layers) {
    double last_s = s->lane_free_s;
    for (int i = 0; i < layers; i++) last_s = fmax(last_s, s->parameters_ready_s[i]);
    return last_s - s->device_free_s;
}

static void start(struct dl_timeline_request *request, struct dl_timeline *out, struct state *s) {
    const size_t layers = (size_t)request->sync.workload->layer_count;
    struct dl_arena *arena = request->sync.arena;
    memset(out, 0, sizeof *out);
    *s = (struct state){.request = request, .out = out};
    out->forward_start_s = dl_arena_alloc(arena, layers, sizeof(double));
    out->backward_start_s = dl_arena_alloc(arena, layers, sizeof(double));
    s->parameters_ready_s = dl_arena_alloc(arena, layers, sizeof(double));
    s->issued = dl_arena_alloc(arena, 2 * layers + 1, sizeof *s->issued);
}

/* From the first iteration on; another phase of the cycles begins with no messages under way. */
static enum dl_code run_steady(struct state *s, struct dl_err *err) {
    struct dl_timeline *out = s->out;
    const int layers = s->request->sync.workload->layer_count;
    double previous_s = -1, previous_carried_s = 0, half_s = 0;
    s->begin_s = s->lane_free_s = 0;
    memset(&out->sync, 0, sizeof out->sync);
    memset(s->parameters_ready_s, 0, (size_t)layers * sizeof *s->parameters_ready_s);
    for (int i = 0; i < MAX_ITERATIONS; i++) {
        if (i == MAX_ITERATIONS / 2) half_s = s->begin_s;
        DL_TRY(run_iteration(s, err));
        out->period_s = s->device_free_s - s->begin_s;
        if (isnan(out->period_s))
            return dl_fail(err, DL_ERR_INPUT,
                           "framework %s: the time of an iteration is not a number",
                           s->request->sync.framework->name);
        /* Without carry-over the second iteration equals the first except for the prologue. With
         * it, messages may fall behind for some iterations before one waits for them. */
        const double carried_s = fmax(0, behind_s(s, layers)), same_s = 1e-9 * out->period_s;
        if (i > 0 && fabs(out->period_s - previous_s) <= same_s &&
            fabs(carried_s - previous_carried_s) <= same_s)
            return DL_OK;
        previous_s = out->period_s;
        previous_carried_s = carried_s;
        s->begin_s = s->device_free_s;
    }
    /* When messages fill the lane, short and long iterations can alternate: the period is their
     * mean. */
    enum { SECOND_HALF = MAX_ITERATIONS - MAX_ITERATIONS / 2 };
    out->period_s = fmax((s->begin_s - half_s) / SECOND_HALF, s->lane_s);
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
    if (request->behaviour == NULL || !request->behaviour->has_phase) return run_steady(&s, err);
    for (int p = 0; p < PHASES; p++) { /* the middle one last */
        request->sync.phase_frac = ((p + PHASES / 2 + 1) % PHASES + 0.5) / PHASES;
        DL_TRY(run_steady(&s, err));
        for (int i = 0; i < TIMES; i++) sums_s[i] += *times[i];
    }
    for (int i = 0; i < TIMES; i++) *times[i] = sums_s[i] / PHASES;
    return DL_OK;
}

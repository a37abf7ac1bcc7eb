/* DDP's buckets and Horovod's cycles against a discrete-event simulation that knows nothing of
 * model/framework/timeline.c and the behaviours: a host that issues passes, a device that runs
 * them, hooks of gradients, Horovod's thread that wakes, agrees and fuses, a stream of
 * collectives. Only how long one collective takes comes from the model. */
#include "model/engine/timeline.h"
#include "tests/check.h"
#include "tests/fake.h"

enum { CASES = 400, MAX_LAYERS = 40, MAX_GRADIENTS = 2 * MAX_LAYERS };

struct net {
    struct dl_fake fake;
    struct dl_layer_cost layers[MAX_LAYERS];
    struct dl_cost cost;
    struct dl_gradient gradients[MAX_GRADIENTS];
    struct dl_timeline_request request;
    int count, gradient_count;
};

/* The simulation. */

struct job {
    double bytes;
    int first, count;
};
struct world {
    struct net *net;
    bool horovod;
    double now_s;
    /* host and device: passes 0..2 L: forward, backward, update */
    int issued, ran;    /* passes */
    double host_next_s; /* when the host has issued the next pass; INFINITY: it has all */
    double work_left_s; /* of the pass on the device */
    bool device_busy;
    double ready_s[MAX_GRADIENTS]; /* INFINITY: not yet */
    int gradients_ready;
    /* collectives */
    struct job jobs[MAX_GRADIENTS];
    double asked_s[MAX_GRADIENTS]; /* earliest start of each */
    int job_count, done;
    bool lane_busy;
    double lane_end_s;
    /* DDP */
    double bucket_bytes;
    int bucket_first;
    /* Horovod: when the host has queued each gradient's operation; messages that the thread has
     * negotiated but not yet started, for it waits for the device; INFINITY: none */
    double tick_s;
    int sent;
    double queued_s[MAX_GRADIENTS];
    double agreed_s, next_tick_s;
    int started;
};

static const struct dl_pass_cost *pass_of(const struct world *w, int pass) {
    const int layers = w->net->count;
    if (pass < layers) return &w->net->layers[pass].forward;
    if (pass < 2 * layers) return &w->net->layers[2 * layers - 1 - pass].backward;
    return &w->net->cost.update;
}

static double collective_s(struct world *w, const struct job *job) {
    struct dl_timeline_request *r = &w->net->request;
    struct dl_message message = {0};
    assert_int_equal(
        dl_gradient_sync_collective(&r->sync, DL_COLL_ALL_REDUCE, job->bytes, &message, NULL),
        DL_OK);
    /* Horovod copies what it fuses into its buffer and back */
    if (w->horovod && job->count > 1)
        message.duration_s += 2 * dl_gradient_sync_device_stream_s(&r->sync, 2 * job->bytes);
    return message.duration_s;
}

static double own(const struct world *w, const char *key) {
    return dl_framework_number(&w->net->fake.framework, key);
}

/* Autograd's hook: DDP closes a bucket when it has reached its limit, the first one at another. */
static void hook(struct world *w, int gradient) {
    const double limit = w->bucket_first == 0 ? own(w, "first_bucket_bytes")
                                              : w->net->fake.framework.sync.bucket_bytes;
    w->ready_s[gradient] = w->now_s;
    w->gradients_ready++;
    if (w->horovod) return;
    w->bucket_bytes += w->net->gradients[gradient].bytes;
    if (w->bucket_bytes < limit && gradient + 1 < w->net->gradient_count) return;
    w->asked_s[w->job_count] = w->now_s;
    w->jobs[w->job_count++] =
        (struct job){w->bucket_bytes, w->bucket_first, gradient + 1 - w->bucket_first};
    w->bucket_first = gradient + 1;
    w->bucket_bytes = 0;
}

static double round_s(const struct world *w) {
    const struct dl_collective_request tree = {.op = DL_COLL_BROADCAST,
                                               .library = DL_LIB_MPI,
                                               .bytes = 64,
                                               .nodes = w->net->fake.plan.nodes,
                                               .ranks_per_node = w->net->fake.plan.devices_per_node,
                                               .flows_per_adapter = 1};
    struct dl_collective_time t;
    assert_int_equal(dl_collective_time(&w->net->fake.system, &tree, &t, NULL), DL_OK);
    return 4 * t.time_s;
}

static bool early(const struct world *w) {
    return dl_framework_number(&w->net->fake.framework, "queued_when_issued") > 0;
}

/* The thread starts what it has negotiated once the device has computed the gradients. */
static void start_negotiated(struct world *w) {
    if (w->started >= w->job_count) return;
    for (; w->started < w->job_count; w->started++) {
        const struct job *job = &w->jobs[w->started];
        const double ready_s = w->ready_s[job->first + job->count - 1];
        if (!isfinite(ready_s)) return;
        w->agreed_s = fmax(w->agreed_s, ready_s);
        w->asked_s[w->started] = w->agreed_s;
    }
    w->tick_s = fmax(w->next_tick_s, w->agreed_s);
}

/* Horovod's thread wakes. */
static void tick(struct world *w) {
    const double ranks = (double)(w->net->fake.plan.nodes * w->net->fake.plan.devices_per_node);
    int there = w->gradients_ready;
    if (early(w)) {
        there = w->sent;
        while (there < w->net->gradient_count && w->queued_s[there] <= w->now_s) there++;
    }
    const int waiting = there - w->sent;
    const double fusion_bytes = own(w, "fusion_bytes");
    double agreed_s = 0;
    if (waiting > 0) agreed_s = round_s(w) + waiting * ranks * own(w, "request_s");
    while (w->sent < there) {
        struct job job = {0, w->sent, 0};
        do {
            job.bytes += w->net->gradients[w->sent++].bytes;
            job.count++;
        } while (w->sent < there && job.bytes + w->net->gradients[w->sent].bytes <= fusion_bytes);
        w->asked_s[w->job_count] = early(w) ? INFINITY : w->now_s + agreed_s;
        w->jobs[w->job_count++] = job;
    }
    w->tick_s = w->now_s + fmax(own(w, "cycle_s"), agreed_s);
    if (!early(w) || waiting == 0) return;
    w->next_tick_s = w->tick_s;
    w->agreed_s = w->now_s + agreed_s;
    w->tick_s = INFINITY;
    start_negotiated(w);
}

static void pass_ends(struct world *w) {
    const int pass = w->ran++, layers = w->net->count;
    w->device_busy = false;
    if (pass < layers || pass >= 2 * layers) return;
    for (int g = 0; g < w->net->gradient_count; g++)
        if (w->net->gradients[g].layer == 2 * layers - 1 - pass) hook(w, g);
}

static bool all_sent(const struct world *w) {
    if (w->done < w->job_count || w->gradients_ready < w->net->gradient_count) return false;
    return w->horovod ? w->sent == w->net->gradient_count
                      : w->bucket_first == w->net->gradient_count;
}

/* The device takes the next pass that was issued; the update waits for the gradients and for the
 * copies out of the buckets. */
static void start_pass(struct world *w, double copies_s) {
    const struct dl_timeline_request *r = &w->net->request;
    const int update = 2 * w->net->count;
    if (w->device_busy || w->ran > update || w->ran >= w->issued) return;
    if (w->ran == update && !all_sent(w)) return;
    const struct dl_pass_cost *pass = pass_of(w, w->ran);
    w->device_busy = true;
    w->work_left_s = pass->time_s + pass->launches * r->gap_s + (w->ran == update ? copies_s : 0);
}

static void start_message(struct world *w) {
    if (w->lane_busy || w->done >= w->job_count || w->asked_s[w->done] > w->now_s) return;
    w->lane_busy = true;
    w->lane_end_s = w->now_s + collective_s(w, &w->jobs[w->done]);
}

static double host_s(const struct world *w, int pass) {
    const struct dl_timeline_request *r = &w->net->request;
    const int layers = w->net->count;
    double seconds = pass_of(w, pass)->launches * r->dispatch_s;
    for (int g = 0; g < w->net->gradient_count; g++) /* of the pass before */
        if (pass > layers && w->net->gradients[g].layer == 2 * layers - pass)
            seconds += r->gradient_host_s;
    return seconds;
}

/* A backward pass is issued; the operations of its gradients follow. */
static void queue_gradients(struct world *w, int pass) {
    const int layers = w->net->count;
    double now_s = w->now_s;
    if (pass < layers || pass >= 2 * layers) return;
    for (int g = 0; g < w->net->gradient_count; g++)
        if (w->net->gradients[g].layer == 2 * layers - 1 - pass)
            w->queued_s[g] = now_s += w->net->request.gradient_host_s;
}

/* One iteration. first_tick_s: of Horovod's thread, any time before the first gradient. */
static double simulate(struct net *net, bool horovod, double first_tick_s, double copies_s) {
    static struct world w;
    const struct dl_timeline_request *r = &net->request;
    const int passes = 2 * net->count + 1;
    w = (struct world){.net = net, .horovod = horovod, .tick_s = horovod ? first_tick_s : INFINITY};
    for (int g = 0; g < net->gradient_count; g++) w.ready_s[g] = w.queued_s[g] = INFINITY;
    w.host_next_s = r->iteration_host_s + host_s(&w, 0);
    while (w.ran < passes) {
        start_message(&w);
        start_pass(&w, copies_s);
        const bool slowed =
            w.device_busy && w.lane_busy && w.ran >= net->count && w.ran + 1 < passes;
        const double rate = slowed ? 1 - r->slowdown_frac : 1;
        double next_s = fmin(w.host_next_s, w.sent < net->gradient_count ? w.tick_s : INFINITY);
        if (w.device_busy) next_s = fmin(next_s, w.now_s + w.work_left_s / rate);
        if (w.lane_busy)
            next_s = fmin(next_s, w.lane_end_s);
        else if (w.done < w.job_count)
            next_s = fmin(next_s, w.asked_s[w.done]);
        assert_true(isfinite(next_s));
        const bool device = w.device_busy && next_s >= w.now_s + w.work_left_s / rate,
                   host = next_s >= w.host_next_s, lane = w.lane_busy && next_s >= w.lane_end_s,
                   wakes = next_s >= w.tick_s;
        w.work_left_s -= (next_s - w.now_s) * rate;
        w.now_s = next_s;
        if (device) {
            pass_ends(&w);
            if (early(&w)) start_negotiated(&w);
        }
        if (lane) w.lane_busy = false, w.done++;
        if (host) {
            queue_gradients(&w, w.issued);
            w.issued++;
            w.host_next_s = w.issued < passes ? w.now_s + host_s(&w, w.issued) : INFINITY;
        }
        if (wakes) tick(&w);
    }
    return w.now_s;
}

/* Random networks. */

static uint64_t seed;
static double between(double low, double high) {
    return low * pow(high / low, check_uniform(&seed));
}
static int upto(int most) { return 1 + (int)(check_random(&seed) % (uint64_t)most); }

static void make(struct net *n, const char *behaviour) {
    memset(n, 0, sizeof *n);
    fake_make(&n->fake);
    double features[MAX_LAYERS + 1];
    n->count = 1 + upto(MAX_LAYERS - 1);
    for (int i = 0; i <= n->count; i++) features[i] = 100;
    fake_layers(&n->fake, n->count, features);
    for (int i = 0; i < n->count; i++) {
        n->layers[i].forward =
            (struct dl_pass_cost){.time_s = between(1e-5, 3e-3), .launches = upto(4)};
        n->layers[i].backward =
            (struct dl_pass_cost){.time_s = 2 * n->layers[i].forward.time_s, .launches = upto(8)};
    }
    for (int i = n->count - 1; i >= 0; i--) /* in backward order */
        for (int k = upto(3) - 1; k > 0; k--) {
            const double elements = between(1e2, 1e7);
            n->gradients[n->gradient_count++] =
                (struct dl_gradient){.layer = i, .elements = elements, .bytes = 4 * elements};
            n->request.sync.total_bytes += 4 * elements;
        }
    if (n->gradient_count == 0)
        n->gradients[n->gradient_count++] = (struct dl_gradient){.bytes = 4};
    n->cost = (struct dl_cost){.layers = n->layers,
                               .update = {.time_s = between(1e-5, 1e-3), .launches = upto(9)}};
    struct dl_framework *f = &n->fake.framework;
    fake_behaviour(f, behaviour);
    f->sync.collective_launch_s = between(1e-6, 1e-4);
    fake_try(f, "bucket_views", true);
    fake_try(f, "first_bucket_bytes", between(1e4, 1e7));
    f->sync.bucket_bytes = between(1e5, 1e8);
    fake_try(f, "batched_copies", true);
    fake_try(f, "fusion_bytes", between(1e6, 1e9));
    fake_try(f, "cycle_s", between(2e-3, 1e-2));
    fake_try(f, "request_s", between(1e-7, 1e-6));
    n->fake.plan.nodes = upto(16);
    n->request = (struct dl_timeline_request){
        .cost = &n->cost,
        .behaviour = f->behaviour,
        .sync = {.system = &n->fake.system,
                 .workload = &n->fake.workload,
                 .framework = f,
                 .plan = &n->fake.plan,
                 .gradients = n->gradients,
                 .gradient_count = n->gradient_count,
                 .total_bytes = n->request.sync.total_bytes,
                 .parameter_bytes = n->request.sync.total_bytes,
                 .library = DL_LIB_NCCL,
                 .arena = &test_arena},
        .gradients = n->gradients,
        .dispatch_s = between(1e-6, 1e-4),
        .gap_s = check_uniform(&seed) < 0.5 ? 0 : between(1e-7, 1e-5),
        .iteration_host_s = check_uniform(&seed) < 0.5 ? 0 : between(1e-5, 1e-3),
        .gradient_host_s = check_uniform(&seed) < 0.5 ? 0 : between(1e-6, 1e-4)};
}

static double model_s(struct net *n, struct dl_timeline *out) {
    struct dl_err err = {0};
    if (dl_timeline_run(&n->request, out, &err) != DL_OK) fail_msg("%s", err.message);
    return out->period_s;
}

static void buckets_of_ddp(void **state) {
    seed = 2020;
    for (int c = 0; c < CASES; c++) {
        struct net n;
        struct dl_timeline t;
        make(&n, "bucketed");
        const double model = model_s(&n, &t), simulated = simulate(&n, false, 0, 0);
        if (fabs(model - simulated) > 1e-9 * simulated)
            fail_msg("case %d: %.9g s, simulated %.9g s", c, model, simulated);
        dl_arena_free(&test_arena);
    }
}

/* Each of the model's phases exactly; their mean against that of 101 phases. */
static void cycles(bool queued_when_issued) {
    enum { PHASES = 5, MANY = 101 };
    seed = 2018;
    double worst = 0, mean = 0;
    for (int c = 0; c < CASES; c++) {
        struct net n;
        struct dl_timeline t;
        make(&n, "tensor-fusion");
        fake_set(&n.fake.framework, "queued_when_issued", queued_when_issued);
        const double model = model_s(&n, &t),
                     cycle_s = dl_framework_number(&n.fake.framework, "cycle_s");
        const struct dl_gradient *first = &n.gradients[0]; /* filled by the timeline */
        const double first_s = queued_when_issued ? first->issued_s : first->ready_s;
        double of_five = 0, of_many = 0;
        for (int p = 0; p < PHASES; p++)
            of_five += simulate(&n, true, first_s + cycle_s * (p + 0.5) / PHASES, 0) / PHASES;
        for (int p = 0; p < MANY; p++)
            of_many += simulate(&n, true, first_s + cycle_s * (p + 0.5) / MANY, 0) / MANY;
        if (fabs(model - of_five) > 1e-9 * of_five)
            fail_msg("case %d: %.9g s, simulated %.9g s", c, model, of_five);
        worst = fmax(worst, fabs(model / of_many - 1));
        mean += fabs(model / of_many - 1) / CASES;
        dl_arena_free(&test_arena);
    }
    print_message("# five phases are off by %.2f %%, at most %.2f %%\n", 100 * mean, 100 * worst);
    assert_true(worst < 0.08 && mean < 0.01);
}

static void cycles_of_horovod(void **state) { cycles(false); }

static void cycles_that_wait_for_the_device(void **state) { cycles(true); }

/* Kernels beside messages: the rates change whenever one begins or ends. */
static void slowed_backward(void **state) {
    seed = 2024;
    for (int c = 0; c < CASES; c++) {
        struct net n;
        struct dl_timeline t;
        make(&n, "bucketed");
        n.request.slowdown_frac = check_uniform(&seed);
        const double model = model_s(&n, &t), simulated = simulate(&n, false, 0, 0);
        if (fabs(model - simulated) > 1e-9 * simulated)
            fail_msg("case %d: %.9g s, simulated %.9g s", c, model, simulated);
        dl_arena_free(&test_arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_of_ddp), cmocka_unit_test(cycles_of_horovod),
        cmocka_unit_test(cycles_that_wait_for_the_device), cmocka_unit_test(slowed_backward)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}

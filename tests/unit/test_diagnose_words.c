/* Every warning of a prediction, in its words, exactly where it applies, and in their order; the
 * bottleneck as the largest of its parts; choices of numbers of nodes by trying all. Random cases
 * from a fixed seed, with values at the edge of each condition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/engine/advice.h"
#include "model/engine/diagnose.h"
#include "tests/check.h"
#include "tests/fake.h"

static uint64_t seed = 31;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double of(const double *list, int count) { return list[upto(count)]; }
#define ONE_OF(...)                                                                                \
    of((const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

enum { MOST = 12 };
struct words {
    const char *text[MOST];
    bool extrapolates;
    int count;
};
static void say(struct words *w, bool extrapolates, const char *text) {
    w->text[w->count++] = text;
    w->extrapolates = w->extrapolates || extrapolates;
}
#define SAY(extrapolates, ...) say(w, extrapolates, dl_arena_printf(&f->arena, __VA_ARGS__))

struct situation {
    struct dl_fake f;
    struct dl_rate rates[2];
    struct dl_evidence e;
    struct dl_diagnosis d;
    struct dl_prediction p;
};

static void about_devices(const struct situation *s, struct dl_fake *f, struct words *w) {
    const struct dl_plan *plan = &s->f.plan;
    const int nodes = (int)plan->nodes, each = (int)plan->devices_per_node,
              cores = (int)s->f.device.unit_count, host = (int)s->f.system.host.cores;
    const bool cpu = s->f.device.kind == DL_DEVICE_CPU;
    if (s->f.system.nodes == 1 && nodes > 1)
        SAY(true, "fake has 1 node; %d are extrapolated", nodes);
    else if (s->f.system.nodes > 1 && nodes > s->f.system.nodes)
        SAY(true, "fake has %d nodes; %d are extrapolated", (int)s->f.system.nodes, nodes);
    const int together = each * (s->f.system.nodes_share_host ? nodes : 1);
    if (cpu && host >= cores && together * cores > host)
        SAY(true,
            "%d devices of %d cores on a host of %d: oversubscribed %.3g times; they time-slice "
            "the cores, and a receiver waits until its sender is scheduled: use at most %.0f",
            together, cores, host, (double)(together * cores) / host, (double)host / cores);
    if (cpu && nodes * each > 1 && s->f.framework.behaviour->polls)
        SAY(false,
            "a thread of fake polls in MPI next to %d computing thread%s: compute takes %.3g times "
            "as long",
            cores, cores > 1 ? "s" : "",
            1 + 0.004 / (0.004 + s->f.framework.sync.fusion.cycle_s) / cores);
    const double wide = s->rates[0].peak_flop_per_s, narrow = s->rates[1].peak_flop_per_s;
    if (!cpu && (plan->precision == DL_MIXED || plan->precision == DL_FP16) && narrow <= wide)
        SAY(false,
            "fake-gpu computes in %s no faster than in fp32: it saves memory, and time only in "
            "layers that memory bandwidth limits",
            plan->precision == DL_MIXED ? "mixed" : "fp16");
}

static void about_measurements(const struct situation *s, struct dl_fake *f, struct words *w) {
    const double passes_s = s->e.forward_s + s->e.backward_s;
    if (passes_s > 0 && s->e.outside_s > 0.05 * passes_s)
        SAY(true, "%.0f %% of the layers' time lies outside the kernel samples of fake-gpu",
            100 * s->e.outside_s / passes_s);
    if (s->f.plan.nodes >= 2 && s->f.system.has_inter && s->f.system.inter.assumed)
        SAY(true, "links.inter of fake is assumed, not measured; set the real bandwidth with --set "
                  "links.inter.bandwidth=...");
    if (s->d.messages_extrapolated)
        SAY(true, "message sizes lie outside the measured range of the links");
    if (s->d.unknown_memory != NULL)
        SAY(false, "memory excludes what the file of fake-gpu does not state: %s",
            s->d.unknown_memory);
}

static void about_rate(const struct situation *s, struct dl_fake *f, struct words *w) {
    const struct dl_plan *plan = &s->f.plan;
    const int nodes = (int)plan->nodes, spare = (int)plan->backup_workers;
    if (s->f.framework.sync.asynchronous && nodes > 1)
        SAY(false,
            "asynchronous: gradients are applied to weights that are %d updates newer on average; "
            "throughput says nothing about convergence",
            nodes - 1);
    if (spare > 0)
        SAY(false,
            "backup workers: gradients of %d of %d workers (%.0f %%) are dropped in each step; "
            "samples/s counts only the others",
            spare, nodes, 100.0 * spare / nodes);
    const double devices = (double)(nodes * plan->devices_per_node);
    const bool split = s->d.parts > 1;
    const double replicas = split ? devices / s->d.parts : devices;
    if ((split || (double)plan->dp == devices) && replicas >= 2 &&
        replicas * plan->batch_per_device_samples - plan->global_batch_samples > 0.5)
        SAY(false, "%.0f samples do not divide evenly among %.0f %s: those with %.0f set the pace",
            plan->global_batch_samples, replicas, split ? "replicas" : "devices",
            plan->batch_per_device_samples);
    if (s->d.superlinear != NULL && s->p.scaling_efficiency > 1)
        SAY(false, "scaling efficiency above 1: %s", s->d.superlinear);
}

static void about_memory(const struct situation *s, struct dl_fake *f, struct words *w) {
    const struct dl_memory *m = &s->p.memory;
    if (s->p.fits && m->total_bytes > 0.9 * m->capacity_bytes)
        SAY(false,
            "memory is tight: %.0f %% of the device's; what the model leaves out may not fit",
            100 * m->total_bytes / m->capacity_bytes);
    if (s->p.fits) return;
    if (s->d.advice != NULL)
        SAY(false, "%s", s->d.advice);
    else if (s->p.max_batch_samples >= 1)
        SAY(false, "does not fit: the largest batch per device that fits is %.0f",
            s->p.max_batch_samples);
    else
        SAY(false, "does not fit at any batch size: use a device with more memory or a sharded "
                   "strategy");
}

static void any_situation(struct situation *s) {
    struct dl_fake *f = &s->f;
    fake_make(f);
    s->rates[0] = (struct dl_rate){.precision = DL_FP32, .peak_flop_per_s = 1e13};
    s->rates[1] = (struct dl_rate){.precision = DL_FP16, .unit = 1};
    s->rates[1].peak_flop_per_s = ONE_OF(9e12, 1e13, 2e13);
    f->device.rates = s->rates, f->device.rate_count = 2;
    f->device.kind = half() ? DL_DEVICE_CPU : DL_DEVICE_GPU;
    f->device.unit_count = 1 + upto(3);
    f->system.nodes = upto(4) == 0 ? DL_ABSENT : 1 + upto(3);
    f->system.host.cores = 1 + upto(6);
    f->system.nodes_share_host = half();
    f->system.has_inter = upto(3) > 0, f->system.inter.assumed = half();
    f->framework.behaviour = dl_framework_behaviour_find(half() ? "tensor-fusion" : "bucketed");
    f->framework.sync.asynchronous = half();
    struct dl_plan *plan = &f->plan;
    plan->nodes = 1 + upto(4), plan->devices_per_node = 1 + upto(3);
    plan->dp = plan->nodes * plan->devices_per_node - (upto(4) == 0 ? 1 : 0);
    plan->backup_workers = upto(3) == 0 ? upto((int)plan->nodes) : 0;
    plan->precision = (enum dl_precision[]){DL_FP32, DL_TF32, DL_MIXED, DL_FP16, DL_BF16}[upto(5)];
    plan->batch_per_device_samples = 1 + upto(4);
    s->d = (struct dl_diagnosis){.system = &f->system,
                                 .framework = &f->framework,
                                 .plan = plan,
                                 .evidence = &s->e,
                                 .parts = ONE_OF(0, 1, 1, 2),
                                 .messages_extrapolated = half(),
                                 .superlinear = half() ? "because" : NULL,
                                 .unknown_memory = half() ? "context" : NULL,
                                 .advice = half() ? "does not fit: wait" : NULL,
                                 .arena = &f->arena};
    if (s->d.parts > 1) plan->devices_per_node = 2; /* whole replicas */
    const double replicas =
        (double)(plan->nodes * plan->devices_per_node) / (s->d.parts > 1 ? s->d.parts : 1);
    plan->global_batch_samples = plan->batch_per_device_samples * replicas - upto(2);
    s->e = (struct dl_evidence){.forward_s = ONE_OF(0, 1, 3), .backward_s = ONE_OF(0, 2)};
    s->e.outside_s = (s->e.forward_s + s->e.backward_s) * ONE_OF(0, 0.049, 0.051, 1);
    s->p = (struct dl_prediction){.fits = half(), .iteration_s = 10, .compute_s = 8};
    s->p.scaling_efficiency = ONE_OF(0.9, 1, 1.1);
    s->p.max_batch_samples = ONE_OF(NAN, 0, 1, 7);
    s->p.memory.capacity_bytes = ONE_OF(NAN, 1000, 1000);
    s->p.memory.total_bytes = ONE_OF(10, 900, 901, 990);
}

static void warnings_in_words(void **state) {
    (void)state;
    int seen = 0;
    for (int round = 0; round < 6000; round++) {
        struct situation s;
        struct words w = {.count = 0};
        struct dl_err err = {0};
        any_situation(&s);
        about_devices(&s, &s.f, &w);
        about_measurements(&s, &s.f, &w);
        about_rate(&s, &s.f, &w);
        about_memory(&s, &s.f, &w);
        assert_int_equal(dl_diagnose(&s.d, &s.p, &err), DL_OK);
        for (int i = 0; i < w.count && i < s.p.warning_count; i++)
            assert_string_equal(s.p.warnings[i], w.text[i]);
        assert_int_equal(s.p.warning_count, w.count);
        assert_int_equal(s.p.extrapolated, w.extrapolates);
        seen += w.count;
        if (round % 10 == 0) {
            s.d.brief = true, s.p.warning_count = 0;
            assert_int_equal(dl_diagnose(&s.d, &s.p, &err), DL_OK);
            assert_int_equal(s.p.warning_count, 0);
            assert_true(s.p.iteration_high_s >= s.p.iteration_s);
        }
        dl_arena_free(&s.f.arena);
    }
    assert_true(seen > 20000);
}

/* F-BOUND: of equal parts the first. */
static void bottleneck_is_the_largest(void **state) {
    (void)state;
    for (int round = 0; round < 5000; round++) {
        struct dl_evidence e = {.by_limit_s = {upto(4), upto(4), upto(4)}};
        e.latency_s = upto(5), e.intra_s = upto(3), e.inter_s = upto(3), e.server_s = upto(2);
        struct dl_prediction p = {.fits = upto(9) > 0,
                                  .compute_s = upto(4),
                                  .exposed_comm_s = upto(4),
                                  .exposed_input_s = upto(4),
                                  .bubble_s = upto(4),
                                  .overhead_s = upto(4)};
        p.iteration_s =
            p.compute_s + p.exposed_comm_s + p.exposed_input_s + p.bubble_s + p.overhead_s;
        const double *l = e.by_limit_s;
        const enum dl_bottleneck compute = l[0] >= l[1] && l[0] >= l[2] ? DL_BOUND_COMPUTE
                                           : l[1] >= l[2]               ? DL_BOUND_MEMORY_BANDWIDTH
                                                                        : DL_BOUND_LATENCY,
                                 comm = e.latency_s > e.intra_s + e.inter_s + e.server_s
                                            ? DL_BOUND_LATENCY
                                        : e.server_s > 0        ? DL_BOUND_PS
                                        : e.inter_s > e.intra_s ? DL_BOUND_INTER
                                                                : DL_BOUND_INTRA;
        const double seconds[] = {p.compute_s, p.exposed_comm_s, p.exposed_input_s, p.bubble_s,
                                  p.overhead_s};
        const enum dl_bottleneck causes[] = {compute, comm, DL_BOUND_INPUT, DL_BOUND_BUBBLE,
                                             DL_BOUND_FRAMEWORK};
        int first = 4;
        for (int i = 3; i >= 0; i--)
            if (seconds[i] >= seconds[first]) first = i;
        dl_diagnose_bottleneck(&e, &p);
        assert_int_equal(p.bottleneck, p.fits ? causes[first] : DL_BOUND_CAPACITY);
        check_close(p.bottleneck_share,
                    !p.fits              ? 1
                    : p.iteration_s == 0 ? 0
                                         : seconds[first] / p.iteration_s,
                    1e-12);
    }
}

/* F-INTERVAL: variances of kernels (half correlated), collectives and the framework. */
static void spreads_add_up(void **state) {
    (void)state;
    for (int round = 0; round < 1000; round++) {
        const struct dl_evidence e = {.error_s = check_uniform(&seed),
                                      .error_square_s2 = check_uniform(&seed),
                                      .comm_error_s = check_uniform(&seed)};
        const double residual = 0.3 * check_uniform(&seed);
        struct dl_prediction p = {.iteration_s = 1 + 9 * check_uniform(&seed)};
        dl_diagnose_interval(&e, residual, &p);
        const double kernels =
                         sqrt(0.5 * pow(e.error_s, 2) + 0.5 * e.error_square_s2) / p.iteration_s,
                     model = hypot(kernels, e.comm_error_s / p.iteration_s),
                     end = 1.2815515655446004 * hypot(model, residual);
        check_close(p.model_sigma_log, model, 1e-12);
        check_close(log(p.iteration_high_s / p.iteration_s), end, 1e-9);
        check_close(log(p.iteration_s / p.iteration_low_s), end, 1e-9);
        check_nan(p.sigma_log);
        check_nan(p.shared_sigma_log);
    }
}

/* ---- how many nodes ---- */

enum { POINTS = 6 };

/* Whether point a is to be named before b among those that serve; of equal ones the first. */
static int best_of(const struct dl_advice_point *p, int count, bool by_cost, double deadline_s,
                   double budget) {
    int best = -1;
    for (int i = count - 1; i >= 0; i--) {
        bool serves = p[i].fits;
        if (deadline_s > 0) serves = serves && p[i].run_s <= deadline_s;
        if (budget > 0) serves = serves && p[i].run_cost <= budget;
        if (!serves) continue;
        if (best < 0 || (by_cost ? p[i].cost_per_sample <= p[best].cost_per_sample
                                 : p[i].samples_per_s >= p[best].samples_per_s))
            best = i;
    }
    return best;
}

static void choices_of_nodes(void **state) {
    (void)state;
    for (int round = 0; round < 20000; round++) {
        const int count = upto(POINTS + 1);
        const double unit = ONE_OF(0.1, 1); /* also runs of less than a second */
        struct dl_advice_point p[POINTS];
        for (int i = 0; i < count; i++) {
            p[i] = (struct dl_advice_point){.nodes = i + 1,
                                            .samples_per_s = 8 + upto(8),
                                            .efficiency = ONE_OF(0.7, 0.79, 0.8, 0.81, 1),
                                            .cost_per_sample = ONE_OF(1, 1.0625, 1.125, 2),
                                            .run_s = unit * (1 + upto(5)),
                                            .run_cost = unit * (1 + upto(5)),
                                            .fits = upto(4) > 0};
            p[i].low_samples_per_s = p[i].samples_per_s - upto(3);
            p[i].high_samples_per_s = p[i].samples_per_s + upto(3);
        }
        const struct dl_advice_limits limits = {.deadline_s = unit * upto(6),
                                                .budget = unit * upto(6)};
        const struct dl_advice a = dl_advice_of(p, count, &limits);
        const int fastest = best_of(p, count, false, 0, 0),
                  cheapest = best_of(p, count, true, 0, 0);
        int knee = -1, tied = -1, inefficient = count;
        for (int i = count - 1; i >= 0; i--) {
            if (i < fastest && p[i].fits && p[i].high_samples_per_s >= p[fastest].low_samples_per_s)
                tied = i;
            if (knee < 0 && p[i].fits && p[i].cost_per_sample <= 1.1 * p[cheapest].cost_per_sample)
                knee = i;
        }
        while (inefficient > 0 && p[inefficient - 1].efficiency < 0.8) inefficient--;
        assert_int_equal(a.fastest, fastest);
        assert_int_equal(a.cheapest, cheapest);
        assert_int_equal(a.knee, knee);
        assert_int_equal(a.tied_fastest, tied);
        assert_int_equal(a.inefficient, inefficient == count ? -1 : inefficient);
        assert_int_equal(
            a.in_time, limits.deadline_s > 0 ? best_of(p, count, true, limits.deadline_s, 0) : -1);
        assert_int_equal(a.in_budget,
                         limits.budget > 0 ? best_of(p, count, false, 0, limits.budget) : -1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warnings_in_words), cmocka_unit_test(bottleneck_is_the_largest),
        cmocka_unit_test(spreads_add_up), cmocka_unit_test(choices_of_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Limits of a plan (F-ELASTICITY, F-SAVING): what runs into which, how the time answers to each
 * resource, and the changes that pay, each against predictions of the changed machine or plan. */
#include "model/network/collective.h"
#include "model/framework/input.h"
#include "model/machine/what_if.h"
#include "model/search/limits.h"
#include "tests/check.h"
#include "tests/fake_transformer.h"

static struct gpt g;
static struct dl_limits limits;

enum { NETWORK, NETWORK_LATENCY, NODE, NODE_LATENCY, PEAK, MEMORY, STORAGE, HOST, DECODING, ALL };
static const char *const names[ALL] = {
    "links.inter.bandwidth",
    "links.inter.latency",
    "links.intra.bandwidth",
    "links.intra.latency",
    "peak",
    "memory bandwidth",
    "storage",
    "host.copy_bandwidth",
    "decoding workers",
};

static double times(double value, double by) { return dl_known(value) ? value * by : value; }

/* The prediction with `by` times as much of one resource. */
static struct dl_prediction with_more(const struct dl_plan *plan, int resource, double by) {
    struct dl_system system = g.f.system;
    struct dl_device device = *system.device;
    struct dl_rate rates[4];
    struct dl_plan own = *plan;
    struct dl_prediction p;
    struct dl_err err = {0};
    struct dl_link *link = resource <= NETWORK_LATENCY ? &system.inter : &system.intra;
    if (resource == NETWORK || resource == NODE) {
        link->bandwidth_bytes_per_s = times(link->bandwidth_bytes_per_s, by);
        link->cross_bandwidth_bytes_per_s = times(link->cross_bandwidth_bytes_per_s, by);
    } else if (resource == NETWORK_LATENCY || resource == NODE_LATENCY) {
        link->latency_s = times(link->latency_s, by);
        link->per_message_cpu_s = times(link->per_message_cpu_s, by);
    } else if (resource == PEAK || resource == MEMORY) {
        assert_true(device.rate_count <= 4);
        for (int i = 0; i < device.rate_count; i++) {
            rates[i] = device.rates[i];
            if (resource == PEAK) rates[i].peak_flop_per_s *= by;
        }
        device.rates = rates;
        if (resource == MEMORY) device.memory_bandwidth_bytes_per_s *= by;
        dl_device_what_if(g.f.system.device, &device, &test_arena);
        system.device = &device;
    } else if (resource == STORAGE) {
        system.storage.read_bytes_per_s = times(system.storage.read_bytes_per_s, by);
        system.storage.total_read_bytes_per_s = times(system.storage.total_read_bytes_per_s, by);
    } else if (resource == HOST) {
        system.host.copy_bandwidth_bytes_per_s *= by;
    } else {
        own.input.decode_s_per_sample /= by;
    }
    system.as_measured = &g.f.system;
    dl_system_what_if(&g.f.system, &system, &test_arena);
    if (dl_predict(&(struct dl_predict_request){&system, &g.workload, &g.f.framework, &own, NULL,
                                                &test_arena},
                   &p, &err) != DL_OK)
        fail_msg("%s: %s", names[resource], err.message);
    return p;
}

/* Resources that the plan uses, one bit each. */
static void check_elasticities(const struct dl_plan *plan, unsigned used) {
    int at = 0;
    for (int r = 0; r < ALL; r++) {
        if ((used & 1u << r) == 0) continue;
        const double more_s = with_more(plan, r, 1.01).iteration_s,
                     less_s = with_more(plan, r, 1 / 1.01).iteration_s;
        assert_true(at < limits.elasticity_count);
        assert_string_equal(limits.elasticity[at].resource, names[r]);
        check_close(limits.elasticity[at].value, (log(more_s) - log(less_s)) / (2 * log(1.01)),
                    1e-6);
        at++;
    }
    assert_int_equal(limits.elasticity_count, at);
}

struct candidate {
    char text[64];
    struct dl_prediction p;
    bool of_plan;
};
static struct candidate all[DL_MAX_LIMITS];
static int count;

static void try_resource(const struct dl_plan *plan, int resource, double by) {
    struct candidate *c = &all[count++];
    snprintf(c->text, sizeof c->text, "%s the %s", by < 1 ? "half" : "twice", names[resource]);
    c->p = with_more(plan, resource, by);
    c->of_plan = false;
}

static void try_plan(struct dl_plan plan, const char *text) {
    struct candidate *c = &all[count];
    plan.batch_per_device_samples = 0;
    snprintf(c->text, sizeof c->text, "%s", text);
    c->of_plan = true;
    count += dl_predict(&(struct dl_predict_request){&g.f.system, &g.workload, &g.f.framework,
                                                     &plan, NULL, &test_arena},
                        &c->p, NULL) == DL_OK;
}

/* Those that save a thousandth, or make it fit; the fastest first, of equals the first. */
static void check_changes(const struct dl_prediction *base) {
    bool used[DL_MAX_LIMITS] = {false};
    int at = 0;
    for (;;) {
        int next = -1;
        for (int i = 0; i < count; i++) {
            const struct dl_prediction *p = &all[i].p;
            if (used[i] || !p->fits || (base->fits && base->iteration_s / p->iteration_s < 1.001))
                continue;
            if (next < 0 || p->iteration_s < all[next].p.iteration_s) next = i;
        }
        if (next < 0) break;
        used[next] = true;
        assert_true(at < limits.change_count);
        assert_string_equal(limits.changes[at].text, all[next].text);
        check_close(limits.changes[at].iteration_s, all[next].p.iteration_s, 1e-9);
        assert_int_equal(limits.changes[at].of_plan, all[next].of_plan);
        assert_true(limits.changes[at].fits);
        at++;
    }
    assert_int_equal(limits.change_count, at);
}

static struct dl_prediction find(const struct dl_plan *plan) {
    struct dl_prediction base;
    struct dl_err err = {0};
    if (dl_predict(&(struct dl_predict_request){&g.f.system, &g.workload, &g.f.framework, plan,
                                                NULL, &test_arena},
                   &base, &err) != DL_OK ||
        dl_limits_of(&(struct dl_predict_request){.system = &g.f.system,
                                                  .workload = &g.workload,
                                                  .framework = &g.f.framework,
                                                  .plan = plan,
                                                  .arena = &test_arena},
                     &limits, &err) != DL_OK)
        fail_msg("%s", err.message);
    return base;
}

static int setup(void **state) {
    static struct dl_override small[] = {{.key = "layers", .value = "4"},
                                         {.key = "hidden", .value = "1024"},
                                         {.key = "heads", .value = "16"},
                                         {.key = "seq", .value = "512"}};
    memset(&g, 0, sizeof g);
    gpt_make(&g, small, 4);
    count = 0;
    return 0;
}

static int teardown(void **state) {
    dl_arena_free(&test_arena);
    return 0;
}

static void check_active(int at, const char *name, const char *category, double cost_s,
                         double cost_bytes) {
    assert_true(at < limits.active_count);
    assert_string_equal(limits.active[at].name, name);
    assert_string_equal(limits.active[at].category, category);
    check_close(limits.active[at].cost_s, cost_s, 1e-12);
    check_close(limits.active[at].cost_bytes, cost_bytes, 1e-12);
}

/* What the prediction says of each, seconds by size, then bytes. */
static void check_all_active(const struct dl_prediction *p, bool redundant, double replicas) {
    const struct {
        const char *name, *category;
        double cost_s;
    } seconds[] = {
        {"exposed communication", "communication", p->exposed_comm_s},
        {"overlapped communication", "communication", p->comm_s - p->exposed_comm_s},
        {"idle pipeline stages", "computation", p->bubble_s},
        {"weight update", "computation", p->update_s},
        {"input waited for", "input", p->exposed_input_s},
        {"host and stragglers", "framework", p->overhead_s},
    };
    enum { SECONDS = sizeof seconds / sizeof seconds[0] };
    bool used[SECONDS] = {false};
    int at = 0;
    for (int k = 0; k < SECONDS; k++) {
        int next = -1;
        for (int i = 0; i < SECONDS; i++)
            if (!used[i] && seconds[i].cost_s > 0 &&
                (next < 0 || seconds[i].cost_s > seconds[next].cost_s))
                next = i;
        if (next < 0) break;
        used[next] = true;
        check_active(at++, seconds[next].name, seconds[next].category, seconds[next].cost_s, NAN);
    }
    const struct dl_memory *m = &p->memory;
    const double states = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes;
    if (redundant)
        check_active(at++, "states held by every data rank", "memory", NAN,
                     states * (replicas - 1) / replicas);
    check_active(at++, "activations", "memory", NAN, m->activations_bytes);
    if (!p->fits)
        check_active(at++, "over the capacity", "memory", NAN, m->total_bytes - m->capacity_bytes);
    assert_int_equal(limits.active_count, at);
}

/* Two tensor ranks, two stages, two data ranks; micro-batches of 2 of 32 samples: every change of
 * the plan is possible. */
static void every_change_of_a_plan(void **state) {
    struct dl_plan plan = g.f.plan;
    plan.strategy = dl_strategy_find("3d");
    plan.nodes = 2, plan.tp = plan.pp = plan.dp = 2;
    plan.batch_per_device_samples = 0, plan.global_batch_samples = 32;
    plan.micro_batch_samples = 2;
    const struct dl_prediction base = find(&plan);
    assert_true(base.fits);
    for (int r = 0; r < ALL; r++)
        if (r != STORAGE && r != DECODING)
            try_resource(&plan, r, r == NETWORK_LATENCY || r == NODE_LATENCY ? 0.5 : 2);
    struct dl_plan p = plan;
    p.sequence_parallel = true;
    try_plan(p, "--sequence-parallel");
    p = plan, p.recompute = DL_RECOMPUTE_SELECTIVE;
    try_plan(p, "--recompute selective");
    p = plan, p.recompute = DL_RECOMPUTE_FULL;
    try_plan(p, "--recompute full");
    p = plan, p.micro_batch_samples = 1;
    try_plan(p, "--micro-batch 1");
    p = plan, p.micro_batch_samples = 4;
    try_plan(p, "--micro-batch 4");
    p = plan, p.schedule = DL_INTERLEAVED, p.virtual_stages = 2;
    try_plan(p, "--schedule interleaved");
    p = plan, p.tp = 1, p.dp = 4;
    try_plan(p, "--tp 1 --dp 4");
    p = plan, p.pp = 1, p.dp = 4;
    try_plan(p, "--pp 1 --dp 4");
    assert_int_equal(count, 15);
    check_changes(&base);
    check_elasticities(&plan, 1u << NETWORK | 1u << NETWORK_LATENCY | 1u << NODE |
                                  1u << NODE_LATENCY | 1u << PEAK | 1u << MEMORY | 1u << HOST);
    check_all_active(&base, true, 2);
}

/* Input that the step waits for: storage, decoding and the host's link count. */
static void input(void **state) {
    struct dl_plan plan = g.f.plan;
    plan.nodes = 2, plan.dp = 8;
    plan.batch_per_device_samples = 8, plan.global_batch_samples = 64;
    plan.input.synthetic = false;
    plan.input.sample_bytes = 1e8, plan.input.dataset_samples = 1e6;
    plan.input.first_epoch = true;
    const unsigned always = 1u << NETWORK | 1u << NETWORK_LATENCY | 1u << NODE |
                            1u << NODE_LATENCY | 1u << PEAK | 1u << MEMORY | 1u << HOST;
    g.f.system.storage = (struct dl_storage){.read_bytes_per_s = 1e8,
                                             .total_read_bytes_per_s = 1.5e8,
                                             .write_bytes_per_s = NAN,
                                             .total_write_bytes_per_s = NAN,
                                             .local_write_bytes_per_s = NAN,
                                             .local_recovery_frac = NAN,
                                             .open_s = NAN};
    g.f.system.has_storage = true;
    struct dl_prediction base = find(&plan);
    assert_true(base.exposed_input_s > 0);
    check_elasticities(&plan, always | 1u << STORAGE);
    check_all_active(&base, true, 8);
    plan.input.decode_s_per_sample = 10;
    base = find(&plan);
    check_elasticities(&plan, always | 1u << STORAGE | 1u << DECODING);
    g.f.system.has_storage = false;
    base = find(&plan);
    check_elasticities(&plan, always | 1u << DECODING);
    for (int r = 0; r < ALL; r++)
        if (r != STORAGE)
            try_resource(&plan, r, r == NETWORK_LATENCY || r == NODE_LATENCY ? 0.5 : 2);
    struct dl_plan p = plan;
    p.recompute = DL_RECOMPUTE_SELECTIVE;
    try_plan(p, "--recompute selective");
    p.recompute = DL_RECOMPUTE_FULL;
    try_plan(p, "--recompute full");
    check_changes(&base);
    check_all_active(&base, true, 8);
    assert_string_equal(limits.active[0].name, "input waited for");
    assert_string_equal(limits.active[0].detail,
                        dl_input_compute(&g.f.system, &g.workload, &g.f.framework, &plan).slowest);
    plan.input.synthetic = true;
    find(&plan);
    check_elasticities(&plan, always);
}

/* Where collectives were measured, more of a link scales what was measured, as it does with --set.
 */
static void measured_collectives(void **state) {
    struct dl_plan plan = g.f.plan;
    struct dl_coll_sample samples[] = {
        {1e4, 1e-3, NAN, NAN}, {1e6, 2e-3, NAN, NAN}, {1e9, 0.5, NAN, NAN}};
    struct dl_coll_measured measured = {.library = "nccl",
                                        .operation = "all_reduce",
                                        .nodes = 2,
                                        .ranks = 8,
                                        .samples = samples,
                                        .sample_count = 3};
    plan.nodes = 2, plan.dp = 8;
    plan.batch_per_device_samples = 0, plan.global_batch_samples = 16;
    const double modelled_s = find(&plan).iteration_s;
    g.f.system.collectives = &measured, g.f.system.collective_count = 1;
    dl_coll_measured_fill(&g.f.system, &test_arena);
    assert_true(find(&plan).iteration_s > 1.1 * modelled_s);
    check_elasticities(&plan, 1u << NETWORK | 1u << NETWORK_LATENCY | 1u << NODE |
                                  1u << NODE_LATENCY | 1u << PEAK | 1u << MEMORY | 1u << HOST);
    assert_true(limits.elasticity[0].value < -0.01);
}

/* F-SAVING: a tenth more of each; the most first, of equals the first. */
static void savings(void **state) {
    struct dl_plan plan = g.f.plan;
    struct dl_saving out[DL_MAX_LIMITS];
    plan.strategy = dl_strategy_find("3d");
    plan.nodes = 2, plan.tp = plan.pp = plan.dp = 2;
    plan.batch_per_device_samples = 0, plan.global_batch_samples = 32;
    plan.micro_batch_samples = 2;
    const struct dl_prediction base = find(&plan);
    const struct dl_predict_request request = {.system = &g.f.system,
                                               .workload = &g.workload,
                                               .framework = &g.f.framework,
                                               .plan = &plan,
                                               .arena = &test_arena};
    int saving_count;
    assert_int_equal(dl_gains_of(&request, base.iteration_s, out, &saving_count, NULL), DL_OK);
    assert_int_equal(saving_count, 7);
    unsigned seen = 0;
    for (int i = 0; i < saving_count; i++) {
        for (int r = 0; r < ALL; r++) {
            if (strcmp(out[i].resource, names[r]) != 0) continue;
            const bool latency = r == NETWORK_LATENCY || r == NODE_LATENCY;
            const double time_s = with_more(&plan, r, latency ? 1 / 1.1 : 1.1).iteration_s;
            check_close(out[i].saved_frac, 1 - time_s / base.iteration_s, 1e-9);
            seen |= 1u << r;
        }
        if (i > 0) assert_true(out[i].saved_frac <= out[i - 1].saved_frac);
    }
    assert_int_equal(seen, 1u << NETWORK | 1u << NETWORK_LATENCY | 1u << NODE | 1u << NODE_LATENCY |
                               1u << PEAK | 1u << MEMORY | 1u << HOST);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {test(every_change_of_a_plan), test(input), test(savings),
                                       test(measured_collectives)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}

/* Every way to synchronize gradients on a system that lacks something or is small: messages of
 * known times, or an error that says what is missing; never a number that is none. Then what a
 * plan costs in memory and power, and ties. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/engine/correct.h"
#include "model/engine/energy.h"
#include "model/engine/memory.h"
#include "model/engine/memory_advice.h"
#include "tests/gradient_bench.h"

static struct bench b;

static void start(void) {
    static const double sizes[] = {40e6, 8e6, 4e6, 4e6}, ready[] = {1, 2, 3, 4};
    make(&b, 4, sizes, ready);
    b.request.parameter_bytes = 56e6;
    b.fake.framework.sync.copy_pattern = "star";
    b.fake.framework.sync.sparse.gradient_frac = 0.01;
    b.fake.framework.sync.local.local_step_count = 4;
    b.fake.framework.sync.concatenated.pack_bytes = 30e6;
}

typedef void change(struct dl_system *s, struct dl_framework *f, struct dl_plan *p);
#define CHANGE(name, what)                                                                         \
    static void name(struct dl_system *s, struct dl_framework *f, struct dl_plan *p) {             \
        (void)s, (void)f, (void)p;                                                                 \
        what;                                                                                      \
    }
CHANGE(nothing, (void)0)
CHANGE(no_links, s->has_intra = false)
CHANGE(no_peers, s->intra.peer_to_peer = false)
CHANGE(no_rate, s->intra.bandwidth_bytes_per_s = NAN)
CHANGE(no_copy, s->host.copy_bandwidth_bytes_per_s = s->host.pageable_bandwidth_bytes_per_s = NAN)
CHANGE(no_memory, s->host.memory_bandwidth_bytes_per_s = NAN)
CHANGE(no_host, s->has_host = false)
CHANGE(no_adapter, s->inter.bandwidth_bytes_per_s = NAN)
CHANGE(no_network, s->has_inter = false)
CHANGE(sockets, s->inter.nccl_bandwidth_bytes_per_s = 2e9)
CHANGE(loopback, s->inter.kind = "loopback")
CHANGE(each_device, f->sync.messages.worker_per_device = true)
CHANGE(staged, f->sync.kvstore.host_staged = true)
CHANGE(serial, f->sync.kvstore.serial_keys = true)
CHANGE(beside, f->sync.messages.servers_colocated = true)
CHANGE(few_servers, p->servers = 1)
CHANGE(on_gpu, p->variable_placement = "gpu")
CHANGE(named, p->library = "mpi")
CHANGE(one_node, p->nodes = 1)
CHANGE(one_device, p->devices_per_node = 1)

static void every_behaviour_lacking_something(void **state) {
    (void)state;
    change *const changes[] = {nothing,     no_links,    no_peers,   no_rate,    no_copy,
                               no_memory,   no_host,     no_adapter, no_network, sockets,
                               loopback,    each_device, staged,     serial,     beside,
                               few_servers, on_gpu,      named,      one_node,   one_device};
    enum { CHANGES = sizeof changes / sizeof *changes };
    int failed = 0, ran = 0;
    for (int i = 0; dl_framework_behaviours[i] != NULL; i++)
        for (int c = 0; c < CHANGES * CHANGES * 4; c++) {
            struct dl_err err = {0};
            start();
            changes[c % CHANGES](&b.fake.system, &b.fake.framework, &b.fake.plan);
            changes[c / CHANGES % CHANGES](&b.fake.system, &b.fake.framework, &b.fake.plan);
            b.fake.device.kind = c / CHANGES / CHANGES % 2 == 1 ? DL_DEVICE_CPU : DL_DEVICE_GPU;
            b.request.library = c / CHANGES / CHANGES / 2 == 1 ? DL_LIB_MPI : DL_LIB_NCCL;
            b.fake.plan.dp = b.fake.plan.nodes * b.fake.plan.devices_per_node;
            const enum dl_code code =
                dl_framework_behaviours[i]->synchronize(&b.request, &b.sync, &err);
            if (code != DL_OK) {
                failed++;
                if (err.message[0] == '\0')
                    fail_msg("%s: no words", dl_framework_behaviours[i]->name);
            } else {
                ran++;
                for (int m = 0; m < b.sync.message_count; m++) {
                    const struct dl_message *message = &b.sync.messages[m];
                    if (!(message->duration_s >= 0) || !(message->ready_s >= 0) ||
                        !(message->tail_s >= 0) || isinf(message->duration_s))
                        fail_msg("%s, change %d: message %d takes %g s",
                                 dl_framework_behaviours[i]->name, c, m, message->duration_s);
                }
                if (!(b.sync.device_copy_s >= 0) || !(b.sync.host_s >= 0) ||
                    !(b.sync.prologue_s >= 0))
                    fail_msg("%s, change %d: copies", dl_framework_behaviours[i]->name, c);
            }
            dl_arena_free(&b.fake.arena);
        }
    assert_true(failed > 1000 && ran > 5000); /* both happen */
}

/* 8.5 million parameters at 16 B of state each, and activations of a sample: what saves enough
 * comes first. */
static void advice_on_memory(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_memory m = {0};
    dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, 256, &m, NULL);
    f.device.memory_bytes = m.total_bytes;
    assert_null(dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, 256, &f.arena));
    f.device.memory_bytes = NAN;
    assert_null(dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, 256, &f.arena));
    assert_true(dl_memory_fits(&(struct dl_memory){.total_bytes = 5, .capacity_bytes = NAN}));
    assert_true(dl_memory_fits(&(struct dl_memory){.total_bytes = 5, .capacity_bytes = 5}));
    assert_false(dl_memory_fits(&(struct dl_memory){.total_bytes = 5.1, .capacity_bytes = 5}));
    f.device.memory_bytes = m.total_bytes - 1e6; /* half the batch saves more than that */
    check_contains(dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, 256, &f.arena),
                   "--micro-batch 128 saves");
    f.plan.batch_per_device_samples = 255.5; /* no whole parts; the devices' states shared out do */
    f.plan.dp = 8;
    check_contains(dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, 255.5, &f.arena),
                   "--strategy zero3 saves");
    f.plan.dp = 1;
    f.device.memory_bytes = 6e8;
    const char *text = dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, 1, &f.arena);
    check_contains(text, "use a device with more memory");
    struct dl_rate rates[] = {{.precision = DL_FP32, .peak_flop_per_s = 1e13},
                              {.precision = DL_MIXED, .peak_flop_per_s = 1e14}};
    f.device.rates = rates, f.device.rate_count = 2;
    text = dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, 1, &f.arena);
    check_contains(text, "does not fit");
    dl_arena_free(&f.arena);
}

/* 4 devices of 300 W beside a host of 500 W: rated only where the device states its power and
 * all nodes are alike. */
static void power_of_a_node(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_prediction p = {.iteration_s = 1, .compute_s = 1, .by_limit_s = {1, 0, 0}};
    f.device.tdp_w = 300, f.device.load_w = NAN, f.device.idle_w = NAN;
    f.system.host_w = 500, f.system.pue = NAN;
    struct dl_power power = dl_power_of(&f.system, &f.plan, &p, NULL);
    assert_true(power.node_w > 500 && power.node_w <= 500 + 4 * 300);
    assert_true(power.load_assumed && !power.host_assumed);
    check_close(power.job_w, 2 * power.node_w, 1e-12);
    f.system.pue = 1.5;
    check_close(dl_power_of(&f.system, &f.plan, &p, NULL).job_w, 3 * power.node_w, 1e-12);
    p.group_count = 2;
    check_nan(dl_power_of(&f.system, &f.plan, &p, NULL).node_w);
    p.group_count = 0, f.device.tdp_w = NAN;
    check_nan(dl_power_of(&f.system, &f.plan, &p, NULL).node_w);
    const struct dl_rates rates = {.node_w = 700, .price_per_node_hour = NAN};
    power = dl_power_of(&f.system, &f.plan, &p, &rates);
    check_close(power.job_w, 2 * 700 * 1.5, 1e-12);
    check_close(power.sigma_log, 0, 0);
    f.device.tdp_w = 300, f.system.device = NULL;
    check_nan(dl_power_of(&f.system, &f.plan, &p, NULL).device_w);
    f.system.device = &f.device, f.system.price_per_node_hour = 3, f.system.price_currency = "EUR";
    check_close(dl_price_of(&f.system, NULL), 3, 0);
    check_close(dl_price_of(&f.system, &rates), 3, 0);
    assert_string_equal(dl_currency_of(&f.system, &rates), "EUR");
    const struct dl_rates own = {.node_w = NAN, .price_per_node_hour = 2, .currency = "USD"};
    check_close(dl_price_of(&f.system, &own), 2, 0);
    assert_string_equal(dl_currency_of(&f.system, &own), "USD");
    f.system.price_per_node_hour = NAN;
    check_nan(dl_price_of(&f.system, NULL));
    assert_null(dl_currency_of(&f.system, NULL));
    dl_arena_free(&f.arena);
}

static void predictions_that_tie(void **state) {
    (void)state;
    /* 80 % of either lie within a factor of 1.1; half of the variance is shared */
    struct dl_prediction a = {.iteration_s = 1,
                              .iteration_high_s = 1.1,
                              .iteration_low_s = 1 / 1.1,
                              .throughput_samples_per_s = 100,
                              .sigma_log = 0.1,
                              .shared_sigma_log = 0},
                         c = a;
    c.throughput_samples_per_s = 113;
    assert_true(dl_prediction_ties(&a, &c)); /* log 1.13 = 0.122 < sqrt 2 x 0.0953 = 0.135 */
    c.throughput_samples_per_s = 115;
    assert_false(dl_prediction_ties(&a, &c));
    c.throughput_samples_per_s = 113;
    a.shared_sigma_log = c.shared_sigma_log = 0.1 * sqrt(0.5); /* 0.0953 in all */
    assert_false(dl_prediction_ties(&a, &c));
    a.sigma_log = c.sigma_log = NAN; /* nothing known of what is shared */
    assert_true(dl_prediction_ties(&a, &c));
    a.sigma_log = c.sigma_log = 0;
    assert_true(dl_prediction_ties(&a, &c));
    a.sigma_log = c.sigma_log = 0.1, a.shared_sigma_log = c.shared_sigma_log = NAN;
    assert_true(dl_prediction_ties(&a, &c));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_behaviour_lacking_something), cmocka_unit_test(advice_on_memory),
        cmocka_unit_test(power_of_a_node), cmocka_unit_test(predictions_that_tie)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

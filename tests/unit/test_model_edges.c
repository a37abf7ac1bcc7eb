/* Ends of arrays in every behaviour and in advice; iterations that alternate or are no number;
 * stages of networks; ParaDL's layers by hand; strategies that follow from ranks; advice on plans
 * that do not fit; memos that forget. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/cost_memo.h"
#include "model/framework/host_dispatch.h"
#include "model/framework/layer_times.h"
#include "model/framework/timeline.h"
#include "model/engine/canonical.h"
#include "model/engine/pipe.h"
#include "model/engine/advice.h"
#include "model/engine/memory_advice.h"
#include "model/workload/layer.h"
#include "tests/fake_transformer.h"
#include "tests/gradient_bench.h"
#include "tests/guarded.h"

static struct dl_err err;

/* No behaviour reads a gradient before the first or after the last. */
static void gradients_and_no_others(void **state) {
    (void)state;
    static const double sizes[] = {4e6, 40e6, 4e3}, ready[] = {1, 1, 2};
    for (int i = 0; dl_framework_behaviours[i] != NULL; i++) {
        for (int c = 0; c < 16; c++) {
            struct bench b;
            make(&b, c % 2 ? 3 : 1, sizes, ready);
            b.request.parameter_bytes = b.request.total_bytes;
            struct dl_framework *f = &b.fake.framework;
            f->sync.sparse.gradient_frac = 0.01, f->sync.local.local_step_count = 4;
            f->sync.messages.servers_colocated = true, f->sync.copy_pattern = "star";
            f->sync.concatenated.pack_bytes = 5e6;
            f->sync.messages.weights_on_device = c / 4 % 2;
            b.fake.plan.nodes = 1 + c / 2 % 2;
            if (c / 8) b.fake.device.kind = DL_DEVICE_CPU, b.request.library = DL_LIB_MPI;
            if (c / 8 && c / 4 % 2) b.fake.system.inter.kind = "loopback";
            for (int guard = 0; guard < GUARDS; guard++) {
                b.request.gradients =
                    guarded(b.gradients, (size_t)b.request.gradient_count * sizeof *b.gradients,
                            (enum guard)guard);
                memset(&err, 0, sizeof err);
                memset(&b.sync, 0, sizeof b.sync);
                if (dl_framework_behaviours[i]->synchronize(&b.request, &b.sync, &err) != DL_OK)
                    continue;
                for (int m = 0; m < b.sync.message_count; m++) {
                    const struct dl_message *one = &b.sync.messages[m];
                    assert_true(one->first >= 0 &&
                                one->first + one->count <= b.request.gradient_count);
                    assert_true(one->duration_s >= 0 && one->tail_s >= 0);
                }
            }
            dl_arena_free(&b.fake.arena);
        }
    }
}

static void points_and_no_others(void **state) {
    (void)state;
    const struct dl_advice_limits limits = {.deadline_s = 10, .budget = 10};
    for (int guard = 0; guard < GUARDS; guard++) {
        struct dl_advice_point p[3];
        for (int i = 0; i < 3; i++)
            p[i] = (struct dl_advice_point){.nodes = i + 1,
                                            .samples_per_s = i + 1,
                                            .low_samples_per_s = i + 0.5,
                                            .high_samples_per_s = i + 1.25,
                                            .efficiency = 0.9 - 0.1 * i,
                                            .cost_per_sample = 1 + 0.06 * i,
                                            .run_s = 11 - i,
                                            .run_cost = 9 + i,
                                            .fits = true};
        const struct dl_advice a =
            dl_advice_of(guarded(p, sizeof p, (enum guard)guard), 3, &limits);
        assert_true(a.fastest == 2 && a.cheapest == 0 && a.knee == 1 && a.inefficient == 2);
        assert_true(a.in_time == 1 && a.in_budget == 1 && a.tied_fastest == -1);
    }
}

static int calls;
static double waits_s[2];

/* Of no messages: the device copies for as long as it is told, in turn. */
static enum dl_code in_turn(const struct dl_gradient_sync_request *r, struct dl_gradient_sync *out,
                            struct dl_err *error) {
    (void)r, (void)error;
    out->device_copy_s = waits_s[calls++ % 2];
    out->wait_each = true;
    return DL_OK;
}

/* 96 iterations of 1 s and 3 s in turn take 2 s on average. */
static void iterations_in_turn(void **state) {
    (void)state;
    static const struct dl_framework_behaviour behaviour = {.name = "test", .synchronize = in_turn};
    static const double size = 4, ready = 0;
    struct bench b;
    make(&b, 1, &size, &ready);
    struct dl_cost cost;
    assert_int_equal(dl_cost_compute(&b.fake.device, &b.fake.workload, &b.fake.framework,
                                     &b.fake.plan, 1, &b.fake.arena, &cost, &err),
                     DL_OK);
    struct dl_timeline_request request = {
        .cost = &cost, .behaviour = &behaviour, .sync = b.request, .gradients = b.gradients};
    request.sync.gradients = b.gradients;
    struct dl_timeline t;
    for (int i = 0; i < 3; i++) {
        static const double pairs[][2] = {{0, 0}, {1, 3}, {NAN, NAN}};
        static double none_s;
        calls = 0;
        memcpy(waits_s, pairs[i], sizeof waits_s);
        const enum dl_code code = dl_timeline_run(&request, &t, &err);
        if (i == 2) {
            assert_int_equal(code, DL_ERR_INPUT);
            assert_string_equal(err.message,
                                "framework fake: the time of an iteration is not a number");
            continue;
        }
        assert_int_equal(code, DL_OK);
        if (i == 0)
            none_s = t.period_s;
        else
            check_close(t.period_s, none_s + 2, 1e-9);
    }
    dl_arena_free(&b.fake.arena);
}

/* A call of eager PyTorch is known of the device or of the one that it borrows from. */
static void dispatch(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_device lender = f.device;
    f.device.borrowed = &lender;
    for (int i = 0; i < 64; i++) {
        const double own = i % 2 ? 5e-6 : 0, launch = i / 2 % 2 ? 8e-6 : NAN,
                     here = i / 4 % 2 ? 9e-6 : NAN, there = i / 8 % 2 ? 7e-6 : NAN;
        f.framework.host.dispatch_s = own, f.device.launch_s = launch;
        f.device.eager_call_s = here, lender.eager_call_s = there;
        f.framework.host.eager_calls = i / 16 % 2;
        double want = own;
        if (launch > want) want = launch;
        if (f.framework.host.eager_calls) {
            const double call = isnan(here) ? there : here;
            if (call > want) want = call;
        }
        check_close(dl_dispatch_s(&f.framework, &f.device), own > 0 ? want : 0, 0);
    }
    f.framework.host.dispatch_s = NAN;
    check_close(dl_dispatch_s(&f.framework, &f.device), 0, 0);
    dl_arena_free(&f.arena);
}

static bool stays(void *user, const void *object) { return object != user; }

/* What belongs to an object that goes is not found again, of either kind; the rest is. */
static void memos_forget(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    for (int kind = 0; kind < DL_MEMO_KINDS; kind++) {
        struct dl_framework gone = f.framework;
        struct dl_cost_memo memo = {.arena = &f.arena};
        struct dl_memo_entry kept = {.device = &f.device,
                                     .workload = &f.workload,
                                     .framework = &f.framework,
                                     .samples = 1},
                             lost = kept;
        lost.framework = &gone;
        dl_cost_memo_add(&memo, (enum dl_memo_kind)kind, &kept);
        dl_cost_memo_add(&memo, (enum dl_memo_kind)kind, &lost);
        assert_non_null(dl_cost_memo_first(&memo, (enum dl_memo_kind)kind, &lost));
        dl_cost_memo_settle(&memo, stays, &gone);
        const struct dl_memo_entry *e = dl_cost_memo_first(&memo, (enum dl_memo_kind)kind, &lost);
        for (; e != NULL; e = e->next) assert_ptr_not_equal(e, &lost);
        e = dl_cost_memo_first(&memo, (enum dl_memo_kind)kind, &kept);
        while (e != NULL && e != &kept) e = e->next;
        assert_ptr_equal(e, &kept);
    }
    dl_arena_free(&f.arena);
}

/* Two stages of two layers, `dp` of them: messages with all that the collective says.
 * Kept whole: one plan, its messages and what they are compared with. */
static void messages_of_stages(void **state) {
    (void)state;
    for (int dp = 1; dp <= 4; dp++) {
        struct dl_fake f;
        struct dl_prediction p;
        fake_make(&f);
        f.plan.strategy = dl_strategy_find("data+pipeline");
        f.plan.nodes = dp, f.plan.devices_per_node = 2, f.plan.dp = dp, f.plan.pp = 2;
        f.plan.tp = f.plan.sp = f.plan.ep = 1;
        f.plan.batch_per_device_samples = 64, f.plan.micro_batch_samples = 32;
        f.plan.global_batch_samples = 128 * dp;
        assert_int_equal(fake_predict(&f, &p), DL_OK);
        assert_int_equal(p.comm_messages, dp > 1 ? 3 : 1);
        assert_int_equal(p.stage_count == 0 || p.stage_count == 2, 1);
        assert_non_null(p.stage_times);
        check_close(p.micro_batches, 4, 0);
        for (int s = 0; s < 2; s++) {
            assert_true(p.stage_times[s].forward_s > 0);
            assert_true(p.stage_times[s].backward_s > p.stage_times[s].forward_s);
        }
        struct dl_pipe pipe = {.stages = 2, .parts = 2, .plan = f.plan, .micro_batches = 4};
        struct dl_message messages[3];
        const struct dl_predict_request request = {.system = &f.system,
                                                   .workload = &f.workload,
                                                   .framework = &f.framework,
                                                   .plan = &f.plan,
                                                   .arena = &f.arena};
        struct dl_cost cost;
        struct dl_evidence e;
        const double cuts[] = {1000, 4000, 4000, 2000, 500};
        pipe.request = &request, pipe.messages = messages, pipe.cut_elements = cuts;
        assert_int_equal(dl_pipe_room(&pipe, &f.arena, &err), DL_OK);
        assert_int_equal(dl_cost_compute(&f.device, &f.workload, &f.framework, &f.plan, 32,
                                         &f.arena, &cost, &err),
                         DL_OK);
        pipe.first[0] = 0, pipe.first[1] = 2, pipe.first[2] = 4;
        dl_pipe_split(&pipe, &request, &cost);
        assert_int_equal(dl_pipe_evidence(&pipe, &e, &err), DL_OK);
        assert_int_equal(pipe.message_count, dp > 1 ? 3 : 1);
        for (int m = 0; m < pipe.message_count; m++) {
            struct dl_collective_request wanted = {.op = DL_COLL_ALL_REDUCE,
                                                   .library = DL_LIB_NCCL,
                                                   .bytes = 4 * pipe.parameters[m > 0 ? m - 1 : 0],
                                                   .nodes = dp,
                                                   .ranks_per_node = 2,
                                                   .group_size = dp,
                                                   .group_stride = 2,
                                                   .concurrent = 2,
                                                   .flows_per_adapter = 1};
            double count = 1;
            if (m == 0) { /* 4000 numbers of 32 samples, there and back, 4 times */
                wanted = (struct dl_collective_request){.op = DL_COLL_P2P,
                                                        .library = DL_LIB_NCCL,
                                                        .bytes = 4000.0 * 32 * 4,
                                                        .flows_per_adapter = 1};
                dl_collective_neighbours(&f.system, dp, 2, 2, 1, &wanted);
                count = 8;
            }
            struct dl_collective_time t;
            assert_int_equal(dl_collective_time(&f.system, &wanted, &t, &err), DL_OK);
            const struct dl_message *got = &messages[m];
            assert_string_equal(got->name, m == 0 ? "activations and gradients between stages"
                                                  : "all-reduce of a stage");
            check_close(got->bytes, wanted.bytes * count, 1e-12);
            check_close(got->duration_s, t.time_s * count, 1e-12);
            check_close(got->latency_s, t.latency_s * count, 1e-12);
            check_close(got->bandwidth_s, t.bandwidth_s * count, 1e-12);
            check_close(got->sigma_log, t.sigma_log, 0);
            assert_ptr_equal(got->algorithm, t.algorithm);
            assert_ptr_equal(got->protocol, t.protocol);
            assert_ptr_equal(got->formula, t.formula);
            assert_ptr_equal(got->limit, t.limit);
            assert_ptr_equal(got->origin, t.origin);
            assert_int_equal(got->extrapolated, t.extrapolated);
        }
        dl_arena_free(&f.arena);
    }
}

/* F-PARADL of two convolutions of 3 x 3, the second with the weights of the first, which are split
 * once, and a dense layer, on 2 parts in each of `dp` groups; the dense
 * layer comes last or first.
 * Kept whole: one network and each of its sums. */
static void layers_of_paradl(void **state) {
    (void)state;
    for (int n = 0; n < 4; n++) {
        const int dp = 1 + n % 2, own = n / 2; /* the first convolution */
        struct dl_fake f;
        struct dl_prediction p;
        fake_make(&f);
        const struct dl_shape image = {.dims = 2, .channels = 8, .size = {2, 16, 16}};
        struct dl_layer layers[3];
        for (int i = 0; i < 3; i++) {
            layers[i] = f.workload.layers[i];
            const int role = (i + 3 - own) % 3;
            layers[i].kind = role < 2 ? &dl_layer_conv : &dl_layer_dense;
            layers[i].in = layers[i].out = image;
            for (int d = 0; d < 3; d++) {
                layers[i].kernel[d] = role < 2 && d > 0 ? 3 : 1;
                layers[i].stride[d] = layers[i].dilation[d] = 1;
                layers[i].pad[d] = role < 2 && d > 0 ? 1 : 0;
            }
            layers[i].groups = 1;
            layers[i].parameter_elements = 1e6 * (role + 1);
        }
        layers[own + 1].tied_to = own;
        f.workload.layers = layers, f.workload.layer_count = 3, f.workload.parameters = 4e6;
        struct dl_plan *plan = &f.plan;
        plan->strategy = dl_strategy_find("data+filter"), plan->assume = DL_ASSUME_PARADL;
        plan->nodes = dp, plan->devices_per_node = 2, plan->dp = dp, plan->tp = 2;
        plan->pp = plan->sp = plan->ep = 1;
        plan->batch_per_device_samples = 8, plan->global_batch_samples = 16 * dp;
        struct dl_cost cost;
        assert_int_equal(
            dl_cost_compute(&f.device, &f.workload, &f.framework, plan, 16, &f.arena, &cost, &err),
            DL_OK);
        double compute_s = 0, gathers_s = 0;
        for (int i = 0; i < 3; i++) {
            compute_s += (cost.layers[i].forward.time_s + cost.layers[i].backward.time_s) /
                         (i == own ? 2 : 1);
            if (i == own) gathers_s += 2e-6 + 16 * 4 * 8 * 512 / 120e9 / 2;
        }
        /* of 4 million weights 1 million are split, 3 million are not */
        const double update_s = cost.update.time_s * (0.25 / 2 + 0.75);
        double comm_s = 3 * gathers_s;
        if (dp > 1) comm_s += 2 * (1.5e-6 + 16e6 / 12e9 / 2);
        assert_int_equal(fake_predict(&f, &p), DL_OK);
        check_close(p.comm_s, comm_s, 1e-9);
        check_close(p.update_s, update_s, 1e-9);
        check_close(p.compute_s, compute_s + update_s, 1e-9);
        check_close(p.forward_s, compute_s / 3, 1e-9);
        check_close(p.iteration_s, compute_s + update_s + comm_s, 1e-9);
        check_close(p.epoch_s, 1000 / (16 * dp / p.iteration_s), 1e-9);
        assert_int_equal(p.bottleneck, comm_s <= compute_s + update_s ? DL_BOUND_COMPUTE
                                       : dp > 1                       ? DL_BOUND_INTER
                                                                      : DL_BOUND_INTRA);
        f.system.intra.latency_s = f.system.inter.latency_s = NAN; /* then no latency counts */
        assert_int_equal(fake_predict(&f, &p), DL_OK);
        check_close(p.comm_s, comm_s - 6e-6 - (dp > 1 ? 3e-6 : 0), 1e-9);
        for (int slow = 0; slow < 2; slow++) { /* then the links bound it */
            f.system.intra.bandwidth_bytes_per_s = 1e6;
            f.system.inter.bandwidth_bytes_per_s = 1e6;
            assert_int_equal(fake_predict(&f, &p), DL_OK);
            assert_int_equal(p.bottleneck, dp > 1 ? DL_BOUND_INTER : DL_BOUND_INTRA);
        }
        dl_arena_free(&f.arena);
    }
}

/* The strategy that a transformer's ranks ask for, and what a plan is simulated as. */
static void strategies_of_ranks(void **state) {
    (void)state;
    struct gpt g;
    struct dl_override moe[] = {{.key = "experts", .value = "8"}, {.key = "topk", .value = "2"}};
    gpt_make(&g, moe, 2);
    static const struct {
        const char *given;
        int tp, pp, sp, ep;
        const char *becomes;
        int shard;
    } rows[] = {{NULL, 0, 0, 0, 0, "data", 0},      {NULL, 2, 0, 0, 0, "3d", 0},
                {NULL, 0, 2, 0, 0, "3d", 0},        {NULL, 0, 0, 2, 0, "3d", 0},
                {NULL, 0, 0, 0, 2, "expert", 0},    {"zero1", 0, 0, 0, 0, "zero1", 0},
                {"zero1", 2, 0, 0, 0, "3d", 1},     {"zero2", 0, 2, 0, 0, "3d", 2},
                {"zero3", 0, 0, 2, 0, "3d", 3},     {"zero1", 0, 0, 0, 2, "expert", 1},
                {"3d", 2, 0, 0, 2, "expert", 0},    {"3d", 2, 0, 0, 1, "3d", 0},
                {"expert", 2, 0, 0, 0, "expert", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dl_plan p = g.f.plan;
        p.strategy = rows[i].given != NULL ? dl_strategy_find(rows[i].given) : NULL;
        p.tp = rows[i].tp, p.pp = rows[i].pp, p.sp = rows[i].sp, p.ep = rows[i].ep, p.dp = 0;
        p.batch_per_device_samples = 8;
        if (dl_plan_complete(&g.f.system, &g.workload, &g.f.framework, &p, &err) != DL_OK)
            fail_msg("row %zu: %s", i, err.message);
        assert_string_equal(p.strategy->name, rows[i].becomes);
        assert_int_equal(p.shard, rows[i].shard);
    }
    static const struct {
        bool splits, shards, stack;
    } stacks[] = {{false, false, false}, {true, false, true}, {false, true, true}};
    for (int i = 0; i < 3; i++) {
        g.f.framework.splits_layers = stacks[i].splits, g.f.framework.shards = stacks[i].shards;
        assert_int_equal(dl_plan_stacks(&g.workload, &g.f.framework), stacks[i].stack);
        struct dl_plan p = g.f.plan;
        p.strategy = dl_strategy_find("data"), p.dp = 8, p.global_batch_samples = 2048;
        assert_string_equal(dl_plan_canonical(&g.workload, &g.f.framework, &p).strategy->name,
                            stacks[i].stack ? "3d" : "data");
        p.strategy = dl_strategy_find("zero1");
        assert_string_equal(dl_plan_canonical(&g.workload, &g.f.framework, &p).strategy->name,
                            "3d");
        p.strategy = dl_strategy_find("data+pipeline"), p.pp = 2, p.dp = 4;
        p.assume = DL_ASSUME_PARADL;
        assert_string_equal(dl_plan_canonical(&g.workload, &g.f.framework, &p).strategy->name,
                            "data+pipeline");
    }
    dl_arena_free(&g.f.arena);
}

/* On devices of 1 GB; the way out that costs nothing is named where tensor ranks could take it. */
static void transformers_that_do_not_fit(void **state) {
    (void)state;
    for (int c = 0; c < 4; c++) {
        struct gpt g;
        struct dl_prediction p;
        gpt_make(&g, NULL, 0);
        struct dl_fake *f = &g.f;
        f->device.memory_bytes = 1e9;
        f->rate.precision = DL_MIXED;
        f->device.rates = &f->rate, f->device.rate_count = 1;
        struct dl_rate rates[] = {{.precision = DL_FP32, .peak_flop_per_s = 1e13},
                                  {.precision = DL_FP16, .unit = 1, .peak_flop_per_s = 1e14}};
        f->device.rates = rates, f->device.rate_count = 2;
        f->plan.strategy = dl_strategy_find("3d"), f->plan.tp = c < 2 ? 1 : 2;
        f->plan.sequence_parallel = c == 3;
        f->plan.pp = c == 1 ? 4 : 1, f->plan.dp = 0, f->plan.batch_per_device_samples = 4;
        assert_int_equal(dl_plan_complete(&f->system, &g.workload, &f->framework, &f->plan, &err),
                         DL_OK);
        const struct dl_predict_options options = {.terms = true};
        if (dl_predict(&f->system, &g.workload, &f->framework, &f->plan, &options, &f->arena, &p,
                       &err) != DL_OK)
            fail_msg("%s", err.message);
        assert_false(p.fits);
        const char *advice = "";
        for (int i = 0; i < p.warning_count; i++) {
            if (strncmp(p.warnings[i], "does not fit", 12) == 0) advice = p.warnings[i];
        }
        assert_int_equal(strstr(advice, ": --sequence-parallel, more --tp or") != NULL, c == 2);
        check_contains(advice, "more --tp or --pp, sharded states, a smaller "
                               "--micro-batch or --recompute full");
        if (c == 1) {
            for (int s = 0; s < 4; s++) {
                assert_true(p.stage_times[s].forward_s > 0);
                assert_true(p.stage_times[s].backward_s > p.stage_times[s].forward_s);
            }
        } else {
            assert_null(p.stage_times);
        }
        if (c > 0) assert_true(p.comm_algorithm != NULL);
        dl_arena_free(&f->arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_and_no_others),
        cmocka_unit_test(points_and_no_others),
        cmocka_unit_test(iterations_in_turn),
        cmocka_unit_test(dispatch),
        cmocka_unit_test(memos_forget),
        cmocka_unit_test(messages_of_stages),
        cmocka_unit_test(layers_of_paradl),
        cmocka_unit_test(strategies_of_ranks),
        cmocka_unit_test(transformers_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What reads arrays reads no element before the first and none after the last: predictions,
 * behaviours of frameworks, advice, measured collectives and layer times on arrays between pages
 * that cannot be touched, each with the result that it has elsewhere. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/core/json.h"
#include "model/network/collective.h"
#include "model/framework/layer_times.h"
#include "model/engine/pipeline.h"
#include "model/engine/schedule.h"
#include "model/engine/advice.h"
#include "tests/fake_transformer.h"
#include "tests/gradient_bench.h"
#include "tests/guarded.h"

static struct dl_err err;

/* Sum of what a behaviour sends, with weights by place; NAN: refused. */
static double sent(struct bench *b, const struct dl_framework_behaviour *behaviour) {
    double sum = 0;
    memset(&b->sync, 0, sizeof b->sync);
    if (behaviour->synchronize(&b->request, &b->sync, &err) != DL_OK) return NAN;
    for (int i = 0; i < b->sync.message_count; i++) {
        const struct dl_message *m = &b->sync.messages[i];
        sum += (i + 1) * (m->bytes * 1e-9 + m->duration_s + m->tail_s + m->ready_s) + m->count;
    }
    return sum + b->sync.message_count;
}

/* On GPUs with adapters, and on CPUs of one host, whose cores carry all messages. */
static void gradients_of_behaviours(void **state) {
    (void)state;
    const double sizes[] = {70e6, 10e6, 8e6, 10e6, 1e3}, ready[] = {1, 2, 3, 4, 5};
    for (int i = 0; dl_framework_behaviours[i] != NULL; i++) {
        for (int where = 0; where < 6; where++) {
            struct bench b;
            make(&b, 5, sizes, ready);
            b.fake.plan.nodes = 1 + where / 2;
            if (where % 2 == 1) {
                b.fake.device.kind = DL_DEVICE_CPU, b.fake.device.unit_count = 1;
                b.fake.system.inter.kind = "loopback", b.fake.plan.devices_per_node = 1;
                b.fake.system.nodes_share_host = true;
            }
            const double plain = sent(&b, dl_framework_behaviours[i]);
            for (int guard = 0; guard < GUARDS; guard++) {
                b.request.gradients = guarded(b.gradients, 5 * sizeof b.gradients[0], guard);
                const double here = sent(&b, dl_framework_behaviours[i]);
                assert_true(isnan(plain) ? isnan(here) : plain == here);
            }
            dl_arena_free(&b.fake.arena);
        }
    }
}

static double predicted(struct dl_fake *f, const struct dl_workload *workload,
                        const struct dl_plan *plan) {
    static const struct dl_predict_options options = {.terms = true};
    struct dl_plan used = *plan;
    struct dl_prediction p;
    if (dl_plan_complete(&f->system, workload, &f->framework, &used, &err) != DL_OK ||
        dl_predict(&f->system, workload, &f->framework, &used, &options, &f->arena, &p, &err) !=
            DL_OK)
        return NAN;
    double sum = p.iteration_s + p.memory.total_bytes + p.term_count + p.max_batch_samples;
    for (int t = 0; t < p.term_count; t++) sum += p.terms[t].value;
    return sum;
}

static void layers_and_rates(void **state) {
    (void)state;
    static const char *const strategies[] = {"data",         "pipeline",     "data+filter",
                                             "data+channel", "data+spatial", "data+pipeline",
                                             "data+tensor",  "3d",           "zero3"};
    for (int net = 0; net < 2; net++) {
        struct gpt g;
        int possible = 0;
        gpt_make(&g, NULL, 0);
        const struct dl_workload *whole = net == 0 ? &g.f.workload : &g.workload;
        g.f.plan.precision = DL_FP32, g.f.plan.batch_per_device_samples = 4;
        const size_t bytes = (size_t)whole->layer_count * sizeof whole->layers[0];
        for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
            struct dl_plan plan = g.f.plan;
            plan.strategy = dl_strategy_find(strategies[i]);
            if (i == 5 || i == 1 || i == 7) plan.pp = 2;
            if (i >= 6) plan.tp = i == 8 ? 1 : 2;
            g.f.device.rates = &g.f.rate;
            const double plain = predicted(&g.f, whole, &plan);
            possible += !isnan(plain);
            for (int guard = 0; guard < GUARDS; guard++) {
                struct dl_workload w = *whole;
                w.layers = guarded(whole->layers, bytes, guard);
                g.f.device.rates = guarded(&g.f.rate, sizeof g.f.rate, guard);
                const double here = predicted(&g.f, &w, &plan);
                assert_true(isnan(plain) ? isnan(here) : plain == here);
            }
        }
        assert_true(possible >= 3);
        dl_arena_free(&g.f.arena);
    }
}

static void points_of_advice(void **state) {
    (void)state;
    const struct dl_advice_point points[] = {{1, 10, 9, 11, 1, 1, 100, 100, true},
                                             {2, 18, 17, 19, 0.9, 1.05, 60, 120, true},
                                             {4, 30, 29, 31, 0.75, 1.3, 40, 160, true}};
    const struct dl_advice_limits limits = {.deadline_s = 70, .budget = 130};
    for (int guard = 0; guard < GUARDS; guard++) {
        const struct dl_advice a = dl_advice_of(guarded(points, sizeof points, guard), 3, &limits);
        assert_true(a.fastest == 2 && a.cheapest == 0 && a.knee == 1 && a.inefficient == 2);
        assert_true(a.in_time == 1 && a.in_budget == 1 && a.tied_fastest == -1);
    }
    /* No limits: nothing is asked. */
    const struct dl_advice_limits none = {0, 0};
    const struct dl_advice free = dl_advice_of(points, 3, &none);
    assert_true(free.in_time == -1 && free.in_budget == -1);
}

/* Samples of 1 s at each size: whatever the model says, between them a call takes 1 s. */
static void samples_of_collectives(void **state) {
    (void)state;
    const struct dl_coll_sample samples[] = {
        {1e4, 1, NAN, NAN}, {1e5, 1, NAN, NAN}, {1e6, 1, NAN, NAN}};
    for (int guard = 0; guard < GUARDS; guard++) {
        struct dl_fake f;
        struct dl_collective_time time;
        fake_make(&f);
        struct dl_coll_measured m = {.library = "mpi",
                                     .operation = "all_reduce",
                                     .nodes = 2,
                                     .ranks = 8,
                                     .samples = guarded(samples, sizeof samples, guard),
                                     .sample_count = 3};
        f.system.collectives = guarded(&m, sizeof m, guard), f.system.collective_count = 1;
        assert_int_equal(dl_coll_measured_fill(&f.system, &f.arena, &err), DL_OK);
        static const double bytes[] = {1e4, 1e5, 1e6};
        for (int i = 0; i < 3; i++) {
            const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                                    .library = DL_LIB_MPI,
                                                    .bytes = bytes[i],
                                                    .nodes = 2,
                                                    .ranks_per_node = 4,
                                                    .flows_per_adapter = 1};
            assert_int_equal(dl_collective_time(&f.system, &r, &time, &err), DL_OK);
            check_close(time.time_s, 1, 1e-9);
        }
        for (int i = -1; i < 3; i++) { /* below, between and above */
            struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                              .library = DL_LIB_MPI,
                                              .bytes = i < 0 ? 10 : 3 * bytes[i],
                                              .nodes = 2,
                                              .ranks_per_node = 4,
                                              .flows_per_adapter = 1};
            assert_int_equal(dl_collective_time(&f.system, &r, &time, &err), DL_OK);
            assert_true(time.time_s > 0);
            r.nodes = 4; /* other ranks: the nearest set */
            assert_int_equal(dl_collective_time(&f.system, &r, &time, &err), DL_OK);
            assert_true(time.time_s > 0);
        }
        dl_arena_free(&f.arena);
    }
}

/* Two of four layers were timed, at batches of 8 and 16. */
static void times_of_layers(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_layer_time layers[2] = {{.name = f.workload.layers[0].name},
                                      {.name = f.workload.layers[2].name}};
    for (int guard = 0; guard < GUARDS; guard++) {
        struct dl_layer_batch batches[2] = {{.batch_samples = 8, .layer_count = 2},
                                            {.batch_samples = 16, .layer_count = 2}};
        for (int b = 0; b < 2; b++) batches[b].layers = guarded(layers, sizeof layers, guard);
        struct dl_layer_times times = {.workload = "fake",
                                       .batches = guarded(batches, sizeof batches, guard),
                                       .batch_count = 2};
        struct dl_workload w = f.workload;
        w.layers = guarded(w.layers, (size_t)w.layer_count * sizeof w.layers[0], guard);
        assert_int_equal(dl_layer_times_known(&times, &w), 2);
        assert_int_equal(dl_layer_times_check(&times, NULL, &err), DL_OK);
    }
    dl_arena_free(&f.arena);
}

static void stages_of_pipelines(void **state) {
    (void)state;
    const double forward_s[] = {1, 2, 1}, backward_s[] = {2, 3, 2}, cost[] = {4, 1, 1, 2, 4};
    for (int guard = 0; guard < GUARDS; guard++) {
        for (int schedule = 0; schedule < 2; schedule++) {
            struct dl_arena arena = {0};
            struct dl_pipeline_pass *passes;
            int count;
            const struct dl_pipeline_order order = {
                .schedule = schedule == 0 ? DL_1F1B : DL_GPIPE,
                .stages = 3,
                .parts = 1,
                .micro_batches = 4,
                .forward_s = guarded(forward_s, sizeof forward_s, guard),
                .backward_s = guarded(backward_s, sizeof backward_s, guard)};
            assert_int_equal(dl_pipeline_passes(&order, &arena, &passes, &count, &err), DL_OK);
            assert_int_equal(count, 3 * 2 * 4);
            dl_arena_free(&arena);
        }
        double work[3 * 4 * 6];
        int first[4];
        /* 4 | 1 1 2 | 4 */
        check_close(dl_pipeline_balance(guarded(cost, sizeof cost, guard), 5, 3, first,
                                        guarded(work, sizeof work, guard)),
                    4, 0);
        assert_true(first[0] == 0 && first[1] == 1 && first[2] == 4);
    }
}

/* Texts that end anywhere: what is there is read, and nothing behind it. */
static void texts_that_end(void **state) {
    (void)state;
    static const char *const whole[] = {"true",
                                        "false",
                                        "null",
                                        "[true]",
                                        "[false,null]",
                                        "{\"a\":true}",
                                        "-1.5e+10",
                                        "[1,-2.25e-3]",
                                        "\"a\\u00e9\\ud83d\\ude00b\"",
                                        "{\"k\":[{\"x\":\"y\"}]}"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        const size_t length = strlen(whole[i]);
        for (size_t cut = 0; cut <= length; cut++) {
            struct dl_arena arena = {0};
            struct dl_json *doc;
            const bool number = cut > 0 && (whole[i][0] == '-'),
                       complete = number ? whole[i][cut - 1] >= '0' && whole[i][cut - 1] <= '9'
                                         : cut == length;
            const char *text = guarded(whole[i], cut, GUARD_AFTER);
            const enum dl_code code = dl_json_parse("t.json", text, cut, &arena, &doc, &err);
            assert_int_equal(code, complete ? DL_OK : DL_ERR_INPUT);
            dl_arena_free(&arena);
        }
    }
    /* the first bytes of a mark of an encoding */
    static const char *const marks[] = {"\xef", "\xef\xbb", "\xfe", "\xff", "\xef\xbb\xbf"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        struct dl_arena arena = {0};
        struct dl_json *doc;
        const size_t length = strlen(marks[i]);
        assert_int_equal(dl_json_parse("t.json", guarded(marks[i], length, GUARD_AFTER), length,
                                       &arena, &doc, &err),
                         DL_ERR_INPUT);
        dl_arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_behaviours), cmocka_unit_test(layers_and_rates),
        cmocka_unit_test(points_of_advice),        cmocka_unit_test(samples_of_collectives),
        cmocka_unit_test(times_of_layers),         cmocka_unit_test(stages_of_pipelines),
        cmocka_unit_test(texts_that_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Arrangements of a network that is no stack against an enumeration of all, with every axis given
 * or open; schedules of a stack by their virtual stages; plans that more ranks than one divide. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/engine/strategies/strategy.h"
#include "model/search/limits.h"
#include "model/search/search_parts.h"
#include "tests/check.h"
#include "tests/fake_transformer.h"

static struct dl_fake f;
static struct dl_search_request request;

/* Six layers on 1, 2 and 3 nodes of four devices; a global batch of 12. */
static int setup(void **state) {
    (void)state;
    const double features[] = {48, 48, 48, 48, 48, 48, 48};
    memset(&f, 0, sizeof f);
    fake_make(&f);
    fake_layers(&f, 6, features);
    request = (struct dl_search_request){.system = &f.system,
                                         .workload = &f.workload,
                                         .framework = &f.framework,
                                         .any_schedule = true,
                                         .nodes = {1, 2, 3},
                                         .node_count = 3,
                                         .keep = 1};
    request.fixed = f.plan;
    request.fixed.strategy = NULL;
    request.fixed.tp = request.fixed.pp = request.fixed.sp = request.fixed.ep = 0;
    request.fixed.dp = 0;
    request.fixed.batch_per_device_samples = 0;
    request.fixed.global_batch_samples = 12;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    dl_arena_free(&f.arena);
    return 0;
}

static const struct {
    const char *alone, *replicated;
} names[] = {{"data", "data"},
             {"spatial", "data+spatial"},
             {"filter", "data+filter"},
             {"channel", "data+channel"},
             {"pipeline", "data+pipeline"}};
enum { DATA, SPATIAL, FILTER, CHANNEL, STAGES, WAYS };

static bool open_or(int64_t given, int64_t value) { return given <= 0 || given == value; }

/* Whether the request leaves this split open; impossible batches are counted. */
static bool expects(int way, int64_t parts, int64_t replicas, int64_t *not_batch) {
    const struct dl_plan *p = &request.fixed;
    const char *name = replicas > 1 ? names[way].replicated : names[way].alone;
    if ((way == DATA) != (parts == 1) || p->ep > 1) return false;
    if (!open_or(p->tp, way == FILTER || way == CHANNEL ? parts : 1) ||
        !open_or(p->sp, way == SPATIAL ? parts : 1) || !open_or(p->pp, way == STAGES ? parts : 1) ||
        !open_or(p->dp, replicas))
        return false;
    if (p->strategy != NULL && strcmp(p->strategy->name, name) != 0 &&
        strcmp(p->strategy->name, names[way].replicated) != 0)
        return false;
    if (12 % replicas == 0) return true;
    ++*not_batch;
    return false;
}

static void check_arrangements(void) {
    struct dl_search *search = NULL;
    struct dl_err err = {0};
    const enum dl_code code = dl_search_prepare(&request, &f.arena, &search, &err);
    int64_t not_batch = 0, at = 0, pipes = 0, listed = 0;
    for (int n = 0; n < request.node_count; n++) {
        const int64_t devices = 4 * request.nodes[n];
        for (int way = 0; way < WAYS; way++) {
            for (int64_t parts = 1; parts <= devices; parts++) {
                const int64_t replicas = devices / parts;
                if (devices % parts != 0 || !expects(way, parts, replicas, &not_batch)) continue;
                listed++;
                if (code != DL_OK) continue;
                const struct dl_search_tasks *in =
                    way == STAGES ? &search->pipelines : &search->tasks;
                const struct dl_search_task *task = NULL;
                for (int64_t i = 0; i < in->count; i++)
                    if (in->items[i].micro < 0 && in->items[i].order == listed - 1)
                        task = &in->items[i];
                assert_non_null(task);
                ++*(way == STAGES ? &pipes : &at);
                const struct dl_transformer_split *split = &task->split;
                assert_string_equal(task->strategy->name,
                                    replicas > 1 ? names[way].replicated : names[way].alone);
                assert_int_equal(split->tp, way == FILTER || way == CHANNEL ? parts : 1);
                assert_int_equal(split->sp, way == SPATIAL ? parts : 1);
                assert_int_equal(split->pp, way == STAGES ? parts : 1);
                assert_int_equal(split->ep, 1);
                assert_int_equal(split->dp, replicas);
                assert_int_equal(split->nodes, request.nodes[n]);
                assert_int_equal(split->devices_per_node, 4);
            }
        }
    }
    assert_int_equal(code, listed > 0 ? DL_OK : DL_ERR_USAGE);
    if (code != DL_OK) {
        check_contains(err.message, "no arrangement of ranks is possible: a global batch of 12 "
                                    "does not divide among data ranks as asked");
        return;
    }
    assert_int_equal(search->pipelines.count, pipes);
    assert_int_equal(search->rejected_count[DL_NOT_BATCH], not_batch);
    for (int64_t i = 0; i < search->tasks.count; i++) at -= search->tasks.items[i].micro < 0;
    assert_int_equal(at, 0); /* the others are all pipelines of one micro-batch each */
}

static void arrangements(void **state) {
    (void)state;
    check_arrangements();
    int64_t *const given[] = {&request.fixed.tp, &request.fixed.sp, &request.fixed.ep,
                              &request.fixed.pp, &request.fixed.dp};
    for (int a = 0; a < 5; a++) {
        for (int b = a; b < 5; b++) {
            for (int64_t value = 1; value <= 16; value++) {
                *given[a] = (value - 1) / 4 + 1, *given[b] = (value - 1) % 4 + 1;
                check_arrangements();
            }
            *given[a] = *given[b] = 0;
        }
    }
    for (int way = 0; way < WAYS; way++) {
        request.fixed.strategy = dl_strategy_find(names[way].alone);
        assert_non_null(request.fixed.strategy);
        check_arrangements();
        request.fixed.strategy = dl_strategy_find(names[way].replicated);
        check_arrangements();
        request.fixed.dp = 2;
        check_arrangements();
        request.fixed.dp = 0;
    }
}

/* ---- virtual stages ---- */

static int64_t evaluated(struct gpt *g, int64_t virtual_stages, bool any, int64_t *best) {
    static struct dl_search_worker w;
    struct dl_search *search;
    struct dl_err err = {0};
    request.system = &g->f.system, request.workload = &g->workload;
    request.framework = &g->f.framework;
    request.fixed = g->f.plan;
    request.fixed.strategy = NULL;
    request.fixed.tp = request.fixed.sp = request.fixed.ep = 1;
    request.fixed.pp = 2, request.fixed.dp = 0;
    request.fixed.batch_per_device_samples = 0, request.fixed.global_batch_samples = 16;
    request.fixed.micro_batch_samples = 1;
    request.fixed.schedule = DL_INTERLEAVED;
    request.fixed.virtual_stages = virtual_stages;
    request.any_schedule = any;
    request.node_count = 1, request.every = true, request.keep = DL_SEARCH_KEPT;
    if (dl_search_prepare(&request, &g->f.arena, &search, &err) != DL_OK)
        fail_msg("%s", err.message);
    for (int64_t i = 0; i < dl_search_cost_count(search); i++)
        assert_int_equal(dl_search_make_cost(search, i, &err), DL_OK);
    dl_search_worker_clear(&w);
    for (int64_t i = 0; i < dl_search_tasks(search); i++)
        assert_int_equal(dl_search_run_task(search, i, &w, &err), DL_OK);
    for (int i = 0; i < w.best_count; i++) {
        const struct dl_transformer_choice *c = &w.best[i].choice;
        if (c->schedule != DL_INTERLEAVED) continue;
        assert_true(c->virtual_stages >= 2 && c->virtual_stages < 8);
        if (virtual_stages > 0) assert_int_equal(c->virtual_stages, virtual_stages);
        best[c->virtual_stages]++;
    }
    return w.evaluated_count;
}

/* Interleaved stages of eight layers on two: 2 and 4 virtual stages (3 and more where uneven ones
 * are taken). What is tried with each given number is what is tried with none given. */
static void virtual_stages(void **state) {
    (void)state;
    static struct dl_override small[] = {{.key = "layers", .value = "8"},
                                         {.key = "hidden", .value = "64"},
                                         {.key = "heads", .value = "4"},
                                         {.key = "seq", .value = "16"},
                                         {.key = "vocab", .value = "64"}};
    static struct gpt g;
    gpt_make(&g, small, 5);
    int64_t open[8] = {0}, given[8] = {0};
    const int64_t all = evaluated(&g, 0, false, open);
    int64_t sum = 0;
    for (int v = 1; v < 8; v++) sum += evaluated(&g, v, false, given);
    assert_true(all > 0 && open[2] > 0 && open[4] > 0);
    assert_int_equal(sum, all);
    for (int v = 0; v < 8; v++) assert_int_equal(open[v], given[v]);
    int64_t none[8] = {0};
    assert_int_equal(evaluated(&g, 1, false, none), 0);
    assert_int_equal(evaluated(&g, 8, false, none), 0);
    /* with the other schedules, which have no virtual stages */
    int64_t with[8] = {0};
    const int64_t others = evaluated(&g, 1, true, with);
    assert_true(others > 0);
    assert_int_equal(evaluated(&g, 0, true, with), others + all);
    assert_int_equal(evaluated(&g, 2, true, with), others + evaluated(&g, 2, false, with));
    dl_arena_free(&g.f.arena);
}

/* ---- steps of a plan ---- */

/* Half of the tensor or pipeline ranks is a step where two divide them, and a plan has data ranks
 * to take them. */
static void halves(void **state) {
    (void)state;
    static struct dl_override small[] = {{.key = "layers", .value = "6"},
                                         {.key = "hidden", .value = "768"},
                                         {.key = "heads", .value = "12"},
                                         {.key = "seq", .value = "256"}};
    static const int64_t rows[][4] = {{3, 1, 2, 6}, {1, 3, 2, 6}, {3, 2, 1, 6}, {2, 3, 1, 6},
                                      {2, 1, 3, 6}, {1, 2, 3, 6}, {1, 1, 6, 6}, {6, 1, 1, 6}};
    bool halved = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct gpt g;
        struct dl_limits limits;
        struct dl_err err = {0};
        memset(&g, 0, sizeof g);
        gpt_make(&g, small, 4);
        g.f.system.devices_per_node = 6;
        g.f.system.intra.bandwidth_bytes_per_s = 2e9; /* so slow that tensor ranks do not pay */
        struct dl_plan plan = g.f.plan;
        plan.strategy = dl_strategy_find("3d");
        plan.nodes = 1, plan.devices_per_node = rows[i][3];
        plan.tp = rows[i][0], plan.pp = rows[i][1], plan.dp = rows[i][2];
        plan.batch_per_device_samples = 0, plan.global_batch_samples = 24;
        plan.micro_batch_samples = 1;
        if (dl_limits_of(&g.f.system, &g.workload, &g.f.framework, &plan, &g.f.arena, &limits,
                         &err) != DL_OK)
            fail_msg("%s", err.message);
        for (int c = 0; c < limits.change_count; c++) {
            long long tp = plan.tp, pp = plan.pp, dp = 0;
            const char *text = limits.changes[c].text;
            if (sscanf(text, "--tp %lld --dp %lld", &tp, &dp) != 2 &&
                sscanf(text, "--pp %lld --dp %lld", &pp, &dp) != 2)
                continue;
            assert_int_equal(tp * pp * dp, 6);
            assert_int_equal(dp, 2 * plan.dp);
            assert_true(2 * tp == plan.tp || 2 * pp == plan.pp);
            halved = true;
        }
        dl_arena_free(&g.f.arena);
    }
    assert_true(halved);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(arrangements, setup, teardown),
        cmocka_unit_test_setup_teardown(virtual_stages, setup, teardown), cmocka_unit_test(halves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

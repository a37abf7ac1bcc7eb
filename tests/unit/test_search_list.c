/* What a search has to try (search_list.c): arrangements of ranks against an enumeration of all,
 * micro-batch costs and their keys, parts of a search, and why nothing is possible. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/engine/strategies/strategy.h"
#include "model/search/search_parts.h"
#include "tests/check.h"
#include "tests/fake_transformer.h"

static struct gpt g;
static struct dl_search_request request;
static struct dl_search *search;

/* 6 layers, 4 heads, 12 tokens, 4 experts, on 1, 2, 3, 6 and 12 nodes of 4; a global batch of 12.
 */
static int setup(void **state) {
    static struct dl_override small[] = {
        {.key = "layers", .value = "6"}, {.key = "hidden", .value = "64"},
        {.key = "heads", .value = "4"},  {.key = "seq", .value = "12"},
        {.key = "vocab", .value = "64"}, {.key = "experts", .value = "4"}};
    (void)state;
    memset(&g, 0, sizeof g);
    gpt_make(&g, small, 6);
    request = (struct dl_search_request){.system = &g.f.system,
                                         .workload = &g.workload,
                                         .framework = &g.f.framework,
                                         .any_schedule = true,
                                         .any_mapping = true,
                                         .any_sequence_parallel = true,
                                         .nodes = {1, 2, 3, 6, 12},
                                         .node_count = 5,
                                         .keep = 1};
    request.fixed = g.f.plan;
    request.fixed.strategy = NULL;
    request.fixed.tp = request.fixed.pp = request.fixed.sp = request.fixed.ep = 0;
    request.fixed.dp = 0;
    request.fixed.batch_per_device_samples = 0;
    request.fixed.global_batch_samples = 12;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    dl_arena_free(&g.f.arena);
    return 0;
}

static void prepare(void) {
    struct dl_err err = {0};
    if (dl_search_prepare(&request, &g.f.arena, &search, &err) != DL_OK)
        fail_msg("%s", err.message);
}

static void check_refused(const char *message) {
    struct dl_err err = {0};
    assert_int_equal(dl_search_prepare(&request, &g.f.arena, &search, &err), DL_ERR_USAGE);
    check_contains(err.message, message);
}

/* ---- arrangements ---- */

enum { MOST = 2000 };
static struct dl_transformer_split expected[MOST];
static int expected_count;
static int64_t not_heads, not_layers, not_batch;

static void expect(struct dl_transformer_split split) {
    const int64_t data = split.dp * split.ep;
    if (request.fixed.dp > 0 && split.dp != request.fixed.dp) return;
    if (split.pp > 6) { /* layers; as even as they go */
        not_layers++;
        return;
    }
    if ((int64_t)request.fixed.global_batch_samples % data != 0) {
        not_batch++;
        return;
    }
    expected[expected_count++] = split;
    if (!request.any_mapping || split.pp == 1 || data == 1) return;
    split.mapping = (enum dl_mapping)(1 - (int)split.mapping);
    expected[expected_count++] = split;
}

static bool open_or(int64_t given, int64_t value) { return given <= 0 || given == value; }

static void expect_stages(struct dl_transformer_split split, int64_t devices, bool splits) {
    const int64_t inner = split.tp * split.sp * split.ep;
    for (split.pp = 1; split.pp <= devices; split.pp++) {
        if (devices % (inner * split.pp) != 0 || !open_or(request.fixed.pp, split.pp) ||
            (!splits && split.pp > 1))
            continue;
        split.dp = devices / inner / split.pp;
        expect(split);
    }
}

static void expect_all(bool splits) {
    const struct dl_plan *fixed = &request.fixed;
    expected_count = 0;
    not_heads = not_layers = not_batch = 0;
    for (int n = 0; n < request.node_count; n++) {
        const int64_t devices = 4 * request.nodes[n];
        for (int64_t tp = 1; tp <= devices; tp++) {
            if (devices % tp != 0 || (!splits && tp > 1) || !open_or(fixed->tp, tp)) continue;
            if (4 % tp != 0) {
                not_heads++;
                continue;
            }
            for (int64_t sp = 1; sp <= (splits ? 12 : 1); sp++) {
                for (int64_t ep = 1; ep <= (splits ? 4 : 1); ep++) {
                    if (12 % sp != 0 || 4 % ep != 0 || !open_or(fixed->sp, sp) ||
                        !open_or(fixed->ep, ep))
                        continue;
                    expect_stages((struct dl_transformer_split){.tp = tp,
                                                                .sp = sp,
                                                                .ep = ep,
                                                                .nodes = request.nodes[n],
                                                                .devices_per_node = 4,
                                                                .mapping = fixed->mapping},
                                  devices, splits);
                }
            }
        }
    }
}

static void check_tasks(void) {
    prepare();
    assert_int_equal(dl_search_tasks(search), expected_count);
    for (int i = 0; i < expected_count; i++) {
        const struct dl_search_task *task = &search->tasks.items[i];
        const struct dl_transformer_split *a = &task->split, *b = &expected[i];
        assert_int_equal(task->order, i);
        assert_int_equal(task->micro, -1);
        assert_null(task->strategy);
        if (a->tp != b->tp || a->sp != b->sp || a->ep != b->ep || a->pp != b->pp ||
            a->dp != b->dp || a->nodes != b->nodes || a->mapping != b->mapping ||
            a->devices_per_node != 4)
            fail_msg("task %d: tp %d cp %d ep %d pp %d dp %d on %d, expected %d %d %d %d %d on %d",
                     i, (int)a->tp, (int)a->sp, (int)a->ep, (int)a->pp, (int)a->dp, (int)a->nodes,
                     (int)b->tp, (int)b->sp, (int)b->ep, (int)b->pp, (int)b->dp, (int)b->nodes);
    }
    static struct dl_search_worker w;
    dl_search_worker_clear(&w);
    dl_search_rejected(search, &w);
    assert_int_equal(w.rejected_count[DL_NOT_HEADS], not_heads);
    assert_int_equal(w.rejected_count[DL_NOT_LAYERS], not_layers);
    assert_int_equal(w.rejected_count[DL_NOT_BATCH], not_batch);
    dl_search_rejected(search, &w); /* adds */
    assert_int_equal(w.rejected_count[DL_NOT_HEADS], 2 * not_heads);
}

static void arrangements(void **state) {
    (void)state;
    expect_all(true);
    assert_true(not_heads > 0 && not_layers > 0 && not_batch > 0 && expected_count > 256);
    check_tasks();
    request.any_mapping = false;
    request.fixed.mapping = DL_MAP_PIPELINE_INSIDE;
    expect_all(true);
    check_tasks();
    request.any_mapping = true;
    expect_all(true);
    check_tasks();
    int64_t *const given[] = {&request.fixed.tp, &request.fixed.sp, &request.fixed.ep,
                              &request.fixed.pp, &request.fixed.dp};
    for (int i = 0; i < 5; i++) {
        for (int64_t value = 1; value <= 4; value += 1 + (i < 3)) {
            *given[i] = value == 3 ? 2 : value;
            expect_all(true);
            check_tasks();
        }
        *given[i] = 0;
    }
    request.fixed.tp = 2, request.fixed.pp = 2, request.fixed.sp = 1;
    expect_all(true);
    check_tasks();
}

/* A framework that shards, but splits no layers: data ranks alone. */
static void no_splits(void **state) {
    (void)state;
    g.f.framework.splits_layers = false;
    expect_all(false);
    assert_int_equal(expected_count, 2); /* 8 data ranks do not divide 12 */
    check_tasks();
    request.fixed.tp = 2;
    check_refused("--tp 2 does not divide the 4 heads of ");
    check_refused(", or fake does not split layers");
}

static void refusals(void **state) {
    (void)state;
    request.fixed.tp = 3;
    check_refused("--tp 3 does not divide the 4 heads of ");
    request.fixed.tp = 0, request.fixed.sp = 5;
    check_refused("--cp 5 does not divide the 12 tokens of ");
    request.fixed.sp = 0, request.fixed.ep = 3;
    check_refused("--ep 3: ");
    check_refused(" has 4 experts");
    request.fixed.ep = 0, request.fixed.expert_tp = 1;
    check_refused("--etp 1: a search splits experts as other layers; leave it out");
    request.fixed.expert_tp = 0, request.fixed.dp = 5;
    check_refused("no arrangement of ranks is possible: of the devices' factors none divides 4 "
                  "heads, 6 layers and a global batch of 12 as asked; change --global-batch or "
                  "--nodes, or leave --tp, --pp, --dp open");
}

/* ---- micro-batches and their costs ---- */

/* Every cost that a task needs is listed once, with a key of its own. */
static void costs(void **state) {
    (void)state;
    enum { KEYS = 1 << 16 };
    static bool needed[KEYS], listed[KEYS];
    static const struct dl_search_task *of[KEYS];
    memset(needed, 0, sizeof needed), memset(listed, 0, sizeof listed), memset(of, 0, sizeof of);
    prepare();
    int count = 0;
    for (int64_t i = 0; i < search->tasks.count; i++) {
        const struct dl_search_task *task = &search->tasks.items[i];
        const int64_t share = 12 / (task->split.dp * task->split.ep);
        for (int m = 0; m < search->batches.count; m++) {
            assert_int_equal(dl_search_takes(search, task, m),
                             share % search->batches.value[m] == 0);
            if (share % search->batches.value[m] != 0) continue;
            for (int on = 0; on < 2; on++) {
                const bool can =
                    !on || (task->split.tp > 1 && 12 / task->split.sp % task->split.tp == 0);
                assert_int_equal(dl_search_sequence_allowed(search, &task->split, on), can);
                if (!can) continue;
                const int64_t key = dl_search_cost_key(search, task, m, on);
                assert_true(key >= 0 && key < KEYS);
                count += !needed[key];
                needed[key] = true;
                if (of[key] == NULL) of[key] = task;
                const struct dl_transformer_split *a = &of[key]->split, *b = &task->split;
                assert_true(a->nodes == b->nodes && a->tp == b->tp && a->sp == b->sp &&
                            a->ep == b->ep && of[key]->stride == task->stride);
                const struct dl_transformer_micro_batch *cost = search->costs[key];
                check_close(cost->micro_samples, (double)search->batches.value[m], 0);
                assert_int_equal(cost->split.sequence_parallel, on);
                assert_int_equal(cost->split.tp, b->tp);
            }
        }
    }
    assert_int_equal(dl_search_cost_count(search), count);
    for (int64_t i = 0; i < search->cost_count; i++) {
        assert_true(needed[search->wanted[i]] && !listed[search->wanted[i]]);
        listed[search->wanted[i]] = true;
    }
    request.fixed.micro_batch_samples = 2;
    prepare();
    for (int64_t i = 0; i < search->tasks.count; i++) {
        const struct dl_search_task *task = &search->tasks.items[i];
        const int64_t share = 12 / (task->split.dp * task->split.ep);
        for (int m = 0; m < search->batches.count; m++)
            assert_int_equal(dl_search_takes(search, task, m),
                             search->batches.value[m] == 2 && share % 2 == 0);
    }
}

/* Sequence parallelism: as it is asked for, and where tensor ranks divide the tokens. */
static void sequences(void **state) {
    (void)state;
    static const struct {
        bool any, fixed;
        int64_t tp, sp;
        bool off, on;
    } rows[] = {
        {true, false, 1, 1, true, false},  {true, false, 2, 1, true, true},
        {true, false, 2, 12, true, false}, {true, false, 4, 3, true, true},
        {true, false, 4, 2, true, false},  {false, false, 2, 1, true, false},
        {false, true, 2, 1, false, true},  {false, true, 1, 1, true, false},
        {false, true, 4, 2, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        request.any_sequence_parallel = rows[i].any;
        request.fixed.sequence_parallel = rows[i].fixed;
        prepare();
        const struct dl_transformer_split split = {.tp = rows[i].tp, .sp = rows[i].sp};
        if (dl_search_sequence_allowed(search, &split, false) != rows[i].off ||
            dl_search_sequence_allowed(search, &split, true) != rows[i].on)
            fail_msg("row %zu", i);
    }
}

/* Parts of a search: each task in one of them. */
static void parts(void **state) {
    (void)state;
    prepare();
    for (int64_t i = 0; i < 20; i++) assert_true(dl_search_mine(search, i));
    int64_t all = 0;
    for (int64_t count = 1; count <= 3; count++) {
        for (int64_t i = 0; i < 20; i++) {
            int mine = 0;
            for (int64_t part = 0; part < count; part++) {
                search->request.shard_count = count, search->request.shard_index = part;
                mine += dl_search_mine(search, i);
                assert_int_equal(dl_search_mine(search, i), i % count == part);
            }
            assert_int_equal(mine, 1);
        }
    }
    const int64_t whole = search->cost_count;
    for (request.shard_index = 0; request.shard_index < 2; request.shard_index++) {
        request.shard_count = 2;
        prepare();
        assert_true(search->cost_count < whole); /* only those that its tasks need */
        all += search->cost_count;
    }
    assert_true(all >= whole);
}

static void divisors(void **state) {
    (void)state;
    static const int64_t of_12[] = {1, 2, 3, 4, 6, 12};
    struct dl_search_divisors d;
    dl_search_list_divisors(12, 0, &d);
    assert_int_equal(d.count, 6);
    for (int i = 0; i < 6; i++) assert_int_equal(d.value[i], of_12[i]);
    dl_search_list_divisors(12, 4, &d);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.value[0], 4);
    dl_search_list_divisors(12, 5, &d);
    assert_int_equal(d.count, 0);
    dl_search_list_divisors(0, 0, &d);
    assert_int_equal(d.count, 0);
    dl_search_list_divisors(1, -1, &d);
    assert_int_equal(d.count, 1);
    /* 2^4 3^3 5^2 7 11 13 17 has 960 of them, no more than there is room for; none above a million
     */
    dl_search_list_divisors(183783600, 0, &d);
    assert_int_equal(d.count, DL_SEARCH_DIVISORS);
    dl_search_list_divisors(2000003, 0, &d); /* a prime */
    assert_int_equal(d.count, 1);
    dl_search_list_divisors(1000000, 1000000, &d);
    assert_int_equal(d.count, 1);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {test(arrangements), test(no_splits), test(refusals),
                                       test(costs),        test(sequences), test(parts),
                                       test(divisors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

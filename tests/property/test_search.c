/* The best plan that search finds is the best of all plans, each predicted by itself; bounds, parts
 * and threads change nothing. Laws of transformers' plans over random cases. */
#include "model/search/limits.h"
#include "model/search/search.h"
#include "model/engine/strategies/strategy.h"
#include "predict/output/search_threads.h"
#include "tests/check.h"
#include "tests/fake.h"
#include "tests/load_workload.h"

static uint64_t seed;
static double random_unit(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / 9007199254740992.0;
}
static double random_log(double low, double high) { return low * pow(high / low, random_unit()); }
static int64_t pick(const int64_t *values, int count) {
    return values[(int)(random_unit() * count)];
}

struct scene {
    struct dl_fake f;
    struct dl_workload workload;
    struct dl_search_request request;
};

/* Searches whatever `fixed` leaves open. */
static struct dl_search_request everything_around(const struct scene *s, struct dl_plan fixed) {
    return (struct dl_search_request){.system = &s->f.system,
                                      .workload = &s->workload,
                                      .framework = &s->f.framework,
                                      .fixed = fixed,
                                      .any_schedule = true,
                                      .any_shard = true,
                                      .any_mapping = true,
                                      .any_sequence_parallel = true,
                                      .node_count = 1,
                                      .keep = 1};
}

static void random_scene(struct scene *s) {
    static const int64_t layers[] = {1, 2, 3, 4, 4}, heads[] = {1, 2, 4, 6}, tokens[] = {8, 12, 64},
                         nodes[] = {1, 1, 2, 3}, batches[] = {1, 2, 3, 4};
    static struct dl_override overrides[6];
    static char text[6][32];
    const int64_t h = pick(heads, 4);
    fake_make(&s->f);
    snprintf(text[0], sizeof text[0], "%lld", (long long)pick(layers, 5));
    snprintf(text[1], sizeof text[1], "%lld", (long long)h);
    snprintf(text[2], sizeof text[2], "%lld", (long long)(h * 64));
    snprintf(text[3], sizeof text[3], "%lld", (long long)pick(tokens, 3));
    snprintf(text[4], sizeof text[4], "%lld", (long long)1000);
    snprintf(text[5], sizeof text[5], "%s", random_unit() < 0.2 ? "4" : "0");
    static const char *const keys[] = {"layers", "heads", "hidden", "seq", "vocab", "experts"};
    for (int i = 0; i < 6; i++)
        overrides[i] = (struct dl_override){.key = keys[i], .value = text[i]};
    load_name("gpt", overrides, 6, &test_arena, &s->workload);
    struct dl_framework *f = &s->f.framework;
    f->splits_layers = true;
    f->shards = random_unit() < 0.8;
    f->sync.overlaps_backward = random_unit() < 0.5;
    f->host.dispatch_s = random_unit() < 0.5 ? 0 : random_log(1e-7, 1e-5);
    s->f.device.memory_bytes = random_log(6.2e8, 9e8); /* context and workspace take 6e8 */
    s->f.system.inter.bandwidth_bytes_per_s = random_log(1e8, 5e10);
    s->f.system.nodes = 64;
    struct dl_plan fixed = s->f.plan;
    fixed.strategy = NULL;
    fixed.precision = random_unit() < 0.5 ? DL_MIXED : DL_FP32;
    fixed.optimizer = DL_ADAM;
    fixed.devices_per_node = 4;
    fixed.batch_per_device_samples = 0;
    fixed.global_batch_samples = (double)pick(batches, 4) * (double)(1 + (int)(random_unit() * 2));
    fixed.recompute_open = true;
    s->request = everything_around(s, fixed);
    s->request.nodes[0] = pick(nodes, 4);
    s->request.objective = random_unit() < 0.7 ? DL_BY_TIME : DL_BY_MEMORY;
}

struct best {
    double score, iteration_s;
    int64_t tried, fitting;
    bool found;
};

/* One complete plan, predicted as the command line would. */
static void predict_one(const struct scene *s, struct dl_plan plan, struct best *best) {
    struct dl_arena arena = {0};
    struct dl_prediction p;
    if (dl_predict(&(struct dl_predict_request){&s->f.system, &s->workload, &s->f.framework, &plan,
                                                NULL, &arena},
                   &p, NULL) == DL_OK) {
        best->tried++;
        const double score =
            s->request.objective == DL_BY_MEMORY ? p.memory.total_bytes : p.iteration_s;
        if (p.fits) {
            best->fitting++;
            if (!best->found || score < best->score) best->score = score;
            best->found = true;
        }
    }
    dl_arena_free(&arena);
}

static void search_it(const struct scene *s, const struct dl_search_request *request, int threads,
                      struct dl_search_worker *out) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_search *search;
    double elapsed_s;
    (void)s;
    memset(out, 0, sizeof *out);
    /* no arrangement divides: nothing found */
    if (dl_search_prepare(request, &arena, &search, &err) != DL_OK) {
        assert_int_equal(err.code, DL_ERR_USAGE);
        dl_arena_free(&arena);
        return;
    }
    const struct dl_search_run run = {.search = search, .threads = threads};
    if (dl_search_run(&run, out, &elapsed_s, &err) != DL_OK) fail_msg("%s", err.message);
    dl_arena_free(&arena);
}

/* Networks that are no stack: LeNet on 4 or 8 devices, every strategy, split, micro-batch and
 * schedule by plain loops. */
static void random_network(struct scene *s) {
    static const int64_t batches[] = {8, 12, 16, 24, 64};
    static struct dl_override overrides[1];
    fake_make(&s->f);
    overrides[0] =
        (struct dl_override){.key = "classes", .value = random_unit() < 0.5 ? "10" : "100"};
    load_name("lenet", overrides, 1, &test_arena, &s->workload);
    struct dl_framework *f = &s->f.framework;
    f->shards = random_unit() < 0.5;
    f->sync.overlaps_backward = random_unit() < 0.5;
    f->activations.halo_overlaps = random_unit() < 0.5;
    f->memory.conv_workspace_bytes = f->input.feed_bytes_per_s = NAN;
    f->host.dispatch_s = random_unit() < 0.5 ? 0 : random_log(1e-7, 1e-5);
    s->f.device.memory_bytes = random_log(6.02e8, 6.4e8);
    s->f.system.inter.bandwidth_bytes_per_s = random_log(1e7, 5e10);
    s->f.system.intra.bandwidth_bytes_per_s = random_log(1e8, 1e11);
    s->f.system.nodes = 64;
    struct dl_plan fixed = s->f.plan;
    fixed.strategy = NULL;
    fixed.devices_per_node = 4;
    fixed.batch_per_device_samples = 0;
    fixed.global_batch_samples = (double)pick(batches, 5);
    s->request = everything_around(s, fixed);
    s->request.nodes[0] = random_unit() < 0.5 ? 1 : 2;
    s->request.objective = random_unit() < 0.7 ? DL_BY_TIME : DL_BY_MEMORY;
}

static void try_network_plan(const struct scene *s, struct dl_plan plan, struct best *best) {
    if (dl_plan_complete(&s->f.system, &s->workload, &s->f.framework, &plan, NULL) == DL_OK)
        predict_one(s, plan, best);
}

/* Every micro-batch, schedule and number of virtual stages of one arrangement of ranks. */
static void each_network_schedule(const struct scene *s, struct dl_plan p, struct best *best) {
    const int64_t batch = (int64_t)s->request.fixed.global_batch_samples;
    const bool data = p.strategy->axes == DL_AXIS_DP,
               steps = data || (p.strategy->axes & DL_AXIS_PP) != 0;
    if (batch % p.dp != 0) return;
    for (int64_t b = steps && !data ? 1 : 0; b <= (steps ? batch / p.dp : 0); b++) {
        if (b > 0 && batch / p.dp % b != 0) continue;
        for (int schedule = 0; schedule < DL_ASYNC; schedule++) {
            if (p.pp == 1 && schedule != DL_1F1B) continue;
            for (int64_t v = 1; v <= 4; v++) {
                if ((schedule == DL_INTERLEAVED) != (v > 1)) continue;
                p.micro_batch_samples = (double)b;
                p.schedule = (enum dl_schedule)schedule;
                p.virtual_stages = v > 1 ? v : 0;
                try_network_plan(s, p, best);
            }
        }
    }
}

static void brute_force_network(const struct scene *s, struct best *best) {
    static const char *const names[] = {
        "data",        "spatial",      "filter",        "channel", "pipeline", "data+spatial",
        "data+filter", "data+channel", "data+pipeline", "zero1",   "zero2",    "zero3"};
    memset(best, 0, sizeof *best);
    const int64_t devices = s->request.nodes[0] * 4;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        struct dl_plan p = s->request.fixed;
        p.strategy = dl_strategy_find(names[n]);
        p.nodes = s->request.nodes[0];
        p.ep = 1;
        if (strncmp(names[n], "zero", 4) == 0 && !s->f.framework.shards) continue;
        for (p.tp = 1; p.tp <= devices; p.tp++)
            for (p.sp = 1; p.sp <= devices; p.sp++)
                for (p.pp = 1; p.pp <= devices; p.pp++)
                    for (p.dp = 1; p.dp <= devices; p.dp++) {
                        if (p.tp * p.sp * p.pp * p.dp == devices) each_network_schedule(s, p, best);
                    }
    }
}

/* F-TABLES: what tables of pipelines say of each plan found is what its prediction says. Returns
 * how many were pipelines. */
static int as_predicted(const struct scene *s, const struct dl_search_worker *found) {
    struct dl_search *search;
    struct dl_arena arena = {0};
    int pipelines = 0;
    assert_int_equal(dl_search_prepare(&s->request, &arena, &search, NULL), DL_OK);
    for (int k = 0; k < found->best_count; k++) {
        struct dl_prediction p;
        struct dl_plan plan = dl_search_plan(search, &found->best[k]);
        assert_int_equal(
            dl_predict(&(struct dl_predict_request){s->request.system, s->request.workload,
                                                    s->request.framework, &plan, NULL, &arena},
                       &p, NULL),
            DL_OK);
        check_close(found->best[k].iteration_s, p.iteration_s, 1e-12);
        check_close(found->best[k].memory_bytes, p.memory.total_bytes, 1e-12);
        pipelines += found->best[k].split.pp > 1;
    }
    dl_arena_free(&arena);
    return pipelines;
}

/* F-SEARCH-BOUND for networks: the best of all plans, also by threads and parts. */
static void network_is_brute_force(void **state) {
    static struct dl_search_worker found, part;
    int feasible = 0, split = 0, pipelines = 0;
    seed = 5;
    for (int i = 0; i < 25; i++) {
        struct scene s;
        struct best best;
        random_network(&s);
        s.request.keep = DL_SEARCH_KEPT;
        brute_force_network(&s, &best);
        search_it(&s, &s.request, 1 + i % 3, &found);
        assert_int_equal(found.best_count > 0, best.found);
        if (best.found) check_close(found.best[0].score, best.score, 1e-12);
        pipelines += as_predicted(&s, &found);
        feasible += best.found;
        if (best.found)
            split += found.best[0].split.tp * found.best[0].split.sp * found.best[0].split.pp > 1;
        double least = INFINITY;
        for (int n = 0; n < 2; n++) {
            struct dl_search_request piece = s.request;
            piece.shard_index = n;
            piece.shard_count = 2;
            search_it(&s, &piece, 1, &part);
            if (part.best_count > 0 && part.best[0].score < least) least = part.best[0].score;
        }
        if (best.found) check_close(least, best.score, 1e-12);
        dl_arena_free(&test_arena);
    }
    assert_true(feasible > 12 && split > 2 && pipelines > 100);
}

static int64_t left_out(const struct dl_search_worker *w) {
    return w->rejected_count[DL_NOT_FASTER];
}

/* Every possible plan, whatever became of it. */
static int64_t decided(const struct dl_search_worker *w) {
    return w->feasible_count + w->rejected_count[DL_NOT_MEMORY] +
           w->rejected_count[DL_NOT_DEADLINE] + left_out(w);
}

/* Several sizes, any objective, sometimes a network of 20 layers. */
static void random_space(struct scene *s) {
    static const enum dl_objective objectives[] = {DL_BY_TIME, DL_BY_THROUGHPUT, DL_BY_ENERGY,
                                                   DL_BY_COST, DL_BY_MEMORY};
    random_network(s);
    if (random_unit() < 0.2) load_name("alexnet", NULL, 0, &test_arena, &s->workload);
    s->f.device.memory_bytes = random_log(6.02e8, 3e9);
    s->request.node_count = 1 + (int)(random_unit() * 3);
    for (int i = 0; i < s->request.node_count; i++) s->request.nodes[i] = (int64_t)1 << i;
    s->request.objective = objectives[(int)(random_unit() * 5)];
    s->request.device_w = 300, s->request.node_price_per_hour = 20;
    s->request.keep = 1 + (int)(random_unit() * 12);
    s->request.memory_bytes = random_unit() < 0.3 ? random_log(6e8, 2e9) : 0;
    s->request.fixed.recompute_open = random_unit() < 0.5;
}

/* F-SEARCH-BOUND: what is left out for its time is counted, and rows and their order are those of
 * a search that evaluates every plan; each row is as predicted. Also by threads. */
static void network_rows_are_those_of_every_plan(void **state) {
    static struct dl_search_worker bounded, every;
    int64_t evaluated = 0, bounded_away = 0;
    seed = 19;
    for (int i = 0; i < 400; i++) {
        struct scene s;
        random_space(&s);
        struct dl_search_request all = s.request;
        all.every = true;
        search_it(&s, &s.request, 1 + i % 3, &bounded);
        search_it(&s, &all, 1, &every);
        assert_int_equal(bounded.best_count, every.best_count);
        for (int k = 0; k < every.best_count; k++) {
            assert_int_equal(bounded.best[k].order, every.best[k].order);
            check_close(bounded.best[k].iteration_s, every.best[k].iteration_s, 1e-12);
            check_close(bounded.best[k].memory_bytes, every.best[k].memory_bytes, 1e-12);
        }
        assert_int_equal(left_out(&every), 0);
        assert_int_equal(decided(&bounded), decided(&every));
        assert_int_equal(bounded.rejected_count[DL_NOT_PARTS], every.rejected_count[DL_NOT_PARTS]);
        as_predicted(&s, &every);
        evaluated += bounded.evaluated_count;
        bounded_away += left_out(&bounded);
        dl_arena_free(&test_arena);
    }
    assert_true(evaluated > 1000 && bounded_away > 1000);
}

/* Threads and parts (--shard) find the same; the front holds the best and nothing on it is beaten.
 */
static void parts_and_threads(void **state) {
    static struct dl_search_worker one, two, part;
    seed = 7;
    for (int i = 0; i < 30; i++) {
        struct scene s;
        random_scene(&s);
        s.request.keep = 5;
        s.request.front = true;
        search_it(&s, &s.request, 1, &one);
        search_it(&s, &s.request, 3, &two);
        assert_int_equal(one.best_count, two.best_count);
        assert_int_equal(one.front_count, two.front_count);
        assert_int_equal(one.evaluated_count, two.evaluated_count);
        for (int k = 0; k < one.best_count; k++)
            assert_int_equal(one.best[k].order, two.best[k].order);
        double least = INFINITY;
        int64_t evaluated = 0;
        for (int n = 0; n < 3; n++) {
            struct dl_search_request piece = s.request;
            piece.shard_index = n;
            piece.shard_count = 3;
            search_it(&s, &piece, 1, &part);
            evaluated += part.evaluated_count;
            if (part.best_count > 0 && part.best[0].score < least) least = part.best[0].score;
        }
        assert_int_equal(evaluated, one.evaluated_count);
        if (one.best_count > 0) check_close(least, one.best[0].score, 0);
        for (int a = 0; a < one.front_count; a++) {
            for (int b = 0; b < one.front_count; b++) {
                assert_false(a != b && one.front[a].iteration_s <= one.front[b].iteration_s &&
                             one.front[a].memory_bytes <= one.front[b].memory_bytes);
            }
        }
        dl_arena_free(&test_arena);
    }
}

/* Every plan: parts sum to the iteration, tp = pp = 1 has no communication inside layers, more
 * bandwidth never hurts. F-ELASTICITY */
static void laws(void **state) {
    static struct dl_search_worker found;
    seed = 11;
    for (int i = 0; i < 60; i++) {
        struct scene s;
        struct dl_err err = {0};
        random_scene(&s);
        s.request.keep = 8;
        s.f.device.memory_bytes = 1e12;
        search_it(&s, &s.request, 1, &found);
        struct dl_search *search = NULL;
        if (found.best_count > 0)
            assert_int_equal(dl_search_prepare(&s.request, &test_arena, &search, &err), DL_OK);
        for (int k = 0; k < found.best_count; k++) {
            struct dl_prediction p;
            struct dl_plan plan = dl_search_plan(search, &found.best[k]);
            if (dl_predict(&(struct dl_predict_request){&s.f.system, &s.workload, &s.f.framework,
                                                        &plan, NULL, &test_arena},
                           &p, &err) != DL_OK)
                fail_msg("%s", err.message);
            check_close(p.iteration_s, found.best[k].iteration_s, 1e-12);
            check_close(p.memory.total_bytes, found.best[k].memory_bytes, 1e-12);
            check_close(p.iteration_s,
                        p.compute_s + p.exposed_comm_s + p.exposed_input_s + p.bubble_s +
                            p.overhead_s,
                        1e-12);
            assert_true(p.exposed_comm_s <= p.comm_s * (1 + 1e-9) && p.bubble_s >= 0 &&
                        p.overhead_s >= 0);
            if (plan.pp == 1) check_close(p.bubble_s, 0, 0);
        }
        if (found.best_count > 0) {
            struct dl_limits limits;
            struct dl_plan plan = dl_search_plan(search, &found.best[0]);
            if (dl_limits_of(&(struct dl_predict_request){.system = &s.f.system,
                                                          .workload = &s.workload,
                                                          .framework = &s.f.framework,
                                                          .plan = &plan,
                                                          .arena = &test_arena},
                             &limits, &err) != DL_OK)
                fail_msg("%s", err.message);
            for (int e = 0; e < limits.elasticity_count; e++) {
                const bool latency = strstr(limits.elasticity[e].resource, "latency") != NULL;
                const double value = limits.elasticity[e].value;
                assert_true(latency ? value >= -1e-9 && value <= 1.01
                                    : value <= 1e-9 && value >= -1.01);
            }
        }
        dl_arena_free(&test_arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(network_is_brute_force),
                                       cmocka_unit_test(network_rows_are_those_of_every_plan),
                                       cmocka_unit_test(parts_and_threads), cmocka_unit_test(laws)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}

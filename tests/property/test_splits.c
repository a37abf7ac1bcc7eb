/* Laws of the strategies that split layers or the network: hybrids contain their parts, volumes,
 * bubbles. */
#include "model/framework/cost.h"
#include "model/catalog/data.h"
#include "model/engine/split_replica.h"
#include "model/engine/pipeline.h"
#include "tests/check.h"
#include "tests/fake.h"

struct world {
    struct dl_arena arena;
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
};

static char directory[600];

static void load(struct world *w, const char *system, const char *workload, const char *framework) {
    static const char *directories[1];
    struct dl_err err = {0};
    memset(w, 0, sizeof *w);
    snprintf(directory, sizeof directory, "%s/data", check_root());
    directories[0] = directory;
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    if (dl_data_system(&data, system, &w->arena, &w->system, &err) != DL_OK ||
        dl_data_workload(&data, workload, &w->arena, &w->workload, &err) != DL_OK ||
        dl_data_framework(&data, framework, &w->arena, &w->framework, &err) != DL_OK) {
        fail_msg("%s %s %s: %s", system, workload, framework, err.message);
    }
}

static struct dl_plan plan_of(const char *strategy, int64_t nodes, double batch) {
    return (struct dl_plan){.strategy = dl_strategy_find(strategy),
                            .nodes = nodes,
                            .batch_per_device_samples = batch,
                            .optimizer = DL_MOMENTUM,
                            .input.synthetic = true};
}

static struct dl_prediction predict(struct world *w, const struct dl_plan *plan) {
    struct dl_prediction p = {0};
    struct dl_err err = {0};
    if (dl_predict(&(struct dl_predict_request){w->system, w->workload, w->framework, plan, NULL,
                                                &w->arena},
                   &p, &err) != DL_OK) {
        fail_msg("%s: %s", plan->strategy->name, err.message);
    }
    return p;
}

static void equal(double a, double b, const char *what) {
    if (fabs(a - b) > 1e-12 * fmax(fabs(a), fabs(b)))
        fail_msg("%s: %.17g is not %.17g", what, a, b);
}

static void same_prediction(const struct dl_prediction *a, const struct dl_prediction *b,
                            const char *what) {
    equal(a->iteration_s, b->iteration_s, what);
    equal(a->compute_s, b->compute_s, what);
    equal(a->exposed_comm_s, b->exposed_comm_s, what);
    equal(a->comm_s, b->comm_s, what);
    equal(a->memory.total_bytes, b->memory.total_bytes, what);
    equal(a->scaling_efficiency, b->scaling_efficiency, what);
}

/* One part: data parallelism. One replica: the split alone. */
static void hybrids_contain_their_parts(void **state) {
    static const struct {
        const char *hybrid, *alone;
        bool tp, sp, pp;
    } rows[] = {{"data+filter", "filter", true, false, false},
                {"data+channel", "channel", true, false, false},
                {"data+spatial", "spatial", false, true, false},
                {"data+pipeline", "pipeline", false, false, true}};
    static const char *const frameworks[] = {"chainermn", "pytorch-ddp", "horovod-pytorch",
                                             "ideal"};
    for (size_t f = 0; f < sizeof frameworks / sizeof frameworks[0]; f++) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            struct world w;
            load(&w, "abci-v100", i % 2 == 0 ? "resnet50" : "vgg16", frameworks[f]);
            const struct dl_plan data = plan_of("data", 2, 8);
            struct dl_plan one = plan_of(rows[i].hybrid, 2, 8);
            one.tp = rows[i].tp, one.sp = rows[i].sp, one.pp = rows[i].pp;
            const struct dl_prediction expected = predict(&w, &data), got = predict(&w, &one);
            same_prediction(&got, &expected, rows[i].hybrid);
            struct dl_plan group = plan_of(rows[i].hybrid, 1, 8);
            group.dp = 1;
            group.tp = rows[i].tp ? 4 : 0, group.sp = rows[i].sp ? 4 : 0,
            group.pp = rows[i].pp ? 4 : 0;
            const struct dl_plan alone = plan_of(rows[i].alone, 1, 8);
            const struct dl_prediction whole = predict(&w, &alone), part = predict(&w, &group);
            same_prediction(&part, &whole, rows[i].alone);
            dl_arena_free(&w.arena);
        }
    }
}

/* Bytes that a device sends: gather (p - 1)/p S, all-reduce twice that. In a chain of equal layers,
 * up to the last, filter and channel parallelism send the same. */
static double volume(struct world *w, enum dl_split_kind kind, double skip_elements) {
    struct dl_plan plan = plan_of(kind == DL_SPLIT_FILTER ? "filter" : "channel", 1, 8);
    assert_int_equal(dl_plan_complete(w->system, w->workload, w->framework, &plan, NULL), DL_OK);
    const struct dl_predict_request request = {.system = w->system,
                                               .workload = w->workload,
                                               .framework = w->framework,
                                               .plan = &plan,
                                               .arena = &w->arena};
    struct dl_replica replica;
    double sum = 0;
    assert_int_equal(dl_split_replica_replica(&request, kind, 4, &replica, NULL), DL_OK);
    for (int m = 0; m < replica.message_count; m++) {
        const struct dl_layer_message *own = &replica.messages[m];
        const bool all_reduce = strncmp(own->message.name, "all_reduce", 10) == 0;
        if (own->message.bytes != skip_elements * 32 * 4)
            sum += own->message.bytes * (all_reduce ? 2 : 1);
    }
    return sum;
}

static void filter_and_channel_send_the_same(void **state) {
    struct world w;
    load(&w, "abci-v100", "vgg16", "pytorch-ddp");
    /* Without pools, the first and the last layer a chain's outputs are the next layer's inputs. */
    struct dl_workload chain = *w.workload;
    struct dl_layer *layers = dl_arena_alloc(&w.arena, 5, sizeof *layers);
    int conv = 0;
    while (strcmp(w.workload->layers[conv].name, "stage5.unit.1.conv") != 0) conv++;
    for (int i = 0; i < 5; i++) {
        static const int inputs[] = {-1, 0, 1, 2, 3};
        layers[i] = w.workload->layers[conv];
        layers[i].inputs = &inputs[i];
        layers[i].first = false;
    }
    layers[4].out.channels /= 2; /* another size: left out of both sums */
    chain.layers = layers;
    chain.layer_count = 5;
    w.workload = &chain;
    const double last = layers[4].out.channels * 14 * 14, all = layers[0].in.channels * 14 * 14;
    const double filter = volume(&w, DL_SPLIT_FILTER, last),
                 channel = volume(&w, DL_SPLIT_CHANNEL, last);
    equal(filter, (4 + 2 * 4) * all * 32 * 4, "filter: gathers and sums of four layers");
    equal(channel, (2 * 4 + 5) * all * 32 * 4,
          "channel: sums of four outputs, gathers of five inputs");
    equal(filter + all * 32 * 4, channel, "the same but for the gradient of the chain's own input");
    dl_arena_free(&w.arena);
}

/* F-CHANNEL as ChainerMN's published runs do it: sums by NCCL, gathers by MPI; where the sums end
 * the graph no convolution before the last has a backward pass, so that backward is that of the
 * dense layers after them, and nothing is gathered. */
static void channel_sums(void **state) {
    struct world w;
    load(&w, "abci-v100", "vgg16", "chainermn");
    struct dl_framework framework = *w.framework;
    struct dl_plan plan = plan_of("channel", 2, 4);
    assert_int_equal(dl_plan_complete(w.system, w.workload, &framework, &plan, NULL), DL_OK);
    const struct dl_predict_request request = {.system = w.system,
                                               .workload = w.workload,
                                               .framework = &framework,
                                               .plan = &plan,
                                               .arena = &w.arena};
    for (int detached = 0; detached < 2; detached++) {
        struct dl_replica replica;
        struct dl_prediction p;
        fake_set(&framework, "channel_detached", detached);
        assert_int_equal(
            dl_split_replica_replica(&request, DL_SPLIT_CHANNEL, plan.tp, &replica, NULL), DL_OK);
        int sums = 0, gathers = 0, dense_gathers = 0;
        for (int i = 0; i < replica.message_count; i++) {
            const struct dl_layer_message *m = &replica.messages[i];
            const bool nccl = m->message.protocol != NULL; /* MPI has none */
            assert_int_equal(nccl, !m->backward);
            if (!m->backward)
                sums++;
            else if (strcmp(w.workload->layers[m->layer].kind->name, "dense") == 0)
                dense_gathers++;
            else
                gathers++;
        }
        assert_int_equal(sums, 12 + 3); /* the first of 13 convolutions has 3 channels only */
        assert_int_equal(dense_gathers, 3);
        assert_int_equal(gathers, detached ? 0 : 12);
        assert_int_equal(dl_replica_predict(&replica, &p, NULL), DL_OK);
        double backward_s = 0;
        struct dl_cost cost;
        assert_int_equal(
            dl_cost_compute(&(struct dl_cost_request){w.system->device, replica.workload,
                                                      &framework, &plan, replica.samples},
                            &w.arena, &cost, NULL),
            DL_OK);
        for (int i = 0; i < w.workload->layer_count; i++) {
            const bool conv = strcmp(w.workload->layers[i].kind->name, "conv") == 0;
            if (conv) assert_int_equal(cost.layers[i].backward.time_s > 0, !detached);
            backward_s += cost.layers[i].backward.time_s;
        }
        check_close(p.backward_s, backward_s, 1e-9);
    }
    dl_arena_free(&w.arena);
}

static void bubbles(void **state) {
    for (double p = 1; p <= 64; p *= 2) {
        for (double m = 1; m <= 256; m *= 4) {
            equal(dl_schedules[DL_GPIPE]->held(0, p, m, 1), m, "GPipe holds all");
            equal(dl_schedules[DL_1F1B]->held(0, p, m, 1), fmin(p, m),
                  "1F1B holds as many as stages");
        }
    }
    struct world w; /* and in a prediction: the bubble is (p - 1) steps, compute and stalls are m */
    load(&w, "abci-v100", "resnet50", "pytorch-ddp");
    struct dl_plan plan = plan_of("pipeline", 1, 16);
    plan.micro_batch_samples = 4;
    const struct dl_prediction p = predict(&w, &plan);
    const double steps_s = p.forward_s + p.backward_s + p.overhead_s;
    assert_true(fabs(p.bubble_s / (p.bubble_s + steps_s) - 3.0 / (16 + 3)) < 0.01);
    dl_arena_free(&w.arena);
}

/* Dynamic programming against all partitions of small chains. */
static double brute(const double *cost, int layers, int stages) {
    if (stages == 1) {
        double sum = 0;
        for (int i = 0; i < layers; i++) sum += cost[i];
        return sum;
    }
    double least = HUGE_VAL, last = 0;
    for (int j = layers - 1; j >= stages - 1; j--) {
        last += cost[j];
        least = fmin(least, fmax(last, brute(cost, j, stages - 1)));
    }
    return least;
}

static void balance_is_optimal(void **state) {
    uint64_t seed = 7;
    for (int i = 0; i < 300; i++) {
        double cost[10], work[DL_PIPELINE_WORK(10, 10)];
        int first[11];
        const int layers = 1 + i % 10, stages = 1 + i / 10 % layers;
        for (int k = 0; k < layers; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            cost[k] = (double)(seed >> 40);
        }
        equal(dl_pipeline_balance(cost, layers, stages, first, work), brute(cost, layers, stages),
              "balance");
        assert_int_equal(first[0], 0);
        assert_int_equal(first[stages], layers);
        for (int s = 0; s < stages; s++) assert_true(first[s] < first[s + 1]);
    }
}

/* Every last stage in turn, the shortest first: the definition of what is found first. */
enum { MAX_LAYERS = 40 };
struct plain {
    double best[MAX_LAYERS + 1][MAX_LAYERS + 1]; /* [stages][layers] */
    int cut[MAX_LAYERS + 1][MAX_LAYERS + 1];
};
static void plain_balances(const double *cost, int layers, int stages, struct plain *p) {
    p->best[1][0] = 0;
    for (int i = 1; i <= layers; i++) {
        p->best[1][i] = p->best[1][i - 1] + cost[i - 1];
        p->cut[1][i] = 0;
    }
    for (int s = 2; s <= stages; s++) {
        for (int i = s; i <= layers; i++) {
            double last = 0, least = HUGE_VAL;
            for (int j = i - 1; j >= s - 1; j--) {
                last += cost[j];
                const double largest = fmax(last, p->best[s - 1][j]);
                if (largest >= least) continue;
                least = largest;
                p->cut[s][i] = j;
            }
            p->best[s][i] = least;
        }
    }
}

/* The same cuts as by trying each, to the bit: layers of any cost, of few different ones (nearly
 * all sums are tied), many that cost nothing, one that exceeds all others together. */
static void balance_cuts_as_plain_scan(void **state) {
    enum { MOST = MAX_LAYERS };
    static double fast[DL_PIPELINE_WORK(MOST, MOST)], fast_one[DL_PIPELINE_WORK(MOST, MOST)];
    static struct plain plain;
    uint64_t seed = 11;
    for (int i = 0; i < 2000; i++) {
        double cost[MOST];
        const int layers = 1 + (int)(check_random(&seed) % MOST),
                  stages = 1 + (int)(check_random(&seed) % (uint64_t)layers);
        for (int k = 0; k < layers; k++) {
            const uint64_t r = check_random(&seed);
            cost[k] = i % 4 == 0   ? (double)(r >> 20) * 0.1
                      : i % 4 == 1 ? (double)(r % 3) * 0.1 + 0.1
                      : i % 4 == 2 ? (r % 2 == 0 ? 0 : 1e-3 * (double)(r % 5))
                                   : 0.3;
        }
        if (i % 4 == 3) cost[check_random(&seed) % (uint64_t)layers] = 100;
        dl_pipeline_balances(cost, layers, stages, fast);
        plain_balances(cost, layers, stages, &plain);
        for (int s = 1; s <= stages; s++) {
            int first[MOST + 1], at = layers;
            dl_pipeline_cut(fast, layers, stages, s, first);
            assert_int_equal(first[s], layers);
            for (int k = s; k >= 1; k--) {
                at = plain.cut[k][at];
                assert_int_equal(first[k - 1], at);
            }
            check_close(dl_pipeline_balance(cost, layers, s, first, fast_one),
                        plain.best[s][layers], 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hybrids_contain_their_parts),
        cmocka_unit_test(filter_and_channel_send_the_same),
        cmocka_unit_test(channel_sums),
        cmocka_unit_test(bubbles),
        cmocka_unit_test(balance_is_optimal),
        cmocka_unit_test(balance_cuts_as_plain_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

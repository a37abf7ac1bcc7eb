/* The terms that explain a transformer's prediction: each with its value, formula, inputs and
 * origin, worked by hand from parts of round numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/engine/transformer/transformer_parts.h"
#include "tests/fake_transformer.h"

static struct dl_collective_time takes(double seconds, const char *algorithm, const char *protocol,
                                       const char *limit) {
    return (struct dl_collective_time){.time_s = seconds,
                                       .sigma_log = 0.125,
                                       .algorithm = algorithm,
                                       .protocol = protocol,
                                       .formula = algorithm != NULL ? "F-COLL-RING" : NULL,
                                       .limit = limit,
                                       .origin = "fitted"};
}

/* Three micro-batches of 4 samples; on a rank of the slowest stage 5 layers, the embedding and the
 * head; 6 layers on the fullest. */
static void make_parts(struct gpt *g, struct dl_transformer_parts *t, struct dl_prediction *p) {
    gpt_make(g, NULL, 0);
    memset(t, 0, sizeof *t), memset(p, 0, sizeof *p);
    t->tf = &g->tf, t->plan = &g->f.plan, t->arena = &g->f.arena, t->micro_samples = 4;
    t->choice = (struct dl_transformer_choice){.micro_batches = 3, .virtual_stages = 2};
    t->mapping.split = gpt_split(2, 4, 1, 1, 8);
    t->mapping.stage_layers = 6, t->mapping.replicas = 32, t->mapping.shard_ranks = 16;
    t->mapping.most_parameters = 7e6, t->mapping.updated_elements = 5e5;
    t->result.layers = 5, t->result.before = t->result.after = true;
    for (int i = 0; i < DL_TRANSFORMER_PARTS; i++) {
        const double x = i + 1;
        t->micro_batch.forward[i] = (struct dl_transformer_pass){.device_s = 1e-3 * x,
                                                                 .error_s = 2e-4 * x * x,
                                                                 .flop = 1e9 * x,
                                                                 .moved_bytes = 2e6 * x,
                                                                 .launches = 10 * x,
                                                                 .host_operation_count = x};
        for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++)
            t->micro_batch.backward[i][r] =
                (struct dl_transformer_pass){.device_s = 4e-3 * x + r,
                                             .error_s = 1e-3,
                                             .flop = 3e9 * x,
                                             .moved_bytes = 5e6 * x,
                                             .launches = 20 * x + 100 * r,
                                             .host_operation_count = 7 * x + 1000 * r};
    }
}

static const struct dl_term *term_of(const struct dl_prediction *p, const char *name) {
    for (int i = 0; i < p->term_count; i++)
        if (strcmp(p->terms[i].name, name) == 0) return &p->terms[i];
    return NULL;
}

static void explain(const struct dl_transformer_parts *t, struct dl_prediction *p) {
    struct dl_err err = {0};
    assert_int_equal(dl_transformer_explain(t, p, &err), DL_OK);
}

static void check_term(const struct dl_prediction *p, const char *name, const char *group,
                       const char *formula, const char *inputs, const char *origin, double value,
                       double sigma, const char *lane) {
    const struct dl_term *is = term_of(p, name);
    if (is == NULL) fail_msg("no term %s", name);
    assert_string_equal(is->group, group);
    assert_string_equal(is->formula, formula);
    assert_string_equal(is->inputs, inputs);
    assert_string_equal(is->origin, origin);
    check_close(is->value, value, 1e-12);
    check_close(is->sigma_log, sigma, 1e-12);
    check_nan(is->start_s);
    assert_int_equal(is->lane != NULL, lane != NULL);
    if (lane != NULL) assert_string_equal(is->lane, lane);
}

/* Forward in order, backward the other way round: 3 times, the 5 layers of a stage 15 times. */
static void passes(void **state) {
    (void)state;
    struct gpt g;
    struct dl_transformer_parts t;
    struct dl_prediction p;
    make_parts(&g, &t, &p);
    explain(&t, &p);
    check_term(&p, "embedding forward x 3", "forward", "F-TRANSFORMER-LAYER",
               "4 samples, tp=2 cp=4: 1 GFLOP, 2 MB, 10 kernels, 1 ms each", "fake-gpu", 3e-3, 0.2,
               "compute");
    check_term(&p, "layer forward x 15", "forward", "F-TRANSFORMER-LAYER",
               "4 samples, tp=2 cp=4: 2 GFLOP, 4 MB, 20 kernels, 2 ms each", "fake-gpu", 30e-3, 0.4,
               "compute");
    check_term(&p, "head forward x 3", "forward", "F-TRANSFORMER-LAYER",
               "4 samples, tp=2 cp=4: 3 GFLOP, 6 MB, 30 kernels, 3 ms each", "fake-gpu", 9e-3, 0.6,
               "compute");
    check_term(&p, "head backward x 3", "backward", "F-TRANSFORMER-LAYER",
               "4 samples, tp=2 cp=4: 9 GFLOP, 15 MB, 60 kernels, 12 ms each", "fake-gpu", 36e-3,
               1.0 / 12, "compute");
    static const char *const order[] = {"embedding forward x 3", "layer forward x 15",
                                        "head forward x 3",      "head backward x 3",
                                        "layer backward x 15",   "embedding backward x 3"};
    for (int i = 0; i < 6; i++) assert_string_equal(p.terms[i].name, order[i]);
    /* the slowest stage has neither end; what takes no time is no term */
    t.result.before = t.result.after = false;
    t.micro_batch.forward[DL_TRANSFORMER_BODY].device_s = 0;
    t.choice.recompute = DL_RECOMPUTE_FULL;
    explain(&t, &p);
    assert_null(term_of(&p, "embedding forward x 3"));
    assert_null(term_of(&p, "embedding backward x 3"));
    assert_null(term_of(&p, "head forward x 3"));
    assert_null(term_of(&p, "head backward x 3"));
    assert_null(term_of(&p, "layer forward x 15"));
    const int full = DL_RECOMPUTE_FULL;
    const double each_s = t.micro_batch.backward[DL_TRANSFORMER_BODY][full].device_s;
    const struct dl_term *again = term_of(&p, "layer backward x 15");
    check_close(again->value, 15 * each_s, 1e-12);
    assert_string_equal(again->inputs + strlen(again->inputs) - 20, ", with recomputation");
    /* the first stage alone, the last alone */
    t.result.before = true;
    explain(&t, &p);
    assert_non_null(term_of(&p, "embedding forward x 3"));
    assert_null(term_of(&p, "head forward x 3"));
    t.result.before = false, t.result.after = true;
    explain(&t, &p);
    assert_null(term_of(&p, "embedding backward x 3"));
    assert_non_null(term_of(&p, "head backward x 3"));
    dl_arena_free(&g.f.arena);
}

/* Messages: how often, of what size, by which algorithm and link.
 * Kept whole: one case, all of its terms. */
static void messages(void **state) {
    (void)state;
    struct gpt g;
    struct dl_transformer_parts t;
    struct dl_prediction p;
    make_parts(&g, &t, &p);
    t.result.tensor_s = 2;
    t.micro_batch.collective_bytes = 8e6, t.micro_batch.route_bytes = 3e6;
    t.micro_batch.reduce.time_s = 1e-3, t.micro_batch.gather.time_s = 2e-3;
    t.micro_batch.scatter.time_s = 3e-3, t.micro_batch.boundary_bytes = 1e6;
    t.micro_batch.route = takes(0.01, "pairwise", NULL, "inter");
    t.boundary = takes(0.25, NULL, NULL, NULL);
    t.mapping.reduce = takes(0.5, "ring", "LL128", "intra");
    t.mapping.gather = takes(0.75, "tree", "Simple", "inter");
    t.mapping.expert_reduce = takes(0.125, "ring", NULL, "inter");
    t.mapping.expert_gather = takes(0.25, "ring", NULL, "inter");
    t.mapping.unit_gather = takes(0.03125, "ring", NULL, "inter");
    t.mapping.unit_reduce = takes(0.0625, "ring", NULL, "inter");
    t.mapping.tied = takes(0.5, "ring", NULL, "inter");
    t.mapping.gradient_bytes = 9e6, t.mapping.expert_gradient_bytes = 2e6;
    t.mapping.gather_bytes = 7e6, t.mapping.expert_gather_bytes = 3e6;
    explain(&t, &p);
    check_term(&p, "inside layers", "communication", "F-TRANSFORMER-TENSOR",
               "3 micro-batches x 6 layers, 8 MB each, all-reduce 1 ms, all-gather 2 ms, "
               "reduce-scatter 3 ms",
               "model", 2, NAN, "communication");
    assert_null(term_of(&p, "expert all-to-all x 72"));
    /* 2 (3 x 2 + 1 - 2) messages of one stage */
    check_term(&p, "between stages x 10", "communication", "F-TRANSFORMER-BOUNDARY",
               "1 MB  (-), 250 ms each, limited by no link", "fitted", 2.5, 0.125, "communication");
    check_term(&p, "gradients, all-reduce x 1", "communication", "F-TRANSFORMER-DATA",
               "7 MB ring/LL128 (F-COLL-RING), 375 ms each, limited by intra link", "fitted", 0.375,
               0.125, "communication");
    check_term(&p, "parameters, all-gather x 1", "communication", "F-TRANSFORMER-DATA",
               "4 MB tree/Simple (F-COLL-RING), 500 ms each, limited by inter link", "fitted", 0.5,
               0.125, "communication");
    check_term(&p, "expert gradients x 1", "communication", "F-TRANSFORMER-DATA",
               "2 MB ring (F-COLL-RING), 125 ms each, limited by inter link", "fitted", 0.125,
               0.125, "communication");
    check_term(&p, "expert all-gather x 1", "communication", "F-TRANSFORMER-DATA",
               "3 MB ring (F-COLL-RING), 250 ms each, limited by inter link", "fitted", 0.25, 0.125,
               "communication");
    /* twice and once for each of 3 x 6 layers */
    check_term(&p, "layer all-gather x 36", "communication", "F-TRANSFORMER-SHARD",
               "ring (F-COLL-RING), 31.25 ms each, limited by inter link", "fitted", 36 * 0.03125,
               0.125, "communication");
    check_term(&p, "layer reduce-scatter x 18", "communication", "F-TRANSFORMER-SHARD",
               "ring (F-COLL-RING), 62.5 ms each, limited by inter link", "fitted", 18 * 0.0625,
               0.125, "communication");
    check_term(&p, "tied embedding x 1", "communication", "F-TRANSFORMER-DATA",
               "ring (F-COLL-RING), 500 ms each, limited by inter link", "fitted", 0.5, 0.125,
               "communication");
    /* which of them come with every micro-batch; gathers of experts once */
    static const struct {
        int shard;
        const char *gradients, *parameters, *experts;
    } cases[] = {
        {1, "gradients, reduce-scatter x 1", "parameters, all-gather x 1", "expert gradients x 1"},
        {2, "gradients, reduce-scatter x 3", "parameters, all-gather x 1", "expert gradients x 3"},
        {3, "gradients, reduce-scatter x 3", "parameters, all-gather x 3", "expert gradients x 3"}};
    for (int i = 0; i < 3; i++) {
        t.mapping.shard = cases[i].shard;
        explain(&t, &p);
        assert_non_null(term_of(&p, cases[i].gradients));
        assert_non_null(term_of(&p, cases[i].parameters));
        assert_non_null(term_of(&p, cases[i].experts));
        assert_non_null(term_of(&p, "expert all-gather x 1"));
    }
    /* tokens there and back: 2 forward, 2 backward of 3 x 6, 2 more where forward is repeated */
    t.mapping.split.ep = 2;
    explain(&t, &p);
    check_term(&p, "expert all-to-all x 72", "communication", "F-TRANSFORMER-EXPERT",
               "3 MB pairwise (F-COLL-RING), 10 ms each, limited by inter link", "fitted", 0.72,
               0.125, "communication");
    check_close(term_of(&p, "inside layers")->value, 2 - 0.72, 1e-12);
    t.choice.recompute = DL_RECOMPUTE_FULL;
    explain(&t, &p);
    check_close(term_of(&p, "expert all-to-all x 108")->value, 1.08, 1e-12);
    check_close(term_of(&p, "inside layers")->value, 2 - 1.08, 1e-12);
    t.choice.recompute = DL_RECOMPUTE_SELECTIVE;
    explain(&t, &p);
    assert_non_null(term_of(&p, "expert all-to-all x 72"));
    dl_arena_free(&g.f.arena);
}

/* What is left: update, exposed communication, input, bubble; none of it where it is nothing. */
static void others(void **state) {
    (void)state;
    struct gpt g;
    struct dl_transformer_parts t;
    struct dl_prediction p;
    make_parts(&g, &t, &p);
    p.update_s = 0.5, p.exposed_comm_s = 0.25, p.input_s = 0.125, p.exposed_input_s = 0.0625;
    p.bubble_s = 2;
    t.result.tensor_s = 1e-3, t.result.boundary_s = 2e-3, t.result.data_exposed_s = 3e-3;
    g.workload.input_bytes_per_sample = 4096;
    explain(&t, &p);
    check_term(&p, "optimizer step", "update", "F-UPDATE-BYTES", "5e+05 parameters", "fake-gpu",
               0.5, NAN, "compute");
    check_term(&p, "exposed communication", "exposed", "F-TRANSFORMER-SHARD",
               "in layers=1, between stages=2, data=3 ms", "model", 0.25, NAN, NULL);
    check_term(&p, "input", "input", "F-INPUT",
               "12 samples x 4096 B over the host link; exposed=62.5 ms", "system file", 0.125, NAN,
               NULL);
    check_term(&p, "pipeline bubble", "overhead", "F-TRANSFORMER-BUBBLE",
               "1 stages, 3 micro-batches, 1f1b", "model", 2, NAN, NULL);
    t.mapping.shard = 1;
    p.input_s = p.bubble_s = p.exposed_comm_s = 0;
    explain(&t, &p);
    assert_string_equal(term_of(&p, "optimizer step")->inputs,
                        "5e+05 parameters, the rank's shard");
    assert_null(term_of(&p, "input"));
    assert_null(term_of(&p, "pipeline bubble"));
    assert_null(term_of(&p, "exposed communication"));
    dl_arena_free(&g.f.arena);
}

/* Memory by its parts; what the allocator loses is what the total has more. */
static void memory(void **state) {
    (void)state;
    struct gpt g;
    struct dl_transformer_parts t;
    struct dl_prediction p;
    make_parts(&g, &t, &p);
    const double mib = 1048576;
    g.f.device.context_bytes = 5e8, g.f.framework.memory.context_bytes = 25e6;
    g.f.framework.memory.fragmentation_frac = 0.25;
    t.mapping.shard = 2;
    t.micro_batch.kept_bytes[DL_TRANSFORMER_BODY][DL_RECOMPUTE_NONE] = 3e6;
    p.memory = (struct dl_memory){.weights_bytes = 1 * mib,
                                  .gradients_bytes = 2 * mib,
                                  .optimizer_bytes = 4 * mib,
                                  .activations_bytes = 8 * mib,
                                  .workspace_bytes = 16 * mib,
                                  .buffers_bytes = 32 * mib,
                                  .context_bytes = 64 * mib,
                                  .total_bytes = 200 * mib};
    explain(&t, &p);
    const char *states = "7e+06 parameters of a rank, ZeRO stage 2 over 16",
               *formula = "F-TRANSFORMER-STATES", *file = "workload file";
    check_term(&p, "weights", "memory", formula, states, file, 1 * mib, NAN, NULL);
    check_term(&p, "gradients", "memory", formula, states, file, 2 * mib, NAN, NULL);
    check_term(&p, "optimizer", "memory", formula, states, file, 4 * mib, NAN, NULL);
    check_term(&p, "activations", "memory", "F-TRANSFORMER-MEMORY",
               "1 micro-batches in flight (F-TRANSFORMER-IN-FLIGHT) x 6 layers x 3 MB "
               "(F-TRANSFORMER-ACTIVATIONS)",
               file, 8 * mib, NAN, NULL);
    check_term(&p, "workspace", "memory", "F-MEM-WORKSPACE", "libraries keep 16.78 MB",
               "device file", 16 * mib, NAN, NULL);
    check_term(&p, "communication buffers", "memory", "F-MEM-BUFFERS", "gradient buckets",
               "framework file", 32 * mib, NAN, NULL);
    check_term(&p, "context", "memory", "F-MEM-CONTEXT", "runtime 500 MB + framework 25 MB",
               "device and framework file", 64 * mib, NAN, NULL);
    check_term(&p, "fragmentation", "memory", "F-MEM-FRAGMENTATION",
               "sum=127 MiB x f / (1 - f), f=0.25", "framework file", 73 * mib, NAN, NULL);
    g.f.device.context_bytes = NAN;
    p.memory.total_bytes = 127 * mib;
    explain(&t, &p);
    assert_string_equal(term_of(&p, "context")->inputs, "runtime 0 MB + framework 25 MB");
    assert_null(term_of(&p, "fragmentation"));
    dl_arena_free(&g.f.arena);
}

/* Kernels and operations of a micro-batch: those of the slowest stage. Forward and backward have 30
 * of the embedding, 5 x 60 of the layers, 90 of the head; beside them 8, 5 x 16 and 24. */
static void overhead(void **state) {
    (void)state;
    static const struct {
        bool before, after;
        double kernels, operations;
    } cases[] = {{true, true, 420, 112},
                 {true, false, 330, 88},
                 {false, true, 390, 104},
                 {false, false, 300, 80}};
    struct gpt g;
    struct dl_transformer_parts t;
    struct dl_prediction p;
    make_parts(&g, &t, &p);
    p.overhead_s = 0.5, p.compute_s = 1;
    g.f.framework.host.iteration_s = 0.125;
    for (int i = 0; i < 4; i++) {
        char gaps[64], late[96];
        const double all = 3 * cases[i].kernels;
        t.result.before = cases[i].before, t.result.after = cases[i].after;
        explain(&t, &p);
        snprintf(gaps, sizeof gaps, "kernel_gap=1 us x %.0f kernels", all);
        snprintf(late, sizeof late,
                 "dispatch_s=5 us x %.0f kernels and %.0f operations, minus what kernels hide", all,
                 3 * cases[i].operations);
        check_term(&p, "launch gaps", "overhead", "F-HOST-GAP", gaps, "device file", 1e-6 * all,
                   NAN, NULL);
        check_term(&p, "host time per iteration", "overhead", "F-HOST-GAP",
                   "iteration_s=125 ms x 1", "framework file", 0.125, NAN, NULL);
        check_term(&p, "device waits for launches", "overhead", "F-HOST-GAP", late,
                   "framework file", 0.375 - 1e-6 * all, NAN, NULL);
    }
    dl_arena_free(&g.f.arena);
}

/* Of a pipeline every stage has its time: the layers of its own, ends with what they hold. */
static void stages(void **state) {
    (void)state;
    struct gpt g;
    struct dl_transformer_parts t;
    struct dl_prediction p;
    make_parts(&g, &t, &p);
    explain(&t, &p);
    assert_null(p.stage_times);
    for (int i = 0; i < DL_TRANSFORMER_PARTS; i++) {
        t.micro_batch.forward[i].step_s = i + 1;
        for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++)
            t.micro_batch.backward[i][r].step_s = 10 * (i + 1) + 100 * r;
    }
    t.mapping.split.pp = 4;
    t.mapping.end_layers[0] = 4, t.mapping.end_layers[1] = 3, t.mapping.all_layers = 19;
    explain(&t, &p);
    assert_non_null(p.stage_times);
    check_close(p.micro_batches, 3, 0);
    const double forward_s[] = {1 + 4 * 2, 6 * 2, 6 * 2, 3 * 2 + 3},
                 backward_s[] = {10 + 4 * 20, 6 * 20, 6 * 20, 3 * 20 + 30};
    for (int i = 0; i < 4; i++) {
        check_close(p.stage_times[i].forward_s, forward_s[i], 1e-12);
        check_close(p.stage_times[i].backward_s, backward_s[i], 1e-12);
    }
    dl_arena_free(&g.f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(passes),   cmocka_unit_test(messages),
                                       cmocka_unit_test(others),   cmocka_unit_test(memory),
                                       cmocka_unit_test(overhead), cmocka_unit_test(stages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

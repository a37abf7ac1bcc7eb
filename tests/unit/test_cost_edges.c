/* What single conditions of the cost models decide: what a memo must tell apart, words of messages
 * and tables that nothing else reads, and the least and largest value of a choice. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "model/network/coll_parts.h"
#include "model/network/libraries/nccl.h"
#include "model/framework/cost.h"
#include "model/framework/cost_memo.h"
#include "model/framework/input.h"
#include "model/framework/layer_times.h"
#include "model/machine/kernel_match.h"
#include "model/engine/canonical.h"
#include "model/engine/schedule.h"
#include "tests/fake_transformer.h"

static struct dl_err err;

/* What dl_cost_recall gives for the plan; its layers are those of an equal plan before. */
static const void *recalled(struct dl_fake *f, struct dl_cost_memo *memo,
                            const struct dl_plan *plan) {
    struct dl_cost cost;
    if (dl_cost_recall(memo, &f->device, &f->workload, &f->framework, plan, 8, &f->arena, &cost,
                       &err) != DL_OK)
        fail_msg("%s", err.message);
    return cost.layers;
}

/* Two plans that differ in one member have kernels of their own, whichever comes first. */
static void layers_are_recalled_for_equal_plans_alone(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_rate rates[] = {f.rate, f.rate};
    rates[1].precision = DL_FP16;
    f.device.rates = rates, f.device.rate_count = 2;
    struct dl_plan plans[7];
    for (int i = 0; i < 7; i++) plans[i] = f.plan;
    plans[1].precision = DL_FP16;
    plans[2].optimizer = f.plan.optimizer == DL_SGD ? DL_ADAM : DL_SGD;
    plans[3].attention = (enum dl_attention_kernel)(f.plan.attention + 1);
    plans[4].compiler = (enum dl_compiler)(f.plan.compiler + 1);
    plans[5].recompute = (enum dl_recompute)(f.plan.recompute + 1);
    plans[6].compute_scale = 1.5;
    for (int i = 1; i < 7; i++) {
        for (int first = 0; first < 2; first++) {
            struct dl_cost_memo memo = {.arena = &f.arena};
            const struct dl_plan *a = &plans[first ? i : 0], *b = &plans[first ? 0 : i];
            const void *of_a = recalled(&f, &memo, a), *of_b = recalled(&f, &memo, b);
            assert_ptr_not_equal(of_a, of_b);
            assert_ptr_equal(recalled(&f, &memo, a), of_a);
            assert_ptr_equal(recalled(&f, &memo, b), of_b);
        }
    }
    dl_arena_free(&f.arena);
}

/* A graph is kept for equal requests alone: after another one the scratch is that of the other. */
static void graphs_are_kept_for_equal_requests_alone(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_collective_time time, fresh;
    fake_make(&f);
    f.device.architecture = "volta";
    const struct dl_collective_request usual = {.op = DL_COLL_ALL_REDUCE,
                                                .library = DL_LIB_NCCL,
                                                .bytes = 1e6,
                                                .nodes = 4,
                                                .ranks_per_node = 4,
                                                .domain_nodes = 2,
                                                .flows_per_adapter = 1,
                                                .group_stride = 2,
                                                .concurrent = 2};
    struct dl_collective_request other[8];
    for (int i = 0; i < 8; i++) other[i] = usual;
    other[0].op = DL_COLL_ALL_GATHER, other[1].nodes = 8, other[2].ranks_per_node = 2;
    other[3].domain_nodes = 1, other[4].flows_per_adapter = 2, other[5].as_run = true;
    other[6].group_stride = 1, other[7].concurrent = 3;
    for (int i = 0; i < 8; i++) {
        for (int first = 0; first < 2; first++) {
            struct dl_nccl_memo memo = {0};
            struct dl_collective_request a = first ? other[i] : usual, b = first ? usual : other[i];
            assert_int_equal(dl_nccl_time(&f.system, &b, &fresh, &err), DL_OK);
            a.memo = b.memo = &memo;
            assert_int_equal(dl_nccl_time(&f.system, &a, &time, &err), DL_OK);
            assert_int_equal(dl_nccl_time(&f.system, &b, &time, &err), DL_OK);
            check_close(time.time_s, fresh.time_s, 0);
            assert_true(memo.op == b.op && memo.nodes == b.nodes && memo.as_run == b.as_run &&
                        memo.ranks_per_node == b.ranks_per_node &&
                        memo.domain_nodes == b.domain_nodes &&
                        memo.group_stride == b.group_stride && memo.concurrent == b.concurrent);
            check_close(memo.flows_per_adapter, b.flows_per_adapter, 0);
        }
    }
    dl_arena_free(&f.arena);
}

/* Without a kind that NCCL knows the generation of the device tells the rate of a link. */
static void rates_of_links_by_generation(void **state) {
    (void)state;
    static const struct {
        const char *architecture, *kind;
        double bytes_per_s;
    } cases[] = {{"volta", "nvlink", 22.5e9},     {"ampere", "nvlink", 19.3e9},
                 {"hopper", "nvlink", 20.6e9},    {"blackwell", "nvlink", 40.1e9},
                 {"pascal", "nvlink", 22.5e9},    {"volta", "nvlink1", 18e9},
                 {"volta", "nvlink2", 22.5e9},    {"volta", "nvlink3", 19.3e9},
                 {"volta", "nvlink4", 20.6e9},    {"volta", "nvlink5", 40.1e9},
                 {"blackwell", "nvlink2", 22.5e9}};
    const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                            .library = DL_LIB_NCCL,
                                            .bytes = 1e9,
                                            .nodes = 1,
                                            .ranks_per_node = 4,
                                            .flows_per_adapter = 1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dl_fake f;
        struct dl_nccl_graph known, given;
        fake_make(&f);
        f.device.architecture = cases[i].architecture;
        f.system.intra.kind = cases[i].kind;
        f.system.intra.bandwidth_bytes_per_s = NAN;
        f.system.intra.channel_bandwidth_bytes_per_s = cases[i].bytes_per_s;
        assert_int_equal(dl_nccl_graph_build(&f.system, &r, &given, &err), DL_OK);
        f.system.intra.channel_bandwidth_bytes_per_s = NAN;
        assert_int_equal(dl_nccl_graph_build(&f.system, &r, &known, &err), DL_OK);
        check_close(known.ring_bytes_per_s, given.ring_bytes_per_s, 1e-12);
        f.system.intra.channel_bandwidth_bytes_per_s = 2 * cases[i].bytes_per_s;
        assert_int_equal(dl_nccl_graph_build(&f.system, &r, &given, &err), DL_OK);
        assert_true(given.ring_bytes_per_s > 1.5 * known.ring_bytes_per_s);
        dl_arena_free(&f.arena);
    }
}

/* Tables of constants by release: the last number before each and its own. */
static void releases_of_nccl(void **state) {
    (void)state;
    static const struct {
        const char *text, *row;
        int number;
    } cases[] = {
        {"2.3.99", "2.0", 399},     {"2.4.0", "2.4", 400},      {"2.4.99", "2.4", 499},
        {"2.5.0", "2.5", 500},      {"2.5.99", "2.5", 599},     {"2.6.0", "2.6", 600},
        {"2.6.99", "2.6", 699},     {"2.7.0", "2.7", 700},      {"2.7.99", "2.7", 799},
        {"2.8.0", "2.8", 800},      {"2.11.99", "2.8", 1199},   {"2.12.0", "2.12", 1200},
        {"2.13.99", "2.12", 1399},  {"2.14.0", "2.14", 1400},   {"2.16.99", "2.14", 1699},
        {"2.17.0", "2.17", 1700},   {"2.17.99", "2.17", 1799},  {"2.18.0", "2.18.1", 1800},
        {"2.18.2", "2.18.1", 1802}, {"2.18.3", "2.18.3", 1803}, {"2.18.99", "2.18.3", 1899},
        {"2.19.0", "2.19", 1900},   {"2.20.99", "2.19", 2099},  {"2.21.0", "2.21", 2100},
        {"2.22.99", "2.21", 2299},  {"2.23.0", "2.23", 2300},   {"2.23.99", "2.23", 2399},
        {"2.24.0", "2.24", 2400},   {"2.27.99", "2.24", 2799},  {"2.28.0", "2.28", 2800}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int number = 0;
        const struct dl_nccl_version *row = dl_nccl_version_find(cases[i].text, &number);
        assert_non_null(row);
        assert_string_equal(row->text, cases[i].row);
        assert_int_equal(number, cases[i].number);
    }
}

/* Kinds of links that a system file may name. */
static void kinds_of_links(void **state) {
    (void)state;
    static const char *const kinds[] = {
        "nvlink1",  "nvlink2",   "nvlink3", "nvlink4",    "nvlink5",  "nvswitch",
        "infinity", "pcie2",     "pcie3",   "pcie4",      "pcie5",    "qpi",
        "upi",      "shm",       "xbus",    "infiniband", "ethernet", "omnipath",
        "aries",    "slingshot", "efa",     "loopback"};
    static const char *const distances[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
    struct dl_arena arena = {0};
    struct dl_json *doc;
    struct dl_fake f;
    fake_make(&f);
    assert_int_equal(dl_json_parse("x.json", "{}", 2, &arena, &doc, &err), DL_OK);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        f.system.inter.kind = kinds[i];
        assert_int_equal(dl_link_check(&f.system.inter, 4, doc, "links.inter", &err), DL_OK);
    }
    static const char *const none[] = {"", "nvlink", "pcie", "nvlink6"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        f.system.inter.kind = none[i];
        assert_int_not_equal(dl_link_check(&f.system.inter, 4, doc, "links.inter", &err), DL_OK);
    }
    f.system.inter.kind = "qqpi";
    assert_int_not_equal(dl_link_check(&f.system.inter, 4, doc, "links.inter", &err), DL_OK);
    check_contains(err.message, "no such kind of link \"qqpi\"; nearest: qpi");
    f.system.inter.kind = "infiniband";
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        f.system.inter.distance = distances[i];
        assert_int_equal(dl_link_check(&f.system.inter, 4, doc, "links.inter", &err), DL_OK);
    }
    f.system.inter.distance = "PIXX";
    assert_int_not_equal(dl_link_check(&f.system.inter, 4, doc, "links.inter", &err), DL_OK);
    check_contains(err.message, "expected PIX, PXB, PHB, NODE or SYS, found \"PIXX\"");
    dl_arena_free(&f.arena), dl_arena_free(&arena);
}

static struct dl_kernel_row row_of(struct dl_arena *arena, const char *text) {
    struct dl_csv csv;
    struct dl_kernel_row row;
    if (dl_csv_parse("t.csv", text, strlen(text), arena, &csv, &err) != DL_OK ||
        dl_kernel_row_read(&csv, 0, &row, &err) != DL_OK)
        fail_msg("%s: %s", text, err.message);
    return row;
}

/* The type column of a table of kernels; sizes that only some tables have. */
static void types_and_sizes_of_kernel_tables(void **state) {
    (void)state;
    static const struct {
        const char *word;
        enum dl_precision precision;
    } types[] = {{"fp32", DL_FP32},   {"tf32", DL_TF32},     {"fp16", DL_FP16},
                 {"bf16", DL_BF16},   {"fp8", DL_FP8},       {"fp8(e5m2)", DL_FP8},
                 {"mxfp8", DL_MXFP8}, {"fp4", DL_NVFP4},     {"nvfp4", DL_NVFP4},
                 {"mixed", DL_MIXED}, {"fp8->bf16", DL_FP8}, {"bf16->fp8", DL_BF16}};
    struct dl_arena arena = {0};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct dl_kernel_row row = row_of(
            &arena, dl_arena_printf(&arena, "gpu,op,m,n,k,dtype_a,time_us\nX,gemm,4,5,6,%s,7\n",
                                    types[i].word));
        assert_null(row.why);
        assert_int_equal(row.precision, types[i].precision);
        assert_int_equal(row.kernel.op, DL_OP_GEMM);
        assert_true(row.kernel.m == 4 && row.kernel.n == 5 && row.kernel.k == 6);
    }
    check_contains(row_of(&arena, "gpu,op,m,n,k,dtype_a,time_us\nX,gemm,4,5,6,int8,7\n").why,
                   "the type is none of training's");
    check_contains(row_of(&arena, "gpu,op,m,n,k,dtype_a,time_us\nX,gemm,4,5,6,fp8->bf0,7\n").why,
                   "the type is none of training's");
    /* m and n alone, or m and k, are no GEMM */
    assert_int_not_equal(
        row_of(&arena, "gpu,op,m,n,elements,dtype,time_us\nX,add,4,5,20,fp32,7\n").kernel.op,
        DL_OP_GEMM);
    assert_int_not_equal(
        row_of(&arena, "gpu,op,m,k,elements,dtype,time_us\nX,add,4,5,20,fp32,7\n").kernel.op,
        DL_OP_GEMM);
    assert_int_not_equal(
        row_of(&arena, "gpu,op,k,n,elements,dtype,time_us\nX,add,4,5,20,fp32,7\n").kernel.op,
        DL_OP_GEMM);
    dl_arena_free(&arena);
}

static void formulas_of_copies(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *formula;
    } cases[] = {{"star", "F-COPY-STAR"}, {"tree", "F-COPY-TREE"},
                 {"host", "F-COPY-HOST"}, {"sharded", "F-COPY-SHARDED"},
                 {"ring", "F-COPY-RING"}, {"hierarchical", "F-COPY-HIERARCHICAL"}};
    struct dl_fake f;
    fake_make(&f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                                .library = DL_LIB_COPY,
                                                .bytes = 1e6,
                                                .nodes = 1,
                                                .ranks_per_node = 4,
                                                .flows_per_adapter = 1,
                                                .algorithm = cases[i].pattern};
        struct dl_collective_time time;
        assert_int_equal(dl_copy_time(&f.system, &r, &time, &err), DL_OK);
        assert_string_equal(time.formula, cases[i].formula);
        assert_string_equal(time.algorithm, cases[i].pattern);
        assert_true(time.time_s > 0);
    }
    dl_arena_free(&f.arena);
}

/* Samples that come over a network of unknown rate count nothing for it, and say so. */
static void input_over_an_unknown_network(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    f.plan.synthetic_input = false, f.plan.sample_bytes = 1e5;
    f.plan.dataset_samples = 1e9, f.plan.decode_s_per_sample = 0.01;
    struct dl_system there = f.system;
    f.plan.input_nodes = &there, f.plan.input_node_count = 3;
    there.has_inter = f.system.has_inter = false;
    const struct dl_input_time t = dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    check_close(t.transfer_s, 0, 0);
    assert_string_equal(t.unknown, "the network to the nodes that decode");
    check_close(t.decode_s, 2048 * 0.01 / (3 * 28), 1e-12);
    there.has_inter = f.system.has_inter = true, there.has_host = false;
    const struct dl_input_time coreless =
        dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
    check_close(coreless.decode_s, 0, 0);
    assert_string_equal(coreless.unknown, "the cores of the nodes that decode");
    assert_true(coreless.transfer_s > 0);
    /* two adapters receive twice as much */
    f.plan.input_node_count = 100, there.inter.adapters_per_node = 4;
    f.system.inter.adapters_per_node = DL_ABSENT;
    const double one = dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).transfer_s;
    f.system.inter.adapters_per_node = 2;
    check_close(dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan).transfer_s, one / 2,
                1e-12);
    dl_arena_free(&f.arena);
}

/* The memo of a search changes no prediction: of plans that differ in one member, whichever comes
 * first. */
static void memos_change_nothing(void **state) {
    (void)state;
    struct gpt g;
    gpt_make(&g, NULL, 0);
    struct dl_rate rates[] = {g.f.rate, g.f.rate, g.f.rate};
    rates[1].precision = DL_MIXED, rates[2].precision = DL_BF16, rates[2].peak_flop_per_s *= 4;
    g.f.device.rates = rates, g.f.device.rate_count = 3, g.f.device.memory_bytes = 200e9;
    struct dl_plan plans[10];
    for (int i = 0; i < 10; i++) {
        plans[i] = g.f.plan;
        plans[i].strategy = dl_strategy_find("3d"), plans[i].tp = 2;
        plans[i].batch_per_device_samples = 8, plans[i].micro_batch_samples = 4;
    }
    plans[1].precision = DL_BF16, plans[2].compute_scale = 1.5, plans[3].tp = 4;
    plans[4].tp = 1, plans[4].sp = 2, plans[5].sequence_parallel = true;
    plans[6].attention = DL_ATTENTION_FLASH, plans[7].micro_batch_samples = 2;
    plans[8].recompute = DL_RECOMPUTE_FULL, plans[9].compiler = (enum dl_compiler)1;
    for (int i = 1; i < 10; i++) {
        for (int first = 0; first < 2; first++) {
            struct dl_cost_memo memo = {.arena = &g.f.arena};
            const struct dl_predict_options with_memo = {.memo = &memo};
            double fresh_s = 0, recalled_s = 0;
            int kept = 0;
            for (int k = 0; k < 4; k++) {
                struct dl_plan used = plans[(k % 2 == 0) == (first == 0) ? i : 0];
                struct dl_prediction p, q;
                if (dl_plan_complete(&g.f.system, &g.workload, &g.f.framework, &used, &err) !=
                        DL_OK ||
                    dl_predict(&g.f.system, &g.workload, &g.f.framework, &used, NULL, &g.f.arena,
                               &p, &err) != DL_OK ||
                    dl_predict(&g.f.system, &g.workload, &g.f.framework, &used, &with_memo,
                               &g.f.arena, &q, &err) != DL_OK)
                    fail_msg("plan %d: %s", i, err.message);
                fresh_s += p.iteration_s * (k + 1), recalled_s += q.iteration_s * (k + 1);
                check_close(q.iteration_s, p.iteration_s, 0);
                check_close(q.memory.total_bytes, p.memory.total_bytes, 0);
                /* what is known is not kept twice */
                int known = 0;
                for (const struct dl_memo_entry *e = memo.newest; e != NULL; e = e->older) known++;
                if (k == 1) kept = known;
                if (k > 1) assert_int_equal(known, kept);
            }
            check_close(recalled_s, fresh_s, 0);
        }
    }
    dl_arena_free(&g.f.arena);
}

static void same_pass(const struct dl_transformer_pass *a, const struct dl_transformer_pass *b) {
    check_close(a->device_s, b->device_s, 0);
    check_close(a->launches, b->launches, 0);
    check_close(a->flop, b->flop, 0);
    check_close(a->moved_bytes, b->moved_bytes, 0);
    check_close(a->comm_s, b->comm_s, 0);
    check_close(a->host_operation_count, b->host_operation_count, 0);
    check_close(a->step_s, b->step_s, 0);
}

/* One micro-batch as the memo gives it is the one that is made without. */
static void recall_micro_batch(struct dl_transformer tf, const struct dl_transformer_split *split,
                               double samples, struct dl_cost_memo *memo, int entries) {
    struct dl_transformer_micro_batch made, known;
    int count = 0;
    tf.memo = NULL;
    assert_int_equal(dl_transformer_micro_batch_make(&tf, split, samples, &made, &err), DL_OK);
    tf.memo = memo;
    assert_int_equal(dl_transformer_micro_batch_make(&tf, split, samples, &known, &err), DL_OK);
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
        same_pass(&known.forward[p], &made.forward[p]);
        for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++) {
            same_pass(&known.backward[p][r], &made.backward[p][r]);
            check_close(known.kept_bytes[p][r], made.kept_bytes[p][r], 0);
        }
    }
    for (const struct dl_memo_entry *e = memo->newest; e != NULL; e = e->older) count++;
    assert_int_equal(count, entries);
}

/* Micro-batches of a stack with experts that differ in one member have kernels of their own,
 * whichever comes first; those that differ in what the kernels do not depend on have not. */
static void stacks_are_recalled_for_equal_splits_alone(void **state) {
    (void)state;
    enum { KEYS = 12, OTHERS = 4 };
    struct dl_override experts = {.key = "experts", .value = "4"};
    struct gpt g;
    gpt_make(&g, &experts, 1);
    struct dl_rate rates[] = {g.f.rate, g.f.rate, g.f.rate};
    rates[1].precision = DL_MIXED, rates[2].precision = DL_BF16, rates[2].peak_flop_per_s *= 4;
    g.f.device.rates = rates, g.f.device.rate_count = 3;
    struct dl_device device = g.f.device;
    struct dl_system system = g.f.system;
    struct dl_framework framework = g.f.framework;
    system.device = &device, device.memory_bandwidth_bytes_per_s *= 2;
    framework.transformer.selective = DL_SELECTIVE_BLOCKS;
    framework.transformer.selective_frac = 0.25;
    struct dl_transformer tf[KEYS + OTHERS];
    struct dl_transformer_split split[KEYS + OTHERS];
    double samples[KEYS + OTHERS];
    for (int i = 0; i < KEYS + OTHERS; i++)
        tf[i] = g.tf, split[i] = gpt_split(2, 1, 2, 1, 2), samples[i] = 4;
    tf[1].precision = DL_BF16, tf[2].input.attention = DL_ATTENTION_FLASH;
    tf[3].input.compiler = (enum dl_compiler)1, tf[4].compute_scale = 1.5;
    tf[5].system = &system, tf[6].framework = &framework, samples[7] = 2;
    split[8].tp = 1, split[9].sp = 2, split[10].ep = 1, split[11].sequence_parallel = true;
    /* data ranks, stages, and their order and groups */
    split[12].dp = 4, split[13].pp = 2, split[14].mapping = (enum dl_mapping)1;
    split[15].shard_group = 2;
    for (int i = 1; i < KEYS + OTHERS; i++) {
        for (int first = 0; first < 2; first++) {
            struct dl_cost_memo memo = {.arena = &g.f.arena};
            for (int k = 0; k < 4; k++) {
                const int at = (k % 2 == 0) == (first == 0) ? i : 0;
                recall_micro_batch(tf[at], &split[at], samples[at], &memo,
                                   k > 0 && i < KEYS ? 2 : 1);
            }
        }
    }
    /* experts folded into the ranks of tensor parallelism, from none to all of them */
    for (int64_t folded = 1; folded <= 4; folded *= 2) {
        struct dl_cost_memo memo = {.arena = &g.f.arena};
        struct dl_transformer_split four = gpt_split(4, 1, 1, 1, 1), other = four;
        other.folded = folded;
        recall_micro_batch(g.tf, &four, 4, &memo, 1);
        recall_micro_batch(g.tf, &other, 4, &memo, 2);
        recall_micro_batch(g.tf, &four, 4, &memo, 2);
        recall_micro_batch(g.tf, &other, 4, &memo, 2);
    }
    dl_arena_free(&g.f.arena);
}

static void share_of(const struct dl_transformer_pass *unit, const struct dl_transformer_pass *all,
                     double units) {
    check_close(unit->device_s, all->device_s / units, 1e-12);
    check_close(unit->launches, all->launches / units, 1e-12);
    check_close(unit->error_s, all->error_s / units, 1e-12);
    check_close(unit->outside_s, all->outside_s / units, 1e-12);
    check_close(unit->flop, all->flop / units, 1e-12);
    check_close(unit->moved_bytes, all->moved_bytes / units, 1e-12);
    check_close(unit->host_operation_count, all->host_operation_count / units, 1e-12);
    for (int i = 0; i < 3; i++) check_close(unit->by_limit_s[i], all->by_limit_s[i] / units, 1e-12);
}

/* A network that is no stack counts as several equal units: each has its share of what the body
 * takes and keeps, operations of the host too; what comes before and after is whole, and nothing
 * follows from a last layer that differs. With a memo and without. */
static void units_of_plain_networks(void **state) {
    (void)state;
    struct dl_override experts = {.key = "experts", .value = "4"};
    struct gpt g;
    gpt_make(&g, &experts, 1);
    g.f.framework.transformer.loops_experts = true;
    g.f.framework.transformer.routing_operation_count = 7;
    const struct dl_transformer_split alone = gpt_split(1, 1, 1, 1, 1);
    struct dl_transformer whole = g.tf;
    whole.stack = 1; /* then no other layer is its last */
    struct dl_transformer_micro_batch all, unit;
    assert_int_equal(dl_transformer_micro_batch_make(&whole, &alone, 2, &all, &err), DL_OK);
    assert_true(all.forward[DL_TRANSFORMER_BODY].host_operation_count >= 7);
    for (int units = 1; units <= 24; units++) { /* 24: as many as it has layers */
        for (int recalls = 0; recalls < 2; recalls++) {
            struct dl_cost_memo memo = {.arena = &g.f.arena};
            struct dl_transformer plain = g.tf;
            plain.plain = true, plain.stack = units, plain.memo = recalls ? &memo : NULL;
            assert_int_equal(dl_transformer_micro_batch_make(&plain, &alone, 2, &unit, &err),
                             DL_OK);
            for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
                const int n = p == DL_TRANSFORMER_BODY ? units : 1;
                share_of(&unit.forward[p], &all.forward[p], n);
                for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++) {
                    share_of(&unit.backward[p][r], &all.backward[p][r], n);
                    if (p == DL_TRANSFORMER_BODY && r == DL_RECOMPUTE_FULL) continue; /* inputs */
                    check_close(unit.kept_bytes[p][r], all.kept_bytes[p][r] / n, 1e-12);
                }
            }
        }
    }
    dl_arena_free(&g.f.arena);
}

static bool silent(const struct dl_collective_time *t) {
    return t->time_s == 0 && t->algorithm == NULL && t->formula == NULL && t->limit == NULL &&
           !t->extrapolated;
}

/* Collectives inside layers are those of groups of at least two ranks; of one rank there is none,
 * and none is described. */
static void groups_of_one_rank(void **state) {
    (void)state;
    struct dl_override experts = {.key = "experts", .value = "4"};
    struct gpt g;
    gpt_make(&g, &experts, 1);
    for (int64_t tp = 1; tp <= 2; tp++) {
        for (int64_t ep = 1; ep <= 2; ep++) {
            for (int sequence = 0; sequence < 2; sequence++) {
                struct dl_transformer_split split = gpt_split(tp, 1, ep, 1, 1);
                struct dl_transformer_micro_batch b;
                split.sequence_parallel = sequence == 1;
                assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &split, 2, &b, &err),
                                 DL_OK);
                const bool parts = tp > 1 && sequence == 1;
                assert_int_equal(silent(&b.reduce), tp == 1 || sequence == 1);
                assert_int_equal(silent(&b.gather), !parts);
                assert_int_equal(silent(&b.scatter), !parts);
                assert_int_equal(silent(&b.expert_gather), !parts);
                assert_int_equal(silent(&b.expert_scatter), !parts);
                assert_int_equal(silent(&b.route), ep == 1);
            }
        }
    }
    dl_arena_free(&g.f.arena);
}

/* Ranks of sequence parallelism share out the tokens of a rank of context parallelism: of 36 tokens
 * that is 18, of 40 it is 20. */
static void tokens_of_sequence_parallel_ranks(void **state) {
    (void)state;
    static const char *const lengths[] = {"36", "40"};
    for (int i = 0; i < 2; i++) {
        struct dl_override length = {.key = "seq", .value = lengths[i]};
        struct gpt g;
        gpt_make(&g, &length, 1);
        struct dl_plan plan = g.f.plan;
        plan.strategy = dl_strategy_find("3d"), plan.tp = 4, plan.sp = 2, plan.dp = 1;
        plan.batch_per_device_samples = 1, plan.sequence_parallel = true;
        const enum dl_code code =
            dl_transformer_check(&g.f.system, &g.workload, &g.f.framework, &plan, &err);
        assert_int_equal(code, i == 0 ? DL_ERR_USAGE : DL_OK);
        if (i == 0)
            assert_string_equal(err.message, "--sequence-parallel: 18 tokens of a rank do not "
                                             "divide by --tp 4");
        plan.sequence_parallel = false;
        assert_int_equal(
            dl_transformer_check(&g.f.system, &g.workload, &g.f.framework, &plan, &err), DL_OK);
        dl_arena_free(&g.f.arena);
    }
}

/* A layer is gathered where a column layer reads it; the first of its readers gathers it. The final
 * norm, which the logits read, as well as those of the layers. */
static void readers_of_gathered_layers(void **state) {
    (void)state;
    static const struct dl_override variants[] = {
        {.key = "layers", .value = "1"}, {.key = "layers", .value = "2"},
        {.key = "layers", .value = "3"}, {.key = "mlp", .value = "swiglu"},
        {.key = "pos", .value = "rope"}, {.key = "tied", .value = "0"}};
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        struct dl_override chosen = variants[v];
        struct gpt g;
        int after = 0;
        gpt_make(&g, &chosen, 1);
        for (int i = 0; i < g.tf.layer_count; i++) {
            const struct dl_transformer_layer *l = &g.tf.layers[i];
            const struct dl_transformer_layer *reader = NULL;
            for (int k = 0; k < g.tf.layer_count; k++) {
                const struct dl_transformer_layer *other = &g.tf.layers[k];
                if (other->role != DL_TRANSFORMER_COLUMN ||
                    g.workload.layers[other->index].inputs[0] != l->index)
                    continue;
                assert_int_equal(other->gathers, reader == NULL);
                if (reader == NULL) reader = other;
            }
            assert_int_equal(l->gathered, reader != NULL);
            if (reader != NULL && l->part == DL_TRANSFORMER_AFTER) after++;
        }
        assert_int_equal(after, 1);
        dl_arena_free(&g.f.arena);
    }
}

/* All-gather of every token's copy among the expert ranks, then a reduce-scatter of as much. */
static void tokens_gathered_for_experts(void **state) {
    (void)state;
    struct gpt g;
    struct dl_override experts = {.key = "experts", .value = "4"};
    struct dl_transformer_micro_batch cell;
    gpt_make(&g, &experts, 1);
    const struct dl_transformer_split two = gpt_split(1, 1, 2, 1, 2),
                                      four = gpt_split(1, 1, 4, 1, 1);
    const double copy = 3 * g.tf.tokens * g.tf.hidden * 2; /* bytes of 3 samples */
    g.f.framework.transformer.expert_exchange = DL_EXPERT_GATHER;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &two, 3, &cell, &err), DL_OK);
    check_close(cell.route_bytes, 2 * copy, 1e-12);
    assert_true(cell.route.time_s > 0 && cell.route_back.time_s > 0);
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &four, 3, &cell, &err), DL_OK);
    check_close(cell.route_bytes, 4 * copy, 1e-12);
    dl_arena_free(&g.f.arena);
}

/* A convolution of no groups is none; what it reads and writes stays. */
static void convolutions_of_no_groups(void **state) {
    (void)state;
    const double in[DL_DIMS] = {8, 8, 1}, one[DL_DIMS] = {1, 1, 1}, none[DL_DIMS] = {0, 0, 0};
    const struct dl_kernel k = dl_kernel_conv(DL_FORWARD, 2, 4, 6, 0, in, one, one, none, one),
                           two = dl_kernel_conv(DL_FORWARD, 2, 4, 6, 2, in, one, one, none, one);
    check_close(k.flop, 0, 0);
    check_close(two.flop, 2.0 * 2 * 6 * 64 * 2, 0);
}

/* Experts on several ranks make it `expert`, all else of a transformer `3d`. */
static void names_of_transformer_plans(void **state) {
    (void)state;
    struct gpt g;
    gpt_make(&g, NULL, 0);
    struct dl_plan plan = g.f.plan;
    plan.strategy = dl_strategy_find("3d"), plan.tp = 2, plan.dp = 4;
    assert_ptr_equal(dl_plan_canonical(&g.workload, &g.f.framework, &plan).strategy,
                     dl_strategy_find("3d"));
    plan.tp = 1, plan.ep = 2, plan.strategy = dl_strategy_find("expert");
    assert_ptr_equal(dl_plan_canonical(&g.workload, &g.f.framework, &plan).strategy,
                     dl_strategy_find("expert"));
    plan.ep = 1, plan.pp = 2, plan.strategy = dl_strategy_find("3d");
    assert_ptr_equal(dl_plan_canonical(&g.workload, &g.f.framework, &plan).strategy,
                     dl_strategy_find("3d"));
    dl_arena_free(&g.f.arena);
}

static void words_of_refusals(void **state) {
    (void)state;
    struct gpt g;
    struct dl_arena arena = {0};
    struct dl_pipeline_pass *passes;
    int count;
    const double each[] = {1, 1};
    const struct dl_pipeline_order order = {.schedule = DL_INTERLEAVED,
                                            .stages = 2,
                                            .parts = 2,
                                            .micro_batches = 3,
                                            .forward_s = each,
                                            .backward_s = each};
    assert_int_equal(dl_pipeline_passes(&order, &arena, &passes, &count, &err), DL_ERR_USAGE);
    assert_string_equal(err.message, "an interleaved schedule needs micro-batches (3) in groups of "
                                     "the pipeline's 2 stages");
    gpt_make(&g, NULL, 0); /* 24 layers of 16 heads */
    struct dl_plan plan = g.f.plan;
    plan.strategy = dl_strategy_find("3d"), plan.dp = 1, plan.tp = 3;
    assert_int_equal(dl_transformer_check(&g.f.system, &g.workload, &g.f.framework, &plan, &err),
                     DL_ERR_USAGE);
    assert_string_equal(err.message, "--tp 3 does not divide the 16 attention heads of gpt; "
                                     "nearest is 2");
    plan.tp = 32;
    assert_int_equal(dl_transformer_check(&g.f.system, &g.workload, &g.f.framework, &plan, &err),
                     DL_ERR_USAGE);
    assert_string_equal(err.message,
                        "--tp 32: gpt has only 16 attention heads (scaling limit); at most 16");
    plan = g.f.plan;
    plan.strategy = dl_strategy_find("pipeline"), plan.pp = 1000;
    assert_int_equal(plan.strategy->check(&g.f.system, &g.workload, &g.f.framework, &plan, &err),
                     DL_ERR_USAGE);
    assert_string_equal(err.message,
                        dl_arena_printf(&arena,
                                        "--pp 1000: gpt has %d layers for 1000 parts of the "
                                        "pipeline; nearest is --pp %d (scaling limit)",
                                        g.workload.layer_count, g.workload.layer_count));
    const struct dl_framework_behaviour *device = dl_framework_behaviour_find("kvstore-device");
    plan.nodes = 1;
    assert_null(device->refuse(&g.f.system, &plan));
    plan.nodes = 2;
    assert_string_equal(
        device->refuse(&g.f.system, &plan),
        "the 'device' store works inside one node: use --nodes 1 or mxnet-dist-sync");
    dl_arena_free(&g.f.arena), dl_arena_free(&arena);
}

/* "--schedule interleaved" of 3 micro-batches over 2 stages: 4 would do. */
static void words_of_batches(void **state) {
    (void)state;
    struct gpt g;
    gpt_make(&g, NULL, 0);
    struct dl_plan plan = g.f.plan;
    plan.strategy = dl_strategy_find("3d"), plan.pp = 2, plan.dp = 4;
    plan.schedule = DL_INTERLEAVED, plan.virtual_stages = 2;
    plan.batch_per_device_samples = 3, plan.global_batch_samples = 24;
    plan.micro_batch_samples = 2;
    assert_int_equal(dl_transformer_check(&g.f.system, &g.workload, &g.f.framework, &plan, &err),
                     DL_ERR_USAGE);
    assert_string_equal(err.message,
                        "--schedule interleaved: 3 micro-batches of a data rank are no multiple of "
                        "2 stages; nearest --global-batch is 32");
    dl_arena_free(&g.f.arena);
}

/* 3 of 8 workers are 38 %. */
static void words_of_warnings(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_prediction p;
    fake_make(&f);
    f.framework.behaviour = dl_framework_behaviour_find("parameter-server");
    f.plan.nodes = 8, f.plan.dp = 32, f.plan.backup_workers = 3;
    f.plan.tp = f.plan.pp = f.plan.sp = f.plan.ep = 1;
    f.plan.global_batch_samples = 32 * f.plan.batch_per_device_samples;
    assert_int_equal(fake_predict(&f, &p), DL_OK);
    bool said = false;
    for (int i = 0; i < p.warning_count; i++)
        said = said || strcmp(p.warnings[i],
                              "backup workers: gradients of 3 of 8 workers (38 %) are dropped in "
                              "each step; samples/s counts only the others") == 0;
    assert_true(said);
    dl_arena_free(&f.arena);
}

/* A release sets members of its framework, as --set does, and no others. */
static void settings_of_releases(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    char path[4096];
    struct dl_map_entry good[] = {{.key = "dispatch_s", .text = "0.125"},
                                  {.key = "fragmentation_frac", .text = "0.25"}},
                        bad[] = {{.key = "dispatch_s", .text = "0.125"},
                                 {.key = "dispatched", .text = "1"}};
    snprintf(path, sizeof path, "%s/data/frameworks/pytorch-ddp.json", check_root());
    for (int i = 0; i < 2; i++) {
        struct dl_json *doc;
        struct dl_framework framework;
        const struct dl_framework_release release = {
            .name = "9.9", .set = i == 0 ? good : bad, .set_count = 2};
        assert_int_equal(dl_json_read(path, &arena, &doc, &err), DL_OK);
        const enum dl_code code = dl_framework_release_set(&release, doc, &arena, &err);
        if (i == 1) {
            assert_int_not_equal(code, DL_OK);
            check_contains(err.message,
                           "release 9.9 sets 'dispatched', which is not a member of a framework");
            break;
        }
        assert_int_equal(code, DL_OK);
        assert_int_equal(dl_json_load(doc, &dl_framework_schema, &arena, &framework, &err), DL_OK);
        check_close(framework.host.dispatch_s, 0.125, 0);
        check_close(framework.memory.fragmentation_frac, 0.25, 0);
        assert_string_equal(framework.release, "9.9");
    }
    dl_arena_free(&arena);
}

static void copies_without_a_bandwidth(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_collective_time time;
    fake_make(&f);
    f.system.has_intra = f.system.has_host = false;
    f.system.host.copy_bandwidth_bytes_per_s = NAN;
    f.system.intra.bandwidth_bytes_per_s = NAN;
    const struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                            .library = DL_LIB_COPY,
                                            .bytes = 1e6,
                                            .nodes = 1,
                                            .ranks_per_node = 4,
                                            .flows_per_adapter = 1};
    assert_int_equal(dl_copy_time(&f.system, &r, &time, &err), DL_ERR_INPUT);
    assert_string_equal(err.message,
                        "system fake has no bandwidth between the devices of a node: set "
                        "links.intra or host.copy_bandwidth_bytes_per_s");
    dl_arena_free(&f.arena);
}

static void crops_that_do_not_fit(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    struct dl_workload w;
    assert_int_not_equal(
        load_text("{'format':'dlmodel-workload','version':1,'name':'t','summary':'t','family':'cnn'"
                  ",'source':'test','input':{'channels':3,'size':[4,6]},'epoch_samples':1,"
                  "'layers':[{'kind':'conv','name':'a','out':4,'kernel':3},"
                  "{'kind':'conv','name':'b','from':['input'],'out':6,'kernel':1},"
                  "{'kind':'crop','name':'cut','from':['a','b']}]}",
                  NULL, 0, &arena, &w, &err),
        DL_OK);
    check_contains(err.message, "cannot crop 4x2x4 to the size of 6x4x6");
    dl_arena_free(&arena);
}

/* Memory beyond the weights of a plan of one micro-batch, and of several. */
static void largest_batches(void **state) {
    (void)state;
    struct gpt g;
    struct dl_prediction p;
    gpt_make(&g, NULL, 0);
    struct dl_rate rates[] = {g.f.rate, g.f.rate};
    rates[1].precision = DL_MIXED;
    g.f.device.rates = rates, g.f.device.rate_count = 2, g.f.device.memory_bytes = 200e9;
    struct dl_plan plan = g.f.plan;
    plan.strategy = dl_strategy_find("3d"), plan.tp = 2, plan.batch_per_device_samples = 4;
    for (int micro = 1; micro <= 4; micro *= 2) {
        struct dl_plan used = plan;
        used.micro_batch_samples = 2 * 4.0 / micro; /* two devices hold 8 samples */
        if (dl_plan_complete(&g.f.system, &g.workload, &g.f.framework, &used, &err) != DL_OK ||
            dl_predict(&g.f.system, &g.workload, &g.f.framework, &used, NULL, &g.f.arena, &p,
                       &err) != DL_OK)
            fail_msg("%s", err.message);
        assert_true(p.fits);
        if (micro == 1)
            assert_true(p.max_batch_samples > 4);
        else
            check_close(p.max_batch_samples, used.batch_per_device_samples, 0);
    }
    dl_arena_free(&g.f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_recalled_for_equal_plans_alone),
        cmocka_unit_test(graphs_are_kept_for_equal_requests_alone),
        cmocka_unit_test(rates_of_links_by_generation),
        cmocka_unit_test(releases_of_nccl),
        cmocka_unit_test(kinds_of_links),
        cmocka_unit_test(types_and_sizes_of_kernel_tables),
        cmocka_unit_test(formulas_of_copies),
        cmocka_unit_test(input_over_an_unknown_network),
        cmocka_unit_test(memos_change_nothing),
        cmocka_unit_test(units_of_plain_networks),
        cmocka_unit_test(groups_of_one_rank),
        cmocka_unit_test(readers_of_gathered_layers),
        cmocka_unit_test(tokens_of_sequence_parallel_ranks),
        cmocka_unit_test(stacks_are_recalled_for_equal_splits_alone),
        cmocka_unit_test(tokens_gathered_for_experts),
        cmocka_unit_test(convolutions_of_no_groups),
        cmocka_unit_test(names_of_transformer_plans),
        cmocka_unit_test(words_of_refusals),
        cmocka_unit_test(words_of_batches),
        cmocka_unit_test(words_of_warnings),
        cmocka_unit_test(settings_of_releases),
        cmocka_unit_test(copies_without_a_bandwidth),
        cmocka_unit_test(crops_that_do_not_fit),
        cmocka_unit_test(largest_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Memory of a device and the largest batch against an account written here: random layers, plans,
 * frameworks and devices, with names at the edge of what counts as a block; then the first change
 * that makes a plan fit. F-MEM-ACTIVATION, F-MEM-BUFFERS, F-MEM-MAX-BATCH. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/workspace.h"
#include "model/engine/memory.h"
#include "model/engine/memory_advice.h"
#include "model/workload/layer.h"
#include "tests/check.h"
#include "tests/fake.h"

static uint64_t seed = 25;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double of(const double *list, int count) { return list[upto(count)]; }
#define ONE_OF(...)                                                                                \
    of((const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

enum { LAYERS = 6 };
static struct dl_layer layers[LAYERS];
static bool repeated[LAYERS];

static void random_case(struct dl_fake *f) {
    static const struct {
        const char *name;
        bool block;
    } names[] = {{"h.7.mlp", true}, {"h.19.attn.qkv", true}, {"h.7", false},
                 {"h7.mlp", false}, {"h.7x.mlp", false},     {"a.b.0.c", true},
                 {"h..x", false},   {"emb", false},          {"h..7.x", true}};
    memset(layers, 0, sizeof layers);
    for (int i = 0; i < LAYERS; i++) {
        const int name = upto(9);
        struct dl_layer *l = &layers[i];
        l->kind = upto(3) == 0 ? &dl_layer_attention : &dl_layer_dense;
        l->name = names[name].name, repeated[i] = names[name].block;
        l->saved_elements = ONE_OF(0, 1e3, 5e3), l->saved_bytes = ONE_OF(0, 64);
        l->own_elements = l->saved_elements > 0 ? 500 : 0, l->recomputable = half();
        l->heads = l->kv_heads = 2, l->tokens = 16, l->out.size[2] = 16, l->tied_to = -1;
        l->dropout = ONE_OF(0, 0.1), l->flash = half();
    }
    f->workload.layers = layers, f->workload.layer_count = LAYERS;
    f->workload.parameters = ONE_OF(0, 1e6, 25e6), f->workload.buffer_elements = ONE_OF(0, 1e5);
    f->workload.input_bytes_per_sample = ONE_OF(NAN, 4e3);
    f->workload.transformer_layers = 2, f->workload.hidden = 64, f->workload.sequence = 16;
    f->plan.nodes = 1 + upto(2), f->plan.devices_per_node = 1 + upto(2);
    f->plan.precision = (enum dl_precision)upto(DL_PRECISIONS);
    f->plan.optimizer = (enum dl_optimizer)upto(DL_OPTIMIZERS);
    f->plan.master_weights = half() ? DL_MASTERS_NONE : DL_MASTERS_FP32;
    f->plan.recompute = (enum dl_recompute)upto(3);
    f->plan.attention = (enum dl_attention_kernel)upto(4);
    struct dl_sync_policy *sync = &f->framework.sync;
    sync->gradient_bytes = ONE_OF(4, 2), sync->mixed_gradient_bytes = ONE_OF(4, 2);
    sync->fusion.fusion_bytes = upto(3) == 0 ? 64e6 : NAN;
    sync->bucketed.bucket_bytes = upto(3) == 0 ? 25e6 : NAN;
    sync->concatenated.pack_bytes = ONE_OF(NAN, 0, 1e6, 1e9);
    f->framework.memory.fragmentation_frac = ONE_OF(0, 0.25);
    f->framework.memory.context_bytes = ONE_OF(0, 1e8);
    f->framework.memory.allocator = -1, f->framework.kernels.attention = upto(5) - 1;
    f->device.workspace_bytes = ONE_OF(NAN, 1e7), f->device.context_bytes = ONE_OF(NAN, 3e8);
    f->device.kind = upto(4) == 0 ? DL_DEVICE_CPU : DL_DEVICE_GPU;
}

static double kept_bytes(const struct dl_layer *l, enum dl_attention_kernel attention, double width,
                         double *own_bytes) {
    double elements = l->saved_elements, own = l->own_elements, bytes = l->saved_bytes;
    if (l->kind == &dl_layer_attention && attention != DL_ATTENTION_OPEN) {
        const double scores = 2 * 16 * 16;
        const bool flash = attention == DL_ATTENTION_FLASH, drops = l->dropout > 0;
        own = flash ? 0 : drops ? 2 * scores : scores;
        bytes = flash ? 4 * 2 * 16 : drops ? scores : 0;
        elements += own - l->own_elements;
    }
    *own_bytes = own * width + bytes;
    return elements * width + bytes;
}

/* Kept whole: one sum of one random case. */
static void sums(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    for (int n = 0; n < 4000; n++) {
        random_case(&f);
        const struct dl_plan *p = &f.plan;
        const enum dl_precision type = p->precision;
        const bool wide = type == DL_FP32 || type == DL_TF32;
        const double batch = ONE_OF(0, 1, 7), width = wide ? 4 : 2;
        const enum dl_attention_kernel attention =
            p->attention != DL_ATTENTION_OPEN ? p->attention
            : f.framework.kernels.attention > 0
                ? (enum dl_attention_kernel)f.framework.kernels.attention
                : DL_ATTENTION_OPEN;
        double each = 0, inside = 0, before = 0, after = 0;
        for (int i = 0; i < LAYERS; i++) {
            double own;
            const double kept = kept_bytes(&layers[i], attention, width, &own);
            each += kept;
            if (p->recompute == DL_RECOMPUTE_SELECTIVE && layers[i].recomputable) each -= own;
            if (repeated[i])
                inside += kept;
            else if (inside > 0)
                after += kept;
            else
                before += kept;
        }
        if (p->recompute == DL_RECOMPUTE_FULL)
            each = 2 * 64 * 16 * width + before + (after > inside / 2 ? after : inside / 2);
        const double count = f.workload.parameters;
        const bool masters =
            type == DL_MIXED || (type >= DL_BF16 && p->master_weights == DL_MASTERS_FP32);
        const double weights = count * (wide      ? 4
                                        : masters ? 6
                                                  : 2) +
                               4 * f.workload.buffer_elements,
                     gradients = count * width;
        static const double states[] = {0, 4, 8, 8};
        double buffers = 0;
        const double gradient = type == DL_MIXED ? f.framework.sync.mixed_gradient_bytes
                                                 : f.framework.sync.gradient_bytes,
                     pack = f.framework.sync.concatenated.pack_bytes;
        if (p->nodes * p->devices_per_node > 1) {
            if (!isnan(f.framework.sync.fusion.fusion_bytes))
                buffers = 64e6;
            else if (!isnan(f.framework.sync.bucketed.bucket_bytes))
                buffers = count * gradient;
            else if (pack == 0 || pack > count * gradient)
                buffers = count * gradient;
            else if (pack > 0)
                buffers = pack;
        }
        const bool cpu = f.device.kind == DL_DEVICE_CPU;
        const double input = isnan(f.workload.input_bytes_per_sample) ? 0 : 4e3;
        struct dl_memory m;
        const char *unknown;
        dl_memory_compute(&f.system, &f.workload, &f.framework, p, batch, &m, &unknown);
        check_close(m.weights_bytes, weights, 1e-12);
        check_close(m.gradients_bytes, gradients, 1e-12);
        check_close(m.optimizer_bytes, count * states[p->optimizer], 1e-12);
        check_close(m.activations_bytes, batch * (each + input), 1e-12);
        check_close(m.buffers_bytes, buffers, 1e-12);
        const bool no_workspace = isnan(f.device.workspace_bytes) && cpu,
                   no_context = isnan(f.device.context_bytes);
        check_close(m.workspace_bytes, isnan(f.device.workspace_bytes) ? 0 : 1e7, 0);
        check_close(m.context_bytes, (no_context ? 0 : 3e8) + f.framework.memory.context_bytes, 0);
        check_close(m.total_bytes,
                    (weights + gradients + count * states[p->optimizer] + batch * (each + input) +
                     buffers + m.workspace_bytes + m.context_bytes) /
                        (1 - f.framework.memory.fragmentation_frac),
                    1e-12);
        check_close(m.capacity_bytes, f.device.memory_bytes, 0);
        if (!no_workspace && !no_context)
            assert_null(unknown);
        else
            assert_string_equal(unknown, !no_context     ? "workspace"
                                         : !no_workspace ? "runtime context"
                                                         : "runtime context and workspace");
    }
    dl_arena_free(&f.arena);
}

static bool fits(const struct dl_fake *f, double batch) {
    struct dl_memory m;
    dl_memory_compute(&f->system, &f->workload, &f->framework, &f->plan, batch, &m, NULL);
    return m.total_bytes <= f->device.memory_bytes;
}

/* The largest batch fits and one more does not; 0 where one sample does not, NAN where samples take
 * nothing. */
static void largest_batches(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    int none = 0, some = 0, free_ones = 0;
    for (int n = 0; n < 2000; n++) {
        random_case(&f);
        f.framework.memory.allocator = upto(2) == 0 ? -1 : 0;
        if (upto(10) == 0) { /* samples that take nothing */
            for (int i = 0; i < LAYERS; i++)
                layers[i].kind = &dl_layer_dense, layers[i].saved_elements = 0,
                layers[i].saved_bytes = layers[i].own_elements = 0;
            f.workload.input_bytes_per_sample = NAN, f.device.workspace_bytes = 1e7;
            f.plan.recompute = DL_RECOMPUTE_NONE;
        }
        f.device.memory_bytes = ONE_OF(1e8, 4e8, 1e9, 5e9);
        struct dl_memory m0, m1;
        dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, 0, &m0, NULL);
        dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, 1, &m1, NULL);
        if (upto(20) == 0) f.device.memory_bytes = (m0.total_bytes + m1.total_bytes) / 2;
        const double batch = dl_memory_max_batch(&f.system, &f.workload, &f.framework, &f.plan);
        if (m0.total_bytes > f.device.memory_bytes) {
            check_close(batch, 0, 0);
        } else if (m0.total_bytes == m1.total_bytes) {
            assert_true(isnan(batch));
            free_ones++;
        } else if (!fits(&f, 1)) {
            check_close(batch, 0, 0);
            none++;
        } else {
            assert_true(batch >= 1 && batch == floor(batch));
            assert_true(fits(&f, batch) && !fits(&f, batch + 1));
            some++;
        }
    }
    f.device.memory_bytes = NAN;
    assert_true(isnan(dl_memory_max_batch(&f.system, &f.workload, &f.framework, &f.plan)));
    assert_true(some > 200 && free_ones > 2 && none > 10);
    dl_arena_free(&f.arena);
}

static double total(struct dl_fake *f, const struct dl_plan *plan, double batch) {
    struct dl_memory m;
    dl_memory_compute(&f->system, &f->workload, &f->framework, plan, batch, &m, NULL);
    return m.total_bytes;
}

/* The changes in their order, each by the memory of the plan that has it.
 * Kept whole: one list of one random case. */
static void advice(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    int made = 0, best_of = 0, nothing = 0;
    for (int n = 0; n < 4000; n++) {
        random_case(&f);
        struct dl_rate rates[] = {{.precision = DL_FP32}, {.precision = DL_MIXED}};
        f.device.rates = rates, f.device.rate_count = 1 + upto(2);
        if (f.device.rate_count == 2 && half()) /* in any order */
            rates[0].precision = DL_MIXED, rates[1].precision = DL_FP32;
        f.workload.transformer_layers = ONE_OF(NAN, 2);
        f.workload.input_bytes_per_sample = ONE_OF(4e3, 4e7);
        if (half()) f.plan.precision = DL_FP32;
        f.plan.dp = 1 + upto(3);
        if (isnan(f.workload.transformer_layers) && f.plan.recompute == DL_RECOMPUTE_FULL)
            f.plan.recompute = DL_RECOMPUTE_NONE;
        const double batch = ONE_OF(1, 1.5, 2, 6, 7, 16, 2.5);
        const double all = total(&f, &f.plan, batch);
        f.device.memory_bytes = all * ONE_OF(0.2, 0.5, 0.8, 0.95, 0.99, 1);
        const char *said =
            dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, batch, &f.arena);
        if (all <= f.device.memory_bytes) {
            assert_null(said);
            continue;
        }
        struct {
            char change[40];
            double bytes;
        } changes[6];
        int count = 0;
        struct dl_plan p = f.plan;
        if (f.plan.recompute < DL_RECOMPUTE_SELECTIVE) {
            p.recompute = DL_RECOMPUTE_SELECTIVE;
            strcpy(changes[count].change, "--recompute selective");
            changes[count++].bytes = total(&f, &p, batch);
        }
        if (batch >= 2 && batch == floor(batch)) {
            double micro = 1;
            for (int parts = 2; parts <= (int)batch; parts++) {
                if ((int)batch % parts != 0) continue;
                micro = batch / parts;
                if (total(&f, &f.plan, micro) <= f.device.memory_bytes) break;
            }
            snprintf(changes[count].change, 40, "--micro-batch %.0f", micro);
            changes[count++].bytes = total(&f, &f.plan, micro);
        }
        if (f.plan.recompute < DL_RECOMPUTE_FULL && !isnan(f.workload.transformer_layers)) {
            p.recompute = DL_RECOMPUTE_FULL;
            strcpy(changes[count].change, "--recompute full");
            changes[count++].bytes = total(&f, &p, batch);
        }
        p = f.plan;
        if (f.plan.dp > 1) {
            struct dl_memory m;
            dl_memory_compute(&f.system, &f.workload, &f.framework, &p, batch, &m, NULL);
            strcpy(changes[count].change, "--strategy zero3");
            changes[count++].bytes =
                all - (m.weights_bytes + m.gradients_bytes + m.optimizer_bytes) *
                          (double)(f.plan.dp - 1) / (double)f.plan.dp;
        }
        if (f.device.rate_count == 2 && f.plan.precision == DL_FP32) {
            p.precision = DL_MIXED;
            strcpy(changes[count].change, "--precision mixed");
            changes[count++].bytes = total(&f, &p, batch);
        }
        const double fewer = dl_memory_max_batch(&f.system, &f.workload, &f.framework, &f.plan);
        if (fewer >= 1 && fewer < batch) {
            snprintf(changes[count].change, 40, "--batch-per-device %.0f", fewer);
            changes[count++].bytes = total(&f, &f.plan, fewer);
        }
        int first = -1, most = -1;
        for (int i = count - 1; i >= 0; i--) {
            if (!(changes[i].bytes < all)) continue;
            if (changes[i].bytes <= f.device.memory_bytes) first = i;
            if (most < 0 || changes[i].bytes <= changes[most].bytes) most = i;
        }
        char start[80], text[200] = "";
        const double gib = 1073741824;
        snprintf(start, sizeof start,
                 "does not fit, %.3g GiB too much: ", (all - f.device.memory_bytes) / gib);
        if (first >= 0)
            snprintf(text, sizeof text, "%s%s saves %.3g GiB and makes it fit", start,
                     changes[first].change, (all - changes[first].bytes) / gib),
                made++;
        else if (most >= 0)
            snprintf(text, sizeof text,
                     "%sno single change is enough; %s saves most, %.3g GiB (dlmodel search "
                     "combines changes)",
                     start, changes[most].change, (all - changes[most].bytes) / gib),
                best_of++;
        else
            snprintf(text, sizeof text, "%suse a device with more memory", start), nothing++;
        assert_string_equal(said, text);
    }
    assert_true(made > 100 && best_of > 100 && nothing > 10);
    dl_arena_free(&f.arena);
}

/* From 1000 GiB on, no exponent: 10^12 parameters of 16 bytes each, with so much too little. */
static void sizes_in_words(void **state) {
    (void)state;
    static const struct {
        double gib;
        const char *text;
    } cases[] = {{0.5, "0.5 GiB too much"},   {1.25, "1.25 GiB too much"},
                 {999, "999 GiB too much"},   {1000, "1000 GiB too much"},
                 {1001, "1001 GiB too much"}, {4096, "4096 GiB too much"}};
    struct dl_fake f;
    fake_make(&f);
    f.workload.parameters = 1e12;
    const double all = total(&f, &f.plan, 1);
    for (int i = 0; i < 6; i++) {
        f.device.memory_bytes = all - cases[i].gib * 1073741824;
        check_contains(dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, 1, &f.arena),
                       cases[i].text);
    }
    dl_arena_free(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums), cmocka_unit_test(largest_batches),
                                       cmocka_unit_test(advice), cmocka_unit_test(sizes_in_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Times of layers, of the optimizer and of sums of gradients against their formulas, each kernel's
 * time taken as given and added up here: random chains of layers, facts of frameworks, devices and
 * plans. Then the facts themselves and the factors on kernels. F-KERNEL-FACTS, F-UPDATE-BYTES,
 * F-ACCUMULATE, F-RECOMPUTE, F-KERNEL-LOAD, F-KERNEL-GROUPED, F-POWER-CAP. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/cost.h"
#include "model/framework/facts.h"
#include "model/framework/host_dispatch.h"
#include "model/framework/kernel_scale.h"
#include "model/framework/layer_times.h"
#include "model/machine/power_cap.h"
#include "model/workload/layer.h"
#include "tests/check.h"
#include "tests/fake.h"

static uint64_t seed = 22;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double of(const double *list, int count) { return list[upto(count)]; }
#define ONE_OF(...)                                                                                \
    of((const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

/* What a pass adds up to, kernel by kernel. */
struct account {
    double time_s, by_limit_s[3], launches, error_s, error_square_s2, flop, bytes, longest_s;
    bool extrapolated;
    const char *formula;
};

static void charge(struct account *a, const struct dl_device *device, enum dl_precision precision,
                   const struct dl_kernel *kernel, double factor) {
    struct dl_kernel_time t;
    const enum dl_precision type = kernel->has_type ? kernel->type : precision;
    dl_kernel_time(device, type, kernel, &t);
    const double time_s = factor * t.time_s;
    a->time_s += time_s, a->by_limit_s[t.limit] += time_s;
    a->launches += kernel->launches, a->flop += kernel->flop;
    a->error_s += time_s * t.sigma_log, a->error_square_s2 += pow(time_s * t.sigma_log, 2);
    a->bytes += kernel->extra_bytes +
                (type <= DL_TF32 ? 4 : 2) * (kernel->read_elements + kernel->write_elements);
    if (t.extrapolated) a->extrapolated = true;
    if (a->formula == NULL || time_s > a->longest_s) a->formula = t.formula, a->longest_s = time_s;
}

static void same(const struct dl_pass_cost *cost, const struct account *a, double scale) {
    check_close(cost->time_s, scale * a->time_s, 1e-12);
    for (int i = 0; i < 3; i++) check_close(cost->by_limit_s[i], scale * a->by_limit_s[i], 1e-12);
    check_close(cost->launches, a->launches, 1e-12);
    check_close(cost->error_s, scale * a->error_s, 1e-12);
    check_close(cost->error_square_s2, scale * scale * a->error_square_s2, 1e-12);
    check_close(cost->flop, a->flop, 1e-12);
    check_close(cost->bytes, a->bytes, 1e-12);
    assert_int_equal(cost->extrapolated, a->extrapolated);
    if (a->formula == NULL)
        assert_null(cost->formula);
    else
        assert_string_equal(cost->formula, a->formula);
}

enum { LAYERS = 7 };

static struct dl_rate rates[2];
static struct dl_layer layers[LAYERS];
static int inputs[LAYERS][3];

/* A chain in which some layers also read an earlier one. */
static void random_layers(struct dl_fake *f) {
    const struct dl_layer_kind *kinds[] = {&dl_layer_relu,  &dl_layer_add,  &dl_layer_batchnorm,
                                           &dl_layer_dense, &dl_layer_relu, &dl_layer_attention};
    memset(layers, 0, sizeof layers);
    for (int i = 0; i < LAYERS; i++) {
        struct dl_layer *l = &layers[i];
        const double channels = ONE_OF(64, 64, 1024);
        const struct dl_shape shape = {.dims = 1, .channels = channels, .size = {1, 1, 32}};
        l->name = "layer";
        l->kind = kinds[upto(6)];
        l->in = l->out = shape;
        l->input_count = l->kind == &dl_layer_add ? 2 + upto(2) : 1;
        for (int k = 0; k < 3; k++) inputs[i][k] = i - 1 < 0 || upto(4) == 0 ? -1 : i - 1;
        inputs[i][l->input_count - 1] = i - 1;
        l->inputs = inputs[i];
        l->in_elements = l->input_count * dl_shape_elements(&shape);
        l->groups = 1, l->heads = l->kv_heads = 8, l->tokens = 32, l->hidden = channels;
        l->flash = half(), l->recomputable = half(), l->first = i == 0;
        l->consumers = 1 + upto(2), l->tied_to = -1;
        l->detached = l->kind == &dl_layer_dense && upto(4) == 0;
        l->parameter_count = l->kind == &dl_layer_batchnorm ? 2 : 0;
    }
    if (half()) dl_layer_find_twins(layers, LAYERS);
    f->workload.layers = layers;
    f->workload.layer_count = LAYERS;
    f->workload.parameters = ONE_OF(0, 1e3, 25e6);
    f->workload.parameter_tensors = (int)ONE_OF(0, 20, 160);
}

static void random_case(struct dl_fake *f) {
    rates[0] = (struct dl_rate){.precision = DL_FP32, .unit = 0, .peak_flop_per_s = 1e13};
    rates[1] = (struct dl_rate){.precision = DL_FP16, .unit = 1, .peak_flop_per_s = 1e14};
    f->device.rates = rates, f->device.rate_count = half() ? 1 : 2;
    f->device.kind = upto(5) == 0 ? DL_DEVICE_CPU : DL_DEVICE_GPU;
    f->device.kernel_latency_s = ONE_OF(NAN, 5e-6, 1e-3);
    f->device.norm_scale = ONE_OF(NAN, 2), f->device.power_limit_w = NAN;
    f->framework.behaviour = dl_framework_behaviour_find(upto(3) == 0 ? "ideal" : "bucketed");
    struct dl_framework_kernels *k = &f->framework.kernels;
    memset(k, 0, sizeof *k);
    k->fusion = upto(3), k->mixed_fusion = upto(4) - 1, k->mixed_layout = k->mixed_batchnorm = -1;
    k->optimizer_kernels = upto(11) - 1;
    k->weight_decay = half() ? DL_DECAY_LOSS : DL_DECAY_OPTIMIZER;
    k->mixed_policy = upto(DL_MIXED_POLICIES + 1) - 1;
    k->head_copies = ONE_OF(NAN, 4), k->score_kernels = NAN, k->norm_small_kernels = NAN;
    k->update_launches_per_tensor = ONE_OF(1, 3);
    f->plan.precision = half() ? DL_FP32 : DL_MIXED;
    f->plan.optimizer = (enum dl_optimizer)upto(DL_OPTIMIZERS);
    f->plan.recompute = (enum dl_recompute)upto(3);
    f->plan.attention = upto(3) > 0 ? DL_ATTENTION_OPEN : DL_ATTENTION_COMPOSED;
    f->plan.compute_scale = ONE_OF(0, 0, 1.5);
}

static struct account passes(const struct dl_fake *f, const struct dl_layer *layer,
                             const struct dl_kernel_facts *facts, enum dl_pass from,
                             enum dl_pass to, double batch) {
    struct account a = {.formula = NULL};
    const struct dl_kernel_scales scales = dl_kernel_scales(&f->framework, &f->device, layer);
    for (int p = from; p <= (int)to; p++) {
        struct dl_kernel kernels[DL_LAYER_KERNELS];
        const int count = layer->kind->kernels(layer, facts, (enum dl_pass)p, batch, kernels);
        for (int i = 0; i < count; i++)
            charge(&a, &f->device, f->plan.precision, &kernels[i],
                   dl_kernel_scale_of(&scales, &f->device, f->plan.precision, &kernels[i]));
    }
    return a;
}

static void both_passes(const struct dl_fake *f, int index, const struct dl_kernel_facts *facts,
                        bool fused, double batch, struct account *ahead, struct account *back) {
    const struct dl_layer *layer = &layers[index];
    const double n = batch * 32 * layer->out.channels;
    memset(ahead, 0, sizeof *ahead), memset(back, 0, sizeof *back);
    if (!fused) *ahead = passes(f, layer, facts, DL_FORWARD, DL_FORWARD, batch);
    if (fused && facts->fusion == DL_FUSION_BOTH) {
        if (layer->kind == &dl_layer_add) {
            const struct dl_kernel write = dl_kernel_stream(DL_BACKWARD_DATA, 0, 0, n);
            charge(back, &f->device, f->plan.precision, &write, 1);
            back->launches = 0;
        }
    } else if (!layer->detached) {
        *back = passes(f, layer, facts, DL_BACKWARD_DATA, DL_BACKWARD_WEIGHTS, batch);
        if (f->plan.recompute == DL_RECOMPUTE_FULL ||
            (f->plan.recompute == DL_RECOMPUTE_SELECTIVE && layer->recomputable)) {
            back->time_s += ahead->time_s, back->launches += ahead->launches;
            for (int i = 0; i < 3; i++) back->by_limit_s[i] += ahead->by_limit_s[i];
            back->error_s += ahead->error_s, back->error_square_s2 += ahead->error_square_s2;
            back->flop += ahead->flop, back->bytes += ahead->bytes;
            if (back->formula == NULL) back->formula = ahead->formula;
        }
    }
    if (fused && layer->kind == &dl_layer_add) {
        const struct dl_kernel read =
            dl_kernel_stream(DL_FORWARD, 0, n * (layer->input_count - 1), 0);
        charge(ahead, &f->device, f->plan.precision, &read, 1);
        ahead->launches = 0;
    }
}

/* One stream over all parameters in at least as many latencies as kernels. */
static struct account over_parameters(const struct dl_fake *f, double bytes, double kernels) {
    struct account a = {.formula = NULL};
    const double count = f->workload.parameters, latency_s = f->device.kernel_latency_s;
    if (!(count * bytes > 0)) return a;
    const struct dl_kernel stream =
        dl_kernel_stream(DL_UPDATE, 2 * count, count * bytes / 8, count * bytes / 8);
    charge(&a, &f->device, DL_FP32, &stream, 1);
    a.launches = kernels * f->workload.parameter_tensors;
    if (!isnan(latency_s) && a.launches > 1 && a.launches * latency_s > a.time_s) {
        a.by_limit_s[DL_LIMIT_LATENCY] += a.launches * latency_s - a.time_s;
        a.time_s = a.launches * latency_s;
    }
    return a;
}

static void check_update(const struct dl_fake *f, const struct dl_cost *cost, double scale) {
    const struct dl_framework_kernels *k = &f->framework.kernels;
    const bool gpu = f->device.kind == DL_DEVICE_GPU, known = gpu && k->optimizer_kernels > 0,
               mixed = f->plan.precision == DL_MIXED;
    const enum dl_mixed_policy policy =
        k->mixed_policy > 0 ? (enum dl_mixed_policy)k->mixed_policy : DL_MIXED_HALF;
    static const double words[] = {3, 5, 7, 11};
    double bytes = 4 * words[f->plan.optimizer] + (mixed ? 2 : 0),
           kernels = k->update_launches_per_tensor;
    check_close(dl_update_bytes_per_parameter(f->plan.optimizer, f->plan.precision), bytes, 0);
    if (known) {
        const struct dl_optimizer_cost table =
            dl_optimizer_cost((enum dl_optimizer_kernels)k->optimizer_kernels, f->plan.optimizer);
        int norms = 0;
        for (int i = 0; i < LAYERS; i++) norms += layers[i].kind == &dl_layer_batchnorm;
        bytes = table.bytes + (mixed ? policy == DL_MIXED_HALF ? 12 : 20 : 0);
        kernels = table.kernels;
        if (k->weight_decay == DL_DECAY_LOSS && f->workload.parameter_tensors > 0) {
            const double tensors = f->workload.parameter_tensors;
            bytes += 24, kernels += 3 * (tensors - 2 * norms) / tensors;
        }
    }
    const struct account update = over_parameters(f, bytes, kernels);
    same(&cost->update, &update, scale);
    const struct dl_optimizer_cost sum = dl_accumulation_cost(
        (enum dl_optimizer_kernels)(known ? k->optimizer_kernels : 0), f->plan.precision, policy);
    const struct account accumulation =
        gpu ? over_parameters(f, sum.bytes, sum.kernels) : (struct account){.formula = NULL};
    same(&cost->accumulation, &accumulation, scale);
}

/* Kept whole: one network of random layers and what each adds up to. */
static void costs(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    int cases = 0, fusions = 0, chosen = 0;
    for (int n = 0; n < 3000; n++) {
        random_layers(&f);
        random_case(&f);
        const double batch = ONE_OF(1, 32), scale = f.plan.compute_scale > 0 ? 1.5 : 1;
        struct dl_cost cost;
        struct dl_err err = {0};
        assert_int_equal(dl_cost_compute(&f.device, &f.workload, &f.framework, &f.plan, batch,
                                         &f.arena, &cost, &err),
                         DL_OK);
        struct dl_kernel_facts facts =
            dl_framework_facts(&f.framework, f.plan.precision, f.plan.attention);
        dl_facts_on_device(&facts, &f.device);
        const bool mixed = f.plan.precision == DL_MIXED, fuses = facts.fusion != DL_FUSION_NONE;
        assert_int_equal(facts.fusion, mixed && f.framework.kernels.mixed_fusion >= 0
                                           ? f.framework.kernels.mixed_fusion
                                           : f.framework.kernels.fusion);
        assert_int_equal(dl_cost_fuses(&f.framework, f.plan.precision),
                         facts.fusion == DL_FUSION_BOTH);
        for (int i = 0; i < LAYERS; i++) {
            const bool can = layers[i].kind == &dl_layer_relu || layers[i].kind == &dl_layer_add;
            bool after = false;
            for (int k = 0; k < layers[i].input_count; k++)
                after = after || (inputs[i][k] >= 0 && (layers[i - 1].kind == &dl_layer_batchnorm ||
                                                        layers[i - 1].kind == &dl_layer_add));
            assert_int_equal(dl_cost_fused(&f.workload, i), can && after);
            struct account ahead, back;
            both_passes(&f, i, &facts, fuses && can && after, batch, &ahead, &back);
            fusions += fuses && can && after;
            if (f.framework.behaviour->is_bound && f.plan.attention == DL_ATTENTION_OPEN &&
                layers[i].kind == &dl_layer_attention) {
                for (int way = 0; way < 2; way++) {
                    struct dl_kernel_facts other = facts;
                    other.attention = way == 0 ? DL_ATTENTION_COMPOSED : DL_ATTENTION_FLASH;
                    struct account a, b;
                    both_passes(&f, i, &other, false, batch, &a, &b);
                    if (a.time_s + b.time_s < ahead.time_s + back.time_s)
                        ahead = a, back = b, chosen++;
                }
            }
            same(&cost.layers[i].forward, &ahead, scale);
            same(&cost.layers[i].backward, &back, scale);
            cases++;
        }
        check_update(&f, &cost, scale);
    }
    assert_true(cases == 3000 * LAYERS && fusions > 100 && chosen > 100);
    dl_arena_free(&f.arena);
}

/* What is not measured is scaled as a whole: measured times, and those beyond their batches. */
static void measured_and_scaled(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_layer_time times[] = {{"dense0", 0.5, 1}};
    struct dl_layer_batch batches[] = {{.batch_samples = 8,
                                        .update_s = 0.25,
                                        .jitter_frac = NAN,
                                        .core_s = NAN,
                                        .layers = times,
                                        .layer_count = 1}};
    const struct dl_layer_times t = {.name = "t", .batches = batches, .batch_count = 1};
    struct dl_plan plain = f.plan;
    plain.layer_times = &t;
    struct dl_plan scaled = plain;
    scaled.compute_scale = 1.5;
    for (double batch = 4; batch <= 32; batch *= 2) {
        struct dl_cost a, b;
        struct dl_err err = {0};
        assert_int_equal(dl_cost_compute(&f.device, &f.workload, &f.framework, &plain, batch,
                                         &f.arena, &a, &err),
                         DL_OK);
        assert_int_equal(dl_cost_compute(&f.device, &f.workload, &f.framework, &scaled, batch,
                                         &f.arena, &b, &err),
                         DL_OK);
        for (int i = 0; i < f.workload.layer_count; i++) {
            check_close(b.layers[i].forward.time_s, 1.5 * a.layers[i].forward.time_s, 1e-12);
            check_close(b.layers[i].backward.time_s, 1.5 * a.layers[i].backward.time_s, 1e-12);
        }
        check_close(b.update.time_s, 1.5 * 0.25, 1e-12);
        check_close(a.update.time_s, 0.25, 1e-12);
        /* beyond 8 samples as the model's times are to those of 8 */
        struct dl_cost model, at_8;
        assert_int_equal(dl_cost_compute(&f.device, &f.workload, &f.framework, &f.plan, batch,
                                         &f.arena, &model, &err),
                         DL_OK);
        assert_int_equal(dl_cost_compute(&f.device, &f.workload, &f.framework, &f.plan, 8, &f.arena,
                                         &at_8, &err),
                         DL_OK);
        check_close(a.layers[0].forward.time_s,
                    0.5 * model.layers[0].forward.time_s / at_8.layers[0].forward.time_s, 1e-12);
        check_close(a.layers[0].backward.time_s,
                    model.layers[0].backward.time_s / at_8.layers[0].backward.time_s, 1e-12);
        check_close(a.layers[1].forward.time_s, model.layers[1].forward.time_s, 0);
        assert_int_equal(a.layers[0].forward.extrapolated, batch != 8);
    }
    dl_arena_free(&f.arena);
}

/* The refusal names device, precision and layer. */
static void without_a_rate(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_cost cost;
    struct dl_err err = {0};
    f.plan.precision = DL_BF16;
    assert_int_equal(
        dl_cost_compute(&f.device, &f.workload, &f.framework, &f.plan, 1, &f.arena, &cost, &err),
        DL_ERR_USAGE);
    assert_string_equal(err.message, "device fake-gpu has no rate for bf16 (layer dense0); choose "
                                     "another --precision or add the rate to its file");
    dl_arena_free(&f.arena);
}

/* Facts of a framework in a precision, then under a compiler, then on a device.
 * Kept whole: one table of choices of one random case. */
static void facts_of_frameworks(void **state) {
    (void)state;
    static const char *const architectures[] = {NULL, "kepler", "maxwell", "pascal", "volta"};
    struct dl_fake f;
    fake_make(&f);
    f.device.rates = rates;
    rates[0] = (struct dl_rate){.precision = DL_FP32, .unit = 0, .peak_flop_per_s = 1e13};
    rates[1] = (struct dl_rate){.precision = DL_FP16, .unit = 1, .peak_flop_per_s = 1e14};
    for (int n = 0; n < 4000; n++) {
        struct dl_framework_kernels *k = &f.framework.kernels;
        memset(k, 0, sizeof *k);
        k->layernorm = upto(6) - 1, k->gelu = upto(4) - 1, k->dropout = upto(4) - 1;
        k->softmax = upto(4) - 1, k->batchnorm = upto(5) - 1, k->mixed_batchnorm = upto(5) - 1;
        k->bias = upto(3) - 1, k->loss = upto(7) - 1, k->sums = upto(3) - 1;
        k->fusion = upto(4) - 1, k->mixed_fusion = upto(4) - 1, k->compiled_fusion = upto(4) - 1;
        k->layout = upto(3) - 1, k->mixed_layout = upto(3) - 1;
        k->mixed_policy = upto(DL_MIXED_POLICIES + 1) - 1, k->weight_copies = upto(3) - 1;
        k->attention = upto(5) - 1, k->compiler = upto(5) - 1;
        k->head_copies = ONE_OF(NAN, 0, 4), k->score_kernels = ONE_OF(NAN, 0, 2);
        k->softmax_matrices = half() ? 4 : 0;
        k->norm_small_kernels = ONE_OF(NAN, 0, 3);
        f.framework.transformer.eager_operations = half();
        f.framework.transformer.wide_norms = half();
        f.device.kind = upto(3) == 0 ? DL_DEVICE_CPU : DL_DEVICE_GPU;
        f.device.architecture = architectures[upto(5)];
        f.device.rate_count = upto(3);
        const enum dl_precision precision = (enum dl_precision)upto(DL_PRECISIONS);
        const enum dl_attention_kernel asked = (enum dl_attention_kernel)upto(4);
        const enum dl_compiler compiler = (enum dl_compiler)upto(4);
        const bool half_wide =
            precision == DL_MIXED || precision == DL_FP16 || precision == DL_BF16;
        const int layout = half_wide && k->mixed_layout >= 0 ? k->mixed_layout : k->layout;
        int fusion = half_wide && k->mixed_fusion >= 0 ? k->mixed_fusion : k->fusion,
            norm = half_wide && k->mixed_batchnorm >= 0 ? k->mixed_batchnorm : k->batchnorm;
        if (norm < 0 || (norm == DL_BATCHNORM_TRANSPOSED && layout != DL_LAYOUT_NHWC)) norm = 0;
        if (fusion < 0) fusion = 0;
        int layernorm = k->layernorm, gelu = k->gelu, dropout = k->dropout, softmax = k->softmax,
            bias = k->bias, loss = k->loss, policy = k->mixed_policy > 0 ? k->mixed_policy : 0;
        const bool apart = asked == DL_ATTENTION_COMPOSED && !(k->softmax_matrices > 0),
                   joined = asked == DL_ATTENTION_FUSED_SOFTMAX;
        double scores = !joined && (apart || k->score_kernels > 0) ? 2 : 0,
               small = k->norm_small_kernels > 0 ? 3 : 0;
        bool copies = half_wide && layout == DL_LAYOUT_NCHW,
             eager = f.framework.transformer.eager_operations,
             wide = f.framework.transformer.wide_norms, weights = k->weight_copies == DL_YES;
        struct dl_kernel_facts facts = dl_framework_facts(&f.framework, precision, asked);
        assert_int_equal(facts.batchnorm, norm);
        assert_int_equal(facts.activation_copies, copies);
        dl_facts_compile(&facts, &f.framework, compiler);
        if (compiler >= DL_COMPILER_XLA && k->compiler == (int)compiler) {
            const bool xla = compiler == DL_COMPILER_XLA;
            layernorm = xla ? DL_LAYERNORM_COMPILED : DL_LAYERNORM_FUSED;
            softmax = xla ? DL_SOFTMAX_COMPILED : DL_SOFTMAX_FUSED;
            gelu = DL_GELU_FUSED, dropout = DL_DROPOUT_COMPILED, bias = DL_BIAS_EPILOGUE;
            loss = DL_LOSS_FUSED, norm = DL_BATCHNORM_SPATIAL;
            fusion = k->compiled_fusion >= 0 ? k->compiled_fusion : DL_FUSION_BOTH;
            scores = small = 0, copies = eager = wide = false;
            if (policy > 0) policy = DL_MIXED_REWRITE_COMPILED;
        }
        dl_facts_on_device(&facts, &f.device);
        if (f.device.rate_count < 2) copies = false;
        if (f.device.kind == DL_DEVICE_CPU) weights = false, small = 0, norm = 0;
        if (norm == DL_BATCHNORM_PERSISTENT && f.device.architecture != NULL &&
            (strcmp(f.device.architecture, "kepler") == 0 ||
             strcmp(f.device.architecture, "maxwell") == 0))
            norm = 0;
        assert_int_equal(facts.precision, precision);
        assert_int_equal(facts.attention, asked > 0          ? (int)asked
                                          : k->attention > 0 ? k->attention
                                                             : 0);
        assert_int_equal(facts.layernorm, layernorm < 0 ? 0 : layernorm);
        assert_int_equal(facts.gelu, gelu < 0 ? 0 : gelu);
        assert_int_equal(facts.dropout, dropout < 0 ? 0 : dropout);
        assert_int_equal(facts.softmax, softmax < 0 ? 0 : softmax);
        assert_int_equal(facts.batchnorm, norm);
        assert_int_equal(facts.bias, bias < 0 ? 0 : bias);
        assert_int_equal(facts.loss, loss < 0 ? 0 : loss);
        assert_int_equal(facts.sums, k->sums < 0 ? 0 : k->sums);
        assert_int_equal(facts.fusion, fusion);
        assert_int_equal(facts.policy, policy);
        check_close(facts.head_copies, k->head_copies > 0 ? 4 : 0, 0);
        check_close(facts.score_kernels, scores, 0);
        check_close(facts.norm_small_kernels, small, 0);
        assert_int_equal(facts.weight_copies, weights);
        assert_int_equal(facts.activation_copies, copies);
        assert_int_equal(facts.eager, eager);
        assert_int_equal(facts.wide_norms, wide);
    }
    dl_arena_free(&f.arena);
}

static double first_known(const double *values, int count) {
    for (int i = 0; i < count; i++) {
        if (values[i] > 0) return values[i];
    }
    return 1;
}

/* Factors on kernels: the device's own, else those of the device whose models it borrows, else 1.
 * Kept whole: one factor after another of one random case. */
static void factors(void **state) {
    (void)state;
    static const char *const architectures[] = {NULL, "hopper", "blackwell"};
    const double none[DL_DIMS] = {0, 0, 0}, in[DL_DIMS] = {8, 32, 32};
    const struct dl_layer_kind *kinds[] = {&dl_layer_moe, &dl_layer_batchnorm, &dl_layer_dense};
    struct dl_fake f;
    fake_make(&f);
    for (int n = 0; n < 6000; n++) {
        struct dl_device *d = &f.device, lent = f.device;
        double load[2], narrow[2], triton[2], flash2[2], grouped[2], small[2];
        for (int i = 0; i < 2; i++) {
            struct dl_device *to = i == 0 ? d : &lent;
            to->load_scale = load[i] = ONE_OF(NAN, 0, 1.25, 1.5);
            to->narrow_load_scale = narrow[i] = ONE_OF(NAN, 1.125, 0.75);
            to->triton_attention_scale = triton[i] = ONE_OF(NAN, 1.375, 2.5);
            to->flash2_scale = flash2[i] = ONE_OF(NAN, 1.75, 3);
            to->grouped_scale = grouped[i] = ONE_OF(NAN, 2.25, 3.5);
            to->narrow_grouped_scale = small[i] = ONE_OF(NAN, 1.0625, 5);
            to->borrowed = NULL;
        }
        const int count = half() ? 2 : 1;
        if (count == 2) d->borrowed = &lent;
        d->attention_scale = ONE_OF(NAN, 0.875), d->norm_scale = ONE_OF(NAN, 2.75);
        d->direct_conv_scale = ONE_OF(NAN, 0, 1.625);
        d->architecture = architectures[upto(3)];
        d->kind = upto(4) == 0 ? DL_DEVICE_CPU : DL_DEVICE_GPU;
        d->tdp_w = 300, d->idle_w = d->load_w = NAN, d->power_limit_w = ONE_OF(NAN, 0, 150, 200);
        struct dl_framework *w = &f.framework;
        w->transformer.attention_library = upto(4), w->transformer.grouped_gemms = half();
        w->kernels.batchnorm = upto(4);
        w->memory.conv_workspace_bytes = ONE_OF(NAN, 0, 1e3);
        const struct dl_layer layer = {.kind = kinds[upto(3)]};
        const struct dl_kernel_scales s = dl_kernel_scales(w, d, &layer);
        const bool norm = layer.kind == &dl_layer_batchnorm &&
                          w->kernels.batchnorm != DL_BATCHNORM_COMPOSED,
                   groups = layer.kind == &dl_layer_moe && w->transformer.grouped_gemms,
                   cudnn = w->transformer.attention_library == DL_ATTENTION_SDPA &&
                           d->architecture == architectures[2];
        const double stream = norm && d->norm_scale > 0 ? 2.75 : 1,
                     own = d->attention_scale > 0 ? 0.875 : 1, older = first_known(flash2, count);
        double attention = own;
        if (w->transformer.attention_library == DL_ATTENTION_TRITON)
            attention *= older * first_known(triton, count);
        if (w->transformer.attention_library == DL_ATTENTION_FLASH2 ||
            (w->transformer.attention_library == DL_ATTENTION_SDPA && !cudnn))
            attention *= older;
        assert_int_equal(dl_attention_is_cudnn(w, d), cudnn);
        check_close(s.stream_scale, stream, 0);
        check_close(s.attention_scale, attention, 1e-12);
        check_close(s.workspace_bytes, w->memory.conv_workspace_bytes > 0 ? 1e3 : INFINITY, 0);
        /* each kind of kernel, in each precision */
        const enum dl_precision precision = (enum dl_precision)upto(DL_PRECISIONS);
        struct dl_kernel kernel;
        double expected = 1, stalled = 1;
        const double side = ONE_OF(1, 3, 5), wide = half() ? side : ONE_OF(1, 3);
        const double extent[DL_DIMS] = {ONE_OF(1, 1, 3), side, wide};
        const double stride[DL_DIMS] = {1, 1, ONE_OF(1, 1, 2)},
                     dilation[DL_DIMS] = {1, ONE_OF(1, 1, 2), 1};
        switch (upto(4)) {
        case 0:
            kernel = dl_kernel_stream(DL_FORWARD, 1, 8, 8);
            expected = stream;
            break;
        case 1:
            kernel = dl_kernel_attention(
                DL_FORWARD, &(struct dl_attention_shape){1, 8, 8, 64, 64, 64, 64, 0, false});
            expected = stalled = attention;
            break;
        case 2:
            kernel = dl_kernel_gemm(DL_FORWARD, 64, 64, 64, ONE_OF(1, 2, 8));
            if (groups && kernel.count > 1)
                stalled =
                    precision >= DL_FP8 ? first_known(small, count) : first_known(grouped, count);
            expected = stalled;
            if (precision != DL_FP32 && precision != DL_NVFP4)
                expected *=
                    precision >= DL_FP8 ? first_known(narrow, count) : first_known(load, count);
            break;
        default:
            kernel = dl_kernel_conv(DL_FORWARD, 8, 64, 64, ONE_OF(1, 1, 2), in, extent, stride,
                                    none, dilation);
            /* two equal extents above 1, dense and in one group */
            const int above = (extent[0] > 1) + (side > 1) + (wide > 1);
            const bool equal = above == 2 && ((extent[0] > 1 && side > 1 && extent[0] == side) ||
                                              (extent[0] > 1 && wide > 1 && extent[0] == wide) ||
                                              (extent[0] <= 1 && side == wide));
            const bool fast = equal && stride[2] == 1 && dilation[1] == 1 && kernel.groups == 1;
            assert_int_equal(dl_kernel_has_fast_conv(&kernel), fast);
            if (w->memory.conv_workspace_bytes > 0 && d->kind == DL_DEVICE_GPU)
                expected = dl_kernel_workspace_factor(d, precision, &kernel, 1e3);
            if (d->direct_conv_scale > 0 && kernel.groups == 1 && !fast) expected *= 1.625;
            break;
        }
        if (d->power_limit_w > 0) {
            const double drawn =
                kernel.op == DL_OP_STREAM ? 0.8 : 0.5 + 0.5 / (stalled > 1 ? stalled : 1);
            expected *= dl_power_cap_slowdown(d, drawn);
        }
        check_close(dl_kernel_scale_of(&s, d, precision, &kernel), expected, 1e-12);
        /* the host: its own time, the runtime's, a call of eager PyTorch next to that device */
        double call[2];
        for (int i = 0; i < 2; i++)
            (i == 0 ? d : &lent)->eager_call_s = call[i] = ONE_OF(NAN, 12e-6, 3e-6);
        d->launch_s = ONE_OF(NAN, 4e-6, 20e-6);
        w->host.dispatch_s = ONE_OF(0, 5e-6, 10e-6), w->host.eager_calls = half();
        double host_s = w->host.dispatch_s;
        if (host_s > 0) {
            if (d->launch_s > host_s) host_s = d->launch_s;
            const double eager_s = isnan(call[0]) && count == 2 ? call[1] : call[0];
            if (w->host.eager_calls && eager_s > host_s) host_s = eager_s;
        }
        check_close(dl_dispatch_s(w, d), host_s, 0);
    }
    dl_arena_free(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(costs), cmocka_unit_test(without_a_rate),
                                       cmocka_unit_test(measured_and_scaled),
                                       cmocka_unit_test(facts_of_frameworks),
                                       cmocka_unit_test(factors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Kernels, passes and types that follow from the facts of a framework, against counts worked by
 * hand from the sources of the frameworks. F-KERNEL-FACTS */
#include "model/framework/cost.h"
#include "model/framework/facts.h"
#include "model/machine/kernel_norm.h"
#include "model/workload/workload.h"
#include "tests/check.h"
#include "tests/fake.h"
#include "tests/load_workload.h"

static const struct dl_kernel_facts tensorflow = {.layernorm = DL_LAYERNORM_COMPOSED,
                                                  .gelu = DL_GELU_COMPOSED,
                                                  .dropout = DL_DROPOUT_COMPOSED,
                                                  .softmax = DL_SOFTMAX_COMPOSED,
                                                  .bias = DL_BIAS_KERNEL,
                                                  .loss = DL_LOSS_COMPOSED,
                                                  .sums = DL_SUM_AT_ONCE,
                                                  .policy = DL_MIXED_REWRITE,
                                                  .head_copies = 4,
                                                  .score_kernels = 2,
                                                  .norm_small_kernels = 7,
                                                  .weight_copies = true};
static const struct dl_kernel_facts pytorch = {.layernorm = DL_LAYERNORM_MOMENTS,
                                               .bias = DL_BIAS_KERNEL,
                                               .policy = DL_MIXED_AUTOCAST,
                                               .head_copies = 4,
                                               .score_kernels = 2,
                                               .norm_small_kernels = 1};

struct sum {
    double bytes, launches; /* of bandwidth-bound kernels */
    double products;        /* kernels of matrix arithmetic */
};

/* Adds what the layers that begin with `prefix` emit in one pass. */
static struct sum sum_of(const struct dl_workload *workload, const char *prefix,
                         struct dl_kernel_facts facts, enum dl_precision precision,
                         enum dl_pass pass) {
    struct sum sum = {0};
    facts.precision = precision;
    for (int i = 0; i < workload->layer_count; i++) {
        const struct dl_layer *layer = &workload->layers[i];
        if (strncmp(layer->name, prefix, strlen(prefix)) != 0) continue;
        struct dl_kernel kernels[DL_LAYER_KERNELS];
        const int count = layer->kind->kernels(layer, &facts, pass, 1, kernels);
        for (int k = 0; k < count; k++) {
            const struct dl_kernel *one = &kernels[k];
            if (one->op != DL_OP_STREAM) {
                sum.products += one->launches;
                continue;
            }
            sum.launches += one->launches;
            sum.bytes +=
                one->extra_bytes + (one->read_elements + one->write_elements) *
                                       dl_precision_bytes(one->has_type ? one->type : precision);
        }
    }
    return sum;
}

/* One encoder layer of BERT base at 128 tokens: h = 128 x 768 elements, a = 12 x 128^2 = 2 h.
 * TensorFlow forward: biases 5 x 2h + 2 x 4h, transposes 8h, dropout 2 x 8.5h, additions 2 x 3h,
 * layer norms 2 x 15h and their statistics, GELU 18 x 4h: 151h; scores: scale 2a, mask 2a, softmax
 * 4a, dropout 8.5a: 16.5a. Kernels: 6 + 4 + 10 + 2 + 20 + 8 + 2 + 3 + 5 = 60. PyTorch: 18h + 8h +
 * 2 (2.25 + 3 + 3)h + 2 x 4h = 50.5h and 2 + 2 + 2 + 2.25 = 8.25a. */
static void bert_layer(void **state) {
    struct dl_workload bert;
    load_name("bert_base", NULL, 0, &test_arena, &bert);
    const double h = 128 * 768, a = 2 * h, statistics = 2 * 8 * 128;
    const char *layer = "encoder.3.";
    struct sum s = sum_of(&bert, layer, tensorflow, DL_FP32, DL_FORWARD);
    check_close(s.bytes, 4 * (151 * h + 16.5 * a) + statistics, 1e-12);
    check_close(s.launches, 60, 1e-12);
    check_close(s.products, 8, 0);
    s = sum_of(&bert, layer, pytorch, DL_FP32, DL_FORWARD);
    check_close(s.bytes, 4 * (50.5 * h + 8.25 * a) + statistics, 1e-12);
    check_close(s.products, 8, 0);
    /* Backward of TensorFlow: copies 8h, dropout 2 x 5h, sums of four and two gradients 5h + 3h,
     * layer norms 2 x 41h, GELU 26 x 4h, sums of the biases' gradients 9h: 221h; scores: softmax
     * 9a, dropout 5a, scale 2a: 16a. */
    const struct sum data = sum_of(&bert, layer, tensorflow, DL_FP32, DL_BACKWARD_DATA),
                     weights = sum_of(&bert, layer, tensorflow, DL_FP32, DL_BACKWARD_WEIGHTS);
    check_close(data.bytes + weights.bytes, 4 * (221 * h + 16 * a), 0.002);
}

/* The same layer in mixed precision. TensorFlow's rewrite: biases, dropout, additions, layer norms
 * and GELU stay fp32, 18 + 17 + 6 + 30 + 72 = 143h of 4 bytes; transposes 8h of 2; casts of 6
 * bytes: two layer norms, GELU in and out, two dropouts, 2 + 8 + 2 = 12h; scores in 2 bytes, 14a
 * but for the random numbers (10 bytes each). With nothing but statistics in fp32: half of 50.5h
 * and 8.25a, the masks whole. */
static void mixed_types(void **state) {
    struct dl_workload bert;
    load_name("bert_base", NULL, 0, &test_arena, &bert);
    const double h = 128 * 768, a = 2 * h, statistics = 2 * 8 * 128;
    struct sum s = sum_of(&bert, "encoder.3.", tensorflow, DL_MIXED, DL_FORWARD);
    check_close(s.bytes,
                143 * 4 * h + 8 * 2 * h + 12 * 6 * h + (2 + 2 + 4 + 6) * 2 * a + 10 * a +
                    statistics,
                1e-12);
    struct dl_kernel_facts half = pytorch;
    half.policy = DL_MIXED_HALF;
    s = sum_of(&bert, "encoder.3.", half, DL_MIXED, DL_FORWARD);
    check_close(s.bytes, 2 * (50 * h + 8 * a) + 2 * h + a + statistics, 1e-12);
}

/* ResNet-50: 53 convolutions, 53 batch norms, 49 activations, 16 additions, 2 poolings, a dense
 * layer with a bias and the loss. Eager PyTorch: 53 counters besides. TensorFlow: 53 copies of
 * weights forward, 52 and 53 backward, 371 kernels of moving averages. */
static void resnet_launches(void **state) {
    struct dl_workload resnet;
    load_name("resnet50", NULL, 0, &test_arena, &resnet);
    struct sum s = sum_of(&resnet, "", pytorch, DL_FP32, DL_FORWARD);
    check_close(s.products, 54, 0);
    check_close(s.launches, 53 * 2 + 49 + 16 + 2 + 1 + 1, 0);
    s = sum_of(&resnet, "", tensorflow, DL_FP32, DL_FORWARD);
    check_close(s.launches, 53 + 53 * 8 + 49 + 16 + 2 + 1 + 6, 0);
    const double plain = sum_of(&resnet, "", pytorch, DL_FP32, DL_BACKWARD_DATA).launches,
                 copies = sum_of(&resnet, "", tensorflow, DL_FP32, DL_BACKWARD_DATA).launches;
    check_close(copies - plain, 52 + 4, 0); /* and the loss in 5 kernels instead of 1 */
}

/* Channels-first on matrix units: each convolution copies its input and output, in each pass. */
static void layouts(void **state) {
    struct dl_fake f;
    fake_make(&f);
    f.framework.kernels.layout = DL_LAYOUT_NCHW;
    f.framework.kernels.mixed_layout = DL_LAYOUT_NCHW;
    assert_true(
        dl_framework_facts(&f.framework, &f.device, DL_MIXED, DL_ATTENTION_OPEN).activation_copies);
    assert_false(
        dl_framework_facts(&f.framework, &f.device, DL_FP32, DL_ATTENTION_OPEN).activation_copies);
    f.framework.kernels.batchnorm = DL_BATCHNORM_TRANSPOSED;
    f.framework.kernels.mixed_batchnorm = -1;
    assert_int_equal(
        dl_framework_facts(&f.framework, &f.device, DL_MIXED, DL_ATTENTION_OPEN).batchnorm,
        DL_BATCHNORM_SPATIAL);
    f.framework.kernels.mixed_layout = DL_LAYOUT_NHWC;
    const struct dl_kernel_facts last =
        dl_framework_facts(&f.framework, &f.device, DL_MIXED, DL_ATTENTION_OPEN);
    assert_false(last.activation_copies);
    assert_int_equal(last.batchnorm, DL_BATCHNORM_TRANSPOSED);

    struct dl_workload resnet;
    load_name("resnet50", NULL, 0, &test_arena, &resnet);
    struct dl_kernel_facts facts = {.activation_copies = true};
    const struct dl_layer *stem = &resnet.layers[0];
    assert_string_equal(stem->kind->name, "conv");
    const double moved = 3 * 224 * 224 + 64 * 112 * 112;
    const double with = sum_of(&resnet, stem->name, facts, DL_MIXED, DL_FORWARD).bytes;
    facts.activation_copies = false;
    check_close(with - sum_of(&resnet, stem->name, facts, DL_MIXED, DL_FORWARD).bytes,
                2 * 2 * moved, 1e-12);
}

/* XLA: one encoder layer forward moves biases 0, transposes 8h, additions 2 x 3h, layer norms
 * 2 x 4h, GELU 2 x 4h: 30h, and 5a of the softmax with scale, mask and dropout. Only where the
 * framework has the compiler that the plan asks for. */
static void compiled(void **state) {
    struct dl_fake f;
    struct dl_arena arena = {0};
    struct dl_workload bert;
    fake_make(&f);
    load_name("bert_base", NULL, 0, &arena, &bert);
    const double h = 128 * 768, a = 2 * h, statistics = 2 * 8 * 128;
    struct dl_kernel_facts facts = tensorflow;
    f.framework.kernels.compiler = -1;
    f.framework.kernels.compiled_fusion = -1;
    dl_facts_compile(&facts, &f.framework, DL_COMPILER_XLA);
    assert_int_equal(facts.layernorm, DL_LAYERNORM_COMPOSED);
    f.framework.kernels.compiler = DL_COMPILER_XLA;
    dl_facts_compile(&facts, &f.framework, DL_COMPILER_OPEN);
    assert_int_equal(facts.layernorm, DL_LAYERNORM_COMPOSED);
    dl_facts_compile(&facts, &f.framework, DL_COMPILER_XLA);
    assert_int_equal(facts.fusion, DL_FUSION_BOTH);
    check_close(sum_of(&bert, "encoder.3.", facts, DL_FP32, DL_FORWARD).bytes,
                4 * (30 * h + 5 * a) + statistics, 1e-12);
    dl_arena_free(&arena);
}

/* cuDNN's persistent batch norm needs compute capability 6.0; copies to channels-last, matrix
 * units. */
static void devices(void **state) {
    struct dl_fake f;
    fake_make(&f);
    struct dl_kernel_facts facts = {.batchnorm = DL_BATCHNORM_PERSISTENT,
                                    .activation_copies = true};
    f.device.architecture = "volta";
    dl_facts_on_device(&facts, &f.device);
    assert_int_equal(facts.batchnorm, DL_BATCHNORM_PERSISTENT);
    f.device.architecture = "kepler";
    f.device.rate_count = 0;
    dl_facts_on_device(&facts, &f.device);
    assert_int_equal(facts.batchnorm, DL_BATCHNORM_SPATIAL);
    assert_false(facts.activation_copies);
}

/* A sum reads both and writes one, 12 bytes; a row may say otherwise; fp32 weights are cast in
 * mixed precision, 12 bytes more. */
static void accumulation(void **state) {
    const struct dl_optimizer_row apex = {.accumulation = {NAN, NAN},
                                          .mixed_accumulation = {0.03, 10}};
    check_close(dl_accumulation_cost(NULL, DL_FP32, DL_MIXED_HALF).bytes, 12, 0);
    check_close(dl_accumulation_cost(&apex, DL_FP32, DL_MIXED_HALF).bytes, 12, 0);
    check_close(dl_accumulation_cost(&apex, DL_MIXED, DL_MIXED_HALF).bytes, 10, 0);
    check_close(dl_accumulation_cost(&apex, DL_MIXED, DL_MIXED_AUTOCAST).bytes, 22, 0);
    check_close(dl_accumulation_cost(&apex, DL_MIXED, DL_MIXED_AUTOCAST).kernels, 2.03, 1e-12);
    for (int p = 0; p < DL_MIXED_POLICIES; p++)
        assert_true(dl_mixed_update_bytes((enum dl_mixed_policy)p) >= 12);
}

/* Three tensors under momentum, two kernels each; weight decay in the loss: three more for each but
 * that of batch norm, and 24 bytes per parameter. */
static void weight_decay(void **state) {
    struct dl_fake f;
    struct dl_cost without, with;
    fake_make(&f);
    fake_layers(&f, 3, (const double[]){64, 128, 256, 64});
    struct dl_layer_kind norm = fake_kind;
    norm.name = "batchnorm";
    ((struct dl_layer *)f.workload.layers)[1].kind = &norm;
    f.plan.optimizer = DL_MOMENTUM;
    const struct dl_optimizer_row apply = {.update = {[DL_MOMENTUM] = {2, 24}}};
    f.framework.kernels.optimizer = &apply;
    assert_int_equal(
        dl_cost_compute(&(struct dl_cost_request){&f.device, &f.workload, &f.framework, &f.plan, 4},
                        &test_arena, &without, NULL),
        DL_OK);
    f.framework.kernels.weight_decay = DL_DECAY_LOSS;
    assert_int_equal(
        dl_cost_compute(&(struct dl_cost_request){&f.device, &f.workload, &f.framework, &f.plan, 4},
                        &test_arena, &with, NULL),
        DL_OK);
    check_close(without.update.launches, 3 * 2, 1e-12);
    check_close(with.update.launches, 3 * 2 + 2 * 3, 1e-12);
    check_close(with.update.bytes - without.update.bytes, 24 * f.workload.parameters, 1e-12);
}

/* ResNet-50's 16 additions write 5,519,360 elements per sample. Inside batch norms they still read
 * the other branch forward and write its gradient backward; activations there leave nothing. */
static void fused_additions(void **state) {
    struct dl_fake f;
    struct dl_workload resnet;
    fake_make(&f);
    load_name("resnet50", NULL, 0, &test_arena, &resnet);
    const double bytes = 4 * 2 * 5519360.0;
    for (int backward = 0; backward < 2; backward++) {
        struct dl_cost cost;
        double forward_bytes = 0, backward_bytes = 0, launches = 0;
        f.framework.kernels.fusion = backward ? DL_FUSION_BOTH : DL_FUSION_FORWARD;
        assert_int_equal(
            dl_cost_compute(&(struct dl_cost_request){&f.device, &resnet, &f.framework, &f.plan, 2},
                            &test_arena, &cost, NULL),
            DL_OK);
        for (int i = 0; i < resnet.layer_count; i++) {
            if (!dl_cost_fused(&resnet, i)) continue;
            forward_bytes += cost.layers[i].forward.bytes;
            backward_bytes += cost.layers[i].backward.bytes;
            launches += cost.layers[i].forward.launches + cost.layers[i].backward.launches;
        }
        check_close(forward_bytes, bytes, 1e-12);
        if (backward) {
            check_close(backward_bytes, bytes, 1e-12);
            check_close(launches, 0, 0);
        } else
            assert_true(backward_bytes > 2 * bytes && launches > 0);
    }
}

/* Scale and mask apart where composed attention is asked for, with the softmax where fused-softmax
 * is, else as the framework does; Megatron's fused kernel decides by shape. */
static void attention_asked_for(void **state) {
    static const struct dl_device no_device;
    struct dl_framework framework = {.kernels = {.score_kernels = NAN}};
    const struct {
        double own, matrices, open, composed, fused;
    } cases[] = {{NAN, 0, 0, 2, 0}, {2, 0, 2, 2, 0}, {1, 0, 1, 2, 0}, {NAN, 4, 0, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        framework.kernels.score_kernels = cases[i].own;
        framework.kernels.softmax_matrices = cases[i].matrices;
        check_close(
            dl_framework_facts(&framework, &no_device, DL_FP32, DL_ATTENTION_OPEN).score_kernels,
            cases[i].open, 0);
        check_close(dl_framework_facts(&framework, &no_device, DL_FP32, DL_ATTENTION_COMPOSED)
                        .score_kernels,
                    cases[i].composed, 0);
        check_close(dl_framework_facts(&framework, &no_device, DL_FP32, DL_ATTENTION_FUSED_SOFTMAX)
                        .score_kernels,
                    cases[i].fused, 0);
    }
}

static struct dl_kernel conv_of(enum dl_pass pass, double channels, double size, double taps) {
    const double in[DL_DIMS] = {1, size, size}, kernel[DL_DIMS] = {1, taps, taps},
                 one[DL_DIMS] = {1, 1, 1}, pad[DL_DIMS] = {0, (taps - 1) / 2, (taps - 1) / 2};
    return dl_kernel_conv(pass,
                          &(struct dl_conv_shape){2, channels, 8, 1, in, kernel, one, pad, one});
}

/* F-CONV-LAYOUT by hand, two images of fp32. 3x3 over 16 channels of 8 x 8 to 8 channels:
 * 2 (16 + 8) 64 elements. 7 x 7: 49 elements of 4 bytes fill no words of 16 bytes and
 * count twice. */
static void layout_copies(void **state) {
    const struct {
        enum dl_pass pass;
        double channels, size, taps, elements;
    } cases[] = {{DL_FORWARD, 16, 8, 3, 3072},
                 {DL_FORWARD, 16, 8, 1, 0},
                 {DL_FORWARD, 16, 7, 1, 4704},
                 {DL_FORWARD, 3, 8, 3, 0},
                 {DL_BACKWARD_DATA, 3, 8, 3, 1408}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl_kernel conv =
            conv_of(cases[i].pass, cases[i].channels, cases[i].size, cases[i].taps);
        check_close(dl_conv_copied_elements(&conv, 4), cases[i].elements, 1e-12);
    }
}

/* F-BATCHNORM-CHANNELS by hand: 100 channels at 1 GHz move 1,050 GB/s, as much as the memory here,
 * so a pass takes 2^(1/3) times the time of its bytes; with twice the channels (9/8)^(1/3). */
static void channels_of_batchnorm(void **state) {
    struct dl_fake f;
    fake_make(&f);
    f.device.kind = DL_DEVICE_GPU;
    f.device.scales.norm_scale = NAN;
    f.device.clock_hz = 1e9;
    const double bytes = 1.05e9; /* 1 ms of the channels, and of the memory */
    struct dl_kernel norm = {.op = DL_OP_STREAM, .work = DL_WORK_BATCHNORM, .m = 100};
    assert_true(dl_batchnorm_by_channel(&f.device, &norm));
    check_close(dl_batchnorm_s(&f.device, DL_FP32, &norm, bytes, 1e-3), 1e-3 * cbrt(2), 1e-12);
    norm.m = 200;
    check_close(dl_batchnorm_s(&f.device, DL_FP32, &norm, bytes, 1e-3), 1e-3 * cbrt(1.125), 1e-12);
    norm.pass = DL_BACKWARD_DATA;
    check_close(dl_batchnorm_s(&f.device, DL_FP32, &norm, bytes, 1e-3), 1.12e-3 * cbrt(1.125),
                1e-12);
    norm.m = 0; /* F-BATCHNORM-NHWC: 16 bits from Ampere on */
    f.device.architecture = "ampere";
    check_close(dl_batchnorm_s(&f.device, DL_MIXED, &norm, bytes, 1e-3), 1e-3 / 0.65, 1e-12);
    check_close(dl_batchnorm_s(&f.device, DL_TF32, &norm, bytes, 1e-3), 1e-3, 1e-12);
    f.device.architecture = "volta";
    check_close(dl_batchnorm_s(&f.device, DL_MIXED, &norm, bytes, 1e-3), 1e-3, 1e-12);
    norm.m = 200;
    f.device.scales.norm_scale = 2; /* before Volta F-DEVICE-NORM says all */
    assert_false(dl_batchnorm_by_channel(&f.device, &norm));
}

/* F-POOL-BACKWARD by hand: max pooling 3 x 3 of stride 2 over 2 x 4 x 4; an element lies in
 * ceil(3 / 2)^2 = 4 windows, of which PyTorch reads 2 elements each. */
static void pooling_of_pytorch(void **state) {
    struct dl_workload w;
    const char *text = "{'format':'dlmodel-workload','version':1,'name':'w','summary':'s',"
                       "'source':'x','input':{'channels':2,'size':[4,4]},'layers':["
                       "{'kind':'conv','out':2,'kernel':3,'pad':1},"
                       "{'kind':'maxpool','kernel':3,'stride':2,'pad':1}]}";
    assert_int_equal(load_text(text, NULL, 0, &test_arena, &w, NULL), DL_OK);
    const struct dl_layer *layer = &w.layers[1];
    struct dl_kernel kernels[DL_LAYER_KERNELS];
    struct dl_kernel_facts facts = {.pooling = DL_POOLING_INDICES};
    assert_int_equal(layer->kind->kernels(layer, &facts, DL_BACKWARD_DATA, 1, kernels), 1);
    check_close(kernels[0].read_elements, 4 * 2 * 32, 1e-12);
    check_close(kernels[0].write_elements, 32, 1e-12);
}

/* F-GEMM-ALIGNED: 30522 words are no multiple of 8. Forward m, data gradient k, weight gradient n
 * of a transposed B. Only in 16 bits, on Volta, without XLA. */
static void aligned_gemm(void **state) {
    struct dl_fake f;
    struct dl_arena arena = {0};
    struct dl_workload w;
    fake_make(&f);
    const char *text = "{'format':'dlmodel-workload','version':1,'name':'w','summary':'s',"
                       "'source':'x','input':{'channels':768},'layers':["
                       "{'kind':'dense','out':768},{'kind':'dense','out':30522}]}";
    assert_int_equal(load_text(text, NULL, 0, &arena, &w, NULL), DL_OK);
    f.device.architecture = "volta";
    struct dl_kernel_facts facts = {.precision = DL_MIXED, .aligned_gemm = true};
    dl_facts_on_device(&facts, &f.device);
    assert_false(facts.aligned_gemm); /* no matrix units */
    facts.aligned_gemm = true;
    for (int i = 0; i < 2; i++) {
        for (int pass = DL_FORWARD; pass <= DL_BACKWARD_WEIGHTS; pass++) {
            struct dl_kernel kernels[DL_LAYER_KERNELS];
            const struct dl_layer *layer = &w.layers[i];
            if (i == 0 && pass == DL_BACKWARD_DATA) continue;
            assert_int_equal(layer->kind->kernels(layer, &facts, (enum dl_pass)pass, 64, kernels),
                             1);
            assert_int_equal(kernels[0].has_type, i == 1);
            if (i == 0) continue;
            assert_int_equal(kernels[0].type, DL_FP32);
            check_close(kernels[0].read_elements + kernels[0].write_elements,
                        (64 * 768 + 64 * 30522 + 768 * 30522) / 2.0, 1e-12);
        }
    }
    f.framework.kernels.compiler = DL_COMPILER_XLA;
    dl_facts_compile(&facts, &f.framework, DL_COMPILER_XLA);
    assert_false(facts.aligned_gemm);
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(aligned_gemm),
                                       cmocka_unit_test(layout_copies),
                                       cmocka_unit_test(channels_of_batchnorm),
                                       cmocka_unit_test(pooling_of_pytorch),
                                       cmocka_unit_test(bert_layer),
                                       cmocka_unit_test(mixed_types),
                                       cmocka_unit_test(resnet_launches),
                                       cmocka_unit_test(layouts),
                                       cmocka_unit_test(compiled),
                                       cmocka_unit_test(devices),
                                       cmocka_unit_test(accumulation),
                                       cmocka_unit_test(weight_decay),
                                       cmocka_unit_test(attention_asked_for),
                                       cmocka_unit_test(fused_additions)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}

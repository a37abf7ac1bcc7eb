/* Each kind of layer by hand: shape, parameters, multiply-adds, kernels of each pass, what is kept
 * for backward. */
#include "model/workload/layer.h"
#include "tests/check.h"
#include "tests/load_workload.h"

static const struct dl_kernel_facts PLAIN = {.precision = DL_FP32};

#define HEAD "{'format':'dlmodel-workload','version':1,'name':'t','summary':'s','source':'x',"
#define IMAGE(c, h, w) HEAD "'input':{'channels':" #c ",'size':[" #h "," #w "]},'layers':["
#define TOKENS(n) HEAD "'input':{'tokens':" #n "},'layers':["
#define VECTOR(n) HEAD "'input':{'channels':" #n "},'layers':["

static void expect_shape(const struct dl_layer *layer, const char *text) {
    char found[64];
    assert_string_equal(dl_shape_text(&layer->out, found, sizeof found), text);
}

/* Kernel number `index` of a pass. */
static struct dl_kernel kernel_of(const struct dl_layer *layer, enum dl_pass pass, double batch,
                                  int index) {
    struct dl_kernel kernels[DL_LAYER_KERNELS];
    int count = layer->kind->kernels(layer, &PLAIN, pass, batch, kernels);
    if (index >= count)
        fail_msg("%s emits %d kernels, expected more than %d", layer->name, count, index);
    return kernels[index];
}

static int kernel_count(const struct dl_layer *layer, enum dl_pass pass) {
    struct dl_kernel kernels[DL_LAYER_KERNELS];
    return layer->kind->kernels(layer, &PLAIN, pass, 2.0, kernels);
}

static void expect_stream(const struct dl_layer *layer, enum dl_pass pass, double batch, int index,
                          double reads, double writes, double bytes) {
    struct dl_kernel kernel = kernel_of(layer, pass, batch, index);
    assert_int_equal(kernel.op, DL_OP_STREAM);
    assert_int_equal(kernel.pass, pass);
    check_close(kernel.read_elements, reads, 1e-12);
    check_close(kernel.write_elements, writes, 1e-12);
    check_close(kernel.extra_bytes, bytes, 1e-12);
}

static void expect_gemm(const struct dl_layer *layer, enum dl_pass pass, double batch, int index,
                        double m, double n, double k, double count, bool a_trans, bool b_trans) {
    struct dl_kernel kernel = kernel_of(layer, pass, batch, index);
    assert_int_equal(kernel.op, DL_OP_GEMM);
    check_close(kernel.m, m, 0);
    check_close(kernel.n, n, 0);
    check_close(kernel.k, k, 0);
    check_close(kernel.count, count, 0);
    assert_int_equal(kernel.a_trans, a_trans);
    assert_int_equal(kernel.b_trans, b_trans);
}

static void table_of_kinds(void **state) {
    for (int i = 0; dl_layer_kinds[i] != NULL; i++) {
        const struct dl_layer_kind *kind = dl_layer_kinds[i];
        assert_ptr_equal(dl_layer_kind_find(kind->name), kind); /* names differ */
        assert_non_null(kind->summary);
        assert_non_null(kind->source);
        assert_non_null(kind->infer);
        assert_non_null(kind->kernels);
        assert_true(kind->inputs_min >= 1 && kind->inputs_max >= kind->inputs_min);
        assert_int_equal(kind->needs & kind->takes, 0);
    }
    assert_null(dl_layer_kind_find("no such kind"));
    assert_null(dl_layer_kind_find(NULL));
}

/* First convolution of ResNet-50: 112 = floor((224 + 6 - 7)/2) + 1; 3*64*49 = 9408 weights, each
 * used at 112*112 positions. */
static void conv_of_resnet(void **state) {
    struct dl_workload net;
    build(&net, IMAGE(3, 224, 224) "{'kind':'conv','out':64,'kernel':7,'stride':2,'pad':3},"
                                   "{'kind':'conv','out':8,'kernel':3,'bias':true}]}");
    const struct dl_layer *first = &net.layers[0], *second = &net.layers[1];
    expect_shape(first, "64x112x112");
    check_close(first->parameter_elements, 9408, 0);
    check_close(first->forward_macs, 9408.0 * 112 * 112, 0);
    assert_int_equal(kernel_count(first, DL_FORWARD), 1);
    assert_int_equal(kernel_count(first, DL_BACKWARD_DATA), 0); /* reads the input */
    assert_int_equal(kernel_count(first, DL_BACKWARD_WEIGHTS), 1);
    struct dl_kernel conv = kernel_of(first, DL_FORWARD, 16.0, 0);
    assert_int_equal(conv.op, DL_OP_CONV);
    check_close(conv.flop, 2.0 * 16 * 9408 * 112 * 112, 1e-12);
    check_close(conv.out[1], 112, 0);
    check_close(conv.kernel[0], 1, 0); /* unused dimension */
    check_close(conv.pad[0], 0, 0);
    /* 8*64*9 weights and 8 biases; the bias reads and writes 8*110*110 outputs of 2 samples. */
    assert_int_equal(second->parameter_count, 2);
    check_close(second->parameter_elements, 8 * 64 * 9 + 8, 0);
    expect_stream(second, DL_FORWARD, 2.0, 1, 2 * 8 * 110 * 110, 2 * 8 * 110 * 110, 0);
    expect_stream(second, DL_BACKWARD_WEIGHTS, 2.0, 1, 2 * 8 * 110 * 110, 0, 0);
    assert_int_equal(kernel_count(second, DL_BACKWARD_DATA), 1);
    check_close(first->saved.elements, 64 * 112 * 112, 0); /* the second reads it */
    check_close(second->saved.elements, 0, 0);
}

static void conv_variants(void **state) {
    struct dl_workload net;
    /* Depthwise: 8*1*9 weights; grouped 8 -> 16 in 4: 16*2*1; dilated 3x3 by 2 reaches over 5: 10 -
     * 5 + 1 = 6. */
    build(&net, IMAGE(8, 10, 10) "{'kind':'conv','name':'dw','out':'in_channels','groups':'in_"
                                 "channels','kernel':3,'pad':1},"
                                 "{'kind':'conv','name':'grouped','out':16,'groups':4,'kernel':1},"
                                 "{'kind':'conv','name':'dilated','out':2,'kernel':3,'dilation':2},"
                                 "{'kind':'conv','name':'wide','out':2,'kernel':[1,5],'pad':[0,2]},"
                                 "{'kind':'conv','name':'even','out':2,'kernel':2,'pad':0.5}]}");
    check_close(net.layers[0].forward_macs, 8 * 9 * 100, 0);
    check_close(net.layers[1].forward_macs, 16 * 2 * 100, 0);
    expect_shape(&net.layers[2], "2x6x6");
    expect_shape(&net.layers[3], "2x6x6");
    check_close(net.layers[3].parameter_elements, 2 * 2 * 5, 0);
    expect_shape(&net.layers[4], "2x6x6"); /* one element of padding at one side */
    check_close(kernel_of(&net.layers[4], DL_FORWARD, 1.0, 0).out[2], 6, 0);
    build(&net, HEAD "'input':{'channels':4,'size':[16,12,10]},'layers':["
                     "{'kind':'conv','out':2,'kernel':3,'stride':[2,1,1]}]}");
    expect_shape(&net.layers[0], "2x7x10x8");
    check_close(net.forward_macs_per_sample, 2.0 * 4 * 27 * 7 * 10 * 8, 0);
}

/* Up-convolution 2x2 by 2: (5 - 1)*2 + 2 = 10; 4*3*4 weights; as many multiply-adds for each of the
 * 25 inputs. */
static void conv_transpose(void **state) {
    struct dl_workload net;
    build(
        &net,
        IMAGE(4, 5, 5) "{'kind':'relu'},{'kind':'conv_transpose','out':3,'kernel':2,'stride':2}]}");
    const struct dl_layer *up = &net.layers[1];
    expect_shape(up, "3x10x10");
    check_close(up->parameter_elements, 48, 0);
    check_close(up->forward_macs, 48 * 25, 0);
    struct dl_kernel forward = kernel_of(up, DL_FORWARD, 2.0, 0);
    check_close(forward.flop, 2.0 * 2 * 48 * 25, 1e-12);
    /* executed as the gradient of the convolution 10 -> 5 */
    assert_int_equal(forward.pass, DL_BACKWARD_DATA);
    check_close(forward.in[2], 10, 0);
    check_close(forward.out[2], 5, 0);
}

/* 6 -> 4 on 5 tokens and 3 samples: (4, 15, 6), backward (6, 15, 4) and (6, 4, 15). */
static void dense_gemms(void **state) {
    struct dl_workload net;
    build(&net,
          TOKENS(5) "{'kind':'embedding','rows':10,'out':6},{'kind':'dense','out':4,'bias':true},"
                    "{'kind':'dense','out':6},{'kind':'dense','out':10,'tied':'embedding'}]}");
    const struct dl_layer *dense = &net.layers[1], *tied = &net.layers[3];
    expect_shape(dense, "4x5");
    check_close(dense->forward_macs, 5 * 6 * 4, 0);
    check_close(dense->parameter_elements, 6 * 4 + 4, 0);
    expect_gemm(dense, DL_FORWARD, 3, 0, 4, 15, 6, 1, true, false);
    expect_gemm(dense, DL_BACKWARD_DATA, 3, 0, 6, 15, 4, 1, false, false);
    expect_gemm(dense, DL_BACKWARD_WEIGHTS, 3, 0, 6, 4, 15, 1, false, true);
    expect_stream(dense, DL_BACKWARD_WEIGHTS, 3, 1, 60, 4, 0);
    assert_int_equal(tied->tied_to, 0);
    check_close(tied->parameter_elements, 0, 0);
    check_close(tied->forward_macs, 5 * 6 * 10, 0);
    assert_int_equal(kernel_count(tied, DL_BACKWARD_WEIGHTS), 1);
    check_close(net.parameters, 60 + 28 + 24, 0);
}

/* Rows of 6 elements for 5 tokens of 3 samples: 90 elements and 15 indices of 8 bytes; a table of
 * 60 elements. */
static void embedding_traffic(void **state) {
    struct dl_workload net;
    build(&net,
          TOKENS(5) "{'kind':'embedding','rows':10,'out':6},"
                    "{'kind':'embedding','from':'input','name':'s','rows':10,'out':6,'sparse':true,"
                    "'tokens':2}]}");
    expect_stream(&net.layers[0], DL_FORWARD, 3, 0, 90, 90, 120);
    assert_int_equal(kernel_count(&net.layers[0], DL_BACKWARD_DATA), 0);
    expect_stream(&net.layers[0], DL_BACKWARD_WEIGHTS, 3, 0, 0, 60, 0);
    expect_stream(&net.layers[0], DL_BACKWARD_WEIGHTS, 3, 1, 180, 90, 120);
    expect_shape(&net.layers[1], "6x2");
    assert_int_equal(kernel_count(&net.layers[1], DL_BACKWARD_WEIGHTS), 1);
}

/* conv, batch norm, relu, pool on 4x6x6 = 144 elements: BN 2R 1W and 4R 1W, relu 1R 1W and 2R 1W,
 * pool 144 -> 36. */
static void bandwidth_bound_layers(void **state) {
    struct dl_workload net;
    build(&net,
          IMAGE(3, 6,
                6) "{'kind':'conv','out':4,'kernel':1},{'kind':'batchnorm'},{'kind':'relu'},"
                   "{'kind':'maxpool','kernel':2},{'kind':'dropout','dropout':0.5},{'kind':'lrn'},"
                   "{'kind':'global_pool'},{'kind':'flatten'},{'kind':'loss'}]}");
    const struct dl_layer *l = net.layers;
    expect_stream(&l[1], DL_FORWARD, 2, 0, 2 * 288, 288, 0);
    expect_stream(&l[1], DL_BACKWARD_DATA, 2, 0, 4 * 288, 288, 0);
    assert_int_equal(kernel_count(&l[1], DL_BACKWARD_WEIGHTS), 0);
    check_close(l[1].parameter_elements, 8, 0);
    check_close(l[1].buffer_elements, 9, 0);
    expect_stream(&l[2], DL_FORWARD, 2, 0, 288, 288, 0);
    expect_stream(&l[2], DL_BACKWARD_DATA, 2, 0, 576, 288, 0);
    expect_shape(&l[3], "4x3x3");
    expect_stream(&l[3], DL_FORWARD, 2, 0, 288, 72, 8 * 72);
    expect_stream(&l[3], DL_BACKWARD_DATA, 2, 0, 72, 288, 8 * 72);
    expect_stream(&l[4], DL_FORWARD, 2, 0, 72, 72, 72);
    expect_stream(&l[4], DL_BACKWARD_DATA, 2, 0, 72, 72, 72);
    expect_stream(&l[5], DL_BACKWARD_DATA, 2, 0, 4 * 72, 72, 0);
    expect_stream(&l[6], DL_FORWARD, 2, 0, 72, 8, 0);
    assert_int_equal(kernel_count(&l[7], DL_FORWARD), 0);
    expect_stream(&l[8], DL_FORWARD, 2, 0, 8, 0, 32);
    /* Kept: conv output (BN reads it), relu output (itself, pool), dropout output (LRN), LRN's
     * scale and output. */
    check_close(l[0].saved.elements, 144, 0);
    check_close(l[1].saved.elements, 0, 0);
    check_close(l[2].saved.elements, 144, 0);
    check_close(l[3].saved.elements, 0, 0);
    check_close(l[3].saved.bytes, 8 * 36, 0);
    check_close(l[4].saved.elements, 36, 0);
    check_close(l[4].saved.bytes, 36, 0);
    check_close(l[5].saved.elements, 72, 0);
    check_close(l[8].saved.bytes, 16, 0);
    check_close(net.activation_elements_per_sample, 144 + 144 + 36 + 72, 0);
}

/* A tensor that two layers read gets two gradients: one addition, 2R 1W. The residual add itself
 * moves nothing back. */
static void residual_connection(void **state) {
    struct dl_workload net;
    build(&net, IMAGE(4, 3, 3) "{'kind':'conv','name':'a','out':4,'kernel':1},"
                               "{'kind':'conv','name':'b','out':4,'kernel':1},"
                               "{'kind':'add','from':['b','a']},{'kind':'relu'}]}");
    const struct dl_layer *l = net.layers;
    assert_int_equal(l[0].consumers, 2);
    expect_stream(&l[0], DL_BACKWARD_DATA, 2, 0, 2 * 72, 72, 0);
    /* only the addition: the layer is the first */
    assert_int_equal(kernel_count(&l[0], DL_BACKWARD_DATA), 1);
    expect_stream(&l[2], DL_FORWARD, 2, 0, 144, 72, 0);
    assert_int_equal(kernel_count(&l[2], DL_BACKWARD_DATA), 0);
    check_close(l[1].saved.elements, 0, 0);
    check_close(l[2].saved.elements, 0, 0);
}

/* torch: 112 -> ceil((112 - 3)/2) + 1 = 56 with ceil, 55 without; a window may not start beyond the
 * input: 5 -> 3 by ceil((5 - 1)/2) + 1, and 4 -> ceil(3/2) + 1 = 3 is cut to 2. */
static void pooling_rounds(void **state) {
    struct dl_workload net;
    build(&net, IMAGE(1, 112,
                      112) "{'kind':'maxpool','name':'up','kernel':3,'stride':2,'ceil':true},"
                           "{'kind':'maxpool','name':'down','from':'input','kernel':3,'stride':2},"
                           "{'kind':'avgpool','name':'half','kernel':2},"
                           "{'kind':'adaptive_pool','size':[4,5]},"
                           "{'kind':'maxpool','name':'edge','kernel':1,'stride':2,'ceil':true},"
                           "{'kind':'upsample','scale':3}]}");
    expect_shape(&net.layers[0], "1x56x56");
    expect_shape(&net.layers[1], "1x55x55");
    expect_shape(&net.layers[2], "1x27x27");
    expect_shape(&net.layers[3], "1x4x5");
    expect_shape(&net.layers[4], "1x2x3");
    expect_shape(&net.layers[5], "1x6x9");
    check_close(net.activation_elements_per_sample, 0, 0); /* nothing to train, nothing kept */
}

/* 8 tokens, 2 heads of 3: scores (8, 8, 3), context (3, 8, 8), 2 samples: 4 of each. 2*8*8*6
 * multiply-adds. */
static void attention_unfused(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(8) "{'kind':'embedding','rows':9,'out':18},"
                          "{'kind':'attention','heads':2,'dropout':0.1}]}");
    const struct dl_layer *a = &net.layers[1];
    expect_shape(a, "6x8");
    check_close(a->forward_macs, 2 * 8 * 8 * 6, 0);
    expect_gemm(a, DL_FORWARD, 2, 0, 8, 8, 3, 4, true, false);
    expect_stream(a, DL_FORWARD, 2, 1, 4 * 64, 4 * 64, 0);
    expect_stream(a, DL_FORWARD, 2, 2, 4 * 64, 4 * 64, 4 * 64);
    expect_gemm(a, DL_FORWARD, 2, 3, 3, 8, 8, 4, false, false);
    assert_int_equal(kernel_count(a, DL_BACKWARD_DATA), 6);
    expect_gemm(a, DL_BACKWARD_DATA, 2, 0, 3, 8, 8, 4, false, true);
    expect_stream(a, DL_BACKWARD_DATA, 2, 3, 2 * 4 * 64, 4 * 64, 0);
    assert_int_equal(kernel_count(a, DL_BACKWARD_WEIGHTS), 0);
    /* softmax output and dropout output of 2*8*8 scores, one mask byte each */
    check_close(a->saved.own_elements, 2 * 128, 0);
    check_close(a->saved.bytes, 128, 0);
    check_close(net.layers[0].saved.elements, 18 * 8, 0);
    assert_true(a->recomputable);
}

/* Flash, causal: (1 + 1/8)/2 of the products; traffic of Q, K, V (18*8) and output (6*8) alone; one
 * launch. */
static void attention_flash(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(8) "{'kind':'embedding','rows':9,'out':18},"
                          "{'kind':'attention','heads':2,'flash':1,'causal':1}]}");
    const struct dl_layer *a = &net.layers[1];
    check_close(a->forward_macs, 2 * 8 * 8 * 6, 0);
    const struct dl_kernel forward = kernel_of(a, DL_FORWARD, 2, 0),
                           backward = kernel_of(a, DL_BACKWARD_DATA, 2, 0);
    assert_int_equal(kernel_count(a, DL_FORWARD), 1);
    assert_int_equal(kernel_count(a, DL_BACKWARD_DATA), 1);
    assert_int_equal(kernel_count(a, DL_BACKWARD_WEIGHTS), 0);
    assert_int_equal(forward.op, DL_OP_ATTENTION);
    assert_true(forward.causal && !forward.has_type);
    check_close(forward.batch, 2, 0);
    check_close(forward.heads, 2, 0);
    check_close(forward.kv_heads, 2, 0);
    check_close(forward.queries, 8, 0);
    check_close(forward.keys, 8, 0);
    check_close(forward.head_dim, 3, 0);
    check_close(forward.value_dim, 3, 0);
    check_close(forward.flop, 2.0 * 2 * 2 * 8 * 8 * 6 * 0.5625, 1e-12); /* (8 + 1) / 16 pairs */
    check_close(forward.read_elements, 2 * 18 * 8, 1e-12);
    check_close(forward.write_elements, 2 * 6 * 8, 1e-12);
    check_close(forward.extra_bytes, 2 * 4 * 2 * 8, 1e-12);
    check_close(forward.launches, 1, 0);
    check_close(backward.flop, 2.5 * forward.flop, 1e-12); /* the scores once more */
    check_close(backward.read_elements, 2 * (18 + 12) * 8, 1e-12);
    check_close(backward.write_elements, 2 * 18 * 8, 1e-12);
    check_close(a->saved.own_elements, 0, 0);
    check_close(a->saved.elements, 48, 0);
    check_close(a->saved.bytes, 4 * 2 * 8, 0);
}

/* 4 query heads share 2 key and value heads of 3: 4*3 + 2*2*3 = 24 channels; cross attention to 5
 * keys. */
static void attention_shapes(void **state) {
    struct dl_workload net;
    build(&net,
          TOKENS(8) "{'kind':'embedding','name':'e','rows':9,'out':24},{'kind':'attention','heads':"
                    "4,'kv_heads':2},"
                    "{'kind':'embedding','name':'k','from':'input','rows':9,'out':24,'tokens':5},"
                    "{'kind':'attention','name':'cross','from':['e','k','k'],'heads':1,'additive':"
                    "true}]}");
    expect_shape(&net.layers[1], "12x8");
    expect_shape(&net.layers[3], "24x8");
    check_close(net.layers[3].forward_macs, 2 * 8 * 5 * 24, 0);
    check_close(net.layers[3].parameter_elements, 24 + 1 + 24, 0);
    expect_gemm(&net.layers[3], DL_FORWARD, 1, 0, 5, 8, 24, 1, true, false);
}

/* i = 6, h = 4 on 5 tokens: 4*4*(6 + 4) = 160 weights and 2*16 biases a direction, 160*5
 * multiply-adds. */
static void lstm_layer(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(5) "{'kind':'embedding','rows':9,'out':6},{'kind':'lstm','out':4,'"
                          "bidirectional':true}]}");
    const struct dl_layer *lstm = &net.layers[1];
    expect_shape(lstm, "8x5");
    check_close(lstm->parameter_elements, 2 * (160 + 32), 0);
    assert_int_equal(lstm->parameter_count, 8);
    check_close(lstm->forward_macs, 2 * 160 * 5, 0);
    expect_gemm(lstm, DL_FORWARD, 3, 0, 16, 15, 6, 2, true, false);
    expect_gemm(lstm, DL_FORWARD, 3, 1, 16, 3, 4, 10, true, false);
    check_close(kernel_of(lstm, DL_FORWARD, 3, 1).launches, 10, 0);
    check_close(lstm->saved.elements, 2 * 5 * 4 * 5 + 8 * 5, 0);
}

/* Layer norm of 6 channels on 5 tokens; 2 statistics of 4 bytes a token. */
static void layernorm_layer(void **state) {
    struct dl_workload net;
    build(&net,
          TOKENS(5) "{'kind':'embedding','rows':9,'out':6},{'kind':'layernorm'},{'kind':'gelu'}]}");
    const struct dl_layer *norm = &net.layers[1];
    check_close(norm->parameter_elements, 12, 0);
    check_close(norm->saved.bytes, 40, 0);
    expect_stream(norm, DL_FORWARD, 2, 0, 60, 60, 80);
    expect_stream(norm, DL_BACKWARD_DATA, 2, 0, 120, 60, 80);
    expect_stream(norm, DL_BACKWARD_WEIGHTS, 2, 0, 120, 0, 80);
    check_close(norm->saved.elements, 30, 0); /* gelu reads its input again */
}

/* Three vectors of 4: 3*3*4 multiply-adds, 4 + 3*2/2 outputs. */
static void dot_interaction(void **state) {
    struct dl_workload net;
    build(&net, VECTOR(7) "{'kind':'dense','out':4},{'kind':'embedding','name':'a','from':'input','"
                          "rows':9,'out':4},"
                          "{'kind':'embedding','name':'b','from':'input','rows':9,'out':4},"
                          "{'kind':'dot_interaction','from':['dense','a','b']}]}");
    const struct dl_layer *dot = &net.layers[3];
    expect_shape(dot, "7");
    check_close(dot->forward_macs, 36, 0);
    expect_gemm(dot, DL_FORWARD, 2, 1, 3, 3, 4, 2, true, false);
}

static void joining_and_cutting(void **state) {
    struct dl_workload net;
    build(
        &net,
        IMAGE(
            4, 6,
            6) "{'kind':'conv','name':'a','out':4,'kernel':1},{'kind':'conv','name':'b','out':6,'"
               "kernel':3},"
               "{'kind':'crop','name':'cut','from':['a','b']},{'kind':'concat','from':['cut','b']},"
               "{'kind':'global_pool','name':'g'},{'kind':'mul','from':['concat','g']},{'kind':'"
               "scale'},"
               "{'kind':'tokens'},{'kind':'prepend','tokens':1},{'kind':'position'},{'kind':'slice'"
               ",'tokens':1}]}");
    const struct dl_layer *l = net.layers;
    expect_shape(&l[2], "4x4x4");
    expect_stream(&l[2], DL_FORWARD, 1, 0, 64, 64, 0);
    expect_stream(&l[2], DL_BACKWARD_DATA, 1, 0, 64, 144, 0); /* zeros around */
    expect_shape(&l[3], "10x4x4");
    expect_stream(&l[3], DL_FORWARD, 1, 0, 160, 160, 0);
    assert_int_equal(l[1].consumers, 1); /* the crop only asks for its size */
    expect_stream(&l[5], DL_FORWARD, 1, 0, 170, 160, 0);
    assert_int_equal(l[3].consumers, 2);
    expect_shape(&l[7], "10x16");
    expect_shape(&l[8], "10x17");
    check_close(l[8].parameter_elements, 10, 0);
    check_close(l[9].parameter_elements, 170, 0);
    expect_shape(&l[10], "10x1");
}

static void dropout_of_zero_is_the_identity(void **state) {
    struct dl_workload net;
    build(&net, VECTOR(4) "{'kind':'dense','out':4},{'kind':'dropout','dropout':0},"
                          "{'kind':'dense','name':'d','out':4}]}");
    assert_int_equal(kernel_count(&net.layers[1], DL_FORWARD), 0);
    /* what the second dense reads is the first one's output */
    check_close(net.layers[0].saved.elements, 4, 0);
    check_close(net.layers[1].saved.elements + net.layers[1].saved.bytes, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_of_kinds),
        cmocka_unit_test(conv_of_resnet),
        cmocka_unit_test(conv_variants),
        cmocka_unit_test(conv_transpose),
        cmocka_unit_test(dense_gemms),
        cmocka_unit_test(embedding_traffic),
        cmocka_unit_test(bandwidth_bound_layers),
        cmocka_unit_test(residual_connection),
        cmocka_unit_test(pooling_rounds),
        cmocka_unit_test(attention_unfused),
        cmocka_unit_test(attention_flash),
        cmocka_unit_test(attention_shapes),
        cmocka_unit_test(lstm_layer),
        cmocka_unit_test(layernorm_layer),
        cmocka_unit_test(dot_interaction),
        cmocka_unit_test(joining_and_cutting),
        cmocka_unit_test(dropout_of_zero_is_the_identity),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}

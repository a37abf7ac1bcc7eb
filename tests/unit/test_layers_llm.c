/* Layers of today's transformers by hand: shapes, parameters, multiply-adds, kernels, what is kept.
 */
#include "model/workload/layer.h"
#include "tests/check.h"
#include "tests/load_workload.h"

static const struct dl_kernel_facts PLAIN = {.precision = DL_FP32};

#define TOKENS(n)                                                                                  \
    "{'format':'dlmodel-workload','version':1,'name':'t','summary':'s','source':'x',"              \
    "'input':{'tokens':" #n "},'layers':["

static void expect_error(const char *text, const char *key, const char *message) {
    struct dl_arena arena = {0};
    struct dl_workload w;
    struct dl_err err;
    assert_int_equal(load_text(text, NULL, 0, &arena, &w, &err), DL_ERR_INPUT);
    if (strstr(err.key, key) == NULL || strstr(err.message, message) == NULL)
        fail_msg("expected %s: %s; found %s: %s", key, message, err.key, err.message);
    dl_arena_free(&arena);
}

/* The only kernel of a pass over one sample. */
static struct dl_kernel kernel_of(const struct dl_layer *layer, enum dl_pass pass) {
    struct dl_kernel kernels[DL_LAYER_KERNELS];
    assert_int_equal(layer->kind->kernels(layer, &PLAIN, pass, 1.0, kernels), 1);
    return kernels[0];
}

static void expect_stream(const struct dl_layer *layer, enum dl_pass pass, double reads,
                          double writes, double bytes) {
    const struct dl_kernel kernel = kernel_of(layer, pass);
    assert_int_equal(kernel.op, DL_OP_STREAM);
    check_close(kernel.read_elements, reads, 1e-12);
    check_close(kernel.write_elements, writes, 1e-12);
    check_close(kernel.extra_bytes, bytes, 1e-12);
}

static int kernel_count(const struct dl_layer *layer, enum dl_pass pass) {
    struct dl_kernel kernels[DL_LAYER_KERNELS];
    return layer->kind->kernels(layer, &PLAIN, pass, 2.0, kernels);
}

/* 10 channels become 5; 8 tokens: reads 80, writes 40; backward reads 80 + 40 and writes 80; the
 * input stays for backward, the output only where its reader needs it. */
static void gated_activations(void **state) {
    static const char *const kinds[] = {"swiglu", "geglu"};
    for (int i = 0; i < 2; i++) {
        char text[400];
        struct dl_workload net;
        snprintf(text, sizeof text,
                 TOKENS(8) "{'kind':'embedding','rows':9,'out':10},{'kind':'%s'},"
                           "{'kind':'dense','out':3}]}",
                 kinds[i]);
        build(&net, text);
        const struct dl_layer *a = &net.layers[1];
        check_close(a->out.channels, 5, 0);
        check_close(a->parameter_elements, 0, 0);
        check_close(a->forward_macs, 0, 0);
        expect_stream(a, DL_FORWARD, 80, 40, 0);
        expect_stream(a, DL_BACKWARD_DATA, 120, 80, 0);
        assert_int_equal(kernel_count(a, DL_BACKWARD_WEIGHTS), 0);
        check_close(net.layers[0].saved.elements, 80, 0);
        check_close(a->saved.elements, 40, 0); /* the dense layer reads it */
    }
    expect_error(TOKENS(8) "{'kind':'embedding','rows':9,'out':5},{'kind':'swiglu'}]}", "layers[1]",
                 "even number of channels");
}

static void squared_relu(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(8) "{'kind':'embedding','rows':9,'out':5},{'kind':'relu2'}]}");
    const struct dl_layer *a = &net.layers[1];
    check_close(a->out.channels, 5, 0);
    expect_stream(a, DL_FORWARD, 40, 40, 0);
    expect_stream(a, DL_BACKWARD_DATA, 80, 40, 0);
    check_close(net.layers[0].saved.elements, 40, 0);
    check_close(a->saved.elements, 0, 0);
}

/* 5 weights and no bias; a number of 4 bytes for each of 8 tokens. */
static void rmsnorm_layer(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(8) "{'kind':'embedding','rows':9,'out':5},{'kind':'rmsnorm'},"
                          "{'kind':'layernorm','bias':0},{'kind':'layernorm','bias':false},"
                          "{'kind':'layernorm'}]}");
    const struct dl_layer *norm = &net.layers[1];
    check_close(norm->parameter_elements, 5, 0);
    check_close(norm->saved.bytes, 32, 0);
    expect_stream(norm, DL_FORWARD, 40, 40, 32);
    expect_stream(norm, DL_BACKWARD_DATA, 80, 40, 32);
    expect_stream(norm, DL_BACKWARD_WEIGHTS, 80, 0, 32);
    check_close(net.layers[2].parameter_elements, 5, 0);
    check_close(net.layers[3].parameter_elements, 5, 0);
    check_close(net.layers[4].parameter_elements, 10, 0);
}

/* 4 query heads and 2 of keys, 2 of values, 3 channels each: 24 channels, of which 18 turn or are
 * normalized; 8 tokens. A norm has 3 weights for queries and 3 for keys. */
static void heads_turn_and_are_normalized(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(8) "{'kind':'embedding','rows':9,'out':24},"
                          "{'kind':'head_norm','heads':4,'kv_heads':2},"
                          "{'kind':'rope','heads':4,'kv_heads':2},"
                          "{'kind':'rope','name':'part','heads':4,'kv_heads':2,'rotary':1},"
                          "{'kind':'rope','name':'queries','heads':8}]}");
    const struct dl_layer *norm = &net.layers[1], *rope = &net.layers[2];
    check_close(norm->parameter_elements, 6, 0);
    check_close(norm->saved.bytes, 4 * 6 * 8, 0);
    expect_stream(norm, DL_FORWARD, 18 * 8, 18 * 8, 4 * 6 * 8);
    check_close(kernel_of(norm, DL_FORWARD).launches, 2, 0);
    expect_stream(rope, DL_FORWARD, 18 * 8, 18 * 8, 0);
    expect_stream(rope, DL_BACKWARD_DATA, 18 * 8, 18 * 8, 0);
    assert_int_equal(kernel_count(rope, DL_BACKWARD_WEIGHTS), 0);
    check_close(rope->saved.elements, 0, 0);
    expect_stream(find_layer(&net, "part"), DL_FORWARD, 6 * 8, 6 * 8, 0);
    expect_stream(find_layer(&net, "queries"), DL_FORWARD, 24 * 8, 24 * 8, 0);
    expect_error(TOKENS(8) "{'kind':'embedding','rows':9,'out':24},{'kind':'rope','heads':8,"
                           "'rotary':4}]}",
                 "rotary", "at most the 3 channels");
    expect_error(
        TOKENS(8) "{'kind':'embedding','rows':9,'out':24},{'kind':'head_norm','heads':3}]}",
        "heads", "9 heads");
}

/* Causal, 8 tokens, at most 3 keys: 1 + 2 + 3 + 5 * 3 = 21 pairs of 8 * 8; without the mask 8 * 3.
 * 2 heads of 3 channels. */
static void window(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(8) "{'kind':'embedding','rows':9,'out':18},"
                          "{'kind':'attention','heads':2,'flash':1,'causal':1,'window':3},"
                          "{'kind':'attention','name':'both','from':'embedding','heads':2,"
                          "'flash':1,'window':3},"
                          "{'kind':'attention','name':'wide','from':'embedding','heads':2,"
                          "'causal':1,'window':100,'sinks':1}]}");
    const struct dl_layer *causal = &net.layers[1], *both = find_layer(&net, "both"),
                          *wide = find_layer(&net, "wide");
    check_close(dl_layer_attention_pairs(causal), 21, 1e-12);
    check_close(causal->forward_macs, 8 * 3 * 2 * 6, 0);
    check_close(dl_layer_model_macs(causal), 21 * 2 * 6, 1e-12);
    check_close(kernel_of(causal, DL_FORWARD).flop, 2 * 21 * 2 * 6, 1e-12);
    check_close(kernel_of(causal, DL_FORWARD).window, 3, 0);
    check_close(dl_layer_attention_pairs(both), 24, 1e-12);
    check_close(dl_layer_model_macs(both), both->forward_macs, 1e-12);
    check_close(dl_layer_attention_pairs(wide), 36, 1e-12);
    check_close(wide->forward_macs, 8 * 8 * 2 * 6, 0);
    check_close(wide->parameter_elements, 2, 0); /* a sink for each head */
}

/* 8-bit plans run attention in bf16; the plan's other precisions are its own. */
static void attention_under_8_bit_runs_in_bf16(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(8) "{'kind':'embedding','rows':9,'out':18},"
                          "{'kind':'attention','heads':2,'flash':1}]}");
    const struct dl_layer *a = &net.layers[1];
    struct dl_kernel k[DL_LAYER_KERNELS];
    for (int p = DL_FP32; p < DL_PRECISIONS; p++) {
        const struct dl_kernel_facts facts = {.precision = (enum dl_precision)p};
        assert_int_equal(a->kind->kernels(a, &facts, DL_FORWARD, 1, k), 1);
        assert_int_equal(k[0].has_type, p >= DL_FP8);
        if (k[0].has_type) assert_int_equal(k[0].type, DL_BF16);
    }
}

/* The kernel of attention decides what is kept: composed 2 heads x 8 x 8 scores, flash 4 bytes a
 * head and query. */
static void attention_kernel_decides_what_is_kept(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(8) "{'kind':'embedding','rows':9,'out':18},"
                          "{'kind':'attention','heads':2}]}");
    struct dl_layer a = net.layers[1];
    const double kept = a.saved.elements;
    check_close(a.saved.own_elements, 128, 0);
    dl_layer_set_attention(&a, DL_ATTENTION_OPEN);
    check_close(a.saved.own_elements, 128, 0);
    dl_layer_set_attention(&a, DL_ATTENTION_FLASH);
    check_close(a.saved.own_elements, 0, 0);
    check_close(a.saved.elements, kept - 128, 0);
    check_close(a.saved.bytes, 4 * 2 * 8, 0);
    dl_layer_set_attention(&a, DL_ATTENTION_COMPOSED);
    check_close(a.saved.own_elements, 128, 0);
    check_close(a.saved.bytes, 0, 0);
}

/* Latent attention: 2 heads with queries and keys of 4 + 2 channels, values of 3; the latent has 5
 * channels and 2 that turn. 8 tokens. Keys: 2 (4 + 3) = 14 channels and 2 of the latent become 2 (6
 * + 3) = 18. Attention: 2 heads x 8 x 8 pairs x (6 + 3). */
static void latent_attention(void **state) {
    struct dl_workload net;
    build(&net,
          TOKENS(8) "{'kind':'embedding','name':'x','rows':9,'out':10},"
                    "{'kind':'dense','name':'q','out':12},"
                    "{'kind':'latent','name':'kv_a','from':'x','out':7},"
                    "{'kind':'split','name':'c','out':5},{'kind':'dense','name':'kv_b','out':14},"
                    "{'kind':'latent_keys','name':'keys','from':['kv_b','kv_a'],'heads':2,"
                    "'rotary':2},"
                    "{'kind':'attention','name':'core','from':['q','keys'],'heads':2,'flash':1}]}");
    const struct dl_layer *keys = find_layer(&net, "keys"), *core = find_layer(&net, "core");
    check_close(find_layer(&net, "kv_a")->parameter_elements, 70, 0);
    check_close(keys->out.channels, 18, 0);
    expect_stream(keys, DL_FORWARD, 16 * 8, 18 * 8, 0);
    expect_stream(keys, DL_BACKWARD_DATA, 18 * 8, 16 * 8, 0);
    check_close(core->out.channels, 6, 0);
    check_close(core->forward_macs, 2 * 64 * 9, 0);
    const struct dl_kernel forward = kernel_of(core, DL_FORWARD),
                           backward = kernel_of(core, DL_BACKWARD_DATA);
    check_close(forward.head_dim, 6, 0);
    check_close(forward.value_dim, 3, 0);
    check_close(forward.flop, 2 * 2 * 64 * 9, 1e-12);
    check_close(backward.flop, 2 * 2 * 64 * (3 * 6 + 2 * 3), 1e-12);
    check_close(forward.read_elements, (12 + 18) * 8, 1e-12);
    check_close(forward.write_elements, 6 * 8, 1e-12);
    /* the same composed: scores of 6 channels, context of 3 */
    struct dl_layer composed = *core;
    struct dl_kernel k[DL_LAYER_KERNELS];
    dl_layer_set_attention(&composed, DL_ATTENTION_COMPOSED);
    double flop = 0;
    int count = composed.kind->kernels(&composed, &PLAIN, DL_FORWARD, 1, k);
    for (int i = 0; i < count; i++) flop += k[i].op == DL_OP_GEMM ? k[i].flop : 0;
    check_close(flop, 2 * 2 * 64 * 9, 1e-12);
    flop = 0;
    count = composed.kind->kernels(&composed, &PLAIN, DL_BACKWARD_DATA, 1, k);
    for (int i = 0; i < count; i++) flop += k[i].op == DL_OP_GEMM ? k[i].flop : 0;
    check_close(flop, 2 * 2 * 2 * 64 * 9, 1e-12);
}

/* Values wider than what is left beside the keys, and latents of another length. */
static void latent_errors(void **state) {
    expect_error(TOKENS(8) "{'kind':'embedding','name':'x','rows':9,'out':12},"
                           "{'kind':'attention','from':['x','x'],'heads':2}]}",
                 "kv_heads", "do not divide");
    expect_error(TOKENS(8) "{'kind':'embedding','name':'x','rows':9,'out':12},"
                           "{'kind':'latent_keys','from':['x','x'],'heads':5,'rotary':2}]}",
                 "layers[1]", "5 heads");
    expect_error(TOKENS(8) "{'kind':'embedding','rows':9,'out':12},{'kind':'latent'}]}",
                 "layers[1]", "layers of kind latent need 'out'");
}

/* h = 10, f = 6, 4 experts, 2 for each of 8 tokens. Gated: router 40, first 4 * 10 * 12, second 4 *
 * 6 * 10; biases 4, 4 * 12, 4 * 10. A token uses 2 of 4 experts. Kept: 4 and 2 * (10 + 3 * 6) a
 * token. */
static void gated_experts(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(8) "{'kind':'embedding','rows':9,'out':10},"
                          "{'kind':'moe','out':6,'experts':4,'topk':2,'capacity':0,'gated':1,"
                          "'router_bias':1,'bias':1}]}");
    const struct dl_layer *moe = &net.layers[1];
    const double router = 40 + 4, experts = 480 + 48 + 240 + 40;
    check_close(moe->parameter_elements, router + experts, 0);
    check_close(dl_layer_active_parameters(moe), router + experts / 2, 1e-12);
    check_close(net.active_parameters, 90 + router + experts / 2, 1e-12);
    check_close(moe->forward_macs, 8 * (40 + 2 * (120 + 60)), 0);
    check_close(moe->saved.own_elements, 8 * (4 + 2 * (10 + 18)), 0);
    struct dl_kernel k[DL_LAYER_KERNELS];
    assert_int_equal(moe->kind->kernels(moe, &PLAIN, DL_FORWARD, 1, k), 7);
    check_close(k[3].m, 12, 0); /* 16 rows over 4 experts: no row is dropped or added */
    check_close(k[3].n, 4, 0);
    check_close(k[4].read_elements, 16 * 12, 0);
    check_close(k[4].write_elements, 16 * 6, 0);
    check_close(k[5].k, 6, 0);
    double flop = 0;
    const int data = moe->kind->kernels(moe, &PLAIN, DL_BACKWARD_DATA, 1, k);
    for (int i = 0; i < data; i++) flop += k[i].op == DL_OP_GEMM ? k[i].flop : 0;
    check_close(flop, 2 * moe->forward_macs, 1e-12);
    flop = 0;
    const int weights = moe->kind->kernels(moe, &PLAIN, DL_BACKWARD_WEIGHTS, 1, k);
    for (int i = 0; i < weights; i++) flop += k[i].op == DL_OP_GEMM ? k[i].flop : 0;
    check_close(flop, 2 * moe->forward_macs, 1e-12);
    expect_error(TOKENS(8) "{'kind':'embedding','rows':9,'out':10},"
                           "{'kind':'moe','out':6,'experts':4,'capacity':0.05}]}",
                 "capacity", "0 to drop no token");
}

/* One value for each token multiplies all its channels. */
static void token_gate(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(8) "{'kind':'embedding','name':'x','rows':9,'out':10},"
                          "{'kind':'latent','name':'gate','from':'x','out':1},"
                          "{'kind':'mul','from':['x','gate']}]}");
    const struct dl_layer *mul = &net.layers[2];
    check_close(mul->out.channels, 10, 0);
    expect_stream(mul, DL_FORWARD, 88, 80, 0);
}

/* A stream of 24 elements a sample and 4 of a table; a GEMM whose rows grow with the batch; 6 bytes
 * backward. Half of the layer's elements are half of its work, the table stays whole. */
static void recorded_work(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(8) "{'kind':'embedding','rows':9,'out':3},"
                          "{'kind':'recorded','out':2,'size':[3,4],'work':{'weights':{'gamma':4},"
                          "'kept_elements':5,'kept_bytes':6,'keeps_input':true,'kernels':["
                          "{'pass':'forward','read_elements':24,'write_elements':12,"
                          "'once_elements':4,'launches':3},"
                          "{'pass':'forward','m':8,'n':5,'k':3,'grows':'m'},"
                          "{'pass':'backward_data','bytes':6},"
                          "{'pass':'backward_weights','m':5,'n':3,'k':8,'grows':'none'}]}}]}");
    struct dl_layer layer = net.layers[1];
    struct dl_kernel out[DL_LAYER_KERNELS];
    check_close(dl_shape_elements(&layer.out), 24, 0);
    check_close(layer.parameter_elements, 4, 0);
    check_close(layer.forward_macs, 8 * 5 * 3, 0);
    check_close(layer.saved.elements, 5, 0);
    check_close(net.layers[0].saved.elements, 24, 0); /* the input */
    assert_int_equal(layer.kind->kernels(&layer, &PLAIN, DL_FORWARD, 2, out), 2);
    check_close(out[0].read_elements, 2 * 24 + 4, 0);
    check_close(out[0].write_elements, 2 * 12, 0);
    check_close(out[0].launches, 3, 0);
    check_close(out[1].m, 16, 0);
    check_close(out[1].flop, 2 * 16 * 5 * 3, 0);
    assert_int_equal(layer.kind->kernels(&layer, &PLAIN, DL_BACKWARD_WEIGHTS, 2, out), 1);
    check_close(out[0].flop, 2 * 5 * 3 * 8, 0);
    layer.out.channels /= 2;
    layer.kind->kernels(&layer, &PLAIN, DL_FORWARD, 2, out);
    check_close(out[0].read_elements, 24 + 4, 0);
    check_close(out[1].m, 8, 0);
    expect_error(TOKENS(8) "{'kind':'recorded','out':2,'work':{'weights':{'w':0}}}]}", "work",
                 "weights.w: expected at least 1");
    expect_error(TOKENS(8) "{'kind':'dense','out':2,'work':{}}]}", "work",
                 "layers of kind dense have no 'work'");
}

static void views_and_copies(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(8) "{'kind':'embedding','rows':9,'out':6},"
                          "{'kind':'view','name':'whole','out':12,'size':[2,2]},"
                          "{'kind':'view','name':'part','out':5,'size':4},"
                          "{'kind':'copy','out':20}]}");
    const struct dl_layer *whole = find_layer(&net, "whole"), *part = find_layer(&net, "part"),
                          *copy = find_layer(&net, "copy");
    assert_int_equal(whole->out.dims, 2);
    check_close(whole->out.size[DL_DIMS - 1], 2, 0);
    assert_int_equal(copy->out.dims, 0);
    assert_int_equal(kernel_count(whole, DL_FORWARD) + kernel_count(whole, DL_BACKWARD_DATA), 0);
    expect_stream(part, DL_BACKWARD_DATA, 20, 48, 0);
    expect_stream(copy, DL_FORWARD, 20, 20, 0);
    expect_stream(copy, DL_BACKWARD_DATA, 20, 20, 0);
    expect_error(TOKENS(8) "{'kind':'view','out':9}]}", "out", "at most the input's 8 elements");
    expect_error(TOKENS(8) "{'kind':'view','out':1,'size':[1,1,1,1]}]}", "size", "at most 3");
}

/* 6 channels of 4 x 5 positions: group norm moves 2R + 1W forward and 4R + 1W backward of 120
 * elements, keeps 2 x 4 bytes for each of 3 groups; a vector added to it costs its 6 elements
 * forward and 1R of 120 backward; a given tensor costs its 4 bytes an element of input. */
static void group_norm_and_conditions(void **state) {
    struct dl_workload net;
    build(&net, "{'format':'dlmodel-workload','version':1,'name':'t','summary':'s','source':'x',"
                "'input':{'channels':6,'size':[4,5]},'layers':["
                "{'name':'x','kind':'conv','out':6,'kernel':1},"
                "{'name':'norm','kind':'groupnorm','groups':3},"
                "{'name':'time','kind':'given','from':'input','out':7},"
                "{'name':'shift','kind':'dense','out':6},"
                "{'kind':'add','from':['norm','shift']}]}");
    const struct dl_layer *l = net.layers;
    expect_stream(&l[1], DL_FORWARD, 240, 120, 0);
    expect_stream(&l[1], DL_BACKWARD_DATA, 480, 120, 0);
    assert_int_equal(kernel_count(&l[1], DL_BACKWARD_WEIGHTS), 0);
    check_close(kernel_of(&l[1], DL_FORWARD).launches, 3, 0);
    check_close(l[1].parameter_elements, 12, 0);
    check_close(l[1].saved.bytes, 24, 0);
    assert_int_equal(kernel_count(&l[2], DL_FORWARD), 0);
    assert_int_equal(kernel_count(&l[3], DL_BACKWARD_DATA), 0); /* nothing asks for it */
    expect_stream(&l[4], DL_FORWARD, 126, 120, 0);
    expect_stream(&l[4], DL_BACKWARD_DATA, 120, 6, 0);
    check_close(net.input_bytes_per_sample, 4 * (120 + 7), 0);
    expect_error("{'format':'dlmodel-workload','version':1,'name':'t','summary':'s','source':'x',"
                 "'input':{'channels':6,'size':[4,5]},'layers':[{'kind':'groupnorm','groups':4}]}",
                 "layers[0].groups", "6 channels do not divide into 4 groups");
}

/* 3 tokens of text and 8 of an image, 4 channels: joined 11 tokens, copied 1R + 1W; placed among
 * the 8, 12 + 32 elements each way. A norm without weights has no pass for them. */
static void tokens_of_two_kinds(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(8) "{'name':'x','kind':'embedding','rows':9,'out':4},"
                          "{'name':'norm','kind':'plain_norm'},"
                          "{'name':'ids','kind':'given','from':'input','out':1,'size':3},"
                          "{'name':'y','kind':'embedding','rows':5,'out':4},"
                          "{'name':'joined','kind':'join','from':['y','norm']},"
                          "{'name':'placed','kind':'place','from':['norm','y']}]}");
    const struct dl_layer *l = net.layers;
    expect_stream(&l[1], DL_FORWARD, 32, 32, 64);
    assert_int_equal(kernel_count(&l[1], DL_BACKWARD_WEIGHTS), 0);
    check_close(l[1].parameter_elements, 0, 0);
    check_close(l[4].out.size[2], 11, 0);
    expect_stream(&l[4], DL_FORWARD, 44, 44, 0);
    expect_stream(&l[4], DL_BACKWARD_DATA, 44, 44, 0);
    check_close(l[5].out.size[2], 8, 0);
    expect_stream(&l[5], DL_FORWARD, 44, 44, 0);
    expect_error(TOKENS(8) "{'name':'x','kind':'embedding','rows':9,'out':4},"
                           "{'name':'ids','kind':'given','from':'input','out':4,'size':9},"
                           "{'kind':'place','from':['x','ids']}]}",
                 "layers[2]", "cannot place the tokens 4x9 in the sequence 4x8");
}

/* A layer that is used twice has its parameters once; gate and value may be two tensors. */
static void used_twice(void **state) {
    struct dl_workload net;
    build(&net, TOKENS(8) "{'kind':'embedding','name':'x','rows':9,'out':6},"
                          "{'kind':'dense','name':'a','out':6,'bias':1},"
                          "{'kind':'dense','name':'b','out':6,'bias':1,'tied':'a'},"
                          "{'kind':'swiglu','from':['a','b']}]}");
    check_close(net.parameters, 9 * 6 + 6 * 6 + 6, 0);
    check_close(net.layers[2].forward_macs, 6 * 6 * 8, 0);
    expect_stream(&net.layers[3], DL_FORWARD, 2 * 48, 48, 0);
    expect_error(TOKENS(8) "{'kind':'embedding','name':'x','rows':9,'out':6},{'kind':'dense','out':"
                           "3},{'kind':'swiglu','from':['x','dense']}]}",
                 "", "one shape");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gated_activations),
        cmocka_unit_test(squared_relu),
        cmocka_unit_test(rmsnorm_layer),
        cmocka_unit_test(heads_turn_and_are_normalized),
        cmocka_unit_test(window),
        cmocka_unit_test(attention_under_8_bit_runs_in_bf16),
        cmocka_unit_test(attention_kernel_decides_what_is_kept),
        cmocka_unit_test(latent_attention),
        cmocka_unit_test(latent_errors),
        cmocka_unit_test(gated_experts),
        cmocka_unit_test(token_gate),
        cmocka_unit_test(recorded_work),
        cmocka_unit_test(views_and_copies),
        cmocka_unit_test(used_twice),
        cmocka_unit_test(group_norm_and_conditions),
        cmocka_unit_test(tokens_of_two_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}

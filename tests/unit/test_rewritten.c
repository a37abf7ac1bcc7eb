/* F-REWRITE: a network written out with one layer replaced by itself, or by itself and a layer that
 * changes nothing, is the network: every layer of the file, read again, has what it had. */
#include "model/search/advise/rewrite.h"
#include "model/workload/layer.h"
#include "tests/check.h"
#include "tests/load_workload.h"

static int first_itself(const struct dl_workload *workload, int index, struct dl_rewritten out[]) {
    (void)workload, (void)out;
    return index == 0;
}
static int nothing(const struct dl_workload *workload, int index, struct dl_rewritten out[]) {
    (void)workload, (void)index, (void)out;
    return 0;
}
/* A 1 x 1 convolution of as many channels before the first layer. */
static int one_more(const struct dl_workload *workload, int index, struct dl_rewritten out[]) {
    if (index != 0) return 0;
    out[1] = out[0];
    struct dl_layer *l = &out[0].layer;
    *l = (struct dl_layer){.kind = &dl_layer_conv,
                           .in = workload->input,
                           .requested.hidden = workload->input.channels,
                           .groups = 1,
                           .window.kernel = {1, 1, 1},
                           .window.stride = {1, 1, 1},
                           .window.dilation = {1, 1, 1}};
    return 2;
}

static void read_again(const char *text, struct dl_arena *arena, struct dl_workload *out) {
    struct dl_json *doc = NULL;
    struct dl_err err = {0};
    assert_non_null(text);
    if (dl_json_parse("rewritten", text, strlen(text), arena, &doc, &err) != DL_OK ||
        dl_workload_build((const struct dl_json *const[]){doc}, 1, NULL, 0, arena, out, &err) !=
            DL_OK)
        fail_msg("%d: %s: %s", err.line, err.key, err.message);
}

static void same_shape(const struct dl_shape *a, const struct dl_shape *b) {
    assert_int_equal(a->dims, b->dims);
    check_close(a->channels, b->channels, 0);
    for (int d = 0; d < DL_DIMS; d++) check_close(a->size[d], b->size[d], 0);
}

static void same_layer(const struct dl_layer *a, const struct dl_layer *b, int more) {
    assert_string_equal(a->name, b->name);
    assert_ptr_equal(a->kind, b->kind);
    assert_int_equal(a->input_count, b->input_count);
    for (int i = 0; i < a->input_count; i++)
        assert_int_equal(a->inputs[i], b->inputs[i] < 0 ? b->inputs[i] : b->inputs[i] + more);
    same_shape(&a->in, &b->in);
    same_shape(&a->out, &b->out);
    const double pairs[][2] = {{a->groups, b->groups},
                               {a->dropout, b->dropout},
                               {a->parameter_elements, b->parameter_elements},
                               {a->buffer_elements, b->buffer_elements},
                               {a->forward_macs, b->forward_macs},
                               {a->saved.elements, b->saved.elements},
                               {a->saved.bytes, b->saved.bytes}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        check_close(pairs[i][0], pairs[i][1], 1e-12);
    for (int d = 0; d < DL_DIMS; d++) {
        check_close(a->window.kernel[d], b->window.kernel[d], 0);
        check_close(a->window.stride[d], b->window.stride[d], 0);
        check_close(a->window.pad[d], b->window.pad[d], 0);
        check_close(a->window.dilation[d], b->window.dilation[d], 0);
    }
    assert_int_equal(a->bias, b->bias);
    assert_int_equal(a->window.ceil_mode, b->window.ceil_mode);
    assert_int_equal(a->in_place, b->in_place);
}

static void check_network(const struct dl_workload *w, struct dl_arena *arena) {
    struct dl_workload again;
    assert_null(dl_rewrite(w, "x", nothing, arena));
    const char *text = dl_rewrite(w, "x", first_itself, arena);
    read_again(text, arena, &again);
    assert_string_equal(again.name, dl_arena_printf(arena, "%s-x", w->name));
    assert_string_equal(again.summary, dl_arena_printf(arena, "%s, rewritten: x", w->name));
    assert_string_equal(again.source, w->source);
    assert_string_equal(again.family, w->family);
    assert_int_equal(again.dataset == NULL, w->dataset == NULL);
    if (w->dataset != NULL) assert_string_equal(again.dataset, w->dataset);
    check_close(again.epoch_samples, w->epoch_samples, 0);
    check_close(again.sample_bytes, w->sample_bytes, 0);
    same_shape(&again.input, &w->input);
    assert_int_equal(again.layer_count, w->layer_count);
    for (int i = 0; i < w->layer_count; i++) same_layer(&again.layers[i], &w->layers[i], 0);
    check_close(again.parameters, w->parameters, 0);
    check_close(again.forward_macs_per_sample, w->forward_macs_per_sample, 1e-12);
    check_close(again.activation_elements_per_sample, w->activation_elements_per_sample, 1e-12);
    if (w->layers[0].kind != &dl_layer_conv) return;
    read_again(dl_rewrite(w, "more", one_more, arena), arena, &again);
    assert_int_equal(again.layer_count, w->layer_count + 1);
    assert_string_equal(again.layers[0].name, dl_arena_printf(arena, "%s_0", w->layers[0].name));
    assert_int_equal(again.layers[0].inputs[0], -1);
    assert_int_equal(again.layers[1].inputs[0], 0);
    check_close(again.parameters, w->parameters + w->input.channels * w->input.channels, 0);
    for (int i = 1; i < w->layer_count; i++) same_layer(&again.layers[i + 1], &w->layers[i], 1);
}

static void networks(void **state) {
    static const char *const names[] = {"alexnet",     "alexnet_caffe", "googlenet",
                                        "resnet18",    "mobilenet_v2",  "squeezenet1_1",
                                        "densenet121", "vgg11",         "efficientnet_b0",
                                        "lenet",       "unet",          "inception_v3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct dl_workload w;
        load_name(names[i], NULL, 0, &test_arena, &w);
        check_network(&w, &test_arena);
    }
}

/* Keys that are there or not: groups, bias, dilation, rounding up, in place, dropout, sizes. */
static void keys(void **state) {
    static const char *const layers[] = {
        "{'kind':'conv','out':8,'kernel':3,'groups':1,'bias':true}",
        "{'kind':'conv','out':8,'kernel':[3,5],'groups':2,'stride':[1,2],'pad':[0,1]}",
        "{'kind':'conv','out':8,'kernel':3,'dilation':[2,1],'bias':false}",
        "{'kind':'conv_transpose','out':8,'kernel':2,'stride':2}",
        "{'kind':'maxpool','kernel':3,'stride':2,'ceil':true},{'kind':'relu'}",
        "{'kind':'avgpool','kernel':3,'stride':2,'ceil':false},{'kind':'relu','in_place':true}",
        "{'kind':'adaptive_pool','size':[4,5]},{'kind':'flatten'},{'kind':'dropout','dropout':0.3},"
        "{'kind':'dense','out':4,'bias':true}",
        "{'kind':'upsample','scale':2},{'kind':'global_pool'},{'kind':'flatten'},"
        "{'kind':'dropout','dropout':0.5,'in_place':true},{'kind':'dense','out':4},{'kind':'loss'}",
        "{'kind':'batchnorm'},{'kind':'lrn'},{'kind':'sigmoid'},{'kind':'tanh'}"};
    static const char *const heads[] = {"", "'dataset':'d',", "'epoch_samples':7,",
                                        "'sample_bytes':9,"};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        for (size_t h = 0; h < sizeof heads / sizeof *heads; h++) {
            struct dl_workload w;
            struct dl_err err;
            const char *text = dl_arena_printf(
                &test_arena,
                "{'format':'dlmodel-workload','version':1,'name':'n','summary':'s','source':'y',%s"
                "'family':'cnn','input':{'channels':4,'size':[17,16]},'layers':[%s]}",
                heads[h], layers[i]);
            if (load_text(text, NULL, 0, &test_arena, &w, &err) != DL_OK)
                fail_msg("%s: %s %s", layers[i], err.key, err.message);
            check_network(&w, &test_arena);
            /* only images of a known family, and no shared parameters */
            const struct dl_workload own = w;
            w.family = NULL;
            assert_null(dl_rewrite(&w, "x", first_itself, &test_arena));
            w.family = "transformer";
            assert_null(dl_rewrite(&w, "x", first_itself, &test_arena));
            w = own, w.input.dims = 0;
            assert_null(dl_rewrite(&w, "x", first_itself, &test_arena));
            w = own;
            ((struct dl_layer *)w.layers)[w.layer_count - 1].tied_to = 0;
            assert_null(dl_rewrite(&w, "x", first_itself, &test_arena));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(networks), cmocka_unit_test(keys)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}

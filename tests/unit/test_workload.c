/* The workload file format: blocks, repeats, parameters, extends, overrides; what each fault says
 * are cases of tests/golden/texts.txt. */
#include "model/workload/workload_expr.h"
#include "tests/check.h"
#include "tests/load_workload.h"

#define HEAD "{'format':'dlmodel-workload','version':1,'name':'t','summary':'s','source':'x',"
#define IMAGE HEAD "'input':{'channels':3,'size':[8,8]},"

static enum dl_code find(void *context, const char *name, double *out, struct dl_err *err) {
    (void)context;
    *out = 6.0;
    return strcmp(name, "six") == 0 ? DL_OK : dl_fail(err, DL_ERR_INPUT, "no %s", name);
}

static void deep_expressions_end(void **state) {
    char text[4001];
    double value;
    struct dl_expr_names names = {.find = find};
    const char *const patterns[] = {"(", "-", "!", "1?", "min("};
    for (int i = 0; i < 5; i++) {
        text[0] = '\0';
        for (size_t length = 0; length + 8 < sizeof text; length = strlen(text))
            strcpy(text + length, patterns[i]);
        assert_int_equal(dl_expr_eval(text, &names, &value, NULL), DL_ERR_INPUT);
    }
}

static const char *const blocks_text =
    IMAGE "'parameters':{'n':2,'w':'4*n'},"
          "'blocks':[{'name':'unit','arguments':['out','k'],'defaults':{'k':3},'layers':["
          "{'kind':'conv','name':'conv','out':'out + index','kernel':'k','pad':'k//2'},"
          "{'kind':'relu','name':'relu'},"
          "{'kind':'concat','from':['relu','in'],'when':'index > 0'}]}],"
          "'layers':[{'block':'unit','name':'u','repeat':'n','with':{'out':'w'}},"
          "{'kind':'add','name':'sum','from':['u','u']},"
          "{'kind':'global_pool'},{'kind':'flatten'},{'kind':'dense','out':10,'bias':true}]}";

static void blocks_repeat(void **state) {
    struct dl_workload w;
    struct dl_err err;
    if (load_text(blocks_text, NULL, 0, &test_arena, &w, &err) != DL_OK)
        fail_msg("%s: %s", err.key, err.message);
    assert_int_equal(w.layer_count, 2 + 3 + 4);
    assert_string_equal(w.layers[0].name, "u.0.conv");
    assert_string_equal(w.layers[2].name, "u.1.conv");
    assert_string_equal(w.layers[4].name, "u.1.concat");
    check_close(w.layers[0].out.channels, 8, 0);     /* out + index = 4*2 + 0 */
    check_close(w.layers[4].out.channels, 9 + 8, 0); /* 4*2 + 1, joined with the 8 before */
    assert_int_equal(w.layers[2].inputs[0], 1);
    assert_int_equal(find_layer(&w, "sum")->inputs[0], 4); /* "u" is the last repetition */
    check_close(w.parameters, 8 * 3 * 9 + 9 * 8 * 9 + 17 * 10 + 10, 0);
    assert_int_equal(w.parameter_tensors, 4);
    check_close(w.input_bytes_per_sample, 3 * 8 * 8 * 4, 0);
    assert_true(w.layers[0].first);
    assert_false(w.layers[2].first);
    check_nan(w.hidden);
}

static void overrides_set_parameters(void **state) {
    struct dl_workload w;
    struct dl_err err;
    struct dl_override set[] = {{"workload.n", "3", false}, {"links.intra.beta", "1", false}};
    assert_int_equal(load_text(blocks_text, set, 2, &test_arena, &w, &err), DL_OK);
    assert_true(set[0].used);
    assert_false(set[1].used);
    check_close(w.layers[0].out.channels, 12, 0);
    struct dl_override zero[] = {{"w", "0", false}};
    assert_int_equal(load_text(blocks_text, zero, 1, &test_arena, &w, &err), DL_ERR_USAGE);
    assert_string_equal(err.key, "w");
    struct dl_override word[] = {{"n", "many", false}};
    assert_int_equal(load_text(blocks_text, word, 1, &test_arena, &w, &err), DL_ERR_USAGE);
    struct dl_override input[] = {{"input", "9x9", false}}; /* this file has no height and width */
    assert_int_equal(load_text(blocks_text, input, 1, &test_arena, &w, &err), DL_ERR_USAGE);
    assert_string_equal(err.key, "input");
}

static void input_sizes(void **state) {
    struct dl_workload w;
    struct dl_override size[] = {{"input", "256x320", false}};
    load_name("resnet50", size, 1, &test_arena, &w);
    check_close(w.input.size[1], 256, 0);
    check_close(w.input.size[2], 320, 0);
    assert_true(size[0].used);
    struct dl_override with_channels[] = {{"input", "3x192x192", false}};
    load_name("resnet50", with_channels, 1, &test_arena, &w);
    check_close(w.input.size[1], 192, 0);
    struct dl_override cube[] = {{"input", "512", false}};
    load_name("cosmoflow_256", cube, 1, &test_arena, &w);
    check_close(w.input.size[0], 512, 0);
    struct dl_override tokens[] = {{"input", "seq384", false}};
    load_name("bert_base", tokens, 1, &test_arena, &w);
    check_close(w.sequence, 384, 0);
    /* model_checks.csv, notes of bert_base */
    check_close(w.forward_macs_per_sample, 35.333e9, 1e-3);
}

static enum dl_code load_chain(const char *const *texts, int count, struct dl_arena *arena,
                               struct dl_workload *w, struct dl_err *err) {
    const struct dl_json *docs[16];
    for (int i = 0; i < count; i++) {
        struct dl_json *doc;
        const char *text = quoted(texts[i], arena);
        DL_TRY(
            dl_json_parse(i == 0 ? "near.json" : "far.json", text, strlen(text), arena, &doc, err));
        docs[i] = doc;
    }
    return dl_workload_build(docs, count, NULL, 0, arena, w, err);
}

static void extending(void **state) {
    struct dl_workload w;
    struct dl_err err = {0};
    const char *near =
        "{'format':'dlmodel-workload','version':1,'name':'near','summary':'n','source':'y',"
        "'extends':'t','epoch_samples':7,'parameters':{'n':1}}";
    const char *both[] = {near, blocks_text};
    assert_int_equal(load_chain(both, 2, &test_arena, &w, &err), DL_OK);
    assert_string_equal(w.name, "near");
    assert_string_equal(w.source, "y");
    check_close(w.layers[0].out.channels, 4, 0);
    check_close(w.epoch_samples, 7, 0);
    const char *typo =
        "{'format':'dlmodel-workload','version':1,'name':'near','summary':'n','source':'y',"
        "'extends':'t',\n'parameters':{'nn':1}}";
    const char *wrong[] = {typo, blocks_text};
    assert_int_equal(load_chain(wrong, 2, &test_arena, &w, &err), DL_ERR_INPUT);
    assert_string_equal(err.file, "near.json");
    assert_int_equal(err.line, 2);
    check_contains(err.message, "'nn'");
    const char *same[] = {near, near};
    assert_int_equal(load_chain(same, 2, &test_arena, &w, &err), DL_ERR_INPUT);
    check_contains(err.message, "extends itself");
    assert_int_equal(load_chain(both, 1, &test_arena, &w, &err), DL_ERR_INPUT);
    check_contains(err.message, "a cycle");
}

static void long_chain_ends(void **state) {
    struct dl_workload w;
    struct dl_err err = {0};
    const char *texts[DL_WORKLOAD_EXTENDS + 1];
    for (int i = 0; i <= DL_WORKLOAD_EXTENDS; i++) {
        texts[i] =
            dl_arena_printf(&test_arena,
                            "{'format':'dlmodel-workload','version':1,'name':'w%d','summary':'n',"
                            "'source':'y','extends':'w%d'}",
                            i, i + 1);
    }
    assert_int_equal(load_chain(texts, DL_WORKLOAD_EXTENDS + 1, &test_arena, &w, &err),
                     DL_ERR_INPUT);
    assert_string_equal(err.key, "extends");
    check_contains(err.message, "at most 8");
}

static void block_replaced_by_nearer_file(void **state) {
    struct dl_workload w;
    const char *texts[] = {
        "{'format':'dlmodel-workload','version':1,'name':'near','summary':'n','source':'y','"
        "extends':'t',"
        "'blocks':[{'name':'unit','arguments':['out'],'layers':[{'kind':'tanh'}]}]}",
        blocks_text};
    assert_int_equal(load_chain(texts, 2, &test_arena, &w, NULL), DL_OK);
    assert_string_equal(w.layers[0].kind->name, "tanh");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deep_expressions_end),
        cmocka_unit_test(blocks_repeat),
        cmocka_unit_test(overrides_set_parameters),
        cmocka_unit_test(input_sizes),
        cmocka_unit_test(extending),
        cmocka_unit_test(long_chain_ends),
        cmocka_unit_test(block_replaced_by_nearer_file),

    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}

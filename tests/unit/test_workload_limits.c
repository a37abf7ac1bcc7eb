/* Limits of workload files, each just kept and just exceeded: depth of blocks, chains of
 * parameters, their number, names, layers, samples, extents of the input. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/check.h"
#include "tests/load_workload.h"

#define HEAD "{'format':'dlmodel-workload','version':1,'name':'n','summary':'s','source':'y',"
#define VECTOR HEAD "'input':{'channels':4},"

static struct dl_arena arena;
static struct dl_workload w;
static struct dl_err err;

static int teardown(void **state) {
    (void)state;
    dl_arena_free(&arena);
    return 0;
}

static void check_taken(const char *text) {
    if (load_text(text, NULL, 0, &arena, &w, &err) != DL_OK)
        fail_msg("%.200s: %s: %s", text, err.key, err.message);
}

static void check_refused(const char *text, const char *key, const char *message) {
    if (load_text(text, NULL, 0, &arena, &w, &err) != DL_ERR_INPUT) fail_msg("%.200s taken", text);
    if (strcmp(err.key, key) != 0 || strcmp(err.message, message) != 0)
        fail_msg("%s: %s, expected %s: %s", err.key, err.message, key, message);
}

/* b0 holds b1 holds b2 ...: `depth` of them. */
static const char *nested(int depth) {
    const char *text = VECTOR "'blocks':[";
    for (int i = 0; i < depth; i++)
        text = dl_arena_printf(&arena, "%s%s{'name':'b%d','layers':[{%s%s}]}", text,
                               i > 0 ? "," : "", i, i + 1 < depth ? "'block':" : "'kind':'relu'",
                               i + 1 < depth ? dl_arena_printf(&arena, "'b%d'", i + 1) : "");
    return dl_arena_printf(&arena, "%s],'layers':[{'block':'b0'}]}", text);
}

static void depth_of_blocks(void **state) {
    (void)state;
    check_taken(nested(1));
    assert_string_equal(w.layers[0].name, "b0.relu");
    check_taken(nested(16));
    assert_int_equal(w.layer_count, 1);
    check_refused(nested(17), "blocks[15].layers[0].block", "blocks are nested deeper than 16");
    check_refused(VECTOR "'blocks':[{'name':'a','layers':[{'block':'b'}]},"
                         "{'name':'b','layers':[{'block':'a'}]}],'layers':[{'block':'a'}]}",
                  "blocks[1].layers[0].block", "block 'a' uses itself");
}

/* Parameters p0 = p1, p1 = p2, ..., of `count`. */
static const char *chain(int count) {
    const char *text = HEAD "'parameters':{";
    for (int i = 0; i < count; i++)
        text = i + 1 < count ? dl_arena_printf(&arena, "%s'p%d':'p%d',", text, i, i + 1)
                             : dl_arena_printf(&arena, "%s'p%d':3", text, i);
    return dl_arena_printf(&arena, "%s},'input':{'channels':'p0'},'layers':[{'kind':'relu'}]}",
                           text);
}

static void parameters(void **state) {
    (void)state;
    check_taken(chain(1));
    check_taken(chain(32));
    check_close(w.input.channels, 3, 0);
    assert_int_equal(load_text(chain(33), NULL, 0, &arena, &w, &err), DL_ERR_INPUT);
    check_contains(err.message, "depends on itself or on too long a chain");
    const char *many = HEAD "'input':{'channels':1},'layers':[{'kind':'relu'}],'parameters':{";
    for (int i = 0; i < 256; i++)
        many = dl_arena_printf(&arena, "%s%s'a%d':1", many, i > 0 ? "," : "", i);
    check_taken(dl_arena_printf(&arena, "%s}}", many));
    assert_int_equal(w.value_count, 256);
    check_refused(dl_arena_printf(&arena, "%s,'b':1}}", many), "parameters",
                  "more than 256 parameters");
}

/* Names of layers have up to 511 letters, with those of their blocks before them. */
static void names(void **state) {
    (void)state;
    char name[600];
    memset(name, 'n', sizeof name);
    for (int length = 508; length <= 513; length++) {
        name[length] = '\0';
        const char *text =
            dl_arena_printf(&arena, VECTOR "'layers':[{'kind':'relu','name':'%s'}]}", name);
        if (length <= 511)
            check_taken(text);
        else
            check_refused(text, "layers[0].name", "expected a name of at most 511 letters");
        name[length] = 'n';
    }
    check_refused(VECTOR "'layers':[{'kind':'relu','name':''}]}", "layers[0].name",
                  "a name must not be empty");
}

static void samples(void **state) {
    (void)state;
#define SHAPE(input) HEAD "'input':" input ",'layers':[{'kind':'relu'}]}"
    check_taken(SHAPE("{'channels':3,'size':[4,5]}"));
    check_close(w.input_bytes_per_sample, 240, 0);
    check_taken(SHAPE("{'channels':3,'size':[4,5],'element_bytes':2}"));
    check_close(w.input_bytes_per_sample, 120, 0);
    check_taken(SHAPE("{'tokens':5}"));
    check_close(w.input_bytes_per_sample, 40, 0); /* indices of 8 bytes */
    assert_int_equal(w.input.dims, 1);
    check_taken(SHAPE("{'channels':7}"));
    assert_int_equal(w.input.dims, 0);
    check_taken(SHAPE("{'channels':2,'size':[3,4,5]}"));
    check_close(w.input.size[0], 3, 0);
    check_close(w.input.size[2], 5, 0);
    check_refused(SHAPE("{'channels':2,'size':[3,4,5,6]}"), "input.size",
                  "expected at most 3 extents");
    check_refused(SHAPE("{'tokens':5,'size':[3]}"), "input.tokens",
                  "expected either tokens or a size");
    check_refused(HEAD "'layers':[{'kind':'relu'}]}", "input", "expected the shape of a sample");
    /* 2^53 bytes and no more: 2^17 x 2^17 x 2^17 of 4 bytes */
    check_taken(SHAPE("{'channels':1,'size':[131072,131072,131072]}"));
    check_refused(SHAPE("{'channels':2,'size':[131072,131072,131072]}"), "input",
                  "a sample has more than 2^53 bytes");
}

static void faults_of_the_input(void **state) {
    (void)state;
    static const char *const members[] = {"channels", "tokens", "size", "element_bytes"};
    for (int i = 0; i < 4; i++) {
        const char *text = dl_arena_printf(
            &arena, HEAD "'input':{%s'%s':%s},'layers':[{'kind':'relu'}]}",
            i == 3 ? "'channels':1," : "", members[i], i == 2 ? "['nothing']" : "'nothing'");
        assert_int_equal(load_text(text, NULL, 0, &arena, &w, &err), DL_ERR_INPUT);
        char key[40];
        snprintf(key, sizeof key, "input.%s", members[i]);
        if (strncmp(err.key, key, strlen(key)) != 0) fail_msg("%s: %s", err.key, err.message);
        check_contains(err.message, "nothing");
    }
}

static void numbers_of_layers(void **state) {
    (void)state;
    check_taken(VECTOR "'layers':[{'kind':'relu','name':'r','repeat':100000}]}");
    assert_int_equal(w.layer_count, 100000);
    assert_string_equal(w.layers[99999].name, "r.99999");
    check_refused(VECTOR "'layers':[{'kind':'relu','name':'r','repeat':100001}]}",
                  "layers[0].repeat", "more than 100000 layers");
    check_taken(VECTOR "'layers':[{'kind':'relu'},{'kind':'relu','when':-1}]}"); /* not 0 */
    assert_int_equal(w.layer_count, 2);
    /* entries that emit nothing are counted too: the block and what it holds */
    check_taken(VECTOR "'layers':[{'kind':'relu'},{'kind':'relu','when':0,'repeat':2}]}");
    assert_int_equal(w.layer_count, 1);
    check_refused(VECTOR "'blocks':[{'name':'b','layers':[{'kind':'relu','when':0}]}],"
                         "'layers':[{'kind':'relu'},{'block':'b','repeat':200000}]}",
                  "layers[1].repeat", "the blocks expand to more than 200000 entries");
}

/* --set input: one number for all extents, one for each, or the channels before them. */
static void inputs_that_are_set(void **state) {
    (void)state;
    static const struct {
        int dims;
        const char *value, *extents; /* NULL: refused */
    } rows[] = {
        {2, "5", "5 5"},      {2, "5x6", "5 6"},       {2, "3x5x6", "5 6"},
        {2, "5x6x7x8", NULL}, {2, "", NULL},           {2, "x", NULL},
        {2, "5x", NULL},      {2, "x5", NULL},         {2, "5xx6", NULL},
        {2, "5x6 ", NULL},    {2, "5,6", NULL},        {2, "-5", NULL},
        {2, "5x6x", NULL},    {3, "5", "5 5 5"},       {3, "5x6x7", "5 6 7"},
        {3, "5x6", NULL},     {3, "3x5x6x7", "5 6 7"}, {3, "1x2x3x4x5", NULL},
        {3, "1x2x3x", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bool deep = rows[i].dims == 3;
        const char *text = dl_arena_printf(
            &arena,
            HEAD "'parameters':{%s'height':9,'width':9},'input':{'channels':3,'size':[%s'height',"
                 "'width']},'layers':[{'kind':'relu'}]}",
            deep ? "'depth':9," : "", deep ? "'depth'," : "");
        struct dl_override set = {.key = "input", .value = rows[i].value};
        const enum dl_code code = load_text(text, &set, 1, &arena, &w, &err);
        if (rows[i].extents == NULL) {
            if (code == DL_OK) fail_msg("\"%s\" was taken", rows[i].value);
            check_contains(err.message, dl_arena_printf(&arena,
                                                        "expected extents like 224x224 (one for "
                                                        "each dimension), found \"%s\"",
                                                        rows[i].value));
            continue;
        }
        if (code != DL_OK) fail_msg("%s: %s", rows[i].value, err.message);
        const char *extents =
            deep ? dl_arena_printf(&arena, "%.0f %.0f %.0f", w.input.size[0], w.input.size[1],
                                   w.input.size[2])
                 : dl_arena_printf(&arena, "%.0f %.0f", w.input.size[1], w.input.size[2]);
        assert_string_equal(extents, rows[i].extents);
        check_close(w.input.channels, 3, 0);
        assert_true(set.used);
    }
    struct dl_override none = {.key = "workload.input", .value = "5"},
                       length = {.key = "parameters.input", .value = "seq7"};
    assert_true(load_text(VECTOR "'layers':[{'kind':'relu'}]}", &none, 1, &arena, &w, &err) !=
                DL_OK);
    check_contains(err.message, "this workload has no input size to set; found \"5\"");
    assert_int_equal(load_text(HEAD "'parameters':{'seq':3},'input':{'tokens':'seq'},"
                                    "'layers':[{'kind':'relu'}]}",
                               &length, 1, &arena, &w, &err),
                     DL_OK);
    check_close(w.input.size[2], 7, 0);
    assert_true(load_text(VECTOR "'layers':[{'kind':'relu'}]}", &length, 1, &arena, &w, &err) !=
                DL_OK);
    check_contains(err.message, "this workload has no parameter 'seq' to set");
}

#define test(function) cmocka_unit_test_teardown(function, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {test(depth_of_blocks),
                                       test(parameters),
                                       test(names),
                                       test(samples),
                                       test(faults_of_the_input),
                                       test(numbers_of_layers),
                                       test(inputs_that_are_set)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Readers of runs' arguments: TOML, command lines, configurations; each by a small text. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/core/text.h"
#include "import/import_plan.h"
#include "import/toml.h"
#include "tests/check.h"

static struct dl_arena arena;

static struct dl_toml toml_of(const char *text) {
    struct dl_toml toml;
    struct dl_err err = {0};
    if (dl_toml_parse("t.toml", text, strlen(text), &arena, &toml, &err) != DL_OK)
        fail_msg("%d:%d: %s", err.line, err.col, err.message);
    return toml;
}

static void toml_values(void **state) {
    (void)state;
    const struct dl_toml t = toml_of("# head\n"
                                     "a = 1_000 # one\r\n"
                                     "[b.c]\n"
                                     "d = \"x # \\\"y\\\"\\n\"\n"
                                     "\"e f\".g = 'C:\\raw'\n"
                                     "h = [ 1, # first\n  2.5,\n \"z\", ]\n"
                                     "i=true\n"
                                     "[ j ]\n"
                                     "k = -1e-3\n"
                                     "l = []");
    assert_int_equal(t.count, 7);
    check_close(dl_toml_find(&t, "a")->number, 1000, 0);
    assert_string_equal(dl_toml_find(&t, "b.c.d")->text, "x # \"y\"\n");
    assert_string_equal(dl_toml_find(&t, "b.c.e f.g")->text, "C:\\raw");
    assert_string_equal(dl_toml_find(&t, "b.c.h")->text, "1\n2.5\nz\n");
    check_close(dl_toml_find(&t, "b.c.h")->number, 3, 0);
    assert_int_equal(dl_toml_find(&t, "b.c.i")->type, DL_TOML_BOOL);
    check_close(dl_toml_find(&t, "j.k")->number, -1e-3, 0);
    assert_int_equal(dl_toml_find(&t, "j.k")->line, 11);
    check_close(dl_toml_find(&t, "j.l")->number, 0, 0);
    assert_null(dl_toml_find(&t, "k"));
}

static void toml_places(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int line, col;
        const char *message;
    } cases[] = {
        {"a = 1\na = 2\n", 2, 1, "before"},
        {"a 1\n", 1, 3, "'='"},
        {"= 1\n", 1, 1, "a key"},
        {"a = \"b\n\"\n", 1, 7, "end of the string"},
        {"a = 1 2\n", 1, 7, "end of the line"},
        {"a = [1 2]\n", 1, 8, "','"},
        {"a = [1,\n", 2, 1, "end of the array"},
        {"a = yes\n", 1, 5, "a number"},
        {"a = 1.2.3\n", 1, 5, "a number"},
        {"a = inf\n", 1, 5, "a number"},
        {"a = 1e999\n", 1, 5, "a number"},
        {"a = \"\\u0041\"\n", 1, 7, "escape"},
        {"a = \"\"\"b\"\"\"\n", 1, 5, "several lines"},
        {"[a\n", 1, 3, "']'"},
        {"[[a]]\n", 1, 2, "arrays of tables"},
        {"a = {b = 1}\n", 1, 5, "a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_toml toml;
        struct dl_err err = {0};
        assert_int_equal(
            dl_toml_parse("t.toml", cases[i].text, strlen(cases[i].text), &arena, &toml, &err),
            DL_ERR_INPUT);
        check_contains(err.message, cases[i].message);
        if (err.line != cases[i].line || err.col != cases[i].col)
            fail_msg("%s: %d:%d instead of %d:%d", cases[i].text, err.line, err.col, cases[i].line,
                     cases[i].col);
    }
}

static struct dl_arguments shell(const char *text) {
    struct dl_arguments a;
    struct dl_err err = {0};
    if (dl_arguments_shell("run.sh", text, strlen(text), &arena, &a, &err) != DL_OK)
        fail_msg("%d: %s", err.line, err.message);
    return a;
}

static void words_of_a_shell(void **state) {
    (void)state;
    double number = 0;
    struct dl_err err = {0};
    struct dl_arguments a = shell("N=4 # nodes\n"
                                  "ARGS=(--one-two 'a b'\"c\" \\\n"
                                  "  --flag --three=${N})\n"
                                  "torchrun --nnodes $N run.py \"${ARGS[@]}\" --one-two last\n");
    assert_string_equal(dl_arguments_word(&a, "none|one_two", ""), "last");
    assert_true(dl_arguments_flag(&a, "flag"));
    assert_false(dl_arguments_flag(&a, "other"));
    assert_int_equal(dl_arguments_number(&a, "three", 1, 9, &number, &err), DL_OK);
    check_close(number, 4, 0);
    assert_int_equal(dl_arguments_number(&a, "nnodes", 5, 9, &number, &err), DL_ERR_INPUT);
    assert_int_equal(err.line, 4);
    assert_int_equal(dl_arguments_number(&a, "absent", 5, 9, &number, &err), DL_OK);
    check_close(number, 4, 0);
    a = shell("--negative -1 --quoted \"\\\"x\\\"\" --empty ''");
    assert_string_equal(dl_arguments_word(&a, "negative", ""), "-1");
    assert_string_equal(dl_arguments_word(&a, "quoted", ""), "\"x\"");
    assert_string_equal(dl_arguments_word(&a, "empty", "none"), "none");
}

static void keys_of_a_configuration(void **state) {
    (void)state;
    static const char text[] =
        "model:\n  hidden_size: 64 # wide\n  seq: ${.hidden_size}\n"
        "  name: 'a: b'\n  - item: 3\n  gone: null\n  on: True\n off: False\n";
    struct dl_arguments a;
    struct dl_err err = {0};
    double number = 0;
    assert_int_equal(dl_arguments_yaml("c.yaml", text, strlen(text), &arena, &a, &err), DL_OK);
    assert_int_equal(dl_arguments_number(&a, "seq", 1, 99, &number, &err), DL_OK);
    check_close(number, 64, 0);
    assert_string_equal(dl_arguments_word(&a, "name", ""), "a: b");
    assert_null(dl_arguments_find(&a, "gone"));
    assert_true(dl_arguments_flag(&a, "on"));
    assert_false(dl_arguments_flag(&a, "off"));
}

static const char *option_of(const struct dl_plan_words *w, const char *name) {
    for (int i = 0; i < w->option_count; i++) {
        if (strcmp(w->options[i].option, name) == 0)
            return w->options[i].value != NULL ? w->options[i].value : "";
    }
    return NULL;
}

/* Defaults: 4 h, a vocabulary padded to 128 t, gated MLPs of 2/3 of that in steps of 64. */
static void megatron_defaults(void **state) {
    (void)state;
    struct dl_text workload = {.arena = &arena};
    struct dl_plan_words w = {.arena = &arena, .workload = &workload};
    struct dl_err err = {0};
    struct dl_arguments a =
        shell("--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --seq-length 4096 "
              "--vocab-size 32000 --swiglu --normalization RMSNorm --num-query-groups 8 "
              "--position-embedding-type rope --untie-embeddings-and-output-weights "
              "--disable-bias-linear --attention-dropout 0 --hidden-dropout 0 "
              "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 "
              "--num-layers-per-virtual-pipeline-stage 5 --micro-batch-size 1 --bf16 "
              "--fp8-format hybrid --use-distributed-optimizer --recompute-granularity full");
    if (dl_megatron_plan(&a, 128, &w, &err) != DL_OK) fail_msg("%s", err.message);
    assert_string_equal(dl_text_string(&workload),
                        "gpt:layers=80,hidden=8192,heads=64,seq=4096,vocab=32768,mlp=swiglu,"
                        "ffn=21824,norm=rmsnorm,pos=rope,kv_heads=8");
    assert_string_equal(option_of(&w, "gpus"), "128");
    assert_string_equal(option_of(&w, "virtual-stages"), "4"); /* 80 / 4 / 5 */
    assert_string_equal(option_of(&w, "global-batch"), "4");   /* 128 / (8 x 4) data ranks */
    assert_string_equal(option_of(&w, "zero"), "1");
    assert_string_equal(option_of(&w, "precision"), "fp8");
    assert_string_equal(option_of(&w, "recompute"), "full");
    assert_null(option_of(&w, "sequence-parallel"));
    for (int i = 0; i < a.count; i++) {
        if (!a.all[i].used) fail_msg("%s was not read", a.all[i].name);
    }
}

static void torchtitan_defaults(void **state) {
    (void)state;
    struct dl_text workload = {.arena = &arena};
    struct dl_plan_words w = {.arena = &arena, .workload = &workload};
    struct dl_err err = {0};
    const char *const *ignored;
    const struct dl_toml t = toml_of("[model]\nname = \"llama3\"\nflavor = \"405B\"\n"
                                     "converters = [\"float8\"]\n"
                                     "[training]\nlocal_batch_size = 4\nseq_len = 8192\n"
                                     "[parallelism]\ntensor_parallel_degree = 8\n"
                                     "pipeline_parallel_degree = 8\n"
                                     "pipeline_parallel_schedule = \"Interleaved1F1B\"\n"
                                     "pipeline_parallel_layers_per_stage = 8\n[other]\nx = 1\n");
    if (dl_torchtitan_plan(&t, 512, &ignored, &w, &err) != DL_OK) fail_msg("%s", err.message);
    assert_string_equal(dl_text_string(&workload), "llama3_405b");
    assert_string_equal(option_of(&w, "set"), "seq=8192");
    assert_string_equal(option_of(&w, "zero"), "2");          /* a pipeline does not reshard */
    assert_string_equal(option_of(&w, "global-batch"), "32"); /* 4 x 512 / 64 data ranks */
    assert_string_equal(option_of(&w, "micro-batch"), "1");
    assert_string_equal(option_of(&w, "virtual-stages"), "2"); /* 126 / 8 / 8, upwards */
    assert_string_equal(option_of(&w, "precision"), "fp8");
    assert_string_equal(option_of(&w, "recompute"), "selective");
    assert_string_equal(option_of(&w, "sequence-parallel"), "");
    assert_string_equal(ignored[0], "other.x");
    assert_null(ignored[1]);
}

static int free_arena(void **state) {
    (void)state;
    dl_arena_free(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(toml_values),       cmocka_unit_test(toml_places),
        cmocka_unit_test(words_of_a_shell),  cmocka_unit_test(keys_of_a_configuration),
        cmocka_unit_test(megatron_defaults), cmocka_unit_test(torchtitan_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, free_arena);
}

/* import/json_stream.h: values one by one from a file larger than the window; faults with
 * their places in the file. */
#include "import/import_trace.h"
#include "import/json_stream.h"
#include "tests/check.h"

/* Three layers in each of `steps` iterations, with filler between: forward 10, 20, 30 us. */
static void write_trace(FILE *out, int steps, int filler) {
    fputs("{\"other\": [1, {\"a\": \"]\\\"\"}], \"traceEvents\": [", out);
    double ts_us = 0;
    for (int i = 0; i < steps; i++) {
        for (int layer = 1; layer <= 3; layer++) {
            fprintf(out,
                    "%s\n{\"ph\": \"X\", \"name\": \"layer:l%d:forward\", \"pid\": 1, \"tid\": 1, "
                    "\"ts\": %.1f, \"dur\": %d}",
                    i + layer > 1 ? "," : "", layer, ts_us, 10 * layer);
            ts_us += 100;
            for (int f = 0; f < filler; f++)
                fprintf(out,
                        ",\n{\"ph\": \"i\", \"name\": \"nothing %d\", \"args\": {\"x\": [%d]}}", f,
                        f);
        }
    }
    fputs("\n], \"end\": null}\n", out);
}

static void a_file_larger_than_the_window(void **state) {
    char path[] = "/tmp/dlmodel-trace-XXXXXX";
    const int fd = mkstemp(path);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    struct dl_arena arena = {0};
    struct dl_trace_times t;
    struct dl_err err = {0};
    assert_non_null(out);
    write_trace(out, 100, 200); /* 3 MB */
    fclose(out);
    const enum dl_code code = dl_trace_file(path, 0, &arena, &t, &err);
    unlink(path);
    if (code != DL_OK) fail_msg("%s", err.message);
    assert_int_equal(t.layer_count, 3);
    assert_true(t.steps == 100);
    for (int i = 0; i < 3; i++) check_close(t.layers[i].forward_s, 1e-5 * (i + 1), 1e-12);
    assert_true(arena.total_bytes < 1000000); /* not the text */
    dl_arena_free(&arena);
}

static void faults_have_their_places(void **state) {
    static const struct {
        const char *text;
        int line, col;
        const char *message;
    } cases[] = {
        {"[\n  {\"ph\": 1,\n   \"name\": tru}]", 3, 12, "a value"},
        {"[{}\n {}]", 2, 2, "',' or ']'"},
        {"{\"traceEvents\" []}", 1, 16, "':'"},
        {"[{\"a\": \"x]", 1, 11, "closing quote"},
        {"[] x", 1, 4, "nothing after"},
        {"{\"traceEvents\": ,}", 1, 17, "a value"},
        {"", 1, 1, "end of the file"},
        {"[,]", 1, 2, "a value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_arena arena = {0};
        struct dl_trace_times t;
        struct dl_err err = {0};
        char path[] = "/tmp/dlmodel-trace-XXXXXX";
        const int fd = mkstemp(path);
        const ssize_t length = (ssize_t)strlen(cases[i].text);
        assert_true(fd >= 0 && write(fd, cases[i].text, (size_t)length) == length);
        close(fd);
        assert_int_equal(dl_trace_file(path, 0, &arena, &t, &err), DL_ERR_INPUT);
        unlink(path);
        if (err.line != cases[i].line || err.col != cases[i].col)
            fail_msg("%s: %d:%d %s", cases[i].text, err.line, err.col, err.message);
        check_contains(err.message, cases[i].message);
        dl_arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_larger_than_the_window),
        cmocka_unit_test(faults_have_their_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

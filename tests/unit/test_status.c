/* The error record, its text, and the search for the name that was meant. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/base/status.h"
#include "tests/check.h"

static void test_fail(void **state) {
    struct dl_err err = {.file = "old", .line = 3};
    char text[1600];

    (void)state;
    assert_int_equal(dl_fail(&err, DL_ERR_BACKEND, "%s %d", "code", 7), DL_ERR_BACKEND);
    assert_int_equal(err.code, DL_ERR_BACKEND);
    assert_string_equal(err.file, ""); /* nothing is left of an older error */
    dl_err_text(&err, "dlmodel predict", text, sizeof text);
    assert_string_equal(text, "dlmodel predict: code 7");
    assert_int_equal(dl_fail(NULL, DL_ERR_NO, "x"), DL_ERR_NO);
    assert_int_equal(dl_fail_at(NULL, "f", 1, 1, "k", "x"), DL_ERR_INPUT);
}

static void test_fail_at(void **state) {
    struct dl_err err;
    char text[1600];

    (void)state;
    assert_int_equal(dl_fail_at(&err, "d/x.json", 4, 22, "a.b", "expected %d", 1), DL_ERR_INPUT);
    dl_err_text(&err, "who", text, sizeof text);
    assert_string_equal(text, "d/x.json:4:22: error: a.b: expected 1");
    dl_fail_at(&err, "d/x.json", 0, 0, NULL, "m");
    dl_err_text(&err, "who", text, sizeof text);
    assert_string_equal(text, "d/x.json: error: m");
    dl_fail_at(&err, "d/x.json", 4, 0, NULL, "m"); /* a line without a column */
    dl_err_text(&err, "who", text, sizeof text);
    assert_string_equal(text, "d/x.json:4:1: error: m");
    dl_err_text(&err, "who", text, 5); /* cut, and terminated */
    assert_string_equal(text, "d/x.");
}

static void test_arguments_may_be_the_record_itself(void **state) {
    struct dl_err err;

    (void)state;
    dl_fail_at(&err, "file", 1, 2, "key", "first");
    dl_fail_at(&err, err.file, 3, 4, err.key, "%s, second", err.message);
    assert_string_equal(err.message, "first, second");
    assert_string_equal(err.file, "file");
    assert_string_equal(err.key, "key");
}

static void test_long_and_hostile_text(void **state) {
    struct dl_err err;
    char big[2000], text[1600];

    (void)state;
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    dl_fail_at(&err, big, 1, 1, big, "%s", big);
    assert_int_equal(strlen(err.file), sizeof err.file - 1);
    assert_int_equal(strlen(err.key), sizeof err.key - 1);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    dl_fail_at(&err, "a\x1b[31m", 1, 1, NULL, "b\nc\x7f \xc2\x9b \xc3\xa9");
    dl_err_text(&err, NULL, text, sizeof text); /* no escape sequences; other UTF-8 stays */
    assert_string_equal(text, "a?[31m:1:1: error: b?c? ?? \xc3\xa9");
}

static void test_suggest(void **state) {
    static const char *const names[] = {"bandwidth_bytes_per_s",
                                        "latency_s",
                                        "nodes",
                                        "horovod-pytorch",
                                        "resnet50",
                                        "resnet101",
                                        NULL};

    (void)state;
    assert_string_equal(dl_suggest("bandwith_bytes_per_s", names), "bandwidth_bytes_per_s");
    assert_string_equal(dl_suggest("latnecy_s", names), "latency_s"); /* a swap counts one */
    assert_string_equal(dl_suggest("node", names), "nodes");
    assert_string_equal(dl_suggest("resnet5", names), "resnet50"); /* the nearest, not the first */
    assert_string_equal(dl_suggest("resnet102", names), "resnet101");
    assert_string_equal(dl_suggest("horovod", names), "horovod-pytorch"); /* a beginning */
    assert_null(dl_suggest("x", names));
    assert_null(dl_suggest("", names));
    assert_null(dl_suggest("completely-different", names));
    assert_null(dl_suggest(NULL, names));
    assert_null(dl_suggest("nodes", NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail),
        cmocka_unit_test(test_fail_at),
        cmocka_unit_test(test_arguments_may_be_the_record_itself),
        cmocka_unit_test(test_long_and_hostile_text),
        cmocka_unit_test(test_suggest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

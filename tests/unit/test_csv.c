/* RFC 4180 tables, and what is no such table. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/base/csv.h"
#include "tests/check.h"

static void test_parse(void **state) {
    struct dl_arena arena = {0};
    struct dl_err err;
    struct dl_csv csv;
    const char *text = "\xef\xbb\xbf"
                       "id,notes,value\r\n"
                       "a,\"one, two\",1.5\n"
                       "\n"
                       "b,\"say \"\"hi\"\"\nthere\",\r\n"
                       "c,,-2e3"; /* no line end */
    double value = 0;

    (void)state;
    assert_int_equal(dl_csv_parse("t.csv", text, strlen(text), &arena, &csv, &err), DL_OK);
    assert_int_equal(csv.column_count, 3);
    assert_int_equal(csv.row_count, 3);
    assert_string_equal(csv.header[0], "id");
    assert_string_equal(csv.rows[0][1], "one, two");
    assert_string_equal(csv.rows[1][1], "say \"hi\"\nthere");
    assert_string_equal(csv.rows[1][2], "");
    assert_string_equal(csv.rows[2][0], "c");
    assert_int_equal(csv.row_lines[0], 2);
    assert_int_equal(csv.row_lines[1], 4);
    assert_int_equal(csv.row_lines[2], 6);
    assert_int_equal(dl_csv_column(&csv, "value"), 2);
    assert_int_equal(dl_csv_column(&csv, "valu"), -1);
    assert_int_equal(dl_csv_number(&csv, 0, 2, &value, &err), DL_OK);
    check_close(value, 1.5, 0);
    assert_int_equal(dl_csv_number(&csv, 1, 2, &value, &err), DL_OK);
    check_nan(value);
    assert_int_equal(dl_csv_number(&csv, 2, 2, &value, &err), DL_OK);
    check_close(value, -2000, 0);
    dl_arena_free(&arena);
}

static void test_one_column_and_header_alone(void **state) {
    struct dl_arena arena = {0};
    struct dl_err err;
    struct dl_csv csv;

    (void)state;
    assert_int_equal(dl_csv_parse("t", "\n\na\n\"\"\n1\n", 9, &arena, &csv, &err), DL_OK);
    assert_int_equal(csv.row_count, 2); /* a quoted nothing is a row, an empty line is not */
    assert_string_equal(csv.rows[0][0], "");
    assert_int_equal(csv.row_lines[1], 5);
    assert_int_equal(dl_csv_parse("t", "a,b", 3, &arena, &csv, &err), DL_OK);
    assert_int_equal(csv.row_count, 0);
    dl_arena_free(&arena);
}

static void test_refusals(void **state) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", "t.csv: error: expected a header row, got an empty file"},
        {"\n\r\n", "expected a header row"},
        {"a,b\n1\n", "t.csv:2:2: error: b: expected 2 fields as in the header, got 1"},
        {"a,b\n1,2,3\n", "t.csv:2:4: error: expected 2 fields as in the header, got more"},
        {"a,b\n\n\"x\ny\",2,3\n",
         "t.csv:4:5: error: expected 2 fields as in the header, got more in the record of line 3"},
        {"a\n\"x", "t.csv:2:1: error: expected a closing quote"},
        {"a\n\"x\"y\n", "t.csv:2:4: error: expected a comma or the end of the line"},
        {"a\nx\"y\n", "t.csv:2:2: error: expected no quote inside"},
        {"a\nx\ry\n", "t.csv:2:2: error: expected a line feed"},
        {"a,b,a\n", "t.csv:1:1: error: a: expected each column once"},
    };
    struct dl_arena arena = {0};
    struct dl_err err;
    struct dl_csv csv;
    char message[1600];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(
            dl_csv_parse("t.csv", cases[i].text, strlen(cases[i].text), &arena, &csv, &err),
            DL_ERR_INPUT);
        dl_err_text(&err, "w", message, sizeof message);
        check_contains(message, cases[i].expected);
    }
    assert_int_equal(dl_csv_parse("t.csv", "a\nx\0y\n", 6, &arena, &csv, &err), DL_ERR_INPUT);
    check_contains(err.message, "zero byte");
    dl_arena_free(&arena);
}

static void test_numbers_that_are_none(void **state) {
    static const char *const wrong[] = {"x",  "1x",    "inf", "nan", "0x10", " 1",
                                        "1 ", "1e999", "1,5", "-",   "1e",   NULL};
    struct dl_arena arena = {0};
    struct dl_err err;
    struct dl_csv csv;
    char text[64];
    double value = 7;

    (void)state;
    for (int i = 0; wrong[i] != NULL; i++) {
        snprintf(text, sizeof text, "name\n\"%s\"\n", wrong[i]);
        assert_int_equal(dl_csv_parse("t.csv", text, strlen(text), &arena, &csv, &err), DL_OK);
        if (dl_csv_number(&csv, 0, 0, &value, &err) != DL_ERR_INPUT)
            fail_msg("\"%s\" was taken as %g", wrong[i], value);
        assert_string_equal(err.key, "name");
        assert_int_equal(err.line, 2);
    }
    assert_int_equal(dl_csv_number(&csv, 1, 0, &value, &err), DL_ERR_INPUT);
    assert_int_equal(dl_csv_number(&csv, 0, -1, &value, &err), DL_ERR_INPUT);
    assert_true(value == 7);
    assert_int_equal(dl_csv_read("/nonexistent/t.csv", &arena, &csv, &err), DL_ERR_INPUT);
    assert_string_equal(err.file, "/nonexistent/t.csv");
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_one_column_and_header_alone),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_numbers_that_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* RFC 4180 tables, and what is no such table. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/core/csv.h"
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

/* Other separators and encodings are named; a mark of the encoding is no part of the first name. */
static void test_other_forms(void **state) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"a;b\n1;2\n", "t.csv:1:1: error: expected fields separated by commas, got semicolons"},
        {"a\tb\n1\t2\n", "t.csv:1:1: error: expected fields separated by commas, got tabs"},
        {"\xff\xfe"
         "a\n1\n",
         "t.csv:1:1: error: expected UTF-8 text, got UTF-16: save the file as UTF-8"},
        {"\xfe\xff"
         "a\n1\n",
         "t.csv:1:1: error: expected UTF-8 text, got UTF-16: save the file as UTF-8"},
        {"\n\xef\xbb\xbf"
         "a\n1\n",
         "t.csv:2:1: error: expected a byte order mark only as the first bytes of the file"},
        {"\n\xff\xfe"
         "a\n1\n",
         "t.csv:2:1: error: expected a byte order mark only as the first bytes of the file"},
        {"\n\xfe\xff"
         "a\n1\n",
         "t.csv:2:1: error: expected a byte order mark only as the first bytes of the file"},
        {"\xef\xbb\xbf"
         "a,b\"\n",
         "t.csv:1:4: error: expected no quote inside"},
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
    assert_int_equal(dl_csv_parse("t", "\xef\xbb\xbf\"a;b\",c\n", 11, &arena, &csv, &err), DL_OK);
    assert_int_equal(dl_csv_column(&csv, "a;b"), 0);
    assert_int_equal(dl_csv_column(&csv, "c"), 1);
    assert_int_equal(dl_csv_column(&csv, "d"), -1);
    dl_arena_free(&arena);
}

/* Texts that end within or behind a mark of the encoding, or are too large; what follows the text
 * is not read. */
static void test_ends(void **state) {
    static const struct {
        const char *text;
        size_t length;
        const char *expected; /* NULL: a header */
    } cases[] = {
        {"\xff\xfe", 2, "t.csv:1:1: error: expected UTF-8 text, got UTF-16"},
        {"\xfe\xff", 2, "t.csv:1:1: error: expected UTF-8 text, got UTF-16"},
        {"\xff\xfe", 1, NULL},
        {"\xfe\xff", 1, NULL},
        {"\xef\xbb\xbf", 3, "t.csv: error: expected a header row, got an empty file"},
        {"\xef\xbb\xbf", 2, NULL},
        {"\xef\xbb\xbf\n", 4, "t.csv: error: expected a header row, got an empty file"},
        {"a,b", 2, NULL},
        {"a", 0, "t.csv: error: expected a header row, got an empty file"},
        {"a", DL_CSV_BYTES + 1, "t.csv: error: expected a file of at most 67108864 bytes"},
        {"a\r", 2, NULL},
        {"a\n\"b\"\r", 6, NULL},
        {"a\n\"b\"\rc", 7, "t.csv:2:4: error: expected a comma or the end of the line"},
        {"a\nb\rc", 5, "t.csv:2:2: error: expected a line feed after a carriage return"},
        {"a\n\"b\0\"", 6, "t.csv:2:3: error: expected text, got a zero byte"},
        {"a\n\"b\"\"", 6, "t.csv:2:1: error: expected a closing quote for the field that starts"},
        {"a\n\"\n\"\"\n\"x", 9, "t.csv:4:2: error: expected a comma or the end of the line"},
    };
    struct dl_arena arena = {0};
    struct dl_err err;
    struct dl_csv csv;
    char message[1600];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const enum dl_code code =
            dl_csv_parse("t.csv", cases[i].text, cases[i].length, &arena, &csv, &err);
        if (cases[i].expected != NULL) {
            assert_int_equal(code, DL_ERR_INPUT);
            dl_err_text(&err, "w", message, sizeof message);
            check_contains(message, cases[i].expected);
        } else if (code != DL_OK) {
            fail_msg("case %zu: %s", i, err.message);
        }
    }
    assert_int_equal(dl_csv_parse("t", "a,b", 2, &arena, &csv, &err), DL_OK);
    assert_int_equal(csv.column_count, 2); /* "a" and nothing */
    assert_string_equal(csv.header[1], "");
    dl_arena_free(&arena);
}

/* 4096 columns are a table, one more are not; empty names may be equal. */
static void test_most_columns(void **state) {
    struct dl_arena arena = {0};
    struct dl_err err;
    struct dl_csv csv;
    char text[5000];

    (void)state;
    memset(text, ',', sizeof text);
    text[4095] = '\n';
    assert_int_equal(dl_csv_parse("t", text, 4096, &arena, &csv, &err), DL_OK);
    assert_int_equal(csv.column_count, 4096);
    text[4095] = ',', text[4096] = '\n';
    assert_int_equal(dl_csv_parse("t", text, 4097, &arena, &csv, &err), DL_ERR_INPUT);
    check_contains(err.message, "at most 4096 columns");
    assert_int_equal(err.line, 1);
    assert_int_equal(err.col, 4096); /* the comma behind the last one that is taken */
    /* commas of a quoted field do not count, however many they are */
    text[0] = text[4998] = '"', text[4096] = ',', text[4999] = '\n';
    assert_int_equal(dl_csv_parse("t", text, 5000, &arena, &csv, &err), DL_OK);
    assert_int_equal(csv.column_count, 1);
    assert_int_equal(strlen(csv.header[0]), 4997);
    /* commas of rows and of quoted fields do not count */
    assert_int_equal(dl_csv_parse("t", "\"a,b\",c\n1,2\n3,4\n", 16, &arena, &csv, &err), DL_OK);
    assert_int_equal(csv.column_count, 2);
    assert_int_equal(csv.row_count, 2);
    dl_arena_free(&arena);
}

/* A fault names the line and the place where its cell begins, in a file whose cells have commas,
 * quotes and lines in them; after a mark of the encoding too. */
static void test_places_of_faults(void **state) {
    static const char plain[] = "x,y,z\n"
                                "1,2,3\n"
                                "\n"
                                "\"a,b\",\"c\nd\",e\r\n"
                                "\"q\"\"r\",\"\",5\n";
    static const int places[3][3][2] = {
        {{2, 1}, {2, 3}, {2, 5}}, {{4, 1}, {4, 7}, {5, 4}}, {{6, 1}, {6, 8}, {6, 11}}};
    struct dl_arena arena = {0};
    struct dl_err err;
    struct dl_csv csv;
    char folder[128], path[160], message[1600];

    (void)state;
    assert_true(check_directory(folder, sizeof folder));
    snprintf(path, sizeof path, "%s/t.csv", folder);
    for (int mark = 0; mark < 2; mark++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "%s%s", mark ? "\xef\xbb\xbf" : "", plain);
        fclose(file);
        if (dl_csv_read(path, &arena, &csv, &err) != DL_OK) fail_msg("%s", err.message);
        assert_int_equal(csv.row_count, 3);
        for (int row = 0; row < 3; row++) {
            for (int column = 0; column < 3; column++) {
                assert_int_equal(dl_csv_fault(&csv, row, column, &err, "expected %d", 7),
                                 DL_ERR_INPUT);
                if (err.line != places[row][column][0] || err.col != places[row][column][1])
                    fail_msg("row %d column %d at %d:%d", row, column, err.line, err.col);
                assert_string_equal(err.message, "expected 7");
                assert_string_equal(err.key, csv.header[column]);
            }
        }
    }
    double value;
    assert_int_equal(dl_csv_number(&csv, 1, 0, &value, &err), DL_ERR_INPUT);
    assert_string_equal(err.message,
                        "expected a number, got \"a,b\" (a decimal point, not a comma)");
    assert_int_equal(dl_csv_number(&csv, 1, 2, &value, &err), DL_ERR_INPUT);
    assert_string_equal(err.message, "expected a number, got \"e\"");
    assert_int_equal(dl_csv_number(&csv, 3, 0, &value, &err), DL_ERR_INPUT);
    dl_err_text(&err, "w", message, sizeof message);
    check_contains(message, "expected a cell of the table, got row 3, column 0");
    assert_int_equal(dl_csv_number(&csv, -1, 0, &value, &err), DL_ERR_INPUT);
    assert_int_equal(dl_csv_number(&csv, 0, 3, &value, &err), DL_ERR_INPUT);
    assert_int_equal(dl_csv_number(&csv, 2, 2, &value, &err), DL_OK);
    check_close(value, 5, 0);
    unlink(path), rmdir(folder);
    dl_arena_free(&arena);
}

/* Rows that follow a table: lines and places count from where they begin. */
static void test_rows_alone(void **state) {
    static const char text[] = "1,2\n\n\"3\n\",4\nx,5";
    struct dl_arena arena = {0};
    struct dl_err err;
    struct dl_csv table, rows;

    (void)state;
    assert_int_equal(dl_csv_parse("t.csv", "a,b\n", 4, &arena, &table, &err), DL_OK);
    assert_int_equal(dl_csv_parse_rows(&table, text, strlen(text), 10, 1000, &arena, &rows, &err),
                     DL_OK);
    assert_int_equal(rows.row_count, 3);
    assert_int_equal(rows.column_count, 2);
    assert_string_equal(rows.rows[1][0], "3\n");
    assert_string_equal(rows.rows[2][1], "5");
    const int lines[] = {10, 12, 14}, offsets[] = {1000, 1005, 1012};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rows.row_lines[i], lines[i]);
        assert_int_equal(rows.row_offsets[i], offsets[i]);
    }
    dl_csv_fault(&rows, 1, 1, &err, "no");
    assert_int_equal(err.line, 13);
    assert_int_equal(err.col, 3);
    dl_csv_fault(&rows, 2, 0, &err, "no");
    assert_int_equal(err.line, 14);
    assert_int_equal(err.col, 1);
    assert_int_equal(dl_csv_parse_rows(&table, "1\n", 2, 7, 0, &arena, &rows, &err), DL_ERR_INPUT);
    assert_int_equal(err.line, 7);
    assert_string_equal(err.key, "b");
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),        cmocka_unit_test(test_one_column_and_header_alone),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_numbers_that_are_none),
        cmocka_unit_test(test_other_forms),  cmocka_unit_test(test_ends),
        cmocka_unit_test(test_most_columns), cmocka_unit_test(test_places_of_faults),
        cmocka_unit_test(test_rows_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

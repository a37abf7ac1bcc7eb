/* RFC 4180 tables: limits, places of faults, rows that follow a table. */
#include "model/core/csv.h"
#include "tests/check.h"

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
    struct dl_err err;
    struct dl_csv csv;
    char folder[128], path[160], message[1600];

    assert_true(check_directory(folder, sizeof folder));
    snprintf(path, sizeof path, "%s/t.csv", folder);
    for (int mark = 0; mark < 2; mark++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "%s%s", mark ? "\xef\xbb\xbf" : "", plain);
        fclose(file);
        if (dl_csv_read(path, &test_arena, &csv, &err) != DL_OK) fail_msg("%s", err.message);
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
}

/* Rows that follow a table: lines and places count from where they begin. */
static void test_rows_alone(void **state) {
    static const char text[] = "1,2\n\n\"3\n\",4\nx,5";
    struct dl_err err;
    struct dl_csv table, rows;

    assert_int_equal(dl_csv_parse("t.csv", "a,b\n", 4, &test_arena, &table, &err), DL_OK);
    assert_int_equal(dl_csv_parse_rows(&table,
                                       &(struct dl_csv_records){text, strlen(text), 10, 1000},
                                       &test_arena, &rows, &err),
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
    assert_int_equal(dl_csv_parse_rows(&table, &(struct dl_csv_records){"1\n", 2, 7, 0},
                                       &test_arena, &rows, &err),
                     DL_ERR_INPUT);
    assert_int_equal(err.line, 7);
    assert_string_equal(err.key, "b");
}

int main(void) {
    const struct CMUnitTest tests[] = {

        cmocka_unit_test(test_places_of_faults),
        cmocka_unit_test(test_rows_alone),
    };

    return cmocka_run_group_tests(tests, NULL, check_free);
}

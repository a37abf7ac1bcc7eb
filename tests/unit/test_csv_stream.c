/* Tables that are read some records at a time: the rows of a table that is read whole, whatever the
 * buffer cuts. */
#include "model/core/csv_stream.h"
#include "tests/check.h"

static char path[64];

static void write_text(const char *text, size_t length) {
    struct dl_err err = {0};
    snprintf(path, sizeof path, "/tmp/test_csv_stream.%ld", (long)getpid());
    assert_int_equal(dl_file_write(path, text, length, &err), DL_OK);
}

/* Quoted line ends, commas and quotes, empty lines and CRLF; rows of many lengths, so that the ends
 * of the buffer fall anywhere. */
static char *make_table(size_t *length) {
    enum { BYTES = 5 << 20 };
    char *text = malloc(BYTES + 4096);
    size_t at = 0;
    assert_non_null(text);
    at += (size_t)sprintf(text, "\xef\xbb\xbf\r\nid,\"no\ntes\",value\r\n");
    for (int i = 0; at < BYTES; i++) {
        at += (size_t)sprintf(text + at, "r%d,\"", i);
        for (int k = 0; k < i * 7919 % 301; k++)
            at += (size_t)sprintf(text + at, "%s",
                                  k % 37 == 5   ? "\n"
                                  : k % 41 == 7 ? "\"\""
                                  : k % 11 == 3 ? ","
                                                : "z");
        at += (size_t)sprintf(text + at, "\",%d%s", i, i % 5 == 0 ? "\r\n" : "\n");
        if (i % 97 == 0) at += (size_t)sprintf(text + at, "\n");
    }
    text[--at] = 0; /* the last line has no end */
    *length = at;
    return text;
}

static void test_same_rows(void **state) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_csv whole, chunk;
    struct dl_csv_stream stream;
    bool regular = false;
    size_t length;
    char *text = make_table(&length);
    int row = 0, chunks = 0;
    size_t most_bytes = 0;

    write_text(text, length);
    assert_int_equal(dl_csv_parse(path, text, length, &arena, &whole, &err), DL_OK);
    assert_int_equal(dl_csv_open(path, &stream, &regular, &err), DL_OK);
    assert_true(regular);
    assert_int_equal(stream.header.column_count, 3);
    assert_string_equal(stream.header.header[1], "no\ntes");
    for (;; chunks++) {
        assert_int_equal(dl_csv_next(&stream, &chunk, &err), DL_OK);
        if (chunk.row_count == 0) break;
        /* what was read before is gone */
        if (chunks == 0) most_bytes = 2 * stream.chunk.total_bytes;
        assert_true(stream.chunk.total_bytes < most_bytes);
        for (int i = 0; i < chunk.row_count; i++, row++) {
            char id[16];
            for (int c = 0; c < 3; c++) assert_string_equal(chunk.rows[i][c], whole.rows[row][c]);
            assert_int_equal(chunk.row_lines[i], whole.row_lines[row]);
            snprintf(id, sizeof id, "r%d,", row); /* where the row's record begins */
            assert_memory_equal(text + chunk.row_offsets[i], id, strlen(id));
        }
    }
    assert_int_equal(row, whole.row_count);
    assert_true(chunks >= 5); /* else nothing was cut */
    dl_csv_close(&stream);
    dl_arena_free(&arena);
    free(text);
    unlink(path);
}

/* A cell has its place, in a part of the table and with its record's offset alone. */
static void test_places(void **state) {
    struct dl_err err = {0}, again = {0};
    struct dl_csv chunk;
    struct dl_csv_stream stream;
    bool regular = false;
    size_t length;
    char *text = make_table(&length);

    write_text(text, length);
    assert_int_equal(dl_csv_open(path, &stream, &regular, &err), DL_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(dl_csv_next(&stream, &chunk, &err), DL_OK);
    const int last = chunk.row_count - 1;
    assert_int_equal(dl_csv_fault(&chunk, last, 2, &err, "wrong"), DL_ERR_INPUT);
    assert_true(err.line > chunk.row_lines[last] || err.col > 5);
    chunk.text = NULL;
    assert_int_equal(dl_csv_fault(&chunk, last, 2, &again, "wrong"), DL_ERR_INPUT);
    assert_int_equal(again.line, err.line);
    assert_int_equal(again.col, err.col);
    /* the place is that of the cell in the file */
    const char *at = text;
    for (int line = 1; line < err.line; line++) at = strchr(at, '\n') + 1;
    assert_int_equal(atoi(at + err.col - 1), atoi(chunk.rows[last][2]));
    dl_csv_close(&stream);
    free(text);
    unlink(path);
}

static void check_refused(const char *text, size_t length, const char *expected) {
    struct dl_err err = {0};
    struct dl_csv_stream stream;
    struct dl_csv chunk = {.row_count = 1};
    bool regular = false;
    char message[1600];
    write_text(text, length);
    enum dl_code code = dl_csv_open(path, &stream, &regular, &err);
    const bool opened = code == DL_OK;
    while (code == DL_OK && chunk.row_count > 0) code = dl_csv_next(&stream, &chunk, &err);
    assert_int_equal(code, DL_ERR_INPUT);
    dl_err_text(&err, "w", message, sizeof message);
    check_contains(message, expected);
    if (opened) dl_csv_close(&stream);
    unlink(path);
}

static void test_refusals(void **state) {
    enum { LONG = DL_CSV_RECORD_BYTES + 100 };
    char *text = malloc(LONG + 32);
    assert_non_null(text);
    check_refused("", 0, "expected a header row, got an empty file");
    check_refused("a,b\n1\n", 6, ":2:2: error: b: expected 2 fields as in the header, got 1");
    check_refused("a\n\"x", 4, ":2:1: error: expected a closing quote");
    check_refused("a\nx\"y\n", 6, ":2:2: error: expected no quote inside");
    check_refused("a\nx\0y\n", 6, "zero byte");
    memset(text, 'x', LONG);
    memcpy(text, "a\ny\n", 4);
    check_refused(text, LONG, ":3:1: error: expected a record of at most 1048576 bytes");
    text[4] = '"';
    check_refused(text, LONG, ":3:1: error: expected a closing quote");
    memset(text, 'x', LONG);
    check_refused(text, LONG, ":1:1: error: expected a header of at most 1048576 bytes");
    free(text);
}

static void test_what_is_no_file(void **state) {
    struct dl_err err = {0};
    struct dl_csv_stream stream;
    bool regular = true;
    assert_int_equal(dl_csv_open("/dev/null", &stream, &regular, &err), DL_OK);
    assert_false(regular);
    assert_int_equal(dl_csv_open("/nonexistent/t.csv", &stream, &regular, &err), DL_ERR_INPUT);
    check_contains(err.message, "cannot read");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_rows),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_what_is_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A document that is read packed loads as one that is not, with the same faults at the same places,
 * in a tenth of the memory. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/core/file.h"
#include "model/core/json.h"
#include "tests/check.h"

struct thing {
    const char *name;
    double *numbers, *ratios;
    int number_count, ratio_count;
};
static const struct dl_field fields[] = {
    {.key = "name",
     .type = DL_FIELD_STRING,
     .offset = offsetof(struct thing, name),
     .help = "its name"},
    {.key = "numbers",
     .type = DL_FIELD_NUMBERS,
     .offset = offsetof(struct thing, numbers),
     .count_offset = offsetof(struct thing, number_count),
     .help = "any numbers"},
    {.key = "ratios",
     .type = DL_FIELD_NUMBERS,
     .offset = offsetof(struct thing, ratios),
     .count_offset = offsetof(struct thing, ratio_count),
     .min = 0,
     .max = 1,
     .help = "numbers from 0 to 1"},
    {.key = NULL},
};
static const struct dl_schema schema = {
    .name = "thing", .summary = "a thing", .size = sizeof(struct thing), .fields = fields};

static char path[64];

static void write_text(const char *text) {
    struct dl_err err = {0};
    snprintf(path, sizeof path, "/tmp/test_json_packed.%ld", (long)getpid());
    assert_int_equal(dl_file_write(path, text, strlen(text), &err), DL_OK);
}

static enum dl_code load(bool packed, struct dl_arena *arena, struct thing *out,
                         struct dl_err *err) {
    struct dl_json *doc;
    *out = (struct thing){.name = NULL};
    DL_TRY(packed ? dl_json_read_packed(path, arena, &doc, err)
                  : dl_json_read(path, arena, &doc, err));
    return dl_json_load(doc, &schema, arena, out, err);
}

static void check_alike(const char *text) {
    struct dl_arena arena = {0};
    struct dl_err plain_err = {0}, packed_err = {0};
    struct thing plain, packed;
    char said[2][1600];
    write_text(text);
    const enum dl_code wanted = load(false, &arena, &plain, &plain_err);
    assert_int_equal(load(true, &arena, &packed, &packed_err), wanted);
    if (wanted != DL_OK) {
        dl_err_text(&plain_err, "w", said[0], sizeof said[0]);
        dl_err_text(&packed_err, "w", said[1], sizeof said[1]);
        assert_string_equal(said[1], said[0]);
    } else {
        assert_int_equal(packed.number_count, plain.number_count);
        assert_int_equal(packed.ratio_count, plain.ratio_count);
        for (int i = 0; i < plain.number_count; i++)
            assert_memory_equal(&packed.numbers[i], &plain.numbers[i], sizeof(double));
        for (int i = 0; i < plain.ratio_count; i++)
            assert_memory_equal(&packed.ratios[i], &plain.ratios[i], sizeof(double));
    }
    dl_arena_free(&arena);
    unlink(path);
}

static void test_alike(void **state) {
    static const char *const texts[] = {
        "{\"numbers\": [1, -2.5e3, 0.1 , 7\n]}",
        "{\"numbers\": []}",
        "{\"numbers\": [ ]}",
        "{\"numbers\": [3], \"ratios\": [0, 1, 0.5]}",
        "{\"ratios\": [0, 1,\n  0.5, 1.5, 2]}", /* out of range: line 2 */
        "{\"ratios\": [-1]}",
        "{\"numbers\": [1, 2, \"x]\", 3]}", /* not numbers alone */
        "{\"numbers\": [1, [2, 3]]}",
        "{\"numbers\": [null]}",
        "{\"numbers\": [1, 1e999]}",
        "{\"numbers\": 5}",
        "{\"numbers\": [1, 2,]}",
        "{\"numbers\": [01]}",
        "{\"name\": [1, 2]}",
        "[1, 2, 3]",
        /* numbers that repeat the one before, or begin as it does */
        "{\"numbers\": [1.5,1.5,1.5,1.55,1.5,1.5e3,1.5e3,-1.5,-1.5,1.5,1.5]}",
        "{\"numbers\": [2,2,2], \"ratios\": [1,1,1,0.25,0.25]}",
        "{\"numbers\": [2, 2,2 ,2 ,2\n,2\n,2,22,22,2]}",
        "{\"numbers\": [7,7,7x]}",
        "{\"numbers\": [7,7,7,]}",
        "{\"numbers\": [7,7,",
        "{\"numbers\": [7,7,7",
        "{\"ratios\": [0.5,0.5,3,3,3]}",
        "{\"numbers\": [7,7,\"7,\"]}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) check_alike(texts[i]);
}

static void test_memory(void **state) {
    enum { NUMBERS = 20000 };
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_json *doc;
    char *text = malloc(NUMBERS * 8 + 64);
    size_t at = 0;
    (void)state;
    assert_non_null(text);
    at += (size_t)sprintf(text, "{\"numbers\": [");
    for (int i = 0; i < NUMBERS; i++)
        at += (size_t)sprintf(text + at, "%s%d.5", i > 0 ? "," : "", i % 1000);
    sprintf(text + at, "]}");
    write_text(text);
    assert_int_equal(dl_json_read_packed(path, &arena, &doc, &err), DL_OK);
    /* the text, 8 bytes a number, and little else */
    assert_true(arena.total_bytes < strlen(text) + 8 * NUMBERS + 1000);
    dl_arena_free(&arena);
    free(text);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alike), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What is expected of a field, in words, for every type and range; and JSON as it is written: every
 * character, number and level. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/core/json.h"
#include "model/core/json_node.h"
#include "tests/check.h"

static void expected_of_fields(void **state) {
    (void)state;
    static const char *const colors[] = {"red", "green", NULL};
    const double all = (double)INFINITY;
    const struct {
        struct dl_field field;
        const char *expected;
    } rows[] = {
        {{.type = DL_FIELD_NUMBER}, "a number"},
        {{.type = DL_FIELD_NUMBER, .unit = DL_UNIT_S}, "a number s"},
        {{.type = DL_FIELD_NUMBER, .min = -all, .max = all}, "a number"},
        {{.type = DL_FIELD_NUMBER, .min = 0, .max = 1}, "a number in [0, 1]"},
        {{.type = DL_FIELD_NUMBER, .min = -1, .max = 0}, "a number in [-1, 0]"},
        {{.type = DL_FIELD_NUMBER, .min = 0, .max = all}, "a number of at least 0"},
        {{.type = DL_FIELD_NUMBER, .min = 1e-9, .max = all, .unit = DL_UNIT_BYTE_PER_S},
         "a number of at least 1e-9 byte/s"},
        {{.type = DL_FIELD_NUMBER, .min = -all, .max = 2.5, .unit = DL_UNIT_HZ},
         "a number of at most 2.5 Hz"},
        {{.type = DL_FIELD_NUMBER, .min = -all, .max = 0}, "a number of at most 0"},
        {{.type = DL_FIELD_INTEGER, .min = 1, .max = 1e15}, "a whole number in [1, 1e15]"},
        {{.type = DL_FIELD_INTEGER, .min = 1, .max = all}, "a whole number of at least 1"},
        {{.type = DL_FIELD_BOOL}, "true or false"},
        {{.type = DL_FIELD_STRING}, "a string"},
        {{.type = DL_FIELD_CHOICE, .choices = colors}, "one of red, green"},
        {{.type = DL_FIELD_EXPR}, "a number or an expression in a string"},
        {{.type = DL_FIELD_OBJECT}, "an object"},
        {{.type = DL_FIELD_LIST}, "an array of objects"},
        {{.type = DL_FIELD_NUMBERS, .min = 0, .max = 0.125, .unit = DL_UNIT_S},
         "an array of numbers in [0, 0.125] s"},
        {{.type = DL_FIELD_EXPRS}, "a number, an expression in a string, or an array of these"},
        {{.type = DL_FIELD_STRINGS}, "a string or an array of strings"},
        {{.type = DL_FIELD_MAP}, "an object of numbers, strings and booleans"},
        {{.type = DL_FIELD_END}, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[160] = "?";
        dl_field_expected(&rows[i].field, text, sizeof text);
        assert_string_equal(text, rows[i].expected);
        dl_field_expected(&rows[i].field, text, 5); /* cut off */
        assert_int_equal(strncmp(text, rows[i].expected, 4), 0);
        assert_true(strlen(text) <= 4);
    }
    char untouched[] = "?";
    dl_field_expected(&rows[0].field, untouched, 0);
    assert_string_equal(untouched, "?");
}

static void names_of_types(void **state) {
    (void)state;
    static const struct {
        enum dl_field_type type;
        const char *name;
    } rows[] = {
        {DL_FIELD_NUMBER, "number"},
        {DL_FIELD_INTEGER, "integer"},
        {DL_FIELD_BOOL, "boolean"},
        {DL_FIELD_STRING, "string"},
        {DL_FIELD_CHOICE, "choice"},
        {DL_FIELD_EXPR, "expression"},
        {DL_FIELD_OBJECT, "object"},
        {DL_FIELD_LIST, "array of objects"},
        {DL_FIELD_NUMBERS, "array of numbers"},
        {DL_FIELD_EXPRS, "array of expressions"},
        {DL_FIELD_STRINGS, "array of strings"},
        {DL_FIELD_MAP, "map"},
        {DL_FIELD_END, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(dl_field_type_name(rows[i].type), rows[i].name);
}

static void short_numbers(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {{0, "0"},
                {1e15, "1e15"},
                {1e-7, "1e-7"},
                {-1e-12, "-1e-12"},
                {1e100, "1e100"},
                {0.1, "0.1"},
                {123456, "123456"},
                {1234567, "1234567"},
                {0.1234567, "0.1234567"},
                {(double)INFINITY, "inf"},
                {1.0 / 3, "0.3333333333333333"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[DL_NUMBER_TEXT];
        dl_number_short(rows[i].value, text);
        assert_string_equal(text, rows[i].text);
    }
}

/* Each character below a blank is escaped, quotes and backslashes too, all others stay. */
static void characters(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    for (int c = 1; c < 0x7f; c++) {
        struct dl_json_writer w;
        char text[] = {(char)c, '\0'}, expected[32];
        dl_jw_init(&w, &arena, true);
        dl_jw_string(&w, NULL, text);
        if (c == '"' || c == '\\')
            snprintf(expected, sizeof expected, "\"\\%c\"", c);
        else if (c == '\n' || c == '\t' || c == '\r')
            snprintf(expected, sizeof expected, "\"\\%c\"",
                     c == '\n'   ? 'n'
                     : c == '\t' ? 't'
                                 : 'r');
        else if (c < 0x20)
            snprintf(expected, sizeof expected, "\"\\u%04x\"", c);
        else
            snprintf(expected, sizeof expected, "\"%c\"", c);
        assert_non_null(w.text);
        assert_int_equal(strncmp(w.text, expected, strlen(expected)), 0);
    }
    dl_arena_free(&arena);
}

/* As many levels as a reader takes; one more is a failure. */
static void levels(void **state) {
    (void)state;
    for (int depth = DL_JSON_DEPTH - 1; depth <= DL_JSON_DEPTH + 1; depth++) {
        struct dl_arena arena = {0};
        struct dl_json_writer w;
        dl_jw_init(&w, &arena, true);
        for (int i = 0; i < depth; i++) dl_jw_array(&w, NULL);
        for (int i = 0; i < depth && !w.failed; i++) dl_jw_end(&w);
        assert_int_equal(w.failed, depth > DL_JSON_DEPTH);
        for (int i = 0; i < depth && !w.failed; i++) {
            assert_int_equal(w.text[i], '[');
            assert_int_equal(w.text[depth + i], ']');
        }
        dl_arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expected_of_fields), cmocka_unit_test(names_of_types),
        cmocka_unit_test(short_numbers), cmocka_unit_test(characters), cmocka_unit_test(levels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

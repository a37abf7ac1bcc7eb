/* Which --set name an object, in which of its releases: every list of names and every release, just
 * right and one letter off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/catalog/data_parts.h"
#include "tests/check.h"

static const struct {
    const char *key, *object, *release, *rest; /* rest NULL: not this one */
} rows[] = {
    {"a.x", "a", NULL, "x"},          {"a.x", "b", NULL, NULL},
    {"a.x", "ab", NULL, NULL},        {"ab.x", "a", NULL, NULL},
    {"a.x.y", "a", NULL, "x.y"},      {"a.", "a", NULL, NULL},
    {"a", "a", NULL, NULL},           {"a,b.x", "a", NULL, "x"},
    {"a,b.x", "b", NULL, "x"},        {"a,b.x", "c", NULL, NULL},
    {"a,bc.x", "b", NULL, NULL},      {"a,b,c.x", "c", NULL, "x"},
    {"a*.x", "a", NULL, "x"},         {"a*.x", "abc", NULL, "x"},
    {"a*.x", "b", NULL, NULL},        {"*.x", "b", NULL, "x"},
    {"c,a*.x", "ab", NULL, "x"},      {"a*,c.x", "c", NULL, "x"},
    {"a.x", "a", "1.5", NULL},        {"a@1.5.x", "a", NULL, NULL},
    {"a@1.5.x", "a", "1.5", "x"},     {"a@1.5.x", "a", "1.50", NULL},
    {"a@1.5.x", "a", "1.5.1", NULL},  {"a@1.5.x", "a", "1.", NULL},
    {"a@1.5.x", "a", "1", NULL},      {"a@1.5.x", "a", "2.5", NULL},
    {"a@1.5.x", "a", "1.6", NULL},    {"a@1.5.x", "b", "1.5", NULL},
    {"a@1.5.", "a", "1.5", NULL},     {"a@15", "a", "15", NULL},
    {"a@15.x", "a", "15", "x"},       {"a@15.x", "a", "151", NULL},
    {"a@1.5.x.y", "a", "1.5.x", "y"}, {"a,b@1.5.x", "b", "1.5", "x"},
    {"a*@1.5.x", "ab", "1.5", "x"},   {"a*@1.5.x", "ba", "1.5", NULL},
};

static void rules(void **state) {
    (void)state;
    const char *prefix = dl_data_kinds[DL_DATA_FRAMEWORK].prefix;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dl_arena arena = {0};
        struct dl_selection out;
        struct dl_err err = {0};
        struct dl_override overrides[3] = {
            {.key = "other.a.x", .value = "0"},
            {.key = dl_arena_printf(&arena, "%s%s", prefix, rows[i].key), .value = "7"},
            {.key = rows[i].key, .value = "1"}};
        const struct dl_data data = {.overrides = overrides, .override_count = 3};
        assert_int_equal(dl_data_select_named(&data, DL_DATA_FRAMEWORK, rows[i].object,
                                              rows[i].release, &arena, &out, &err),
                         DL_OK);
        if (out.count != (rows[i].rest != NULL))
            fail_msg("%s of %s in %s", rows[i].key, rows[i].object,
                     rows[i].release != NULL ? rows[i].release : "none");
        if (out.count == 1) {
            assert_string_equal(out.list[0].key, rows[i].rest);
            assert_string_equal(out.list[0].value, "7");
            assert_ptr_equal(out.origin[0], &overrides[1]);
            assert_false(dl_data_mark_used(&out));
            out.list[0].used = true;
            assert_true(dl_data_mark_used(&out));
        }
        assert_int_equal(overrides[1].used, out.count);
        assert_false(overrides[0].used || overrides[2].used);
        dl_arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

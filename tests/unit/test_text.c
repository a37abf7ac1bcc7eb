/* The string builder: pieces end up in order, growth loses nothing, one failure spoils the whole.
 */
#include "model/core/text.h"
#include "tests/check.h"

static void test_pieces(void **state) {
    struct dl_arena arena = {0};
    struct dl_text text = {.arena = &arena};

    assert_string_equal(dl_text_string(&text), "");
    dl_text_add(&text, "");
    assert_string_equal(dl_text_string(&text), "");
    dl_text_add(&text, "one");
    dl_text_add_bytes(&text, ", two, three", 5);
    dl_text_add_bytes(&text, NULL, 0);
    dl_text_printf(&text, " %s-%03d", "x", 7);
    assert_string_equal(dl_text_string(&text), "one, two x-007");
    assert_int_equal(text.length, 14);
    dl_arena_free(&arena);
}

static void test_growth(void **state) {
    enum { LINES = 3000 };
    struct dl_arena arena = {0};
    struct dl_text text = {.arena = &arena};

    for (int i = 0; i < LINES; i++) dl_text_printf(&text, "%06d\n", i);
    dl_text_printf(&text, "%70000d", 1); /* more than any capacity so far */
    assert_int_equal(text.length, 7 * LINES + 70000);
    for (int i = 0; i < LINES; i++) assert_int_equal(atoi(text.bytes + 7 * i), i);
    assert_int_equal(strlen(dl_text_string(&text)), text.length);
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_growth),

    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

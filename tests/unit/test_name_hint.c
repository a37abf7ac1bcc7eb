/* The error for an unknown name: those that contain it, at most eight; else the nearest; else
 * where the list is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/core/name_hint.h"
#include "tests/check.h"

static const char *hint(const char *name, const char *const *names) {
    static struct dl_err err;
    struct dl_arena arena = {0};
    memset(&err, 0, sizeof err);
    assert_int_equal(dl_name_hint("system", "systems", name, names, &arena, &err), DL_ERR_USAGE);
    dl_arena_free(&arena);
    return err.message;
}

static void names_that_contain_it(void **state) {
    (void)state;
    static const char *const names[] = {"dgx1-v100", "dgx2_v100", "BERT-Large", "p100.pcie 16",
                                        NULL};
    assert_string_equal(
        hint("bertlarge", names),
        "no system \"bertlarge\"; did you mean \"BERT-Large\"? ('dlmodel list systems' shows all)");
    assert_string_equal(hint("V100", names), "no system \"V100\"; did you mean \"dgx1-v100\" or "
                                             "\"dgx2_v100\"? ('dlmodel list systems' shows all)");
    check_contains(hint("bert_large", names), "did you mean \"BERT-Large\"?");
    check_contains(hint("P100 PCIe-16", names), "did you mean \"p100.pcie 16\"?");
    check_contains(hint("dgx1v", names), "did you mean \"dgx1-v100\"?");
    check_contains(hint("100", names),
                   "\"dgx1-v100\", \"dgx2_v100\" or \"p100.pcie 16\"?"); /* three letters suffice */
}

static void near_and_far_names(void **state) {
    (void)state;
    static const char *const names[] = {"iris", "zeus", NULL};
    check_contains(hint("irsi", names), "did you mean \"iris\"?");
    check_contains(hint("ir", names),
                   "system \"ir\""); /* two letters contain too little: by distance alone */
    assert_string_equal(hint("mountain", names),
                        "no system \"mountain\"; 'dlmodel list systems' shows the names");
}

static void at_most_eight(void **state) {
    (void)state;
    static const char *const names[] = {"abc1", "abc2", "abc3", "abc4", "abc5",
                                        "abc6", "abc7", "abc8", NULL,   NULL};
    const char *more[] = {"abc1", "abc2", "abc3", "abc4", "abc5",
                          "abc6", "abc7", "abc8", "abc9", NULL};
    const char *text = hint("abc", names);
    check_contains(text, "\"abc7\" or \"abc8\"?");
    assert_null(strstr(text, "..."));
    text = hint("abc", more);
    check_contains(text, "\"abc7\", \"abc8\", ...?");
    assert_null(strstr(text, "abc9"));
    more[8] = NULL, more[7] = "xyz";
    check_contains(hint("abc", more), "\"abc6\" or \"abc7\"?");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_that_contain_it),
                                       cmocka_unit_test(near_and_far_names),
                                       cmocka_unit_test(at_most_eight)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The text of an error, and the search for the name that was meant. */
#include "model/core/status.h"
#include "tests/check.h"

static void test_long_and_hostile_text(void **state) {
    struct dl_err err;
    char big[2000], text[1600];

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

/* By its definition: the cheapest of removing, adding, replacing a letter or swapping two. */
static int distance(const char *a, int a_length, const char *b, int b_length) {
    if (a_length == 0 || b_length == 0) return a_length + b_length;
    int least = distance(a, a_length - 1, b, b_length - 1) + (a[a_length - 1] != b[b_length - 1]);
    const int less_a = distance(a, a_length - 1, b, b_length) + 1,
              less_b = distance(a, a_length, b, b_length - 1) + 1;
    if (less_a < least) least = less_a;
    if (less_b < least) least = less_b;
    if (a_length > 1 && b_length > 1 && a[a_length - 1] == b[b_length - 2] &&
        a[a_length - 2] == b[b_length - 1]) {
        const int swapped = distance(a, a_length - 2, b, b_length - 2) + 1;
        if (swapped < least) least = swapped;
    }
    return least;
}

/* The first of the nearest names, within one slip in three letters and one more, but never as many
 * as there are letters; else the first that begins with three letters or more. */
static void test_suggestions_by_definition(void **state) {
    uint64_t seed = 31;
    int near = 0, none = 0;

    for (int round = 0; round < 3000; round++) {
        char words[6][8];
        const char *names[6] = {words[1], words[2], words[3], words[4], words[5], NULL};
        for (int w = 0; w < 6; w++) {
            const int length = 1 + (int)(check_random(&seed) % 6);
            for (int i = 0; i < length; i++) words[w][i] = (char)('a' + check_random(&seed) % 3);
            words[w][length] = '\0';
        }
        const int length = (int)strlen(words[0]);
        int best = length / 3 + 1 < length ? length / 3 + 1 : length - 1;
        const char *expected = NULL, *longer = NULL;
        for (int n = 0; n < 5; n++) {
            const int d = distance(words[0], length, names[n], (int)strlen(names[n]));
            if (d < best || (d == best && expected == NULL)) best = d, expected = names[n];
            if (length >= 3 && longer == NULL && strncmp(names[n], words[0], (size_t)length) == 0)
                longer = names[n];
        }
        const char *found = dl_suggest(words[0], names);
        if (expected == NULL) expected = longer;
        if (found != expected)
            fail_msg("%s: %s, expected %s", words[0], found ? found : "-",
                     expected ? expected : "-");
        near += found != NULL, none += found == NULL;
    }
    assert_true(near > 300 && none > 300);
    /* words of up to 127 letters */
    char word[140], name[140];
    memset(word, 'w', sizeof word), memset(name, 'w', sizeof name);
    word[126] = name[127] = '\0';
    const char *const one[] = {name, NULL};
    assert_ptr_equal(dl_suggest(word, one), name);
    word[126] = 'w', word[128] = '\0';
    assert_null(dl_suggest(word, one));
    word[126] = '\0', name[127] = 'w', name[128] = '\0';
    assert_null(dl_suggest(word, one));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_and_hostile_text),

        cmocka_unit_test(test_suggestions_by_definition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

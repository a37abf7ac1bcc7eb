/* model/statistics/classes.h: by hand, and against all pairs. */
#include "model/statistics/classes.h"
#include "tests/check.h"

static uint64_t hash_of(const void *context, int item) {
    return dl_hash_text(DL_HASH_START, ((const char *const *)context)[item]);
}

static uint64_t one_hash(const void *context, int item) {
    (void)context;
    (void)item;
    return 7; /* all in one slot */
}

static bool equal(const void *context, int a, int b) {
    const char *const *words = context;
    return strcmp(words[a], words[b]) == 0;
}

static void words_by_hand(void **state) {
    static const char *const words[] = {"a", "b", "a", "c", "b", "a"};
    static const int first[] = {0, 1, 0, 3, 1, 0}, next[] = {2, 4, 5, -1, -1, -1};
    for (int same = 0; same < 2; same++) {
        const struct dl_class_keys keys = {same == 1 ? one_hash : hash_of, equal, words};
        struct dl_arena arena = {0};
        struct dl_classes classes;
        classes = dl_classes_make(&keys, 6, &arena);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(classes.first[i], first[i]);
            assert_int_equal(classes.next[i], next[i]);
        }
        classes = dl_classes_make(&keys, 0, &arena);
        dl_arena_free(&arena);
    }
}

static void hashes_are_fnv1a(void **state) {
    assert_true(dl_hash_bytes(DL_HASH_START, "a", 1) == 0xaf63dc4c8601ec8cu); /* published */
    assert_true(dl_hash_text(DL_HASH_START, "") == dl_hash_bytes(DL_HASH_START, "\0", 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_by_hand),
        cmocka_unit_test(hashes_are_fnv1a),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

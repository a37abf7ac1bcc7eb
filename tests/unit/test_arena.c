/* Memory that dies as one: zeroed, aligned, apart from its neighbours, and never wrapped around. */
#include <stdalign.h>

#include "model/core/arena.h"
#include "tests/check.h"

/* Under AddressSanitizer each object is a block of its own and ends where it was asked to. */
#ifdef __SANITIZE_ADDRESS__
enum { PADDED = 0 };
#else
enum { PADDED = 1 };
#endif

static void test_alloc(void **state) {
    struct dl_arena arena = {0};
    unsigned char *blocks[200];

    for (size_t i = 0; i < 200; i++) {
        size_t size = i * 37;

        blocks[i] = dl_arena_alloc(&arena, size, 1);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % alignof(max_align_t), 0);
        for (size_t j = 0; j < size; j++) assert_int_equal(blocks[i][j], 0);
        memset(blocks[i], (int)i, size);
    }
    for (size_t i = 0; i < 200; i++) /* nobody wrote over a neighbour */
        for (size_t j = 0; j < i * 37; j++) assert_int_equal(blocks[i][j], (unsigned char)i);
    assert_true(arena.total_bytes >= 199 * 200 / 2 * 37);
    dl_arena_clear(&arena);
    assert_int_equal(arena.total_bytes, 0);
    const unsigned char *again = dl_arena_alloc(&arena, 100000, 1); /* what is kept is zeroed */
    for (size_t j = 0; j < 100000; j++) assert_int_equal(again[j], 0);
    dl_arena_free(&arena);
    assert_null(arena.head);
    assert_int_equal(arena.total_bytes, 0);
    assert_non_null(dl_arena_alloc(&arena, 1, 8)); /* usable again */
    dl_arena_free(&arena);
    dl_arena_free(&arena);
}

static void test_edges(void **state) {
    struct dl_arena arena = {0};
    void *a = dl_arena_alloc(&arena, 0, 8), *b = dl_arena_alloc(&arena, 0, 8),
         *c = dl_arena_alloc(&arena, 8, 0);
    volatile size_t huge = SIZE_MAX;

    assert_true(a != NULL && b != NULL && c != NULL && a != b && b != c);
    assert_int_equal(arena.total_bytes, 3 * alignof(max_align_t));
    assert_non_null(dl_arena_alloc(&arena, alignof(max_align_t), 2));
    assert_int_equal(arena.total_bytes, 5 * alignof(max_align_t)); /* no more than it takes */
    const size_t odd = alignof(max_align_t) + 1, taken = PADDED ? 2 * alignof(max_align_t) : odd;
    assert_non_null(dl_arena_alloc(&arena, odd, 1));
    assert_int_equal(arena.total_bytes, 5 * alignof(max_align_t) + taken);
    assert_null(dl_arena_alloc(&arena, huge, 1));
    assert_int_equal(arena.total_bytes, 5 * alignof(max_align_t) + taken);
    assert_null(dl_arena_alloc(&arena, huge / 2, 4));
    assert_null(dl_arena_alloc(&arena, 3, huge / 2));
    assert_null(dl_arena_strndup(&arena, "x", huge));
    assert_non_null(dl_arena_alloc(&arena, 1, 5000000)); /* larger than any block */
    dl_arena_free(&arena);
}

struct asked {
    struct dl_arena arena;
    size_t bytes;
    bool returned;
};

static enum dl_code ask(void *state, struct dl_err *err) {
    struct asked *a = state;
    (void)err;
    (void)dl_arena_alloc(&a->arena, a->bytes, 1);
    a->returned = true;
    return DL_OK;
}

/* What asks for too much is abandoned, at any depth of guards, and the guard outside goes on. */
static enum dl_code ask_within(void *state, struct dl_err *err) {
    struct asked *a = state;
    if (dl_guarded(ask, a, err) != DL_ERR_SYSTEM || a->returned) return DL_ERR_NO;
    a->bytes = 8;
    return dl_guarded(ask, a, err);
}

static void test_guard(void **state) {
    struct asked a = {{0}, SIZE_MAX, false};
    struct dl_err err = {0};
    assert_int_equal(dl_guarded(ask, &a, &err), DL_ERR_SYSTEM);
    assert_string_equal(err.message, "out of memory");
    assert_false(a.returned);
    assert_int_equal(dl_guarded(ask_within, &a, &err), DL_OK);
    assert_true(a.returned);
    dl_arena_free(&a.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_guard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Records in order: few, which stay in memory, and so many that they wait on disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "import/disk_sort.h"
#include "tests/check.h"

struct record {
    uint64_t key, order;
    unsigned char more[8];
};

static int by_key(const void *a, const void *b) {
    const struct record *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* A permutation of 0 .. 2^20 - 1, cut to `keys`: each key comes again and again. */
static struct record make(uint64_t i, uint64_t keys) {
    struct record r = {(i * 0x9e377 + 12345) % (1 << 20) % keys, i, {0}};
    r.more[i % 8] = (unsigned char)(r.key & 0xff);
    return r;
}

/* In order, equal ones as they were added, nothing lost, nothing changed. */
static void check_read(struct dl_disk_sort *s, uint64_t count, uint64_t keys) {
    struct dl_err err = {0};
    uint64_t last_key = 0, last_order = 0, seen = 0, sum = 0;
    assert_int_equal(dl_disk_sort_start(s, &err), DL_OK);
    for (;; seen++) {
        const void *next;
        assert_int_equal(dl_disk_sort_next(s, &next, &err), DL_OK);
        if (next == NULL) break;
        const struct record r = *(const struct record *)next, same = make(r.order, keys);
        assert_memory_equal(&r, &same, sizeof r);
        assert_true(seen == 0 || r.key > last_key || (r.key == last_key && r.order > last_order));
        last_key = r.key;
        last_order = r.order;
        sum += r.order;
    }
    assert_int_equal(seen, count);
    assert_int_equal(sum, count == 0 ? 0 : count * (count - 1) / 2);
}

static void check_sort(uint64_t count, uint64_t keys, bool on_disk) {
    struct dl_err err = {0};
    struct dl_disk_sort s;
    dl_disk_sort_init(&s, sizeof(struct record), by_key);
    for (uint64_t i = 0; i < count; i++) {
        const struct record r = make(i, keys);
        assert_int_equal(dl_disk_sort_add(&s, &r, &err), DL_OK);
    }
    assert_int_equal(s.total, count);
    check_read(&s, count, keys);
    check_read(&s, count, keys); /* again */
    assert_int_equal(s.file >= 0, on_disk);
    assert_true(s.capacity * s.record_bytes <= DL_DISK_SORT_BYTES);
    dl_disk_sort_close(&s);
}

static void test_sort(void **state) {
    const uint64_t full = DL_DISK_SORT_BYTES / sizeof(struct record);
    (void)state;
    check_sort(0, 10, false);
    check_sort(1, 10, false);
    check_sort(5000, 100, false);
    check_sort(full, 1 << 20, false);
    check_sort(full + 1, 1 << 20, true); /* a run of one record */
    check_sort(5 * full + 77, 1 << 20, true);
    check_sort(4 * full, 3, true); /* three keys */
}

static void test_no_room(void **state) {
    const uint64_t count = DL_DISK_SORT_BYTES / sizeof(struct record) + 1;
    struct dl_err err = {0};
    struct dl_disk_sort s;
    enum dl_code code = DL_OK;
    (void)state;
    setenv("TMPDIR", "/nonexistent", 1);
    dl_disk_sort_init(&s, sizeof(struct record), by_key);
    for (uint64_t i = 0; i < count && code == DL_OK; i++) {
        const struct record r = make(i, 10);
        code = dl_disk_sort_add(&s, &r, &err);
    }
    assert_int_equal(code, DL_ERR_SYSTEM);
    check_contains(err.message, "cannot make a temporary file in $TMPDIR or /tmp: No such file");
    dl_disk_sort_close(&s);
    unsetenv("TMPDIR");
    struct dl_disk_sort none = {0};
    dl_disk_sort_close(&none); /* closes no file of anyone's */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sort), cmocka_unit_test(test_no_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

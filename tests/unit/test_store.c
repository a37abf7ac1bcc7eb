/* What the store keeps (store.h): by name, kind and all that loading depends on; what it never
 * keeps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/catalog/store.h"
#include "tests/check.h"

static int loads;
static size_t bytes_of_value; /* that a value takes besides its text */
static enum dl_code code_of_load;

/* Another value each time, in the arena that it is given. */
static enum dl_code load(const struct dl_data *data, const char *name, struct dl_arena *arena,
                         const void **out, struct dl_err *err) {
    (void)data;
    if (code_of_load != DL_OK) return dl_fail(err, code_of_load, "not %s", name);
    if (bytes_of_value > 0) assert_non_null(dl_arena_alloc(arena, bytes_of_value, 1));
    *out = dl_arena_printf(arena, "%s %d", name, ++loads);
    return *out != NULL ? DL_OK : DL_ERR_SYSTEM;
}

static struct dl_arena arena;

/* While it loads, the same is asked for again and kept: as by another thread that is faster. */
static enum dl_code load_twice(const struct dl_data *data, const char *name, struct dl_arena *own,
                               const void **out, struct dl_err *err) {
    static int depth;
    if (depth == 0) {
        const void *inner = NULL;
        depth = 1;
        assert_int_equal(dl_store_load(data, DL_DATA_SYSTEM, name, load_twice, own, &inner, err),
                         DL_OK);
        depth = 0;
    }
    return load(data, name, own, out, err);
}

static const char *get(const struct dl_data *data, enum dl_data_kind kind, const char *name) {
    const void *out = NULL;
    struct dl_err err = {0};
    assert_int_equal(dl_store_load(data, kind, name, load, &arena, &out, &err), DL_OK);
    return out;
}

static bool keeps(const struct dl_data *data, enum dl_data_kind kind, const char *name) {
    const char *first = get(data, kind, name);
    const bool kept = get(data, kind, name) == first;
    if (data->store != NULL) assert_int_equal(dl_store_holds(data->store, first), kept);
    return kept;
}

static int setup(void **state) {
    (void)state;
    loads = 0;
    bytes_of_value = 0;
    code_of_load = DL_OK;
    return 0;
}
static int teardown(void **state) {
    (void)state;
    dl_arena_free(&arena);
    return 0;
}

static void what_is_kept(void **state) {
    (void)state;
    const char *const folders[] = {"/data"};
    struct dl_data data = {.directories = folders, .directory_count = 1, .store = dl_store_open()};
    static const enum dl_data_kind kinds[] = {DL_DATA_DEVICE,    DL_DATA_SYSTEM, DL_DATA_WORKLOAD,
                                              DL_DATA_FRAMEWORK, DL_DATA_LAYERS, DL_DATA_INTERVALS};
    const char *first[6];
    for (int i = 0; i < 6; i++) {
        assert_true(keeps(&data, kinds[i], "name"));
        first[i] = get(&data, kinds[i], "name");
        for (int k = 0; k < i; k++) assert_true(first[k] != first[i]); /* each kind its own */
        assert_true(get(&data, kinds[i], "other") != first[i]);
    }
    assert_int_equal(loads, 12);
    /* many names, so that some share a bucket */
    enum { MANY = 2500 };
    static const char *values[MANY];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            char name[24], expected[40];
            snprintf(name, sizeof name, "n%d", i);
            const char *value = get(&data, DL_DATA_LAYERS, name);
            snprintf(expected, sizeof expected, "n%d %d", i, 13 + i);
            assert_string_equal(value, expected);
            if (round > 0) assert_ptr_equal(value, values[i]);
            assert_true(dl_store_holds(data.store, value));
            values[i] = value;
        }
    }
    assert_int_equal(loads, 12 + MANY);
    assert_false(dl_store_holds(data.store, &data));
    assert_false(dl_store_holds(data.store, values[0] + 1));
    dl_store_close(data.store);
    dl_store_close(NULL);
}

static void what_is_not_kept(void **state) {
    (void)state;
    const char *const folders[] = {"/data"};
    const struct dl_attachment sent[] = {{.name = "sent"}};
    struct dl_override device = {.key = "device.memory"}, other = {.key = "links.inter.latency"};
    struct dl_data data = {.directories = folders, .directory_count = 1};
    assert_false(keeps(&data, DL_DATA_SYSTEM, "name")); /* without a store */
    data.store = dl_store_open();
    assert_false(keeps(&data, DL_DATA_SYSTEM, "local"));
    assert_false(keeps(&data, DL_DATA_SYSTEM, "./name"));
    assert_false(keeps(&data, DL_DATA_SYSTEM, "name.json"));
    data.attachments = sent, data.attachment_count = 1;
    assert_false(keeps(&data, DL_DATA_SYSTEM, "sent"));
    assert_false(keeps(&data, DL_DATA_INTERVALS, "sent"));
    assert_true(keeps(&data, DL_DATA_SYSTEM, "not-sent"));
    /* --set changes a device alone, or all but devices */
    data.overrides = &device, data.override_count = 1;
    assert_false(keeps(&data, DL_DATA_DEVICE, "set"));
    assert_false(keeps(&data, DL_DATA_SYSTEM, "set"));
    assert_false(keeps(&data, DL_DATA_WORKLOAD, "set"));
    data.overrides = &other;
    assert_true(keeps(&data, DL_DATA_DEVICE, "set"));
    assert_false(keeps(&data, DL_DATA_SYSTEM, "set"));
    assert_true(keeps(&data, DL_DATA_INTERVALS, "set"));
    data.override_count = 0;
    /* hashes: of files in the data directories, but for the profile */
    assert_true(keeps(&data, DL_DATA_HASH, "/data/a.json"));
    assert_false(keeps(&data, DL_DATA_HASH, "/other/a.json"));
    assert_false(keeps(&data, DL_DATA_HASH, "/data2/a.json"));
    assert_false(keeps(&data, DL_DATA_HASH, "/data/../a.json"));
    data.local_profile = "/data/profile.json";
    assert_false(keeps(&data, DL_DATA_HASH, "/data/profile.json"));
    assert_true(keeps(&data, DL_DATA_HASH, "/data/b.json"));
    /* what fails */
    code_of_load = DL_ERR_INPUT;
    const void *out = NULL;
    struct dl_err err = {0};
    assert_int_equal(dl_store_load(&data, DL_DATA_SYSTEM, "bad", load, &arena, &out, &err),
                     DL_ERR_INPUT);
    assert_string_equal(err.message, "not bad");
    code_of_load = DL_OK;
    assert_true(keeps(&data, DL_DATA_SYSTEM, "bad"));
    /* the faster one stays, and its value is that of both */
    const int before = loads;
    assert_int_equal(dl_store_load(&data, DL_DATA_SYSTEM, "race", load_twice, &arena, &out, &err),
                     DL_OK);
    assert_int_equal(loads, before + 2);
    char expected[24];
    snprintf(expected, sizeof expected, "race %d", before + 1);
    assert_string_equal(out, expected);
    assert_true(dl_store_holds(data.store, out));
    assert_ptr_equal(get(&data, DL_DATA_SYSTEM, "race"), out);
    dl_store_close(data.store);
}

/* Frameworks by release, kernels' release, architecture, and whether intervals are known; those of
 * other intervals than the store's are not kept. Workloads by training. */
static void what_loading_depends_on(void **state) {
    (void)state;
    const char *const folders[] = {"/data"};
    struct dl_data data = {.directories = folders, .directory_count = 1, .store = dl_store_open()};
    const char *all[8];
    int count = 0;
    all[count++] = get(&data, DL_DATA_FRAMEWORK, "f");
    data.release = "1.0";
    all[count++] = get(&data, DL_DATA_FRAMEWORK, "f");
    data.kernels_release = "2.0";
    all[count++] = get(&data, DL_DATA_FRAMEWORK, "f");
    data.architecture = "volta";
    all[count++] = get(&data, DL_DATA_FRAMEWORK, "f");
    data.intervals = (const void *)get(&data, DL_DATA_INTERVALS, "i");
    all[count++] = get(&data, DL_DATA_FRAMEWORK, "f");
    assert_true(keeps(&data, DL_DATA_FRAMEWORK, "f"));
    all[count++] = get(&data, DL_DATA_WORKLOAD, "f");
    assert_true(get(&data, DL_DATA_SYSTEM, "w") == get(&data, DL_DATA_SYSTEM, "w"));
    data.training = true;
    all[count++] = get(&data, DL_DATA_WORKLOAD, "f");
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++) assert_true(all[i] != all[k]);
    const char *system = get(&data, DL_DATA_SYSTEM, "w"); /* depends on none of them */
    data.training = false, data.release = NULL;
    assert_ptr_equal(get(&data, DL_DATA_SYSTEM, "w"), system);
    static const char others[] = "other intervals";
    data.intervals = (const void *)others;
    assert_false(keeps(&data, DL_DATA_FRAMEWORK, "f"));
    dl_store_close(data.store);
}

/* 256 MiB are kept and no more: what comes later is loaded each time, what was kept stays. */
static void no_more_than_there_is_room_for(void **state) {
    (void)state;
    const char *const folders[] = {"/data"};
    struct dl_data data = {.directories = folders, .directory_count = 1, .store = dl_store_open()};
    bytes_of_value = (size_t)100 << 20;
    const char *one = get(&data, DL_DATA_SYSTEM, "one");
    assert_true(keeps(&data, DL_DATA_SYSTEM, "two"));
    bytes_of_value = (size_t)57 << 20;
    assert_false(keeps(&data, DL_DATA_SYSTEM, "three"));
    bytes_of_value = 0;
    assert_true(keeps(&data, DL_DATA_SYSTEM, "four"));
    assert_ptr_equal(get(&data, DL_DATA_SYSTEM, "one"), one);
    dl_store_close(data.store);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {test(what_is_kept), test(what_is_not_kept),
                                       test(what_loading_depends_on),
                                       test(no_more_than_there_is_room_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

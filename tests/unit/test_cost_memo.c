/* What a memo of kernel times finds again, and what it drops once the objects that it names may
 * have ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/cost_memo.h"

static struct dl_device device;
static struct dl_workload workload, other_workload;
static struct dl_framework framework;
static struct dl_arena arena;

static struct dl_memo_entry entry(const struct dl_device *d, const struct dl_workload *w,
                                  double samples) {
    return (struct dl_memo_entry){
        .device = d, .workload = w, .framework = &framework, .samples = samples, .parts = 1};
}

static bool finds(const struct dl_cost_memo *memo, const struct dl_memo_entry *wanted) {
    const struct dl_memo_entry asked = entry(wanted->device, wanted->workload, wanted->samples);
    const struct dl_memo_entry *e = dl_cost_memo_first(memo, DL_MEMO_STACK, &asked);
    while (e != NULL && !dl_memo_entry_same(e, &asked)) e = e->next;
    return e == wanted;
}

static void finds_what_was_added(void **state) {
    struct dl_cost_memo memo = {.arena = &arena};
    struct dl_memo_entry entries[200];
    (void)state;
    for (int i = 0; i < 200; i++) {
        entries[i] = entry(&device, i % 2 == 0 ? &workload : &other_workload, 1 + i / 2);
        assert_false(finds(&memo, &entries[i]));
        dl_cost_memo_add(&memo, DL_MEMO_STACK, &entries[i]);
    }
    for (int i = 0; i < 200; i++) assert_true(finds(&memo, &entries[i]));
    assert_null(dl_cost_memo_first(&memo, DL_MEMO_LAYERS, &entries[0]));
}

static void every_member_counts(void **state) {
    const struct dl_memo_entry a = entry(&device, &workload, 8);
    struct dl_memo_entry b = a;
    (void)state;
    assert_true(dl_memo_entry_same(&a, &b));
    b.samples = 9;
    assert_false(dl_memo_entry_same(&a, &b));
    b = a, b.parts = 2;
    assert_false(dl_memo_entry_same(&a, &b));
    b = a, b.layer_times = (const struct dl_layer_times *)&arena;
    assert_false(dl_memo_entry_same(&a, &b));
    b = a, b.framework = NULL;
    assert_false(dl_memo_entry_same(&a, &b));
    b = a, b.device = NULL;
    assert_false(dl_memo_entry_same(&a, &b));
    b = a, b.workload = &other_workload;
    assert_false(dl_memo_entry_same(&a, &b));
}

/* The objects above stay, but for `user`. */
static bool is_not(void *user, const void *object) {
    return object != user && (object == &device || object == &workload ||
                              object == &other_workload || object == &framework);
}

static void settling_drops_what_ends(void **state) {
    struct dl_cost_memo memo = {.arena = &arena};
    struct dl_memo_entry stays = entry(&device, &workload, 1),
                         ends = entry(&device, &other_workload, 1);
    struct dl_memo_entry profiled = entry(&device, &workload, 2);
    (void)state;
    profiled.layer_times = (const struct dl_layer_times *)&other_workload;
    dl_cost_memo_add(&memo, DL_MEMO_STACK, &stays);
    dl_cost_memo_add(&memo, DL_MEMO_STACK, &ends);
    dl_cost_memo_add(&memo, DL_MEMO_STACK, &profiled);
    dl_cost_memo_settle(&memo, is_not, &other_workload);
    assert_true(finds(&memo, &stays));
    assert_false(finds(&memo, &ends));
    for (const struct dl_memo_entry *e = dl_cost_memo_first(&memo, DL_MEMO_STACK, &profiled);
         e != NULL; e = e->next)
        assert_ptr_not_equal(e, &profiled);
    /* What is settled is asked about no more. */
    dl_cost_memo_settle(&memo, is_not, &workload);
    assert_true(finds(&memo, &stays));
}

/* Each of the four objects that an entry names ends it. */
static void settling_asks_for_every_object(void **state) {
    (void)state;
    static struct dl_layer_times *const times = (struct dl_layer_times *)&other_workload;
    const void *const objects[] = {&device, &workload, &framework, times};
    for (int i = 0; i < 4; i++) {
        struct dl_cost_memo memo = {.arena = &arena};
        struct dl_memo_entry ends = entry(&device, &workload, 1);
        ends.layer_times = times;
        dl_cost_memo_add(&memo, DL_MEMO_STACK, &ends);
        assert_ptr_equal(dl_cost_memo_first(&memo, DL_MEMO_STACK, &ends), &ends);
        dl_cost_memo_settle(&memo, is_not, (void *)(uintptr_t)objects[i]);
        assert_null(dl_cost_memo_first(&memo, DL_MEMO_STACK, &ends));
    }
}

static void settling_drops_every_kind(void **state) {
    (void)state;
    for (int kind = 0; kind < DL_MEMO_KINDS; kind++) {
        struct dl_cost_memo memo = {.arena = &arena};
        struct dl_memo_entry stays = entry(&device, &workload, 1),
                             ends = entry(&device, &other_workload, 1);
        dl_cost_memo_add(&memo, (enum dl_memo_kind)kind, &stays);
        dl_cost_memo_add(&memo, (enum dl_memo_kind)kind, &ends);
        dl_cost_memo_settle(&memo, is_not, &other_workload);
        bool found = false;
        for (const struct dl_memo_entry *e =
                 dl_cost_memo_first(&memo, (enum dl_memo_kind)kind, &stays);
             e != NULL; e = e->next)
            found = found || e == &stays;
        assert_true(found);
        for (const struct dl_memo_entry *e =
                 dl_cost_memo_first(&memo, (enum dl_memo_kind)kind, &ends);
             e != NULL; e = e->next)
            assert_ptr_not_equal(e, &ends);
    }
}

/* Kernels of a changed device stay as long as the device that it was made from. */
static void devices_end_with_theirs(void **state) {
    static struct dl_memo_device faster;
    struct dl_cost_memo memo = {.arena = &arena, .devices = &faster};
    struct dl_memo_entry first = entry(&faster.device, &workload, 1),
                         second = entry(&faster.device, &workload, 2);
    (void)state;
    faster = (struct dl_memo_device){.of = &device, .resource = 3, .by_ratio = 1.1};
    assert_ptr_equal(dl_cost_memo_device(&memo, &device, 3, 1.1), &faster.device);
    assert_null(dl_cost_memo_device(&memo, &device, 3, 1.2));
    assert_null(dl_cost_memo_device(&memo, &device, 4, 1.1));
    assert_null(dl_cost_memo_device(&memo, &faster.device, 3, 1.1));
    dl_cost_memo_add(&memo, DL_MEMO_STACK, &first);
    dl_cost_memo_settle(&memo, is_not, &other_workload);
    assert_true(finds(&memo, &first));
    dl_cost_memo_add(&memo, DL_MEMO_STACK, &second);
    dl_cost_memo_settle(&memo, is_not, &device);
    assert_false(finds(&memo, &second));
    assert_null(dl_cost_memo_device(&memo, &device, 3, 1.1));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_what_was_added),
                                       cmocka_unit_test(every_member_counts),
                                       cmocka_unit_test(settling_drops_what_ends),
                                       cmocka_unit_test(settling_drops_every_kind),
                                       cmocka_unit_test(settling_asks_for_every_object),
                                       cmocka_unit_test(devices_end_with_theirs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

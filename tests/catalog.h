/* catalog.h - for tests: everything in data/ and two small transformers.
 */
#ifndef TESTS_CATALOG_H
#define TESTS_CATALOG_H

#include <stdio.h>

#include "model/catalog/data.h"
#include "tests/check.h"

enum { MOST = 128 };

static struct {
    struct dl_arena arena;
    const struct dl_system *systems[MOST];
    const struct dl_workload *workloads[MOST];
    const struct dl_framework *frameworks[MOST];
    int system_count, workload_count, framework_count;
} all;
/* Setup and teardown of a group of tests. */
static inline int catalog_load(void **state) {
    (void)state;
    char directory[4096];
    const char *directories[] = {directory}, **names;
    struct dl_err err = {0};
    snprintf(directory, sizeof directory, "%s/data", check_root());
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    dl_data_names(&data, DL_DATA_SYSTEM, &all.arena, &names);
    for (int i = 0; names[i] != NULL && i < MOST; i++) {
        if (dl_data_system(&data, names[i], &all.arena, &all.systems[all.system_count++], &err) !=
            DL_OK)
            return -1;
    }
    dl_data_names(&data, DL_DATA_FRAMEWORK, &all.arena, &names);
    for (int i = 0; names[i] != NULL && i < MOST; i++) {
        if (dl_data_framework(&data, names[i], &all.arena, &all.frameworks[all.framework_count++],
                              &err) != DL_OK)
            return -1;
    }
    dl_data_names(&data, DL_DATA_WORKLOAD, &all.arena, &names);
    for (int i = 0; names[i] != NULL && i < MOST; i++) {
        if (dl_data_workload(&data, names[i], &all.arena, &all.workloads[all.workload_count++],
                             &err) != DL_OK)
            return -1;
    }
    static const char *const small[] = {
        "gpt:layers=4,hidden=512,heads=8,seq=256,vocab=1000",
        "gpt:layers=8,hidden=256,heads=4,seq=128,vocab=1024,experts=4"};
    for (int i = 0; i < 2 && all.workload_count < MOST; i++) {
        if (dl_data_workload(&data, small[i], &all.arena, &all.workloads[all.workload_count++],
                             &err) != DL_OK)
            return -1;
    }
    return all.system_count > 0 && all.framework_count > 0 ? 0 : -1;
}

static inline int catalog_free(void **state) {
    (void)state;
    dl_arena_free(&all.arena);
    return 0;
}

#endif

/* load_workload.h - for tests: a workload from text, or by name with its chain of extends.
 */
#ifndef TESTS_LOAD_WORKLOAD_H
#define TESTS_LOAD_WORKLOAD_H

#include "model/workload/workload.h"
#include "tests/check.h"

/* Test documents are written with ' in place of ", which no test needs in a string. */
static inline char *quoted(const char *text, struct dl_arena *arena) {
    char *copy = dl_arena_strdup(arena, text);
    for (char *c = copy; c != NULL && *c != '\0'; c++) *c = *c == '\'' ? '"' : *c;
    return copy;
}

/* Builds from one document; err may be NULL. */
static inline enum dl_code load_text(const char *text, struct dl_override *overrides, int count,
                                     struct dl_arena *arena, struct dl_workload *out,
                                     struct dl_err *err) {
    struct dl_json *doc = NULL;
    const struct dl_json *docs[1];
    struct dl_err own;
    if (err == NULL) err = &own;
    memset(err, 0, sizeof *err);
    text = quoted(text, arena);
    DL_TRY(dl_json_parse("test.json", text, strlen(text), arena, &doc, err));
    docs[0] = doc;
    return dl_workload_build(docs, 1, overrides, count, arena, out, err);
}

/* The same from test_arena; fails the test when that goes wrong. */
static inline void build(struct dl_workload *out, const char *text) {
    struct dl_err err;
    memset(out, 0, sizeof *out);
    if (load_text(text, NULL, 0, &test_arena, out, &err) != DL_OK)
        fail_msg("%s: %s: %s", text, err.key, err.message);
}

/* Builds data/workloads/NAME.json; fails the test when that goes wrong. */
static inline void load_name(const char *name, struct dl_override *overrides, int count,
                             struct dl_arena *arena, struct dl_workload *out) {
    const struct dl_json *docs[DL_WORKLOAD_EXTENDS];
    struct dl_err err = {0};
    int doc_count = 0;
    while (name != NULL && doc_count < DL_WORKLOAD_EXTENDS) {
        char path[512];
        struct dl_json *doc = NULL;
        snprintf(path, sizeof path, "%s/data/workloads/%s.json", check_root(), name);
        if (dl_json_read(path, arena, &doc, &err) != DL_OK) fail_msg("%s: %s", path, err.message);
        docs[doc_count++] = doc;
        if (dl_workload_extends(doc, arena, &name, &err) != DL_OK)
            fail_msg("%s: %s", path, err.message);
    }
    if (dl_workload_build(docs, doc_count, overrides, count, arena, out, &err) != DL_OK) {
        fail_msg("%s: %s:%d: %s: %s", dl_json_name(docs[0]), err.file, err.line, err.key,
                 err.message);
    }
}

/* The layer of that name; fails the test when there is none. */
static inline const struct dl_layer *find_layer(const struct dl_workload *workload,
                                                const char *name) {
    for (int i = 0; i < workload->layer_count; i++) {
        if (strcmp(workload->layers[i].name, name) == 0) return &workload->layers[i];
    }
    fail_msg("no layer '%s' in %s", name, workload->name);
    return NULL;
}

#endif

/* compare_counts.c - see compare_counts.h. */
#include "predict/compare/compare_counts.h"

#include <string.h>

#include "model/base/classes.h"
#include "model/base/text.h"

enum { SHOWN_REASONS = 8 };

static const char *reason_of(const struct dl_compared *row) {
    return row->skipped ? row->why : NULL;
}

/* A remark on a prediction that is not the cause of its error. */
static const char *remark_of(const struct dl_compared *row) {
    const bool is_cause =
        row->cause != NULL && row->remark != NULL && strcmp(row->cause, row->remark) == 0;
    return row->skipped || is_cause ? NULL : row->remark;
}

struct texts {
    const struct dl_comparison *c;
    const char *(*text_of)(const struct dl_compared *);
};

static const char *text_at(const struct texts *t, int row) {
    const char *text = t->text_of(&t->c->rows[row]);
    return text != NULL ? text : "";
}

static uint64_t text_hash(const void *context, int row) {
    return dl_hash_text(DL_HASH_START, text_at(context, row));
}

static bool text_equal(const void *context, int a, int b) {
    return strcmp(text_at(context, a), text_at(context, b)) == 0;
}

/* The number of rows with each text, under a heading. */
static const char *counted_text(const struct dl_comparison *c, const char *heading,
                                const char *(*text_of)(const struct dl_compared *)) {
    const struct texts texts = {c, text_of};
    const struct dl_class_keys keys = {text_hash, text_equal, &texts};
    struct dl_classes classes;
    const char *lines = "";
    int shown = 0;
    if (dl_classes_make(&keys, c->count, c->arena, &classes, NULL) != DL_OK) return NULL;
    for (int i = 0; i < c->count; i++) {
        const char *text = text_at(&texts, i);
        int same = 0;
        if (text[0] == 0 || classes.first[i] != i) continue;
        if (shown++ == SHOWN_REASONS) {
            lines = dl_arena_printf(c->arena, "%s  others: see --rows\n", lines);
            break;
        }
        for (int k = i; k >= 0; k = classes.next[k]) same++;
        lines = dl_arena_printf(c->arena, "%s  %5d  %s\n", lines, same, text);
    }
    return shown == 0 ? "" : dl_arena_printf(c->arena, "\n%s\n%s", heading, lines);
}

const char *dl_compare_reasons(const struct dl_comparison *c) {
    return counted_text(c, "Rows not predicted", reason_of);
}

const char *dl_compare_remarks(const struct dl_comparison *c) {
    return counted_text(c, "Remarks on rows", remark_of);
}

const char *dl_compare_part_csv(const struct dl_comparison *c, const char *csv) {
    struct dl_text out = {.arena = c->arena};
    for (int row = -1; csv != NULL && *csv != 0; row++) { /* -1: the header */
        size_t length = 0;
        for (bool quoted = false; csv[length] != 0 && (quoted || csv[length] != '\n'); length++) {
            if (csv[length] == '"') quoted = !quoted;
        }
        if (row < 0)
            dl_text_printf(&out, "shard_row,%.*s\n", (int)length, csv);
        else if (!c->rows[row].elsewhere)
            dl_text_printf(&out, "%d,%.*s\n", row + 1, (int)length, csv);
        csv += length + (csv[length] == '\n' ? 1 : 0);
    }
    return csv == NULL ? NULL : dl_text_string(&out);
}

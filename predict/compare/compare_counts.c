/* compare_counts.c - see compare_counts.h. */
#include "predict/compare/compare_counts.h"

#include <string.h>

#include "model/statistics/classes.h"
#include "predict/compare/compare_runs.h"

enum { SHOWN_REASONS = 8 };

static const char *reason_of(const struct dl_compared *row) {
    return row->skipped ? row->why : NULL;
}

static const char *remark_of(const struct dl_compared *row) {
    return row->skipped ? NULL : row->remark;
}

struct texts {
    const struct dl_comparison *c;
    const char *(*text_of)(const struct dl_compared *);
};

static const char *text_at(const void *context, int item) {
    const struct texts *t = context;
    const char *text = t->text_of(&t->c->rows[item]);
    return text != NULL ? text : "";
}

/* Remarks that explain an error are printed with that error. */
static bool is_cause(const struct dl_compared *row, const char *text) {
    if (row->cause == NULL) return false;
    if (row->evidence == NULL) return strcmp(row->cause, text) == 0;
    const char *host = row->evidence->runs.rows[row->run].host_remark;
    return host != NULL && strcmp(host, text) == 0;
}

/* How many rows have each text, `counts` by the first item with it, and these items in the order of
 * their first rows in `shown`, at most SHOWN_REASONS + 1 of them. */
static int count_texts(const struct texts *t, const struct dl_classes *classes, int *counts,
                       int shown[SHOWN_REASONS + 1]) {
    const int rows = dl_comparison_row_count(t->c);
    int found = 0;
    for (int i = 0; i < rows; i++) {
        const int item = dl_comparison_case(t->c, i);
        const char *text = text_at(t, item);
        if (text[0] == 0) continue;
        const struct dl_compared row = dl_comparison_row(t->c, i, NULL);
        if (t->text_of == remark_of && is_cause(&row, text)) continue;
        const int first = classes->first[item];
        if (counts[first]++ == 0 && found <= SHOWN_REASONS) shown[found++] = first;
    }
    return found;
}

/* The number of rows with each text, under a heading. */
static const char *counted_text(const struct dl_comparison *c, const char *heading,
                                const char *(*text_of)(const struct dl_compared *)) {
    const struct texts texts = {c, text_of};
    const struct dl_classes classes = dl_text_classes(text_at, &texts, c->count, c->arena);
    const char *lines = "";
    int shown[SHOWN_REASONS + 1],
        *counts = dl_arena_alloc(c->arena, (size_t)c->count + 1, sizeof *counts);
    const int found = count_texts(&texts, &classes, counts, shown);
    for (int i = 0; i < found && i < SHOWN_REASONS; i++)
        lines = dl_arena_printf(c->arena, "%s  %5d  %s\n", lines, counts[shown[i]],
                                text_at(&texts, shown[i]));
    if (found > SHOWN_REASONS) lines = dl_arena_printf(c->arena, "%s  others: see --rows\n", lines);
    return found == 0 ? "" : dl_arena_printf(c->arena, "\n%s\n%s", heading, lines);
}

const char *dl_compare_reasons(const struct dl_comparison *c) {
    return counted_text(c, "Rows not predicted", reason_of);
}

const char *dl_compare_remarks(const struct dl_comparison *c) {
    return counted_text(c, "Remarks on rows", remark_of);
}

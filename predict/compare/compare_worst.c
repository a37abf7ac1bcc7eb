/* compare_worst.c - see compare_worst.h. */
#include "predict/compare/compare_worst.h"

#include <math.h>
#include <string.h>

/* Puts a row at its place, after `at` others; the last one goes where there are too many. */
static void insert(struct dl_worst *w, int at, struct dl_worst_row row) {
    if (at >= DL_WORST_ROWS) return;
    if (w->count < DL_WORST_ROWS) w->count++;
    for (int i = w->count - 1; i > at; i--) w->list[i] = w->list[i - 1];
    w->list[at] = row;
}

/* `distinct`: of equal errors the first row alone. */
static void add(struct dl_worst *w, int row, double error_pct, bool distinct) {
    int at = 0;
    while (at < w->count && w->list[at].error_pct >= error_pct) at++;
    if (distinct && at > 0 && w->list[at - 1].error_pct == error_pct) return;
    insert(w, at, (struct dl_worst_row){row, error_pct, NULL});
}

void dl_worst_begin(struct dl_worst_names *names) {
    const int count = dl_comparison_row_count(names->c);
    struct dl_worst largest = {0};
    for (int i = 0; i < count; i++) {
        const struct dl_compared row = dl_comparison_row(names->c, i, NULL);
        const double error_pct = fabs(dl_compared_time_error_pct(&row));
        if (row.skipped) continue;
        if (names->worst != NULL) add(&largest, i, error_pct, false);
        if (row.cause != NULL) add(names->slow, i, error_pct, true);
    }
    names->least_pct =
        largest.count == DL_WORST_ROWS ? largest.list[DL_WORST_ROWS - 1].error_pct : 0;
    names->next = 0;
    names->wanted = largest.count + names->slow->count;
}

static bool before(const struct dl_worst_row *a, double error_pct, const char *id) {
    return a->error_pct > error_pct || (a->error_pct == error_pct && strcmp(a->id, id) <= 0);
}

enum dl_code dl_worst_name(void *user, const char *id, struct dl_err *err) {
    (void)err;
    struct dl_worst_names *names = user;
    const int number = names->next++;
    for (int i = 0; i < names->slow->count; i++)
        if (names->slow->list[i].row == number)
            names->slow->list[i].id = dl_arena_strdup(names->arena, id);
    if (names->worst != NULL) {
        const struct dl_compared row = dl_comparison_row(names->c, number, NULL);
        const double error_pct = fabs(dl_compared_time_error_pct(&row));
        int at = 0;
        if (row.skipped || !(error_pct >= names->least_pct)) return DL_OK;
        while (at < names->worst->count && before(&names->worst->list[at], error_pct, id)) at++;
        if (at >= DL_WORST_ROWS) return DL_OK;
        insert(names->worst, at,
               (struct dl_worst_row){number, error_pct, dl_arena_strdup(names->arena, id)});
    }
    return DL_OK;
}

struct dl_compared dl_worst_row(const struct dl_comparison *c, const struct dl_worst_row *row,
                                struct dl_arena *arena) {
    struct dl_compared compared = dl_comparison_row(c, row->row, arena);
    compared.id = row->id;
    return compared;
}

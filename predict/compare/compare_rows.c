/* compare_rows.c - the rows of a comparison, whether each is kept or shares a case with others. */
#include <limits.h>
#include <math.h>

#include "predict/compare/compare_cause.h"
#include "predict/compare/compare_runs.h"

struct dl_compared *dl_comparison_add(struct dl_comparison *c) {
    c->rows = dl_arena_grow(c->arena, c->rows, (size_t)c->count, sizeof *c->rows);
    return &c->rows[c->count++];
}

void dl_compared_explain(struct dl_compared *row, const struct dl_causes *causes,
                         struct dl_arena *arena) {
    row->causes = causes;
    row->cause = causes == NULL ? NULL : dl_causes_text(causes, arena);
    row->measured_bottleneck = causes == NULL ? row->bottleneck : causes->list[0].bottleneck;
}

bool dl_comparison_mine(const struct dl_comparison *c, int64_t place) {
    return c->part_count <= 1 || place % c->part_count == c->part_index;
}

static struct dl_row_block *block_of(const struct dl_row_list *list, int row) {
    return list->blocks[row / DL_ROW_BLOCK];
}

enum dl_code dl_row_list_add(struct dl_row_list *list, int of, double measured,
                             struct dl_arena *arena, struct dl_err *err) {
    const int block = list->count / DL_ROW_BLOCK, at = list->count % DL_ROW_BLOCK;
    if (list->count == INT_MAX)
        return dl_fail(err, DL_ERR_SYSTEM, "expected at most %d rows in all tables", INT_MAX);
    if (at == 0) {
        list->blocks = dl_arena_grow(arena, list->blocks, (size_t)block, sizeof *list->blocks);
        list->blocks[block] = dl_arena_alloc(arena, 1, sizeof **list->blocks);
    }
    list->blocks[block]->of[at] = of;
    list->blocks[block]->measured[at] = measured;
    list->count++;
    return DL_OK;
}

int dl_comparison_row_count(const struct dl_comparison *c) {
    return c->listed ? c->list.count : c->count;
}

int dl_comparison_case(const struct dl_comparison *c, int row) {
    return c->listed ? block_of(&c->list, row)->of[row % DL_ROW_BLOCK] : row;
}

struct dl_compared dl_comparison_row(const struct dl_comparison *c, int row,
                                     struct dl_arena *scratch) {
    static const char some[] = "slower than predicted";
    struct dl_compared compared = c->rows[dl_comparison_case(c, row)];
    const double value =
        c->listed ? block_of(&c->list, row)->measured[row % DL_ROW_BLOCK] : (double)NAN;
    const struct dl_run_evidence *e = compared.evidence;
    if (compared.causes == NULL) compared.measured_bottleneck = compared.bottleneck;
    if (!dl_known(value) || e == NULL) return compared;
    compared.measured = value * e->runs.rows[compared.run].unit_ratio;
    dl_compared_explain(&compared, NULL, scratch);
    if (compared.skipped) return compared;
    compared.error_pct = 100 * (compared.predicted - compared.measured) / compared.measured;
    if (!dl_run_is_slow(e, compared.run, compared.measured)) return compared;
    if (scratch == NULL)
        compared.cause = some;
    else
        dl_compared_explain(&compared, dl_run_causes(e, compared.run, compared.measured, scratch),
                            scratch);
    return compared;
}

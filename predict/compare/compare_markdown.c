/* compare_markdown.c - rows of a comparison as a Markdown table: run, measured, predicted, error,
 * bottleneck, and why where the two differ. */
#include "predict/compare/compare_markdown.h"

#include <inttypes.h>
#include <string.h>

/* A cell must not hold the separator or the end of a line. */
static const char *cell(struct dl_arena *arena, const char *text) {
    if (text == NULL || text[0] == 0) return "-";
    char *copy = dl_arena_alloc(arena, 2 * strlen(text) + 1, 1), *to = copy;
    for (const char *at = text; *at != 0; at++) {
        if (*at == '|' || *at == '\\' || *at == '`' || *at == '<') *to++ = '\\';
        *to++ = *at == '\n' || *at == '\r' ? ' ' : *at;
    }
    *to = 0;
    return copy;
}

static const char *number(struct dl_arena *arena, double value, const char *unit) {
    if (!dl_known(value)) return "-";
    const bool time = strcmp(unit, "s") == 0;
    return dl_arena_printf(arena, "%.4g %s", time ? 1e3 * value : value, time ? "ms" : unit);
}

const char dl_compare_markdown_head[] =
    "| run | devices | measured | predicted | time error | bottleneck | remark "
    "|\n|---|---|---|---|---|---|---|\n";

const char *dl_compare_markdown_row(const struct dl_compared *row, struct dl_arena *arena) {
    const char *unit = row->unit != NULL ? row->unit : "";
    const char *devices =
        row->devices > 0 ? dl_arena_printf(arena, "%lld", (long long)row->devices) : "-";
    const char *error = dl_known(row->error_pct)
                            ? dl_arena_printf(arena, "%+.1f %%", dl_compared_time_error_pct(row))
                            : "-";
    const char *remark = row->skipped         ? dl_arena_printf(arena, "not predicted: %s",
                                                        row->why != NULL ? row->why : "?")
                         : row->cause != NULL ? row->cause
                                              : row->remark;
    const char *parts[] = {cell(arena, row->id),
                           devices,
                           number(arena, row->measured, unit),
                           number(arena, row->predicted, unit),
                           error,
                           cell(arena, row->measured_bottleneck),
                           cell(arena, remark)};
    return dl_arena_printf(arena, "| %s | %s | %s | %s | %s | %s | %s |\n", parts[0], parts[1],
                           parts[2], parts[3], parts[4], parts[5], parts[6]);
}

const char *dl_compare_markdown_end(const struct dl_error_summary *all, struct dl_arena *arena) {
    if (all == NULL || all->rows == 0) return "";
    return dl_arena_printf(arena,
                           "\nMean absolute time error over %" PRId64
                           " rows: %.1f %%; median %.1f %%, worst "
                           "%.1f %%, bias %+.1f %%.\n",
                           all->rows, all->time_mape_pct, all->time_median_ape_pct,
                           all->time_max_ape_pct, all->time_bias_pct);
}

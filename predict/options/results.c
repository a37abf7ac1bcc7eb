/* results.c - see results.h. */
#include "predict/options/results.h"

#include "model/core/text.h"

/* The unit is the end of the key. */
static const char *unit_of(const char *key) {
    static const struct {
        const char *end, *unit;
    } ends[] = {
        {"samples_per_s", "sample/s"},
        {"samples_per_s_per_device", "sample/s"},
        {"samples_per_joule", "sample/J"},
        {"_kg_per_million_samples", "kg"},
        {"_pct", "%"},
        {"tokens_per_s", "token/s"},
        {"tokens_per_s_per_device", "token/s"},
        {"flop_per_s_per_device", "flop/s"},
        {"_hours", "h"},
        {"_j", "J"},
        {"_g", "g"},
        {"_w", "W"},
        {"_samples", "sample"},
        {"_bytes", "byte"},
        {"_s", "s"},
    };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (dl_ends_in(key, ends[i].end)) return ends[i].unit;
    return "";
}

bool dl_result_field(const struct dl_result *result, int index, struct dl_row_field *out) {
    static const char *const types[] = {"string", "number", "integer", "boolean"};
    for (int i = 0, keyed = 0; i < result->count; i++) {
        const struct dl_column *column = &result->columns[i].column;
        if (column->key == NULL || keyed++ != index) continue;
        *out = (struct dl_row_field){column->key, types[column->type], unit_of(column->key),
                                     result->columns[i].help};
        return true;
    }
    return false;
}

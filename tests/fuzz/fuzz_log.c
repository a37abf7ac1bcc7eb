/* fuzz_log.c - libFuzzer entry for logs of trainings: what is read is positive and in order, a log
 * that is longer by a line of no meaning says the same, and its table has a row as wide as the
 * header. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "import/log.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_BY_PIECES(" \n|=:,\t")

static void demand(bool truth) {
    if (!truth) abort();
}

static void quiet(const struct dl_context *context, const char *format, ...) {
    (void)context;
    (void)format;
}

static void check_table(const char *text, size_t size, struct dl_arena *arena) {
    const struct dl_attachment log = {.name = "log", .text = text, .length = size};
    struct dl_context context = {
        .arena = arena,
        .note = quiet,
        .data = {.attachments = &log, .attachment_count = 1, .names_only = true}};
    static const struct dl_log_fill fills[] = {{"nodes", "2", true},
                                               {"devices_per_node", "4", false}};
    struct dl_err err = {.code = DL_OK};
    struct dl_csv csv;
    const char *table;
    if (dl_log_table(&context, "log", NULL, fills, 2, &table, &err) != DL_OK) {
        demand(err.message[0] != '\0');
        return;
    }
    if (table == NULL) return;
    demand(dl_csv_parse("table", table, strlen(table), arena, &csv, &err) == DL_OK);
    demand(csv.row_count == 1);
    const int value = dl_csv_column(&csv, "value");
    demand(value >= 0 && strtod(csv.rows[0][value], NULL) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_log log, longer;
    struct dl_log_summary s, again;
    const char *text = dl_arena_strndup(&arena, (const char *)data, size);
    char *more = dl_arena_alloc(&arena, size + 8, 1);
    size = strlen(text);
    memcpy(more, text, size);
    memcpy(more + size, "\nend\n", 6);
    dl_log_read(text, size, &arena, &log);
    dl_log_read(more, size + 5, &arena, &longer);
    demand((log.format == NULL) == (longer.format == NULL));
    if (log.format != NULL) {
        demand(log.format == longer.format && dl_log_summarize(&log, &s));
        demand(dl_log_summarize(&longer, &again));
        demand(s.value == again.value && s.steps == again.steps && s.warmup == again.warmup);
        demand(s.value > 0 && isfinite(s.value));
        if (!isnan(s.low)) demand(s.low <= s.value && s.value <= s.high);
        demand(s.steps >= 0 && s.warmup >= 0 && s.warmup <= s.steps + 1);
    }
    check_table(text, size, &arena);
    dl_arena_free(&arena);
    return 0;
}

/* cmd_merge.c - joins the parts that --shard I/N wrote to what one process would have written. */
#include <stdlib.h>
#include <string.h>

#include "model/core/file.h"
#include "model/core/text.h"
#include "model/catalog/command.h"

static const struct dl_option own_options[] = {
    {"output", 'o', "FILE", "Output",
     "write to FILE instead of stdout; FILE is replaced only when the result is complete", NULL},
    {"help", 'h', NULL, "Output", "print this text", NULL},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {own_options, NULL};
static const char *const examples[] = {
    "dlmodel merge part-0.csv part-1.csv part-2.csv part-3.csv -o all.csv",
    "dlmodel merge part-*.csv",
    NULL,
};

struct record {
    const char *text, *file;
    size_t length; /* with its newline */
    long long row;
    size_t place; /* among all: keeps the order of equals */
    int line;
};

struct records {
    struct record *list;
    size_t count;
};

enum { MAX_BYTES = 2000000000 };
static const char KEPT[] = "row,", STRIPPED[] = "shard_row,";

/* Length of the record at `text`, with its newline: a quoted cell may hold newlines. */
static size_t record_length(const char *text, size_t length) {
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"') quoted = !quoted;
        if (text[i] == '\n' && !quoted) return i + 1;
    }
    return length;
}

static int lines_in(const char *text, size_t length) {
    int count = 0;
    for (size_t i = 0; i < length; i++) count += text[i] == '\n';
    return count;
}

/* The first cell as a number from 1. */
static enum dl_code read_row(struct record *one, struct dl_err *err) {
    char *end;
    one->row = strtoll(one->text, &end, 10);
    if (one->row >= 1 && end > one->text && *end == ',') return DL_OK;
    return dl_fail_at(err, one->file, one->line, 1, "row", "expected a number of a row, from 1");
}

/* Reads one part; *header: that of the first one, which all must have. */
static enum dl_code read_part(const char *path, struct dl_arena *arena, struct records *all,
                              struct record *header, struct dl_err *err) {
    char *text;
    size_t length;
    int line = 1;
    DL_TRY(dl_file_read(path, MAX_BYTES, arena, &text, &length, err));
    for (size_t at = 0, size; at < length; at += size, line += lines_in(text + at - size, size)) {
        struct record one = {.text = text + at, .file = path, .line = line};
        size = one.length = record_length(text + at, length - at);
        if (one.text[one.length - 1] != '\n')
            return dl_fail_at(err, path, line, 1, NULL,
                              "the last line is cut: write this part again");
        if (at > 0) {
            DL_TRY(read_row(&one, err));
            one.place = all->count;
            all->list = dl_arena_grow(arena, all->list, all->count, sizeof *all->list);
            all->list[all->count++] = one;
            continue;
        }
        if (strncmp(text, KEPT, sizeof KEPT - 1) != 0 &&
            strncmp(text, STRIPPED, sizeof STRIPPED - 1) != 0)
            return dl_fail_at(err, path, 1, 1, "row",
                              "expected a part that --shard I/N with --csv wrote; its first column "
                              "is row or shard_row");
        if (header->text == NULL) *header = one;
        if (one.length != header->length || memcmp(one.text, header->text, one.length) != 0)
            return dl_fail_at(err, path, 1, 1, NULL, "other columns than %s has", header->file);
    }
    if (length == 0) return dl_fail_at(err, path, 0, 0, NULL, "empty: write this part again");
    return DL_OK;
}

static int by_row(const void *a, const void *b) {
    const struct record *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place ? 1 : 0;
}

/* Rows 1, 2, ... without a gap, each from one part. */
static enum dl_code check(const struct records *all, struct dl_err *err) {
    for (size_t i = 0; i < all->count; i++) {
        const struct record *one = &all->list[i];
        const long long before = i > 0 ? one[-1].row : 0;
        if (one->row > before + 1)
            return dl_fail(err, DL_ERR_INPUT,
                           "row %lld is in no part: give all parts of the shards", before + 1);
        if (one->row == before && strcmp(one->file, one[-1].file) != 0)
            return dl_fail_at(err, one->file, one->line, 1, "row", "row %lld is also in %s",
                              one->row, one[-1].file);
    }
    return DL_OK;
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    struct records all = {.list = NULL};
    struct record header = {.text = NULL};
    struct dl_text out = {.arena = context->arena};
    if (options->positional_count == 0)
        return dl_fail(err, DL_ERR_USAGE, "expected the parts that --shard wrote");
    for (int i = 0; i < options->positional_count; i++)
        DL_TRY(read_part(options->positional[i], context->arena, &all, &header, err));
    if (all.count > 0) qsort(all.list, all.count, sizeof *all.list, by_row);
    DL_TRY(check(&all, err));
    const bool strip = strncmp(header.text, STRIPPED, sizeof STRIPPED - 1) == 0;
    dl_text_printf(&out, "%.*s", (int)(header.length - (strip ? sizeof STRIPPED - 1 : 0)),
                   header.text + (strip ? sizeof STRIPPED - 1 : 0));
    for (size_t i = 0; i < all.count; i++) {
        const struct record *one = &all.list[i];
        const size_t skip = strip ? strcspn(one->text, ",") + 1 : 0;
        dl_text_printf(&out, "%.*s", (int)(one->length - skip), one->text + skip);
    }
    return context->output(options, dl_text_string(&out), err);
}

const struct dl_command dl_cmd_merge = {
    .name = "merge",
    .summary = "join the parts of a sweep or a comparison that --shard split",
    .usage = "PART...",
    .purpose = "Joins the CSV files that `search --sweep FILE --shard I/N` or `compare --csv "
               "--shard I/N` wrote, in any order, to the file that one process writes, byte for "
               "byte. Refuses a missing row, a row that two parts have, a part that was cut, and "
               "parts of different columns.",
    .examples = examples,
    .options = tables,
    .run = run,
};

/* csv_stream.c - see csv_stream.h. */
#include "model/core/csv_stream.h"

#include <limits.h>
#include <string.h>

enum { BUFFER_BYTES = DL_CSV_RECORD_BYTES };

/* Bytes up to the end of the last whole record in the text; 0: none ends here. Quotes open and
 * close fields: text that breaks this rule is found to be broken when its records are read. */
static size_t whole_records(const char *text, size_t length) {
    size_t end = 0;
    bool quoted = false;

    for (size_t at = 0; at < length; at++) {
        if (text[at] == '"') quoted = !quoted;
        if (text[at] == '\n' && !quoted) end = at + 1;
    }
    return end;
}

/* The same of the first record that is not an empty line, behind a byte order mark. */
static size_t first_record(const char *text, size_t length) {
    const bool marked = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
    bool quoted = false, any = false;

    for (size_t at = marked ? 3 : 0; at < length; at++) {
        if (text[at] == '"') quoted = !quoted;
        if (text[at] == '\n' && !quoted && any) return at + 1;
        any = any || (text[at] != '\n' && text[at] != '\r');
    }
    return 0;
}

static enum dl_code refill(struct dl_csv_stream *s, struct dl_err *err) {
    size_t got = 0;

    memmove(s->buffer, s->buffer + s->begin, s->end - s->begin);
    s->end -= s->begin;
    s->begin = 0;
    if (s->ended || s->end == BUFFER_BYTES) return DL_OK;
    DL_TRY(dl_file_next(&s->file, s->buffer + s->end, BUFFER_BYTES - s->end, &got, err));
    s->ended = got < BUFFER_BYTES - s->end;
    s->end += got;
    return DL_OK;
}

/* The record at `begin` does not end within the buffer: it is too long, or a quote is wrong. */
static enum dl_code too_long(struct dl_csv_stream *s, struct dl_err *err) {
    struct dl_csv rows;
    size_t quotes = 0;

    for (size_t at = 0; at < s->end; at++) quotes += s->buffer[at] == '"';
    if (quotes % 2 != 0)
        DL_TRY(dl_csv_parse_rows(&s->header,
                                 &(struct dl_csv_records){s->buffer, s->end, s->line, s->offset},
                                 &s->chunk, &rows, err));
    return dl_fail_at(err, s->file.path, s->line, 1, NULL,
                      "expected a record of at most %d bytes, got a longer one that starts here",
                      DL_CSV_RECORD_BYTES);
}

static void take(struct dl_csv_stream *s, size_t length) {
    for (size_t i = 0; i < length; i++) s->line += s->buffer[s->begin + i] == '\n';
    s->begin += length;
    s->offset += (int64_t)length;
}

static enum dl_code read_header(struct dl_csv_stream *s, struct dl_err *err) {
    DL_TRY(refill(s, err));
    const size_t first = first_record(s->buffer, s->end), length = first > 0 ? first : s->end;
    if (first == 0 && !s->ended)
        return dl_fail_at(err, s->file.path, 1, 1, NULL,
                          "expected a header of at most %d bytes, got a longer one",
                          DL_CSV_RECORD_BYTES);
    DL_TRY(dl_csv_parse(s->file.path, s->buffer, length, &s->arena, &s->header, err));
    take(s, length);
    return DL_OK;
}

enum dl_code dl_csv_open(const char *path, struct dl_csv_stream *out, bool *regular_out,
                         struct dl_err *err) {
    *out = (struct dl_csv_stream){.line = 1};
    DL_TRY(dl_file_open(path, &out->file, regular_out, err));
    if (!*regular_out) return DL_OK;
    out->buffer = dl_arena_alloc(&out->arena, BUFFER_BYTES, 1);
    const enum dl_code code = read_header(out, err);
    if (code != DL_OK) dl_csv_close(out);
    return code;
}

enum dl_code dl_csv_next(struct dl_csv_stream *s, struct dl_csv *out, struct dl_err *err) {
    for (;;) {
        DL_TRY(refill(s, err));
        const size_t whole = s->ended ? s->end : whole_records(s->buffer, s->end);
        dl_arena_free(&s->chunk);
        *out = (struct dl_csv){.name = s->header.name};
        if (s->end == 0) return DL_OK;
        if (whole == 0) return too_long(s, err);
        DL_TRY(dl_csv_parse_rows(&s->header,
                                 &(struct dl_csv_records){s->buffer, whole, s->line, s->offset},
                                 &s->chunk, out, err));
        take(s, whole);
        if (s->line > INT_MAX - BUFFER_BYTES)
            return dl_fail_at(err, s->file.path, 0, 0, NULL, "expected at most %d lines", INT_MAX);
        if (out->row_count > 0) return DL_OK; /* else empty lines alone */
    }
}

void dl_csv_close(struct dl_csv_stream *s) {
    dl_file_close(&s->file);
    dl_arena_free(&s->chunk);
    dl_arena_free(&s->arena);
}

/* json_stream.c - a window that slides over the file: it begins at the value that is kept. */
#include "import/json_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef DL_HAVE_ZLIB
#include <zlib.h>
#endif

enum { WINDOW = 1 << 20, MAX_VALUE = 16 << 20 };

static enum dl_code no_memory(struct dl_err *err) {
    return dl_fail(err, DL_ERR_SYSTEM, "out of memory while reading a trace");
}

/* A file of gzip is read through zlib. */
static enum dl_code open_compressed(struct dl_json_stream *s, struct dl_err *err) {
    unsigned char magic[2] = {0, 0};
    if (pread(s->file, magic, 2, 0) != 2 || magic[0] != 0x1f || magic[1] != 0x8b) return DL_OK;
#ifdef DL_HAVE_ZLIB
    s->compressed = gzdopen(s->file, "rb");
    return s->compressed != NULL ? DL_OK : no_memory(err);
#else
    return dl_fail(err, DL_ERR_BACKEND,
                   "%.200s is compressed by gzip, and this dlmodel was built without zlib: install "
                   "zlib1g-dev and build again, or gunzip the file",
                   s->name);
#endif
}

static ssize_t read_some(struct dl_json_stream *s, char *to, size_t most) {
#ifdef DL_HAVE_ZLIB
    if (s->compressed != NULL)
        return gzread(s->compressed, to, (unsigned)(most < WINDOW ? most : WINDOW));
#endif
    return read(s->file, to, most);
}

enum dl_code dl_json_stream_file(const char *path, struct dl_json_stream *out, struct dl_err *err) {
    *out = (struct dl_json_stream){
        .name = path, .file = open(path, O_RDONLY | O_CLOEXEC), .line = 1, .col = 1};
    if (out->file < 0) return dl_fail_at(err, path, 0, 0, NULL, "cannot read: %s", strerror(errno));
    DL_TRY(open_compressed(out, err));
    out->buffer = malloc(WINDOW);
    out->capacity = WINDOW;
    return out->buffer != NULL ? DL_OK : no_memory(err);
}

void dl_json_stream_close(struct dl_json_stream *s) {
#ifdef DL_HAVE_ZLIB
    if (s->compressed != NULL) gzclose(s->compressed); /* and the file */
    if (s->compressed != NULL) s->file = -1;
    s->compressed = NULL;
#endif
    if (s->file >= 0) close(s->file);
    free(s->buffer);
    s->file = -1;
    s->buffer = NULL;
}

/* More of the file behind what is kept; a value that is kept may make the window larger. */
static bool refill(struct dl_json_stream *s) {
    ssize_t got;
    if (s->ended) return false;
    if (s->kept > 0) {
        memmove(s->buffer, s->buffer + s->kept, s->length - s->kept);
        s->at -= s->kept;
        s->length -= s->kept;
        s->kept = 0;
    }
    if (s->length == s->capacity) {
        char *more =
            s->capacity < 2 * (size_t)MAX_VALUE ? realloc(s->buffer, 2 * s->capacity) : NULL;
        if (more == NULL) {
            s->ended = true;
            return false;
        }
        s->buffer = more;
        s->capacity *= 2;
    }
    do {
        got = read_some(s, s->buffer + s->length, s->capacity - s->length);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        s->ended = true;
        return false;
    }
    s->length += (size_t)got;
    return true;
}

static int peek(struct dl_json_stream *s) {
    return s->at < s->length || refill(s) ? (unsigned char)s->buffer[s->at] : -1;
}

static void step(struct dl_json_stream *s) {
    if (s->buffer[s->at++] == '\n') {
        s->line++;
        s->col = 1;
    } else {
        s->col++;
    }
}

static void keep_from_here(struct dl_json_stream *s) {
    s->kept = s->at;
    s->kept_line = s->line;
    s->kept_col = s->col;
}

int dl_json_stream_peek(struct dl_json_stream *s) {
    if (s->line == 1 && s->col == 1) { /* a byte order mark */
        static const unsigned char mark[] = {0xef, 0xbb, 0xbf};
        for (int i = 0; i < 3 && peek(s) == mark[i]; i++) s->at++;
    }
    for (;;) {
        const int c = peek(s);
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return c;
        step(s);
        s->kept = s->at;
    }
}

enum dl_code dl_json_stream_fail(struct dl_json_stream *s, const char *expected,
                                 struct dl_err *err) {
    const int c = dl_json_stream_peek(s);
    if (c < 0)
        return dl_fail_at(err, s->name, s->line, s->col, NULL,
                          "expected %s, got the end of the file", expected);
    if (c > 0x20 && c < 0x7f)
        return dl_fail_at(err, s->name, s->line, s->col, NULL, "expected %s, got '%c'", expected,
                          c);
    return dl_fail_at(err, s->name, s->line, s->col, NULL, "expected %s, got byte 0x%02x", expected,
                      (unsigned)c);
}

enum dl_code dl_json_stream_take(struct dl_json_stream *s, char wanted, const char *expected,
                                 struct dl_err *err) {
    if (dl_json_stream_peek(s) != wanted) return dl_json_stream_fail(s, expected, err);
    step(s);
    s->kept = s->at;
    return DL_OK;
}

/* Behind the closing quote of the string that begins here. */
static enum dl_code pass_string(struct dl_json_stream *s, bool keep, struct dl_err *err) {
    step(s);
    for (int c = peek(s); c != '"'; c = peek(s)) {
        if (c < 0) return dl_json_stream_fail(s, "a closing quote", err);
        step(s);
        if (c == '\\' && peek(s) >= 0) step(s);
        if (!keep) s->kept = s->at;
    }
    step(s);
    return DL_OK;
}

/* Skips a number or a word; the parser reports its errors. */
static void pass_word(struct dl_json_stream *s) {
    for (int c = peek(s); c >= 0 && strchr(",]}: \t\r\n\"", c) == NULL; c = peek(s)) step(s);
}

/* To the end of the value that begins here. keep: its text stays in the buffer. */
static enum dl_code pass(struct dl_json_stream *s, bool keep, struct dl_err *err) {
    int depth = 0;
    do {
        const int c = peek(s);
        if (!keep) s->kept = s->at;
        if (keep && s->at - s->kept > MAX_VALUE)
            return dl_fail_at(err, s->name, s->kept_line, s->kept_col, NULL,
                              "expected a value of at most %d bytes", MAX_VALUE);
        if (c < 0) return dl_json_stream_fail(s, "a value", err);
        if (c == '"') {
            DL_TRY(pass_string(s, keep, err));
            continue;
        }
        if (depth == 0 && c != '{' && c != '[') {
            pass_word(s);
            return DL_OK;
        }
        if (c == '{' || c == '[') depth++;
        if (c == '}' || c == ']') depth--;
        step(s);
    } while (depth > 0);
    return DL_OK;
}

void dl_json_plain_numbers(char *text, size_t length) {
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (quoted && text[i] == '\\')
            i++;
        for (size_t k = 0; k < 3 && !quoted; k++) {
            const size_t size = strlen(words[k]);
            if (length - i < size || memcmp(text + i, words[k], size) != 0) continue;
            memset(text + i, ' ', size);
            text[i] = text[i + 1] = '"';
            i += size - 1;
            break;
        }
    }
}

enum dl_code dl_json_stream_value(struct dl_json_stream *s, struct dl_arena *arena,
                                  struct dl_json **out, struct dl_err *err) {
    dl_json_stream_peek(s);
    keep_from_here(s);
    DL_TRY(pass(s, true, err));
    if (s->at == s->kept) return dl_json_stream_fail(s, "a value", err);
    dl_json_plain_numbers(s->buffer + s->kept, s->at - s->kept);
    const enum dl_code code =
        dl_json_parse(s->name, s->buffer + s->kept, s->at - s->kept, arena, out, err);
    if (code != DL_OK && err != NULL && err->line > 0) {
        if (err->line == 1) err->col += s->kept_col - 1;
        err->line += s->kept_line - 1;
    }
    return code;
}

enum dl_code dl_json_stream_skip(struct dl_json_stream *s, struct dl_err *err) {
    dl_json_stream_peek(s);
    const int line = s->line, col = s->col;
    DL_TRY(pass(s, false, err));
    return s->line == line && s->col == col ? dl_json_stream_fail(s, "a value", err) : DL_OK;
}

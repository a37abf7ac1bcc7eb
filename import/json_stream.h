/* json_stream.h - a JSON file of any size, value by value: only the value at hand is in memory.
 * Traces take up to gigabytes, and cJSON parses whole texts only: here the ends of values are
 * found, which model/core/json.h then parses one at a time. */
#ifndef DL_IMPORT_JSON_STREAM_H
#define DL_IMPORT_JSON_STREAM_H

#include "model/core/json.h"

struct dl_json_stream {
    const char *name; /* of the file, for errors */
    void *compressed; /* of zlib; NULL: the file is plain */
    int file;         /* descriptor; -1: closed */
    char *buffer;     /* what was read from `kept` on */
    size_t kept, at, length, capacity;
    int line, col, kept_line, kept_col; /* of `at` and `kept`, from 1 */
    bool ended;                         /* nothing follows what is in the buffer */
};

/* Python's NaN and infinities, outside of strings, become empty strings, in place: an error only
 * where a number is needed. */
void dl_json_plain_numbers(char *text, size_t length);

/* Opens a file; DL_ERR_INPUT: it cannot be read. Call dl_json_stream_close afterwards, also after a
 * failure. */
enum dl_code dl_json_stream_file(const char *path, struct dl_json_stream *out, struct dl_err *err);
void dl_json_stream_close(struct dl_json_stream *stream);

/* The next character behind white space, which stays; -1 at the end or where reading fails. */
int dl_json_stream_peek(struct dl_json_stream *stream);
/* Takes that character; DL_ERR_INPUT with its place unless it is `wanted`. */
enum dl_code dl_json_stream_take(struct dl_json_stream *stream, char wanted, const char *expected,
                                 struct dl_err *err);
/* The next value, at most 16 MiB of text, checked by RFC 8259 and as a document in the arena; its
 * name is the file's. Places in errors are those in the file. */
enum dl_code dl_json_stream_value(struct dl_json_stream *stream, struct dl_arena *arena,
                                  struct dl_json **out, struct dl_err *err);
/* Steps over the next value, of any size. Only its brackets and quotes are checked. */
enum dl_code dl_json_stream_skip(struct dl_json_stream *stream, struct dl_err *err);
/* The same steps for a fault that the caller finds at the next character. */
enum dl_code dl_json_stream_fail(struct dl_json_stream *stream, const char *expected,
                                 struct dl_err *err);

#endif

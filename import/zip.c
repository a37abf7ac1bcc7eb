/* zip.c - see the header. The central directory, at the end of the archive, lists the files. */
#include "import/zip.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef DL_HAVE_ZLIB
#include <zlib.h>
#endif

enum { END_SIZE = 22, ENTRY_SIZE = 46, LOCAL_SIZE = 30, MAX_COMMENT = 65535 };
enum { STORED = 0, DEFLATED = 8 };

static uint64_t number(const unsigned char *at, int bytes) {
    uint64_t n = 0;
    while (bytes-- > 0) n = n << 8 | at[bytes];
    return n;
}

struct entry {
    uint64_t packed, size, local;
    unsigned method, flags;
};

/* ZIP64: sizes and place that do not fit in 32 bits stand in the extra field. */
static void read_extra(const unsigned char *at, size_t length, struct entry *e) {
    while (length >= 4) {
        const size_t size = (size_t)number(at + 2, 2);
        const unsigned char *value = at + 4, *end = value + size;
        if (size > length - 4) return;
        if (number(at, 2) == 1) {
            uint64_t *const wide[] = {&e->size, &e->packed, &e->local};
            for (int i = 0; i < 3; i++) {
                if (*wide[i] != UINT32_MAX || end - value < 8) continue;
                *wide[i] = number(value, 8);
                value += 8;
            }
        }
        at = end;
        length -= 4 + size;
    }
}

static enum dl_code damaged(const char *path, struct dl_err *err) {
    return dl_fail_at(err, path, 0, 0, NULL, "the archive is damaged or cut off");
}

/* Offset of the central directory; `length` if the file has none. */
static size_t directory_of(const unsigned char *bytes, size_t length) {
    for (size_t back = END_SIZE; back <= length && back <= END_SIZE + MAX_COMMENT; back++) {
        const unsigned char *at = bytes + length - back;
        if (memcmp(at, "PK\005\006", 4) != 0) continue;
        uint64_t place = number(at + 16, 4);
        if (place == UINT32_MAX && back + 20 <= length && memcmp(at - 20, "PK\006\007", 4) == 0) {
            const uint64_t wide = number(at - 20 + 8, 8);
            if (wide > length - 56 || length < 56) return length;
            place = number(bytes + wide + 48, 8);
        }
        return place < length ? (size_t)place : length;
    }
    return length;
}

static bool find(const unsigned char *bytes, size_t length, const char *name, struct entry *out) {
    const size_t wanted = strlen(name);
    size_t at = directory_of(bytes, length);
    while (length - at >= ENTRY_SIZE && memcmp(bytes + at, "PK\001\002", 4) == 0) {
        const unsigned char *e = bytes + at;
        const size_t title = (size_t)number(e + 28, 2), extra = (size_t)number(e + 30, 2),
                     comment = (size_t)number(e + 32, 2);
        if (title + extra + comment > length - at - ENTRY_SIZE) return false;
        *out = (struct entry){.flags = (unsigned)number(e + 8, 2),
                              .method = (unsigned)number(e + 10, 2),
                              .packed = number(e + 20, 4),
                              .size = number(e + 24, 4),
                              .local = number(e + 42, 4)};
        read_extra(e + ENTRY_SIZE + title, extra, out);
        if (title >= wanted && memcmp(e + ENTRY_SIZE + title - wanted, name, wanted) == 0)
            return true;
        at += ENTRY_SIZE + title + extra + comment;
    }
    return false;
}

#ifdef DL_HAVE_ZLIB
static enum dl_code inflated(const char *path, const unsigned char *from, const struct entry *e,
                             char *to, struct dl_err *err) {
    z_stream z;
    memset(&z, 0, sizeof z);
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return dl_fail(err, DL_ERR_SYSTEM, "out of memory while reading an archive");
    z.next_in = (unsigned char *)(uintptr_t)from;
    z.avail_in = (unsigned)e->packed;
    z.next_out = (unsigned char *)to;
    z.avail_out = (unsigned)e->size;
    const int end = inflate(&z, Z_FINISH);
    const bool whole = end == Z_STREAM_END && z.total_out == e->size;
    inflateEnd(&z);
    return whole ? DL_OK : damaged(path, err);
}
#else
static enum dl_code inflated(const char *path, const unsigned char *from, const struct entry *e,
                             char *to, struct dl_err *err) {
    (void)from, (void)e, (void)to;
    return dl_fail(err, DL_ERR_BACKEND,
                   "%.200s: its files are compressed, and this dlmodel was built without zlib: "
                   "install zlib1g-dev and build again",
                   path);
}
#endif

enum dl_code dl_zip_file(const struct dl_zip *zip, const char *name, size_t most,
                         struct dl_arena *arena, char **text, size_t *size, struct dl_err *err) {
    const char *path = zip->path;
    const unsigned char *bytes = zip->bytes;
    const size_t length = zip->length;
    struct entry e;
    *text = NULL;
    if (length < END_SIZE || !find(bytes, length, name, &e)) return DL_OK;
    if (e.local > length || length - e.local < LOCAL_SIZE || e.size > most)
        return damaged(path, err);
    const unsigned char *local = bytes + e.local;
    const uint64_t data = e.local + LOCAL_SIZE + number(local + 26, 2) + number(local + 28, 2);
    if (memcmp(local, "PK\003\004", 4) != 0 || data > length || e.packed > length - data)
        return damaged(path, err);
    if ((e.flags & 1) != 0 || (e.method != STORED && e.method != DEFLATED) ||
        (e.method == STORED && e.packed != e.size))
        return dl_fail_at(err, path, 0, 0, name, "encrypted, or packed in a way that is not read");
    char *out = dl_arena_alloc(arena, (size_t)e.size + 1, 1);
    if (e.method == STORED)
        memcpy(out, bytes + data, (size_t)e.size);
    else
        DL_TRY(inflated(path, bytes + data, &e, out, err));
    out[e.size] = '\0';
    *text = out;
    *size = (size_t)e.size;
    return DL_OK;
}

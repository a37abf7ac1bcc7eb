/* disk_sort.c - sorted runs in one file, merged through a heap. */
#include "import/disk_sort.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dl_disk_run {
    int64_t begin, end; /* records of the file */
    int64_t next;       /* not yet in the buffer */
    size_t at, filled;  /* of its part of the buffer */
};

static enum dl_code no_memory(struct dl_err *err) {
    return dl_fail(err, DL_ERR_SYSTEM, "out of memory while sorting");
}

static enum dl_code failed(const char *what, int reason, struct dl_err *err) {
    return dl_fail(err, DL_ERR_SYSTEM, "%s a temporary file in $TMPDIR or /tmp: %s", what,
                   strerror(reason));
}

void dl_disk_sort_init(struct dl_disk_sort *s, size_t record_bytes,
                       int (*compare)(const void *a, const void *b)) {
    *s = (struct dl_disk_sort){.record_bytes = record_bytes, .compare = compare, .file = -1};
}

void dl_disk_sort_close(struct dl_disk_sort *s) {
    if (s->record_bytes > 0 && s->file >= 0) close(s->file);
    free(s->records);
    free(s->runs);
    free(s->heap);
    *s = (struct dl_disk_sort){.file = -1};
}

/* A file that goes when it is closed. */
static enum dl_code make_file(struct dl_disk_sort *s, struct dl_err *err) {
    char name[4096];
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] == 0) folder = "/tmp";
    const int length = snprintf(name, sizeof name, "%s/dlmodel.XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof name)
        return failed("cannot make", ENAMETOOLONG, err);
    s->file = mkstemp(name);
    if (s->file < 0) return failed("cannot make", errno, err);
    unlink(name);
    return DL_OK;
}

/* All of the buffer becomes a run. */
static enum dl_code spill(struct dl_disk_sort *s, struct dl_err *err) {
    if (s->run_count == s->run_capacity) {
        const int capacity = s->run_capacity == 0 ? 64 : 2 * s->run_capacity;
        struct dl_disk_run *runs = realloc(s->runs, (size_t)capacity * sizeof *runs);
        if (runs == NULL) return no_memory(err);
        s->runs = runs;
        s->run_capacity = capacity;
    }
    if (s->file < 0) DL_TRY(make_file(s, err));
    qsort(s->records, s->count, s->record_bytes, s->compare);
    const size_t bytes = s->count * s->record_bytes;
    for (size_t put = 0; put < bytes;) {
        const ssize_t now = write(s->file, s->records + put, bytes - put);
        if (now < 0 && errno == EINTR) continue;
        if (now <= 0) return failed("cannot write", now < 0 ? errno : ENOSPC, err);
        put += (size_t)now;
    }
    const int64_t begin = s->run_count > 0 ? s->runs[s->run_count - 1].end : 0;
    s->runs[s->run_count++] =
        (struct dl_disk_run){.begin = begin, .end = begin + (int64_t)s->count};
    s->count = 0;
    return DL_OK;
}

/* Small sets take little: the buffer grows up to its limit. */
static enum dl_code make_room(struct dl_disk_sort *s, struct dl_err *err) {
    const size_t most = DL_DISK_SORT_BYTES / s->record_bytes;
    if (s->count < s->capacity) return DL_OK;
    if (s->capacity == most) return spill(s, err);
    const size_t capacity = s->capacity == 0         ? 256
                            : 2 * s->capacity > most ? most
                                                     : 2 * s->capacity;
    unsigned char *records = realloc(s->records, capacity * s->record_bytes);
    if (records == NULL) return no_memory(err);
    s->records = records;
    s->capacity = capacity;
    return DL_OK;
}

enum dl_code dl_disk_sort_add(struct dl_disk_sort *s, const void *record, struct dl_err *err) {
    DL_TRY(make_room(s, err));
    memcpy(s->records + s->count++ * s->record_bytes, record, s->record_bytes);
    s->total++;
    return DL_OK;
}

/* ---- reading ---- */

/* Records of each run that are in memory at a time. */
static size_t share(const struct dl_disk_sort *s) {
    const size_t records = s->capacity / (size_t)s->run_count;
    return records > 0 ? records : 1;
}

static unsigned char *record_of(const struct dl_disk_sort *s, int run) {
    return s->records + ((size_t)run * share(s) + s->runs[run].at) * s->record_bytes;
}

static enum dl_code fill(struct dl_disk_sort *s, int run, struct dl_err *err) {
    struct dl_disk_run *r = &s->runs[run];
    const int64_t left = r->end - r->next;
    const size_t records = left < (int64_t)share(s) ? (size_t)left : share(s),
                 bytes = records * s->record_bytes;
    r->at = 0;
    r->filled = records;
    unsigned char *to = record_of(s, run);
    for (size_t got = 0; got < bytes;) {
        const off_t from = (off_t)(r->next * (int64_t)s->record_bytes) + (off_t)got;
        const ssize_t now = pread(s->file, to + got, bytes - got, from);
        if (now < 0 && errno == EINTR) continue;
        if (now <= 0) return failed("cannot read", now < 0 ? errno : EIO, err);
        got += (size_t)now;
    }
    r->next += (int64_t)records;
    return DL_OK;
}

/* Of equal records the one of the earlier run: the order in which they were added. */
static bool before(const struct dl_disk_sort *s, int a, int b) {
    const int order = s->compare(record_of(s, a), record_of(s, b));
    return order < 0 || (order == 0 && a < b);
}

static void sink(struct dl_disk_sort *s, int at) {
    for (;;) {
        int least = at;
        for (int child = 2 * at + 1; child <= 2 * at + 2 && child < s->heap_count; child++)
            if (before(s, s->heap[child], s->heap[least])) least = child;
        if (least == at) return;
        const int run = s->heap[at];
        s->heap[at] = s->heap[least];
        s->heap[least] = run;
        at = least;
    }
}

enum dl_code dl_disk_sort_start(struct dl_disk_sort *s, struct dl_err *err) {
    s->given = 0;
    if (s->run_count == 0) {
        if (s->count > 1) qsort(s->records, s->count, s->record_bytes, s->compare);
        return DL_OK;
    }
    if (s->count > 0) DL_TRY(spill(s, err));
    if ((size_t)s->run_count > s->capacity) { /* a record of each run at least */
        unsigned char *records = realloc(s->records, (size_t)s->run_count * s->record_bytes);
        if (records == NULL) return no_memory(err);
        s->records = records;
        s->capacity = (size_t)s->run_count;
    }
    free(s->heap);
    s->heap = malloc((size_t)s->run_count * sizeof *s->heap);
    if (s->heap == NULL) return no_memory(err);
    s->heap_count = s->run_count;
    for (int run = 0; run < s->run_count; run++) {
        s->heap[run] = run;
        s->runs[run].next = s->runs[run].begin;
        DL_TRY(fill(s, run, err));
    }
    for (int at = s->heap_count / 2; at >= 0; at--) sink(s, at);
    return DL_OK;
}

/* Steps over the record given last. */
static enum dl_code pass(struct dl_disk_sort *s, struct dl_err *err) {
    struct dl_disk_run *r = &s->runs[s->heap[0]];
    if (++r->at == r->filled) {
        if (r->next < r->end)
            DL_TRY(fill(s, s->heap[0], err));
        else
            s->heap[0] = s->heap[--s->heap_count];
    }
    sink(s, 0);
    return DL_OK;
}

enum dl_code dl_disk_sort_next(struct dl_disk_sort *s, const void **out, struct dl_err *err) {
    *out = NULL;
    if (s->run_count > 0 && s->given > 0 && s->heap_count > 0) DL_TRY(pass(s, err));
    if (s->given == s->total) return DL_OK;
    *out = s->run_count == 0 ? s->records + (size_t)s->given * s->record_bytes
                             : record_of(s, s->heap[0]);
    s->given++;
    return DL_OK;
}

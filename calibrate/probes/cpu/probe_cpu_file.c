/* probe_cpu_file.c - probes "write" (write a new file and fsync it) and "read" (read it back from
 * disk: posix_fadvise drops the page cache, which the kernel may ignore). Shape "bytes=". The file
 * is unlinked once open, so that nothing is left behind however the probe ends. */
#include "calibrate/probes/cpu/probe_cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 20 };

struct file {
    int fd;
    size_t bytes;
    char *data, *back;
};

static const char *unavailable(void) { return NULL; }

static void file_close(void *state) {
    struct file *f = state;
    if (f->fd >= 0) close(f->fd);
    free(f->data);
    free(f->back);
}

/* Each chunk starts at another offset of the random data, so that no two are equal. */
static const char *chunk(const struct file *f, size_t i) { return f->data + i * 512 % CHUNK_BYTES; }

static int write_all(const struct file *f) {
    if (lseek(f->fd, 0, SEEK_SET) != 0) return errno;
    for (size_t i = 0; i < f->bytes / CHUNK_BYTES; i++) {
        size_t done = 0;
        while (done < CHUNK_BYTES) {
            const ssize_t put = write(f->fd, chunk(f, i) + done, CHUNK_BYTES - done);
            if (put < 0 && errno == EINTR) continue;
            if (put <= 0) return errno != 0 ? errno : EIO;
            done += (size_t)put;
        }
    }
    return fsync(f->fd) == 0 ? 0 : errno;
}

static int read_all(struct file *f) {
    if (lseek(f->fd, 0, SEEK_SET) != 0) return errno;
    for (size_t i = 0; i < f->bytes / CHUNK_BYTES; i++) {
        size_t done = 0;
        while (done < CHUNK_BYTES) {
            const ssize_t got = read(f->fd, f->back + done, CHUNK_BYTES - done);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return got < 0 ? errno : EIO;
            done += (size_t)got;
        }
    }
    return 0;
}

static enum dl_code file_open(const struct dl_point *point, void *state, struct dl_err *err) {
    struct file *f = state;
    f->fd = -1;
    f->bytes = (size_t)dl_point_number(point, "bytes", CHUNK_BYTES);
    f->data = malloc(2 * CHUNK_BYTES);
    f->back = malloc(CHUNK_BYTES);
    char name[4096];
    const int length = snprintf(name, sizeof name, "%s/dlmodel-probe-XXXXXX", point->directory);
    int reason = f->data == NULL || f->back == NULL            ? ENOMEM
                 : length < 0 || (size_t)length >= sizeof name ? ENAMETOOLONG
                                                               : 0;
    if (reason == 0) {
        f->fd = mkstemp(name);
        reason = f->fd < 0 ? errno : unlink(name) != 0 ? errno : 0;
    }
    if (reason == 0) {
        uint64_t random = 4711;
        for (size_t i = 0; i < 2 * CHUNK_BYTES; i += sizeof random) {
            const uint64_t word = dl_random_next(&random);
            memcpy(f->data + i, &word, sizeof word);
        }
        if (strcmp(point->pass, "read") == 0) reason = write_all(f);
    }
    if (reason == 0) return DL_OK;
    return dl_fail(err, DL_ERR_SYSTEM, "cannot use %.400s for the file probe (%s); give --file-dir",
                   point->directory, strerror(reason));
}

static double timed(struct file *f, long calls, bool reading, struct dl_err *err) {
    double elapsed = 0;
    for (long i = 0; i < calls; i++) {
        if (reading)
            posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
        else if (ftruncate(f->fd, 0) != 0)
            errno = 0; /* then the old blocks are written again */
        const double start = dl_now_s();
        const int reason = reading ? read_all(f) : write_all(f);
        elapsed += dl_now_s() - start;
        if (reason != 0) {
            dl_fail(err, DL_ERR_SYSTEM, "cannot %s the file: %s", reading ? "read" : "write",
                    strerror(reason));
            return NAN;
        }
    }
    return elapsed;
}

static double write_run(void *state, long calls, struct dl_err *err) {
    return timed(state, calls, false, err);
}

static double read_run(void *state, long calls, struct dl_err *err) {
    return timed(state, calls, true, err);
}

static enum dl_code file_verify(void *state, struct dl_err *err) {
    struct file *f = state;
    if (read_all(f) != 0 ||
        memcmp(f->back, chunk(f, f->bytes / CHUNK_BYTES - 1), CHUNK_BYTES) != 0) {
        return dl_fail(err, DL_ERR_BACKEND, "the file reads back with different content");
    }
    return DL_OK;
}

const struct dl_probe dl_probe_write =
    DL_PROBE("write", "file write with fsync", 1e-3, unavailable, struct file, file_open, write_run,
             .verify = file_verify, .close = file_close);
const struct dl_probe dl_probe_read =
    DL_PROBE("read", "file read", 1e-3, unavailable, struct file, file_open, read_run,
             .verify = file_verify, .close = file_close);

/* file.c - whole files in, whole files out.
 * Does not lock, and does not keep a backup of what it replaces.
 */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700 /* realpath */
#endif
#include "model/core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum dl_code read_failed(const char *path, const char *reason, struct dl_err *err) {
    return dl_fail_at(err, path, 0, 0, NULL, "cannot read: %s", reason);
}

static enum dl_code too_large(const char *path, size_t max_bytes, struct dl_err *err) {
    return dl_fail_at(err, path, 0, 0, NULL, "expected a file of at most %zu bytes", max_bytes);
}

/* read(2) until `size` bytes or the end; -1 with errno. */
static ssize_t read_fully(int fd, char *buffer, size_t size) {
    size_t length = 0;

    while (length < size) {
        ssize_t got = read(fd, buffer + length, size - length);

        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        length += (size_t)got;
    }
    return (ssize_t)length;
}

struct reading {
    const char *path;
    size_t max_bytes;
    struct dl_arena *arena;
    char *text; /* what was read */
    size_t length;
};

/* Reads to the end in growing pieces, because pipes and /proc have no size. *buffer_out is
 * malloc'd. */
static enum dl_code slurp(int fd, struct reading *r, size_t expected, size_t max_bytes,
                          char **buffer_out, struct dl_err *err) {
    const char *path = r->path;
    size_t capacity = expected < 65536 ? 65536 : expected + 1, length = 0;
    char *buffer = NULL;
    enum dl_code code = DL_OK;

    for (;;) {
        char *grown = realloc(buffer, capacity);
        ssize_t got;

        if (grown == NULL) {
            code = dl_fail(err, DL_ERR_SYSTEM, "%.400s: out of memory", path);
            break;
        }
        buffer = grown;
        got = read_fully(fd, buffer + length, capacity - length);
        if (got < 0) {
            code = read_failed(path, strerror(errno), err);
            break;
        }
        length += (size_t)got;
        if (length > max_bytes) {
            code = too_large(path, max_bytes, err);
            break;
        }
        if (length < capacity) break;
        capacity *= 2;
    }
    if (code != DL_OK) {
        free(buffer);
        return code;
    }
    *buffer_out = buffer;
    r->length = length;
    return DL_OK;
}

/* At most so much is read from a terminal or another device. */
enum { DEVICE_BYTES = 1 << 20 };

/* Reads a file of size 0 (a pipe, /proc), or one that has grown since its size was read. */
static enum dl_code read_unsized(int fd, struct reading *r, const struct stat *info,
                                 struct dl_err *err) {
    size_t max_bytes = r->max_bytes;
    const bool regular = S_ISREG(info->st_mode);
    char *buffer = NULL;
    (void)lseek(fd, 0, SEEK_SET); /* a pipe cannot, and has given nothing yet */
    /* /dev/zero has no end */
    if (S_ISCHR(info->st_mode) && max_bytes > DEVICE_BYTES) max_bytes = DEVICE_BYTES;
    DL_TRY(slurp(fd, r, regular ? (size_t)info->st_size : 0, max_bytes, &buffer, err));
    r->text = dl_arena_strndup(r->arena, buffer, r->length);
    free(buffer);
    return DL_OK;
}

static enum dl_code read_open(int fd, struct reading *r, bool regular_only, struct dl_err *err) {
    const char *path = r->path;
    struct stat info;
    if (fstat(fd, &info) != 0) return read_failed(path, strerror(errno), err);
    if (S_ISDIR(info.st_mode))
        return dl_fail_at(err, path, 0, 0, NULL, "expected a file, got a directory");
    const bool regular = S_ISREG(info.st_mode);
    if (regular_only && !regular)
        return dl_fail_at(err, path, 0, 0, NULL, "expected a regular file");
    if (regular && info.st_size > 0 && (unsigned long long)info.st_size > r->max_bytes)
        return too_large(path, r->max_bytes, err);
    const size_t size = regular ? (size_t)info.st_size : 0;
    if (size > 0) { /* straight into the arena, whose zeros end the text */
        r->text = dl_arena_alloc(r->arena, size + 1, 1);
        const ssize_t got = read_fully(fd, r->text, size + 1);
        if (got < 0) return read_failed(path, strerror(errno), err);
        r->length = (size_t)got;
        if (r->length <= size) return DL_OK;
    }
    return read_unsized(fd, r, &info, err);
}

static enum dl_code read_path(struct reading r, bool regular_only, char **text_out,
                              size_t *length_out, struct dl_err *err) {
    const char *path = r.path;
    if (path == NULL || path[0] == '\0')
        return dl_fail(err, DL_ERR_INPUT, "expected the name of a file, got \"\"");
    /* O_NONBLOCK: opening a FIFO would wait for a writer */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | (regular_only ? O_NONBLOCK : 0), 0);
    if (fd < 0) return read_failed(path, strerror(errno), err);
    const enum dl_code code = read_open(fd, &r, regular_only, err);
    close(fd);
    if (code != DL_OK) return code;
    *text_out = r.text;
    *length_out = r.length;
    return DL_OK;
}

enum dl_code dl_file_read(const char *path, size_t max_bytes, struct dl_arena *arena,
                          char **text_out, size_t *length_out, struct dl_err *err) {
    return read_path((struct reading){path, max_bytes, arena, NULL, 0}, false, text_out, length_out,
                     err);
}

enum dl_code dl_file_read_regular(const char *path, size_t max_bytes, struct dl_arena *arena,
                                  char **text_out, size_t *length_out, struct dl_err *err) {
    return read_path((struct reading){path, max_bytes, arena, NULL, 0}, true, text_out, length_out,
                     err);
}

size_t dl_file_part(const char *path, int64_t offset, char *buffer, size_t size) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t got = -1;
    if (lseek(fd, (off_t)offset, SEEK_SET) >= 0) got = read_fully(fd, buffer, size);
    close(fd);
    return got > 0 ? (size_t)got : 0;
}

enum dl_code dl_file_open(const char *path, struct dl_file_reader *out, bool *regular_out,
                          struct dl_err *err) {
    struct stat info;

    *out = (struct dl_file_reader){.path = path, .fd = -1};
    *regular_out = false;
    if (path == NULL || path[0] == '\0')
        return dl_fail(err, DL_ERR_INPUT, "expected the name of a file, got \"\"");
    /* a pipe that is opened and closed again stops whoever writes into it */
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) return DL_OK;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return read_failed(path, strerror(errno), err);
    if (fstat(fd, &info) != 0) {
        const int reason = errno;
        close(fd);
        return read_failed(path, strerror(reason), err);
    }
    *regular_out = S_ISREG(info.st_mode);
    if (!*regular_out) {
        close(fd);
        return DL_OK;
    }
    out->fd = fd;
    out->device = (int64_t)info.st_dev;
    out->inode = (int64_t)info.st_ino;
    out->size_bytes = info.st_size;
    out->changed_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    return DL_OK;
}

enum dl_code dl_file_next(struct dl_file_reader *reader, char *buffer, size_t size,
                          size_t *length_out, struct dl_err *err) {
    const ssize_t got = read_fully(reader->fd, buffer, size);
    if (got < 0) return read_failed(reader->path, strerror(errno), err);
    *length_out = (size_t)got;
    return DL_OK;
}

void dl_file_close(struct dl_file_reader *reader) {
    if (reader->fd >= 0) close(reader->fd);
    reader->fd = -1;
}

static enum dl_code write_failed(const char *path, const char *what, int reason,
                                 struct dl_err *err) {
    return dl_fail(err, DL_ERR_SYSTEM, "%.400s: %s: %s", path, what, strerror(reason));
}

/* 0, or errno. */
static int write_fully(int fd, const char *text, size_t length) {
    while (length > 0) {
        ssize_t put = write(fd, text, length);

        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return errno;
        text += put;
        length -= (size_t)put;
    }
    return 0;
}

/* Some file systems have no fsync; that is not a failure to write. */
static int sync_fd(int fd) {
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS ? 0 : errno;
}

/* A new file next to `target`. O_EXCL instead of mkstemp so that the umask applies. fd, or -1 with
 * errno. */
static int create_beside(const char *target, char *name, size_t name_size) {
    for (int attempt = 0; attempt < 1000; attempt++) {
        int length = snprintf(name, name_size, "%s.%ld.%d.tmp", target, (long)getpid(), attempt);
        int fd;

        if (length < 0 || (size_t)length >= name_size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    errno = EEXIST;
    return -1;
}

/* Makes a rename durable: syncs its directory. 0, or errno. */
static int sync_directory(const char *path) {
    char copy[PATH_MAX + 64];
    int fd, reason;

    snprintf(copy, sizeof copy, "%s", path);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* a directory may be writable and not readable */
    if (fd < 0) return errno == EACCES ? 0 : errno;
    reason = sync_fd(fd);
    close(fd);
    return reason;
}

/* What is left after a failure goes. */
static enum dl_code give_up(struct dl_file_writer *w, const char *what, int reason,
                            struct dl_err *err) {
    dl_file_abandon(w);
    return write_failed(w->name, what, reason, err);
}

void dl_file_abandon(struct dl_file_writer *w) {
    if (w->fd >= 0 && w->fd != STDOUT_FILENO) close(w->fd);
    w->fd = -1;
    if (w->replaces) unlink(w->temporary);
    w->replaces = false;
}

/* Terminals, pipes and devices cannot be replaced, only written. */
static enum dl_code begin_in_place(const char *path, struct dl_file_writer *w, struct dl_err *err) {
    w->fd = open(path, O_WRONLY | O_CLOEXEC);
    return w->fd >= 0 ? DL_OK : write_failed(path, "cannot open for writing", errno, err);
}

static enum dl_code begin_replacing(const char *target, struct dl_file_writer *w,
                                    struct dl_err *err) {
    const size_t length = strlen(target);
    if (length >= sizeof w->target)
        return write_failed(target, "cannot create a file next to it", ENAMETOOLONG, err);
    memmove(w->target, target, length + 1);
    w->name = w->target;
    w->fd = create_beside(w->target, w->temporary, sizeof w->temporary);
    w->replaces = w->fd >= 0;
    return w->replaces ? DL_OK
                       : write_failed(w->name, "cannot create a file next to it", errno, err);
}

enum dl_code dl_file_begin(const char *path, struct dl_file_writer *out, struct dl_err *err) {
    struct stat info;
    char resolved[PATH_MAX];

    *out = (struct dl_file_writer){.fd = -1, .name = path};
    if (path == NULL || path[0] == '\0')
        return dl_fail(err, DL_ERR_SYSTEM, "expected the name of a file, got \"\"");
    if (strcmp(path, "-") == 0) {
        out->fd = STDOUT_FILENO;
        out->name = "standard output";
        return DL_OK;
    }
    if (stat(path, &info) != 0) {
        if (errno != ENOENT) return write_failed(path, "cannot write", errno, err);
        return begin_replacing(path, out, err);
    }
    if (S_ISDIR(info.st_mode)) return write_failed(path, "cannot write", EISDIR, err);
    if (!S_ISREG(info.st_mode)) return begin_in_place(path, out, err);
    /* A symbolic link keeps pointing at its file: replace what it points to. */
    if (realpath(path, resolved) == NULL) return write_failed(path, "cannot write", errno, err);
    out->keeps_mode = true;
    out->mode = info.st_mode & 0777;
    return begin_replacing(resolved, out, err);
}

enum dl_code dl_file_add(struct dl_file_writer *w, const char *text, size_t length,
                         struct dl_err *err) {
    const int reason = write_fully(w->fd, text, length);
    return reason == 0 ? DL_OK : give_up(w, "cannot write", reason, err);
}

enum dl_code dl_file_end(struct dl_file_writer *w, struct dl_err *err) {
    int reason = 0;
    if (w->fd == STDOUT_FILENO) return DL_OK;
    if (w->keeps_mode && fchmod(w->fd, (mode_t)w->mode) != 0) reason = errno;
    if (reason == 0 && w->replaces) reason = sync_fd(w->fd);
    if (close(w->fd) != 0 && reason == 0) reason = errno;
    w->fd = -1;
    if (reason != 0) return give_up(w, "cannot write", reason, err);
    if (!w->replaces) return DL_OK;
    if (rename(w->temporary, w->target) != 0) return give_up(w, "cannot replace", errno, err);
    w->replaces = false;
    reason = sync_directory(w->target);
    return reason == 0 ? DL_OK : write_failed(w->name, "cannot sync its directory", reason, err);
}

enum dl_code dl_file_write(const char *path, const char *text, size_t length, struct dl_err *err) {
    struct dl_file_writer writer;
    DL_TRY(dl_file_begin(path, &writer, err));
    DL_TRY(dl_file_add(&writer, text, length, err));
    return dl_file_end(&writer, err);
}

enum dl_code dl_file_mkdirs(const char *path, struct dl_err *err) {
    char part[PATH_MAX];
    size_t length = path != NULL ? strlen(path) : 0;
    struct stat info;

    if (length == 0)
        return dl_fail(err, DL_ERR_SYSTEM, "expected the name of a directory, got \"\"");
    if (length >= sizeof part)
        return write_failed(path, "cannot make directory", ENAMETOOLONG, err);
    for (size_t end = 1; end <= length; end++) {
        if (path[end] != '/' && path[end] != '\0') continue;
        memcpy(part, path, end);
        part[end] = '\0';
        if (mkdir(part, 0755) != 0) {
            /* a directory that exists gives EEXIST, but also EROFS or EACCES */
            int reason = errno;

            if (stat(part, &info) == 0 && S_ISDIR(info.st_mode)) continue;
            return write_failed(part, "cannot make directory", reason == EEXIST ? ENOTDIR : reason,
                                err);
        }
    }
    return DL_OK;
}

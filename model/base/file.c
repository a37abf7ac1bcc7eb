/* file.c - whole files in, whole files out.
 * Does not lock, and does not keep a backup of what it replaces.
 */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700 /* realpath */
#endif
#include "model/base/file.h"

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

/* Reads to the end in growing pieces, because pipes and /proc have no size. *buffer_out is
 * malloc'd. */
static enum dl_code slurp(int fd, const char *path, size_t expected, size_t max_bytes,
                          char **buffer_out, size_t *length_out, struct dl_err *err) {
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
    *length_out = length;
    return DL_OK;
}

/* At most so much is read from a terminal or another device. */
enum { DEVICE_BYTES = 1 << 20 };

/* A regular file of that size straight into the arena. -1 with errno; a length above `size`: it has
 * grown since, read it otherwise. */
static ssize_t read_sized(int fd, size_t size, struct dl_arena *arena, char **text_out) {
    char *text = dl_arena_alloc(arena, size + 1, 1);
    if (text == NULL) {
        errno = ENOMEM;
        return -1;
    }
    const ssize_t got = read_fully(fd, text, size + 1);
    if (got >= 0 && (size_t)got <= size) text[got] = 0;
    *text_out = text;
    return got;
}

enum dl_code dl_file_read(const char *path, size_t max_bytes, struct dl_arena *arena,
                          char **text_out, size_t *length_out, struct dl_err *err) {
    struct stat info;
    char *buffer = NULL, *text;
    size_t length = 0;
    enum dl_code code;
    int fd;

    if (path == NULL || path[0] == '\0')
        return dl_fail(err, DL_ERR_INPUT, "expected the name of a file, got \"\"");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return read_failed(path, strerror(errno), err);
    if (fstat(fd, &info) != 0) {
        code = read_failed(path, strerror(errno), err);
    } else if (S_ISDIR(info.st_mode)) {
        code = dl_fail_at(err, path, 0, 0, NULL, "expected a file, got a directory");
    } else if (S_ISREG(info.st_mode) && info.st_size > 0 &&
               (unsigned long long)info.st_size > max_bytes) {
        code = too_large(path, max_bytes, err);
    } else {
        const size_t size = S_ISREG(info.st_mode) ? (size_t)info.st_size : 0;
        const ssize_t got = size > 0 ? read_sized(fd, size, arena, &text) : 1;
        if (got >= 0 && (size_t)got <= size) {
            close(fd);
            *text_out = text;
            *length_out = (size_t)got;
            return DL_OK;
        }
        if (got < 0) {
            code = errno == ENOMEM ? dl_fail(err, DL_ERR_SYSTEM, "%.400s: out of memory", path)
                                   : read_failed(path, strerror(errno), err);
            close(fd);
            return code;
        }
        (void)lseek(fd, 0, SEEK_SET); /* a pipe cannot, and has given nothing yet */
        /* /dev/zero has no end */
        if (S_ISCHR(info.st_mode) && max_bytes > DEVICE_BYTES) max_bytes = DEVICE_BYTES;
        code = slurp(fd, path, S_ISREG(info.st_mode) ? (size_t)info.st_size : 0, max_bytes, &buffer,
                     &length, err);
    }
    close(fd);
    if (code != DL_OK) return code;
    text = dl_arena_strndup(arena, buffer, length);
    free(buffer);
    if (text == NULL) return dl_fail(err, DL_ERR_SYSTEM, "%.400s: out of memory", path);
    *text_out = text;
    *length_out = length;
    return DL_OK;
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

/* Terminals, pipes and devices cannot be replaced, only written. */
static enum dl_code write_in_place(const char *path, const char *text, size_t length,
                                   struct dl_err *err) {
    int fd = open(path, O_WRONLY | O_CLOEXEC), reason;

    if (fd < 0) return write_failed(path, "cannot open for writing", errno, err);
    reason = write_fully(fd, text, length);
    if (close(fd) != 0 && reason == 0) reason = errno;
    return reason == 0 ? DL_OK : write_failed(path, "cannot write", reason, err);
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

/* old: the file to replace, whose permissions stay; NULL: none. */
static enum dl_code replace(const char *target, const struct stat *old, const char *text,
                            size_t length, struct dl_err *err) {
    char temporary[PATH_MAX + 64];
    const char *what = "cannot write";
    int fd = create_beside(target, temporary, sizeof temporary), reason;

    if (fd < 0) return write_failed(target, "cannot create a file next to it", errno, err);
    reason = write_fully(fd, text, length);
    if (reason == 0 && old != NULL && fchmod(fd, old->st_mode & 0777) != 0) reason = errno;
    if (reason == 0) reason = sync_fd(fd);
    if (close(fd) != 0 && reason == 0) reason = errno;
    if (reason == 0 && rename(temporary, target) != 0) {
        what = "cannot replace";
        reason = errno;
    }
    if (reason != 0) {
        unlink(temporary);
        return write_failed(target, what, reason, err);
    }
    reason = sync_directory(target);
    return reason == 0 ? DL_OK : write_failed(target, "cannot sync its directory", reason, err);
}

enum dl_code dl_file_write(const char *path, const char *text, size_t length, struct dl_err *err) {
    struct stat info;
    char resolved[PATH_MAX];
    int reason;

    if (path == NULL || path[0] == '\0')
        return dl_fail(err, DL_ERR_SYSTEM, "expected the name of a file, got \"\"");
    if (strcmp(path, "-") == 0) {
        reason = write_fully(STDOUT_FILENO, text, length);
        return reason == 0 ? DL_OK : write_failed("standard output", "cannot write", reason, err);
    }
    if (stat(path, &info) != 0) {
        if (errno != ENOENT) return write_failed(path, "cannot write", errno, err);
        return replace(path, NULL, text, length, err);
    }
    if (S_ISDIR(info.st_mode)) return write_failed(path, "cannot write", EISDIR, err);
    if (!S_ISREG(info.st_mode)) return write_in_place(path, text, length, err);
    /* A symbolic link keeps pointing at its file: replace what it points to. */
    if (realpath(path, resolved) == NULL) return write_failed(path, "cannot write", errno, err);
    return replace(resolved, &info, text, length, err);
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

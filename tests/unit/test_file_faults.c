/* System calls that fail while a file is read or replaced: the old text or the new one is there
 * whole, no temporary file is left, the error says the system's reason. The linker sends the calls
 * here (--wrap, Makefile).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "model/core/file.h"
#include "tests/check.h"

enum call { OPEN, READ, WRITE, FSYNC, FCHMOD, CLOSE, RENAME, REALPATH, FSTAT, STAT, MKDIR, CALLS };

/* The `at`-th of these calls fails with `reason`; all from there on when `always`. No call fails
 * while at is 0. */
static struct {
    enum call call;
    int at, reason, met;
    bool always, reached;
    size_t most_bytes;
    off_t hidden_bytes; /* that fstat() does not see: a file that grows afterwards */
} fault;

static bool fails(enum call call) {
    if (fault.at == 0 || call != fault.call) return false;
    fault.met++;
    if (fault.met != fault.at && !(fault.always && fault.met > fault.at)) return false;
    fault.reached = true;
    errno = fault.reason;
    return true;
}

static char opened_directory[4096]; /* the last one */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    if ((flags & O_DIRECTORY) != 0) snprintf(opened_directory, sizeof opened_directory, "%s", path);
    return fails(OPEN) ? -1 : __real_open(path, flags, mode);
}
ssize_t __real_read(int fd, void *buffer, size_t size);
ssize_t __wrap_read(int fd, void *buffer, size_t size);
ssize_t __wrap_read(int fd, void *buffer, size_t size) {
    if (fails(READ)) return -1;
    return __real_read(fd, buffer,
                       fault.most_bytes > 0 && size > fault.most_bytes ? fault.most_bytes : size);
}
ssize_t __real_write(int fd, const void *text, size_t size);
ssize_t __wrap_write(int fd, const void *text, size_t size);
ssize_t __wrap_write(int fd, const void *text, size_t size) {
    if (fails(WRITE)) return -1;
    return __real_write(fd, text,
                        fault.most_bytes > 0 && size > fault.most_bytes ? fault.most_bytes : size);
}
#define WRAP(result, name, call, declared, given)                                                  \
    result __real_##name declared;                                                                 \
    result __wrap_##name declared;                                                                 \
    result __wrap_##name declared { return fails(call) ? FAILED_##name : __real_##name given; }
#define FAILED_fsync (-1)
#define FAILED_fchmod (-1)
#define FAILED_rename (-1)
#define FAILED_realpath NULL
#define FAILED_stat (-1)
#define FAILED_mkdir (-1)
WRAP(int, fsync, FSYNC, (int fd), (fd))
WRAP(int, fchmod, FCHMOD, (int fd, mode_t mode), (fd, mode))
WRAP(int, rename, RENAME, (const char *from, const char *to), (from, to))
WRAP(char *, realpath, REALPATH, (const char *path, char *out), (path, out))
int __real_fstat(int fd, struct stat *out);
int __wrap_fstat(int fd, struct stat *out);
int __wrap_fstat(int fd, struct stat *out) {
    if (fails(FSTAT)) return -1;
    const int code = __real_fstat(fd, out);
    out->st_size -= fault.hidden_bytes;
    return code;
}
WRAP(int, stat, STAT, (const char *path, struct stat *out), (path, out))
WRAP(int, mkdir, MKDIR, (const char *path, mode_t mode), (path, mode))
/* What realpath becomes under _FORTIFY_SOURCE, as distributions build. */
char *__wrap___realpath_chk(const char *path, char *out, size_t size);
char *__wrap___realpath_chk(const char *path, char *out, size_t size) {
    (void)size;
    return fails(REALPATH) ? NULL : __real_realpath(path, out);
}
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd) {
    __real_close(fd); /* a close that fails has closed all the same */
    return fails(CLOSE) ? -1 : 0;
}

static char folder[128], path[160];
static int first_free; /* the lowest descriptor that is not in use */

static int setup(void **state) {
    (void)state;
    memset(&fault, 0, sizeof fault);
    first_free = dup(STDIN_FILENO);
    close(first_free);
    if (!check_directory(folder, sizeof folder)) return -1;
    snprintf(path, sizeof path, "%s/f", folder);
    return 0;
}
static int teardown(void **state) {
    (void)state;
    fault.at = 0;
    const int free_now = dup(STDIN_FILENO);
    close(free_now);
    unlink(path);
    /* fails when a file or an open descriptor is left */
    return rmdir(folder) != 0 || free_now != first_free ? -1 : 0;
}

static void set_fault(enum call call, int at, int reason, bool always) {
    fault.call = call;
    fault.at = at;
    fault.reason = reason;
    fault.always = always;
    fault.met = 0;
    fault.reached = false;
}

static int files_there(void) {
    int count = 0;
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static void put(const char *text) {
    struct dl_err err = {0};
    if (dl_file_write(path, text, strlen(text), &err) != DL_OK) fail_msg("%s", err.message);
}

/* Writes "new" over "old" with that fault; returns the code, and checks that one of the two is
 * there, alone, and that the message is that of the system behind `what` could not be done. */
static enum dl_code write_over(bool expect_new, const char *what) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    char *text = NULL;
    size_t length = 0;
    const enum dl_code code = dl_file_write(path, "new", 3, &err);
    assert_true(fault.reached); /* else the case tests nothing */
    fault.at = 0;
    assert_int_equal(files_there(), 1);
    assert_int_equal(dl_file_read(path, 100, &arena, &text, &length, NULL), DL_OK);
    assert_string_equal(text, expect_new ? "new" : "old");
    if (code != DL_OK) {
        assert_int_equal(code, DL_ERR_SYSTEM);
        char expected[400];
        snprintf(expected, sizeof expected, "%s: %s: %s", path, what, strerror(fault.reason));
        assert_string_equal(err.message, expected);
    }
    dl_arena_free(&arena);
    return code;
}

static void a_failed_write_leaves_one_whole_text(void **state) {
    (void)state;
    /* what fails, which of these calls (open: 1 the file, 2 its directory), whether the new text is
     * there afterwards */
    static const struct {
        enum call call;
        int at, reason;
        bool expect_new;
        const char *what;
    } faults[] = {
        {OPEN, 1, EROFS, false, "cannot create a file next to it"},
        {WRITE, 1, ENOSPC, false, "cannot write"},
        {FCHMOD, 1, EPERM, false, "cannot write"},
        {FSYNC, 1, EIO, false, "cannot write"},
        {CLOSE, 1, EDQUOT, false, "cannot write"},
        {RENAME, 1, EXDEV, false, "cannot replace"},
        {REALPATH, 1, ELOOP, false, "cannot write"},
        {STAT, 1, EACCES, false, "cannot write"},
        {OPEN, 2, EMFILE, true, "cannot sync its directory"},
        {FSYNC, 2, EIO, true, "cannot sync its directory"},
        {FSYNC, 2, EACCES, true, "cannot sync its directory"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        put("old");
        set_fault(faults[i].call, faults[i].at, faults[i].reason, false);
        if (write_over(faults[i].expect_new, faults[i].what) != DL_ERR_SYSTEM)
            fail_msg("fault %zu was not reported", i);
    }
    put("old");
    set_fault(OPEN, 1, EEXIST, true); /* every name is taken */
    assert_int_equal(write_over(false, "cannot create a file next to it"), DL_ERR_SYSTEM);
    assert_int_equal(fault.met, 1000); /* names */
}

/* A rename is on the disk when its directory is. */
static void the_directory_of_the_file_is_synced(void **state) {
    (void)state;
    put("old");
    opened_directory[0] = '\0';
    assert_int_equal(dl_file_write(path, "new", 3, NULL), DL_OK);
    assert_string_equal(strrchr(opened_directory, '/'), strrchr(folder, '/'));
}

static void what_is_no_failure(void **state) {
    (void)state;
    static const struct {
        enum call call;
        int at, reason;
    } harmless[] = {
        {WRITE, 1, EINTR}, /* again */
        {OPEN, 1, EEXIST}, /* another name */
        {FSYNC, 1, EINVAL},
        {FSYNC, 1, ENOTSUP},
        {FSYNC, 2, EROFS}, /* no fsync there */
        /* a directory that cannot be read */
        {OPEN, 2, EACCES},
    };
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        put("old");
        set_fault(harmless[i].call, harmless[i].at, harmless[i].reason, false);
        if (write_over(true, "") != DL_OK) fail_msg("fault %zu was taken for a failure", i);
    }
    fault.most_bytes = 1; /* each write takes one byte */
    put("longer text");
    fault.most_bytes = 0;
    put("old");
}

static void reading_fails(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    char *text = NULL;
    size_t length = 0;
    put("old");
    static const struct {
        enum call call;
        int reason;
    } faults[] = {{OPEN, EMFILE}, {READ, EIO}, {FSTAT, EOVERFLOW}};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        set_fault(faults[i].call, 1, faults[i].reason, false);
        assert_int_equal(dl_file_read(path, 100, &arena, &text, &length, &err), DL_ERR_INPUT);
        check_contains(err.message, strerror(faults[i].reason));
        assert_string_equal(err.file, path);
        assert_null(text);
    }
    set_fault(READ, 1, EIO, false); /* of what has no size */
    assert_int_equal(dl_file_read("/dev/null", 100, &arena, &text, &length, &err), DL_ERR_INPUT);
    check_contains(err.message, strerror(EIO));
    assert_null(text);
    set_fault(READ, 1, EINTR, false);
    fault.most_bytes = 2; /* in pieces, and interrupted once */
    assert_int_equal(dl_file_read(path, 100, &arena, &text, &length, &err), DL_OK);
    assert_string_equal(text, "old");
    assert_int_equal(length, 3);
    /* a file that grows while it is read is read whole, or refused for its size */
    for (fault.hidden_bytes = 1; fault.hidden_bytes <= 3; fault.hidden_bytes++) {
        assert_int_equal(dl_file_read(path, 3, &arena, &text, &length, &err), DL_OK);
        assert_string_equal(text, "old");
        assert_int_equal(length, 3);
        assert_int_equal(dl_file_read(path, 2, &arena, &text, &length, &err), DL_ERR_INPUT);
        check_contains(err.message, "expected a file of at most 2 bytes");
    }
    dl_arena_free(&arena);
}

static void devices_and_standard_output(void **state) {
    (void)state;
    struct dl_err err = {0};
    assert_int_equal(dl_file_write("/dev/null", "x", 1, &err), DL_OK); /* written, not replaced */
    struct stat info;
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    static const enum call calls[] = {OPEN, WRITE, CLOSE};
    for (int i = 0; i < 3; i++) {
        set_fault(calls[i], 1, EIO, false);
        assert_int_equal(dl_file_write("/dev/null", "x", 1, &err), DL_ERR_SYSTEM);
        check_contains(err.message, "/dev/null");
        check_contains(err.message, strerror(EIO));
    }
    set_fault(WRITE, 1, EPIPE, false);
    assert_int_equal(dl_file_write("-", "x", 1, &err), DL_ERR_SYSTEM);
    check_contains(err.message, "standard output");
    fault.at = 0;
    assert_int_equal(dl_file_write("-", "", 0, &err), DL_OK);
}

static void names_and_directories(void **state) {
    (void)state;
    struct dl_err err = {0};
    char longest[PATH_MAX + 8], inner[200];
    assert_int_equal(dl_file_write("", "x", 1, &err), DL_ERR_SYSTEM);
    assert_int_equal(dl_file_write(NULL, "x", 1, &err), DL_ERR_SYSTEM);
    assert_int_equal(dl_file_mkdirs(NULL, &err), DL_ERR_SYSTEM);
    assert_int_equal(dl_file_mkdirs("", &err), DL_ERR_SYSTEM);
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(dl_file_mkdirs(longest, &err), DL_ERR_SYSTEM);
    check_contains(err.message, strerror(ENAMETOOLONG));
    put("a file, not a directory");
    snprintf(inner, sizeof inner, "%s/below", path);
    assert_int_equal(dl_file_mkdirs(inner, &err), DL_ERR_SYSTEM);
    check_contains(err.message, strerror(ENOTDIR));
    snprintf(inner, sizeof inner, "%s/new", folder);
    /* "/" and the like are there already: no error until the one that is not */
    set_fault(MKDIR, 1, EROFS, true);
    assert_int_equal(dl_file_mkdirs(inner, &err), DL_ERR_SYSTEM);
    check_contains(err.message, strerror(EROFS));
    fault.at = 0;
    assert_int_equal(files_there(), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_failed_write_leaves_one_whole_text, setup, teardown),
        cmocka_unit_test_setup_teardown(the_directory_of_the_file_is_synced, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_failure, setup, teardown),
        cmocka_unit_test_setup_teardown(reading_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(devices_and_standard_output, setup, teardown),
        cmocka_unit_test_setup_teardown(names_and_directories, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

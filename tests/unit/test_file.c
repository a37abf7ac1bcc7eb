/* Whole files in and out: what is read, refused, replaced, and left alone on failure. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "model/core/file.h"
#include "tests/check.h"

static char directory[256], path[300];

static int setup(void **state) {
    (void)state;
    if (!check_directory(directory, sizeof directory)) return -1;
    snprintf(path, sizeof path, "%s/file", directory);
    return 0;
}

static const char *below(const char *name) {
    static char full[4][400];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf(full[turn], sizeof full[turn], "%s/%s", directory, name);
    return full[turn];
}

static int entries(void) {
    DIR *listing = opendir(directory);
    int count = 0;

    if (listing == NULL) return -1;
    while (readdir(listing) != NULL) count++;
    closedir(listing);
    return count - 2; /* . and .. */
}

static int teardown(void **state) {
    (void)state;
    unlink(path);
    return rmdir(directory);
}

static void test_write_and_read(void **state) {
    struct dl_arena arena = {0};
    struct dl_err err;
    struct stat info;
    char *text = NULL, *big = calloc(1, 300000);
    size_t length = 0;
    mode_t mask = umask(027);

    (void)state;
    assert_non_null(big);
    assert_int_equal(dl_file_write(path, "a\0b", 3, &err), DL_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640); /* 0644 less the umask */
    assert_int_equal(dl_file_read(path, 3, &arena, &text, &length, &err), DL_OK);
    assert_int_equal(length, 3);
    assert_memory_equal(text, "a\0b", 4); /* and NUL behind */
    assert_int_equal(dl_file_read(path, 2, &arena, &text, &length, &err), DL_ERR_INPUT);
    check_contains(err.message, "at most 2 bytes");
    assert_int_equal(chmod(path, 0600), 0);
    memset(big, 'x', 300000);
    assert_int_equal(dl_file_write(path, big, 300000, &err), DL_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600); /* the old file's permissions stay */
    assert_int_equal(dl_file_read(path, 300000, &arena, &text, &length, &err), DL_OK);
    assert_int_equal(length, 300000);
    assert_int_equal(entries(), 1); /* no temporary file is left */
    umask(mask);
    free(big);
    dl_arena_free(&arena);
}

static void test_read_refusals(void **state) {
    struct dl_arena arena = {0};
    struct dl_err err;
    char *text;
    size_t length;

    (void)state;
    assert_int_equal(dl_file_read(below("none"), 100, &arena, &text, &length, &err), DL_ERR_INPUT);
    assert_string_equal(err.file, below("none"));
    assert_int_equal(dl_file_read(directory, 100, &arena, &text, &length, &err), DL_ERR_INPUT);
    check_contains(err.message, "expected a file, got a directory");
    assert_int_equal(dl_file_read("", 100, &arena, &text, &length, &err), DL_ERR_INPUT);
    assert_int_equal(dl_file_read(NULL, 100, &arena, &text, &length, &err), DL_ERR_INPUT);
    /* has no end */
    assert_int_equal(dl_file_read("/dev/zero", 100000, &arena, &text, &length, &err), DL_ERR_INPUT);
    check_contains(err.message, "at most 100000 bytes");
    assert_int_equal(dl_file_read("/dev/null", 100, &arena, &text, &length, &err), DL_OK);
    assert_int_equal(length, 0);
    assert_string_equal(text, "");
    dl_arena_free(&arena);
}

static void test_failed_write_leaves_the_old_file(void **state) {
    struct dl_arena arena = {0};
    struct dl_err err;
    char *text;
    size_t length;

    (void)state;
    assert_int_equal(dl_file_write(below("none/file"), "x", 1, &err), DL_ERR_SYSTEM);
    check_contains(err.message, "none/file");
    check_contains(err.message, "No such file");
    assert_int_equal(dl_file_write(directory, "x", 1, &err), DL_ERR_SYSTEM);
    check_contains(err.message, "Is a directory");
    assert_int_equal(dl_file_write("", "x", 1, &err), DL_ERR_SYSTEM);
    assert_int_equal(dl_file_write("/dev/full", "x", 1, &err), DL_ERR_SYSTEM);
    check_contains(err.message, "No space left");
    assert_int_equal(dl_file_write("/dev/null", "x", 1, &err), DL_OK);
    assert_int_equal(dl_file_write(path, "old", 3, &err), DL_OK);
    if (getuid() != 0) { /* root may write anywhere */
        assert_int_equal(chmod(directory, 0500), 0);
        assert_int_equal(dl_file_write(path, "new", 3, &err), DL_ERR_SYSTEM);
        assert_int_equal(chmod(directory, 0700), 0);
    }
    assert_int_equal(dl_file_read(path, 100, &arena, &text, &length, &err), DL_OK);
    assert_string_equal(text, "old");
    assert_int_equal(entries(), 1);
    dl_arena_free(&arena);
}

static void test_symbolic_link_keeps_pointing(void **state) {
    struct dl_arena arena = {0};
    struct dl_err err;
    struct stat info;
    char *text;
    size_t length;

    (void)state;
    assert_int_equal(dl_file_write(path, "old", 3, &err), DL_OK);
    assert_int_equal(symlink(path, below("link")), 0);
    assert_int_equal(dl_file_write(below("link"), "new", 3, &err), DL_OK);
    assert_int_equal(lstat(below("link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(dl_file_read(path, 100, &arena, &text, &length, &err), DL_OK);
    assert_string_equal(text, "new");
    unlink(below("link"));
    dl_arena_free(&arena);
}

static void test_mkdirs(void **state) {
    struct dl_err err;
    struct stat info;

    const mode_t mask = umask(0);

    (void)state;
    assert_int_equal(dl_file_mkdirs(below("a/b//c/"), &err), DL_OK);
    umask(mask);
    assert_int_equal(stat(below("a/b/c"), &info), 0);
    assert_true(S_ISDIR(info.st_mode));
    assert_int_equal(info.st_mode & 0777, 0755); /* nothing of it is masked */
    assert_int_equal(dl_file_mkdirs(below("a/b/c"), &err), DL_OK);
    assert_int_equal(dl_file_mkdirs("/", &err), DL_OK);
    assert_int_equal(dl_file_mkdirs("", &err), DL_ERR_SYSTEM);
    assert_int_equal(dl_file_write(path, "", 0, &err), DL_OK);
    assert_int_equal(dl_file_mkdirs(below("file/d"), &err), DL_ERR_SYSTEM);
    check_contains(err.message, "Not a directory");
    rmdir(below("a/b/c"));
    rmdir(below("a/b"));
    rmdir(below("a"));
}

/* A file is written beside the one that it replaces, under a name of its own, which goes with the
 * writer. */
static void test_temporary(void **state) {
    struct dl_err err = {0};
    struct dl_file_writer writer;
    char expected[64];

    (void)state;
    assert_int_equal(dl_file_write(path, "old", 3, &err), DL_OK);
    assert_int_equal(dl_file_begin(path, &writer, &err), DL_OK);
    assert_int_equal(dl_file_add(&writer, "ne", 2, &err), DL_OK);
    assert_int_equal(entries(), 2);
    snprintf(expected, sizeof expected, "file.%ld.0.tmp", (long)getpid());
    assert_int_equal(access(below(expected), F_OK), 0);
    struct dl_file_writer second;
    assert_int_equal(dl_file_begin(path, &second, &err), DL_OK);
    snprintf(expected, sizeof expected, "file.%ld.1.tmp", (long)getpid());
    assert_int_equal(access(below(expected), F_OK), 0);
    dl_file_abandon(&second);
    assert_int_equal(entries(), 2);
    dl_file_abandon(&second); /* again: nothing */
    assert_int_equal(dl_file_add(&writer, "w", 1, &err), DL_OK);
    assert_int_equal(dl_file_end(&writer, &err), DL_OK);
    assert_int_equal(entries(), 1);
    struct dl_arena arena = {0};
    char *text;
    size_t length;
    assert_int_equal(dl_file_read(path, 3, &arena, &text, &length, &err), DL_OK);
    assert_string_equal(text, "new");
    dl_arena_free(&arena);
}

/* Names may begin with any byte. */
static void test_names(void **state) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_file_reader reader;
    char *text, here[1024];
    size_t length;
    bool regular = false;

    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(directory), 0);
    const char *const name = "\xc3\xa9";
    const bool ok = dl_file_mkdirs(name, &err) == DL_OK && rmdir(name) == 0 &&
                    dl_file_write(name, "x", 1, &err) == DL_OK &&
                    dl_file_read(name, 1, &arena, &text, &length, &err) == DL_OK &&
                    dl_file_open(name, &reader, &regular, &err) == DL_OK && regular;
    dl_file_close(&reader);
    unlink(name);
    assert_int_equal(chdir(here), 0);
    if (!ok) fail_msg("%s", err.message);
    dl_arena_free(&arena);
}

/* Parts of a file: from an offset, no more than there is; nothing of what cannot be read. */
static void test_parts(void **state) {
    struct dl_err err;
    char buffer[16] = "................";

    (void)state;
    assert_int_equal(dl_file_write(path, "0123456789", 10, &err), DL_OK);
    assert_int_equal(dl_file_part(path, 3, buffer, 4), 4);
    assert_memory_equal(buffer, "3456.", 5);
    assert_int_equal(dl_file_part(path, 0, buffer, 16), 10);
    assert_memory_equal(buffer, "0123456789......", 16);
    assert_int_equal(dl_file_part(path, 9, buffer, 16), 1);
    assert_int_equal(dl_file_part(path, 10, buffer, 16), 0);
    assert_int_equal(dl_file_part(path, -1, buffer, 16), 0);
    assert_int_equal(dl_file_part(below("none"), 0, buffer, 16), 0);
    assert_int_equal(dl_file_part(directory, 0, buffer, 16), 0); /* can be opened, not read */
}

/* A reader goes on where it was; what it knows of its file is what the system says. */
static void test_reader(void **state) {
    struct dl_err err = {0};
    struct dl_file_reader reader;
    struct stat info;
    char buffer[8];
    size_t length = 99;
    bool regular = false;

    (void)state;
    assert_int_equal(dl_file_write(path, "0123456789", 10, &err), DL_OK);
    assert_int_equal(dl_file_open(path, &reader, &regular, &err), DL_OK);
    assert_true(regular);
    assert_int_equal(stat(path, &info), 0);
    assert_true(reader.device == (int64_t)info.st_dev && reader.inode == (int64_t)info.st_ino);
    assert_int_equal(reader.size_bytes, 10);
    assert_true(reader.changed_ns ==
                (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec);
    assert_int_equal(dl_file_next(&reader, buffer, 8, &length, &err), DL_OK);
    assert_int_equal(length, 8);
    assert_memory_equal(buffer, "01234567", 8);
    assert_int_equal(dl_file_next(&reader, buffer, 8, &length, &err), DL_OK);
    assert_int_equal(length, 2);
    assert_memory_equal(buffer, "89", 2);
    assert_int_equal(dl_file_next(&reader, buffer, 8, &length, &err), DL_OK);
    assert_int_equal(length, 0);
    dl_file_close(&reader);
    assert_int_equal(reader.fd, -1);
    dl_file_close(&reader); /* again: nothing */
    assert_int_equal(dl_file_next(&reader, buffer, 8, &length, &err), DL_ERR_INPUT);
    check_contains(err.message, "cannot read: Bad file descriptor");
    assert_string_equal(err.file, path);
    assert_int_equal(dl_file_open(directory, &reader, &regular, &err), DL_OK);
    assert_false(regular);
    assert_int_equal(reader.fd, -1);
    static const char *const nameless[] = {"", NULL};
    for (int i = 0; i < 2; i++) {
        regular = true;
        assert_int_equal(dl_file_open(nameless[i], &reader, &regular, &err), DL_ERR_INPUT);
        assert_string_equal(err.message, "expected the name of a file, got \"\"");
        assert_false(regular);
    }
    assert_int_equal(dl_file_open(below("none"), &reader, &regular, &err), DL_ERR_INPUT);
    assert_string_equal(err.message, "cannot read: No such file or directory");
    assert_string_equal(err.file, below("none"));
}

/* At most a mebibyte of a device; of a pipe as much as is asked for. */
static void test_pipes_and_devices(void **state) {
    enum { BYTES = 200000 };
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    char *text;
    size_t length;

    (void)state;
    assert_int_equal(dl_file_read("/dev/zero", (size_t)8 << 20, &arena, &text, &length, &err),
                     DL_ERR_INPUT);
    assert_string_equal(err.message, "expected a file of at most 1048576 bytes");
    int ends[2];
    char name[64];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        char piece[1000];
        memset(piece, 'p', sizeof piece);
        for (int i = 0; i < BYTES / 1000; i++)
            if (write(ends[1], piece, sizeof piece) != (ssize_t)sizeof piece) _exit(1);
        _exit(0);
    }
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    assert_int_equal(dl_file_read(name, BYTES, &arena, &text, &length, &err), DL_OK);
    assert_int_equal(length, BYTES);
    assert_int_equal(strspn(text, "p"), BYTES);
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_write_and_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_write_leaves_the_old_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_symbolic_link_keeps_pointing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mkdirs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_temporary, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reader, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pipes_and_devices, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

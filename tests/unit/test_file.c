/* Whole files in and out: what is read, refused, replaced, and left alone on failure. */
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "model/core/file.h"
#include "tests/check.h"

static char directory[256], path[300];

static int setup(void **state) {
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
    unlink(path);
    return rmdir(directory);
}

static void test_write_and_read(void **state) {
    struct dl_err err;
    struct stat info;
    char *text = NULL, *big = calloc(1, 300000);
    size_t length = 0;
    mode_t mask = umask(027);

    assert_non_null(big);
    assert_int_equal(dl_file_write(path, "a\0b", 3, &err), DL_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640); /* 0644 less the umask */
    assert_int_equal(dl_file_read(path, 3, &test_arena, &text, &length, &err), DL_OK);
    assert_int_equal(length, 3);
    assert_memory_equal(text, "a\0b", 4); /* and NUL behind */
    assert_int_equal(dl_file_read(path, 2, &test_arena, &text, &length, &err), DL_ERR_INPUT);
    check_contains(err.message, "at most 2 bytes");
    assert_int_equal(chmod(path, 0600), 0);
    memset(big, 'x', 300000);
    assert_int_equal(dl_file_write(path, big, 300000, &err), DL_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600); /* the old file's permissions stay */
    assert_int_equal(dl_file_read(path, 300000, &test_arena, &text, &length, &err), DL_OK);
    assert_int_equal(length, 300000);
    assert_int_equal(entries(), 1); /* no temporary file is left */
    umask(mask);
    free(big);
}

static void test_read_refusals(void **state) {
    struct dl_err err;
    char *text;
    size_t length;

    assert_int_equal(dl_file_read(below("none"), 100, &test_arena, &text, &length, &err),
                     DL_ERR_INPUT);
    assert_string_equal(err.file, below("none"));
    assert_int_equal(dl_file_read(directory, 100, &test_arena, &text, &length, &err), DL_ERR_INPUT);
    check_contains(err.message, "expected a file, got a directory");
    assert_int_equal(dl_file_read("", 100, &test_arena, &text, &length, &err), DL_ERR_INPUT);
    assert_int_equal(dl_file_read(NULL, 100, &test_arena, &text, &length, &err), DL_ERR_INPUT);
    /* has no end */
    assert_int_equal(dl_file_read("/dev/zero", 100000, &test_arena, &text, &length, &err),
                     DL_ERR_INPUT);
    check_contains(err.message, "at most 100000 bytes");
    assert_int_equal(dl_file_read("/dev/null", 100, &test_arena, &text, &length, &err), DL_OK);
    assert_int_equal(length, 0);
    assert_string_equal(text, "");
}

static void test_failed_write_leaves_the_old_file(void **state) {
    struct dl_err err;
    char *text;
    size_t length;

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
    assert_int_equal(dl_file_read(path, 100, &test_arena, &text, &length, &err), DL_OK);
    assert_string_equal(text, "old");
    assert_int_equal(entries(), 1);
}

static void test_symbolic_link_keeps_pointing(void **state) {
    struct stat info;
    char *text;
    size_t length;

    assert_int_equal(dl_file_write(path, "old", 3, NULL), DL_OK);
    assert_int_equal(symlink(path, below("link")), 0);
    assert_int_equal(dl_file_write(below("link"), "new", 3, NULL), DL_OK);
    assert_int_equal(lstat(below("link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(dl_file_read(path, 100, &test_arena, &text, &length, NULL), DL_OK);
    assert_string_equal(text, "new");
    unlink(below("link"));
}

/* A file is written next to the one that it replaces, under a name of its own, which goes with the
 * writer. */
static void test_temporary(void **state) {
    struct dl_file_writer writer;
    char expected[64];

    assert_int_equal(dl_file_write(path, "old", 3, NULL), DL_OK);
    assert_int_equal(dl_file_begin(path, &writer, NULL), DL_OK);
    assert_int_equal(dl_file_add(&writer, "ne", 2, NULL), DL_OK);
    assert_int_equal(entries(), 2);
    snprintf(expected, sizeof expected, "file.%ld.0.tmp", (long)getpid());
    assert_int_equal(access(below(expected), F_OK), 0);
    struct dl_file_writer second;
    assert_int_equal(dl_file_begin(path, &second, NULL), DL_OK);
    snprintf(expected, sizeof expected, "file.%ld.1.tmp", (long)getpid());
    assert_int_equal(access(below(expected), F_OK), 0);
    dl_file_abandon(&second);
    assert_int_equal(entries(), 2);
    dl_file_abandon(&second); /* again: nothing */
    assert_int_equal(dl_file_add(&writer, "w", 1, NULL), DL_OK);
    assert_int_equal(dl_file_end(&writer, NULL), DL_OK);
    assert_int_equal(entries(), 1);
    char *text;
    size_t length;
    assert_int_equal(dl_file_read(path, 3, &test_arena, &text, &length, NULL), DL_OK);
    assert_string_equal(text, "new");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_write_and_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_write_leaves_the_old_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_symbolic_link_keeps_pointing, setup, teardown),

        cmocka_unit_test_setup_teardown(test_temporary, setup, teardown),

    };

    return cmocka_run_group_tests(tests, NULL, check_free);
}

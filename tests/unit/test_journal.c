/* The journal of a calibration: what is written is read back, a kill at any byte loses at most the
 * line being written, and an invalid or foreign journal is refused with its line. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "calibrate/run/cal_journal.h"
#include "model/core/file.h"
#include "tests/check.h"

static const struct dl_cal_header HEADER = {.plan = "00c0ffee",
                                            .host = "node7: a \"quoted\" CPU",
                                            .started = "2024-01-31T12:00:00Z",
                                            .load = "0.25",
                                            .choice.only = "gemm,stream",
                                            .choice.ranks = 2,
                                            .choice.nodes = 1,
                                            .choice.budget_s = 24.5,
                                            .choice.quick = true};

static struct dl_raw_sample sample_of(int i, struct dl_arena *arena) {
    return (struct dl_raw_sample){.probe = "gemm",
                                  .shape = dl_arena_printf(arena, "m=%d n=64 k=64", i),
                                  .pass = "fwd",
                                  .precision = "fp32",
                                  .implementation = "openblas:Haswell",
                                  .median_s = 1e-6 * (i + 1) / 3.0,
                                  .low_s = 0.9e-6 * (i + 1) / 3.0,
                                  .high_s = 1.1e-6 * (i + 1) / 3.0,
                                  .clock_hz = NAN,
                                  .power_w = NAN,
                                  .repeats = 10 + i,
                                  .outliers = i};
}

static const char *path_in(const char *directory, struct dl_arena *arena) {
    return dl_arena_printf(arena, "%s/p.json.journal", directory);
}

static void write_journal(const char *path, int samples, struct dl_arena *arena) {
    struct dl_cal_journal journal;
    assert_int_equal(dl_cal_journal_create(path, &HEADER, arena, &journal, NULL), DL_OK);
    assert_int_equal(dl_cal_journal_fact(&journal, "openblas", "0.3.21, \n a line", arena, NULL),
                     DL_OK);
    for (int i = 0; i < samples; i++) {
        struct dl_raw_sample sample = sample_of(i, arena);
        assert_int_equal(dl_cal_journal_sample(&journal, &sample, arena, NULL), DL_OK);
    }
    dl_cal_journal_close(&journal, false);
}

static void what_is_written_is_read_back(void **state) {
    struct dl_cal_journal journal;
    char directory[128];
    assert_true(check_directory(directory, sizeof directory));
    const char *path = path_in(directory, &test_arena);
    write_journal(path, 70, &test_arena);
    assert_int_equal(dl_cal_journal_read(path, &test_arena, &journal, NULL), DL_OK);
    assert_string_equal(journal.header.plan, HEADER.plan);
    assert_string_equal(journal.header.host, HEADER.host);
    assert_string_equal(journal.header.choice.only, HEADER.choice.only);
    assert_null(journal.header.choice.file_dir);
    assert_true(journal.header.choice.quick);
    assert_int_equal(journal.header.choice.ranks, 2);
    check_close(journal.header.choice.budget_s, 24.5, 0);
    assert_string_equal(dl_cal_journal_find(&journal, "openblas"), "0.3.21, \n a line");
    assert_null(dl_cal_journal_find(&journal, "onednn"));
    assert_int_equal(journal.sample_count, 70);
    for (int i = 0; i < 70; i++) {
        struct dl_raw_sample expected = sample_of(i, &test_arena);
        const struct dl_raw_sample *got = &journal.samples[i];
        assert_string_equal(got->shape, expected.shape);
        assert_string_equal(got->implementation, expected.implementation);
        check_close(got->median_s, expected.median_s, 0);
        check_close(got->low_s, expected.low_s, 0);
        check_close(got->high_s, expected.high_s, 0);
        assert_int_equal(got->repeats, expected.repeats);
        assert_int_equal(got->outliers, expected.outliers);
    }
    const struct dl_cal_point there = {.probe = "gemm", .shape = "m=69 n=64 k=64", .pass = "fwd"},
                              other_pass = {.probe = "gemm",
                                            .shape = "m=69 n=64 k=64",
                                            .pass = "bwd_data"},
                              not_there = {
                                  .probe = "gemm", .shape = "m=70 n=64 k=64", .pass = "fwd"};
    assert_true(dl_cal_journal_has(&journal, &there));
    assert_false(dl_cal_journal_has(&journal, &other_pass));
    assert_false(dl_cal_journal_has(&journal, &not_there));
    unlink(path);
    rmdir(directory);
}

/* Cut after each of its bytes: all complete lines are kept, and writing continues after them. */
static void a_kill_at_any_byte_loses_one_line(void **state) {
    struct dl_arena arena = {0};
    char directory[128], *text;
    size_t length;
    assert_true(check_directory(directory, sizeof directory));
    const char *path = path_in(directory, &arena);
    write_journal(path, 3, &arena);
    assert_int_equal(dl_file_read(path, 1 << 20, &arena, &text, &length, NULL), DL_OK);
    for (size_t cut = 1; cut <= length; cut++) {
        struct dl_arena own = {0};
        struct dl_cal_journal journal;
        size_t lines = 0, good = 0;
        for (size_t i = 0; i < cut; i++) {
            if (text[i] != '\n') continue;
            lines++;
            good = i + 1;
        }
        assert_int_equal(dl_file_write(path, text, cut, NULL), DL_OK);
        enum dl_code code = dl_cal_journal_read(path, &own, &journal, NULL);
        if (lines == 0) {
            assert_int_equal(code, DL_ERR_INPUT);
        } else {
            assert_int_equal(code, DL_OK);
            assert_int_equal(journal.good_bytes, good);
            assert_int_equal(journal.sample_count, lines < 2 ? 0 : lines - 2);
            struct dl_raw_sample sample = sample_of(9, &own);
            assert_int_equal(dl_cal_journal_continue(&journal, NULL), DL_OK);
            assert_int_equal(dl_cal_journal_sample(&journal, &sample, &own, NULL), DL_OK);
            dl_cal_journal_close(&journal, false);
            struct dl_cal_journal again;
            assert_int_equal(dl_cal_journal_read(path, &own, &again, NULL), DL_OK);
            assert_int_equal(again.sample_count, (lines < 2 ? 0 : lines - 2) + 1);
            assert_string_equal(again.samples[again.sample_count - 1].shape, sample.shape);
        }
        dl_arena_free(&own);
    }
    unlink(path);
    rmdir(directory);
    dl_arena_free(&arena);
}

static void the_last_fact_of_a_key_counts(void **state) {
    struct dl_cal_journal journal;
    struct stat before, after;
    char directory[128];
    assert_true(check_directory(directory, sizeof directory));
    const char *path = path_in(directory, &test_arena);
    assert_int_equal(dl_cal_journal_create(path, &HEADER, &test_arena, &journal, NULL), DL_OK);
    assert_int_equal(dl_cal_journal_fact(&journal, "mpi", "4.1.3", &test_arena, NULL), DL_OK);
    assert_int_equal(dl_cal_journal_fact(&journal, "mpi", "4.1.4", &test_arena, NULL), DL_OK);
    assert_int_equal(stat(path, &before), 0);
    /* known: no new line */
    assert_int_equal(dl_cal_journal_fact(&journal, "mpi", "4.1.4", &test_arena, NULL), DL_OK);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    dl_cal_journal_close(&journal, false);
    assert_int_equal(dl_cal_journal_read(path, &test_arena, &journal, NULL), DL_OK);
    assert_int_equal(journal.fact_count, 1);
    assert_string_equal(dl_cal_journal_find(&journal, "mpi"), "4.1.4");
    unlink(path);
    rmdir(directory);
}

/* fcntl locks are per process, so the other calibration is a child. */
static void two_calibrations_cannot_write_one_journal(void **state) {
    struct dl_err err = {0};
    struct dl_cal_journal journal;
    char directory[128];
    int status = 0;
    assert_true(check_directory(directory, sizeof directory));
    const char *path = path_in(directory, &test_arena);
    assert_int_equal(dl_cal_journal_create(path, &HEADER, &test_arena, &journal, &err), DL_OK);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct dl_cal_journal other;
        enum dl_code code = dl_cal_journal_create(path, &HEADER, &test_arena, &other, &err);
        _exit(code == DL_ERR_SYSTEM && strstr(err.message, "another calibration") != NULL ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    dl_cal_journal_close(&journal, false);
    /* The refused one has not touched the file, and the lock is gone with its owner. */
    assert_int_equal(dl_cal_journal_read(path, &test_arena, &journal, &err), DL_OK);
    assert_int_equal(dl_cal_journal_continue(&journal, &err), DL_OK);
    dl_cal_journal_close(&journal, true);
    assert_int_equal(access(path, F_OK), -1);
    rmdir(directory);
}

static void a_place_that_cannot_be_written_is_a_system_error(void **state) {
    struct dl_err err = {0};
    struct dl_cal_journal journal;
    assert_int_equal(
        dl_cal_journal_create("/nowhere/at/all.journal", &HEADER, &test_arena, &journal, &err),
        DL_ERR_SYSTEM);
    check_contains(err.message, "/nowhere/at/all.journal");
    assert_int_equal(dl_cal_journal_create("/", &HEADER, &test_arena, &journal, &err),
                     DL_ERR_SYSTEM);
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(dl_cal_journal_create("/dev/full", &HEADER, &test_arena, &journal, &err),
                         DL_ERR_SYSTEM);
        check_contains(err.message, "/dev/full");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_kill_at_any_byte_loses_one_line),
        cmocka_unit_test(the_last_fact_of_a_key_counts),

        cmocka_unit_test(two_calibrations_cannot_write_one_journal),
        cmocka_unit_test(a_place_that_cannot_be_written_is_a_system_error),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}

/* The skeleton of the probes, with a probe whose times are made up: when it stops, what it reports,
 * how it fails. The probes are programs of their own and no part of the library, so their common
 * source is included here. */
#include <fcntl.h>

#include "calibrate/probes/common/probe_common.c"
#include "calibrate/run/cal_journal.h"
#include "tests/check.h"

/* A call takes call_s (1 + noise N), and every `stall_every`-th block stall_s longer; of
 * `steal_every` blocks all but one are preempted, and take steal_s longer. */
static struct fake {
    double call_s, noise, stall_s, steal_s, spent_s;
    long stall_every, steal_every, blocks, calls, longest, fail_at, preemptions;
    uint64_t random;
    int opened, closed, verified;
    enum dl_code open_code, verify_code;
} fake;

static const char *available(void) { return NULL; }

static enum dl_code fake_open(const struct dl_point *point, void *state, struct dl_err *err) {
    (void)state;
    if (fake.open_code != DL_OK)
        return dl_fail(err, fake.open_code, "no room for %s", point->shape);
    fake.opened++;
    return DL_OK;
}

static double gauss(void) {
    double u = check_uniform(&fake.random), v = check_uniform(&fake.random);
    return sqrt(-2.0 * log(1.0 - u)) * cos(6.283185307179586 * v);
}

static double fake_run(void *state, long calls, struct dl_err *err) {
    struct fake *f = &fake;
    (void)state;
    f->blocks++;
    f->calls += calls;
    if (calls > f->longest) f->longest = calls;
    if (f->fail_at > 0 && f->blocks >= f->fail_at) {
        dl_fail(err, DL_ERR_BACKEND, "the call failed");
        return (double)NAN;
    }
    double elapsed = (double)calls * f->call_s * (1.0 + f->noise * gauss());
    if (f->stall_every > 0 && f->blocks % f->stall_every == 0) elapsed += f->stall_s;
    if (f->steal_every > 0 && f->blocks % f->steal_every != 0) {
        elapsed += f->steal_s;
        f->preemptions++;
    }
    f->spent_s += elapsed;
    return elapsed;
}

static long fake_preemptions(void) { return fake.preemptions; }

static enum dl_code fake_verify(void *state, struct dl_err *err) {
    (void)state;
    fake.verified++;
    return fake.verify_code == DL_OK ? DL_OK : dl_fail(err, fake.verify_code, "wrong result");
}

static void fake_close(void *state) {
    (void)state;
    fake.closed++;
}

static const struct dl_probe FAKE = {.name = "fake",
                                     .summary = "made up",
                                     .block_s = 1e-3,
                                     .unavailable = available,
                                     .state_bytes = 1,
                                     .open = fake_open,
                                     .run = fake_run,
                                     .verify = fake_verify,
                                     .close = fake_close,
                                     .preemptions = fake_preemptions};

static struct series measured(double call_s, double noise, double share_s) {
    struct series series = {.count = 0};
    fake.call_s = call_s;
    fake.noise = noise;
    fake.random = 12345;
    assert_int_equal(repeat(&FAKE, &fake, share_s, &series, NULL), DL_OK);
    return series;
}

static int fresh(void **state) {
    memset(&fake, 0, sizeof fake);
    return 0;
}

static void steady_times_stop_at_the_first_check(void **state) {
    struct series s = measured(2e-3, 0.0, 10.0);
    assert_int_equal(s.count, FIRST_CHECK);
    check_close(s.median, 2e-3, 1e-12);
    check_close(s.low, 2e-3, 1e-12);
    check_close(s.high, 2e-3, 1e-12);
    assert_int_equal(fake.longest, 1); /* a call is longer than a block */
}

static void short_calls_are_grouped_into_blocks(void **state) {
    struct series s = measured(1e-7, 0.0, 10.0);
    /* A block of 1 ms of calls of 0.1 us: 10000, and no more than a fifth longer. */
    assert_in_range(fake.longest, 10000, 12001);
    check_close(s.median, 1e-7, 1e-9);
}

static void noise_takes_more_blocks_until_the_interval_is_tight(void **state) {
    struct series quiet = measured(1.5e-3, 0.01, 100.0), noisy = measured(1.5e-3, 0.2, 100.0);
    assert_true(noisy.count > 4 * quiet.count);
    assert_true(noisy.high - noisy.low <= 2 * TIGHT_FRAC * noisy.median);
    assert_true(quiet.high - quiet.low <= 2 * TIGHT_FRAC * quiet.median);
    check_close(noisy.median, 1.5e-3, 0.05);
    assert_true(noisy.low <= noisy.median && noisy.median <= noisy.high);
}

static void the_share_ends_a_sample_that_does_not_settle(void **state) {
    struct series s = measured(10e-3, 0.5, 0.2);
    assert_true(s.high - s.low > 2 * TIGHT_FRAC * s.median);
    assert_in_range(s.count, 10, 40); /* about 20 blocks of 10 ms */
    assert_true(fake.spent_s < 0.35);
    fresh(NULL);
    s = measured(3.0, 0.0, 0.2); /* one call takes longer than the share */
    assert_int_equal(s.count, MIN_BLOCKS);
    assert_true(fake.blocks <= MIN_BLOCKS + 2);
}

/* One block in eight is 10 ms late: the median stays, the late blocks are reported. */
static void stalls_are_outliers_and_do_not_move_the_median(void **state) {
    fake.stall_every = 8;
    fake.stall_s = 10e-3;
    struct series s = measured(1.5e-3, 0.05, 100.0);
    check_close(s.median, 1.5e-3, 0.03);
    size_t outliers = dl_outliers(s.times, s.count, s.outlier, s.sorted);
    assert_in_range(outliers, s.count / 8 - 1, s.count / 8 + 2);
}

/* Three of four blocks wait 8 ms for another process: only every fourth counts. */
static void preempted_blocks_do_not_count(void **state) {
    fake.steal_every = 4;
    fake.steal_s = 8e-3;
    struct series s = measured(2e-3, 0.0, 1.0);
    check_close(s.median, 2e-3, 1e-12);
    assert_int_equal(s.count, FIRST_CHECK);
    assert_in_range(s.preempted, 3 * FIRST_CHECK - 3, 3 * FIRST_CHECK);
}

/* All blocks are preempted: the fastest quarter counts, within PATIENCE shares of time. */
static void without_clean_blocks_the_fastest_count(void **state) {
    fake.steal_every = 1000000;
    fake.steal_s = 8e-3;
    fake.stall_every = 2;
    fake.stall_s = 5e-3;
    struct series s = measured(2e-3, 0.0, 1.0);
    check_close(s.median, 10e-3, 1e-9);
    assert_in_range(s.count * 4, s.preempted + s.count - 4, s.preempted + s.count);
    assert_true(fake.spent_s < 1.1 * PATIENCE);
}

static void no_facts(void) {}

/* main() of a probe program for two points, with its stdout in a file; the text that it printed. */
static char *run_points(int *status, struct dl_arena *arena) {
    char *argv[] = {(char[]){"probe"},
                    (char[]){"--points"},
                    (char[]){"fake"},
                    (char[]){"bytes=8 x=-3"},
                    (char[]){"fwd"},
                    (char[]){"0.5"},
                    (char[]){"fake"},
                    (char[]){"bytes=16"},
                    (char[]){"fwd"},
                    (char[]){"0.5"},
                    NULL};
    const struct dl_probe *const probes[] = {&FAKE, NULL};
    char name[] = "/tmp/dlmodel-test-XXXXXX";
    int fd = mkstemp(name), saved = dup(STDOUT_FILENO), words = dup(STDERR_FILENO),
        null = open("/dev/null", O_WRONLY);
    assert_true(fd >= 0 && saved >= 0 && words >= 0 && null >= 0);
    unlink(name);
    fflush(stdout);
    dup2(fd, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    *status = dl_probe_main(10, argv, probes, false, no_facts);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    dup2(words, STDERR_FILENO);
    close(saved);
    close(words);
    close(null);
    off_t length = lseek(fd, 0, SEEK_END);
    char *text = dl_arena_alloc(arena, (size_t)length + 1, 1);
    assert_int_equal(pread(fd, text, (size_t)length, 0), length);
    close(fd);
    return text;
}

/* What a probe prints is what the journal reads. */
static void a_sample_is_one_line_that_the_journal_takes(void **state) {
    int status = -1, lines = 0;
    fake.call_s = 2e-3;
    char *text = run_points(&status, &test_arena);
    assert_int_equal(status, 0);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"), lines++) {
        struct dl_cal_line parsed;
        assert_int_equal(
            dl_cal_line_parse("probe", lines + 1, line, strlen(line), &test_arena, &parsed, NULL),
            DL_OK);
        assert_true(parsed.has_sample);
        assert_string_equal(parsed.sample.probe, "fake");
        assert_string_equal(parsed.sample.shape, lines == 0 ? "bytes=8 x=-3" : "bytes=16");
        check_close(parsed.sample.median_s, 2e-3, 1e-12);
        assert_int_equal(parsed.sample.repeats, FIRST_CHECK);
        assert_int_equal(parsed.sample.outliers, 0);
    }
    assert_int_equal(lines, 2);
    assert_int_equal(fake.opened, 2);
    assert_int_equal(fake.closed, 2);
    assert_int_equal(fake.verified, 2);
}

static void a_machine_that_refuses_skips_the_point(void **state) {
    int status = -1;
    fake.open_code = DL_ERR_SYSTEM;
    char *text = run_points(&status, &test_arena);
    assert_int_equal(status, 0);
    check_contains(text,
                   "{\"skipped\":{\"name\":\"fake\",\"unavailable\":\"no room for bytes=16\"}}");
    assert_null(strstr(text, "sample"));
}

static void a_wrong_result_or_a_failed_call_gives_no_sample(void **state) {
    int status = -1;
    fake.call_s = 2e-3;
    fake.verify_code = DL_ERR_BACKEND;
    char *text = run_points(&status, &test_arena);
    assert_int_equal(status, DL_ERR_BACKEND);
    assert_string_equal(text, "");
    assert_int_equal(fake.opened, fake.closed);
    for (long at = 1; at <= 12; at++) { /* blocks 1 and 2 are the warm-up, 3 to 12 the sample */
        fresh(NULL);
        fake.call_s = 2e-3;
        fake.fail_at = at;
        text = run_points(&status, &test_arena);
        assert_int_equal(status, DL_ERR_BACKEND);
        assert_string_equal(text, "");
        assert_int_equal(fake.opened, fake.closed);
    }
}

static void numbers_of_a_shape(void **state) {
    const struct dl_point point = {.shape = "m=64 n=-3 km=7 k=12"};
    assert_int_equal(dl_point_number(&point, "m", -1), 64);
    assert_int_equal(dl_point_number(&point, "n", -1), -3);
    assert_int_equal(dl_point_number(&point, "k", -1), 12);
    assert_int_equal(dl_point_number(&point, "km", -1), 7);
    assert_int_equal(dl_point_number(&point, "x", -1), -1);
}

static void random_data_are_the_same_each_time_and_spread(void **state) {
    static float a[10000], b[10000];
    double sum = 0.0, squares = 0.0;
    dl_fill_random(a, 10000, 3);
    dl_fill_random(b, 10000, 3);
    assert_memory_equal(a, b, sizeof a);
    for (int i = 0; i < 10000; i++) {
        assert_true(a[i] >= -1.0f && a[i] < 1.0f);
        sum += (double)a[i];
        squares += (double)a[i] * (double)a[i];
    }
    /* Uniform in [-1, 1): mean 0 +- 0.006, variance 1/3. */
    check_close(sum / 10000.0, 0.0, 0.025);
    check_close(squares / 10000.0, 1.0 / 3.0, 0.05);
    dl_fill_random(b, 10000, 4);
    assert_true(memcmp(a, b, sizeof a) != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(steady_times_stop_at_the_first_check, fresh),
        cmocka_unit_test_setup(short_calls_are_grouped_into_blocks, fresh),
        cmocka_unit_test_setup(noise_takes_more_blocks_until_the_interval_is_tight, fresh),
        cmocka_unit_test_setup(the_share_ends_a_sample_that_does_not_settle, fresh),
        cmocka_unit_test_setup(stalls_are_outliers_and_do_not_move_the_median, fresh),
        cmocka_unit_test_setup(preempted_blocks_do_not_count, fresh),
        cmocka_unit_test_setup(without_clean_blocks_the_fastest_count, fresh),
        cmocka_unit_test_setup(a_sample_is_one_line_that_the_journal_takes, fresh),
        cmocka_unit_test_setup(a_machine_that_refuses_skips_the_point, fresh),
        cmocka_unit_test_setup(a_wrong_result_or_a_failed_call_gives_no_sample, fresh),
        cmocka_unit_test(numbers_of_a_shape),
        cmocka_unit_test(random_data_are_the_same_each_time_and_spread),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}

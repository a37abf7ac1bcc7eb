/* What was set on a shaped network is found again in its messages, and all-reduce algorithms forced
 * on Open MPI take the time that their formulas say. Replays tests/fixtures/net_shaped.samples,
 * recorded by tests/net/record.sh; DL_NET_SAMPLES names another recording (`make validate-net`),
 * DL_NET_LOOSE=1 says that it was a short one on a machine that does other work too
 * (tests/cli/network.sh in `make check`): then only what noise cannot change is judged. */
#include "calibrate/run/cal_journal.h"
#include "calibrate/fits/fit_link.h"
#include "model/network/collective.h"
#include "model/core/file.h"
#include "tests/check.h"
#include "tests/fake.h"

enum { ROWS_MAX = 512 };

struct row {
    const char *probe, *pass;
    double bytes, median_s, min_s;
    int64_t ranks;
};

static struct row rows[ROWS_MAX];
static size_t row_count;
static bool loose;

static const double RATE_BYTES_PER_S = 1e9 / 8; /* what tests/net/record.sh sets */

/* Recorded in several rounds: the least disturbed one counts. */
static void keep(const struct row *row) {
    for (size_t i = 0; i < row_count; i++) {
        struct row *r = &rows[i];
        if (strcmp(r->probe, row->probe) != 0 || strcmp(r->pass, row->pass) != 0 ||
            r->bytes != row->bytes || r->ranks != row->ranks)
            continue;
        r->median_s = fmin(r->median_s, row->median_s);
        r->min_s = fmin(r->min_s, row->min_s);
        return;
    }
    rows[row_count++] = *row;
}

static int read_recording(void **state) {
    const char *given = getenv("DL_NET_SAMPLES");
    const char *path =
        given != NULL
            ? given
            : dl_arena_printf(&test_arena, "%s/tests/fixtures/net_shaped.samples", check_root());
    struct dl_err err = {0};
    char *text;
    size_t length;
    loose = getenv("DL_NET_LOOSE") != NULL;
    if (dl_file_read(path, 1 << 22, &test_arena, &text, &length, &err) != DL_OK) {
        print_error("%s\n", err.message);
        return -1;
    }
    for (char *at = text, *next; at < text + length && row_count < ROWS_MAX; at = next) {
        char *newline = memchr(at, '\n', (size_t)(text + length - at));
        struct dl_cal_line line;
        next = newline != NULL ? newline + 1 : text + length;
        if (*at != '{') continue;
        if (dl_cal_line_parse(path, 1, at, (size_t)(next - at) - (newline != NULL), &test_arena,
                              &line, &err) != DL_OK) {
            print_error("%s\n", err.message);
            return -1;
        }
        if (!line.has_sample) continue;
        const struct dl_raw_sample *s = &line.sample;
        const struct row row = {
            s->probe,    s->pass,  dl_cal_shape_number(s->shape, "bytes"),
            s->median_s, s->min_s, (int64_t)dl_cal_shape_number(s->shape, "ranks")};
        keep(&row);
    }
    return row_count > 0 ? 0 : -1;
}

/* Ping-pong of one network, fitted. Sizes ascend in the recording. Returns the number of pieces; 0:
 * not recorded. */
static int fit(const char *network, struct dl_piece pieces[DL_LINK_PIECES],
               struct dl_link_line lines[DL_LINK_PIECES]) {
    struct dl_link_sample points[ROWS_MAX];
    size_t count = 0;
    int piece_count = 0;
    struct dl_err err = {0};
    for (size_t i = 0; i < row_count; i++) {
        if (strcmp(rows[i].probe, "pingpong") != 0 || strcmp(rows[i].pass, network) != 0) continue;
        points[count++] =
            (struct dl_link_sample){rows[i].bytes, loose ? rows[i].min_s : rows[i].median_s};
    }
    if (count == 0) return 0;
    if (dl_fit_pieces(points, count, pieces, lines, &piece_count, &err) != DL_OK)
        fail_msg("%s: %s", network, err.message);
    return piece_count;
}

static void the_rate_that_was_set_is_fitted(void **state) {
    struct dl_piece pieces[DL_LINK_PIECES];
    struct dl_link_line lines[DL_LINK_PIECES];
    const int count = fit("1gbit", pieces, lines);
    assert_true(count > 0);
    const double rate = 1 / pieces[count - 1].beta_s_per_byte;
    print_message("# rate: set %.1f MB/s, fitted %.1f +- %.1f MB/s (95 %%), %+.1f %%\n",
                  RATE_BYTES_PER_S / 1e6, rate / 1e6,
                  rate * rate * dl_line_beta_half(&lines[count - 1], 0.95) / 1e6,
                  100 * (rate / RATE_BYTES_PER_S - 1));
    check_close(rate, RATE_BYTES_PER_S, loose ? 0.15 : 0.06);
}

/* The switch itself takes some microseconds: what it adds is the difference to its own network
 * without delay. */
static void the_delay_that_was_set_is_fitted(void **state) {
    struct dl_piece pieces[DL_LINK_PIECES];
    struct dl_link_line lines[DL_LINK_PIECES];
    int found = 0;
    if (fit("delay=0", pieces, lines) == 0) {
        assert_true(loose); /* no /dev/net/tun where it was recorded; a fixture has it */
        return;
    }
    const double without_s = pieces[0].alpha_s;
    for (size_t i = 0; i < row_count; i++) {
        double set_us = 0;
        if (sscanf(rows[i].pass, "delay=%lf", &set_us) != 1 || set_us == 0 || rows[i].bytes != 8)
            continue;
        assert_true(fit(rows[i].pass, pieces, lines) > 0);
        const double added_us = 1e6 * (pieces[0].alpha_s - without_s);
        print_message("# delay: set %.0f us, fitted %.1f us, %+.1f %%\n", set_us, added_us,
                      100 * (added_us / set_us - 1));
        check_close(added_us, set_us, loose ? 0.5 : 0.15);
        found++;
    }
    assert_true(found >= (loose ? 1 : 3));
}

/* A system of hosts with the fitted link between them; nothing else of it is known. */
static bool make_system(struct dl_fake *f, struct dl_piece pieces[DL_LINK_PIECES],
                        const char *network) {
    struct dl_link_line lines[DL_LINK_PIECES];
    fake_make(f);
    f->system.has_host = f->system.has_intra = false;
    f->system.devices_per_node = 1;
    f->system.software.mpi = "openmpi-4.1";
    f->system.inter.rdma = false;
    f->system.inter.pieces = pieces;
    f->system.inter.piece_count = fit(network, pieces, lines);
    return f->system.inter.piece_count > 0;
}

static double predicted(const struct dl_system *system, const char *algorithm, double bytes,
                        int64_t ranks) {
    const struct dl_collective_request request = {.op = DL_COLL_ALL_REDUCE,
                                                  .library = DL_LIB_MPI,
                                                  .bytes = bytes,
                                                  .nodes = ranks,
                                                  .ranks_per_node = 1,
                                                  .flows_per_adapter = 1,
                                                  .algorithm = algorithm};
    struct dl_collective_time time;
    struct dl_err err = {0};
    if (dl_collective_time(system, &request, &time, &err) != DL_OK)
        fail_msg("%s: %s", algorithm, err.message);
    return time.time_s;
}

/* "1gbit:ring": the network, and behind the colon the algorithm; NULL: none was forced. */
static const char *algorithm_of(const struct row *row, char network[32]) {
    const char *colon = strchr(row->pass, ':');
    if (strcmp(row->probe, "allreduce") != 0 || colon == NULL) return NULL;
    snprintf(network, 32, "%.*s", (int)(colon - row->pass), row->pass);
    return colon + 1;
}

/* Against the fastest that was measured: everything else that this machine does only adds to it. */
static void forced_algorithms_take_the_time_of_their_formula(void **state) {
    int compared = 0, far = 0;
    double worst = 0;
    for (size_t i = 0; i < row_count; i++) {
        struct dl_fake f;
        struct dl_piece pieces[DL_LINK_PIECES];
        char network[32];
        const char *algorithm = algorithm_of(&rows[i], network);
        if (algorithm == NULL) continue;
        assert_true(make_system(&f, pieces, network));
        const double time_s = predicted(&f.system, algorithm, rows[i].bytes, rows[i].ranks),
                     error = time_s / rows[i].min_s - 1;
        print_message(
            "# %-9s %d ranks %9.0f byte %-18s predicted %8.3f ms, measured %8.3f ms: %+.1f %%\n",
            network, (int)rows[i].ranks, rows[i].bytes, algorithm, 1e3 * time_s,
            1e3 * rows[i].min_s, 100 * error);
        worst = fmax(worst, fabs(error));
        far += fabs(error) > 0.3;
        compared++;
    }
    print_message("# %d all-reduces, worst error %.1f %%\n", compared, 100 * worst);
    assert_true(compared >= (loose ? 4 : 36));
    if (loose)
        assert_true(8 * far <= compared); /* other work can disturb all rounds of a few of them */
    else
        assert_true(worst <= 0.15);
}

/* Of two algorithms on the same ranks and bytes whose measured times differ by more than the 15 %
 * above, the model says which one is faster. */
static void algorithms_are_distinguished(void **state) {
    int pairs = 0, right = 0;
    for (size_t i = 0; i < row_count; i++) {
        for (size_t j = 0; j < row_count; j++) {
            char network[32], other_network[32];
            const char *algorithm = algorithm_of(&rows[i], network),
                       *other = algorithm_of(&rows[j], other_network);
            struct dl_fake f;
            struct dl_piece pieces[DL_LINK_PIECES];
            if (algorithm == NULL || other == NULL || strcmp(network, other_network) != 0) continue;
            if (rows[i].bytes != rows[j].bytes || rows[i].ranks != rows[j].ranks) continue;
            if (rows[j].min_s < (loose ? 1.6 : 1.15) * rows[i].min_s) continue;
            assert_true(make_system(&f, pieces, network));
            pairs++;
            right += predicted(&f.system, algorithm, rows[i].bytes, rows[i].ranks) <
                     predicted(&f.system, other, rows[i].bytes, rows[i].ranks);
        }
    }
    print_message("# %d of %d pairs of algorithms in the right order\n", right, pairs);
    assert_true(pairs >= (loose ? 1 : 20));
    assert_true(loose ? 10 * right >= 9 * pairs : right == pairs);
}

/* alpha 1 ms, beta 1 us/byte, sums at 4 GB/s (no host is known), 1 MiB: T = 1e-3 + 1.048576 s; 1
 * MiB is summed in 0.262144 ms. Recursive doubling of 3 ranks: 1 to its neighbour, 1 exchange, 1
 * back: 3 T, 2 sums. Of 4: 2 T, 2 sums. Reduce, then broadcast, each by its rules. 4 ranks: a star
 * (3 messages, whose latencies overlap but for 0.5 us each), 3 sums, and a chain, 3 T. Of 4 bytes
 * less: a binomial tree up, 2 T and 2 sums, a star down. 8 ranks: 3 T and 3 sums, 7 messages of a
 * star. 16: 4 T and 4 sums, then a scatter and an all-gather, 4 messages and 15/16 of the bytes
 * each. */
static void algorithms_of_open_mpi_by_hand(void **state) {
    struct dl_fake f;
    struct dl_piece piece = {1e9, 1e-3, 1e-6};
    const double bytes = 1048576, one_s = 1e-3 + 1.048576, sum_s = 0.262144e-3;
    fake_make(&f);
    f.system.has_host = f.system.has_intra = false;
    f.system.software.mpi = "openmpi-4.1";
    f.system.inter.pieces = &piece;
    f.system.inter.piece_count = 1;
    check_close(predicted(&f.system, "recursive_doubling", bytes, 3), 3 * one_s + 2 * sum_s, 1e-9);
    check_close(predicted(&f.system, "recursive_doubling", bytes, 4), 2 * one_s + 2 * sum_s, 1e-9);
    const double bytes_s = 1.048576, less_s = one_s - 4e-6;
    check_close(predicted(&f.system, "nonoverlapping", bytes, 4),
                1e-3 + 2 * 0.5e-6 + 3 * bytes_s + 3 * sum_s + 3 * one_s, 1e-9);
    check_close(predicted(&f.system, "nonoverlapping", bytes - 4, 4),
                2 * less_s + 2 * sum_s + 1e-3 + 2 * 0.5e-6 + 3 * (bytes_s - 4e-6), 1e-6);
    check_close(predicted(&f.system, "nonoverlapping", bytes, 8),
                3 * one_s + 3 * sum_s + 1e-3 + 6 * 0.5e-6 + 7 * bytes_s, 1e-9);
    check_close(predicted(&f.system, "nonoverlapping", bytes, 16),
                4 * one_s + 4 * sum_s + 8e-3 + 2 * 15.0 / 16 * bytes_s, 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(algorithms_of_open_mpi_by_hand),
        cmocka_unit_test(the_rate_that_was_set_is_fitted),
        cmocka_unit_test(the_delay_that_was_set_is_fitted),
        cmocka_unit_test(forced_algorithms_take_the_time_of_their_formula),
        cmocka_unit_test(algorithms_are_distinguished),
    };
    return cmocka_run_group_tests(tests, read_recording, check_free);
}

/* Jobs on nodes of several kinds: by hand, and against every placement. */
#include "model/search/placement.h"
#include "tests/check.h"

enum { JOBS = 4, KINDS = 2, MOST = 4 };
struct times {
    struct dl_job_times of[JOBS][KINDS][MOST];
};

static const struct dl_job_times *times_of(const void *data, int job, int kind, int64_t n) {
    return &((const struct times *)data)->of[job][kind][n - 1];
}

/* Two jobs of 100 s and 60 s on one node of kind 0, twice that on kind 1; n nodes take 1/n. Two
 * nodes of kind 0 and four of kind 1: job 0 on both of kind 0 takes 50 s, job 1 on four of kind 1
 * 30 s. Energy: 10 W on kind 0, 4 W on kind 1, whatever n: kind 1 for both, 800 + 480 J. */
static void two_jobs_by_hand(void **state) {
    struct dl_placement p;
    struct times t;
    for (int j = 0; j < 2; j++)
        for (int k = 0; k < KINDS; k++)
            for (int n = 1; n <= MOST; n++) {
                const double alone_s = (j == 0 ? 100 : 60) * (k == 0 ? 1 : 2);
                t.of[j][k][n - 1] = (struct dl_job_times){alone_s / n, alone_s * (k == 0 ? 10 : 4),
                                                          alone_s * (k == 0 ? 3 : 1)};
            }
    struct dl_placement_request r = {
        .jobs = 2, .kinds = KINDS, .nodes = {2, 4}, .times = times_of, .data = &t};
    assert_int_equal(dl_placement_of(&r, &test_arena, &p, NULL), DL_OK);
    assert_int_equal(p.kind[0], 0);
    assert_int_equal(p.nodes[0], 2);
    assert_int_equal(p.kind[1], 1);
    check_close(p.time_s, 50, 1e-12);
    r.objective = DL_PLACE_ENERGY;
    assert_int_equal(dl_placement_of(&r, &test_arena, &p, NULL), DL_OK);
    assert_int_equal(p.kind[0] + p.kind[1], 2);
    check_close(p.energy_j, 1280, 1e-12);
    r.nodes[0] = 1, r.nodes[1] = 0;
    assert_int_equal(dl_placement_of(&r, &test_arena, &p, NULL), DL_ERR_NO);
}

/* The best of all placements of the jobs from `job` on. */
static double brute(const struct dl_placement_request *r, int job, int64_t *left) {
    double best = INFINITY;
    if (job == r->jobs) return 0;
    for (int k = 0; k < r->kinds; k++) {
        for (int64_t n = 1; n <= left[k]; n++) {
            const struct dl_job_times *t = r->times(r->data, job, k, n);
            left[k] -= n;
            const double rest = brute(r, job + 1, left);
            left[k] += n;
            best = fmin(best, r->objective == DL_PLACE_TIME     ? fmax(t->time_s, rest)
                              : r->objective == DL_PLACE_ENERGY ? t->energy_j + rest
                                                                : t->cost + rest);
        }
    }
    return best;
}

static void as_brute_force(void **state) {
    uint64_t seed = 7;
    for (int round = 0; round < 60; round++) {
        struct dl_arena arena = {0};
        struct dl_placement p;
        struct times t;
        double *all = (double *)&t;
        for (size_t i = 0; i < sizeof t / sizeof *all; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            all[i] = 1 + (double)(seed >> 40);
        }
        struct dl_placement_request r = {.jobs = JOBS,
                                         .kinds = KINDS,
                                         .nodes = {MOST, 2 + round % 3},
                                         .times = times_of,
                                         .data = &t,
                                         .objective = (enum dl_placement_objective)(round % 3)};
        int64_t left[] = {r.nodes[0], r.nodes[1]};
        assert_int_equal(dl_placement_of(&r, &arena, &p, NULL), DL_OK);
        const double found = round % 3 == 0 ? p.time_s : round % 3 == 1 ? p.energy_j : p.cost;
        check_close(found, brute(&r, 0, left), 1e-12);
        /* the placement is one, and the figures are its own */
        double time_s = 0, energy_j = 0, cost = 0;
        for (int j = 0; j < JOBS; j++) {
            const struct dl_job_times *own = times_of(&t, j, p.kind[j], p.nodes[j]);
            left[p.kind[j]] -= p.nodes[j];
            time_s = fmax(time_s, own->time_s), energy_j += own->energy_j, cost += own->cost;
        }
        assert_true(left[0] >= 0 && left[1] >= 0);
        check_close(p.time_s, time_s, 1e-12);
        check_close(p.energy_j, energy_j, 1e-12);
        check_close(p.cost, cost, 1e-12);
        dl_arena_free(&arena);
    }
}

/* Times that there are not, for a job on some nodes: it goes elsewhere, or nowhere. */
static const struct dl_job_times *some_times_of(const void *data, int job, int kind, int64_t n) {
    static const struct dl_job_times unknown = {
        .time_s = (double)NAN, .energy_j = (double)NAN, .cost = (double)NAN};
    if (job == 1 && kind == 0) return NULL;
    if (job == 0 && n > 1) return &unknown;
    return times_of(data, job, kind, n);
}

static void what_cannot_run(void **state) {
    struct dl_err err = {0};
    struct dl_placement p;
    struct times t;
    for (int j = 0; j < JOBS; j++)
        for (int k = 0; k < KINDS; k++)
            for (int n = 1; n <= MOST; n++)
                t.of[j][k][n - 1] = (struct dl_job_times){60.0 / n, 100 * n + k, 10 * n - k};
    struct dl_placement_request r = {
        .jobs = 2, .kinds = KINDS, .nodes = {2, 2}, .times = some_times_of, .data = &t};
    /* job 0 takes one node: of kind 0, for job 1 runs on kind 1 alone, faster on two */
    assert_int_equal(dl_placement_of(&r, &test_arena, &p, &err), DL_OK);
    assert_int_equal(p.kind[0], 0);
    assert_int_equal(p.nodes[0], 1);
    assert_int_equal(p.kind[1], 1);
    /* no faster than job 0's 60 s: one node is as good, and the fewest are taken */
    assert_int_equal(p.nodes[1], 1);
    check_close(p.time_s, 60, 0);
    check_close(p.energy_j, 100 + 101, 0);
    check_close(p.cost, 10 + 9, 0);
    r.objective = DL_PLACE_ENERGY;
    assert_int_equal(dl_placement_of(&r, &test_arena, &p, &err), DL_OK);
    check_close(p.energy_j, 201, 0);
    r.objective = DL_PLACE_COST; /* 9 on kind 1 for both */
    assert_int_equal(dl_placement_of(&r, &test_arena, &p, &err), DL_OK);
    check_close(p.cost, 18, 0);
    assert_int_equal(p.kind[0], 1);
    r.nodes[1] = 0;
    assert_int_equal(dl_placement_of(&r, &test_arena, &p, &err), DL_ERR_NO);
    assert_string_equal(err.message, "the jobs do not fit on these nodes together");
    r.nodes[1] = 1, r.nodes[0] = 0; /* one node for two jobs */
    assert_int_equal(dl_placement_of(&r, &test_arena, &p, &err), DL_ERR_NO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_jobs_by_hand),
        cmocka_unit_test(as_brute_force),
        cmocka_unit_test(what_cannot_run),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}

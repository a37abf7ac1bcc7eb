/* Stages of a pipeline on nodes of several kinds: by hand, and against every placement. */
#include "model/search/stages.h"
#include "tests/check.h"

enum { PIECES = 5, KINDS = 2 };

/* Each piece takes its seconds / (speed of the kind x nodes) for a micro-batch, and m micro-batches
 * follow each other; a boundary takes 1 s on the way; a kind holds so many pieces. */
struct made {
    double seconds[PIECES], speed[KINDS], micro_batches;
    int pieces, most_pieces[KINDS], most_behind;
};

static bool cost_of(const void *data, const struct dl_stage *s, int behind,
                    struct dl_stage_cost *out) {
    const struct made *m = data;
    double sum_s = 0;
    if (s->to - s->from > m->most_pieces[s->kind] || behind > m->most_behind) return false;
    for (int i = s->from; i < s->to; i++) sum_s += m->seconds[i];
    sum_s /= m->speed[s->kind] * (double)s->nodes;
    *out = (struct dl_stage_cost){sum_s + (s->from > 0 ? 1 : 0), (m->micro_batches - 1) * sum_s};
    return true;
}

/* Pieces of 6, 6 and 12 s, 5 micro-batches, one node of kind 0 and one of half its speed. All
 * on kind 0: 24 + 4 x 24 = 120 s. Two stages: kind 0 takes the last two (18 s), kind 1 the
 * first (12 s): 12 + 18 + 1 + 4 x 18 = 103 s. The other way round, kind 0 first with 12 s and
 * kind 1 with 24 s: 12 + 24 + 1 + 4 x 24 = 133 s. Where a kind holds one piece at most, two
 * nodes hold too few. */
static void by_hand(void **state) {
    struct dl_stages *found;
    int count;
    struct made m = {.seconds = {6, 6, 12},
                     .speed = {1, 0.5},
                     .micro_batches = 5,
                     .pieces = 3,
                     .most_pieces = {3, 3},
                     .most_behind = 9};
    struct dl_stages_request r = {
        .pieces = 3, .kinds = KINDS, .nodes = {1, 1}, .cost = cost_of, .data = &m};
    assert_int_equal(dl_stages_place(&r, &test_arena, &found, &count, NULL), DL_OK);
    assert_int_equal(count, 3); /* kind 0 alone, kind 1 alone, both */
    for (int i = 0; i < count; i++) {
        const struct dl_stages *s = &found[i];
        if (s->used[0] + s->used[1] == 1) {
            assert_int_equal(s->count, 1);
            check_close(s->time_s, s->used[0] == 1 ? 120 : 240, 1e-12);
            continue;
        }
        check_close(s->time_s, 103, 1e-12);
        assert_int_equal(s->count, 2);
        assert_int_equal(s->stages[0].kind, 1);
        assert_int_equal(s->stages[0].to, 1);
        assert_int_equal(s->stages[1].kind, 0);
        assert_int_equal(s->stages[1].to, 3);
    }
    m.most_pieces[0] = m.most_pieces[1] = 1;
    assert_int_equal(dl_stages_place(&r, &test_arena, &found, &count, NULL), DL_ERR_NO);
    r.nodes[0] = 2000;
    assert_int_equal(dl_stages_place(&r, &test_arena, &found, &count, NULL), DL_ERR_USAGE);
}

/* The best end of a pipeline from piece `from` on: every order of stages, kinds and nodes. */
static double brute(const struct made *m, int from, int64_t *left, double sum_s, double most_s,
                    int stages, const struct dl_stage *chosen) {
    double best_s = INFINITY;
    struct dl_stage own[PIECES];
    if (from == m->pieces) {
        for (int i = 0; i < stages; i++) { /* behind is known now */
            struct dl_stage_cost c;
            if (!cost_of(m, &chosen[i], stages - 1 - i, &c)) return INFINITY;
            sum_s += c.through_s;
            most_s = fmax(most_s, c.steady_s);
        }
        return left[0] == 0 && left[1] == 0 ? sum_s + most_s : INFINITY;
    }
    for (int i = 0; i < stages; i++) own[i] = chosen[i];
    for (int to = from + 1; to <= m->pieces; to++) {
        for (int k = 0; k < KINDS; k++) {
            for (int64_t n = 1; n <= left[k]; n++) {
                own[stages] = (struct dl_stage){from, to, k, n};
                left[k] -= n;
                best_s = fmin(best_s, brute(m, to, left, sum_s, most_s, stages + 1, own));
                left[k] += n;
            }
        }
    }
    return best_s;
}

static void as_brute_force(void **state) {
    uint64_t seed = 11;
    int compared = 0;
    for (int round = 0; round < 80; round++) {
        struct dl_arena arena = {0};
        struct dl_stages *found;
        int count;
        struct made m = {.micro_batches = 1 + round % 7,
                         .pieces = 2 + round % 4,
                         .most_pieces = {5, 2 + round % 4},
                         .most_behind = 1 + round % 4};
        double *const random[] = {m.seconds, m.speed};
        for (int i = 0; i < PIECES + KINDS; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            *(i < PIECES ? &random[0][i] : &random[1][i - PIECES]) = 1 + (double)(seed >> 59);
        }
        const struct dl_stages_request r = {.pieces = m.pieces,
                                            .kinds = KINDS,
                                            .nodes = {2, 1 + round % 3},
                                            .cost = cost_of,
                                            .data = &m};
        assert_int_equal(dl_stages_place(&r, &arena, &found, &count, NULL), DL_OK);
        for (int i = 0; i < count; i++, compared++) {
            int64_t left[] = {found[i].used[0], found[i].used[1]};
            check_close(found[i].time_s, brute(&m, 0, left, 0, 0, 0, NULL), 1e-12);
            /* its stages hold every piece once, on the nodes that it uses, and take that time */
            double sum_s = 0, most_s = 0;
            for (int k = 0; k < found[i].count; k++) {
                const struct dl_stage *one = &found[i].stages[k];
                struct dl_stage_cost c = {0};
                assert_int_equal(one->from, k == 0 ? 0 : found[i].stages[k - 1].to);
                assert_true(cost_of(&m, one, found[i].count - 1 - k, &c));
                left[one->kind] -= one->nodes;
                sum_s += c.through_s, most_s = fmax(most_s, c.steady_s);
            }
            assert_int_equal(found[i].stages[found[i].count - 1].to, m.pieces);
            assert_true(left[0] == 0 && left[1] == 0);
            check_close(found[i].time_s, sum_s + most_s, 1e-12);
        }
        dl_arena_free(&arena);
    }
    assert_true(compared > 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(as_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}

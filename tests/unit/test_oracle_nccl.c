/* NCCL's cost model and choice against tests/oracle/nccl_tuning.py, which was written from NCCL's
 * public tables apart from model/: 300 random communicators of five releases, every algorithm and
 * protocol of each, and what NCCL would run. The layer beneath the measured constants
 * (F-NCCL-ATTAINED) is compared, as those are no part of NCCL. */
#include "model/network/libraries/nccl.h"
#include "tests/check.h"

enum { CELLS = 20, FEWEST_VECTORS = 200 };

struct vector {
    const struct dl_nccl_version *row;
    struct dl_nccl_graph graph;
    enum dl_collective_op op;
    int number;
    double bytes, expected[2][DL_NCCL_PROTOCOLS];
    const char *chosen;
};

/* The columns are those of nccl_tuning.py, in its order. */
static bool read_vector(char *line, struct vector *v) {
    char *cells[CELLS];
    int count = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *at = line; at != NULL && count < CELLS; count++) {
        cells[count] = at;
        at = strchr(at, ',');
        if (at != NULL) *at++ = '\0';
    }
    if (count != CELLS) return false;
    double x[CELLS];
    for (int i = 0; i < CELLS; i++) x[i] = strtod(cells[i], NULL);
    v->row = dl_nccl_version_find(cells[0], &v->number);
    v->graph = (struct dl_nccl_graph){.ranks = x[2] * x[3],
                                      .nodes = x[2],
                                      .channels = x[4],
                                      .tree_channels = x[4],
                                      .ring_bytes_per_s = x[5] * 1e9,
                                      .tree_bytes_per_s = x[6] * 1e9,
                                      .net_latency_s = x[10] * 1e-6,
                                      .generation = (enum dl_nccl_generation)x[1],
                                      .nvlink = x[7] > 0,
                                      .amd_host = x[8] > 0,
                                      .ll128 = x[9] > 0};
    v->op = (enum dl_collective_op)dl_collective_op_find(cells[11]);
    v->bytes = x[12];
    for (int i = 0; i < 2 * DL_NCCL_PROTOCOLS; i++)
        v->expected[i / DL_NCCL_PROTOCOLS][i % DL_NCCL_PROTOCOLS] = x[13 + i];
    v->chosen = cells[19];
    return v->row != NULL;
}

/* Every combination; of broadcasts and reductions the bandwidth alone, in GB/s. Returns what is
 * wrong. */
static int check_costs(const struct vector *v, int line) {
    const bool bandwidth = strcmp(v->chosen, "bandwidth") == 0;
    int wrong = 0;
    for (int a = 0; a < 2; a++) {
        for (int p = 0; p < DL_NCCL_PROTOCOLS; p++) {
            struct dl_cost_parts cost = {0};
            const double expected = v->expected[a][p];
            const bool there = dl_nccl_cost(
                &(struct dl_nccl_operation){v->number, v->row, &v->graph, v->op, v->bytes, false},
                (enum dl_nccl_algorithm)a, (enum dl_nccl_protocol)p, &cost);
            const double actual = bandwidth ? v->bytes / cost.bandwidth_s / 1e9
                                            : (cost.latency_s + cost.bandwidth_s) * 1e6;
            if (there == !isnan(expected) && (!there || fabs(actual - expected) <= 1e-5 * expected))
                continue;
            wrong++;
            print_error("line %d: %s %s: %.7g, expected %.7g\n", line, dl_nccl_algorithms[a].name,
                        dl_nccl_protocol_names[p], there ? actual : (double)NAN, expected);
        }
    }
    return wrong;
}

/* PAT, which the oracle leaves out, serves no communicator with several devices in a node. */
static int check_choice(const struct vector *v, int line) {
    enum dl_nccl_algorithm algorithm;
    enum dl_nccl_protocol protocol;
    struct dl_cost_parts cost;
    char name[64];
    if (strcmp(v->chosen, "bandwidth") == 0) return 0;
    if (v->op != DL_COLL_ALL_REDUCE && v->graph.ranks <= v->graph.nodes && v->number >= 2300)
        return 0;
    assert_true(dl_nccl_choose(
        &(struct dl_nccl_operation){v->number, v->row, &v->graph, v->op, v->bytes, false}, -1, -1,
        &algorithm, &protocol, &cost));
    snprintf(name, sizeof name, "%s-%s", dl_nccl_algorithms[algorithm].name,
             dl_nccl_protocol_names[protocol]);
    if (strcmp(name, v->chosen) == 0) return 0;
    print_error("line %d: %s, expected %s\n", line, name, v->chosen);
    return 1;
}

static void as_the_public_tables(void **state) {
    char path[4096], line[1024];
    snprintf(path, sizeof path, "%s/tests/oracle/nccl_tuning.csv", check_root());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    int count = 0, wrong = 0;
    for (; fgets(line, sizeof line, file) != NULL; count++) {
        struct vector v;
        if (!read_vector(line, &v)) fail_msg("line %d of %s", count + 2, path);
        wrong += check_costs(&v, count + 2) + check_choice(&v, count + 2);
    }
    fclose(file);
    assert_true(count >= FEWEST_VECTORS);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_public_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

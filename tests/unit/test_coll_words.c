/* What the collectives call themselves: each algorithm's words, each formula's entry in
 * docs/formulas.md, and the words of every refusal, spelled out here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/network/coll_match.h"
#include "model/network/coll_parts.h"
#include "model/network/libraries/nccl.h"
#include "tests/check.h"
#include "tests/fake.h"

struct words {
    const char *name, *formula, *source, *summary;
};
static const struct words words[] = {
    {"all_reduce.ring", "F-COLL-RING", "thakur-2005",
     "reduce-scatter then all-gather around a ring"},
    {"all_reduce.segmented_ring", "F-COLL-RING-SEGMENTED", "openmpi-coll",
     "ring whose reduce-scatter runs in phases of one segment per rank"},
    {"all_reduce.recursive_doubling", "F-COLL-DOUBLING", "thakur-2005",
     "lg p exchanges of the whole vector"},
    {"all_reduce.rabenseifner", "F-COLL-RABENSEIFNER", "thakur-2005",
     "halving reduce-scatter, doubling all-gather"},
    {"all_reduce.reduce_broadcast", "F-COLL-REDUCE-BROADCAST", "thakur-2005",
     "binomial reduce, then binomial broadcast"},
    {"all_reduce.nonoverlapping", "F-COLL-REDUCE-BROADCAST", "openmpi-coll",
     "reduce, then broadcast, as Open MPI names it"},
    {"all_reduce.binary_tree", "F-COLL-BINARY-TREE", "unverified",
     "segments up and down one binary tree"},
    {"all_reduce.double_tree", "F-COLL-DOUBLE-TREE", "unverified",
     "two complementary binary trees, each with half the vector"},
    {"all_reduce.halving_doubling", "F-COLL-HALVING-DOUBLING", "gloo-docs",
     "recursive halving and doubling, binary blocks when p is not a power of two"},
    {"all_reduce.bcube", "F-COLL-BCUBE", "gloo-docs", "stages of groups of two over a hypercube"},
    {"all_reduce.linear", "F-COLL-LINEAR", "openmpi-coll",
     "all ranks to the root one after another, then broadcast"},
    {"all_reduce.hierarchical2", "F-COLL-HIERARCHICAL", "horovod-source",
     "reduce-scatter, all-reduce of shards, all-gather on two levels"},
    {"all_reduce.hierarchical3", "F-COLL-HIERARCHICAL", "horovod-source",
     "reduce-scatter, all-reduce of shards, all-gather on three levels"},
    {"all_reduce.torus2d", "F-COLL-TORUS2D", "horovod-source",
     "rings along the rows, then along the columns of a torus"},
    {"all_reduce.leader", "F-COLL-LEADER", "paradl-paper",
     "reduce to leaders, ring of leaders, broadcast (ChainerMN)"},
    {"all_gather.ring", "F-COLL-RING-AG", "thakur-2005", "blocks passed around a ring"},
    {"all_gather.recursive_doubling", "F-COLL-DOUBLING-AG", "thakur-2005",
     "lg p exchanges of doubling size; powers of two"},
    {"all_gather.bruck", "F-COLL-BRUCK-AG", "thakur-2005",
     "ceil(lg p) steps for any number of ranks"},
    {"reduce_scatter.ring", "F-COLL-RING-RS", "thakur-2005", "partial sums passed around a ring"},
    {"reduce_scatter.recursive_halving", "F-COLL-HALVING", "thakur-2005",
     "lg p exchanges of halving size; powers of two"},
    {"broadcast.binomial", "F-COLL-BINOMIAL", "thakur-2005", "whole messages down a binomial tree"},
    {"broadcast.chain", "F-COLL-CHAIN", "unverified", "segments along a chain"},
    {"broadcast.scatter_all_gather", "F-COLL-SCATTER-AG", "thakur-2005",
     "binomial scatter, ring all-gather"},
    {"reduce.binomial", "F-COLL-BINOMIAL-REDUCE", "thakur-2005",
     "whole messages up a binomial tree"},
    {"all_to_all.pairwise", "F-COLL-PAIRWISE", "thakur-2005", "p - 1 exchanges of one block"},
    {"all_to_all.bruck", "F-COLL-BRUCK", "thakur-2005", "ceil(lg p) exchanges of half the buffer"},
    {"p2p.direct", "F-COLL-P2P", "unverified", "one message"},
    {"gather.binomial", "F-COLL-GATHER", "thakur-2005", "doubling blocks up a binomial tree"},
    {"scatter.binomial", "F-COLL-SCATTER", "thakur-2005", "halving blocks down a binomial tree"},
    {"halo.neighbours", "F-COLL-HALO", "paradl-paper", "one message to each of two neighbours"},
    {"all_reduce.collnet", "F-COLL-COLLNET", "nccl-tuning",
     "in-network reduction in the switches (SHARP)"},
    {"all_reduce.nvls", "F-COLL-NVLS", "nccl-tuning",
     "in-network reduction in the NVSwitch of a node, multicast to all"},
    {"all_gather.pat", "F-COLL-PAT", "nccl-tuning",
     "parallel aggregated trees, one device per node"},
    {"reduce_scatter.pat", "F-COLL-PAT", "nccl-tuning",
     "parallel aggregated trees in reverse, with sums"}};

/* A document of the repository as one text. */
static char *document(const char *name) {
    static char text[1 << 20];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", check_root(), name);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail_msg("cannot open %s", path);
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_true(length > 0 && length < sizeof text - 1);
    text[length] = '\0';
    return text;
}

static void words_of_every_algorithm(void **state) {
    (void)state;
    const size_t rows = sizeof words / sizeof *words;
    const char *formulas = document("docs/formulas.md");
    size_t count = 0;
    while (dl_collective_algorithms[count] != NULL) count++;
    assert_int_equal(count, rows);
    for (size_t i = 0; i < rows; i++) {
        const struct dl_collective_algorithm *row = dl_collective_algorithm_find(words[i].name);
        char cell[64];
        if (row == NULL) fail_msg("no algorithm %s", words[i].name);
        assert_string_equal(row->name, words[i].name);
        assert_string_equal(row->formula, words[i].formula);
        assert_string_equal(row->source, words[i].source);
        assert_string_equal(row->summary, words[i].summary);
        const size_t op = strcspn(row->name, ".");
        assert_int_equal(strlen(dl_collective_op_names[row->op]), op);
        assert_memory_equal(dl_collective_op_names[row->op], row->name, op);
        snprintf(cell, sizeof cell, "| %s |", row->formula);
        check_contains(formulas, cell);
    }
    for (size_t i = 0; i < rows; i++) /* the names differ */
        for (size_t k = 0; k < i; k++) assert_string_not_equal(words[i].name, words[k].name);
}

/* The order in which people know them: enum dl_collective_op, enum dl_library. */
static void names(void **state) {
    (void)state;
    static const struct {
        enum dl_collective_op op;
        const char *name;
    } ops[] = {{DL_COLL_P2P, "p2p"},
               {DL_COLL_BROADCAST, "broadcast"},
               {DL_COLL_REDUCE, "reduce"},
               {DL_COLL_ALL_REDUCE, "all_reduce"},
               {DL_COLL_REDUCE_SCATTER, "reduce_scatter"},
               {DL_COLL_ALL_GATHER, "all_gather"},
               {DL_COLL_ALL_TO_ALL, "all_to_all"},
               {DL_COLL_GATHER, "gather"},
               {DL_COLL_SCATTER, "scatter"},
               {DL_COLL_HALO, "halo"}};
    static const struct {
        enum dl_library library;
        const char *name;
    } libraries[] = {{DL_LIB_NCCL, "nccl"},     {DL_LIB_MPI, "mpi"},   {DL_LIB_GLOO, "gloo"},
                     {DL_LIB_GRPC, "grpc"},     {DL_LIB_COPY, "copy"}, {DL_LIB_MLSL, "mlsl"},
                     {DL_LIB_PSLITE, "ps-lite"}};
    assert_int_equal(sizeof ops / sizeof *ops, DL_COLL_OPS);
    assert_int_equal(sizeof libraries / sizeof *libraries, DL_LIBRARIES);
    for (int i = 0; i < DL_COLL_OPS; i++) {
        assert_int_equal(dl_collective_op_find(ops[i].name), ops[i].op);
        assert_string_equal(dl_collective_op_names[ops[i].op], ops[i].name);
    }
    for (int i = 0; i < DL_LIBRARIES; i++) {
        assert_int_equal(dl_library_find(libraries[i].name), libraries[i].library);
        assert_string_equal(dl_library_names[libraries[i].library], libraries[i].name);
    }
    static const struct {
        enum dl_nccl_algorithm algorithm;
        const char *name;
    } nccl[] = {{DL_NCCL_TREE, "tree"},
                {DL_NCCL_RING, "ring"},
                {DL_NCCL_COLLNET_DIRECT, "collnet_direct"},
                {DL_NCCL_COLLNET_CHAIN, "collnet_chain"},
                {DL_NCCL_NVLS, "nvls"},
                {DL_NCCL_NVLS_TREE, "nvls_tree"},
                {DL_NCCL_PAT, "pat"}};
    assert_int_equal(sizeof nccl / sizeof *nccl, DL_NCCL_ALGORITHMS);
    for (int i = 0; i < DL_NCCL_ALGORITHMS; i++)
        assert_string_equal(dl_nccl_algorithm_names[nccl[i].algorithm], nccl[i].name);
    assert_null(dl_nccl_algorithm_names[DL_NCCL_ALGORITHMS]);
    assert_string_equal(dl_nccl_protocol_names[DL_NCCL_LL], "LL");
    assert_string_equal(dl_nccl_protocol_names[DL_NCCL_LL128], "LL128");
    assert_string_equal(dl_nccl_protocol_names[DL_NCCL_SIMPLE], "Simple");
    assert_null(dl_nccl_protocol_names[DL_NCCL_PROTOCOLS]);
    assert_int_equal(dl_collective_op_find("barrier"), -1);
    assert_int_equal(dl_library_find("NCCL"), -1);
    assert_null(dl_collective_op_names[DL_COLL_OPS]);
    assert_null(dl_library_names[DL_LIBRARIES]);
}

static const struct dl_collective_request plain = {.op = DL_COLL_ALL_REDUCE,
                                                   .library = DL_LIB_MPI,
                                                   .bytes = 1e6,
                                                   .nodes = 2,
                                                   .ranks_per_node = 4,
                                                   .flows_per_adapter = 1};

static void refused(const struct dl_system *system, struct dl_collective_request request,
                    enum dl_code code, const char *message) {
    struct dl_collective_time time;
    struct dl_err err = {0};
    assert_int_equal(dl_collective_time(system, &request, &time, &err), code);
    assert_string_equal(err.message, message);
}

static void requests(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_collective_request r = plain;
    r.op = DL_COLL_OPS;
    refused(&f.system, r, DL_ERR_USAGE, "unknown collective operation or library");
    r = plain, r.library = DL_LIBRARIES;
    refused(&f.system, r, DL_ERR_USAGE, "unknown collective operation or library");
    r = plain, r.bytes = -3;
    refused(&f.system, r, DL_ERR_USAGE, "expected a collective of at least 0 bytes, got -3");
    r.bytes = INFINITY;
    refused(&f.system, r, DL_ERR_USAGE, "expected a collective of at least 0 bytes, got inf");
    r = plain, r.nodes = 0;
    refused(&f.system, r, DL_ERR_USAGE,
            "expected a collective over at least 1 node and 1 rank, got 0 x 4");
    r = plain, r.ranks_per_node = -1;
    refused(&f.system, r, DL_ERR_USAGE,
            "expected a collective over at least 1 node and 1 rank, got 2 x -1");
    r = plain, r.group_size = 5, r.group_stride = 2; /* ranks 0, 2, 4, 6: four fit */
    refused(&f.system, r, DL_ERR_USAGE,
            "a group of 5 ranks, 2 apart, does not fit into 2 x 4 ranks");
    r = plain, r.algorithm = "star";
    refused(&f.system, r, DL_ERR_USAGE,
            "MPI has no all-reduce 'star'; expected ring, recursive_doubling, segmented_ring, "
            "rabenseifner or nonoverlapping");
    r.op = DL_COLL_ALL_GATHER;
    refused(&f.system, r, DL_ERR_USAGE, "MPI has no all_gather 'star'");
    r = plain, r.library = DL_LIB_COPY;
    refused(&f.system, r, DL_ERR_INPUT,
            "one process copies between the devices of one node, not of 2 nodes");
    r.nodes = 1, r.algorithm = "spiral";
    refused(&f.system, r, DL_ERR_USAGE,
            "no copy pattern 'spiral'; expected star, tree, host, sharded, ring or hierarchical");
    dl_arena_free(&f.arena);
}

static void requests_to_nccl(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_collective_request r = plain;
    f.system.nccl_version = "2.18.3";
    r.library = DL_LIB_NCCL, r.algorithm = "star";
    refused(&f.system, r, DL_ERR_USAGE,
            "NCCL has no algorithm 'star'; expected tree, ring, nvls, nvls_tree, collnet_direct, "
            "collnet_chain or pat");
    r.algorithm = NULL, r.protocol = "ll";
    refused(&f.system, r, DL_ERR_USAGE, "NCCL has no protocol 'll'; expected LL, LL128 or Simple");
    f.system.nccl_algorithm = "Ring", r.protocol = NULL; /* the file's word is the file's error */
    refused(&f.system, r, DL_ERR_INPUT,
            "NCCL has no algorithm 'Ring'; expected tree, ring, nvls, nvls_tree, collnet_direct, "
            "collnet_chain or pat");
    f.system.nccl_algorithm = NULL;
    r.algorithm = "nvls", r.protocol = "LL"; /* no switch on Volta */
    char message[200];
    snprintf(message, sizeof message,
             "NCCL %s cannot run this with algorithm nvls and protocol LL here",
             dl_nccl_version_find("2.18.3", &(int){0})->text);
    refused(&f.system, r, DL_ERR_INPUT, message);
    f.system.has_inter = false, r = plain, r.library = DL_LIB_NCCL;
    refused(&f.system, r, DL_ERR_INPUT,
            "system fake has no links.inter.bandwidth_bytes_per_s, needed for 2 nodes");
    f.system.name = NULL;
    refused(&f.system, r, DL_ERR_INPUT,
            "system ? has no links.inter.bandwidth_bytes_per_s, needed for 2 nodes");
    f.system.name = "fake", f.system.has_intra = false;
    refused(&f.system, r, DL_ERR_INPUT,
            "system fake has no links.intra, needed for 4 devices of a node");
    f.system.has_intra = true, f.system.intra.bandwidth_bytes_per_s = 0;
    r.nodes = 1;
    refused(&f.system, r, DL_ERR_INPUT,
            "system fake has no bandwidth between 4 devices of a node: set "
            "links.intra.bandwidth_bytes_per_s or host.copy_bandwidth_bytes_per_s");
    dl_arena_free(&f.arena);
}

/* An algorithm imposed on MPI is told by its own name and the formula of the registry. */
static void mpi_tells_what_it_runs(void **state) {
    (void)state;
    static const char *const algorithms[] = {"ring", "recursive_doubling", "segmented_ring",
                                             "rabenseifner", "nonoverlapping"};
    struct dl_fake f;
    fake_make(&f);
    for (int i = 0; i < 5; i++)
        for (int nodes = 1; nodes <= 2; nodes++) {
            struct dl_collective_request r = plain;
            struct dl_collective_time time;
            struct dl_err err = {0};
            char name[64];
            snprintf(name, sizeof name, "all_reduce.%s", algorithms[i]);
            r.algorithm = algorithms[i], r.nodes = nodes;
            if (dl_collective_time(&f.system, &r, &time, &err) != DL_OK)
                fail_msg("%s", err.message);
            assert_string_equal(time.algorithm, algorithms[i]);
            assert_string_equal(time.formula, dl_collective_algorithm_find(name)->formula);
            assert_string_equal(time.limit, nodes > 1 ? "inter" : "intra");
            assert_string_equal(time.origin, "model");
        }
    static const enum dl_collective_op ops[] = {DL_COLL_P2P, DL_COLL_HALO, DL_COLL_ALL_GATHER};
    static const char *const formulas[] = {"F-COLL-P2P", "F-COLL-HALO", "F-MPI-OTHER"},
                             *const told[] = {"direct", "neighbours", "ring"};
    for (int i = 0; i < 3; i++) {
        struct dl_collective_request r = plain;
        struct dl_collective_time time;
        r.op = ops[i], r.algorithm = i == 2 ? "ring" : NULL;
        assert_int_equal(dl_collective_time(&f.system, &r, &time, NULL), DL_OK);
        assert_string_equal(time.formula, formulas[i]);
        assert_string_equal(time.algorithm, told[i]);
    }
    dl_arena_free(&f.arena);
}

/* Alone, a rank has nothing to say. */
static void one_rank(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_collective_request r = plain;
    struct dl_collective_time time;
    fake_make(&f);
    memset(&time, 0x11, sizeof time);
    time.extrapolated = true;
    r.nodes = r.ranks_per_node = 1;
    assert_int_equal(dl_collective_time(&f.system, &r, &time, NULL), DL_OK);
    const double zeros[] = {time.time_s,    time.latency_s, time.bandwidth_s,
                            time.sigma_log, time.steps,     time.channels};
    for (int i = 0; i < 6; i++) check_close(zeros[i], 0, 0);
    assert_string_equal(time.algorithm, "none");
    assert_string_equal(time.formula, "F-COLL-NONE");
    assert_string_equal(time.origin, "model");
    assert_null(time.protocol);
    assert_null(time.limit);
    assert_false(time.extrapolated);
    dl_arena_free(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_of_every_algorithm),
                                       cmocka_unit_test(names),
                                       cmocka_unit_test(requests),
                                       cmocka_unit_test(requests_to_nccl),
                                       cmocka_unit_test(mpi_tells_what_it_runs),
                                       cmocka_unit_test(one_rank)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

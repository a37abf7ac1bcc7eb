/* Recorded results (recorded.h: a regression net, no oracle) along sizes and counts: where MPI's
 * rules change from one algorithm to the next, found to the byte; every operation of every library
 * on every system from less than a byte to gigabytes; kernels of every device and precision.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/network/collective.h"
#include "model/network/libraries/mpi_rules.h"
#include "tests/catalog.h"
#include "tests/recorded.h"

enum { TEXT_BYTES = 4096 };
static const double largest_bytes = 8589934592.0; /* 8 GiB */

/* What a choice depends on besides the size. */
struct choosing {
    enum dl_mpi_kind kind;
    enum dl_collective_op op;
    double ranks;
};

/* One number for the whole choice: algorithm and segment. */
static double chosen(const struct choosing *c, double bytes) {
    if (c->op == DL_COLL_ALL_REDUCE) {
        double below_bytes = 0;
        return (double)dl_mpi_all_reduce_choice(c->kind, c->ranks, bytes, &below_bytes);
    }
    const struct dl_mpi_choice choice = dl_mpi_other_choice(c->kind, c->op, c->ranks, bytes);
    return (double)choice.algorithm + choice.segment_bytes * 64;
}

/* The first size in (low, high] whose choice is no longer that of `low`, to 1/4 byte. */
static double change_between(const struct choosing *c, double low, double high) {
    const double was = chosen(c, low);
    while (high - low > 0.25) {
        const double middle = floor(2 * (low + high)) / 4;
        if (chosen(c, middle) == was)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* "0 -> 5, 2048 -> 8, ...": the sizes from which on each choice is made. */
static const char *changes(const struct choosing *c, char *text) {
    size_t length = (size_t)snprintf(text, TEXT_BYTES, "0 -> %.10g", chosen(c, 0));
    double at = 0;
    for (double next = 0.5; next <= largest_bytes; next *= 1.25) {
        while (chosen(c, next) != chosen(c, at) && length + 64 < TEXT_BYTES) {
            at = change_between(c, at, next);
            length += (size_t)snprintf(text + length, TEXT_BYTES - length, ", %.12g -> %.10g", at,
                                       chosen(c, at));
        }
        at = next;
    }
    return text;
}

/* Where a rule for smaller sizes than 1 MB and 2 GB may end. */
static double smaller_rules(const struct choosing *c) {
    double at_1_mb = 0, at_2_gb = 0;
    if (c->op != DL_COLL_ALL_REDUCE)
        return dl_mpi_other_choice(c->kind, c->op, c->ranks, 1e6).below_bytes +
               dl_mpi_other_choice(c->kind, c->op, c->ranks, 2e9).below_bytes;
    dl_mpi_all_reduce_choice(c->kind, c->ranks, 1e6, &at_1_mb);
    dl_mpi_all_reduce_choice(c->kind, c->ranks, 2e9, &at_2_gb);
    return at_1_mb + at_2_gb;
}

static void rules(void **state) {
    (void)state;
    static const double ranks[] = {2,   3,   4,    5,    7,    8,    9,    10,   11,
                                   12,  13,  15,   16,   17,   31,   32,   33,   60,
                                   61,  63,  64,   65,   127,  128,  129,  255,  256,
                                   511, 512, 1000, 1023, 1024, 2047, 2048, 4095, 4096};
    enum { RANKS = sizeof ranks / sizeof ranks[0] };
    static char texts[RANKS][TEXT_BYTES], names[RANKS][32];
    recorded_open("rules");
    for (int kind = 0; kind <= DL_MPI_INTEL; kind++) {
        for (int op = DL_COLL_BROADCAST; op <= DL_COLL_SCATTER; op++) {
            char title[64];
            snprintf(title, sizeof title, "MPI %d, %s", kind, dl_collective_op_names[op]);
            recorded_case(title);
            for (int i = 0; i < RANKS; i++) {
                const struct choosing c = {(enum dl_mpi_kind)kind, (enum dl_collective_op)op,
                                           ranks[i]};
                snprintf(names[i], sizeof names[i], "%g ranks", ranks[i]);
                recorded_text(names[i], changes(&c, texts[i]));
                recorded_number(names[i], smaller_rules(&c));
            }
            recorded_end_case();
        }
    }
    recorded_close();
}

/* Times of a request at all sizes. */
static void record_sizes(const struct dl_system *system, struct dl_collective_request *r,
                         const char *name) {
    static const double sizes[] = {0.5, 1, 8, 1000, 65536, 1048577, 3e7, 1e9};
    struct recorded_sum sum = {0};
    uint32_t words = 0;
    const char *shown = "";
    static struct dl_err err; /* the text is shown when it differs */
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct dl_collective_time t;
        r->bytes = sizes[i];
        err = (struct dl_err){0};
        if (dl_collective_time(system, r, &t, &err) != DL_OK) {
            words = recorded_hash(words, err.message), shown = err.message;
            break;
        }
        const double values[] = {t.latency_s, t.bandwidth_s, t.sigma_log, t.steps, t.channels};
        for (int k = 0; k < 5; k++) recorded_add(&sum, values[k]);
        const char *const texts[] = {t.algorithm, t.protocol, t.formula, t.limit, t.origin};
        for (int k = 0; k < 5; k++) words = recorded_hash(words, texts[k]);
        recorded_add(&sum, 1 + t.extrapolated);
        shown = t.algorithm;
    }
    recorded_sum_of(name, &sum);
    recorded_text_hash(name, words, shown);
}

static void record_library(const struct dl_system *system, enum dl_library library) {
    static char names[DL_COLL_OPS * 4][48];
    const int64_t all_of_node = system->devices_per_node;
    char title[200];
    int count = 0;
    snprintf(title, sizeof title, "%s on %s, from 0.5 byte to 1 GB", dl_library_names[library],
             system->name);
    recorded_case(title);
    for (int op = 0; op < DL_COLL_OPS; op++) {
        const struct dl_collective_request shapes[] = {
            {.nodes = 1, .ranks_per_node = all_of_node},
            {.nodes = 3, .ranks_per_node = 1, .device_buffers = true},
            {.nodes = 4, .ranks_per_node = all_of_node, .as_run = true},
            {.nodes = 16, .ranks_per_node = all_of_node, .device_direct = true}};
        for (int s = 0; s < 4; s++) {
            struct dl_collective_request r = shapes[s];
            r.op = (enum dl_collective_op)op, r.library = library, r.flows_per_adapter = 1;
            snprintf(names[count], sizeof names[0], "%s on %lld x %lld", dl_collective_op_names[op],
                     (long long)r.nodes, (long long)r.ranks_per_node);
            record_sizes(system, &r, names[count++]);
        }
    }
    recorded_end_case();
}

static void libraries(void **state) {
    (void)state;
    recorded_open("libraries");
    for (int i = 0; i < all.system_count; i++)
        for (int library = i % 2; library < DL_LIBRARIES; library += 1 + (library != DL_LIB_NCCL))
            record_library(all.systems[i], (enum dl_library)library);
    recorded_close();
}

static const struct dl_system *system_of(const char *name) {
    for (int i = 0; i < all.system_count; i++)
        if (strcmp(all.systems[i]->name, name) == 0) return all.systems[i];
    fail_msg("no system %s", name);
    return NULL;
}

/* Every algorithm that any library names, in words between spaces. */
static const char algorithm_words[] =
    "ring tree nvls nvls_tree pat collnet_direct binomial halving_doubling "
    "recursive_doubling pairwise bcube star split_binary short long sharded "
    "segmented_ring scatter_ring scatter_all_gather reduce_scatter_gather "
    "recursive_halving rabenseifner push_pull pipeline nonoverlapping "
    "neighbor_exchange linear linear_sync knomial host hierarchical endpoints direct "
    "chain butterfly bruck binary";

static void record_algorithm(int op, int library, const char *name) {
    static const char *const systems[] = {"iris-v100", "dgx-h100", "stampede2-skx",
                                          "azure-nc24r-k80"};
    struct recorded_sum sum = {0};
    uint32_t words = 0;
    for (int i = 0; i < 4 * 3; i++) {
        const int shape = i % 3;
        const struct dl_system *system = system_of(systems[i / 3]);
        const struct dl_collective_request r = {.op = (enum dl_collective_op)op,
                                                .library = (enum dl_library)library,
                                                .bytes = shape == 2 ? 3000 : 1e7,
                                                .nodes = shape == 0 ? 1 : 2 * shape + 1,
                                                .ranks_per_node =
                                                    shape == 1 ? 1 : system->devices_per_node,
                                                .flows_per_adapter = 1,
                                                .algorithm = name};
        struct dl_err err = {0};
        struct dl_collective_time t;
        if (dl_collective_time(system, &r, &t, &err) != DL_OK) {
            words = recorded_hash(words, err.message);
            continue;
        }
        recorded_add(&sum, t.latency_s), recorded_add(&sum, t.bandwidth_s);
        recorded_add(&sum, t.sigma_log), recorded_add(&sum, t.steps);
        const char *const texts[] = {t.algorithm, t.protocol, t.formula, t.limit, t.origin};
        for (int k = 0; k < 5; k++) words = recorded_hash(words, texts[k]);
    }
    recorded_sum_of(name, &sum);
    recorded_text_hash(name, words, "(words, or why it is refused)");
}

static void algorithms(void **state) {
    (void)state;
    static char copy[sizeof algorithm_words];
    recorded_open("algorithms");
    for (int i = 0; i < DL_LIBRARIES * DL_COLL_OPS; i++) {
        const int library = i / DL_COLL_OPS, op = i % DL_COLL_OPS;
        char title[100];
        snprintf(title, sizeof title, "%s of %s", dl_collective_op_names[op],
                 dl_library_names[library]);
        recorded_case(title);
        memcpy(copy, algorithm_words, sizeof copy);
        for (char *name = strtok(copy, " "); name != NULL; name = strtok(NULL, " "))
            record_algorithm(op, library, name);
        recorded_end_case();
    }
    recorded_close();
}

static void record_kernel(const struct dl_device *device, enum dl_precision precision,
                          const struct dl_kernel *kernel, struct recorded_sum *sum,
                          uint32_t *words) {
    struct dl_kernel_time t;
    dl_kernel_time(device, precision, kernel, &t);
    recorded_add(sum, t.time_s), recorded_add(sum, t.sigma_log);
    recorded_add(sum, 1 + 2 * t.limit + t.extrapolated);
    recorded_add(sum, dl_kernel_call_s(device, precision, kernel));
    *words = recorded_hash(recorded_hash(*words, t.formula), t.origin);
    *words = recorded_hash(*words, t.origin_device);
}

/* Sizes from a few elements, which no measurement reaches, to more than a device holds. */
static void record_precision(const struct dl_device *device, enum dl_precision precision) {
    static char names[DL_PRECISIONS][2][32];
    struct recorded_sum sums[3] = {{0}};
    uint32_t words = 0;
    for (int pass = DL_FORWARD; pass <= DL_BACKWARD_DATA; pass++) {
        for (double size = 4; size <= 32768; size *= 8) {
            const struct dl_attention_shape shape = {2, 8, 2, size, size, 64, 64, 0, true};
            const double image[DL_DIMS] = {56, 56, 1}, window[DL_DIMS] = {3, 3, 1},
                         one[DL_DIMS] = {1, 1, 1};
            const struct dl_kernel kernels[] = {
                dl_kernel_gemm((enum dl_pass)pass, size, 2 * size + 1, 64, 1),
                dl_kernel_conv((enum dl_pass)pass, 4, size / 4, 64, 1, image, window, one, one,
                               one),
                dl_kernel_attention((enum dl_pass)pass, &shape),
                dl_kernel_stream((enum dl_pass)pass, size * size, size * size, size * size)};
            for (int k = 0; k < 4; k++)
                record_kernel(device, precision, &kernels[k], &sums[k == 3 ? 2 : k / 2], &words);
        }
    }
    snprintf(names[precision][0], sizeof names[0][0], "%s", dl_precision_names[precision]);
    for (int i = 0; i < 3; i++) recorded_sum_of(names[precision][0], &sums[i]);
    recorded_text_hash(names[precision][0], words, "(formulas, origins)");
}

static void devices(void **state) {
    (void)state;
    recorded_open("devices");
    for (int i = 0; i < all.system_count; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++) seen = seen || all.systems[k]->device == all.systems[i]->device;
        if (seen) continue;
        recorded_case(all.systems[i]->device->name);
        for (int precision = 0; precision < DL_PRECISIONS; precision++)
            record_precision(all.systems[i]->device, (enum dl_precision)precision);
        recorded_end_case();
    }
    recorded_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rules), cmocka_unit_test(libraries),
                                       cmocka_unit_test(algorithms), cmocka_unit_test(devices)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}

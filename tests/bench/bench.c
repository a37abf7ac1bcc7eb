/* bench.c - time of the model's own functions: one kernel, one collective, one prediction. Prints; judges nothing. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "model/collective.h"
#include "model/data.h"
#include "model/plan_tables.h"
#include "model/strategy.h"
#include "model/predict.h"

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* other programs may use the machine too */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double sink; /* keeps the compiler from leaving the work out */

static void kernels(const struct dl_system *system) {
    enum { CALLS = 200000 };
    const double in[DL_DIMS] = {1, 28, 28}, k[DL_DIMS] = {1, 3, 3}, one[DL_DIMS] = {1, 1, 1}, pad[DL_DIMS] = {0, 1, 1};
    const struct dl_kernel conv = dl_kernel_conv(DL_FORWARD, 32, 128, 128, 1, in, k, one, pad, one);
    const struct dl_kernel gemm = dl_kernel_gemm(DL_FORWARD, 1024, 512, 1024, 1);
    const struct { const char *name; const struct dl_kernel *kernel; } cases[] = {{"convolution", &conv}, {"matrix product", &gemm}};
    for (int c = 0; c < 2; c++) {
        struct dl_kernel kernel = *cases[c].kernel;
        const double start_s = now_s();
        for (int i = 0; i < CALLS; i++) {
            struct dl_kernel_time t;
            kernel.batch = kernel.n = 1 + i % 512;
            dl_kernel_time(system->device, DL_FP32, &kernel, &t);
            sink += t.time_s;
        }
        printf("one %-16s %8.0f ns\n", cases[c].name, 1e9 * (now_s() - start_s) / CALLS);
    }
}

static void collectives(const struct dl_system *system) {
    enum { CALLS = 500000 };
    const struct { const char *name; enum dl_library library; } cases[] = {{"NCCL all-reduce", DL_LIB_NCCL}, {"MPI all-reduce", DL_LIB_MPI}};
    for (int c = 0; c < 2; c++) {
        const double start_s = now_s();
        for (int i = 0; i < CALLS; i++) {
            const struct dl_collective_request request = {.op = DL_COLL_ALL_REDUCE, .library = cases[c].library,
                                                          .bytes = 1000.0 + i, .nodes = 250000, .ranks_per_node = 4, .flows_per_adapter = 1};
            struct dl_collective_time t;
            if (dl_collective_time(system, &request, &t, NULL) == DL_OK) sink += t.time_s;
        }
        printf("one %-16s %8.0f ns   at 1,000,000 ranks\n", cases[c].name, 1e9 * (now_s() - start_s) / CALLS);
    }
}

static void predictions(const struct dl_data *data, const struct dl_system *system) {
    enum { CALLS = 200 };
    static const char *const names[] = {"pytorch-ddp", "horovod-tensorflow", "tensorflow-ps", "ideal"};
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    const struct dl_workload *workload;
    if (dl_data_workload(data, "resnet50", &arena, &workload, &err) != DL_OK) return;
    for (size_t f = 0; f < sizeof names / sizeof names[0]; f++) {
        const struct dl_framework *framework;
        if (dl_data_framework(data, names[f], &arena, &framework, &err) != DL_OK) continue;
        const double start_s = now_s();
        for (int i = 0; i < CALLS; i++) {
            struct dl_arena scratch = {0};
            struct dl_prediction p;
            const struct dl_plan plan = {.nodes = 1 + i % 64, .batch_per_device_samples = 32, .synthetic_input = true};
            if (dl_predict(system, workload, framework, &plan, NULL, &scratch, &p, &err) == DL_OK) sink += p.iteration_s;
            dl_arena_free(&scratch);
        }
        printf("ResNet-50, %-18s %6.0f us a prediction\n", names[f], 1e6 * (now_s() - start_s) / CALLS);
    }
    dl_arena_free(&arena);
}

/* ResNet-50 hybrids on 256 devices and fewer: every plan once, with the time to fill the tables. */
static void tables(const struct dl_data *data, const struct dl_system *system) {
    enum { BATCHES = 64, MOST = 4 * 3 * BATCHES * 7 };
    static const char *const names[] = {"data", "data+filter", "data+channel", "data+spatial"};
    static struct dl_plan plans[MOST];
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    struct dl_plan_tables *t;
    const struct dl_plan base = {.optimizer = DL_MOMENTUM, .synthetic_input = true};
    int count = 0;
    if (dl_data_workload(data, "resnet50", &arena, &workload, &err) != DL_OK) return;
    if (dl_data_framework(data, "chainermn", &arena, &framework, &err) != DL_OK) return;
    if (dl_plan_tables_build(system, workload, framework, &base, &arena, &t, &err) != DL_OK) return;
    const double start_s = now_s();
    for (int s = 0; s < 4; s++) {
        for (int64_t parts = 2; parts <= 4; parts *= 2) {
            for (int b = 1; b <= BATCHES; b++) {
                for (int64_t nodes = 1; nodes <= 64; nodes *= 2) {
                    struct dl_plan plan = base;
                    plan.strategy = dl_strategy_find(names[s]);
                    plan.nodes = nodes;
                    plan.batch_per_device_samples = 8 * b;
                    if (s == 1 || s == 2) plan.tp = parts;
                    if (s == 3) plan.sp = parts;
                    if (dl_plan_tables_add(t, &plan, &err) == DL_OK && count < MOST) plans[count++] = plan;
                }
            }
        }
    }
    const double built_s = now_s();
    struct dl_plan_value value;
    int rounds = 0, splits, groups;
    for (; now_s() - built_s < 0.5; rounds++) {
        for (int i = 0; i < count; i++) {
            if (dl_plan_tables_evaluate(t, &plans[i], &value)) sink += value.iteration_s;
        }
    }
    const double each_s = (now_s() - built_s) / rounds / count;
    dl_plan_tables_count(t, &splits, &groups);
    printf("ResNet-50, tables: %d plans of %d splits and %d groups, %.0f ms to fill, %8.0f evaluations/s\n", count, splits, groups,
           1e3 * (built_s - start_s), 1 / each_s);
    dl_arena_free(&arena);
}

int main(void) {
    static const char *const directories[] = {"data"};
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    const struct dl_system *system;
    if (dl_data_system(&data, "iris-v100", &arena, &system, &err) != DL_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    kernels(system);
    collectives(system);
    predictions(&data, system);
    tables(&data, system);
    dl_arena_free(&arena);
    return sink > 0 ? 0 : 1;
}

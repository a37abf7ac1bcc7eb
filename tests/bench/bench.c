/* bench.c - time of the model's own functions: one kernel, one collective, one prediction. Prints;
 * judges nothing. */
#include <stdio.h>
#include <time.h>

#include "model/network/collective.h"
#include "model/catalog/data.h"
#include "model/network/libraries/nccl.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/predict.h"
#include "model/search/search.h"
#include "predict/output/search_threads.h"

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* other programs may use the machine too */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double sink; /* keeps the compiler from leaving the work out */

enum { SHAPES = 144 };

/* Convolutions of the kind that networks have: every size, channels, filter side and stride in each
 * pass. */
static int convolutions(struct dl_kernel *out) {
    static const double sizes[] = {7, 14, 28, 56}, channels[] = {64, 128, 192, 512},
                        sides[] = {1, 3, 5};
    const double one[DL_DIMS] = {1, 1, 1};
    int count = 0;
    for (int i = 0; i < SHAPES; i++) {
        const double size = sizes[i % 4], side = sides[i / 16 % 3], stride = i % 5 == 4 ? 2 : 1;
        const double in[DL_DIMS] = {1, size, size}, k[DL_DIMS] = {1, side, side},
                     step[DL_DIMS] = {1, stride, stride};
        const double pad[DL_DIMS] = {0, (side - 1) / 2, (side - 1) / 2};
        out[count++] = dl_kernel_conv((enum dl_pass)(i / 48),
                                      &(struct dl_conv_shape){32, channels[i / 4 % 4],
                                                              channels[(i + i / 4) % 4], 1, in, k,
                                                              step, pad, one});
    }
    return count;
}

static int products(struct dl_kernel *out) {
    static const double sides[] = {64, 100, 256, 1000, 1024, 4096};
    int count = 0;
    for (int i = 0; i < SHAPES; i++) {
        out[count] = dl_kernel_gemm((enum dl_pass)(i / 48), sides[i % 6], sides[i / 6 % 6],
                                    sides[(i + i / 36) % 6], 1);
        out[count++].a_trans = i % 2 == 0;
    }
    return count;
}

/* Every call another shape, and each shape at 512 batches in turn: nothing could be remembered. The
 * least of many short runs. */
static void kernels(const struct dl_system *system) {
    enum { CALLS = 1024, RUNS = 400 };
    static const struct {
        const char *name;
        int (*make)(struct dl_kernel *out);
    } cases[] = {{"convolution", convolutions}, {"matrix product", products}};
    for (int c = 0; c < 2; c++) {
        struct dl_kernel shapes[SHAPES];
        const int count = cases[c].make(shapes);
        double least_s = 1e9, sum_s = 0;
        for (int run = 0, shape = 0; run < RUNS; run++) {
            const double start_s = now_s();
            for (int i = 0; i < CALLS; i++, shape = shape + 1 < count ? shape + 1 : 0) {
                struct dl_kernel_time t;
                struct dl_kernel *kernel = &shapes[shape];
                if (c == 0)
                    kernel->batch = 1 + (run + i) % 512;
                else
                    kernel->n = 1 + (run + i) % 512;
                dl_kernel_time(system->device, i % 2 == 0 ? DL_FP32 : DL_MIXED, kernel, &t);
                sink += t.time_s;
            }
            const double run_s = now_s() - start_s;
            sum_s += run_s;
            if (run_s < least_s) least_s = run_s;
        }
        printf("one %-16s %8.0f ns   (mean %.0f) over %d shapes, two precisions\n", cases[c].name,
               1e9 * least_s / CALLS, 1e9 * sum_s / CALLS / RUNS, count);
    }
}

/* All sizes differ. With a memo as gradient_sync.c asks, all messages of a framework on the same
 * ranks; without: everything anew each time. */
static void collectives(const struct dl_system *system) {
    enum { CALLS = 1024, RUNS = 400 };
    static const struct {
        const char *name;
        enum dl_library library;
        bool memo;
    } cases[] = {{"NCCL all-reduce", DL_LIB_NCCL, true},
                 {"NCCL, new ranks", DL_LIB_NCCL, false},
                 {"MPI all-reduce", DL_LIB_MPI, false}};
    for (int c = 0; c < 3; c++) {
        struct dl_nccl_memo memo = {.system = NULL};
        double least_s = 1e9, sum_s = 0;
        for (int run = 0; run < RUNS; run++) {
            const double start_s = now_s();
            for (int i = 0; i < CALLS; i++) {
                const struct dl_collective_request request = {.op = DL_COLL_ALL_REDUCE,
                                                              .library = cases[c].library,
                                                              .bytes = 1000.0 + i * 500.0 + run,
                                                              .nodes = 250000,
                                                              .ranks_per_node = 4,
                                                              .flows_per_adapter = 1,
                                                              .memo = cases[c].memo ? &memo : NULL};
                struct dl_collective_time t;
                if (dl_collective_time(system, &request, &t, NULL) == DL_OK) sink += t.time_s;
            }
            const double run_s = now_s() - start_s;
            sum_s += run_s;
            if (run_s < least_s) least_s = run_s;
        }
        printf("one %-16s %8.0f ns   (mean %.0f) at 1,000,000 ranks\n", cases[c].name,
               1e9 * least_s / CALLS, 1e9 * sum_s / CALLS / RUNS);
    }
}

static void predictions(const struct dl_data *data, const struct dl_system *system) {
    enum { CALLS = 200 };
    static const char *const names[] = {"pytorch-ddp", "horovod-tensorflow", "tensorflow-ps",
                                        "ideal"};
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
            const struct dl_plan plan = {
                .nodes = 1 + i % 64, .batch_per_device_samples = 32, .input.synthetic = true};
            if (dl_predict(&(struct dl_predict_request){system, workload, framework, &plan, NULL,
                                                        &scratch},
                           &p, &err) == DL_OK)
                sink += p.iteration_s;
            dl_arena_free(&scratch);
        }
        printf("ResNet-50, %-18s %6.0f us a prediction\n", names[f],
               1e6 * (now_s() - start_s) / CALLS);
    }
    dl_arena_free(&arena);
}

static double cpu_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A 1-trillion-parameter GPT on 4,096 A100. */
static enum dl_code large_search(const struct dl_data *data, struct dl_arena *arena,
                                 struct dl_search_request *out, struct dl_err *err) {
    *out = (struct dl_search_request){.any_schedule = true,
                                      .any_shard = true,
                                      .any_mapping = true,
                                      .any_sequence_parallel = true,
                                      .keep = 10,
                                      .node_count = 1,
                                      .nodes = {512}};
    out->fixed = (struct dl_plan){.devices_per_node = 8,
                                  .global_batch_samples = 3072,
                                  .precision = DL_MIXED,
                                  .optimizer = DL_ADAM,
                                  .input.synthetic = true,
                                  .recompute_open = true};
    DL_TRY(dl_data_system(data, "dgx-a100-80", arena, &out->system, err));
    DL_TRY(dl_data_workload(data, "gpt:layers=128,hidden=25600,heads=160,seq=2048,vocab=51200",
                            arena, &out->workload, err));
    return dl_data_framework(data, "megatron", arena, &out->framework, err);
}

/* Every plan, evaluated without bounds. */
static enum dl_code search_everything(const struct dl_search_request *request,
                                      struct dl_arena *arena, struct dl_err *err) {
    static struct dl_search_worker found;
    struct dl_search *search;
    DL_TRY(dl_search_prepare(request, arena, &search, err));
    const double cells_s = cpu_s();
    for (int64_t i = 0; i < dl_search_cost_count(search); i++)
        DL_TRY(dl_search_make_cost(search, i, err));
    const double start_s = cpu_s();
    for (int64_t i = 0; i < dl_search_tasks(search); i++)
        DL_TRY(dl_search_run_task(search, i, &found, err));
    const double end_s = cpu_s();
    printf("GPT of 1e12 parameters on 4,096 devices, every plan: %lld in %.3f s of CPU, %.2f "
           "million a second (%lld cells before: %.3f s)\n",
           (long long)found.evaluated_count, end_s - start_s,
           1e-6 * (double)found.evaluated_count / (end_s - start_s),
           (long long)dl_search_cost_count(search), start_s - cells_s);
    return DL_OK;
}

/* The search with bounds: its best times of five. */
static enum dl_code search_with_bounds(const struct dl_search_request *request, int threads,
                                       double *best_s, struct dl_err *err) {
    static struct dl_search_worker found;
    struct dl_arena scratch = {0};
    double cpu_best_s = 1e9;
    *best_s = 1e9;
    for (int repeat = 0; repeat < 5; repeat++) {
        struct dl_search *search;
        double elapsed_s;
        DL_TRY(dl_search_prepare(request, &scratch, &search, err));
        const struct dl_search_run run = {.search = search, .threads = threads};
        const double from_s = cpu_s();
        DL_TRY(dl_search_run(&run, &found, &elapsed_s, err));
        if (elapsed_s < *best_s) *best_s = elapsed_s;
        if (cpu_s() - from_s < cpu_best_s) cpu_best_s = cpu_s() - from_s;
    }
    printf("full search, %d thread%s: %.3f s (%.3f s of CPU), best %.4g s an iteration\n", threads,
           threads == 1 ? "" : "s", *best_s, cpu_best_s, found.best[0].iteration_s);
    sink += found.best[0].iteration_s;
    dl_arena_free(&scratch);
    return DL_OK;
}

static void searches(const struct dl_data *data) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_search_request request;
    double one_s, two_s;
    if (large_search(data, &arena, &request, &err) != DL_OK) return;
    request.every = true;
    if (search_everything(&request, &arena, &err) != DL_OK) return;
    request.every = false;
    if (search_with_bounds(&request, 1, &one_s, &err) != DL_OK ||
        search_with_bounds(&request, 2, &two_s, &err) != DL_OK)
        return;
    printf("two threads are %.2f times as fast as one\n", one_s / two_s);
    dl_arena_free(&arena);
}

/* One search from the first step to the last, in one thread: the quickest of 20. */
static enum dl_code search_network(const struct dl_search_request *request, const char *what,
                                   struct dl_err *err) {
    static struct dl_search_worker found;
    double least_s = 1e9;
    for (int repeat = 0; repeat < 20; repeat++) {
        struct dl_arena arena = {0};
        struct dl_search *search;
        const double start_s = now_s();
        dl_search_worker_clear(&found);
        DL_TRY(dl_search_prepare(request, &arena, &search, err));
        for (int64_t i = 0; i < dl_search_cost_count(search); i++)
            DL_TRY(dl_search_make_cost(search, i, err));
        for (int64_t i = 0; i < dl_search_tasks(search); i++)
            DL_TRY(dl_search_run_task(search, i, &found, err));
        const double search_s = now_s() - start_s;
        least_s = search_s < least_s ? search_s : least_s;
        dl_arena_free(&arena);
    }
    const int64_t evaluated = found.evaluated_count, bounded = found.rejected_count[DL_NOT_FASTER];
    printf("ResNet-50, search of %s: %lld plans evaluated, %lld shown to be slower by a bound, "
           "%.2f ms, %.0f plans decided a second\n",
           what, (long long)evaluated, (long long)bounded, 1e3 * least_s,
           (double)(evaluated + bounded) / least_s);
    sink += found.best[0].iteration_s;
    return DL_OK;
}

/* ResNet-50 on 4 to 1,024 devices: all plans, and the best 10 of them. */
static void networks(const struct dl_data *data, const struct dl_system *system) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_search_request request = {
        .system = system, .any_schedule = true, .any_shard = true, .keep = 10, .node_count = 9};
    request.fixed = (struct dl_plan){.devices_per_node = 4,
                                     .global_batch_samples = 4096,
                                     .optimizer = DL_MOMENTUM,
                                     .input.synthetic = true,
                                     .recompute_open = true};
    for (int i = 0; i < request.node_count; i++) request.nodes[i] = (int64_t)1 << i;
    if (dl_data_workload(data, "resnet50", &arena, &request.workload, &err) != DL_OK ||
        dl_data_framework(data, "chainermn", &arena, &request.framework, &err) != DL_OK)
        return;
    static const struct {
        const char *name, *strategy;
        bool every;
    } cases[] = {{"all strategies, every plan", NULL, true},
                 {"pipelines, every plan", "data+pipeline", true},
                 {"all strategies, best 10", NULL, false},
                 {"pipelines, best 10", "data+pipeline", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        request.every = cases[i].every;
        request.fixed.strategy =
            cases[i].strategy != NULL ? dl_strategy_find(cases[i].strategy) : NULL;
        if (search_network(&request, cases[i].name, &err) != DL_OK) break;
    }
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
    networks(&data, system);
    searches(&data);
    dl_arena_free(&arena);
    return sink > 0 ? 0 : 1;
}

/* One plan has one value, however it is written: 10,000 random plans of everything in data/, each
 * spelled in two ways; the search's value of a plan against dl_predict's; the C library against
 * both. */
#include "include/dlmodel.h"
#include "model/engine/strategies/strategy.h"
#include "model/search/search.h"
#include "tests/catalog.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PLANS = 500, SEARCHES = 10, LIBRARY = 10 };
#else
enum { PLANS = 10000, SEARCHES = 200, LIBRARY = 100 };
#endif

static uint64_t seed;
static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool once_in(int count) { return upto(count) == 0; }

struct scene {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    struct dl_plan plan; /* data parallelism, or split by an axis of one strategy */
};

static enum dl_code predict(const struct scene *s, const struct dl_plan *plan,
                            struct dl_arena *arena, struct dl_prediction *out) {
    return dl_predict(
        &(struct dl_predict_request){s->system, s->workload, s->framework, plan, NULL, arena}, out,
        NULL);
}

static bool near(double a, double b) {
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-18;
}

static void same(const struct scene *s, const char *how, const struct dl_prediction *a,
                 const struct dl_prediction *b) {
    const struct {
        const char *name;
        double a, b;
    } values[] = {
        {"iteration", a->iteration_s, b->iteration_s},
        {"compute", a->compute_s, b->compute_s},
        {"exposed communication", a->exposed_comm_s, b->exposed_comm_s},
        {"overhead", a->overhead_s, b->overhead_s},
        {"throughput", a->throughput_samples_per_s, b->throughput_samples_per_s},
        {"epoch", a->epoch_s, b->epoch_s},
        {"efficiency", a->scaling_efficiency, b->scaling_efficiency},
        {"low", a->iteration_low_s, b->iteration_low_s},
        {"memory", a->memory.total_bytes, b->memory.total_bytes},
        {"activations", a->memory.activations_bytes, b->memory.activations_bytes},
        {"bottleneck", a->bottleneck, b->bottleneck},
        {"warnings", a->warning_count, b->warning_count},
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (near(values[i].a, values[i].b)) continue;
        fail_msg("%s on %s, %s, %lld nodes, %s: %s is %.17g and %.17g", s->workload->name,
                 s->system->name, s->framework->name, (long long)s->plan.nodes, how, values[i].name,
                 values[i].a, values[i].b);
    }
}

static void random_scene(struct scene *s) {
    static const double batches[] = {1, 2, 3, 4, 8, 16, 24, 32, 64, 128};
    s->system = all.systems[upto(all.system_count)];
    s->workload = all.workloads[upto(all.workload_count)];
    s->framework = all.frameworks[upto(all.framework_count)];
    s->plan = (struct dl_plan){.strategy = dl_strategy_find("data"),
                               .nodes = 1 + (once_in(3) ? 0 : upto(16)),
                               .devices_per_node = once_in(4) ? 1 : 0,
                               .batch_per_device_samples = batches[upto(10)],
                               .precision = once_in(2) ? DL_FP32 : DL_MIXED,
                               .optimizer = (enum dl_optimizer)upto(DL_OPTIMIZERS),
                               .recompute = once_in(4) ? DL_RECOMPUTE_SELECTIVE : DL_RECOMPUTE_NONE,
                               .input.synthetic = once_in(2)};
    if (once_in(8))
        s->plan.input.dataset_samples = 1000 * (1 + upto(1000)), s->plan.input.sample_bytes = 1e5;
    if (once_in(8)) s->plan.measured.compute_scale = 0.5 + check_uniform(&seed);
}

/* The same plan in other words: of one device a rank, nothing split. */
static const char *respell_data(struct dl_plan *p, double samples) {
    static const char *const names[] = {"data+tensor",  "3d",           "data+pipeline",
                                        "data+filter",  "data+channel", "data+spatial",
                                        "data+pipeline"};
    const int which = upto(9);
    p->tp = p->pp = p->sp = p->ep = 1;
    if (which < 7) p->strategy = dl_strategy_find(names[which]);
    if (which == 6) p->schedule = DL_GPIPE;
    if (which == 7) p->micro_batch_samples = samples;
    if (which == 8) p->mapping = DL_MAP_PIPELINE_INSIDE;
    if (which == 1 && once_in(2)) p->micro_batch_samples = samples;
    return which == 7   ? "--micro-batch of the batch"
           : which == 8 ? "--mapping pipeline-inside"
                        : p->strategy->name;
}

/* A plan that splits, in two words; false where there is nothing to respell. */
static bool respell_split(struct dl_plan *a, struct dl_plan *b, int64_t devices) {
    const int which = upto(5);
    const int64_t parts = devices % 4 == 0 && once_in(2) ? 4 : devices % 2 == 0 ? 2 : 1;
    a->tp = a->pp = a->sp = a->ep = 1;
    *b = *a;
    if (which == 0) { /* tensor */
        a->tp = b->tp = parts;
        a->strategy = dl_strategy_find(parts == devices ? "tensor" : "data+tensor");
        b->strategy = dl_strategy_find("3d");
    } else if (which == 1) { /* stages */
        a->pp = b->pp = parts;
        a->micro_batch_samples = b->micro_batch_samples = 1;
        a->strategy = dl_strategy_find(parts == devices ? "pipeline" : "data+pipeline");
        b->strategy = dl_strategy_find(parts == devices ? "data+pipeline" : "3d");
    } else if (which == 2) { /* sharded states */
        const int stage = 1 + upto(3);
        static const char *const names[] = {"zero1", "zero2", "zero3"};
        a->strategy = dl_strategy_find(names[stage - 1]);
        b->strategy = dl_strategy_find(once_in(2) ? "3d" : "data+tensor");
        b->shard = stage;
        if (once_in(2)) b->shard_group = devices;
    } else { /* filters, parts of images */
        if (parts != devices) return false;
        const bool image = which == 3;
        a->strategy = dl_strategy_find(image ? "spatial" : "filter");
        b->strategy = dl_strategy_find(image ? "data+spatial" : "data+filter");
        *(image ? &a->sp : &a->tp) = parts;
        *(image ? &b->sp : &b->tp) = parts;
    }
    return true;
}

static void two_ways(void **state) {
    seed = 20261122;
    int data = 0, split = 0;
    for (int i = 0; i < PLANS; i++) {
        struct dl_arena arena = {0};
        struct scene s;
        struct dl_prediction a, b;
        random_scene(&s);
        struct dl_plan one = s.plan, other = s.plan;
        const int64_t each =
            one.devices_per_node > 0 ? one.devices_per_node : s.system->devices_per_node;
        const char *how = "";
        bool splits = once_in(3);
        if (splits)
            splits = respell_split(&one, &other, one.nodes * each), how = other.strategy->name;
        if (!splits) {
            one = other = s.plan;
            how = respell_data(&other, one.batch_per_device_samples);
        }
        if (predict(&s, &one, &arena, &a) == DL_OK && predict(&s, &other, &arena, &b) == DL_OK) {
            same(&s, how, &a, &b);
            *(splits ? &split : &data) += 1;
        }
        dl_arena_free(&arena);
    }
    if (data < PLANS / 4 || split < PLANS / 100)
        fail_msg("only %d plans without and %d with splits were compared", data, split);
}

/* `data` of one device is every strategy's, and sharding among one changes nothing. */
static void one_device(void **state) {
    seed = 7;
    int compared = 0;
    for (int i = 0; i < PLANS / 20; i++) {
        struct dl_arena arena = {0};
        struct scene s;
        struct dl_prediction a, b;
        random_scene(&s);
        s.plan.nodes = s.plan.devices_per_node = 1;
        if (predict(&s, &s.plan, &arena, &a) == DL_OK) {
            for (int k = 0; dl_strategies[k] != NULL; k++) {
                struct dl_plan other = s.plan;
                other.strategy = dl_strategies[k];
                if (predict(&s, &other, &arena, &b) != DL_OK) continue;
                same(&s, other.strategy->name, &a, &b);
                compared++;
            }
        }
        dl_arena_free(&arena);
    }
    assert_true(compared > PLANS / 20);
}

/* Every plan that a search keeps has the value that dl_predict gives it. */
static void search_is_predict(void **state) {
    seed = 11;
    int compared = 0;
    for (int i = 0; i < SEARCHES; i++) {
        struct dl_arena arena = {0};
        struct scene s;
        struct dl_err err = {0};
        struct dl_search *search;
        struct dl_search_worker *w = dl_arena_alloc(&arena, 1, sizeof *w);
        random_scene(&s);
        struct dl_search_request request = {.system = s.system,
                                            .workload = s.workload,
                                            .framework = s.framework,
                                            .fixed = s.plan,
                                            .any_schedule = true,
                                            .any_shard = true,
                                            .any_mapping = true,
                                            .any_sequence_parallel = true,
                                            .node_count = 1,
                                            .nodes = {(int64_t)1 << upto(3)},
                                            .memory_bytes = 1e15,
                                            .keep = 16};
        request.fixed.strategy = NULL;
        request.fixed.nodes = 0;
        request.fixed.batch_per_device_samples = 0;
        request.fixed.devices_per_node = s.system->devices_per_node < 4 ? 1 : 4;
        request.fixed.global_batch_samples = 16;
        request.fixed.recompute_open = true;
        if (dl_search_prepare(&request, &arena, &search, &err) == DL_OK) {
            for (int64_t c = 0; c < dl_search_cost_count(search); c++)
                if (dl_search_make_cost(search, c, &err) != DL_OK) break;
            for (int64_t t = 0; err.code == DL_OK && t < dl_search_tasks(search); t++)
                if (dl_search_run_task(search, t, w, &err) != DL_OK) break;
            for (int k = 0; k < w->best_count; k++) {
                const struct dl_search_candidate *found = &w->best[k];
                const struct dl_plan plan = dl_search_plan(search, found);
                struct dl_prediction p;
                if (predict(&s, &plan, &arena, &p) != DL_OK)
                    fail_msg("search %d: a found plan is none", i);
                if (!near(p.iteration_s, found->iteration_s) ||
                    !near(p.memory.total_bytes, found->memory_bytes))
                    fail_msg(
                        "search %d, plan %d (%s): %s on %s, %s: %.17g s and %.17g s, %.17g and "
                        "%.17g bytes",
                        i, k, plan.strategy->name, s.workload->name, s.system->name,
                        s.framework->name, found->iteration_s, p.iteration_s, found->memory_bytes,
                        p.memory.total_bytes);
                compared++;
            }
        }
        dl_arena_free(&arena);
    }
    assert_true(compared > SEARCHES);
}

/* Whether a framework takes another release than its file's on the system's devices. */
static bool another_release(const struct dl_system *system) {
    for (int i = 0; i < all.framework_count; i++) {
        if (dl_framework_release_for(all.frameworks[i], NULL, system->device->architecture) != NULL)
            return true;
    }
    return false;
}

/* The C library, whose figures are those that the program prints as JSON, against dl_predict. */
static void library_is_predict(void **state) {
    seed = 13;
    char directory[4096], number[32];
    snprintf(directory, sizeof directory, "%s/data", check_root());
    struct dlmodel *m = dlmodel_open(directory);
    int compared = 0;
    assert_non_null(m);
    for (int i = 0; i < LIBRARY; i++) {
        struct dl_arena arena = {0};
        struct scene s;
        struct dl_prediction p;
        random_scene(&s);
        s.workload = all.workloads[upto(all.workload_count - 2)]; /* by their names */
        struct dl_plan plan = {.strategy = s.plan.strategy,
                               .nodes = s.plan.nodes,
                               .batch_per_device_samples = s.plan.batch_per_device_samples,
                               .precision = s.plan.precision,
                               .optimizer = s.plan.optimizer,
                               .input.synthetic = true};
        dlmodel_reset(m);
        dlmodel_option(m, "system", s.system->name);
        dlmodel_option(m, "workload", s.workload->name);
        dlmodel_option(m, "framework", s.framework->name);
        dlmodel_option(m, "strategy", "3d"); /* the same plan in other words */
        dlmodel_option(m, "tp", "1");
        dlmodel_option(m, "pp", "1");
        dlmodel_option(m, "precision", dl_precision_names[plan.precision]);
        dlmodel_option(m, "optimizer", dl_optimizer_names[plan.optimizer]);
        dlmodel_option(m, "recompute", "none");
        snprintf(number, sizeof number, "%lld", (long long)plan.nodes);
        dlmodel_option(m, "nodes", number);
        snprintf(number, sizeof number, "%g", plan.batch_per_device_samples);
        dlmodel_option(m, "batch-per-device", number);
        /* The program builds some networks otherwise: as frameworks do, and to be trained. */
        const bool as_in_file = s.framework->workload_count == 0 &&
                                strncmp(s.workload->name, "bert", 4) != 0 &&
                                !another_release(s.system);
        if (as_in_file && predict(&s, &plan, &arena, &p) == DL_OK &&
            dlmodel_predict(m) == DLMODEL_OK) {
            compared++;
            check_close(dlmodel_value(m, "iteration_s"), p.iteration_s, 1e-9);
            check_close(dlmodel_value(m, "memory.total_bytes"), p.memory.total_bytes, 1e-9);
            assert_string_equal(dlmodel_text(m, "bottleneck"), dl_bottleneck_names[p.bottleneck]);
        }
        dl_arena_free(&arena);
    }
    dlmodel_close(m);
    assert_true(compared > LIBRARY / 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_ways), cmocka_unit_test(one_device),
                                       cmocka_unit_test(search_is_predict),
                                       cmocka_unit_test(library_is_predict)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}

/* Recorded results (recorded.h: a regression net, no oracle) of what searches and simulates over
 * predictions: plans of small networks, nodes of several kinds, placements, campaigns, limits.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/search/campaign/campaign.h"
#include "model/engine/advice.h"
#include "model/search/limits.h"
#include "model/search/parts.h"
#include "model/search/search.h"
#include "model/search/stage_plan.h"
#include "tests/any_case.h"
#include "tests/recorded.h"

enum { SEARCHES = 250, KINDS = 200, CAMPAIGNS = 300, LIMITS = 40, ADVICE = 400, PLACED = 300 };

static void record_limits(const struct a_case *c, const struct dl_plan *plan,
                          struct dl_arena *arena) {
    static struct dl_limits l;
    struct dl_err err = {0};
    struct recorded_sum active = {0}, elasticity = {0}, changes = {0};
    uint32_t words = 0;
    if (dl_limits_of(&c->system, c->workload, &c->framework, plan, arena, &l, &err) != DL_OK) {
        recorded_error("limits", &err);
        return;
    }
    for (int i = 0; i < l.active_count; i++) {
        recorded_add(&active, l.active[i].cost_s), recorded_add(&active, l.active[i].cost_bytes);
        words = recorded_hash(recorded_hash(words, l.active[i].name), l.active[i].detail);
        words = recorded_hash(words, l.active[i].category);
    }
    for (int i = 0; i < l.elasticity_count; i++) {
        recorded_add(&elasticity, 3 + l.elasticity[i].value);
        words = recorded_hash(words, l.elasticity[i].resource);
    }
    for (int i = 0; i < l.change_count; i++) {
        recorded_add(&changes, l.changes[i].iteration_s);
        recorded_add(&changes, 1 + l.changes[i].fits + 2 * l.changes[i].of_plan);
        words = recorded_hash(words, l.changes[i].text);
    }
    recorded_sum_of("active limits", &active);
    recorded_sum_of("elasticity", &elasticity);
    recorded_sum_of("changes", &changes);
    recorded_text_hash("words of the limits", words,
                       l.change_count > 0 ? l.changes[0].text : "(no change)");
}

static void limits(void **state) {
    (void)state;
    recorded_open("limits");
    seed = 91;
    for (int number = 1; number <= LIMITS; number++) {
        static struct a_case one;
        struct dl_arena arena = {0};
        struct dl_prediction p;
        struct dl_plan plan;
        struct dl_err err = {0};
        enum dl_code code = DL_ERR_NO;
        for (int i = 0; i < 12 && code != DL_OK; i++) {
            random_case(&one);
            plan = one.plan;
            code = dl_plan_complete(&one.system, one.workload, &one.framework, &plan, &err);
            if (code == DL_OK)
                code = dl_predict(&one.system, one.workload, &one.framework, &plan, NULL, &arena,
                                  &p, &err);
        }
        recorded_case(name_of(&one, number));
        if (code == DL_OK) {
            const struct dl_predict_request request = {&one.system, one.workload, &one.framework,
                                                       &plan,       NULL,         &arena};
            struct dl_saving gains[DL_MAX_LIMITS];
            struct recorded_sum sum = {0};
            int count = 0;
            record_limits(&one, &plan, &arena);
            if (dl_gains_of(&request, p.iteration_s, gains, &count, &err) != DL_OK)
                recorded_error("gains", &err);
            for (int i = 0; i < count; i++) recorded_add(&sum, 1 + gains[i].saved_frac);
            recorded_sum_of("gains", &sum);
            recorded_text("first gain", count > 0 ? gains[0].resource : NULL);
        }
        recorded_end_case();
        dl_arena_free(&arena);
    }
    recorded_close();
}

static const struct dl_workload *workload_named(const char *name) {
    for (int i = 0; i < all.workload_count; i++)
        if (strcmp(all.workloads[i]->name, name) == 0) return all.workloads[i];
    fail_msg("no workload %s", name);
    return NULL;
}
static const struct dl_framework *framework_named(const char *name) {
    for (int i = 0; i < all.framework_count; i++)
        if (strcmp(all.frameworks[i]->name, name) == 0) return all.frameworks[i];
    fail_msg("no framework %s", name);
    return NULL;
}

static void record_found(const struct dl_search_worker *w) {
    struct recorded_sum best = {0}, front = {0}, counts = {0};
    for (int i = 0; i < w->best_count; i++) {
        const struct dl_found *f = &w->best[i];
        const double values[] = {f->iteration_s,
                                 f->memory_bytes,
                                 f->score,
                                 f->micro_samples,
                                 (double)(f->split.tp + 100 * f->split.pp + 10000 * f->split.dp),
                                 (double)(f->split.sp + 100 * f->split.ep + 10000 * f->shard),
                                 (double)f->choice.schedule + 10 * f->choice.recompute,
                                 (double)f->order};
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++)
            recorded_add(&best, values[k]);
    }
    for (int i = 0; i < w->front_count; i++) {
        recorded_add(&front, w->front[i].iteration_s);
        recorded_add(&front, w->front[i].memory_bytes);
    }
    recorded_add(&counts, (double)w->evaluated_count), recorded_add(&counts, w->has_nearest);
    recorded_add(&counts, (double)w->feasible_count);
    recorded_result("iteration_s of the best", w->best_count > 0 ? w->best[0].iteration_s : NAN);
    recorded_sum_of("best plans", &best);
    recorded_sum_of("front", &front);
    recorded_sum_of("evaluated, feasible", &counts);
    for (int i = 0; i < DL_REJECTIONS; i++)
        recorded_number(dl_rejection_names[i], (double)w->rejected_count[i]);
    if (w->has_nearest) {
        recorded_number("least memory that is too much", w->nearest.memory_bytes);
        recorded_number("its order", (double)w->nearest.order);
    }
}

/* The plan that is shown for the best. */
static void record_best_plan(const struct dl_search *search, const struct dl_search_worker *w) {
    if (w->best_count == 0) return;
    const struct dl_plan p = dl_search_plan(search, &w->best[0]);
    struct recorded_sum sum = {0};
    const double members[] = {(double)p.nodes,
                              (double)p.devices_per_node,
                              (double)p.dp,
                              (double)p.tp,
                              (double)p.pp,
                              (double)p.sp,
                              (double)p.ep,
                              (double)p.shard,
                              (double)p.virtual_stages,
                              p.micro_batch_samples,
                              p.batch_per_device_samples,
                              p.global_batch_samples,
                              1 + (double)p.schedule + 10 * (double)p.recompute,
                              1 + (double)p.mapping + 2 * p.sequence_parallel};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) recorded_add(&sum, members[i]);
    recorded_sum_of("plan of the best", &sum);
    recorded_text("strategy of the best", p.strategy != NULL ? p.strategy->name : NULL);
}

/* Two workers take turns, as threads do, and one gets what the other found. */
static enum dl_code run_search(const struct dl_search_request *request, struct dl_arena *arena,
                               struct dl_search **search_out, struct dl_search_worker *worker,
                               struct dl_err *err) {
    static struct dl_search_worker other;
    struct dl_search *search;
    dl_search_worker_clear(worker), dl_search_worker_clear(&other);
    DL_TRY(dl_search_prepare(request, arena, &search, err));
    for (int64_t i = 0; i < dl_search_cost_count(search); i++)
        DL_TRY(dl_search_make_cost(search, i, err));
    for (int64_t i = 0; i < dl_search_tasks(search); i++)
        DL_TRY(dl_search_run_task(search, i, i % 3 == 1 ? &other : worker, err));
    dl_search_merge(search, worker, &other);
    dl_search_rejected(search, worker);
    *search_out = search;
    return DL_OK;
}

/* Tasks may end in any order: what is kept is the same. */
static void check_order(const struct dl_search *search, const struct dl_search_worker *kept) {
    static struct dl_search_worker other;
    struct dl_err err = {0};
    dl_search_worker_clear(&other);
    for (int64_t i = dl_search_tasks(search); i-- > 0;)
        if (dl_search_run_task(search, i, &other, &err) != DL_OK) fail_msg("%s", err.message);
    assert_int_equal(other.best_count, kept->best_count);
    for (int i = 0; i < kept->best_count; i++) {
        check_close(other.best[i].score, kept->best[i].score, 0);
        assert_int_equal(other.best[i].order, kept->best[i].order);
    }
}

static struct dl_search_request random_search(void) {
    static const char *const makers[] = {"megatron", "megatron-core", "pytorch-fsdp", "llama3-4d",
                                         "megatron-deepspeed"};
    const bool stack = once_in(2);
    const struct dl_system *system;
    do {
        system = all.systems[upto(all.system_count)];
    } while (system->device->kind != DL_DEVICE_GPU);
    return (struct dl_search_request){.system = system,
                                      .workload =
                                          stack ? all.workloads[all.workload_count - 1 - upto(2)]
                                                : workload_named(once_in(2) ? "alexnet" : "lenet"),
                                      .framework = framework_named(stack        ? makers[upto(5)]
                                                                   : once_in(2) ? "chainermn"
                                                                                : "ideal"),
                                      .fixed = {.precision = once_in(2) ? DL_MIXED : DL_FP32,
                                                .optimizer = (enum dl_optimizer)upto(DL_OPTIMIZERS),
                                                .global_batch_samples = 64 << upto(4),
                                                .synthetic_input = true,
                                                .recompute_open = once_in(2),
                                                .devices_per_node = once_in(2) ? 0 : 2,
                                                .tp = once_in(5) ? 2 : 0},
                                      .any_schedule = once_in(2),
                                      .any_shard = once_in(2),
                                      .any_mapping = once_in(2),
                                      .any_sequence_parallel = once_in(2),
                                      .nodes = {1, 2},
                                      .node_count = 1 + upto(2),
                                      .objective = (enum dl_objective)upto(6),
                                      .memory_bytes = once_in(3) ? log_between(1e9, 8e9) : 0,
                                      .deadline_s = once_in(4) ? log_between(1e-3, 1) : 0,
                                      .device_w = 300,
                                      .node_price_per_hour = 10,
                                      .keep = 1 + upto(8),
                                      .front = once_in(2),
                                      .every = once_in(4)};
}

static void searches(void **state) {
    (void)state;
    static struct dl_search_worker worker;
    recorded_open("searches");
    seed = 92;
    for (int i = 0; i < SEARCHES; i++) {
        struct dl_arena arena = {0};
        struct dl_err err = {0};
        char title[200];
        const struct dl_search_request request = random_search();
        snprintf(title, sizeof title, "search for %s on %s by %s", request.workload->name,
                 request.system->name, request.framework->name);
        recorded_case(title);
        struct dl_search *search;
        if (run_search(&request, &arena, &search, &worker, &err) == DL_OK) {
            record_found(&worker), record_best_plan(search, &worker);
            if (i % 2 == 0) check_order(search, &worker);
        } else {
            recorded_error("refusal", &err);
        }
        recorded_end_case();
        dl_arena_free(&arena);
    }
    for (int i = 0; dl_strategies[i] != NULL; i++) {
        recorded_case(dl_strategies[i]->name);
        recorded_number("serves networks", 1 + dl_search_serves_network(dl_strategies[i]));
        recorded_end_case();
    }
    recorded_close();
}

/* One job on nodes of both kinds. */
static void record_together(const struct dl_heterogeneous_job *job,
                            const struct dl_workload *workload,
                            const struct dl_framework *framework, const struct dl_plan *plan,
                            struct dl_arena *arena) {
    struct recorded_sum sum = {0};
    struct dl_err err = {0};
    struct dl_plan used;
    struct dl_prediction p;
    const enum dl_code code =
        dl_heterogeneous_predict(job, workload, framework, plan, NULL, arena, &used, &p, &err);
    for (int i = 0; code == DL_OK && i < p.group_count; i++) {
        const struct dl_heterogeneous_group *g = &p.groups[i];
        const double values[] = {p.iteration_s,        p.scaling_efficiency, g->samples,
                                 g->iteration_s,       g->busy_frac,         g->power_w,
                                 g->memory.total_bytes};
        for (int k = 0; k < 7; k++) recorded_add(&sum, values[k]);
    }
    if (code != DL_OK) recorded_error("refusal", &err);
    recorded_sum_of("groups", &sum);
}

/* One way to use nodes of two kinds: together (0), a choice of them, as stages, as parts. */
static void record_kinds(const struct dl_heterogeneous_job *job, const struct dl_workload *workload,
                         const struct dl_framework *framework, const struct dl_plan *plan, int way,
                         struct dl_arena *arena) {
    const enum dl_placement_objective objective = (enum dl_placement_objective)upto(3);
    struct recorded_sum sum = {0};
    struct dl_err err = {0};
    struct dl_subset *subsets;
    struct dl_staged *staged;
    struct dl_parted *parted;
    enum dl_code code;
    int count = 0;
    if (way == 0) {
        record_together(job, workload, framework, plan, arena);
        return;
    }
    if (way == 1) {
        code = dl_subsets(job, workload, framework, plan, objective, arena, &subsets, &count, &err);
        for (int i = 0; code == DL_OK && i < count; i++) {
            recorded_add(&sum, subsets[i].iteration_s), recorded_add(&sum, subsets[i].balanced);
            recorded_add(&sum, (double)(subsets[i].nodes[0] + 100 * subsets[i].nodes[1]));
            recorded_add(&sum, subsets[i].sample_energy_j);
            recorded_add(&sum, subsets[i].cost_per_sample);
        }
    } else if (way == 2) {
        code = dl_staged_search(job, workload, framework, plan, objective, arena, &staged, &count,
                                &err);
        for (int i = 0; code == DL_OK && i < count; i++) {
            recorded_add(&sum, staged[i].prediction.iteration_s);
            recorded_add(&sum, staged[i].prediction.memory.total_bytes);
            recorded_add(&sum, staged[i].prediction.bubble_s);
            recorded_add(&sum, staged[i].micro_batches);
            recorded_add(&sum, staged[i].sample_energy_j);
            for (int k = 0; k < staged[i].count; k++) {
                recorded_add(&sum, staged[i].stages[k].step_s);
                recorded_add(&sum, staged[i].stages[k].busy_frac);
                recorded_add(&sum, staged[i].stages[k].memory_bytes);
            }
        }
    } else {
        code = dl_parts_search(job, workload, framework, plan, objective, arena, &parted, &count,
                               &err);
        for (int i = 0; code == DL_OK && i < count; i++) {
            recorded_add(&sum, parted[i].iteration_s), recorded_add(&sum, parted[i].exposed_comm_s);
            recorded_add(&sum, parted[i].exposed_input_s);
            recorded_add(&sum, parted[i].sample_energy_j);
            recorded_add(&sum, (double)(2 + parted[i].server_kind + 10 * parted[i].input_kind +
                                        100 * parted[i].worker_nodes));
        }
    }
    if (code != DL_OK) recorded_error("refusal", &err);
    recorded_number("choices", count);
    recorded_sum_of("choices in order", &sum);
}

static void kinds(void **state) {
    (void)state;
    static const char *const frameworks[] = {"pytorch-ddp", "chainermn", "tensorflow-ps", "ideal",
                                             "mxnet-dist-sync"};
    static const char *const workloads[] = {"alexnet", "lenet", "resnet50"};
    recorded_open("kinds");
    seed = 93;
    for (int i = 0; i < KINDS; i++) {
        struct dl_arena arena = {0};
        struct dl_heterogeneous_group pair[2];
        char title[200];
        for (int k = 0; k < 2; k++) {
            do {
                pair[k] = (struct dl_heterogeneous_group){
                    .system = all.systems[upto(all.system_count)], .nodes = 1 + upto(3)};
            } while (pair[k].system->device->kind != DL_DEVICE_GPU || pair[k].system->nodes < 3);
        }
        const struct dl_heterogeneous_job job = {pair, 2, once_in(2)};
        const int way = i % 4;
        const struct dl_plan plan = {.strategy = once_in(2) ? NULL : dl_strategy_find("data"),
                                     .global_batch_samples = 512,
                                     .devices_per_node = way == 0 && i % 3 == 0 ? 1 + i % 8 : 0,
                                     .precision = once_in(2) ? DL_MIXED : DL_FP32,
                                     .optimizer = DL_MOMENTUM,
                                     .synthetic_input = !once_in(3),
                                     .decode_s_per_sample = once_in(3) ? 1e-3 : 0,
                                     .micro_batch_samples = once_in(3) ? 64 : 0};
        const struct dl_framework *framework = framework_named(frameworks[upto(5)]);
        const struct dl_workload *workload = workload_named(workloads[upto(way == 2 ? 2 : 3)]);
        snprintf(title, sizeof title, "way %d: %s on %s and %s by %s", way, workload->name,
                 pair[0].system->name, pair[1].system->name, framework->name);
        recorded_case(title);
        record_kinds(&job, workload, framework, &plan, way, &arena);
        recorded_end_case();
        dl_arena_free(&arena);
    }
    recorded_close();
}

static struct dl_job_times times_of[4][3][6];
static const struct dl_job_times *job_times(const void *data, int job, int kind, int64_t n) {
    (void)data;
    return &times_of[job][kind][n - 1];
}

static void placements(void **state) {
    (void)state;
    recorded_open("placements");
    seed = 94;
    for (int i = 0; i < PLACED; i++) {
        struct dl_arena arena = {0};
        struct dl_placement p;
        struct dl_err err = {0};
        struct recorded_sum sum = {0};
        struct dl_job_times *flat = &times_of[0][0][0];
        struct dl_placement_request r = {.jobs = 1 + upto(4),
                                         .kinds = 1 + upto(3),
                                         .nodes = {1 + upto(6), 1 + upto(6), 1 + upto(6)},
                                         .times = job_times,
                                         .objective = (enum dl_placement_objective)upto(3)};
        for (int k = 0; k < 4 * 3 * 6; k++)
            flat[k] = (struct dl_job_times){once_in(8) ? NAN : log_between(1, 1e3),
                                            log_between(1, 1e3), log_between(1, 1e3)};
        recorded_case("jobs on kinds of nodes");
        if (dl_placement_of(&r, &arena, &p, &err) != DL_OK) {
            recorded_error("refusal", &err);
        } else {
            recorded_add(&sum, p.time_s), recorded_add(&sum, p.energy_j);
            recorded_add(&sum, p.cost);
            for (int k = 0; k < r.jobs; k++)
                recorded_add(&sum, (double)(1 + p.kind[k] + 10 * p.nodes[k]));
        }
        recorded_sum_of("placement", &sum);
        recorded_end_case();
        dl_arena_free(&arena);
    }
    recorded_close();
}

static struct dl_campaign random_campaign(double *trial_s) {
    const int trials = 1 + upto(40);
    for (int i = 0; i < trials; i++) trial_s[i] = log_between(10, 1000);
    struct dl_campaign c = {.nodes = 1 + upto(6),
                            .devices_per_node = 1 + upto(8),
                            .devices_per_trial = 1 + upto(once_in(4) ? 16 : 4),
                            .trial_s = trial_s,
                            .trial_count = trials,
                            .policy = (enum dl_campaign_policy)upto(DL_CAMPAIGN_POLICIES),
                            .order = (enum dl_campaign_order)upto(2),
                            .reduction = once_in(10) ? 1 : 2 + upto(3),
                            .rungs = 1 + upto(4),
                            .check_count = 1 + upto(3),
                            .survive_frac = {0.8, 0.5, 0.6},
                            .dispatch_s = once_in(2) ? 0 : log_between(0.01, 5),
                            .startup_s = once_in(2) ? 0 : log_between(1, 60),
                            .resume_s = once_in(2) ? 0 : log_between(1, 20),
                            .stage_bytes = once_in(2) ? 0 : log_between(1e9, 1e11),
                            .node_bytes_per_s = log_between(1e8, 1e10),
                            .shared_bytes_per_s = log_between(1e8, 1e10),
                            .device_failures_per_s = once_in(2) ? 0 : log_between(1e-7, 1e-4),
                            .repair_s = once_in(2) ? 0 : log_between(1, 1000),
                            .checkpoint_s = once_in(2) ? 0 : log_between(10, 100),
                            .seed = check_random(&seed)};
    if (c.devices_per_trial > c.devices_per_node)
        c.devices_per_trial -= c.devices_per_trial % c.devices_per_node;
    return c;
}

static void record_campaign(const struct dl_campaign *c, const struct dl_campaign_result *r,
                            struct dl_arena *arena) {
    struct recorded_sum sum = {0}, tasks = {0}, bounds = {0};
    struct dl_campaign_limits l;
    struct dl_err err = {0};
    const double values[] = {(double)r->slots,
                             (double)r->slot_devices,
                             (double)r->slot_nodes,
                             r->train_s,
                             r->lost_s,
                             r->startup_s,
                             r->stage_wait_s,
                             r->utilization_frac,
                             r->longest_trial_s,
                             (double)r->task_count,
                             (double)r->failure_count,
                             (double)r->full_count};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) recorded_add(&sum, values[i]);
    recorded_add(&bounds, r->lower_bound_s), recorded_add(&bounds, r->list_bound_s);
    recorded_add(&bounds, r->longest_first_bound_s);
    for (int i = 0; i < r->task_count; i++) {
        const struct dl_campaign_task *t = &r->tasks[i];
        recorded_add(&tasks, t->end_s + t->start_s * 0.1 + t->train_s * 0.01);
        recorded_add(&tasks, 1 + t->trial + 100 * t->rung + 10000.0 * (double)t->slot);
    }
    if (dl_campaign_find_limits(c, r->makespan_s, arena, &l, &err) == DL_OK) {
        const double limits_of[] = {l.dispatch_frac, l.startup_frac, l.staging_frac,
                                    l.failures_frac, l.longest_frac, l.slots_frac};
        for (int i = 0; i < 6; i++) recorded_add(&bounds, 2 + limits_of[i]);
    } else {
        recorded_error("limits refused", &err);
    }
    recorded_result("makespan_s", r->makespan_s);
    recorded_sum_of("sums", &sum);
    recorded_sum_of("tasks", &tasks);
    recorded_sum_of("bounds, limits", &bounds);
}

static void campaigns(void **state) {
    (void)state;
    recorded_open("campaigns");
    seed = 95;
    for (int i = 0; i < CAMPAIGNS; i++) {
        struct dl_arena arena = {0};
        double trial_s[40];
        const struct dl_campaign c = random_campaign(trial_s);
        struct dl_campaign_result r;
        struct dl_err err = {0};
        recorded_case(dl_campaign_policy_names[c.policy]);
        if (dl_campaign_simulate(&c, true, &arena, &r, &err) == DL_OK)
            record_campaign(&c, &r, &arena);
        else
            recorded_error("refusal", &err);
        recorded_number("trials of hyperband", dl_campaign_hyperband_trials(c.rungs, c.reduction));
        recorded_end_case();
        dl_arena_free(&arena);
    }
    recorded_close();
}

static void advice(void **state) {
    (void)state;
    recorded_open("advice");
    seed = 96;
    for (int i = 0; i < ADVICE; i++) {
        struct dl_advice_point points[8];
        const int count = 1 + upto(8);
        for (int k = 0; k < count; k++) {
            const double rate = 100 * pow(2, 0.8 * k) * (0.8 + 0.4 * check_uniform(&seed));
            points[k] = (struct dl_advice_point){.nodes = 1 << k,
                                                 .samples_per_s = rate,
                                                 .low_samples_per_s = 0.8 * rate,
                                                 .high_samples_per_s = 1.3 * rate,
                                                 .efficiency = pow(0.93, k),
                                                 .cost_per_sample = pow(2, k) / rate,
                                                 .run_s = 1e5 / rate,
                                                 .run_cost = 1e5 * pow(2, k) / rate,
                                                 .fits = !once_in(5)};
        }
        const struct dl_advice_limits bounds = {once_in(2) ? 0 : log_between(10, 1000),
                                                once_in(2) ? 0 : log_between(500, 5000)};
        const struct dl_advice a = dl_advice_of(points, count, &bounds);
        const int chosen[] = {a.knee,    a.fastest,   a.cheapest,    a.inefficient,
                              a.in_time, a.in_budget, a.tied_fastest};
        recorded_case("numbers of nodes");
        struct recorded_sum sum = {0};
        for (int k = 0; k < 7; k++) recorded_add(&sum, 2 + chosen[k]);
        recorded_sum_of("knee, fastest, cheapest, ...", &sum);
        recorded_end_case();
    }
    recorded_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(limits),    cmocka_unit_test(searches),
                                       cmocka_unit_test(kinds),     cmocka_unit_test(placements),
                                       cmocka_unit_test(campaigns), cmocka_unit_test(advice)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}

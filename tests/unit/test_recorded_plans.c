/* Recorded results (recorded.h: a regression net, no oracle) of random plans of whatever is in
 * data/: every part of the prediction, its memory, terms, interval and words; refusals with their
 * message; and of some, what follows from a prediction: power, checkpoints, advice.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/search/advise/advise.h"
#include "model/engine/correct.h"
#include "model/engine/energy.h"
#include "model/engine/memory_advice.h"
#include "model/search/checkpoint.h"
#include "tests/any_case.h"
#include "tests/recorded_prediction.h"

enum { PLANS = 1000, DRAWS = 8 };

static void record_plan(const struct dl_plan *p) {
    struct recorded_sum sum = {0};
    const double members[] = {(double)p->nodes,
                              (double)p->devices_per_node,
                              (double)p->dp,
                              (double)p->tp,
                              (double)p->pp,
                              (double)p->sp,
                              (double)p->ep,
                              p->batch_per_device_samples,
                              p->global_batch_samples,
                              p->micro_batch_samples,
                              (double)p->recompute,
                              (double)p->schedule,
                              (double)p->virtual_stages,
                              (double)p->servers,
                              (double)p->shard,
                              (double)p->shard_group,
                              (double)p->replica_devices};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) recorded_add(&sum, members[i]);
    recorded_sum_of("plan", &sum);
    recorded_text("strategy", p->strategy->name);
}

static void record_advice(const struct a_case *c, const struct dl_plan *plan,
                          const struct dl_prediction *p, struct dl_arena *arena) {
    const struct dl_advise_state state = {&c->system, c->workload, &c->framework, plan, p, arena};
    uint32_t words = 0;
    int total = 0;
    for (int i = 0; dl_advise_items[i] != NULL; i++) {
        struct dl_advise_change changes[DL_ADVISE_CHANGES];
        const int count = dl_advise_propose(dl_advise_items[i], &state, changes);
        for (int k = 0; k < count; k++) {
            words = recorded_hash(recorded_hash(words, changes[k].text), changes[k].setting);
            words = recorded_hash(words, changes[k].workload_text);
            for (int o = 0; o < changes[k].option_count; o++)
                words = recorded_hash(recorded_hash(words, changes[k].options[o].name),
                                      changes[k].options[o].value);
        }
        total += count;
    }
    recorded_number("changes proposed", total);
    recorded_text_hash("words of the changes", words, "(texts, settings, options)");
}

static void record_checkpoint(const struct a_case *c, const struct dl_plan *plan,
                              const struct dl_prediction *p) {
    int formats = 0;
    while (dl_checkpoint_formats[formats] != NULL) formats++;
    const struct dl_checkpoint_cost cost = {.base_s = 0.1,
                                            .rank_s = 0.01,
                                            .layer_s = 1e-4,
                                            .tensor_s = 1e-4,
                                            .rank_tensor_s = 1e-6,
                                            .every_tensor_s = 1e-5,
                                            .shared_tensor_s = 2e-5,
                                            .cached_s_per_byte = 1e-10,
                                            .large_s_per_byte = 4e-10,
                                            .staged_cached_s_per_byte = 2e-10,
                                            .staged_large_s_per_byte = 3e-10,
                                            .collection_s = 0.1,
                                            .object_count = 270000,
                                            .storage_s_per_byte = 1e-9};
    const struct dl_checkpoint_way way = {.interval_s = once_in(2) ? 0 : log_between(10, 1e4),
                                          .format = dl_checkpoint_formats[upto(formats)],
                                          .cost = once_in(3) ? NULL : &cost,
                                          .blocking = once_in(3) ? &cost : NULL};
    struct dl_system system = c->system;
    struct dl_checkpoint k;
    struct dl_err err = {0};
    struct recorded_sum sum = {0};
    system.node_mtbf_s = log_between(1e6, 1e9), system.restart_s = log_between(10, 1e3);
    if (once_in(2)) system.storage.write_bytes_per_s = log_between(1e8, 1e10);
    if (once_in(2)) system.storage.total_write_bytes_per_s = log_between(1e8, 1e11);
    if (once_in(2)) {
        system.storage.local_write_bytes_per_s = log_between(1e9, 1e11);
        system.storage.local_recovery_frac = 0.8;
    }
    if (dl_checkpoint_plan(&system, c->workload, plan, p, &way, &k, &err) != DL_OK) {
        recorded_error("checkpoint", &err);
        return;
    }
    const double values[] = {k.bytes,
                             (double)k.writer_nodes,
                             k.serialize_s,
                             k.write_s,
                             k.blocked_s,
                             k.job_mtbf_s,
                             k.young_s,
                             k.daly_s,
                             k.interval_s,
                             k.steps,
                             k.stretch_ratio,
                             k.loss_s,
                             k.epoch_s,
                             k.goodput_frac,
                             k.local_write_s,
                             k.local_interval_s,
                             k.global_interval_s,
                             k.two_level_goodput_frac};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) recorded_add(&sum, values[i]);
    recorded_sum_of("checkpoint", &sum);
}

static void record_throughput(const struct a_case *c, const struct dl_plan *plan,
                              const struct dl_prediction *p) {
    const struct dl_throughput t = dl_throughput_of(c->system.device, c->workload, plan, p);
    const struct dl_run_length length = {.tokens = once_in(2) ? log_between(1e6, 1e12) : 0,
                                         .epoch_count = once_in(2) ? 1 + upto(90) : 0};
    const struct dl_run_total run = dl_run_total_of(c->workload, plan, p, &length);
    const struct dl_rates rates = {.node_w = once_in(3) ? 1500 : NAN,
                                   .price_per_node_hour = once_in(2) ? 12 : NAN,
                                   .currency = "EUR",
                                   .carbon_g_per_kwh = once_in(2) ? 300 : NAN};
    const struct dl_power power = dl_power_of(&c->system, plan, p, &rates);
    const struct dl_spending s = dl_spending_of(&c->system, plan, &power, &rates, p->iteration_s);
    struct recorded_sum flops = {0}, spent = {0};
    const double a[] = {t.tokens,
                        t.model_flop,
                        t.hardware_flop,
                        t.peak_flop_per_s,
                        t.tokens_per_s,
                        t.device_tokens_per_s,
                        t.device_model_flop_per_s,
                        t.device_hardware_flop_per_s,
                        t.mfu_frac,
                        t.hfu_frac,
                        run.samples,
                        run.iteration_count,
                        run.time_s,
                        run.device_time_s};
    for (size_t i = 0; i < sizeof a / sizeof a[0]; i++) recorded_add(&flops, a[i]);
    const double b[] = {power.device_w,  power.host_w, power.node_w, power.job_w,
                        power.sigma_log, s.energy_j,   s.carbon_g,   s.cost};
    for (size_t i = 0; i < sizeof b / sizeof b[0]; i++) recorded_add(&spent, b[i]);
    recorded_add(&spent, 1 + power.load_assumed + 2 * power.host_assumed);
    recorded_sum_of("throughput, run", &flops);
    recorded_sum_of("power, spending", &spent);
}

static const struct dl_interval_model *intervals;

/* With measured runs that were 10 to 40 % slower than predicted. */
static void record_corrected(const struct a_case *c, const struct dl_plan *plan,
                             const struct dl_prediction *p, struct dl_arena *arena) {
    struct dl_framework framework = c->framework;
    struct dl_prediction corrected = *p;
    struct dl_err err = {0};
    struct dl_measured_run runs[2];
    framework.intervals = intervals;
    const struct dl_predict_request request = {.system = &c->system,
                                               .workload = c->workload,
                                               .framework = &framework,
                                               .plan = plan,
                                               .arena = arena};
    for (int i = 0; i < 2; i++)
        runs[i] = (struct dl_measured_run){
            .log_ratio = 0.1 + 0.3 * check_uniform(&seed),
            .what = dl_interval_case_of(&c->system, c->workload, &framework, plan, p),
            .workload = once_in(2) ? c->workload->name : "other"};
    if (once_in(2) &&
        dl_posterior_make(intervals, runs, 2, arena, &framework.measured, &err) != DL_OK)
        recorded_error("posterior", &err);
    dl_predict_correct(&request, &corrected);
    struct recorded_sum sum = {0};
    const double values[] = {corrected.iteration_s,
                             corrected.iteration_low_s,
                             corrected.iteration_high_s,
                             corrected.sigma_log,
                             corrected.shared_sigma_log,
                             corrected.plans_sigma_log,
                             corrected.compute_s,
                             corrected.exposed_comm_s,
                             corrected.overhead_s,
                             dl_prediction_own_half_log(&corrected),
                             dl_prediction_plan_half_log(&corrected)};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) recorded_add(&sum, values[i]);
    recorded_add(&sum, 1 + dl_prediction_ties(p, &corrected));
    recorded_add(&sum, 1 + dl_prediction_plans_tie(p, &corrected));
    recorded_sum_of("corrected by measured runs", &sum);
    const struct dl_gain gain = dl_gain_of(&framework, p, 1, &corrected, 1.1, true);
    recorded_number("gain", gain.ratio * gain.low / gain.high);
}

/* Three of four cases are drawn until the plan is possible: most random ones are not. */
static enum dl_code draw(int number, struct a_case *c, struct dl_plan *plan, struct dl_arena *arena,
                         struct dl_prediction *p, struct dl_err *err) {
    static const struct dl_predict_options with_terms = {.terms = true};
    enum dl_code code = DL_OK;
    for (int i = 0; i < (number % 4 == 0 ? 1 : DRAWS); i++) {
        random_case(c);
        *plan = c->plan;
        *err = (struct dl_err){0};
        code = dl_plan_complete(&c->system, c->workload, &c->framework, plan, err);
        if (code == DL_OK)
            code = dl_predict(&c->system, c->workload, &c->framework, plan, &with_terms, arena, p,
                              err);
        if (code == DL_OK) break;
    }
    return code;
}

static void record_case(int number, struct dl_arena *arena) {
    static struct a_case one;
    struct dl_prediction p;
    struct dl_plan plan;
    struct dl_err err;
    const enum dl_code code = draw(number, &one, &plan, arena, &p, &err);
    recorded_case(name_of(&one, number));
    if (code != DL_OK) {
        recorded_number("code of the refusal", (double)code);
        recorded_error("refusal", &err);
    } else {
        record_plan(&plan);
        record_prediction(&p);
        recorded_text("memory advice",
                      dl_memory_advice(&one.system, one.workload, &one.framework, &plan,
                                       plan.batch_per_device_samples, arena));
        record_throughput(&one, &plan, &p);
        record_corrected(&one, &plan, &p, arena);
        if (number % 2 == 0) record_advice(&one, &plan, &p, arena);
        if (number % 2 == 1) record_checkpoint(&one, &plan, &p);
    }
    recorded_end_case();
}

static void plans(void **state) {
    (void)state;
    struct dl_err err = {0};
    char directory[4096];
    const char *directories[] = {directory};
    snprintf(directory, sizeof directory, "%s/data", check_root());
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    assert_int_equal(dl_data_intervals(&data, &all.arena, &intervals, &err), DL_OK);
    recorded_open("plans");
    seed = 20261123;
    for (int number = 1; number <= PLANS; number++) {
        struct dl_arena arena = {0};
        record_case(number, &arena);
        dl_arena_free(&arena);
    }
    recorded_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}

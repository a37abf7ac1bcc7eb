/* Recorded results (recorded.h: a regression net, no oracle) of plans as they are completed and
 * checked: what is refused in which words, what others become, and what is predicted for some. Most
 * plans ask for little that is unusual, so that each check is reached by some that pass those
 * before it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/engine/canonical.h"
#include "tests/any_case.h"
#include "tests/recorded_prediction.h"

enum { CASES = 90, FIELDS = 36, PLANS = 30, PREDICTED = 15 };

static int64_t ranks(void) {
    static const int64_t counts[] = {0, 1, 2, 2, 3, 4, 4, 6, 8, 16, 100, 1000};
    return counts[upto(12)];
}

/* Two or three of the members that split work or memory, each with any number. */
static void ask_for_splits(struct dl_plan *p) {
    for (int i = 1 + upto(3); i > 0; i--) {
        switch (upto(13)) {
        case 0: p->tp = ranks(); break;
        case 1: p->pp = ranks(); break;
        case 2: p->sp = ranks(); break;
        case 3: p->ep = ranks(); break;
        case 4: p->expert_tp = upto(4); break;
        case 5: p->micro_batch_samples = (double)ranks() / (once_in(4) ? 3 : 1); break;
        case 6: p->sequence_parallel = true; break;
        case 7: p->schedule = (enum dl_schedule)upto(4); break;
        case 8: p->virtual_stages = ranks(); break;
        case 9: p->shard = upto(5); break;
        case 10: p->shard_group = ranks(); break;
        case 11: p->mapping = DL_MAP_PIPELINE_INSIDE; break;
        default: p->recompute = (enum dl_recompute)upto(3); break;
        }
    }
}

/* Without what the strategy never has. */
static void tame_splits(struct dl_plan *p) {
    const unsigned axes = p->strategy != NULL ? p->strategy->axes : 0;
    if ((axes & DL_AXIS_TP) == 0) p->tp = p->expert_tp = 0, p->sequence_parallel = false;
    if ((axes & DL_AXIS_PP) == 0) p->pp = p->virtual_stages = 0, p->schedule = DL_1F1B;
    if ((axes & DL_AXIS_PP) == 0) p->micro_batch_samples = 0;
    if ((axes & DL_AXIS_SP) == 0) p->sp = 0;
    if ((axes & DL_AXIS_EP) == 0) p->ep = 0;
    if ((axes & (DL_AXIS_TP | DL_AXIS_PP)) == 0) p->shard = p->shard_group = 0;
}

static void ask_for_others(struct dl_plan *p) {
    static const char *const libraries[] = {"nccl", "mpi", "gloo", "grpc", "mlsl", "none"};
    switch (upto(12)) {
    case 0: p->servers = ranks(); break;
    case 1: p->backup_workers = ranks(); break;
    case 2: p->library = libraries[upto(6)]; break;
    case 3: p->variable_placement = once_in(2) ? "cpu" : "gpu"; break;
    case 4: p->assume = DL_ASSUME_PARADL; break;
    case 5: p->compiler = (enum dl_compiler)upto(3); break;
    case 6: p->attention = (enum dl_attention_kernel)upto(3); break;
    case 7: p->precision = (enum dl_precision)upto(DL_PRECISIONS); break;
    case 8: p->synthetic_input = false; break;
    default: break;
    }
}

static void draw(struct a_case *c) {
    int strategies = 0;
    while (dl_strategies[strategies] != NULL) strategies++;
    const struct dl_system *system = all.systems[upto(all.system_count)];
    c->system = *system;
    if (once_in(2)) c->system.nodes = 1024;
    c->framework = *all.frameworks[upto(all.framework_count)];
    if (!once_in(4)) c->framework.shards = c->framework.splits_layers = true;
    c->workload = all.workloads[upto(all.workload_count)];
    c->plan = (struct dl_plan){.synthetic_input = true};
    c->plan.strategy = once_in(5) ? NULL : dl_strategies[upto(strategies)];
    c->plan.nodes = 1 + upto(4);
    c->plan.nodes *= 1 + upto(3);
    c->plan.optimizer = (enum dl_optimizer)upto(DL_OPTIMIZERS);
    c->plan.recompute_open = once_in(2);
    if (once_in(4)) c->plan.devices_per_node = ranks();
    if (once_in(3))
        c->plan.global_batch_samples = (double)(1 + upto(64));
    else
        c->plan.batch_per_device_samples = (double)(1 + upto(64));
    ask_for_splits(&c->plan);
    if (!once_in(4)) tame_splits(&c->plan);
    if (once_in(3)) ask_for_others(&c->plan);
}

/* All terms of the prediction, its words and memory. */
static uint32_t predicted(uint32_t hash, const struct a_case *c, struct recorded_sum *sum) {
    static const struct dl_predict_options with_terms = {.terms = true};
    struct dl_err err = {0};
    struct dl_arena arena = {0};
    struct dl_prediction p;
    char text[1024];
    if (dl_predict(&c->system, c->workload, &c->framework, &c->plan, &with_terms, &arena, &p,
                   &err) != DL_OK) {
        dl_err_text(&err, "dlmodel", text, sizeof text);
        hash = recorded_hash(hash, text);
    } else {
        const double values[] = {p.iteration_s,       p.iteration_low_s,    p.iteration_high_s,
                                 p.bubble_s,          p.exposed_comm_s,     p.comm_bytes,
                                 p.straggler_s,       p.scaling_efficiency, p.max_batch_samples,
                                 p.memory.total_bytes};
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) recorded_add(sum, values[i]);
        hash = recorded_hash(hash, NULL) ^ recorded_terms_hash(&p, sum);
        for (int i = 0; i < p.warning_count; i++) hash = recorded_hash(hash, p.warnings[i]);
        hash = recorded_hash(hash, dl_bottleneck_names[p.bottleneck]);
    }
    dl_arena_free(&arena);
    return hash;
}

/* The words of a refusal, or what the plan becomes. */
static uint32_t outcome(uint32_t hash, struct a_case *c, int *possible, struct recorded_sum *sum) {
    struct dl_err err = {0};
    struct dl_plan *p = &c->plan;
    char text[1024];
    if (dl_plan_complete(&c->system, c->workload, &c->framework, p, &err) != DL_OK) {
        dl_err_text(&err, "dlmodel", text, sizeof text);
        return recorded_hash(hash, text);
    }
    const struct dl_plan same = dl_plan_canonical(c->workload, &c->framework, p);
    snprintf(text, sizeof text, "%s %s %lld %lld %lld %lld %lld %lld %lld %.9g %.9g %.9g %d %lld",
             p->strategy->name, same.strategy->name, (long long)p->devices_per_node,
             (long long)p->dp, (long long)p->tp, (long long)p->pp, (long long)p->sp,
             (long long)p->ep, (long long)p->folded, p->batch_per_device_samples,
             p->global_batch_samples, same.micro_batch_samples, (int)p->recompute,
             (long long)same.virtual_stages);
    hash = recorded_hash(hash, text);
    return (*possible)++ % PREDICTED == 0 ? predicted(hash, c, sum) : hash;
}

static void refusals(void **state) {
    (void)state;
    static struct a_case one;
    int possible = 0;
    recorded_open("refusals");
    seed = 881;
    for (int number = 1; number <= CASES; number++) {
        recorded_case("plans");
        for (int field = 0; field < FIELDS; field++) {
            uint32_t hash = 0;
            struct recorded_sum sum = {0};
            for (int i = 0; i < PLANS; i++) {
                draw(&one);
                hash = outcome(hash, &one, &possible, &sum);
            }
            recorded_text_hash("plans", hash, "(words of refusals, numbers of plans)");
            recorded_sum_of("predictions", &sum);
        }
        recorded_end_case();
    }
    recorded_close();
    if (possible < CASES * FIELDS * PLANS / 10) fail_msg("only %d plans are possible", possible);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}

/* Laws that hold for whatever is in data/: any system, workload and framework there, with any plan.
 * About half of the plans are impossible; those are refused as wrong input, with a sentence. No
 * figure of data/ is repeated here.
 */
#include <ctype.h>

#include "model/network/collective.h"
#include "model/catalog/data.h"
#include "model/search/limits.h"
#include "model/engine/memory_advice.h"
#include "tests/any_case.h"
#include "tests/check.h"

enum { CASES = 3000 };

#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) fail_msg("%s: %s", name_of(c, number), #condition);                      \
    } while (0)

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-15;
}

/* The word, not the start of a framework's name. */
static bool has_nan(const char *text) {
    for (const char *at = strstr(text, "nan"); at != NULL; at = strstr(at + 3, "nan")) {
        if (!isalpha((unsigned char)at[3])) return true;
    }
    return false;
}

/* A refusal names what is wrong, in words, as a fault of what was asked for. */
static void check_refusal(const struct a_case *c, int number, enum dl_code code,
                          const struct dl_err *err) {
    HOLDS(code == DL_ERR_USAGE || code == DL_ERR_INPUT || code == DL_ERR_NO);
    HOLDS(err->code == code && strlen(err->message) > 10);
    HOLDS(strstr(err->message, "(null)") == NULL && !has_nan(err->message) &&
          strstr(err->message, "inf") != err->message);
}

/* The parts are times, and the iteration is their sum. */
static void check_times(const struct a_case *c, int number, const struct dl_prediction *p) {
    HOLDS(isfinite(p->iteration_s) && p->iteration_s > 0);
    HOLDS(near(p->iteration_s, p->compute_s + p->exposed_comm_s + p->exposed_input_s + p->bubble_s +
                                   p->overhead_s));
    HOLDS(near(p->compute_s, p->forward_s + p->backward_s + p->update_s));
    HOLDS(p->forward_s > 0 && p->backward_s > 0 && p->update_s >= 0 && p->bubble_s >= 0 &&
          p->overhead_s >= 0);
    HOLDS(p->exposed_comm_s >= 0 && p->exposed_comm_s <= p->comm_s * (1 + 1e-9) + 1e-15);
    HOLDS(p->exposed_input_s >= 0);
    HOLDS(p->iteration_low_s <= p->iteration_s && p->iteration_s <= p->iteration_high_s);
}

static void check_memory(const struct a_case *c, int number, const struct dl_prediction *p) {
    const struct dl_memory *m = &p->memory;
    HOLDS(near(m->total_bytes, m->weights_bytes + m->gradients_bytes + m->optimizer_bytes +
                                   m->activations_bytes + m->workspace_bytes + m->buffers_bytes +
                                   m->context_bytes));
    HOLDS(p->fits == (isnan(m->capacity_bytes) || m->total_bytes <= m->capacity_bytes));
}

static void check_term(const struct a_case *c, int number, const struct dl_term *term) {
    HOLDS(term->name != NULL && term->group != NULL && term->formula != NULL &&
          strncmp(term->formula, "F-", 2) == 0);
    HOLDS(term->inputs == NULL ||
          (strstr(term->inputs, "(null)") == NULL && strstr(term->inputs, "-nan") == NULL));
    HOLDS(term->value >= 0);
}

/* What the iteration depends on is all of it (ParaDL's model has no lanes); so are the terms of
 * compute; what the passes of the fullest stage hold reaches the memory of the prediction and goes
 * back to where it began. */
static void check_course(const struct a_case *c, int number, const struct dl_plan *plan,
                         const struct dl_prediction *p) {
    const struct dl_course *course = &p->course;
    double most_bytes = 0, forward_s = 0, backward_s = 0, update_s = 0;
    HOLDS(plan->assume == DL_ASSUME_PARADL ||
          near(dl_resource_sum_s(&course->path), p->iteration_s));
    for (int i = 0; i < DL_RESOURCES; i++) HOLDS(course->path.s[i] >= -1e-9 * p->iteration_s);
    HOLDS(p->term_count == 0 || plan->assume == DL_ASSUME_PARADL ||
          course->memory_count == plan->pp);
    for (int s = 0; s < course->memory_count; s++) {
        const struct dl_memory_curve *curve = &course->memory[s];
        double own_bytes = 0;
        for (int i = 0; i < curve->count; i++) {
            HOLDS(i == 0 || curve->points[i].s >= curve->points[i - 1].s);
            own_bytes = fmax(own_bytes, curve->points[i].bytes);
        }
        HOLDS(near(curve->points[0].bytes, curve->points[curve->count - 1].bytes));
        HOLDS(p->stage_count == 0 || near(own_bytes, p->stages[s].total_bytes));
        most_bytes = fmax(most_bytes, own_bytes);
    }
    HOLDS(course->memory_count == 0 || near(most_bytes, p->memory.total_bytes));
    for (int i = 0; i < p->term_count; i++) {
        const struct dl_term *t = &p->terms[i];
        if (strcmp(t->group, "forward") == 0) forward_s += t->value;
        if (strcmp(t->group, "backward") == 0) backward_s += t->value;
        if (strcmp(t->group, "update") == 0) update_s += t->value;
    }
    if (p->stage_count == 0) return; /* test_invariants: of other networks */
    HOLDS(near(forward_s, p->forward_s) && near(backward_s, p->backward_s) &&
          near(update_s, p->update_s));
}

static void check_prediction(const struct a_case *c, int number, const struct dl_plan *plan,
                             const struct dl_prediction *p) {
    check_times(c, number, p);
    check_memory(c, number, p);
    HOLDS(near(p->throughput_samples_per_s * p->iteration_s, plan->global_batch_samples) ||
          plan->backup_workers > 0);
    HOLDS(p->scaling_efficiency > 0);
    HOLDS(p->bottleneck >= 0 && p->bottleneck < DL_BOUNDS && p->bottleneck_share > 0 &&
          p->bottleneck_share <= 1 + 1e-9);
    HOLDS(plan->nodes * plan->devices_per_node > 1 || p->comm_s <= 0);
    for (int i = 0; i < p->warning_count; i++)
        HOLDS(p->warnings[i] != NULL && strstr(p->warnings[i], "(null)") == NULL);
    for (int t = 0; t < p->term_count; t++) check_term(c, number, &p->terms[t]);
    check_course(c, number, plan, p);
}

/* Completed, a plan is complete: all ranks are given and their product is the devices. */
static void check_plan(const struct a_case *c, int number, const struct dl_plan *plan) {
    struct dl_plan again = *plan;
    struct dl_err err = {0};
    HOLDS(plan->strategy != NULL && plan->dp >= 1 && plan->tp >= 1 && plan->pp >= 1 &&
          plan->sp >= 1 && plan->ep >= 1);
    HOLDS(plan->dp * plan->tp * plan->pp * plan->sp * plan->ep ==
          plan->nodes * plan->devices_per_node);
    HOLDS(plan->batch_per_device_samples > 0 && plan->global_batch_samples >= 1);
    HOLDS(dl_plan_complete(&c->system, c->workload, &c->framework, &again, &err) == DL_OK);
    HOLDS(again.dp == plan->dp && again.tp == plan->tp && again.pp == plan->pp &&
          again.sp == plan->sp && again.ep == plan->ep && again.shard == plan->shard &&
          near(again.global_batch_samples, plan->global_batch_samples) &&
          near(again.batch_per_device_samples, plan->batch_per_device_samples));
}

static void check_limits(const struct a_case *c, int number, const struct dl_plan *plan,
                         struct dl_arena *arena) {
    static struct dl_limits limits;
    struct dl_err err = {0};
    HOLDS(dl_limits_of(&(struct dl_predict_request){.system = &c->system,
                                                    .workload = c->workload,
                                                    .framework = &c->framework,
                                                    .plan = plan,
                                                    .arena = arena},
                       &limits, &err) == DL_OK);
    for (int i = 0; i < limits.active_count; i++) {
        const struct dl_limit_active *a = &limits.active[i];
        HOLDS(a->name != NULL && a->category != NULL && (a->cost_s > 0 || a->cost_bytes > 0));
        HOLDS(i == 0 || isnan(a->cost_s) || a->cost_s <= a[-1].cost_s);
    }
    for (int i = 0; i < limits.elasticity_count; i++) HOLDS(isfinite(limits.elasticity[i].value));
    for (int i = 0; i < limits.change_count; i++)
        HOLDS(limits.changes[i].iteration_s > 0 && limits.changes[i].text != NULL);
}

/* With the memo as without it. */
static void check_remembered(const struct a_case *c, int number, const struct dl_system *system,
                             const struct dl_plan *plan, struct dl_cost_memo *memo) {
    const struct dl_predict_options with = {.times_only = true, .memo = memo};
    struct dl_prediction p, plain;
    struct dl_err err = {0};
    for (int i = 0; i < 2; i++) {
        if (dl_predict(&(struct dl_predict_request){system, c->workload, &c->framework, plan, NULL,
                                                    memo->arena},
                       &plain, &err) != DL_OK)
            return; /* this variant is impossible */
        HOLDS(dl_predict(&(struct dl_predict_request){system, c->workload, &c->framework, plan,
                                                      &with, memo->arena},
                         &p, &err) == DL_OK);
        HOLDS(p.iteration_s == plain.iteration_s);
    }
}

/* What is remembered of kernels changes nothing: on another system of equal devices, which shares
 * them, nor for other devices, batches and factors, which do not. */
static void check_memo(const struct a_case *c, int number, const struct dl_plan *plan,
                       struct dl_arena *arena) {
    struct dl_cost_memo memo = {.arena = arena};
    struct dl_system links = c->system, devices = c->system;
    struct dl_device bare = *c->system.device;
    struct dl_plan twice = *plan, slower = *plan;
    links.inter.bandwidth_bytes_per_s *= 2;
    links.intra.latency_s *= 3;
    bare.memory_bandwidth_bytes_per_s /= 2;
    bare.kernel_model_count = 0;
    bare.borrowed = NULL;
    devices.device = &bare;
    twice.batch_per_device_samples *= 2;
    twice.global_batch_samples *= 2;
    slower.measured.compute_scale = 2;
    check_remembered(c, number, &c->system, plan, &memo);
    check_remembered(c, number, &links, plan, &memo);
    check_remembered(c, number, &devices, plan, &memo);
    check_remembered(c, number, &c->system, &twice, &memo);
    check_remembered(c, number, &c->system, &slower, &memo);
}

/* A layer takes what its twin takes; a twin before the part of a network that one looks at (a stage
 * of a pipeline) is none. */
static void check_twins(const struct a_case *c, int number, const struct dl_plan *plan,
                        double iteration_s, struct dl_arena *arena) {
    struct dl_workload apart = *c->workload;
    struct dl_layer *layers = dl_arena_alloc(arena, (size_t)apart.layer_count, sizeof *layers);
    struct dl_prediction p = {0};
    struct dl_err err = {0};
    HOLDS(layers != NULL);
    for (int i = 0; i < apart.layer_count; i++) {
        layers[i] = c->workload->layers[i];
        const int twin = dl_layer_twin(c->workload->layers + i / 2, i - i / 2);
        HOLDS(twin >= 0 && twin <= i - i / 2);
        layers[i].twin_before = 0;
    }
    apart.layers = layers;
    HOLDS(dl_predict(
              &(struct dl_predict_request){&c->system, &apart, &c->framework, plan, NULL, arena},
              &p, &err) == DL_OK);
    HOLDS(p.iteration_s == iteration_s);
}

static void any_plan(void **state) {
    int made = 0, refused = 0, too_large = 0;
    seed = 20261122;
    for (int number = 0; number < CASES; number++) {
        struct a_case one;
        const struct a_case *c = &one;
        struct dl_arena arena = {0};
        struct dl_err err = {0};
        struct dl_prediction p, plain;
        const struct dl_predict_options with_terms = {.terms = true};
        random_case(&one);
        struct dl_plan plan = one.plan;
        enum dl_code code =
            dl_plan_complete(&one.system, one.workload, &one.framework, &plan, &err);
        if (code == DL_OK) check_plan(c, number, &plan);
        if (code == DL_OK)
            code =
                dl_predict(&(struct dl_predict_request){&one.system, one.workload, &one.framework,
                                                        &plan, &with_terms, &arena},
                           &p, &err);
        if (code != DL_OK) {
            check_refusal(c, number, code, &err);
            refused++;
        } else {
            check_prediction(c, number, &plan, &p);
            HOLDS(dl_predict(&(struct dl_predict_request){&one.system, one.workload, &one.framework,
                                                          &one.plan, NULL, &arena},
                             &plain, &err) == DL_OK);
            HOLDS(plain.term_count == 0 && plain.iteration_s == p.iteration_s &&
                  plain.memory.total_bytes == p.memory.total_bytes);
            check_memo(c, number, &plan, &arena);
            check_twins(c, number, &plan, p.iteration_s, &arena);
            if (made++ % 16 == 0) check_limits(c, number, &plan, &arena);
            const char *advice = dl_memory_advice(&one.system, one.workload, &one.framework, &plan,
                                                  plan.batch_per_device_samples, &arena);
            HOLDS(advice == NULL || (strlen(advice) > 10 && !has_nan(advice)));
            too_large += !p.fits;
        }
        dl_arena_free(&arena);
    }
    print_message("%d predicted (%d too large), %d refused\n", made, too_large, refused);
    /* else this tests little */
    assert_true(made > CASES / 6 && refused > CASES / 20 && too_large > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_plan)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}

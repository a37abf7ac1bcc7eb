/* Pipelines against a simulation of every micro-batch that knows nothing of model/: passes as nodes
 * of a graph, whose edges are "needs the output of" and "runs on the same stage after", and start
 * times that rise until every edge holds. The order on a stage follows the papers: GPipe (Huang et
 * al. 2019), 1F1B (Narayanan et al. 2019), interleaved stages (Narayanan et al. 2021), ZB-H1 (Qi et
 * al. 2023). */
#include <limits.h>

#include "model/engine/schedule.h"
#include "model/engine/strategies/strategy.h"
#include "tests/check.h"
#include "tests/fake_transformer.h"

enum { CASES = 300, MAX_STAGES = 8, MAX_PARTS = 4, MAX_BATCHES = 48 };
enum { PASSES = 3 * MAX_STAGES * MAX_PARTS * MAX_BATCHES };

struct pass {
    int stage, part, batch;
    char kind;         /* F; B: backward, or gradients of inputs alone; W: of weights */
    int needs, before; /* indices of passes; -1: none */
    double seconds, start_s;
};
struct simulation {
    enum dl_schedule schedule;
    int stages, parts, batches, count;
    double forward_s[MAX_STAGES], backward_s[MAX_STAGES], weights_s[MAX_STAGES];
    struct pass passes[PASSES]; /* stage by stage, as they run there */
};
static struct simulation sim;

static int find(int place, int batch, char kind) {
    const int stage = place % sim.stages, part = place / sim.stages;
    for (int i = 0; i < sim.count; i++) {
        const struct pass *p = &sim.passes[i];
        if (p->stage == stage && p->part == part && p->batch == batch && p->kind == kind) return i;
    }
    return -1;
}

static bool splits(void) { return sim.schedule == DL_ZERO_BUBBLE; }

static double seconds_of(int stage, char kind) {
    if (kind == 'F') return sim.forward_s[stage];
    if (kind == 'W') return sim.weights_s[stage];
    return sim.backward_s[stage] - (splits() ? sim.weights_s[stage] : 0);
}

static void put(int stage, int nth, char kind) {
    struct pass *p = &sim.passes[sim.count];
    *p = (struct pass){.stage = stage, .batch = nth, .kind = kind, .before = -1};
    if (sim.parts > 1) { /* as many micro-batches as stages pass a part before the next part */
        p->part = nth / sim.stages % sim.parts;
        if (kind != 'F') p->part = sim.parts - 1 - p->part;
        p->batch = nth % sim.stages + nth / (sim.stages * sim.parts) * sim.stages;
    }
    p->seconds = seconds_of(stage, kind) / sim.parts;
    if (sim.count > 0 && sim.passes[sim.count - 1].stage == stage) p->before = sim.count - 1;
    sim.count++;
}

/* Forward passes that a stage may run before its first backward pass has to come. */
static int ahead_of(int stage) {
    const int all = sim.batches * sim.parts, later = sim.stages - stage - 1;
    if (sim.schedule == DL_GPIPE) return all;
    const int ahead = sim.parts == 1 ? later : 2 * later + (sim.parts - 1) * sim.stages;
    return ahead < all ? ahead : all;
}

static void put_all(void) {
    const int all = sim.batches * sim.parts;
    sim.count = 0;
    for (int s = 0; s < sim.stages; s++) {
        int forward = 0, backward = 0, weights = 0;
        while (forward < ahead_of(s)) put(s, forward++, 'F');
        while (backward < all) {
            if (forward < all) put(s, forward++, 'F');
            put(s, backward++, 'B');
            if (splits() && backward > s) put(s, weights++, 'W');
        }
        while (splits() && weights < all) put(s, weights++, 'W');
    }
}

static void simulate(void) {
    const int last = sim.stages * sim.parts - 1;
    put_all();
    for (int i = 0; i < sim.count; i++) {
        struct pass *p = &sim.passes[i];
        const int place = p->part * sim.stages + p->stage;
        p->needs = -1;
        if (p->kind == 'F' && place > 0) p->needs = find(place - 1, p->batch, 'F');
        if (p->kind == 'B')
            p->needs = find(place == last ? place : place + 1, p->batch, place < last ? 'B' : 'F');
        if (p->kind == 'W') p->needs = find(place, p->batch, 'B');
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < sim.count; i++) {
            struct pass *p = &sim.passes[i];
            const int edges[] = {p->needs, p->before};
            for (int e = 0; e < 2; e++) {
                if (edges[e] < 0) continue;
                const struct pass *first = &sim.passes[edges[e]];
                if (p->start_s >= first->start_s + first->seconds) continue;
                p->start_s = first->start_s + first->seconds;
                moved = true;
            }
        }
    }
}

static double end_s(void) {
    double end = 0;
    for (int i = 0; i < sim.count; i++)
        end = fmax(end, sim.passes[i].start_s + sim.passes[i].seconds);
    return end;
}

/* Micro-batches (a part counts as a share of one) whose activations a stage holds at most. */
static double held(int stage) {
    int now = 0, most = 0;
    for (int i = 0; i < sim.count; i++) {
        if (sim.passes[i].stage != stage) continue;
        if (sim.passes[i].kind == 'F') now++;
        if (sim.passes[i].kind == (splits() ? 'W' : 'B')) now--;
        if (now > most) most = now;
    }
    return (double)most / sim.parts;
}

static uint64_t seed;
static int upto(int most) { return 1 + (int)(check_random(&seed) % (uint64_t)most); }

static void random_case(bool equal) {
    static const enum dl_schedule schedules[] = {DL_GPIPE, DL_1F1B, DL_INTERLEAVED, DL_ZERO_BUBBLE};
    sim.schedule = schedules[upto(4) - 1];
    sim.stages = 1 + upto(MAX_STAGES - 1);
    sim.parts = sim.schedule == DL_INTERLEAVED ? 1 + upto(MAX_PARTS - 1) : 1;
    sim.batches = sim.parts > 1 ? sim.stages * upto(3) : upto(24);
    for (int s = 0; s < sim.stages; s++) {
        sim.forward_s[s] = s > 0 && equal ? sim.forward_s[0] : 0.5 + check_uniform(&seed);
        sim.backward_s[s] = s > 0 && equal ? sim.backward_s[0] : 1.0 + 2.0 * check_uniform(&seed);
        sim.weights_s[s] =
            s > 0 && equal ? sim.weights_s[0] : sim.backward_s[s] * check_uniform(&seed);
    }
    simulate();
}

static void every_pass(void **state) {
    seed = 2019;
    for (int c = 0; c < CASES; c++) {
        random_case(false);
        struct dl_arena arena = {0};
        struct dl_pipeline_passes all;
        const struct dl_pipeline_order order = {.schedule = sim.schedule,
                                                .stages = sim.stages,
                                                .parts = sim.parts,
                                                .micro_batches = sim.batches,
                                                .forward_s = sim.forward_s,
                                                .backward_s = sim.backward_s,
                                                .weights_s = sim.weights_s};
        assert_int_equal(dl_pipeline_list(&order, INT_MAX, NULL, &arena, &all, NULL), DL_OK);
        assert_int_equal(all.count, sim.count);
        for (int i = 0; i < all.count; i++) {
            const struct pass *p = &sim.passes[i];
            assert_int_equal(all.list[i].stage, p->stage);
            assert_int_equal(all.list[i].part, p->part);
            assert_int_equal(all.list[i].micro_batch, p->batch);
            assert_int_equal("FBW"[all.list[i].kind], p -> kind);
            check_close(all.list[i].start_s, p->start_s, 1e-12);
            check_close(all.list[i].end_s, p->start_s + p->seconds, 1e-12);
        }
        dl_arena_free(&arena);
    }
}

/* Of ZB-H1 (p - 1) (F + B - W), as in table 2 of its paper, where W is at most F and B. */
static void equal_stages_take_the_closed_form(void **state) {
    seed = 2021;
    for (int c = 0; c < CASES; c++) {
        random_case(true);
        const double others = sim.stages - 1.0, f_s = sim.forward_s[0], w_s = sim.weights_s[0],
                     step_s = f_s + sim.backward_s[0];
        if (splits() && (sim.batches < sim.stages || w_s > fmin(f_s, step_s - f_s - w_s))) continue;
        const double bubble_s =
            splits() ? others * (step_s - 2 * w_s) : others / sim.parts * step_s;
        check_close(end_s(), sim.batches * step_s + bubble_s, 1e-12);
    }
}

static void activations_that_a_stage_holds(void **state) {
    seed = 2022;
    for (int c = 0; c < CASES; c++) {
        random_case(false);
        for (int s = 0; s < sim.stages; s++) {
            check_close(dl_schedules[sim.schedule]->held(s, sim.stages, sim.batches, sim.parts),
                        held(s), 1e-12);
        }
    }
}

/* Seconds of a stage, all its parts, for the first micro-batch. */
static double first_micro_batch_s(const struct dl_prediction *p, int stage,
                                  enum dl_pass_kind kind) {
    double sum_s = 0;
    for (int i = 0; i < p->course.task_count; i++) {
        const struct dl_term *t = &p->course.tasks[i];
        if (t->pass != NULL && strcmp(t->lane, "compute") == 0 && t->stage == stage &&
            t->pass->kind == kind && t->pass->micro_batch == 0)
            sum_s += t->value;
    }
    return sum_s;
}

/* A network cut into stages that differ: the prediction against the simulation of its own stage
 * times, and the bound of the search below it. */
static void predicted_plans(void **state) {
    seed = 2023;
    for (int c = 0; c < CASES; c++) {
        struct dl_fake f;
        struct dl_prediction p;
        double features[17];
        fake_make(&f);
        for (int i = 0; i < 17; i++) features[i] = 64 * upto(32);
        fake_layers(&f, 16, features);
        static const enum dl_schedule schedules[] = {DL_GPIPE, DL_1F1B, DL_INTERLEAVED};
        f.plan.strategy = dl_strategy_find("pipeline");
        f.plan.nodes = 1;
        f.plan.devices_per_node = f.plan.pp = 1 + upto(3);
        f.plan.schedule = schedules[upto(3) - 1];
        f.plan.virtual_stages = f.plan.schedule == DL_INTERLEAVED ? 2 : 0;
        f.plan.micro_batch_samples = 16;
        f.plan.batch_per_device_samples = 16 * upto(6);
        assert_int_equal(fake_predict(&f, &p), DL_OK);
        sim.schedule = f.plan.schedule;
        sim.stages = (int)f.plan.pp;
        sim.parts = f.plan.schedule == DL_INTERLEAVED ? 2 : 1;
        sim.batches = (int)(f.plan.batch_per_device_samples * (double)f.plan.pp / 16);
        double most_s = 0;
        for (int s = 0; s < sim.stages; s++) {
            sim.forward_s[s] = first_micro_batch_s(&p, s, DL_PASS_FORWARD);
            sim.backward_s[s] = first_micro_batch_s(&p, s, DL_PASS_BACKWARD);
            most_s = fmax(most_s, sim.forward_s[s] + sim.backward_s[s]);
        }
        simulate();
        const double model_s = sim.batches * most_s + p.bubble_s;
        check_close(model_s, end_s(), 1e-9);
        const struct dl_pipeline_order order = {.schedule = sim.schedule,
                                                .stages = sim.stages,
                                                .parts = sim.parts,
                                                .forward_s = sim.forward_s,
                                                .backward_s = sim.backward_s,
                                                .weights_s = sim.weights_s};
        assert_true(dl_pipeline_least_s(&order, sim.batches) <= end_s() * (1 + 1e-12));
        dl_arena_free(&test_arena);
    }
}

/* A transformer's schedule, drawn from its stage times and messages, ends when the prediction says
 * that the last backward pass does. */
static void transformers_end_as_drawn(void **state) {
    seed = 2025;
    static struct dl_override overrides[] = {{.key = "layers", .value = "13"},
                                             {.key = "seq", .value = "512"},
                                             {.key = "heads", .value = "16"},
                                             {.key = "vocab", .value = "51200"},
                                             {.key = "tied", .value = "0"}};
    for (int c = 0; c < 40; c++) {
        static const enum dl_schedule schedules[] = {DL_GPIPE, DL_1F1B, DL_ZERO_BUBBLE};
        const struct dl_predict_options options = {.terms = true};
        struct gpt g;
        struct dl_prediction p;
        gpt_make(&g, overrides, 5);
        struct dl_plan *plan = &g.f.plan;
        plan->strategy = dl_strategy_find("3d");
        plan->nodes = 1;
        plan->devices_per_node = plan->pp = 1 + upto(3);
        plan->schedule = schedules[upto(3) - 1];
        plan->micro_batch_samples = upto(4);
        plan->global_batch_samples = plan->micro_batch_samples * upto(30);
        plan->batch_per_device_samples = 0;
        assert_int_equal(
            dl_predict(&(struct dl_predict_request){&g.f.system, &g.workload, &g.f.framework, plan,
                                                    &options, &test_arena},
                       &p, NULL),
            DL_OK);
        double end_s = 0, critical_s = 0;
        for (int i = 0; i < p.course.task_count; i++) {
            const struct dl_term *t = &p.course.tasks[i];
            if (t->pass == NULL) continue;
            end_s = fmax(end_s, t->start_s + t->value);
            /* of a message one of its two sides */
            if (t->critical && strncmp(t->lane, "send", 4) != 0) critical_s += t->value;
        }
        check_close(critical_s, end_s, 1e-9);
        check_close(end_s + p.update_s + g.f.framework.host.iteration_s + p.straggler_s +
                        p.exposed_input_s,
                    p.iteration_s, 1e-9);
        for (int i = 0; i < p.course.memory_count; i++) { /* what passes keep, they free */
            const struct dl_memory_curve *curve = &p.course.memory[i];
            check_close(curve->points[curve->count - 1].bytes, curve->points[0].bytes, 1e-9);
        }
        dl_arena_free(&test_arena);
    }
}

static void check_same(const struct dl_pipeline_pass *a, const struct dl_pipeline_pass *b) {
    assert_int_equal(a->stage, b->stage);
    assert_int_equal(a->part, b->part);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->micro_batch, b->micro_batch);
    check_close(a->start_s, b->start_s, 1e-9);
    check_close(a->end_s, b->end_s, 1e-9);
    assert_true(isnan(a->sent_s) == isnan(b->sent_s));
    if (!isnan(a->sent_s)) check_close(a->received_s, b->received_s, 1e-9);
}

/* What is left of the periods of a pipeline is as in the list of all passes, from both ends. The
 * critical path has no gaps. */
static bool check_shortened(const struct dl_pipeline_order *order,
                            const struct dl_pipeline_passes *all, struct dl_arena *arena) {
    struct dl_pipeline_passes few;
    double critical_s = 0;
    assert_int_equal(dl_pipeline_list(order, 0, NULL, arena, &few, NULL), DL_OK);
    check_close(few.end_s, all->end_s, 1e-9);
    const int own = few.count / few.stages, every = all->count / all->stages;
    assert_int_equal(every - own, few.left_out * every / order->micro_batches);
    for (int i = 0; i < few.count; i++) {
        const struct dl_pipeline_pass *x = &few.list[i];
        const bool later = few.left_out > 0 && x->start_s >= few.left_to_s;
        check_same(x, &all->list[x->stage * every + i % own + (later ? every - own : 0)]);
        assert_true(later || few.left_out == 0 || x->start_s < few.left_from_s);
    }
    for (int i = 0; i < all->count; i++) {
        const struct dl_pipeline_pass *x = &all->list[i];
        if (x->critical) critical_s += x->end_s - x->start_s;
        if (x->message_critical) critical_s += x->received_s - x->sent_s;
    }
    check_close(critical_s, all->end_s, 1e-9);
    return few.left_out > 0;
}

/* F-PIPE-PERIOD: many micro-batches against the simulation of each, with messages that stages wait
 * for or that have links of their own: each stage ends at the same time, and often periods
 * are left out. F-SEARCH-BOUND: never above it, and close to it. */
static void many_micro_batches(void **state) {
    double tightness = 0, shortened = 0;
    seed = 2024;
    for (int c = 0; c < CASES; c++) {
        random_case(c % 4 == 0);
        struct dl_arena arena = {0};
        struct dl_pipeline_passes all;
        double ends_s[MAX_STAGES];
        const struct dl_pipeline_order order = {.schedule = sim.schedule,
                                                .stages = sim.stages,
                                                .parts = sim.parts,
                                                .micro_batches = sim.stages * upto(40),
                                                .forward_s = sim.forward_s,
                                                .backward_s = sim.backward_s,
                                                .weights_s = sim.weights_s,
                                                .message_s = c % 3 == 0 ? 0 : check_uniform(&seed),
                                                .blocks = c % 3 == 1};
        assert_int_equal(dl_pipeline_list(&order, INT_MAX, NULL, &arena, &all, NULL), DL_OK);
        const double most_s = all.end_s;
        if (check_shortened(&order, &all, &arena)) shortened += 1.0 / CASES;
        check_close(dl_pipeline_span(&order, order.micro_batches, &arena, ends_s), most_s, 1e-9);
        for (int i = 0; i < sim.stages; i++)
            check_close(ends_s[i], dl_pipeline_stage_end_s(&all, i), 1e-9);
        const double least_s = dl_pipeline_least_s(&order, order.micro_batches);
        double all_s = 0;
        for (int i = 0; i < sim.stages; i++) all_s += sim.forward_s[i] + sim.backward_s[i];
        assert_true(least_s <= most_s * (1 + 1e-12));
        assert_true(splits() ||
                    dl_pipeline_least_of_any_s(all_s, sim.stages, sim.parts, order.micro_batches) <=
                        least_s * (1 + 1e-12));
        tightness += least_s / most_s / CASES;
        dl_arena_free(&arena);
    }
    assert_true(tightness > 0.9);
    assert_true(shortened > 0.4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_pass),
                                       cmocka_unit_test(equal_stages_take_the_closed_form),
                                       cmocka_unit_test(activations_that_a_stage_holds),
                                       cmocka_unit_test(predicted_plans),
                                       cmocka_unit_test(transformers_end_as_drawn),
                                       cmocka_unit_test(many_micro_batches)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}

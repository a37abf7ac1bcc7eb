/* recorded_outcome.h - for tests: a prediction in three fields of a recorded case (recorded.h), so
 * that many fit into one. Include after any_case.h.
 */
#ifndef TESTS_RECORDED_OUTCOME_H
#define TESTS_RECORDED_OUTCOME_H

#include "tests/recorded_prediction.h"

/* A machine, a network for it, and one for frameworks that are made for language models. */
struct place {
    const char *system, *workload;
    double batch_samples;
};

static inline const struct dl_system *system_named(const char *name) {
    for (int i = 0; i < all.system_count; i++)
        if (strcmp(all.systems[i]->name, name) == 0) return all.systems[i];
    fail_msg("no system %s", name);
    return NULL;
}
static inline const struct dl_framework *framework_named(const char *name) {
    for (int i = 0; i < all.framework_count; i++)
        if (strcmp(all.frameworks[i]->name, name) == 0) return all.frameworks[i];
    fail_msg("no framework %s", name);
    return NULL;
}
static inline const struct dl_workload *workload_named(const char *name) {
    for (int i = 0; i < all.workload_count; i++)
        if (strcmp(all.workloads[i]->name, name) == 0) return all.workloads[i];
    fail_msg("no workload %s", name);
    return NULL;
}

/* All of a prediction in three fields, or the words of its refusal. */
static inline void record_outcome(const char *name, const struct dl_system *system,
                                  const struct dl_workload *workload,
                                  const struct dl_framework *framework,
                                  const struct dl_plan *plan) {
    static const struct dl_predict_options with_terms = {.terms = true};
    struct dl_err err = {0};
    struct dl_arena arena = {0};
    struct dl_plan used = *plan;
    struct dl_prediction p;
    struct recorded_sum sum = {0};
    if (dl_plan_complete(system, workload, framework, &used, &err) != DL_OK ||
        dl_predict(system, workload, framework, &used, &with_terms, &arena, &p, &err) != DL_OK) {
        recorded_error(name, &err);
        dl_arena_free(&arena);
        return;
    }
    const struct dl_memory *m = &p.memory;
    const double values[] = {p.forward_s,
                             p.backward_s,
                             p.update_s,
                             p.comm_s,
                             p.exposed_comm_s,
                             p.input_s,
                             p.exposed_input_s,
                             p.bubble_s,
                             p.overhead_s,
                             p.straggler_s,
                             p.comm_bytes,
                             p.comm_messages,
                             p.iteration_low_s,
                             p.iteration_high_s,
                             p.scaling_efficiency,
                             m->weights_bytes,
                             m->gradients_bytes,
                             m->optimizer_bytes,
                             m->activations_bytes,
                             m->workspace_bytes,
                             m->buffers_bytes,
                             m->context_bytes,
                             m->capacity_bytes,
                             p.max_batch_samples,
                             p.max_micro_batch_samples};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) recorded_add(&sum, values[i]);
    uint32_t words = recorded_terms_hash(&p, &sum);
    for (int i = 0; i < p.warning_count; i++) words = recorded_hash(words, p.warnings[i]);
    words = recorded_hash(words, dl_bottleneck_names[p.bottleneck]);
    recorded_number(name, p.iteration_s);
    recorded_sum_of(name, &sum);
    recorded_text_hash(name, words, p.warning_count > 0 ? "(with warnings)" : "(words of terms)");
    dl_arena_free(&arena);
}

#endif

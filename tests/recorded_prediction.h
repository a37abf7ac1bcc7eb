/* recorded_prediction.h - for tests: all of a prediction as fields of a recorded case (recorded.h).
 */
#ifndef TESTS_RECORDED_PREDICTION_H
#define TESTS_RECORDED_PREDICTION_H

#include "model/engine/predict.h"
#include "tests/recorded.h"

enum { RECORDED_GROUPS = 7 };

static const char *const recorded_groups[RECORDED_GROUPS] = {
    "forward", "backward", "update", "communication", "input", "overhead", "memory"};
static const char *const recorded_group_names[RECORDED_GROUPS] = {
    "terms of forward", "terms of backward", "terms of update", "terms of communication",
    "terms of input",   "terms of overhead", "terms of memory"};

static inline uint32_t recorded_term_words(uint32_t words, const struct dl_term *term) {
    const char *const texts[] = {term->name,   term->group, term->formula, term->inputs,
                                 term->origin, term->limit, term->lane};
    for (int i = 0; i < 7; i++) words = recorded_hash(words, texts[i]);
    return words;
}

/* Adds all values of the terms to `sum`; a hash of their words. */
static inline uint32_t recorded_terms_hash(const struct dl_prediction *p,
                                           struct recorded_sum *sum) {
    uint32_t words = 0;
    for (int t = 0; t < p->term_count; t++) {
        recorded_add(sum, p->terms[t].value), recorded_add(sum, p->terms[t].start_s);
        recorded_add(sum, p->terms[t].sigma_log);
        words = recorded_term_words(words, &p->terms[t]);
    }
    return words;
}

static inline void record_terms(const struct dl_prediction *p) {
    struct recorded_sum sums[RECORDED_GROUPS] = {{0}};
    uint32_t words = 0;
    for (int t = 0; t < p->term_count; t++) {
        const struct dl_term *term = &p->terms[t];
        int group = 0;
        while (group < RECORDED_GROUPS - 1 && strcmp(recorded_groups[group], term->group) != 0)
            group++;
        recorded_add(&sums[group], term->value);
        recorded_add(&sums[group], term->start_s);
        recorded_add(&sums[group], term->sigma_log);
        words = recorded_term_words(words, term);
    }
    for (int g = 0; g < RECORDED_GROUPS; g++) recorded_sum_of(recorded_group_names[g], &sums[g]);
    recorded_text_hash("words of the terms", words, "(labels, formulas, inputs, origins)");
    recorded_number("terms", p->term_count);
}

static inline void record_memory(const struct dl_prediction *p) {
    const struct dl_memory *m = &p->memory;
    struct recorded_sum stages = {0};
    recorded_number("weights_bytes", m->weights_bytes);
    recorded_number("gradients_bytes", m->gradients_bytes);
    recorded_number("optimizer_bytes", m->optimizer_bytes);
    recorded_number("activations_bytes", m->activations_bytes);
    recorded_number("workspace_bytes", m->workspace_bytes);
    recorded_number("buffers_bytes", m->buffers_bytes);
    recorded_number("context_bytes", m->context_bytes);
    recorded_number("capacity_bytes", m->capacity_bytes);
    for (int i = 0; i < p->stage_count; i++) {
        recorded_add(&stages, p->stages[i].activations_bytes);
        recorded_add(&stages, p->stages[i].total_bytes);
        if (p->stage_times != NULL) {
            recorded_add(&stages, p->stage_times[i].forward_s);
            recorded_add(&stages, p->stage_times[i].backward_s);
        }
    }
    recorded_sum_of("stages", &stages);
    recorded_number("max_batch_samples", p->max_batch_samples);
    recorded_number("max_micro_batch_samples", p->max_micro_batch_samples);
}

static inline void record_words(const struct dl_prediction *p) {
    uint32_t warnings = 0;
    for (int i = 0; i < p->warning_count; i++) warnings = recorded_hash(warnings, p->warnings[i]);
    recorded_text_hash("warnings", warnings, p->warning_count > 0 ? p->warnings[0] : NULL);
    recorded_text("bottleneck", dl_bottleneck_names[p->bottleneck]);
    recorded_text("algorithm", p->comm_algorithm);
    recorded_text("protocol", p->comm_protocol);
}

static inline void record_prediction(const struct dl_prediction *p) {
    struct recorded_sum kept = {0};
    recorded_result("iteration_s", p->iteration_s);
    recorded_result("memory.total_bytes", p->memory.total_bytes);
    recorded_number("iteration_low_s", p->iteration_low_s);
    recorded_number("iteration_high_s", p->iteration_high_s);
    recorded_number("model_sigma_log", p->model_sigma_log);
    recorded_number("shared_sigma_log", p->shared_sigma_log);
    recorded_number("throughput_samples_per_s", p->throughput_samples_per_s);
    recorded_number("scaling_efficiency", p->scaling_efficiency);
    recorded_number("epoch_s", p->epoch_s);
    recorded_number("forward_s", p->forward_s);
    recorded_number("backward_s", p->backward_s);
    recorded_number("update_s", p->update_s);
    recorded_number("comm_s", p->comm_s);
    recorded_number("exposed_comm_s", p->exposed_comm_s);
    recorded_number("input_s", p->input_s);
    recorded_number("exposed_input_s", p->exposed_input_s);
    recorded_number("bubble_s", p->bubble_s);
    recorded_number("overhead_s", p->overhead_s);
    recorded_number("straggler_s", p->straggler_s);
    for (int i = 0; i < 3; i++) recorded_add(&kept, p->by_limit_s[i]);
    recorded_add(&kept, p->sigma_log);
    recorded_add(&kept, p->plans_sigma_log);
    recorded_sum_of("by_limit_s, sigma_log", &kept);
    recorded_number("comm_bytes", p->comm_bytes);
    recorded_number("comm_messages", p->comm_messages);
    recorded_number("bottleneck_share", p->bottleneck_share);
    recorded_number("fits, extrapolated", 1 + 2 * p->fits + 4 * p->extrapolated);
    record_memory(p);
    record_words(p);
    record_terms(p);
}

#endif

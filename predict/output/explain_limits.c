/* explain_limits.c - see the header. */
#include "predict/output/explain_limits.h"

#include <math.h>
#include <string.h>

#include "predict/output/explain_table.h"
#include "predict/manual/wrap.h"

#include "model/machine/device.h"

struct layer {
    double time_s[DL_EXPLAIN_LIMITS];
};

static int limit_of(const struct dl_term *term) {
    if (strcmp(term->limit, "memory-bandwidth") == 0) return DL_EXPLAIN_MEMORY;
    return strcmp(term->limit, "latency") == 0 ? DL_EXPLAIN_LATENCY : DL_EXPLAIN_ARITHMETIC;
}

static bool is_pass(const struct dl_term *term, const char *group) {
    return term->limit != NULL && strcmp(term->group, group) == 0;
}

/* Seconds of one pass of the layer that `term` belongs to; 0: it has none. The name is the layer's
 * and the pass's. */
static double find_s(const struct dl_prediction *p, const struct dl_term *term, const char *group,
                     const struct dl_term **found) {
    const size_t length = strlen(term->name) - strlen(term->group);
    for (int i = 0; i < p->term_count; i++) {
        const struct dl_term *other = &p->terms[i];
        if (!is_pass(other, group) || strncmp(other->name, term->name, length) != 0 ||
            strcmp(other->name + length, group) != 0)
            continue;
        if (found != NULL) *found = other;
        return other->value;
    }
    return 0;
}

static int most_of(const struct layer *layer) {
    int most = 0;
    for (int i = 1; i < DL_EXPLAIN_LIMITS; i++) {
        if (layer->time_s[i] > layer->time_s[most]) most = i;
    }
    return most;
}

/* Counts the layers; `base` is the same plan in fp32 or NULL, whose times of the same layers are
 * added to base_s. */
static void count(const struct dl_prediction *p, const struct dl_prediction *base,
                  struct dl_explain_limits *out, double base_s[DL_EXPLAIN_LIMITS]) {
    for (int i = 0; i < p->term_count; i++) {
        const struct dl_term *forward = &p->terms[i], *backward = NULL;
        if (!is_pass(forward, "forward")) continue;
        struct layer layer = {{0}};
        layer.time_s[limit_of(forward)] += forward->value;
        find_s(p, forward, "backward", &backward);
        if (backward != NULL) layer.time_s[limit_of(backward)] += backward->value;
        const int most = most_of(&layer);
        out->layers++;
        out->count[most]++;
        for (int l = 0; l < DL_EXPLAIN_LIMITS; l++) out->time_s[most] += layer.time_s[l];
        if (base != NULL)
            base_s[most] +=
                find_s(base, forward, "forward", NULL) + find_s(base, forward, "backward", NULL);
        if (strcmp(forward->limit, "matrix-units") == 0) out->arithmetic = "matrix units";
    }
}

/* The same plan in fp32; false: the device has no such rate, or the precision is that. */
static bool predict_fp32(const struct dl_inputs *inputs, const struct dl_prediction_row *row,
                         struct dl_arena *arena, struct dl_prediction *out) {
    struct dl_inputs same = *inputs;
    struct dl_plan plan;
    struct dl_err err = {.code = DL_OK};
    if (row->plan->precision == DL_FP32) return false;
    same.max_batch = false;
    same.plan.batch_per_device_samples = row->plan->batch_per_device_samples;
    same.plan.precision = DL_FP32;
    return dl_inputs_predict(
               &(struct dl_inputs_case){&same, row->framework, row->plan->nodes, true}, arena,
               &plan, out, &err) == DL_OK;
}

void dl_explain_limits(const struct dl_inputs *inputs, const struct dl_prediction_row *row,
                       struct dl_arena *arena, struct dl_explain_limits *out) {
    const struct dl_device *device = row->system->device;
    struct dl_prediction base;
    double base_s[DL_EXPLAIN_LIMITS] = {0};
    *out = (struct dl_explain_limits){.arithmetic = "arithmetic",
                                      .gain_ratio = NAN,
                                      .peak_ratio = NAN,
                                      .part_ratio = {NAN, NAN, NAN}};
    const bool compared = predict_fp32(inputs, row, arena, &base);
    count(row->prediction, compared ? &base : NULL, out, base_s);
    if (strcmp(out->arithmetic, "matrix units") == 0 && device->vendor != NULL &&
        strcmp(device->vendor, "nvidia") == 0) {
        out->arithmetic = "tensor cores";
    }
    if (!compared || out->layers == 0) return;
    out->precision = dl_precision_names[row->plan->precision];
    out->gain_ratio = base.iteration_s / row->prediction->iteration_s;
    out->peak_ratio =
        dl_device_peak(device, row->plan->precision) / dl_device_peak(device, DL_FP32);
    for (int l = 0; l < DL_EXPLAIN_LIMITS; l++) {
        if (out->count[l] > 0 && base_s[l] > 0) out->part_ratio[l] = base_s[l] / out->time_s[l];
    }
}

static double total_s(const struct dl_explain_limits *limits) {
    double sum = 0;
    for (int l = 0; l < DL_EXPLAIN_LIMITS; l++) sum += limits->time_s[l];
    return sum;
}

static const char *gain_text(struct dl_arena *arena, double gain) {
    return dl_known(gain) ? dl_arena_printf(arena, " gain %.1fx", gain) : ": none";
}

const char *dl_explain_limits_text(struct dl_arena *arena, const struct dl_explain_limits *limits) {
    if (limits->layers == 0) return "";
    const double share = 100 / total_s(limits);
    struct dl_text t = {.arena = arena};
    dl_text_wrap(&t,
                 dl_arena_printf(arena,
                                 "%d of %d layers, %.0f %% of their time, are limited by memory "
                                 "bandwidth, %d (%.0f %%) by %s, %d (%.0f %%) by kernel latency",
                                 limits->count[DL_EXPLAIN_MEMORY], limits->layers,
                                 share * limits->time_s[DL_EXPLAIN_MEMORY],
                                 limits->count[DL_EXPLAIN_ARITHMETIC],
                                 share * limits->time_s[DL_EXPLAIN_ARITHMETIC], limits->arithmetic,
                                 limits->count[DL_EXPLAIN_LATENCY],
                                 share * limits->time_s[DL_EXPLAIN_LATENCY]),
                 0, DL_EXPLAIN_WIDTH);
    if (limits->precision != NULL) {
        dl_text_wrap(&t,
                     dl_arena_printf(
                         arena,
                         "%s is %.1fx as fast as fp32 (peak rates: %.1fx); layers limited by %s%s, "
                         "layers limited by memory bandwidth%s",
                         limits->precision, limits->gain_ratio, limits->peak_ratio,
                         limits->arithmetic,
                         gain_text(arena, limits->part_ratio[DL_EXPLAIN_ARITHMETIC]),
                         gain_text(arena, limits->part_ratio[DL_EXPLAIN_MEMORY])),
                     0, DL_EXPLAIN_WIDTH);
    }
    return dl_text_string(&t);
}

void dl_explain_limits_json(struct dl_json_writer *w, const struct dl_explain_limits *limits) {
    static const char *const names[] = {"arithmetic", "memory_bandwidth", "latency"};
    if (limits->layers == 0) return;
    const double sum_s = total_s(limits);
    dl_jw_object(w, "limits");
    dl_jw_integer(w, "layers", limits->layers);
    dl_jw_string(w, "arithmetic_on", limits->arithmetic);
    for (int l = 0; l < DL_EXPLAIN_LIMITS; l++) {
        dl_jw_object(w, names[l]);
        dl_jw_integer(w, "layers", limits->count[l]);
        dl_jw_number(w, "value_s", limits->time_s[l]);
        dl_jw_number(w, "share", limits->time_s[l] / sum_s);
        if (limits->precision != NULL) dl_jw_number(w, "speedup_over_fp32", limits->part_ratio[l]);
        dl_jw_end(w);
    }
    if (limits->precision != NULL) {
        dl_jw_number(w, "speedup_over_fp32", limits->gain_ratio);
        dl_jw_number(w, "peak_ratio_over_fp32", limits->peak_ratio);
    }
    dl_jw_end(w);
}

/* rows.c - figures of a predicted plan: throughput, cost and length of a run, stages. */
#include "predict/output/rows.h"

#include <math.h>
#include <string.h>

#include "model/statistics/stats.h"
#include "model/core/figure.h"
#include "model/core/text.h"
#include "model/engine/interval.h"
#include "model/engine/pipe.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/throughput.h"

enum { GIB = 1 << 30 };
struct dl_throughput dl_rows_throughput(const struct dl_prediction_row *row) {
    const bool one_kind = row->prediction->group_count == 0;
    return dl_throughput_of(one_kind ? row->system->device : NULL, row->workload, row->plan,
                            row->prediction);
}

struct dl_run_total dl_rows_total(const struct dl_prediction_row *row) {
    const struct dl_run_length none = {0, 0};
    return dl_run_total_of(row->workload, row->plan, row->prediction,
                           row->length != NULL ? row->length : &none);
}

struct dl_power dl_rows_power(const struct dl_prediction_row *row) {
    return dl_power_of(row->system, row->plan, row->prediction, row->rates);
}

struct dl_spending dl_rows_spending(const struct dl_prediction_row *row, double time_s) {
    const struct dl_power power = dl_rows_power(row);
    const bool one_kind = row->prediction->group_count == 0;
    struct dl_spending out = dl_spending_of(row->system, row->plan, &power, row->rates, time_s);
    if (!one_kind && (row->rates == NULL || !(row->rates->price_per_node_hour > 0))) out.cost = NAN;
    return out;
}

int64_t dl_rows_zero(const struct dl_plan *plan) {
    return plan->strategy->shard > 0 ? plan->strategy->shard : plan->shard;
}

bool dl_rows_is_chosen(const struct dl_plan *plan) {
    return plan->tp * plan->pp * plan->sp * dl_plan_expert_ranks(plan) > 1 ||
           plan->micro_batch_samples > 0 || plan->recompute != DL_RECOMPUTE_NONE;
}

const char *dl_rows_plan_words(const struct dl_plan *plan, struct dl_arena *arena) {
    struct dl_text text = {.arena = arena};
    const struct {
        const char *name;
        int64_t ranks;
    } axes[] = {
        {"tp", plan->tp}, {"pp", plan->pp}, {"cp", plan->sp}, {"ep", dl_plan_expert_ranks(plan)}};
    if (!dl_rows_is_chosen(plan)) return NULL;
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
        if (axes[i].ranks > 1)
            dl_text_printf(&text, "%s%lld ", axes[i].name, (long long)axes[i].ranks);
    }
    const struct dl_schedule_row *schedule = dl_schedules[plan->schedule];
    if (plan->pp > 1 && schedule->most_parts > 1 && schedule->most_parts == schedule->least_parts)
        dl_text_printf(&text, "%s ", dl_schedule_names[plan->schedule]);
    else if (plan->pp > 1 && dl_pipe_virtual_stages(plan) > 1)
        dl_text_printf(&text, "v%.0f ", dl_pipe_virtual_stages(plan));
    if (plan->micro_batch_samples > 0) dl_text_printf(&text, "mb%g ", plan->micro_batch_samples);
    if (plan->recompute != DL_RECOMPUTE_NONE)
        dl_text_printf(&text, "%s ", dl_plan_recompute_text(plan, arena));
    if (dl_rows_zero(plan) > 0) dl_text_printf(&text, "zero%lld ", (long long)dl_rows_zero(plan));
    if (text.length > 0) text.bytes[text.length - 1] = 0; /* the last blank */
    return dl_text_string(&text);
}

const char *dl_rows_plan_text(const struct dl_prediction_row *row, struct dl_arena *arena) {
    if (!dl_rows_is_chosen(row->plan)) return "";
    return dl_arena_printf(arena, "Plan of %s on %lld nodes: dp%lld %s\n", row->framework->name,
                           (long long)row->plan->nodes, (long long)row->plan->dp,
                           dl_rows_plan_words(row->plan, arena));
}

const char *dl_rows_length_text(const struct dl_prediction_row *row, struct dl_arena *arena) {
    const struct dl_prediction *p = row->prediction;
    const struct dl_run_total total = dl_rows_total(row);
    if (!dl_known(total.time_s)) return "";
    const double low = p->iteration_low_s / p->iteration_s,
                 high = p->iteration_high_s / p->iteration_s;
    const bool tokens = row->length->tokens > 0, gpu = row->system->device->kind == DL_DEVICE_GPU;
    const double count = tokens ? row->length->tokens : row->length->epoch_count;
    return dl_arena_printf(
        arena,
        "%s %s with %s: %s (80 %% interval %s)%s, %s iterations, %s %s-hours (excluding startup, "
        "evaluation, and checkpoints).\n",
        dl_count_text(arena, count),
        tokens       ? "tokens"
        : count == 1 ? "epoch"
                     : "epochs",
        row->framework->name, dl_duration_text(arena, total.time_s),
        dl_duration_range(arena, low * total.time_s, high * total.time_s),
        !(p->first_epoch_iteration_s > 1.01 * p->iteration_s)
            ? ""
            : dl_arena_printf(arena, ", the first epoch %s",
                              dl_duration_text(arena, total.first_epoch_s)),
        dl_whole_text(arena, total.iteration_count),
        dl_figure_text(arena, total.device_time_s / 3600, 4), gpu ? "GPU" : "device");
}

/* The fullest and the emptiest pipeline stage, or all of a few. */
static const char *stages_list(const struct dl_prediction *p, struct dl_arena *arena) {
    enum { SHOWN = 4 };
    const double capacity = p->stages[0].capacity_bytes;
    struct dl_text text = {.arena = arena};
    double most = 0, least = INFINITY;
    for (int i = 0; i < p->stage_count; i++) {
        const double total = p->stages[i].total_bytes;
        most = fmax(most, total), least = fmin(least, total);
        if (p->stage_count <= SHOWN)
            dl_text_printf(&text, "%s%.3g", i > 0 ? ", " : "", total / GIB);
    }
    if (p->stage_count > SHOWN) dl_text_printf(&text, "%.3g to %.3g", least / GIB, most / GIB);
    if (most <= capacity)
        dl_text_printf(&text, " GiB (%.0f %% free in the fullest)", 100 * (1 - most / capacity));
    else
        dl_text_add(&text, " GiB (the fullest does not fit)");
    return dl_text_string(&text);
}

const char *dl_rows_stages_text(const struct dl_prediction *p, struct dl_arena *arena) {
    const double capacity = p->stage_count > 0 ? p->stages[0].capacity_bytes : NAN;
    struct dl_text text = {.arena = arena};
    if (!dl_known(capacity)) return "";
    if (p->stage_count > 1)
        dl_text_printf(&text, "Memory per pipeline stage (limit %.4g GiB): %s. ", capacity / GIB,
                       stages_list(p, arena));
    if (p->max_micro_batch_samples >= 1)
        dl_text_printf(&text, "The largest micro-batch that fits is %.0f sample%s.",
                       p->max_micro_batch_samples, p->max_micro_batch_samples == 1 ? "" : "s");
    else if (dl_known(p->max_micro_batch_samples))
        dl_text_add(&text, "Not even a micro-batch of one sample fits.");
    if (text.length == 0) return "";
    dl_text_add(&text, "\n");
    return dl_text_string(&text);
}

double dl_terms_least_shown_s(const struct dl_prediction *p, size_t shown, struct dl_arena *arena) {
    double *times_s = dl_arena_alloc(arena, (size_t)p->term_count + 1, sizeof *times_s);
    size_t n = 0;
    for (int i = 0; i < p->term_count; i++) {
        if (strcmp(p->terms[i].group, "memory") != 0 && dl_known(p->terms[i].value))
            times_s[n++] = p->terms[i].value;
    }
    if (n <= shown) return -INFINITY;
    dl_sort(times_s, n);
    return times_s[n - shown];
}

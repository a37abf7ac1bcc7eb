/* rows.c - figures of a predicted plan: throughput, cost and length of a run, stages. */
#include "predict/output/rows.h"

#include <math.h>
#include <string.h>

#include "model/statistics/stats.h"
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
    if (plan->pp > 1 && dl_pipe_virtual_stages(plan) > 1)
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

/* "54.1 days", "6.2 hours". */
static const char *days_text(struct dl_arena *arena, double time_s) {
    return time_s < 172800 ? dl_arena_printf(arena, "%.3g hours", time_s / 3600)
                           : dl_arena_printf(arena, "%.4g days", time_s / 86400);
}

const char *dl_rows_length_text(const struct dl_prediction_row *row, struct dl_arena *arena) {
    const struct dl_prediction *p = row->prediction;
    const struct dl_run_total total = dl_rows_total(row);
    if (!dl_known(total.time_s)) return "";
    const double low = p->iteration_low_s / p->iteration_s,
                 high = p->iteration_high_s / p->iteration_s;
    const bool tokens = row->length->tokens > 0, gpu = row->system->device->kind == DL_DEVICE_GPU;
    return dl_arena_printf(
        arena,
        "%.4g %s on %s: %.0f iterations, %s (with 80 %% probability %s to %s), %.4g %s-hours of "
        "training alone.\n",
        tokens ? row->length->tokens : row->length->epoch_count, tokens ? "tokens" : "epochs",
        row->framework->name, total.iteration_count, days_text(arena, total.time_s),
        days_text(arena, low * total.time_s), days_text(arena, high * total.time_s),
        total.device_time_s / 3600, gpu ? "GPU" : "device");
}

const char *dl_rows_stages_text(const struct dl_prediction *p, struct dl_arena *arena) {
    enum { SHOWN = 16 };
    const double capacity = p->stage_count > 0 ? p->stages[0].capacity_bytes : NAN;
    struct dl_text text = {.arena = arena};
    if (!dl_known(capacity)) return "";
    dl_text_printf(&text, "Memory%s, %.4g GiB of a device [GiB (margin)]:",
                   p->stage_count > 1 ? " of the stages" : "", capacity / GIB);
    for (int i = 0; i < p->stage_count; i++) {
        const double total = p->stages[i].total_bytes;
        /* of long pipelines the first and the last */
        if (p->stage_count > SHOWN && i == SHOWN - 1) dl_text_add(&text, " ...");
        if (p->stage_count > SHOWN && i >= SHOWN - 1 && i < p->stage_count - 1) continue;
        dl_text_printf(&text, " %.3g (%.0f %%%s)", total / GIB, 100 * (1 - total / capacity),
                       total > capacity                   ? ", does not fit"
                       : total > DL_TIGHT_FRAC * capacity ? ", tight"
                                                          : "");
    }
    if (dl_known(p->max_micro_batch_samples))
        dl_text_printf(&text, ". The largest micro-batch that fits is %.0f sample%s.\n",
                       p->max_micro_batch_samples, p->max_micro_batch_samples == 1 ? "" : "s");
    else
        dl_text_add(&text, ".\n");
    return dl_text_string(&text);
}

double dl_terms_least_shown_s(const struct dl_prediction *p, size_t shown, struct dl_arena *arena) {
    double *times_s = dl_arena_alloc(arena, (size_t)p->term_count + 1, sizeof *times_s);
    size_t n = 0;
    for (int i = 0; i < p->term_count && times_s != NULL; i++) {
        if (strcmp(p->terms[i].group, "memory") != 0 && dl_known(p->terms[i].value))
            times_s[n++] = p->terms[i].value;
    }
    if (n <= shown) return -INFINITY;
    dl_sort(times_s, n);
    return times_s[n - shown];
}

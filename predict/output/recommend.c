/* recommend.c - which of the predicted rows to take. */

#include "model/core/figure.h"
#include "model/core/text.h"
#include "model/framework/gradient_sync.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/correct.h"
#include "predict/output/advice_print.h"
#include "predict/output/predicted.h"

struct dl_prediction_row dl_row_of(const struct dl_inputs *inputs,
                                   const struct dl_framework *framework, const struct dl_plan *plan,
                                   const struct dl_prediction *prediction) {
    return (struct dl_prediction_row){inputs->system, dl_inputs_workload(inputs, framework),
                                      framework,      plan,
                                      prediction,     &inputs->length,
                                      &inputs->rates};
}

struct dl_prediction_row dl_predicted_row_of(const struct dl_inputs *inputs,
                                             const struct dl_predicted_row *row) {
    return dl_row_of(inputs, row->framework, &row->plan, &row->prediction);
}

/* 3: as one device; 2: retired; 1: asynchronous, lossy; 0: a bound. The highest of all wins. */
static int worth_of(const struct dl_predicted_row *r) {
    const struct dl_framework *f = r->framework;
    if (dl_framework_is_bound(f)) return 0;
    if ((f->sync.asynchronous && r->plan.nodes > 1) || f->status == DL_LOSSY) return 1;
    return f->status == DL_MAINTAINED ? 3 : 2;
}

static const struct dl_predicted_row *best_of(const struct dl_predicted *p, int most_worth) {
    const struct dl_predicted_row *best = NULL;
    for (int i = 0; i < p->count; i++) {
        const struct dl_predicted_row *r = &p->rows[i];
        const int worth = worth_of(r), before = best == NULL ? -1 : worth_of(best);
        if (!r->prediction.fits || worth > most_worth || worth < before) continue;
        if (worth > before ||
            r->prediction.throughput_samples_per_s > best->prediction.throughput_samples_per_s)
            best = r;
    }
    return best;
}

const struct dl_predicted_row *dl_recommend_fastest(const struct dl_predicted *p) {
    return best_of(p, 3);
}

/* 0: plain data parallelism; 1 to 3: sharded; 4: split, or with servers to run. */
static int effort_of(const struct dl_predicted_row *r) {
    const struct dl_plan *plan = &r->plan;
    if (plan->tp * plan->pp * plan->sp * plan->ep > 1 || r->framework->behaviour->has_servers)
        return 4;
    return (int)(plan->strategy->shard > 0 ? plan->strategy->shard : plan->shard);
}

/* The default framework on GPUs. */
static bool is_usual(const struct dl_predicted *p, const struct dl_predicted_row *r) {
    return r->framework->default_for == DL_DEFAULT_DATA_PARALLEL &&
           p->inputs->system->device->kind == DL_DEVICE_GPU;
}

static bool tied(const struct dl_predicted *p, const struct dl_predicted_row *best,
                 const struct dl_predicted_row *r) {
    return r != best && !p->every_strategy && r->plan.nodes == best->plan.nodes &&
           worth_of(r) >= worth_of(best) && r->prediction.fits &&
           dl_prediction_frameworks_tie(&r->prediction, &best->prediction);
}

/* Whether `r` is to be taken before `before`: it splits and shards less; then the default
 * framework; then the faster one. */
static bool comes_before(const struct dl_predicted *p, const struct dl_predicted_row *r,
                         const struct dl_predicted_row *before) {
    const int less = effort_of(before) - effort_of(r), usual = is_usual(p, r) - is_usual(p, before);
    if (less != 0) return less > 0;
    if (usual != 0) return usual > 0;
    return r->prediction.throughput_samples_per_s > before->prediction.throughput_samples_per_s;
}

const struct dl_predicted_row *dl_recommend(const struct dl_predicted *p) {
    const struct dl_predicted_row *best = dl_recommend_fastest(p), *take = best;
    for (int i = 0; i < p->count && best != NULL; i++) {
        if (tied(p, best, &p->rows[i]) && comes_before(p, &p->rows[i], take)) take = &p->rows[i];
    }
    return take;
}

/* The fastest of those tied that is slower than `than`; NULL: none. */
static const struct dl_predicted_row *next_tied(const struct dl_predicted *p,
                                                const struct dl_predicted_row *best,
                                                const struct dl_predicted_row *than) {
    const struct dl_predicted_row *next = NULL;
    for (int i = 0; i < p->count; i++) {
        const struct dl_predicted_row *r = &p->rows[i];
        const double rate = r->prediction.throughput_samples_per_s,
                     limit = than->prediction.throughput_samples_per_s;
        const bool after = rate < limit || (rate == limit && r > than);
        if (tied(p, best, r) && after &&
            (next == NULL || rate > next->prediction.throughput_samples_per_s))
            next = r;
    }
    return next;
}

static const char *ties_text(struct dl_arena *arena, const struct dl_predicted *p,
                             const struct dl_predicted_row *best) {
    const struct dl_predicted_row *take = dl_recommend(p), *r = best;
    struct dl_text names = {.arena = arena};
    int count = 0;
    while ((r = next_tied(p, best, r)) != NULL) {
        if (count++ < 3) dl_text_printf(&names, "%s%s", count > 1 ? ", " : "", r->framework->name);
    }
    if (count == 0) return "";
    if (count > 3) dl_text_printf(&names, " and %d more", count - 3);
    return dl_arena_printf(arena, "Indistinguishable from %s (the intervals overlap).%s%s%s\n",
                           dl_text_string(&names), take != best ? " Take " : "",
                           take != best ? take->framework->name : "",
                           take == best                        ? ""
                           : effort_of(take) < effort_of(best) ? ", which splits and shards least."
                                                               : ", the most widely used.");
}

static const char *speed_text(struct dl_arena *arena, const struct dl_predicted *p,
                              const struct dl_predicted_row *r) {
    const struct dl_prediction_row row = dl_predicted_row_of(p->inputs, r);
    const struct dl_throughput rate = dl_rows_throughput(&row);
    if (!dl_known(rate.tokens_per_s))
        return dl_arena_printf(arena, "%s samples/s",
                               dl_figure_text(arena, r->prediction.throughput_samples_per_s, 4));
    const char *tokens = dl_figure_text(arena, rate.tokens_per_s, 4),
               *each = dl_figure_text(arena, rate.device_tokens_per_s, 4);
    if (!dl_known(rate.mfu_frac))
        return dl_arena_printf(arena, "%s tokens/s (%s per device)", tokens, each);
    const bool lower = r->plan.precision >= DL_FP8;
    return dl_arena_printf(arena, "%s tokens/s (%s per device, MFU %.0f %%%s%s%s)", tokens, each,
                           100 * rate.mfu_frac, lower ? " of the " : "",
                           lower ? dl_precision_names[r->plan.precision] : "",
                           lower ? " peak" : "");
}

/* A retired, lossy or asynchronous framework that is faster is mentioned, not recommended. */
static const char *passed_text(struct dl_arena *arena, const struct dl_predicted *p,
                               const struct dl_predicted_row *best) {
    const struct dl_predicted_row *loose = best_of(p, worth_of(best) - 1);
    if (loose == NULL || worth_of(loose) == 0 || loose->plan.nodes != best->plan.nodes ||
        loose->prediction.throughput_samples_per_s <= best->prediction.throughput_samples_per_s)
        return "";
    return dl_arena_printf(arena, " (%s would reach %s, but %s.)", loose->framework->name,
                           speed_text(arena, p, loose), dl_reservation_text(loose->framework));
}

/* How many runs of one's own stand behind the answer. */
static const char *corrected_text(struct dl_arena *arena, const struct dl_framework *framework) {
    const struct dl_posterior *measured = framework->errors.measured;
    if (measured == NULL) return "";
    const size_t runs = dl_posterior_runs(measured);
    return dl_arena_printf(arena, ", corrected by %zu measured run%s", runs, runs == 1 ? "" : "s");
}

static const char *subject_text(struct dl_arena *arena, const struct dl_predicted *p,
                                const struct dl_predicted_row *best) {
    const char *words = dl_rows_plan_words(&best->plan, arena);
    return dl_arena_printf(
        arena, "%s%s%s on %lld node%s%s%s%s", best->framework->name, p->every_strategy ? ", " : "",
        p->every_strategy ? best->plan.strategy->name : "", (long long)best->plan.nodes,
        best->plan.nodes == 1 ? "" : "s", words != NULL ? " (" : "", words != NULL ? words : "",
        words != NULL ? ")" : "");
}

const char *dl_recommend_text(struct dl_arena *arena, const struct dl_predicted *p) {
    const struct dl_predicted_row *best = dl_recommend_fastest(p);
    if (best == NULL) return "No plan fits in memory.\n";
    const struct dl_prediction *q = &best->prediction;
    return dl_arena_printf(
        arena,
        "%s%s: %s, %s per iteration (80 %% prediction interval %s%s). Bottleneck: %s, %.0f %% of "
        "the iteration.%s\n%s",
        p->count > 1 ? "Fastest: " : "", subject_text(arena, p, best), speed_text(arena, p, best),
        dl_duration_text(arena, q->iteration_s),
        dl_duration_range(arena, q->iteration_low_s, q->iteration_high_s),
        corrected_text(arena, best->framework), dl_bottleneck_names[q->bottleneck],
        100 * q->bottleneck_share, passed_text(arena, p, best), ties_text(arena, p, best));
}

const char *dl_recommend_command(struct dl_context *context, const struct dl_options *options,
                                 const struct dl_predicted *p) {
    const struct dl_predicted_row *take = dl_recommend(p);
    if (take == NULL) return "";
    return dl_arena_printf(
        context->arena, "Every term: %s%s%s\n",
        dl_inputs_command(context, options, "explain", take->framework, take->plan.nodes),
        p->every_strategy ? " --strategy " : "",
        p->every_strategy ? take->plan.strategy->name : "");
}

void dl_recommend_json(struct dl_json_writer *w, const struct dl_predicted *p,
                       const struct dl_gains *gains) {
    const struct dl_predicted_row *best = dl_recommend_fastest(p), *take = dl_recommend(p);
    if (best == NULL) return;
    dl_jw_object(w, "recommendation");
    dl_jw_string(w, "framework", take->framework->name);
    dl_jw_string(w, "strategy", take->plan.strategy->name);
    dl_jw_integer(w, "nodes", take->plan.nodes);
    dl_jw_string(w, "fastest", best->framework->name);
    dl_jw_array(w, "tied_with_fastest");
    for (int i = 0; i < p->count; i++) {
        if (tied(p, best, &p->rows[i])) dl_jw_string(w, NULL, p->rows[i].framework->name);
    }
    dl_jw_end(w);
    dl_gains_json(w, gains);
    dl_jw_end(w);
}

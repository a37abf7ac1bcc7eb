/* run_belief.c - see run_belief.h. */
#include "predict/compare/run_belief.h"

#include <math.h>

#include "model/engine/agreement.h"
#include "model/engine/throughput.h"
#include "predict/compare/compare_cause.h"

#define NEAR_LOG 0.25 /* a mistaken unit: its factor within the error of a prediction */
#define WINOGRAD 2.25 /* F(2x2, 3x3): 16 multiplications for 36 */

/* A mistake in a table: the measured time becomes `ratio` times the true one. */
struct mistake {
    double ratio;
    const char *text;
};

static const char *mistaken(const struct mistake *all, size_t count, double off) {
    const struct mistake *best = NULL;
    for (size_t i = 0; i < count; i++) {
        const double apart = fabs(log(off / all[i].ratio));
        if (!(all[i].ratio > 0) || fabs(log(all[i].ratio)) < 0.5 || !(apart < NEAR_LOG)) continue;
        if (best == NULL || apart < fabs(log(off / best->ratio))) best = &all[i];
    }
    return best != NULL ? best->text : NULL;
}

static const char *mistaken_cell(const struct dl_run_row *run, const struct dl_prediction *p,
                                 double off) {
    const double samples = p->iteration_s * p->throughput_samples_per_s,
                 devices = (double)dl_run_devices(run), nodes = (double)run->plan.nodes;
    const struct mistake rates[] = {
        {devices, "its value looks like the samples/s of one device, not of all"},
        {nodes, "its value looks like the samples/s of one node, not of all"},
        {samples, "its value looks like iterations/s, not samples/s"},
        {1 / dl_tokens_per_sample(run->workload), "its value looks like tokens/s, not samples/s"},
        {1000, "its value looks 1000 times too small: a unit or a decimal point"},
        {1e-3, "its value looks 1000 times too large: a unit or a decimal point"}};
    const struct mistake times[] = {
        {1000, "its value looks like milliseconds, not seconds"},
        {1e6, "its value looks like microseconds, not seconds"},
        {1e-3, "its value looks like seconds, not milliseconds"},
        {1 / samples, "its value looks like the time of one sample, not of an iteration"},
        {p->epoch_s / p->iteration_s, "its value looks like the time of an epoch"}};
    return run->throughput ? mistaken(rates, sizeof rates / sizeof rates[0], off)
                           : mistaken(times, sizeof times / sizeof times[0], off);
}

static const char *times_off(double off, struct dl_arena *arena) {
    const double times = off > 1 ? off : 1 / off;
    return dl_arena_printf(arena, "%.*f times as %s", times < 10 ? 1 : 0, times,
                           off > 1 ? "long" : "fast");
}

const char *dl_run_beyond_belief(const struct dl_run_row *run, const struct dl_prediction *p,
                                 double ratio, struct dl_arena *arena) {
    struct dl_prediction measured = *p;
    measured.throughput_samples_per_s /= ratio;
    const double mfu_frac =
        dl_throughput_of(run->system->device, run->workload, &run->plan, &measured).mfu_frac;
    const double most = dl_known(dl_tokens_per_sample(run->workload)) ? 1 : WINOGRAD;
    const char *cell = mistaken_cell(run, p, ratio);
    if (mfu_frac > most) {
        return dl_arena_printf(arena, "beyond belief: %.0f %% of the peak of %s; %s",
                               100 * mfu_frac, run->system->device->name,
                               cell != NULL ? cell : "look at its unit, batch and devices");
    }
    if (fabs(log(ratio)) <= log(DL_BEYOND_BELIEF)) return NULL;
    return dl_arena_printf(arena, "beyond belief: %s as predicted; %s", times_off(ratio, arena),
                           cell != NULL ? cell : "look at its unit, batch and devices");
}

const char *dl_run_suspicion(const struct dl_run_row *run, const struct dl_prediction *p,
                             double ratio, double rest_ratio, struct dl_arena *arena) {
    const char *cell = mistaken_cell(run, p, ratio / rest_ratio);
    if (cell != NULL) return cell;
    if (ratio < rest_ratio)
        return "a smaller batch or network, a lower precision or steps that were left out would "
               "explain it";
    const struct dl_shortfall slow = {.prediction = p,
                                      .plan = &run->plan,
                                      .measured_s = ratio / rest_ratio * p->iteration_s,
                                      .base_ratio = NAN,
                                      .real_input = !run->plan.input.synthetic,
                                      .benchmark = dl_run_benchmark(run)};
    const struct dl_causes *causes = dl_compare_causes(&slow, arena);
    return causes != NULL ? causes->list[0].text : "not explained: repeat it";
}

/* compare_cause.c - F-CAUSE: every hypothesis has a time of an iteration in which one part is
 * longer, by the factor that makes it the measured one. Its weight is the prior density of that
 * factor, times the likelihood of the runs of the same configuration on fewer devices. */
#include "predict/compare/compare_cause.h"

#include <math.h>

#include "model/core/figure.h"
#include "model/engine/correct.h"

/* Chosen: standard deviation of a run about a hypothesis, and share and width of the tail of runs
 * that something else disturbed as well. */
#define ROOT_2_PI 2.5066282746310002
#define NOISE_LOG 0.1
#define TAIL_FRAC 0.1
#define TAIL_LOG 0.4
#define POINT_LOG 0.06   /* of a run about a hypothesis without a free factor */
#define MOST_OFF_LOG 0.2 /* which reaches no further */
#define LEAST_FRAC 0.03  /* less likely causes are not named */

double dl_cause_noise(double log_ratio, double sigma_log) {
    const double z = log_ratio / sigma_log;
    return exp(-0.5 * z * z) / (sigma_log * ROOT_2_PI);
}

static double disturbed(double log_ratio) {
    return (1 - TAIL_FRAC) * dl_cause_noise(log_ratio, NOISE_LOG) +
           TAIL_FRAC * dl_cause_noise(log_ratio, TAIL_LOG);
}

/* Exponential; nothing above `most`, which is out of the cause's reach. */
double dl_cause_excess(double log_factor, double scale_log, double most) {
    if (!(log_factor > 0) || log_factor > log(most)) return 0;
    return exp(-log_factor / scale_log) / scale_log;
}

/* What may be slower, and how much: chosen. */
enum part { KERNELS, HOST, OVERLAP, LINKS, NETWORK, NODE, INPUT, STRAGGLERS, UNKNOWN, PARTS };
static const struct {
    const char *name;
    double prior;     /* weight before anything is measured */
    double scale_log; /* mean of the logarithm of the factor */
    double most;      /* no larger factor is believed */
    enum dl_bottleneck bottleneck;
} parts[PARTS] = {
    [KERNELS] = {"kernels", 1, 0.15, 4, DL_BOUND_COMPUTE},
    [HOST] = {"host", 1, 0.7, 20, DL_BOUND_HOST},
    [OVERLAP] = {"overlap", 1, 0, 1, DL_BOUND_INTER},
    [LINKS] = {"links", 1, 0.7, 20, DL_BOUND_INTRA},
    [NETWORK] = {"network", 1, 0.7, 20, DL_BOUND_INTER},
    [NODE] = {"node", 0.3, 0.3, 4, DL_BOUND_HOST},
    [INPUT] = {"input", 1, 0.7, 20, DL_BOUND_INPUT},
    [STRAGGLERS] = {"stragglers", 0.5, 0.1, 1.25, DL_BOUND_FRAMEWORK},
    [UNKNOWN] = {"unknown", 0.05, 1, HUGE_VAL, DL_BOUNDS},
};

/* Where most of what the run lacks is: in the base run as well, or only with more devices. */
enum level { NO_BASE, IN_BASE, ABOVE_BASE };

/* A run and what its base run says: kernels take `kernels` times as long. */
struct view {
    const struct dl_prediction *p;
    const struct dl_plan *plan;
    double before_s; /* its iteration with these kernels */
};

static double devices_of(const struct dl_plan *plan) {
    return (double)(plan->nodes * plan->devices_per_node);
}

static double hidden_s(const struct dl_prediction *p) { return p->comm_s - p->exposed_comm_s; }

/* The device's wait for its host; where there is none, a tenth of the iteration is believed. */
static double host_s(const struct dl_prediction *p) {
    return fmax(fmax(p->host_bound_s, p->overhead_s - p->straggler_s), 0.1 * p->iteration_s);
}

static struct view view_of(const struct dl_prediction *p, const struct dl_plan *plan,
                           double kernels) {
    return (struct view){p, plan, p->iteration_s + (kernels - 1) * p->compute_s};
}

/* The devices of a node that share it with each other. */
static double sharers(const struct dl_plan *plan) { return (double)plan->devices_per_node - 1; }

static double doublings(const struct dl_shortfall *r, const struct dl_plan *plan) {
    return log2(devices_of(plan) / (dl_known(r->base_ratio) ? (double)r->base_devices : 1));
}

/* The iteration of a run in which part `h` takes `f` times as long. NODE: f - 1 iterations of the
 * run `self` are lost to devices of one node, in proportion; STRAGGLERS: to each doubling of
 * devices. */
static double with(const struct dl_shortfall *r, enum part h, double f, const struct view *v,
                   const struct view *self) {
    const struct dl_prediction *p = v->p;
    const double slower_s =
        fmax(p->exposed_comm_s, f * p->comm_s - hidden_s(p)) - p->exposed_comm_s;
    switch (h) {
    case KERNELS: return v->before_s + (f - 1) * p->compute_s;
    case HOST: return v->before_s + (f - 1) * host_s(self->p);
    case OVERLAP: return v->before_s + hidden_s(p);
    case LINKS: return v->before_s + slower_s;
    case NETWORK: return v->before_s + (v->plan->nodes > 1 ? slower_s : 0);
    case NODE:
        return v->before_s + (f - 1) * self->before_s * sharers(v->plan) / sharers(self->plan);
    case INPUT: return fmax(v->before_s, f * p->input_s);
    case STRAGGLERS:
        return v->before_s *
               (1 + (f - 1) * fmax(0, doublings(r, v->plan)) / doublings(r, self->plan));
    default: return v->before_s;
    }
}

/* The factor with which part `h` explains the measured time; NAN: none does. */
static double factor_for(const struct dl_shortfall *r, enum part h, const struct view *v) {
    const struct dl_prediction *p = v->p;
    const double lacks_s = r->measured_s - v->before_s;
    switch (h) {
    case KERNELS: return 1 + lacks_s / p->compute_s;
    case HOST: return 1 + lacks_s / host_s(p);
    case LINKS:
    case NETWORK: return p->comm_s > 0 ? (lacks_s + p->comm_s) / p->comm_s : NAN;
    case NODE: return sharers(v->plan) > 0 ? 1 + lacks_s / v->before_s : NAN;
    case INPUT: return p->input_s > 0 ? r->measured_s / p->input_s : NAN;
    case STRAGGLERS: return doublings(r, v->plan) > 0 ? 1 + lacks_s / v->before_s : NAN;
    default: return NAN;
    }
}

/* Whether the hypothesis says anything about this run. */
static bool applies(const struct dl_shortfall *r, enum part h, enum level level) {
    const struct dl_prediction *p = r->prediction;
    const bool of_base = h == KERNELS || h == HOST;
    if (h == UNKNOWN || (h == HOST && r->host_remark != NULL)) return true;
    if (level == IN_BASE ? !of_base : level == ABOVE_BASE && of_base) return false;
    switch (h) {
    case OVERLAP: return hidden_s(p) > POINT_LOG * p->iteration_s;
    case LINKS: return devices_of(r->plan) > 1 && (r->plan->nodes == 1 || r->other_count > 0);
    case NETWORK: return r->plan->nodes > 1;
    case NODE: return r->plan->nodes > 1 ? r->other_count > 0 : r->plan->devices_per_node > 1;
    case INPUT: return r->real_input;
    case STRAGGLERS: return devices_of(r->plan) > 1;
    default: return true;
    }
}

/* Likelihood of the other runs. */
static double others(const struct dl_shortfall *r, enum part h, double f, double kernels,
                     const struct view *self) {
    double product = 1;
    for (int i = 0; i < r->other_count; i++) {
        const struct dl_other_run *o = &r->others[i];
        const struct view v = view_of(o->prediction, o->plan, kernels);
        const double log_ratio =
            log(o->ratio * o->prediction->iteration_s / with(r, h, f, &v, self));
        product *= h == UNKNOWN ? dl_cause_noise(log_ratio, TAIL_LOG) : disturbed(log_ratio);
    }
    return product;
}

/* Of the time that the base run lacks: how likely it is that of kernels, or that of the host. */
static double base_density(const struct dl_shortfall *r, enum part h) {
    const double lacks_s = (r->base_ratio - 1) * r->base->iteration_s,
                 part_s = h == HOST ? host_s(r->base) : r->base->compute_s,
                 f = 1 + lacks_s / part_s;
    return dl_cause_excess(log(f), parts[h].scale_log, parts[h].most) / (f * part_s);
}

/* The weights of what the base run lacks: kernels share out their part, the host's stays. */
static double weigh_base(const struct dl_shortfall *r, enum part h) {
    const struct dl_prediction *p = r->prediction;
    const double lacks_s = (r->base_ratio - 1) * r->base->iteration_s,
                 s = h == HOST ? lacks_s : lacks_s * p->compute_s / r->base->compute_s;
    if (h == UNKNOWN) return parts[h].prior * dl_cause_excess(log(r->base_ratio), 1, HUGE_VAL);
    return base_density(r, h) * r->base_ratio * r->base->iteration_s *
           disturbed(log(r->measured_s / (p->iteration_s + s))) / disturbed(0);
}

/* Prior density of the factor in terms of the logarithm of the measured time, times the likelihood
 * of the other runs. */
static double weigh(const struct dl_shortfall *r, enum part h, double f, double kernels,
                    const struct view *v) {
    const double prior = parts[h].prior * others(r, h, f, kernels, v);
    if (h == UNKNOWN)
        return prior * dl_cause_excess(log(r->measured_s / v->p->iteration_s), 1, HUGE_VAL);
    if (h == OVERLAP) {
        const double off_log = log(r->measured_s / with(r, h, f, v, v));
        return fabs(off_log) <= MOST_OFF_LOG ? prior * dl_cause_noise(off_log, POINT_LOG) : 0;
    }
    if (!dl_known(f)) return 0;
    /* d ln f / d ln t: by how much a longer part makes the iteration longer */
    const double step = 1e-6, longer_s = with(r, h, f * (1 + step), v, v),
                 slope = log(longer_s / with(r, h, f, v, v)) / step;
    return slope > 0 ? prior * dl_cause_excess(log(f), parts[h].scale_log, parts[h].most) / slope
                     : 0;
}

static const char *evidence(const struct dl_shortfall *r, enum part h, double f,
                            struct dl_arena *arena) {
    const struct dl_prediction *p = r->prediction;
    const double ratio = r->measured_s / p->iteration_s;
    switch (h) {
    case KERNELS:
        if (!dl_known(r->base_ratio))
            return dl_arena_printf(arena,
                                   "kernels slower than calibrated: %.2f times as long would "
                                   "explain it",
                                   f);
        return dl_arena_printf(
            arena,
            "compute slower than the calibrated kernels predict: the run on %lld device%s takes "
            "%.2f times its prediction, this one %.2f",
            (long long)r->base_devices, r->base_devices == 1 ? "" : "s", r->base_ratio, ratio);
    case HOST:
        if (r->host_remark != NULL) return r->host_remark;
        return dl_arena_printf(arena,
                               "host slower than modelled: %s more of each iteration in which "
                               "the device waits for it would explain it",
                               dl_duration_text(arena, (f - 1) * host_s(p)));
    case OVERLAP:
        return dl_arena_printf(arena,
                               "communication not overlapped: compute plus all %s of "
                               "communication is %s; %s was measured",
                               dl_duration_text(arena, p->comm_s),
                               dl_duration_text(arena, p->iteration_s + hidden_s(p)),
                               dl_duration_text(arena, r->measured_s));
    case LINKS:
    case NETWORK:
        return dl_arena_printf(arena,
                               "%s slower than in the system's file: communication %.1f times as "
                               "long (%s instead of %s) would explain it",
                               h == LINKS ? "links inside the node" : "network between nodes", f,
                               dl_duration_text(arena, f * p->comm_s),
                               dl_duration_text(arena, p->comm_s));
    case NODE:
        return dl_arena_printf(arena,
                               "a resource that the devices of a node share (input, host, links): "
                               "%s more of each iteration would explain it",
                               dl_duration_text(arena, (f - 1) * p->iteration_s));
    case INPUT:
        return dl_arena_printf(arena,
                               "input slower than modelled: %.1f times as long (%s instead of "
                               "%s) would explain it",
                               f, dl_duration_text(arena, f * p->input_s),
                               dl_duration_text(arena, p->input_s));
    case STRAGGLERS:
        return dl_arena_printf(arena,
                               "stragglers: a loss of %.1f %% for each doubling of devices would "
                               "explain it",
                               100 * (f - 1) / doublings(r, r->plan));
    default: return dl_arena_printf(arena, "not explained: %.2f times the prediction", ratio);
    }
}

static const char *test_of(const struct dl_shortfall *r, enum part h, double f,
                           struct dl_arena *arena) {
    const char *benchmark = r->benchmark != NULL ? r->benchmark : "the library's own benchmark";
    switch (h) {
    case KERNELS:
        return "profile one iteration on one device and compare kernel times with dlmodel explain";
    case HOST:
        return "double the batch per device: the iteration hardly gets longer if the host limits";
    case OVERLAP:
        return "look in a profile whether collectives begin before the backward pass ends";
    case LINKS:
        return dl_arena_printf(
            arena, "run %s in one node: 1/%.1f of the predicted rate if the links limit", benchmark,
            f);
    case NETWORK:
        return dl_arena_printf(arena,
                               "run %s on the same %lld nodes: 1/%.1f of the predicted rate if the "
                               "network limits",
                               benchmark, (long long)r->plan->nodes, f);
    case NODE: return "run as many devices on twice the nodes: faster if devices share a resource";
    case INPUT: return "train on synthetic samples: faster if the input limits";
    case STRAGGLERS: return "time each rank's compute: one that is slower holds up all";
    default: return NULL;
    }
}

static const char *bottleneck_of(const struct dl_shortfall *r, enum part h, double f,
                                 const struct view *v) {
    const struct dl_prediction *p = r->prediction;
    double spent_s = 0;
    switch (h) {
    case UNKNOWN: return NULL;
    case KERNELS: spent_s = f * p->compute_s; break;
    case HOST: spent_s = f * host_s(p); break;
    case OVERLAP: spent_s = p->comm_s; break;
    case LINKS:
    case NETWORK: spent_s = f * p->comm_s - hidden_s(p); break;
    case INPUT: spent_s = r->measured_s; break;
    default: spent_s = r->measured_s - v->before_s;
    }
    if (spent_s <= p->bottleneck_share * p->iteration_s) return dl_bottleneck_names[p->bottleneck];
    if (h == OVERLAP && r->plan->nodes == 1) return dl_bottleneck_names[DL_BOUND_INTRA];
    return dl_bottleneck_names[parts[h].bottleneck];
}

const struct dl_causes *dl_causes_rank(struct dl_cause_weight *list, int count,
                                       struct dl_arena *arena) {
    struct dl_causes *out = dl_arena_alloc(arena, 1, sizeof *out);
    double sum = 0;
    for (int i = 0; i < count; i++) sum += list[i].weight_ratio;
    for (int n = 0; n < count && n < DL_MOST_CAUSES; n++) {
        int best = 0;
        for (int i = 1; i < count; i++)
            if (list[i].weight_ratio > list[best].weight_ratio) best = i;
        const double probability = sum > 0 ? list[best].weight_ratio / sum : 0;
        if (n > 0 && !(probability >= LEAST_FRAC)) break;
        out->list[n] = list[best].cause;
        out->list[n].probability_frac = probability;
        out->count = n + 1;
        list[best].weight_ratio = -1;
    }
    return out;
}

/* As an anchor has it: what the base run lacks, or has too much, is its compute's. */
static double kernels_of_base(const struct dl_shortfall *r) {
    if (!dl_known(r->base_ratio) || r->base == NULL) return 1;
    return fmax(0.1, 1 + (r->base_ratio - 1) * r->base->iteration_s / r->base->compute_s);
}

const struct dl_causes *dl_compare_causes(const struct dl_shortfall *r, struct dl_arena *arena) {
    const struct dl_prediction *p = r->prediction;
    const double kernels = kernels_of_base(r);
    const struct view v = view_of(p, r->plan, kernels);
    const bool in_base =
        r->base != NULL && v.before_s - p->iteration_s > 0.5 * (r->measured_s - p->iteration_s);
    const enum level level = in_base ? IN_BASE : dl_known(r->base_ratio) ? ABOVE_BASE : NO_BASE;
    struct dl_cause_weight list[PARTS];
    int count = 0;
    if (!dl_prediction_is_slow(p, r->measured_s)) return NULL;
    for (enum part h = 0; h < PARTS; h++) {
        if (!applies(r, h, level)) continue;
        const double f = !in_base    ? factor_for(r, h, &v)
                         : h == HOST ? 1 + (r->base_ratio - 1) * r->base->iteration_s / host_s(p)
                                     : kernels;
        double weight = in_base ? weigh_base(r, h) : weigh(r, h, f, kernels, &v);
        if (h == HOST && r->host_remark != NULL) weight = 1e9; /* it was measured */
        if (!(weight > 0)) continue;
        list[count++] = (struct dl_cause_weight){{.name = parts[h].name,
                                                  .text = evidence(r, h, f, arena),
                                                  .test = test_of(r, h, f, arena),
                                                  .factor = h == UNKNOWN ? NAN : f,
                                                  .bottleneck = bottleneck_of(r, h, f, &v)},
                                                 weight};
    }
    return dl_causes_rank(list, count, arena);
}

const char *dl_causes_text(const struct dl_causes *causes, struct dl_arena *arena) {
    const struct dl_cause *first = &causes->list[0];
    const char *text =
        dl_arena_printf(arena, "%s (%.0f %%)", first->text, 100 * first->probability_frac);
    for (int i = 1; i < causes->count; i++)
        text = dl_arena_printf(arena, "%s%s%s (%.0f %%)", text, i == 1 ? "; or " : ", ",
                               causes->list[i].name, 100 * causes->list[i].probability_frac);
    return first->test == NULL ? text : dl_arena_printf(arena, "%s. Test: %s", text, first->test);
}

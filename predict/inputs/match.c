/* match.c - see match.h. */
#include "predict/inputs/match.h"

#include "model/framework/capabilities.h"

#include "predict/inputs/rates.h"

#include <math.h>
#include <string.h>

static const double Z80 = 1.2815515655446004;

struct asked {
    const char *systems, *workloads, *weights, *prices;
};
#define ASKED(member) struct asked, member

const struct dl_option dl_match_options[] = {
    {"systems", 0, "NAME,...", "Match",
     "systems to compare; default: cartesius-knl,cartesius-k40,das5-titanx,das5-titanx-pascal,"
     "iris-v100,iris-skylake",
     DL_TEXT(ASKED(systems))},
    {"workloads", 0, "NAME,...", "Match", "networks to compare; default: resnet50,vgg16,bert_base",
     DL_TEXT(ASKED(workloads))},
    {"weights", 0, "N,...", "Match",
     "for each workload the share of the first system's time that it takes, e.g. 60,40: compares "
     "the systems on the mix",
     DL_TEXT(ASKED(weights))},
    {"prices", 0, "AMOUNT,...", "Match", "price of a node-hour of each system, in their order",
     DL_TEXT(ASKED(prices))},
    {.name = NULL},
};

struct search {
    struct dl_context *context;
    const struct dl_options *options;
    struct dl_match *out;
    struct dl_rates rates;
    const char *precision;
};

/* "a,b,c" into names; returns how many, -1: too many. After a colon, "key=value" goes on with the
 * parameters of a workload: "gpt:layers=24,hidden=1024,resnet50" are two names. */
static int split(struct dl_arena *arena, const char *list, const char **names) {
    int count = 0;
    for (const char *s = list;; s++) {
        size_t length = strcspn(s, ",");
        while (s[length] == ',' && memchr(s, ':', length) != NULL &&
               s[length + 1 + strcspn(s + length + 1, "=:,")] == '=')
            length += 1 + strcspn(s + length + 1, ",");
        if (count == DL_MATCH_NAMES) return -1;
        names[count++] = dl_arena_strndup(arena, s, length);
        s += length;
        if (*s == 0) return count;
    }
}

/* One amount above 0 for each of `count` names. */
static enum dl_code read_amounts(struct search *m, const char *option, const char *list, int count,
                                 double *out, struct dl_err *err) {
    const char *parts[DL_MATCH_NAMES], *currency;
    if (list == NULL) return DL_OK;
    if (split(m->context->arena, list, parts) != count)
        return dl_fail(err, DL_ERR_USAGE, "--%s: expected %d amounts, as many as --%s", option,
                       count, strcmp(option, "prices") == 0 ? "systems" : "workloads");
    for (int i = 0; i < count; i++)
        DL_TRY(dl_amount_parse(option, parts[i], m->context->arena, &out[i], &currency, err));
    return DL_OK;
}

static void count_reason(struct dl_match *out, const char *why) {
    int i = 0;
    out->impossible++;
    while (i < out->reason_count && strcmp(out->reasons[i].why, why) != 0) i++;
    if (i == DL_MATCH_REASONS) return;
    if (i == out->reason_count) out->reasons[out->reason_count++].why = why;
    out->reasons[i].count++;
}

static enum dl_code add(struct search *m, int index, const char *workload,
                        const struct dl_framework *framework, struct dl_err *err) {
    const char *system = m->out->systems[index];
    const struct dl_advise_change change = {.options = {{"system", system},
                                                        {"workload", workload},
                                                        {"framework", framework->name},
                                                        {"precision", m->precision}},
                                            .option_count = 4};
    struct dl_options merged;
    struct dl_verdict v;
    DL_TRY(dl_advise_options(m->context->arena, m->options, &change, &merged, err));
    DL_TRY(dl_advise_judge(m->context, &merged, NULL, &v, err));
    if (!v.possible) {
        count_reason(m->out, v.why);
        for (int w = 0; w < m->out->workload_count; w++)
            if (m->out->workloads[w] == workload) m->out->why_not[w] = v.why;
        return DL_OK;
    }
    if (m->out->count == DL_MATCH_ROWS)
        return dl_fail(err, DL_ERR_USAGE, "more than %d combinations", DL_MATCH_ROWS);
    const struct dl_prediction *p = &v.prediction;
    const double rate = p->fits ? p->throughput_samples_per_s : NAN, per_j = rate / v.job_w,
                 price = m->out->price_per_node_hour[index] > 0 ? m->out->price_per_node_hour[index]
                         : m->rates.price_per_node_hour > 0     ? m->rates.price_per_node_hour
                                                                : v.price_per_node_hour,
                 carbon = m->rates.carbon_g_per_kwh,
                 half = log(p->iteration_high_s / p->iteration_s), power = Z80 * v.power_sigma_log;
    m->out->rows[m->out->count++] = (struct dl_match_row){
        .workload = workload,
        .framework = framework->name,
        .system = system,
        .device = v.device,
        .release = v.release,
        .precision = dl_precision_names[v.precision],
        .devices = v.devices,
        .samples_per_s_per_device = rate / (double)v.devices,
        .cost_per_million_samples = 1e6 / rate * (double)v.nodes * price / 3600,
        .carbon_kg_per_million_samples = carbon > 0 ? 1e6 / per_j / 3.6e6 * carbon / 1e3 : NAN,
        .samples_per_s = rate,
        .low_samples_per_s = rate * p->iteration_s / p->iteration_high_s,
        .high_samples_per_s = rate * p->iteration_s / p->iteration_low_s,
        .samples_per_j = per_j,
        .low_samples_per_j = per_j * exp(-hypot(half, power)),
        .high_samples_per_j = per_j * exp(hypot(half, power)),
        .fits = p->fits,
        .usual = framework->default_for == DL_DEFAULT_DATA_PARALLEL,
        .bound = dl_framework_is_bound(framework),
        .asynchronous = framework->sync.asynchronous};
    return DL_OK;
}

/* Whether x comes before y: what trains as asked, then the higher value. */
static bool is_better(const struct dl_match_row *x, const struct dl_match_row *y, bool by_energy) {
    const bool other_x = x->bound || x->asynchronous, other_y = y->bound || y->asynchronous;
    if (other_x != other_y) return other_y;
    return by_energy ? x->samples_per_j > y->samples_per_j : x->samples_per_s > y->samples_per_s;
}

static const struct dl_match_row *best_of(const struct dl_match *match, const char *workload,
                                          const char *system, bool by_energy, bool usual) {
    const struct dl_match_row *found = NULL;
    for (int i = 0; i < match->count; i++) {
        const struct dl_match_row *r = &match->rows[i];
        if (usual && !r->usual) continue;
        if (strcmp(r->workload, workload) != 0 || !r->fits) continue;
        if (system != NULL && strcmp(r->system, system) != 0) continue;
        if (!dl_known(by_energy ? r->samples_per_j : r->samples_per_s)) continue;
        if (found == NULL || is_better(r, found, by_energy)) found = r;
    }
    return found;
}

const struct dl_match_row *dl_match_best(const struct dl_match *match, const char *workload,
                                         const char *system, bool by_energy) {
    const struct dl_match_row *best = best_of(match, workload, system, by_energy, false),
                              *usual = best == NULL ? NULL
                                                    : best_of(match, workload, best->system,
                                                              by_energy, true);
    if (usual == NULL) return best;
    const bool tie = by_energy ? usual->samples_per_j >= best->low_samples_per_j
                               : usual->samples_per_s >= best->low_samples_per_s;
    return tie ? usual : best;
}

int dl_match_mixes(const struct dl_match *match, struct dl_match_mix out[DL_MATCH_NAMES]) {
    int count = 0;
    for (int s = 0; s < match->system_count && match->weights[0] > 0; s++) {
        struct dl_match_mix mix = {.system = match->systems[s]};
        double time = 0, cost = 0, energy = 0, first_energy = 0;
        for (int w = 0; w < match->workload_count; w++) {
            const char *workload = match->workloads[w];
            const struct dl_match_row *r = dl_match_best(match, workload, mix.system, false),
                                      *first =
                                          dl_match_best(match, workload, match->systems[0], false);
            if (r == NULL || first == NULL) {
                mix.missing = workload;
                time = cost = energy = NAN;
                continue;
            }
            const double samples = match->weights[w] * first->samples_per_s;
            mix.devices = r->devices;
            time += samples / r->samples_per_s;
            energy += samples / r->samples_per_j;
            first_energy += samples / first->samples_per_j;
            cost +=
                match->weights[w] * r->cost_per_million_samples / first->cost_per_million_samples;
        }
        mix.speed_ratio = 1 / time;
        mix.cost_ratio = cost;
        mix.energy_ratio = energy / first_energy;
        int at = count++;
        for (; at > 0 && !(out[at - 1].speed_ratio >= mix.speed_ratio) && dl_known(mix.speed_ratio);
             at--)
            out[at] = out[at - 1];
        out[at] = mix;
    }
    return count;
}

bool dl_match_asked(const struct dl_options *options) {
    return dl_option_given(options, "systems") || dl_option_given(options, "workloads");
}

/* --system and --workload are other names of --systems and --workloads. */
static enum dl_code list_given(const struct search *m, const char *name, const char *list_name,
                               const char **list, struct dl_err *err) {
    const char *given = dl_option_text(m->options, name);
    if (given == NULL) return DL_OK;
    if (dl_option_given(m->options, list_name))
        return dl_fail(err, DL_ERR_USAGE, "--%s and --%s are the same list: give one", name,
                       list_name);
    *list = given;
    return DL_OK;
}

static enum dl_code read_weights(struct search *m, const struct asked *asked, struct dl_err *err) {
    struct dl_match *out = m->out;
    double sum = 0;
    DL_TRY(
        read_amounts(m, "prices", asked->prices, out->system_count, out->price_per_node_hour, err));
    DL_TRY(read_amounts(m, "weights", asked->weights, out->workload_count, out->weights, err));
    for (int w = 0; w < out->workload_count; w++) sum += out->weights[w];
    for (int w = 0; sum > 0 && w < out->workload_count; w++) out->weights[w] /= sum;
    return DL_OK;
}

static enum dl_code read_names(struct search *m, struct dl_err *err) {
    struct dl_context *context = m->context;
    struct dl_match *out = m->out;
    struct asked asked = {
        .systems =
            "cartesius-knl,cartesius-k40,das5-titanx,das5-titanx-pascal,iris-v100,iris-skylake",
        .workloads = "resnet50,vgg16,bert_base"};
    DL_TRY(dl_options_bind(m->options, dl_match_options, &asked, err));
    DL_TRY(list_given(m, "system", "systems", &asked.systems, err));
    DL_TRY(list_given(m, "workload", "workloads", &asked.workloads, err));
    out->system_count = split(context->arena, asked.systems, out->systems);
    out->workload_count = split(context->arena, asked.workloads, out->workloads);
    if (out->system_count < 1 || out->workload_count < 1)
        return dl_fail(err, DL_ERR_USAGE, "--systems, --workloads: at most %d names",
                       DL_MATCH_NAMES);
    for (int s = 0; s < out->system_count; s++) { /* unknown names are errors, not impossible */
        const struct dl_system *known;
        DL_TRY(dl_data_system(&context->data, out->systems[s], context->arena, &known, err));
    }
    for (int w = 0; w < out->workload_count; w++) {
        const struct dl_workload *known;
        DL_TRY(dl_data_workload(&context->data, out->workloads[w], context->arena, &known, err));
    }
    return read_weights(m, &asked, err);
}

/* One precision for all: the devices' default where it is the same, else mixed where it is faster
 * than fp32 on each of them, else fp32. */
static enum dl_code choose_precision(struct search *m, const struct dl_inputs *inputs,
                                     struct dl_err *err) {
    struct dl_context *context = m->context;
    bool same = true, mixed = true;
    enum dl_precision first = inputs->plan.precision;
    for (int s = 0; s < m->out->system_count && !inputs->given.plan.precision; s++) {
        const struct dl_system *system;
        DL_TRY(dl_data_system(&context->data, m->out->systems[s], context->arena, &system, err));
        const enum dl_precision own =
            dl_default_precision(system->device, inputs->frameworks, (int)inputs->framework_count);
        same = same && (s == 0 || own == first);
        if (s == 0) first = own;
        mixed = mixed &&
                dl_device_peak(system->device, DL_MIXED) > dl_device_peak(system->device, DL_FP32);
    }
    m->out->precision_chosen = !same;
    m->out->precision = same ? first : mixed ? DL_MIXED : DL_FP32;
    m->precision = dl_precision_names[m->out->precision];
    return DL_OK;
}

enum dl_code dl_match_run(struct dl_context *context, const struct dl_options *options,
                          struct dl_match *out, struct dl_err *err) {
    struct search m = {.context = context, .options = options, .out = out};
    struct dl_inputs *inputs = dl_arena_alloc(context->arena, 1, sizeof *inputs);
    struct dl_options first;
    *out =
        (struct dl_match){.rows = dl_arena_alloc(context->arena, DL_MATCH_ROWS, sizeof *out->rows)};
    DL_TRY(read_names(&m, err));
    const struct dl_advise_change names = {
        .options = {{"system", out->systems[0]}, {"workload", out->workloads[0]}},
        .option_count = 2};
    DL_TRY(dl_advise_options(context->arena, options, &names, &first, err));
    DL_TRY(dl_inputs_load(context, &first, inputs, err)); /* checks, and names frameworks */
    DL_TRY(dl_rates_read(options, context->arena, &m.rates, err));
    DL_TRY(choose_precision(&m, inputs, err));
    out->nodes = inputs->nodes[0];
    for (int w = 0; w < out->workload_count; w++)
        for (int f = 0; f < inputs->framework_count; f++)
            for (int s = 0; s < out->system_count; s++)
                DL_TRY(add(&m, s, out->workloads[w], inputs->frameworks[f], err));
    return out->count > 0
               ? DL_OK
               : dl_fail(err, DL_ERR_NO, "none of %d combinations can run", out->impossible);
}

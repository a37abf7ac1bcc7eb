/* advise.c - the table of advice and what its items share. See advise.h. */
#include "model/search/advise/advise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/framework/gradient_sync.h"
#include "model/engine/interval.h"

const char *const dl_advise_effect_names[] = {[DL_EFFECT_EXACT] = "exact",
                                              [DL_EFFECT_ROUNDING] = "rounding",
                                              [DL_EFFECT_MODEL] = "model",
                                              NULL};

extern const struct dl_advise_item dl_adv_precision, dl_adv_batch, dl_adv_accumulate, dl_adv_bucket,
    dl_adv_bucket_views, dl_adv_buffers, dl_adv_fusion, dl_adv_cycle, dl_adv_hierarchical,
    dl_adv_nccl_algorithm, dl_adv_narrow_gradients, dl_adv_top_k, dl_adv_one_bit,
    dl_adv_local_steps, dl_adv_factors, dl_adv_servers, dl_adv_split_variables, dl_adv_layout,
    dl_adv_compiler, dl_adv_optimizer, dl_adv_attention, dl_adv_kv_heads, dl_adv_vocabulary,
    dl_adv_recompute, dl_adv_overlap, dl_adv_input, dl_adv_channels, dl_adv_kernels,
    dl_adv_depthwise, dl_adv_sequence_parallel, dl_adv_interleave;

const struct dl_advise_item *const dl_advise_items[] = {
    &dl_adv_precision,        &dl_adv_batch,
    &dl_adv_accumulate,       &dl_adv_bucket,
    &dl_adv_bucket_views,     &dl_adv_buffers,
    &dl_adv_fusion,           &dl_adv_cycle,
    &dl_adv_hierarchical,     &dl_adv_nccl_algorithm,
    &dl_adv_narrow_gradients, &dl_adv_top_k,
    &dl_adv_one_bit,          &dl_adv_local_steps,
    &dl_adv_factors,          &dl_adv_servers,
    &dl_adv_split_variables,  &dl_adv_layout,
    &dl_adv_compiler,         &dl_adv_optimizer,
    &dl_adv_attention,        &dl_adv_kv_heads,
    &dl_adv_vocabulary,       &dl_adv_recompute,
    &dl_adv_overlap,          &dl_adv_input,
    &dl_adv_channels,         &dl_adv_kernels,
    &dl_adv_depthwise,        &dl_adv_sequence_parallel,
    &dl_adv_interleave,       NULL};

int dl_advise_propose(const struct dl_advise_item *item, const struct dl_advise_state *state,
                      struct dl_advise_change *changes) {
    memset(changes, 0, DL_ADVISE_CHANGES * sizeof *changes);
    const int count = item->propose(state, changes);
    for (int i = 0; i < count; i++) changes[i].item = item;
    return count;
}

/* Seconds of a sample that communication costs: exposed, and as slowdown of compute. */
static double communication_s(const struct dl_prediction *p, double samples) {
    const double kernels_s = p->by_limit_s[0] + p->by_limit_s[1] + p->by_limit_s[2];
    return (p->exposed_comm_s + fmax(0, p->compute_s - kernels_s)) / samples;
}

static bool same_messages(const struct dl_prediction *a, const struct dl_prediction *b) {
    return a->messages.count == b->messages.count && a->messages.bytes == b->messages.bytes &&
           a->comm_s == b->comm_s;
}

static double spread_of(const struct dl_prediction *p) {
    return dl_known(p->spread.sigma_log) ? p->spread.sigma_log : 0.15;
}

/* Of communication. */
struct comm_spread {
    double half_log;    /* of an 80 % interval, F-INTERVAL: more on a device nobody measured */
    double shared_frac; /* of the variance: the machine's, not the run's own; F-POSTERIOR */
};

static struct comm_spread comm_spread_of(const struct dl_interval_model *m, bool measured_device,
                                         const struct dl_prediction *p) {
    if (m == NULL) return (struct comm_spread){DL_NORMAL_80 * spread_of(p), 0};
    const double *slow = m->widths.half_log, *fast = m->fast_widths.half_log,
                 device = (slow[DL_WIDTH_DEVICE] + fast[DL_WIDTH_DEVICE]) / 2,
                 communication = m->anchored_widths.half_log[DL_WIDTH_COMMUNICATION],
                 machine = m->communication_sigma_log * m->communication_sigma_log,
                 own = m->row_communication_sigma_log * m->row_communication_sigma_log;
    return (struct comm_spread){hypot(communication, measured_device ? 0 : device),
                                machine + own > 0 ? machine / (machine + own) : 0};
}

struct dl_gain dl_gain_of(const struct dl_framework *framework, const struct dl_prediction *without,
                          double without_samples, const struct dl_prediction *with,
                          double with_samples, bool measured_device) {
    const struct dl_interval_model *m = framework->errors.intervals;
    const struct comm_spread comm = comm_spread_of(m, measured_device, with);
    const double a = without->iteration_s / without_samples, b = with->iteration_s / with_samples,
                 a_comm = communication_s(without, without_samples),
                 b_comm = communication_s(with, with_samples), local = (b - b_comm) - (a - a_comm);
    const double alike = same_messages(without, with) ? 1 : comm.shared_frac,
                 local_half = log(with->iteration_high_s / with->iteration_low_s) / 2 * local,
                 comm_s2 = fmax(0, a_comm * a_comm + b_comm * b_comm - 2 * alike * a_comm * b_comm);
    const double half = hypot(local_half, comm.half_log * sqrt(comm_s2)) / b;
    return (struct dl_gain){.ratio = a / b, .low = a / b * exp(-half), .high = a / b * exp(half)};
}

struct dl_advise_change *dl_advise_add(struct dl_advise_change *changes, int *count,
                                       const char *option, const char *value, const char *text,
                                       const char *setting) {
    if (*count == DL_ADVISE_CHANGES) return NULL;
    struct dl_advise_change *change = &changes[(*count)++];
    change->text = text;
    change->setting = setting;
    if (option != NULL) dl_advise_also(change, option, value);
    return change;
}

void dl_advise_also(struct dl_advise_change *change, const char *option, const char *value) {
    if (change == NULL || change->option_count == DL_ADVISE_OPTIONS) return;
    change->options[change->option_count++] = (struct dl_advise_option){option, value};
}

double dl_advise_parameter(const struct dl_workload *workload, const char *name) {
    for (int i = 0; i < workload->value_count; i++) {
        if (strcmp(workload->values[i].key, name) == 0)
            return strtod(workload->values[i].text, NULL);
    }
    return NAN;
}

bool dl_advise_synchronizes(const struct dl_advise_state *state) { return state->plan->dp > 1; }

bool dl_advise_behaves(const struct dl_advise_state *state, const char *behaviour) {
    return state->framework->behaviour != NULL &&
           strcmp(state->framework->behaviour->name, behaviour) == 0;
}

bool dl_advise_is(const struct dl_advise_state *state, const char *framework_word) {
    return strstr(state->framework->name, framework_word) != NULL;
}

bool dl_advise_matrix_units(const struct dl_advise_state *state) {
    const enum dl_precision own = state->plan->precision;
    const int precision = own == DL_MIXED ? DL_FP16 : (int)own;
    for (int i = 0; i < state->system->device->rate_count; i++) {
        const struct dl_rate *rate = &state->system->device->rates[i];
        if (rate->unit == 1 && rate->precision == precision) return true;
    }
    return false;
}

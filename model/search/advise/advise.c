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

/* By name, summary, effect, mathematics, source. */
const struct dl_advise_item dl_advise_items[] = {
    {"precision", "products in TF32, fp16 or bf16", DL_EFFECT_ROUNDING,
     "products are rounded to 10 or 7 bits of mantissa; sums stay fp32", "nvidia-tensor-cores",
     false, 0, dl_advise_precision},
    {"batch", "more samples per device and step", DL_EFFECT_MODEL,
     "fewer, larger steps: learning rate and epochs must be tuned again", "large-minibatch-sgd",
     false, 0, dl_advise_batch},
    {"accumulate", "gradient accumulation over micro-batches", DL_EFFECT_MODEL,
     "as a batch that is larger as many times; batch norm sees the micro-batches",
     "pytorch-ddp-source", false, 0, dl_advise_accumulate},
    {"bucket", "the size of gradient buckets", DL_EFFECT_ROUNDING, "the same sums in another order",
     "pytorch-ddp-source", false, DL_NEEDS_DATA_RANKS | DL_NEEDS_DDP, dl_advise_bucket},
    {"bucket-views", "gradients computed in their buckets, without copies", DL_EFFECT_EXACT,
     "nothing changes", "pytorch-ddp-source", false, DL_NEEDS_DATA_RANKS | DL_NEEDS_DDP,
     dl_advise_bucket_views},
    {"buffers", "no broadcast of batch-norm statistics in each step", DL_EFFECT_EXACT,
     "weights are the same; running statistics of other ranks than the first are never used",
     "pytorch-ddp-source", false, DL_NEEDS_DATA_RANKS, dl_advise_buffers},
    {"fusion", "the size of Horovod's fusion buffer", DL_EFFECT_ROUNDING,
     "the same sums in another order", "horovod-source", false,
     DL_NEEDS_DATA_RANKS | DL_NEEDS_HOROVOD, dl_advise_fusion},
    {"cycle", "how often Horovod looks for ready gradients", DL_EFFECT_ROUNDING,
     "the same sums in another order", "horovod-source", false,
     DL_NEEDS_DATA_RANKS | DL_NEEDS_HOROVOD, dl_advise_cycle},
    {"hierarchical", "all-reduce inside nodes by NCCL, between them by MPI", DL_EFFECT_ROUNDING,
     "the same sums in another order", "horovod-source", false,
     DL_NEEDS_DATA_RANKS | DL_NEEDS_HOROVOD, dl_advise_hierarchical},
    {"nccl-algorithm", "ring or tree imposed on NCCL", DL_EFFECT_ROUNDING,
     "the same sums in another order", "nccl-source", false, DL_NEEDS_DATA_RANKS,
     dl_advise_nccl_algorithm},
    {"narrow-gradients", "fp16 gradient all-reduce", DL_EFFECT_ROUNDING,
     "sums of gradients are rounded to 10 bits of mantissa", "pytorch-ddp-source", false,
     DL_NEEDS_DATA_RANKS | DL_NEEDS_DDP | DL_NEEDS_HOROVOD, dl_advise_narrow_gradients},
    {"top-k", "only the largest gradients of each rank travel", DL_EFFECT_MODEL,
     "small gradients arrive steps later", "deep-gradient-compression", false,
     DL_NEEDS_DATA_RANKS | DL_NEEDS_DDP | DL_NEEDS_HOROVOD, dl_advise_top_k},
    {"one-bit", "gradients quantized to one bit, after backward", DL_EFFECT_MODEL,
     "rounding errors arrive steps later", "cntk-docs", false,
     DL_NEEDS_DATA_RANKS | DL_NEEDS_DDP | DL_NEEDS_HOROVOD, dl_advise_one_bit},
    {"local-sgd", "local SGD: parameters averaged every few steps", DL_EFFECT_MODEL,
     "replicas drift apart between averagings", "local-sgd", false,
     DL_NEEDS_DATA_RANKS | DL_NEEDS_DDP | DL_NEEDS_HOROVOD, dl_advise_local_steps},
    {"factors", "dense layers exchange the factors of their gradients", DL_EFFECT_ROUNDING,
     "the same sums in another order", "poseidon-2017", false,
     DL_NEEDS_DATA_RANKS | DL_NEEDS_DDP | DL_NEEDS_HOROVOD, dl_advise_factors},
    {"servers", "the number of parameter servers", DL_EFFECT_EXACT, "nothing changes", "tf-source",
     false, DL_NEEDS_DATA_RANKS, dl_advise_servers},
    {"split-variables", "large variables (VGG's fc6) split over all servers", DL_EFFECT_EXACT,
     "nothing changes", "tf-source", false, DL_NEEDS_DATA_RANKS, dl_advise_split_variables},
    {"nhwc", "activations in the order NHWC, for matrix units", DL_EFFECT_EXACT, "nothing changes",
     "nvidia-layouts", false, 0, dl_advise_layout},
    {"compiler", "elementwise operations fused by a compiler", DL_EFFECT_ROUNDING,
     "the same operations, intermediate results are not rounded to memory", "kernels-of-frameworks",
     false, 0, dl_advise_compiler},
    {"optimizer", "the update of all tensors in few kernels", DL_EFFECT_ROUNDING,
     "the same operations, intermediate results are not rounded to memory", "kernels-of-frameworks",
     false, 0, dl_advise_optimizer},
    {"attention", "attention whose scores stay on chip", DL_EFFECT_ROUNDING,
     "the same sums in another order", "flash-attention", false, 0, dl_advise_attention},
    {"grouped-queries", "grouped-query attention", DL_EFFECT_MODEL,
     "another network with fewer parameters", "gqa-2023", false, 0, dl_advise_kv_heads},
    {"vocabulary", "the vocabulary padded to a multiple of 128", DL_EFFECT_EXACT,
     "nothing changes, with the logits of padded rows masked", "megatron-lm", false, 0,
     dl_advise_vocabulary},
    {"recompute", "activations recomputed in backward, or no longer", DL_EFFECT_EXACT,
     "nothing changes", "megatron-lm", false, DL_NEEDS_STACK, dl_advise_recompute},
    {"overlap", "collectives of transformers behind compute", DL_EFFECT_EXACT, "nothing changes",
     "megatron-lm", false, 0, dl_advise_overlap},
    {"input", "pinned, prefetched input with workers on all cores", DL_EFFECT_EXACT,
     "nothing changes", "pytorch-ddp-source", false, 0, dl_advise_input},
    {"channels", "channels rounded up to multiples of 8, for matrix units", DL_EFFECT_MODEL,
     "a network with more parameters", "nvidia-tensor-cores", true, 0, dl_advise_channels},
    {"kernels", "large kernels split into several of 3x3", DL_EFFECT_MODEL,
     "another network with the same field of view", "vgg-paper", true, 0, dl_advise_kernels},
    {"depthwise", "dense convolutions replaced by depthwise and pointwise ones", DL_EFFECT_MODEL,
     "another network with fewer parameters", "mobilenet-paper", true, 0, dl_advise_depthwise},
    {"sequence-parallel", "norms and dropout split along the sequence", DL_EFFECT_EXACT,
     "nothing changes", "megatron-lm", false, 0, dl_advise_sequence_parallel},
    {"interleave", "interleaved pipeline schedule", DL_EFFECT_EXACT, "nothing changes",
     "megatron-lm", false, 0, dl_advise_interleave},
    {.name = NULL},
};

bool dl_advise_behaves(const struct dl_advise_state *state, const char *behaviour) {
    return state->framework->behaviour != NULL &&
           strcmp(state->framework->behaviour->name, behaviour) == 0;
}

/* The conditions of a row: of two behaviours one is enough. */
static bool meets(const struct dl_advise_state *s, unsigned needs) {
    const unsigned behaviours = needs & (DL_NEEDS_DDP | DL_NEEDS_HOROVOD);
    if ((needs & DL_NEEDS_DATA_RANKS) != 0 && s->plan->dp <= 1) return false;
    if ((needs & DL_NEEDS_STACK) != 0 && !(s->workload->transformer_layers > 0)) return false;
    return behaviours == 0 ||
           ((behaviours & DL_NEEDS_DDP) != 0 && dl_advise_behaves(s, "bucketed")) ||
           ((behaviours & DL_NEEDS_HOROVOD) != 0 && dl_advise_behaves(s, "tensor-fusion"));
}

int dl_advise_propose(const struct dl_advise_item *item, const struct dl_advise_state *state,
                      struct dl_advise_change *changes) {
    struct dl_advise_list list = {changes, 0};
    memset(changes, 0, DL_ADVISE_CHANGES * sizeof *changes);
    if (meets(state, item->needs)) item->propose(state, &list);
    for (int i = 0; i < list.count; i++) changes[i].item = item;
    return list.count;
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

struct dl_advise_change *dl_advise_add(struct dl_advise_list *out, const char *option,
                                       const char *value, const char *text, const char *setting) {
    if (out->count == DL_ADVISE_CHANGES) return NULL;
    struct dl_advise_change *change = &out->changes[out->count++];
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

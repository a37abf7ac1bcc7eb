/* advise.h - changes to the settings or to the network that may pay on a machine: what each is, how
 * `predict` is asked about it, what the user sets in the framework, and what it does to the
 * mathematics of training.
 *
 * An item proposes changes from the state of a plan; it knows no time. The judge is the model: the
 * caller predicts the plan with the change's options, which are those of `dlmodel predict`, so
 * that the command printed for a change reproduces its figure. One item is one row of
 * dl_advise_items and a function that fills in its changes.
 */
#ifndef DL_MODEL_SEARCH_ADVISE_ADVISE_H
#define DL_MODEL_SEARCH_ADVISE_ADVISE_H

#include "model/engine/predict.h"

enum dl_advise_effect {
    DL_EFFECT_EXACT,    /* the same numbers */
    DL_EFFECT_ROUNDING, /* the same mathematics in another order or width */
    DL_EFFECT_MODEL,    /* other training: accuracy must be looked at */
};
extern const char *const dl_advise_effect_names[]; /* "exact","rounding","model", NULL */

/* The plan that changes start from. */
struct dl_advise_state {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    const struct dl_plan *plan; /* complete */
    const struct dl_prediction *prediction;
    struct dl_arena *arena;
};

enum { DL_ADVISE_OPTIONS = 4, DL_ADVISE_CHANGES = 8 };

struct dl_advise_option {
    const char *name, *value; /* of predict; value NULL: a flag */
};

struct dl_advise_change {
    const struct dl_advise_item *item;
    const char *text;    /* "buckets of 50 MiB" */
    const char *setting; /* in the framework: an argument, a variable, a line of the script */
    struct dl_advise_option options[DL_ADVISE_OPTIONS];
    int option_count;
    const char *workload_text; /* the rewritten network as a workload file; NULL: as it is */
    /* what no measured run shows, so that no gain is claimed and none combined; NULL: measured */
    const char *unmeasured;
};

/* What an item requires; of the two behaviours (buckets, tensor fusion) one is enough. */
enum {
    DL_NEEDS_DATA_RANKS = 1, /* gradients are summed over several devices */
    DL_NEEDS_DDP = 2,
    DL_NEEDS_HOROVOD = 4,
    DL_NEEDS_STACK = 8, /* a stack of transformer layers */
};

struct dl_advise_list {
    struct dl_advise_change *changes; /* room for DL_ADVISE_CHANGES */
    int count;
};
/* Adds changes (text, setting, options, workload_text); none that is in force. */
typedef void dl_advise_rule(const struct dl_advise_state *state, struct dl_advise_list *out);

struct dl_advise_item {
    const char *name, *summary;
    enum dl_advise_effect effect;
    const char *mathematics; /* what changes, in a clause */
    const char *source;
    bool rewrites;  /* the network */
    unsigned needs; /* DL_NEEDS_ bits */
    dl_advise_rule *propose;
};

extern const struct dl_advise_item dl_advise_items[]; /* the last has no name */
dl_advise_rule dl_advise_precision, dl_advise_batch, dl_advise_accumulate, dl_advise_bucket,
    dl_advise_bucket_views, dl_advise_buffers, dl_advise_fusion, dl_advise_cycle,
    dl_advise_hierarchical, dl_advise_nccl_algorithm, dl_advise_narrow_gradients, dl_advise_top_k,
    dl_advise_one_bit, dl_advise_local_steps, dl_advise_factors, dl_advise_servers,
    dl_advise_split_variables, dl_advise_layout, dl_advise_compiler, dl_advise_optimizer,
    dl_advise_attention, dl_advise_kv_heads, dl_advise_vocabulary, dl_advise_recompute,
    dl_advise_overlap, dl_advise_input, dl_advise_channels, dl_advise_kernels, dl_advise_depthwise,
    dl_advise_sequence_parallel, dl_advise_interleave;

/* All proposals of one item, with their item set; returns how many, at most DL_ADVISE_CHANGES. */
int dl_advise_propose(const struct dl_advise_item *item, const struct dl_advise_state *state,
                      struct dl_advise_change *changes);

struct dl_gain {
    double ratio, low, high; /* throughput with / without, and its 80 % interval */
};
/* F-GAIN: the 80 % interval of a ratio of two predictions of one machine. Errors of what both share
 * cancel. With times per sample: the parts that devices and hosts run differ by their change alone,
 * communication (exposed, and the slowdown that it causes) by both amounts where the messages
 * differ, correlated by what the machine has of its variance, against what a run has alone:
 *   half^2 = (w_l^2 (b_l - a_l)^2 + w_c^2 (a_c^2 + b_c^2 - 2 r a_c b_c)) / b^2
 * w_l: half the interval of the time with the change (F-INTERVAL), w_c: of communication where a
 * run of the job was measured, more on a device that nobody measured, r: the machine's share of its
 * variance. */
struct dl_gain dl_gain_of(const struct dl_framework *framework, const struct dl_prediction *without,
                          double without_samples, const struct dl_prediction *with,
                          double with_samples, bool measured_device);

/* For items. */

/* Adds a change with one option; returns it for more, NULL when there is no room. */
struct dl_advise_change *dl_advise_add(struct dl_advise_list *out, const char *option,
                                       const char *value, const char *text, const char *setting);
void dl_advise_also(struct dl_advise_change *change, const char *option, const char *value);
/* The value of a workload's parameter ("vocab"); NAN: it has none. */
double dl_advise_parameter(const struct dl_workload *workload, const char *name);
/* Whether the framework's behaviour has that name. */
bool dl_advise_behaves(const struct dl_advise_state *state, const char *behaviour);
/* Whether the framework's name has that word: how its setting is spelled. */
bool dl_advise_is(const struct dl_advise_state *state, const char *framework_word);
/* Whether matrix units compute in the plan's precision. */
bool dl_advise_matrix_units(const struct dl_advise_state *state);

#endif

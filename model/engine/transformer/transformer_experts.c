/* transformer_experts.c - what a mixture of experts does besides its products and its exchange:
 * passes over routed rows, and operations of the host.
 *
 * F-TRANSFORMER-EXPERT-ROWS: passes over rows, each a kernel: S, those that a rank routes (k a
 * token), or R, those that its experts receive (k c a token). Of what they hold, h values each:
 * sorted (Megatron-Core's all-to-all dispatcher): R by expert, and back. indexed (torchtitan, whose
 * blocks compile without their experts and what surrounds them): S times the router's weight in
 * fp32; R behind one row more, gathered by expert and back; S added to a copy of the output. A
 * value in fp32 counts as two of 16 bits. PyTorch adds gathered rows by sorting their indices, in
 * ADDED_SCALE times the time of the bytes.
 *
 * F-TRANSFORMER-EXPERT-CALLS: where products run one by one (loops_experts) a rank with n experts
 * launches n in place of each of the two of a pass, and n casts in place of one, where each takes
 * its scales from its own values (blocks, or current_scaling: scales known before are cast in one
 * kernel). Biases that are added by expert cost 2 n operations forward, 5 n backward. The router
 * and its dispatcher add routing_operation_count. Launches on several streams leave no gaps on the
 * device. What Python does for each expert is counted (F-HOST-COUNT).
 */
#include "model/engine/transformer/micro_batch_builder.h"
#include "model/workload/layer.h"

/* ADDED: RECEIVED, added by index. */
enum rows { SENT, RECEIVED, ADDED };

/* Values of 16 bits that one kernel reads and writes for each of h values of its rows. */
struct row_pass {
    enum dl_pass pass;
    enum rows rows;
    double reads, writes;
};

/* 1,848 us for 196,608 rows of 2,048 values in bf16 on B200, 3.2 GB (pytorch-index-backward). */
static const double ADDED_SCALE = 3.9;

static const struct row_pass sorted[] = {
    {DL_FORWARD, RECEIVED, 1, 1},       /* by expert */
    {DL_FORWARD, RECEIVED, 1, 1},       /* by the rank that they return to */
    {DL_BACKWARD_DATA, RECEIVED, 1, 1}, /* the same ways back */
    {DL_BACKWARD_DATA, RECEIVED, 1, 1},
};

static const struct row_pass indexed[] = {
    {DL_FORWARD, SENT, 1, 2},           /* to fp32 */
    {DL_FORWARD, SENT, 2, 2},           /* times the router's weights */
    {DL_FORWARD, SENT, 2, 1},           /* to 16 bits */
    {DL_FORWARD, RECEIVED, 1, 1},       /* and a row of zeros for padding */
    {DL_FORWARD, RECEIVED, 1, 1},       /* gathered by expert */
    {DL_FORWARD, RECEIVED, 1, 1},       /* scattered back */
    {DL_FORWARD, SENT, 2, 1},           /* output: copied, read again where rows are added */
    {DL_BACKWARD_DATA, RECEIVED, 1, 2}, /* gradient without the padding: zeros, copied into */
    {DL_BACKWARD_DATA, RECEIVED, 1, 1}, /* of the scattering: gathered */
    {DL_BACKWARD_DATA, RECEIVED, 2, 1}, /* of the two products of one input: added */
    {DL_BACKWARD_DATA, ADDED, 2, 2},    /* of the gathering: zeros, added to */
    {DL_BACKWARD_DATA, SENT, 1, 2},     /* to fp32 */
    {DL_BACKWARD_DATA, SENT, 2, 2},     /* times the weights */
    {DL_BACKWARD_DATA, SENT, 4, 2},     /* times the rows, for the gradient of the weights */
    {DL_BACKWARD_DATA, SENT, 2, 0},     /* their sums */
    {DL_BACKWARD_DATA, SENT, 2, 1},     /* to 16 bits */
    {DL_BACKWARD_DATA, SENT, 1, 1},     /* of the rows taken: zeros, read where they are added to */
};

/* Megatron-Core adds the bias of the second product by expert, times the router's weights. */
static const struct row_pass biased[] = {
    {DL_FORWARD, RECEIVED, 0, 2},       /* bias times weights, in fp32 */
    {DL_FORWARD, RECEIVED, 3, 2},       /* added */
    {DL_FORWARD, RECEIVED, 2, 2},       /* pieces joined */
    {DL_FORWARD, RECEIVED, 2, 1},       /* to 16 bits */
    {DL_BACKWARD_DATA, RECEIVED, 1, 2}, /* to fp32 */
    {DL_BACKWARD_DATA, RECEIVED, 2, 1}, /* for the product, to 16 bits */
    {DL_BACKWARD_DATA, RECEIVED, 2, 2}, /* times the weights, for the gradient of the bias */
    {DL_BACKWARD_DATA, RECEIVED, 2, 0}, /* its sums */
    {DL_BACKWARD_DATA, RECEIVED, 2, 2}, /* times the bias, for the gradient of the weights */
    {DL_BACKWARD_DATA, RECEIVED, 2, 0}, /* its sums */
    {DL_BACKWARD_DATA, RECEIVED, 1, 1}, /* pieces joined */
};

#define LENGTH(a) (int)(sizeof(a) / sizeof *(a))

static void add_rows(const struct dl_micro_batch_builder *m, const struct dl_layer *layer,
                     enum dl_pass pass, double sign, const struct row_pass *table, int count,
                     struct dl_transformer_pass *out) {
    const double tokens = m->micro_samples * dl_shape_positions(&layer->in),
                 sent = tokens * layer->moe.top_k * layer->in.channels,
                 received =
                     tokens * dl_transformer_rows_per_token(m->tf, m->split) * layer->in.channels;
    for (int i = 0; i < count; i++) {
        if (table[i].pass != pass) continue;
        const double values = table[i].rows == SENT ? sent : received;
        dl_transformer_add_slow_stream(m, pass, table[i].rows == ADDED ? ADDED_SCALE : 1,
                                       table[i].reads * values, table[i].writes * values, 0, sign,
                                       out);
    }
}

/* Kernels that cast one operand of experts, each for one expert; 0: none, or one for all. */
static double casts_of_one(const struct dl_micro_batch_builder *m,
                           const struct dl_transformer_layer *l, enum dl_pass pass) {
    const struct dl_transformer_policy *policy = &m->tf->framework->transformer;
    const bool blocks = m->tf->precision == DL_MXFP8 || m->tf->precision == DL_NVFP4,
               currently = dl_transformer_current_scaling(m->tf);
    if (!dl_transformer_narrow(m->tf, l) || policy->casts == DL_CASTS_FUSED ||
        pass == DL_BACKWARD_WEIGHTS || !(blocks || currently))
        return 0;
    return currently ? 2 : 1;
}

static double calls(const struct dl_micro_batch_builder *m, const struct dl_transformer_layer *l,
                    const struct dl_layer *layer, enum dl_pass pass) {
    const struct dl_transformer_policy *policy = &m->tf->framework->transformer;
    const double held = layer->moe.held_experts;
    double count = pass == DL_FORWARD ? policy->experts.routing_operation_count : 0;
    if (!policy->experts.loops) return count;
    count += 2 * (held - 1) * (1 + casts_of_one(m, l, pass));
    if (policy->experts.adds_bias && layer->bias)
        count += pass == DL_FORWARD ? 2 * held : pass == DL_BACKWARD_DATA ? 5 * held : 0;
    return count;
}

void dl_transformer_add_experts(const struct dl_micro_batch_builder *m,
                                const struct dl_transformer_layer *l, const struct dl_layer *layer,
                                enum dl_pass pass, double sign, struct dl_transformer_pass *out) {
    const struct dl_transformer_policy *policy = &m->tf->framework->transformer;
    if (policy->experts.rows == DL_ROWS_SORTED && layer->moe.held_experts > 1)
        add_rows(m, layer, pass, sign, sorted, LENGTH(sorted), out);
    if (policy->experts.rows == DL_ROWS_INDEXED)
        add_rows(m, layer, pass, sign, indexed, LENGTH(indexed), out);
    if (policy->experts.adds_bias && layer->bias)
        add_rows(m, layer, pass, sign, biased, LENGTH(biased), out);
    out->host_operation_count += sign * calls(m, l, layer, pass);
}

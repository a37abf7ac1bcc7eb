/* import_keras_sequence.c - layers of Keras over vectors and sequences, and those that join or pass
 * on. */
#include <math.h>
#include <string.h>

#include "import/import_keras.h"

/* ---- layers of vectors and sequences ---- */

static void write_dense(struct dl_keras *k, const char *name, const struct dl_keras_value *in,
                        double width, bool bias, struct dl_keras_value *out) {
    const struct dl_keras_value flat = dl_keras_vector_of(k, name, in);
    struct dl_json_writer w = dl_keras_begin(k, name, "dense", &flat, 1);
    dl_jw_number(&w, "out", width);
    if (bias) dl_jw_bool(&w, "bias", true);
    dl_keras_end(k, &w);
    *out = flat;
    out->item = name;
    out->dims[out->rank - 1] = width;
}

enum dl_code dl_keras_dense(struct dl_keras *k, struct dl_keras_call *call,
                            struct dl_keras_value *out) {
    const double width = dl_keras_number(call->config, "units", 0);
    const bool bias = dl_keras_flag(call->config, "use_bias", true);
    if (!(width >= 1)) return dl_keras_fail(k, call->layer, call->name, "expected units");
    if (call->in[0].image && !call->in[0].pooled)
        dl_keras_write_pointwise(k, call->name, &call->in[0], width, bias, out);
    else
        write_dense(k, call->name, &call->in[0], width, bias, out);
    return dl_keras_finish(k, call, out);
}

enum dl_code dl_keras_embedding(struct dl_keras *k, struct dl_keras_call *call,
                                struct dl_keras_value *out) {
    struct dl_json_writer w = dl_keras_begin(k, call->name, "embedding", call->in, 1);
    dl_jw_number(&w, "rows", dl_keras_number(call->config, "input_dim", 0));
    dl_jw_number(&w, "out", dl_keras_number(call->config, "output_dim", 0));
    dl_keras_end(k, &w);
    *out = call->in[0];
    out->item = call->name;
    out->rank = 2;
    out->dims[1] = dl_keras_number(call->config, "output_dim", 0);
    return DL_OK;
}

/* Queries, keys and values by one dense layer each, attention, and a dense layer. */
enum dl_code dl_keras_attention(struct dl_keras *k, struct dl_keras_call *call,
                                struct dl_keras_value *out) {
    const double heads = dl_keras_number(call->config, "num_heads", 0),
                 size = dl_keras_number(call->config, "key_dim", 0),
                 value = dl_keras_number(call->config, "value_dim", size);
    const bool bias = dl_keras_flag(call->config, "use_bias", true);
    const char *const parts[] = {"query", "value", "key"};
    struct dl_keras_value all[3], context;
    if (!(heads >= 1) || !(size >= 1) || call->in[0].rank != 2 || call->in[0].image)
        return dl_keras_fail(k, call->layer, call->name, "expected attention over a sequence");
    if (dl_keras_member(call->config, "output_shape") != NULL &&
        dl_keras_member(call->config, "output_shape")->kind != DL_JSON_NULL)
        return dl_keras_fail(k, call->layer, call->name, "output_shape is not read");
    k->transformer = true;
    for (int i = 0; i < 3; i++)
        write_dense(k, dl_keras_join(k, call->name, parts[i]),
                    &call->in[i < call->count ? i : call->count - 1],
                    heads * (i == 1 ? value : size), bias, &all[i]);
    const struct dl_keras_value order[] = {all[0], all[2], all[1]};
    struct dl_json_writer w =
        dl_keras_begin(k, dl_keras_join(k, call->name, "core"), "attention", order, 3);
    dl_jw_number(&w, "heads", heads);
    if (dl_keras_flag(call->options, "use_causal_mask", false)) dl_jw_number(&w, "causal", 1);
    dl_jw_number(&w, "dropout", dl_keras_number(call->config, "dropout", 0));
    dl_keras_end(k, &w);
    context = all[0];
    context.item = dl_keras_join(k, call->name, "core");
    context.dims[1] = heads * value;
    write_dense(k, call->name, &context, dl_keras_channels(&call->in[0]), bias, out);
    return DL_OK;
}

enum dl_code dl_keras_lstm(struct dl_keras *k, struct dl_keras_call *call,
                           struct dl_keras_value *out) {
    const bool both = strcmp(call->class, "Bidirectional") == 0;
    const struct dl_json_node *inner =
        both ? dl_keras_member(dl_keras_member(call->config, "layer"), "config") : call->config;
    const char *class =
        both ? dl_keras_word(dl_keras_member(call->config, "layer"), "class_name") : call->class;
    const double width = dl_keras_number(inner, "units", 0);
    if (strcmp(class, "LSTM") != 0 || call->in[0].rank != 2 || !(width >= 1))
        return dl_keras_fail(k, call->layer, call->name, "expected an LSTM over a sequence");
    struct dl_json_writer w = dl_keras_begin(k, call->name, "lstm", call->in, 1);
    dl_jw_number(&w, "out", width);
    if (both) dl_jw_bool(&w, "bidirectional", true);
    dl_keras_end(k, &w);
    k->rnn = true;
    dl_keras_remark(k, "an LSTM of Keras has one bias; two are counted");
    *out = call->in[0];
    out->item = call->name;
    out->dims[1] = both ? 2 * width : width;
    if (dl_keras_flag(inner, "return_sequences", false)) return DL_OK;
    const char *last = dl_keras_join(k, call->name, "last");
    struct dl_json_writer s = dl_keras_begin(k, last, "slice", out, 1);
    dl_jw_number(&s, "tokens", 1);
    dl_keras_end(k, &s);
    struct dl_keras_value one = *out;
    one.item = last;
    dl_keras_plain(k, dl_keras_join(k, call->name, "state"), "flatten", &one, 1, out);
    out->rank = 1;
    out->dims[0] = one.dims[1];
    return DL_OK;
}

/* ---- what joins or passes on ---- */

enum dl_code dl_keras_merge(struct dl_keras *k, struct dl_keras_call *call,
                            struct dl_keras_value *out) {
    const bool joins = strcmp(call->class, "Concatenate") == 0;
    const double axis = dl_keras_number(call->config, "axis", -1);
    const char *kind = joins ? "concat" : strcmp(call->class, "Multiply") == 0 ? "mul" : "add";
    double sum = 0;
    int wide = 0;
    if (joins && axis != -1 && axis != call->in[0].rank)
        return dl_keras_fail(k, call->layer, call->name, "expected an axis of channels");
    for (int i = 0; i < call->count; i++) {
        sum += dl_keras_channels(&call->in[i]);
        if (call->in[i].rank > 1 && call->in[i].dims[0] > call->in[wide].dims[0]) wide = i;
    }
    if (strcmp(kind, "mul") == 0 && call->count == 2 && wide == 1) {
        const struct dl_keras_value first = call->in[0]; /* the factor for each channel is second */
        call->in[0] = call->in[1];
        call->in[1] = first;
    }
    dl_keras_plain(k, call->name, kind, call->in, call->count, out);
    if (joins) out->dims[out->rank - 1] = sum;
    return DL_OK;
}

enum dl_code dl_keras_dropout(struct dl_keras *k, struct dl_keras_call *call,
                              struct dl_keras_value *out) {
    struct dl_json_writer w = dl_keras_begin(k, call->name, "dropout", call->in, 1);
    dl_jw_number(&w, "dropout", dl_keras_number(call->config, "rate", 0));
    dl_keras_end(k, &w);
    *out = call->in[0];
    out->item = call->name;
    return DL_OK;
}

enum dl_code dl_keras_normalize(struct dl_keras *k, struct dl_keras_call *call,
                                struct dl_keras_value *out) {
    const bool batch = strcmp(call->class, "BatchNormalization") == 0,
               rms = strcmp(call->class, "RMSNormalization") == 0,
               whole = dl_keras_flag(call->config, "scale", true) &&
                       (rms || dl_keras_flag(call->config, "center", true));
    if (!whole) dl_keras_remark(k, "a normalization lacks its scale or shift; both are counted");
    dl_keras_plain(k, call->name,
                   batch ? "batchnorm"
                   : rms ? "rmsnorm"
                         : "layernorm",
                   call->in, 1, out);
    return DL_OK;
}

enum dl_code dl_keras_flatten(struct dl_keras *k, struct dl_keras_call *call,
                              struct dl_keras_value *out) {
    double elements = 1;
    for (int i = 0; i < call->in[0].rank; i++) elements *= call->in[0].dims[i];
    if (call->in[0].rank == 1 && !call->in[0].image) {
        *out = call->in[0];
        return DL_OK;
    }
    dl_keras_plain(k, call->name, "flatten", call->in, 1, out);
    out->rank = 1;
    out->dims[0] = elements;
    out->image = out->pooled = false;
    return DL_OK;
}

/* Pixels as a sequence; one pixel as a vector or the other way round. */
enum dl_code dl_keras_reshape(struct dl_keras *k, struct dl_keras_call *call,
                              struct dl_keras_value *out) {
    const struct dl_keras_value *in = &call->in[0];
    const struct dl_json_node *target = dl_keras_member(call->config, "target_shape");
    double all = 1, known = 1, dims[DL_KERAS_RANK];
    int rank = 0, open = -1;
    for (int i = 0; i < in->rank; i++) all *= in->dims[i];
    for (const struct dl_json_node *e = target != NULL ? target->child : NULL;
         e != NULL && rank < DL_KERAS_RANK; e = e->next, rank++) {
        dims[rank] = e->kind == DL_JSON_NUMBER ? e->number : NAN;
        if (dims[rank] == -1) open = rank;
        if (dims[rank] != -1) known *= dims[rank];
    }
    if (open >= 0) dims[open] = all / known;
    *out = *in;
    const double last = rank > 0 ? dims[rank - 1] : NAN;
    if (rank == 1) return dl_keras_flatten(k, call, out);
    if (last == dl_keras_channels(in) && in->pooled && rank == in->rank + 2) {
        out->pooled = false;
    } else if (last == dl_keras_channels(in) && in->image && rank == 2) {
        dl_keras_plain(k, call->name, "tokens", in, 1, out);
        out->image = false;
    } else if (rank != in->rank || memcmp(dims, in->dims, (size_t)rank * sizeof *dims) != 0) {
        return dl_keras_fail(k, call->layer, call->name, "this change of shape has no kind");
    }
    out->rank = rank;
    memcpy(out->dims, dims, (size_t)rank * sizeof *dims);
    return DL_OK;
}

enum dl_code dl_keras_pass(struct dl_keras *k, struct dl_keras_call *call,
                           struct dl_keras_value *out) {
    static const char *const silent[] = {"Masking", "ActivityRegularization", "InputLayer", NULL};
    bool said = true;
    for (int i = 0; silent[i] != NULL; i++) said = said && strcmp(call->class, silent[i]) != 0;
    if (said)
        dl_keras_remark(k, dl_arena_printf(k->arena, "left out: %.60s (preparation of the input)",
                                           call->class));
    *out = call->in[0];
    return DL_OK;
}

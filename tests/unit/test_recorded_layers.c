/* Recorded results (recorded.h: a regression net, no oracle) of layers: every kind of layer with
 * keys drawn at random behind images, volumes, sequences and vectors - its shape, parameters and
 * kept activations, its kernels in each pass under any facts of a framework, or why it is refused;
 * and every network of data/ as a whole and cut over devices.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/engine/split.h"
#include "model/workload/layer.h"
#include "tests/any_case.h"
#include "tests/recorded.h"

enum { DRAWS = 120, TEXT_BYTES = 4096 };

/* What the entry says for one key: mostly possible, now and then not. */
static const char *value_of(const char *key) {
    static const char *const booleans[] = {"true", "false", "1", "\"2 - 1\""};
    static const char *const numbers[] = {"1", "2", "4",   "8",         "3", "16", "64",
                                          "2", "7", "0.5", "\"c * 2\"", "0", "-1", "1e9"};
    static const char *const extents[] = {"1",         "2",           "3",   "[3, 1]", "[1, 2]",
                                          "[2, 3, 1]", "\"seq / 4\"", "0.5", "5",      "0"};
    static const char *const flags[] = {"causal",   "flash",         "bias",   "ceil",
                                        "in_place", "bidirectional", "sparse", "additive",
                                        "gated",    "router_bias",   "sinks"};
    static const char *const sized[] = {"kernel", "stride", "pad", "dilation", "size"};
    for (int i = 0; i < 11; i++)
        if (strcmp(key, flags[i]) == 0) return booleans[upto(once_in(20) ? 4 : 2)];
    for (int i = 0; i < 5; i++)
        if (strcmp(key, sized[i]) == 0) return extents[upto(once_in(3) ? 10 : 3)];
    if (strcmp(key, "tied") == 0) return once_in(3) ? "\"b\"" : "\"none\"";
    if (strcmp(key, "dropout") == 0 || strcmp(key, "scale") == 0)
        return once_in(6) ? "1.5" : once_in(3) ? "0" : "0.1";
    return numbers[upto(once_in(5) ? 14 : 8)];
}

static const char *const inputs[] = {
    "{\"channels\": 3, \"size\": [24, 20]}", "{\"channels\": 8, \"size\": [8, 12, 10]}",
    "{\"tokens\": \"seq\"}", "{\"channels\": 48}", "{\"channels\": 16, \"size\": [16, 16]}"};

/* A network whose last entry is the layer; the first is there twice, so that a layer can read two
 * tensors. Sequences come from an embedding. */
static size_t write_network(const struct dl_layer_kind *kind, int input, char *text) {
    const bool tokens = input == 2;
    /* one of two tensors may have another shape */
    const char *other = input != 2 && input != 3 && once_in(3)
                            ? "\"maxpool\", \"kernel\": 2, \"stride\": 2"
                            : "\"sigmoid\"";
    const int wanted = kind->inputs_min +
                       (once_in(12) || (kind->inputs_max > kind->inputs_min && once_in(2)) ? 1 : 0);
    size_t n = (size_t)snprintf(
        text, TEXT_BYTES,
        "{\"format\": \"dlmodel-workload\", \"version\": 1, \"name\": \"one\", \"summary\": "
        "\"s\",\n"
        " \"source\": \"test\", \"family\": \"cnn\", \"parameters\": {\"seq\": 32, \"c\": 8},\n"
        " \"input\": %s,\n \"layers\": [\n",
        inputs[input]);
    if (tokens && kind != &dl_layer_embedding)
        n += (size_t)snprintf(
            text + n, TEXT_BYTES - n,
            "{\"kind\": \"embedding\", \"name\": \"e\", \"rows\": 100, \"out\": 96},\n");
    if (!tokens || kind != &dl_layer_embedding)
        n += (size_t)snprintf(text + n, TEXT_BYTES - n,
                              "{\"kind\": \"relu\", \"name\": \"a\"},\n"
                              "{\"kind\": %s, \"name\": \"b\", \"from\": \"a\"},\n",
                              other);
    n += (size_t)snprintf(text + n, TEXT_BYTES - n, "{\"kind\": \"%s\", \"name\": \"x\"",
                          kind->name);
    if (wanted > 1)
        n += (size_t)snprintf(text + n, TEXT_BYTES - n, ", \"from\": [\"a\", \"b\"%s]",
                              wanted > 2 ? ", \"a\"" : "");
    for (int i = 0; i < DL_LAYER_KEYS; i++) {
        const unsigned key = 1u << i;
        const bool there = (kind->needs & key) != 0   ? !once_in(30)
                           : (kind->takes & key) != 0 ? once_in(3)
                                                      : once_in(400);
        if (there)
            n += (size_t)snprintf(text + n, TEXT_BYTES - n, ",\n  \"%s\": %s",
                                  dl_layer_key_names[i], value_of(dl_layer_key_names[i]));
    }
    n += (size_t)snprintf(text + n, TEXT_BYTES - n, "},\n{\"kind\": \"relu\", \"name\": \"y\"}]}");
    return n;
}

static struct dl_kernel_facts random_facts(void) {
    struct dl_kernel_facts facts = {.precision = once_in(2) ? DL_MIXED : DL_FP32};
    facts.attention = (enum dl_attention_kernel)upto(3);
    facts.layernorm = (enum dl_layernorm_kernels)upto(5);
    facts.gelu = (enum dl_gelu_kernels)upto(3);
    facts.dropout = (enum dl_dropout_kernels)upto(3);
    facts.softmax = (enum dl_softmax_kernels)upto(3);
    facts.batchnorm = (enum dl_batchnorm_kernels)upto(4);
    facts.bias = (enum dl_bias_kernels)upto(2);
    facts.loss = (enum dl_loss_kernels)upto(6);
    facts.sums = (enum dl_sum_kernels)upto(2);
    facts.fusion = (enum dl_fusion)upto(3);
    facts.policy = (enum dl_mixed_policy)upto(DL_MIXED_POLICIES);
    facts.head_copies = upto(3), facts.score_kernels = upto(3);
    facts.norm_small_kernels = upto(3);
    facts.weight_copies = once_in(3), facts.activation_copies = once_in(3);
    facts.eager = once_in(3), facts.wide_norms = once_in(3);
    return facts;
}

static void add_kernel(struct recorded_sum *sum, const struct dl_kernel *k) {
    const double values[] = {1 + (double)k->op + 10 * (double)k->pass + 100 * (double)k->work,
                             1 + (double)k->variant + 10 * k->has_type + 20 * (double)k->type,
                             1 + k->a_trans + 2 * k->b_trans + 4 * k->causal,
                             k->m,
                             k->n,
                             k->k,
                             k->count,
                             k->batch,
                             k->in_channels,
                             k->out_channels,
                             k->groups,
                             k->heads,
                             k->kv_heads,
                             k->queries,
                             k->keys,
                             k->head_dim,
                             k->value_dim,
                             k->window,
                             k->flop,
                             k->read_elements,
                             k->write_elements,
                             k->extra_bytes,
                             k->launches};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) recorded_add(sum, values[i]);
    for (int d = 0; d < DL_DIMS; d++) {
        recorded_add(sum, k->in[d]), recorded_add(sum, k->out[d]);
        recorded_add(sum, k->kernel[d]), recorded_add(sum, k->stride[d] + 0.1 * k->pad[d]);
    }
}

/* Without its twin, which padding may hide (layer_twin.c). */
static void add_layer(struct recorded_sum *sum, const struct dl_layer *l) {
    const double values[] = {l->out.channels,
                             l->out.dims,
                             l->in_elements,
                             l->parameter_elements,
                             l->buffer_elements,
                             l->forward_macs,
                             l->saved_elements,
                             l->saved_bytes,
                             l->own_elements,
                             l->keeps,
                             l->consumers,
                             l->tied_to,
                             l->block + 2.0,
                             1 + l->detached + 2 * l->first + 4 * l->view + 8 * l->recomputable,
                             dl_layer_model_macs(l),
                             dl_layer_attention_pairs(l),
                             dl_layer_active_parameters(l)};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) recorded_add(sum, values[i]);
    for (int d = 0; d < DL_DIMS; d++) recorded_add(sum, l->out.size[d]);
    for (int i = 0; i < l->parameter_count; i++) recorded_add(sum, l->parameters[i].elements);
}

static void record_passes(const struct dl_layer *layer) {
    static const char *const names[] = {"forward", "backward data", "backward weights"};
    const struct dl_kernel_facts facts = random_facts();
    for (int pass = DL_FORWARD; pass <= DL_BACKWARD_WEIGHTS; pass++) {
        struct dl_kernel kernels[DL_LAYER_KERNELS];
        struct recorded_sum sum = {0};
        const int count =
            layer->kind->kernels(layer, &facts, (enum dl_pass)pass, 1 + upto(8), kernels);
        for (int i = 0; i < count; i++) add_kernel(&sum, &kernels[i]);
        recorded_sum_of(names[pass], &sum);
    }
}

static void record_network(const struct dl_layer_kind *kind, int draw) {
    static char text[TEXT_BYTES];
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_json *doc;
    struct dl_workload w;
    const size_t length = write_network(kind, draw % 5, text);
    if (dl_json_parse("FILE", text, length, &arena, &doc, &err) != DL_OK) fail_msg("%s", text);
    const struct dl_json *const docs[] = {doc};
    if (dl_workload_build(docs, 1, NULL, 0, &arena, &w, &err) != DL_OK) {
        recorded_error("refusal", &err);
    } else {
        struct recorded_sum sum = {0}, whole = {0};
        const struct dl_layer *layer = &w.layers[w.layer_count - 2];
        add_layer(&sum, layer);
        recorded_sum_of("layer", &sum);
        for (int i = 0; i < w.layer_count; i++) add_layer(&whole, &w.layers[i]);
        recorded_add(&whole, w.activation_elements_per_sample);
        recorded_add(&whole, w.model_macs_per_sample + w.active_parameters);
        recorded_sum_of("network", &whole);
        record_passes(layer);
    }
    dl_arena_free(&arena);
}

static void kinds_of_layers(void **state) {
    (void)state;
    recorded_open("layers");
    seed = 61;
    for (int k = 0; dl_layer_kinds[k] != NULL; k++) {
        for (int draw = 0; draw < DRAWS; draw++) {
            char title[100];
            snprintf(title, sizeof title, "%s, draw %d", dl_layer_kinds[k]->name, draw);
            recorded_case(title);
            record_network(dl_layer_kinds[k], draw);
            recorded_end_case();
        }
    }
    recorded_close();
}

/* The network as one device of `parts` has it, the messages at its edges, and the most parts. */
static void record_split(const struct dl_workload *w, enum dl_split_kind kind, double parts,
                         int dims, const char *name) {
    struct dl_split split = {.kind = kind, .parts = parts, .grid = {1, 1, 1}};
    struct dl_arena arena = {0};
    struct dl_workload part;
    struct dl_err err = {0};
    struct recorded_sum sum = {0}, halos = {0};
    const char *layer = NULL;
    bool *is_split = dl_arena_alloc(&arena, (size_t)w->layer_count, sizeof *is_split);
    assert_non_null(is_split);
    if (kind == DL_SPLIT_SPATIAL)
        recorded_add(&halos, 1 + dl_split_grid(w, parts, dims, split.grid));
    recorded_add(&halos, dl_split_limit(w, kind, dims, &layer));
    dl_split_layers(w, &split, is_split);
    if (dl_split_workload(w, &split, is_split, &arena, &part, &err) != DL_OK)
        fail_msg("%s", err.message);
    for (int i = 0; i < w->layer_count; i++) {
        add_layer(&sum, &part.layers[i]), recorded_add(&sum, 1 + is_split[i]);
        for (int d = 0; kind == DL_SPLIT_SPATIAL && d < DL_DIMS; d++) {
            recorded_add(&halos, dl_split_halo_elements(&w->layers[i], &split, d, false));
            recorded_add(&halos, dl_split_halo_elements(&w->layers[i], &split, d, true));
        }
    }
    recorded_sum_of(name, &sum);
    recorded_sum_of(name, &halos);
    recorded_text("layer that limits it", layer);
    dl_arena_free(&arena);
}

static void networks(void **state) {
    (void)state;
    recorded_open("networks");
    seed = 62;
    for (int i = 0; i < all.workload_count; i++) {
        const struct dl_workload *w = all.workloads[i];
        struct recorded_sum sum = {0};
        recorded_case(w->name);
        for (int l = 0; l < w->layer_count; l++) add_layer(&sum, &w->layers[l]);
        recorded_sum_of("layers", &sum);
        recorded_number("parameters", w->parameters);
        recorded_number("active_parameters", w->active_parameters);
        recorded_number("model_macs_per_sample", w->model_macs_per_sample);
        recorded_number("input_bytes_per_sample", w->input_bytes_per_sample);
        recorded_number("stack", 1e6 * w->stack.first + 1e3 * w->stack.count + w->stack.each);
        recorded_number("lead", w->stack.lead);
        record_passes(&w->layers[upto(w->layer_count)]);
        record_split(w, DL_SPLIT_FILTER, 2 + upto(4), 2, "split by filters");
        record_split(w, DL_SPLIT_CHANNEL, 2 + upto(4), 2, "split by channels");
        for (int dims = 1; dims <= DL_DIMS; dims++)
            record_split(w, DL_SPLIT_SPATIAL, dims == 3 ? 8 : 4, dims, "split in space");
        recorded_end_case();
    }
    recorded_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds_of_layers),
                                       cmocka_unit_test(networks)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}

/* fuzz_workload.c - libFuzzer entry for workload files: whatever builds has finite counts, inputs
 * that come before their layers, and kernels with finite work. Input: optional lines "KEY=VALUE"
 * without '{', then the document.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/workload/workload.h"
#include "tests/fuzz/mutate.h"

static const struct dl_kernel_facts PLAIN = {.precision = DL_FP32};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_JSON()

enum { MAX_OVERRIDES = 4 };

static void demand(bool truth) {
    if (!truth) abort();
}

static int take_overrides(struct dl_arena *arena, const char **text, size_t *length,
                          struct dl_override *out) {
    int count = 0;
    while (count < MAX_OVERRIDES) {
        const char *end = memchr(*text, '\n', *length);
        size_t line = end != NULL ? (size_t)(end - *text) : 0;
        const char *equals = memchr(*text, '=', line);
        if (end == NULL || equals == NULL || memchr(*text, '{', line) != NULL) break;
        out[count].key = dl_arena_strndup(arena, *text, (size_t)(equals - *text));
        out[count].value = dl_arena_strndup(arena, equals + 1, (size_t)(end - equals - 1));
        out[count].used = false;
        if (out[count].key == NULL || out[count].value == NULL) break;
        count++;
        *length -= line + 1;
        *text = end + 1;
    }
    return count;
}

static void check_layer(const struct dl_workload *w, int index) {
    const struct dl_layer *layer = &w->layers[index];
    for (int i = 0; i < layer->input_count; i++)
        demand(layer->inputs[i] >= -1 && layer->inputs[i] < index);
    demand(dl_shape_elements(&layer->out) >= 1.0);
    demand(isfinite(layer->forward_macs) && layer->forward_macs >= 0.0);
    demand(isfinite(layer->saved.elements) && layer->saved.elements >= 0.0 &&
           layer->saved.bytes >= 0.0);
    for (int pass = DL_FORWARD; pass <= DL_BACKWARD_WEIGHTS; pass++) {
        struct dl_kernel kernels[DL_LAYER_KERNELS];
        int count = layer->kind->kernels(layer, &PLAIN, (enum dl_pass)pass, 2.0, kernels);
        demand(count >= 0 && count <= DL_LAYER_KERNELS);
        for (int k = 0; k < count; k++) {
            demand(isfinite(kernels[k].flop) && kernels[k].flop >= 0.0);
            demand(isfinite(kernels[k].read_elements) && kernels[k].read_elements >= 0.0);
            demand(isfinite(kernels[k].write_elements) && kernels[k].write_elements >= 0.0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_json *doc = NULL;
    struct dl_workload w;
    struct dl_override overrides[MAX_OVERRIDES];
    const char *text = (const char *)data, *ignored;
    int count = take_overrides(&arena, &text, &size, overrides);
    if (dl_json_parse("fuzz.json", text, size, &arena, &doc, &err) == DL_OK) {
        const struct dl_json *docs[] = {doc};
        (void)dl_workload_extends(doc, &arena, &ignored, &err);
        enum dl_code code = dl_workload_build(docs, 1, overrides, count, &arena, &w, &err);
        if (code == DL_OK) {
            for (int i = 0; i < w.layer_count; i++) check_layer(&w, i);
        } else {
            demand(err.message[0] != '\0');
        }
    }
    dl_arena_free(&arena);
    return 0;
}

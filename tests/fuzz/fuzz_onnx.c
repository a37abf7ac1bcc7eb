/* fuzz_onnx.c - libFuzzer entry for models: what is accepted has layers in order, each with a
 * shape. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "import/import_stack.h"
#include "tests/fuzz/mutate_onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A stack lies within the items, and its workload is a document. */
static void check_stack(struct dl_import_net *net) {
    struct dl_err err = {.code = DL_OK};
    struct dl_import_stack stack;
    struct dl_json *doc;
    if ((dl_import_find_stack(net, &stack), DL_OK) != DL_OK) abort();
    if (stack.count > 0 && (stack.count < 2 || stack.first < 0 || stack.each < 1 ||
                            stack.first + stack.count * stack.each > net->item_count))
        abort();
    const char *text = dl_import_text(net, &stack, "fuzz");
    if (text == NULL) abort();
    if (dl_json_parse("text", text, strlen(text), net->arena, &doc, &err) != DL_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    struct dl_onnx_graph graph;
    struct dl_import_net net;
    const struct dl_onnx_dim dims[] = {{"batch", 1}};

    if (dl_onnx_parse("input", data, size, &arena, &graph, &err) == DL_OK &&
        (dl_onnx_set_inputs(&graph, NULL, 0, &err) == DL_OK ||
         dl_onnx_set_inputs(&graph, dims, 1, &err) == DL_OK) &&
        dl_import_map(&graph, &net, &err) == DL_OK) {
        for (int i = 0; i < net.item_count; i++) { /* layers come after what they read */
            for (int k = 0; k < net.items[i].layer.input_count; k++) {
                if (net.items[i].layer.inputs[k] >= i ||
                    net.items[i].layer.inputs[k] < DL_FLOW_INPUT)
                    abort();
            }
            if (!(dl_shape_elements(&net.items[i].layer.out) >= 1)) abort();
        }
        if (net.left_count > graph.node_count) abort();
        check_stack(&net);
    } else if (err.code == DL_OK || err.message[0] == '\0') {
        abort();
    }
    dl_arena_free(&arena);
    return 0;
}

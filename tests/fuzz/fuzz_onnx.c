/* fuzz_onnx.c - libFuzzer entry for models: what is accepted has layers in order, each with a
 * shape. */
#include <stdint.h>
#include <stdlib.h>

#include "tests/fuzz/check_net.h"
#include "tests/fuzz/mutate_onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
        check_net(&net);
    } else if (err.code == DL_OK || err.message[0] == '\0') {
        abort();
    }
    dl_arena_free(&arena);
    return 0;
}

/* fuzz_pt2.c - libFuzzer entry for the JSON of torch.export archives: what is accepted has
 * layers in order, each with a shape. */
#include <stdint.h>

#include "import/import_pt2.h"
#include "tests/fuzz/check_net.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_BY_PIECES(":,[]{}\"")

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    struct dl_onnx_graph graph;
    struct dl_import_net net;
    const char *json = dl_arena_strndup(&arena, (const char *)data, size);

    if (dl_pt2_parse("input", json, strlen(json), &arena, &graph, &err) == DL_OK &&
        dl_onnx_set_inputs(&graph, NULL, 0, &err) == DL_OK &&
        dl_import_map(&graph, &net, &err) == DL_OK)
        check_net(&net);
    else if (err.code == DL_OK || err.message[0] == '\0')
        abort();
    dl_arena_free(&arena);
    return 0;
}

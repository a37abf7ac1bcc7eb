/* check_net.h - what holds for the layers of any graph that was read. */
#ifndef DL_TESTS_FUZZ_CHECK_NET_H
#define DL_TESTS_FUZZ_CHECK_NET_H

#include <stdlib.h>
#include <string.h>

#include "import/import_stack.h"

/* A stack lies within the items, and its workload is a document. */
static inline void check_stack(struct dl_import_net *net) {
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

static inline void check_net(struct dl_import_net *net) {
    for (int i = 0; i < net->item_count; i++) { /* layers come after what they read */
        for (int k = 0; k < net->items[i].layer.input_count; k++) {
            if (net->items[i].layer.inputs[k] >= i || net->items[i].layer.inputs[k] < DL_FLOW_INPUT)
                abort();
        }
        if (!(dl_shape_elements(&net->items[i].layer.out) >= 1)) abort();
    }
    if (net->left_count > net->graph->node_count) abort();
    check_stack(net);
}

#endif

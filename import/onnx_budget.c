/* onnx_budget.c - see the header. */
#include "import/onnx_budget.h"

#include <stdlib.h>

void *dl_onnx_take(void *budget, size_t size) {
    struct dl_onnx_budget *b = budget;
    void *memory = size > b->left ? NULL : malloc(size);
    b->refused = b->refused || (memory == NULL && size > 0);
    if (memory != NULL) b->left -= size;
    return memory;
}

void dl_onnx_give(void *budget, void *pointer) {
    (void)budget;
    free(pointer);
}

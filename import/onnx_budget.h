/* onnx_budget.h - limits the memory that a hostile ONNX file can make protobuf-c allocate. */
#ifndef DL_IMPORT_ONNX_BUDGET_H
#define DL_IMPORT_ONNX_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

struct dl_onnx_budget {
    size_t left;  /* bytes */
    bool refused; /* an allocation */
};

/* The two functions of a ProtobufCAllocator whose data is a struct dl_onnx_budget. */
void *dl_onnx_take(void *budget, size_t size);
void dl_onnx_give(void *budget, void *pointer);

#endif

/* fake_cudnn.h - what the two files of the fake cuDNN share. */
#ifndef TESTS_FAKE_CUDA_FAKE_CUDNN_H
#define TESTS_FAKE_CUDA_FAKE_CUDNN_H

#include <stddef.h>

#include "tests/fake_cuda/fake_gpu.h"

struct fakeTensor {
    enum fake_type type;
    int dims, extent[5];
    size_t count;
};

#endif

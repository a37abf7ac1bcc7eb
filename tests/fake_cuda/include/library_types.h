/* library_types.h - of the fake CUDA: see driver_types.h. */
#ifndef FAKE_LIBRARY_TYPES_H
#define FAKE_LIBRARY_TYPES_H
typedef enum { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14, CUDA_R_8F_E4M3 = 28 } cudaDataType;
typedef cudaDataType cudaDataType_t;
#endif

/* launch.c - one row a framework. What a row cannot say (meeting of the tasks, devices of a task)
 * is in the programs, which share slurm/frameworks/common.py. */
#include "slurm/launch.h"

#include <stddef.h>
#include <string.h>

/* A library that hangs when a peer dies holds the nodes until the time limit: let it fail instead.
 */
static const char *const torch_env[] = {"NCCL_ASYNC_ERROR_HANDLING=1",
                                        "TORCH_NCCL_ASYNC_ERROR_HANDLING=1", NULL};
static const char *const tf_env[] = {"TF_CPP_MIN_LOG_LEVEL=1", "TF_GPU_THREAD_MODE=gpu_private",
                                     "TF_FORCE_GPU_ALLOW_GROWTH=true", NULL};
static const char *const hvd_tf_env[] = {"TF_CPP_MIN_LOG_LEVEL=1", "TF_FORCE_GPU_ALLOW_GROWTH=true",
                                         NULL};
static const char *const mxnet_env[] = {"MXNET_CUDNN_AUTOTUNE_DEFAULT=1", NULL};
static const char *const mlsl_env[] = {"KMP_AFFINITY=granularity=fine,compact,1,0",
                                       "KMP_BLOCKTIME=1", NULL};
static const char *const megatron_env[] = {"CUDA_DEVICE_MAX_CONNECTIONS=1",
                                           "NCCL_ASYNC_ERROR_HANDLING=1", NULL};

#define DEV DL_TASKS_DEVICE
#define NODE DL_TASKS_NODE
#define ONE DL_TASKS_ONE
#define NOHELP DL_HELPERS_NONE

const struct dl_launch dl_launches[] = {
    {"tensorflow-ps", "tensorflow_bench.py", "ps", DEV, DL_HELPERS_PS, false, "data", "grpc",
     "grpc", tf_env},
    {"tensorflow-mirrored", "tensorflow_bench.py", "mirrored", ONE, NOHELP, false, "data", "nccl",
     "copy", tf_env},
    {"tensorflow-multiworker", "tensorflow_bench.py", "multiworker", NODE, NOHELP, false, "data",
     "nccl", "grpc", tf_env},
    {"keras-multi-gpu", "tensorflow_bench.py", "multi-gpu", ONE, NOHELP, false, "data", "copy",
     "copy", tf_env},
    {"keras-mirrored", "tensorflow_bench.py", "keras-mirrored", ONE, NOHELP, false, "data", "nccl",
     "copy", tf_env},
    {"pytorch-dp", "pytorch_bench.py", "dp", ONE, NOHELP, false, "data", "copy", "copy", torch_env},
    {"pytorch-ddp", "pytorch_bench.py", "ddp", DEV, NOHELP, false, "data", "nccl", "gloo",
     torch_env},
    {"pytorch-fsdp", "pytorch_bench.py", "fsdp", DEV, NOHELP, false, "zero3", "nccl", "gloo",
     torch_env},
    {"mxnet-device", "mxnet_bench.py", "device", ONE, NOHELP, false, "data", "copy", "copy",
     mxnet_env},
    {"mxnet-dist-sync", "mxnet_bench.py", "dist_sync", DEV, DL_HELPERS_KVSTORE, false, "data",
     "ps-lite", "ps-lite", mxnet_env},
    {"mxnet-dist-device-sync", "mxnet_bench.py", "dist_device_sync", NODE, DL_HELPERS_KVSTORE,
     false, "data", "ps-lite", "ps-lite", mxnet_env},
    {"mxnet-dist-async", "mxnet_bench.py", "dist_async", DEV, DL_HELPERS_KVSTORE, false, "data",
     "ps-lite", "ps-lite", mxnet_env},
    {"horovod-tensorflow", "tensorflow_bench.py", "horovod", DEV, NOHELP, true, "data", "nccl",
     "mpi", hvd_tf_env},
    {"horovod-pytorch", "pytorch_bench.py", "horovod", DEV, NOHELP, true, "data", "nccl", "mpi",
     NULL},
    {"horovod-mxnet", "mxnet_bench.py", "horovod", DEV, NOHELP, true, "data", "nccl", "mpi",
     mxnet_env},
    {"horovod-keras", "tensorflow_bench.py", "horovod-keras", DEV, NOHELP, true, "data", "nccl",
     "mpi", hvd_tf_env},
    {"chainermn", "chainer_bench.py", "pure_nccl", DEV, NOHELP, true, "data", "nccl", "mpi", NULL},
    {"caffe-nccl", "caffe_bench.py", "nccl", ONE, NOHELP, false, "data", "nccl", "none", NULL},
    {"caffe-mlsl", "caffe_bench.py", "mlsl", DEV, NOHELP, true, "data", "mlsl", "mlsl", mlsl_env},
    {"cntk-1bit", "cntk_bench.py", "1bit", DEV, NOHELP, true, "data", "mpi", "mpi", NULL},
    {"megatron", "megatron_bench.py", "gpt", DEV, NOHELP, false, "tensor", "nccl", "gloo",
     megatron_env},
    {"deepspeed-zero1", "pytorch_bench.py", "zero1", DEV, NOHELP, false, "zero1", "nccl", "gloo",
     torch_env},
    {"deepspeed-zero2", "pytorch_bench.py", "zero2", DEV, NOHELP, false, "zero2", "nccl", "gloo",
     torch_env},
    {"deepspeed-zero3", "pytorch_bench.py", "zero3", DEV, NOHELP, false, "zero3", "nccl", "gloo",
     torch_env},
    {"custom", NULL, NULL, DEV, NOHELP, true, "data", "unknown", "unknown", NULL},
    {.framework = NULL},
};

const char *const dl_launch_names[] = {
    "tensorflow-ps",
    "tensorflow-mirrored",
    "tensorflow-multiworker",
    "keras-multi-gpu",
    "keras-mirrored",
    "pytorch-dp",
    "pytorch-ddp",
    "pytorch-fsdp",
    "mxnet-device",
    "mxnet-dist-sync",
    "mxnet-dist-device-sync",
    "mxnet-dist-async",
    "horovod-tensorflow",
    "horovod-pytorch",
    "horovod-mxnet",
    "horovod-keras",
    "chainermn",
    "caffe-nccl",
    "caffe-mlsl",
    "cntk-1bit",
    "megatron",
    "deepspeed-zero1",
    "deepspeed-zero2",
    "deepspeed-zero3",
    "custom",
    NULL,
};

const struct dl_launch *dl_launch_find(const char *framework) {
    for (const struct dl_launch *row = dl_launches; row->framework != NULL; row++) {
        if (strcmp(row->framework, framework) == 0) return row;
    }
    return NULL;
}

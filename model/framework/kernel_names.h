/* kernel_names.h - names of the discrete facts about kernels in framework files, in the order of
 * their enumerations (workload/kernel_facts.h, framework.h). For framework_fields.c. */
#ifndef DL_MODEL_FRAMEWORK_KERNEL_NAMES_H
#define DL_MODEL_FRAMEWORK_KERNEL_NAMES_H

#include <stddef.h>

#include "model/framework/framework.h"
#include "model/workload/kernel_facts.h"

static const char *const layernorm_names[] = {"fused",    "moments",    "batchnorm", "compiled",
                                              "composed", "one-kernel", NULL};
static const char *const gelu_names[] = {"fused", "erf", "composed", NULL};
static const char *const dropout_names[] = {"fused", "compiled", "composed", NULL};
static const char *const softmax_names[] = {"fused", "compiled", "composed", NULL};
static const char *const batchnorm_names[] = {"spatial", "persistent", "transposed", "composed",
                                              NULL};
static const char *const pooling_names[] = {"cudnn", "indices", NULL};
static const char *const bias_names[] = {"epilogue", "kernel", NULL};
static const char *const loss_names[] = {"fused",    "composed", "eager", "parallel",
                                         "compiled", "scored",   NULL};
static const char *const sum_names[] = {"pairs", "at-once", NULL};
static const char *const fusion_names[] = {"none", "forward", "both", NULL};
static const char *const layout_names[] = {"nchw", "nhwc", NULL};
static const char *const policy_names[] = {[DL_MIXED_HALF] = "half",
                                           [DL_MIXED_AUTOCAST] = "autocast",
                                           [DL_MIXED_AUTOCAST_GELU] = "autocast-gelu",
                                           [DL_MIXED_REWRITE] = "rewrite",
                                           [DL_MIXED_REWRITE_SOFTMAX] = "rewrite-softmax",
                                           [DL_MIXED_REWRITE_COMPILED] = "rewrite-compiled",
                                           [DL_MIXED_KERAS] = "keras",
                                           NULL};
static const char *const yes_names[] = {"no", "yes", NULL};
static const char *const decay_names[] = {"optimizer", "loss", NULL};

#endif

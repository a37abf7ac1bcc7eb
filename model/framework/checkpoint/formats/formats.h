/* formats.h - the rows of dl_checkpoint_formats, by platform one file each. */
#ifndef DL_MODEL_FRAMEWORK_CHECKPOINT_FORMATS_FORMATS_H
#define DL_MODEL_FRAMEWORK_CHECKPOINT_FORMATS_FORMATS_H

#include "model/framework/checkpoint/checkpoint_format.h"

extern const struct dl_checkpoint_format dl_checkpoint_torch_save, dl_checkpoint_safetensors,
    dl_checkpoint_torch_dcp, dl_checkpoint_torch_dcp_async, dl_checkpoint_tensorflow_v2,
    dl_checkpoint_keras, dl_checkpoint_keras_h5, dl_checkpoint_keras_weights_h5,
    dl_checkpoint_mxnet_params, dl_checkpoint_npz, dl_checkpoint_npz_compressed,
    dl_checkpoint_chainermn, dl_checkpoint_megatron, dl_checkpoint_deepspeed_zero;

/* Bytes of torch.save's archive besides the data of its tensors. */
double dl_checkpoint_torch_bytes(double tensors, double name_chars, double archive_chars);

#endif

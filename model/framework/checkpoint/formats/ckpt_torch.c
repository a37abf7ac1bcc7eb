/* ckpt_torch.c - torch.save, safetensors, and the shards of Megatron and DeepSpeed, which are
 * archives of torch.save.
 *
 * The archive is a zip without compression: a pickle of the structure, a record of each storage
 * aligned to 64 bytes and followed by a data descriptor of 16 bytes, and five small records.
 */
#include "model/framework/checkpoint/formats/formats.h"

#include <math.h>

static const double DESCRIPTOR_BYTES = 16, MEAN_PADDING_BYTES = 35.5, PICKLED_TENSOR_BYTES = 80,
                    SMALL_RECORDS_BYTES = 1200, RECORD_CHARS = 9;

double dl_checkpoint_torch_bytes(double tensors, double name_chars, double archive_chars) {
    return SMALL_RECORDS_BYTES +
           tensors * (dl_checkpoint_zip_bytes(archive_chars + RECORD_CHARS,
                                              DESCRIPTOR_BYTES + MEAN_PADDING_BYTES) +
                      PICKLED_TENSOR_BYTES + name_chars);
}

static double torch_save_bytes(const struct dl_checkpoint_content *c, double ranks) {
    (void)ranks;
    return dl_checkpoint_torch_bytes(c->tensor_count, c->name_char_count, 10);
}

const struct dl_checkpoint_format dl_checkpoint_torch_save = {
    .name = "torch-save",
    .summary = "torch.save of state_dict()s: one file, by rank 0",
    .source = "pytorch-checkpoint-source",
    .counters = DL_COUNTERS_TORCH,
    .saves = DL_SAVES_WEIGHTS | DL_SAVES_OPTIMIZER,
    .also = "RNG states of torch, numpy and random, position of the sampler, GradScaler: a script "
            "adds them to the dictionary",
    .overhead_bytes = torch_save_bytes,
    .ratio = 1,
};

/* 8 bytes of length and a JSON object that ends at a multiple of 8: for each tensor its name,
 * dtype, shape (a comma and about three digits a dimension) and two offsets. */
static double safetensors_bytes(const struct dl_checkpoint_content *c, double ranks) {
    (void)ranks;
    const double offset_chars = fmax(1, floor(log10(fmax(c->data_bytes, 1))) + 1);
    const double fixed =
        3 + 23 + 18 + 4; /* "":  {"dtype":"F32","shape":[  ],"data_offsets":[  ]}, */
    return 8 + 4 +
           c->tensor_count * (fixed + c->name_char_count + 4 * c->dim_count + 2 * offset_chars);
}

const struct dl_checkpoint_format dl_checkpoint_safetensors = {
    .name = "safetensors",
    .summary = "safetensors: a JSON header and the tensors, by rank 0",
    .source = "safetensors-format",
    .counters = DL_COUNTERS_TORCH,
    .saves = DL_SAVES_WEIGHTS,
    .also = "everything that is no tensor: hyper-parameters of the optimizer, RNG states, position "
            "of the sampler; optimizer states only if a script flattens them",
    .overhead_bytes = safetensors_bytes,
    .ratio = 1,
};

/* Every rank pickles its own part: a rank's file has its share of the tensors. */
static double shards_bytes(const struct dl_checkpoint_content *c, double ranks) {
    return dl_checkpoint_torch_bytes(c->tensor_count, c->name_char_count, 20) + (ranks - 1) * 1200;
}

const struct dl_checkpoint_format dl_checkpoint_megatron = {
    .name = "megatron",
    .summary = "Megatron: torch.save of each model-parallel rank, optimizer by data-parallel rank",
    .source = "megatron-checkpoint-source",
    .probe = "torch-save",
    .writers = DL_WRITER_SHARD,
    .counters = DL_COUNTERS_NONE,
    .saves =
        DL_SAVES_WEIGHTS | DL_SAVES_OPTIMIZER | DL_SAVES_RNG | DL_SAVES_POSITION | DL_SAVES_SCALE,
    .overhead_bytes = shards_bytes,
    .ratio = 1,
};

/* Two files a rank: of the weights a list of names and shapes, of the optimizer flat partitions. */
static double zero_bytes(const struct dl_checkpoint_content *c, double ranks) {
    return dl_checkpoint_torch_bytes(c->tensor_count, c->name_char_count, 20) +
           (2 * ranks - 1) * 1200 + ranks * 8 * dl_checkpoint_zip_bytes(20, 132);
}

const struct dl_checkpoint_format dl_checkpoint_deepspeed_zero = {
    .name = "deepspeed-zero",
    .summary = "DeepSpeed: model states and, of each rank, its ZeRO partition of optimizer states",
    .source = "deepspeed-checkpoint-source",
    .probe = "torch-save",
    .writers = DL_WRITER_SHARD,
    .counters = DL_COUNTERS_NONE,
    .saves = DL_SAVES_WEIGHTS | DL_SAVES_OPTIMIZER | DL_SAVES_SCALE,
    .also = "RNG states and position of the sampler: client_state of save_checkpoint",
    .overhead_bytes = zero_bytes,
    .ratio = 1,
};

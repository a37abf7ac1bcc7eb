/* ckpt_arrays.c - lists of arrays: MXNet's .params, and the npz files of Chainer and ChainerMN. */
#include "model/framework/checkpoint/formats/formats.h"

/* Magic number, reserved word and count of arrays; of an array its magic number, storage type,
 * number of dimensions and each of them (8 bytes), device (8) and type; then count of names, of
 * each its length and characters. */
static double mxnet_bytes(const struct dl_checkpoint_content *c, double ranks) {
    (void)ranks;
    return 3 * 8 + 8 +
           c->tensor_count * (4 + 4 + 4 + 8 * c->dim_count + 8 + 4 + 8 + c->name_char_count);
}

const struct dl_checkpoint_format dl_checkpoint_mxnet_params = {
    .name = "mxnet-params",
    .summary = "MXNet save_checkpoint, Trainer.save_states: .params and .states, by rank 0",
    .source = "mxnet-checkpoint-source",
    .counters = DL_COUNTERS_NONE,
    .saves = DL_SAVES_WEIGHTS | DL_SAVES_OPTIMIZER,
    .also = "RNG states (mx.random has no getter: not bit-exact with dropout), position of the "
            "iterator; states of a KVStore's servers only by save_optimizer_states",
    .overhead_bytes = mxnet_bytes,
    .ratio = 1,
};

/* A record NAME.npy with an extra field for 64-bit sizes (20 bytes) and a header of 128 bytes. */
static double npz_bytes(const struct dl_checkpoint_content *c, double ranks) {
    (void)ranks;
    return 22 + c->tensor_count * dl_checkpoint_zip_bytes(c->name_char_count + 4, 20 + 128);
}

/* zlib packs headers of arrays to half their size. */
static double packed_bytes(const struct dl_checkpoint_content *c, double ranks) {
    (void)ranks;
    return 22 + c->tensor_count * dl_checkpoint_zip_bytes(c->name_char_count + 4, 20 + 64);
}

/* fp32 values of trained networks: the exponent's bits compress, the fraction's do not. */
#define DEFLATED_RATIO 0.926
#define CHAINER                                                                                    \
    .counters = DL_COUNTERS_NONE, .source = "chainer-checkpoint-source",                           \
    .saves = DL_SAVES_WEIGHTS | DL_SAVES_OPTIMIZER | DL_SAVES_POSITION,                            \
    .also = "RNG states of numpy and cupy (not among the trainer's states)"

const struct dl_checkpoint_format dl_checkpoint_npz = {
    .name = "npz",
    .summary = "save_npz(compression=False), numpy.savez: one file, by rank 0",
    .overhead_bytes = npz_bytes,
    .ratio = 1,
    CHAINER};
const struct dl_checkpoint_format dl_checkpoint_npz_compressed = {
    .name = "npz-compressed",
    .summary = "Chainer's snapshot, save_npz: deflated by one core, by rank 0",
    .overhead_bytes = packed_bytes,
    .ratio = DEFLATED_RATIO,
    CHAINER};
const struct dl_checkpoint_format dl_checkpoint_chainermn = {
    .name = "chainermn",
    .summary = "ChainerMN's multi-node checkpointer: every rank writes its whole snapshot",
    .probe = "npz-compressed",
    .writers = DL_WRITER_EVERY,
    .overhead_bytes = packed_bytes,
    .ratio = DEFLATED_RATIO,
    CHAINER};

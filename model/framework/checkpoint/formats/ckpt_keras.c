/* ckpt_keras.c - Keras: .keras (a zip of config.json and model.weights.h5), .h5 and .weights.h5.
 *
 * HDF5 in its earliest layout: a group takes an object header (40 bytes), a node of a B-tree (544),
 * a local heap (120) and a table of 8 symbols (328); a dataset its object header (272). Every
 * layer has a group in .weights.h5, with a group "vars" in it.
 */
#include "model/framework/checkpoint/formats/formats.h"

static const double GROUP_BYTES = 40 + 544 + 120 + 328, DATASET_BYTES = 272, TABLE_BYTES = 328,
                    SUPERBLOCK_BYTES = 2048;
/* config.json: class, name, arguments with defaults, and inputs of a layer, of a weighted one more;
 * also an attribute of .h5. */
static const double CONFIG_LAYER_BYTES = 900;

static double weights_bytes(const struct dl_checkpoint_content *c) {
    /* symbols of the layers and of the datasets beyond a group's first 8 */
    const double tables = (c->layers + c->tensor_count) / 6;
    return SUPERBLOCK_BYTES + (2 * c->layers + 4) * GROUP_BYTES + c->tensor_count * DATASET_BYTES +
           tables * TABLE_BYTES;
}

static double weights_h5_bytes(const struct dl_checkpoint_content *c, double ranks) {
    (void)ranks;
    return weights_bytes(c);
}

static double keras_bytes(const struct dl_checkpoint_content *c, double ranks) {
    (void)ranks;
    return weights_bytes(c) + c->layers * CONFIG_LAYER_BYTES + 3 * dl_checkpoint_zip_bytes(16, 20) +
           1500;
}

static double h5_bytes(const struct dl_checkpoint_content *c, double ranks) {
    (void)ranks;
    return weights_bytes(c) + c->layers * CONFIG_LAYER_BYTES + 1500;
}

#define KERAS                                                                                      \
    .source = "keras-checkpoint-source", .counters = DL_COUNTERS_KERAS, .ratio = 1,                \
    .saves = DL_SAVES_WEIGHTS | DL_SAVES_OPTIMIZER,                                                \
    .also = "states of seed generators (dropout; load_model starts them anew), position of the "   \
            "input; the loss scale of a LossScaleOptimizer is among its variables"

const struct dl_checkpoint_format dl_checkpoint_keras = {
    .name = "keras",
    .summary = "Keras 3 .keras: architecture, weights and optimizer, by rank 0",
    .overhead_bytes = keras_bytes,
    KERAS};
const struct dl_checkpoint_format dl_checkpoint_keras_h5 = {
    .name = "keras-h5",
    .summary = "Keras .h5 (HDF5): the same in one HDF5 file, by rank 0",
    .overhead_bytes = h5_bytes,
    KERAS};
const struct dl_checkpoint_format dl_checkpoint_keras_weights_h5 = {
    .name = "keras-weights-h5",
    .summary = "Keras 3 .weights.h5: weights and optimizer, by rank 0",
    .overhead_bytes = weights_h5_bytes,
    KERAS};

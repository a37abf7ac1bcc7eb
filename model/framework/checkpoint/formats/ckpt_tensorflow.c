/* ckpt_tensorflow.c - tf.train.Checkpoint (V2): checkpoint.data-*, the tensors one after the other
 * and the serialized object graph, and checkpoint.index, a sorted table of strings with an entry of
 * each tensor.
 */
#include "model/framework/checkpoint/formats/formats.h"

/* Key (prefixes shared with the one before are left out), BundleEntryProto; node and children in
 * the object graph. */
static const double ENTRY_BYTES = 75, GRAPH_BYTES = 110, FIXED_BYTES = 500;

static double v2_bytes(const struct dl_checkpoint_content *c, double ranks) {
    (void)ranks;
    return FIXED_BYTES + c->tensor_count * (ENTRY_BYTES + GRAPH_BYTES + c->name_char_count / 2);
}

const struct dl_checkpoint_format dl_checkpoint_tensorflow_v2 = {
    .name = "tensorflow-v2",
    .summary = "tf.train.Checkpoint: an index and data; under parameter servers data of each",
    .source = "tensorflow-checkpoint-source",
    .counters = DL_COUNTERS_KERAS,
    .saves = DL_SAVES_WEIGHTS | DL_SAVES_OPTIMIZER | DL_SAVES_SCALE,
    .also = "tf.random.Generator and the iterator of tf.data, if the script makes them members of "
            "the Checkpoint",
    .overhead_bytes = v2_bytes,
    .ratio = 1,
};

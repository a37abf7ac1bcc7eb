#!/usr/bin/env python3
"""Counts what a TensorFlow graph keeps of one BERT layer from forward to backward (F-MEM-COMPOSED).

The operations are those of BERT's public script (tanh form of GELU, moments and batch_normalization
for layer norms). TensorFlow's own graph rewriters run as on a V100, without a GPU:

    pip install tensorflow-cpu
    TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_SIMULATE_GPU=1 python3 tools/count_kept.py

prints, for fp32 and mixed precision, each tensor that a gradient reads, its type and its bytes per
token and hidden unit. TensorFlow 2.21 gives 194 and 150 (Korthikanti et al. 2022 count 74 in 16 bit
for kernels that are fused).
"""
import math
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_SIMULATE_GPU", "1")

import tensorflow as tf  # noqa: E402
from tensorflow.core.protobuf import config_pb2, device_properties_pb2, rewriter_config_pb2  # noqa: E402
from tensorflow.python.grappler import cluster, tf_optimizer  # noqa: E402
from tensorflow.python.training import saver  # noqa: E402

HIDDEN, HEADS, TOKENS, SAMPLES, FFN = 1024, 16, 512, 2, 4096
LAYERS = 3  # the middle one is counted
DEVICE = "/job:localhost/replica:0/task:0/device:GPU:0"
VIEWS = {"Reshape", "Identity", "ExpandDims", "Squeeze", "StopGradient"}
NO_ACTIVATIONS = {"VariableV2", "Const", "Placeholder"}
SHAPES_ONLY = {"Shape", "ShapeN", "BroadcastGradientArgs", "Size"}

v1 = tf.compat.v1


def dense(x, width, name):
    kernel = v1.get_variable(name + "/kernel", [int(x.shape[-1]), width])
    return tf.nn.bias_add(tf.matmul(x, kernel), v1.get_variable(name + "/bias", [width]))


def norm(x, name):
    width = [int(x.shape[-1])]
    mean, variance = v1.nn.moments(x, [1], keep_dims=True)
    return tf.nn.batch_normalization(x, mean, variance, v1.get_variable(name + "/beta", width),
                                     v1.get_variable(name + "/gamma", width), 1e-12)


def gelu(x):
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * tf.pow(x, 3))
    return x * 0.5 * (1.0 + tf.tanh(inner))


def dropout(x):
    return tf.nn.dropout(x, rate=0.1)


def layer(x, mask):
    def heads(name):
        split = tf.reshape(dense(x, HIDDEN, name), [SAMPLES, TOKENS, HEADS, HIDDEN // HEADS])
        return tf.transpose(split, [0, 2, 1, 3])

    scores = tf.matmul(heads("q"), heads("k"), transpose_b=True) / math.sqrt(HIDDEN / HEADS)
    scores += (1.0 - tf.cast(tf.expand_dims(mask, 1), tf.float32)) * -10000.0
    context = tf.matmul(dropout(tf.nn.softmax(scores)), heads("v"))
    context = tf.reshape(tf.transpose(context, [0, 2, 1, 3]), [SAMPLES * TOKENS, HIDDEN])
    x = norm(dropout(dense(context, HIDDEN, "out")) + x, "norm1")
    return norm(dropout(dense(gelu(dense(x, FFN, "fc1")), HIDDEN, "fc2")) + x, "norm2")


def meta_graph():
    v1.reset_default_graph()
    x = v1.placeholder(tf.float32, [SAMPLES * TOKENS, HIDDEN])
    mask = v1.placeholder(tf.int32, [SAMPLES, TOKENS, TOKENS])
    x = tf.matmul(x, v1.get_variable("first", [HIDDEN, HIDDEN]))
    for i in range(LAYERS):
        with v1.variable_scope("layer%d" % i):
            x = layer(x, mask)
    loss = tf.reduce_sum(tf.nn.log_softmax(tf.matmul(x, v1.get_variable("last", [HIDDEN, 8]))))
    gradients = v1.gradients(loss, v1.trainable_variables())
    train = tf.add_n([tf.reduce_sum(g) for g in gradients], name="gradients/train")
    v1.add_to_collection(v1.GraphKeys.TRAIN_OP, train)
    return saver.export_meta_graph(graph=v1.get_default_graph())


def rewritten(meta, mixed):
    config = config_pb2.ConfigProto()
    options = config.graph_options.rewrite_options
    options.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    options.min_graph_nodes = -1
    if mixed:
        options.auto_mixed_precision = rewriter_config_pb2.RewriterConfig.ON
    gpu = device_properties_pb2.DeviceProperties(
        type="GPU", vendor="NVIDIA", num_cores=80,
        environment={"architecture": "7.0", "cuda": "10010", "cudnn": "7605"})
    devices = [device_properties_pb2.NamedDevice(properties=gpu, name=DEVICE)]
    for node in meta.graph_def.node:
        node.device = DEVICE
    return tf_optimizer.OptimizeGraph(
        config, meta, cluster=cluster.Cluster(devices=devices, disable_detailed_stats=True),
        strip_default_attributes=False)


def backward_names(operations):
    """Gradients, and casts that the rewriter put behind them."""
    names = {o.name for o in operations if o.name.startswith("gradients")}
    for o in operations:  # in topological order
        if o.type in NO_ACTIVATIONS or o.name in names:
            continue
        if any(i.op.name in names and i.op.type not in SHAPES_ONLY | {"Const"} for i in o.inputs):
            names.add(o.name)
    return names


def origin(tensor):
    while tensor.op.type in VIEWS and tensor.op.inputs:
        tensor = tensor.op.inputs[0]
    return tensor


def kept(graph_def):
    """Tensors of the forward pass that the backward pass reads."""
    v1.reset_default_graph()
    tf.import_graph_def(graph_def, name="")
    operations = v1.get_default_graph().get_operations()
    backward = backward_names(operations)
    tensors = {}
    for o in operations:
        for t in o.outputs if o.name not in backward else []:
            if not any(c.name in backward and c.type not in SHAPES_ONLY for c in t.consumers()):
                continue
            t = origin(t)
            source = origin(t.op.inputs[0]) if t.op.type == "Cast" else t
            if t.op.type not in NO_ACTIVATIONS and source.op.type not in NO_ACTIVATIONS:
                tensors[t.name] = t
    return tensors.values()


def main():
    v1.disable_eager_execution()
    v1.disable_v2_behavior()
    unit = SAMPLES * TOKENS * HIDDEN
    for mixed in (False, True):
        total = 0
        print("mixed precision" if mixed else "fp32")
        for t in kept(rewritten(meta_graph(), mixed)):
            size = math.prod(t.shape.as_list()) * t.dtype.size / unit
            if not t.name.startswith("layer1/") or size < 0.1:
                continue
            total += size
            print("  %6.2f  %-8s %-14s %s" % (size, t.dtype.name, t.op.type, t.name))
        print("  %6.2f  bytes per token and hidden unit" % total)


if __name__ == "__main__":
    main()

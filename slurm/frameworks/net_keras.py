"""A dlmodel-network as a Keras model (functional API, channels last, which runs on CPUs and GPUs): one entry of KINDS a kind of layer.

Functions of Lambda layers import TensorFlow when they run: a model that holds on to a module cannot be saved.
"""


def whole(values):
    return tuple(int(v) for v in values)


def dims(layer):
    return len(layer["in"]) - 1


def pad_layer(keras, layer, x, value=0.0):
    """Explicit padding as the network says; "same" of TensorFlow pads otherwise when strides are even."""
    pad = layer.get("pad", [0] * dims(layer))
    if not any(pad):
        return x
    sides = [(int(p), int(p + 0.5)) for p in pad]
    if value:
        return keras.layers.Lambda(lambda t: __import__("tensorflow").pad(t, [(0, 0)] + sides + [(0, 0)], constant_values=value), name=name(layer) + "_pad")(x)
    kind = {1: keras.layers.ZeroPadding1D, 2: keras.layers.ZeroPadding2D, 3: keras.layers.ZeroPadding3D}[dims(layer)]
    return kind(sides[0] if dims(layer) == 1 else tuple(sides), name=name(layer) + "_pad")(x)


def conv(keras, layer, xs):
    d, x = dims(layer), pad_layer(keras, layer, xs[0])
    groups, options = int(layer.get("groups", 1)), {"use_bias": layer.get("bias", False), "name": name(layer)}
    if groups > 1 and groups == int(layer["in"][0]) == int(layer["out"][0]) and d == 2:
        return keras.layers.DepthwiseConv2D(whole(layer["kernel"]), whole(layer["stride"]), **options)(x)
    kind = {1: keras.layers.Conv1D, 2: keras.layers.Conv2D, 3: keras.layers.Conv3D}[d]
    dilation = whole(layer.get("dilation", [1] * d))
    return kind(int(layer["out"][0]), whole(layer["kernel"]), whole(layer["stride"]), dilation_rate=dilation, groups=groups, **options)(x)


def pool(keras, layer, xs):
    d, largest = dims(layer), layer["kind"] == "maxpool"
    # A window that begins inside the input but ends outside ("ceil") needs rows at the far side.
    x, spare = xs[0], [0] * d
    for i in range(d):
        need = (layer["out"][i + 1] - 1) * layer["stride"][i] + layer["kernel"][i]
        spare[i] = max(0, int(need - layer["in"][i + 1] - 2 * layer.get("pad", [0] * d)[i]))
    x = pad_layer(keras, layer, x, -1e30 if largest else 0.0)
    if any(spare):
        sides, value = [(0, 0)] + [(0, s) for s in spare] + [(0, 0)], -1e30 if largest else 0.0
        x = keras.layers.Lambda(lambda t: __import__("tensorflow").pad(t, sides, constant_values=value), name=name(layer) + "_spare")(x)
    kind = getattr(keras.layers, ("MaxPool" if largest else "AveragePooling") + "%dD" % d)
    return kind(whole(layer["kernel"]), whole(layer["stride"]), name=name(layer))(x)


def name(layer):
    return layer["name"].replace("/", "_")


def names_of(layer):
    """What the operations of a layer of the network are called."""
    return [name(layer), name(layer) + "_pad", name(layer) + "_spare"]


def one(make):
    return lambda keras, layer, xs: make(keras, layer)(xs[0])


def activation(word):
    return one(lambda keras, layer: keras.layers.Activation(word, name=name(layer)))


def attention(keras, layer, xs):
    import tensorflow as tf
    heads, causal = int(layer["heads"]), layer.get("causal", False)

    def call(t):
        width = int(layer["out"][0]) // heads
        q, k, v = (tf.split(t, 3, -1) if not isinstance(t, (list, tuple)) else t)
        q, k, v = (tf.transpose(tf.reshape(a, [-1, a.shape[1], heads, width]), [0, 2, 1, 3]) for a in (q, k, v))
        scores = tf.matmul(q, k, transpose_b=True) / width ** 0.5
        if causal:
            scores += -1e9 * (1 - tf.linalg.band_part(tf.ones(scores.shape[-2:], scores.dtype), -1, 0))
        out = tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3])
        return tf.reshape(out, [-1, out.shape[1], heads * width])
    return keras.layers.Lambda(call, name=name(layer))(xs if len(xs) > 1 else xs[0])


def lambda_of(call):
    return lambda keras, layer, xs: keras.layers.Lambda(call, name=name(layer))(xs[0])


def tokens(keras, layer, xs):
    return keras.layers.Reshape((int(layer["out"][1]), int(layer["out"][0])), name=name(layer))(xs[0])


def global_pool(keras, layer, xs):
    axes, keep = list(range(1, dims(layer) + 1)), len(layer["out"]) > 1
    return keras.layers.Lambda(lambda t: __import__("tensorflow").reduce_mean(t, axes, keepdims=keep), name=name(layer))(xs[0])


def merge(kind):
    return lambda keras, layer, xs: getattr(keras.layers, kind)(name=name(layer))(xs) if len(xs) > 1 else xs[0]


KINDS = {
    "conv": conv, "maxpool": pool, "avgpool": pool, "attention": attention, "tokens": tokens, "global_pool": global_pool,
    "dense": one(lambda k, la: k.layers.Dense(int(la["out"][0]), use_bias=la.get("bias", False), name=name(la))),
    "batchnorm": one(lambda k, la: k.layers.BatchNormalization(name=name(la))),
    "layernorm": one(lambda k, la: k.layers.LayerNormalization(name=name(la))),
    "relu": activation("relu"), "sigmoid": activation("sigmoid"), "tanh": activation("tanh"), "gelu": activation("gelu"),
    "swish": activation("swish"), "softmax": activation("softmax"),
    "relu6": one(lambda k, la: k.layers.ReLU(6.0, name=name(la))),
    "dropout": one(lambda k, la: k.layers.Dropout(la.get("dropout", 0.0), name=name(la))),
    "add": merge("Add"), "mul": merge("Multiply"), "concat": merge("Concatenate"),
    "flatten": one(lambda k, la: k.layers.Flatten(name=name(la))),
    "upsample": one(lambda k, la: getattr(k.layers, "UpSampling%dD" % dims(la))(int(la.get("scale", 2)), name=name(la))),
    "lrn": lambda_of(lambda t: __import__("tensorflow").nn.local_response_normalization(t, 2)),
    "slice": lambda k, la, xs: k.layers.Lambda(lambda t: t[:, 0], name=name(la))(xs[0]),
    "lstm": one(lambda k, la: k.layers.LSTM(int(la["out"][0]), return_sequences=True, name=name(la))),
    "embedding": one(lambda k, la: k.layers.Embedding(int(la["rows"]), int(la["out"][0]), name=name(la))),
    "loss": lambda k, la, xs: xs[0],
}


def is_tokens(net):
    return any(la["kind"] == "embedding" and -1 in la["inputs"] for la in net["layers"])


def model_of(keras, net):
    """Input to logits; the loss is cross-entropy."""
    shape = whole(net["input"])
    entry = keras.Input(shape[1:] if is_tokens(net) else shape[1:] + shape[:1], dtype="int32" if is_tokens(net) else "float32")
    values = []
    for layer in net["layers"]:
        if layer["kind"] not in KINDS or "tied" in layer:
            raise RuntimeError("Keras: no layer kind %s yet (%s)" % (layer["kind"], layer["name"]))
        values.append(KINDS[layer["kind"]](keras, layer, [entry if j < 0 else values[j] for j in layer["inputs"]]))
    return keras.Model(entry, values[-1])


def batch_of(tf, net, samples):
    """Synthetic input and classes."""
    shape = whole(net["input"])
    if is_tokens(net):
        x = tf.zeros((samples,) + shape[1:], tf.int32)
    else:
        x = tf.random.normal((samples,) + shape[1:] + shape[:1])
    out = net["layers"][-1]["in"]
    return x, tf.zeros((samples,) + whole(out[1:]), tf.int32)

"""A dlmodel-network as a Gluon block: one entry of KINDS for each kind of layer."""


def whole(values):
    return tuple(int(v) for v in values)


def dims(layer):
    return len(layer["in"]) - 1


def pads(layer):
    pad = layer.get("pad", [0] * dims(layer))
    if any(p != int(p) for p in pad):
        raise RuntimeError("MXNet: padding at one side only (%s)" % layer["name"])
    return whole(pad)


def conv(nn, la):
    kind = {1: nn.Conv1D, 2: nn.Conv2D, 3: nn.Conv3D}[dims(la)]
    return kind(int(la["out"][0]), whole(la["kernel"]), whole(la["stride"]), pads(la), whole(la.get("dilation", [1] * dims(la))),
                int(la.get("groups", 1)), use_bias=la.get("bias", False), in_channels=int(la["in"][0]))


def pool(nn, la):
    kind = getattr(nn, ("MaxPool" if la["kind"] == "maxpool" else "AvgPool") + "%dD" % dims(la))
    return kind(whole(la["kernel"]), whole(la["stride"]), pads(la), ceil_mode=la.get("ceil", False))


def dense(nn, la):
    return nn.Dense(int(la["out"][0]), use_bias=la.get("bias", False), flatten=dims(la) == 0, in_units=int(la["in"][0]))


KINDS = {
    "conv": conv, "maxpool": pool, "avgpool": pool, "dense": dense,
    "batchnorm": lambda nn, la: nn.BatchNorm(in_channels=int(la["in"][0])),
    "layernorm": lambda nn, la: nn.LayerNorm(in_channels=int(la["in"][0])),
    "relu": lambda nn, la: nn.Activation("relu"), "sigmoid": lambda nn, la: nn.Activation("sigmoid"),
    "tanh": lambda nn, la: nn.Activation("tanh"), "gelu": lambda nn, la: nn.GELU(), "swish": lambda nn, la: nn.Swish(),
    "relu6": lambda nn, la: nn.HybridLambda(lambda F, x: F.clip(x, 0, 6)),
    "softmax": lambda nn, la: nn.HybridLambda(lambda F, x: F.softmax(x)),
    "dropout": lambda nn, la: nn.Dropout(la.get("dropout", 0.0)),
    "global_pool": lambda nn, la: getattr(nn, "GlobalAvgPool%dD" % dims(la))(),
    "flatten": lambda nn, la: nn.Flatten(),
    "lrn": lambda nn, la: nn.HybridLambda(lambda F, x: F.LRN(x, nsize=5)),
    "embedding": lambda nn, la: nn.Embedding(int(la["rows"]), int(la["out"][0])),
    "upsample": lambda nn, la: nn.HybridLambda(lambda F, x: F.UpSampling(x, scale=int(la.get("scale", 2)), sample_type="nearest")),
}
JOINS = {
    "add": lambda F, xs: F.add_n(*xs),
    "mul": lambda F, xs: F.broadcast_mul(*xs),
    "concat": lambda F, xs: F.concat(*xs, dim=1),
}


def network(gluon, net):
    class Network(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            for i, layer in enumerate(net["layers"]):
                if layer["kind"] not in KINDS and layer["kind"] not in JOINS and layer["kind"] != "loss" or "tied" in layer:
                    raise RuntimeError("MXNet: no layer kind %s yet (%s)" % (layer["kind"], layer["name"]))
                if layer["kind"] in KINDS:
                    self.register_child(KINDS[layer["kind"]](gluon.nn, layer), "l%d" % i)

        def hybrid_forward(self, F, x):
            values = []
            for i, layer in enumerate(net["layers"]):
                xs = [x if j < 0 else values[j] for j in layer["inputs"]]
                if layer["kind"] == "loss":
                    return xs[0]
                values.append(JOINS[layer["kind"]](F, xs) if layer["kind"] in JOINS else self._children["l%d" % i](xs[0]))
            return values[-1]
    return Network()


def layer_calls(mx, block, net, loss):
    """A function for each layer of the network that runs it alone."""
    def call(i, layer):
        if layer["kind"] == "loss":
            return loss
        if layer["kind"] in JOINS:
            return lambda *xs: JOINS[layer["kind"]](mx.nd, xs)
        return block._children["l%d" % i]
    return [call(i, layer) for i, layer in enumerate(net["layers"])]

"""A dlmodel-network as a PyTorch module: one entry of KINDS for each kind of layer, executed in the order of the list."""
import torch
from torch import nn
from torch.nn import functional as F


def whole(values):
    return tuple(int(v) for v in values)


def dims(layer):
    return len(layer["in"]) - 1


def window(layer, x):
    """The input, padded where the operator cannot: half an element of padding is one at the far side only."""
    pad = layer.get("pad", [0] * dims(layer))
    if all(p == int(p) for p in pad):
        return x, whole(pad)
    sides = []
    for p in reversed(pad):
        sides += [int(p), int(p + 0.5)]
    return F.pad(x, sides), (0,) * len(pad)


class Conv(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        kind = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[dims(layer)]
        pad = layer.get("pad", [0] * dims(layer))
        even = all(p == int(p) for p in pad)
        self.conv = kind(int(layer["in"][0]), int(layer["out"][0]), whole(layer["kernel"]), whole(layer["stride"]),
                         whole(pad) if even else 0, whole(layer.get("dilation", [1] * dims(layer))), int(layer.get("groups", 1)),
                         bias=layer.get("bias", False))
        self.even = even

    def forward(self, x):
        return self.conv(x if self.even else window(self.layer, x)[0])


def conv_transpose(layer):
    kind = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}[dims(layer)]
    return kind(int(layer["in"][0]), int(layer["out"][0]), whole(layer["kernel"]), whole(layer["stride"]), bias=layer.get("bias", False))


def batchnorm(layer):
    return {0: nn.BatchNorm1d, 1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}[dims(layer)](int(layer["in"][0]))


class Pool(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.pool = getattr(F, {"maxpool": "max", "avgpool": "avg"}[layer["kind"]] + "_pool%dd" % dims(layer))

    def forward(self, x):
        x, pad = window(self.layer, x)
        return self.pool(x, whole(self.layer["kernel"]), whole(self.layer["stride"]), pad, ceil_mode=self.layer.get("ceil", False))


class Function(nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, *xs):
        return self.call(*xs)


class Extra(nn.Module):
    """A learned tensor that is added to, or put before, the input."""

    def __init__(self, layer, before):
        super().__init__()
        tokens = int(layer["out"][1] - layer["in"][1]) if before else int(layer["in"][1])
        self.weight = nn.Parameter(torch.zeros(1, tokens, int(layer["in"][0])))
        self.before = before

    def forward(self, x):
        return torch.cat([self.weight.expand(len(x), -1, -1), x], 1) if self.before else x + self.weight


class Scale(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.weight = nn.Parameter(torch.full((int(layer["in"][0]),) + (1,) * dims(layer), 20.0))

    def forward(self, x):
        return F.normalize(x) * self.weight


class Attention(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.heads, self.kv = int(layer["heads"]), int(layer.get("kv_heads", layer["heads"]))
        self.causal, self.dropout = layer.get("causal", False), layer.get("dropout", 0.0)
        self.width = int(layer["out"][0]) // self.heads

    def forward(self, x, *others):
        h, d = self.heads * self.width, self.kv * self.width
        q, k, v = (x, *others) if others else x.split([h, d, d], -1)
        q, k, v = (t.unflatten(-1, (-1, self.width)).transpose(1, 2) for t in (q, k, v))
        if self.kv != self.heads:
            k, v = (t.repeat_interleave(self.heads // self.kv, 1) for t in (k, v))
        if hasattr(F, "scaled_dot_product_attention"):
            out = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=self.causal)
        else:
            scores = q @ k.transpose(-1, -2) / self.width ** 0.5
            if self.causal:
                hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
                scores = scores.masked_fill(hidden, float("-inf"))
            out = F.dropout(scores.softmax(-1), self.dropout, self.training) @ v
        return out.transpose(1, 2).flatten(2)


class Lstm(nn.Module):
    def __init__(self, layer):
        super().__init__()
        both = layer.get("bidirectional", False)
        self.lstm = nn.LSTM(int(layer["in"][0]), int(layer["out"][0]) // (2 if both else 1), batch_first=True, bidirectional=both)

    def forward(self, x):
        return self.lstm(x)[0]


class Loss(nn.Module):
    """Cross-entropy against random classes of each position; a single output is a probability."""

    def __init__(self, layer):
        super().__init__()
        self.dims = dims(layer)

    def forward(self, x, *others):
        total = 0
        for t in (x, *others):
            if self.dims == 1:
                t = t.flatten(0, 1)
            if t.shape[1] == 1:
                total = total + F.binary_cross_entropy(t.float().clamp(0, 1), torch.zeros_like(t, dtype=torch.float32))
            else:
                classes = torch.zeros(t.shape[:1] + t.shape[2:], dtype=torch.long, device=t.device)
                total = total + F.cross_entropy(t, classes)
        return total


def interaction(*xs):
    x = torch.stack(xs, 1)
    rows, columns = torch.tril_indices(x.shape[1], x.shape[1], -1)
    return torch.cat([xs[0], (x @ x.transpose(1, 2))[:, rows, columns]], 1)


def crop(x, like):
    for d in range(2, x.dim()):
        x = x.narrow(d, (x.shape[d] - like.shape[d]) // 2, like.shape[d])
    return x


def cell(kind):
    return lambda layer: kind()


KINDS = {
    "conv": Conv, "conv_transpose": conv_transpose, "batchnorm": batchnorm, "maxpool": Pool, "avgpool": Pool, "lstm": Lstm,
    "dense": lambda la: nn.Linear(int(la["in"][0]), int(la["out"][0]), bias=la.get("bias", False)),
    "layernorm": lambda la: nn.LayerNorm(int(la["in"][0])),
    "lrn": lambda la: nn.LocalResponseNorm(5),
    "relu": lambda la: nn.ReLU(inplace=la.get("in_place", False)),
    "relu6": lambda la: nn.ReLU6(inplace=la.get("in_place", False)),
    "sigmoid": cell(nn.Sigmoid), "tanh": cell(nn.Tanh), "gelu": cell(nn.GELU), "swish": cell(nn.SiLU),
    "softmax": lambda la: nn.Softmax(dim=1 if dims(la) != 1 else -1),
    "dropout": lambda la: nn.Dropout(la.get("dropout", 0.0), inplace=la.get("in_place", False)),
    "loss": Loss, "attention": Attention, "scale": Scale,
    "global_pool": lambda la: Function(lambda x: x.mean(tuple(range(2, x.dim())), keepdim=True) if x.dim() > 2 else x),
    "adaptive_pool": lambda la: Function(lambda x: getattr(F, "adaptive_avg_pool%dd" % dims(la))(x, whole(la["out"][1:]))),
    "upsample": lambda la: nn.Upsample(scale_factor=la.get("scale", 2)),
    "add": lambda la: Function(lambda x, *o: add(x, o, la.get("in_place", False))),
    "mul": lambda la: Function(lambda x, y: x * (y if y.dim() == x.dim() else y.reshape(y.shape + (1,) * (x.dim() - y.dim())))),
    "concat": lambda la: Function(lambda *xs: torch.cat(xs, -1 if dims(la) == 1 else 1)),
    "flatten": lambda la: Function(lambda x: x.flatten(1)),
    "tokens": lambda la: Function(lambda x: x.flatten(2).transpose(1, 2).contiguous()),
    "slice": lambda la: Function(lambda x: x[:, :int(la["out"][1])] if len(la["out"]) > 1 else x[:, 0]),
    "crop": lambda la: Function(crop),
    "position": lambda la: Extra(la, False), "prepend": lambda la: Extra(la, True),
    "embedding": lambda la: nn.Embedding(int(la["rows"]), int(la["out"][0]), sparse=la.get("sparse", False)),
    "dot_interaction": lambda la: Function(interaction),
}


def add(x, others, in_place):
    for y in others:
        x = x.add_(y) if in_place else x + y
    return x


class Layers:
    """Times of layers. Forward: around the call. Backward: autograd executes one node after the other, so the time since the node
    before belongs to the layer that made the node. Our own clock, for the framework's profiler slows small operators down."""

    def __init__(self, recorder, settle):
        self.recorder, self.settle, self.seen, self.last = recorder, settle, set(), 0.0

    def now(self):
        self.settle()
        return self.recorder.now()

    def forward(self, name, call, inputs):
        begin = self.now()
        value = call(*inputs)
        self.recorder.add("layer:%s:forward" % name, begin, self.now())
        waiting = [value.grad_fn]
        while waiting:
            node = waiting.pop()
            if node is None or node in self.seen:
                continue
            self.seen.add(node)
            node.register_hook(lambda *_, n=name: self.done(n))
            waiting += [n for n, _ in node.next_functions]
        return value

    def done(self, name):
        self.recorder.add("layer:%s:backward" % name, self.last, self.now())
        self.last = self.recorder.now()

    def backward(self):
        """Call right before it begins."""
        self.last = self.now()

    def clear(self):
        self.seen.clear()


class Network(nn.Module):
    """forward(x) is the loss. timing: a Layers that records each of them."""

    def __init__(self, net, timing=None):
        super().__init__()
        self.net, self.timing = net, timing
        self.layers = nn.ModuleList()
        last = {}
        for i, layer in enumerate(net["layers"]):
            if layer["kind"] not in KINDS:
                raise RuntimeError("PyTorch: no layer kind %s yet (%s)" % (layer["kind"], layer["name"]))
            self.layers.append(KINDS[layer["kind"]](layer))
            for j in layer["inputs"]:
                last[j] = i
        names = [layer["name"] for layer in net["layers"]]
        for layer, module in zip(net["layers"], self.layers):
            if "tied" in layer:
                module.weight = self.layers[names.index(layer["tied"])].weight
        self.free = [[j for j, end in last.items() if end == i] for i in range(len(names))]

    def source(self, layer, j, x, values):
        """Input of the network for an embedding: tokens, positions when its table is shorter, or a number of each sample."""
        if layer["kind"] != "embedding" or j >= 0:
            return x if j < 0 else values[j]
        rows = int(layer["rows"])
        if len(layer["out"]) < 2:
            return torch.zeros(len(x), dtype=torch.long, device=x.device)
        if rows < self.net.get("vocabulary", rows):
            return torch.arange(x.shape[1], device=x.device).remainder(rows).expand(len(x), -1)
        return x

    def forward(self, x):
        values, value = {}, x
        for i, (layer, module) in enumerate(zip(self.net["layers"], self.layers)):
            inputs = [self.source(layer, j, x, values) for j in layer["inputs"]]
            value = module(*inputs) if self.timing is None else self.timing.forward(layer["name"], module, inputs)
            values[i] = value
            for j in self.free[i]:
                if j >= 0 and j != i:
                    del values[j]
        return value


def batch_of(net, samples, device):
    """A synthetic batch: images and vectors of normal numbers, tokens in the range of the vocabulary."""
    shape = net["input"]
    tokens = any(la["kind"] == "embedding" and -1 in la["inputs"] and len(la["out"]) > 1 for la in net["layers"])
    if tokens:
        return torch.randint(0, int(net.get("vocabulary", 2)), (samples, int(shape[1])), device=device)
    return torch.randn((samples,) + whole(shape), device=device)

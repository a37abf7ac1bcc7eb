"""Which layer an operation is. An operation without a kind here is recorded as it ran."""

from __future__ import annotations

from typing import Any, Callable, Optional

from .graph import COPIES
from .layers import INPUT, Builder, Layer, Shape, elements
from .trace import Op

Handler = Callable[[Builder, int, Op], bool]
_HANDLERS: dict[str, Handler] = {}


def _handles(*names: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for name in names:
            _HANDLERS[name] = handler
        return handler
    return register


def build_op(b: Builder, number: int, op: Op) -> None:
    """Adds the layer of an operation, unless it works on constants alone or on single numbers."""
    output = next((v for v in op.outputs if v >= 0), -1)
    if output < 0:
        return
    floating = b.values[output].dtype.is_floating_point or b.values[output].dtype.is_complex
    sources = [v for v in op.inputs if b.active(v)]
    if not floating or not (sources or any(b.parameter(v) for v in op.inputs)):
        return
    if b.parameter(output) is not None:  # a parameter in another type
        return
    if sources and b.values[output].elements <= 1 and not b.values[output].batched and not op.flop:
        layer = b.layer_of(sources[0])
        b.of[b.graph.root(output)] = INPUT if layer is None else layer
        return
    if op.short in COPIES and not b.graph.users(output):
        return  # what an activation in place keeps of its input: part of its kind
    handler = _HANDLERS.get(op.short)
    before = len(b.layers)
    if handler is None or not handler(b, number, op):
        b.record(number, op)
    elif len(b.layers) > before:
        b.layers[-1].flop += op.flop


def _own(b: Builder, value: int) -> Optional[str]:
    """The name of a trainable parameter."""
    name = b.parameter(value)
    return name if name in b.trace.parameters else None


def _tie(b: Builder, layer: Layer, names: list[str]) -> bool:
    """Whether the layer's parameters are its own, or those of one earlier layer."""
    held = [b.owner.get(name) for name in names]
    if all(each is None for each in held):
        return True
    first = held[0]
    if first is None or any(each != first for each in held):
        return False
    other = b.layers[first]
    whole = other.kind == layer.kind and bool(other.keys.get("bias")) == bool(
        layer.keys.get("bias"))
    weight_alone = len(names) == 1 and {other.kind, layer.kind} <= {"dense", "embedding"}
    if not whole and not weight_alone:
        return False
    layer.tied = first if other.tied < 0 else other.tied
    return True


def weighted(b: Builder, value: int, layer: Layer, names: list[str]) -> bool:
    if not _tie(b, layer, names):
        return False
    b.put(value, layer, names)
    return True


# ---- linear layers ----

@_handles("mm", "addmm", "linear")
def _dense(b: Builder, number: int, op: Op) -> bool:
    values = op.inputs
    bias = values[0] if op.short == "addmm" else None
    x, matrix = values[1:3] if bias is not None else values[:2]
    name = _own(b, matrix)
    if name is None or not b.values[x].batched or not b.active(x):
        return False
    inner, out = b.values[matrix].shape
    names = [name]
    if bias is not None:
        own = _own(b, bias)
        if own is None or len(b.values[bias].shape) != 1:
            return False
        names.append(own)
    if b.trace.parameters[name] != inner * out:  # a part of a parameter
        return False
    rows = b.values[x].elements // inner
    size = (rows,) if rows > 1 else ()
    keys: dict[str, Any] = {"out": out}
    if bias is not None:
        keys["bias"] = True
    layer = Layer("dense", [b.need(x, (inner, size))], (out, size), op.module, keys)
    return weighted(b, op.outputs[0], layer, names)


@_handles("convolution")
def _convolution(b: Builder, number: int, op: Op) -> bool:
    x, weight = op.inputs[:2]
    name, bias = _own(b, weight), op.arguments[2]
    stride, pad, dilation, transposed, extra, groups = op.arguments[3:9]
    dims = len(b.values[weight].shape) - 2
    if name is None or not b.values[x].batched or any(extra) or b.layer_of(x) is None:
        return False
    names = [name] if bias is None else [name, _own(b, int(bias)) or ""]
    if "" in names:
        return False
    shape = b.image(x, dims)
    result = b.image(op.outputs[0], dims)
    more = len(shape[1]) - dims  # images of one sample, one above the other

    def extents(values: Any, filler: int) -> list[int]:
        listed = list(values) * dims if len(values) == 1 else list(values)
        return [filler] * more + listed

    kernel = extents(b.values[weight].shape[2:], 1)
    if more < 0 or more > 1 or more == 0 and len(shape[1]) != dims:
        return False
    keys: dict[str, Any] = {"out": result[0], "kernel": _short(kernel)}
    for key, listed, usual in (("stride", extents(stride, 1), 1), ("pad", extents(pad, 0), 0),
                               ("dilation", extents(dilation, 1), 1)):
        if any(each != usual for each in listed):
            keys[key] = _short(listed)
    if groups != 1:
        keys["groups"] = groups
    if bias is not None:
        keys["bias"] = True
    layer = Layer("conv_transpose" if transposed else "conv", [b.need(x, shape)], result,
                  op.module, keys)
    return weighted(b, op.outputs[0], layer, names)


def _short(values: list[int]) -> Any:
    return values[0] if len(set(values)) == 1 else values


@_handles("embedding")
def _embedding(b: Builder, number: int, op: Op) -> bool:
    name = _own(b, op.inputs[0])
    rows, width = b.values[op.inputs[0]].shape
    output = op.outputs[0]
    if name is None or b.trace.parameters[name] != rows * width:
        return False
    tokens = b.values[output].elements // width
    size = (tokens,) if tokens > 1 else ()
    source = b.reshaped(INPUT, (1, size))
    layer = Layer("embedding", [source], (width, size), op.module, {"rows": rows, "out": width})
    return weighted(b, output, layer, [name])


# ---- normalizations ----

@_handles("native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm",
          "_batch_norm_with_update", "miopen_batch_norm")
def _batch_norm(b: Builder, number: int, op: Op) -> bool:
    names = [_own(b, v) for v in op.inputs[1:3]]
    training = next((a for a in op.arguments if isinstance(a, bool)), True)
    if None in names or not training and op.short == "native_batch_norm":
        return False
    source = b.need(op.inputs[0], b.image(op.inputs[0], len(b.values[op.inputs[0]].shape) - 2)
                    if len(b.values[op.inputs[0]].shape) > 2 else b.tokens(op.inputs[0]))
    layer = Layer("batchnorm", [source], b.shape_of(source), op.module)
    return weighted(b, op.outputs[0], layer, [n for n in names if n])


@_handles("native_layer_norm")
def _layer_norm(b: Builder, number: int, op: Op) -> bool:
    extents, weight, bias = op.arguments[1:4]
    names = [_own(b, int(each)) for each in (weight, bias) if each is not None]
    if len(extents) != 1 or weight is None or None in names:
        return False
    shape = b.tokens(op.inputs[0])
    layer = Layer("layernorm", [b.need(op.inputs[0], shape)], shape, op.module,
                  {} if bias is not None else {"bias": 0})
    return weighted(b, op.outputs[0], layer, [n for n in names if n])


@_handles("_fused_rms_norm")
def _rms_norm(b: Builder, number: int, op: Op) -> bool:
    weight = op.arguments[2]
    name = None if weight is None else _own(b, int(weight))
    if name is None or len(op.arguments[1]) != 1:
        return False
    shape = b.tokens(op.inputs[0])
    layer = Layer("rmsnorm", [b.need(op.inputs[0], shape)], shape, op.module)
    return weighted(b, op.outputs[0], layer, [name])


# ---- elementwise operations ----

_ACTIVATIONS = {"relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "gelu": "gelu",
                "silu": "swish", "_softmax": "softmax", "_safe_softmax": "softmax"}


@_handles(*_ACTIVATIONS)
def _activation(b: Builder, number: int, op: Op) -> bool:
    source = b.layer_of(op.inputs[0])
    if source is None or not b.values[op.outputs[0]].batched:
        return False
    keys = {"in_place": True} if op.name.split(".")[1].endswith("_") else {}
    shape = b.like(op.outputs[0], source)
    layer = Layer(_ACTIVATIONS[op.short], [b.reshaped(source, shape)], shape, op.module, keys)
    b.put(op.outputs[0], layer)
    return True


@_handles("hardtanh")
def _relu6(b: Builder, number: int, op: Op) -> bool:
    if list(op.arguments[1:3]) != [0.0, 6.0]:
        return False
    keys = {"in_place": True} if op.name.split(".")[1].endswith("_") else {}
    source = b.layer_of(op.inputs[0])
    if source is None:
        return False
    b.put(op.outputs[0], Layer("relu6", [source], b.shape_of(source), op.module, keys))
    return True


@_handles("add")
def _add(b: Builder, number: int, op: Op) -> bool:
    if len(op.inputs) != 2 or not b.values[op.outputs[0]].batched:
        return False
    output = op.outputs[0]
    count = b.values[output].elements
    names = [_own(b, v) for v in op.inputs]
    for i in range(2):
        other, name = op.inputs[1 - i], names[i]
        if name is not None and _add_bias(b, op, other, name):
            return True
        if name is not None and b.trace.parameters[name] == count and b.active(other) and \
                b.values[other].elements == count:
            source = b.need(other, b.like(other, b.layer_of(other) or 0))
            layer = Layer("position", [source], b.shape_of(source), op.module)
            return name not in b.owner and weighted(b, output, layer, [name])
    if not all(b.active(v) and b.values[v].elements == count for v in op.inputs):
        return False
    first = b.layer_of(op.inputs[0])
    assert first is not None
    shape = b.like(output, first)
    inputs = [b.need(v, shape) for v in op.inputs]
    keys = {"in_place": True} if op.name.split(".")[1].endswith("_") else {}
    b.put(output, Layer("add", inputs, shape, op.module, keys))
    return True


def _add_bias(b: Builder, op: Op, product: int, name: str) -> bool:
    """A dense layer whose bias an operation of its own adds."""
    at = b.layer_of(product)
    if at is None or at == INPUT or name in b.owner:
        return False
    layer = b.layers[at]
    if layer.kind != "dense" or "bias" in layer.keys or layer.tied >= 0 or \
            b.trace.parameters[name] != layer.shape[0] or len(b.graph.users(
                b.graph.root(product))) != 1:
        return False
    layer.keys["bias"] = True
    b.of[b.graph.root(op.outputs[0])] = at
    b.owner[name] = at
    return True


@_handles("mul")
def _mul(b: Builder, number: int, op: Op) -> bool:
    if len(op.inputs) != 2 or not all(b.active(v) and b.values[v].batched for v in op.inputs):
        return False
    large, small = sorted(op.inputs, key=lambda v: -b.values[v].elements)
    layer = b.layer_of(large)
    if layer is None or b.values[large].elements != b.values[op.outputs[0]].elements:
        return False
    shape = b.like(large, layer)
    count, positions = b.values[small].elements, elements(shape) // shape[0]
    if count == b.values[large].elements:
        other: Shape = shape
    elif count == shape[0] and positions > 1 and b.values[small].sample[0] == shape[0]:
        other = (shape[0], tuple(1 for _ in shape[1]))
    elif count == positions and b.values[small].sample[-1] == 1:
        other = (1, shape[1])
    else:
        return False
    b.put(op.outputs[0], Layer("mul", [b.need(large, shape), b.need(small, other)], shape,
                               op.module))
    return True


# ---- copies and joins ----

@_handles("clone", "contiguous", "_reshape_copy")
def _copy(b: Builder, number: int, op: Op) -> bool:
    source = b.layer_of(op.inputs[0])
    count = b.values[op.outputs[0]].elements
    if source is None or b.graph.stored(op.inputs[0]) != count or not b.values[
            op.outputs[0]].batched:
        return False
    if number in b.reorders:  # part of attention: the facts of a framework decide on it
        b.of[b.graph.root(op.outputs[0])] = source
        return True
    origin = b.layer_of(b.graph.origin(op.inputs[0], copies=False))
    if origin is not None and origin != INPUT and b.layers[origin].kind == "attention" and \
            b.layers[origin].keys.get("dropout") and b.layers[origin].keys.get("flash"):
        # The CPU composes attention with dropout and gives another order than a fused kernel.
        b.of[b.graph.root(op.outputs[0])] = source
        return True
    shape = b.like(op.outputs[0], source)
    b.put(op.outputs[0], Layer("copy", [source], shape, op.module,
                               {}, operations=[op.short]))
    return True


@_handles("cat")
def _cat(b: Builder, number: int, op: Op) -> bool:
    parts, axis = op.arguments[0], op.arguments[1] if len(op.arguments) > 1 else 0
    output = b.values[op.outputs[0]]
    rank = len(output.shape)
    axis %= rank
    names = [_own(b, int(v)) for v in parts]
    if rank == 3 and axis == 1 and names[0] and len(parts) == 2 and b.active(int(parts[1])):
        tokens = b.values[int(parts[0])].shape[1]
        if b.trace.parameters[names[0]] == tokens * output.shape[-1] and names[0] not in b.owner:
            source = b.need(int(parts[1]), b.tokens(int(parts[1])))
            layer = Layer("prepend", [source], b.tokens(op.outputs[0]), op.module,
                          {"tokens": tokens})
            return weighted(b, op.outputs[0], layer, [names[0]])
    if not all(b.active(int(v)) for v in parts) or not output.batched:
        return False
    if axis == rank - 1:
        shapes = [b.tokens(int(v)) for v in parts]
    elif axis == 1 and rank in (4, 5):
        shapes = [b.image(int(v), rank - 2) for v in parts]
    else:
        return False
    if len({shape[1] for shape in shapes}) != 1:
        return False
    inputs = [b.need(int(v), shape) for v, shape in zip(parts, shapes)]
    b.put(op.outputs[0], Layer("concat", inputs, (sum(s[0] for s in shapes), shapes[0][1]),
                               op.module))
    return True


# ---- pooling ----

def _window(op: Op, dims: int) -> dict[str, Any]:
    def listed(at: int, usual: list[int]) -> list[int]:
        found = list(op.arguments[at]) if len(op.arguments) > at and op.arguments[at] else usual
        return found * dims if len(found) == 1 else found

    kernel = listed(1, [])
    keys: dict[str, Any] = {"kernel": _short(kernel), "stride": _short(listed(2, kernel))}
    pad = listed(3, [0] * dims)
    if any(pad):
        keys["pad"] = _short(pad)
    return keys


@_handles("max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d")
def _pool(b: Builder, number: int, op: Op) -> bool:
    dims = 3 if "3d" in op.short else 2
    shape = b.image(op.inputs[0], dims)
    if len(shape[1]) != dims or b.layer_of(op.inputs[0]) is None:
        return False
    keys = _window(op, dims)
    average = op.short.startswith("avg")
    if not average and len(op.arguments) > 4 and any(each != 1 for each in op.arguments[4]):
        return False  # dilated
    at = 4 if average else 5
    if len(op.arguments) > at and op.arguments[at]:
        keys["ceil"] = True
    layer = Layer("avgpool" if average else "maxpool", [b.need(op.inputs[0], shape)],
                  b.image(op.outputs[0], dims), op.module, keys)
    b.put(op.outputs[0], layer)
    return True


@_handles("mean", "adaptive_avg_pool2d", "_adaptive_avg_pool2d", "adaptive_avg_pool3d",
          "_adaptive_avg_pool3d")
def _mean(b: Builder, number: int, op: Op) -> bool:
    x, output = op.inputs[0], op.outputs[0]
    rank = len(b.values[x].shape)
    if b.layer_of(x) is None or not b.values[output].batched or rank not in (4, 5):
        return False
    dims = rank - 2
    shape = b.image(x, dims)
    if len(shape[1]) != dims:
        return False
    if op.short == "mean":
        axes = op.arguments[1] if len(op.arguments) > 1 else []
        if sorted(axis % rank for axis in axes) != list(range(2, rank)):
            return False
    elif b.values[output].elements != shape[0]:
        size = b.image(output, dims)
        b.put(output, Layer("adaptive_pool", [b.need(x, shape)], size, op.module,
                            {"size": list(size[1])}))
        return True
    b.put(output, Layer("global_pool", [b.need(x, shape)], (shape[0], (1,) * dims), op.module))
    return True


@_handles("upsample_nearest2d", "upsample_bilinear2d")
def _upsample(b: Builder, number: int, op: Op) -> bool:
    before, after = b.image(op.inputs[0], 2), b.image(op.outputs[0], 2)
    factors = {a / c for a, c in zip(after[1], before[1])}
    scale = factors.pop()
    if factors or scale != int(scale) or scale < 1 or b.layer_of(op.inputs[0]) is None:
        return False
    b.put(op.outputs[0], Layer("upsample", [b.need(op.inputs[0], before)], after, op.module,
                               {"scale": int(scale)}))
    return True

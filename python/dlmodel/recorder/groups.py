"""The layer of operations that belong together: attention, rotary embedding, gated activations."""

from __future__ import annotations

from typing import Any, Callable, Optional

from .kinds import build_op, weighted
from .layers import INPUT, Builder, Layer, Shape, elements
from .patterns import Group


def build_group(b: Builder, group: Group) -> None:
    """Adds the layer of a group of operations."""
    known = {"attention": _attention, "rope": _rope, "swiglu": _gate, "geglu": _gate}
    if known.get(group.kind, _plain)(b, group):
        return
    for number in sorted(group.ops):  # not what it seemed
        op = b.graph.forward[number]
        if not op.is_view:
            build_op(b, number, op)


def _plain(b: Builder, group: Group) -> bool:
    op = b.graph.forward[group.last]
    x = group.inputs[0]
    source = b.layer_of(x)
    if source is None:
        return False
    shape = b.tokens(x) if group.kind in ("rmsnorm", "moe", "loss") else b.like(x, source)
    out: Shape = (1, ()) if group.kind == "loss" else shape
    if group.kind == "loss" and b.values[x].batched and len(b.values[x].shape) == 4:
        shape = b.image(x, 2)
    layer = Layer(group.kind, [b.need(x, shape)], out, op.module, group.keys)
    return weighted(b, group.output, layer, group.parameters)


def _parts(b: Builder, values: list[int], through: Callable[[int], int]) -> Optional[int]:
    """The layer that values are parts of, where they are all of it; None: several."""
    roots = {through(v) for v in values}
    root = roots.pop()
    if roots or len(values) == 1:
        return None
    whole = sum(b.graph.stored(v) for v in values)
    return b.layer_of(root) if b.values[root].elements == whole else None


def _attention(b: Builder, group: Group) -> bool:
    op = b.graph.forward[group.last]
    q, k, v = group.inputs
    shapes = [b.values[each].sample for each in group.inputs]
    if any(len(shape) < 2 or not b.values[each].batched
           for shape, each in zip(shapes, group.inputs)):
        return False
    heads, tokens, width = _lead(shapes[0]), shapes[0][-2], shapes[0][-1]
    kv_heads = _kv_heads(b, k, heads)
    keys: dict[str, Any] = {"heads": heads}
    if kv_heads != heads:
        keys["kv_heads"] = kv_heads
    for key in ("causal", "flash", "dropout"):
        if group.keys[key]:
            keys[key] = group.keys[key]
    value_width, key_tokens = shapes[2][-1], shapes[1][-2]
    packed = _parts(b, group.inputs, b.graph.origin)
    result: Shape = (heads * value_width, (tokens,))
    if packed is not None and width == value_width:
        inputs = [b.reshaped(packed, ((heads + 2 * kv_heads) * width, (tokens,)))]
    else:
        if _kv_heads(b, v, heads) != kv_heads:
            return False
        wanted = [(heads * width, (tokens,)), (kv_heads * width, (key_tokens,)),
                  (kv_heads * value_width, (key_tokens,))]
        if any(b.layer_of(_unrepeated(b, each)) is None for each in group.inputs):
            return False
        inputs = [b.need(_unrepeated(b, each), shape)
                  for each, shape in zip(group.inputs, wanted)]
    b.put(group.output, Layer("attention", inputs, result, op.module, keys))
    return True


def _lead(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape[:-2]:
        count *= extent
    return count


def _unrepeated(b: Builder, value: int) -> int:
    """Keys or values before they were repeated for their queries, and before copies."""
    at = value
    while True:
        op = b.graph.op_of(at)
        if op is None or not op.inputs or not (op.is_view or b.is_copy(op)):
            return at
        before = op.inputs[0]
        fewer = b.graph.stored(at) < b.values[at].elements
        if b.values[before].elements < b.graph.stored(at) or b.values[before].elements > \
                b.values[at].elements or not fewer and not b.is_copy(op) and \
                b.values[before].elements != b.values[at].elements:
            return at
        at = before


def _kv_heads(b: Builder, value: int, heads: int) -> int:
    own = b.values[value]
    count = b.values[_unrepeated(b, value)].elements
    return max(1, _lead(own.sample) * count // own.elements)


def _rope(b: Builder, group: Group) -> bool:
    op = b.graph.forward[group.last]
    shape = b.values[group.output].sample
    source = group.inputs[0]
    if len(shape) < 2 or b.values[source].elements != b.values[group.output].elements or \
            b.layer_of(source) is None:
        return False
    width = shape[-1]
    rows = b.values[group.output].elements // width
    heads = max((extent for extent in shape[:-1] if extent != rows), default=1)
    channels, tokens = _heads_tokens(b, source, group.output, width, heads, rows)
    own: Shape = (channels, (tokens,))
    b.put(group.output, Layer("rope", [b.need(source, own)], own, op.module,
                              {"heads": channels // width}))
    return True


def _heads_tokens(b: Builder, source: int, output: int, width: int, heads: int,
                  rows: int) -> tuple[int, int]:
    """Channels of all heads and tokens: of [heads, tokens, width] before attention."""
    layer = b.layer_of(source)
    shape = b.shape_of(layer if layer is not None else INPUT)
    if len(shape[1]) == 1 and shape[0] % width == 0 and elements(shape) == rows * width and \
            shape[0] > width:
        return shape[0], shape[1][0]
    own = b.values[output].sample
    lead = own[0] if len(own) > 2 else 1
    return lead * width, rows // lead


def _gate(b: Builder, group: Group) -> bool:
    op = b.graph.forward[group.last]
    gate, value = group.inputs
    if not b.values[group.output].batched or b.layer_of(gate) is None or b.layer_of(value) is None:
        return False
    shape = b.tokens(group.output)
    packed = _parts(b, group.inputs, lambda v: b.graph.origin(v, copies=False))
    if packed is not None:
        inputs = [b.reshaped(packed, (2 * shape[0], shape[1]))]
    else:
        inputs = [b.need(gate, shape), b.need(value, shape)]
    b.put(group.output, Layer(group.kind, inputs, shape, op.module))
    return True

"""From operations to layers of a workload file."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional, Sequence

import torch

from .graph import COPIES, Graph
from .patterns import Group, find_groups
from .trace import Op, Trace

INPUT = -1
Shape = tuple[int, tuple[int, ...]]  # channels and extents


@dataclasses.dataclass
class Kernel:
    """A stream, or with m a GEMM, of one pass of a recorded layer."""

    pass_name: str
    read: float = 0
    write: float = 0
    once: float = 0
    bytes: float = 0
    flop: float = 0
    launches: int = 0
    m: float = 0
    n: float = 0
    k: float = 0
    count: float = 1
    grows: str = "count"

    def as_json(self) -> dict[str, Any]:
        names = {"read": "read_elements", "write": "write_elements", "once": "once_elements"}
        out: dict[str, Any] = {"pass": self.pass_name}
        for field in dataclasses.fields(self)[1:]:
            value, usual = getattr(self, field.name), field.default
            if field.name == "launches":
                usual = 1 if not self.m else value
            if value != usual:
                out[names.get(field.name, field.name)] = value
        return out


@dataclasses.dataclass
class Work:
    """What a recorded layer has and runs."""

    weights: dict[str, int] = dataclasses.field(default_factory=dict)
    kernels: list[Kernel] = dataclasses.field(default_factory=list)
    kept: dict[int, float] = dataclasses.field(default_factory=dict)  # values: elements
    kept_bytes: float = 0
    keeps_input: bool = False
    keeps_output: bool = False


@dataclasses.dataclass
class Layer:
    kind: str
    inputs: list[int]
    shape: Shape
    module: str
    keys: dict[str, Any] = dataclasses.field(default_factory=dict)
    work: Optional[Work] = None
    operations: list[str] = dataclasses.field(default_factory=list)
    tied: int = -1
    values: list[int] = dataclasses.field(default_factory=list)
    flop: float = 0  # forward, of the batch that was recorded


def elements(shape: Shape) -> int:
    count = shape[0]
    for extent in shape[1]:
        count *= extent
    return count


class Builder:
    """Layers of a trace, in the order of its operations."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.graph = Graph(trace)
        self.values = trace.values
        self.layers: list[Layer] = []
        self.of: dict[int, int] = {}  # layer of a value, by its root
        self.owner: dict[str, int] = {}  # layer that has a parameter first
        self.notes: list[str] = []
        self.reorders: set[int] = set()  # copies to the order of heads, before attention
        self._views: dict[tuple[int, Shape], int] = {}
        self.input_shape: Shape = (1, ())
        kinds = [self.values[op.inputs[0]].dtype for op in self.graph.forward
                 if op.flop and op.inputs]
        self.type = kinds[0] if kinds else torch.float32  # of activations

    # ---- shapes ----

    def tokens(self, value: int) -> Shape:
        """Last extent as channels, the others as one sequence."""
        shape = self.values[value].sample
        if not shape:
            return (1, ())
        rows = self.values[value].elements // max(1, shape[-1])
        return (shape[-1], (rows,) if rows > 1 else ())

    def image(self, value: int, dims: int) -> Shape:
        """Channels before `dims` extents; images of one sample, one above the other."""
        shape = self.values[value].sample
        channels, size = shape[-dims - 1], shape[len(shape) - dims:]
        extra = 1
        for extent in shape[:-dims - 1]:
            extra *= extent
        if extra > 1:
            size = (extra, *size) if dims < 3 else (extra * size[0], *size[1:])
        return (channels, tuple(size))

    def shape_of(self, layer: int) -> Shape:
        return self.input_shape if layer == INPUT else self.layers[layer].shape

    def like(self, value: int, layer: int) -> Shape:
        """The shape of a layer for a value of as many elements, else one of tokens."""
        shape = self.shape_of(layer)
        return shape if elements(shape) == self.values[value].elements else self.tokens(value)

    # ---- values ----

    def layer_of(self, value: int) -> Optional[int]:
        """The layer that gives a value; None: a parameter or a constant."""
        root = self.graph.root(value)
        if root in self.of:
            return self.of[root]
        op = self.graph.op_of(root)
        if self.values[root].parameter is not None or op is None or not op.is_view or not op.inputs:
            return None
        before = self.layer_of(op.inputs[0])  # a part of another value, or that value repeated
        if before is None:
            return None
        shape = self.tokens(root)
        fewer = elements(shape) <= elements(self.shape_of(before))
        layer = self.add(Layer("view" if fewer else "recorded", [before], shape, op.module,
                               operations=[op.short], values=[root]))
        if not fewer:
            grad = float(elements(shape))
            self.layers[layer].work = Work(kernels=[Kernel("backward_data", read=grad,
                                                           launches=1)])
        self.of[root] = layer
        return layer

    def need(self, value: int, shape: Shape) -> int:
        """The layer that gives a value, in that shape."""
        layer = self.layer_of(value)
        return self.reshaped(INPUT if layer is None else layer, shape)

    def reshaped(self, layer: int, shape: Shape) -> int:
        own = self.shape_of(layer)
        if own == shape:
            return layer
        key = (layer, shape)
        if key not in self._views:
            # A value that has several outputs, or a further input, is another tensor.
            kind = "view" if elements(own) == elements(shape) else "recorded"
            module = self.layers[layer].module if layer != INPUT else ""
            self._views[key] = self.add(Layer(kind, [layer], shape, module, operations=["view"]))
        return self._views[key]

    def add(self, layer: Layer) -> int:
        self.layers.append(layer)
        return len(self.layers) - 1

    def put(self, value: int, layer: Layer, parameters: Sequence[str] = ()) -> int:
        """Adds the layer of a value, which has the parameters."""
        layer.values.append(value)
        number = self.add(layer)
        self.of[self.graph.root(value)] = number
        for name in parameters:
            self.owner.setdefault(name, number)
        return number

    def active(self, value: int) -> bool:
        """Of the batch, or made of parameters; not a constant, a mask or an index."""
        own = self.values[value]
        if own.parameter is not None:
            return False
        return self.layer_of(value) is not None and (own.dtype.is_floating_point
                                                     or own.dtype.is_complex)

    def parameter(self, value: int) -> Optional[str]:
        return self.values[value].parameter

    # ---- building ----

    def build(self) -> None:
        from .groups import build_group
        from .kinds import build_op
        self._enter()
        found = find_groups(self.graph)
        groups = {number: group for group in found for number in group.ops}
        self.reorders = {number for group in found if group.kind == "attention"
                         for value in group.inputs for number in self.graph.copies_before(value)}
        for number, op in enumerate(self.graph.forward):
            group = groups.get(number)
            if group is None:
                if not op.is_view:
                    build_op(self, number, op)
            elif number == group.last:
                before = len(self.layers)
                build_group(self, group)
                self._count(before, group)
        self._unused()

    def _count(self, before: int, group: Group) -> None:
        if len(self.layers) > before:
            self.layers[-1].flop += sum(self.graph.forward[n].flop for n in group.ops)

    def _enter(self) -> None:
        """The largest tensor of the inputs is the workload's input; others share its place."""
        inputs = self.trace.inputs
        largest = max(inputs, key=lambda v: self.values[v].elements, default=-1)
        if largest >= 0:
            shape = self.values[largest].sample
            real = self.values[largest].dtype.is_floating_point
            self.input_shape = self.image(largest, min(3, len(shape) - 1)) if real and len(
                shape) > 2 else self.tokens(largest) if real else (
                    1, (max(1, self.values[largest].elements),))
        for value in inputs:
            self.of[value] = INPUT

    def _unused(self) -> None:
        lost = {name: count for name, count in self.trace.parameters.items()
                if name not in self.owner}
        if lost:
            self.notes.append("%d trainable tensors (%d elements) have no part in the loss: %s"
                              % (len(lost), sum(lost.values()), ", ".join(list(lost)[:3])))
            last = len(self.layers) - 1
            self.add(Layer("recorded", [last], (1, ()), "", work=Work(weights=dict(lost)),
                           operations=["unused"], values=[-1]))

    # ---- recorded layers ----

    def traffic(self, kernel: Kernel, values: Sequence[int], write: bool) -> None:
        for value in dict.fromkeys(v for v in values if v >= 0):
            own = self.values[value]
            count = float(own.elements if write else self.graph.stored(value))
            if not own.batched:
                kernel.once += count
            elif own.dtype != self.type:
                kernel.bytes += count * own.dtype.itemsize
            elif write:
                kernel.write += count
            else:
                kernel.read += count

    def record(self, number: int, op: Op, shape: Optional[Shape] = None) -> int:
        """An operation with the kernels that PyTorch ran for it."""
        output = next((v for v in op.outputs if v >= 0), -1)
        sources = [self.layer_of(v) for v in op.inputs if self.active(v)]
        inputs = list(dict.fromkeys(layer for layer in sources if layer is not None))
        names = list(dict.fromkeys(
            n for n in (self.parameter(v) for v in op.inputs) if n is not None))
        own = [n for n in names if n not in self.owner]
        work = Work(weights={n: self.trace.parameters[n] for n in own
                             if n in self.trace.parameters})
        work.kernels.extend(self.kernels(op, "forward"))
        backward = self.graph.backward_of(number)
        data = "backward_data" if inputs and not all(each == INPUT for each in inputs) \
            else "backward_weights"
        for each in backward:
            work.kernels.extend(self.kernels(each, data))
        self._keep(work, op, backward)
        layer = Layer("recorded", inputs or [INPUT],
                      shape or (self.like(output, inputs[0]) if inputs else self.tokens(output)),
                      op.module, work=work, operations=[op.short], flop=op.flop)
        at = self.put(output, layer, own)
        for value in op.outputs:
            if value >= 0 and value != output and self.values[value].dtype.is_floating_point:
                self.of[self.graph.root(value)] = self.reshaped(at, self.tokens(value))
        return at

    def _keep(self, work: Work, op: Op, backward: Sequence[Op]) -> None:
        """Tensors that backward reads: inputs, the output, or others."""
        read = {self.graph.root(v) for each in backward for v in each.inputs
                if v < self.forward_values}
        inputs = {self.graph.root(v) for v in op.inputs}
        outputs = {self.graph.root(v) for v in op.outputs if v >= 0}
        work.keeps_input = any(self.active(v) for v in read & inputs)
        work.keeps_output = bool(read & outputs)
        for value in read - inputs - outputs:
            own = self.values[value]
            if own.batched and own.parameter is None:
                work.kept_bytes += own.elements * own.dtype.itemsize

    @property
    def forward_values(self) -> int:
        """Values above are of the backward pass."""
        if not hasattr(self, "_forward_values"):
            self._forward_values = 1 + max(
                [v for op in self.graph.forward for v in (*op.inputs, *op.outputs)], default=0)
        return self._forward_values

    def kernels(self, op: Op, pass_name: str) -> list[Kernel]:
        if op.flop:
            product = self._product(op, pass_name)
            if product is not None:
                return [product]
        kernel = Kernel(pass_name, launches=1)
        self.traffic(kernel, op.inputs, False)
        if not op.name.endswith(("zeros.default", "zeros_like.default")):
            kernel.flop = float(sum(self.values[v].elements for v in op.outputs if v >= 0))
        self.traffic(kernel, op.outputs, True)
        return [kernel]

    def _product(self, op: Op, pass_name: str) -> Optional[Kernel]:
        """A GEMM from the shapes of its operands and what of them grows with the batch."""
        a, b = op.inputs[-2:] if op.short in ("addmm", "baddbmm") else op.inputs[:2]
        left, right = self.values[a], self.values[b]
        batch = self.trace.batch
        if op.short in ("mm", "addmm", "bmm", "baddbmm"):
            m, k, n = left.shape[-2], left.shape[-1], right.shape[-1]
            count = left.shape[0] if len(left.shape) == 3 else 1
            grown: dict[str, Any] = {"m": m, "n": n, "k": k, "count": count}
            grows = self._grows(left, right)
            if grows != "none":
                grown[grows] = grown[grows] / batch
            return Kernel(pass_name, grows=grows, **grown)
        if op.short == "_grouped_mm":  # by expert: rows of the left, or of both
            experts = max(value.shape[0] for value in (left, right, self.values[op.outputs[0]])
                          if len(value.shape) == 3)
            m, k, n = left.shape[-2], left.shape[-1], right.shape[-1]
            rows = len(right.shape) == 3
            return Kernel(pass_name, m=m / batch / experts if rows else m,
                          k=k if rows else k / batch / experts, n=n, count=experts,
                          grows="m" if rows else "k")
        # Another operation with products: one GEMM of as many multiply-adds.
        batched = any(self.values[v].batched for v in op.inputs)
        macs = op.flop / 2 / (batch if batched else 1)
        size = max(1, round(macs ** (1 / 3)))
        return Kernel(pass_name, m=size, n=size, k=macs / size / size,
                      grows="count" if batched else "none")

    def _grows(self, left: Any, right: Any) -> str:
        """The extent of a product that the batch multiplies."""
        for value, names in ((left, ("count", "m", "k")[-len(left.shape):]),
                             (right, ("count", "k", "n")[-len(right.shape):])):
            if value.batched:
                return str(names[value.batch_axis])
        return "none"

    def is_copy(self, op: Op) -> bool:
        return op.short in COPIES and not op.is_view

"""The operations of a forward pass as a graph: what produces, reads and views a value."""

from __future__ import annotations

from typing import Iterator, Optional

from .trace import Op, Trace, Value

# Operations that give the same elements another shape, order or type.
_SAME = {"view", "_unsafe_view", "reshape", "t", "transpose", "permute", "squeeze", "unsqueeze",
         "detach", "alias", "flatten", "unflatten", "_reshape_alias", "view_as_complex",
         "view_as_real", "_conj", "lift_fresh", "movedim", "swapaxes", "expand"}
COPIES = {"clone", "contiguous", "_to_copy", "_reshape_copy"}


class Graph:
    """A trace, indexed. `forward`: operations of the forward pass, by their number."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.values: list[Value] = trace.values
        self.forward: list[Op] = [op for op in trace.ops if not op.backward]
        self.producer: dict[int, int] = {}
        self.readers: dict[int, list[int]] = {}
        self._source: dict[int, int] = {}
        for number, op in enumerate(self.forward):
            for value in op.inputs:
                self.readers.setdefault(value, []).append(number)
            for value in op.outputs:
                if value >= 0 and value not in self.producer:
                    self.producer[value] = number
            if op.is_view and op.inputs and op.outputs[0] >= 0:
                self._source[op.outputs[0]] = op.inputs[0]
        self.backward: dict[int, list[Op]] = {}
        for op in trace.ops:
            if op.backward and op.node >= 0:
                self.backward.setdefault(op.node, []).append(op)
        self._firsts: dict[int, int] = {}  # of a node of autograd: its forward operation
        for number, op in enumerate(self.forward):
            if op.node >= 0 and not op.is_view and self._moves(op):
                self._firsts.setdefault(op.node, number)

    def _moves(self, op: Op) -> bool:
        return any(value >= 0 and self.values[value].dtype.is_floating_point
                   or value >= 0 and self.values[value].dtype.is_complex for value in op.outputs)

    def backward_of(self, number: int) -> list[Op]:
        """What runs backward for a forward operation; sums of gradients of several readers are
        not among them."""
        op = self.forward[number]
        if self._firsts.get(op.node) != number:
            return []
        return [each for each in self.backward.get(op.node, [])
                if not each.is_view and each.name != "aten.add.Tensor" and each.outputs]

    def op_of(self, value: int) -> Optional[Op]:
        number = self.producer.get(value)
        return None if number is None else self.forward[number]

    def step(self, value: int) -> Optional[int]:
        """The value of the same elements before a view; None: there is none."""
        op = self.op_of(value)
        if op is None or not op.is_view or not op.inputs:
            return None
        before = op.inputs[0]
        same = self.values[before].elements == self.values[value].elements
        return before if same and op.short in _SAME else None

    def root(self, value: int) -> int:
        """The value before all views that keep its elements."""
        before = self.step(value)
        while before is not None:
            value, before = before, self.step(before)
        return value

    def origin(self, value: int, copies: bool = True) -> int:
        """The value before views, copies and casts, whole or in part: of the query that a split of
        a projection gives, the projection."""
        while True:
            op = self.op_of(value)
            if op is None or not op.inputs or not (op.is_view or copies and op.short in COPIES):
                return value
            value = op.inputs[0]

    def copies_before(self, value: int) -> list[int]:
        """Copies between a value and its origin."""
        found: list[int] = []
        end = self.origin(value)
        while value != end:
            number = self.producer[value]
            if not self.forward[number].is_view:
                found.append(number)
            value = self.forward[number].inputs[0]
        return found

    def stored(self, value: int) -> int:
        """Elements in memory behind a value: fewer than it has where it is repeated."""
        least = self.values[value].elements
        op = self.op_of(value)
        while op is not None and op.is_view and op.inputs:
            value = op.inputs[0]
            if op.short in ("expand", "broadcast_to") and self.values[value].elements < least:
                least = self.values[value].elements
            op = self.op_of(value)
        return least

    def users(self, value: int) -> list[int]:
        """Operations that read the value or a view of it, views left out."""
        found: list[int] = []
        for number in self.readers.get(value, []):
            op = self.forward[number]
            if op.is_view and op.inputs and op.inputs[0] == value:
                found.extend(self.users(op.outputs[0]))
            else:
                found.append(number)
        return found

    def within(self, module: str) -> Iterator[int]:
        """Operations of a module and of those inside it."""
        for number, op in enumerate(self.forward):
            if op.module == module or op.module.startswith(module + "."):
                yield number

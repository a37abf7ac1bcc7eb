"""Operations that together are one layer: attention, rotary embedding, normalizations, gated
activations, mixtures of experts, the loss."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Optional

from .graph import COPIES, Graph
from .trace import Call

_RMSNORM = re.compile(r"(RMS_?Norm|RMSLayerNorm|T5LayerNorm|RmsNorm)", re.IGNORECASE)
_SCALES = {"mul", "div", "add", "sub", "masked_fill", "where", "_to_copy", "clone", "neg"}
_TURNS = {"mul", "add", "sub", "neg", "cat", "stack", "_to_copy", "clone", "copy", "slice",
          "select", "split", "split_with_sizes", "unbind", "view_as_complex", "view_as_real",
          "complex", "view", "_unsafe_view", "transpose", "unsqueeze", "squeeze", "expand",
          "permute", "slice_scatter", "select_scatter", "empty_like", "addcmul"}


@dataclasses.dataclass
class Group:
    """Operations that become one layer of a kind."""

    kind: str
    ops: set[int]
    inputs: list[int]  # values
    output: int
    keys: dict[str, Any] = dataclasses.field(default_factory=dict)
    parameters: list[str] = dataclasses.field(default_factory=list)

    @property
    def last(self) -> int:
        return max(self.ops)


def find_groups(graph: Graph) -> list[Group]:
    """Groups without a common operation; an earlier kind of pattern wins."""
    groups: list[Group] = []
    taken: set[int] = set()

    def add(group: Optional[Group]) -> None:
        if group is not None and not group.ops & taken and _closed(graph, group):
            groups.append(group)
            taken.update(group.ops)

    for call in graph.trace.calls:
        add(_whole_call(graph, call))
    for group in _experts(graph, taken):
        add(group)
    for group in _norm_modules(graph):
        add(group)
    for number, op in enumerate(graph.forward):
        if op.short in ("_softmax", "_safe_softmax"):
            add(_composed_attention(graph, number))
    for group in [each for each in groups if each.kind == "attention"]:
        for i in range(2):
            turned = _rotary(graph, group.inputs[i], taken)
            if turned is not None:
                add(turned)
    for number, op in enumerate(graph.forward):
        if op.short == "mul" and number not in taken:
            add(_gated(graph, number))
    return groups


def _closed(graph: Graph, group: Group) -> bool:
    """Whether nothing but its output is read by other operations with work."""
    last = graph.root(group.output)
    for number in group.ops:
        for value in graph.forward[number].outputs:
            if value < 0 or graph.root(value) == last or value == group.output:
                continue
            if graph.values[value].differentiable and any(
                    user not in group.ops and not _dead_copy(graph, user)
                    for user in graph.users(value)):
                return False
    return True


def _dead_copy(graph: Graph, number: int) -> bool:
    """What an operation in place keeps of its input for backward."""
    op = graph.forward[number]
    return op.short in COPIES and not graph.users(op.outputs[0])


def _active(graph: Graph, value: int) -> bool:
    """Not a parameter or a constant."""
    return graph.values[value].differentiable and graph.values[value].parameter is None


# ---- calls of torch.nn.functional ----

def _whole_call(graph: Graph, call: Call) -> Optional[Group]:
    ops = set(range(call.first, call.last))
    arguments = call.arguments
    if call.kind == "attention":
        q, k, v = (arguments[key] for key in ("query", "key", "value"))
        return Group("attention", ops, [q, k, v], call.output, {
            "causal": int(bool(arguments.get("is_causal"))), "flash": 1,
            "dropout": float(arguments.get("dropout_p") or 0)})
    if call.kind == "dropout":
        p = float(arguments.get("p", 0.5))
        if p <= 0 or p >= 1 or not any(
                graph.forward[number].short == "bernoulli" for number in ops):
            return None
        return Group("dropout", ops, [arguments["input"]], call.output, {"dropout": p})
    if call.kind == "rmsnorm":
        weight = arguments.get("weight")
        name = graph.values[weight].parameter if weight is not None else None
        if name is None or len(arguments["normalized_shape"]) != 1:
            return None
        return Group("rmsnorm", ops, [arguments["input"]], call.output, {}, [name])
    logits, target = arguments["input"], arguments["target"]
    if graph.values[target].dtype.is_floating_point or not _active(graph, logits):
        return None
    return Group("loss", ops, [logits], call.output)


# ---- normalizations ----

def _norm_modules(graph: Graph) -> list[Group]:
    calls: dict[int, list[int]] = {}
    for number, op in enumerate(graph.forward):
        calls.setdefault(op.module_call, []).append(number)
    found = []
    for numbers in calls.values():
        module = graph.forward[numbers[0]].module
        name = graph.trace.module_types.get(module, "")
        if _RMSNORM.search(name):
            group = _norm_module(graph, numbers)
            if group is not None:
                found.append(group)
    return found


def _norm_module(graph: Graph, numbers: list[int]) -> Optional[Group]:
    """x / sqrt(mean(x^2)) * weight of one call of a module."""
    own = {value for number in numbers for value in graph.forward[number].outputs}
    entering: list[int] = []
    names: list[str] = []
    for number in numbers:
        for value in graph.forward[number].inputs:
            name = graph.values[value].parameter
            if name is not None and name not in names:
                names.append(name)
            if value not in own and name is None and graph.values[value].differentiable:
                entering.append(value)
    kinds = {graph.forward[number].short for number in numbers}
    output = graph.forward[numbers[-1]].outputs[0]
    inputs = list(dict.fromkeys(entering))
    if "rsqrt" not in kinds or len(inputs) != 1 or len(names) != 1:
        return None
    channels = graph.trace.parameters.get(names[0], graph.trace.frozen.get(names[0]))
    shape = graph.values[output].sample
    if not shape or shape[-1] != channels or \
            graph.values[output].elements != graph.values[inputs[0]].elements:
        return None
    return Group("rmsnorm", set(numbers), inputs, output, {}, names)


# ---- attention ----

def _past_scales(graph: Graph, value: int, ops: set[int], ahead: bool) -> Optional[int]:
    """From a value over scales, masks and casts to the product that gives it, or that reads it."""
    for _ in range(24):
        if ahead:
            users = graph.users(value)
            if len(users) != 1:
                return None
            number: Optional[int] = users[0]
        else:
            number = graph.producer.get(graph.root(value))
        if number is None:
            return None
        op = graph.forward[number]
        if op.short in ("bmm", "baddbmm"):
            return number
        if op.short not in _SCALES:
            return None
        active = [each for each in op.inputs if _active(graph, each)]
        if len(active) != 1:
            return None
        ops.add(number)
        value = op.outputs[0] if ahead else active[0]
    return None


def _composed_attention(graph: Graph, number: int) -> Optional[Group]:
    """A product, softmax, and a product: attention whose scores go through memory."""
    softmax = graph.forward[number]
    ops = {number}
    scores = _past_scales(graph, softmax.inputs[0], ops, False)
    if scores is None or graph.forward[scores].short != "bmm":
        return None
    probabilities, dropout = softmax.outputs[0], 0.0
    for call in graph.trace.calls:  # dropout of the probabilities
        source = call.arguments.get("input")
        if call.kind == "dropout" and source is not None and \
                graph.origin(source) == graph.origin(probabilities):
            ops.update(range(call.first, call.last))
            probabilities, dropout = call.output, float(call.arguments.get("p", 0.5))
    context = _past_scales(graph, probabilities, ops, True)
    if context is None or graph.forward[context].short != "bmm":
        return None
    first, second = graph.forward[scores], graph.forward[context]
    ops.update((scores, context))
    q, keys = first.inputs[:2]
    k_shape = graph.values[keys].sample
    if len(k_shape) < 2 or graph.origin(second.inputs[0]) != graph.origin(probabilities):
        return None
    k = _transposed(graph, keys)
    return None if k is None else Group("attention", ops, [q, k, second.inputs[1]],
                                        second.outputs[0],
                                        {"causal": 0, "flash": 0, "dropout": dropout})


def _transposed(graph: Graph, value: int) -> Optional[int]:
    """Before the transposition of its last two extents."""
    rows, columns = graph.values[value].sample[-2:]
    for _ in range(8):
        op = graph.op_of(value)
        if op is None or not (op.is_view or op.short in COPIES) or not op.inputs:
            return None
        value = op.inputs[0]
        if op.short in ("transpose", "permute"):
            shape = graph.values[value].sample
            if len(shape) >= 2 and shape[-2:] == (columns, rows):
                return value
    return None


def _rotary(graph: Graph, value: int, taken: set[int]) -> Optional[Group]:
    """Products with constants, negations and joins of one tensor before attention."""
    start = graph.root(value)
    ops: set[int] = set()
    ends: list[int] = []
    open_values, seen = [start], set()
    while open_values:
        at = open_values.pop()
        if at in seen:
            continue
        seen.add(at)
        number = graph.producer.get(at)
        op = None if number is None else graph.forward[number]
        if op is None or number in taken or op.short not in _TURNS or len(ops) > 60:
            ends.append(at)
            continue
        active = [each for each in op.inputs if _active(graph, each)]
        if not active or op.short in ("mul", "add", "sub") and any(
                graph.values[each].parameter for each in op.inputs):
            ends.append(at)
            continue
        assert number is not None
        ops.add(number)
        open_values.extend(active)
    ends = list(dict.fromkeys(ends))
    kinds = {graph.forward[number].short for number in ops}
    turns = "mul" in kinds and kinds & {"neg", "sub", "view_as_complex", "complex", "stack"}
    if len(ends) != 1 or not turns:
        return None
    # What lies before the first product and after the last sum is no part of it.
    work = {n for n in ops if graph.forward[n].short in ("mul", "add", "sub", "neg", "cat",
                                                         "stack", "addcmul")}
    output = _last_output(graph, work, ops, start)
    return Group("rope", {n for n in ops if n <= max(work)}, ends, output)


def _last_output(graph: Graph, work: set[int], ops: set[int], start: int) -> int:
    """Where the rotation ends: repeated keys and copies may follow."""
    value = start
    while True:
        number = graph.producer[value]
        if number in work:
            return value
        value = next(each for each in graph.forward[number].inputs if _active(graph, each))


# ---- the rest ----

def _gated(graph: Graph, number: int) -> Optional[Group]:
    """act(gate) * value."""
    op = graph.forward[number]
    if len(op.inputs) != 2:
        return None
    for i in range(2):
        before = graph.producer.get(graph.root(op.inputs[i]))
        if before is None or graph.forward[before].short not in ("silu", "gelu"):
            continue
        gate, value = graph.forward[before].inputs[0], op.inputs[1 - i]
        alike = graph.values[gate].elements == graph.values[value].elements
        if not alike or not _active(graph, value) or len(
                graph.users(graph.forward[before].outputs[0])) != 1:
            continue
        kind = "swiglu" if graph.forward[before].short == "silu" else "geglu"
        return Group(kind, {before, number}, [gate, value], op.outputs[0])
    return None


def _experts(graph: Graph, taken: set[int]) -> list[Group]:
    """Modules that hold the matrices of all experts: [experts, a, b]."""
    held: dict[str, list[str]] = {}
    for number, op in enumerate(graph.forward):
        if op.short in ("_grouped_mm", "bmm") and number not in taken:
            name = graph.values[op.inputs[1]].parameter
            if name is not None and len(graph.values[op.inputs[1]].shape) == 3:
                names = held.setdefault(op.module, [])
                names.extend([name] if name not in names else [])
    return [group for module, names in held.items() if len(names) == 2
            for group in [_expert_module(graph, module, names)] if group is not None]


def _expert_module(graph: Graph, module: str, names: list[str]) -> Optional[Group]:
    ops = set(graph.within(module))
    products = [graph.forward[n] for n in sorted(ops) if graph.forward[n].flop > 0]
    if len(products) != 2:
        return None
    first, second = (graph.values[op.inputs[1]].shape for op in products)
    count, hidden, width = first[0], first[1], second[1]
    own = {value for n in ops for value in graph.forward[n].outputs}
    entering = list(dict.fromkeys(
        value for n in sorted(ops) for value in graph.forward[n].inputs
        if value not in own and _active(graph, value)))
    tokens = [v for v in entering
              if graph.values[v].sample and graph.values[v].sample[-1] == hidden]
    router: Optional[str] = None
    for value in entering:
        if value not in tokens:
            router = _router(graph, value, ops, count) or router
    rows = graph.values[products[0].inputs[0]].elements / hidden
    if len(tokens) != 1 or router is None or first[2] not in (width, 2 * width):
        return None
    per_token = rows / (graph.values[tokens[0]].elements / hidden)
    biases = [name for name in graph.trace.parameters
              if name.startswith(module + ".") and name not in names]
    keys: dict[str, Any] = {"out": width, "experts": count, "topk": round(per_token), "capacity": 0,
                            "gated": int(first[2] == 2 * width), "bias": int(bool(biases))}
    extra = [name for name in graph.trace.parameters
             if name.rpartition(".")[0] == router.rpartition(".")[0] and name != router]
    if extra:
        keys["router_bias"] = 1
    output = max((v for n in ops for v in graph.forward[n].outputs
                  if v >= 0 and _active(graph, v) and any(u not in ops for u in graph.users(v))),
                 default=-1)
    if output < 0:
        return None
    return Group("moe", ops, [tokens[0]], output, keys, [router, *extra, *names, *biases])


def _router(graph: Graph, value: int, ops: set[int], experts: int) -> Optional[str]:
    """Adds what leads from the router's product to a value; the name of its matrix."""
    open_values, found = [value], None
    seen: set[int] = set()
    while open_values and len(seen) < 200:
        at = open_values.pop()
        number = graph.producer.get(at)
        if at in seen or number is None or not graph.values[at].differentiable:
            continue
        seen.add(at)
        op = graph.forward[number]
        ops.add(number)
        if op.flop > 0:
            names = [graph.values[each].parameter for each in op.inputs]
            matrix = next((n for n, each in zip(names, op.inputs)
                           if n is not None and experts in graph.values[each].shape
                           and len(graph.values[each].shape) == 2), None)
            found = found or matrix
            continue
        open_values.extend(each for each in op.inputs if graph.values[each].parameter is None)
    return found

"""Layers as a workload file: names, equal blocks, JSON."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any, Optional

from .layers import INPUT, Builder, Kernel, Layer, Work, elements

_NUMBER = re.compile(r"^(.*?)_?(\d+)$")


@dataclasses.dataclass
class Stack:
    """Equal blocks of a transformer: layers `first` to `end` - 1."""

    name: str
    count: int
    first: int
    end: int
    block: dict[int, int]  # of a layer
    cut: int  # components of its modules' paths


def finish(b: Builder) -> list[Layer]:
    """The layers that are kept, those recorded one after another joined."""
    _place_views(b.layers)
    _join(b)
    return _drop_unread(b.layers)


def _readers(layers: list[Layer]) -> list[list[int]]:
    readers: list[list[int]] = [[] for _ in layers]
    for i, layer in enumerate(layers):
        for source in set(layer.inputs):
            if source != INPUT:
                readers[source].append(i)
    return readers


def _place_views(layers: list[Layer]) -> None:
    """A view belongs to the module that reads it."""
    readers = _readers(layers)
    for i in range(len(layers) - 1, -1, -1):
        if layers[i].operations == ["view"] and readers[i]:
            layers[i].module = layers[readers[i][0]].module


def _join(b: Builder) -> None:
    """A recorded layer takes in the recorded one that it alone reads."""
    layers = b.layers
    readers = _readers(layers)
    for i, layer in enumerate(layers):
        if layer.kind != "recorded" or layer.work is None:
            continue
        for source in list(layer.inputs):
            other = layers[source] if source != INPUT else None
            if other is None or other.kind != "recorded" or readers[source] != [i] or \
                    other.module != layer.module or other.work is None:
                continue
            if _gemms(layer.work) + _gemms(other.work) > 12 or -1 in other.values:
                continue
            _take_in(b, i, source, readers)


def _gemms(work: Work) -> int:
    return sum(1 for kernel in work.kernels if kernel.m)


def _take_in(b: Builder, i: int, source: int, readers: list[list[int]]) -> None:
    layer, other = b.layers[i], b.layers[source]
    work, before = layer.work, other.work
    assert work is not None and before is not None
    outside = [each for each in layer.inputs if each != source]
    if before.keeps_output or work.keeps_input:
        work.kept_bytes += elements(other.shape) * b.type.itemsize
    work.keeps_input = before.keeps_input or (work.keeps_input and bool(outside))
    work.kept_bytes += before.kept_bytes
    real = [each for each in dict.fromkeys(other.inputs + outside) if each != INPUT]
    if real:  # then its data needs a gradient
        for kernel in work.kernels + before.kernels:
            if kernel.pass_name == "backward_weights" and not (work.weights or before.weights):
                kernel.pass_name = "backward_data"
    layer.inputs = real or [INPUT]
    work.kernels = before.kernels + work.kernels
    work.weights = {**before.weights, **work.weights}
    layer.operations = other.operations + layer.operations
    layer.flop += other.flop
    for name, owner in b.owner.items():
        if owner == source:
            b.owner[name] = i
    for each in set(other.inputs):
        if each != INPUT:
            readers[each] = sorted({i if r == source else r for r in readers[each]})
    other.kind, other.work, other.inputs = "joined", None, []
    readers[source] = []


def _drop_unread(layers: list[Layer]) -> list[Layer]:
    """Leaves out joined layers, and views that nothing reads."""
    keep = [layer.kind != "joined" for layer in layers]
    changed = True
    while changed:
        changed = False
        read = {source for i, layer in enumerate(layers) if keep[i] for source in layer.inputs}
        for i, layer in enumerate(layers):
            empty = layer.kind == "view" or layer.kind == "recorded" and layer.work is None
            if keep[i] and empty and i not in read:
                keep[i], changed = False, True
    number = {INPUT: INPUT}
    for i, kept in enumerate(keep):
        if kept:
            number[i] = len(number) - 1
    for i, layer in enumerate(layers):
        if keep[i]:
            layer.inputs = [number[source] for source in layer.inputs]
            layer.tied = number.get(layer.tied, -1) if layer.tied >= 0 else -1
    return [layer for i, layer in enumerate(layers) if keep[i]]


# ---- equal blocks ----

def find_stack(layers: list[Layer]) -> Optional[Stack]:
    """The numbered modules that hold all attention layers; None: there are none, or several."""
    places: dict[tuple[str, ...], set[int]] = {}
    attention = [layer for layer in layers if layer.kind == "attention"]
    for layer in attention:
        place = _numbered(layer.module)
        if place is None:
            return None
        places.setdefault(place[0], set()).add(place[1])
    alike = {(layer.shape, layer.keys["heads"]) for layer in attention}
    if len(places) != 1 or len(alike) != 1:
        return None
    prefix, numbers = next(iter(places.items()))
    count = max(numbers) + 1
    block: dict[int, int] = {}
    for i, layer in enumerate(layers):
        place = _numbered(layer.module)
        if place is not None and place[0] == prefix:
            block[i] = place[1]
    first, end = min(block), max(block) + 1
    ordered = [block.get(i, -1) for i in range(first, end)]
    whole = set(ordered) == set(range(count)) and ordered == sorted(ordered)
    if count < 2 or not whole:
        return None
    return Stack(_plain(prefix[-1]) or "h", count, first, end, block, len(prefix))


def _numbered(module: str) -> Optional[tuple[tuple[str, ...], int]]:
    """The path up to its first number, and that number."""
    parts = module.split(".")
    for i, part in enumerate(parts):
        match = _NUMBER.match(part)
        if match and (part.isdigit() or part[:1].isalpha() and "_" in part):
            stem = match.group(1) or (parts[i - 1] if i else "h")
            lead = parts[:i - 1] if part.isdigit() and i else parts[:i]
            return (*lead, stem), int(match.group(2))
    return None


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]", "_", text)


def _rest(module: str) -> str:
    """What follows the first number of a path."""
    parts = module.split(".")
    for i, part in enumerate(parts):
        if _NUMBER.match(part) and (part.isdigit() or part[:1].isalpha() and "_" in part):
            return ".".join(parts[i + 1:])
    return module


def _names(layers: list[Layer], stack: Optional[Stack]) -> list[str]:
    """Full names: the module's path, and the kind where that is not the module's own layer."""
    names, taken = [], set()
    for i, layer in enumerate(layers):
        inside = stack is not None and i in stack.block
        path = _rest(layer.module) if inside else layer.module
        own = layer.kind in ("conv", "conv_transpose", "dense", "embedding", "batchnorm",
                             "layernorm", "rmsnorm")
        label = layer.operations[-1].lstrip("_") if layer.kind == "recorded" and \
            layer.operations else layer.kind
        name = path if own and path else ".".join(filter(None, (path, label)))
        name = _plain(name)
        if stack is not None and not inside:
            name = re.sub(r"\.(\d+)(?=\.)", r"_\1", name)
        lead = "%s.%d." % (stack.name, stack.block[i]) if stack is not None and inside else ""
        full, number = lead + name, 2
        while full in taken or full in ("input", ""):
            full, number = "%s%s_%d" % (lead, name or "layer", number), number + 1
        taken.add(full)
        names.append(full)
    return names


# ---- JSON ----

def _sum_kernels(kernels: list[Kernel]) -> list[dict[str, Any]]:
    """Streams of one pass as one, with so many launches."""
    sums: dict[str, Kernel] = {}
    out: list[dict[str, Any]] = []
    for kernel in kernels:
        if kernel.m:
            out.append(kernel.as_json())
            continue
        total = sums.setdefault(kernel.pass_name, Kernel(kernel.pass_name))
        for key in ("read", "write", "once", "bytes", "flop", "launches"):
            setattr(total, key, getattr(total, key) + getattr(kernel, key))
    return out + [kernel.as_json() for kernel in sums.values()
                  if kernel.read + kernel.write + kernel.once + kernel.bytes]


def _work_json(work: Work) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if work.weights:
        out["weights"] = {_plain(name.rpartition(".")[2]) + ("" if i == 0 else "_%d" % i): count
                          for i, (name, count) in enumerate(work.weights.items())}
    for key in ("keeps_input", "keeps_output"):
        if getattr(work, key):
            out[key] = True
    if work.kept_bytes:
        out["kept_bytes"] = work.kept_bytes
    kernels = _sum_kernels(work.kernels)
    if kernels:
        out["kernels"] = kernels
    return out


def _entry(layers: list[Layer], names: list[str], i: int, name: str,
           sources: Optional[list[str]]) -> dict[str, Any]:
    layer = layers[i]
    entry: dict[str, Any] = {"name": name, "kind": layer.kind}
    if sources is not None:
        entry["from"] = sources
    if layer.kind in ("view", "copy", "recorded"):
        entry["out"] = max(1, layer.shape[0])
        if layer.shape[1]:
            entry["size"] = _three(layer.shape[1])
    entry.update(layer.keys)
    if layer.tied >= 0:
        entry["tied"] = names[layer.tied]
    if layer.kind == "recorded" and layer.work is not None:
        entry["work"] = _work_json(layer.work)
        if not entry["work"]:
            del entry["work"]
    return entry


def _three(size: tuple[int, ...]) -> list[int]:
    first = math.prod(size[:-2]) if len(size) > 3 else None
    return [max(1, each) for each in ([first, *size[-2:]] if first is not None else size)]


def _sources(layers: list[Layer], names: list[str], i: int) -> Optional[list[str]]:
    """None: the entry before it."""
    wanted = layers[i].inputs
    if wanted == [i - 1]:
        return None
    return ["input" if source == INPUT else names[source] for source in wanted]


def _block(layers: list[Layer], names: list[str], stack: Stack,
           number: int) -> Optional[list[dict[str, Any]]]:
    """Entries of one block in its own names; None: it reads more than what comes in."""
    own = [i for i, at in stack.block.items() if at == number]
    first, entries = own[0], []
    entering: Optional[int] = None
    lead = "%s.%d." % (stack.name, number)
    for i in own:
        sources = []
        for source in layers[i].inputs:
            if source >= first:
                sources.append(names[source][len(lead):])
            elif entering in (None, source):
                entering = source
                sources.append("in")
            else:
                return None
        before = i == first and sources == ["in"] or layers[i].inputs == [i - 1]
        if layers[i].tied >= 0:
            return None
        entries.append(_entry(layers, names, i, names[i][len(lead):], None if before else sources))
    if entering != first - 1:
        return None
    return entries


def _written(layers: list[Layer], names: list[str], stack: Optional[Stack]) -> dict[str, Any]:
    """"blocks" and "layers" of the file."""
    entries: list[dict[str, Any]] = []
    blocks = None
    if stack is not None:
        all_blocks = [_block(layers, names, stack, n) for n in range(stack.count)]
        last = layers[stack.end - 1]
        later = {source for layer in layers[stack.end:] for source in layer.inputs
                 if stack.first <= source < stack.end - 1}
        same = all(each == all_blocks[0] and each is not None for each in all_blocks)
        reach = stack.first == 0 or elements(layers[stack.first - 1].shape) == elements(last.shape)
        if same and reach and not later:
            blocks = [{"name": "block", "layers": all_blocks[0]}]
    for i in range(len(layers)):
        if blocks is not None and stack is not None and stack.first <= i < stack.end:
            if i == stack.first:
                entries.append({"name": stack.name, "block": "block", "repeat": "layers"})
            continue
        sources = _sources(layers, names, i)
        if sources is not None and blocks is not None and stack is not None:
            sources = [stack.name if source == names[stack.end - 1] else source
                       for source in sources]
        entries.append(_entry(layers, names, i, names[i], sources))
    return {**({"blocks": blocks} if blocks else {}), "layers": entries}


def document(b: Builder, name: str, summary: str) -> dict[str, Any]:
    """The workload file as a dict."""
    layers = finish(b)
    stack = find_stack(layers)
    names = _names(layers, stack)
    kinds = {layer.kind for layer in layers}
    family = "transformer" if "attention" in kinds else "cnn" if "conv" in kinds else None
    channels, size = b.input_shape
    tokens = channels == 1 and len(size) == 1
    inputs: dict[str, Any] = {"tokens": size[0]} if tokens else {
        "channels": channels, **({"size": list(size)} if size else {})}
    inputs["element_bytes"] = max(1, math.ceil(b.trace.input_bytes / elements(b.input_shape)))
    out: dict[str, Any] = {"format": "dlmodel-workload", "version": 1, "name": _plain(name),
                           "summary": summary, "source": "imported"}
    if family:
        out["family"] = family
    if stack is not None:
        out["parameters"] = _sizes(layers, stack)
    out["input"] = inputs
    out.update(_written(layers, names, stack))
    return out


def _sizes(layers: list[Layer], stack: Stack) -> dict[str, Any]:
    """Sizes of a transformer that splits read."""
    attention = next(layer for layer in layers if layer.kind == "attention")
    tables = [layer.keys["rows"] for layer in layers if layer.kind == "embedding"]
    sizes: dict[str, Any] = {"layers": stack.count, "hidden": layers[stack.end - 1].shape[0],
                             "heads": attention.keys["heads"], "seq": attention.shape[1][0]}
    if tables:
        sizes["vocab"] = max(tables)
    return sizes

"""One training step as PyTorch dispatches it: ATen operations under fake tensors.

Fake tensors have shapes and types but no memory, so a model of any size is recorded on any machine.
The step is recorded at two batch sizes; what differs between them is the batch.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Union

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

Inputs = Union[torch.Tensor, Sequence[Any], Mapping[str, Any]]

# Functions of torch.nn.functional that stay one operation, whatever a CPU decomposes them into.
_WHOLE = {
    nn.functional.scaled_dot_product_attention: "attention",
    nn.functional.dropout: "dropout",
    nn.functional.rms_norm: "rmsnorm",
    nn.functional.cross_entropy: "cross_entropy",
}


class RecordError(Exception):
    """The model could not be recorded: what stopped it, and what to change."""


@dataclasses.dataclass
class Value:
    """A tensor at one moment."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    parameter: Optional[str] = None  # its name: the tensor is a parameter, a view or a cast of one
    is_input: bool = False
    differentiable: bool = False
    # Set from the second recording: shape of one sample, or of the tensor where no extent grows.
    sample: tuple[int, ...] = ()
    batched: bool = False
    batch_axis: int = 0  # of `shape`, where batched

    @property
    def elements(self) -> int:
        count = 1
        for extent in self.sample:
            count *= extent
        return count


@dataclasses.dataclass
class Call:
    """A function of torch.nn.functional that is kept whole."""

    kind: str
    arguments: dict[str, Any]  # tensors as indexes of values
    first: int = 0  # its operations: first to last - 1
    last: int = 0
    output: int = -1


@dataclasses.dataclass
class Op:
    """An ATen operation. Tensors are indexes of values; None where an argument is absent."""

    name: str  # "aten.addmm.default"
    arguments: list[Any]
    keywords: dict[str, Any]
    inputs: list[int]
    outputs: list[int]
    is_view: bool
    module: str  # path of the innermost module, "" for the model itself
    module_call: int  # number of that module's call
    node: int  # of autograd: the operation's in forward, the one that runs in backward; -1: none
    backward: bool
    flop: int

    @property
    def short(self) -> str:
        """"addmm" of "aten.addmm.default"."""
        return self.name.split(".")[1].rstrip("_")


@dataclasses.dataclass
class Trace:
    """A recorded step."""

    ops: list[Op]
    values: list[Value]
    calls: list[Call]
    parameters: dict[str, int]  # trainable: elements by name, tied ones once
    frozen: dict[str, int]
    module_types: dict[str, str]
    loss: int  # index of a value
    input_bytes: float  # of one sample
    inputs: list[int]
    batch: int = 1

    def flop(self, backward: bool) -> int:
        """Of the whole batch as PyTorch's FlopCounterMode counts them, and grouped products and
        convolutions: forward, or of the step."""
        return sum(op.flop for op in self.ops if backward or not op.backward)


def _size(shape: Sequence[Any]) -> tuple[int, ...]:
    """Extents as numbers; one that depends on data counts as 1."""
    return tuple(extent if isinstance(extent, int) else _number(extent) for extent in shape)


def _number(extent: Any) -> int:
    try:
        return int(extent)
    except Exception:  # noqa: BLE001 - an unbacked symbol of any kind
        return 1


class _Recorder(TorchDispatchMode):
    """Notes every operation below autograd."""

    def __init__(self, flops: Mapping[Any, Callable[..., int]]) -> None:
        super().__init__()
        self.ops: list[Op] = []
        self.values: list[Value] = []
        self.calls: list[Call] = []
        self.backward = False
        self._flops = flops
        self._index: dict[int, int] = {}  # id of a tensor: its value
        self._alive: list[torch.Tensor] = []  # so that no id is used twice
        self._stored: dict[int, list[torch.Tensor]] = {}  # tensors of one storage
        self.modules: list[tuple[str, int]] = [("", 0)]

    def value_of(self, tensor: torch.Tensor, **facts: Any) -> int:
        index = self._index.get(id(tensor))
        return index if index is not None else self._new(tensor, **facts)

    def _new(self, tensor: torch.Tensor, **facts: Any) -> int:
        known = id(tensor) in self._index
        self._index[id(tensor)] = len(self.values)
        self.values.append(Value(_size(tensor.shape), tensor.dtype, **facts))
        if not known:
            self._alive.append(tensor)
            self._stored.setdefault(_storage(tensor), []).append(tensor)
        return len(self.values) - 1

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Optional[dict[str, Any]] = None) -> Any:
        kwargs = kwargs or {}
        name = str(function)
        if name.startswith("prim.") or name.startswith("aten.sym_"):
            return function(*args, **kwargs)
        inputs: list[int] = []
        arguments = [self._plain(argument, inputs) for argument in args]
        keywords = {key: self._plain(argument, inputs) for key, argument in kwargs.items()}
        node = self._node()
        result = function(*args, **kwargs)
        outputs = self._outputs(function, args, result, inputs)
        # As its name says, it is not one for autograd; it moves nothing all the same.
        is_view = function.is_view or function is torch.ops.aten._unsafe_view.default
        packet = function._overloadpacket
        counter = _FLOPS.get(packet) or self._flops.get(packet)
        path, number = self.modules[-1]
        self.ops.append(Op(name, arguments, keywords, inputs, outputs, is_view, path,
                           number, node, self.backward,
                           int(counter(*args, **kwargs, out_val=result)) if counter else 0))
        return result

    def _node(self) -> int:
        if not self.backward:
            return int(torch._C._autograd._get_sequence_nr()) - 1
        node = torch._C._current_autograd_node()
        number = -1 if node is None else node._sequence_nr()
        return number if number < 1 << 62 else -1

    def _plain(self, argument: Any, inputs: list[int]) -> Any:
        if isinstance(argument, torch.Tensor):
            inputs.append(self.value_of(argument))
            return _Ref(inputs[-1])
        if isinstance(argument, (list, tuple)):
            return [self._plain(each, inputs) for each in argument]
        if isinstance(argument, torch.SymInt):
            return _number(argument)
        return argument

    def _outputs(self, function: Any, args: Any, result: Any, inputs: list[int]) -> list[int]:
        results = result if isinstance(result, (list, tuple)) else [result]
        values = [self.values[i] for i in inputs]
        name = None
        # A view or a cast of a parameter, or the parameter repeated, stands for it.
        if (function.is_view or function._overloadpacket in _PARAMETER_KEEPS) and values:
            name = values[0].parameter
        differentiable = (torch.is_grad_enabled() or self.backward) and any(
            value.differentiable for value in values)
        outputs = []
        for tensor in results:
            if not isinstance(tensor, torch.Tensor):
                outputs.append(-1)
                continue
            moving = tensor.dtype.is_floating_point or tensor.dtype.is_complex
            aliases = id(tensor) in self._index  # in place
            outputs.append(self._new(tensor, parameter=name,
                                     differentiable=differentiable and moving))
            if aliases and function._schema.is_mutable:
                self._update(tensor, outputs[-1])
        return outputs

    def _update(self, tensor: torch.Tensor, index: int) -> None:
        """After a write, other tensors of the storage hold what was written."""
        for other in self._stored.get(_storage(tensor), []):
            if other is not tensor and other.numel() >= tensor.numel():
                shape, facts = _size(other.shape), self.values[index]
                self._index[id(other)] = len(self.values)
                self.values.append(dataclasses.replace(facts, shape=shape))
                self.ops.append(Op("aten.alias.default", [_Ref(index)], {}, [index],
                                   [len(self.values) - 1], True, *self.modules[-1], -1,
                                   self.backward, 0))


def _grouped_flop(left: torch.Tensor, right: torch.Tensor, *unused: Any,
                  **also_unused: Any) -> int:
    """Products of rows that are sorted by their expert, which FlopCounterMode does not count."""
    return 2 * left.shape[-2] * left.shape[-1] * right.shape[-1]


def _convolution_backward_flop(grad: torch.Tensor, value: torch.Tensor, weight: torch.Tensor,
                               *more: Any, **unused: Any) -> int:
    """Of data and of weights, as requested. FlopCounterMode ignores groups here."""
    transposed, wanted = more[4], more[7]
    positions = (value if transposed else grad).shape[2:].numel()
    return int(sum(wanted[:2]) * 2 * grad.shape[0] * positions * weight.numel())


_FLOPS: dict[Any, Callable[..., int]] = {
    torch.ops.aten._grouped_mm: _grouped_flop,
    torch.ops.aten.convolution_backward: _convolution_backward_flop,
}


class _Ref(int):
    """The index of a value, among other arguments."""


_PARAMETER_KEEPS = {torch.ops.aten._to_copy, torch.ops.aten.detach, torch.ops.aten.clone}


def _storage(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):  # sparse tensors have none
        return id(tensor)


class _Whole(TorchFunctionMode):
    """Notes which operations belong to one call of a function of torch.nn.functional. Functions of
    that module call each other without a mode; there it takes their place."""

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self._inside = False

    def __enter__(self) -> "_Whole":
        for function in _WHOLE:
            setattr(nn.functional, function.__name__, self._standing_for(function))
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for function in _WHOLE:
            setattr(nn.functional, function.__name__, function)

    def _standing_for(self, function: Any) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return self.__torch_function__(function, (), args, kwargs)
        return call

    def __torch_function__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Optional[dict[str, Any]] = None) -> Any:
        kwargs = kwargs or {}
        kind = _WHOLE.get(function)
        if kind is None or self._inside or self._recorder.backward:
            return function(*args, **kwargs)
        recorder = self._recorder
        arguments = dict(_named(kind, args), **kwargs)
        call = Call(kind, {key: recorder.value_of(value) if isinstance(value, torch.Tensor)
                           else value for key, value in arguments.items()}, len(recorder.ops))
        self._inside = True
        try:
            result = function(*args, **kwargs)
        finally:
            self._inside = False
        call.last = len(recorder.ops)
        call.output = recorder.value_of(result)
        if call.last > call.first:
            recorder.calls.append(call)
        return result


_ARGUMENTS = {
    "attention": ("query", "key", "value", "attn_mask", "dropout_p", "is_causal"),
    "dropout": ("input", "p", "training"),
    "rmsnorm": ("input", "normalized_shape", "weight", "eps"),
    "cross_entropy": ("input", "target", "weight"),
}


def _named(kind: str, args: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(_ARGUMENTS[kind], args))


@contextlib.contextmanager
def _follow_modules(model: nn.Module, recorder: _Recorder) -> Iterator[dict[str, str]]:
    """The recorder's `modules` is the stack of modules whose forward runs."""
    types, handles, calls = {}, [], [0]

    def enter(path: str) -> Callable[..., None]:
        def hook(*unused: Any) -> None:
            calls[0] += 1
            recorder.modules.append((path, calls[0]))
        return hook

    def leave(*unused: Any) -> None:
        recorder.modules.pop()

    for path, module in model.named_modules():
        types[path] = type(module).__name__
        if path:
            handles.append(module.register_forward_pre_hook(enter(path)))
            handles.append(module.register_forward_hook(leave, always_call=True))
    try:
        yield types
    finally:
        for handle in handles:
            handle.remove()


def _fake_copy(model: nn.Module) -> nn.Module:
    """The module with parameters and buffers that have no memory. The copy of a module copies no
    tensor: deepcopy finds each in its memo."""
    memo: dict[int, Any] = {}
    for parameter in model.parameters():
        memo[id(parameter)] = nn.Parameter(
            torch.empty(parameter.shape, dtype=parameter.dtype, device="cpu"),
            requires_grad=parameter.requires_grad)
    for buffer in model.buffers():
        memo[id(buffer)] = torch.empty(buffer.shape, dtype=buffer.dtype, device="cpu")
    return copy.deepcopy(model, memo)


@contextlib.contextmanager
def _no_initial_values() -> Iterator[None]:
    """torch.nn.init leaves tensors as they are: fake ones have no values to look at."""
    names = [name for name in dir(nn.init) if name.endswith("_") and not name.startswith("_")]
    before = {name: getattr(nn.init, name) for name in names}
    try:
        for name in names:
            setattr(nn.init, name, lambda tensor, *unused, **also_unused: tensor)
        yield
    finally:
        for name, function in before.items():
            setattr(nn.init, name, function)


def _build(factory: Callable[[], nn.Module], mode: FakeTensorMode) -> nn.Module:
    """The factory's module under fake tensors; where its code looks at values, a copy of one with
    memory."""
    try:
        with mode, _no_initial_values():
            model = factory()
    except Exception:  # noqa: BLE001 - the model's code; what is wrong with it shows again
        model = factory()
        with mode:
            model = _fake_copy(model) if isinstance(model, nn.Module) else model
    if not isinstance(model, nn.Module):
        raise RecordError("the factory returned %s; expected a torch.nn.Module"
                          % type(model).__name__)
    return model


def map_tensors(inputs: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The same structure with its tensors changed."""
    if isinstance(inputs, torch.Tensor):
        return change(inputs)
    if isinstance(inputs, Mapping):
        return {key: map_tensors(value, change) for key, value in inputs.items()}
    if isinstance(inputs, (list, tuple)):
        values = [map_tensors(value, change) for value in inputs]
        return type(inputs)(*values) if hasattr(inputs, "_fields") else type(inputs)(values)
    return inputs


def tensors_of(inputs: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    map_tensors(inputs, found.append)
    return found


def record(factory: Union[nn.Module, Callable[[], nn.Module]], inputs: Inputs, batch: int,
           given_batch: int, loss: Callable[[Any, Any], torch.Tensor],
           autocast: Optional[torch.dtype]) -> Trace:
    """One step at a batch of `batch` samples; tensors of `inputs` hold `given_batch`."""

    def resize(tensor: torch.Tensor) -> torch.Tensor:
        shape = list(tensor.shape)
        if shape and shape[0] % given_batch == 0 and batch != given_batch:
            shape[0] = shape[0] // given_batch * batch
        return torch.zeros(shape, dtype=tensor.dtype,
                           requires_grad=tensor.requires_grad and tensor.is_leaf)

    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())
    built = None if isinstance(factory, nn.Module) else _build(factory, mode)
    with mode:
        model = _fake_copy(factory) if isinstance(factory, nn.Module) else built
        assert model is not None
        model.train()
        recorder = _Recorder(flop_registry)
        sample = map_tensors(inputs, resize)
        names: dict[str, int] = {}
        frozen: dict[str, int] = {}
        for name, parameter in model.named_parameters():
            wanted = parameter.requires_grad
            recorder.value_of(parameter, parameter=name, differentiable=wanted)
            (names if wanted else frozen)[name] = parameter.numel()
        entering = [recorder.value_of(tensor, is_input=True) for tensor in tensors_of(sample)]
        with _follow_modules(model, recorder) as types, recorder, _Whole(recorder):
            with torch.autocast("cpu", autocast or torch.bfloat16, enabled=autocast is not None):
                output = model(**sample) if isinstance(sample, dict) else model(
                    *sample) if isinstance(sample, (list, tuple)) else model(sample)
                value = loss(output, sample)
            recorder.backward = True
            torch.autograd.backward(value)
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors_of(sample))
        return Trace(recorder.ops, recorder.values, recorder.calls, names, frozen, types,
                     recorder.value_of(value), size / batch, entering, batch)


def compare(trace: Trace, other: Optional[Trace]) -> bool:
    """Sets sample shapes of `trace` from a second recording at another batch. False: the two differ
    in more than extents, or is absent; then the first extent is assumed to be the batch."""
    same = other is not None and len(trace.values) == len(other.values) and all(
        a.name == b.name for a, b in zip(trace.ops, other.ops)) and len(trace.ops) == len(other.ops)
    for i, value in enumerate(trace.values):
        shape, value.sample, value.batched = value.shape, value.shape, False
        if same and other is not None:
            second = other.values[i].shape
            growth = [b - a for a, b in zip(shape, second)]
            step = other.batch - trace.batch
            for d, grown in enumerate(growth):
                if grown and not value.batched:
                    value.sample, value.batched = _without(shape, d, grown // step), True
                    value.batch_axis = d
        elif shape and shape[0] % trace.batch == 0 and value.parameter is None:
            value.sample, value.batched = _without(shape, 0, shape[0] // trace.batch), True
    return same


def _without(shape: tuple[int, ...], at: int, each: int) -> tuple[int, ...]:
    """The shape of one sample, where extent `at` holds `each` entries a sample."""
    own = (each,) if each > 1 else ()
    return shape[:at] + own + shape[at + 1:]

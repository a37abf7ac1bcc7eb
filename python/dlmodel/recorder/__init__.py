"""Models of PyTorch as workloads: what `dlmodel.from_torch` and its relatives do."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from typing import Any, Callable, Mapping, Optional, Union

try:
    import torch
    import torch.utils.flop_counter
except ImportError as error:  # pragma: no cover - depends on the environment
    raise ImportError("recording a model needs PyTorch 2.5 or later: pip install dlmodel[torch]"
                      ) from error

from torch import nn

from .layers import Builder
from .trace import Inputs, RecordError, Trace, compare, record, tensors_of
from .workload import document

__all__ = ["RecordError", "Recorded", "from_torch"]

Loss = Union[None, str, Callable[..., torch.Tensor]]


@dataclasses.dataclass
class Recorded:
    """A training step that was recorded, as a workload."""

    workload: dict[str, Any]  # the workload file
    options: dict[str, Any]  # of a plan: precision, optimizer
    parameters: int
    flop_forward: float  # of one sample, as PyTorch's FlopCounterMode counts them, and experts
    flop: float  # and with the backward pass
    notes: list[str]

    @property
    def name(self) -> str:
        return str(self.workload["name"])

    def text(self) -> str:
        """The workload file, an entry a line."""
        return _text(self.workload)

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the workload file, whole or not at all."""
        written = "%s.%d.part" % (os.fspath(path), os.getpid())
        try:
            with open(written, "x", encoding="utf-8") as out:
                out.write(self.text())
            os.replace(written, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.remove(written)
            raise

    def call(self, command: str, **options: Any) -> Any:
        """A command of dlmodel with this workload: "predict", "search", "explain"."""
        import dlmodel
        file = self.name + ".json"
        files = {**dict(options.pop("files", None) or {}), file: self.text()}
        return getattr(dlmodel, command)(workload=file, files=files, **{**self.options, **options})

    def predict(self, **options: Any) -> Any:
        return self.call("predict", **options)

    def search(self, **options: Any) -> Any:
        return self.call("search", **options)

    def explain(self, **options: Any) -> Any:
        return self.call("explain", **options)


def _text(workload: Mapping[str, Any]) -> str:
    def entries(listed: list[Any], indent: str) -> str:
        return "[\n" + ",\n".join(indent + json.dumps(entry) for entry in listed) + "]"

    lines = []
    for key, value in workload.items():
        if key == "layers":
            text = entries(value, "    ")
        elif key == "blocks":
            text = "[" + ",\n".join(
                '\n    {"name": %s, "layers": %s}' % (json.dumps(block["name"]),
                                                      entries(block["layers"], "      "))
                for block in value) + "]"
        else:
            text = json.dumps(value)
        lines.append("  %s: %s" % (json.dumps(key), text))
    return "{\n" + ",\n".join(lines) + "\n}\n"


# ---- the loss ----

def _loss(loss: Loss) -> Callable[[Any, Any], torch.Tensor]:
    """A function of output and inputs that gives one number."""
    if callable(loss):
        return lambda output, inputs: loss(output)
    if loss not in (None, "cross_entropy", "mse", "mean"):
        raise ValueError('loss=%r: expected None, "cross_entropy", "mse", "mean" or a function of '
                         "the model's output" % (loss,))

    def value(output: Any, inputs: Any) -> torch.Tensor:
        own = getattr(output, "loss", None)
        own = output.get("loss") if own is None and isinstance(output, Mapping) else own
        if loss is None and isinstance(own, torch.Tensor):
            return own.mean() if own.dim() else own
        found = _outputs(output)
        if not found:
            raise RecordError("the model's output holds no trainable tensor; give "
                              "loss=FUNCTION of the output")
        words = any(not tensor.is_floating_point() for tensor in tensors_of(inputs))
        classes = found[0].dim() == 2 or found[0].dim() == 3 and words
        if loss == "mean" or loss is None and not classes and found[0].dim() != 4:
            return sum((each.float().mean() for each in found[1:]), found[0].float().mean())
        if loss == "mse" or loss is None and not classes:
            return nn.functional.mse_loss(found[0], torch.zeros_like(found[0]))
        return sum((_cross_entropy(each) for each in found[1:]), _cross_entropy(found[0]))

    return value


def _outputs(output: Any) -> list[torch.Tensor]:
    """Tensors of the output that depend on parameters."""
    if hasattr(output, "to_tuple"):  # transformers, diffusers
        output = output.to_tuple()
    elif dataclasses.is_dataclass(output):
        output = [getattr(output, field.name) for field in dataclasses.fields(output)]
    return [each for each in tensors_of(output) if each.requires_grad]


def _cross_entropy(logits: torch.Tensor) -> torch.Tensor:
    """Classes last, or before the extents of an image."""
    if logits.dim() <= 3:
        logits = logits.reshape(-1, logits.shape[-1])
    target = torch.zeros([logits.shape[0], *logits.shape[2:]], dtype=torch.long)
    return nn.functional.cross_entropy(logits, target)


# ---- the optimizer and the precision ----

def _optimizer(optimizer: Any) -> Optional[str]:
    """The plan's name of an optimizer: a name, a class or an object of torch.optim."""
    if optimizer is None:
        return None
    facts: Mapping[str, Any] = {}
    if isinstance(optimizer, torch.optim.Optimizer):
        facts = optimizer.defaults
    name = optimizer if isinstance(optimizer, str) else getattr(
        optimizer, "__name__", type(optimizer).__name__)
    name = name.lower()
    known = {"sgd": "momentum" if facts.get("momentum") else "sgd", "momentum": "momentum",
             "adam": "adam", "adamw": "adam", "fusedadam": "adam", "nadam": "adam",
             "radam": "adam", "lamb": "lamb", "fusedlamb": "lamb", "rmsprop": "momentum",
             "adagrad": "momentum", "lion": "momentum", "muon": "momentum"}
    if name not in known:
        raise ValueError("optimizer=%r: expected sgd, momentum, adam, adamw, lamb, lion, muon, "
                         "rmsprop, adagrad, or that class of torch.optim" % (optimizer,))
    return known[name]


_PRECISIONS = {torch.float16: "mixed", torch.bfloat16: "bf16", torch.float32: "fp32"}


def _precision(autocast: Union[None, str, torch.dtype]) -> Optional[torch.dtype]:
    if autocast is None or isinstance(autocast, torch.dtype):
        return autocast
    named = {"fp16": torch.float16, "float16": torch.float16, "mixed": torch.float16,
             "amp": torch.float16, "bf16": torch.bfloat16, "bfloat16": torch.bfloat16}
    if autocast not in named:
        raise ValueError("autocast=%r: expected fp16, bf16 or a torch.dtype" % (autocast,))
    return named[autocast]


# ---- recording ----

def _batch_of(inputs: Any) -> int:
    sizes = [tensor.shape[0] for tensor in tensors_of(inputs) if tensor.dim() > 0]
    if not sizes:
        raise RecordError("example_inputs hold no tensor with a batch as their first extent")
    return int(sizes[0])


def _record(model: Union[nn.Module, Callable[[], nn.Module]], inputs: Inputs,
            loss: Callable[[Any, Any], torch.Tensor],
            autocast: Optional[torch.dtype]) -> tuple[Trace, Optional[Trace], list[str]]:
    """Two recordings at batches of 2 and 3 samples, or one as the inputs are; notes."""
    given = _batch_of(inputs)
    try:
        trace = record(model, inputs, 2, given, loss, autocast)
        other = record(model, inputs, 3, given, loss, autocast)
        if compare(trace, other):
            return trace, other, []
        reason = "operations differ between batches of 2 and of 3 samples"
    except RecordError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the model's code raises
        first = error
        try:
            trace = record(model, inputs, given, given, loss, autocast)
        except Exception:  # noqa: BLE001
            raise RecordError(_advice(first)) from first
        reason = "it does not run at batches of 2 and of 3 samples (%s)" % _line(first)
    compare(trace, None)
    return trace, None, ["recorded at a batch of %d alone: %s; all work is taken to grow with it"
                         % (trace.batch, reason)]


def _line(error: Exception) -> str:
    return "%s: %s" % (type(error).__name__, (str(error).strip().splitlines() or [""])[0][:160])


def _advice(error: Exception) -> str:
    text = _line(error)
    if "DataDependent" in text or "unhinted" in str(error):
        return ("the model's code looks at the values of tensors, which a recording without memory "
                "does not have (%s); give fixed masks and lengths, or another implementation"
                % text)
    return "the model does not run on these inputs: %s" % text


def from_torch(model: Union[nn.Module, Callable[[], nn.Module]], example_inputs: Inputs, *,
               loss: Loss = None, optimizer: Any = None,
               autocast: Union[None, str, torch.dtype] = None, name: Optional[str] = None,
               summary: Optional[str] = None) -> Recorded:
    """One training step of a model as a workload. Nothing is computed: tensors have shapes alone,
    so that a model of any size needs neither memory nor a GPU.

    model: a module, or a function that makes one (then its parameters need no memory either).
    example_inputs: a tensor, a tuple of arguments or a dict of keyword arguments; the first extent
    is the batch. Their values are not used.
    loss: None: the output's own loss, else cross-entropy of outputs [batch, classes] and, of
    tokens, [batch, tokens, classes] (of images: mean square error, of others: the mean); "cross_entropy", "mse", "mean"; or a function of the
    output.
    optimizer: a name or class or object of torch.optim; autocast: a type. Both become options of
    the predictions of what is returned."""
    precision = _precision(autocast)
    trace, other, notes = _record(model, example_inputs, _loss(loss), precision)
    if not trace.parameters:
        raise RecordError("the model has no trainable parameter")
    builder = Builder(trace)
    builder.build()
    kind = type(model).__name__ if isinstance(model, nn.Module) else getattr(
        model, "__name__", trace.module_types.get("", "model"))
    kind = trace.module_types.get("", kind) if kind == "<lambda>" else kind
    workload = document(builder, name or kind,
                        summary or "recorded from PyTorch %s: %s" % (
                            torch.__version__.split("+")[0], trace.module_types.get("", kind)))
    options: dict[str, Any] = {}
    if precision is not None:
        options["precision"] = _PRECISIONS.get(precision, "mixed")
    if _optimizer(optimizer) is not None:
        options["optimizer"] = _optimizer(optimizer)
    if trace.frozen:
        notes.append("%d tensors with %d elements are frozen; the workload does not count them"
                     % (len(trace.frozen), sum(trace.frozen.values())))
    return Recorded(workload, options, sum(trace.parameters.values()),
                    _of_one(trace, other, False), _of_one(trace, other, True),
                    notes + builder.notes)


def _of_one(trace: Trace, other: Optional[Trace], backward: bool) -> float:
    """Flop of a batch of one sample, from those of two and of three."""
    first = trace.flop(backward)
    return first / trace.batch if other is None else float(2 * first - other.flop(backward))

"""python -m dlmodel SOURCE MODEL: writes a model of a framework as a workload file, or reads a
snapshot of memory."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from typing import Any, Optional, Sequence

_EXAMPLES = """examples
  python -m dlmodel torch train.py:make_model --input 3x224x224 -o model.json
  python -m dlmodel transformers Llama-3-8B/config.json --seq 8192 -o llama.json
  python -m dlmodel torchvision resnet50 -o resnet50.json
  python -m dlmodel timm convnext_base --autocast bf16 -o convnext.json
  python -m dlmodel diffusers stable-diffusion/unet -o unet.json
  python -m dlmodel export model.pt2 -o model.json
  python -m dlmodel snapshot memory.pickle
then
  dlmodel predict --workload model.json --nodes 1-16*2
"""


class _WrongUse(Exception):
    """Options that do not fit."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dlmodel", epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Records one training step of a model without memory or a GPU, and writes it "
                    "as a workload file. Needs PyTorch: pip install dlmodel[torch].")
    parser.add_argument("source", choices=("torch", "transformers", "torchvision", "timm",
                                           "diffusers", "export", "snapshot"))
    parser.add_argument("model", help="SCRIPT.py:FACTORY, a function that gives a module or a "
                        "(module, example inputs) pair; a config.json or its folder; a name; an "
                        "archive; what torch.cuda.memory._dump_snapshot wrote")
    parser.add_argument("-o", "--output", metavar="FILE", help="workload file; default: NAME.json")
    parser.add_argument("--name", help="name of the workload")
    parser.add_argument("--input", metavar="SHAPE", help="torch: one sample, such as 3x224x224")
    parser.add_argument("--tokens", type=int, metavar="N", help="torch: N tokens a sample")
    parser.add_argument("--seq", type=int, metavar="N", help="transformers: tokens of a sample")
    parser.add_argument("--image", type=int, metavar="N", help="torchvision, timm: N x N pixels")
    parser.add_argument("--loss", choices=("cross_entropy", "mse", "mean"))
    parser.add_argument("--autocast", choices=("fp16", "bf16"), help="precision of operations")
    return parser


def _factory(place: str) -> Any:
    """The function FACTORY of SCRIPT.py:FACTORY."""
    path, colon, name = place.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise _WrongUse("%s: expected SCRIPT.py:FACTORY" % place)
    spec = importlib.util.spec_from_file_location("dlmodel_script", path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise _WrongUse("%s: no such script" % path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise _WrongUse("%s has no %s" % (path, name))
    return getattr(module, name)


def _script(arguments: argparse.Namespace, options: dict[str, Any]) -> Any:
    import torch

    from .recorder import from_torch
    factory = _factory(arguments.model)
    inputs: Any = None
    if arguments.tokens:
        inputs = torch.zeros(2, arguments.tokens, dtype=torch.long)
    elif arguments.input:
        inputs = torch.zeros(2, *(int(each) for each in arguments.input.split("x")))
    if inputs is None:
        pair = factory()
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise _WrongUse("%s: expected a (module, example inputs) pair, or give "
                             "--input SHAPE or --tokens N" % arguments.model)
        factory, inputs = pair
    return from_torch(factory, inputs, **options)


def _record(arguments: argparse.Namespace) -> Any:
    from .recorder import sources
    options = {key: value for key in ("name", "loss", "autocast")
               if (value := getattr(arguments, key)) is not None}
    for key, takers in (("seq", ("transformers",)), ("image", ("torchvision", "timm")),
                        ("input", ("torch",)), ("tokens", ("torch",))):
        if getattr(arguments, key) is not None and arguments.source not in takers:
            raise _WrongUse("--%s belongs to %s" % (key, " and ".join(takers)))
    if arguments.source == "torch":
        return _script(arguments, options)
    if arguments.seq is not None:
        options["seq"] = arguments.seq
    if arguments.image is not None:
        options["image"] = arguments.image
    return getattr(sources, "from_" + arguments.source)(arguments.model, **options)


def _snapshot(path: str) -> int:
    from .snapshot import SnapshotError, read_snapshot
    try:
        used = read_snapshot(path)
    except (SnapshotError, OSError) as error:
        print("dlmodel: error: %s" % error, file=sys.stderr)
        return 3
    print("device %d: %d bytes allocated, %d reserved; at the peak %d and %d"
          % (used.device, used.allocated_bytes, used.reserved_bytes, used.peak_allocated_bytes,
             used.peak_reserved_bytes))
    if not used.events:
        print("dlmodel: note: no history was recorded (torch.cuda.memory._record_memory_history): "
              "the peak is that of the snapshot's moment", file=sys.stderr)
    return 0


def main(given: Optional[Sequence[str]] = None) -> int:
    """0: written; 2: wrong use; 3: the model could not be recorded; 5: a package is missing."""
    parser = _parser()
    arguments = parser.parse_args(given)
    if arguments.source == "snapshot":
        return _snapshot(arguments.model)
    try:
        from .recorder import RecordError
    except ImportError as error:
        print("dlmodel: error: %s" % error, file=sys.stderr)
        return 5
    try:
        recorded = _record(arguments)
    except _WrongUse as error:
        parser.error(str(error))
    except (RecordError, ValueError, ImportError, OSError) as error:
        print("dlmodel: error: %s" % error, file=sys.stderr)
        return 5 if isinstance(error, ImportError) else 3
    path = arguments.output or recorded.name + ".json"
    recorded.save(path)
    for note in recorded.notes:
        print("dlmodel: note: %s" % note, file=sys.stderr)
    print("%s: %d parameters, %.4g Gflop forward and %.4g Gflop in all for a sample"
          % (path, recorded.parameters, recorded.flop_forward / 1e9, recorded.flop / 1e9))
    return 0


if __name__ == "__main__":
    sys.exit(main())

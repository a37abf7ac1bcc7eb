"""Snapshots of PyTorch's CUDA allocator: what torch.cuda.memory._dump_snapshot wrote.

    used = dlmodel.read_snapshot("snapshot.pickle")
    print(used.peak_allocated_bytes, used.against(dlmodel.predict(nodes=1).rows()[0]))
"""

from __future__ import annotations

import dataclasses
import io
import os
import pickle
from typing import Any, BinaryIO, Mapping, Union

Path = Union[str, "os.PathLike[str]"]


class SnapshotError(ValueError):
    """A file that is no snapshot."""


class _Plain(pickle.Unpickler):
    """Lists, dicts, texts and numbers: a snapshot holds nothing else, and other pickles may run
    code."""

    def find_class(self, module: str, name: str) -> Any:
        raise SnapshotError("it holds objects of %s.%s, which no snapshot does" % (module, name))

    def persistent_load(self, pid: Any) -> Any:
        raise SnapshotError("it holds references, which no snapshot does")


@dataclasses.dataclass
class Snapshot:
    """Memory of one device at the snapshot, and at its peak where the history was recorded."""

    device: int
    allocated_bytes: int  # of blocks in use
    reserved_bytes: int  # of segments
    peak_allocated_bytes: int  # the largest of the recorded history, at least allocated_bytes
    peak_reserved_bytes: int
    events: int  # of the history; 0: none was recorded: the peak is that of the moment

    def against(self, row: Mapping[str, Any]) -> dict[str, float]:
        """A predicted row (Answer.rows()) against the snapshot: errors in percent of the measured
        peak. Memory outside the allocator (the context) is in neither."""
        def memory(key: str) -> float:
            return float(row.get("memory." + key) or 0)
        reserved = memory("reserved_bytes")
        tensors = sum(memory(part + "_bytes") for part in (
            "weights", "gradients", "optimizer", "activations", "buffers"))
        return {"allocated_error_pct": 100 * (tensors / self.peak_allocated_bytes - 1),
                "reserved_error_pct": 100 * (reserved / self.peak_reserved_bytes - 1),
                "predicted_allocated_bytes": tensors, "predicted_reserved_bytes": reserved}


def _load(file: BinaryIO, name: str) -> Mapping[str, Any]:
    try:
        found = _Plain(file).load()
    except SnapshotError as error:
        raise SnapshotError("%s: expected a snapshot of PyTorch's allocator: %s"
                            % (name, error)) from None
    except Exception as error:  # noqa: BLE001 - of a damaged pickle: any
        raise SnapshotError("%s: expected a pickle of torch.cuda.memory._dump_snapshot: %s: %s"
                            % (name, type(error).__name__, error)) from error
    if isinstance(found, list):  # torch.cuda.memory_snapshot(): segments alone
        found = {"segments": found}
    if not isinstance(found, dict) or not isinstance(found.get("segments"), list):
        raise SnapshotError("%s: expected a snapshot of PyTorch's allocator: no list of segments"
                            % name)
    return found


def _number(entry: Any, key: str, name: str) -> int:
    value = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise SnapshotError("%s: %s: expected a number of at least 0, found %r"
                            % (name, key, value))
    return value


# Actions of the history that change what is allocated or reserved. A block is free for others once
# its free is completed.
_ALLOCATED = {"alloc": 1, "free_completed": -1}
_RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}


def _peaks(trace: list[Any], allocated: int, reserved: int, name: str) -> tuple[int, int]:
    """The largest values, from the last moment back to the first."""
    most = [allocated, reserved]
    now = [allocated, reserved]
    for entry in reversed(trace):
        action = entry.get("action") if isinstance(entry, dict) else None
        for i, signs in enumerate((_ALLOCATED, _RESERVED)):
            if isinstance(action, str) and action in signs:
                now[i] -= signs[action] * _number(entry, "size", name)
                most[i] = max(most[i], now[i])
    return most[0], most[1]


def read_snapshot(source: Union[Path, bytes], device: int = 0) -> Snapshot:
    """Reads a file (or bytes) of torch.cuda.memory._dump_snapshot, or a pickled
    torch.cuda.memory_snapshot()."""
    if isinstance(source, bytes):
        name, found = "snapshot", _load(io.BytesIO(source), "snapshot")
    else:
        name = os.fspath(source)
        with open(name, "rb") as file:
            found = _load(file, name)
    allocated = reserved = 0
    devices = set()
    for segment in found["segments"]:
        number = _number(segment, "device", name)
        devices.add(number)
        if number != device:
            continue
        reserved += _number(segment, "total_size", name)
        blocks = segment.get("blocks")
        if not isinstance(blocks, list):
            raise SnapshotError("%s: blocks: expected a list" % name)
        allocated += sum(_number(block, "size", name) for block in blocks
                         if not isinstance(block, dict)
                         or str(block.get("state", "")).startswith("active"))
    if device not in devices:
        raise SnapshotError("%s: no segment of device %d; there are those of %s"
                            % (name, device, ", ".join(map(str, sorted(devices))) or "none"))
    traces = found.get("device_traces") or []
    trace = traces[device] if isinstance(traces, list) and len(traces) > device and isinstance(
        traces[device], list) else []
    most = _peaks(trace, allocated, reserved, name)
    return Snapshot(device, allocated, reserved, most[0], most[1], len(trace))

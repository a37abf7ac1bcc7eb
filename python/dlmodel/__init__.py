"""Predictions of dlmodel from Python: how training of deep networks scales on clusters.

    import dlmodel
    rows = dlmodel.predict(system="iris-v100", workload="vgg16", nodes="1-16*2").rows()
    best = dlmodel.search(system="dgx-a100-80", workload="gpt2_xl", nodes=4, global_batch=256)
    errors = dlmodel.compare("data/runs/tensorflow_2017.csv")
    own = dlmodel.from_torch(make_model, example_inputs).predict(nodes="1-16*2").rows()

An answer is the dict that `dlmodel COMMAND --json` prints; `answer.rows()` flattens its results for
`pandas.DataFrame`. Options are those of the program, with `_` for `-`; `True` gives an option that
takes no value. Data are loaded once per `Model`, which any number of threads may use.
"""

from __future__ import annotations

import csv
import ctypes
import importlib
import io
import json
import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Optional, Sequence, Union

if TYPE_CHECKING:
    import pandas
    from .recorder import RecordError, Recorded, from_torch
    from .recorder.sources import (from_diffusers, from_export, from_timm, from_torchvision,
                                   from_transformers)

__all__ = ["Answer", "Cancelled", "Error", "Model", "RecordError", "Recorded", "Snapshot",
           "SnapshotError", "advise",
           "campaign", "compare", "explain", "from_diffusers", "from_export", "from_keras",
           "from_timm", "from_torch", "from_torchvision", "from_transformers", "match", "names", "plot",
           "predict", "predict_many", "read_snapshot", "search", "version"]

from .keras import from_keras
from .snapshot import Snapshot, SnapshotError, read_snapshot

# What needs PyTorch (pip install dlmodel[torch]) is loaded when it is asked for.
_RECORDING = {"from_torch": "", "Recorded": "", "RecordError": "",
              **dict.fromkeys(("from_transformers", "from_torchvision", "from_timm",
                               "from_diffusers", "from_export"), ".sources")}

Value = Union[str, int, float, bool, None]
Rows = Iterable[Mapping[str, Any]]
# Called with the part done (0 to 1) and the seconds since the start; a true result stops the call.
Progress = Callable[[float, float], Optional[bool]]

_ROWS = {"dlmodel-prediction": "results", "dlmodel-search": "results", "dlmodel-comparison": "rows",
         "dlmodel-match": "results", "dlmodel-advice": "advice"}


class Error(Exception):
    """A refused request: what is wrong, and what was expected."""

    def __init__(self, error: Mapping[str, Any], answer: Optional["Answer"] = None) -> None:
        super().__init__(error.get("text", error["message"]))
        self.status: int = error["status"]
        self.kind: str = error["kind"]
        self.message: str = error["message"]
        self.key: Optional[str] = error.get("key")
        self.file: Optional[str] = error.get("file")
        self.line: Optional[int] = error.get("line")
        self.column: Optional[int] = error.get("column")
        self.answer = answer  # of a search or prediction whose answer is no: what there is


class Cancelled(Error):
    """The call was stopped by its `progress`."""


class Answer(dict):  # type: ignore[type-arg]
    """What `dlmodel COMMAND --json` prints; `messages`: its lines on standard error."""

    messages: Sequence[str] = ()

    def rows(self) -> list[dict[str, Any]]:
        """The results as flat dicts: members of nested objects as "memory.total_bytes"."""
        key = _ROWS.get(self.get("format", ""))
        if key is None:
            raise TypeError("no rows in an answer of format %r" % self.get("format"))
        return [_flat(row) for row in self[key]]

    def frame(self) -> "pandas.DataFrame":
        """The rows as a DataFrame (pip install dlmodel[pandas])."""
        import pandas
        return pandas.DataFrame(self.rows())


def _flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, prefix + key + "."))
        else:
            flat[prefix + key] = value
    return flat


_PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_double, ctypes.c_double)


class _Watch(ctypes.Structure):
    _fields_ = [("progress", _PROGRESS), ("user", ctypes.c_void_p)]


class _Settings(ctypes.Structure):
    _fields_ = [("data_directory", ctypes.c_char_p), ("local_profile", ctypes.c_char_p),
                ("names_only", ctypes.c_int)]


def _installation() -> Optional[str]:
    """The folder below which the wheel put share/dlmodel; None: no wheel."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for _ in range(4):  # PREFIX/lib/python3.N/site-packages, or a folder of `pip install --target`
        if os.path.isdir(os.path.join(folder, "share", "dlmodel", "data")):
            return folder
        folder = os.path.dirname(folder)
    return None


def _load() -> ctypes.CDLL:
    path, prefix = os.environ.get("DLMODEL_LIBRARY"), _installation()
    if not path and prefix:
        path = os.path.join(prefix, "share", "dlmodel", "lib", "libdlmodel.so.0")
    library = ctypes.CDLL(path if path and os.path.exists(path) else "libdlmodel.so.0")
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in (
            ("version", text, []),
            ("context_open", pointer, [ctypes.POINTER(_Settings)]),
            ("context_close", None, [pointer]),
            ("call", pointer, [pointer, text, ctypes.POINTER(_Watch)]),
            ("answer_status", ctypes.c_int, [pointer]),
            ("answer_json", text, [pointer]),
            ("answer_error", text, [pointer]),
            ("answer_message", text, [pointer, ctypes.c_int]),
            ("answer_free", None, [pointer])):
        function = getattr(library, "dlmodel_" + name)
        function.restype = result
        function.argtypes = arguments
    return library


_lock = threading.RLock()  # a Model is made under it
_library: Optional[ctypes.CDLL] = None
_default: Optional["Model"] = None


def _lib() -> ctypes.CDLL:
    global _library
    with _lock:
        if _library is None:
            _library = _load()
        return _library


def version() -> str:
    """The library's version: "0.2.0"."""
    return _lib().dlmodel_version().decode()


def __getattr__(name: str) -> Any:
    if name not in _RECORDING:
        raise AttributeError("module 'dlmodel' has no attribute %r" % name)
    return getattr(importlib.import_module(".recorder" + _RECORDING[name], __name__), name)


def _option(value: Value) -> Any:
    return value if isinstance(value, (bool, int, float)) else str(value)


class Model:
    """Data of one folder, loaded once and kept. data: a folder with systems/, devices/,
    workloads/, frameworks/; None: $DLMODEL_DATA, else where dlmodel is installed. local_profile:
    the file that `dlmodel calibrate` wrote, for the system "local". names_only: refuse paths."""

    def __init__(self, data: Optional[str] = None, local_profile: Optional[str] = None,
                 names_only: bool = False) -> None:
        self._library = _lib()
        prefix = None if data is not None or os.environ.get("DLMODEL_DATA") else _installation()
        if prefix is not None:
            data = os.path.join(prefix, "share", "dlmodel", "data")
        settings = _Settings(data.encode() if data is not None else None,
                             local_profile.encode() if local_profile is not None else None,
                             int(names_only))
        self._context = self._library.dlmodel_context_open(ctypes.byref(settings))
        if not self._context:
            raise MemoryError("dlmodel")

    def close(self) -> None:
        """Frees what is loaded; no call may be under way."""
        if getattr(self, "_context", None):
            self._library.dlmodel_context_close(self._context)
            self._context = None

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def text(self, request: Mapping[str, Any], progress: Optional[Progress] = None) -> str:
        """The answer to a request (include/dlmodel.h) as the program prints it."""
        return self._ask(request, progress)[0]

    def call(self, command: str, *arguments: str, set: Optional[Mapping[str, Value]] = None,
             where: Optional[Mapping[str, Value]] = None, files: Optional[Mapping[str, str]] = None,
             progress: Optional[Progress] = None, **options: Value) -> Answer:
        """Any command: "predict", "search", "explain", "compare", "campaign", "list", "schema".
        An option that is None or False is not given."""
        request: dict[str, Any] = {"command": command, "options": {
            name.replace("_", "-"): _option(value) for name, value in options.items()
            if value is not None and value is not False}}
        for key, values in (("set", set), ("where", where)):
            if values:
                request[key] = {name: _option(value) for name, value in values.items()}
        if arguments:
            request["arguments"] = list(arguments)
        if files:
            request["files"] = dict(files)
        text, messages = self._ask(request, progress)
        return _answer(text, messages)

    def _ask(self, request: Mapping[str, Any],
             progress: Optional[Progress]) -> tuple[str, list[str]]:
        if not self._context:
            raise ValueError("this Model is closed")
        library = self._library
        raised: list[BaseException] = []

        def report(_: object, done: float, elapsed_s: float) -> int:
            try:
                return 1 if progress is not None and progress(done, elapsed_s) else 0
            except BaseException as error:  # noqa: B902 - raised in the caller, not through C
                raised.append(error)
                return 1

        watch = None if progress is None else _Watch(_PROGRESS(report), None)  # lives until the end
        answer = library.dlmodel_call(self._context, json.dumps(request).encode(),
                                      None if watch is None else ctypes.byref(watch))
        if not answer:
            raise MemoryError("dlmodel")
        try:
            status = library.dlmodel_answer_status(answer)
            text = library.dlmodel_answer_json(answer).decode()
            error = library.dlmodel_answer_error(answer)
            messages: list[str] = []
            while True:
                message = library.dlmodel_answer_message(answer, len(messages))
                if message is None:
                    break
                messages.append(message.decode())
        finally:
            library.dlmodel_answer_free(answer)
        if raised:
            raise raised[0]
        if status != 0:
            found = json.loads(text)
            partial = None if "error" in found else _answer(text, messages)
            kind = Cancelled if status == 7 else Error
            raise kind(json.loads(error)["error"], partial)
        return text, messages

    def predict(self, **options: Any) -> Answer:
        """How long an iteration takes, one row per framework and number of nodes."""
        return self.call("predict", **options)

    def predict_many(self, plans: Iterable[Mapping[str, Any]],
                     threads: Optional[int] = None) -> list[Answer]:
        """`predict` of each plan, in their order, on several threads (default: one for each core).
        The first refused plan raises its Error."""
        with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
            return list(pool.map(lambda plan: self.predict(**plan), plans))

    def search(self, **options: Any) -> Answer:
        """The best plans on given devices. progress: see Progress."""
        return self.call("search", **options)

    def explain(self, **options: Any) -> Answer:
        """Every term of one prediction."""
        return self.call("explain", **options)

    def campaign(self, **options: Any) -> Answer:
        """Many trainings on one cluster."""
        return self.call("campaign", **options)

    def advise(self, **options: Any) -> Answer:
        """What each change of a plan would save."""
        return self.call("advise", **options)

    def match(self, **options: Any) -> Answer:
        """Which device for which framework and network."""
        return self.call("match", **options)

    def compare(self, *runs: Union[str, Rows], **options: Any) -> Answer:
        """Compares predictions with measured runs: files, or rows (dicts, or a pandas.DataFrame)."""
        files, names_of_runs = dict(options.pop("files", None) or {}), []
        for i, run in enumerate(runs):
            if isinstance(run, (str, os.PathLike)):
                names_of_runs.append(os.fspath(run))
                continue
            names_of_runs.append("rows-%d.csv" % (i + 1))
            files[names_of_runs[-1]] = _csv_text(run)
        return self.call("compare", *names_of_runs, files=files, **options)

    def names(self, kind: str) -> list[str]:
        """What there is: "systems", "devices", "workloads", "frameworks", ..."""
        return [row["name"] for row in json.loads(self.text({"command": "list", "arguments": [kind]}))]


def _answer(text: str, messages: Sequence[str]) -> Answer:
    value = json.loads(text)
    answer = Answer(value if isinstance(value, dict) else {"list": value})
    answer.messages = messages
    return answer


def _csv_text(rows: Any) -> str:
    if hasattr(rows, "to_csv"):  # pandas
        return rows.to_csv(index=False)
    table = [dict(row) for row in rows]
    columns = list(dict.fromkeys(key for row in table for key in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return out.getvalue()


def _model() -> Model:
    global _default
    with _lock:
        if _default is None:
            _default = Model()
        return _default


def predict(**options: Any) -> Answer:
    """Model.predict with the default data."""
    return _model().predict(**options)


def predict_many(plans: Iterable[Mapping[str, Any]], threads: Optional[int] = None) -> list[Answer]:
    """Model.predict_many with the default data."""
    return _model().predict_many(plans, threads)


def plot(kind: str, *files: str, output: str, set: Optional[Mapping[str, Value]] = None,
         **options: Value) -> str:
    """Draws a figure into the file `output` (.png, .svg, .pdf, .eps) with the program and gnuplot:
    plot("breakdown", output="parts.svg", framework="pytorch-ddp", nodes="1-16*2"). Gives `output`."""
    prefix = _installation()
    program = os.environ.get("DLMODEL") or (os.path.join(prefix, "bin", "dlmodel") if prefix
                                            else "dlmodel")
    words = [program, "--quiet", "plot", kind, *files, "--output=" + output]
    for name, value in options.items():
        if value is not None and value is not False:
            option = "--" + name.replace("_", "-")
            words.append(option if value is True else "%s=%s" % (option, value))
    words += ["--set=%s=%s" % item for item in (set or {}).items()]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise Error({"status": done.returncode, "kind": "plot", "message": done.stderr.strip()})
    return output


def search(**options: Any) -> Answer:
    """Model.search with the default data."""
    return _model().search(**options)


def explain(**options: Any) -> Answer:
    """Model.explain with the default data."""
    return _model().explain(**options)


def campaign(**options: Any) -> Answer:
    """Model.campaign with the default data."""
    return _model().campaign(**options)


def advise(**options: Any) -> Answer:
    """Model.advise with the default data."""
    return _model().advise(**options)


def match(**options: Any) -> Answer:
    """Model.match with the default data."""
    return _model().match(**options)


def compare(*runs: Union[str, Rows], **options: Any) -> Answer:
    """Model.compare with the default data."""
    return _model().compare(*runs, **options)


def names(kind: str) -> list[str]:
    """Model.names with the default data."""
    return _model().names(kind)

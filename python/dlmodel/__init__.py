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
from typing import (TYPE_CHECKING, Any, Callable, Dict, Generic, Iterable, List, Mapping, Optional,
                    Sequence, TypeVar, Union, cast)

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack
    from .typed import (AdviceRow, AdviseOptions, CampaignOptions, CampaignRow, CompareOptions,
                        ComparisonRow, ExplainOptions, MatchOptions, MatchRow, PlotOptions,
                        PredictionRow, PredictOptions, SearchOptions)
    from .recorder import RecordError, Recorded, from_torch
    from .recorder.sources import (from_diffusers, from_export, from_timm, from_torchvision,
                                   from_transformers)

__all__ = ["Answer", "Cancelled", "Error", "Model", "RecordError", "Recorded", "Snapshot",
           "SnapshotError", "advise",
           "campaign", "compare", "explain", "from_diffusers", "from_export", "from_keras",
           "from_timm", "from_torch", "from_torchvision", "from_transformers", "match", "names", "plot",
           "predict", "predict_many", "predict_row", "predict_rows", "read_snapshot", "search",
           "version"]

from .keras import from_keras
from .snapshot import Snapshot, SnapshotError, read_snapshot

# What needs PyTorch (pip install dlmodel[torch]) is loaded when it is asked for.
_RECORDING = {"from_torch": "", "Recorded": "", "RecordError": "",
              **dict.fromkeys(("from_transformers", "from_torchvision", "from_timm",
                               "from_diffusers", "from_export"), ".sources")}

Value = Union[str, int, float, bool, None, Sequence[Union[str, int, float]]]
Row = TypeVar("Row")
Rows = Iterable[Mapping[str, Any]]
# Called with the part done (0 to 1) and the seconds since the start; a true result stops the call.
Progress = Callable[[float, float], Optional[bool]]

_ROWS = {"dlmodel-prediction": "results", "dlmodel-search": "results", "dlmodel-comparison": "rows",
         "dlmodel-match": "results", "dlmodel-advice": "advice", "dlmodel-campaign": "results"}


class Error(Exception):
    """A refused request: what is wrong, and what was expected."""

    def __init__(self, error: Mapping[str, Any], answer: Optional["Answer[Any]"] = None) -> None:
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


class Answer(Dict[str, Any], Generic[Row]):
    """What `dlmodel COMMAND --json` prints; `messages`: its lines on standard error."""

    messages: Sequence[str] = ()

    def rows(self) -> List[Row]:
        """The results as flat dicts: members of nested objects as "memory.total_bytes"."""
        key = _ROWS.get(self.get("format", ""), "")
        if key not in self:
            key = "tasks"  # of a campaign
        if key not in self:
            raise TypeError("no rows in an answer of format %r" % self.get("format"))
        return [cast(Row, _flat(row)) for row in self[key]]

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
            ("answer_free", None, [pointer]),
            ("open_in", pointer, [pointer]),
            ("close", None, [pointer]),
            ("reset", None, [pointer]),
            ("option", ctypes.c_int, [pointer, text, text]),
            ("predict", ctypes.c_int, [pointer]),
            ("error", text, [pointer]),
            ("warning", text, [pointer, ctypes.c_int]),
            ("column", text, [ctypes.c_int, ctypes.POINTER(text)]),
            ("row", ctypes.c_int, [pointer, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(text),
                                   ctypes.c_int])):
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
    return str(_lib().dlmodel_version().decode())


def __getattr__(name: str) -> Any:
    if name not in _RECORDING:
        raise AttributeError("module 'dlmodel' has no attribute %r" % name)
    return getattr(importlib.import_module(".recorder" + _RECORDING[name], __name__), name)


def _option(value: Value) -> Any:
    if isinstance(value, (bool, int, float)):
        return value
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


_KINDS = ("ok", "no", "usage", "input", "range", "system", "backend", "cancelled")


class _Single:
    """One prediction at a time, of one thread: options and results without JSON."""

    def __init__(self, library: ctypes.CDLL, context: Any) -> None:
        self._library = library
        self._handle = ctypes.c_void_p(library.dlmodel_open_in(context))
        if not self._handle:
            raise MemoryError("dlmodel")
        columns: list[tuple[str, Optional[bytes]]] = []
        kind = ctypes.c_char_p()
        while True:
            name = library.dlmodel_column(len(columns), ctypes.byref(kind))
            if name is None:
                break
            columns.append((name.decode(), kind.value))
        self._names = [name for name, _ in columns]
        self._texts = [(i, name) for i, (name, kind) in enumerate(columns) if kind == b"string"]
        self._integers = [name for name, kind in columns if kind == b"integer"]
        self._flags = [name for name, kind in columns if kind == b"boolean"]
        self._options: dict[str, bytes] = {}  # names as the program writes them
        self._row_values = (ctypes.c_double * len(columns))()
        self._row_texts = (ctypes.c_char_p * len(columns))()

    def close(self) -> None:
        self._library.dlmodel_close(self._handle)

    def _give(self, name: bytes, value: Optional[bytes]) -> None:
        status = self._library.dlmodel_option(self._handle, name, value)
        if status != 0:
            self._fail(status)

    def _fail(self, status: int) -> None:
        message = self._library.dlmodel_error(self._handle).decode()
        raise Error({"status": status, "kind": _KINDS[status], "message": message})

    def predict(self, options: Mapping[str, Any]) -> "PredictionRow":
        library, handle, names, give = self._library, self._handle, self._options, self._give
        library.dlmodel_reset(handle)
        for key, value in options.items():
            if value is None or value is False:
                continue
            name = names.get(key)
            if name is None:
                name = names[key] = key.replace("_", "-").encode()
            if value is True:
                give(name, None)
            elif key == "set":
                for field, what in value.items():
                    give(name, ("%s=%s" % (field, _option(what))).encode())
            elif type(value) is str:
                give(name, value.encode())
            else:
                give(name, str(value if type(value) is int else _option(value)).encode())
        status = library.dlmodel_predict(handle)
        if status != 0:
            self._fail(status)
        library.dlmodel_row(handle, self._row_values, self._row_texts, len(self._names))
        row: dict[str, Any] = dict(zip(self._names, [  # infinities and NAN: null in JSON
            value if value - value == 0 else None for value in self._row_values[:]]))
        texts = self._row_texts[:]
        for i, key in self._texts:
            text = texts[i]
            if text is not None:
                row[key] = text.decode()
        for key in self._integers:
            if row[key] is not None:
                row[key] = int(row[key])
        for key in self._flags:
            row[key] = row[key] == 1
        warnings: list[str] = []
        row["warnings"] = warnings
        while True:
            warning = library.dlmodel_warning(handle, len(warnings))
            if warning is None:
                return cast("PredictionRow", row)
            warnings.append(warning.decode())


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
        self._singles: dict[int, _Single] = {}  # by thread

    def close(self) -> None:
        """Frees what is loaded; no call may be under way."""
        if getattr(self, "_context", None):
            for single in self._singles.values():
                single.close()
            self._singles = {}
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
             progress: Optional[Progress] = None, **options: Value) -> Answer[Any]:
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

    def predict(self, **options: Unpack[PredictOptions]) -> Answer[PredictionRow]:
        """How long an iteration takes, one row per framework and number of nodes."""
        return self.call("predict", **options)

    def predict_many(self, plans: Iterable[Union[PredictOptions, Mapping[str, Any]]],
                     threads: Optional[int] = None) -> List[Answer[PredictionRow]]:
        """`predict` of each plan, in their order, on several threads (default: one for each core).
        The first refused plan raises its Error."""
        with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
            return list(pool.map(lambda plan: self.call("predict", **plan), plans))

    def predict_row(self, **options: Unpack[PredictOptions]) -> PredictionRow:
        """The row of `predict` for one framework (default pytorch-ddp) and number of nodes, several
        times as fast: without JSON, recommendation and lists ("stages"). "warnings" includes the notes that the
        program prints on standard error. A plan that does not fit has a row: row["fits"]."""
        return self._single().predict(options)

    def predict_rows(self, plans: Iterable[Union[PredictOptions, Mapping[str, Any]]],
                     threads: Optional[int] = None) -> List[PredictionRow]:
        """`predict_row` of each plan, in their order, on several threads (default: one for each
        core). The first refused plan raises its Error."""
        if not self._context:
            raise ValueError("this Model is closed")
        every, workers = list(plans), threads or os.cpu_count() or 1

        def part(of: int) -> List[PredictionRow]:
            single = _Single(self._library, self._context)
            try:
                return [single.predict(plan) for plan in every[of::workers]]
            finally:
                single.close()

        if workers == 1:
            return part(0)
        rows: List[Any] = [None] * len(every)
        with ThreadPoolExecutor(workers) as pool:
            for of, found in enumerate(pool.map(part, range(workers))):
                rows[of::workers] = found
        return rows

    def _single(self) -> _Single:
        if not self._context:
            raise ValueError("this Model is closed")
        thread = threading.get_ident()
        single = self._singles.get(thread)
        if single is None:
            single = self._singles[thread] = _Single(self._library, self._context)
        return single

    def search(self, progress: Optional[Progress] = None,
               **options: Unpack[SearchOptions]) -> Answer[PredictionRow]:
        """The best plans on given devices. progress: see Progress."""
        return self.call("search", progress=progress, **options)

    def explain(self, **options: Unpack[ExplainOptions]) -> Answer[Dict[str, Any]]:
        """Every term of one prediction, with its memory."""
        return self.call("explain", **options)

    def campaign(self, progress: Optional[Progress] = None,
                 **options: Unpack[CampaignOptions]) -> Answer[CampaignRow]:
        """Many trainings on one cluster."""
        return self.call("campaign", progress=progress, **options)

    def advise(self, **options: Unpack[AdviseOptions]) -> Answer[AdviceRow]:
        """What each change of a plan would save."""
        return self.call("advise", **options)

    def match(self, **options: Unpack[MatchOptions]) -> Answer[MatchRow]:
        """Which device for which framework and network."""
        return self.call("match", **options)

    def compare(self, *runs: Union[str, Rows], files: Optional[Mapping[str, str]] = None,
                progress: Optional[Progress] = None,
                **options: Unpack[CompareOptions]) -> Answer[ComparisonRow]:
        """Compares predictions with measured runs: files, or rows (dicts, or a pandas.DataFrame)."""
        files, names_of_runs = dict(files or {}), []
        for i, run in enumerate(runs):
            if isinstance(run, (str, os.PathLike)):
                names_of_runs.append(os.fspath(run))
                continue
            names_of_runs.append("rows-%d.csv" % (i + 1))
            files[names_of_runs[-1]] = _csv_text(run)
        return self.call("compare", *names_of_runs, files=files, progress=progress, **options)

    def names(self, kind: str) -> list[str]:
        """What there is: "systems", "devices", "workloads", "frameworks", ..."""
        return [row["name"] for row in json.loads(self.text({"command": "list", "arguments": [kind]}))]


def _answer(text: str, messages: Sequence[str]) -> Answer[Any]:
    value = json.loads(text)
    answer: Answer[Any] = Answer(value if isinstance(value, dict) else {"list": value})
    answer.messages = messages
    return answer


def _csv_text(rows: Any) -> str:
    if hasattr(rows, "to_csv"):  # pandas
        return str(rows.to_csv(index=False))
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


def predict(**options: Unpack[PredictOptions]) -> Answer[PredictionRow]:
    """Model.predict with the default data."""
    return _model().predict(**options)


def predict_many(plans: Iterable[Union[PredictOptions, Mapping[str, Any]]],
                 threads: Optional[int] = None) -> List[Answer[PredictionRow]]:
    """Model.predict_many with the default data."""
    return _model().predict_many(plans, threads)


def predict_row(**options: Unpack[PredictOptions]) -> PredictionRow:
    """Model.predict_row with the default data."""
    return _model().predict_row(**options)


def predict_rows(plans: Iterable[Union[PredictOptions, Mapping[str, Any]]],
                 threads: Optional[int] = None) -> List[PredictionRow]:
    """Model.predict_rows with the default data."""
    return _model().predict_rows(plans, threads)


def plot(kind: str, *files: str, output: str, **options: Unpack[PlotOptions]) -> str:
    """Draws a figure into the file `output` (.png, .svg, .pdf, .eps) with the program and gnuplot:
    plot("breakdown", output="parts.svg", framework="pytorch-ddp", nodes="1-16*2"). Gives `output`."""
    prefix = _installation()
    program = os.environ.get("DLMODEL") or (os.path.join(prefix, "bin", "dlmodel") if prefix
                                            else "dlmodel")
    words = [program, "--quiet", "plot", kind, *files, "--output=" + output]
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, Mapping):
            words += ["%s=%s=%s" % (option, *item) for item in value.items()]
        elif value is not None and value is not False:
            words.append(option if value is True else "%s=%s" % (option, _option(cast(Value, value))))
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise Error({"status": done.returncode, "kind": "plot", "message": done.stderr.strip()})
    return output


def search(progress: Optional[Progress] = None, **options: Unpack[SearchOptions]) -> Answer[PredictionRow]:
    """Model.search with the default data."""
    return _model().search(progress=progress, **options)


def explain(**options: Unpack[ExplainOptions]) -> Answer[Dict[str, Any]]:
    """Model.explain with the default data."""
    return _model().explain(**options)


def campaign(progress: Optional[Progress] = None, **options: Unpack[CampaignOptions]) -> Answer[CampaignRow]:
    """Model.campaign with the default data."""
    return _model().campaign(progress=progress, **options)


def advise(**options: Unpack[AdviseOptions]) -> Answer[AdviceRow]:
    """Model.advise with the default data."""
    return _model().advise(**options)


def match(**options: Unpack[MatchOptions]) -> Answer[MatchRow]:
    """Model.match with the default data."""
    return _model().match(**options)


def compare(*runs: Union[str, Rows], files: Optional[Mapping[str, str]] = None,
            progress: Optional[Progress] = None,
            **options: Unpack[CompareOptions]) -> Answer[ComparisonRow]:
    """Model.compare with the default data."""
    return _model().compare(*runs, files=files, progress=progress, **options)


def names(kind: str) -> list[str]:
    """Model.names with the default data."""
    return _model().names(kind)

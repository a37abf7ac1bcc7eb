"""Models of Keras as workloads. The program reads what to_json() writes; TensorFlow is not needed."""

from __future__ import annotations

import json
import os
import zipfile
from typing import Any, Union


class KerasModel:
    """A model of Keras 2 or 3 whose predictions are asked for."""

    def __init__(self, text: str, name: str = "") -> None:
        self._text = text
        self.name = name or str(json.loads(text).get("config", {}).get("name", "keras-model"))

    def text(self) -> str:
        """The model as Keras describes it, which every command takes as a workload file."""
        return self._text

    def call(self, command: str, **options: Any) -> Any:
        """A command of dlmodel with this workload: "predict", "search", "explain"."""
        import dlmodel
        file = self.name.replace("/", "_") + ".json"
        files = {**dict(options.pop("files", None) or {}), file: self._text}
        return getattr(dlmodel, command)(workload=file, files=files, **options)

    def predict(self, **options: Any) -> Any:
        return self.call("predict", **options)

    def search(self, **options: Any) -> Any:
        return self.call("search", **options)

    def explain(self, **options: Any) -> Any:
        return self.call("explain", **options)


def from_keras(model: Union[str, "os.PathLike[str]", Any]) -> KerasModel:
    """A Functional or Sequential model of Keras, a file that its to_json() wrote, or an archive of
    its save() (.keras)."""
    if hasattr(model, "to_json"):
        return KerasModel(model.to_json(), str(getattr(model, "name", "")))
    if zipfile.is_zipfile(model):
        with zipfile.ZipFile(model) as archive:
            return KerasModel(archive.read("config.json").decode("utf-8"))
    with open(model, encoding="utf-8") as file:
        return KerasModel(file.read())

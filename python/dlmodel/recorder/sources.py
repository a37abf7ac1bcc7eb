"""Models of transformers, torchvision, timm and diffusers, and archives of torch.export."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import warnings
from typing import Any, Iterator, Mapping, Optional, Union

import torch
from torch import nn

from . import Recorded, RecordError, from_torch


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError("this needs the package %s: pip install %s" % (name, name)) from error


# ---- transformers ----

# Heads by what a class predicts, most usual first.
_HEADS = ("AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForMaskedLM",
          "AutoModelForImageTextToText", "AutoModelForImageClassification",
          "AutoModelForSpeechSeq2Seq", "AutoModelForCTC", "AutoModelForObjectDetection",
          "AutoModelForSemanticSegmentation", "AutoModelForSequenceClassification", "AutoModel")


def _config(source: Any) -> Any:
    """A configuration: an object, a config.json or its folder, a dict."""
    transformers = _package("transformers")
    if not isinstance(source, (str, os.PathLike, Mapping)):
        return source
    if isinstance(source, Mapping):
        fields = dict(source)
    else:
        path = os.fspath(source)
        path = os.path.join(path, "config.json") if os.path.isdir(path) else path
        if not os.path.isfile(path):
            raise RecordError("%s: expected a configuration, a config.json or its folder; nothing "
                              "is downloaded" % path)
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
    kind = fields.pop("model_type", None)
    if kind is None:
        raise RecordError("the configuration has no model_type")
    try:
        return transformers.AutoConfig.for_model(kind, **fields)
    except ValueError as error:
        raise RecordError("transformers %s has no model_type %r; a later release may"
                          % (transformers.__version__, kind)) from error


def _class_of(config: Any) -> Any:
    """The class that the configuration names, else the most usual that takes it."""
    transformers = _package("transformers")
    for name in getattr(config, "architectures", None) or ():
        if hasattr(transformers, name):
            return getattr(transformers, name)._from_config
    both = bool(getattr(config, "is_encoder_decoder", False))
    for name in sorted(_HEADS, key=lambda head: both and "Seq2Seq" not in head):
        auto = getattr(transformers, name, None)
        if auto is not None and type(config) in auto._model_mapping:
            return auto.from_config
    raise RecordError("transformers has no trainable class for %s" % type(config).__name__)


def _text_size(config: Any) -> int:
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    return int(getattr(text, "max_position_embeddings", 0) or 0)


def _inputs(model: nn.Module, config: Any, seq: Optional[int]) -> dict[str, torch.Tensor]:
    """What the class takes: tokens and labels, or an image."""
    import inspect
    names = inspect.signature(model.forward).parameters
    limit = _text_size(config)
    length = seq or (min(limit, 4096) if 0 < limit < 1 << 20 else 1024)
    ids = torch.zeros(2, length, dtype=torch.long)
    inputs: dict[str, torch.Tensor] = {}
    if "input_ids" in names:
        inputs["input_ids"] = ids
        if "decoder_input_ids" in names and getattr(config, "is_encoder_decoder", False):
            inputs["decoder_input_ids"] = ids
    elif "pixel_values" in names:
        size = getattr(config, "image_size", 224)
        size = list(size) if isinstance(size, (list, tuple)) else [size, size]
        inputs["pixel_values"] = torch.zeros(2, getattr(config, "num_channels", 3), *size)
    elif "input_features" in names:
        frames = 2 * int(getattr(config, "max_source_positions", 1500))
        inputs["input_features"] = torch.zeros(2, int(getattr(config, "num_mel_bins", 80)), frames)
        if "decoder_input_ids" in names:
            inputs["decoder_input_ids"] = torch.zeros(
                2, seq or int(getattr(config, "max_target_positions", 448)), dtype=torch.long)
    elif "input_values" in names:
        inputs["input_values"] = torch.zeros(2, seq or 160000)
    else:
        raise RecordError("%s takes %s; give inputs={NAME: TENSOR}"
                          % (type(model).__name__, ", ".join(names)))
    if "labels" in names and "input_ids" in names:
        single = "SequenceClassification" in type(model).__name__
        inputs["labels"] = torch.zeros(2, dtype=torch.long) if single else inputs.get(
            "decoder_input_ids", ids)
    return inputs


@contextlib.contextmanager
def _one_sequence_a_sample() -> Iterator[None]:
    """transformers looks in the position ids for several sequences in one sample, and asks for a
    mask where it cannot look; without one attention is causal by its argument, as in training."""
    masks = importlib.import_module("transformers.masking_utils")
    name = "find_packed_sequence_indices"
    before = getattr(masks, name, None)
    if before is None:
        yield
        return
    setattr(masks, name, lambda *unused, **also_unused: None)
    try:
        yield
    finally:
        setattr(masks, name, before)


def from_transformers(config: Any, *, seq: Optional[int] = None,
                      inputs: Optional[Mapping[str, torch.Tensor]] = None,
                      attention: str = "sdpa", name: Optional[str] = None,
                      **options: Any) -> Recorded:
    """A model of the transformers package, built from its configuration alone: an object of it, a
    config.json or its folder, or a dict. seq: tokens of a sample; inputs: other arguments of its
    forward; attention: its attn_implementation. Further options are those of from_torch."""
    made = _config(config)
    made.architectures = getattr(made, "architectures", None) or []
    build = _class_of(made)
    dropped = [key for key in ("layerdrop", "encoder_layerdrop", "decoder_layerdrop",
                               "mask_time_prob", "mask_feature_prob") if getattr(made, key, 0)]
    for key in dropped:  # the code draws numbers and looks at them
        setattr(made, key, 0.0)
    for part in (made, getattr(made, "get_text_config", lambda: made)()):
        part.use_cache = False

    def factory() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return build(made, attn_implementation=attention)
            except ValueError:  # a class without that implementation
                return build(made, attn_implementation="eager")

    with torch.device("meta"):
        model = factory()
    sample = dict(inputs) if inputs is not None else _inputs(model, made, seq)
    kind = str(getattr(made, "model_type", "model"))
    with _one_sequence_a_sample():
        recorded = from_torch(model, sample, name=name or kind,
                              summary="recorded from transformers %s: %s" % (
                                  _package("transformers").__version__, type(model).__name__),
                              **options)
    recorded.notes.extend("%s is set to 0: each step runs all layers, or the mean is not known"
                          % key for key in dropped)
    return recorded


# ---- torchvision, timm, diffusers ----

def from_torchvision(model: str, *, image: Union[int, tuple[int, ...], None] = None,
                     **options: Any) -> Recorded:
    """A model of torchvision.models by name, such as "resnet50"."""
    torchvision = _package("torchvision")
    try:
        torchvision.models.get_model_builder(model)
    except ValueError as error:
        raise RecordError("torchvision %s has no model %r" % (torchvision.__version__, model)
                          ) from error
    size = image or (299 if "inception" in model else 224)
    shape = (size, size) if isinstance(size, int) else size
    wide = {"r3d_18", "mc3_18", "r2plus1d_18", "s3d", "mvit_v1_b", "mvit_v2_s", "swin3d_t",
            "swin3d_s", "swin3d_b"}
    frames = (16,) if model in wide else ()
    shape = (112, 112) if frames and image is None and "18" in model else shape
    keywords: dict[str, Any] = {"init_weights": False} if model in ("googlenet", "inception_v3"
                                                                   ) else {}
    return from_torch(lambda: torchvision.models.get_model(model, weights=None, **keywords),
                      torch.zeros(2, 3, *frames, *shape), **{"name": model, **options})


def from_timm(model: str, *, image: Optional[int] = None, **options: Any) -> Recorded:
    """A model of timm by name, such as "convnext_base"."""
    timm = _package("timm")
    if not timm.is_model(model):
        raise RecordError("timm %s has no model %r" % (timm.__version__, model))
    channels, *size = timm.models.get_pretrained_cfg(model).input_size
    shape = (image, image) if image else size
    sized = {"img_size": image} if image else {}

    def factory() -> Any:
        try:
            return timm.create_model(model, pretrained=False, **sized)
        except TypeError:  # a network of convolutions takes any size
            return timm.create_model(model, pretrained=False)

    return from_torch(factory, torch.zeros(2, channels, *shape), **{"name": model, **options})


def from_diffusers(config: Any, *, inputs: Optional[Mapping[str, Any]] = None,
                   tokens: int = 77, **options: Any) -> Recorded:
    """A network of diffusers from its configuration: a dict with "_class_name", the config.json of
    a subfolder (unet, transformer, vae), or its folder. inputs: arguments of its forward; tokens:
    length of the text that conditions it."""
    diffusers = _package("diffusers")
    fields = config
    if isinstance(config, (str, os.PathLike)):
        path = os.fspath(config)
        path = os.path.join(path, "config.json") if os.path.isdir(path) else path
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
    kind = fields.get("_class_name")
    if kind is None or not hasattr(diffusers, kind):
        raise RecordError("diffusers %s has no class %r (_class_name of the configuration)"
                          % (diffusers.__version__, kind))
    build = getattr(diffusers, kind)

    def factory() -> Any:
        return build.from_config(dict(fields))

    with torch.device("meta"):
        model = factory()
    sample = dict(inputs) if inputs is not None else _denoised(model, tokens)
    return from_torch(model, sample, loss=options.pop("loss", "mse"),
                      **{"name": kind.lower(), **options})


def _denoised(model: nn.Module, tokens: int) -> dict[str, Any]:
    """A noised latent, its time step, and the text that conditions it."""
    import inspect
    names = inspect.signature(model.forward).parameters
    config: Any = model.config
    size = getattr(config, "sample_size", None) or 64
    size = list(size) if isinstance(size, (list, tuple)) else [size, size]
    channels = int(getattr(config, "in_channels", 4))
    latent = torch.zeros(2, channels, *size)
    sample: dict[str, Any] = {}
    if "sample" in names:
        sample["sample"] = latent
    elif "hidden_states" in names:
        sample["hidden_states"] = latent
    else:
        raise RecordError("%s takes %s; give inputs={NAME: TENSOR}"
                          % (type(model).__name__, ", ".join(names)))
    if "timestep" in names:
        sample["timestep"] = torch.zeros(2, dtype=torch.long)
    width = next((getattr(config, key) for key in ("cross_attention_dim", "joint_attention_dim",
                                                   "caption_channels")
                  if getattr(config, key, None)), None)
    if "encoder_hidden_states" in names and width:
        width = width[0] if isinstance(width, (list, tuple)) else width
        sample["encoder_hidden_states"] = torch.zeros(2, tokens, int(width))
    if "class_labels" in names and getattr(config, "num_embeds_ada_norm", None):
        sample["class_labels"] = torch.zeros(2, dtype=torch.long)
    if "pooled_projections" in names and getattr(config, "pooled_projection_dim", None):
        sample["pooled_projections"] = torch.zeros(2, int(config.pooled_projection_dim))
    return sample


# ---- torch.export ----

def from_export(archive: Any, **options: Any) -> Recorded:
    """A torch.export archive (.pt2) or torch.export.ExportedProgram, with its example inputs. Its
    batch must be a dynamic extent, or is taken as exported."""
    program = archive
    name = "exported"
    if isinstance(archive, (str, os.PathLike)):
        name = os.path.splitext(os.path.basename(os.fspath(archive)))[0]
        program = torch.export.load(os.fspath(archive))
    if program.example_inputs is None:
        raise RecordError("the archive has no example inputs; export it with them")
    arguments, keywords = program.example_inputs
    sample: Any = tuple(arguments) if not keywords else dict(keywords)
    if arguments and keywords:
        raise RecordError("the archive takes positional and keyword arguments; export it with one "
                          "kind")
    return from_torch(program.module(), sample, **{"name": name, **options})

#!/usr/bin/env python3
"""recorded_models.py [--named] [NAME...] - records models from PyTorch and compares them with PyTorch's own counters.

For each model three counts are made apart from each other: PyTorch's (parameters of the module, flop of a
forward pass by torch.utils.flop_counter), the recorder's, and what `dlmodel list workloads` counts in the
workload file. Prints a table in Markdown (docs/recorded_models.md); exit status 1 where a count differs.

Needs torch, torchvision, timm, transformers and diffusers (make deps DEPS=all puts them into
build/python/torch), and DLMODEL, DLMODEL_LIBRARY, DLMODEL_DATA and PYTHONPATH as tests/python/recorder.sh
sets them. Nothing is downloaded and no model takes memory. NAME: these rows only.

--named: predictions of recorded models against those of the workloads of the same name in data/workloads,
on two machines; exit status 1 where one differs by more than 3 %, unless KNOWN says why."""

import json
import os
import subprocess
import sys
import tempfile
import warnings

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

import dlmodel
from dlmodel.recorder import sources, trace

warnings.filterwarnings("ignore")
SEQ = 256  # tokens of a sample of language models, unless a row says otherwise


# ---- own modules ----

class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(1000, 64)
        self.cells = nn.LSTM(64, 128, 2, batch_first=True)
        self.head = nn.Linear(128, 1000)

    def forward(self, tokens):
        return self.head(self.cells(self.table(tokens))[0])


class Ranking(nn.Module):
    """Dense features and tables of categories, in the form of DLRM."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(1000 * (i + 1), 32) for i in range(4))
        self.dense = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(5 * 32, 64), nn.ReLU(), nn.Linear(64, 1), nn.Sigmoid())

    def forward(self, numbers, categories):
        parts = [self.dense(numbers)] + [t(categories[:, i]) for i, t in enumerate(self.tables)]
        return self.top(torch.cat(parts, -1))


class Volumes(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv3d(1, 16, 3, padding=1), nn.BatchNorm3d(16), nn.ReLU(),
                                  nn.MaxPool3d(2), nn.Conv3d(16, 32, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3, 4)))


class Segmentation(nn.Module):
    """Down, up, and a join across."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 32, 3, padding=1)
        self.deep = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(64, 32, 2, stride=2)
        self.out = nn.Conv2d(64, 4, 1)

    def forward(self, x):
        wide = torch.relu(self.down(x))
        return self.out(torch.cat([self.up(torch.relu(self.deep(wide))), wide], 1))


class Signals(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(8, 32, 9, stride=4, groups=4), nn.GroupNorm(4, 32),
                                    nn.ELU(), nn.Conv1d(32, 32, 5, dilation=2), nn.GLU(1))
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.layers(x).amax(-1))


class Twins(nn.Module):
    """One encoder for two inputs."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))

    def forward(self, a, b):
        return nn.functional.cosine_similarity(self.encoder(a), self.encoder(b)).mean()


class Graph(nn.Module):
    """Messages along a dense matrix of neighbours."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 64), nn.Linear(64, 8)

    def forward(self, x, neighbours):
        x = torch.relu(self.first(neighbours @ x))
        return self.second(neighbours @ x)


def encoder():
    layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    return nn.TransformerEncoder(layer, 3)


OWN = {
    "LSTM language model": (Recurrent, torch.zeros(2, 32, dtype=torch.long)),
    "ranking with tables": (Ranking, (torch.zeros(2, 13), torch.zeros(2, 4, dtype=torch.long))),
    "3-d convolutions": (Volumes, torch.zeros(2, 1, 16, 16, 16)),
    "segmentation": (Segmentation, torch.zeros(2, 3, 32, 32)),
    "1-d convolutions": (Signals, torch.zeros(2, 8, 400)),
    "shared encoder": (Twins, (torch.zeros(2, 64), torch.zeros(2, 64))),
    "graph network": (Graph, (torch.zeros(2, 50, 32), torch.zeros(2, 50, 50))),
    "nn.TransformerEncoder": (encoder, torch.zeros(2, 40, 128)),
    "nn.Transformer": (lambda: nn.Transformer(64, 4, 2, 2, 128, batch_first=True),
                       (torch.zeros(2, 20, 64), torch.zeros(2, 10, 64))),
    "multilayer perceptron": (lambda: nn.Sequential(nn.Linear(784, 300), nn.Tanh(),
                                                    nn.Linear(300, 10)), torch.zeros(2, 784)),
}

# ---- models of packages ----

# Configuration class of transformers: fields that differ from its defaults (sizes of a published model
# where the defaults are not one; fewer layers where a recording would take minutes).
DEPTH = {"num_hidden_layers": 4}
TRANSFORMERS = {
    "GPT2Config": {}, "LlamaConfig": {**DEPTH}, "MistralConfig": {**DEPTH}, "Qwen2Config": {**DEPTH},
    "Qwen3Config": {**DEPTH}, "Gemma2Config": {**DEPTH}, "Phi3Config": {**DEPTH},
    "Olmo2Config": {**DEPTH}, "GPTNeoXConfig": {**DEPTH}, "OPTConfig": {}, "BloomConfig": {},
    "FalconConfig": {**DEPTH}, "Starcoder2Config": {**DEPTH}, "GraniteConfig": {**DEPTH},
    "MixtralConfig": {**DEPTH}, "Qwen3MoeConfig": {**DEPTH}, "DeepseekV3Config": {**DEPTH},
    "OlmoeConfig": {**DEPTH}, "MambaConfig": {**DEPTH, "seq": 16},
    "Mamba2Config": {**DEPTH, "num_heads": 128, "head_dim": 64, "seq": 64},
    "FalconMambaConfig": {**DEPTH, "seq": 16}, "BertConfig": {}, "RobertaConfig": {},
    "DistilBertConfig": {}, "AlbertConfig": {}, "ElectraConfig": {}, "T5Config": {},
    "BartConfig": {"encoder_layers": 4, "decoder_layers": 4}, "PegasusConfig": {"encoder_layers": 4,
                                                                              "decoder_layers": 4},
    "WhisperConfig": {"seq": 64}, "ViTConfig": {}, "SwinConfig": {}, "DeiTConfig": {},
    "ConvNextConfig": {}, "SegformerConfig": {},
}
TORCHVISION = ("resnet50", "densenet121", "efficientnet_b0", "mobilenet_v3_large", "googlenet",
               "regnet_y_800mf", "shufflenet_v2_x1_0", "mnasnet1_0", "swin_t", "vit_b_16")
TIMM = ("convnextv2_atto", "mixer_s32_224", "resnest14d", "xcit_nano_12_p16_224",
        "deit3_small_patch16_224", "nf_resnet26")
DIFFUSERS = {
    "UNet2DConditionModel (Stable Diffusion 1.5)": {
        "_class_name": "UNet2DConditionModel", "sample_size": 64, "cross_attention_dim": 768,
        "block_out_channels": [320, 640, 1280, 1280], "attention_head_dim": 8},
    "UNet2DModel": {"_class_name": "UNet2DModel", "sample_size": 32, "block_out_channels": [64, 128],
                    "down_block_types": ["DownBlock2D", "AttnDownBlock2D"],
                    "up_block_types": ["AttnUpBlock2D", "UpBlock2D"]},
    "DiTTransformer2DModel": {"_class_name": "DiTTransformer2DModel", "num_layers": 4,
                              "sample_size": 32},
    "SD3Transformer2DModel": {"_class_name": "SD3Transformer2DModel", "num_layers": 4,
                              "sample_size": 64},
    "AutoencoderKL": {"_class_name": "AutoencoderKL", "sample_size": 64,
                      "block_out_channels": [64, 128],
                      "down_block_types": ["DownEncoderBlock2D"] * 2,
                      "up_block_types": ["UpDecoderBlock2D"] * 2},
}


# ---- counts ----

class Counter:
    """What PyTorch itself counts of the module and inputs that the recorder is given."""

    def __init__(self):
        self.given = None
        self._record = trace.record

    def __enter__(self):
        def keep(factory, inputs, *more):
            self.given = (factory, inputs)
            return self._record(factory, inputs, *more)
        dlmodel.recorder.record = keep
        return self

    def __exit__(self, *error):
        dlmodel.recorder.record = self._record

    def counts(self):
        """Trainable parameters, and flop of one sample forward."""
        factory, inputs = self.given
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        built = None if isinstance(factory, nn.Module) else trace._build(factory, mode)
        with mode:
            model = (trace._fake_copy(factory) if built is None else built).train()
            parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
            flop = [self._flop(model, inputs, batch) for batch in (2, 3)]
        return parameters, 2 * flop[0] - flop[1]

    def _grouped(self, left, right, *more, **named):
        """Rows of tokens, each times the matrix of its expert: PyTorch's counter has no formula."""
        self.grouped = True
        return 2 * left[-2] * left[-1] * right[-1]

    def _flop(self, model, inputs, batch):
        sample = trace.map_tensors(
            inputs, lambda t: torch.zeros([batch, *t.shape[1:]], dtype=t.dtype))
        self.grouped = False
        mapping = {torch.ops.aten._grouped_mm: self._grouped}
        with FlopCounterMode(display=False, custom_mapping=mapping) as counter, \
                sources._one_sequence_a_sample():
            if isinstance(sample, dict):
                model(**sample)
            elif isinstance(sample, tuple):
                model(*sample)
            else:
                model(sample)
        return counter.get_total_flops()


def listed(recorded):
    """Parameters and multiply-adds that the program counts in the workload file."""
    data = os.environ["DLMODEL_DATA"]
    with tempfile.TemporaryDirectory() as place:
        for name in os.listdir(data):
            if name != "workloads":
                os.symlink(os.path.abspath(os.path.join(data, name)), os.path.join(place, name))
        os.mkdir(os.path.join(place, "workloads"))
        recorded.workload["name"] = "recorded_model"
        recorded.save(os.path.join(place, "workloads", "recorded_model.json"))
        done = subprocess.run([os.environ["DLMODEL"], "--data", place, "list", "workloads", "--json"],
                              capture_output=True, text=True, check=True)
    row = next(row for row in json.loads(done.stdout) if row["name"] == "recorded_model")
    return row["parameters"], 2 * row["forward_macs_per_sample"]


def rows():
    """Package, name, a function that records."""
    import transformers
    for name, fields in TRANSFORMERS.items():
        more = dict(fields)
        seq = more.pop("seq", SEQ)
        text = name not in ("ViTConfig", "SwinConfig", "DeiTConfig", "ConvNextConfig",
                            "SegformerConfig")
        yield "transformers", name[:-6], (lambda name=name, more=more, seq=seq, text=text:
                                          dlmodel.from_transformers(getattr(transformers, name)(
                                              **more), **({"seq": seq} if text else {})))
    for name in TORCHVISION:
        yield "torchvision", name, lambda name=name: dlmodel.from_torchvision(name)
    for name in TIMM:
        yield "timm", name, lambda name=name: dlmodel.from_timm(name)
    for name, config in DIFFUSERS.items():
        yield "diffusers", name, lambda config=config: dlmodel.from_diffusers(config)
    for name, (factory, inputs) in OWN.items():
        yield "own module", name, lambda factory=factory, inputs=inputs: dlmodel.from_torch(
            factory, inputs, loss="mean")


# ---- named workloads ----

NAMED_CNN = ("alexnet", "vgg16", "vgg16_bn", "vgg19", "googlenet", "inception_v3", "resnet18", "resnet34",
             "resnet50", "resnet101", "resnet152", "resnext50_32x4d", "resnext101_32x8d", "densenet121",
             "mobilenet_v2", "efficientnet_b0", "squeezenet1_0", "squeezenet1_1", "vit_b_16")
NAMED_TRANSFORMERS = {
    "gpt2": ("GPT2Config", {"activation_function": "gelu_pytorch_tanh"}, 1024),
    "llama2_7b": ("LlamaConfig", {}, 4096),
    "llama3_8b": ("LlamaConfig", {"vocab_size": 128256, "intermediate_size": 14336,
                                  "num_key_value_heads": 8}, 8192),
    "mistral_7b": ("MistralConfig", {"sliding_window": None}, 4096),
    "mixtral_8x7b": ("MixtralConfig", {}, 4096),
    "qwen2_7b": ("Qwen2Config", {"vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944,
                                 "num_hidden_layers": 28, "num_attention_heads": 28,
                                 "num_key_value_heads": 4}, 4096),
}
KNOWN = {"densenet121": "torchvision joins all earlier maps anew in each layer, so that autograd adds the gradient "
                        "of each map once for every later layer; the named workload joins the map before with the "
                        "new one, as Keras does"}


def named(wanted):
    """The recorded model and the named workload, predicted alike."""
    import transformers
    wrong = 0
    print("| workload | machine | iteration | memory | |")
    print("|---|---|---:|---:|---|")
    for name in (*NAMED_CNN, *NAMED_TRANSFORMERS):
        if wanted and name not in wanted:
            continue
        options = {"framework": "pytorch-ddp", "precision": "mixed"}
        if name in NAMED_CNN:
            recorded = dlmodel.from_torchvision(name)
            options["batch_per_device"] = 32
        else:
            kind, fields, seq = NAMED_TRANSFORMERS[name]
            recorded = dlmodel.from_transformers(getattr(transformers, kind)(**fields), seq=seq)
            options.update(batch_per_device=1, framework="pytorch-fsdp", set={"flash": 1, "seq": seq})
        if name == "vit_b_16":
            options["set"] = {"flash": 1}
        if name in ("googlenet", "inception_v3"):  # torchvision trains its auxiliary classifiers
            options["set"] = {"aux": 1}
        for system in ("iris-v100" if name in NAMED_CNN or name == "gpt2" else "dgx-a100-80", "dgx-h100"):
            own = recorded.predict(system=system, nodes=2, **{**options, "set": {}}).rows()[0]
            other = dlmodel.predict(workload=name, system=system, nodes=2, **options).rows()[0]
            off = [100 * (own[key] / other[key] - 1) for key in ("iteration_s", "memory.total_bytes")]
            wrong += max(abs(each) for each in off) > 3 and name not in KNOWN
            print("| %s | %s | %+.2f %% | %+.2f %% | %s |" % (name, system, *off, KNOWN.get(name, "")), flush=True)
    return wrong > 0


def same(a, b):
    return abs(a - b) <= 1e-12 * max(abs(a), abs(b))


def main(wanted):
    wrong = count = 0
    print("| package | model | parameters | PyTorch's | forward flop of a sample | PyTorch's | exact |")
    print("|---|---|---:|---:|---:|---:|---|")
    for package, name, make in rows():
        if wanted and name not in wanted:
            continue
        count += 1
        try:
            with Counter() as counter:
                recorded = make()
            parameters, flop = counter.counts()
            in_file = listed(recorded)
        except Exception as error:  # noqa: BLE001 - of any model's code
            wrong += 1
            print("| %s | %s | | | | | no: %s |" % (package, name, str(error)[:200].replace("\n", " ")),
                  flush=True)
            continue
        exact = recorded.parameters == parameters == in_file[0] and same(
            in_file[1], recorded.flop_forward) and same(flop, recorded.flop_forward)
        wrong += not exact
        print("| %s | %s | %d | %d | %.10g | %.10g | %s |" % (
            package, name, recorded.parameters, parameters, recorded.flop_forward, flop,
            "no: the file has %d and %.10g" % in_file if not exact else
            "yes, grouped products of experts by hand" if counter.grouped else "yes"), flush=True)
    print("\n%d models, %d exact" % (count, count - wrong))
    return wrong > 0


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(named(words[1:]) if words[:1] == ["--named"] else main(words))

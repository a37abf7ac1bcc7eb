"""Recorded models against PyTorch's own counters. DLMODEL, DLMODEL_LIBRARY and DLMODEL_DATA are set by
tests/python/recorder.sh. Models of torchvision, timm, transformers and diffusers are tested where the
package is installed."""

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import dlmodel
from dlmodel.recorder import trace

DATA = os.environ["DLMODEL_DATA"]


def installed(name):
    return unittest.skipUnless(importlib.util.find_spec(name), name + " is not installed")


class Folder:
    """A data folder with the workloads that are put into it."""

    def __init__(self):
        self.place = tempfile.TemporaryDirectory()
        for name in os.listdir(DATA):
            if name != "workloads":
                os.symlink(os.path.join(os.path.abspath(DATA), name),
                           os.path.join(self.place.name, name))
        os.mkdir(os.path.join(self.place.name, "workloads"))

    def counts(self, recorded):
        """What the program counts of a workload file."""
        name = "recorded_" + recorded.name  # named workloads extend those of their names
        renamed = dataclasses.replace(recorded, workload={**recorded.workload, "name": name})
        renamed.save(os.path.join(self.place.name, "workloads", name + ".json"))
        done = subprocess.run([os.environ["DLMODEL"], "--data", self.place.name, "list",
                               "workloads", "--json"], capture_output=True, text=True, check=True)
        return next(row for row in json.loads(done.stdout) if row["name"] == name)


FOLDER = Folder()


def counted(factory, inputs, batch):
    """Forward flop of a batch as FlopCounterMode counts them, apart from the recorder."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = factory().train()
        sample = trace.map_tensors(inputs, lambda t: torch.zeros(
            [batch, *t.shape[1:]], dtype=t.dtype))
        with FlopCounterMode(display=False) as counter:
            model(**sample) if isinstance(sample, dict) else model(sample)
        return counter.get_total_flops()


class Case(unittest.TestCase):
    def exact(self, recorded, flop=None):
        row = FOLDER.counts(recorded)
        self.assertEqual(row["parameters"], recorded.parameters)
        self.assertAlmostEqual(2 * row["forward_macs_per_sample"] / recorded.flop_forward, 1,
                               delta=1e-12)
        if flop is not None:
            self.assertAlmostEqual(recorded.flop_forward / flop, 1, delta=1e-12)
        return row

    def close(self, recorded, named, percent, systems=("iris-v100", "dgx-a100-80", "dgx-h100"), **options):
        """The prediction of a recorded workload against that of a named one."""
        for system in systems:
            given = {"system": system, "nodes": "1,4", **options}
            own = recorded.predict(**{**given, "set": {}}).rows()
            other = dlmodel.predict(workload=named, **given).rows()
            for a, b in zip(own, other):
                self.assertAlmostEqual(100 * a["iteration_s"] / b["iteration_s"], 100,
                                       delta=percent, msg="%s on %s" % (named, system))
                self.assertAlmostEqual(
                    100 * a["memory.total_bytes"] / b["memory.total_bytes"], 100, delta=percent)


# ---- models of this file ----

class Convolutions(nn.Module):
    """Grouped, transposed, dilated, with a shared layer and pools."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=2, dilation=2, groups=16)
        self.shared = nn.Conv2d(16, 16, 1)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        x = self.shared(self.depthwise(x)) + x
        x = self.up(F.relu(self.shared(x)))
        return self.head(x.mean((2, 3)))


class Block(nn.Module):
    def __init__(self, hidden, heads, groups):
        super().__init__()
        self.heads, self.groups, self.width = heads, groups, hidden // heads
        self.ln_1, self.ln_2 = nn.RMSNorm(hidden), nn.RMSNorm(hidden)
        self.qkv = nn.Linear(hidden, (heads + 2 * groups) * self.width, bias=False)
        self.out = nn.Linear(hidden, hidden)
        self.gate, self.value = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, 3 * hidden)
        self.down = nn.Linear(3 * hidden, hidden)

    def forward(self, x):
        q, k, v = self.qkv(self.ln_1(x)).split(
            [n * self.width for n in (self.heads, self.groups, self.groups)], -1)
        q, k, v = (t.unflatten(-1, (-1, self.width)).transpose(1, 2) for t in (q, k, v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(a.transpose(1, 2).flatten(2))
        y = self.ln_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.value(y))


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 64)
        self.layers = nn.ModuleList(Block(64, 4, 2) for _ in range(3))
        self.norm = nn.RMSNorm(64)
        self.head = nn.Linear(64, 100, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class OneOfTwo(nn.Module):
    """Looks at a value."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.a(x) if x.sum() > 0 else self.b(x)


class OwnModules(Case):
    def test_convolutions(self):
        image = torch.zeros(4, 3, 32, 32)
        recorded = dlmodel.from_torch(Convolutions, image, name="convolutions")
        self.exact(recorded, counted(Convolutions, image, 1 + 1) / 2)
        kinds = [entry["kind"] for entry in recorded.workload["layers"]]
        for kind in ("conv", "batchnorm", "relu", "maxpool", "add", "conv_transpose",
                     "global_pool", "dense", "loss"):
            self.assertIn(kind, kinds)
        self.assertEqual(sum("tied" in entry for entry in recorded.workload["layers"]), 1)

    def test_flop_of_a_step(self):
        """By hand: 1 x 1 of 4 to 8 channels without the gradient of its input, depthwise 3 x 3, a
        product; for 64 positions, 2 flop each."""
        def grouped():
            return nn.Sequential(nn.Conv2d(4, 8, 1), nn.Conv2d(8, 8, 3, padding=1, groups=8),
                                 nn.Flatten(), nn.Linear(512, 3))
        recorded = dlmodel.from_torch(grouped, torch.zeros(2, 4, 8, 8), name="grouped")
        self.assertEqual(recorded.flop, 2 * (64 * (2 * 4 * 8 + 3 * 8 * 9) + 3 * 512 * 3))
        self.assertEqual(recorded.flop_forward, 2 * (64 * (4 * 8 + 8 * 9) + 512 * 3))

    def test_transformer_has_blocks(self):
        recorded = dlmodel.from_torch(Tiny, torch.zeros(2, 32, dtype=torch.long), name="tiny")
        self.exact(recorded, counted(Tiny, torch.zeros(2, 32, dtype=torch.long), 2) / 2)
        sizes = recorded.workload["parameters"]
        self.assertEqual(sizes, {"layers": 3, "hidden": 64, "heads": 4, "seq": 32, "vocab": 100})
        block = recorded.workload["blocks"][0]["layers"]
        self.assertEqual([entry["kind"] for entry in block],
                         ["rmsnorm", "dense", "attention", "dense", "add", "rmsnorm", "dense",
                          "dense", "swiglu", "dense", "add"])
        self.assertEqual(block[2]["kv_heads"], 2)
        self.assertEqual(block[2]["causal"], 1)
        row = recorded.predict(system="dgx-a100-80", framework="megatron-core", tp=2, pp=3,
                               nodes=3, global_batch=96, micro_batch=1).rows()[0]
        self.assertEqual((row["tp"], row["pp"]), (2, 3))

    def test_existing_module_stays_as_it_is(self):
        model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
        before = [parameter.detach().clone() for parameter in model.parameters()]
        recorded = dlmodel.from_torch(model, torch.zeros(3, 8), name="existing")
        self.assertEqual(self.exact(recorded)["parameters"], 8 * 16 + 16 + 16 * 4 + 4)
        for a, b in zip(before, model.parameters()):
            self.assertTrue(torch.equal(a, b))
            self.assertIsNone(b.grad)

    def test_recurrent(self):
        class Words(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm, self.head = nn.LSTM(12, 24, batch_first=True), nn.Linear(24, 5)

            def forward(self, x):
                return self.head(self.lstm(x)[0][:, -1])
        self.exact(dlmodel.from_torch(Words, torch.zeros(2, 7, 12), name="words"))

    def test_options(self):
        recorded = dlmodel.from_torch(lambda: nn.Linear(8, 4), torch.zeros(2, 8), autocast="bf16",
                                      optimizer=torch.optim.AdamW, name="options")
        self.assertEqual(recorded.options, {"precision": "bf16", "optimizer": "adam"})
        row = recorded.predict(system="dgx-a100-80", nodes=1)["results"][0]
        self.assertEqual(row["precision"], "bf16")

    def test_errors_say_what_to_change(self):
        for call, words in (
                (lambda: dlmodel.from_torch(OneOfTwo, torch.zeros(2, 4)), "values of tensors"),
                (lambda: dlmodel.from_torch(lambda: 3, torch.zeros(2, 4)), "torch.nn.Module"),
                (lambda: dlmodel.from_torch(nn.ReLU, torch.zeros(2, 4)), "no trainable"),
                (lambda: dlmodel.from_transformers("/nowhere"), "config.json")):
            with self.assertRaisesRegex(dlmodel.RecordError, words):
                call()
        with self.assertRaisesRegex(ValueError, "expected fp16, bf16"):
            dlmodel.from_torch(nn.Identity, torch.zeros(2, 4), autocast="int3")

    def test_archive(self):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4))
        batch = torch.export.Dim("batch", min=2, max=1024)
        program = torch.export.export(model, (torch.zeros(4, 3, 8, 8),),
                                      dynamic_shapes=({0: batch},))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "small.pt2")
            torch.export.save(program, path)
            row = self.exact(dlmodel.from_export(path))
        self.assertEqual(row["parameters"], 3 * 8 * 9 + 8 + 8 * 36 * 4 + 4)

    def test_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            script, out = os.path.join(folder, "train.py"), os.path.join(folder, "own.json")
            with open(script, "w", encoding="utf-8") as file:
                file.write("from torch import nn\ndef make():\n    return nn.Linear(6, 2)\n")
            done = subprocess.run([sys.executable, "-m", "dlmodel", "torch", script + ":make",
                                   "--input", "6", "-o", out], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("14 parameters", done.stdout)
            with open(out, encoding="utf-8") as file:
                self.assertEqual(json.load(file)["format"], "dlmodel-workload")


# ---- models of other packages ----

@installed("torchvision")
class Torchvision(Case):
    def test_against_named_workloads(self):
        for name in ("resnet50", "vgg16", "alexnet", "squeezenet1_0", "resnext50_32x4d"):
            with self.subTest(name):
                recorded = dlmodel.from_torchvision(name)
                self.exact(recorded)
                self.close(recorded, name, 0.01, framework="pytorch-ddp", precision="mixed")

    def test_attention_of_a_vision_transformer(self):
        recorded = dlmodel.from_torchvision("vit_b_16")
        self.exact(recorded)
        self.close(recorded, "vit_b_16", 3, framework="pytorch-ddp", precision="mixed",
                   set={"flash": 1})

    def test_others(self):
        for name in ("swin_t", "mobilenet_v3_small", "convnext_tiny"):
            with self.subTest(name):
                self.exact(dlmodel.from_torchvision(name))


@installed("timm")
class Timm(Case):
    def test_counts(self):
        for name in ("convnextv2_atto", "deit3_small_patch16_224", "resnest14d", "mixer_s32_224"):
            with self.subTest(name):
                self.exact(dlmodel.from_timm(name))


@installed("diffusers")
class Diffusers(Case):
    def test_counts(self):
        self.exact(dlmodel.from_diffusers({
            "_class_name": "UNet2DConditionModel", "sample_size": 32, "cross_attention_dim": 64,
            "block_out_channels": [32, 64], "attention_head_dim": 8,
            "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
            "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"]}))


@installed("transformers")
class Transformers(Case):
    def test_against_named_workloads(self):
        from transformers import GPT2Config, LlamaConfig
        gpt2 = dlmodel.from_transformers(GPT2Config(activation_function="gelu_pytorch_tanh"),
                                         seq=1024)
        self.exact(gpt2)
        self.close(gpt2, "gpt2", 3, framework="pytorch-ddp", precision="mixed",
                   batch_per_device=4, set={"flash": 1})
        llama = dlmodel.from_transformers(LlamaConfig(
            vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
            num_attention_heads=32, num_key_value_heads=8), seq=8192)
        self.assertEqual(self.exact(llama)["parameters"], 8030261248)
        self.close(llama, "llama3_8b", 3, ("dgx-a100-80", "dgx-h100"),  # a V100 has too little memory
                   framework="pytorch-fsdp", precision="mixed",
                   batch_per_device=1, set={"flash": 1, "seq": 8192})

    def test_kinds_of_networks(self):
        import transformers
        small = {"num_hidden_layers": 2, "hidden_size": 128}
        for name, more in (
                ("BertConfig", {**small, "num_attention_heads": 4}),
                ("AlbertConfig", {**small, "num_attention_heads": 4, "embedding_size": 32}),
                ("GPTNeoXConfig", {**small, "num_attention_heads": 4}),
                ("Qwen3Config", {**small, "num_attention_heads": 4, "num_key_value_heads": 2,
                                 "head_dim": 32}),
                ("Qwen3MoeConfig", {**small, "num_attention_heads": 4, "num_experts": 8}),
                ("MixtralConfig", {**small, "num_attention_heads": 4, "num_key_value_heads": 2}),
                ("DeepseekV3Config", {**small, "num_attention_heads": 4, "n_routed_experts": 16,
                                      "first_k_dense_replace": 1}),
                ("Mamba2Config", {**small, "num_heads": 8, "head_dim": 32}),
                ("T5Config", {"num_layers": 2, "d_model": 128}),
                ("BartConfig", {"encoder_layers": 2, "decoder_layers": 2, "d_model": 128}),
                ("ViTConfig", {**small, "num_attention_heads": 4})):
            with self.subTest(name):
                config = getattr(transformers, name)(**more)
                recorded = dlmodel.from_transformers(config, seq=64)
                self.exact(recorded)
                if name in ("MixtralConfig", "Qwen3MoeConfig"):
                    self.assertIn('"kind": "moe"', recorded.text())

    def test_experts(self):
        """Router h E, and 3 h f of each of k experts for a token; E of them have parameters."""
        from transformers import MixtralConfig
        h, f, experts, k, seq = 64, 96, 8, 2, 32
        recorded = dlmodel.from_transformers(MixtralConfig(
            hidden_size=h, intermediate_size=f, num_local_experts=experts, vocab_size=100,
            num_experts_per_tok=k, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2), seq=seq)
        row = self.exact(recorded)
        attention = 2 * h * h + 2 * h * h // 2
        self.assertEqual(row["parameters"], 2 * 100 * h + h + 2 * (
            2 * h + attention + h * experts + experts * 3 * h * f))
        self.assertEqual(row["forward_macs_per_sample"], seq * 100 * h + 2 * seq * (
            attention + 2 * seq * h + h * experts + k * 3 * h * f))

    def test_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
                json.dump({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
                           "num_attention_heads": 4, "vocab_size": 100,
                           "intermediate_size": 96, "architectures": ["LlamaForCausalLM"]}, file)
            recorded = dlmodel.from_transformers(folder, seq=16)
            self.assertEqual(recorded.workload["parameters"]["layers"], 2)
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
                json.dump({"model_type": "of_tomorrow"}, file)
            with self.assertRaisesRegex(dlmodel.RecordError, "of_tomorrow"):
                dlmodel.from_transformers(folder)


if __name__ == "__main__":
    unittest.main(verbosity=2)

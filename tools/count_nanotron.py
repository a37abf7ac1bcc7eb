#!/usr/bin/env python3
"""Counts what nanotron makes the host do for each kind of layer, as count_host.py does.

  count_nanotron.py NANOTRON FLASH_ATTN TRITON    (pip install torch dacite einops pyyaml)

The folders hold the unpacked sources of nanotron and flash-attn and an unpacked wheel of triton.
One of 8 tensor ranks with sequence parallelism and asynchronous linear layers; its process group
sends nothing. Kernels of Triton are launched by Triton's own Python up to the compiled function,
which does nothing; so does flash-attn's library. Both count as operations.
"""
import contextlib
import importlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import types

import torch

import count_host as host

RANKS, RANK, HIDDEN, HEADS, TOKENS = 8, 3, 128, 16, 64
BF16 = {"dtype": torch.bfloat16}


def on_cpu(folder):
    """A copy that makes its tensors on the CPU."""
    copied = os.path.join(tempfile.mkdtemp(prefix="count_nanotron"), "source")
    shutil.copytree(folder, copied)
    for where, _, names in os.walk(copied):
        for path in (os.path.join(where, n) for n in names if n.endswith(".py")):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for old, new in (('"cuda"', '"cpu"'), ("torch.cuda.current_device()", '"cpu"')):
                text = text.replace(old, new)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    return copied


def use_triton(folder):
    importlib.import_module("torch._dynamo")  # it imports the Triton of this PyTorch
    for name in [n for n in sys.modules if n.split(".")[0] == "triton"]:
        del sys.modules[name]
    sys.path.insert(0, folder)
    triton = importlib.import_module("triton")
    jit = importlib.import_module("triton.runtime.jit")
    tuner = importlib.import_module("triton.runtime.autotuner")
    compiled = types.SimpleNamespace(c_wrapper=host.counted(lambda *_: None), num_warps=4, shared=0,
                                     cu_function=0)
    triton.compiler.compile = lambda *_, **__: compiled
    jit.JITFunction._conclude_device_type = lambda *_: "cuda"
    jit.get_cuda_stream = jit.get_current_device = lambda *_: 0
    jit.set_current_device = lambda _: None
    jit.version_key = lambda: ""
    tuner.Autotuner._bench = lambda *_, **__: [0, 0, 0]


def use_flash_attn(folder):
    sys.path.insert(0, folder)
    library = types.ModuleType("flash_attn_2_cuda")

    def forward(q, *_):
        return (torch.empty_like(q), q, q, q, q, q.new_empty(q.shape[1], q.shape[0]), None,
                q.new_empty(2))

    library.varlen_fwd = host.counted(forward)
    library.varlen_bwd = host.counted(lambda _, q, *__: (q, q, q, q.new_empty(2)))
    sys.modules["flash_attn_2_cuda"] = library


def use_nanotron(folder):
    sys.path.insert(0, os.path.join(on_cpu(folder), "src"))
    stand_in("datasets.download.streaming_download_manager", xPath=pathlib.Path)
    host.stand_in_for_cuda()
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
    from torch.testing._internal.distributed.fake_pg import FakeStore
    torch.distributed.init_process_group("fake", rank=RANK, world_size=RANKS, store=FakeStore())


def stand_in(name, **attributes):
    """A module of which only these attributes are read, and its parents."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(parts[i - 1]))
    vars(sys.modules[name]).update(attributes)


def leaf(*shape):
    return torch.zeros(*shape, requires_grad=True, **BF16)


def units():
    from nanotron.config import LlamaConfig, ParallelismArgs
    from nanotron.models import llama
    from nanotron.parallel.pipeline_parallel.block import PipelineBlock
    from nanotron.parallel.pipeline_parallel.p2p import P2P
    from nanotron.parallel.tensor_parallel.nn import TensorParallelLinearMode
    group = torch.distributed.group.WORLD
    scatter = TensorParallelLinearMode.REDUCE_SCATTER
    config = LlamaConfig(hidden_size=HIDDEN, intermediate_size=2 * HIDDEN,
                         num_attention_heads=HEADS, num_key_value_heads=HEADS,
                         num_hidden_layers=1, vocab_size=HIDDEN, max_position_embeddings=TOKENS)
    parallel = ParallelismArgs(dp=1, pp=1, tp=RANKS, pp_engine="1f1b", tp_mode=scatter,
                               tp_linear_async_communication=True)
    shard, whole = (TOKENS // RANKS, 1, HIDDEN), (TOKENS, 1, HIDDEN // RANKS)
    mask = torch.ones(1, TOKENS, dtype=torch.bool)
    ids = torch.zeros(1, TOKENS, dtype=torch.long)

    def unit(make, *shapes):
        def one(_):
            module = make()
            if isinstance(module, torch.nn.Module):
                module = module.bfloat16()
            return module, [leaf(*s) for s in shapes]
        return host.measure(one)

    def layer():
        return llama.LlamaDecoderLayer(config, parallel, group, 0).bfloat16()

    stage = torch.distributed.new_group([RANK])
    names = {"hidden_states", "sequence_mask"}

    def block():
        """A layer in the block of a pipeline that every layer has."""
        out = PipelineBlock(P2P(stage, torch.device("cpu")), llama.LlamaDecoderLayer,
                            {"config": config, "parallel_config": parallel, "tp_pg": group,
                             "layer_idx": 0}, names, names)
        out.build_and_set_rank(0)
        return out.bfloat16()

    def called(part, call=lambda m, *x: m(*x)):
        def make():
            module = part()
            run = lambda *x: call(module, *x)
            run.parameters = module.parameters
            return run
        return make

    masked = lambda m, x: m(hidden_states=x, sequence_mask=mask)["hidden_states"]
    mlp = lambda m, x: m(hidden_states=x)["hidden_states"]
    column = unit(called(lambda: layer().attn.qkv_proj), shard)
    row = unit(called(lambda: layer().attn.o_proj), whole)
    heads, width = HEADS // RANKS, HIDDEN // HEADS
    turn = lambda: layer().attn.flash_rotary_embedding
    joined = lambda tensors: sum(x.sum() for x in tensors)
    queries, pairs = (1, TOKENS, heads, width), (1, TOKENS, 2, heads, width)
    rope = host.difference(
        unit(called(turn, lambda m, q, kv: joined(m(q, kv=kv))), queries, pairs),
        unit(called(turn, lambda m, q, kv: joined((q, kv))), queries, pairs))
    loss = lambda x: llama.sharded_cross_entropy(
        x, ids.transpose(0, 1).contiguous(), group=group, dtype=torch.float).transpose(0, 1)
    norm = unit(called(lambda: layer().input_layernorm), shard)
    gate = unit(called(lambda: layer().mlp.split_silu_mul), (TOKENS, 1, 2 * HIDDEN))
    attn = unit(called(lambda: layer().attn, masked), shard)
    all_ = unit(called(block, masked), shard)
    both = [{k: (a[k] + b[k]) / 2 for k in a} for a, b in zip(column[0], row[0])]
    dense = both, [(a + b) / 2 for a, b in zip(column[1], row[1])]
    ffn = unit(called(lambda: layer().mlp, mlp), shard)
    return {"dense": dense, "rmsnorm": norm, "swiglu": gate,
            "attention": host.difference(attn, column, row, rope), "rope": rope,
            "add": host.half(host.difference(all_, attn, ffn, norm, norm)),
            "loss": unit(lambda: loss, (TOKENS, 1, HIDDEN // RANKS)), "layer": all_}


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    nanotron, flash_attn, triton = sys.argv[1:]
    use_triton(triton)
    use_flash_attn(flash_attn)
    with contextlib.redirect_stdout(sys.stderr):
        use_nanotron(nanotron)
        counted = units()
    for line in host.printed(counted):
        print(json.dumps(line))


if __name__ == "__main__":
    main()

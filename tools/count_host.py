#!/usr/bin/env python3
"""Counts what a framework's release makes the host do for each kind of layer, without a GPU.

  count_host.py pytorch                  modules of torch.nn               (pip install torch)
  count_host.py megatron [te=FOLDER]     megatron-core's GPT layer         (megatron-core einops;
                                         FOLDER: an unpacked wheel of transformer_engine, whose
                                         modules then take the place of the local ones;
         recipe=MXFP8BlockScaling|...    of its transformer_engine.common.recipe: products in 8 bits)
  count_host.py costs [te=FOLDER]        host time of one operation of each kind on this CPU

Tensors have a few elements, so that kernels take no time: the processor time of a pass is that of
Python, dispatcher and autograd. Counts of a pass of one layer:

  calls       calls of Python functions and of functions in C by Python
  modules     of these, calls of torch.nn.Module
  views       ATen operations that move no data
  operations  the other ATen operations, and functions of Transformer Engine's library, which are
              replaced by ones that only make their results
  nodes       nodes of autograd that a backward pass runs
"""
import argparse
import collections
import contextlib
import gc
import json
import os
import re
import shutil
import sys
import tempfile
import time
import types

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KINDS = ("calls", "views", "operations", "nodes")
FEW, MANY, REPEATS = 2, 6, 100
HIDDEN, HEADS, TOKENS, EXPERTS = 64, 2, 32, 8
BLOCK = 32  # values that share a scale
VIEWS = {"view", "_unsafe_view", "t", "transpose", "permute", "slice", "select", "expand", "detach",
         "split", "split_with_sizes", "unsqueeze", "squeeze", "as_strided", "alias", "unbind",
         "_reshape_alias", "narrow", "lift_fresh"}


class Dispatched(TorchDispatchMode):
    """Counts operations as they reach ATen."""

    def __init__(self):
        super().__init__()
        self.names = collections.Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names[str(function).split(".")[1]] += 1
        return function(*args, **(kwargs or {}))


# torch.autograd.backward without its checks of each output in Python
RUN_BACKWARD = torch.autograd.Variable._execution_engine.run_backward
LIBRARY_CALLS = [0]  # of Transformer Engine's library
NARROW = [contextlib.nullcontext]  # where products run in 8 bits


def nodes_of(outputs):
    seen, left = set(), [y.grad_fn for y in outputs]
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        left += [n for n, _ in node.next_functions]
    return len(seen)


def profiled(run):
    """Calls of Python and of modules while `run` runs."""
    counts, module = [0, 0], nn.Module._call_impl.__code__

    def see(frame, event, _):
        if event in ("call", "c_call"):
            counts[0] += 1
            counts[1] += event == "call" and frame.f_code is module

    sys.setprofile(see)
    run()
    sys.setprofile(None)
    return {"calls": counts[0], "modules": counts[1]}


def dispatched(run):
    before = LIBRARY_CALLS[0]
    with Dispatched() as seen:
        run()
    views = sum(n for name, n in seen.names.items() if name in VIEWS)
    return {"views": views,
            "operations": sum(seen.names.values()) - views + LIBRARY_CALLS[0] - before}


class Units:
    """`count` units side by side, each with inputs of its own."""

    def __init__(self, make, count):
        self.units = [make(i) for i in range(count)]
        self.outputs, self.gradients = [], ()

    def forward(self):
        with NARROW[0]():
            self.outputs = [function(*inputs) for function, inputs in self.units]

    def backward(self):
        RUN_BACKWARD(tuple(self.outputs), self.gradients, False, False, (),
                     allow_unreachable=True, accumulate_grad=True)

    def clear(self):
        for function, inputs in self.units:
            for p in list(getattr(function, "parameters", list)()) + list(inputs):
                if isinstance(p, torch.Tensor):
                    p.grad = None

    def pass_(self):
        self.forward()
        self.gradients = tuple(torch.ones_like(y) for y in self.outputs)
        self.backward()
        self.clear()

    def counts(self):
        for _ in range(3):
            self.pass_()
        forward = profiled(self.forward)
        backward = profiled(self.backward)
        self.clear()
        forward.update(dispatched(self.forward))
        backward["nodes"] = nodes_of(self.outputs)
        backward.update(dispatched(self.backward))
        forward["nodes"] = 0
        self.clear()
        return forward, backward

    def times(self):
        """Processor time of each pass [us]: the least, since other work on the machine adds."""
        both = []
        for _ in range(REPEATS):
            a = time.thread_time()
            self.forward()
            b = time.thread_time()
            self.backward()
            both.append((b - a, time.thread_time() - b))
            self.clear()
        return [1e6 * min(t[i] for t in both) for i in (0, 1)]


def measure(make):
    """One unit: what MANY of them take more than FEW. The node of its input is not part of it."""
    few, many = Units(make, FEW), Units(make, MANY)
    counts = [{key: (b[key] - a[key]) / (MANY - FEW) for key in b}
              for a, b in zip(few.counts(), many.counts())]
    _, inputs = make(0)
    counts[1]["nodes"] -= sum(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)
    times = [(b - a) / (MANY - FEW) for a, b in zip(few.times(), many.times())]
    return counts, times


def difference(whole, *parts):
    counts = [{key: pass_[key] - sum(p[0][i][key] for p in parts) for key in pass_}
              for i, pass_ in enumerate(whole[0])]
    return counts, [t - sum(p[1][i] for p in parts) for i, t in enumerate(whole[1])]


def half(unit):
    return [{k: v / 2 for k, v in c.items()} for c in unit[0]], [t / 2 for t in unit[1]]


def leaf(*shape):
    return torch.zeros(*shape, requires_grad=True)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def attention(q, k, v):
    b, t, h = q.shape
    q, k, v = (x.view(b, t, HEADS, h // HEADS).transpose(1, 2) for x in (q, k, v))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y.transpose(1, 2).reshape(b, t, h)


def rope(x):
    a, b = x.chunk(2, -1)
    return x * x.detach() + torch.cat((-b, a), -1) * x.detach()


def pytorch():
    """Units of torch.nn by kind of layer, as models of the PyTorch world are written."""
    h, t = HIDDEN, TOKENS
    tokens = (2, t, h)
    image = (2, 4, 8, 8)

    def unit(module, *shapes):
        return measure(lambda _: (module(), [leaf(*s) for s in shapes]))

    units = {
        "dense": unit(lambda: nn.Linear(h, h), tokens),
        "layernorm": unit(lambda: nn.LayerNorm(h), tokens),
        "rmsnorm": unit(lambda: nn.RMSNorm(h), tokens),
        "gelu": unit(nn.GELU, tokens),
        "relu": unit(nn.ReLU, tokens),
        "dropout": unit(lambda: nn.Dropout(0.1), tokens),
        "swiglu": unit(lambda: Function(lambda a, b: F.silu(a) * b), tokens, tokens),
        "attention": unit(lambda: Function(attention), tokens, tokens, tokens),
        "rope": unit(lambda: Function(rope), tokens),
        "conv": unit(lambda: nn.Conv2d(4, 4, 3, padding=1, bias=False), image),
        "batchnorm": unit(lambda: nn.BatchNorm2d(4), image),
        "maxpool": unit(lambda: nn.MaxPool2d(2), image),
    }
    add = lambda a, b: a + b
    units["add"] = measure(lambda _: (add, [leaf(*tokens), leaf(*tokens)]))
    ids = torch.zeros(2, t, dtype=torch.long)
    units["embedding"] = measure(lambda _: (nn.Embedding(h, h), [ids]))
    loss = Function(lambda x: F.cross_entropy(x.view(-1, h), ids.view(-1)))
    units["loss"] = measure(lambda _: (loss, [leaf(*tokens)]))
    return units


def on_cpu(folder):
    """A copy of Transformer Engine's Python files that makes its tensors on the CPU."""
    copied = os.path.join(tempfile.mkdtemp(prefix="count_host"), "te")
    shutil.copytree(folder, copied)
    for where, _, names in os.walk(copied):
        for name in names:
            if name.endswith(".py") and os.sep + "pytorch" in where:
                path = os.path.join(where, name)
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                for old, new in (('"cuda"', '"cpu"'), (".is_cuda", ".is_cpu"),
                                 ("torch.cuda.current_device()", "0"),
                                 ("torch.cuda.is_available()", "True")):
                    text = text.replace(old, new)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
    return copied


class Names(type):
    """A class whose every attribute is a constant of its own, as an enumeration has them."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = object.__new__(cls)
        type.__setattr__(cls, name, value)
        return value


class Library(types.ModuleType):
    """Stands for transformer_engine_torch: what is not one of its functions below is a name."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = Names(name, (), {"__init__": lambda self, *a, **k: None, "__int__": lambda s: 0,
                                "__index__": lambda s: 0})
        setattr(self, name, made)
        return made


def quantize(x, quantizer, out=None, _=None):
    return quantizer.make_empty(list(x.shape), dtype=x.dtype, device=x.device) if out is None else out


def split_quantize(x, splits, quantizers):
    """Tensors of blocks share what the library allocates at once, others have their own."""
    if type(quantizers[0]).__name__ != "MXFP8Quantizer":
        return [quantize(x.new_empty(n, x.shape[-1]), q) for n, q in zip(splits, quantizers)]
    from transformer_engine.pytorch.tensor.storage.mxfp8_tensor_storage import MXFP8TensorStorage
    whole = [torch.empty(BLOCK, x.shape[-1], dtype=torch.uint8) for _ in range(4)]
    return [MXFP8TensorStorage(*whole, q.dtype, q) for q in quantizers]


def norm_forward(x, *rest):
    quantizer = next((r for r in rest if hasattr(r, "make_empty")), None)
    out = torch.empty_like(x) if quantizer is None else quantize(x, quantizer)
    return out, x.new_empty(x.shape[0]), x.new_empty(x.shape[0])


def layernorm_backward(_, x, *rest):
    return torch.empty_like(x), torch.empty_like(rest[2]), torch.empty_like(rest[2])


def rmsnorm_backward(_, x, *rest):
    return torch.empty_like(x), torch.empty_like(rest[1])


def product(a, turn_a, b, turn_b, out, _quantizer, _type, bias, *rest, **_):
    sides, rows = a.size(), b.size()
    kind = {"dtype": torch.bfloat16}
    if out is None:
        columns = sides[0] if turn_a else sides[-1]
        out = torch.empty((rows[-1], columns) if turn_b else (*rows[:-1], columns), **kind)
    gradient = torch.empty(rows[-1], **kind) if rest[3] and bias is not None else None
    return out, gradient, None, None


def attention_forward(*args, **_):
    q = next(x for x in args if isinstance(x, torch.Tensor) and x.dim() >= 3)
    return torch.empty_like(q), q.new_empty(q.shape[0], q.shape[1]), q.new_empty(2)


def attention_backward(*args, **_):
    q = next(x for x in args if isinstance(x, torch.Tensor) and x.dim() >= 3)
    return [torch.empty_like(q) for _ in range(3)] + [None, None]


def counted(function):
    def call(*args, **kwargs):
        LIBRARY_CALLS[0] += 1
        return function(*args, **kwargs)
    return call


def use_transformer_engine(folder):
    os.environ["NVTE_PROJECT_BUILDING"] = "1"
    sys.path.insert(0, on_cpu(folder))
    library = Library("transformer_engine_torch")
    for name, function in {"layernorm_fwd": norm_forward, "rmsnorm_fwd": norm_forward,
                           "layernorm_bwd": layernorm_backward, "rmsnorm_bwd": rmsnorm_backward,
                           "generic_gemm": product, "quantize": quantize,
                           "split_quantize": split_quantize,
                           "bgrad_quantize": lambda x, q: (x.new_empty(x.shape[-1]), quantize(x, q)), "fused_attn_fwd": attention_forward,
                           "te_general_grouped_gemm": lambda a, *_: [None] * len(a),
                           "fused_attn_bwd": attention_backward}.items():
        setattr(library, name, counted(function))
    fused = library.NVTE_Fused_Attn_Backend.NVTE_F16_arbitrary_seqlen
    library.get_fused_attn_backend = counted(lambda *a, **k: fused)
    library.get_cudnn_version = lambda: 91200
    library.get_cublasLt_version = lambda: 130000
    library.get_num_cublas_streams = lambda: 4
    sys.modules["transformer_engine_torch"] = library
    import transformer_engine.common
    transformer_engine.common.load_framework_extension = lambda *_: None


def use_recipe(name):
    import transformer_engine.common.recipe as recipes
    import transformer_engine.pytorch as engine
    from transformer_engine.pytorch import quantization
    quantization.check_fp8_support = quantization.check_mxfp8_support = lambda: (True, "")
    recipe = getattr(recipes, name)()
    NARROW[0] = lambda: engine.fp8_autocast(enabled=True, fp8_recipe=recipe)


class Stream:
    """Stands for streams and their events."""

    def record_event(self, *_):
        return self

    def nothing(self, *_):
        pass

    wait_stream = wait_event = wait = synchronize = record = nothing


def stand_in_for_cuda():
    """As an H100 would answer."""
    nothing = lambda *a, **k: None
    cuda = torch.cuda
    cuda.get_device_properties = lambda *_: types.SimpleNamespace(
        major=9, minor=0, multi_processor_count=132, name="NVIDIA H100")
    cuda.get_device_capability = lambda *_: (9, 0)
    cuda.current_device = lambda: "cpu"
    cuda.is_current_stream_capturing = lambda: False
    cuda.device = type("device", (contextlib.nullcontext,), {})
    cuda.nvtx.range = contextlib.nullcontext
    cuda.nvtx.range_push = cuda.nvtx.range_pop = nothing
    cuda.current_stream = cuda.Stream = cuda.Event = lambda *a, **k: Stream()
    cuda.stream = contextlib.nullcontext
    cuda.synchronize = cuda.set_stream = nothing
    torch.Tensor.record_stream = nothing
    torch.Tensor.cuda = lambda self, *a, **k: self


def gpt(layers, spec, **changes):
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.transformer.transformer_config import TransformerConfig
    config = TransformerConfig(
        num_layers=layers, hidden_size=HIDDEN, num_attention_heads=HEADS, bf16=True,
        params_dtype=torch.bfloat16, use_cpu_initialization=True, hidden_dropout=0.0,
        attention_dropout=0.0, **changes)
    rotary = changes.get("gated_linear_unit")
    return GPTModel(config=config, transformer_layer_spec=spec, vocab_size=HIDDEN,
                    max_sequence_length=TOKENS, position_embedding_type="rope" if rotary
                    else "learned_absolute").bfloat16()


def megatron_units(spec, **changes):
    """Units of one layer: its parts, and as `add` what they leave, halved."""
    model = gpt(MANY, spec, **changes)
    layers = model.decoder.layers
    mask = torch.zeros(1, 1, TOKENS, TOKENS, dtype=torch.bool)
    turns = model.rotary_pos_emb(TOKENS) if changes.get("gated_linear_unit") else None

    def unit(part, **more):
        """Megatron's modules return results and biases."""
        def make(index):
            module = part(layers[index])
            call = lambda x: (lambda y: y[0] if isinstance(y, tuple) else y)(module(x, **more))
            call.parameters = module.parameters
            return call, [torch.zeros(TOKENS, 1, HIDDEN, dtype=torch.bfloat16, requires_grad=True)]
        return measure(make)

    turned = {"attention_mask": mask, "rotary_pos_emb": turns}
    proj = unit(lambda l: l.self_attention.linear_proj)
    dense = unit(lambda l: l.self_attention.linear_qkv)
    block = unit(lambda l: l.self_attention, attention_mask=mask)
    mlp, whole = unit(lambda l: l.mlp), unit(lambda l: l, **turned)
    fused = type(layers[0].input_layernorm).__name__ == "IdentityOp"
    norm = difference(dense, proj) if fused else unit(lambda l: l.input_layernorm)
    attended = unit(lambda l: l.self_attention, **turned)
    ids = torch.zeros(1, TOKENS, dtype=torch.long)

    def text(_):
        one = gpt(1, spec, **changes)
        return Function(lambda: one(ids, torch.arange(TOKENS)[None], mask, labels=ids).mean()), []

    units = {"dense": proj, "norm": norm, "attention": difference(block, dense, proj),
             "activation": difference(mlp, dense, proj),
             "add": half(difference(whole, attended, mlp) if fused else
                         difference(whole, attended, mlp, norm, norm)),
             "loss": difference(measure(text), whole, proj, norm)}
    if turns is not None:
        units["rope"] = difference(attended, block)
    return units


def mixture(spec):
    """Router, dispatcher and EXPERTS experts of two products each."""
    layers = gpt(MANY, spec, gated_linear_unit=True, activation_func=F.silu, moe_router_topk=2,
                 num_moe_experts=EXPERTS, moe_grouped_gemm=True, moe_ffn_hidden_size=HIDDEN,
                 moe_token_dispatcher_type="alltoall", add_bias_linear=False).decoder.layers

    def make(index):
        call = lambda x: layers[index].mlp(x)[0]
        call.parameters = layers[index].mlp.parameters
        return call, [torch.randn(TOKENS, 1, HIDDEN, dtype=torch.bfloat16, requires_grad=True)]
    return measure(make)


def megatron(te, recipe):
    stand_in_for_cuda()
    if te:
        use_transformer_engine(te)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("MASTER_PORT", "29519"),
                      RANK="0", WORLD_SIZE="1", CUDA_DEVICE_MAX_CONNECTIONS="1")
    torch.distributed.init_process_group("gloo")
    from megatron.core import parallel_state
    from megatron.core.models.gpt import gpt_layer_specs as specs
    from megatron.core.tensor_parallel import random
    if recipe:
        use_recipe(recipe)
    random.CudaRNGStatesTracker.fork = lambda self, name="": contextlib.nullcontext()
    parallel_state.initialize_model_parallel(1, 1)
    spec = (specs.get_gpt_layer_with_transformer_engine_spec if te
            else specs.get_gpt_layer_local_spec)
    units = {}
    plain = megatron_units(spec())
    for kind, name in (("dense", "dense"), ("norm", "layernorm"), ("attention", "attention"),
                       ("activation", "gelu"), ("add", "add"), ("loss", "loss")):
        units[name] = plain[kind]
    llama = megatron_units(spec(), gated_linear_unit=True, activation_func=F.silu,
                           normalization="RMSNorm" if te else "LayerNorm", add_bias_linear=False)
    for kind, name in (("norm", "rmsnorm"), ("activation", "swiglu"), ("rope", "rope")):
        if te or kind != "norm":
            units[name] = llama[kind]
    if te:
        units["moe"] = mixture(specs.get_gpt_layer_with_transformer_engine_spec(
            num_experts=EXPERTS, moe_grouped_gemm=True))
    return units


def costs(units):
    """Least squares of the time of each pass by its counts, in shares of it, none below 0."""
    rows, times = [], []
    for counts, spent in units.values():
        for c, t in zip(counts, spent):
            if t > 5:
                rows.append([c[k] / t for k in KINDS])
                times.append(1.0)
    a, b, kept = numpy.array(rows), numpy.array(times), list(range(len(KINDS)))
    while True:
        solved = numpy.linalg.lstsq(a[:, kept], b, rcond=None)[0]
        if (solved >= 0).all():
            break
        kept.pop(int(solved.argmin()))
    cost = dict.fromkeys(KINDS, 0.0)
    cost.update({KINDS[k]: float(s) for k, s in zip(kept, solved)})
    errors = numpy.abs(a[:, kept] @ solved - 1)
    print(f"{len(b)} passes, median error {100 * numpy.median(errors):.0f} %", file=sys.stderr)
    return {k: round(v, 3) for k, v in cost.items()}


def printed(units):
    out = []
    for kind, (counts, times) in units.items():
        row = {"kind": kind}
        for name, c, t in zip(("forward", "backward"), counts, times):
            row[name] = {k: round(c[k], 2) for k in ("calls", "modules", *KINDS[1:]) if k in c}
            row[name]["time_us"] = round(t, 1)
        out.append(row)
    return out


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", choices=("pytorch", "megatron", "costs"))
    parser.add_argument("te", nargs="?", default="")
    parser.add_argument("recipe", nargs="?", default="")
    options = parser.parse_args()
    te, recipe = re.sub("^te=", "", options.te), re.sub("^recipe=", "", options.recipe)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    gc.disable()
    units = pytorch() if options.what != "megatron" else {}
    if options.what != "pytorch":
        units.update({f"megatron {k}": v for k, v in megatron(te, recipe).items()})
    if options.what == "costs":
        print(json.dumps(costs(units)))
        return
    for row in printed(units):
        print(json.dumps(row))


if __name__ == "__main__":
    main()

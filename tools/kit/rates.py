"""rates.py - PyTorch's own time of the shapes that dlmodel calibrate measured: an independent measurement of the same work.

Reads a profile, writes CSV: probe,pass,shape,precision,dlmodel_s,torch_s,ratio,note. Kernels go through PyTorch's operators, so
short ones show the host: samples below --from-s are left out. Operands rotate, as in the probes, until they are cold.
"""
import argparse
import csv
import json
import math
import statistics
import sys
import time

import torch
from torch.nn import functional as F

KINDS = {"fp32": torch.float32, "tf32": torch.float32, "mixed": torch.float16, "bf16": torch.bfloat16}


def numbers(shape):
    return {k: int(v) for k, v in (pair.split("=") for pair in shape.split()) if k != "prec"}


def random(size, kind, where, gradient=False):
    return (torch.rand(size, device=where) - 0.5).to(kind).requires_grad_(gradient)


def product(s, p, kind, where):
    """Column-major C = op(A) op(B): in PyTorch's order its transpose, op(B)^T op(A)^T, of what lies in memory."""
    m, n, k, b = s["m"], s["n"], s["k"], (s["b"],) if "b" in s else ()
    a = random(b + ((m, k) if s.get("ta") else (k, m)), kind, where)
    c = random(b + ((k, n) if s.get("tb") else (n, k)), kind, where)
    left, right = (c.transpose(-1, -2) if s.get("tb") else c), (a.transpose(-1, -2) if s.get("ta") else a)
    return lambda: torch.matmul(left, right)


def convolution(s, p, kind, where):
    if "d" in s:
        raise ValueError("three dimensions")
    h, r, pad = s["h"], s["r"], s.get("p", 0)
    x = random((s["n"], s["c"], h, s.get("w", h)), kind, where)
    w = random((s["f"], s["c"] // s.get("g", 1), r, s.get("q", r)), kind, where)
    how = {"stride": s.get("s", 1), "padding": (pad, s.get("t", pad)), "dilation": s.get("e", 1), "groups": s.get("g", 1)}
    dy = torch.empty_like(F.conv2d(x, w, **how)).normal_()
    return {"fwd": lambda: F.conv2d(x, w, **how), "bwd_data": lambda: torch.nn.grad.conv2d_input(x.shape, w, dy, **how),
            "bwd_filter": lambda: torch.nn.grad.conv2d_weight(x, w.shape, dy, **how)}[p]


def both_passes(function, inputs):
    """function(*inputs), or the gradient of all inputs."""
    def make(p):
        if p == "fwd":
            return lambda: function(*[i.detach() for i in inputs])
        y = function(*inputs)
        dy = torch.empty_like(y).normal_()
        return lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True)
    return make


def image(function):
    return lambda s, p, kind, where: both_passes(function, [random((s["n"], s["c"], s["h"], s["h"]), kind, where, True)])(p)


def rows(function):
    return lambda s, p, kind, where: both_passes(function, [random((s["n"], s["c"]), kind, where, True)])(p)


def attention(s, p, kind, where):
    q, k, v = (random((s["n"] * s["heads"], s["q"], s["d"]), kind, where, True) for _ in range(3))
    return both_passes(lambda q, k, v: torch.matmul(torch.softmax(torch.matmul(q, k.transpose(1, 2)) / math.sqrt(s["d"]), -1), v), [q, k, v])(p)


def copy(s, p, kind, where):
    if p != "copy":
        raise ValueError("only copies")
    x = random((s["bytes"] // 4,), torch.float32, where)
    y = torch.empty_like(x)
    return lambda: y.copy_(x)


MAKERS = {"gpu-gemm": product, "gpu-batch": product, "gpu-conv": convolution, "gpu-attention": attention, "gpu-copy": copy,
          "gpu-norm": image(lambda x: F.batch_norm(x, None, None, training=True)), "gpu-act": image(F.relu),
          "gpu-pool": image(lambda x: F.max_pool2d(x, 3, 2, 1)), "gpu-softmax": rows(lambda x: F.softmax(x, 1)),
          "gpu-layernorm": rows(lambda x: F.layer_norm(x, x.shape[1:]))}


def elapsed(calls, repeats, gpu):
    if not gpu:
        begin = time.perf_counter()
        for i in range(repeats):
            calls[i % len(calls)]()
        return (time.perf_counter() - begin) / repeats
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for i in range(repeats):
        calls[i % len(calls)]()
    end.record()
    end.synchronize()
    return 1e-3 * begin.elapsed_time(end) / repeats


def measure(sample, where, gpu):
    """Seconds of a call: the median of five blocks of at least 20 ms."""
    shape, precision = numbers(sample["shape"]), sample.get("precision", "fp32")
    if precision not in KINDS:
        raise ValueError("no PyTorch operator for " + precision)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    sets = 8 if gpu and sample["median_s"] < 2e-3 else 2
    calls = [MAKERS[sample["probe"]](shape, sample["pass"], KINDS[precision], where) for _ in range(sets)]
    elapsed(calls, sets, gpu)
    repeats = max(3, min(200, int(0.02 / max(elapsed(calls, sets, gpu), 1e-6))))
    return statistics.median(elapsed(calls, repeats, gpu) for _ in range(5))


def chosen(samples, most, low_s, high_s):
    """At most `most` of each probe, pass and precision, spread evenly."""
    groups = {}
    for s in samples:
        if s["probe"] in MAKERS and low_s <= s["median_s"] <= high_s:
            groups.setdefault((s["probe"], s["pass"], s.get("precision")), []).append(s)
    for group in groups.values():
        step = max(1, math.ceil(len(group) / most))
        yield from group[::step]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("profile")
    p.add_argument("--device", default="gpu", choices=["gpu", "cpu"])
    p.add_argument("--most", type=int, default=8)
    p.add_argument("--from-s", type=float, default=30e-6)
    p.add_argument("--to-s", type=float, default=0.2)
    args = p.parse_args()
    gpu = args.device == "gpu"
    where = torch.device("cuda" if gpu else "cpu")
    torch.backends.cudnn.benchmark = True
    with open(args.profile, encoding="utf-8") as f:
        samples = json.load(f)["samples"]
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["probe", "pass", "shape", "precision", "dlmodel_s", "torch_s", "ratio", "note"])
    for s in chosen(samples, args.most, args.from_s, args.to_s):
        row = [s["probe"], s["pass"], s["shape"], s.get("precision", "fp32"), "%.6g" % s["median_s"]]
        try:
            seconds = measure(s, where, gpu)
            out.writerow(row + ["%.6g" % seconds, "%.4f" % (s["median_s"] / seconds), ""])
        except (RuntimeError, ValueError) as error:
            out.writerow(row + ["", "", str(error).split("\n")[0][:120]])
        if gpu:
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

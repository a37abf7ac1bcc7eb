"""attention.py DEVICE-NAME SOURCE UNTIL [cuda|cpu] - PyTorch's own kernels of attention (scaled_dot_product_attention), forward and backward, as a table
of kernels on standard output; stops at UNTIL [s since 1970]."""
import csv
import sys
import time

import torch
from torch.nn import functional as F

import rates
import tables

SHAPES = [(b, h, kv, s, d, c) for b, s in ((4, 2048), (1, 8192), (16, 512), (32, 128)) for h, kv, d in ((32, 32, 64), (32, 8, 128), (16, 16, 64))
          for c in (1, 0)]
KERNELS = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION"}


def seconds(batch, heads, kv, tokens, width, causal, kind, where, backward):
    q, k, v = (torch.randn(batch, n, tokens, width, device=where, dtype=kind, requires_grad=backward) for n in (heads, kv, kv))
    more = {"enable_gqa": True} if kv != heads else {}
    if not backward:
        call = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=bool(causal), **more)
    else:
        y = F.scaled_dot_product_attention(q, k, v, is_causal=bool(causal), **more)
        dy = torch.randn_like(y)
        call = lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)
    gpu = where == "cuda"
    rates.elapsed([call], 3, gpu)
    repeats = max(3, min(200, int(0.01 / max(rates.elapsed([call], 3, gpu), 1e-6))))
    return sorted(rates.elapsed([call], repeats, gpu) for _ in range(5))[2]


def main():
    gpu, source, until, where = sys.argv[1], sys.argv[2], float(sys.argv[3]), (sys.argv + ["cuda"])[4]
    out = csv.DictWriter(sys.stdout, tables.ATTENTION, restval="", lineterminator="\n")
    out.writeheader()
    from torch.nn.attention import SDPBackend, sdpa_kernel
    for batch, heads, kv, tokens, width, causal in SHAPES:
        for kernel, name in KERNELS.items():
            for p in ("fwd", "bwd"):
                if time.time() > until:
                    return
                try:
                    with sdpa_kernel(getattr(SDPBackend, name)):
                        s = seconds(batch, heads, kv, tokens, width, causal, torch.bfloat16, where, p == "bwd")
                except (RuntimeError, AttributeError, TypeError):
                    continue  # this PyTorch, or this device, has no such kernel
                out.writerow({"gpu": gpu, "pass": p, "batch": batch, "heads_q": heads, "heads_kv": kv, "seq_q": tokens, "seq_kv": tokens, "head_dim_qk": width,
                              "head_dim_v": width, "causal": causal, "dtype": "bf16", "kv_dtype": "bf16", "library": "torch SDPA " + kernel,
                              "time_us": "%.6g" % (1e6 * s), "timing": "events around many calls", "source": source})
                sys.stdout.flush()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Fits the constants of F-NCCL-ATTAINED (model/network/libraries/nccl_tables.c) to one-node
nccl-tests of published_2.csv by least squares of relative errors and prints one line for each
generation of GPUs: python3 tools/fit_nccl.py [--without OPERATION]

  LL      t = base + hop x steps + S x steps / (n x bandwidth of LL)         up to 64 KiB
  Simple  t = base + hop x steps + S x steps / (n x bandwidth) + S/n x copy  from 32 MiB
  LL128   t = NCCL's latency + S x steps / (n x bandwidth x f)               4 to 32 MiB, all-reduce
  sends   t = base + S / bandwidth                                           to 1 MiB, all-to-all
          t = base + step + S/n x copy (of Simple) + S (n-1)/n / bandwidth   from 32 MiB
  NVLS    t = base + S / bandwidth                                           from 22 MB (CUDA graph),
          short: up to 16 MiB, and its bandwidth / the long one
"""
import csv
import os
import sys

# Bandwidth of a ring (links.intra of the systems) and of LL (cap of NCCL 2.21 and later).
GENERATIONS = {"A100-SXM4-80GB": (231.6e9, 87.7e9), "H100-SXM-80GB": (370e9, 141e9),
               "B200": (722e9, 282e9)}
SHORT, LONG, MEBIBYTE = 65536, 33554432, 1048576


def solve(rows, values):
    """Least squares by the normal equations; rows of up to three factors."""
    n = len(rows[0])
    a = [[sum(r[i] * r[j] for r in rows) for j in range(n)] +
         [sum(r[i] * v for r, v in zip(rows, values))] for i in range(n)]
    for i in range(n):
        for k in range(i + 1, n):
            f = a[k][i] / a[i][i]
            a[k] = [x - f * y for x, y in zip(a[k], a[i])]
    out = [0.0] * n
    for i in reversed(range(n)):
        out[i] = (a[i][n] - sum(a[i][j] * out[j] for j in range(i + 1, n))) / a[i][i]
    error = sum((sum(x * y for x, y in zip(r, out)) - v) ** 2 for r, v in zip(rows, values))
    return out, (error / len(rows)) ** 0.5


def fit(samples):
    """samples: (factors, value, time); the errors are relative to the time."""
    return solve([[x / t for x in f] for f, v, t in samples], [v / t for f, v, t in samples])


def read(without):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/collectives/published_2.csv")
    with open(path, newline="") as file:
        for r in csv.DictReader(file):
            if r["nodes"] == "1" and r["collective"] != without:
                yield (r["device"], r["collective"], int(r["ranks"]), float(r["size_bytes"]),
                       float(r["time_us"]), r["series"])


def switch_reduces(device, n):
    """Whether NCCL reduces in the switch instead of a ring."""
    return n > 4 and not device.startswith("A100")


def fit_rings(device, rows, bandwidth, ll):
    short, long = [], []
    for _, op, n, size, t, _ in rows:
        steps = 2 * (n - 1) if op == "all_reduce" else n - 1
        moved = size * steps / n
        if size <= SHORT:
            short.append(([1, steps], t - moved / min(bandwidth / 2, ll) * 1e6, t))
        if size >= LONG and not (op == "all_reduce" and switch_reduces(device, n)):
            long.append(([1, steps, size / n], t - moved / bandwidth * 1e6, t))
    return fit(short), fit(long)


def fit_rccl(rows):
    """All-reduces over 8 MI300X: starts hold all steps, for no other rank count is measured."""
    bandwidth, moved = 316e9, 14 / 8
    mine = [(s, t) for d, _, n, s, t, _ in rows if d == "MI300X" and n == 8]
    a, ea = fit([([1], t - s * moved / 87.7e9 * 1e6, t) for s, t in mine if 1024 <= s <= SHORT])
    b, eb = fit([([1, s * moved], t, t) for s, t in mine if MEBIBYTE <= s < LONG])
    c, ec = fit([([1], t - s * moved / bandwidth * 1e6, t) for s, t in mine if s >= LONG])
    print(f"MI300X: LL {a[0]:.1f} us (rms {100 * ea:.0f} %); LL128 {b[0]:.1f} us, "
          f"{1e-3 / b[1] / bandwidth * 1e9:.2f} of the bandwidth (rms {100 * eb:.0f} %); "
          f"Simple {c[0]:.0f} us (rms {100 * ec:.0f} %)")


def main():
    without = sys.argv[2] if len(sys.argv) == 3 and sys.argv[1] == "--without" else ""
    rows = list(read(without))
    for device, (bandwidth, ll) in GENERATIONS.items():
        mine = [r for r in rows if r[0] == device and r[5].startswith("one process")]
        (a, ea), (b, eb) = fit_rings(device, [r for r in mine if r[1] != "all_to_all"], bandwidth,
                                     ll)
        ranks = 8 if device.startswith("A100") else 2
        steps = 2 * (ranks - 1)
        middle = [([s * steps / ranks], t - 14 - steps * 1.9, t) for d, op, n, s, t, name in rows
                  if d == device and op == "all_reduce" and n == ranks and
                  name.startswith("kernel of rank 0") and 4 * MEBIBYTE <= s < LONG]
        if middle:
            m, em = fit(middle)
            print(f"  LL128: {1e-3 / m[0] / bandwidth * 1e9:.2f} of the ring's bandwidth "
                  f"(rms {100 * em:.0f} %)")
        sends = [([1, s], t, t) for _, op, _, s, t, _ in mine
                 if op == "all_to_all" and s <= MEBIBYTE]
        print(f"{device}: LL base {a[0]:.2f} us, step {a[1]:.2f} us (rms {100 * ea:.0f} %); Simple "
              f"base {b[0]:.1f} us, step {b[1]:.2f} us, copy {b[2] * 1e6:.2f} ps/B "
              f"(rms {100 * eb:.0f} %)")
        if sends:
            c, ec = fit(sends)
            print(f"  sends base {c[0]:.1f} us, {1e-3 / c[1]:.0f} GB/s (rms {100 * ec:.0f} %)")
            far = [([s * (n - 1) / n], t - b[0] - b[1] - s / n * b[2], t)
                   for _, op, n, s, t, _ in mine if op == "all_to_all" and s >= LONG]
            f, ef = fit(far)
            print(f"  sends of long messages: {1e-3 / f[0] / bandwidth * 1e9:.2f} of the ring's "
                  f"bandwidth (rms {100 * ef:.0f} %)")
        nvls = [([1, s], t, t) for d, op, n, s, t, name in rows if d == device and n == 8 and
                op == "all_reduce" and (name == "CUDA graph" or
                                        (device == "B200" and s >= LONG and
                                         name.startswith("one process")))]
        small = [([1, s], t, t) for d, op, n, s, t, name in rows if d == device and n == 8 and
                 op == "all_reduce" and name.startswith("kernel of rank 0") and
                 2 * MEBIBYTE <= s <= 16 * MEBIBYTE]
        if device.startswith("A100") or not nvls:
            continue
        d, ed = fit(nvls)
        print(f"  NVLS base {d[0]:.0f} us, {1e-3 / d[1]:.0f} GB/s (rms {100 * ed:.0f} %)")
        if small:
            e, ee = fit(small)
            print(f"  NVLS short base {e[0]:.0f} us, x {d[1] / e[1]:.2f} (rms {100 * ee:.0f} %)")
    fit_rccl(rows)


if __name__ == "__main__":
    main()

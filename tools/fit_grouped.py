#!/usr/bin/env python3
"""Fits grouped_scale and narrow_grouped_scale of B200 and H100 (F-KERNEL-GROUPED) to grouped.csv:
medians of measured time / time of the same products one by one as the program predicts them in
training, F-KERNEL-LOAD and F-POWER-CAP included. Prints each and its spread:
[PROGRAM=build/dlmodel] python3 tools/fit_grouped.py

A row `both` times forward and backward pass of one grouped GEMM, `products` their three products.
With `both` go eager PyTorch's mean squared error of the result (7 passes over it) and, in mxfp8,
casts, at the times that the same authors measured on B200 for each element, row and weight.
"""
import collections
import csv
import json
import math
import os
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.environ.get("PROGRAM", os.path.join(ROOT, "build", "dlmodel"))
DEVICES = {"B200": "b200_sxm", "H100": "h100_sxm"}
LOSS_PASSES = 7
# 580.6 and 670.7 us for 131072 x 7168 by rows and by columns; 198.7 us for the scales of as many
# rows; 76.8 and 11.4 us for 8 x 2048 x 7168 weights, each way (torchao-moe)
ELEMENT_S, ROW_S, WEIGHT_S = 1251.3e-6 / 131072 / 7168, 198.7e-6 / 131072, 176.4e-6 / 117440512
# F-POWER-CAP
IDLE_FRAC, VOLTAGE_FLOOR, WAIT_FRAC = 0.15, 0.887, 0.5


def slowdown(left):
    if left >= 1:
        return 1.0
    return VOLTAGE_FLOOR**2 / left if left < VOLTAGE_FLOOR**3 else left ** (-1 / 3)


def cap(device, limit, stalled):
    """Of kernels that take `stalled` times what the device could."""
    rated = device["tdp_w"]
    idle, load = IDLE_FRAC * rated, device.get("uncapped_load_w", rated)
    span = (load - idle) * (WAIT_FRAC + (1 - WAIT_FRAC) / max(1.0, stalled))
    return max(1.0, slowdown((limit - idle) / span) / slowdown((rated - idle) / span))


def products(row):
    """m, n, k of the forward product, as a layer of experts makes it, and of the backward ones."""
    rows, n, k = float(row["m"]) / float(row["groups"]), row["n"], row["k"]
    forward = [(n, f"{rows:.0f}", k)]
    return forward if row["pass"] == "forward" else forward + [(k, f"{rows:.0f}", n),
                                                               (n, k, f"{rows:.0f}")]


def one_by_one_s(rows):
    """The program's times of the products of each row, summed; without load and limits."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "products.csv")
        with open(path, "w", encoding="ascii") as text:
            text.write("gpu,op,pass,batch,m,n,k,dtype_a,library,time_us,timing,source\n")
            for row in rows:
                for m, n, k in products(row):
                    text.write(f"{row['gpu']},bmm,fwd,{row['groups']},{m},{n},{k},"
                               f"{row['precision']},cuBLASLt,1,-,-\n")
        done = subprocess.run([PROGRAM, "compare", path, "--json"], check=True,
                              capture_output=True, text=True)
    times = iter(line["predicted"] for line in json.loads(done.stdout)["rows"])
    return [sum(next(times) for _ in products(row)) for row in rows]


def beside_s(row, bandwidth):
    """Loss and casts."""
    if row["pass"] != "both":
        return 0.0
    m, n, k, groups = (float(row[side]) for side in ("m", "n", "k", "groups"))
    casts = ELEMENT_S * m * (n + k) + 2 * ROW_S * m + WEIGHT_S * groups * n * k
    return LOSS_PASSES * 2 * m * n / bandwidth + (casts if row["precision"] == "mxfp8" else 0.0)


def median(values):
    values = sorted(values)
    return 0.5 * (values[(len(values) - 1) // 2] + values[len(values) // 2])


def main():
    with open(os.path.join(ROOT, "data/kernels/grouped.csv"), newline="", encoding="ascii") as text:
        rows = list(csv.DictReader(text))
    scales = collections.defaultdict(list)
    for row, alone in zip(rows, one_by_one_s(rows)):
        path = os.path.join(ROOT, "data/devices", DEVICES[row["gpu"]] + ".json")
        with open(path, encoding="utf-8") as text:
            device = json.load(text)
        narrow = row["precision"] == "mxfp8"
        bandwidth = device["memory_bandwidth_bytes_per_s"] * device["memory_efficiency"]
        loaded = alone * device["load_scale"]
        measured = float(row["time_us"]) * 1e-6 - beside_s(row, bandwidth)
        scale = 1.0
        for _ in range(50):  # the limit binds less where units wait
            scale = measured / loaded / cap(device, float(row["limit_w"]), scale)
        name = "narrow_grouped_scale" if narrow else "grouped_scale"
        scales[row["gpu"], name].append((scale, row["limit_w"]))
    for (gpu, name), values in sorted(scales.items()):
        fit = median([value for value, _ in values])
        spread = math.sqrt(sum(math.log(v / fit) ** 2 for v, _ in values) / len(values))
        print(f"{gpu} {name} {fit:.3f}: spread {spread:.3f} of {len(values)}")
        for limit in sorted({limit for _, limit in values}):
            own = [value for value, at in values if at == limit]
            print(f"  at {limit} W: {median(own):.3f} of {len(own)}")


if __name__ == "__main__":
    main()

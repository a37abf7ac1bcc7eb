#!/usr/bin/env python3
"""Prints what large GEMMs sustain on each GPU: for each type the 90th percentile of the rate over
the samples of by_gpu_gemm.csv with at least 1e11 operations and every side of 1,024 or more. These
numbers are `sustained_flop_per_s` of the rates in data/devices, 8 bits and less only where no
measurement of the product alone is known (data/SOURCES.md, products-alone): those of serving engines
hold the quantization of the input, aiter's that of blocks."""
import collections
import csv
import os

LEAST_SIDE, LEAST_WORK, LEAST_SAMPLES = 1024, 1e11, 8


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/kernels/by_gpu_gemm.csv")
    rates = collections.defaultdict(list)
    with open(path, newline="") as text:
        for row in csv.DictReader(text):
            sides = [float(row[side]) for side in "mnk"]
            work = 2.0 * sides[0] * sides[1] * sides[2] * float(row["batch"] or 1)
            if min(sides) >= LEAST_SIDE and work >= LEAST_WORK:
                kind = "16-bit" if row["dtype_a"] in ("fp16", "bf16") else row["dtype_a"]
                rates[row["gpu"], kind].append(work / (float(row["time_us"]) * 1e-6))
    for (gpu, kind), values in sorted(rates.items()):
        if len(values) >= LEAST_SAMPLES:
            rate = sorted(values)[int(0.9 * len(values))]
            print(f"{gpu},{kind},{len(values)},{rate:.4g}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Takes the samples that the kernel-time models are fitted to from tables of kernel times by GPU.

take.py DIRECTORY: reads gemm.csv, attention.csv, conv.csv and stream.csv there, writes
by_gpu_*.csv here with the columns that the fit reads. Left out: rows without a time or a type,
sums of several kernels, calls that a profile has once, tuners' tables of 8-bit integers, sources
whose GPU was assumed (data/SOURCES.md). Of one of these, tests/fixtures/tf32_to_bf16.csv: the times of
both types at equal shapes, whose ratio is a measurement all the same.
"""
import csv
import os
import sys

COLUMNS = {
    "gemm": "gpu op pass batch m n k dtype_a library time_us timing source",
    "attention": "gpu pass batch heads_q heads_kv seq_q seq_kv head_dim_qk head_dim_v causal "
    "window dtype kv_dtype library time_us timing source",
    "conv": "gpu pass n c d h w k kd r s stride_d stride_h stride_w pad_d pad_h pad_w dil_d dil_h "
    "dil_w groups transposed dtype library time_us timing source",
    "stream": "gpu op pass shape elements dtype library time_us bytes_min timing source",
}
NORMS = ("rms_norm", "layer_norm", "softmax", "fused_add_rms_norm")
EAGER = ("around one call", "do_bench", "layer hook")
BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
# What a link to the host carries at most (PCIe 5.0, 16 lanes); more than any kernel needs to start.
HOST_LINK_BYTES_PER_S, START_US = 64e9, 10.0


def short(row, column):
    text = row[column]
    if column == "timing":
        return next((words for words in EAGER if words in text), "")
    if column == "shape":
        return "" if row["bytes_min"] else text
    if column == "source":
        return text.split("@")[0].split("#")[0].split("/")[-1].split(" ")[0]
    if column == "library" and "(Hugging Face)" not in text:  # whose modules hold several kernels
        return text.split(" (")[0][:40].strip()
    return text


def with_the_host(row):
    """A copy no faster than the link to the host: what profilers name "Memcpy DtoH" or "HtoD",
    and tables by operation "copy_" all the same. It says nothing of the device's kernels."""
    if not row["op"].startswith("copy") or "profiler" not in row["timing"]:
        return False
    if not row["elements"] or row["dtype"] not in BYTES:
        return False
    time_us = float(row["time_us"])
    least_us = 1e6 * float(row["elements"]) * BYTES[row["dtype"]] / HOST_LINK_BYTES_PER_S
    return time_us > START_US and time_us >= least_us


def called_once(row):
    """One call in a profile, mostly the first of its kind: no median of repeated calls."""
    return row["timing"].endswith("median of 1")


def listed_twice(row, seen):
    """A profile that lists an operator and the one that it calls, with the same kernel: layer_norm
    and native_layer_norm."""
    if "profiler" not in row["timing"]:
        return False
    names = [row[c] for c in ("gpu", "pass", "shape", "dtype", "library", "path", "time_us")]
    key = (row["op"].replace("native_", ""), *names)
    if seen.setdefault(key, row["op"]) != row["op"]:
        return True
    return False


def wanted(kind, row):
    if not row["time_us"] or row["pass"] == "fwd_bwd":
        return False
    if kind == "gemm":
        if row["pass"] != "fwd" or row["dtype_a"].startswith("int"):
            return False
        # The GPU was assumed, and 16-bit times are up to 1.5 times those of all other sources.
        return "gpu_assumed" not in row["flag"]
    if kind == "attention":
        # Kernels older than FlashAttention-2 are none that a framework of today runs.
        old = row["source"].startswith("facebookresearch/xformers")
        return "gpu_assumed" not in row["flag"] and not old
    if kind == "stream":
        # A rate that counts the launch, printed for whole calls, tells nothing of short kernels.
        calls = row["source"].startswith("PrincetonUniversity/LLMCompass")
        given = row["bytes_min"] or row["elements"] or row["op"] in NORMS
        return bool(given) and not calls and not with_the_host(row) and not called_once(row)
    return row["transposed"] in ("", "0")


def take_ratios(folder, here):
    """The times of TF32 and bf16 that the table of an assumed GPU has at equal shapes."""
    times = {}
    with open(os.path.join(folder, "gemm.csv"), newline="") as text:
        for row in csv.DictReader(text):
            if "gpu_assumed" in row["flag"] and row["dtype_a"] in ("tf32", "bf16"):
                key = tuple(row[c] for c in ("gpu", "batch", "m", "n", "k"))
                times.setdefault(key, {})[row["dtype_a"]] = row["time_us"]
    with open(os.path.join(here, "../tests/fixtures/tf32_to_bf16.csv"), "w", newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow("gpu batch m n k tf32_us bf16_us".split())
        for key, both in sorted(times.items()):
            if len(both) == 2:
                writer.writerow([*key, both["tf32"], both["bf16"]])


def main():
    folder, here = sys.argv[1], os.path.dirname(os.path.abspath(__file__))
    take_ratios(folder, here)
    for kind, names in COLUMNS.items():
        columns = names.split()
        with open(os.path.join(folder, kind + ".csv"), newline="") as text:
            rows = [row for row in csv.DictReader(text) if wanted(kind, row)]
        seen = {}
        if kind == "stream":
            rows = [row for row in rows if not listed_twice(row, seen)]
        with open(os.path.join(here, "../data/kernels/by_gpu_" + kind + ".csv"), "w", newline="") as text:
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([short(row, column) for column in columns] for row in rows)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Takes the samples that the kernel-time models are fitted to from tables of kernel times by GPU.

take.py DIRECTORY: reads gemm.csv, attention.csv, conv.csv and stream.csv there, writes
by_gpu_*.csv here with the columns that the fit reads. Left out: rows without a time or a type,
sums of several kernels, tuners' tables of 8-bit integers, sources whose GPU was assumed where
another one covers the type (data/SOURCES.md).
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


def wanted(kind, row):
    if not row["time_us"] or row["pass"] == "fwd_bwd":
        return False
    if kind == "gemm":
        if row["pass"] != "fwd" or row["dtype_a"].startswith("int"):
            return False
        # The GPU was assumed: only for the type that no other source covers.
        return "gpu_assumed" not in row["flag"] or row["dtype_a"] == "tf32"
    if kind == "attention":
        # Kernels older than FlashAttention-2 are none that a framework of today runs.
        old = row["source"].startswith("facebookresearch/xformers")
        return "gpu_assumed" not in row["flag"] and not old
    if kind == "stream":
        # A rate that counts the launch, printed for whole calls, tells nothing of short kernels.
        calls = row["source"].startswith("PrincetonUniversity/LLMCompass")
        given = row["bytes_min"] or row["elements"] or row["op"] in NORMS
        return bool(given) and not calls and not with_the_host(row)
    return row["transposed"] in ("", "0")


def main():
    folder, here = sys.argv[1], os.path.dirname(os.path.abspath(__file__))
    for kind, names in COLUMNS.items():
        columns = names.split()
        with open(os.path.join(folder, kind + ".csv"), newline="") as text:
            rows = [row for row in csv.DictReader(text) if wanted(kind, row)]
        with open(os.path.join(here, "by_gpu_" + kind + ".csv"), "w", newline="") as text:
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([short(row, column) for column in columns] for row in rows)


if __name__ == "__main__":
    main()

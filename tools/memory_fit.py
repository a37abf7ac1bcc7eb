#!/usr/bin/env python3
"""memory_fit.py DLMODEL - the constants of F-MEM-FRAGMENTATION and F-MEM-FITS in model/framework/workspace.c: the share of PyTorch's
reserved memory that no tensor fills, and the spread of measured over predicted reserved memory.

Sources: data/memory/published.csv (peak_bytes) and the runs of data/unseen/playbook_given.csv that print reserved memory [GiB, of
the first stage]. Each source weighs the same: the share from the mean of their medians, the spread from the mean of their variances
around it."""
import csv
import json
import math
import os
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

GIB = 2**30
OPTIONS = ("system framework workload precision optimizer strategy nodes devices_per_node global_batch dp tp pp cp micro_batch zero "
           "recompute attention compiler schedule virtual_stages").split()


def arguments(row):
    out = []
    for key in OPTIONS:
        if row.get(key):
            out += ["--" + key.replace("_", "-"), row[key]]
    if row.get("sequence_parallel") == "1":
        out.append("--sequence-parallel")
    if row.get("device_memory_bytes"):
        out += ["--set", "device.memory_bytes=" + row["device_memory_bytes"]]
    if row.get("pp_fix"):
        out += ["--release", "pp_fix=" + row["pp_fix"]]
    return out


def log_ratio(row):
    """Of measured to predicted reserved memory; None: no measurement or no prediction."""
    measured = float(row.get("peak_bytes") or 0) or float(row.get("memory_reserved_gb") or 0) * GIB
    if not measured:
        return None
    command = [sys.argv[1], "-q", "predict", *arguments(row), "--set", "fragmentation_frac=0", "--json"]
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=False, env=dict(os.environ, DLMODEL_LOCAL="/dev/null/local.json"))
    try:
        result = json.loads(answer.stdout)["results"][0]
    except (ValueError, KeyError, IndexError):
        return None
    stages, memory = result.get("stages"), result["memory"]
    total = stages[0]["total_bytes"] if stages and "memory_reserved_gb" in row else memory["total_bytes"]
    return math.log(measured / (total - memory["context_bytes"]))


def main():
    medians, sources = [], []
    for path in ("data/memory/published.csv", "data/unseen/playbook_given.csv"):
        with open(path, encoding="utf-8") as file, ThreadPoolExecutor(os.cpu_count()) as pool:
            ratios = [x for x in pool.map(log_ratio, csv.DictReader(file)) if x is not None]
        sources.append(ratios)
        medians.append(statistics.median(ratios))
        print("%s: %d runs, median of measured / predicted %.3f" % (path, len(ratios), math.exp(medians[-1])))
    shift = statistics.mean(medians)
    spread = math.sqrt(statistics.mean(statistics.mean((x - shift) ** 2 for x in ratios) for ratios in sources))
    print("fragmentation %.3f, spread %.3f" % (1 - math.exp(-shift), spread))


main()

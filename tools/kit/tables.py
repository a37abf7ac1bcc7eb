"""tables.py - results of the GPU kit as tables of dlmodel: runs.csv (columns of data/runs), gemm.csv, conv.csv and attention.csv (columns of
data/kernels/by_gpu_*.csv), kernels.csv (kernels of each traced step), and comparison.md."""
import csv
import datetime
import glob
import json
import os
import statistics
import subprocess

RUNS = ("id source system framework framework_version strategy workload precision optimizer nodes devices_per_node batch_per_device compiler "
        "cuda_graphs data metric value unit notes step_low_s step_high_s steps peak_memory_bytes reserved_memory_bytes power_median_w "
        "sm_clock_median_hz").split()
GEMM = "gpu op pass batch m n k dtype_a library time_us timing source".split()
CONV = ("gpu pass n c d h w k kd r s stride_d stride_h stride_w pad_d pad_h pad_w dil_d dil_h dil_w groups transposed dtype library time_us timing "
        "source").split()
ATTENTION = "gpu pass batch heads_q heads_kv seq_q seq_kv head_dim_qk head_dim_v causal window dtype kv_dtype library time_us timing source".split()
TYPES = {"mixed": "fp16"}  # what a probe's precision multiplies


def loaded(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def table(path, columns, rows):
    """An atomic file; none without rows."""
    if not rows:
        return
    with open(path + ".new", "w", encoding="utf-8", newline="") as f:
        out = csv.DictWriter(f, columns, extrasaction="ignore", lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    os.rename(path + ".new", path)


def device_file(data, name):
    """The device file of the name that the driver prints, by its aliases; None: there is none."""
    wanted = name.upper().replace("NVIDIA", "").replace("TESLA", "").strip().replace(" ", "-")
    for path in sorted(glob.glob(os.path.join(data, "devices", "*.json"))):
        about = loaded(path)
        if wanted in [str(n).upper() for n in about.get("aliases", []) + [about["name"]]]:
            return about["name"]
    return None


def numbers(shape):
    return {k: int(v) for k, v in (pair.split("=") for pair in shape.split() if not pair.startswith("prec="))}


def samples(profile, gpu, source):
    """Rows of gemm.csv and conv.csv from the samples of a calibration."""
    gemm, conv = [], []
    for s in loaded(profile)["samples"]:
        about = {"gpu": gpu, "pass": s.get("pass"), "library": s.get("implementation"), "time_us": "%.6g" % (1e6 * s["median_s"]),
                 "timing": "events around many calls", "source": source}
        kind = TYPES.get(s.get("precision"), s.get("precision", "fp32"))
        n = numbers(s["shape"]) if s["probe"] in ("gpu-gemm", "gpu-batch", "gpu-conv") else {}
        if s["probe"] in ("gpu-gemm", "gpu-batch"):
            gemm.append(dict(about, op="gemm" if s["probe"] == "gpu-gemm" else "bmm", batch=n.get("b", 1), m=n["m"], n=n["n"], k=n["k"], dtype_a=kind))
        elif s["probe"] == "gpu-conv" and "d" not in n:
            pad = n.get("p", 0)
            conv.append(dict(about, n=n["n"], c=n["c"], h=n["h"], w=n.get("w", n["h"]), k=n["f"], r=n["r"], s=n.get("q", n["r"]),
                             stride_h=n.get("s", 1), stride_w=n.get("s", 1), pad_h=pad, pad_w=n.get("t", pad), dil_h=n.get("e", 1), dil_w=n.get("e", 1),
                             groups=n.get("g", 1), transposed=0, dtype=kind))
    return gemm, conv


def during(power, begin, end, column):
    values = [float(row[column]) for row in power if begin <= float(row["time_s"]) <= end and row[column]]
    return statistics.median(values) if values else None


def runs(results, power, system, source):
    rows = []
    for r in results:
        if "iteration_s" not in r:
            continue
        watts, clock = (during(power, r["began"], r["ended"], c) for c in ("power_w", "sm_clock_hz"))
        rows.append({
            "id": "kit-" + r["name"], "source": source, "system": system, "framework": "pytorch-ddp", "framework_version": "PyTorch " + r["torch"],
            "strategy": "data", "workload": r["workload"], "precision": r["precision"], "optimizer": r["optimizer"], "nodes": 1, "devices_per_node": 1,
            "batch_per_device": r["batch"], "compiler": "inductor" if r["mode"] == "compiled" else "", "data": "synthetic", "metric": "iteration",
            "cuda_graphs": "iteration" if r["mode"] == "graphs" else "", "value": "%.6g" % r["iteration_s"], "unit": "s",
            "notes": "median of %d steps after 6, events of the device%s" % (r["steps"], "; experts one after the other" if "experts=" in r["workload"] else ""),
            "step_low_s": "%.6g" % r["low_s"], "step_high_s": "%.6g" % r["high_s"], "steps": r["steps"], "peak_memory_bytes": r.get("peak_memory_bytes", ""),
            "reserved_memory_bytes": r.get("reserved_memory_bytes", ""), "power_median_w": watts or "", "sm_clock_median_hz": clock or ""})
    return rows


class Results:
    """Summarizes what is in the folder of results so far; called after every step."""

    def __init__(self, out, data, dlmodel, gpu):
        self.out, self.data, self.dlmodel, self.gpu = out, data, dlmodel, gpu
        self.device = device_file(data, gpu)
        self.source = "GPU kit, %s, %s" % (gpu, datetime.date.today().isoformat())

    def path(self, *names):
        return os.path.join(self.out, *names)

    def answer(self, *words):
        """JSON of the program; None where it has no answer."""
        done = subprocess.run([self.dlmodel, "-q", *words, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        try:
            return json.loads(done.stdout)
        except ValueError:
            return None

    def systems(self):
        """What to compare with: the calibrated profile, and the device as its file describes it."""
        found = [("calibrated", self.path("profile.json"))] if os.path.exists(self.path("profile.json")) else []
        return found + ([("1x" + self.device, "1x" + self.device)] if self.device else [])

    def memory(self, system, r):
        words = ["predict", "-s", system, "-w", r["workload"], "-f", "pytorch-ddp", "--nodes", "1", "--devices-per-node", "1", "-b", str(r["batch"]), "-p",
                 r["precision"], "--optimizer", r["optimizer"]]
        words += ["--compiler", "inductor"] if r["mode"] == "compiled" else []
        words += ["--cuda-graphs", "iteration"] if r["mode"] == "graphs" else []
        got = self.answer(*words)
        if got is None or not got["results"]:
            return None
        memory = got["results"][0]["memory"]
        return memory["total_bytes"] - memory["context_bytes"]  # PyTorch's allocator does not see the context

    def compared(self, rows, name, system):
        """{id: row of compare} of the runs on that system."""
        if not rows:
            return {}
        path = self.path("runs-%s.csv" % name)
        table(path, RUNS, [dict(r, system=system) for r in rows])
        got = self.answer("compare", path, "--rows")
        os.remove(path)
        return {row["id"]: row for row in got["rows"]} if got else {}

    def comparison(self, results, rows):
        lines = ["# %s" % self.source, ""]
        systems = self.systems()
        head = ["run", "batch", "measured ms"] + [h for name, _ in systems for h in ("%s ms" % name, "error %", "in interval")]
        lines += ["| %s |" % " | ".join(head + ["peak GiB", "predicted GiB", "error %"]), "|%s" % ("---|" * (len(head) + 3))]
        tables, errors = [self.compared(rows, name, system) for name, system in systems], [[] for _ in systems]
        for r in results:
            if "iteration_s" not in r:
                lines.append("| %s | %d | %s |%s" % (r["name"], r["batch"], r["failed"].replace("|", "/"), " |" * (len(head))))
                continue
            cells = [r["name"], str(r["batch"]), "%.2f" % (1e3 * r["iteration_s"])]
            for t, found in zip(tables, errors):
                row = t.get("kit-" + r["name"])
                if row is None or row["skipped"]:
                    cells += [row["why"] if row else "-", "", ""]
                    continue
                found.append(row["time_error_pct"])
                inside = row["interval"][0] <= row["measured"] <= row["interval"][1]
                cells += ["%.2f" % (1e3 * row["predicted"]), "%+.1f" % row["time_error_pct"], "yes" if inside else "no"]
            own = self.memory(systems[0][1], r) if systems and r.get("peak_memory_bytes") else None
            cells += ["%.2f" % (r["peak_memory_bytes"] / 2**30), "%.2f" % (own / 2**30), "%+.1f" % (100 * (own / r["peak_memory_bytes"] - 1))] if own else ["", "", ""]
            lines.append("| %s |" % " | ".join(cells))
        for (name, _), found in zip(systems, errors):
            if found:
                sizes = sorted(abs(e) for e in found)
                lines += ["", "%s: %d runs, mean error %.1f %%, median %.1f %%, worst %.1f %%, bias %+.1f %%" % (
                    name, len(found), statistics.mean(sizes), statistics.median(sizes), sizes[-1], statistics.mean(found))]
        return lines + self.kernel_errors() + self.rates()

    def kernel_errors(self):
        """How far the device's file is from the kernels measured here."""
        paths = [p for p in (self.path(n + ".csv") for n in ("gemm", "conv", "attention")) if os.path.exists(p)]
        lines = ["", "| kernels against %s | rows | not predicted | mean error %% | median | bias |" % self.device, "|---|---|---|---|---|---|"]
        for path in paths if self.device else []:
            got = self.answer("compare", path)
            for s in got["summary"] if got else []:
                if s["group"] == "all":
                    lines.append("| %s | %d | %s | %s | %s | %s |" % (os.path.basename(path), s["rows"], s.get("skipped", ""), *(
                        "%.1f" % s[k] if s.get(k) is not None else "" for k in ("mape_pct", "median_ape_pct", "bias_pct"))))
        return lines if len(lines) > 3 else []

    def rates(self):
        """Kernels of the calibration over PyTorch's of the same shapes: 1 is agreement."""
        if not os.path.exists(self.path("rates.csv")):
            return []
        groups = {}
        with open(self.path("rates.csv"), encoding="utf-8") as f:
            for row in csv.DictReader(f):
                if row["ratio"]:
                    groups.setdefault((row["probe"], row["pass"], row["precision"]), []).append(float(row["ratio"]))
        lines = ["", "| probe | pass | precision | shapes | dlmodel / PyTorch, median | lowest | highest |", "|---|---|---|---|---|---|---|"]
        return lines + ["| %s | %s | %s | %d | %.3f | %.3f | %.3f |" % (k + (len(v), statistics.median(v), min(v), max(v))) for k, v in sorted(groups.items())]

    def write(self, cases):
        results = [loaded(p) for p in (self.path("train", c["name"] + ".json") for c in cases) if os.path.exists(p)]
        power = []
        if os.path.exists(self.path("power.csv")):
            with open(self.path("power.csv"), encoding="utf-8") as f:
                power = [row for row in csv.DictReader(f) if row["sm_clock_hz"] is not None]
        rows = runs(results, power, "1x" + self.device if self.device else "local", self.source)
        table(self.path("runs.csv"), RUNS, rows)
        table(self.path("kernels.csv"), ["run", "kernel", "calls_per_step", "time_us_per_step"],
              [dict(k, run=r["name"], time_us_per_step="%.6g" % k["time_us_per_step"]) for r in results for k in r.get("kernels") or []])
        if os.path.exists(self.path("profile.json")):
            gemm, conv = samples(self.path("profile.json"), self.device or self.gpu, self.source)
            table(self.path("gemm.csv"), GEMM, gemm)
            table(self.path("conv.csv"), CONV, conv)
        lines = self.comparison(results, rows)
        with open(self.path("comparison.md.new"), "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        os.rename(self.path("comparison.md.new"), self.path("comparison.md"))
        return lines

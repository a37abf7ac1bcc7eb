"""validate.py - what calibration on a GPU must show, on a machine that has one, with PyTorch: how long it takes, whether its rates
are PyTorch's, and how far predictions from its profile are from training steps and peak memory that PyTorch measures.

    make validate-gpu            writes build/gpu: profile.json, rates.csv, steps.csv, table.md, log.txt
Exit status: 0; 1 when a calibration was too slow or failed, or nothing could be compared. The errors are printed, not judged.
"""
import argparse
import csv
import glob
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
QUICK_S, FULL_S = 60, 300
NETS = {"resnet50": "momentum", "vgg16": "momentum", "bert_base": "adam", "gpt2": "adam"}
BATCHES = {"resnet50": "16,64,128", "vgg16": "16,32,64", "bert_base": "8,16,32", "gpt2": "1,2,4"}


class Validation:
    def __init__(self, args):
        self.args = args
        os.makedirs(args.out, exist_ok=True)
        self.log = open(os.path.join(args.out, "log.txt"), "w", encoding="utf-8")
        self.profile = os.path.join(args.out, "profile.json")
        self.table, self.failed = [], False

    def say(self, text=""):
        self.table.append(text)
        print(text, flush=True)

    def run(self, words, **more):
        """Exit status, standard output, seconds; all of it into the log."""
        begin = time.monotonic()
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False, **more)
        seconds = time.monotonic() - begin
        self.log.write("$ %s\n%s%sexit %d after %.1f s\n\n" % (" ".join(words), done.stdout, done.stderr, done.returncode, seconds))
        self.log.flush()
        return done.returncode, done.stdout, seconds

    def calibrate(self):
        self.say("| calibration | seconds | limit | samples |\n|---|---|---|---|")
        for name, limit, options in (("quick", QUICK_S, ["--quick"]), ("full", FULL_S, [])):
            if self.args.budget is not None:
                options = options + ["--budget", self.args.budget]
            status, _, seconds = self.run([self.args.dlmodel, "calibrate", "-o", self.profile] + options + self.args.calibrate.split())
            if status != 0:
                self.failed = True
                self.say("| %s | failed: exit status %d, see log.txt | | |" % (name, status))
                continue
            with open(self.profile, encoding="utf-8") as f:
                samples = len(json.load(f)["samples"])
            self.failed = self.failed or seconds > limit
            self.say("| %s | %.0f%s | %d | %d |" % (name, seconds, " TOO SLOW" if seconds > limit else "", limit, samples))
        return os.path.exists(self.profile)

    def rates(self):
        """dlmodel's time over PyTorch's of the same shapes: 1 is agreement, above 1 dlmodel is slower."""
        status, text, _ = self.run([sys.executable, os.path.join(HERE, "rates.py"), self.profile, "--device", self.args.device] + self.args.rates.split())
        with open(os.path.join(self.args.out, "rates.csv"), "w", encoding="utf-8") as f:
            f.write(text)
        groups = {}
        for row in csv.DictReader(text.splitlines()):
            if row["ratio"]:
                groups.setdefault((row["probe"], row["pass"], row["precision"]), []).append(float(row["ratio"]))
        self.say("\n| probe | pass | precision | shapes | dlmodel / PyTorch, median | lowest | highest |\n|---|---|---|---|---|---|---|")
        for key, ratios in sorted(groups.items()):
            self.say("| %s | %s | %s | %d | %.3f | %.3f | %.3f |" % (key + (len(ratios), statistics.median(ratios), min(ratios), max(ratios))))
        self.failed = self.failed or status != 0 or not groups

    def network(self, workload, batch, precision):
        """Folder of a run with network.json, as dlmodel slurm writes it; nothing is submitted."""
        runs, tools = os.path.join(self.args.out, "runs"), os.path.join(self.args.out, "bin")
        os.makedirs(tools, exist_ok=True)
        with open(os.path.join(tools, "sbatch"), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\necho 1\n")
        os.chmod(os.path.join(tools, "sbatch"), 0o755)
        site = os.path.join(self.args.out, "site.json")
        with open(site, "w", encoding="utf-8") as f:
            json.dump({"format": "dlmodel-site", "version": 1, "name": "here", "summary": "this machine", "source": "none", "system": "single-v100",
                       "device": self.args.device, "devices_per_node": 1, "cores_per_node": os.cpu_count() or 1, "time_limit_s": 600}, f)
        before = set(glob.glob(os.path.join(runs, "*")))
        env = dict(os.environ, PATH=tools + os.pathsep + os.environ["PATH"])
        self.run([self.args.dlmodel, "slurm", "submit", "--site", site, "--framework", "pytorch-ddp", "--workload", workload, "--nodes", "1",
                  "--devices-per-node", "1", "--batch-per-device", batch, "--precision", precision, "--optimizer", "sgd", "--dir", runs], env=env)
        made = set(glob.glob(os.path.join(runs, "*"))) - before
        return made.pop() if len(made) == 1 else None

    def trained(self, folder, batch, precision, optimizer):
        """Median step and peak memory that PyTorch measured, or why not."""
        bench = os.path.join(ROOT, "slurm", "frameworks", "pytorch_bench.py")
        status, _, _ = self.run([sys.executable, bench, "--run", folder, "--mode", "ddp", "--device", self.args.device, "--batch", batch, "--precision", precision,
                                 "--optimizer", optimizer, "--steps", str(self.args.steps), "--warmup", str(self.args.warmup)])
        steps, peak, why = [], None, "exit status %d, see log.txt" % status
        for path in glob.glob(os.path.join(folder, "**", "bench-00000*"), recursive=True):
            with open(path, encoding="utf-8") as f:
                for line in f:
                    event = json.loads(line)
                    if event.get("event") == "step":
                        steps.append(event["step_s"])
                    elif event.get("event") == "end":
                        peak = event["peak_memory_bytes"]
                    elif event.get("event") == "fail":
                        why = "out of memory" if "out of memory" in event["text"] else event["text"][:80]
        return (statistics.median(steps), peak, "") if steps and peak is not None else (None, None, why)

    def predicted(self, workload, batch, precision, optimizer):
        status, text, _ = self.run([self.args.dlmodel, "predict", "--system", self.profile, "--workload", workload, "--framework", "pytorch-ddp", "--nodes", "1",
                                    "--devices-per-node", "1", "--batch-per-device", batch, "--precision", precision, "--optimizer", optimizer, "--json"])
        if status not in (0, 1):
            return None
        return json.loads(text)["results"][0]

    def steps(self):
        self.say("\n| workload | precision | batch | measured ms | predicted ms | error % | in interval | peak GB | predicted GB | error % | note |")
        self.say("|---|---|---|---|---|---|---|---|---|---|---|")
        out = csv.writer(open(os.path.join(self.args.out, "steps.csv"), "w", encoding="utf-8"), lineterminator="\n")
        out.writerow("workload precision optimizer batch measured_s predicted_s low_s high_s measured_bytes predicted_bytes fits note".split())
        errors, memory = [], []
        for workload in self.args.workloads.split(","):
            for precision in self.args.precisions.split(","):
                for batch in (self.args.batches or BATCHES.get(workload, "8,16,32")).split(","):
                    optimizer = NETS.get(workload, "momentum")
                    p = self.predicted(workload, batch, precision, optimizer)
                    folder = self.network(workload, batch, precision)
                    step_s, peak, why = self.trained(folder, batch, precision, optimizer) if folder else (None, None, "no network.json, see log.txt")
                    if p is None:
                        why = "no prediction, see log.txt"
                    if step_s is None or p is None:
                        self.say("| %s | %s | %s | | | | | | | | %s |" % (workload, precision, batch, why + ("; predicted not to fit" if p and not p["fits"] else "")))
                        out.writerow([workload, precision, optimizer, batch, "", "", "", "", "", "", p["fits"] if p else "", why])
                        continue
                    own = p["memory"]["total_bytes"] - p["memory"]["context_bytes"]  # PyTorch's allocator does not see the context
                    errors.append(100 * (p["iteration_s"] / step_s - 1))
                    memory.append(100 * (own / peak - 1))
                    inside = p["iteration_low_s"] <= step_s <= p["iteration_high_s"]
                    self.say("| %s | %s | %s | %.1f | %.1f | %+.1f | %s | %.2f | %.2f | %+.1f | |" % (
                        workload, precision, batch, 1e3 * step_s, 1e3 * p["iteration_s"], errors[-1], "yes" if inside else "no", 1e-9 * peak, 1e-9 * own, memory[-1]))
                    out.writerow([workload, precision, optimizer, batch, step_s, p["iteration_s"], p["iteration_low_s"], p["iteration_high_s"], peak, own, p["fits"], ""])
        if not errors:
            self.failed = True
            return
        for name, values in (("step", errors), ("peak memory", memory)):
            sizes = sorted(abs(v) for v in values)
            self.say("\n%s: %d compared, mean %.1f %%, median %.1f %%, worst %.1f %%, bias %+.1f %%" % (
                name, len(sizes), statistics.mean(sizes), statistics.median(sizes), sizes[-1], statistics.mean(values)))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--dlmodel", required=True)
    p.add_argument("--out", default="build/gpu")
    p.add_argument("--device", default="gpu", choices=["gpu", "cpu"], help="where PyTorch runs; cpu: to try the script itself")
    p.add_argument("--workloads", default=",".join(NETS))
    p.add_argument("--precisions", default="fp32,mixed", help="tf32 too, where the GPU has it")
    p.add_argument("--batches", help="of every workload; default: three for each")
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--warmup", type=int, default=10)
    p.add_argument("--budget", help="seconds, for both calibrations; default: their own")
    p.add_argument("--calibrate", default="", help="more options of calibrate")
    p.add_argument("--rates", default="", help="more options of rates.py")
    v = Validation(p.parse_args())
    if v.calibrate():
        v.rates()
        v.steps()
    with open(os.path.join(v.args.out, "table.md"), "w", encoding="utf-8") as f:
        f.write("\n".join(v.table) + "\n")
    return 1 if v.failed else 0


if __name__ == "__main__":
    sys.exit(main())

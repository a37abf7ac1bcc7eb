#!/usr/bin/env python3
"""run.py - measures the GPU of this machine for dlmodel, in the order of importance, until its time is over; keeps what it has.

    python3 run.py [--seconds 480] [--out results]

Needs an NVIDIA driver, CUDA's compiler with a C compiler, and PyTorch in this Python; no network, no package manager. Leaves in the folder:
comparison.md, runs.csv, profile.json, gemm.csv, conv.csv, attention.csv, kernels.csv, power.csv, rates.csv, train/ (one JSON a case, traces, memory
snapshots), environment.txt and log.txt; and all of it in results.tar.gz next to the folder."""
import argparse
import concurrent.futures
import glob
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import tables  # noqa: E402

RESERVE_S = 12.0  # for the last tables and the archive
CALIBRATE_S, ATTENTION_S = 90.0, 25.0
LIBRARIES = {"cuda": ["cudart", "cublas", "cublasLt"], "cudnn": ["cudart", "cudnn", "cublas"], "nccl": ["cudart", "nccl"]}
CFLAGS = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O2", "-ffp-contract=off", "-fPIE"]

NETWORKS = {
    "resnet50": "resnet50", "vit": "vit_b_16", "bert-large": "bert_large",
    "llama-1b": "gpt:layers=16,hidden=2048,heads=32,kv_heads=8,ffn=8192,seq=2048,vocab=128256,mlp=swiglu,norm=rmsnorm,pos=rope,tied=1",
    "moe": "gpt:layers=8,hidden=1024,heads=16,kv_heads=16,ffn=2048,seq=1024,vocab=32000,mlp=swiglu,norm=rmsnorm,pos=rope,tied=0,experts=8,topk=2,"
           "expert_ffn=2048",
}
BATCHES = {"resnet50": 128, "vit": 128, "bert-large": 64, "llama-1b": 4, "moe": 8}


class Stop(Exception):
    """A signal asks for the end."""


def stop(number, _frame):
    raise Stop("signal %d" % number)


def nvidia_folders():
    """Folders with include/ and lib/ of pip's CUDA packages, then of the toolkit."""
    spec = importlib.util.find_spec("nvidia")
    found = [d for base in (spec.submodule_search_locations if spec else []) for d in sorted(glob.glob(os.path.join(base, "*")))]
    nvcc = shutil.which("nvcc")
    homes = [os.environ.get("CUDA_HOME"), os.path.dirname(os.path.dirname(os.path.realpath(nvcc))) if nvcc else None, "/usr/local/cuda"]
    for home in homes:
        if home and os.path.isdir(home):
            found += [home] + sorted(glob.glob(os.path.join(home, "targets", "*-linux")))
    torch = importlib.util.find_spec("torch")
    return found + ([os.path.dirname(torch.origin)] if torch and torch.origin else [])


def library(name, folders):
    for folder in folders:
        for lib in ("lib", "lib64"):
            found = sorted(glob.glob(os.path.join(folder, lib, "lib%s.so*" % name)), key=len)
            if found:
                return found[0]
    raise RuntimeError("no lib%s.so in pip's packages or CUDA_HOME" % name)


class Kit:
    def __init__(self, args):
        self.args, self.begin = args, time.time()
        self.until = self.begin + args.seconds - RESERVE_S
        self.out = os.path.abspath(args.out)
        self.bin, self.train = os.path.join(self.out, "bin"), os.path.join(self.out, "train")
        for folder in (self.out, self.bin, self.train):
            os.makedirs(folder, exist_ok=True)
        self.log = open(os.path.join(self.out, "log.txt"), "a", encoding="utf-8")
        self.data = os.path.join(HERE, "data")
        self.dlmodel = os.path.join(self.bin, "dlmodel")  # finds the probes next to itself
        shutil.copy(os.path.join(HERE, "bin", "dlmodel"), self.dlmodel)
        self.gpu, self.cases, self.power, self.failed = "unknown GPU", [], None, []
        os.environ.update(DLMODEL_DATA=self.data, DLMODEL_LOCAL="/dev/null/local.json", PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1")
        os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([os.path.join(HERE, "lib")] + [p for p in [os.environ.get("LD_LIBRARY_PATH")] if p])
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")

    def left(self):
        return self.until - time.time()

    def say(self, text):
        line = "%6.1f s  %s" % (time.time() - self.begin, text)
        print(line, flush=True)
        self.log.write(line + "\n")
        self.log.flush()

    def run(self, words, limit, out=None):
        """Exit status of a program that is ended, with all that it started, when the limit is over; -1 then."""
        limit = min(limit, self.left())
        if limit <= 0:
            return -1
        self.log.write("$ %s\n" % " ".join(words))
        self.log.flush()
        with open(out or os.devnull, "wb") as f:
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=f if out else self.log, stderr=self.log, start_new_session=True)
            try:
                return child.wait(limit)
            except subprocess.TimeoutExpired:
                return -1
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()

    def environment(self):
        self.run(["nvidia-smi", "-q"], 20, os.path.join(self.out, "environment.txt"))
        got = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        self.gpu = got.stdout.decode().strip().split("\n")[0] or self.gpu

    def watch(self):
        """power.csv: what nvidia-smi says of the first GPU, ten times a second."""
        words = ["nvidia-smi", "-i", "0", "--query-gpu=power.draw,clocks.sm,temperature.gpu", "--format=csv,noheader,nounits", "-lms", "100"]
        self.power = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)

        def read():
            with open(os.path.join(self.out, "power.csv"), "w", encoding="utf-8") as f:
                f.write("time_s,power_w,sm_clock_hz,temperature_c\n")
                for line in self.power.stdout:
                    cells = [c.strip() for c in line.split(",")]
                    numbers = ["" if not c.replace(".", "", 1).isdigit() else c for c in cells]
                    if len(numbers) == 3:
                        f.write("%.3f,%s,%s,%s\n" % (time.time(), numbers[0], "%.0f" % (1e6 * float(numbers[1])) if numbers[1] else "", numbers[2]))
                        f.flush()
        threading.Thread(target=read, daemon=True).start()

    def compile(self, compiler, includes, source):
        made = os.path.join(self.bin, os.path.basename(source)[:-2] + ".o")
        flags = [f for i in includes for f in ("-isystem", i)]
        if self.run([compiler, *CFLAGS, "-I" + os.path.join(HERE, "source"), *flags, "-c", source, "-o", made], 60) != 0:
            raise RuntimeError("%s does not compile" % os.path.basename(source))
        return made

    def link(self, compiler, objects, name, folders):
        paths = [library(n, folders) for n in LIBRARIES[name]]
        found = ["-Wl,-rpath," + d for d in sorted({os.path.dirname(p) for p in paths}) + [os.path.join(HERE, "lib")]]
        # an old-style rpath also serves the libraries that these load
        words = [compiler, "-pie", *objects, os.path.join(HERE, "lib", "libprobe.a"), *paths, os.path.join(HERE, "lib", "libcjson.so.1"), "-o",
                 os.path.join(self.bin, "dlmodel-probe-" + name), "-Wl,--disable-new-dtags,--allow-shlib-undefined,--gc-sections", *found, "-ldl", "-lm", "-lpthread"]
        if self.run(words, 60) != 0:
            raise RuntimeError("dlmodel-probe-%s does not link" % name)

    def build(self):
        compiler = next((c for c in (os.environ.get("CC"), "cc", "gcc", "clang") if c and shutil.which(c)), None)
        if compiler is None:
            raise RuntimeError("no C compiler: cc, gcc or clang")
        folders = nvidia_folders()
        includes = [os.path.join(f, "include") for f in folders if os.path.isdir(os.path.join(f, "include")) and "torch" not in os.path.basename(f)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            sources = {n: sorted(glob.glob(os.path.join(HERE, "source", "calibrate", "probes", n, "*.c"))) for n in ["gpu", *LIBRARIES]}
            made = {n: [pool.submit(self.compile, compiler, includes, s) for s in files] for n, files in sources.items()}
            built = []
            for name in LIBRARIES:
                try:
                    self.link(compiler, [m.result() for n in ("gpu", name) for m in made[n]], name, folders)
                    built.append(name)
                except RuntimeError as error:
                    self.failed.append(str(error))
        for o in glob.glob(os.path.join(self.bin, "*.o")):
            os.remove(o)
        if "cuda" not in built:
            raise RuntimeError("; ".join(self.failed))

    def calibrate(self):
        profile = os.path.join(self.out, "profile.json")
        words = [self.dlmodel, "calibrate", "--quick", "--gpus", "1", "-o", profile] + self.args.calibrate.split()
        status = self.run(words, CALIBRATE_S, os.path.join(self.out, "calibrate.txt"))
        if status != 0:  # its journal keeps the samples
            raise RuntimeError("calibrate: " + ("its time was over" if status == -1 else "exit status %d" % status))

    def case(self, network, precision, mode):
        name = network if network in NETWORKS else "network%d" % self.args.networks.split(";").index(network)
        return {"name": "-".join([name, precision] + ([mode] if mode != "eager" else [])), "network": name,
                "workload": NETWORKS.get(network, network), "precision": precision, "mode": mode,
                "batch": self.args.batch or BATCHES.get(network, 8), "trace": mode == "eager" and precision == "bf16"}

    def trained(self, pairs):
        """Cases of each network; a process that a case takes down is started again for the rest."""
        cases = [self.case(network, *pair) for pair in pairs for network in self.args.networks.split(";")]
        self.cases += cases
        listed = os.path.join(self.train, "cases-%d.json" % len(self.cases))
        with open(listed, "w", encoding="utf-8") as f:
            json.dump(cases, f)
        words = [sys.executable, os.path.join(HERE, "train.py"), "--cases", listed, "--out", self.train, "--until", str(self.until), "--device",
                 self.args.device, "--steps", str(self.args.steps), "--warmup", str(self.args.warmup)]
        for _ in cases:
            if self.run(words, self.left()) in (0, -1) or self.left() <= 0:
                break
        done = sum(os.path.exists(os.path.join(self.train, c["name"] + ".json")) for c in cases)
        self.say("%d of %d cases ended" % (done, len(cases)))

    def attention(self):
        path = os.path.join(self.out, "attention.csv")
        found = tables.device_file(self.data, self.gpu) or self.gpu
        limit = min(ATTENTION_S, self.left())
        self.run([sys.executable, os.path.join(HERE, "attention.py"), found, "GPU kit, " + self.gpu, str(time.time() + limit - 2), self.args.device],
                 limit, path)

    def rates(self):
        profile = os.path.join(self.out, "profile.json")
        if os.path.exists(profile):
            self.run([sys.executable, os.path.join(HERE, "rates.py"), profile, "--device", "gpu" if self.args.device == "cuda" else "cpu",
                      *self.args.rates.split()], self.left(), os.path.join(self.out, "rates.csv"))

    def summarize(self):
        """The tables so far; a fault in them must not cost the measurements."""
        try:
            return tables.Results(self.out, self.data, self.dlmodel, self.gpu).write(self.cases)
        except Exception:
            self.log.write(traceback.format_exc())
            return ["no tables: see log.txt"]

    def pack(self):
        """One archive of all but programs, smaller files first, so that a full disk costs the traces."""
        path = self.out.rstrip(os.sep) + ".tar.gz"
        files = [os.path.join(d, f) for d, _, names in os.walk(self.out) for f in names if not d.startswith(self.bin) and not f.endswith(".began")]
        with tarfile.open(path + ".new", "w:gz") as tar:
            for f in sorted(files, key=os.path.getsize):
                tar.add(f, os.path.join(os.path.basename(self.out), os.path.relpath(f, self.out)))
        os.rename(path + ".new", path)
        self.say("%s: %.1f MiB" % (path, os.path.getsize(path) / 2**20))

    def everything(self):
        first, more = [("bf16", "eager"), ("tf32", "eager")], [("fp32", "eager"), ("bf16", "graphs"), ("bf16", "compiled")]
        steps = [("environment", self.environment), ("power", self.watch), ("build the probes", self.build), ("calibrate", self.calibrate),
                 ("train in bf16 and TF32", lambda: self.trained(first)), ("attention kernels", self.attention),
                 ("train in fp32, with CUDA graphs, compiled", lambda: self.trained(more)), ("rates of PyTorch", self.rates)]
        for name, step in steps:
            if self.left() <= 0:
                self.say("time is over before: " + name)
                break
            self.say(name)
            try:
                step()
            except Stop:
                raise
            except Exception as error:  # the next steps may work all the same
                self.failed.append("%s: %s" % (name, error))
                self.say("failed: %s" % error)
            if name not in ("environment", "power"):
                self.summarize()

    def main(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, stop)
        try:
            self.everything()
        except Stop as error:
            self.say("stopped: %s" % error)
        finally:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            if self.power is not None:
                self.power.kill()
        print("\n" + "\n".join(self.summarize()))
        self.pack()
        measured = any("iteration_s" in tables.loaded(p) for p in glob.glob(os.path.join(self.train, "*-*.json")) if "cases-" not in p)
        return 0 if measured and os.path.exists(os.path.join(self.out, "profile.json")) else 1


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog="Exit status: 0; 1: no profile, or nothing was trained.")
    p.add_argument("--seconds", type=float, default=480, help="time for everything; default 480")
    p.add_argument("--out", default="results")
    p.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="where PyTorch runs; cpu: to try the kit itself")
    p.add_argument("--networks", default=";".join(NETWORKS), help="separated by semicolons; also gpt:... workloads")
    p.add_argument("--batch", type=int, help="of every network; default: their own, halved until it fits")
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--warmup", type=int, default=5)
    p.add_argument("--calibrate", default="", help="more options of calibrate")
    p.add_argument("--rates", default="", help="more options of rates.py")
    return Kit(p.parse_args()).main()


if __name__ == "__main__":
    sys.exit(main())

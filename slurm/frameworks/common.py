"""What the benchmark programs share: options, the log of a run, how tasks meet, and the loop that is timed.

Standard library only, so that a fault of a framework is still logged. The lines of the log are described in README.md.
"""
import argparse
import json
import os
import platform
import socket
import struct
import sys
import time


def integer(name, default):
    """A number that Slurm (or Open MPI) gives in the environment."""
    for n in name:
        if os.environ.get(n, "").isdigit():
            return int(os.environ[n])
    return default


class Task:
    """Which of the tasks this process is."""

    def __init__(self):
        self.rank = integer(["SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"], 0)
        self.size = integer(["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"], 1)
        self.local = integer(["SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"], 0)
        self.job = os.environ.get("SLURM_JOB_ID", "none")


class Log:
    """Lines of JSON, one write each, so that what was measured is on disk when the job is killed."""

    def __init__(self, folder, name):
        self.file = os.open(os.path.join(folder, name + ".jsonl"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, event, **fields):
        line = {"event": event}
        line.update((k, v) for k, v in fields.items() if v is not None)
        data = (json.dumps(line, separators=(",", ":")) + "\n").encode()
        while data:  # a full disk takes a part of it and then raises
            data = data[os.write(self.file, data):]

    def sync(self):
        os.fsync(self.file)


def parser():
    p = argparse.ArgumentParser(description="a benchmark program of dlmodel slurm; started by its job scripts")
    p.add_argument("--run", required=True, help="folder of the run")
    p.add_argument("--network", default="network.json", help="the network, in that folder")
    p.add_argument("--mode", required=True)
    p.add_argument("--role", default="worker", choices=["worker", "ps", "scheduler", "server"])
    p.add_argument("--device", default="cpu", choices=["cpu", "gpu"])
    p.add_argument("--devices", type=int, default=1, help="devices of a node that train")
    p.add_argument("--backend", default=None)
    p.add_argument("--batch", type=int, default=32, help="samples of a device and step")
    p.add_argument("--steps", type=int, default=50)
    p.add_argument("--warmup", type=int, default=10)
    p.add_argument("--precision", default="fp32")
    p.add_argument("--optimizer", default="sgd")
    p.add_argument("--dataset", default=None, help="folder of images, CLASS/FILE; default: random numbers made once")
    p.add_argument("--binary", default=None, help="folder or program of a framework that is no Python package")
    p.add_argument("--tp", type=int, default=1)
    p.add_argument("--pp", type=int, default=1)
    p.add_argument("--profile", action="store_true", help="times of layers in trace.json")
    return p


def options():
    return parser().parse_args()


def own_name():
    """The node as Slurm calls it."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def threads():
    return max(1, integer(["OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK"], 1))


def network(args):
    with open(os.path.join(args.run, args.network), encoding="utf-8") as f:
        net = json.load(f)
    if net.get("format") != "dlmodel-network" or net.get("version") != 1:
        raise SystemExit("network.json: expected dlmodel-network, version 1")
    return net


def own_address():
    """An address of this node that the others reach: that of the site's interface, else of its host name."""
    name = os.environ.get("DLMODEL_INTERFACE", "")
    if name:
        import fcntl
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            try:
                got = fcntl.ioctl(s.fileno(), 0x8915, struct.pack("256s", name[:15].encode()))  # SIOCGIFADDR
                return socket.inet_ntoa(got[20:24])
            except OSError as error:
                raise SystemExit("network interface %s of the site file: %s" % (name, error)) from error
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


class Meeting:
    """Tasks tell each other short texts through files of the run's folder, which all nodes see. Names of one attempt of one job only:
    a folder that was used before, also by this job before it was requeued, does no harm."""

    def __init__(self, folder, job):
        attempt = os.environ.get("SLURM_RESTART_COUNT", "0")
        self.folder = os.path.join(folder, "meet-" + job + ("" if attempt in ("", "0") else "." + attempt))
        os.makedirs(self.folder, exist_ok=True)

    def tell(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(path + ".new", path)

    def hear(self, name, limit_s=300):
        path, end = os.path.join(self.folder, name), time.monotonic() + limit_s
        while True:
            try:
                with open(path, encoding="utf-8") as f:
                    return f.read()
            except FileNotFoundError:
                if time.monotonic() > end:
                    raise SystemExit("task %s did not come within %d s" % (name, limit_s)) from None
                time.sleep(0.05)


class Yardstick:
    """How fast the core is just now, which other guests of the machine may share: processor time of a fixed product of matrices, which
    they slow as they slow training (a loop of Python's three times as much). Only on CPUs, and where numpy is."""

    SIDE = 256

    def __init__(self, args):
        self.times_s, self.dot = [], None
        if args.device != "cpu":
            return
        try:
            import numpy
        except ImportError:
            return
        self.matrix = numpy.full((self.SIDE, self.SIDE), 0.5, numpy.float32)
        self.out, self.dot = numpy.empty_like(self.matrix), numpy.dot
        self.dot(self.matrix, self.matrix, out=self.out)  # the library starts

    def read(self):
        """Seconds; None: not known."""
        if self.dot is None:
            return None
        begin = time.thread_time()
        self.dot(self.matrix, self.matrix, out=self.out)
        core_s = round(time.thread_time() - begin, 9)
        self.times_s.append(core_s)
        return core_s

    def usual(self):
        """Median of what was read."""
        return round(median(self.times_s), 9) if self.times_s else None


class Bench:
    """One task of a run. Rank 0 writes the steps; every task writes why it failed."""

    def __init__(self, args, task=None):
        self.args, self.task = args, task or Task()
        part = "bench-%05d" % self.task.rank if args.role == "worker" else "%s-%05d" % (args.role, self.task.rank)
        self.log = Log(args.run, part)
        self.meeting = Meeting(args.run, self.task.job)
        self.net = network(args)
        self.yardstick = Yardstick(args)
        sys.excepthook = self.failed

    def failed(self, kind, value, trace):
        try:
            self.log.write("fail", rank=self.task.rank, text=("%s: %s" % (kind.__name__, value))[:500])
        except OSError:
            pass  # the disk may be what failed; the message below goes to the job's output
        sys.__excepthook__(kind, value, trace)
        sys.stderr.flush()
        os._exit(1)  # threads of a communication library must not keep the node

    def start(self, versions, ranks, global_batch, parameters=None, backend=None):
        self.global_batch = global_batch
        if self.task.rank == 0:
            # the column framework_version: Horovod's where it synchronizes the gradients, else that of the first package
            framework_version = str(versions["horovod"] if "horovod" in versions else next(iter(versions.values()), ""))
            versions = dict({"python": platform.python_version()}, **versions)
            self.log.write("start", framework_version=framework_version, time_s=time.time(), framework=self.args.mode, network=self.net["name"], ranks=ranks,
                           global_batch=global_batch, threads=threads(), versions={k: str(v) for k, v in versions.items()},
                           parameters=parameters, backend=backend or self.args.backend, precision=self.args.precision)

    def measure(self, step):
        """step() trains one batch and returns when it is done on the device; it may return the seconds it waited for input."""
        for i in range(self.args.warmup + self.args.steps):
            core_s = self.yardstick.read()
            begin, cpu = time.perf_counter(), time.process_time()
            load_s = step()
            step_s, cpu_s = time.perf_counter() - begin, time.process_time() - cpu
            if self.task.rank == 0:
                self.log.write("warmup" if i < self.args.warmup else "step", step=i, step_s=round(step_s, 9), cpu_s=round(cpu_s, 9), load_s=load_s, core_s=core_s,
                               samples_per_s=round(self.global_batch / step_s, 6))

    def end(self, peak_memory_bytes=None):
        if self.task.rank != 0:
            return
        if peak_memory_bytes is None:
            import resource
            peak_memory_bytes = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.log.write("end", time_s=time.time(), peak_memory_bytes=int(peak_memory_bytes), core_s=self.yardstick.usual())
        self.log.sync()


class Recorder:
    """Ranges of time as a Chrome trace, trace.json of the run: "layer:NAME:forward", "layer:NAME:backward", "update", "ProfilerStep#I".
    What an importer must know of the run stands in the member "dlmodel"."""

    now = staticmethod(time.perf_counter)

    def __init__(self, bench, versions):
        self.bench, self.versions, self.events = bench, versions, []

    def add(self, name, begin, end):
        """Ranges of one name that follow each other are one: a layer has several nodes in the backward pass."""
        if self.events and self.events[-1][0] == name:
            begin = self.events.pop()[1]
        self.events.append((name, begin, end))

    def clear(self):
        self.events.clear()

    def layer_times(self, rows):
        """rows: [(layer, "forward" or "backward", seconds)] of one step, as ranges that follow each other."""
        at = self.events[-1][2] if self.events else 0.0
        for layer, part, seconds in rows:
            self.events.append(("layer:%s:%s" % (layer, part), at, at + seconds))
            at += seconds

    def write(self):
        args = self.bench.args
        about = {"framework": args.mode, "network": self.bench.net["name"], "input": self.bench.net["input"], "batch_per_device": args.batch,
                 "precision": args.precision, "optimizer": args.optimizer, "device": args.device, "threads": threads(), "core_s": self.bench.yardstick.usual(),
                 "versions": {k: str(v) for k, v in self.versions.items()}}
        events = [{"name": n, "cat": "user_annotation", "ph": "X", "pid": os.getpid(), "tid": 1, "ts": round(1e6 * b, 3),
                   "dur": round(1e6 * (e - b), 3)} for n, b, e in self.events]
        path = os.path.join(args.run, "trace.json")
        with open(path + ".new", "w", encoding="utf-8") as f:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms", "dlmodel": about}, f)
        os.rename(path + ".new", path)


def profile(bench, step, recorder, layers_of):
    """Steps as they are, then the same number in which layers_of(step) finds the times of layers: [(layer, part, seconds)]. Watching costs time:
    times of layers are scaled by how much longer the watched steps took."""
    begin = time.perf_counter
    for _ in range(bench.args.warmup):
        step()
    plain, watched = [], []
    for i in range(bench.args.steps):
        core_s = bench.yardstick.read()
        start = begin()
        step()
        end = begin()
        plain.append(end - start)
        recorder.events.append(("ProfilerStep#%d" % i, start, end))
        bench.log.write("step", step=i, step_s=round(end - start, 9), core_s=core_s)
    found = layers_of(step, watched)
    scale = min(1.0, median(plain) / median(watched))
    for rows in found:
        recorder.layer_times([(layer, part, seconds * scale) for layer, part, seconds in rows])
    recorder.write()


SWEPT_BYTES = 8 << 20  # what an iteration leaves of a core's caches
SIZES_BYTES = [4096 << 2 * i for i in range(8)]


def collectives(bench, library, reduce_of, agrees=False):
    """Times of the library's all-reduce by size, as the OSU benchmarks print them: collectives.txt of the run. reduce_of(elements) makes a function that sums
    so many floats over all tasks and returns when the sum is there. Before each, memory is swept as an iteration does. agrees: the library's own thread
    first agrees with the others, which is counted apart: what one number takes is taken off, down to the rate of the largest sum."""
    swept = bytearray(SWEPT_BYTES)
    rows = []
    for size in SIZES_BYTES:
        reduce = reduce_of(size // 4)
        reduce_of(1)()
        times = []
        for i in range(24 if size <= 1 << 22 else 10):
            swept[:] = bytes(SWEPT_BYTES)
            bench.yardstick.read()
            reduce_of(1)()  # all begin together
            begin = time.perf_counter()
            reduce()
            if i >= 3:
                times.append(time.perf_counter() - begin)
        rows.append((size, median(times)))
        if bench.task.rank == 0:
            bench.log.write("note", text="all-reduce of %d bytes: %.6f s" % rows[-1])
    if agrees:
        agreed_s, s_per_byte = rows[0][1], (rows[-1][1] - rows[0][1]) / rows[-1][0]
        rows = [(size, max(seconds - agreed_s, size * s_per_byte)) for size, seconds in rows]
    if bench.task.rank == 0:
        with open(os.path.join(bench.args.run, "collectives.txt"), "w", encoding="utf-8") as f:
            f.write("# OSU form: Allreduce Latency Test of %s\n# Size       Avg Latency(us)\n%s\n" % (library, "\n".join("%-12d %14.2f" % (size, 1e6 * seconds) for size, seconds in rows)))


def median(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def needs(module, what):
    """Import, or say what is missing in words."""
    import importlib
    try:
        return importlib.import_module(module)
    except Exception as error:  # a package that is there may still not load
        raise RuntimeError("%s needs the Python package %s: %s" % (what, module, error)) from error


def images(folder):
    """Paths of all files CLASS/FILE below the folder with the number of their class."""
    classes = sorted(e.name for e in os.scandir(folder) if e.is_dir())
    found = [(os.path.join(folder, c, f), i) for i, c in enumerate(classes) for f in sorted(os.listdir(os.path.join(folder, c)))]
    if not found:
        raise RuntimeError("--dataset %s: expected images in CLASS/FILE" % folder)
    return found


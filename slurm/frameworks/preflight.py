"""Looks at a node before a run (--look) and during it (--watch): is anybody else using it, and is it as fast as it should be?

One process on each node; lines "look" and "watch" of the run's log. Needs nothing but Linux; GPUs are asked through nvidia-smi.
"""
import argparse
import os
import signal
import socket
import subprocess
import time

from common import Log, Meeting, Task, free_port, own_address

TICKS = os.sysconf("SC_CLK_TCK")


def own_cores():
    """The cores that the job may use: all of the node, or those that Slurm bound it to."""
    return sorted(os.sched_getaffinity(0))


def busy_ticks(cores):
    """Ticks that these cores were in use, those that the node's host took away (steal) among them."""
    names, total = {"cpu%d" % c for c in cores}, 0
    with open("/proc/stat", encoding="ascii") as f:
        for line in f:
            words = line.split()
            if words and words[0] in names:
                user, nice, system, _, _, irq, soft, steal = (int(n) for n in words[1:9])
                total += user + nice + system + irq + soft + steal
    return total


class Own:
    """Ticks of the processes of this job on this node."""

    def __init__(self, job):
        self.marks = {b"SLURM_JOB_ID=" + job.encode()}
        if "SLURMD_NODENAME" in os.environ:  # nodes can be virtual ones of one machine
            self.marks.add(b"SLURMD_NODENAME=" + os.environ["SLURMD_NODENAME"].encode())
        self.known = {}  # pid -> is it ours

    def ours(self, pid):
        if pid not in self.known:
            try:
                with open("/proc/%s/environ" % pid, "rb") as f:
                    self.known[pid] = self.marks <= set(f.read().split(b"\0"))
            except OSError:
                return False  # gone, or of another user
        return self.known[pid]

    def ticks(self):
        total, alive = 0, {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if not self.ours(pid):
                continue
            try:
                with open("/proc/%s/stat" % pid, "rb") as f:
                    fields = f.read().rsplit(b")", 1)[1].split()
            except OSError:
                continue
            alive[pid] = sum(int(n) for n in fields[11:15])  # user and system, own and of children that ended
            total += alive[pid]
        return total, alive


class Usage:
    """Share of the node's cores that others used between two looks."""

    def __init__(self, job):
        self.own, self.cores = Own(job), own_cores()
        self.begin()

    def begin(self):
        self.time_s, self.busy = time.monotonic(), busy_ticks(self.cores)
        _, self.mine = self.own.ticks()

    def others_frac(self):
        time_s, busy = time.monotonic(), busy_ticks(self.cores)
        _, now = self.own.ticks()
        mine = sum(t - self.mine.get(p, 0) for p, t in now.items())
        share = (busy - self.busy - mine) / max(1e-3, (time_s - self.time_s) * TICKS * len(self.cores))
        self.time_s, self.busy, self.mine = time_s, busy, now
        return round(min(1.0, max(0.0, share)), 4)


def smi(query):
    try:
        out = subprocess.run(["nvidia-smi", query, "--format=csv,noheader,nounits"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             timeout=20, check=True).stdout.decode()
    except (OSError, subprocess.SubprocessError):
        return None
    return [[c.strip() for c in line.split(",")] for line in out.splitlines() if line.strip()]


def gpus(own):
    """Processes of others on the GPUs, and the lowest clock of a busy one by its highest."""
    processes, clocks = smi("--query-compute-apps=pid"), smi("--query-gpu=utilization.gpu,clocks.sm,clocks.max.sm")
    found = {}
    if processes is not None:
        found["gpu_processes"] = sum(1 for p in processes if not own.ours(p[0]))
    busy = [float(c[1]) / float(c[2]) for c in clocks or [] if c[0].isdigit() and int(c[0]) > 50 and c[2].replace(".", "").isdigit()]
    if busy:
        found["clock_frac"] = round(min(busy), 4)
    return found


def free_memory_bytes():
    with open("/proc/meminfo", encoding="ascii") as f:
        for line in f:
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return None


def network_s(task, meeting):
    """A small message to the first node and back, the best of 20. The first node answers all others."""
    if task.size == 1:
        return None
    if task.rank == 0:
        port = free_port()
        with socket.create_server(("", port), backlog=task.size) as server:
            meeting.tell("preflight", "%s %d" % (own_address(), port))
            server.settimeout(30)
            for _ in range(task.size - 1):
                try:
                    peer, _ = server.accept()
                    with peer:
                        peer.settimeout(30)
                        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        for data in iter(lambda p=peer: p.recv(8), b""):
                            peer.sendall(data)
                except OSError:
                    return None  # a node did not come or fell silent: it will say why itself
        return None
    host, port = meeting.hear("preflight", 30).split()
    best = None
    with socket.create_connection((host, int(port)), timeout=30) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(20):
            begin = time.perf_counter()
            s.sendall(b"dlmodel!")
            s.recv(8)
            took = time.perf_counter() - begin
            best = took if best is None else min(best, took)
    return round(best, 9)


def write_bytes_per_s(folder, rank):
    """4 MiB to the folder of the run and to its disk."""
    path, size = os.path.join(folder, ".probe-%d" % rank), 4 << 20
    begin = time.perf_counter()
    try:
        with open(path, "wb") as f:
            f.write(b"\0" * size)
            f.flush()
            os.fsync(f.fileno())
        return round(size / (time.perf_counter() - begin), 1)
    except OSError:
        return None
    finally:
        try:
            os.remove(path)
        except OSError:
            pass


def started(pid):
    """When a process began, in ticks since the machine did: a number is given again, this is not. None: there is no such process."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            return int(f.read().rsplit(b")", 1)[1].split()[19])
    except (OSError, ValueError):
        return None


class Over:
    """Whether the job is over. Slurm ends a watch with SIGTERM, but where a node's slurmd has died nobody does, and the watch sees for itself:
    the script wrote its exit, or is gone (which only the first node sees, and tells the others), or what started the watch is gone."""

    def __init__(self, folder, task, script):
        self.log, self.size, self.parent = os.path.join(folder, "job.jsonl"), -1, os.getppid()
        self.meeting, self.folder = Meeting(folder, task.job), folder
        self.first, self.script = task.rank == 0, script
        self.script_began = started(script) if self.first and script else None
        self.exited = False

    def script_exited(self):
        size = os.stat(self.log).st_size
        if size != self.size:
            self.size = size
            with open(self.log, "rb") as f:  # a job that was requeued wrote "exit" before its last "job"
                events = [e for e in f.read().split(b"\n") if e.startswith((b'{"event":"job"', b'{"event":"exit"'))]
            self.exited = bool(events) and b'"exit"' in events[-1][:16]
        return self.exited

    def __call__(self):
        if os.getppid() != self.parent or not os.path.isdir(self.folder):
            return True
        try:
            if self.script_exited() or os.path.exists(os.path.join(self.meeting.folder, "over")):
                return True
        except OSError:
            pass  # a folder that does not answer says nothing
        if self.script_began is None or started(self.script) == self.script_began:
            return False
        try:
            self.meeting.tell("over", "")
        except OSError:
            pass
        return True


def facts(usage):
    found = {"time_s": round(time.time(), 3), "load_average": round(os.getloadavg()[0], 2), "others_frac": usage.others_frac(),
             "free_memory_bytes": free_memory_bytes(), "cores": len(usage.cores)}
    found.update(gpus(usage.own))
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--run", required=True)
    p.add_argument("--look", action="store_true")
    p.add_argument("--watch", action="store_true")
    p.add_argument("--period", type=float, default=10.0)
    p.add_argument("--script", type=int, default=0, help="process of the job script, on the first node")
    args = p.parse_args()
    task = Task()
    node = os.environ.get("SLURMD_NODENAME", socket.gethostname())
    log = Log(args.run, "node-%05d" % task.rank)
    usage = Usage(task.job)
    if args.look:
        wait_s = network_s(task, Meeting(args.run, task.job))
        rate = write_bytes_per_s(args.run, task.rank)
        usage.begin()  # our own probes do not count
        time.sleep(0.5)
        log.write("look", node=node, network_s=wait_s, write_bytes_per_s=rate, **facts(usage))
        return
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    signal.signal(signal.SIGINT, lambda *_: ended.append(True))
    over = Over(args.run, task, args.script)
    while not ended:
        end = time.monotonic() + args.period
        look_again = time.monotonic()
        while not ended and time.monotonic() < end:
            time.sleep(0.2)
            if time.monotonic() < look_again:
                continue
            look_again = time.monotonic() + 1
            if over():
                return  # what others did since the job ended is not of this run
        log.write("watch", node=node, **facts(usage))


if __name__ == "__main__":
    main()

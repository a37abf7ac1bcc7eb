#!/usr/bin/python3
"""Faults on a real Slurm (testbed.sh): seeded rounds of submit, run and collect, in each of which one thing goes wrong in one phase.

Whatever goes wrong, afterwards: every job that Slurm accepted belongs to one run, each run has one row in the table or a message that says why
not, no step is lost or counted twice, collecting again changes nothing, and no process of the round is left.

Prints "ok NAME", "not ok NAME" and "skip NAME: REASON" lines, one for each fault, and the table of faults (FAULTS_TABLE: also into that file).
$DLMODEL is the program, $SCRATCH an empty folder; SEED (1), ROUNDS (8), FIRST (0: number of the first round), ONLY (fault or fault/phase).
Needs root: the test bed starts daemons, mounts folders and runs jobs of two users.
"""
import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DLMODEL = os.path.abspath(os.environ.get("DLMODEL", os.path.join(ROOT, "build/dlmodel")))
PYTHON = "/usr/bin/python3"
NOBODY = 65534
PHASES = ["submit", "pending", "start", "run", "end", "collect"]
FEWEST_STEPS = 3  # fewer make no row
OPEN_STATES = {"PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "REQUEUED", "RESIZING"}


def log(text):
    print("# " + text, flush=True)


def run(argv, limit_s=60, **more):
    """CompletedProcess with text; a program that hangs counts as one that failed."""
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=limit_s,
                              encoding="utf-8", errors="replace", check=False, **more)
    except subprocess.TimeoutExpired as e:
        return subprocess.CompletedProcess(argv, 124, str(e.stdout or ""), "no end within %g s" % limit_s)


def until(condition, limit_s, period_s=0.1):
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(period_s)
    return True


class Bed:
    """The test bed and what can be done to it."""

    NODES = 2

    def __init__(self, scratch):
        self.dir = os.path.join(scratch, "bed")
        self.conf = os.path.join(self.dir, "slurm.conf")
        os.environ.update(SLURM_CONF=self.conf, SLURMD_TIMEOUT="6", DLMODEL_SITE=os.path.join(ROOT, "tests/slurm/bed.json"))
        self.down = set()

    def bed(self, *words, env=None, limit_s=90):
        return run(["bash", os.path.join(ROOT, "tests/slurm/testbed.sh"), *words], limit_s, env=env)

    def start(self):
        return self.bed("start", self.dir, str(self.NODES), limit_s=180)

    def stop(self):
        self.bed("stop", self.dir)

    def pid_file(self, daemon):
        return os.path.join(self.dir, ("slurmd.%s" % daemon if daemon.startswith("node") else daemon) + ".pid")

    def kill(self, daemon, how=signal.SIGKILL):
        self.down.add(daemon)
        try:
            with open(self.pid_file(daemon), encoding="ascii") as f:
                pid = int(f.read())
            os.kill(pid, how)
        except (OSError, ValueError):
            return
        until(lambda: not os.path.exists("/proc/%d" % pid), 15)

    def restart(self, daemon, clock_s=None):
        env = dict(os.environ)
        if clock_s is not None:
            env.update(faketime("%+d" % clock_s))
        self.bed("restart", self.dir, daemon, env=env)
        self.down.discard(daemon)

    def heal(self):
        """All daemons up, all nodes idle, the queue empty."""
        for daemon in sorted(self.down):
            self.restart(daemon)
        if not until(lambda: run(["scontrol", "ping"], 10).returncode == 0 and "DOWN" not in run(["scontrol", "ping"], 10).stdout, 40):
            self.restart("slurmctld")
        run(["scancel", "--state=PENDING,RUNNING,SUSPENDED"], 20)

        def idle():
            lines = run(["sinfo", "-h", "-N", "-o", "%N %T"], 20).stdout.split("\n")
            for line in filter(None, lines):
                node, state = line.split()
                if not state.startswith(("idle", "alloc", "mix", "comp")) or state.endswith("*"):
                    run(["scontrol", "update", "nodename=" + node, "state=resume"], 10)
            return sum(" idle" in line and "*" not in line for line in lines) == self.NODES
        if until(idle, 25, 0.5):
            return True
        for i in range(self.NODES):
            self.restart("node%d" % (i + 1))
        return until(idle, 40, 0.5)

    def jobs(self, folder, queue=True):
        """{job id: (state, folder)} of all jobs submitted from below a folder, by the accounting and, newer, by the queue."""
        found = {}
        for argv in [["sacct", "-X", "-n", "-P", "-a", "-D", "-S", "now-2days", "--format=JobIDRaw,State,WorkDir"],
                     ["squeue", "-h", "-a", "--states=all", "--format=%A|%T|%Z"]][:1 + queue]:
            for line in run(argv, 30).stdout.splitlines():
                words = line.split("|")
                if len(words) == 3 and words[2].startswith(folder + "/"):
                    found[words[0]] = (words[1].split(" ")[0], words[2])
        return found

    def queue(self):
        """Jobs that have not ended; None: Slurm does not answer."""
        asked = run(["squeue", "-h", "-a", "--format=%A|%T"], 15)
        return asked.stdout.split() if asked.returncode == 0 else None


def faketime(offset):
    for at in ("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1"):
        if os.path.exists(at):
            return {"LD_PRELOAD": at, "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1"}
    return None


def processes(folder, job_ids):
    """Processes that belong to a round: (pid, command)."""
    found = []
    marks = {b"SLURM_JOB_ID=" + j.encode() for j in job_ids}
    stepd = re.compile(r"^slurmstepd: \[(%s)\." % "|".join(job_ids or ["none"]))
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                command = f.read().replace(b"\0", b" ").decode("utf-8", "replace")
            with open("/proc/%s/environ" % pid, "rb") as f:
                environ = set(f.read().split(b"\0"))
            with open("/proc/%s/stat" % pid, encoding="utf-8", errors="replace") as f:
                state = f.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        # another test bed beside this one has jobs of the same numbers
        here = ("SLURM_CONF=" + os.environ["SLURM_CONF"]).encode() in environ
        mine = here and (marks & environ or stepd.match(command))
        if state != "Z" and int(pid) != os.getpid() and (mine or folder + "/" in command):
            found.append((int(pid), command.strip()))
    return found


class Round:
    """One round: what it submits, where, and what it may find."""

    def __init__(self, bed, scratch, seed, number, fault, phase):
        self.bed, self.fault, self.phase, self.number = bed, fault, phase, number
        self.random = random.Random("%s/%s" % (seed, number))
        self.base = os.path.join(scratch, "r%d" % number)
        self.runs = self.base
        self.bad = []
        self.env = dict(os.environ)
        self.user = None  # of the program; None: root
        self.steps, self.period_s = self.random.randint(8, 14), self.random.choice([0.03, 0.05, 0.08])
        self.nodes = self.random.choice(["1", "1,2", "2", "1"])
        self.messages = ""
        self.abandoned = []  # runs of a submit that was killed: they may have no job, but collect names them
        self.healer = None

    def say(self, what):
        self.bad.append(what)

    # the program

    def argv(self, words, user=None):
        argv = [DLMODEL, "slurm", *words]
        if (user or self.user) is not None:
            argv = ["setpriv", "--reuid=%d" % (user or self.user), "--regid=%d" % NOBODY, "--clear-groups", "env", "HOME=/", *argv]
        return argv

    def submit_words(self):
        return ["submit", "--framework", "custom", "--workload", "w%d" % self.number, "--nodes", self.nodes, "--steps", str(self.steps), "--dir",
                self.runs, "--", PYTHON, os.path.join(ROOT, "tests/slurm/steps.py"), str(self.steps), str(self.period_s)]

    def submit(self, during=None, user=None):
        """Submits; during(): called soon after it began."""
        began = subprocess.Popen(self.argv(self.submit_words(), user), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 env=self.env, encoding="utf-8", errors="replace")
        if during is not None:
            time.sleep(self.random.uniform(0, 0.25))
            during()
        try:
            self.messages += began.communicate(timeout=150)[0]
        except subprocess.TimeoutExpired:
            began.kill()
            self.say("submit did not end: " + began.communicate()[0])
        return began.returncode

    def collect(self, name="runs.csv", during=None, user=None):
        """(exit status, messages, rows)"""
        path = os.path.join(self.base + ".out", name)
        began = subprocess.Popen(self.argv(["collect", "--dir", self.runs, "-o", path], user), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, env=self.env, encoding="utf-8", errors="replace")
        if during is not None:
            time.sleep(self.random.uniform(0, 0.05))
            during()
        try:
            said = began.communicate(timeout=260)[0]
        except subprocess.TimeoutExpired:
            began.kill()
            said = "collect did not end"
            self.say(said)
        return began.returncode, said, self.table(path)

    @staticmethod
    def table(path):
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8", newline="") as f:
            return list(csv.DictReader(f))

    # what there is

    def folders(self):
        if not os.path.isdir(self.runs):
            return []
        return sorted(os.path.join(self.runs, n) for n in os.listdir(self.runs) if os.path.exists(os.path.join(self.runs, n, "run.json")))

    @staticmethod
    def events(folder, name):
        """Whole lines of a log, read apart from the program."""
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
                text = f.read()
        except OSError:
            return []
        found = []
        for line in text.split("\n")[:-1]:
            try:
                found.append(json.loads(line))
            except ValueError:
                pass
        return [e for e in found if isinstance(e, dict)]

    def steps_of(self, folder):
        """Steps of the last attempt."""
        count = 0
        for event in self.events(folder, "bench-00000.jsonl"):
            if event.get("event") == "start":
                count = 0
            count += event.get("event") == "step"
        return count

    def reached(self, phase):
        folders = self.folders()
        if phase == "start":
            return any(self.events(f, "job.jsonl") for f in folders)
        if phase == "run":
            return any(self.steps_of(f) >= 2 for f in folders)
        if phase == "end":
            return any(e.get("event") == "end" for f in folders for e in self.events(f, "bench-00000.jsonl"))
        return True

    # the round

    def play(self):
        os.makedirs(self.base + ".out", exist_ok=True)
        os.chmod(self.base + ".out", 0o777)
        os.makedirs(self.base, exist_ok=True)
        os.chmod(self.base, 0o777)
        self.fault.prepare(self)
        if self.phase == "submit":
            status = self.submit(self.strike_and_heal)
        else:
            status = self.submit()
            if status != 0:
                self.say("submit failed before the fault: " + self.messages)
        if self.phase in ("pending", "start", "run", "end"):
            until(lambda: self.reached(self.phase), 40, 0.05)
            self.strike_and_heal()
        if self.healer is not None:
            self.healer.join()
        self.wait_for_end()
        if self.phase == "collect":
            self.collect("first.csv", self.strike_and_heal)
            self.healer.join()
        self.bed_answers()
        self.wait_for_end()  # a slurmctld killed before it saved its state runs a job again that had ended
        self.judge(status)

    def wait_for_end(self):
        if not until(self.ended, 90, 0.3):
            self.say("jobs did not end: %s" % run(["squeue", "-h", "-a", "-o", "%A|%T|%r"], 10).stdout)

    def strike_and_heal(self):
        """The heal comes by itself: what was struck may hold up whoever waits, this program too."""
        self.fault.strike(self)
        self.healer = threading.Timer(self.random.uniform(0, self.fault.longest_s), self.fault.heal, [self])
        self.healer.start()

    def ended(self):
        """No job of the round waits or runs. Those that wait for a moment far away (requeued) may begin now; so may those that wait for a
        node which Slurm took out: a slurmctld killed before it saved its state starts a job again, and drains the node that had it already."""
        queue = self.bed.queue()
        if queue is None:
            return False
        for line in run(["sinfo", "-h", "-N", "-t", "drain", "-o", "%N|%E"], 10).stdout.splitlines() if queue else []:
            node, reason = line.split("|", 1)
            if reason.startswith("Duplicate jobid"):
                run(["scontrol", "update", "nodename=" + node, "state=resume"], 10)
        for line in queue:
            job, state = line.split("|")
            if state in ("PENDING", "REQUEUED"):
                run(["scontrol", "release", job], 10)
                run(["scontrol", "update", "jobid=" + job, "starttime=now"], 10)
        return not queue

    def bed_answers(self):
        for daemon in sorted(self.bed.down):
            self.bed.restart(daemon)
        until(lambda: self.bed.queue() is not None, 30)
        until(lambda: run(["sacctmgr", "-n", "list", "cluster"], 10).returncode == 0, 30)

    def judge(self, submitted):
        jobs = self.bed.jobs(self.runs)
        folders = self.folders()
        # the accounting lags
        until(lambda: not any(s in OPEN_STATES for s, _ in self.bed.jobs(self.runs, queue=False).values()), 4, 0.5)
        jobs = self.bed.jobs(self.runs)
        places = [place for _, place in jobs.values()]
        for place in set(places):
            if places.count(place) > 1:
                self.say("%d jobs of one run: %s" % (places.count(place), place))
            if place not in folders:
                self.say("a job without a run: " + place)
        status, said, rows = self.collect("runs.csv")
        if status != 0:
            self.say("collect failed (%d): %s" % (status, said))
        for folder in folders:
            self.judge_run(folder, [(s, j) for j, (s, place) in jobs.items() if place == folder], rows, said)
        names = [os.path.basename(f) for f in folders]
        for row in rows:
            if row["id"] not in names:
                self.say("a row of no run: " + row["id"])
        unknown = [f for f in folders if f not in places and f not in self.abandoned]
        if submitted == 0 and unknown and not self.fault.forgets:
            self.say("Slurm does not know %s: %s" % (unknown, self.messages))
        shutil.copyfile(*(os.path.join(self.base + ".out", n) for n in ("runs.csv", "again.csv"))) if rows else None
        self.collect("again.csv")
        again = self.table(os.path.join(self.base + ".out", "again.csv"))
        for row, new in zip(rows, again):  # what the accounting knew later may be added
            row.update({k: new[k] for k in ("elapsed_s", "energy_j") if row[k] == ""})
        if again != rows:
            self.say("collecting again changes the table")
        self.fault.judge(self, rows, said)
        self.orphans(list(jobs))

    def judge_run(self, folder, jobs, rows, said):
        name, steps = os.path.basename(folder), self.steps_of(folder)
        own = [r for r in rows if r["id"] == name]
        if len(own) > 1:
            self.say("%s is in the table %d times" % (name, len(own)))
        if steps >= FEWEST_STEPS and not own:
            self.say("%s is lost: %d steps, Slurm says %s; collect said: %s" % (name, steps, jobs, said))
        if steps < FEWEST_STEPS and own:
            self.say("%s has a row of %s steps, its log has %d" % (name, own[0]["steps"], steps))
        if not own and name + ":" not in said:
            self.say("no word about %s, which has no row: %s; Slurm says %s" % (name, said, jobs))
        if not own:
            return
        got = int(own[0]["steps"]) + int(own[0]["outliers"] or 0)
        if got != min(steps, self.steps):
            self.say("%s has %d steps in the table, %d in its log" % (name, got, steps))
        if jobs and jobs[0][0] not in OPEN_STATES and own[0]["state"] != jobs[0][0]:
            self.say("%s: the table says %s, Slurm says %s" % (name, own[0]["state"], jobs[0][0]))
        if jobs and jobs[0][0] == "COMPLETED" and (steps != self.steps or "incomplete" in own[0]["notes"]):
            self.say("%s completed with %d of %d steps: %s" % (name, steps, self.steps, own[0]["notes"]))
        if jobs and own[0]["job_id"] != jobs[0][1]:
            self.say("%s: job %s in the table, %s in Slurm" % (name, own[0]["job_id"], jobs[0][1]))

    def orphans(self, job_ids):
        left = []

        def none():
            left[:] = processes(self.base, job_ids)
            return not left
        if not until(none, 25, 0.5):
            self.say("left behind: " + "; ".join("%d %s" % p for p in left))
            for pid, _ in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass


class Fault:
    """What goes wrong. strike() does it, heal() mends it; both may be in a phase."""

    name, what = "", ""
    phases = PHASES
    longest_s = 1.5
    forgets = False  # Slurm itself may forget a job that it accepted: its state is on disk a few seconds later

    @staticmethod
    def missing():
        """Why it cannot be had here; None."""
        return None

    def prepare(self, r):
        pass

    def strike(self, r):
        raise NotImplementedError

    def heal(self, r):
        pass

    def judge(self, r, rows, said):
        pass


class KillController(Fault):
    name, what = "slurmctld killed", "slurmctld gets SIGKILL and is started again up to 1.5 s later"
    forgets = True

    def strike(self, r):
        r.bed.kill("slurmctld")

    def heal(self, r):
        r.bed.restart("slurmctld")


class StopController(KillController):
    name, what = "slurmctld restarted", "slurmctld is ended in order and started again"
    forgets = False

    def strike(self, r):
        r.bed.kill("slurmctld", signal.SIGTERM)


class KillNode(Fault):
    name, what = "slurmd killed", "slurmd of a node gets SIGKILL and is started again up to 1.5 s later"

    def strike(self, r):
        self.node = "node%d" % r.random.randint(1, Bed.NODES)
        r.bed.kill(self.node)

    def heal(self, r):
        r.bed.restart(self.node)


class DeadNode(KillNode):
    name, what = "node lost", "slurmd of a node gets SIGKILL and stays away until Slurm has given the node up"
    phases = ["pending", "start", "run"]

    def strike(self, r):
        # the node of the job, if it has one
        nodes = run(["squeue", "-h", "-t", "R", "-o", "%B"], 10).stdout.split()
        self.node = nodes[0] if nodes and nodes[0].startswith("node") else "node1"
        r.bed.kill(self.node)
        r.steps = max(r.steps, r.steps)

    def heal(self, r):
        until(lambda: run(["sinfo", "-h", "-n", self.node, "-o", "%t"], 10).stdout.strip().startswith("down"), 40, 0.3)
        # what runs on a node that is given up must end without a word from Slurm
        r.orphans(list(r.bed.jobs(r.runs)))
        r.bed.restart(self.node)
        until(lambda: not run(["sinfo", "-h", "-n", self.node, "-o", "%t"], 10).stdout.strip().startswith("down"), 15, 0.3)
        run(["scontrol", "update", "nodename=" + self.node, "state=resume"], 10)


class KillAccounting(Fault):
    name, what = "slurmdbd killed", "slurmdbd gets SIGKILL and is started again up to 1.5 s later"
    phases = ["submit", "run", "end", "collect"]

    def strike(self, r):
        r.bed.kill("slurmdbd")

    def heal(self, r):
        r.bed.restart("slurmdbd")


class Drain(Fault):
    name, what = "node drains", "a node drains and comes back up to 1.5 s later"
    phases = ["submit", "pending", "run"]

    def strike(self, r):
        self.node = "node%d" % r.random.randint(1, Bed.NODES)
        run(["scontrol", "update", "nodename=" + self.node, "state=drain", "reason=round"], 10)

    def heal(self, r):
        run(["scontrol", "update", "nodename=" + self.node, "state=resume"], 10)


class Requeue(Fault):
    name, what = "requeue", "an operator makes the jobs requeueable and requeues them"
    phases = ["pending", "start", "run", "end"]

    def strike(self, r):
        for line in r.bed.queue() or []:
            job = line.split("|")[0]
            run(["scontrol", "update", "jobid=" + job, "requeue=1"], 10)
            run(["scontrol", "requeue", job], 10)


class Full(Fault):
    name, what = "full folder", "the shared folder (a tmpfs of 512 KiB) is full, and has room again up to 1.5 s later"
    phases = ["submit", "pending", "start", "run", "end"]

    def prepare(self, r):
        mounted = run(["mount", "-t", "tmpfs", "-o", "size=512k,mode=1777", "tmpfs", r.base], 10)
        if mounted.returncode != 0:
            r.say("no tmpfs: " + mounted.stderr)

    def strike(self, r):
        try:
            with open(os.path.join(r.base, "ballast"), "wb", buffering=0) as f:
                while True:
                    f.write(b"x" * 4096)
        except OSError:
            pass

    def heal(self, r):
        try:
            os.remove(os.path.join(r.base, "ballast"))
        except OSError:
            pass


class SlowFolder(Fault):
    name, what = "slow folder", "the shared folder (FUSE) takes up to 60 ms a call and 40 kB/s, hangs for up to 2 s at the strike"
    longest_s = 2.0

    @staticmethod
    def missing():
        if not os.path.exists("/dev/fuse"):
            return "no /dev/fuse"
        if run([PYTHON, "-c", "import fusepy"], 20).returncode != 0:
            return "python3-fusepy is not here (make deps)"
        return None

    def rules(self, r, delay_s, bytes_per_s, room=-1):
        with open(self.behind + ".slow.new", "w", encoding="ascii") as f:
            f.write("%g %g %g" % (delay_s, bytes_per_s, room))
        os.rename(self.behind + ".slow.new", self.behind + ".slow")

    def prepare(self, r):
        self.behind = r.base + ".behind"
        os.makedirs(self.behind, exist_ok=True)
        os.chmod(self.behind, 0o777)
        self.rules(r, r.random.uniform(0, 0.01), 1e6)
        self.server = subprocess.Popen([PYTHON, os.path.join(ROOT, "tests/slurm/slow_folder.py"), self.behind, r.base],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not until(lambda: os.path.ismount(r.base), 10):
            r.say("no FUSE mount")

    def strike(self, r):
        self.rules(r, r.random.uniform(0.01, 0.06), 40e3)
        if r.random.random() < 0.5:
            self.server.send_signal(signal.SIGSTOP)

    def heal(self, r):
        self.server.send_signal(signal.SIGCONT)
        self.rules(r, 0, 1e9)


class FullFuse(SlowFolder):
    name, what = "slow folder fills up", "the shared folder (FUSE) is slow and takes at most 40 kB more, then has room again"
    phases = ["submit", "start", "run"]

    def strike(self, r):
        self.rules(r, 0.005, 100e3, r.random.choice([0, 3000, 40000]))


class ClockOfController(Fault):
    name, what = "clock of slurmctld jumps", "slurmctld goes on under a clock that is up to 10 minutes off"
    phases = ["submit", "pending", "run", "end"]

    @staticmethod
    def missing():
        return None if faketime("+0") else "libfaketime is not here (make deps)"

    def strike(self, r):
        r.bed.kill("slurmctld", signal.SIGTERM)
        r.bed.restart("slurmctld", r.random.choice([-1, 1]) * r.random.randint(5, 600))

    def heal(self, r):
        r.bed.kill("slurmctld", signal.SIGTERM)
        r.bed.restart("slurmctld")


class ClockOfNode(ClockOfController):
    name, what = "clock of a node jumps", "slurmd of a node goes on under a clock that is up to 4 minutes off"
    phases = ["pending", "start", "run"]

    def strike(self, r):
        self.node = "node%d" % r.random.randint(1, Bed.NODES)
        r.bed.kill(self.node, signal.SIGTERM)
        r.bed.restart(self.node, r.random.choice([-1, 1]) * r.random.randint(5, 240))

    def heal(self, r):
        r.bed.kill(self.node, signal.SIGTERM)
        r.bed.restart(self.node)


class ClockOfJob(ClockOfController):
    name, what = "clock of the job jumps", "the clock of dlmodel, the job script and all that it starts jumps by up to 2 hours, both ways"
    phases = ["submit", "start", "run", "end", "collect"]

    def prepare(self, r):
        self.file = r.base + ".clock"
        self.set("+0")
        more = faketime("+0")
        del more["FAKETIME"]
        r.env.update(more, FAKETIME_TIMESTAMP_FILE=self.file)

    def set(self, offset):
        with open(self.file + ".new", "w", encoding="ascii") as f:
            f.write(offset + "\n")
        os.rename(self.file + ".new", self.file)

    def strike(self, r):
        self.set("%+d" % (r.random.choice([-1, 1]) * r.random.randint(1, 7200)))

    def heal(self, r):
        self.set("%+d" % (r.random.choice([-1, 1]) * r.random.randint(0, 7200)))


class TwoUsers(Fault):
    name, what = "two users", "another user submits the same runs to the same folder at the same moment, and collects too"
    phases = ["submit", "collect"]
    longest_s = 0.2

    def strike(self, r):
        if r.phase == "submit":
            if r.submit(user=NOBODY) != 0:
                r.say("the other user could not submit: " + r.messages)
        else:
            r.collect("theirs.csv", user=NOBODY)

    def judge(self, r, rows, said):
        status, words, theirs = r.collect("theirs.csv", user=NOBODY)
        if status != 0:
            r.say("the other user could not collect: " + words)
        if [t["id"] for t in theirs] != [o["id"] for o in rows]:
            r.say("the other user collects %s: %s" % ([t["id"] for t in theirs], words))
        if r.phase == "submit" and len(rows) != 2 * (1 + r.nodes.count(",")):
            r.say("%d rows of two users: %s" % (len(rows), said))


class InterruptedCollect(Fault):
    name, what = "collect killed at each call", "SIGKILL at each write, rename and fsync of collect in turn, and at each open or each close"
    phases = ["collect"]
    longest_s = 0

    @staticmethod
    def missing():
        return None if shutil.which("strace") else "strace is not here (make deps)"

    def strike(self, r):
        until(lambda: r.collect("first.csv")[0] == 0, 20)
        with open(os.path.join(r.base + ".out", "first.csv"), "rb") as f:
            whole = f.read()
        for call in ["write", "rename", "fsync", r.random.choice(["openat", "close"])]:
            kills = self.kill_at_each(r, call, whole)
            log("collect killed at each of %d calls of %s" % (kills, call))
            if kills == 0:
                r.say("collect calls no " + call)

    @staticmethod
    def kill_at_each(r, call, whole):
        """How many calls there are; after a kill at any of them the table is the old one or the new one."""
        old = whole[:whole.index(b"\n") + 1]
        table = os.path.join(r.base + ".out", "cut.csv")
        for when in range(1, 400):
            with open(table, "wb") as f:
                f.write(old)
            done = run(["strace", "-o", "/dev/null", "-e", "trace=" + call, "-e", "inject=%s:signal=KILL:when=%d" % (call, when),
                        *r.argv(["collect", "--dir", r.runs, "-o", table])], 60)
            with open(table, "rb") as f:
                now = f.read()
            if now not in (old, whole):
                r.say("collect killed at %s %d left a table that is neither old nor new" % (call, when))
            if done.returncode == 0:
                if now != whole:
                    r.say("collect was not killed and wrote another table")
                return when - 1
        return 399


class InterruptedSubmit(Fault):
    name, what = "submit killed at a call", "SIGKILL at the N-th write, rename, fsync or fork of submit, which is then repeated"
    phases = ["submit"]
    longest_s = 0
    missing = InterruptedCollect.missing

    def prepare(self, r):
        call = r.random.choice(["write", "rename", "fsync", "clone"])
        when = r.random.randint(1, 2 if call == "clone" else 8)
        killed = run(["strace", "-o", "/dev/null", "-e", "trace=" + call, "-e", "inject=%s:signal=KILL:when=%d" % (call, when),
                      *r.argv(r.submit_words())], 120)
        log("submit killed at %s %d: %d" % (call, when, killed.returncode))
        if killed.returncode != 0:
            r.abandoned = r.folders()

    def strike(self, r):
        pass


class KillStep(Fault):
    name, what = "slurmstepd killed", "the slurmstepd of a job's step gets SIGKILL, and the user, who sees no progress, cancels all runs"
    phases = ["start", "run"]
    longest_s = 4.0

    def heal(self, r):
        run(r.argv(["cancel", "--all", "--dir", r.runs]), 60)

    def strike(self, r):
        steps = [pid for pid, c in processes(r.base, list(r.bed.jobs(r.runs))) if c.startswith("slurmstepd:")]
        if steps:
            os.kill(r.random.choice(steps), signal.SIGKILL)


FAULTS = [KillController, StopController, KillNode, DeadNode, KillAccounting, Drain, Requeue, Full, SlowFolder, FullFuse, ClockOfController,
          ClockOfNode, ClockOfJob, TwoUsers, InterruptedCollect, InterruptedSubmit, KillStep]


def skip(reason):
    print("skip faults on a real Slurm: " + reason)
    sys.exit(0)


def unmount(scratch):
    with open("/proc/mounts", encoding="utf-8") as f:
        for line in f:
            at = line.split()[1]
            if at.startswith(scratch + "/"):
                run(["umount", "-l", at], 10)


def plan(seed, rounds, first, only):
    """(fault, phase) of each round: all pairs in a seeded order, again and again."""
    pairs = [(f, p) for f in FAULTS for p in f.phases if not only or only in (f.name, f.name + "/" + p)]
    chosen = random.Random("plan/%s" % seed)
    order = []
    while len(order) < first + rounds:
        again = list(pairs)
        chosen.shuffle(again)
        order += again
    return order[first:first + rounds]


def table(counts):
    lines = ["| fault | rounds | phases | bad rounds |", "|---|---|---|---|"]
    for f in FAULTS:
        c = counts.get(f.name)
        if c:
            lines.append("| %s: %s | %d | %s | %d |" % (f.name, f.what, c["rounds"], ", ".join(p for p in PHASES if p in c["phases"]), c["bad"]))
    return "\n".join(lines)


def open_to_others(folder):
    """Whether another user may go through every folder down to this one."""
    while folder != "/":
        if not os.stat(folder).st_mode & 0o001:
            return False
        folder = os.path.dirname(folder)
    return True


def main():
    if os.getuid() != 0:
        skip("the test bed starts daemons as root")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for c in "slurmctld slurmd slurmdbd sbatch sacct munged mariadbd".split():
        if not shutil.which(c):
            skip("no %s (Debian packages slurmctld slurmd slurmdbd slurm-client munge mariadb-server)" % c)
    scratch = os.path.realpath(os.environ.get("SCRATCH") or tempfile.mkdtemp())
    own = None
    if not open_to_others(scratch):  # a second user takes part
        own = scratch = tempfile.mkdtemp(prefix="faults-")
        os.chmod(own, 0o711)
    seed, rounds, first = os.environ.get("SEED", "1"), int(os.environ.get("ROUNDS", "8")), int(os.environ.get("FIRST", "0"))
    for name in ("LD_PRELOAD", "FAKETIME"):
        os.environ.pop(name, None)
    bed = Bed(scratch)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    counts, finds = {}, []
    try:
        started = bed.start()
        if started.returncode != 0:
            skip("the test bed did not start: " + (started.stderr.strip().split("\n") or [""])[-1])
        for number, (kind, phase) in enumerate(plan(seed, rounds, first, os.environ.get("ONLY")), first):
            fault = kind()
            if kind.missing():
                counts.setdefault(kind.name, {"rounds": 0, "phases": set(), "bad": 0, "skip": kind.missing()})
                continue
            began = time.monotonic()
            r = Round(bed, scratch, seed, number, fault, phase)
            r.play()
            log("round %d: %s in %s: %s (%.0f s)" % (number, kind.name, phase, "; ".join(r.bad) or "good", time.monotonic() - began))
            c = counts.setdefault(kind.name, {"rounds": 0, "phases": set(), "bad": 0})
            c["rounds"] += 1
            c["phases"].add(phase)
            c["bad"] += bool(r.bad)
            finds += [(kind.name, number, phase, b) for b in r.bad]
            unmount(scratch)
            if not bed.heal():
                log("the bed does not heal: it is started anew")
                bed.stop()
                shutil.rmtree(bed.dir, ignore_errors=True)
                bed.start()
    finally:
        unmount(scratch)
        bed.stop()
        for pid, _ in processes(scratch, []):
            os.kill(pid, signal.SIGKILL)
        if own:
            shutil.rmtree(own, ignore_errors=True)
    for name, c in counts.items():
        if "skip" in c:
            print("skip fault %s: %s" % (name, c["skip"]))
        elif c["bad"] == 0:
            print("ok %s: %d rounds" % (name, c["rounds"]))
        else:
            print("not ok %s: %d of %d rounds" % (name, c["bad"], c["rounds"]))
            for _, number, phase, what in (f for f in finds if f[0] == name):
                print("  SEED=%s FIRST=%d ROUNDS=1 (%s): %s" % (seed, number, phase, what))
    text = table(counts)
    log("\n# ".join(text.split("\n")))
    if os.environ.get("FAULTS_TABLE"):
        with open(os.environ["FAULTS_TABLE"], "w", encoding="utf-8") as f:
            f.write(text + "\n")
    sys.exit(1 if finds else 0)


if __name__ == "__main__":
    main()

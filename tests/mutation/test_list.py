"""The tests that judge the model in isolation: unit and property programs, and the golden commands."""
import glob
import os
import re
import resource
import shlex
import signal
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MEMORY_BYTES = 4 << 30
DECIMAL = re.compile(rb"[0-9]+\.[0-9]+(?:e[-+][0-9]+)?")
SEARCH_TIME = re.compile(rb", in [0-9.e+-]* [mu]*s on 1 thread \(.* plans/s\)")  # as golden.sh leaves it out


def rounded(text):
    """Numbers to 6 digits, as golden.sh rounds them."""
    return DECIMAL.sub(lambda m: b"%.6g" % float(m[0]) if len(m[0]) > 8 else m[0], text)


class Test:
    """One program, or one command whose output was accepted."""

    def __init__(self, build, name, command, expected=None):
        self.build, self.name, self.command, self.expected = build, name, command, expected

    @property
    def golden(self):
        return self.expected is not None


def tests(build):
    """All tests of the build folder, by name."""
    found = []
    for kind in ("unit", "property"):
        for source in sorted(glob.glob(f"{ROOT}/tests/{kind}/test_*.c")):
            name = f"{kind}/{os.path.basename(source)[:-2]}"
            found.append(Test(build, name, [f"{build}/tests/{name}"]))
    with open(f"{ROOT}/tests/golden/cases.txt", encoding="utf-8") as cases:
        for line in cases:
            if line.strip() and not line.startswith("#"):
                name, arguments = line.rstrip("\n").split(": ", 1)
                with open(f"{ROOT}/tests/golden/{name}.out", "rb") as accepted:
                    found.append(Test(build, f"golden/{name}",
                                      [f"{build}/dlmodel"] + shlex.split(arguments), accepted.read()))
    return {test.name: test for test in found}


def environment(**more):
    """Nothing of this user's, as tests/run has it."""
    kept = {k: v for k, v in os.environ.items()
            if k not in ("DLMODEL_DATA", "DLMODEL_LIBEXEC", "NO_COLOR", "SANITIZED", "LD_LIBRARY_PATH")}
    return {**kept, "DLMODEL_ROOT": ROOT, "DLMODEL_LOCAL": "/dev/null/local.json", "LC_ALL": "C", **more}


def limits(cpu_s):
    """A mutant that allocates, writes or computes without end must not take the machine with it."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def cpu_used():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(test, env, cpu_s=None):
    """(passed, why not, CPU seconds); its own folder for temporary files, its own process group. `cpu_s` limits what it
    may compute (a busy machine makes no difference), and it may wait ten times as long."""
    start = cpu_used()
    with tempfile.TemporaryDirectory(prefix="dlmodel-mutant-") as scratch, \
            tempfile.TemporaryFile(dir=scratch) as output:
        process = subprocess.Popen(test.command, cwd=ROOT, env={**env, "TMPDIR": scratch}, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                                   preexec_fn=(lambda: limits(int(cpu_s) + 1)) if cpu_s else None)
        try:
            status = process.wait(timeout=10.0 * cpu_s + 30.0 if cpu_s else None)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        seconds = cpu_used() - start
        if status is None:
            return False, "no end", seconds
        if test.golden:
            output.seek(0)
            text = SEARCH_TIME.sub(b"", output.read())
            if "--csv" in test.command:
                text = rounded(text)
            same = text + b"exit %d\n" % status == test.expected
            return same, "" if same else "output", seconds
        return status == 0, "" if status == 0 else f"signal {-status}" if status < 0 else f"exit {status}", seconds

#!/usr/bin/env python3
"""mutate.py BUILD REACH - mutation score of model/: `make mutate`.

universalmutator proposes changes of single lines; a hash of SEED and the change orders them, so that a change of the
code elsewhere leaves the sample alone. The first COUNT that compile to other machine code are tried: the changed file
becomes a library that is loaded before the rest (tests.mk, SHARED_TESTS), and the tests that reach the line (reach.py)
run, the fastest and the recorded plans first, until one fails.

BUILD/mutants-SEED.tsv has one row a mutant: file:line, verdict, by what, the line, the changed line. What is there
is not tried again, so an interrupted run goes on; --again tries those that survived. Mutants that no test can kill
are in equivalent.tsv, each with the reason, and do not count. Exit 1 below what is asked, 3 when time was up."""
import argparse
import collections
import contextlib
import glob
import hashlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import time

from reach import stamp
from test_list import ROOT, environment, run, tests

# Where a wrong number would be a wrong prediction.
COST_FOLDERS = ("network", "machine", "framework", "engine")
ASKED_PCT, ASKED_COST_PCT = 92.0, 97.0
# Instrumented, a test takes at most so many times as long: one that then took longer is never run.
SLOWER = 8.0
# Thousands of plans and requests in a second: nothing kills more for its time, by about so many times.
RECORDED = "unit/test_golden_"
RECORDED_WORTH = 60.0
# gcc takes a `continue` for unlikely: without that a loop whose last statement it follows has the same code.
UNGUESSED = ["-fno-guess-branch-probability"]
# A function that may end without its value is no C that this project builds: invalid, like other text that does not compile.
NO_C = ["-Wreturn-type", "-Werror=return-type"]

SENTENCE = re.compile(r'"[^"\n]* [^"\n]*"')

Mutant = collections.namedtuple("Mutant", "file line old new")


def prose(old, new):
    """Whether only sentences differ: a message or a help text is no cost."""
    return SENTENCE.sub('""', old) == SENTENCE.sub('""', new)


def candidates(files):
    """Every change that universalmutator proposes, but of sentences."""
    from universalmutator import mutator
    found = []
    for file in files:
        with open(f"{ROOT}/{file}", encoding="utf-8") as text:
            source = text.readlines()
        with contextlib.redirect_stdout(io.StringIO()):
            changes = mutator.mutants_regexp(source, ["universal.rules", "c_like.rules", "c.rules"], ignorePatterns=[])
        found += [Mutant(file, line, source[line - 1], new) for line, new, *_ in changes if not prose(source[line - 1], new)]
    return found


def order(mutants, seed):
    """By hash; of equal lines of a file the first has no other place than its number among them."""
    seen, ranked = collections.Counter(), []
    for mutant in mutants:
        key = (mutant.file, mutant.old.strip(), mutant.new.strip())
        seen[key] += 1
        ranked.append((hashlib.sha256(repr((seed, key, seen[key])).encode()).hexdigest(), mutant))
    return [mutant for _, mutant in sorted(ranked)]


def one_line(text):
    return " ".join(text.split())


def row_key(mutant):
    return mutant.file, one_line(mutant.old), one_line(mutant.new), mutant.line


def equivalents():
    """{(file, line, changed line): reason}"""
    found = {}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "equivalent.tsv"), encoding="utf-8") as rows:
        for row in rows:
            if row.strip() and not row.startswith("#"):
                file, old, new, reason = row.rstrip("\n").split("\t")
                found[file, old, new] = reason
    return found


class Bench:
    """Compiles mutants and runs tests on them."""

    def __init__(self, build, reach_path, compiler, flags, patience_s, seed):
        self.patience_s = patience_s
        self.build, self.folder = build, f"{build}/mutants-{seed}"  # two seeds may run at once
        os.makedirs(self.folder, exist_ok=True)
        self.compile_words = [w for w in shlex.split(compiler) if w != "ccache"] + [
            w for w in shlex.split(flags) if w not in ("-MMD", "-MP") and not w.startswith("-W")] + UNGUESSED + NO_C + ["-c"]
        self.compiler = self.compile_words[0]
        self.tests = {n: t for n, t in tests(build).items() if os.path.exists(t.command[0])}  # a draft is not built yet
        self.reach = {name: {"seconds": 0.0, "lines": {}} for name in self.tests}  # unknown: any test may reach any line
        if os.path.exists(reach_path):
            with open(reach_path, encoding="utf-8") as text:
                self.reach = {name: r for name, r in json.load(text).items() if name in self.tests}
        self.env = environment(LD_LIBRARY_PATH=self.folder, CMOCKA_TEST_ABORT="0")
        self.plain, self.plain_names, self.seconds, self.slow = {}, {}, {}, set()

    def check_plain(self):
        """Every test passes on the code as it is; how long each takes. What is as it was is not run again."""
        path, known = f"{self.build}/plain.json", {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as text:
                known = json.load(text)
        for name, test in self.tests.items():
            now = stamp(self.build, test)
            if known.get(name, {"stamp": ""})["stamp"] == now:
                continue
            # What took longer than the patience before the code or the test changed is not worth to time again.
            if known.get(name, {"seconds": 0.0})["seconds"] > 1.5 * self.patience_s or \
                    self.reach.get(name, {"seconds": 0.0})["seconds"] > SLOWER * self.patience_s:
                self.slow.add(name)
                continue
            passed, why, seconds = run(test, environment())
            if not passed:
                sys.exit(f"error: {name} fails without a mutant ({why})")
            known[name] = {"stamp": now, "seconds": seconds}
        self.seconds = {name: float("inf") if name in self.slow else known[name]["seconds"] for name in self.tests}
        with open(path, "w", encoding="utf-8") as out:
            json.dump(known, out)

    def compiled(self, file, text, name):
        """Machine code of the text in place of the file, or None."""
        source, target = f"{self.folder}/{name}.c", f"{self.folder}/{name}.o"
        with open(source, "w", encoding="utf-8") as out:
            out.write(text)
        done = subprocess.run([*self.compile_words, "-iquote", os.path.dirname(f"{ROOT}/{file}"), source, "-o", target],
                              cwd=ROOT, capture_output=True, check=False)
        if done.returncode:
            return None
        with open(target, "rb") as code:
            return code.read()

    def names(self):
        """What the mutant's object defines for others."""
        listed = subprocess.run(["nm", "-g", "--defined-only", f"{self.folder}/mutant.o"], check=True, capture_output=True,
                                text=True).stdout
        return {line.split()[-1] for line in listed.splitlines()}

    def build_mutant(self, mutant):
        """Verdict, or None when the tests must tell."""
        with open(f"{ROOT}/{mutant.file}", encoding="utf-8") as text:
            lines = text.readlines()
        if mutant.file not in self.plain: # the same name, which is in the object
            self.plain[mutant.file] = self.compiled(mutant.file, "".join(lines), "mutant")
            self.plain_names[mutant.file] = self.names()
        lines[mutant.line - 1] = mutant.new
        code = self.compiled(mutant.file, "".join(lines), "mutant")
        if code is None:
            return "invalid"
        if code == self.plain[mutant.file]:
            return "same code"
        names = self.names()
        if not self.plain_names[mutant.file] <= names:
            return "invalid"  # it took away a function that others call
        done = subprocess.run([self.compiler, "-shared", f"{self.folder}/mutant.o", "-o", f"{self.folder}/libmutant.so"],
                              capture_output=True, check=False)
        return "invalid" if done.returncode else None

    def tests_of(self, mutant):
        """Names of the tests that reach the line, in their order. A line that does not run (of a table) may be read by any."""
        reached, known = [], False
        for name, reach in self.reach.items():
            ran, idle = reach["lines"].get(mutant.file, ([], []))
            known = known or mutant.line in ran or mutant.line in idle
            if mutant.line in ran:
                reached.append(name)
        return sorted(reached if known else self.reach, key=lambda name: self.place(name, mutant))

    def place(self, name, mutant):
        """Least first: the time of a test by what it is likely to kill."""
        likely = name.startswith(RECORDED)
        return self.seconds.get(name, 0.0) / (RECORDED_WORTH if likely else 1.0)

    def judge(self, mutant):
        """(verdict, by what)"""
        verdict = self.build_mutant(mutant)
        if verdict:
            return verdict, "-"
        chosen = self.tests_of(mutant)
        spent_s = 0.0
        for name in chosen:
            test = self.tests[name]
            spent_s += self.seconds[name]
            if spent_s > self.patience_s:
                return "survived", f"the fastest of {len(chosen)} tests"
            passed, why, _ = run(test, self.env, 4.0 * self.seconds[name] + 2.0)
            if not passed:
                return "killed", f"{name} ({why})"
        return "survived", f"{len(chosen)} tests" if chosen else "no test reaches the line"


def known_rows(path):
    found = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as rows:
            for row in rows:
                place, verdict, by, old, new = row.rstrip("\n").split("\t")
                file, line = place.rsplit(":", 1)
                found[file, old, new, int(line)] = (verdict, by)
    return found


def write_rows(path, rows):
    with open(f"{path}.new", "w", encoding="utf-8") as out:
        for (file, old, new, line), (verdict, by) in rows.items():
            out.write(f"{file}:{line}\t{verdict}\t{by}\t{old}\t{new}\n")
    os.replace(f"{path}.new", path)


def report(sample, rows, equivalent, asked):
    """Prints the table and the survivors; whether the scores are those asked for."""
    count = collections.defaultdict(lambda: [0, 0])
    kinds, survivors = collections.Counter(), []
    for mutant in sample:
        key = row_key(mutant)
        verdict, by = rows[key]
        if verdict == "survived" and key[:3] in equivalent:
            verdict = "equivalent"
        if verdict == "killed":
            kinds[by.split("/", 1)[0]] += 1
        if verdict == "survived":
            survivors.append((mutant, by))
        if verdict != "equivalent":
            folder = mutant.file.split("/")[1]
            for name in ("model", "cost models" if folder in COST_FOLDERS else "the rest", folder):
                count[name][0] += verdict == "killed"
                count[name][1] += 1
        else:
            count["equivalent"][1] += 1
    same = count.pop("equivalent", [0, 0])[1]
    for mutant, by in sorted(survivors, key=lambda s: (s[0].file, s[0].line)):
        print(f"survived  {mutant.file}:{mutant.line} ({by})\n    {one_line(mutant.old)}\n    {one_line(mutant.new)}")
    print(f"{'folder':<14}{'mutants':>8}{'killed':>8}")
    for name in ["model", "cost models", "the rest"] + sorted(n for n in count if n not in ("model", "cost models", "the rest")):
        killed, total = count[name]
        if total:
            print(f"{name:<14}{total:>8}{100.0 * killed / total:>7.1f} %")
    print(f"{len(sample)} mutants, {same} equivalent (equivalent.tsv); killed by " +
          ", ".join(f"{kind} {n}" for kind, n in kinds.most_common()))
    scores = [100.0 * killed / total if total else 100.0 for killed, total in (count["model"], count["cost models"])]
    return all(score >= least for score, least in zip(scores, asked))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build"), parser.add_argument("reach")
    parser.add_argument("--cc", default="gcc"), parser.add_argument("--flags", default="-std=c11 -fPIC -O1 -I.")
    parser.add_argument("--seed", default="1"), parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after these; the next call goes on")
    parser.add_argument("--patience", type=float, default=20.0,
                        help="seconds of CPU that the tests of one mutant take without it; slower ones are left out, and it survives")
    parser.add_argument("--again", action="store_true", help="try again what survived, with the tests as they are now")
    parser.add_argument("--part", default="1/1", help="1/2 and 2/2: every other mutant, for two calls at once; a third call then reports both")
    parser.add_argument("--only", default="", help="only files whose name contains this, or one of these with commas between")
    args = parser.parse_args()
    build, end = os.path.abspath(args.build), time.monotonic() + 60.0 * args.minutes
    files = sorted(os.path.relpath(p, ROOT) for p in glob.glob(f"{ROOT}/model/**/*.c", recursive=True)
                   if any(part in p for part in args.only.split(",")))
    part, parts = (int(n) for n in args.part.split("/"))
    bench = Bench(build, args.reach, args.cc, args.flags, args.patience, f"{args.seed}-{part}")
    bench.check_plain()
    path, equivalent, sample = f"{build}/mutants-{args.seed}.tsv", equivalents(), []
    rows = known_rows(path)
    if args.again:
        rows = {k: v for k, v in rows.items() if v[0] != "survived" or k[:3] in equivalent}
        write_rows(path, rows)
    with open(path, "a", encoding="utf-8", buffering=1) as out:
        for mutant in order(candidates(files), args.seed)[part - 1::parts]:
            key = row_key(mutant)
            if len(sample) * parts >= args.count or (key not in rows and time.monotonic() > end):
                break
            if key not in rows:
                rows[key] = bench.judge(mutant)
                file, old, new, line = key
                out.write(f"{file}:{line}\t{rows[key][0]}\t{rows[key][1]}\t{old}\t{new}\n")
            if rows[key][0] in ("killed", "survived"):
                sample.append(mutant)
    good = report(sample, rows, equivalent, (ASKED_PCT, ASKED_COST_PCT))
    if len(sample) * parts < args.count:
        return 3
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

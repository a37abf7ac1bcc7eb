#!/usr/bin/env python3
"""reach.py BUILD - runs every test of the instrumented BUILD (make mcdc) and notes in BUILD/reach.json how long it
takes and which lines of model/ it runs; BUILD/tests.profdata has the counts of unit and property tests together.
Exit 1 when a test fails."""
import glob
import json
import os
import shutil
import subprocess
import sys

from test_list import ROOT, WRAPPING, environment, run, tests


def objects(build):
    """What carries the coverage map: the shared library, and the programs that have the code themselves."""
    first, *others = [f"{build}/tests/libtested.so"] + [f"{build}/tests/{name}" for name in WRAPPING]
    return [first] + [f"-object={other}" for other in others]


def lines_run(build, tools, profile, name):
    """{file: lines that ran} of model/."""
    carrier = [f"{build}/tests/{name}"] if name in WRAPPING else [f"{build}/tests/libtested.so"]
    text = subprocess.run([tools["cov"], "export", "-format=lcov", f"-instr-profile={profile}", *carrier],
                          check=True, capture_output=True, text=True).stdout
    found, at = {}, None
    for line in text.splitlines():
        if line.startswith("SF:"):
            at = os.path.relpath(line[3:], ROOT)
            at = at if at.startswith("model/") else None
        elif at and line.startswith("DA:"):
            number, count = line[3:].split(",")[:2]
            found.setdefault(at, [[], []])[0 if int(count) else 1].append(int(number))
    return found


def main():
    build = os.path.abspath(sys.argv[1])
    version = sys.argv[2] if len(sys.argv) > 2 else ""
    tools = {tool: shutil.which(f"llvm-{tool}{version}") or shutil.which(f"llvm-{tool}") for tool in ("cov", "profdata")}
    scratch = f"{build}/profiles"
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    reach, profiles, failed = {}, [], 0
    for name, test in tests(build).items():
        raw = f"{scratch}/raw"
        os.makedirs(raw)
        passed, why, seconds = run(test, environment(LLVM_PROFILE_FILE=f"{raw}/%p-%m"))
        if not passed:
            print(f"error: {name} fails ({why}): coverage is counted when all tests pass", file=sys.stderr)
            failed = 1
        profile = f"{scratch}/{name.replace('/', '-')}.profdata"
        counted = glob.glob(f"{raw}/*")
        if counted:
            subprocess.run([tools["profdata"], "merge", "-sparse", "-o", profile, *counted], check=True)
            if not test.golden:
                profiles.append(profile)
            reach[name] = {"seconds": seconds, "lines": lines_run(build, tools, profile, name)}
        shutil.rmtree(raw)
    subprocess.run([tools["profdata"], "merge", "-sparse", "-o", f"{build}/tests.profdata", *profiles], check=True)
    with open(f"{build}/reach.json", "w", encoding="utf-8") as out:
        json.dump(reach, out)
    return failed


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""reach.py BUILD [LLVM RELEASE [MINUTES]] - runs every test of the instrumented BUILD (make mcdc) and notes in BUILD/reach.json how long it
takes and which lines of model/ it runs; BUILD/tests.profdata has the counts of unit and property tests together.
A test that ran before, and whose program and library are the same, is not run again. Exit 1 when a test fails, 3
when time was up: the next call goes on."""
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

from test_list import ROOT, environment, run, tests


def lines_run(build, tools, profile):
    """{file: lines that ran} of model/."""
    text = subprocess.run([tools["cov"], "export", "-format=lcov", f"-instr-profile={profile}", f"{build}/tests/libtested.so"],
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


def stamp(build, test):
    """Changes with the test or what it tests."""
    digest = hashlib.sha256(repr(test.command).encode())
    for file in (f"{build}/tests/libtested.so", test.command[0]):
        with open(file, "rb") as content:
            digest.update(content.read())
    return digest.hexdigest()


def take(build, tools, test, folder):
    """Runs one test and keeps its profile; {"seconds", "lines", "stamp"}, or why it failed."""
    raw, profile = f"{folder}/raw", f"{folder}/{test.name.replace('/', '-')}.profdata"
    shutil.rmtree(raw, ignore_errors=True)
    os.makedirs(raw)
    passed, why, seconds = run(test, environment(LLVM_PROFILE_FILE=f"{raw}/%p-%m"))
    if not passed:
        return why
    subprocess.run([tools["profdata"], "merge", "-sparse", "-o", profile, *glob.glob(f"{raw}/*")], check=True)
    shutil.rmtree(raw)
    return {"seconds": seconds, "lines": lines_run(build, tools, profile), "stamp": stamp(build, test)}


def main():
    build = os.path.abspath(sys.argv[1])
    version = sys.argv[2] if len(sys.argv) > 2 else ""
    end = time.monotonic() + 60.0 * float(sys.argv[3] if len(sys.argv) > 3 else "inf")
    tools = {tool: shutil.which(f"llvm-{tool}{version}") or shutil.which(f"llvm-{tool}") for tool in ("cov", "profdata")}
    folder, path = f"{build}/profiles", f"{build}/reach.json"
    os.makedirs(folder, exist_ok=True)
    before, reach, failed = {}, {}, 0
    if os.path.exists(path):
        with open(path, encoding="utf-8") as text:
            before = json.load(text)
    every = tests(build)
    for name, test in every.items():
        found = before.get(name)
        if found is None or found["stamp"] != stamp(build, test):
            found = take(build, tools, test, folder)
        if isinstance(found, str):
            print(f"error: {name} fails ({found}): coverage is counted when all tests pass", file=sys.stderr)
            failed = 1
        else:
            reach[name] = found
        if time.monotonic() > end:
            break
    profiles = [f"{folder}/{name.replace('/', '-')}.profdata" for name in reach if not every[name].golden]
    subprocess.run([tools["profdata"], "merge", "-sparse", "-o", f"{build}/tests.profdata", *profiles], check=True)
    with open(f"{path}.new", "w", encoding="utf-8") as out:
        json.dump({**before, **reach}, out)
    os.replace(f"{path}.new", path)
    if len(reach) + failed < len(every) and not failed:
        return 3
    return failed


if __name__ == "__main__":
    sys.exit(main())

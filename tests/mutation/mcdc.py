#!/usr/bin/env python3
"""mcdc.py BUILD [LLVM RELEASE] - MC/DC of model/ by the unit and property tests that reach.py ran: of the conditions of each decision,
those that were shown to change its result on their own. One line a file, the conditions that were not, and the sums; exit 1
when the cost models are below what is asked. Decisions of one condition are branches: `make cov` counts them."""
import json
import os
import shutil
import subprocess
import sys

from mutate import COST_FOLDERS
from test_list import ROOT

ASKED_PCT = 90.0


def main():
    build, version = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    cov = shutil.which(f"llvm-cov{version}") or shutil.which("llvm-cov")
    text = subprocess.run([cov, "export", f"-instr-profile={build}/tests.profdata", f"{build}/tests/libtested.so"],
                          check=True, capture_output=True, text=True).stdout
    sums, missed = {}, []
    for entry in json.loads(text)["data"][0]["files"]:
        file = os.path.relpath(entry["filename"], ROOT)
        if not file.startswith("model/"):
            continue
        folder = file.split("/")[1]
        source = open(entry["filename"], encoding="utf-8").read().splitlines()
        for record in entry.get("mcdc_records", []):
            line, conditions = record[0], record[-1]
            for name in ("model", "cost models" if folder in COST_FOLDERS else "the rest", folder):
                held = sums.setdefault(name, [0, 0])
                held[0] += sum(conditions)
                held[1] += len(conditions)
            if not all(conditions):
                which = ", ".join(str(i + 1) for i, shown in enumerate(conditions) if not shown)
                words = " ".join(row.strip() for row in source[line - 1:record[2]])
                missed.append((file, line, which, len(conditions), words))
    for file, line, which, count, words in sorted(missed):
        print(f"{file}:{line}: condition {which} of {count}: {words}")
    for name in ["model", "cost models", "the rest"] + sorted(n for n in sums if n not in ("model", "cost models", "the rest")):
        shown, total = sums[name]
        print(f"{name:<14}{total:>6} conditions {100.0 * shown / total:>6.1f} %")
    shown, total = sums["cost models"]
    return 0 if 100.0 * shown >= ASKED_PCT * total else 1


if __name__ == "__main__":
    sys.exit(main())

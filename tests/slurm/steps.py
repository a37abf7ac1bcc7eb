"""steps.py COUNT PERIOD_S - a command of one's own that logs COUNT steps, as slurm/frameworks/README.md says; the first task alone writes."""
import json
import os
import sys
import time

count, period_s = int(sys.argv[1]), float(sys.argv[2])
if os.environ.get("SLURM_PROCID", "0") != "0":
    time.sleep(0.2)
    sys.exit(0)
with open(os.path.join(os.environ["DLMODEL_RUN"], "bench-00000.jsonl"), "a", encoding="utf-8", buffering=1) as f:
    def write(**line):
        f.write(json.dumps(line) + "\n")
    write(event="start", ranks=1, global_batch=1, versions={"steps.py": "1"})
    for i in range(count):
        time.sleep(period_s)
        write(event="step", step=i, step_s=period_s)
    write(event="end", peak_memory_bytes=1e6)

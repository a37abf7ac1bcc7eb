"""fake_sbatch.py STATE ARGS... - takes a job as sbatch --parsable does, and the job is over at once: logs of 24 steps, of which the first four are slow.

What its steps take comes from the configuration alone: runs of one node are 100 ms spread by 4 %, of more nodes 60 ms spread by 40 %, in an order that is drawn
once. STATE counts the jobs; STATE/lost, where it exists, is the number of a job of which nothing comes back.
"""
import json
import os
import random
import sys

CASES = {1: (0.1, 0.04), 2: (0.06, 0.4)}


def write(path, events):
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(e) + "\n" for e in events)


def main():
    state = sys.argv[1]
    folder = [a.split("=", 1)[1] for a in sys.argv if a.startswith("--chdir=")][0]
    with open(os.path.join(folder, "run.json"), encoding="utf-8") as f:
        run = json.load(f)
    counter = os.path.join(state, "jobs")
    number = 1 + (int(open(counter, encoding="utf-8").read()) if os.path.exists(counter) else 0)
    with open(counter, "w", encoding="utf-8") as f:
        f.write(str(number))
    print(number)
    if os.path.exists(os.path.join(state, "lost-%d" % number)):
        return
    middle_s, spread = CASES[run["nodes"]]
    draw = random.Random("%d %d" % (run["nodes"], run["repeat"]))
    step_s = middle_s * (1 + spread * (draw.random() - 0.5))
    with open(os.path.join(state, "runs"), "a", encoding="utf-8") as f:
        f.write("%d %d %.17g\n" % (run["nodes"], run["repeat"], step_s))
    steps = [step_s * 3] * 4 + [step_s] * 20
    write(os.path.join(folder, "bench-00000.jsonl"),
          [{"event": "start", "ranks": run["nodes"], "global_batch": 8 * run["nodes"], "threads": 1, "versions": {"torch": "1.13"}}] +
          [{"event": "step", "step": i, "step_s": s} for i, s in enumerate(steps)] + [{"event": "end", "peak_memory_bytes": 1e8}])
    write(os.path.join(folder, "node-00000.jsonl"),
          [{"event": "look", "node": "n0", "load_average": 0.1, "others_frac": 0.01, "free_memory_bytes": 1e10, "cores": 4}])
    write(os.path.join(folder, "job.jsonl"), [{"event": "job", "job_id": str(number), "nodes": "n0", "time_s": 1.0}, {"event": "exit", "status": 0, "time_s": 2.0}])


main()

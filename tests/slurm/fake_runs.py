"""fake_runs.py FOLDER COUNT - folders of runs as jobs leave them. The first seven are special: see below; all others are complete."""
import json
import os
import sys


def lines(path, events):
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(e, separators=(",", ":")) + "\n" for e in events)


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    for i in range(count):
        name = "r%04d" % i
        path = os.path.join(folder, name)
        os.makedirs(path)
        run = {"format": "dlmodel-run", "version": 1, "id": name, "framework": "pytorch-ddp", "strategy": "data", "backend": "gloo", "workload": "resnet18",
               "input": "64x64", "precision": "fp32", "optimizer": "sgd", "nodes": 2, "devices_per_node": 1, "batch_per_device": 8, "steps": 20,
               "warmup_steps": 2, "repeat": 1, "site": "bed", "system": "local", "job_id": str(1000 + i)}
        with open(os.path.join(path, "run.json"), "w", encoding="utf-8") as f:
            json.dump(run, f)
        done = {3: 12, 4: 5, 5: 0, 6: 7}.get(i, 20)
        steps = [0.11] * 10 + [0.109, 0.111] * 5
        if i == 1:
            steps[4] = 1.5  # an outlier
        events = [{"event": "start", "framework": "ddp", "network": "resnet18", "ranks": 2, "global_batch": 16, "threads": 1,
                   "versions": {"torch": "1.13"}, "parameters": 11689512, "precision": "fp32"}]
        events += [{"event": "warmup", "step": s, "step_s": 0.9} for s in range(2)]
        events += [{"event": "step", "step": s + 2, "step_s": t, "samples_per_s": 16 / t} for s, t in enumerate(steps[:done])]
        if i == 5:
            events = [{"event": "fail", "rank": 1, "text": "RuntimeError: no such device"}]
        if done == 20:
            events += [{"event": "end", "peak_memory_bytes": 500000000}]
        bench = os.path.join(path, "bench-00000.jsonl")
        lines(bench, events)
        if i == 3:
            with open(bench, "a", encoding="utf-8") as f:
                f.write('{"event":"step","step":14,"step_s":0.1')  # the disk was full, or the node died
        lines(os.path.join(path, "node-00000.jsonl"),
              [{"event": "look", "node": "n0", "load_average": 0.1, "others_frac": 0.01, "free_memory_bytes": 1e10, "cores": 4},
               {"event": "watch", "node": "n0", "load_average": 1.0, "others_frac": 0.4 if i == 2 else 0.02, "cores": 4}])
        job = [{"event": "job", "job_id": str(1000 + i), "nodes": "n[0-1]", "time_s": 1.0}]
        if i not in (4, 6):
            job += [{"event": "exit", "status": 0 if done == 20 else 1, "time_s": 2.0}]
        lines(os.path.join(path, "job.jsonl"), job)


main()

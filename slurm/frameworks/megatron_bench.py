"""Megatron-LM: starts its pretrain_gpt.py as this task and takes "elapsed time per iteration" of its log. --binary is its folder."""
import os
import re
import subprocess
import sys

import common


def main():
    args = common.options()
    bench = common.Bench(args)
    task, net = bench.task, bench.net
    heads = [la for la in net["layers"] if la["kind"] == "attention"]
    if net["family"] != "transformer" or not heads or args.binary is None:
        raise RuntimeError("Megatron: expected a GPT workload, and Megatron's folder in frameworks[].program of the site file")
    if task.rank == 0:
        bench.meeting.tell("megatron", "%s %d" % (common.own_address(), common.free_port()))
    address, port = bench.meeting.hear("megatron").split()
    os.environ.update(MASTER_ADDR=address, MASTER_PORT=port, RANK=str(task.rank), WORLD_SIZE=str(task.size), LOCAL_RANK=str(task.local))
    dp = task.size // (args.tp * args.pp)
    if dp * args.tp * args.pp != task.size:
        raise RuntimeError("Megatron: --tp %d times --pp %d does not divide %d devices" % (args.tp, args.pp, task.size))
    options = {"num-layers": len(heads), "hidden-size": int(heads[0]["out"][0]), "num-attention-heads": int(heads[0]["heads"]),
               "seq-length": int(net["input"][1]), "max-position-embeddings": int(net["input"][1]), "micro-batch-size": args.batch,
               "global-batch-size": args.batch * dp, "train-iters": args.warmup + args.steps, "lr": 1e-5, "log-interval": 1,
               "tensor-model-parallel-size": args.tp, "pipeline-model-parallel-size": args.pp, "tokenizer-type": "NullTokenizer",
               "vocab-size": int(net.get("vocabulary", 50257)), "eval-iters": 0, "split": "1,0,0"}
    command = [sys.executable, os.path.join(args.binary, "pretrain_gpt.py"), "--mock-data"]
    for key, value in options.items():
        command += ["--" + key, str(value)]
    command += {"mixed": ["--fp16"], "fp16": ["--fp16"], "bf16": ["--bf16"]}.get(args.precision, [])
    bench.start({"megatron": args.binary}, task.size, args.batch * dp)
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    count = 0
    for line in iter(child.stdout.readline, ""):
        found = re.search(r"elapsed time per iteration \(ms\): *([0-9.]+)", line)
        if found:  # the last rank prints them
            bench.log.write("warmup" if count < args.warmup else "step", step=count, step_s=float(found[1]) / 1e3)
            count += 1
        else:
            sys.stdout.write(line)
    if child.wait() != 0:
        raise RuntimeError("pretrain_gpt.py ended with status %d" % child.returncode)
    if count > 0:
        bench.log.write("end")
    bench.end()


if __name__ == "__main__":
    main()

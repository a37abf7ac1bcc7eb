"""measure.py FOLDER WORKLOAD: iterations of PyTorch DDP with two ranks of one core each, for the settings that `dlmodel advise` proposes.

FOLDER holds WORKLOAD.json, a network as `dlmodel slurm submit` writes it. The settings take turns in every round, forwards and backwards in alternate rounds
(ABBA), so that what drifts meets all of them alike.
Writes FOLDER/advise_WORKLOAD.csv: one row a setting and round, the median of its steps.
"""
import contextlib
import csv
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [TESTS, os.path.join(TESTS, "..", "slurm", "frameworks")]

from come_first import come_first

ROUNDS = 6
# of each network: steps to warm up and to time; settings: name, bucket in MiB, samples of a rank and step, samples of a micro-batch
NETWORKS = {
    "resnet18": (3, 12, [("base", 25, 4, 4), ("bucket-1", 1, 4, 4), ("bucket-4", 4, 4, 4), ("bucket-100", 100, 4, 4), ("accumulate-2", 25, 8, 4),
                         ("accumulate-4", 25, 16, 4), ("batch-8", 25, 8, 8), ("batch-16", 25, 16, 16)]),
    # a bucket for each tensor, as bucket_cap_mb=0.001 makes them
    "lenet": (20, 100, [("tensor", 0.001, 8, 8), ("bucket-25", 25, 8, 8)]),
    # 364 tensors, of which half have less than 2 KiB: hundreds of messages or a few
    "densenet121": (2, 10, [("tensor", 0.001, 2, 2), ("bucket-1", 1, 2, 2), ("bucket-25", 25, 2, 2), ("bucket-100", 100, 2, 2)]),
}


def step_of(model, optimizer, batch, micro):
    """One step: all micro-batches but the last leave the gradients where they are."""
    pieces = batch.split(micro)

    def step():
        optimizer.zero_grad(set_to_none=False)
        for i, x in enumerate(pieces):
            last = i == len(pieces) - 1
            with contextlib.nullcontext() if last else model.no_sync():
                (model(x).mean() / len(pieces)).backward()
        optimizer.step()
    return step


def work(rank, folder, name_of_net, port):
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank]})
    torch.set_num_threads(1)
    torch.manual_seed(0)
    import net_torch
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    with open(os.path.join(folder, name_of_net + ".json"), encoding="utf-8") as f:
        net = json.load(f)
    warmup, steps, settings = NETWORKS[name_of_net]
    rows = []
    for round_ in range(1, ROUNDS + 1):
        for name, bucket, samples, micro in settings if round_ % 2 else settings[::-1]:
            model = torch.nn.parallel.DistributedDataParallel(net_torch.Network(net, None), bucket_cap_mb=bucket)
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
            step = step_of(model, optimizer, net_torch.batch_of(net, samples, torch.device("cpu")), micro)
            times = []
            for i in range(warmup + steps):
                dist.barrier()
                begin = time.perf_counter()
                step()
                if i >= warmup:
                    times.append(time.perf_counter() - begin)
            rows.append([name_of_net, name, bucket, samples, micro, round_, "%.6f" % statistics.median(times)])
    if rank == 0:
        with open(os.path.join(folder, "advise_%s.csv" % name_of_net), "w", newline="", encoding="utf-8") as f:
            out = csv.writer(f, lineterminator="\n")
            out.writerow(["workload", "setting", "bucket_mib", "batch_per_device", "micro_batch", "round", "iteration_s"])
            out.writerows(rows)
    dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    import common
    come_first(False)
    mp.spawn(work, (sys.argv[1], sys.argv[2], common.free_port()), 2)

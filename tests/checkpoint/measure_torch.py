"""Checkpoints of PyTorch: torch.save, safetensors and the distributed checkpoint, by ranks that hold the same weights (DDP).

measure_torch.py --ranks N --folder EMPTY --out TABLE.csv [--repeats N] [--formats NAME,...] NETWORK.json...; without networks: the probe.
"""
import argparse
import gc
import os
import pickle
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "slurm", "frameworks")]

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")  # a rank has one core

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from safetensors.torch import save_file
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner

import common
from come_first import come_first


def probe_state(tensors, elements):
    return {"model": {"layer%d.weight" % i: torch.randn(elements) for i in range(tensors)}}


def network_state(path):
    """Weights and Adam's states after one step, as a training program saves them."""
    import net_torch
    model = net_torch.Network(common.network(path))
    optimizer = torch.optim.Adam(model.parameters())
    for p in model.parameters():
        p.grad = torch.randn_like(p)
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


def flat(state):
    """safetensors hold a flat dictionary of tensors."""
    found = dict(state["model"])
    for i, states in state.get("optimizer", {}).get("state", {}).items():
        found.update({"optimizer.%s.%s" % (i, k): v for k, v in states.items()})
    return {k: v.contiguous() for k, v in found.items()}


def savers(state, rank):
    """format -> save(folder). Where all ranks hold the same state only rank 0 writes."""
    def torch_save(folder):
        if rank == 0:
            torch.save(state, os.path.join(folder, "checkpoint.pt"))

    def safetensors(folder):
        if rank == 0:
            save_file(flat(state), os.path.join(folder, "checkpoint.safetensors"))

    def sharded(folder):
        dcp.save(state, checkpoint_id=folder)

    def sharded_async(folder):
        import time
        begin = time.perf_counter()
        pending = dcp.async_save(state, checkpoint_id=folder)
        blocking_s = time.perf_counter() - begin
        pending.result()
        return blocking_s

    def npz(compressed):
        import numpy
        arrays = {k: v.numpy() for k, v in flat(state).items()} if rank == 0 else {}

        def save(folder):
            if rank == 0:
                (numpy.savez_compressed if compressed else numpy.savez)(os.path.join(folder, "checkpoint.npz"), **arrays)
        return save

    return {"raw": lambda folder: common.raw_write(folder) if rank == 0 else None, "torch-save": torch_save,
            "raw-sync": lambda folder: common.raw_write(folder, True) if rank == 0 else None, "safetensors": safetensors, "torch-dcp": sharded, "torch-dcp-async": sharded_async,
            "npz": npz(False), "npz-compressed": npz(True)}


def local_plan(state):
    planner = DefaultSavePlanner()
    planner.set_up_planner(state, is_coordinator=False)
    return planner.create_local_plan()


def planning(state, ranks):
    """The distributed checkpoint's planning in this process: format -> what makes its messages. dcp-plan: what each rank does for all tensors. dcp-coordinate: what
    the first rank does for the plans of so many ranks that hold the same tensors: unpickle each, give each tensor to one rank, pickle each rank's part."""
    plan = pickle.dumps(local_plan(state))

    def coordinate():
        parts, _ = DefaultSavePlanner().create_global_plan([pickle.loads(plan) for _ in range(ranks)])
        return [pickle.dumps(part) for part in parts]

    return {"dcp-plan": lambda: [pickle.dumps(local_plan(state))], "dcp-coordinate": coordinate}


def measure_planning(args):
    """Rows of the probe without files, in one process whatever the ranks; the last one a full collection of CPython's garbage, which walks all objects of a process
    (column tensors: how many; bytes: without what they refer to)."""
    state = probe_state(*common.PROBES["probe-many"])
    facts = {"platform": "pytorch", "version": torch.__version__, "state": "probe-many", "optimizer": "none", "layers": 0, "tensors": len(state["model"]),
             "elements": sum(t.numel() for t in state["model"].values())}

    def measure(kind, make, size, **more):
        def do(_):
            make()  # returns nothing: all of it blocks
        folder = os.path.join(args.folder, kind)
        times, blocked = common.timed(folder, do, args.repeats)
        common.row(args.out, dict(facts, format=kind, **more), folder, times, blocked, size)

    for ranks in (1, 2):
        for kind, make in planning(state, ranks).items():
            if kind == "dcp-coordinate" or ranks == 1:
                measure(kind, make, sum(map(len, make())), ranks=ranks)
    found = gc.get_objects()
    count, size = len(found), sum(map(sys.getsizeof, found))
    del found
    measure("collect", gc.collect, size, ranks=1, state="probe-objects", tensors=count, elements=count)


def agree(done):
    """Rank 0's answer on every rank."""
    answer = torch.tensor([done], dtype=torch.uint8)
    dist.broadcast(answer, 0)
    return bool(answer.item())


def work(rank, args, port):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    store = dist.TCPStore("127.0.0.1", port, args.ranks, rank == 0)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=args.ranks)
    states = {os.path.basename(n)[:-5]: lambda n=n: network_state(n) for n in args.networks}
    if not states:
        states = {name: lambda c=count: probe_state(*c) for name, count in common.PROBES.items()}
    for name, make in states.items():
        state = make()
        tensors = flat(state)
        for kind, save in savers(state, rank).items():
            if kind.startswith("raw") and name != "probe-large" or args.formats and kind not in args.formats.split(","):
                continue
            folder = os.path.join(args.folder, kind)
            if kind == "npz-compressed" and (args.ranks > 1 or sum(t.numel() for t in tensors.values()) > 50e6):
                continue  # deflate takes 20 s for 300 MB, on one core whatever the ranks
            times, blocked = common.timed(folder, save, args.repeats, dist.barrier, rank == 0, agree)
            if rank == 0:
                common.row(args.out, {"platform": "pytorch", "version": torch.__version__, "format": kind, "state": name,
                                      "optimizer": "adam" if args.networks else "none", "ranks": args.ranks, "layers": 0, "tensors": len(tensors),
                                      "elements": sum(t.numel() for t in tensors.values())}, folder, times, blocked)
    dist.barrier()
    os._exit(0)  # taking Gloo's pairs apart has been seen to spin


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ranks", type=int, default=1)
    p.add_argument("--folder", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--most", type=int, default=common.MOST, help="repeats of a case whose interval is not narrow before it ends all the same")
    p.add_argument("--formats", help="only these")
    p.add_argument("--planning", action="store_true", help="only the planning of the distributed checkpoint and a collection of garbage")
    p.add_argument("networks", nargs="*")
    args = p.parse_args()
    come_first(True)
    os.environ["CHECKPOINT_MOST"] = str(args.most)  # for the ranks too
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    if not args.planning:
        mp.spawn(work, (args, port), args.ranks)
    elif args.ranks == 1:
        torch.set_num_threads(1)
        measure_planning(args)


if __name__ == "__main__":
    main()

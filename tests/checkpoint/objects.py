"""How many Python objects the distributed checkpoint keeps for each tensor: counted full collections of CPython's garbage, which come when what outlived the two young
generations since the last one is more than a quarter of the rest (gcmodule.c). A count, not a time: the machine need not be quiet.

objects.py --folder EMPTY [--ranks 1 2 4]: for each rank full collections x objects / 4 / tensors saved. first + plan r + written / r on rank 0, other + written / r elsewhere
are model/framework/checkpoint/formats/ckpt_dcp.c's.
"""
import argparse
import gc
import os
import shutil
import socket

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp

TENSORS, SAVES, WARM_UP = 400, 40, 2


def work(rank, ranks, port, folder):
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, ranks, rank == 0)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
    full = 0

    def count(phase, info):
        nonlocal full
        full += phase == "stop" and info["generation"] == 2

    state = {"model": {"layer%d.weight" % i: torch.randn(64) for i in range(TENSORS)}}
    for i in range(WARM_UP + SAVES):
        if i == WARM_UP:
            gc.callbacks.append(count)
        if rank == 0:
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        dist.barrier()
        dcp.save(state, checkpoint_id=folder)
    objects = len(gc.get_objects())
    # in the order of the ranks: lines of several processes run into each other
    for r in range(ranks):
        if r == rank:
            print("ranks %d rank %d: %d full collections, %d objects, %.1f kept for each tensor" % (ranks, rank, full, objects, full * objects / 4 / SAVES / TENSORS),
                  flush=True)
        dist.barrier()
    os._exit(0)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--folder", required=True)
    p.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    args = p.parse_args()
    for ranks in args.ranks:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        mp.spawn(work, (ranks, port, args.folder), ranks)


if __name__ == "__main__":
    main()

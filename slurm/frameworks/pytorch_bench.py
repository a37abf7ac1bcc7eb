"""PyTorch: DataParallel, DistributedDataParallel, FSDP, DeepSpeed's ZeRO, and Horovod.

One process a device (dp: one for all of a node). CPU processes meet over Gloo, GPU processes over NCCL.
"""
import datetime
import os
import sys
import time

import common


def join(bench, torch, backend):
    """Process group over a store that rank 0 opens at a port of its own choice."""
    dist, task = torch.distributed, bench.task
    limit = datetime.timedelta(seconds=300)
    if task.rank == 0:
        address = common.own_address()
        store = dist.TCPStore(address, 0, task.size, True, limit, wait_for_workers=False)
        bench.meeting.tell("torch", "%s %d" % (address, store.port))
    else:
        address, port = bench.meeting.hear("torch").split()
        store = dist.TCPStore(address, int(port), task.size, False, limit, wait_for_workers=False)
    dist.init_process_group(backend, store=store, rank=task.rank, world_size=task.size, timeout=limit)


def optimizer_of(torch, name, parameters):
    makers = {"sgd": lambda: torch.optim.SGD(parameters, lr=1e-4), "momentum": lambda: torch.optim.SGD(parameters, lr=1e-4, momentum=0.9),
              "adam": lambda: torch.optim.Adam(parameters, lr=1e-5)}
    if name not in makers:
        raise RuntimeError("PyTorch: no optimizer %s (sgd, momentum, adam)" % name)
    return makers[name]()


def real_input(bench, torch, device):
    """An endless stream of batches of images; random tensors are made before the run and used again."""
    from net_torch import batch_of
    args = bench.args
    if args.dataset is None:
        batch = batch_of(bench.net, args.batch * (args.devices if args.mode == "dp" else 1), device)
        while True:
            yield batch
    vision = common.needs("torchvision", "real input")
    size = [int(n) for n in bench.net["input"][1:]]
    steps = [vision.transforms.Resize(size), vision.transforms.ToTensor()]
    data = vision.datasets.ImageFolder(args.dataset, vision.transforms.Compose(steps))
    loader = torch.utils.data.DataLoader(data, args.batch, shuffle=True, num_workers=max(1, common.threads() // 2), drop_last=True,
                                         pin_memory=args.device == "gpu", persistent_workers=True)
    if len(loader) == 0:
        raise RuntimeError("--dataset: %d images are fewer than a batch of %d" % (len(data), args.batch))
    while True:
        for images, _ in loader:
            yield images.to(device, non_blocking=True)


def wrap(bench, torch, model, device):
    """The model and its optimizer as the mode distributes them; a function that trains one batch."""
    args, task = bench.args, bench.task
    if args.mode == "dp":
        model = torch.nn.DataParallel(model, list(range(args.devices))) if args.device == "gpu" else model
    elif args.mode == "ddp" and task.size > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, [device] if args.device == "gpu" else None)
    elif args.mode == "fsdp":
        fsdp = common.needs("torch.distributed.fsdp", "pytorch-fsdp")
        model = fsdp.FullyShardedDataParallel(model, device_id=device if args.device == "gpu" else None)
    optimizer = optimizer_of(torch, args.optimizer, model.parameters())
    if args.mode == "horovod":
        hvd = common.needs("horovod.torch", "horovod-pytorch")
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return model, optimizer


def trainer(bench, torch, model, optimizer, device, timing):
    """step(): one batch forward, backward and update, done when it returns."""
    args = bench.args
    batches = real_input(bench, torch, device)
    kinds = {"fp32": None, "tf32": None, "mixed": torch.float16 if args.device == "gpu" else torch.bfloat16, "fp16": torch.float16,
             "bf16": torch.bfloat16}
    if args.precision not in kinds:
        raise RuntimeError("PyTorch: no precision %s" % args.precision)
    kind = kinds[args.precision]
    where = "cuda" if args.device == "gpu" else "cpu"
    scaler = torch.cuda.amp.GradScaler(enabled=kind == torch.float16 and args.device == "gpu")

    def step():
        begin = time.perf_counter()
        x = next(batches)
        load_s = time.perf_counter() - begin
        optimizer.zero_grad(set_to_none=False)
        with torch.autocast(where, kind, enabled=kind is not None):
            loss = model(x).mean()
        if timing is not None:
            timing.backward()
        scaler.scale(loss).backward()
        updated = time.perf_counter()
        scaler.step(optimizer)
        scaler.update()
        if timing is not None:
            timing.recorder.add("update", updated, timing.now())
            timing.clear()
        if args.device == "gpu":
            torch.cuda.synchronize()
        return round(load_s, 9) if args.dataset is not None else None
    return step


def deepspeed_step(bench, model, device):
    """ZeRO stage 1, 2 or 3, with DeepSpeed's defaults for buckets and overlap."""
    deepspeed = common.needs("deepspeed", "deepspeed-" + bench.args.mode)
    import torch
    names = {"sgd": "SGD", "momentum": "SGD", "adam": "Adam", "lamb": "Lamb"}
    config = {"train_micro_batch_size_per_gpu": bench.args.batch, "zero_optimization": {"stage": int(bench.args.mode[-1])},
              "optimizer": {"type": names[bench.args.optimizer], "params": {"lr": 1e-5}},
              "fp16": {"enabled": bench.args.precision in ("mixed", "fp16")}, "bf16": {"enabled": bench.args.precision == "bf16"}}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    batches = real_input(bench, torch, device)

    def step():
        x = next(batches)
        engine.backward(engine(x.half() if engine.fp16_enabled() and x.is_floating_point() else x))
        engine.step()
        if bench.args.device == "gpu":
            torch.cuda.synchronize()
    return step


def reduce_of(torch, device):
    """For common.collectives."""
    known = {}

    def make(elements):
        data = known.setdefault(elements, torch.zeros(elements, device=device))
        return lambda: torch.distributed.all_reduce(data)
    return make


def profile(bench, step, recorder):
    """Warm-up as ever, then the steps, as a Chrome trace with a range for each layer."""
    for _ in range(bench.args.warmup):
        step()
    recorder.clear()
    for i in range(bench.args.steps):
        core_s = bench.yardstick.read()
        begin = time.perf_counter()
        step()
        recorder.add("ProfilerStep#%d" % i, begin, time.perf_counter())
        bench.log.write("step", step=i, step_s=round(time.perf_counter() - begin, 9), core_s=core_s)
    recorder.write()


def main():
    args = common.options()
    bench = common.Bench(args)
    task = bench.task
    torch = common.needs("torch", "PyTorch")
    import net_torch
    torch.set_num_threads(common.threads())
    torch.manual_seed(0)
    if args.precision == "tf32":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    if args.device == "gpu":
        torch.backends.cudnn.benchmark = True
        device = torch.device("cuda", task.local % max(1, torch.cuda.device_count()))
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
    versions = {"torch": torch.__version__, "cuda": torch.version.cuda or "none"}
    if args.mode == "horovod":
        hvd = common.needs("horovod.torch", "horovod-pytorch")
        hvd.init()
        task.rank, task.size, task.local = hvd.rank(), hvd.size(), hvd.local_rank()
        versions["horovod"] = common.needs("horovod", "horovod-pytorch").__version__
    elif args.mode != "dp" and (task.size > 1 or args.mode != "ddp"):
        join(bench, torch, args.backend or "gloo")
    timing = None
    if args.profile and task.size == 1:
        recorder = common.Recorder(bench, versions)
        timing = net_torch.Layers(recorder, torch.cuda.synchronize if args.device == "gpu" else lambda: None)
    model = net_torch.Network(bench.net, timing).to(device)
    parameters = sum(p.numel() for p in model.parameters())
    global_batch = args.batch * (args.devices if args.mode == "dp" else task.size)
    bench.start(versions, task.size, global_batch, parameters)
    if args.mode.startswith("zero"):
        step = deepspeed_step(bench, model, device)
    else:
        model, optimizer = wrap(bench, torch, model, device)
        step = trainer(bench, torch, model, optimizer, device, timing)
    if args.profile and task.size > 1:
        common.collectives(bench, "gloo", reduce_of(torch, device))
    elif args.profile:
        profile(bench, step, recorder)
    else:
        bench.measure(step)
    bench.end(torch.cuda.max_memory_allocated() if args.device == "gpu" else None)
    if torch.distributed.is_initialized():
        # All is written. Taking Gloo's pairs apart while another task does has been seen to spin until the job's time limit: leave together, without.
        torch.distributed.barrier()
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()

"""train.py - trains the cases of a list, each for some steps, and writes NAME.json of each that ends, with trace, kernels and memory snapshot
of those that ask for it. Started again after a crash, it goes on with the case after the one that crashed.

A case: {"name", "network", "workload", "precision": bf16|tf32|fp32, "mode": eager|compiled|graphs, "batch", "trace": bool}.
"""
import argparse
import gzip
import json
import os
import shutil
import statistics
import sys
import time
import traceback

import torch

import networks

LEAST_STEPS, CASE_S = 5, 20.0  # a case that would take longer has fewer steps, but not fewer than these


def write(path, content):
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(content, f, indent=1)
    os.rename(path + ".new", path)


def ranges(model):
    """Ranges of the profiler around the forward pass of each layer, as `dlmodel import trace` expects them."""
    hooks, whole = [], ()
    for name, module in model.named_modules():
        if isinstance(module, networks.Moe):
            whole += (name + ".",)
        elif next(module.children(), None) is not None or not name or name.startswith(whole):
            continue
        open_ranges = []

        def begin(_module, _inputs, name=name, stack=open_ranges):
            stack.append(torch.profiler.record_function("layer:%s:forward" % name))
            stack[-1].__enter__()

        def end(_module, _inputs, _output, stack=open_ranges):
            stack.pop().__exit__(None, None, None)
        hooks += [module.register_forward_pre_hook(begin), module.register_forward_hook(end)]
    return hooks


class Case:
    """One network on one device, with a step that can be repeated."""

    def __init__(self, case, device, batch):
        self.case, self.device, self.gpu = case, device, device.type == "cuda"
        tf32 = case["precision"] == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = True
        torch.manual_seed(0)
        self.model = networks.make(case["workload"]).to(device)
        self.inputs = self.model.batch(batch, device)
        parameters, graphs = self.model.parameters(), case["mode"] == "graphs"
        if self.model.optimizer == "adam":
            self.optimizer = torch.optim.Adam(parameters, 1e-5, **({"capturable": True} if graphs else {}))
        else:
            self.optimizer = torch.optim.SGD(parameters, 1e-4, momentum=0.9)
        self.call = torch.compile(self.model) if case["mode"] == "compiled" else self.model
        self.graph = None

    def plain(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.case["precision"] == "bf16"):
            loss = self.call(*self.inputs)
        loss.backward()
        self.optimizer.step()
        return loss

    def capture(self):
        """The whole iteration as one CUDA graph."""
        if not self.gpu:
            raise RuntimeError("CUDA graphs need a GPU")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.plain()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.loss = self.plain()
        self.graph = graph

    def step(self):
        if self.graph is None:
            return self.plain()
        self.graph.replay()
        return self.loss

    def settle(self):
        if self.gpu:
            torch.cuda.synchronize()

    def timed(self, steps):
        """Seconds of each step, by events of the device between steps: the host need not wait."""
        if not self.gpu:
            marks = [time.perf_counter()]
            for _ in range(steps):
                self.step()
                marks.append(time.perf_counter())
            return [b - a for a, b in zip(marks, marks[1:])]
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
        marks[0].record()
        for mark in marks[1:]:
            self.step()
            mark.record()
        self.settle()
        return [1e-3 * a.elapsed_time(b) for a, b in zip(marks, marks[1:])]


def trace(run, base, steps=2):
    """Chrome trace of some steps, and the kernels in it."""
    kinds = [torch.profiler.ProfilerActivity.CPU] + ([torch.profiler.ProfilerActivity.CUDA] if run.gpu else [])
    hooks = ranges(run.model)
    with torch.profiler.profile(activities=kinds, schedule=torch.profiler.schedule(wait=0, warmup=1, active=steps, repeat=1),
                                on_trace_ready=lambda p: p.export_chrome_trace(base + ".trace.json")) as profiler:
        for _ in range(steps + 1):
            run.step()
            run.settle()
            profiler.step()
    for hook in hooks:
        hook.remove()
    with open(base + ".trace.json", encoding="utf-8") as f:
        content = json.load(f)
    if not isinstance(content, dict) or not content.get("traceEvents"):
        raise RuntimeError("this PyTorch writes no traces (built without Kineto)")
    kernels = {}
    for e in content["traceEvents"]:
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and "dur" in e:
            count, us = kernels.get(e["name"], (0, 0.0))
            kernels[e["name"]] = (count + 1, us + e["dur"])
    with open(base + ".trace.json", "rb") as f, gzip.open(base + ".trace.json.gz", "wb") as g:
        shutil.copyfileobj(f, g)
    os.remove(base + ".trace.json")
    return [{"kernel": k, "calls_per_step": n / steps, "time_us_per_step": us / steps} for k, (n, us) in sorted(kernels.items(), key=lambda i: -i[1][1])]


def snapshot(run, base):
    """What PyTorch's allocator did in one step, for pytorch.org/memory_viz and dlmodel.read_snapshot."""
    torch.cuda.memory._record_memory_history(max_entries=100000, context=None)
    run.step()
    run.settle()
    torch.cuda.memory._dump_snapshot(base + ".pickle")
    torch.cuda.memory._record_memory_history(enabled=None)
    with open(base + ".pickle", "rb") as f, gzip.open(base + ".pickle.gz", "wb") as g:
        shutil.copyfileobj(f, g)
    os.remove(base + ".pickle")


def measured(case, device, batch, args):
    run = Case(case, device, batch)
    if run.gpu:
        torch.cuda.reset_peak_memory_stats()
    if case["mode"] == "graphs":
        run.capture()
    begin = time.perf_counter()
    for _ in range(args.warmup):
        run.step()
    run.settle()
    first_s = time.perf_counter() - begin
    again = time.perf_counter()
    run.step()
    run.settle()
    step_s = time.perf_counter() - again
    left_s = min(CASE_S, args.until - time.time())
    steps = max(min(LEAST_STEPS, args.steps), min(args.steps, int(left_s / max(step_s, 1e-6))))
    began = time.time()
    times = sorted(run.timed(steps))
    found = {"batch": batch, "steps": steps, "warmup_s": first_s, "began": began, "ended": time.time(), "iteration_s": statistics.median(times),
             "low_s": times[len(times) // 10], "high_s": times[-1 - len(times) // 10], "optimizer": run.model.optimizer, "torch": torch.__version__,
             "parameters": sum(p.numel() for p in run.model.parameters()), "loss": run.step().detach().item()}
    if run.gpu:
        found.update(peak_memory_bytes=torch.cuda.max_memory_allocated(), reserved_memory_bytes=torch.cuda.max_memory_reserved(),
                     gpu=torch.cuda.get_device_name(), cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version())
    base = os.path.join(args.out, case["name"])
    write(base + ".json", dict(case, **found))
    if case.get("trace"):
        for name, more in (("kernels", trace),) + ((("snapshot", snapshot),) if run.gpu else ()):
            try:
                found[name] = more(run, base)
            except Exception as error:  # the measurement above is worth keeping without them
                found[name + "_failed"] = str(error)[:300]
        write(base + ".json", dict(case, **found))


def out_of_memory(error):
    return "out of memory" in str(error)


def attempt(case, device, args):
    """The largest batch of a halving series that fits; a fault is a result, too."""
    base = os.path.join(args.out, case["name"])
    batch, tried = case["batch"], []
    while True:
        why = None
        try:
            measured(case, device, batch, args)
            return
        except (RuntimeError, ValueError, AssertionError, AttributeError, TypeError, NotImplementedError, ImportError) as error:
            traceback.print_exc()
            why = str(error).strip().split("\n")[0][:300] or type(error).__name__
            again = out_of_memory(error) and batch > 1
        if not again:
            write(base + ".json", dict(case, batch=batch, tried=tried, failed=why))
            if device.type == "cuda":
                torch.cuda.synchronize()  # a fault that the device keeps ends this process here; the next goes on
            return
        tried.append(batch)
        batch //= 2
        torch.cuda.empty_cache()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--cases", required=True, help="JSON file: the list of cases")
    p.add_argument("--out", required=True)
    p.add_argument("--until", type=float, required=True, help="time [s since 1970] after which no case begins")
    p.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--warmup", type=int, default=5)
    args = p.parse_args()
    device = torch.device(args.device)
    with open(args.cases, encoding="utf-8") as f:
        cases = json.load(f)
    for case in cases:
        base = os.path.join(args.out, case["name"])
        if os.path.exists(base + ".json"):
            continue
        if os.path.exists(base + ".began"):
            write(base + ".json", dict(case, failed="the process ended during this case"))
            continue
        if time.time() > args.until:
            break
        open(base + ".began", "w").close()
        print(case["name"], flush=True)
        attempt(case, device, args)
        if hasattr(torch, "_dynamo"):
            torch._dynamo.reset()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What the measurements of checkpoints share: networks, the clock, the rows of a table.

A case writes one checkpoint several times into an empty folder; its time is the median, its size the sum of the files of the last one.
Nothing asks the disk to sync during a write but the format itself, as in training: what is measured is what the training program waits for. Before each
write the disk has what was written before (sync): training writes its checkpoints minutes apart, so that none meets the dirty pages of the last one, nor tensors
of some MB that are still in a cache. A guest of a hypervisor gives back memory that is free for two seconds, and pays about a millisecond for each MB that it then
uses again: writes of hundreds of MB take once or twice the time, as it happens.

How often: until the 95 % interval of the median (order statistics, no assumption about the distribution) is within PRECISION of it, at least `repeats`
and at most MOST times; PATIENCE_S of writing end a case in any case. The first write of a case, cold (imports, first allocation, page cache), has a column of its own.
"""
import csv
import json
import math
import os
import shutil
import time

WARM_UP = 2  # the first ones import, allocate and make room in the page cache
COLUMNS = ["platform", "version", "format", "state", "optimizer", "ranks", "cores", "layers", "tensors", "elements", "files", "bytes", "write_s",
           "low_s", "high_s", "blocking_s", "repeats", "median_low_s", "median_high_s", "first_s"]
PRECISION = 0.05  # asked of the median, each way
MOST = int(os.environ.get("CHECKPOINT_MOST", "15"))
PATIENCE_S = 5
# Of the probe: few tensors beyond a core's cache, more that fit in it, many small ones, one; (tensors, elements of each).
PROBES = {"probe-large": (8, 4 << 20), "probe-medium": (64, 1 << 16), "probe-many": (200, 64), "probe-one": (1, 64)}


def network(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def size_of(folder):
    """Bytes and number of the files below a folder."""
    found = [os.path.join(at, f) for at, _, files in os.walk(folder) for f in files]
    return sum(os.path.getsize(f) for f in found), len(found)


def middle(values, frac):
    values = sorted(values)
    return values[min(len(values) - 1, int(frac * len(values)))]


def interval(values):
    """95 % interval of the median: the largest rank k for which fewer than k of n values lie below the median with at most 2.5 % probability, from both ends.
    All values where n is too small for 95 %."""
    n, below, k = len(values), 0.0, 0
    while (below := below + math.comb(n, k) / 2 ** n) <= 0.025:
        k += 1
    values = sorted(values)
    return values[max(k - 1, 0)], values[n - 1 - max(k - 1, 0)]


def enough(times, repeats):
    low, high = interval(times)
    median = middle(times, 0.5)
    precise = len(times) >= 6 and max(median - low, high - median) <= PRECISION * median
    return len(times) >= repeats and precise or len(times) >= MOST or sum(times) >= PATIENCE_S


def timed(folder, save, repeats, barrier=lambda: None, first=True, agree=lambda done: done):
    """save(folder) writes; returns its times, the first of all first, and what each blocked for, without the WARM_UP. The folder is emptied before each.
    save may return what it blocked for. agree(done): whether the first rank has enough, on every rank."""
    times, blocked = [], []
    while True:
        if first:
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            os.sync()
        barrier()
        begin = time.perf_counter()
        blocking_s = save(folder)
        barrier()
        times.append(time.perf_counter() - begin)
        blocked.append(blocking_s if blocking_s is not None else times[-1])
        if agree(len(times) > WARM_UP and enough(times[WARM_UP:], repeats)):
            return times, blocked[WARM_UP:]
        time.sleep(0.02 + 0.5 * times[-1])


def row(out, facts, folder, times, blocked, in_memory=None):
    """in_memory: the bytes of what was made there; None: files in the folder."""
    size, files = size_of(folder) if in_memory is None else (in_memory, 0)
    first_s, times = times[0], times[WARM_UP:]
    low_s, high_s = interval(times)
    seconds = {"write_s": middle(times, 0.5), "low_s": min(times), "high_s": max(times), "blocking_s": middle(blocked, 0.5), "median_low_s": low_s,
               "median_high_s": high_s, "first_s": first_s}
    facts = dict(facts, cores=os.cpu_count(), bytes=size, files=files, repeats=len(times), **{k: "%.6f" % v for k, v in seconds.items()})
    new = not os.path.exists(out)
    with open(out, "a", newline="", encoding="utf-8") as f:
        writer = csv.DictWriter(f, COLUMNS)
        if new:
            writer.writeheader()
        writer.writerow(facts)


def raw_write(folder, sync=False):
    """What the file system takes: one file, written in one call."""
    with open(os.path.join(folder, "raw"), "wb", buffering=0) as f:
        f.write(RAW)
        if sync:
            os.fsync(f.fileno())


RAW = bytes(128 << 20)

"""What the measurements of checkpoints share: networks, the clock, the rows of a table.

A case writes one checkpoint several times into an empty folder; its time is the median, its size the sum of the files of the last one.
Nothing asks the disk to sync but the format itself, as in training: what is measured is what the training program waits for.
"""
import csv
import json
import os
import shutil
import time

WARM_UP = 2  # the first ones import, allocate and make room in the page cache
COLUMNS = ["platform", "version", "format", "state", "optimizer", "ranks", "cores", "layers", "tensors", "elements", "files", "bytes", "write_s",
           "low_s", "high_s", "blocking_s", "repeats"]
# Of the probe: few tensors beyond a core's cache, more that fit in it, many small ones, one; (tensors, elements of each). Many is not more than that: on a
# machine that limits bursts of its cores, 0.1 s of work takes 0.1 or 0.2 s.
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


def timed(folder, save, repeats, barrier=lambda: None, first=True):
    """save(folder) writes; returns its times. The folder is emptied before each. save may return what it blocked for."""
    times, blocked = [], []
    for _ in range(repeats + WARM_UP):
        if first:
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        barrier()
        begin = time.perf_counter()
        blocking_s = save(folder)
        barrier()
        times.append(time.perf_counter() - begin)
        blocked.append(blocking_s if blocking_s is not None else times[-1])
        time.sleep(0.1 + times[-1])  # dirty pages go to disk, and a machine that limits bursts of its cores recovers
    return times[WARM_UP:], blocked[WARM_UP:]


def row(out, facts, folder, times, blocked):
    size, files = size_of(folder)
    facts = dict(facts, cores=os.cpu_count(), bytes=size, files=files, write_s="%.6f" % middle(times, 0.5), low_s="%.6f" % min(times), high_s="%.6f" % max(times),
                 blocking_s="%.6f" % middle(blocked, 0.5), repeats=len(times))
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

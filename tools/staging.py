#!/usr/bin/env python3
"""Prints what a message from and to device memory takes more than one of host memory under an MPI that stages it: STAGING_S of
model/network/path_host.c. The same recursive doublings (below 4 KiB, lg(ranks) steps) on buffers of both kinds:
(time on device buffers - time on host buffers) / steps, in microseconds, by ranks and over all.
usage: staging.py data/collectives/*.csv"""
import collections, csv, math, statistics, sys

times = collections.defaultdict(dict)
for path in sys.argv[1:]:
    for row in csv.DictReader(open(path)):
        if row["collective"] != "all_reduce" or "OSU" not in row["library"] or not row.get("buffers") or float(row["size_bytes"] or 4096) >= 4096: continue
        times[row["source"], row["system"], int(row["ranks"]), row["size_bytes"]].setdefault(row["buffers"], []).append(float(row["time_us"]))
steps = collections.defaultdict(list)
for (source, system, ranks, _), of in times.items():
    if "host" in of and "device" in of:
        steps[system, ranks].append((statistics.median(of["device"]) - statistics.median(of["host"])) / math.ceil(math.log2(ranks)))
for (system, ranks), all_us in sorted(steps.items()):
    print("%s, %d ranks: %.1f us (%d sizes)" % (system, ranks, statistics.median(all_us), len(all_us)))
print("all: %.1f us" % statistics.median(x for all_us in steps.values() for x in all_us))

#!/usr/bin/env python3
"""Time and choice of NCCL's collectives by the cost tables of its own tuner.

Written from src/graph/tuning.cc as published with each release (key nccl-tuning of data/SOURCES.md), apart from
model/network/libraries: tests/unit/test_oracle_nccl.c compares both on the random vectors of nccl_tuning.csv.

  nccl_tuning.py          print the vectors
  nccl_tuning.py --check  compare nccl_tuning.csv with them

Not here, because they depend on what NCCL's topology search finds: bandwidths of NVLS and CollNet. Broadcast and
reduce: bandwidth alone, since NCCL counts one hop where the ranks of a ring forward a message one after the other.
"""
import math
import os
import random
import sys

TREE, RING = 0, 1
LL, LL128, SIMPLE = 0, 1, 2
ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE = "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"
VOLTA, AMPERE, HOPPER, BLACKWELL = range(4)
ABSENT = float("nan")

# Microseconds: LL, LL128, Simple.
PCI_TREE_28, PCI_RING = (1.0, 1.9, 28.0), (1.0, 2.5, 5.7)
RELEASES = {
    "2.7.8": dict(base=((4.4, 4.4, 0.0), (3.6, 10.0, 8.4)), nvlink=((0.52, 1.2, 28.0), (0.47, 1.9, 3.4)),
                  pci=(PCI_TREE_28, PCI_RING), net=((5.0, 8.5, 50.0), (2.7, 4.0, 9.6))),
    "2.12.7": dict(base=((4.4, 4.4, 0.0), (3.6, 10.0, 8.4)), nvlink=((0.52, 1.25, 28.0), (0.47, 1.9, 3.4)),
                   pci=(PCI_TREE_28, PCI_RING), net=((5.0, 8.5, 28.0), (2.7, 4.0, 28.0))),
    "2.18.3": dict(base=((6.8, 14.0, 0.0), (6.6, 14.0, 8.4)), nvlink=((0.6, 1.25, 4.0), (0.6, 1.9, 3.4)),
                   pci=((1.0, 1.9, 6.0), PCI_RING), net=((5.0, 8.5, 14.0), (2.7, 4.0, 14.0))),
    "2.20.5": dict(base=((6.8, 14.0, 0.0), (6.6, 14.0, 8.4)), nvlink=((0.6, 1.25, 28.0), (0.6, 1.9, 3.4)),
                   pci=(PCI_TREE_28, PCI_RING), net=((5.0, 8.5, 28.0), (2.7, 4.0, 14.0))),
    "2.28.3": dict(base=((6.8, 14.0, 8.4), (6.6, 14.0, 8.4)), nvlink=((0.6, 1.25, 4.0), (0.6, 1.9, 3.4)),
                   pci=((1.0, 1.9, 4.0), PCI_RING), net=((5.0, 8.5, 14.0), (2.7, 4.0, 14.0))),
}
ORDER = list(RELEASES)
NEWEST = {VOLTA: "2.28.3", AMPERE: "2.28.3", HOPPER: "2.28.3", BLACKWELL: "2.28.3"}
OLDEST = {VOLTA: "2.7.8", AMPERE: "2.7.8", HOPPER: "2.18.3", BLACKWELL: "2.28.3"}

# GB/s; columns: one node, two, more.
LL_MAX = [(39.0, 39.0, 20.4), (87.7, 22.5, 19.0), (87.7, 22.5, 19.0)]
LL_MAX_2_28 = [(39.0, 39.0, 20.4), (87.7, 22.5, 19.0), (141.0, 45.0, 35.0), (282.0, 90.0, 70.0)]
RING_LL128 = [20.0, 20.0, 36.7, 73.4]
TREE_LL128 = [(20.0,) * 3, (20.0,) * 3, (36.7, 36.7, 29.0), (55.6, 31.67, 20.0)]
TREE_SIMPLE = [(26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (38.7, 41.4, 36.0), (70.0, 42.8, 24.0)]
LL128_2_7 = {BROADCAST: 18.8, REDUCE: 12.0, ALL_GATHER: 18.3, REDUCE_SCATTER: 15.2, ALL_REDUCE: 16.7}

CORRECTION_2_7 = (
    (1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1),
    (1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, 1),
    (.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9))
CORRECTION = (
    (1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1),
    (1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1),
    (.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9))


def at_least(v, release):
    return ORDER.index(v["release"]) >= ORDER.index(release)


def steps(v):
    n = v["nodes"] * v["per_node"]
    return {ALL_REDUCE: 2 * (n - 1), ALL_GATHER: n - 1, REDUCE_SCATTER: n - 1}.get(v["op"], n)


def between_steps(v):
    nodes, op = v["nodes"], v["op"]
    if nodes == 1:
        return 0
    if op == ALL_REDUCE:
        return 2 * nodes if at_least(v, "2.12.7") and not at_least(v, "2.28.3") else 2 * (nodes - 1)
    return nodes - 1


def bandwidth(v, algorithm, protocol):
    """GB/s of the message: the bus bandwidth times the share of a byte that crosses it."""
    span, several, op, channels = min(v["nodes"], 3) - 1, v["nodes"] > 1, v["op"], v["channels"]
    old, ampere = v["release"] == "2.7.8", v["generation"] == AMPERE
    if algorithm == TREE and op != ALL_REDUCE:
        return 0.0
    if protocol == LL128 and not v["ll128"]:
        return 0.0
    bus = channels * (v["tree_gbs"] if algorithm == TREE else v["ring_gbs"])
    if ampere and not at_least(v, "2.18.3"):
        bus = min(bus, 235.0)
    caps = LL_MAX_2_28 if at_least(v, "2.28.3") else LL_MAX
    ll_cap = math.inf if old else caps[(1 if v["amd"] else 0) if several else v["generation"]][span]
    if algorithm == RING:
        if protocol == LL:
            third = not several and op not in (ALL_REDUCE, REDUCE)
            bus = min(ll_cap, bus * (0.5 if at_least(v, "2.28.3") else 1 / 3 if third else 1 / 4))
        if protocol == LL128:
            share = 0.7 if v["per_node"] < 2 and not at_least(v, "2.28.3") else 0.92
            bus = min(bus * share, channels * (LL128_2_7[op] if old else RING_LL128[v["generation"]]))
        return bus * v["nodes"] * v["per_node"] / steps(v)
    if old:
        tuned = ampere and protocol == LL128
        bus = min(bus * 0.9, (105.0 if tuned else 80.0) if v["nodes"] > 2 else (130.0 if tuned else 110.0))
    else:
        bus = min(bus * 0.92, channels * TREE_SIMPLE[v["generation"]][span])
    if protocol == LL:
        bus = min(bus / 3.8, ll_cap)
    if protocol == LL128:
        share = 7 / 9 if not several else 0.915 if old else 120 / 128
        cap = LL128_2_7[op] * 7 / 9 if old else TREE_LL128[v["generation"]][span]
        bus = min(bus * share, channels * cap)
    return bus / 2


def latency_us(v, algorithm, protocol):
    table, nodes, per_node = RELEASES[v["release"]], v["nodes"], v["per_node"]
    inside = (table["nvlink"] if v["nvlink"] else table["pci"])[algorithm][protocol]
    if nodes > 1 and protocol == LL and not at_least(v, "2.18.3"):
        inside *= 1.8
    alone = per_node == 1 and at_least(v, "2.28.3")
    between = table["net"][TREE if alone else algorithm][protocol] + v["adapter_us"] * (2 if protocol == SIMPLE else 1)
    base = table["base"][algorithm][protocol]
    if algorithm == TREE:
        return base + 2 * ((per_node - 1) * inside + int(math.log2(nodes)) * between)
    if nodes > 1 and at_least(v, "2.18.3"):
        overhead = (2.0 if v["amd"] else 1.0) * (3 if protocol == SIMPLE else 1)
        inside = max(inside, overhead)
    return base + (steps(v) - between_steps(v)) * inside + between_steps(v) * between


def time_us(v, algorithm, protocol):
    """NaN: this algorithm and protocol cannot serve the operation."""
    rate, size = bandwidth(v, algorithm, protocol), v["bytes"]
    if rate == 0:
        return ABSENT
    late = latency_us(v, algorithm, protocol)
    table = CORRECTION_2_7 if v["release"] == "2.7.8" else CORRECTION
    bin_of = int(math.log2(size >> 6))
    if algorithm == TREE and bin_of < len(table[0]):
        rate *= table[protocol][bin_of]
    if algorithm == RING and protocol == SIMPLE and v["nodes"] > 1 and v["op"] == ALL_REDUCE:
        ranks = v["nodes"] * v["per_node"]
        if at_least(v, "2.18.3"):
            late *= (1.9 if v["generation"] == VOLTA else 1.4) if size // (v["channels"] * ranks) >= 64 else 1
        elif size >= ranks / 16 * 65536:
            late *= 1.9
    return late + size / (1000 * rate)


def random_vector(rng):
    generation = rng.randrange(4)
    names = ORDER[ORDER.index(OLDEST[generation]):ORDER.index(NEWEST[generation]) + 1]
    nodes = rng.choice([1, 1, 2, 3, 4, 7, 8, 16, 33, 64])
    per_node = rng.choice([1, 2, 4, 8, 8]) if nodes > 1 else rng.choice([2, 3, 4, 8])
    v = dict(release=rng.choice(names), generation=generation, nodes=nodes, per_node=per_node,
             channels=rng.choice([1, 2, 4, 6, 12, 16, 24]), ring_gbs=round(math.exp(rng.uniform(1.0, 4.0)), 2),
             nvlink=int(rng.random() < 0.7), amd=int(rng.random() < 0.4), ll128=int(rng.random() < 0.7),
             op=rng.choice([ALL_REDUCE, ALL_REDUCE, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE]),
             bytes=int(64 * 2 ** rng.uniform(0, 25)))
    v["tree_gbs"] = round(v["ring_gbs"] * rng.choice([1, 1, 2]), 2)
    # Before 2.14 the latency of the adapter takes the place of the table's, where a plug-in states one.
    v["adapter_us"] = rng.choice([0.0, 0.0, 1.5, 10.0]) if at_least(v, "2.18.3") and nodes > 1 else 0.0
    return v


COLUMNS = ("release generation nodes per_node channels ring_gbs tree_gbs nvlink amd ll128 adapter_us op bytes").split()


def lines():
    rng = random.Random(20261123)
    yield ",".join(COLUMNS + [f"{a}_{p}" for a in ("tree", "ring") for p in ("ll", "ll128", "simple")]) + ",chosen"
    for _ in range(300):
        v = random_vector(rng)
        if v["op"] in (BROADCAST, REDUCE):
            values = [bandwidth(v, RING, p) or ABSENT for p in range(3)]
            cells = ["nan"] * 3 + [f"{x:.6g}" for x in values] + ["bandwidth"]
        else:
            times = {(a, p): time_us(v, a, p) for a in (TREE, RING) for p in range(3)}
            best = min((k for k in times if not math.isnan(times[k])), key=lambda k: times[k])
            cells = [f"{times[a, p]:.7g}" for a in (TREE, RING) for p in range(3)]
            cells.append(("tree", "ring")[best[0]] + "-" + ("LL", "LL128", "Simple")[best[1]])
        yield ",".join([str(v[c]) for c in COLUMNS] + cells)


def main():
    text = "\n".join(lines()) + "\n"
    if "--check" not in sys.argv:
        sys.stdout.write(text)
        return 0
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "nccl_tuning.csv"), encoding="ascii") as f:
        return 0 if f.read() == text else 1


if __name__ == "__main__":
    sys.exit(main())

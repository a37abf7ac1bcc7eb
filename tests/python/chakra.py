"""chakra.py TRACE.et EXPLAINED.json - reads a trace of Chakra by its published schema and compares it with the terms of explain.
chakra.py RANK.0.et RANK.1.et ... - runs the traces of a pipeline's stages, which end when they say."""
import json
import sys

COLLECTIVES = {"all_reduce": 0, "reduce": 1, "all_gather": 2, "gather": 3, "scatter": 4, "broadcast": 5, "all_to_all": 6,
               "reduce_scatter": 7}


def check(name, holds, more=""):
    print("ok " + name if holds else f"not ok {name}\n  {str(more)[:300]}")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Field numbers and values of a message."""
    at, found = 0, []
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
            assert at <= len(data)
        else:
            assert tag & 7 == 0, "no other wire type is written"
        found.append((tag >> 3, value))
    return found


def attribute(data):
    parts = dict(fields(data))
    name = parts.pop(1).decode()
    assert len(parts) == 1
    return name, next(iter(parts.items()))


def nodes(data):
    at, messages = 0, []
    while at < len(data):
        length, at = varint(data, at)
        messages.append(fields(data[at:at + length]))
        at += length
    assert at == len(data)
    assert [number for number, _ in messages[0]] == [1], "the first message has the version alone"
    for message in messages[1:]:
        one = dict(message)
        yield {"id": one[1], "name": one[2].decode(), "type": one[3], "after": [value for number, value in message if number == 5],
               "start": one.get(6, 0), "duration": one[7], **dict(attribute(value) for number, value in message if number == 10)}


SEND, RECEIVE = 5, 6


def run(ranks):
    """The end of each node where all start once what they depend on is there."""
    ends, waiting = {}, [(rank, n) for rank, trace in enumerate(ranks) for n in trace]
    message = {(n["comm_src"], n["comm_dst"], n["comm_tag"]): (rank, n["id"])
               for rank, n in waiting if n["type"] == SEND}
    while waiting:
        left = []
        for rank, n in waiting:
            needed = [(rank, other) for other in n["after"]]
            sent = message[n["comm_src"], n["comm_dst"], n["comm_tag"]] if n["type"] == RECEIVE else None
            if any(other not in ends for other in needed + ([sent] if sent else [])):
                left.append((rank, n))
                continue
            ready = max((ends[other] for other in needed), default=0)
            ends[rank, n["id"]] = max(ready, ends[sent]) if sent else ready + n["duration"]
        if len(left) == len(waiting):
            return None
        waiting = left
    return ends


if sys.argv[2].endswith(".et"):
    ranks = []
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            ranks.append(list(nodes(file.read())))
    sides = {kind: sorted((n["comm_src"][1], n["comm_dst"][1], n["comm_tag"][1], n["comm_size"][1]) for trace in ranks for n in trace
                          if n["type"] == kind) for kind in (SEND, RECEIVE)}
    check("chakra: each message between stages has its sender and its receiver", sides[SEND] == sides[RECEIVE] and
          len(set(sides[SEND])) == len(sides[SEND]) > 0, sides)
    check("chakra: a rank sends as itself", all(n["comm_src" if n["type"] == SEND else "comm_dst"] == (7, rank)
                                                 for rank, trace in enumerate(ranks) for n in trace if n["type"] in (SEND, RECEIVE)))
    ends = run(ranks)
    last, said = max(ends.values()) if ends else 0, max(n["start"] + n["duration"] for trace in ranks for n in trace)
    check("chakra: stages that wait for each other end when the trace says", 0.99 * said < last < 1.001 * said, (last, said))
    sys.exit()
with open(sys.argv[1], "rb") as file:
    trace = list(nodes(file.read()))
with open(sys.argv[2], encoding="utf-8") as file:
    terms = [t for t in json.load(file)["terms"] if t["start_s"] is not None]
by_name = {t["term"]: t for t in terms}
check("chakra: a node for each term on the timeline", len(trace) == len(terms) and {n["name"] for n in trace} == set(by_name),
      (len(trace), len(terms)))
check("chakra: numbers count from 1", [n["id"] for n in trace] == list(range(1, len(trace) + 1)))
check("chakra: times", all(n["duration"] == max(1, round(1e6 * by_name[n["name"]]["value_s"])) and
                           abs(n["start"] - 1e6 * by_name[n["name"]]["start_s"]) <= 0.51 for n in trace))
messages = [n for n in trace if n["type"] == 7]
check("chakra: collectives", messages and all(
    n["comm_type"] == (9, COLLECTIVES[n["name"].split()[0]]) and
    abs(n["comm_size"][1] / 1e6 - float(by_name[n["name"]]["inputs"].split("S=")[1].split()[0])) <= 1e-3 * n["comm_size"][1] / 1e6
    for n in messages), messages)
compute = [n for n in trace if n["type"] == 4 and n["is_cpu_op"] == (27, 0)]
check("chakra: operations and bytes", compute and all(
    abs(n["num_ops"][1] / 1e9 - float(by_name[n["name"]]["inputs"].split(" GFLOP")[0])) <= 0.005 * n["num_ops"][1] / 1e9 + 1e-9 and
    n["tensor_size"][0] == 13 for n in compute), compute[:2])
ends = {n["id"]: by_name[n["name"]]["start_s"] + by_name[n["name"]]["value_s"] for n in trace}
check("chakra: nothing starts before what it depends on has ended", all(
    ends[other] <= by_name[n["name"]]["start_s"] + 2e-9 or
    (ends[other] > by_name[n["name"]]["start_s"] and n["type"] == 7) for n in trace for other in n["after"]))
check("chakra: dependencies are earlier nodes", all(other < n["id"] for n in trace for other in n["after"]))
check("chakra: the first all-reduce waits for a backward pass", any(
    "backward" in trace[other - 1]["name"] for other in messages[0]["after"]), messages[0])

"""soak.py - a long, mixed load of good, wrong, broken and vanishing requests, and the memory of the service's processes under it.

    DLMODEL=./dlmodel python3 tests/serve/soak.py --minutes 60 [--requests-per-s 25] [--seed 1] [--reload-s 600] [--log soak.csv]

Prints what was sent and answered, and the memory of the front end and of the workers over time. Memory counts as flat when the
median of the last quarter is not more than 2 % (at least 128 KiB) above that of the second quarter: the first quarter fills caches.
An answer that does not come in 30 s is printed with the time and the load of the machine: others may have had the cores.
"""
import argparse
import collections
import contextlib
import csv
import json
import os
import random
import socket
import statistics
import sys
import tempfile
import threading
import time

os.environ.setdefault("DLMODEL", "./dlmodel")
os.environ.setdefault("SCRATCH", tempfile.mkdtemp(prefix="dlmodel-soak-"))
from service import SLOW, Service, check  # noqa: E402

FIXTURES = "tests/fixtures"
SAMPLE_S = 10


def read(path):
    with open(path, "rb") as f:
        return f.read()


class Catalog:
    """Names that the service has, and documents to send and to break."""

    def __init__(self, s):
        self.names = {k: [x["name"] for x in json.loads(s.ask("GET", "/v1/" + k)[2])] for k in ("systems", "workloads", "frameworks")}
        self.config = read(f"{FIXTURES}/config/llama.json")
        self.onnx = read(f"{FIXTURES}/onnx/resnet50.onnx")[:200000]
        self.runs = read("data/runs/keras_aws.csv")
        self.raw = [b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
                    b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"]

    def run(self, r):
        """A set-up; most are possible."""
        o = {"system": r.choice(self.names["systems"]), "workload": r.choice(self.names["workloads"]),
             "framework": r.choice(self.names["frameworks"]), "nodes": r.choice([1, 2, 4, 8, "1-16*2", [1, 3, 5]])}
        if r.random() < 0.3:
            o["batch_per_device"] = 2 ** r.randrange(9)
        if r.random() < 0.3:
            o["set"] = {"links.inter.bandwidth": f"{r.randrange(1, 100)}GB/s"}
        if r.random() < 0.2:
            o["precision"] = r.choice(["fp32", "mixed", "bf16", "fp8"])
        return o


def broken(r, data):
    """Bytes flipped, cut out, doubled or cut off."""
    data = bytearray(data)
    for _ in range(r.randrange(1, 6)):
        at, what = r.randrange(len(data)) if data else 0, r.randrange(4)
        if what == 0 and data:
            data[at] = r.randrange(256)
        elif what == 1:
            del data[at:at + r.randrange(1, 40)]
        elif what == 2:
            data[at:at] = data[at:at + r.randrange(1, 40)]
        elif r.random() < 0.3:
            del data[at:]
    return bytes(data)


def head(path, more, length=None, method="POST"):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", *more]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


JSON, BYTES, EVENTS = "Content-Type: application/json", "Content-Type: application/octet-stream", "Accept: text/event-stream"


def whole(path, body, *more):
    return head(path, more or (JSON,), len(body)) + body


# Each gives (bytes to send, seconds after which the client leaves, or None: it waits for the end of the answer).
def predict(c, r): return whole("/v1/predict", json.dumps(c.run(r)).encode()), None
def explain(c, r): return whole("/v1/explain", json.dumps({**c.run(r), "nodes": 2}).encode()), None
def wrong_json(c, r): return whole("/v1/predict", broken(r, json.dumps(c.run(r)).encode())), None
def wrong_option(c, r): return whole("/v1/predict", json.dumps({**c.run(r), r.choice(["output", "nods", "set", "files"]): r.choice([1, "x", None, {}])}).encode()), None
def compare(c, r): return whole("/v1/compare", json.dumps({"files": [{"name": "r.csv", "text": c.runs.decode()}]}).encode()), None
def wrong_table(c, r): return whole("/v1/compare", json.dumps({"files": [{"name": "r.csv", "text": broken(r, c.runs).decode("latin-1")}]}).encode()), None
def config(c, r): return whole("/v1/import/config?name=mine", c.config if r.random() < 0.3 else broken(r, c.config), BYTES), None
def onnx(c, r): return whole("/v1/import/onnx?name=net", broken(r, c.onnx), BYTES), None
def get(c, r): return head(r.choice(["/", "/page.js", "/page.css", "/healthz", "/metrics", "/v1/systems", "/v1/workloads", "/v1/schema/system",
                                     "/v1/openapi.json", "/v1/nothing", "/../etc/passwd", "/v1/schema/%00"]), (), method=r.choice(["GET", "HEAD"])), None
def form(c, r): return head(f"/form?system={r.choice(c.names['systems'])}&workload={r.choice(c.names['workloads'])}&nodes={r.choice([1, 2, '%3Cb%3E', '1e9'])}", (), method="GET"), None
def wrong_http(c, r): return broken(r, r.choice(c.raw)), 0.5
def pipelined(c, r): return r.choice(c.raw) * r.randrange(2, 12), 0.5
def chunked(c, r): return head("/v1/predict", (JSON, "Transfer-Encoding: chunked")) + b"".join(b"5\r\n     \r\n" for _ in range(r.randrange(200))) + b"2\r\n{}\r\n0\r\n\r\n", None
def large(c, r): return whole("/v1/predict", b"[" * r.randrange(1, 1 << 20)), None
def search(c, r): return whole("/v1/search", json.dumps({"system": "dgx-a100-80", "workload": "gpt2_xl", "nodes": 2, "global_batch": 64, "precision": "mixed"}).encode(), JSON, EVENTS), None
def cancelled(c, r): return whole("/v1/search", json.dumps(SLOW).encode(), JSON, EVENTS), r.uniform(0, 0.8)
def half(c, r):
    data = predict(c, r)[0]
    return data[:r.randrange(len(data))], r.uniform(0, 0.3)
def late(c, r): return predict(c, r)[0], 0  # leaves before the answer


MIX = {predict: 40, explain: 5, wrong_json: 12, wrong_option: 5, compare: 2, wrong_table: 2, config: 3, onnx: 3, get: 12, form: 4,
       wrong_http: 8, pipelined: 3, chunked: 3, large: 1, search: 0.5, cancelled: 1, half: 4, late: 4}


def send(port, r, data, leave_s):
    """The status class of the first answer, "closed" without one, or "left": the client did not wait longer; "silent": none in 30 s."""
    s, first = socket.socket(), b""
    with contextlib.closing(s):
        s.settimeout(30)
        s.bind((f"127.0.0.{r.randrange(2, 250)}", 0))
        try:
            s.connect(("127.0.0.1", port))
            s.sendall(data)
            s.settimeout(30 if leave_s is None else leave_s + 0.001)
            while part := s.recv(65536):
                first = first or part
        except TimeoutError:
            if not first:
                return "silent" if leave_s is None else "left"
        except OSError:
            return "closed"
    if first.startswith(b"HTTP/1.1 504"):
        return "too long"
    if first.startswith(b"HTTP/1.1 5"):
        print("  fault:", first.split(b"\r\n\r\n")[-1].decode(errors="replace")[:300].replace("\n", " "), "of", data[-300:], flush=True)
    return first[9:10].decode() + "xx" if first.startswith(b"HTTP/1.") else "closed"


def client(s, catalog, seed, gap_s, end_s, counts, lock):
    r = random.Random(seed)
    kinds, weights = list(MIX), list(MIX.values())
    while time.monotonic() < end_s:
        kind = r.choices(kinds, weights)[0]
        data, leave_s = kind(catalog, r)
        reply = send(s.port, r, data, leave_s)
        if reply == "silent":
            print(f"  no answer at {time.strftime('%T')}, load {os.getloadavg()[0]:.1f}, to", data[:2000], flush=True)
        with lock:
            counts[kind.__name__, reply] += 1
        time.sleep(r.expovariate(1 / gap_s))


def memory_of(pid):
    """(resident, private) KiB."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in f if line.rstrip().endswith(" kB")}
        return sizes["Rss"], sizes["Private_Dirty"] + sizes["Private_Clean"]
    return None


def children_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
        return [int(p) for p in f.read().split()]
    return []


def sample(s):
    """Front end, spawners and workers: (resident, private) of the first, largest private of the others; open descriptors."""
    spawners = children_of(s.process.pid)
    workers = [m for w in spawners for p in children_of(w) if (m := memory_of(p))]
    front = memory_of(s.process.pid)
    return (*front, max((m[1] for p in spawners if (m := memory_of(p))), default=0), max((m[1] for m in workers), default=0), len(workers),
            len(os.listdir(f"/proc/{s.process.pid}/fd")))


COLUMNS = ["elapsed_s", "front_rss_kib", "front_private_kib", "spawner_private_kib", "worker_private_kib_max", "workers", "front_descriptors"]


def watch(s, end_s, reload_each_s, log, rows):
    began, reload_s = time.monotonic(), time.monotonic() + reload_each_s
    while time.monotonic() < end_s and s.process.poll() is None:
        rows.append((round(time.monotonic() - began), *sample(s)))
        log.writerow(rows[-1])
        if time.monotonic() > reload_s:
            reload_s += reload_each_s
            s.process.send_signal(1)  # SIGHUP: data read again, new workers
        time.sleep(SAMPLE_S)


def quarter(rows, column, which):
    at = COLUMNS.index(column)
    n = len(rows)
    return statistics.median(row[at] for row in rows[which * n // 4:(which + 1) * n // 4])


def report(rows, counts):
    for kind in MIX:
        reply = {t: n for (k, t), n in sorted(counts.items()) if k == kind.__name__}
        print(f"  {kind.__name__:14s}", ", ".join(f"{n} {t}" for t, n in reply.items()))
    print(f"  {sum(counts.values())} requests in {rows[-1][0]} s; samples at the start, then medians of quarters (KiB):")
    for name in COLUMNS[1:]:
        print(f"  {name:24s} {rows[0][COLUMNS.index(name)]:7d} |", *(f"{quarter(rows, name, q):9.0f}" for q in range(4)))
    for name in ("front_rss_kib", "worker_private_kib_max"):  # pages that a new spawner shares do not count as private
        before, after = quarter(rows, name, 1), quarter(rows, name, 3)
        check(f"soak: {name} is flat", after - before <= max(128, 0.02 * before), (before, after))
    check("soak: no answer is late", not any(t == "silent" for _, t in counts), counts)
    check("soak: no fault of a worker", not any(t == "5xx" for _, t in counts), counts)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--minutes", type=float, default=60)
    p.add_argument("--requests-per-s", type=float, default=25)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--reload-s", type=float, default=600, help="seconds between signals to read the data again")
    p.add_argument("--log", default=os.path.join(os.environ["SCRATCH"], "soak.csv"))
    given = p.parse_args()
    rows, counts, lock, clients = [], collections.Counter(), threading.Lock(), 8
    with Service("--workers", "2", "--searches", "2", rate="200") as s, open(given.log, "w", encoding="utf-8", buffering=1) as f:
        catalog, end_s = Catalog(s), time.monotonic() + 60 * given.minutes
        log = csv.writer(f)
        log.writerow(COLUMNS)
        threads = [threading.Thread(target=client, args=(s, catalog, given.seed * 100 + i, clients / given.requests_per_s, end_s, counts, lock))
                   for i in range(clients)]
        for t in threads:
            t.start()
        watch(s, end_s, given.reload_s, log, rows)
        for t in threads:
            t.join()
        check("soak: it still answers", s.process.poll() is None and s.ask("POST", "/v1/predict", {})[0] == 200)
    report(rows, counts)
    sys.stdout.flush()


main()

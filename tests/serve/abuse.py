"""abuse.py - clients that mean no good, or cannot do better: broken requests, slow ones, many, vanishing ones; access; signals."""
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time

from service import JSON, RUN, SCRATCH, SLOW, Service, check, until

LONG = os.environ.get("SERVE_PART") == "long"



def first_line(got):
    return got.split(b"\r\n")[0]


def malformed(s):
    start = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    body = json.dumps(RUN).encode()
    cases = {
        "no request": b"\r\n\r\n",
        "garbage": os.urandom(4000),
        "no Host": b"GET /healthz HTTP/1.1\r\n\r\n",
        "another Host": b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "an unknown method": b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a NUL in the path": b"GET /\0/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a path of a megabyte": b"GET /" + b"a" * 1000000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "ten thousand headers": b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 10000 + b"\r\n",
        "a header of a megabyte": b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"b" * 1000000 + b"\r\n\r\n",
        "a negative length": start + b"Content-Length: -5\r\n\r\n" + body,
        "a length that is none": start + b"Content-Length: ten\r\n\r\n" + body,
        "a length beyond all": start + b"Content-Length: 99999999999999999999\r\n\r\n" + body,
        "two lengths": start + b"Content-Length: 5\r\nContent-Length: 500\r\n\r\n" + body,
        "a length and chunks": start + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "a chunk of minus one": start + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n0\r\n\r\n",
        "a chunk of 2^64": start + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc\r\n0\r\n\r\n",
        "a body that ends early": start + b"Content-Length: 5000\r\n\r\n" + body,
        "an old protocol": b"GET /\r\n\r\n",
        "a folded header": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c: d\r\n\r\n",
    }
    for name, data in cases.items():
        got = first_line(s.raw(data))
        harmless = name in ("a folded header", "a NUL in the path")  # a GET of what they name before it
        check(f"{name}: refused or closed", harmless or not got.startswith(b"HTTP/1.1 200"), got)
    check("answers after all that", s.ask("POST", "/v1/predict", RUN)[0] == 200)
    both = (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
    check("pipelined requests", s.raw(both).count(b"HTTP/1.1 200") == 20)


def smuggling(s):
    """Heads that a proxy before the service might read otherwise: refused, and what follows on the connection is not answered."""
    start, chunks = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n", b"\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    get = b"GET /healthz HTTP/1.1\r\n"
    cases = {
        **{f"Transfer-Encoding{more.decode()!r}": start + b"Transfer-Encoding" + more + chunks for more in (
            b": xchunked", b" : chunked", b": \x0bchunked", b": chunked, identity", b": gzip, chunked", b": chunked\r\nTransfer-Encoding: identity",
            b": chunked\r\nContent-Length: 2")},
        **{f"Content-Length{more.decode()!r}": start + b"Content-Length" + more + b"\r\n\r\n{}" for more in (
            b": +2", b": 2, 2", b": 0x2", b": 2 2", b" : 2", b":", b": 2\r\nContent-Length: 2", b": 2\r\nContent-Length: 20")},
        **{f"a chunk of {size.decode()!r}": start + b"Transfer-Encoding: chunked\r\n\r\n" + size + b"\r\n{}\r\n0\r\n\r\n" for size in (b"0x2", b"+2", b" 2", b"-2", b"2x")},
        "a chunk longer than it says": start + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}X0\r\n\r\n",
        "five thousand trailers": start + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
        "a header in a header": get + b"Host: localhost\r\nA: b\nTransfer-Encoding: chunked\r\n\r\n",
        "a CR in a header": get + b"Host: localhost\r\nA: b\rC: d\r\n\r\n",
        "a header without a colon": get + b"Host: localhost\r\nAbc\r\n\r\n",
        "a header that begins with a blank": get + b" Host: localhost\r\n\r\n",
        "two Hosts": get + b"Host: localhost\r\nHost: localhost\r\n\r\n",
        "a Host with a user": get + b"Host: localhost:80@evil.example\r\n\r\n",
        "an absolute address": b"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "HTTP/2's preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "a later protocol": b"GET /healthz HTTP/9.1\r\nHost: localhost\r\n\r\n",
        "CONNECT": b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "TRACE": b"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a packed body": start + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    }
    for name, data in cases.items():
        got = s.raw(data + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", half=False)
        check(f"{name}: refused, the connection closed", got.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")) and b"HTTP/1.1 2" not in got, got[:300])
        if not got.partition(b"\r\n\r\n")[2].startswith(b"{"):  # libmicrohttpd's own text, where there is no request yet
            check(f"{name}: nothing of the request is in the library's answer", b"Content-Type: application/problem+json" not in got
                  and not any(word in got for word in (b"evil", b"localhost", b"xchunked", b"Abc", b"PRI")), got)
    for name, more in {"h2c": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n",
                       "a websocket": b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n",
                       "a range of a range": b"Range: bytes=0-5,0-5,0-5\r\n"}.items():
        got = s.raw(get + b"Host: localhost\r\n" + more + b"Connection: close\r\n\r\n")
        check(f"{name}: answered as if it had not been asked for", got.startswith(b"HTTP/1.1 200"), got[:300])
    for path in ("..%2f..%2fetc/passwd", "%252e%252e/etc/passwd", "%c0%ae%c0%ae/etc/passwd", "..\\..\\etc\\passwd", "/etc/passwd", "%00/etc/passwd"):
        for before in ("/", "/v1/schema/", "/v1/import/"):
            got = s.raw(f"GET {before}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode(), half=False)
            check(f"{before}{path}: nothing", got[9:12] in (b"404", b"405") or path.startswith("%00"), got[:200])
    for query in ("output=/tmp/x", "name=../../x", "name=/tmp/x", "data=/etc"):
        s.problem(f"import?{query}", 422, "POST", "/v1/import/config?" + query, b"{}", headers=JSON)


def fast_leavers(s):
    """Streams begun and left at once, answers never read, and more requests on one connection than anybody waits for."""
    left, before = 60, s.metric("dlmodel_cancelled_total")
    for _ in range(left):
        c = socket.create_connection(("127.0.0.1", s.port))
        body = json.dumps(SLOW).encode()
        c.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n"
                  b"Content-Length: %d\r\n\r\n" % len(body) + body)
        c.close()
    held = []
    for _ in range(20):
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        c.connect(("127.0.0.1", s.port))
        c.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(200):
                c.sendall(b"GET /v1/workloads HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        held.append(c)
    check("others are answered meanwhile", s.ask("POST", "/v1/predict", RUN)[0] == 200)
    for c in held:
        c.close()
    ended = until(lambda: s.metric("dlmodel_workers_busy") == 0 and s.metric("dlmodel_queued") == 0)
    check("streams that were left end", ended, (before, s.metric("dlmodel_cancelled_total"), s.metric("dlmodel_workers_busy"), s.metric("dlmodel_queued")))
    check("and searches are answered again", s.ask("POST", "/v1/search", {"system": "dgx-a100-80", "workload": "gpt2", "nodes": 1})[0] == 200)


def bombs(s):
    for name, body in {
        "JSON of 100,000 brackets": b"[" * 100000,
        "an object in an object": b'{"a":' * 50000 + b"1" + b"}" * 50000,
        "a key twice": b'{"nodes":1,"nodes":2}',
        "a number beyond all": b'{"nodes":1e999}',
        "a lone surrogate": b'{"system":"\\ud800"}',
        "bytes that are no UTF-8": b'{"system":"\xff\xfe"}',
        "a hundred thousand keys": b"{" + b",".join(b'"k%d":1' % i for i in range(100000)) + b"}",
        "a list of a million": b'{"set":[' + b'"a=1",' * 999999 + b'"a=1"]}',
        "nodes without end": b'{"nodes":"1-100000000"}',
        "a list of 200,000 nodes": b'{"nodes":[' + b",".join(b"%d" % i for i in range(1, 200001)) + b"]}",
        "layers without end": b'{"workload":"gpt:layers=1000000000,hidden=12288,heads=96,seq=2048,vocab=50000"}',
    }.items():
        status = s.ask("POST", "/v1/predict", body, JSON)[0]
        check(name + ": refused", status in (400, 413, 422), status)
    got = s.raw(b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 40000000\r\n\r\n")
    check("a body beyond the limit", b" 413 " in first_line(got), got)
    got = s.raw(b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                + (b"100000\r\n" + b"x" * 0x100000 + b"\r\n") * 40)
    check("a body that never says how long it is", b" 200 " not in first_line(got), got[:200])
    check("answers after the bombs", s.ask("POST", "/v1/predict", RUN)[0] == 200)


def slow_clients():
    with Service("--connections", "300", "--connections-per-client", "200") as s:
        slow = []
        for _ in range(250):
            c = socket.socket()
            c.bind(("127.0.0.2", 0))
            with contextlib.suppress(OSError):
                c.connect(("127.0.0.1", s.port))
                c.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: ")
                slow.append(c)
        begin, served = time.monotonic(), 0
        for _ in range(20):
            served += s.ask("POST", "/v1/predict", RUN)[0] == 200
            for c in slow:
                with contextlib.suppress(OSError):
                    c.sendall(b"b")
            time.sleep(0.7)
        check("250 slow clients: others are served", served == 20, served)
        closed = 0
        for c in slow:
            c.settimeout(0.2)
            with contextlib.suppress(OSError):
                closed += c.recv(1) == b""
            c.close()
        check("slow clients are cut", s.metric("dlmodel_connections") is not None and time.monotonic() - begin > 10 and closed > 150, closed)


def many_connections(s, most):
    held = []
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (most + 200, max(most + 200, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    for i in range(most):
        c = socket.socket()
        c.setblocking(False)
        with contextlib.suppress(OSError):
            c.bind(("127.0.0.%d" % (3 + i % 200), 0))
            c.connect_ex(("127.0.0.1", s.port))
        held.append(c)
    time.sleep(1)
    for c in held:
        c.close()

    def healthy():
        with contextlib.suppress(OSError):
            return s.ask("GET", "/healthz", timeout=5)[0] == 200
        return False
    check(f"{most} connections, then an answer", until(healthy))


def vanishing(s):
    before = s.metric("dlmodel_cancelled_total")
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=30)
    c.request("POST", "/v1/search", json.dumps(SLOW), {**JSON, "Accept": "text/event-stream"})
    answer = c.getresponse()
    check("a stream begins at once", answer.headers["Content-Type"] == "text/event-stream")
    c.sock.shutdown(socket.SHUT_RDWR)
    c.close()
    ended = until(lambda: s.metric("dlmodel_workers_busy") == 0 and s.metric("dlmodel_cancelled_total") == before + 1)
    check("a client that leaves ends its search", ended, (before, s.metric("dlmodel_cancelled_total")))


def workers_of(s):
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    spawners = [p for p, parent in pairs if parent == s.process.pid]
    return spawners, [p for p, parent in pairs if parent in spawners]


def sandbox(s):
    _, workers = workers_of(s)
    with open(f"/proc/{workers[0]}/status", encoding="utf-8") as f:
        text = f.read()
    check("workers cannot gain rights", "NoNewPrivs:\t1" in text, text)
    check("workers are under seccomp where the kernel has it", "Seccomp:\t2" in text or not os.path.exists("/proc/sys/kernel/seccomp"), text)


def killed_workers(s):
    for pid in workers_of(s)[1]:
        os.kill(pid, signal.SIGKILL)
    check("answers after all workers were killed", until(lambda: s.ask("POST", "/v1/predict", RUN)[0] == 200))
    check("they are counted", s.metric("dlmodel_workers_restarted_total") >= 1)


def killed_spawner(s):
    for pid in workers_of(s)[0]:
        os.kill(pid, signal.SIGKILL)
    check("answers after the process that makes workers was killed", until(lambda: s.ask("POST", "/v1/predict", RUN)[0] == 200))


def limits():
    with Service(rate="5") as s:
        got = [s.ask("GET", "/healthz") for _ in range(30)]
        refused = [h for status, h, _ in got if status == 429]
        check("too many requests: 429 with Retry-After", refused and all("Retry-After" in h for h in refused), [g[0] for g in got])
        check("another client is served", s.ask("GET", "/healthz", source="127.0.0.9")[0] == 200)
    with Service("--short", "0.3s") as s:
        for pid in workers_of(s)[1]:  # they take a request and never answer
            os.kill(pid, signal.SIGSTOP)
        s.problem("a request that takes too long", 504, "POST", "/v1/predict", RUN)
        check("answers after it", until(lambda: s.ask("POST", "/v1/predict", RUN)[0] == 200))


def access():
    path, token = os.path.join(SCRATCH, "tokens"), "a-token-of-this-test"
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"# for the test\n{token}\n")
    os.chmod(path, 0o600)
    with Service("--token-file", path) as s:
        s.problem("no token", 401, "POST", "/v1/predict", RUN)
        s.problem("a wrong token", 401, "POST", "/v1/predict", RUN, headers={"Authorization": "Bearer a-token-of-this-tess"})
        s.problem("half a token", 401, "POST", "/v1/predict", RUN, headers={"Authorization": "Bearer " + token[:8]})
        s.problem("an empty token", 401, "POST", "/v1/predict", RUN, headers={"Authorization": "Bearer "})
        check("the token", s.ask("POST", "/v1/predict", RUN, {"Authorization": "Bearer " + token})[0] == 200)
        check("the page and health are open", s.ask("GET", "/")[0] == 200 and s.ask("GET", "/healthz")[0] == 200)
        s.problem("metrics are not", 401, "GET", "/metrics")
        with open(path, "w", encoding="utf-8") as f:
            f.write("another-token-of-this-test\n")
        s.process.send_signal(signal.SIGHUP)
        until(lambda: s.ask("POST", "/v1/predict", RUN, {"Authorization": "Bearer " + token})[0] == 401)
        s.problem("SIGHUP forgets a token", 401, "POST", "/v1/predict", RUN, headers={"Authorization": "Bearer " + token})
        check("and reads the new one", s.ask("POST", "/v1/predict", RUN, {"Authorization": "Bearer another-token-of-this-test"})[0] == 200)
    with Service("--host", "dl.example.org") as s:
        check("a further name", s.ask("GET", "/healthz", headers={"Host": "dl.example.org"})[0] == 200)
        s.problem("no other name", 421, "GET", "/healthz", headers={"Host": "dl.example.com"})
        s.problem("a request of another site's page", 403, "POST", "/v1/predict", RUN, headers={"Sec-Fetch-Site": "cross-site"})
        own = f"127.0.0.1:{s.port}"
        for origin in ("https://evil.example", "null", f"http://{own}.evil.example", f"http://evil.example/{own}", f"https://evil.example:{s.port}", "file://"):
            s.problem(f"of a browser that says only its Origin: {origin.replace(str(s.port), 'PORT')}", 403, "POST", "/v1/predict", RUN,
                      headers={"Origin": origin})
        check("the service's own page in such a browser", s.ask("POST", "/v1/predict", RUN, {"Origin": f"http://{own}"})[0] == 200)


def stopping():
    with Service() as s:
        spawners, workers = workers_of(s)
        results = []
        thread = threading.Thread(target=lambda: results.append(s.ask("POST", "/v1/search", SLOW)[0]))
        thread.start()
        until(lambda: s.metric("dlmodel_workers_busy") == 1)
        s.process.send_signal(signal.SIGTERM)
        thread.join(120)
        code = s.process.wait(120)
        check("SIGTERM: exit status 0", code == 0, code)
        check("what ran was answered, or refused as stopping", results and results[0] in (200, 503, 504), results)
        gone = until(lambda: not any(os.path.exists(f"/proc/{p}/exe") for p in spawners + workers))
        check("no process is left", gone, spawners + workers)


def main():
    with Service() as s:
        malformed(s)
        smuggling(s)
        bombs(s)
        vanishing(s)
        fast_leavers(s)
        sandbox(s)
        killed_workers(s)
        killed_spawner(s)
        many_connections(s, 10000 if LONG else 1500)
    if LONG:
        slow_clients()
    limits()
    access()
    stopping()


main()

"""service.py - starts `dlmodel serve` for a test and talks to it; prints "ok NAME" and "not ok NAME" lines."""
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from free_port import free_port  # noqa: E402

DLMODEL = os.environ["DLMODEL"]
SCRATCH = os.environ["SCRATCH"]
JSON = {"Content-Type": "application/json"}
# a search of some seconds
SLOW = {"system": "dgx-h100", "workload": "deepseek_v3", "framework": "megatron-core", "max_devices": 40320, "nodes": 5040,
        "global_batch": 80640, "precision": "bf16", "top": 64}
RUN = {"system": "iris-v100", "workload": "resnet50", "framework": "pytorch-ddp", "nodes": 4}


def check(name, good, seen=""):
    """One result line; `seen` is shown when it is not as expected."""
    print(("ok " if good else "not ok ") + "serve: " + name, flush=True)
    if not good:
        print("  " + str(seen)[:600].replace("\n", "\n  "), flush=True)


def until(condition, most_s=120):
    """What `condition` gives once it is true; what it gave last when the time is up, which no busy machine needs."""
    end = time.monotonic() + most_s
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


class Service:
    """A running service; ended with the block that it is used in."""

    def __init__(self, *options, rate="0"):
        self.port = free_port()
        self.log = os.path.join(SCRATCH, f"serve-{self.port}.log")
        # The sanitizers' shadow takes terabytes of address space.
        memory = ["--memory", "0"] if os.environ.get("SANITIZED") else []
        # 10 s, the default, may be too short on a busy machine.
        short = [] if "--short" in options else ["--short", "60s"]
        self.words = [DLMODEL, "serve", "--listen", f"127.0.0.1:{self.port}", "--rate", rate, *short, *memory, *options]

    def __enter__(self):
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.words, stderr=log, stdin=subprocess.DEVNULL)
        for _ in range(2400):
            with contextlib.suppress(OSError):
                if self.ask("GET", "/healthz")[0] == 200:
                    return self
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise SystemExit("not ok serve: starts\n  " + self.said())

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(120)
        if self.process.poll() is None:
            self.process.kill()
            check("ends at SIGTERM", False, self.said())
        text = self.said()
        check("no sanitizer spoke", "Sanitizer" not in text and "runtime error" not in text, text[-600:])

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def ask(self, method, path, body=None, headers=None, source=None, timeout=60):
        """(status, headers, bytes) of one request on a connection of its own."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout,
                                       source_address=(source, 0) if source else None)
        try:
            if isinstance(body, (dict, list)):
                body, headers = json.dumps(body), {**JSON, **(headers or {})}
            c.request(method, path, body, headers or {})
            answer = c.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            c.close()

    def problem(self, name, status, *request, key=None, **more):
        """The request is refused with this status, as problem details."""
        got, headers, body = self.ask(*request, **more)
        good = got == status and headers.get("Content-Type") == "application/problem+json"
        try:
            reply = json.loads(body)
            good = good and reply["status"] == status and reply["detail"] and (key is None or reply.get("key") == key)
        except (ValueError, KeyError):
            good = False
        check(name, good, (got, body))

    def raw(self, data, wait=3, half=True):
        """Sends bytes as they are; all that comes back until the other end closes or is silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as s:
            got = b""
            try:
                s.sendall(data)
                if half:
                    s.shutdown(socket.SHUT_WR)
                while part := s.recv(65536):
                    got += part
            except OSError:
                pass
            return got

    def metric(self, name, headers=None):
        for line in self.ask("GET", "/metrics", headers=headers)[2].decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        return None


def command_line(*words):
    """What the program prints for the same."""
    return subprocess.run([DLMODEL, *words], capture_output=True, check=False).stdout

"""proxy.py - nginx and Caddy in front of the service, with TLS and the recipes of docs/serve.md as they stand there: the same answers,
tokens, streams that are not held back, and limits that see the client's address."""
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import time

from service import JSON, RUN, SCRATCH, SLOW, Service, check, free_port, until

HOST, TOKEN = "dlmodel.example.org", "a-token-of-this-test"
OPTIONS = ("--forwarded", "--host", HOST, "--connections-per-client", "0")


def recipe(title):
    """The block of docs/serve.md below this line."""
    with open("docs/serve.md", encoding="utf-8") as f:
        return re.search(re.escape(title) + r"[^\n]*\n\n```\n(.*?)```", f.read(), re.S).group(1)


def replaced(text, pairs):
    for old, new in pairs:
        check(f"the recipe has {old}", old in text, text)
        text = text.replace(old, new)
    return text


class Proxy:
    """A proxy with its recipe, in a folder of its own; ended with the block."""

    def __init__(self, name, service):
        self.name, self.service, self.port = name, service, free_port()
        self.folder = tempfile.mkdtemp(dir=SCRATCH, prefix=name)
        self.certificate, self.key = os.path.join(self.folder, "dlmodel.pem"), os.path.join(self.folder, "dlmodel.key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=" + HOST, "-addext",
                        "subjectAltName=DNS:" + HOST, "-keyout", self.key, "-out", self.certificate], check=True, capture_output=True)
        self.words = self.nginx() if name == "nginx" else self.caddy()

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def nginx(self):
        own = replaced(recipe("nginx:"), [("listen 443 ssl", f"listen 127.0.0.1:{self.port} ssl"), ("/etc/ssl/dlmodel.pem", self.certificate),
                                          ("/etc/ssl/dlmodel.key", self.key), ("127.0.0.1:8080", f"127.0.0.1:{self.service.port}")])
        folders = "".join(f"{kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        path = self.write("nginx.conf", f"daemon off;\nmaster_process off;\npid {self.folder}/pid;\nerror_log {self.folder}/log;\n"
                          f"events {{ }}\nhttp {{\naccess_log off;\n{folders}{own}}}\n")
        return [self.program(), "-p", self.folder, "-c", path, "-e", self.folder + "/log"]

    def caddy(self):
        own = replaced(recipe("Caddy"), [(HOST + " {", f"https://{HOST}:{self.port} {{\n    bind 127.0.0.1\n    tls {self.certificate} {self.key}"),
                                         ("127.0.0.1:8080", f"127.0.0.1:{self.service.port}")])
        return [self.program(), "run", "--adapter", "caddyfile", "--config", self.write("Caddyfile", "{\n    admin off\n    auto_https off\n}\n" + own)]

    def program(self):
        return shutil.which(self.name, path=os.environ.get("PATH", "") + ":/usr/sbin")

    def __enter__(self):
        own = {**os.environ, "HOME": self.folder, "XDG_DATA_HOME": self.folder, "XDG_CONFIG_HOME": self.folder}
        with open(os.path.join(self.folder, "said"), "wb") as said:
            self.process = subprocess.Popen(self.words, env=own, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        for _ in range(200):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        with open(os.path.join(self.folder, "said"), encoding="utf-8", errors="replace") as f:
            check(f"{self.name}: starts with the recipe", False, f.read())
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)

    def connect(self, source=None):
        context = ssl.create_default_context(cafile=self.certificate)
        plain = socket.create_connection(("127.0.0.1", self.port), 60, source_address=(source, 0) if source else None)
        c = http.client.HTTPConnection(HOST, self.port, timeout=60)
        c.sock = context.wrap_socket(plain, server_hostname=HOST)
        return c

    def refuses(self, body):
        """413, or the connection ends while the body is on its way."""
        try:
            return self.ask("POST", "/v1/predict", body, JSON)[0] in (413, 502)
        except OSError:
            return True

    def ask(self, method, path, body=None, headers=None, source=None):
        with contextlib.closing(self.connect(source)) as c:
            c.request(method, path, body, {"Authorization": "Bearer " + TOKEN, **(headers or {})})
            answer = c.getresponse()
            return answer.status, answer.headers, answer.read()


def streamed(p):
    """The first event of a search that takes long, whether the search still ran then, and its status; the client then cancels it."""
    with contextlib.closing(p.connect()) as c:
        c.request("POST", "/v1/search", json.dumps(SLOW), {**JSON, "Accept": "text/event-stream", "Authorization": "Bearer " + TOKEN})
        answer = c.getresponse()
        first = answer.readline()
        return answer.status, first, b"dlmodel_workers_busy 1" in p.ask("GET", "/metrics")[2]


def behind(name, tokens):
    if not shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin"):
        print(f"skip serve: proxy: no {name}")
        return
    with Service(*OPTIONS, "--token-file", tokens) as s, Proxy(name, s) as p:
        body, token = json.dumps(RUN), {"Authorization": "Bearer " + TOKEN, "Host": HOST}
        through = p.ask("POST", "/v1/predict", body, JSON)
        check(f"{name}: the same answer over TLS", through[2] == s.ask("POST", "/v1/predict", RUN, token)[2], through[2][:300])
        check(f"{name}: the page with its policy", "script-src 'self'" in p.ask("GET", "/")[1]["Content-Security-Policy"])
        check(f"{name}: a wrong token", p.ask("GET", "/v1/systems", headers={"Authorization": "Bearer no"})[0] == 401)
        status, first, running = streamed(p)
        check(f"{name}: events are not held back", status == 200 and first.startswith((b"event: progress", b": working")) and running, (status, first, running))
        ended = until(lambda: b"dlmodel_workers_busy 0" in p.ask("GET", "/metrics")[2])
        check(f"{name}: a client that leaves ends its search", ended and s.metric("dlmodel_cancelled_total", token) == 1)
        check(f"{name}: a body beyond the limit", p.refuses(b" " * (40 << 20)))
        check(f"{name}: answers after it", p.ask("POST", "/v1/predict", body, JSON)[0] == 200)
    with Service(*OPTIONS, rate="5") as s, Proxy(name, s) as p:
        got = [p.ask("GET", "/healthz", source="127.0.0.2")[0] for _ in range(25)]
        check(f"{name}: one client is limited", 429 in got, got)
        check(f"{name}: another is not", p.ask("GET", "/healthz", source="127.0.0.3")[0] == 200)
        forged = [p.ask("GET", "/healthz", headers={"X-Forwarded-For": f"10.0.0.{i}"}, source="127.0.0.2")[0] for i in range(25)]
        check(f"{name}: nor does a forged X-Forwarded-For help the first", 429 in forged, forged)


def main():
    tokens = os.path.join(SCRATCH, "proxy-tokens")
    with open(tokens, "w", encoding="utf-8") as f:
        f.write(TOKEN + "\n")
    os.chmod(tokens, 0o600)
    if not shutil.which("openssl"):
        print("skip serve: proxy: no openssl")
        return
    for name in ("nginx", "caddy"):
        behind(name, tokens)


main()

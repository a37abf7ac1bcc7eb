"""firefox.py - a headless Firefox with the methods of browser.py's Chromium, driven by WebDriver BiDi over its websocket: nothing but Firefox
and Python's standard library is needed."""
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time

from browser import Page
from service import free_port

KEYS = {"Tab": "\ue004", "ArrowRight": "\ue014", "Enter": "\ue007"}
SCHEME = "layout.css.prefers-color-scheme.content-override"
# nothing of Firefox's own goes to the network
PREFERENCES = {"ui.prefersReducedMotion": 0, "remote.active-protocols": 1,
               "app.update.enabled": False, "browser.shell.checkDefaultBrowser": False, "datareporting.policy.dataSubmissionEnabled": False,
               "toolkit.telemetry.reportingpolicy.firstRun": False, "network.captive-portal-service.enabled": False,
               "network.connectivity-service.enabled": False, "browser.aboutwelcome.enabled": False}


def program():
    """Firefox's path, None: there is none."""
    return next((p for p in map(shutil.which, ("firefox-esr", "firefox")) if p), None)


class Socket:
    """A websocket's text messages (RFC 6455), for a client."""

    def __init__(self, port, path, most_s=60):
        end = time.monotonic() + most_s
        while True:
            try:
                self.s = socket.create_connection(("127.0.0.1", port), timeout=60)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        key = base64.b64encode(os.urandom(16)).decode()
        self.s.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.f = self.s.makefile("rb")
        status = self.f.readline()
        if b" 101 " not in status:
            raise ConnectionError(status)
        while self.f.readline().strip():
            pass

    def send(self, text, opcode=1):
        data, mask = text.encode(), os.urandom(4)
        size = struct.pack("!B", 0x80 | len(data)) if len(data) < 126 else struct.pack("!BH", 0xFE, len(data)) if len(data) < 65536 else struct.pack("!BQ", 0xFF, len(data))
        masked = (int.from_bytes(data, "big") ^ int.from_bytes((mask * (len(data) // 4 + 1))[:len(data)], "big")).to_bytes(len(data), "big")
        self.s.sendall(bytes([0x80 | opcode]) + size + mask + masked)

    def receive(self):
        text = b""
        while True:
            first, size = self.f.read(2)
            if size == 126:
                size, = struct.unpack("!H", self.f.read(2))
            elif size == 127:
                size, = struct.unpack("!Q", self.f.read(8))
            part = self.f.read(size)
            if first & 15 == 8:
                raise ConnectionError("the browser closes the connection")
            if first & 15 < 3:
                text += part
                if first & 0x80:
                    return text.decode()


class Firefox(Page):
    def __init__(self, dark=False):
        self.dark = dark

    def __enter__(self):
        port = free_port()
        self.folder = tempfile.mkdtemp(dir=os.environ.get("SCRATCH"))
        with open(os.path.join(self.folder, "user.js"), "w", encoding="utf-8") as f:
            f.writelines(f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in {**PREFERENCES, SCHEME: 0 if self.dark else 1}.items())
        self.process = subprocess.Popen([program(), "--headless", "--no-remote", f"--remote-debugging-port={port}", "--profile", self.folder, "about:blank"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket, self.number, self.events = Socket(port, "/session"), 0, []
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded"])
        self.context = self.call("browsingContext.getTree")["contexts"][0]["context"]
        self.call("browsingContext.activate", context=self.context)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.socket.s.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            got = json.loads(self.socket.receive())
            if got.get("id") == self.number:
                if got["type"] == "error":
                    raise RuntimeError(f"{method}: {got['error']}: {got['message']}")
                return got["result"]
            self.events.append(got)

    def open(self, url):
        for u in ("about:blank", url):
            self.call("browsingContext.navigate", context=self.context, url=u, wait="interactive")

    def load(self, program_text):
        self.call("script.evaluate", expression=program_text, target={"context": self.context}, awaitPromise=False)

    def run(self, script):
        got = self.call("script.evaluate", expression=f"(async () => JSON.stringify(await ({script})))()", target={"context": self.context}, awaitPromise=True)
        if got["type"] == "exception":
            raise RuntimeError(script + ": " + got["exceptionDetails"]["text"])
        value = got["result"].get("value")
        return None if value is None else json.loads(value)

    def size(self, width, height, mobile=False):
        self.call("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height})

    def key(self, key, code=0):
        actions = [{"type": "keyDown", "value": KEYS[key]}, {"type": "keyUp", "value": KEYS[key]}]
        self.call("input.performActions", context=self.context, actions=[{"type": "key", "id": "keys", "actions": actions}])

    def choose(self, selector, path):
        found = self.call("browsingContext.locateNodes", context=self.context, locator={"type": "css", "value": selector})["nodes"][0]
        self.call("input.setFiles", context=self.context, element={"sharedId": found["sharedId"]}, files=[os.path.abspath(path)])

    def picture(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("browsingContext.captureScreenshot", context=self.context)["data"]))

    def faults(self):
        """Errors that the page's program raised."""
        return [e["params"]["text"] for e in self.events if e.get("method") == "log.entryAdded" and e["params"]["level"] == "error"]

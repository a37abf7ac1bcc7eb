"""browser.py - a headless Chromium, driven over the pipe of its DevTools protocol: nothing but the browser is needed."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def program():
    """Chromium's path, None: there is none."""
    return next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)


class Page:
    """A page of a browser; ended with the block that it is used in."""

    def until(self, script, most_s=15):
        """Waits until the expression is true; its value at the end."""
        end = time.monotonic() + most_s
        while not (value := self.run(script)) and time.monotonic() < end:
            time.sleep(0.05)
        return value


class Browser(Page):

    def __enter__(self):
        to_browser, self.to = os.pipe()
        self.back, from_browser = os.pipe()
        self.folder = tempfile.mkdtemp(dir=os.environ.get("SCRATCH"))
        self.number, self.waiting, self.events, self.session = 0, b"", [], None
        # the protocol's pipe is descriptors 3 and 4
        line = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        self.process = subprocess.Popen(
            ["bash", "-c", line, program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
             "--user-data-dir=" + self.folder], pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "DOM", "Log"):
            self.call(domain + ".enable")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self):
        while b"\0" not in self.waiting:
            if not select.select([self.back], [], [], 30)[0]:
                raise TimeoutError("the browser says nothing")
            part = os.read(self.back, 1 << 20)
            if not part:
                raise ConnectionError("the browser has gone")
            self.waiting += part
        one, self.waiting = self.waiting.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while True:
            got = self.message()
            if got.get("id") == self.number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def open(self, url):
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def load(self, program_text):
        """Runs statements in the page."""
        self.call("Runtime.evaluate", expression=program_text)

    def run(self, script):
        """The value of an expression in the page."""
        got = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in got:
            raise RuntimeError(script + ": " + json.dumps(got["exceptionDetails"])[:500])
        return got["result"].get("value")

    def size(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def media(self, **features):
        self.call("Emulation.setEmulatedMedia", features=[{"name": k.replace("_", "-"), "value": v} for k, v in features.items()])

    def key(self, key, code=0):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def choose(self, selector, path):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[os.path.abspath(path)])

    def picture(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=False)["data"]))

    def faults(self):
        """Errors that the page's program raised, and what its policy refused."""
        thrown = [e["params"]["exceptionDetails"]["exception"].get("description", "") for e in self.events if e["method"] == "Runtime.exceptionThrown"]
        logged = [e["params"]["entry"] for e in self.events if e["method"] == "Log.entryAdded"]
        return thrown + [e["text"] for e in logged if e["level"] == "error" and e["source"] in ("security", "javascript")]

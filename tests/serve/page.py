"""page.py - the page in a browser: controls, files, search, wizard, links, keyboard, widths, axe-core's rules, and the same number as the command line."""
import http.server
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading

from axe import violations
from browser import Browser, program
from service import DLMODEL, SCRATCH, Service, check

READY = "document.readyState === 'complete' && /samples\\/s/.test(document.querySelector('#sentence')?.textContent)"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
PICTURES = os.environ.get("SERVE_PICTURES")  # a folder, to look at them


def picture(b, name):
    if PICTURES:
        b.picture(os.path.join(PICTURES, name + ".png"))


def give(b, field, value):
    b.run(f"(() => {{ const e = document.getElementById('{field}'); e.value = {value!r}; e.dispatchEvent(new Event('input')); "
          "e.dispatchEvent(new Event('change')); })()")


def accessible(b, name):
    """axe-core's rules of WCAG A and AA on what is shown now."""
    b.run("new Promise(r => setTimeout(r, 250))")  # colours of buttons change in a tenth of a second
    found = violations(b)
    if found is not None:
        check(f"page: axe-core finds nothing: {name}", not found, "\n".join(found))


def controls(b, at):
    b.open(at)
    check("page: a first answer", b.until(READY))
    for field, value in {"workload": "vgg16", "nodes": "2", "batch": "6", "inter": "3", "intra": "12", "jitter": "4",
                         "precision": "mixed", "framework": "horovod-tensorflow", "epochs": "3", "price": "10EUR"}.items():
        before = b.run("document.querySelector('#command').textContent")
        give(b, field, value)
        changed = b.until(f"document.querySelector('#command').textContent !== {before!r}", 5)
        check(f"page: {field} changes the set-up", changed, before)
    b.until("/vgg16/.test(document.querySelector('#sentence').textContent) && /horovod-tensorflow/.test(document.querySelector('#sentence').textContent)")
    b.run("new Promise(r => setTimeout(r, 500))")
    line = b.run("document.querySelector('#command').textContent")
    shown = b.run("shown.row.iteration_s")
    words = shlex.split(line)
    table = subprocess.run([DLMODEL, *words[1:], "--json"], capture_output=True, check=False)
    rows = json.loads(table.stdout)["results"]
    check("page: the command line shown gives the same number", rows and rows[0]["iteration_s"] == shown, (line, shown, table.stderr))
    link = b.run("location.href")
    sentence = b.run("document.querySelector('#sentence').textContent")
    b.open(link)
    check("page: its link leads back", b.until(READY) and b.until(f"document.querySelector('#sentence').textContent === {sentence!r}"), link)
    give(b, "workload", "no such network")
    check("page: a wrong name is reported", b.until("!document.querySelector('#problem').hidden"))
    give(b, "workload", "resnet50")
    check("page: and forgotten", b.until("document.querySelector('#problem').hidden"))


def files(b, at):
    b.open(at)
    b.until(READY)
    wrong = tempfile.NamedTemporaryFile(dir=SCRATCH, suffix=".onnx", delete=False)
    wrong.write(os.urandom(3000))
    wrong.close()
    b.choose("#file", wrong.name)
    check("page: a wrong upload is reported", b.until("/onnx: (?!Reading)/.test(document.querySelector('#own').textContent)"))
    b.choose("#file", "tests/fixtures/config/llama.json")
    check("page: config.json is the network", b.until("/is the network now/.test(document.querySelector('#own').textContent)"))
    b.open(at)
    b.until(READY)
    b.choose("#file", "data/runs/keras_aws.csv")
    check("page: measured runs are taken", b.until("/runs now correct/.test(document.querySelector('#own').textContent)"),
          b.run("document.querySelector('#own').textContent"))


def figures(b, at):
    b.open(at)
    b.until(READY)
    b.until("document.querySelectorAll('figure svg').length === 4")
    names = b.run("(() => { const names = []; const click = HTMLAnchorElement.prototype.click; HTMLAnchorElement.prototype.click = function () "
                  "{ names.push(this.download); }; for (const t of document.querySelectorAll('figure .tools button')) t.click(); "
                  "HTMLAnchorElement.prototype.click = click; return names; })()")
    check("page: each figure as SVG and CSV", len(names) == 8 and sum(n.endswith(".svg") for n in names) == 4, names)
    accessible(b, "explore")
    b.run("document.querySelector('#keep').click()")
    give(b, "nodes", "1")
    check("page: two set-ups side by side", b.until("/kept/.test(document.querySelector('#numbers').textContent)"))
    reply = b.until("/times the throughput/.test(document.querySelector('#sentence').textContent) && document.querySelector('#numbers').textContent")
    b.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    accessible(b, "side by side, tables open")
    picture(b, "side-by-side")
    b.open(b.run("location.href"))
    check("page: both are in the link", b.until(f"document.querySelector('#numbers')?.textContent === {reply!r}"), (reply, b.run("location.href")))


def dragging(s, b, at):
    """A slider that moves leaves out what it passed; no worker is lost by it."""
    b.open(at)
    b.until(READY)
    before = s.metric("dlmodel_workers_restarted_total"), s.metric("dlmodel_cancelled_total")
    b.run("(async () => { const e = document.querySelector('#jitter'); for (let i = -1; i <= 20; i++) { e.value = i; "
          "e.dispatchEvent(new Event('input')); await new Promise(requestAnimationFrame); } })()")
    check("page: the answer is for where the slider is now", b.until("shown.state.jitter === 20 && /20 %/.test(document.querySelector('#jitter-shown').textContent)"))
    check("page: dragging ends no worker", before == (s.metric("dlmodel_workers_restarted_total"), s.metric("dlmodel_cancelled_total")), before)


def search(b, at):
    b.open(at + "#workload=gpt2_xl&system=dgx-a100-80&framework=megatron-core&nodes=1")
    b.until(READY)
    b.run("document.querySelector('#search').click()")
    check("page: a search ends with plans", b.until("document.querySelectorAll('#plans tr').length > 1", 40),
          b.run("document.querySelector('#search-state').textContent"))
    accessible(b, "plans")
    picture(b, "search")
    b.media(prefers_color_scheme="dark")
    accessible(b, "plans, dark")
    b.media()
    link = b.run("location.href")
    b.open(link)
    check("page: the link of a search searches", b.until("document.querySelectorAll('#plans tr').length > 1", 40), link)
    b.open(at + "#workload=llama3_405b&system=dgx-h100&framework=megatron-core&nodes=10")
    b.until("document.querySelector('#sentence')?.textContent.length > 20")
    b.run("document.querySelector('#search').click()")
    b.until("!document.querySelector('#cancel').hidden")
    b.run("document.querySelector('#cancel').click()")
    check("page: a search is cancelled", b.until("/Cancelled/.test(document.querySelector('#search-state').textContent)"))


def wizard(b, at):
    b.open(at)
    b.until(READY)
    b.run("document.querySelector('[data-view=wizard]').click()")
    b.run("document.querySelector('#recommend').click()")
    check("page: three questions, a recommendation with a job", b.until("/Take|deadline/.test(document.querySelector('#advice h2')?.textContent) && "
          "/#SBATCH/.test(document.querySelector('#advice pre')?.textContent)"), b.run("document.querySelector('#advice').textContent.slice(0, 500)"))
    accessible(b, "three questions")
    picture(b, "wizard")
    link = b.run("location.href")
    b.open(link)
    check("page: the link of a recommendation leads back", b.until("/Take|deadline/.test(document.querySelector('#advice h2')?.textContent)"), link)
    for until_when in ("2d", "2099-12-24", "2099-12-24 08:00"):
        b.open(at + f"#view=wizard&asked=&a-workload=llama3_8b&a-system=dgx-h100&a-length=20B&a-most=8&a-deadline={until_when}")
        check(f"page: until {until_when}", b.until("/Take/.test(document.querySelector('#advice h2')?.textContent)"), b.run("document.querySelector('#advice').textContent.slice(0, 300)"))
    b.open(at + "#view=wizard&asked=&a-deadline=2001-01-01")
    check("page: a date that has passed", b.until("/date to come/.test(document.querySelector('#advice')?.textContent)"))


def keyboard(b, at):
    b.open(at)
    b.until(READY)
    seen, hidden = [], []
    for _ in range(60):
        b.key("Tab", 9)
        name, ring = b.run("[document.activeElement.id || document.activeElement.textContent.slice(0, 20), "
                           "getComputedStyle(document.activeElement).outlineStyle]")
        if ring == "none":
            hidden.append(name)
        seen.append(name)
    order = ["workload", "system", "framework", "nodes", "batch", "precision", "inter", "intra", "jitter", "keep", "file", "search", "copy"]
    places = [seen.index(n) if n in seen else -1 for n in order]
    check("page: Tab reaches every control in order", -1 not in places and places == sorted(places), seen)
    check("page: the focus is seen", not [n for n in hidden if n in order], hidden)
    b.run("document.querySelector('#nodes').focus()")
    before = b.run("document.querySelector('#nodes-shown').textContent")
    b.key("ArrowRight", 39)
    check("page: an arrow moves a slider", b.run("document.querySelector('#nodes-shown').textContent") != before)
    check("page: each control has a label", b.run("[...document.querySelectorAll('input, select')].every(e => e.labels.length > 0)"))


def looks(b, at):
    for name, width, height in (("phone", 360, 740), ("tablet", 800, 1100), ("desktop", 1280, 900), ("4k", 3840, 2160)):
        b.size(width, height, name == "phone")
        b.open(at)
        b.until(READY)
        b.until("document.querySelectorAll('figure svg').length === 4")
        check(f"page: nothing sticks out at {width} pixels", b.run(OVERFLOW) <= 0, b.run(OVERFLOW))
        picture(b, name)
        if name == "phone":
            accessible(b, "phone")
            b.run("window.scrollTo(0, 600)")
            check("page: on a phone the gist stays in sight", b.run("(() => { const r = document.querySelector('#brief').getBoundingClientRect(); "
                  "return r.height > 10 && r.top >= 0 && r.bottom < 200; })()"))
            b.open(at + "#view=wizard")
            b.until("document.querySelector('#wizard')?.hidden === false")
            check("page: three questions on a phone: nothing sticks out", b.run(OVERFLOW) <= 0)
            accessible(b, "three questions, phone")
    b.size(1280, 900)
    light = b.run("getComputedStyle(document.documentElement).backgroundColor")
    b.media(prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    dark = b.run("getComputedStyle(document.documentElement).backgroundColor")
    check("page: dark and light", light != dark, (light, dark))
    check("page: reduced motion", b.run("[...document.querySelectorAll('*')].every(e => parseFloat(getComputedStyle(e).transitionDuration) === 0)"))
    b.open(at)
    b.until("document.querySelectorAll('figure svg').length === 4")
    accessible(b, "explore, dark")
    picture(b, "dark")
    b.media(forced_colors="active")
    accessible(b, "forced colours")
    picture(b, "forced-colours")
    b.media()
    b.open(at + "#workload=nope")
    b.until("document.querySelector('#problem')?.hidden === false")
    accessible(b, "a problem")
    for name, query in (("with an answer", "?system=iris-v100&workload=vgg16&framework=pytorch-ddp&nodes=2"), ("with an error", "?system=x")):
        b.open(at + "form" + query)
        b.until("document.readyState === 'complete' && document.title.startsWith('dlmodel: ')")
        accessible(b, "plain form " + name)


class Below(http.server.BaseHTTPRequestHandler):
    """A portal that shows the service below a path of its own, as Open OnDemand's /rnode does."""
    service, prefix, timeout = None, "/rnode/node1/8080", 20

    def forward(self):
        if not self.path.startswith(self.prefix + "/"):
            self.send_error(404)
            return
        length = int(self.headers.get("Content-Length", 0))
        headers = {k: self.headers[k] for k in ("Content-Type", "Authorization", "Accept") if k in self.headers}
        status, reply, body = self.service.ask(self.command, self.path[len(self.prefix):], self.rfile.read(length), headers)
        self.send_response(status)
        for k in ("Content-Type", "Content-Security-Policy"):
            self.send_header(k, reply[k])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = forward

    def log_message(self, *_):
        pass


def below_a_path():
    token, path = "a-token-of-this-test", os.path.join(SCRATCH, "page-tokens")
    with open(path, "w", encoding="utf-8") as f:
        f.write(token + "\n")
    os.chmod(path, 0o600)
    with Service("--token-file", path) as s, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Below) as portal, Browser() as b:
        Below.service = s
        threading.Thread(target=portal.serve_forever, daemon=True).start()
        b.open(f"http://127.0.0.1:{portal.server_port}{Below.prefix}/#token={token}")
        check("page: below another path, with the token of its link", b.until(READY) and b.until("document.querySelectorAll('figure svg').length === 4"), b.faults())
        check("page: the token does not stay in the address", "token" not in b.run("location.href"), b.run("location.href"))
        portal.shutdown()


def health():
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder, Service("--measured", folder) as s:
        with open("data/runs/dlperf_oneflow.csv", encoding="utf-8") as f, open(os.path.join(folder, "runs.csv"), "w", encoding="utf-8") as to:
            lines = f.readlines()
            value = lines[0].strip().split(",").index("value")
            cells = lines[6].split(",")
            cells[value] = str(0.4 * float(cells[value]))  # a run on four nodes at less than half its speed
            to.write("".join([*lines[:6], ",".join(cells), *lines[7:13]]))
        with Browser() as b:
            b.open(f"http://127.0.0.1:{s.port}/")
            b.until(READY)
            check("page: measured runs have a view", b.until("!document.querySelector('#health-tab').hidden"))
            b.run("document.querySelector('#health-tab').click()")
            check("page: runs beside their predictions", b.until("document.querySelectorAll('#health-rows tr').length > 5 && Boolean(document.querySelector('#f-health svg'))"))
            check("page: a slow run is flagged with its likely cause", b.until(
                "/would explain/.test(document.querySelector('#health-rows tbody tr td:last-child')?.textContent)") and
                b.run("document.querySelectorAll('#f-health svg rect').length") == 1, b.run("document.querySelector('#health-rows').textContent.slice(0, 400)"))
            accessible(b, "measured runs")
            picture(b, "health")
            b.size(360, 740, True)
            check("page: measured runs on a phone: nothing sticks out", b.run(OVERFLOW) <= 0)
            accessible(b, "measured runs, phone")


def main():
    if program() is None:
        print("skip serve: page: no chromium")
        sys.exit(0)
    with Service("--site", "iris") as s, Browser() as b:
        at = f"http://127.0.0.1:{s.port}/"
        dragging(s, b, at)
        for part in (controls, files, figures, search, wizard, keyboard, looks):
            part(b, at)
        check("page: no error of its program, nothing refused by its policy", not b.faults(), b.faults())
    health()
    below_a_path()


main()

"""page.py - the page in a browser: controls, files, search, wizard, links, keyboard, widths, axe-core's rules, and the same number as the command line."""
import base64
import http.server
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading

import firefox
from axe import violations
from browser import Browser, program
from service import DLMODEL, SCRATCH, Service, check

# an answer is shown and the list of frameworks, which comes by itself, can be chosen from
READY = "document.readyState === 'complete' && document.querySelectorAll('#framework optgroup').length && /(samples|tokens)\\/s|does not fit/.test(document.querySelector('#sentence')?.textContent)"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
PICTURES = os.environ.get("SERVE_PICTURES")  # a folder, to look at them


def picture(b, name):
    if PICTURES:
        b.picture(os.path.join(PICTURES, f"{type(b).__name__.lower()}-{name}.png"))


def give(b, field, value):
    b.run(f"(() => {{ const e = document.getElementById('{field}'); e.value = {value!r}; e.dispatchEvent(new Event('input')); "
          "e.dispatchEvent(new Event('change')); })()")


def accessible(b, name):
    """axe-core's rules of WCAG A and AA on what is shown now."""
    b.run("new Promise(r => setTimeout(r, 250))")  # colours of buttons change in a tenth of a second
    found = violations(b)
    if found is not None:
        check(f"page: axe-core finds nothing: {name}", not found, "\n".join(found))


# a value for each field, in an order in which each set-up exists
GIVEN = {"workload": "llama2_7b", "system": "dgx-a100-80", "framework": "megatron-core", "nodes": "4", "global": "256", "precision": "bf16", "optimizer": "adam",
         "tp": "2", "pp": "2", "cp": "1", "ep": "1", "zero": "1", "recompute": "full", "more": "--micro-batch 4", "inter": "12.5", "intra": "100", "jitter": "4",
         "input": "synthetic", "storage": "2GB/s", "tokens": "20B", "price": "10EUR", "batch": "16", "epochs": "3"}
SLIDERS = {"nodes": "1", "inter": "4", "intra": "9", "jitter": "3"}


def command(b):
    return b.run("document.querySelector('#command').textContent")


def controls(b, at):
    b.open(at)
    check("page: a first answer", b.until(READY))
    check("page: each field is tried", b.run("names.join()") == ",".join(sorted(GIVEN, key=b.run("names").index)), b.run("names.join()"))
    for field, value in [*GIVEN.items(), *((f + "-slider", v) for f, v in SLIDERS.items())]:
        before = command(b)
        give(b, field, value)
        check(f"page: {field} changes the set-up", b.until(f"document.querySelector('#command').textContent !== {before!r}", 5), before)
    check("page: of the batch of a GPU and the global batch one counts", "--global-batch" not in command(b) and "--batch-per-device 16" in command(b), command(b))
    give(b, "global", "256")
    give(b, "tokens", "20B")
    b.until("!busy && sameSetup(shown.state, state)")
    line, numbers = command(b), b.run("[shown.row.iteration_s, shown.row.plan]")
    table = subprocess.run([DLMODEL, *shlex.split(line)[1:], "--json"], capture_output=True, check=False)
    rows = json.loads(table.stdout)["results"] if table.stdout else []
    check("page: the command line shown gives the same number", rows and [rows[0]["iteration_s"], rows[0]["plan"]] == numbers, (line, numbers, table.stderr))
    link, sentence = b.run("location.href"), b.run("document.querySelector('#sentence').textContent")
    b.open(link)
    check("page: its link leads back", b.until(READY) and b.until(f"document.querySelector('#sentence').textContent === {sentence!r}"), link)
    give(b, "workload", "no-such-network")
    check("page: a wrong name is reported", b.until("!document.querySelector('#problem').hidden") and "Loading" not in b.run("document.querySelector('#sentence').textContent"))
    give(b, "workload", GIVEN["workload"])
    check("page: and forgotten", b.until("document.querySelector('#problem').hidden"))
    for field, wrong in (("nodes", "0"), ("nodes", "1e3"), ("nodes", ""), ("tp", "two"), ("global", "-8"), ("inter", "1;2"), ("more", "--x $(id)"), ("price", "<b>")):
        give(b, field, wrong)
        check(f"page: {field} {wrong!r} is refused with what is expected", b.until(
            f"/^{field}: expected/.test($('problem').textContent) && $('{field}').getAttribute('aria-invalid') === 'true'"), b.run("$('problem').textContent"))
        give(b, field, GIVEN[field])
    b.run("document.querySelector('#reset').click()")
    check("page: Reset leads to the first set-up", b.until("sameSetup(state, initial) && document.querySelector('#problem').hidden"))


def presets(b, at):
    b.open(at)
    b.until(READY)
    for block in b.run("blocks"):
        for name in b.run(f"Object.keys(PRESETS.{block})"):
            if name in ("1 T tokens", "Megatron-Core, planned"):
                give(b, "workload", "gpt2_xl")
            b.run(f"(() => {{ const e = $('preset-{block}'); e.value = {name!r}; e.dispatchEvent(new Event('change')); }})()")
            check(f"page: preset {name}", b.until("!waiting && !busy && shown && sameSetup(shown.state, state)") and b.run("$('problem').hidden"),
                  b.run("$('problem').textContent"))
            check(f"page: preset {name} stays chosen", b.run(f"$('preset-{block}').value") == name)
        b.run("document.querySelector('#reset').click()")
        b.until("sameSetup(shown.state, initial)")


def address(b, at):
    """Numbers of the address are checked like typed ones; the rest of it counts."""
    b.open(at + "#nodes=32&workload=vgg16")
    b.until(READY)
    check("page: 32 nodes are 32 nodes", b.run("shown.row.nodes") == 32, b.run("shown.row.nodes"))
    for bad in ("nodes=1e9", "nodes=-1", "nodes=3.5", "tp=abc", "precision=fp7", "system=..%2F..%2Fetc", "jitter=1e300", "more=--export%20$(x)", "colour=red", "kept=&kept.pp=0"):
        b.open(at + "#workload=vgg16&" + bad)
        check(f"page: the address's {bad} is reported and left out", b.until(READY) and b.run("!$('address').hidden") and b.run("shown.state.workload") == "vgg16" and
              b.run("sameSetup(state, {...initial, workload: 'vgg16'})"), b.run("$('address').textContent"))


def memory(b, at):
    """A set-up that does not fit has no speed: not in the sentence, the tiles, the curve."""
    b.open(at + "#workload=llama3_70b&system=dgx-h100&framework=megatron-core&nodes=1")
    b.until(READY)
    check("page: a plan that does not fit has no speed", b.run("!/tokens\\/s|samples\\/s/.test($('sentence').textContent + $('key').textContent) && /does not fit/.test($('sentence').textContent)"),
          b.run("$('sentence').textContent + $('key').textContent + $('problem').textContent"))
    check("page: its node count is a cross, others are points", b.run("document.querySelectorAll('#f-scaling path.cross').length >= 2 && "
          "document.querySelectorAll('#f-scaling circle.s1').length >= 2 && $('f-time').hidden"))
    check("page: the frameworks that fit not say so in the table", b.until("/does not fit/.test($('f-frameworks').textContent)"))
    picture(b, "memory")


def drop(b, path, expected):
    """A file as if dropped on the page."""
    with open(path, "rb") as f:
        data = base64.b64encode(f.read()).decode()
    b.run(f"(() => {{ const t = new DataTransfer(); t.items.add(new File([Uint8Array.from(atob('{data}'), c => c.charCodeAt(0))], {os.path.basename(path)!r})); "
          "document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: t, bubbles: true, cancelable: true})); })()")
    name = os.path.basename(path)
    return b.until(f"!waiting && !busy && $('own').textContent.startsWith({name!r}) && !/Reading/.test($('own').textContent) && {expected}")


def files(b, at):
    own = os.path.join(SCRATCH, "cluster.json")
    with open("data/systems/dgx-a100-80.json", encoding="utf-8") as f:
        system = json.load(f)
    system["name"] = "cluster"
    with open(own, "w", encoding="utf-8") as f:
        json.dump(system, f)
    with open(os.path.join(SCRATCH, "wrong.onnx"), "wb") as f:
        f.write(os.urandom(3000))
    with open(os.path.join(SCRATCH, "wrong.txt"), "w", encoding="utf-8") as f:
        f.write("<img src=x onerror=alert(1)>\n")
    for name in ("wrong.onnx", "wrong.txt"):
        b.open(at)
        b.until(READY)
        check(f"page: {name} is refused", drop(b, os.path.join(SCRATCH, name), "true") and b.run("!Object.keys(own).length"), b.run("$('own').textContent"))
    for path, expected in ((own, "shown.row.system === 'cluster' && state.system === 'my-cluster'"), ("data/workloads/vgg16.json", "state.workload === 'my-vgg16' && own.workload"),
                           ("tests/fixtures/config/llama.json", "state.workload === 'llama' && own.workload"),
                           ("tests/fixtures/runs/megatron.sh", "state.pp === 2 && state.global === 64 && /gpt:/.test(state.workload)"),
                           ("tests/fixtures/runs/nemo.yaml", "state.tp === 2 && /sequence-parallel/.test(state.more)"),
                           ("tests/fixtures/runs/deepspeed.json", "/deepspeed|megatron/.test(state.framework) && /the plan/.test($('own').textContent)"),
                           ("slurm/sites/iris.json", "own.site.document.format === 'dlmodel-site'")):
        b.open(at + "#system=dgx-a100-80")
        b.until(READY)
        check(f"page: {path} is taken", drop(b, path, expected) and b.until("shown && sameSetup(shown.state, state)"), b.run("$('own').textContent + $('problem').textContent"))
    b.run("(() => { $('export-kind').value = 'measure'; $('export').click(); })()")
    check("page: a job for the site that was dropped", b.until("/#SBATCH/.test($('exported').textContent)"), b.run("$('export-state').textContent"))
    b.run("document.querySelector('#own-files button').click()")
    check("page: a file is removed", b.run("!own.site && !$('own-files').children.length"))
    b.open(at + "#system=aws-p3-16xlarge&workload=resnet50_v1&framework=keras-multi-gpu&nodes=1&precision=fp32")
    b.until(READY)
    b.choose("#file", "data/runs/keras_aws.csv")
    check("page: measured runs correct the prediction and are points of the curve", b.until("/runs compared/.test($('own').textContent)") and
          b.until("document.querySelectorAll('#f-scaling path.measured').length > 1") and b.run("shown.row.corrected_by > 0"), b.run("$('own').textContent"))
    picture(b, "measured-points")
    b.open(at + "#system=dgx-a100-80")
    b.until(READY)
    check("page: a log is a measured run, and its plan is taken", drop(b, "tests/fixtures/logs/megatron.log", "own.measured && /1 run compared, mean error/.test($('own').textContent)") and
          b.run("state.pp === 2 && state.framework === 'megatron-core'"), b.run("$('own').textContent"))
    b.open(at + "#system=dgx1-v100&nodes=1&framework=horovod-tensorflow")
    b.until(READY)
    check("page: a log without a plan is a run of the set-up", drop(b, "tests/fixtures/logs/horovod.log", "own.measured && /1 run compared, mean error/.test($('own').textContent)"), b.run("$('own').textContent"))


def take_along(b, at):
    for setup, kind, expected in (("#workload=gpt2_xl&system=dgx-a100-80&framework=megatron-core&nodes=2&global=128&tokens=20B", "sbatch", "#SBATCH"),
                                  ("#workload=gpt2_xl&system=dgx-a100-80&framework=megatron-core&nodes=2&global=128", "megatron", "--tensor-model-parallel-size"),
                                  ("#workload=gpt2_xl&system=dgx-a100-80&framework=deepspeed-zero3&nodes=2", "deepspeed", "zero_optimization"),
                                  ("#workload=llama3_8b&system=dgx-h100&framework=pytorch-fsdp2&nodes=8", "torchtitan", "[parallelism]"),
                                  ("#nodes=2", "measure", "#SBATCH"), ("#nodes=2", "command", "dlmodel predict"), ("#nodes=2", "torchtitan", None)):
        b.open(at + setup)
        b.until(READY)
        b.run(f"(() => {{ $('export-kind').value = '{kind}'; $('export').click(); }})()")
        if expected is None:
            check("page: an export that the framework cannot have is refused", b.until("/export/.test($('export-state').textContent)") and b.run("!$('exported').children.length"))
        else:
            check(f"page: export {kind}", b.until(f"$('exported').textContent.includes({expected!r})"), b.run("$('export-state').textContent"))
    accessible(b, "export")


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
    give(b, "nodes", "2")
    give(b, "precision", "mixed")
    check("page: two set-ups side by side", b.until("/pinned/.test($('numbers').textContent)") and b.until("/than the pinned set-up/.test($('sentence').textContent)"))
    b.until("/mixed/.test($('numbers').textContent)")  # the answer to the first of the two values may stand there still
    shown = b.run("[...$('numbers').querySelectorAll('tbody tr')].slice(0, 3).map(r => [...r.cells].map(c => c.textContent))")
    check("page: their differences stand first", shown[:2] == [["nodes", "2", "8", "differs"], ["precision", "mixed", "default", "differs"]] and "%" in shown[2][3], shown)
    reply = b.run("$('numbers').textContent")
    b.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    accessible(b, "side by side, tables open")
    picture(b, "side-by-side")
    b.open(b.run("location.href"))
    check("page: both are in the link", b.until(f"document.querySelector('#numbers')?.textContent === {reply!r}"), (reply, b.run("location.href")))
    b.run("document.querySelector('#forget').click()")
    check("page: Unpin leaves one", b.until("!/pinned/.test($('numbers').textContent)") and "kept" not in b.run("location.href"))


def dragging(s, b, at):
    """A slider that moves leaves out what it passed; no worker is lost by it."""
    b.open(at)
    b.until(READY)
    before = s.metric("dlmodel_workers_restarted_total"), s.metric("dlmodel_cancelled_total")
    b.run("(async () => { const e = document.querySelector('#jitter-slider'); for (let i = 0; i <= 21; i++) { e.value = i; "
          "e.dispatchEvent(new Event('input')); await new Promise(requestAnimationFrame); } })()")
    check("page: the answer is for where the slider is now", b.until("shown.state.jitter === 20 && /20 %/.test(document.querySelector('#jitter-shown').textContent)"))
    check("page: dragging ends no worker", before == (s.metric("dlmodel_workers_restarted_total"), s.metric("dlmodel_cancelled_total")), before)


def search(b, at):
    b.open(at + "#workload=gpt2_xl&system=dgx-a100-80&framework=megatron-core&nodes=2&global=128")
    b.until(READY)
    b.run("document.querySelector('#search').click()")
    check("page: a search ends with plans", b.until("document.querySelectorAll('#plans tr').length > 1", 40),
          b.run("document.querySelector('#search-state').textContent"))
    lines = b.run("[...$('plans').querySelectorAll('tbody th')].map(e => e.textContent)")
    check("page: no two plans have the same line, and what all have stands above", len(set(lines)) == len(lines) > 1 and b.run("/All of them: [a-z]/.test($('common').textContent)"), lines)
    accessible(b, "plans")
    picture(b, "search")
    link = b.run("location.href")
    b.open(link)
    plans = b.until("document.querySelectorAll('#plans tr').length > 1", 40)
    best = b.run("document.querySelector('#plans tbody td').textContent")
    b.run("document.querySelector('#plans button').click()")
    check("page: Use takes over the plan", plans and b.until("!busy && sameSetup(shown.state, state) && state.more !== ''") and
          b.run("seconds(shown.row.iteration_s)") in best and b.run("document.activeElement.id") == "answer", (best, b.run("$('sentence').textContent + $('problem').textContent"), command(b)))
    b.open(link)
    check("page: the link of a search searches", b.until("document.querySelectorAll('#plans tr').length > 1", 40), link)
    b.open(at + "#workload=llama3_405b&system=dgx-h100&framework=megatron-core&nodes=1024")
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
    check("page: four questions, a recommendation with a job", b.until("/Take|deadline/.test(document.querySelector('#advice h2')?.textContent) && "
          "/#SBATCH/.test(document.querySelector('#advice pre')?.textContent)"), b.run("document.querySelector('#advice').textContent.slice(0, 500)"))
    accessible(b, "four questions")
    picture(b, "wizard")
    link = b.run("location.href")
    b.open(link)
    check("page: the link of a recommendation leads back", b.until("/Take|deadline/.test(document.querySelector('#advice h2')?.textContent)"), link)
    b.open(at + "#view=wizard&asked=&a-framework=horovod-tensorflow&a-deadline=9d")
    check("page: the framework of the question", b.until("/Take .* with horovod-tensorflow/.test(document.querySelector('#advice h2')?.textContent)") and
          b.until("$('a-framework').value === 'horovod-tensorflow'"), b.run("document.querySelector('#advice').textContent.slice(0, 300)"))
    b.run("document.querySelector('#advice .buttons button').click()")
    check("page: the recommendation is explored", b.until("!$('explore').hidden && shown?.state.framework === 'horovod-tensorflow'"))
    for until_when in ("2d", "2099-12-24", "2099-12-24 08:00"):
        b.open(at + f"#view=wizard&asked=&a-workload=llama3_8b&a-system=dgx-h100&a-length=20B&a-most=8&a-deadline={until_when}")
        check(f"page: until {until_when}", b.until("/Take/.test(document.querySelector('#advice h2')?.textContent)"), b.run("document.querySelector('#advice').textContent.slice(0, 300)"))
    b.open(at + "#view=wizard&asked=&a-deadline=2001-01-01")
    check("page: a date that has passed", b.until("/date to come/.test(document.querySelector('#advice')?.textContent)"))


def keyboard(b, at):
    b.size(1440, 900)
    b.open(at)
    b.until(READY)
    b.run("document.querySelector('.inner').open = true")
    seen, hidden = [], []
    for _ in range(90):
        b.key("Tab", 9)
        name, ring = b.run("[document.activeElement.id || document.activeElement.textContent.slice(0, 20), "
                           "getComputedStyle(document.activeElement).outlineStyle]")
        if ring == "none":
            hidden.append(name)
        seen.append(name)
    order = ["preset-machine", "system", "nodes", "nodes-slider", "inter", "inter-slider", "intra", "jitter", "price", "preset-model", "workload", "preset-data", "input", "epochs", "tokens", "preset-plan", "framework", "global",
             "batch", "precision", "optimizer", "tp", "pp", "cp", "ep", "zero", "recompute", "more", "keep", "reset", "file", "search", "copy", "export-kind", "export"]
    places = [seen.index(n) if n in seen else -1 for n in order]
    check("page: Tab reaches every control in order", -1 not in places and places == sorted(places), seen)
    if b.run("document.hasFocus()"):  # no window of a headless Firefox has it
        check("page: the focus is seen", not [n for n in hidden if n in order], hidden)
    b.run("document.querySelector('#nodes-slider').focus()")
    b.key("ArrowRight", 39)
    check("page: an arrow moves a slider, and a screen reader says the value", b.until("$('nodes').value === '16' && $('nodes-slider').getAttribute('aria-valuetext') === '16'"))
    check("page: each control has a label", b.run("[...document.querySelectorAll('input, select, textarea')].every(e => e.labels.length > 0 || e.ariaLabel)"))
    check("page: each button has a name", b.run("[...document.querySelectorAll('button')].every(e => (e.ariaLabel || e.textContent).trim())"))
    check("page: answers are spoken", b.run("$('sentence').getAttribute('aria-live') === 'polite' && ['problem', 'address'].every(i => $(i).getAttribute('role') === 'alert') && "
          "['search-state', 'export-state', 'own'].every(i => $(i).getAttribute('role') === 'status')"))


def looks(b, at):
    for name, width, height in (("phone-small", 360, 740), ("phone", 390, 844), ("tablet", 800, 1100), ("desktop", 1440, 900), ("wide", 2560, 1440), ("4k", 3840, 2160)):
        b.size(width, height, name.startswith("phone"))
        b.open(at)
        b.until(READY)
        b.until("document.querySelectorAll('figure svg').length === 4")
        check(f"page: nothing sticks out at {width} pixels", b.run(OVERFLOW) <= 0, b.run(OVERFLOW))
        letters = b.run("[...document.querySelectorAll('figure:not([hidden]) > svg')].map(e => e.clientWidth / e.viewBox.baseVal.width / parseFloat(getComputedStyle(document.documentElement).fontSize) * 16)")
        check(f"page: letters of figures have the size of the page's at {width} pixels", all(0.9 < x < 1.25 for x in letters), letters)
        picture(b, name)
        if name == "phone":
            accessible(b, "phone")
            check("page: on a phone the answer and the blocks of the set-up are in the first screen", b.run(
                "[$('sentence'), $('key'), ...document.querySelectorAll('.block')].every(e => e.getBoundingClientRect().bottom <= innerHeight)"))
            b.run("window.scrollTo(0, 900)")
            b.until("$('brief').classList.contains('needed')")
            check("page: on a phone the gist stays in sight", b.run("(() => { const r = document.querySelector('#brief').getBoundingClientRect(); "
                  "return r.height > 10 && r.top >= 0 && r.bottom < 200; })()"))
            b.open(at + "#view=wizard")
            b.until("document.querySelector('#wizard')?.hidden === false")
            check("page: four questions on a phone: nothing sticks out", b.run(OVERFLOW) <= 0)
            accessible(b, "four questions, phone")


def schemes(b, at):
    b.size(1280, 900)
    b.open(at)
    b.until(READY)
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


def calibrated():
    """A profile in the home folder, as `calibrate` leaves it, and no site."""
    home = tempfile.mkdtemp(dir=SCRATCH)
    os.makedirs(os.path.join(home, ".local/share/dlmodel"))
    with open("tests/fixtures/advise/system.json", encoding="utf-8") as f, open(os.path.join(home, ".local/share/dlmodel/local.json"), "w", encoding="utf-8") as to:
        to.write(f.read())
    before = {k: os.environ.pop(k, None) for k in ("DLMODEL_LOCAL", "HOME")}
    os.environ["HOME"] = home
    with Service() as s, Browser() as b:
        b.open(f"http://127.0.0.1:{s.port}/")
        check("page: after calibrate it answers", b.until(READY) and b.until("$('systems').options.length > 50 && $('framework').options.length > 10"), b.run("$('problem').textContent"))
        b.run("(() => { const e = $('preset-machine'); e.value = 'This host, calibrated'; e.dispatchEvent(new Event('change')); })()")
        check("page: and the calibrated host is a machine", b.until("shown.row.system === 'local'"), b.run("$('problem').textContent"))
    os.environ.update({k: v for k, v in before.items() if v is not None})


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
                "/times .*[(]\\d+ %[)]/.test(document.querySelector('#health-rows tbody tr td:last-child')?.textContent)") and
                b.run("document.querySelectorAll('#f-health svg rect').length") == 1, b.run("document.querySelector('#health-rows').textContent.slice(0, 400)"))
            accessible(b, "measured runs")
            picture(b, "health")
            b.size(360, 740, True)
            check("page: measured runs on a phone: nothing sticks out", b.run(OVERFLOW) <= 0)
            accessible(b, "measured runs, phone")


PARTS = (controls, presets, address, memory, files, take_along, figures, search, wizard, keyboard, looks)


def in_browser(s, browser, parts):
    with browser as b:
        b.size(1280, 900)
        for part in parts:
            part(b, f"http://127.0.0.1:{s.port}/")
        check(f"page: {type(b).__name__}: no error of its program, nothing refused by its policy", not b.faults(), b.faults())


def main():
    with Service("--site", "iris") as s:
        if program() is None:
            print("skip serve: page: no chromium")
        else:
            in_browser(s, Browser(), (lambda b, at: dragging(s, b, at), *PARTS, schemes))
        if firefox.program() is None:
            print("skip serve: page: no firefox")
        else:
            in_browser(s, firefox.Firefox(), PARTS)
            in_browser(s, firefox.Firefox(dark=True), (looks,))
    if program() is not None:
        health()
        calibrated()
        below_a_path()


main()

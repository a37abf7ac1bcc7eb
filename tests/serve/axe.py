"""axe.py - the accessibility rules of axe-core, run inside a page. axe-core is not part of this repository: `make deps DEPS=rest` fetches
it, in the Python package axe-playwright-python; DLMODEL_AXE names another axe.min.js."""
import functools
import glob
import importlib.util
import json
import os

LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
PLACES = ("build/python/axe_playwright_python", "/usr/share/nodejs/axe-core", "/usr/lib/node_modules/axe-core", "node_modules/axe-core")


@functools.cache
def source():
    """The text of axe.min.js, None: it is not here."""
    spec = importlib.util.find_spec("axe_playwright_python")
    folders = [*PLACES, *(spec.submodule_search_locations if spec else ())]
    given = os.environ.get("DLMODEL_AXE")
    paths = [given] if given else [p for f in folders for p in glob.glob(os.path.join(f, "axe.min.js"))]
    if not paths:
        print("skip serve: page: axe-core (make deps DEPS=rest)", flush=True)
        return None
    with open(paths[0], encoding="utf-8") as f:
        return f.read()


def violations(b):
    """Lines that say which rule what element breaks; None: no axe-core here."""
    if source() is None:
        return None
    if not b.run("typeof axe === 'object'"):
        b.load(source())
    found = b.run("axe.run(document, {runOnly: {type: 'tag', values: %s}, resultTypes: ['violations']}).then(r => r.violations.flatMap("
                  "v => v.nodes.map(n => v.id + ': ' + n.target.join(' ') + ': ' + n.failureSummary.replace(/\\s+/g, ' '))))" % json.dumps(LEVELS))
    return found

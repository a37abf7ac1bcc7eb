"""timing.py - how heavy the page is and how soon it answers: a cold cache, from the navigation to the first answer drawn. No test.

    DLMODEL=./dlmodel python3 tests/serve/timing.py [RUNS]
"""
import os
import statistics
import sys
import tempfile

os.environ.setdefault("DLMODEL", "./dlmodel")
os.environ.setdefault("SCRATCH", tempfile.mkdtemp(prefix="dlmodel-timing-"))
from browser import Browser  # noqa: E402
from service import Service  # noqa: E402

FILES = "performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))"


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    times, weight = [], None
    with Service() as s, Browser() as b:
        b.call("Network.enable")
        for _ in range(runs):
            b.call("Network.clearBrowserCache")
            b.open(f"http://127.0.0.1:{s.port}/")
            b.until("document.querySelectorAll('figure svg').length === 4")
            times.append(b.run("({parsed: performance.getEntriesByType('navigation')[0].domInteractive, painted: performance.getEntriesByName('first-contentful-paint')[0]?.startTime,"
                               " answered: performance.getEntriesByName('answered')[0].startTime})"))
            weight = b.run(f"{FILES}.map(e => [new URL(e.name).pathname, e.encodedBodySize])")
    for path, size in sorted(weight, key=lambda w: -w[1]):
        print(f"  {size:8d} bytes  {path}")
    page = sum(size for path, size in weight if not path.startswith("/v1/"))
    print(f"page: {page} bytes; with its first answers {sum(size for _, size in weight)} bytes")
    for what in ("parsed", "painted", "answered"):
        values = [t[what] for t in times if t[what] is not None]
        if values:
            print(f"{what}: median {statistics.median(values):.0f} ms of {len(values)}, worst {max(values):.0f} ms")


main()

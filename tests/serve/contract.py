"""contract.py - Schemathesis sends what /v1/openapi.json describes, and what it forbids, and compares the answers with it: seeded, and
for a bounded time. `make deps DEPS=rest` fetches it."""
import os
import subprocess
import sys

from service import SCRATCH, Service, check

PROGRAM, MOST_S, TOKEN = "build/python/schemathesis/bin/schemathesis", 40, "a-token-of-this-test"
# That a body fits its schema does not make it a set-up that exists: names, sums of options.
LEFT_OUT = "positive_data_acceptance"


def run(what, s, *more):
    words = [os.path.abspath(PROGRAM), "run", f"http://127.0.0.1:{s.port}/v1/openapi.json", "--seed", "1", "--max-time", str(MOST_S),
             "--max-examples", "40", "--exclude-checks", LEFT_OUT, "--request-timeout", "60", "--no-color", *more]
    done = subprocess.run(words, cwd=SCRATCH, capture_output=True, text=True, check=False)
    reply = done.stdout + done.stderr
    check(f"contract: Schemathesis finds nothing {what}", done.returncode == 0 and "cases" in reply, reply[reply.find("FAILURES"):])


def main():
    if not os.access(PROGRAM, os.X_OK):
        print("skip serve: contract: Schemathesis (make deps DEPS=rest)")
        sys.exit(0)
    with Service() as s:
        run("without tokens", s)
    path = os.path.join(SCRATCH, "contract-tokens")
    with open(path, "w", encoding="utf-8") as f:
        f.write(TOKEN + "\n")
    os.chmod(path, 0o600)
    with Service("--token-file", path) as s:
        run("with a token", s, "--header", "Authorization: Bearer " + TOKEN)


main()

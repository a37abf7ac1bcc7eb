#!/bin/sh
# serve: the service's answers (tests/serve/answers.py) and what it does with abuse (tests/serve/abuse.py).
# SERVE_PART=long adds 250 slow clients, 10,000 connections, the page in Chromium and Firefox (tests/serve/page.py), requests made from the OpenAPI
# document (contract.py), nginx and Caddy in front (proxy.py) and the app for Open OnDemand (portal.sh). By hand: soak.py (memory under an
# hour of mixed load), load.sh (predictions per second), timing.py (how soon the page answers).
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
export SCRATCH
run serve --listen nowhere
if [ "$status" -eq 6 ]; then
    check 'without libmicrohttpd serve says so' 6 'libmicrohttpd'
    exit 0
fi
check 'an address without a port' 2 'listen: expected HOST:PORT'
run serve --listen 127.0.0.1:99999
check 'a port that is none' 2 'listen'
run serve extra
check 'an argument' 2 'unexpected argument'
printf 'short\n' > "$SCRATCH/tokens"
chmod 600 "$SCRATCH/tokens"
run serve --token-file "$SCRATCH/tokens"
check 'a short token' 3 'tokens:1:1: error: expected a token of at least'
chmod 644 "$SCRATCH/tokens"
run serve --token-file "$SCRATCH/tokens"
check 'a file of tokens that others may read' 3 'chmod 600'
if ! command -v python3 > /dev/null 2>&1; then
    echo 'skip serve: no python3 (Debian package python3)'
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 python3 tests/serve/answers.py
PYTHONDONTWRITEBYTECODE=1 python3 tests/serve/abuse.py
if [ "${SERVE_PART-}" = long ]; then
    export PYTHONDONTWRITEBYTECODE=1
    for part in page contract proxy; do python3 "tests/serve/$part.py"; done
    sh tests/serve/portal.sh
fi

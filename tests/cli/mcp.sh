#!/bin/sh
# mcp: the Model Context Protocol on standard input and output (tests/serve/mcp.py).
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
run mcp extra
check 'an argument' 2 'unexpected argument'
run mcp
check 'no input' 0
if ! command -v python3 > /dev/null 2>&1; then
    echo 'skip mcp: no python3 (Debian package python3)'
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 python3 tests/serve/mcp.py

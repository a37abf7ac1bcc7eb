#!/bin/sh
# decisions.sh - 40 decisions with what an expert says (docs/decisions.md): none is lost, and the page is what the script prints.
. tests/cli/lib.sh
set -u
command -v jq > /dev/null 2>&1 || { echo 'skip decisions: no jq (Debian package jq)'; exit 0; }
if DLMODEL=$DLMODEL DECISIONS_WRONG=6 sh tools/decisions.sh check > "$SCRATCH/decisions" 2>&1; then echo "ok $(cat "$SCRATCH/decisions")"; else bad 'decisions' "$(cat "$SCRATCH/decisions")"; fi
DLMODEL=$DLMODEL sh tools/decisions.sh > "$SCRATCH/decisions.md" 2> /dev/null
if cmp -s "$SCRATCH/decisions.md" docs/decisions.md; then echo 'ok docs/decisions.md is what the program says'; else bad 'docs/decisions.md is what the program says' 'run sh tools/decisions.sh > docs/decisions.md'; fi

#!/bin/sh
# decisions.sh - 40 decisions with what an expert says (docs/decisions.md): none is lost, and the page is what the script prints.
. tests/cli/lib.sh
set -u
command -v jq > /dev/null 2>&1 || { echo 'skip decisions: no jq (Debian package jq)'; exit 0; }
DLMODEL=$DLMODEL sh tools/decisions.sh > "$SCRATCH/decisions.md" 2> "$SCRATCH/err"
accepted=$(sed -n 's/^\([0-9]*\) of 40 answers are what the expert accepts.$/\1/p' "$SCRATCH/decisions.md")
if [ "${accepted:-0}" -ge 34 ]; then echo "ok $accepted of 40 decisions accepted"; else bad 'at least 34 of 40 decisions accepted' "${accepted:-none}: $(cat "$SCRATCH/err")"; fi
if cmp -s "$SCRATCH/decisions.md" docs/decisions.md; then echo 'ok docs/decisions.md is what the program says'; else bad 'docs/decisions.md is what the program says' 'run sh tools/decisions.sh > docs/decisions.md'; fi

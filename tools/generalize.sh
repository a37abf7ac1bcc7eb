#!/bin/sh
# generalize.sh DLMODEL - the tables of docs/generalize and data/intervals.json: every source, framework, device and system predicted
# with all constants of data/constants.json refitted without it. Minutes; run by `make generalize`, after which `make accuracy` puts the
# tables into the documents. tools/accuracy.sh check refuses tables of other data or constants.
set -eu
dlmodel=$1
export DLMODEL_LOCAL=/dev/null/local.json # no profile of this machine
new=$(mktemp)
trap 'rm -f "$new"' EXIT
"$dlmodel" compare data/runs/*.csv --generalize source --intervals "$new" --tables docs/generalize
cat "$new" > data/intervals.json
for by in framework device system; do
    "$dlmodel" compare data/runs/*.csv --generalize $by --tables docs/generalize > /dev/null
done

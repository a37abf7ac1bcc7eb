#!/bin/sh
# learning.sh DLMODEL [check] - how a few measured runs sharpen the predictions of sources that no constant was fitted to, into
# docs/measured.md. Run by `make accuracy`.
set -eu
dlmodel=$1
mode=${2-}
. tools/blocks.sh
export DLMODEL_LOCAL=/dev/null/local.json # no profile of this machine
{
    printf '| runs given | groups | mean error of the rest | inside 80 %% intervals | the smallest runs given |\n|---|---|---|---|---|\n'
    "$dlmodel" compare data/unseen/*.csv --learning-curve --csv 2> /dev/null | awk "$csv_awk"' NR == 1 { head($0); next } { csv($0)
        printf "| %s | %s | %.0f %% | %.0f %% | %.0f %% |\n", value("runs_given"), value("groups"), value("mape_pct"), value("coverage_pct"),
            value("smallest_mape_pct") }'
} | block docs/measured.md learning-unseen

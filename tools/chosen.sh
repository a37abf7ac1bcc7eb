#!/bin/sh
# chosen.sh DLMODEL [check] - ten decisions that published runs measured, and what the predictions would have chosen, into
# docs/accuracy_tables.md: of each source and kind the job with most alternatives, most alternatives first. Run by `make accuracy`.
set -eu
dlmodel=$1
mode=${2-}
. tools/blocks.sh
export DLMODEL_LOCAL=/dev/null/local.json # no profile of this machine
{
    printf '| choice among | job (source) | alternatives | the best one is | regret of the choice | rank correlation |\n|---|---|---|---|---|---|\n'
    "$dlmodel" compare data/runs/*.csv data/unseen/*.csv --json 2> /dev/null | jq -r '
        def shown: if . == null then "-" else . * 100 | round / 100 end;
        .decisions | map(. + {source: (.group | capture("\\((?<s>[^()]*(\\([^()]*\\))?[^()]*)\\)$").s)})
        | group_by(.source, .kind) | map(max_by(.alternatives)) | sort_by(-.alternatives, .source) | .[:10][]
        | "| \(.kind) | \(.group | sub("gpt:layers=(?<l>[0-9]+),hidden=(?<h>[0-9]+)[^ ]*"; "GPT of \(.l) layers, hidden size \(.h)")) | \(.alternatives) | \(if .distinguished then "distinguished" else "indistinguishable" end) | \(.regret_pct * 10 | round / 10) % | \(.rank_correlation | shown) |"'
} | block docs/accuracy_tables.md chosen

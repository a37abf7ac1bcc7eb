#!/bin/sh
# left_out.sh - errors left out of the fit, computed from the rows again: of the two sources whose errors grow most when they are left out
# (LEFT_OUT_PART=long: of all), and the average of the headline from its rows.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
# shellcheck source=tools/blocks.sh
. tools/blocks.sh

recorded=docs/generalize/source.csv
awk "$csv_awk"' NR == 1 { head($0); next } { csv($0) }
    value("group") != "all" && value("group") != "macro-average" && value("rows") > 0 { print value("mape_pct") - value("in_sample_mape_pct") "\t" value("group") }' "$recorded" |
    sort -rn | cut -f 2 > "$SCRATCH/groups"
[ "${LEFT_OUT_PART-}" = long ] || sed -i '3,$d' "$SCRATCH/groups"
set --
while read -r group; do set -- "$@" --only "$group"; done < "$SCRATCH/groups"
run compare data/runs/*.csv --generalize source "$@" --csv
check 'sources left out again' 0
while read -r group; do
    for file in "$recorded" "$SCRATCH/out"; do
        awk -v wanted="$group" "$csv_awk"' NR == 1 { head($0); next } { csv($0) }
            value("group") == wanted { print value("rows"), value("mape_pct"), value("median_ape_pct"), value("p90_ape_pct"), value("max_ape_pct"), value("bias_pct"), value("in_sample_mape_pct") }' "$file"
    done > "$SCRATCH/both"
    if awk '{ for (i = 1; i <= NF; i++) { if (NR == 1) a[i] = $i; else if ($i - a[i] > 0.05 || a[i] - $i > 0.05) bad = 1 } } END { exit bad || NR != 2 || NF != 7 }' "$SCRATCH/both"; then
        echo "ok $recorded: $group is what its rows give"
    else
        bad "$recorded: $group is what its rows give" "$(cat "$SCRATCH/both") (make generalize)"
    fi
done < "$SCRATCH/groups"
if awk "$csv_awk"' NR == 1 { head($0); next } { csv($0) }
    value("group") == "macro-average" { headline = value("mape_pct"); next }
    value("group") != "all" && value("rows") > 0 { sum += value("mape_pct"); groups++ }
    END { exit !(groups > 20 && sum / groups - headline < 1e-6 && headline - sum / groups < 1e-6) }' "$recorded"; then
    echo 'ok the average is that of its sources'
else
    bad 'the average is that of its sources' "$(tail -n 1 "$recorded")"
fi

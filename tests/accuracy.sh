#!/bin/sh
# accuracy.sh DLMODEL README [check] - the table of errors against published runs, between the markers in the README; `check` only
# compares it with what stands there.
set -u
dlmodel=$1 readme=$2
table=$(mktemp) || exit 2
trap 'rm -f "$table" "$table.new"' EXIT
rows() { # rows TITLE ARGS...
    title=$1
    shift
    DLMODEL_LOCAL=/dev/null/local.json "$dlmodel" compare data/runs/*.csv --csv "$@" 2> /dev/null | awk -v title="$title" '
        function csv(line,   i, c, q, f) { n = 0; f = ""; q = 0
            for (i = 1; i <= length(line); i++) { c = substr(line, i, 1)
                if (c == "\"") q = !q; else if (c == "," && !q) { field[++n] = f; f = "" } else f = f c }
            field[++n] = f }
        function number(x) { return x == "" ? "-" : sprintf("%.1f", x) }
        NR == 1 { csv($0); for (i = 1; i <= n; i++) column[field[i]] = i; next }
        { csv($0); if (field[column["by"]] == "system") next
          printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", field[column["group"]], field[column["rows"]], field[column["skipped"]],
              number(field[column["mape_pct"]]), number(field[column["median_ape_pct"]]), number(field[column["p90_ape_pct"]]),
              number(field[column["max_ape_pct"]]), number(field[column["bias_pct"]]) }' > "$table.rows"
    printf '%s\n\n| source | rows | skipped | mean | median | 90th | worst | bias |\n|---|---|---|---|---|---|---|---|\n' "$title"
    cat "$table.rows"
    rm -f "$table.rows"
}
{
    rows 'Absolute error of the prediction in %, as it is:'
    echo
    rows 'The same with `--anchor`: compute corrected by the smallest run of each group, the others predicted (the scaling error alone):' --anchor
} > "$table"
if [ "${3-}" = check ]; then
    sed -n '/<!-- accuracy:begin -->/,/<!-- accuracy:end -->/p' "$readme" | sed '1d;$d' | diff - "$table" && echo 'ok README tells the accuracy of this version' ||
        { echo 'not ok README tells the accuracy of this version (make accuracy)'; exit 1; }
    exit 0
fi
awk -v table="$table" '/<!-- accuracy:begin -->/ { print; while ((getline line < table) > 0) print line; skip = 1; next }
    /<!-- accuracy:end -->/ { skip = 0 } !skip' "$readme" > "$table.new" && cat "$table.new" > "$readme"
cat "$table"

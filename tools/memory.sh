#!/bin/sh
# memory.sh DLMODEL [check] - published peaks of device memory (data/memory/published.csv) against predictions, into docs/accuracy_tables.md.
# The columns are options of predict; device_memory_bytes is what the devices of the run had. Run by `make accuracy`.
set -eu
dlmodel=$1
mode=${2-}
. tools/blocks.sh
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export DLMODEL_LOCAL=/dev/null/local.json # no profile of this machine

# A line for each run: id, source, peak and the options of predict, apart by tabs.
awk "$csv_awk"'
    NR == 1 { head($0); count = n; for (i = 1; i <= n; i++) name[i] = field[i]; next }
    { csv($0)
      printf "%s\t%s\t%s", value("id"), value("source"), value("peak_bytes")
      for (i = column["source"] + 1; i < column["device_memory_bytes"]; i++) {
          if (field[i] == "") continue
          option = name[i]; gsub(/_/, "-", option)
          printf "\t--%s", option
          if (name[i] != "sequence_parallel") printf "\t%s", field[i]
      }
      printf "\t--set\tdevice.memory_bytes=%s\n", value("device_memory_bytes") }' data/memory/published.csv > "$work/runs"

IFS=$(printf '\t')
while read -r id source peak options; do
    # shellcheck disable=SC2086 # words apart by tabs
    "$dlmodel" predict $options --json -q | jq -r --arg id "$id" --arg source "$source" --argjson peak "$peak" '
        def gib: . / 1073741824 * 10 | round / 10;
        .results[0] | .memory as $m |
        [$id, $source, .workload, .devices, .precision, ($peak | gib), ($m.reserved_bytes | gib), (1000 * ($m.reserved_bytes / $peak - 1) | round / 10),
         ($m.weights_bytes + $m.gradients_bytes + $m.optimizer_bytes | gib), ($m.activations_bytes | gib)] | @tsv'
done < "$work/runs" > "$work/rows"
awk -F '\t' '
    function size(x) { return x < 0 ? -x : x }
    BEGIN { print "| run | source | model | devices | precision | measured [GiB] | predicted | error [%] | states | activations |"
            print "|---|---|---|---|---|---|---|---|---|---|" }
    { line = "|"; for (i = 1; i <= NF; i++) line = line " " $i " |"; print line
      sum += $8; all += size($8); if (size($8) > size(worst)) worst = $8 }
    END { printf "| mean of %d | | | | | | | %.1f (bias %.1f, worst %.1f) | | |\n", NR, all / NR, sum / NR, worst }' "$work/rows" |
    block docs/accuracy_tables.md memory

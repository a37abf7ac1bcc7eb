#!/bin/sh
# known.sh DLMODEL [check] - trainings that everybody knows (data/known/published.csv), published and predicted, into docs/accuracy_tables.md.
# The columns are options of predict. Run by `make accuracy`.
set -eu
dlmodel=$1
mode=${2-}
. tools/blocks.sh
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export DLMODEL_LOCAL=/dev/null/local.json # no profile of this machine

# A line for each: what the table says of it and the options of predict, apart by tabs.
awk "$csv_awk"'
    NR == 1 { head($0); count = n; for (i = 1; i <= n; i++) name[i] = field[i]; next }
    { csv($0)
      printf "%s\t%s\t%s\t%s\t%s", value("what"), value("source"), value("metric"), value("published"), value("in_a_fit")
      for (i = column["source"] + 1; i < column["metric"]; i++) {
          if (field[i] == "") continue
          option = name[i]; gsub(/_/, "-", option)
          printf "\t--%s", option
          if (name[i] != "sequence_parallel") printf "\t%s", field[i]
      }
      printf "\n" }' data/known/published.csv > "$work/runs"

IFS=$(printf '\t')
while read -r what source metric published fit options; do
    # shellcheck disable=SC2086 # words apart by tabs
    "$dlmodel" predict $options --json -q > "$work/answer" 2> /dev/null || true
    # A plan that is said not to fit has no speed; this one ran: its speed with room enough.
    # shellcheck disable=SC2086
    [ "$(jq '.results[0].fits' "$work/answer")" = true ] || "$dlmodel" predict $options --set device.memory_bytes=1TB --json -q > "$work/answer" 2> /dev/null || true
    jq -r --arg what "$what" --arg source "$source" --arg metric "$metric" \
        --argjson published "$published" --arg fit "$fit" '
        def digits: if . >= 1000 then round else . * 10 | round / 10 end;
        .results[0] | .iteration_s as $s |
        {tokens: ["tokens/s and GPU", .tokens_per_s_per_device], model: ["model TFLOP/s", (.model_flop_per_s_per_device / 1e12)],
         hardware: ["TFLOP/s with recomputation", (.model_flop_per_s_per_device * .hfu_frac / .mfu_frac / 1e12)],
         days: ["days", ((.run_s // 0) / 86400)]}[$metric] as [$unit, $now] |
        (if $metric == "days" then 1 else -1 end) as $sign |
        [($now * (if $sign > 0 then .iteration_low_s else $s end) / (if $sign > 0 then $s else .iteration_high_s end)),
         ($now * (if $sign > 0 then .iteration_high_s else $s end) / (if $sign > 0 then $s else .iteration_low_s end))] as [$low, $high] |
        [$what, .devices, .precision, .framework + " " + .plan, $source, $unit, $published, ($now | digits), ((1000 * ($now / $published - 1) | round) / 10),
         "\($low | digits) to \($high | digits)", ((.memory.total_bytes / 1073741824 * 10 | round) / 10), $fit] | @tsv' "$work/answer"
done < "$work/runs" > "$work/rows"
awk -F '\t' '
    BEGIN { print "| run | GPUs | precision | plan | source | unit | published | predicted | error [%] | 80 % interval | memory [GiB] | in a fit |"
            print "|---|---|---|---|---|---|---|---|---|---|---|---|" }
    { line = "|"; for (i = 1; i <= NF; i++) line = line " " $i " |"; print line }' "$work/rows" |
    block docs/accuracy_tables.md known

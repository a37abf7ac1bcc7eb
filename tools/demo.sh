#!/bin/sh
# demo.sh - the main job on this machine: calibrate it, predict, compare with published runs, draw. Run by `make demo`.
# Environment: BUILD, the folder with dlmodel (build). The pictures and tables are left in $BUILD/demo.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
dlmodel=$build/dlmodel
out=$build/demo
nodes=1,2,4,8,16
mkdir -p "$out"

say() { printf '\n== %s\n' "$*"; }
show() { # show ARGS...: the command as a user would type it, then what it prints
    printf '\n$ dlmodel'
    printf ' %s' "$@"
    printf '\n'
    "$dlmodel" "$@"
}
fail() {
    printf '\ndemo: %s\n' "$*" >&2
    exit 1
}
# best FILE: framework, samples/s, efficiency in %, bottleneck, its share in %, of the fastest at the most nodes
best() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["framework"] == "ideal" { next }
        $at["nodes"] + 0 > most { most = $at["nodes"] + 0; top = 0 }
        $at["nodes"] + 0 == most && $at["fits"] == "true" && $at["throughput_samples_per_s"] + 0 > top {
            top = $at["throughput_samples_per_s"] + 0
            line = sprintf("%s, %.0f samples/s at %.0f %% of linear scaling; %.0f %% of an iteration is %s", $at["framework"], top,
                100 * $at["scaling_efficiency"], 100 * $at["bottleneck_share"], $at["bottleneck"])
        }
        END { print most " nodes: " (line == "" ? "nothing fits" : line) }' "$1"
}
# errors FILE: one line a source (errors of the time), from the summary as CSV; counted from the end, as a source's name may hold commas
errors() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = NF - i; next }
        { name = $1; for (i = 2; i <= NF - at["by"] - 1; i++) name = name "," $i
          kind = $(NF - at["by"]); rows = $(NF - at["rows"]); error = $(NF - at["time_mape_pct"]); gsub(/"/, "", name) }
        kind == "source" && rows > 0 { printf "   %-50s %4d rows, mean error %3.0f %%\n", name, rows, error }
        name == "all" { printf "   %-50s %4d rows, mean error %3.0f %%\n", "all", rows, error }
        name == "all-by-source" { printf "   %-50s %10s mean error %3.0f %%\n", "macro-average over sources", "", error }' "$1"
}
# number KEY FILE SCALE: the first value of a key in a JSON file, divided by SCALE
number() {
    grep -o "\"$1\": *[0-9.eE+-]*" "$2" | head -n 1 | sed 's/.*: *//' | awk -v scale="$3" '{ printf "%.3g", $1 / scale }'
}

# A short budget for the samples: a demo wants the shape of the answer; `dlmodel calibrate` gives the profile to keep.
say '1. How fast is this machine? (20 seconds)'
"$dlmodel" calibrate --quick --budget 6 > "$out/calibrate.txt" || fail "calibration failed; try: $dlmodel calibrate --quick -v"
cat "$out/calibrate.txt"
profile=${DLMODEL_LOCAL:-${XDG_DATA_HOME:-$HOME/.local/share}/dlmodel/local.json}
[ -r "$profile" ] || fail "calibration left no profile at $profile"

say '2. How fast would it train, alone and on more nodes like it, and how fast on a cluster of V100?'
for system in local iris-v100; do
    show predict --system "$system" --nodes "$nodes"
    "$dlmodel" -q predict --system "$system" --nodes "$nodes" --csv > "$out/predict-$system.csv"
done

say '3. How far are predictions from published runs?'
show compare data/runs/*.csv
"$dlmodel" -q compare data/runs/*.csv --csv > "$out/errors.csv"

say '4. Predicted and measured scaling'
show plot scaling data/runs/dlperf_oneflow.csv --workload resnet50 -o "$out/scaling-v100"
show plot scaling data/runs/azure_batch_ai.csv --workload resnet50 --where backend=nccl -o "$out/scaling-p100-k80"
show plot error data/runs/*.csv -o "$out/errors"
show plot scaling data/runs/tensorflow_2017.csv --workload inception_v3 --where batch_per_device=64 --format terminal

say 'What was found'
printf ' - This machine attains %s GFLOP/s in fp32 and reads and writes memory at %s GB/s.\n' \
    "$(number peak_flop_per_s "$profile" 1e9)" "$(number memory_bandwidth_bytes_per_s "$profile" 1e9)"
printf ' - ResNet-50 on nodes like this one (with an assumed network): the fastest framework on %s.\n' "$(best "$out/predict-local.csv")"
printf ' - ResNet-50 on iris-v100: the fastest framework on %s.\n' "$(best "$out/predict-iris-v100.csv")"
printf ' - Published runs that constants were fitted to, by source (in-sample error of the time, absolute):\n'
errors "$out/errors.csv"
printf '\nProfile of this machine: %s\nPictures and tables:\n' "$profile"
for file in "$out"/*; do printf '   %s\n' "$file"; done
printf 'Next: %s help, or %s explain --nodes 4 --framework pytorch-ddp for every term of one prediction.\n' "$dlmodel" "$dlmodel"

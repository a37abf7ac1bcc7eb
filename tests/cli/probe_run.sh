#!/bin/sh
# probe_run.sh - the runs that narrow a prediction most: fewer devices, less device time, a script that runs, and an interval that is
# as narrow as promised once they are measured.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
holds() { says "$1" test "$(jq --argjson promised "${promised-0}" "$2" "$SCRATCH/out")" = true; } # holds NAME FILTER
plan='-s iris-v100 -w resnet50 -f pytorch-ddp -p mixed -n 16'
# shellcheck disable=SC2086 # words
run probe-run $plan
check 'a job script' 0
cp "$SCRATCH/out" "$SCRATCH/probe.sh"
has 'it promises a narrower interval' '^# 80 % interval of its iteration: up to \+[0-9]+ % now, \+[0-9]+ % after th'
mkdir -p "$SCRATCH/bin"
ln -sf "$DLMODEL" "$SCRATCH/bin/dlmodel"
PATH=$SCRATCH/bin:$PATH sh "$SCRATCH/probe.sh" --site iris --dry-run > "$SCRATCH/out" 2> "$SCRATCH/err"
status=$?
check 'the script submits' 0 'would be submitted'
has 'its runs' 'pytorch-ddp-resnet50-mixed-n1x'
# shellcheck disable=SC2086
run probe-run $plan --json
check 'as JSON' 0
holds 'fewer devices, within ten percent of the best gain, the cheapest of the candidates that are enough alone' '
    (.interval_end_ratio_best <= .interval_end_ratio_after) and (.interval_end_ratio_after < .interval_end_ratio) and
    ([.candidates[] | select(.chosen)] | length >= 1 and length <= 3 and all(.nodes * .devices_per_node <= 32)) and
    (((.interval_end_ratio | log) - (.interval_end_ratio_after | log)) >= 0.9 * ((.interval_end_ratio | log) - (.interval_end_ratio_best | log)) - 1e-9) and
    (. as $all | [.candidates[] | select(.interval_end_ratio <= $all.interval_end_ratio_after) | .device_time_s / 3600] | all(. >= $all.device_hours - 1e-9))'
# Measured as predicted, the chosen runs leave what was promised (no disagreement).
jq -r '"id,source,system,framework,workload,precision,optimizer,nodes,devices_per_node,batch_per_device,metric,value",
    (.candidates | to_entries[] | select(.value.chosen) |
     "c\(.key),me,iris-v100,pytorch-ddp,resnet50,mixed,momentum,\(.value.nodes),\(.value.devices_per_node),\(.value.batch_per_device_samples),iteration,\(.value.iteration_s)")' \
    "$SCRATCH/out" > "$SCRATCH/probe.csv"
promised=$(jq .interval_end_ratio_after "$SCRATCH/out")
# shellcheck disable=SC2086
run predict $plan --measured "$SCRATCH/probe.csv" --json -q
holds 'measured as predicted, they keep the promise' '
    .results[0] | .corrected_by >= 1 and ((.iteration_high_s / .iteration_s) / $promised - 1 | fabs) < 1e-6'
# A plan that dlmodel slurm cannot run: a table to fill in, which compare reads.
run probe-run -s dgx-h100 -w llama3_8b -f megatron-core -n 16 -B 512 --tp 2
check 'a plan of ranks' 0
(cd "$SCRATCH" && sh out)
sed -i 's/throughput,$/throughput,20/' "$SCRATCH/probe.csv"
run compare "$SCRATCH/probe.csv" --json
holds 'its rows can be predicted, and fit' '(.rows | length >= 1) and (.rows | all((.skipped | not) and .bottleneck != "memory-capacity"))'

run probe-run -s iris-v100
check 'one framework' 2 'probe-run takes one'
run probe-run -f pytorch-ddp -n 1,2
check 'one number of nodes' 2 'one number of --nodes'
run probe-run -f pytorch-ddp -n 8 --measured "$SCRATCH/probe.csv"
check 'not after the first runs' 2

#!/bin/sh
# generalize.sh - errors of runs that no fit has seen, constants, learning curves, decisions, and predictions corrected by measured
# runs: what a user types and sees. The statistics are tested in unit/test_intervals.
. tests/cli/lib.sh
set -u

# A device takes what its file does not say from the one whose kernels it borrows, but --set and the fits reach files by name: a
# constant whose key leaves such a device of measured runs out would serve rows that its fit does not move.
unreached=$(cut -d, -f1 docs/generalize/device.csv | while read -r device; do
    [ -f "data/devices/$device.json" ] || continue
    jq -r --arg device "$device" --slurpfile constants data/constants.json '. as $file | $constants[0].constants[].key |
        select(startswith("device.")) | split(".") as $key | ($key[1] | split(",")) as $names | $key[2] as $field |
        select(($names | index($file.kernel_models_from // "")) and ($names | index($device) | not) and ($file | has($field) | not)) |
        "\($device).\($field)"' "data/devices/$device.json"
done)
if [ -z "$unreached" ]; then
    echo 'ok every fitted constant names the devices that take it over'
else
    echo "not ok every fitted constant names the devices that take it over: $unreached"
fi

# Two sources and the constants that they share, in a data folder of their own.
mkdir -p "$SCRATCH/data"
cp -R data/. "$SCRATCH/data"
cat > "$SCRATCH/data/constants.json" << 'END'
{"format": "dlmodel-constants", "version": 1, "constants": [
  {"key": "framework.pytorch-ddp.dispatch_s", "low": 1e-6, "high": 1e-3, "why": "host time to issue one kernel"}]}
END
constant=$(sed -n 's/.*"dispatch_s": \([0-9.e-]*\).*/\1/p' data/frameworks/pytorch-ddp.json)
head='id,source,system,framework,workload,precision,nodes,devices_per_node,batch_per_device,metric,value'
# Runs of a framework whose kernels are issued in 200 us: three sources agree on it, and so must the fit.
runs() { # runs DISPATCH_S > table without values
    for source in a b c; do
        for batch in 1 2 4; do echo "$source$batch,$source,iris-v100,pytorch-ddp,resnet50,mixed,1,1,$batch,iteration,1"; done
    done
}
{ echo "$head"; runs; } > "$SCRATCH/plain.csv"
"$DLMODEL" --data "$SCRATCH/data" compare "$SCRATCH/plain.csv" --set framework.dispatch_s=0.0002 --rows --csv 2> /dev/null |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next } { print $column["id"], $column["predicted"] }' > "$SCRATCH/values"
{ echo "$head"; runs | while IFS=, read -r id rest; do
    value=$(awk -v id="$id" '$1 == id { print $2 }' "$SCRATCH/values")
    echo "$id,${rest%,1},$value"
done; } > "$SCRATCH/runs.csv"
run --data "$SCRATCH/data" compare "$SCRATCH/runs.csv" --fit-constants --csv
check 'a constant on which three sources agree' 0
has 'the fit finds it' '^framework.pytorch-ddp.dispatch_s,[0-9.e-]*,0.000(199|20)'
[ -n "$constant" ] && has 'next to the value in its file' "^framework.pytorch-ddp.dispatch_s,$constant"
run --data "$SCRATCH/data" compare "$SCRATCH/runs.csv" --generalize source --json
check 'sources left out' 0
if jq -e '[.summary[] | select(.group == "macro-average")][0] | .rows == 9 and .mape_pct < 1 and .in_sample_mape_pct > 5' "$SCRATCH/out" > /dev/null; then
    echo 'ok each source is predicted from the others'
else
    bad 'each source is predicted from the others' 'expected an error below 1 %, above 5 % with the constant of the file'
fi
run --data "$SCRATCH/data" compare "$SCRATCH/runs.csv" --generalize source --intervals "$SCRATCH/intervals.json"
check 'intervals are written' 0
if jq -e '(.network_parameters | length) == 1 and (.network_parameters[0] / 25557032 - 1 | fabs) < 1e-6
        and .widths.network_log > 0 and .widths.assumed_log > 0' "$SCRATCH/intervals.json" > /dev/null; then
    echo 'ok with the networks that were measured'
else
    bad 'with the networks that were measured' "$(head -c 400 "$SCRATCH/intervals.json")"
fi
# Wider by what is not known: a network that nobody measured, a release that the table does not say or that no file describes.
jq '.widths.network_log = 0.3 | .widths.assumed_log = 0.4 | .network_parameters = [25557032]' \
    data/intervals.json > "$SCRATCH/data/intervals.json"
{ echo "$head,framework_version"
    for run in resnet50:1.8 resnet50: resnet50:nonesuch resnet101:1.8 resnet101:; do
        echo "$run,me,iris-v100,pytorch-ddp,${run%:*},fp32,1,1,32,iteration,1,${run#*:}"
    done; } > "$SCRATCH/known.csv"
run --data "$SCRATCH/data" compare "$SCRATCH/known.csv" --rows --json
check 'runs of which more or less is known' 0
if jq -e '[.rows[] | (.predicted_high / .predicted | log) | . * .] as $h | ($h[1] - $h[0] - 0.16 | fabs) < 0.001 and
        ($h[2] - $h[1] | fabs) < 0.001 and ($h[4] - $h[3] - 0.16 | fabs) < 0.001 and ($h[3] - $h[0] - 0.09 | fabs) < 0.03' \
    "$SCRATCH/out" > /dev/null; then
    echo 'ok the squares of what is not known add'
else
    bad 'the squares of what is not known add' "$(jq -c '[.rows[] | (.predicted_high / .predicted | log) | . * .]' "$SCRATCH/out")"
fi
cp data/intervals.json "$SCRATCH/data/intervals.json"
run --data "$SCRATCH/data" compare "$SCRATCH/runs.csv" --fit-constants --write
check 'the value is written' 0
run --data "$SCRATCH/data" compare "$SCRATCH/runs.csv" --max-error 1
check 'and used from then on' 0
grep -v ',[bc],' "$SCRATCH/runs.csv" > "$SCRATCH/one.csv"
run --data "$SCRATCH/data" compare "$SCRATCH/one.csv" --fit-constants
check 'a constant that serves one source is refused by name' 1 'refused: framework.pytorch-ddp.dispatch_s'
run compare "$SCRATCH/runs.csv" --write
check 'nothing to write' 2 'fit-constants'
run compare "$SCRATCH/runs.csv" --generalize rows
check 'only what can be left out' 2 'source, framework, device, system'
sed -i 's/dispatch_s/dispatched_s/' "$SCRATCH/data/constants.json"
run --data "$SCRATCH/data" compare "$SCRATCH/runs.csv" --generalize source
check 'a constant that is in no file' 3 'constants\[0\].key'

# Runs of one's own: twice as slow as predicted on one device, so other predictions follow.
cat > "$SCRATCH/mine.csv" << END
$head
1,me,iris-v100,pytorch-ddp,resnet50,fp32,1,1,32,throughput,150
2,me,iris-v100,pytorch-ddp,resnet50,fp32,1,1,64,throughput,155
END
iteration() { jq '.results[0].iteration_s' "$SCRATCH/out"; }
run predict -s iris-v100 -f pytorch-ddp -w vgg16 -n 2 --json -q
check 'without measured runs' 0
plain=$(iteration)
run predict -s iris-v100 -f pytorch-ddp -w vgg16 -n 2 --json -q --measured "$SCRATCH/mine.csv"
check 'with two measured runs' 0
if awk -v a="$plain" -v b="$(iteration)" 'BEGIN { exit !(b > 1.1 * a && b < 2.5 * a) }'; then
    echo 'ok another network on more devices takes longer as well'
else
    bad 'another network on more devices takes longer as well' "from $plain"
fi
for command in search 'plot scaling' explain; do
    # shellcheck disable=SC2086 # two words
    run $command -s iris-v100 -f pytorch-ddp -w resnet50 -n 1 --measured "$SCRATCH/mine.csv" -o "$SCRATCH/made.svg"
    check "$command takes measured runs" 0
done
# A system of one's own: its rows name the file, or what the file names the system. Rows that cannot be predicted are named.
sed 's/"iris-v100"/"mine"/' data/systems/iris-v100.json > "$SCRATCH/mine.json"
sed "2s/iris-v100/mine/; 3s|iris-v100|$SCRATCH/mine.json|" "$SCRATCH/mine.csv" > "$SCRATCH/named.csv"
run predict -s "$SCRATCH/mine.json" -f pytorch-ddp -w resnet50 -n 1 --measured "$SCRATCH/named.csv"
check 'rows of a system file' 0 'corrected by 2 of the 2 runs'
sed '3s/resnet50/resnet99/' "$SCRATCH/mine.csv" > "$SCRATCH/half.csv"
run predict -s iris-v100 -f pytorch-ddp -w resnet50 -n 1 --measured "$SCRATCH/half.csv"
check 'a row that cannot be predicted corrects nothing' 0 'corrected by 1 of the 2 runs'
check 'and its reason is reported' 0 '1 of this system and framework cannot be used; line 3 \(2\): no workload "resnet99"'
run predict -s dgx1-v100 -f pytorch-ddp --measured "$SCRATCH/mine.csv"
check 'runs of another system say nothing' 2 'no run that can be used on system dgx1-v100'
run compare data/runs/dlperf_oneflow.csv --learning-curve --csv
check 'a learning curve' 0
has 'its steps' '^8,'
run compare data/runs/vtrain_a100_nodes.csv --json
has 'decisions' '"regret_pct": '

run schema runs --template
check 'a template of runs' 0
has 'with every plan option' ',zero_group,.*,virtual_stages'
run schema device --template
check 'not of everything' 2 'schema runs'

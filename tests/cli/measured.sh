#!/bin/sh
# measured.sh - --measured believes what runs of one's own agree on: one that the others contradict is named and left out, a row that no
# machine could have measured is refused by name, disagreement widens the interval.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
head=id,source,system,framework,workload,precision,nodes,devices_per_node,batch_per_device,metric,value,unit
row() { echo "$1,me,iris-v100,pytorch-ddp,resnet50,mixed,$2,$3,64,$4,$5,$6"; } # row ID NODES DEVICES METRIC VALUE UNIT
good() { row one 1 1 throughput 700 && row four 1 4 throughput 2600 && row eight 2 4 throughput 5000 && row sixteen 4 4 throughput 9900; }
ask() { # ask NAME: predicts 8 nodes from the rows in $SCRATCH/rows; throughput and ends of the interval in $SCRATCH/NAME
    { echo "$head" && cat "$SCRATCH/rows"; } > "$SCRATCH/$1.csv"
    run predict -s iris-v100 -w resnet50 -f pytorch-ddp -n 8 -b 64 -p mixed --measured "$SCRATCH/$1.csv" --json
    jq -r '.results[0] | "\(.throughput_samples_per_s) \(.iteration_low_s) \(.iteration_high_s) \(.corrected_by)"' "$SCRATCH/out" > "$SCRATCH/$1" 2> /dev/null
    [ -s "$SCRATCH/$1" ] || echo '0 0 0 0' > "$SCRATCH/$1"
}
holds() { # holds NAME CONDITION FILE...: of the numbers of the files, one after the other
    name=$1 condition=$2
    shift 2
    numbers=$( (cd "$SCRATCH" && cat "$@") | tr '\n' ' ')
    says "$name ($numbers)" awk -v n="$numbers" "BEGIN { split(n, v, \" \"); exit !($condition) }"
}

good > "$SCRATCH/rows" && ask good
check 'four runs that agree' 0 'corrected by 4 of the 4 runs'
hasnt 'nothing to say of them' 'measured runs:'
{ good && row thirtytwo 8 4 throughput 6000; } > "$SCRATCH/rows" && ask bad
check 'a fifth that they contradict' 0 'corrected by 4 of the 5 runs'
has 'it is named, with a cause' 'thirtytwo \(line 6\) left out: 3\.[0-9]+ times its prediction, the others 0\.9[0-9]* times theirs .*; network between nodes slower'
holds 'and changes nothing: prediction and interval are those of the four' 'v[1] > 0 && v[1] == v[5] && v[2] == v[6] && v[3] == v[7] && v[8] == 4' good bad
# The order of rows decides nothing.
{ row thirtytwo 8 4 throughput 6000 && good; } > "$SCRATCH/rows" && ask first
holds 'the first row may be the bad one' 'v[1] / v[5] - 1 < 1e-9 && v[5] / v[1] - 1 < 1e-9 && v[8] == 4' good first
# Two that disagree: neither is to blame.
row eight 2 4 throughput 5000 > "$SCRATCH/rows" && ask alone
{ row eight 2 4 throughput 5000 && row sixteen 4 4 throughput 3000; } > "$SCRATCH/rows" && ask two
check 'two runs that disagree' 0 'corrected by 2 of the 2 runs'
has 'that is said' 'disagree with each other .* spread is [0-9.]+ times the usual'
holds 'and makes the interval wider than with one' 'v[7] / v[6] > 1.5 * v[3] / v[2] && v[8] == 2' alone two
# Four times as slow as predicted in all runs: a machine is as its runs say.
{ row one 1 1 throughput 165 && row four 1 4 throughput 620 && row eight 2 4 throughput 1200; } > "$SCRATCH/rows" && ask slow
holds 'a slow machine is believed' 'v[1] > 4000 && v[1] < 6500 && v[4] == 3' slow

# Beyond belief: each is named with what is suspicious.
{ good && row ms 1 4 iteration 103 s && row alone 1 4 throughput 1 && row many 1 4 throughput 100000; } > "$SCRATCH/rows" && ask units
check 'rows beyond belief' 0 'corrected by 4 of the 7 runs'
has 'milliseconds as seconds' 'line 6 \(ms\): beyond belief: .* times as long as predicted; its value looks like milliseconds, not seconds'
has '2,400 times too slow' 'line 7 \(alone\): beyond belief: 2[0-9]{3} times as long as predicted'
has 'faster than the device' 'line 8 \(many\): beyond belief: [0-9]+ % of the peak of v100_sxm2_16'
holds 'they change nothing' 'v[1] > 0 && v[1] == v[5] && v[3] == v[7]' good units
row ms 1 4 iteration 103 s > "$SCRATCH/rows" && ask only
check 'no other rows: refused' 2 'no run that can be used .* line 2 \(ms\): beyond belief'
{ good && row device 4 4 throughput 640; } > "$SCRATCH/rows" && ask device
has 'the rate of one device' 'device \(line 6\) left out: .* its value looks like the samples/s of one device, not of all'

# Runs of the answer, in words.
run predict -s iris-v100 -w resnet50 -f pytorch-ddp -n 8 -b 64 -p mixed --measured "$SCRATCH/bad.csv"
has 'the answer says how many runs corrected it' 'prediction interval .* to .*, corrected by 4 measured runs\)\.'

# Sources that no constant was fitted to: with more runs given the others are predicted better, and
# however many are given, at least 80 % of the others lie in their intervals.
run compare data/unseen/*.csv --learning-curve --csv
check 'learning curve of unseen sources' 0
awk -F, 'NR > 1 { if (NR > 2 && !($3 < error)) wrong = 1; if (!($4 >= 80)) wrong = 1; error = $3; n++ }
    END { print (n == 5 && !wrong ? "better at every step" : "not better at a step") }' "$SCRATCH/out" > "$SCRATCH/steps"
cat "$SCRATCH/steps" >> "$SCRATCH/out"
has 'each step is better than the one before' 'better at every step'
hasnt 'none is not' 'not better'

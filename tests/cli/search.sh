#!/bin/sh
# search: finds plans, says why there are none, splits into parts that merge, prints the contract's fields.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
gpt='gpt:layers=8,hidden=1024,heads=16,seq=512,vocab=51200'
search() { run search --system dgx-a100-80 --nodes 2 --workload "$gpt" --global-batch 32 --precision mixed --optimizer adam "$@"; }

search --json --threads 1
check 'search --json' 0
for f in format version dlmodel evaluated_count feasible_count elapsed_s threads results rejected front limits elasticity changes micro_batch_samples \
    schedule recompute zero mapping iteration_s memory bottleneck; do has "search json field $f" "\"$f\":"; done
has 'search json format' '"format": ?"dlmodel-search"'

search --threads 2 --long
check 'search' 0
has 'terms of the best plan' 'F-TRANSFORMER-LAYER'
has 'limits' 'Limits of the best plan'
has 'elasticities' 'links.inter.bandwidth +[-+]0'
has 'changes' 'Best hardware upgrade: '

# Every row: its interval, whether it is tied with the best one, and the command that gives it again to 1e-9.
search --json --threads 1 --top 12
for f in iteration_low_s iteration_high_s command tied_with_best tokens_per_s tokens_per_s_per_device model_flop_per_s_per_device mfu_frac hfu_frac cost energy_j \
    gpu_hours; do has "search rows have $f" "\"$f\":"; done
mkdir -p "$work/bin"
ln -sf "$DLMODEL" "$work/bin/dlmodel"
again() { # again NAME: the commands of the rows in out, the simplest within 3 % and then best first, each run as printed
    if ! command -v jq > /dev/null 2>&1; then echo "skip $1: no jq (Debian package jq)"; return; fi
    cp "$work/out" "$work/rows.json"
    if jq -e '[.results[].iteration_s] | .[0] <= 1.03 * min and (.[1:] | . == sort)' "$work/rows.json" > /dev/null; then echo "ok $1: best first"; else echo "not ok $1: best first"; fi
    if jq -e --argjson sigma "$(jq .plans_sigma_log "${DLMODEL_ROOT:-.}/data/intervals.json")" '.results[0].iteration_s as $best |
        all(.results[]; .tied_with_best == ((.iteration_s / $best | log) <= 1.2815515655446004 * (2 | sqrt) * $sigma))' "$work/rows.json" > /dev/null; then
        echo "ok $1: ties"; else echo "not ok $1: ties"; fi
    jq -r '.results[] | "\(.iteration_s)\t\(.memory.total_bytes)\t\(.command)"' "$work/rows.json" > "$work/rows.txt"
    wrong=0 tried=0
    while IFS="$(printf '\t')" read -r time bytes line; do
        tried=$((tried + 1))
        got=$(PATH=$work/bin:$PATH sh -c "$line --json" 2> "$work/err" < /dev/null | jq -r '.results[0] | "\(.iteration_s) \(.memory.total_bytes)"')
        echo "$time $bytes $got" | awk '{ d = $1 - $3; e = $2 - $4 } NF != 4 || d > 1e-9 * $1 || -d > 1e-9 * $1 || e > 1 || -e > 1 { exit 1 }' ||
            { wrong=$((wrong + 1)); echo "# $line: $got instead of $time $bytes"; }
    done < "$work/rows.txt"
    if [ "$wrong" -eq 0 ] && [ "$tried" -gt 2 ]; then echo "ok $1: $tried commands give their rows again"; else echo "not ok $1: $wrong of $tried commands"; fi
}
again 'search of a transformer'
run search --system dgx-h100 --nodes 16 --global-batch 256 --precision bf16 --framework megatron --workload llama3_70b
has 'a tight plan, and the best with room is named' '^The best plan needs more than 83 % of the memory; the fastest that leaves more is [0-9]+ % slower: dp[0-9]+ '
run search --system dgx-h100 --nodes 12 --global-batch 256 --precision bf16 --framework megatron --workload llama3_70b
has 'neighbors of the best plan' '^Why not tp [0-9]+: '
run search --system dgx-h100 --nodes 16 --global-batch 256 --precision bf16 --framework megatron --workload \
    gpt:layers=32,hidden=4096,heads=32,seq=4096,vocab=32000,ffn=21504,experts=8,topk=2,capacity=1,flash=1 --json --top 24
again 'search of a mixture on many nodes'
run search --system abci-v100 --nodes 4 --workload resnet50 --framework chainermn --global-batch 64 --threads 1 --json
again 'search of a network'
# Settings that vary: each row's command has them, and a host that is too small is a reason.
mixture() { run search --system dgx-h100 --nodes 2 --framework megatron-core --workload gpt:layers=8,hidden=1024,heads=16,seq=512,experts=8,topk=2 --global-batch 32 "$@"; }
mixture --vary moe-dispatch,offload,recompute-layers --json --top 24
again 'search of settings'
if jq -r '.results[].command' "$work/rows.json" | grep -q -e '--moe-dispatch deepep'; then echo 'ok settings that vary are in the commands'; else echo 'not ok settings that vary are in the commands'; fi
mixture --offload optimizer --set host.memory_bytes=100MB
check 'a host that is too small for every plan' 1 'no plan'
mixture --vary offload --set host.memory_bytes=100MB --json
has 'plans that the host has no room for are counted' '"does not fit in the host.s memory": ?[1-9]'
mixture --vary moe-dispatch --shard 0/2 --csv
check 'settings of a part' 2 'vary: not together with --shard'
mixture --vary nothing
check 'a setting that cannot vary' 2 'vary: expected one of all, overlap-grad-reduce'
run search --system dgx-a100-80 --gpus 4 --workload gpt2 --framework pytorch-fsdp --precision bf16 --global-batch 16 --json --set seq=512
again 'search on a part of a node'
run import trace tests/fixtures/trace/gpu.json --workload resnet18 --system iris-v100 --batch 32 -o "$work/layers.json"
run search --system iris-v100 --workload resnet18 --framework pytorch-ddp --nodes 2 --global-batch 256 --layers "$work/layers.json" --json
again 'search with measured layers'
run search --system iris-v100,dgx-h100 --workload gpt2_xl --framework megatron-core,pytorch-fsdp2 --global-batch 64 --threads 1
check 'search of several systems and frameworks' 0
has 'the fastest of all first' '^Fastest: megatron-core on dgx-h100: '
has 'a line for each' '^ iris-v100 +pytorch-fsdp2 +fp32 '
run search --system dgx-h100 --workload gpt2_xl --framework megatron-core,pytorch-fsdp2 --global-batch 64 --threads 1 --csv
both=$(sed -n 's/^dgx-h100,pytorch-fsdp2,[^,]*,8,[^,]*,\([^,]*\),.*/\1/p' "$SCRATCH/out")
run search --system dgx-h100 --workload gpt2_xl --framework pytorch-fsdp2 --global-batch 64 --threads 1 --json
says 'each as when searched alone' test "$both" = "$(jq '.results[0].iteration_s' "$SCRATCH/out")"
run search --system iris-v100 --workload llama3_70b --framework megatron-core,pytorch-fsdp2
check 'none of them has a plan' 1 'no plan on any of them'

run search --system iris-v100,dgx-h10 --workload gpt2_xl --global-batch 64
check 'a misspelt system of a list' 2 'no system "dgx-h10"; did you mean "dgx-h100"'
run search -s dgx-h100,iris-v100 -f pytorch-dd,horovod-tensorflow -w resnet50
check 'and a misspelt framework' 2 'no framework "pytorch-dd"; did you mean "pytorch-ddp"'
run search -s , -w resnet50
check 'and a list without names' 2 'no system ","'
run predict --system iris-v100,dgx-h100 --workload resnet50 --framework pytorch-ddp --batch-per-device 64 --nodes 2 --csv
check 'predict for several systems' 0
both=$(sed -n 's/^iris-v100,pytorch-ddp,fp32,8,data,\([^,]*\),.*/\1/p' "$SCRATCH/out")
has 'the fastest of them first' '^dgx-h100,pytorch-ddp,bf16,16,data,'
run predict --system iris-v100 --workload resnet50 --framework pytorch-ddp --batch-per-device 64 --nodes 2 --json
says 'each as when predicted alone' test "$both" = "$(jq '.results[0].iteration_s' "$SCRATCH/out")"

# Two parts merged are the whole.
search --csv --threads 1
cut -d, -f1-30 "$work/out" > "$work/whole"
search --csv --shard 0/2 -o "$work/a.csv"
search --csv --shard 1/2 -o "$work/b.csv"
search --csv --merge "$work/a.csv" --merge "$work/b.csv"
check 'merge' 0
cut -d, -f1-30 "$work/out" > "$work/merged"
if cmp -s "$work/whole" "$work/merged"; then echo 'ok parts merged are the whole'; else echo 'not ok parts merged are the whole'; fi

# What is given is not searched.
search --tp 4 --recompute full --json --threads 1
check 'search --tp 4' 0
hasnt 'other tensor ranks' '"tp": ?([1235-9]|[0-9]{2})'
hasnt 'other recomputation' '"recompute": ?"(none|selective)"'

# A mixture of experts: spread over ranks, and refused where it cannot be.
moe='gpt:layers=4,hidden=1024,heads=16,seq=512,vocab=51200,experts=8,topk=2'
run search --system dgx-a100-80 --nodes 2 --workload "$moe" --global-batch 32 --precision mixed --optimizer adam --csv --top 64
check 'search of a mixture' 0
has 'expert ranks' '^expert,'
run explain --all --system dgx-a100-80 --nodes 2 --workload "$moe" --framework megatron --strategy expert --ep 8 --global-batch 32 --precision mixed
check 'explain of a mixture' 0
has 'tokens to experts' 'expert all-to-all x .*F-TRANSFORMER-EXPERT'
has 'gradients of experts' '^ expert gradients x '
run predict --system dgx-a100-80 --nodes 2 --workload "$moe" --framework megatron --ep 16 --global-batch 32
check 'more expert ranks than experts' 2 'only 8 experts'
run predict --system dgx-a100-80 --nodes 2 --workload "$gpt" --framework megatron --ep 2 --global-batch 32
check 'expert ranks without experts' 2 'has no mixture of experts'
run predict --system dgx-a100-80 --nodes 2 --workload "${moe%2}9" --framework megatron --global-batch 32
check 'more choices than experts' 2 'at most the number of experts \(8\)'

value() { sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" "$work/out" | head -n 1; }
# A router that crowds tokens on one rank: slower and larger, at most by the number of ranks; a search repeats it in its commands.
for x in 1 2 8; do
    run predict --system dgx-a100-80 --nodes 2 --workload "$moe" --framework megatron-core --precision bf16 --ep 8 --tp 1 --cp 1 --zero 1 --micro-batch 2 --global-batch 32 --expert-imbalance $x --json
    check "$x times the mean tokens on a rank" 0
    echo "$(value iteration_s) $(value activations_bytes)" >> "$work/crowds"
done
if awk 'NR > 1 { if (!($1 > t && $2 > m)) bad = 1; step[NR] = ($2 - m) / (NR == 2 ? 1 : 6) } { t = $1; m = $2 }
    END { exit bad || step[2] <= 0 || step[3] / step[2] > 1.001 || step[3] / step[2] < 0.999 }' "$work/crowds"; then
    echo 'ok memory grows by the same for each share of the tokens'; else echo "not ok memory grows by the same for each share of the tokens: $(cat "$work/crowds")"; fi
run predict --system dgx-a100-80 --nodes 2 --workload "$moe" --framework megatron-core --ep 8 --global-batch 32 --expert-imbalance 8.5
check 'more than all tokens on a rank' 2 'at most the 8 expert ranks'
run search --system dgx-a100-80 --nodes 2 --workload "$moe,capacity=1" --framework megatron-core --global-batch 32 --expert-imbalance 2
check 'a capacity leaves no crowd' 2 'a capacity bounds'
run search --system dgx-a100-80 --nodes 2 --workload "$gpt" --framework megatron-core --global-batch 32 --expert-imbalance 2
check 'no experts, no crowd' 2 'has no mixture of experts'
run search --system dgx-a100-80 --nodes 2 --workload "$moe" --framework megatron-core --precision bf16 --global-batch 32 --ep 4 --expert-imbalance 6 --json --top 3
check 'search with a crowded rank' 0
has 'the most that 4 ranks can differ by' '--expert-imbalance 4[ "]'
again 'a crowded rank'

# Hybrid sharding: inside the node, copies across nodes.
for g in 4 8; do # iris: 4 devices a node
    run predict --system iris-v100 --nodes 2 --workload gpt2 --framework pytorch-fsdp --precision mixed --global-batch 8 --recompute full --zero-group $g --json
    check "states shared out among $g" 0
    sed -n 's/.*"comm_s": *\([0-9.e-]*\).*/\1/p' "$work/out" | head -n 1 > "$work/comm$g"
done
if awk 'NR == FNR { a = $1; next } { exit !(a > 0 && a < $1) }' "$work/comm4" "$work/comm8"; then echo 'ok sharing inside a node moves less across'; else
    echo 'not ok sharing inside a node moves less across'; fi
run predict --system dgx-a100-80 --nodes 2 --workload gpt2_xl --framework pytorch-fsdp --precision mixed --global-batch 32 --zero-group 5
check 'a group that does not divide' 2 'nearest is'
run predict --system dgx-a100-80 --nodes 2 --workload resnet50 --framework pytorch-ddp --zero-group 4
check 'a group without sharding' 2 'goes with sharded states'

# A convolutional network: its splits and their products with data parallelism.
network() { run search --system abci-v100 --nodes 4 --workload resnet50 --framework chainermn --global-batch 64 --threads 1 "$@"; }
network --csv --top 64
check 'search of a convolutional network' 0
for s in data data.spatial data.filter data.channel data.pipeline; do has "search tries $s" "^$s,"; done
has 'search tries parts over all devices' '^(filter|channel|pipeline),'
network --strategy data+filter --csv
check 'search of one strategy' 0
hasnt 'other strategies' '^(data|data.spatial|data.channel|data.pipeline|pipeline|zero.),'
network --sp 4 --csv
check 'search with parts of images given' 0
hasnt 'other parts' '^(data|data.filter|data.pipeline),'
network --tp 5
check 'parts that do not divide the devices' 2 'no arrangement of ranks is possible'
network --csv --top 64
cut -d, -f1-30 "$work/out" > "$work/whole"
network --csv --top 64 --shard 0/2 -o "$work/a.csv"
network --csv --top 64 --shard 1/2 -o "$work/b.csv"
network --csv --top 64 --merge "$work/a.csv" --merge "$work/b.csv"
check 'merge of a network' 0
cut -d, -f1-30 "$work/out" > "$work/merged"
if cmp -s "$work/whole" "$work/merged"; then echo 'ok parts of a network merged are the whole'; else echo 'not ok parts of a network merged are the whole'; fi

# The impossible: why, and what is nearest.
search --tp 5
check 'ranks that do not divide' 2 'does not divide the 16 heads'
search --memory 1GB
check 'too little memory' 1 'no plan fits.*nearest'
search --max-iteration 1us
check 'no plan is that fast' 1 'no plan meets the deadline'
search --deadline 1h
check 'a deadline is that of a run' 2 'needs --tokens or --epochs'
search --tokens 1T --deadline 1min
check 'no plan ends the run in time' 1 'no plan meets the deadline'
search --shard 2/2
check 'no such part' 2 'expected I/N'
search --objective cost
check 'cost without a price' 2 'give --price'
search --max-devices 8
check 'fewer devices than nodes' 2 'nearest is 16'
run predict --system dgx-a100-80 --nodes 4 --workload "$gpt" --framework megatron --strategy tensor --tp 32
check 'more tensor ranks than heads' 2 'only 16 attention heads'
run predict --system iris-v100 --nodes 1 --workload gpt3_175b --framework megatron --precision mixed --optimizer adam
check 'a model that cannot fit' 1 'does not fit'
run predict --system iris-v100 --nodes 2 --framework pytorch-ddp --strategy zero3
check 'a framework that does not shard' 2 'does not shard states; take --framework'

# plans come first on a screen: of the kernels of a convolutional network the longest are shown
run search --strategy data --nodes 2 --global-batch 256 --threads 1 --long
check 'a network of many layers' 0
check 'the framework that is taken is reported' 0 'using framework ideal, the bound'
has 'short iterations in ms' '^ +\[ms\]'
has 'the rest of the terms is summed' '[0-9]+ shorter terms +- .*dlmodel explain prints them all'
if [ "$(wc -l < "$SCRATCH/out")" -le 80 ]; then echo 'ok it fits on a screen or two'; else bad 'it fits on a screen or two' "$(wc -l < "$SCRATCH/out") lines"; fi
has 'batches that are not split have no micro-batch' '^ data +dp8 +[0-9]'

# Cost and energy: columns of a run, and of the front the plans that nothing beats in time, cost and energy.
run search --system aws-p4d-24xlarge --workload gpt2_xl --nodes 1-4*2 --global-batch 256 --precision bf16 --objective cost --pareto --tokens 100G --long
check 'search by cost' 0
has 'cost, energy and device-hours of the run' ' run +cost +energy +device '
has 'the front says what is cheap' 'cheap: nothing beats it in time, cost and energy'
has 'the cost of samples' 'USD/Msample'
run search --system aws-p4d-24xlarge --workload gpt2_xl --nodes 1-4*2 --global-batch 256 --precision bf16 --objective energy
has 'the energy of a sample' 'J/sample'
has 'a plan of each split, at most ten' '^[1-9]0? splits shown'
run search --system aws-p4d-24xlarge --workload gpt2_xl --nodes 1-4*2 --global-batch 256 --precision bf16 --objective energy --pareto --tokens 100G --top 64 --json
check 'search by energy' 0
if jq -e '[.results[].iteration_energy_j] | . == sort and .[0] < .[-1]' "$work/out" > /dev/null; then echo 'ok plans by the modelled energy'; else bad 'plans by the modelled energy' "$(jq -c '[.results[].iteration_energy_j]' "$work/out")"; fi
if jq -e '[.results[] | .power_w / .nodes] | max / min > 1.01' "$work/out" > /dev/null; then echo 'ok the power of a node differs between plans'; else bad 'the power of a node differs between plans' "$(jq -c '[.results[].power_w]' "$work/out")"; fi
if jq -e '[.front[] | select(.cost_front)] as $c | ($c | length > 0) and
    all($c[]; . as $x | all($c[]; (.iteration_s >= $x.iteration_s or .cost > $x.cost or .energy_j > $x.energy_j or . == $x) or
        (.iteration_s < $x.iteration_s and (.cost > $x.cost or .energy_j > $x.energy_j))))' "$work/out" > /dev/null; then
    echo 'ok nothing on the front of cost beats another'; else bad 'nothing on the front of cost beats another' "$(jq -c '[.front[] | select(.cost_front) | [.iteration_s, .cost, .energy_j]]' "$work/out" | head -c 400)"; fi
if jq -e '([.front[].cost] | min) as $least | any(.front[]; .cost_front and .cost == $least)' "$work/out" > /dev/null; then echo 'ok the cheapest is on it'; else bad 'the cheapest is on it' "$(head -c 200 "$work/out")"; fi

# Without a framework: Megatron-Core where devices have 8-bit matrix units, the Megatron of its time elsewhere.
for pair in dgx-h100:megatron-core dgx-b200:megatron-core mi300x-8x:megatron-core dgx-a100-80:megatron dgx1-v100:megatron; do
    run search --system "${pair%:*}" --nodes 1 --workload gpt2_medium --global-batch 16
    has "usual on ${pair%:*}" "^gpt2_medium [a-z0-9]+ on .*, ${pair#*:}, global batch"
done

#!/bin/sh
# advice.sh - which framework, how many nodes, at what cost: status of frameworks, ties, cost, energy, the knee, deadline and budget.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
of() { jq -r "$1" "$work/out"; }
agree() { # agree NAME A B: within 1e-9
    if echo "$2 $3" | awk '{ d = $1 - $2; exit !(NF == 2 && d <= 1e-9 * $1 && -d <= 1e-9 * $1) }'; then echo "ok $1"; else bad "$1" "$2 and $3"; fi
}
predict() { run predict --system aws-p3-16xlarge --workload resnet50 "$@"; }
command -v jq > /dev/null 2>&1 || { echo 'skip advice: no jq (Debian package jq)'; exit 0; }

# retired, lossy and asynchronous frameworks are shown on request, and never the fastest
run list frameworks
has 'status of a retired framework' 'caffe-nccl .* retired'
has 'status of a lossy framework' 'cntk-1bit .* lossy'
has 'status of an asynchronous framework' 'mxnet-dist-async .* asynchronous'
has 'status of the others' 'pytorch-ddp .* maintained'
predict --nodes 2
check 'predict names how many are left out' 0 '1[0-9] discontinued, proprietary, lossy, or asynchronous frameworks'
hasnt 'they are not shown' 'mxnet|cntk|chainermn|caffe'
predict --nodes 2 --all-frameworks
has 'they are shown on request' 'cntk-1bit'
hasnt 'and not recommended' '^Fastest: (mxnet|cntk|chainermn|caffe|horovod-mxnet)'
predict --framework cntk-1bit --nodes 2
check 'one by its name' 0
run predict --system dgx-h100 --workload gpt3_175b --framework deepspeed-zero3 --precision fp8
check 'a framework without casts' 2 'deepspeed-zero3 does not train in fp8'
predict --framework pytorch-ddp,horovod-pytorch
has 'a tie is reported' '^Indistinguishable from (pytorch-ddp|horovod-pytorch)'

# frameworks that cannot do it are not shown
run predict --system dgx-h100 --workload resnet50 --all-frameworks --json
for f in chainermn caffe-nccl cntk-1bit megatron megatron-core internevo jax-maxtext jax-pax alpa; do
    if [ "$(of "[.results[].framework] | index(\"$f\")")" = null ]; then echo "ok no ResNet-50 on an H100 with $f"; else bad "no ResNet-50 on an H100 with $f" shown; fi
done
run predict --system dgx1-v100 --workload resnet50 --framework chainermn
check 'ChainerMN on a V100' 0
run predict --system dgx-h100 --workload resnet50 --framework pytorch-fsdp2 --precision fp8
check 'convolutions in 8 bits' 2 'frameworks cast linear layers, not convolutions'
run predict --system dgx-h100 --workload bert_large --framework megatron-core --precision fp8
check 'linear layers in 8 bits' 0
# of those tied, the one that splits and shards least
run predict --system dgx-h100 --workload resnet50 --precision tf32 --json
if [ "$(of '.recommendation | .framework as $take | .strategy == "data" and (.fastest | startswith("deepspeed-zero")) and (.tied_with_fastest | index($take) != null)')" = true ]; then
    echo 'ok a tie goes to plain data parallelism'; else bad 'a tie goes to plain data parallelism' "$(of .recommendation)"; fi
run predict --system dgx-h100 --workload resnet50 --precision tf32
has 'and it is said' 'Take [a-z-]*, which splits and shards least'

# defaults: precision by device, release by device, plans that fit
run predict --system dgx-h100 --workload resnet50
has 'bf16 on an H100, in the heading' "^resnet50 bf16 \(this device's default\)"
run predict --system iris-v100 --framework pytorch-ddp
has 'fp32 on a V100' '^resnet50 fp32, '
run explain --all --system dgx-h100 --workload resnet50 --framework pytorch-ddp
has 'PyTorch 2 on an H100' 'pytorch-ddp 2\.0'
run explain --all --system iris-v100 --workload resnet50 --framework pytorch-ddp
has 'PyTorch 1.8 on a V100' 'pytorch-ddp 1\.8'
run predict --system dgx1-v100 --workload bert_large --framework megatron,pytorch-ddp --json
agree 'BERT-large on Megatron is split no further than it must' "$(of '.results[0] | .tp * .pp')" 1
if [ "$(of '.results[0].iteration_s < 1.2 * .results[1].iteration_s')" = true ]; then echo 'ok and is as fast as DDP'; else bad 'and is as fast as DDP' "$(of '.results[0].iteration_s')"; fi
run predict --system dgx-a100-80 --workload gpt3_175b --framework megatron --nodes 64 --json
check 'GPT-3 on 64 nodes' 0
if [ "$(of '.results[0] | .fits and .pp > 1 and .tp > 1 and .memory.total_bytes <= 0.9 * .memory.capacity_bytes')" = true ]; then echo 'ok pipelines, and room to spare'; else bad 'pipelines, and room to spare' "$(of '.results[0] | [.tp, .pp, .fits]')"; fi
for f in megatron-core pytorch-fsdp2 deepspeed-zero3; do
    run predict --system dgx-h100 --workload llama3_8b --framework $f --json
    check "Llama 3 8B fits in a DGX H100 with $f" 0
done
run predict --system dgx-h100 --workload llama3_8b --framework pytorch-ddp
check 'but not with DDP' 1
run predict --system dgx-h100 --workload llama3_8b --framework megatron-core --tp 8 --json
agree 'an axis that is given is kept' "$(of '.results[0].tp')" 8
run explain --system dgx-h100 --workload llama3_8b --framework megatron-core --json
check 'explain takes the same plan' 0

# many frameworks on several numbers of nodes: a matrix; warnings once
run predict --system iris-v100 --nodes '1-8*2'
has 'the matrix' 'framework +1 node +2 nodes +4 nodes +8 nodes +eff'
has 'dashes where a framework cannot run' '^ pytorch-dp +[0-9]+ +- +- +- '
run predict --system iris-v100 --nodes '1-24'
has 'a long list shows numbers of nodes that double, and the last' 'framework +1 node +2 nodes +4 nodes +8 nodes +16 nodes +24 nodes +eff'
has 'and says how many there are' '^6 of 24 numbers of nodes; all of them: --long, --csv'
run predict --system iris-v100 --nodes '1-8*2' --long
has 'the long form' '^ pytorch-ddp +[0-9.]+ +8 +32 +'
run predict --system dgx-h100 --workload resnet50
if [ "$(grep -c 'beyond the kernels measured' "$work/err")" -le 1 ]; then echo 'ok one warning of a kind'; else bad 'one warning of a kind' "$(grep -c 'beyond the kernels' "$work/err")"; fi
check 'it names frameworks and what to do' 0 'warning: .*: [0-9]+ to [0-9]+ % of the layer time is extrapolated beyond the kernels measured on h100_sxm .*; calibrate'

# cost, energy and carbon dioxide of a run
predict --framework pytorch-ddp --nodes 4 --epochs 90 --carbon 300 --json
check 'predict with a run' 0
agree 'cost' "$(of '.results[0].cost')" "$(of '.results[0] | .gpu_hours / 8 * 24.48')"
agree 'energy' "$(of '.results[0].energy_j')" "$(of '.results[0] | .gpu_hours / 32 * 3600 * .power_w')"
agree 'carbon dioxide' "$(of '.results[0].carbon_g')" "$(of '.results[0] | .energy_j / 3.6e6 * 300')"
agree 'energy of an iteration' "$(of '.results[0].iteration_energy_j')" "$(of '.results[0] | .power_w * .iteration_s')"
predict --framework pytorch-ddp --nodes 4 --epochs 90 --price 10EUR --power 2000 --json
agree 'cost by --price' "$(of '.results[0].cost')" "$(of '.results[0] | .gpu_hours / 8 * 10')"
agree 'power by --power' "$(of '.results[0].power_w')" 8000
if [ "$(of '.results[0].currency')" = EUR ]; then echo 'ok currency'; else bad currency "$(of '.results[0].currency')"; fi
run predict --system iris-v100 --workload resnet50 --framework pytorch-ddp --epochs 1 --json
if [ "$(of '.results[0] | [.cost, .currency, .carbon_g] | map(. == null) | all')" = true ]; then echo 'ok no price, no cost'; else bad 'no price, no cost' "$(of '.results[0].cost')"; fi
predict --price cheap
check 'a price that is none' 2 'expected an amount above 0'
predict --price -3
check 'a negative price' 2

# how many nodes
predict --framework pytorch-ddp --nodes '1-64*2' --global-batch 4096 --json
check 'advice as JSON' 0
agree 'the fastest' "$(of '.advice.fastest.nodes')" "$(of '[.results[] | select(.fits)] | max_by(.throughput_samples_per_s).nodes')"
cost='(.nodes / .throughput_samples_per_s)'
agree 'the cheapest' "$(of '.advice.cheapest.nodes')" "$(of "[.results[] | select(.fits)] | min_by($cost).nodes")"
agree 'its cost' "$(of '.advice.cheapest.cost_per_sample')" "$(of "[.results[] | select(.fits) | $cost] | min * 24.48 / 3600")"
agree 'the knee' "$(of '.advice.knee.nodes')" "$(of "([.results[] | select(.fits) | $cost] | min) as \$least | [.results[] | select(.fits and $cost <= 1.1 * \$least).nodes] | max")"
predict --framework pytorch-ddp --nodes 2 --json
if [ "$(of '.advice')" = null ]; then echo 'ok one number of nodes, no advice'; else bad 'one number of nodes, no advice' advice; fi
predict --framework pytorch-ddp --nodes '1-64*2' --epochs 90 --deadline 1h --budget 500USD
has 'advice as text' 'sweet spot: the largest node count'
has 'a deadline' 'cheapest that meets the deadline: [0-9.]+ minutes'
has 'a budget' 'fastest within the budget|no node count tried is within the budget'
predict --framework pytorch-ddp --nodes 1,2 --epochs 90 --deadline 1min
has 'a deadline that none meets' 'no node count tried meets the deadline'
predict --framework pytorch-ddp --nodes 1 --epochs 90 --deadline 1min
has 'a deadline that the only node count misses' 'no node count tried meets the deadline; the fastest, 1 node, takes [0-9.]+ hours'
predict --framework pytorch-ddp --nodes 1 --epochs 90 --deadline 60d
has 'a deadline that the only node count meets' 'cheapest that meets the deadline: [0-9.]+ hours'
hasnt 'one node count has no sweet spot' 'sweet spot|scaling efficiency stays'
predict --nodes 1,2 --deadline 1h
check 'a deadline without a run' 2 'give the length of the run'
predict --nodes 1,2 --epochs 1 --budget 5EUR
check 'a budget in another currency' 2 'the price is in USD'
run predict --system iris-v100 --nodes 1,2 --epochs 1 --budget 5
check 'a budget without a price' 2 'give --price'
run search --system aws-p4d-24xlarge --nodes 2 --workload gpt2_xl --global-batch 64 --precision mixed --tokens 1G --objective cost --json
check 'search by cost with the price of the system' 0
agree 'cost of a plan' "$(of '[.results, .plans, .best][] | select(. != null) | if type == "array" then .[0] else . end | .cost' | head -n 1)" \
    "$(of '[.results, .plans, .best][] | select(. != null) | if type == "array" then .[0] else . end | .gpu_hours / 8 * 21.957642' | head -n 1)"

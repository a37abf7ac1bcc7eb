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
command -v jq > /dev/null 2>&1 || { echo 'skip advice: no jq'; exit 0; }

# retired, lossy and asynchronous frameworks are shown on request, and never the fastest
run list frameworks
has 'status of a retired framework' 'caffe-nccl .* retired'
has 'status of a lossy framework' 'cntk-1bit .* lossy'
has 'status of an asynchronous framework' 'mxnet-dist-async .* asynchronous'
has 'status of the others' 'pytorch-ddp .* maintained'
predict --nodes 2
check 'predict names how many are left out' 0 '9 retired, lossy or asynchronous frameworks'
hasnt 'they are not shown' 'mxnet|cntk|chainermn|caffe'
predict --nodes 2 --all-frameworks
has 'they are shown on request' 'cntk-1bit'
hasnt 'and not recommended' 'The fastest is (mxnet|cntk|chainermn|caffe|horovod-mxnet)'
predict --framework cntk-1bit --nodes 2
check 'one by its name' 0
run predict --system dgx-h100 --workload gpt3_175b --framework deepspeed-zero3 --precision fp8
check 'a framework without casts' 2 'deepspeed-zero3 does not train in fp8'
predict --framework pytorch-ddp,horovod-pytorch
has 'a tie is told' 'A tie, by the intervals, with (pytorch-ddp|horovod-pytorch)'

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
has 'advice as text' 'the knee: the most nodes within 10 %'
has 'a deadline' 'the cheapest that meets the deadline: 0\.[0-9]+ hours'
has 'a budget' 'the fastest that the budget pays|the budget pays for none'
predict --framework pytorch-ddp --nodes 1,2 --epochs 90 --deadline 1min
has 'a deadline that none meets' 'no number of nodes meets the deadline'
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

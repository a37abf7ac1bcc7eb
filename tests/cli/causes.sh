#!/bin/sh
# causes.sh - runs of machines with one planted fault each, as the model itself has them under --set: the fault must be the likeliest
# cause of most, with a probability that holds.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

table=$SCRATCH/planted.csv
echo 'id,source,system,framework,strategy,workload,precision,nodes,devices_per_node,batch_per_device,metric,value,unit' > "$table"
plant() { # plant CAUSE SYSTEM WORKLOAD FRAMEWORK PRECISION BATCH NODES:DEVICES... -- CHANGES...
    cause=$1 system=$2 workload=$3 framework=$4 precision=$5 batch=$6 shapes=
    shift 6
    while [ "$1" != -- ]; do shapes="$shapes $1"; shift; done
    shift
    set=''
    for change in "$@"; do set="$set --set $change"; done
    for shape in $shapes; do
        # shellcheck disable=SC2086
        run predict -s "$system" -w "$workload" -f "$framework" -p "$precision" -b "$batch" -n "${shape%:*}" --devices-per-node "${shape#*:}" $set --json
        echo "$cause-$system-$workload-$framework-${shape%:*}-${shape#*:},planted by $cause on $system,$system,$framework,data,$workload,$precision,${shape%:*},${shape#*:},$batch,iteration,$(jq '.results[0].iteration_s' "$SCRATCH/out"),s" >> "$table"
    done
}
all() { # all CAUSE CHANGES-OF-4-DEVICES... : on four set-ups
    cause=$1
    shift
    plant "$cause" iris-v100 resnet50 pytorch-ddp fp32 32 1:1 1:4 2:4 8:4 -- "$@"
    plant "$cause" iris-v100 vgg16 horovod-tensorflow fp32 32 1:1 1:4 2:4 8:4 -- "$@"
    plant "$cause" dgx-a100-80 bert_large pytorch-ddp mixed 8 1:1 1:8 2:8 8:8 -- "$@"
    plant "$cause" aws-p3-16xlarge resnet50 horovod-tensorflow fp32 64 1:1 1:8 2:8 -- "$@"
}
all network links.inter.bandwidth=0.8GB/s
all links links.intra.bandwidth=6GB/s
all host dispatch_s=45us
all kernels device.memory_bandwidth_bytes_per_s=600e9
all overlap overlaps_backward=false
# A run that nothing known reaches: 30 times the prediction.
echo "far,planted by nothing known,iris-v100,pytorch-ddp,data,resnet50,fp32,4,4,32,iteration,3.4,s" >> "$table"
run compare "$table" --rows --json
cp "$SCRATCH/out" "$SCRATCH/planted"
# Of one device, the host's part and the kernels' are one time; links and other things in a node are one place.
allowed='{"network": ["network"], "links": ["links", "node"], "host": ["host", "kernels"], "kernels": ["kernels", "host"], "overlap": ["overlap"]}'
# shellcheck disable=SC2016
slow='(.rows[] | select(.causes != [] and .id != "far") | {fault: (.id | split("-")[0]), causes})'
holds() { # holds NAME FILTER [FILE]
    if jq -e "$2" "${3:-$SCRATCH/planted}" > /dev/null; then echo "ok $1"; else bad "$1" "failed: $2"; fi
}
holds 'runs with a planted fault are slow' "[$slow.fault] | length >= 30 and (unique | length == 5)"
holds 'the planted fault is the likeliest cause of 80 % and more' "$allowed as \$allowed | [$slow | .causes[0].cause as \$first | (\$allowed[.fault] | index(\$first)) != null] |
    (map(select(.)) | length) / length >= 0.8"
holds 'its probability is two thirds on average' "$allowed as \$allowed | [$slow | \$allowed[.fault] as \$names | [.causes[] | select(.cause as \$c | \$names | index(\$c)) | .probability] | add // 0] |
    add / length >= 0.66"
holds 'probabilities are shares, the likeliest first' "[$slow.causes | (map(.probability) | add) <= 1.000001 and . == sort_by(-.probability)] | all"
holds 'each cause has evidence and a test' "[$slow.causes[] | (.evidence | length > 0) and (.cause == \"unknown\" or (.test | length > 0))] | all"
holds 'a run as predicted has no cause, and the bottleneck of its prediction' '[.rows[] | select(.causes == []) | .cause == null and .measured_bottleneck == .bottleneck] | length > 10 and all'
holds 'no cause is named that does not reach the slowdown' '.rows[] | select(.id == "far") | .causes[0].cause == "unknown" and .causes[0].probability > 0.99 and .measured_bottleneck == null'
holds 'a slow network is the bottleneck of its runs, which are predicted to be bound by compute' '[.rows[] | select(.id | test("^network-iris.*-8-4")) | .measured_bottleneck == "inter-link"] | length == 2 and all'
run compare "$table" --rows --json --anchor
holds 'anchored runs have the same cause' "[$slow | select(.fault == \"network\") | .causes[0].cause == \"network\"] | length >= 4 and all" "$SCRATCH/out"
run compare "$table"
has 'in words, with a test' 'network between nodes slower .*\([0-9]+ %\).*Test: run nccl-tests'

#!/bin/sh
# releases.sh - what a framework's file says acts everywhere: widths of gradients, releases, capabilities.
. tests/cli/lib.sh
set -u

# one decision: the width of a gradient element changes memory and time of every strategy
numbers() { # numbers ARGS...: gradients [bytes], communication [s] of a prediction
    run predict -q --json "$@"
    jq -r '.results[0] | "\(.memory.gradients_bytes) \(.comm_s) \(.memory.buffers_bytes)"' "$SCRATCH/out"
}
widths() { # widths NAME ARGS...: gradients of 4 bytes take twice the memory of those of 2, and communication a fifth more time at least
    name=$1
    shift
    status=0
    narrow=$(numbers "$@" --set bf16_gradient_bytes=2)
    wide=$(numbers "$@" --set bf16_gradient_bytes=4)
    if echo "$narrow $wide" | awk '{ exit !($1 > 0 && $4 == 2 * $1 && $5 > 1.2 * $2) }'; then
        echo "ok $name"
    else
        bad "$name" "2 bytes: $narrow; 4 bytes: $wide"
    fi
}
widths 'wide gradients in data parallelism' -s dgx-a100-80 -n 4 -w resnet50 -f pytorch-ddp -p bf16
echo "$narrow $wide" | awk '{ exit !($3 == $1 && $6 == $4) }' && echo 'ok buckets are as large as the gradients' || bad 'buckets are as large as the gradients' "$narrow $wide"
widths 'wide gradients in fp16' -s dgx1-v100 -n 4 -w resnet50 -f pytorch-ddp -p fp16
widths 'wide gradients of a transformer without sharding' -s dgx-a100-80 -n 4 -w gpt2 -f pytorch-ddp -p bf16
widths 'wide gradients of pipeline stages' -s dgx-a100-80 -n 4 -w vgg16 -f pytorch-ddp -p bf16 --strategy data+pipeline
widths 'wide gradients of layers split over devices' -s dgx-a100-80 -n 4 -w gpt2_large -f megatron -p bf16 --zero 0 --tp 2 --micro-batch 1 -b 1
widths 'wide gradients of sharded states' -s dgx-a100-80 -n 4 -w gpt2_xl -f deepspeed-zero2 -p bf16 -b 8 --micro-batch 8 --strategy zero2

# a new release inherits from the one that it names, and from nothing else
data=${DLMODEL_DATA:-data}
mkdir "$SCRATCH/data"
for kind in "$data"/*; do ln -s "$(realpath "$kind")" "$SCRATCH/data/${kind##*/}"; done
rm "$SCRATCH/data/frameworks"
cp -r "$data/frameworks" "$SCRATCH/data/frameworks"
add_release() { # add_release RELEASE: one edit of pytorch-ddp's file
    jq --argjson r "$1" '.releases += [$r]' "$data/frameworks/pytorch-ddp.json" > "$SCRATCH/data/frameworks/pytorch-ddp.json"
}
bert() { # bert RELEASE ARGS...: seconds and bytes of gradients of BERT-large
    release=$1
    shift
    "$DLMODEL" --data "$SCRATCH/data" predict -q --json -s dgx-a100-80 -n 4 -w bert_large -f pytorch-ddp --release "$release" "$@" |
        jq -c '.results[0] | [.iteration_s, .comm_s, .memory.gradients_bytes, .memory.buffers_bytes]'
}
same() { # same NAME A B
    status=0
    if [ -n "$2" ] && [ "$2" = "$3" ]; then echo "ok $1"; else bad "$1" "$2 and $3"; fi
}
add_release '{"name": "9.9", "source": "test", "versions": ["9.9"], "from": "2.0"}'
same 'a release inherits all from the one that it names' "$(bert 9.9 -p bf16)" "$(bert 2.0 -p bf16)"
add_release '{"name": "9.9", "source": "test", "versions": ["9.9"], "from": "2.0", "set": {"bf16_gradient_bytes": 4}}'
same 'a release with wide gradients is what --set makes of the one before' "$(bert 9.9 -p bf16)" "$(bert 2.0 -p bf16 --set bf16_gradient_bytes=4)"
same 'and nothing else changes' "$(bert 9.9 -p mixed)" "$(bert 2.0 -p mixed)"
bert 2.0 -p bf16 > "$SCRATCH/narrow"
bert 9.9 -p bf16 > "$SCRATCH/wide"
status=0
if jq -en --slurpfile n "$SCRATCH/narrow" --slurpfile w "$SCRATCH/wide" '$w[0][0] > $n[0][0] and $w[0][1] > 1.4 * $n[0][1] and $w[0][2] == 2 * $n[0][2] and $w[0][3] == 2 * $n[0][3]' > /dev/null; then
    echo 'ok a release with wide gradients acts'
else
    bad 'a release with wide gradients acts' "$(cat "$SCRATCH/narrow" "$SCRATCH/wide")"
fi
refused() { # refused NAME RELEASE REGEX
    add_release "$2"
    run --data "$SCRATCH/data" predict -n 1 -f pytorch-ddp
    check "$1" 3 "$3"
}
refused 'a release that inherits from nothing' '{"name": "9.9", "source": "test", "versions": ["9.9"]}' 'pytorch-ddp.json:[0-9]+:[0-9]+: error: releases.*from'
refused 'a release of another file' '{"name": "9.9", "source": "test", "versions": ["9.9"], "from": "NeMo 25.09"}' 'release 9.9: from: expected the name of another release'
refused 'a release of itself' '{"name": "9.9", "source": "test", "versions": ["9.9"], "from": "9.9"}' 'release 9.9 inherits from itself'
for file in "$data"/frameworks/*.json; do
    jq -r '.name as $f | (.releases // []) as $all | $all[] | . as $r | (.from as $p | $all[] | select(.name == $p) | .set // {}) as $theirs |
        (.set // {}) | to_entries[] | select($theirs[.key] == .value) | "\($f) \($r.name) repeats \(.key)"' "$file"
done > "$SCRATCH/repeats"
status=0
if [ -s "$SCRATCH/repeats" ]; then bad 'no release repeats what it inherits' "$(cat "$SCRATCH/repeats")"; else echo 'ok no release repeats what it inherits'; fi

# what a release has: search proposes nothing else, export refuses the rest, predict remarks on it
property() { # property FORMAT FRAMEWORK SYSTEM WORKLOAD NODES BATCH: every row of search exports
    run search -q --json -s "$3" -w "$4" -f "$2" --nodes "$5" -B "$6" -p bf16 --optimizer adam
    jq -r '.results[].command' "$SCRATCH/out" > "$SCRATCH/commands"
    rows=0 failed=
    while read -r command; do
        rows=$((rows + 1))
        # shellcheck disable=SC2086
        eval "\"\$DLMODEL\" ${command#dlmodel } --export $1" > "$SCRATCH/exported" 2> "$SCRATCH/err" || failed="$failed$command: $(head -1 "$SCRATCH/err")
"
    done < "$SCRATCH/commands"
    if [ "$rows" -gt 0 ] && [ -z "$failed" ]; then
        echo "ok every row of search exports: $2, $4 on $5 nodes of $3"
    else
        bad "every row of search exports: $2, $4 on $5 nodes of $3" "$rows rows; $failed"
    fi
}
property torchtitan pytorch-fsdp2 h200-8x llama3_8b 4 128
property torchtitan pytorch-fsdp2 h200-8x llama3_70b 16 256
property torchtitan pytorch-fsdp2 dgx-h100 qwen3_30b_a3b 8 256
property megatron megatron dgx-a100-80 gpt2_xl 2 64
property megatron megatron dgx-a100-80 gpt3_175b 64 1024
property megatron megatron-core h200-8x llama3_8b 4 128
property megatron megatron-core dgx-h100 mixtral_8x7b 16 256
property megatron megatron-core dgx-h100 gpt3_175b 64 1024
property deepspeed deepspeed-zero2 dgx-a100-80 bert_large 4 256
run predict -s h200-8x -w llama3_8b -f pytorch-fsdp2 --gpus 32 -B 128 -p bf16 --zero 1 --micro-batch 1
check 'a stage that the release lacks is a what-if' 0 'a what-if: pytorch-fsdp2 .* has no ZeRO stage 1'
run predict -s h200-8x -w llama3_8b -f pytorch-fsdp2 --gpus 32 -B 128 -p bf16 --zero 1 --micro-batch 1 --export torchtitan
check 'and is not exported' 2 'pytorch-fsdp2 .* has no ZeRO stage 1'
run predict -s dgx-a100-80 -w gpt2_xl -f megatron --nodes 2 -B 64 -p bf16 --cp 2 --micro-batch 1 --export megatron
check 'context parallelism of a release without it is not exported' 2 'megatron .* has no context parallelism'

# a key that nothing reads is refused, by the file and by --set
run predict -n 1 -f pytorch-ddp --set fusion_bytes=1MB
check 'a key of another behaviour' 2 "nothing reads 'fusion_bytes' here.*tensor-fusion"
run predict -n 1 -f pytorch-ddp --set fusion=both
check 'a key that is the beginning of one' 0
run predict -n 1 -f pytorch-ddp,horovod-pytorch --set fusion_bytes=1MB
check 'a key that one of several frameworks reads' 0
run predict -n 1 -f horovod-pytorch --set cycle=2ms
check 'a key without its unit' 0
run predict -n 1 -f pytorch-ddp --set fragmentation=0.1
check 'a key that no file sets' 0
for set in dispatch_s=1us jitter_frac=0.1 bf16_gradient_bytes=4 fragmentation_frac=0.1; do
    run predict -n 2 -f pytorch-ddp --set "$set"
    check "documented: $set" 0
done
add_release '{"name": "9.9", "source": "test", "versions": ["9.9"], "from": "2.0", "set": {"cycle_s": 0.001}}'
run --data "$SCRATCH/data" predict -n 1 -f pytorch-ddp
check 'a release with a key of another behaviour' 3 'releases\[[0-9]+\]\.set\.cycle_s: release 9\.9: behaviour bucketed does not read it, only tensor-fusion'
add_release '{"name": "9.9", "source": "test", "versions": ["9.9"], "from": "2.0", "set": {"cicle": 1}}'
line=$(grep -n '"cicle": 1' "$SCRATCH/data/frameworks/pytorch-ddp.json" | cut -d : -f 1)
run predict -n 1 -f "$SCRATCH/data/frameworks/pytorch-ddp.json"
check 'a release that is not asked for, with a key that there is not' 3 "pytorch-ddp.json:$line:[0-9]+: error: releases\\[[0-9]+\\]\\.set\\.cicle: release 9\\.9: no member of a framework has this name"
jq '.name = "mine" | .dispatch_s = 0.008' "$data/frameworks/pytorch-ddp.json" > "$SCRATCH/mine.json"
run predict -n 2 -f "$SCRATCH/mine.json" --release 2.0 --csv
check 'a release of a file of the user' 0
has 'it is of that file' ',mine,'
run predict -n 2 -f "$SCRATCH/mine.json" -v
check 'the file that was read is named' 0 'read .*/mine\.json \(fnv1a'
jq '.fusion_bytes = 1e6' "$data/frameworks/pytorch-ddp.json" > "$SCRATCH/data/frameworks/pytorch-ddp.json"
run --data "$SCRATCH/data" predict -n 1 -f pytorch-ddp
check 'a file with a key of another behaviour' 3 'pytorch-ddp.json:[0-9]+:[0-9]+: error: fusion_bytes: behaviour bucketed does not read it'

# versions of runs
runs() { # runs FRAMEWORK SYSTEM WORKLOAD VERSION: predicts one row of a table
    printf 'id,source,system,framework,framework_version,workload,precision,nodes,devices_per_node,batch_per_device,metric,unit,value\n' > "$SCRATCH/runs.csv"
    printf 'a,s,%s,%s,%s,%s,mixed,1,4,4,iteration,s,1\n' "$2" "$1" "$4" "$3" >> "$SCRATCH/runs.csv"
    run compare -q --json "$SCRATCH/runs.csv"
}
gpt=gpt2_xl
runs megatron-core dgx-h100 $gpt 'NeMo 26.04'
has 'a version later than all: the latest before it' 'framework_version ."NeMo 26.04.": constants of its nearest release NeMo 25.11 to 26.02'
runs megatron-core dgx-h100 $gpt 'NeMo 24.03'
hasnt 'a version that a release covers' 'nearest'
runs megatron-core gb200-nvl72 $gpt 'NeMo'
has 'a version without a number: the usual release of the device' 'usual release NeMo 25.11 to 26.02'
run predict -s azure-nc24rs-v100 -w resnet50 -f tensorflow-mirrored -p mixed -b 128 --release nightly
check '--release that is neither a release nor a version' 2 'no release "nightly"; there are'

# --release takes what framework_version takes: the release of each, and why it is that one
while IFS='|' read -r framework system version release why; do
    case $framework in
    *megatron* | *fsdp*) network=$gpt ;;
    *) network=resnet50 ;;
    esac
    run predict --json -s "$system" -w "$network" -f "$framework" -n 1 -b 4 -p mixed --release "$version"
    says "--release $version of $framework on $system: $release" test "$(jq -r '.results[0].release' "$SCRATCH/out")" = "$release"
    if [ -n "$why" ]; then
        says "its remark" grep -qF -e "--release: no release covers \"$version\": constants of $framework $release ($why)" "$SCRATCH/err"
    else
        says "no remark" test "$(grep -c 'no release covers' "$SCRATCH/err")" -eq 0
    fi
    runs "$framework" "$system" "$network" "$version"
    case $why in
    'the nearest') has 'the same in a table' "of its nearest release $release" ;;
    'usual on this device') has 'the same in a table' "(usual|default) release $release" ;;
    *) hasnt 'the same in a table' 'no release of' ;;
    esac
done << 'END'
megatron-core|dgx-h100|NeMo 26.04|NeMo 25.11 to 26.02|the nearest
megatron-core|dgx-h100|26.04|NeMo 25.11 to 26.02|the nearest
megatron-core|dgx-h100|25.09|NeMo 25.09|
megatron-core|dgx-h100|core_r0.12.0|0.8 to 0.13|
megatron-core|dgx-h100|dev of 2025|0.8 to 0.13|usual on this device
megatron-core|gb200-nvl72|dev of 2025|NeMo 25.11 to 26.02|usual on this device
megatron|dgx-a100-80|v2.0|2.0|
megatron|dgx-a100-80|v2.6|2.x|
megatron|dgx-a100-80|23.08|2.x|usual on this device
pytorch-ddp|dgx-a100-80|v2.1.0+cu121|2.0|
pytorch-ddp|dgx-a100-80|torch==1.13.1|1.11|
pytorch-ddp|dgx1-v100|PyTorch 1.4.0|1.8|the nearest
pytorch-ddp|dgx-a100-80|nvcr.io/nvidia/pytorch:20.12-py3|NGC 20.12|
pytorch-ddp|dgx-a100-80|23.08|NGC 21.03|the nearest
pytorch-ddp|dgx-a100-80|build 7f2c|2.0|usual on this device
pytorch-ddp|dgx1-v100|build 7f2c|1.8|usual on this device
pytorch-fsdp|dgx-h100|23.08|1.13|usual on this device
horovod-pytorch|dgx-a100-80|PyTorch 1.11.0+cu113|0.21|
horovod-pytorch|dgx1-v100|0.12|0.19|the nearest
horovod-tensorflow|dgx1-v100|1.15|1.14|the nearest
horovod-tensorflow|dgx1-v100|1.0|1.11|the nearest
horovod-tensorflow|dgx-a100-80|2.16.1|2.0|
horovod-mxnet|dgx1-v100|23.08|NGC with DALI|
horovod-mxnet|dgx-a100-80|CUDA 11.6|NGC with DALI|usual on this device
mxnet-device|dgx1-v100|MXNet 1.9|1.5|the nearest
tensorflow-multiworker|dgx1-v100|2.9|2.x|
tensorflow-ps|dgx1-v100|1.15|1.x|
END

# attention: fused where the release has it and the device runs it
score() { # score SYSTEM FRAMEWORK [ARGS...]: activations [bytes]
    system=$1 framework=$2
    shift 2
    run predict -q --json -n 1 -g 1 -b 2 -p mixed -w $gpt -s "$system" -f "$framework" "$@"
    jq '.results[0].memory.activations_bytes' "$SCRATCH/out"
}
says 'PyTorch 2 fuses attention' test "$(score dgx-a100-80 pytorch-ddp)" -lt "$(score dgx-a100-80 pytorch-ddp --release 1.11)"
says 'Megatron-Core on a V100 does not' test "$(score dgx1-v100 megatron-core)" -eq "$(score dgx1-v100 megatron-core --attention composed)"

# jitter: a fitted value has a fit (constants.json) that is one value for its class; a borrowed one equals a fitted one
says 'jitter of systems: fitted by a fit, borrowed as fitted' jq -en --slurpfile constants data/constants.json '
    [$constants[0].constants[].key | capture("^system\\.(?<names>.*)\\.jitter_frac$") | .names / ","] as $classes
    | [inputs | {name, jitter: .jitter_frac, source: .sources.jitter_frac}] as $systems
    | [$classes[] | . as $class | [$systems[] | select(.name | IN($class[])) | .jitter] | unique] as $values
    | ($values | all(length == 1))
        and ([$systems[] | select(.source == "fit-runs") | .name] - ($classes | add) == [])
        and ([$systems[] | select(.source == "borrowed") | .jitter] - ($values | add) == [])' data/systems/*.json

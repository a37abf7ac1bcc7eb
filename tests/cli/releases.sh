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
widths 'wide gradients of sharded states' -s dgx-a100-80 -n 4 -w gpt2_xl -f deepspeed-zero2 -p bf16 --zero 2

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

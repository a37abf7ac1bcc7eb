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

#!/bin/sh
# Memory of GPT as `predict --json` tells it against worked values: bytes per parameter of weights, gradients and optimizer by
# precision, optimizer and ZeRO stage (within 5 %), and Korthikanti et al.'s bytes per layer by tensor and sequence parallelism,
# recomputation and flash attention, with what Megatron adds outside of the layers (within 2 %). b samples of s tokens, hidden
# size h, a heads, V words, t tensor ranks.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

command -v jq > /dev/null 2>&1 || { echo '# no jq: memory of GPT not checked'; exit 0; }
P=355788800 # parameters of gpt:layers=24,hidden=1024,seq=1024,vocab=51200: 12 L h^2 + 13 L h + (V + s) h + 2 h
gpt=gpt:layers=24,hidden=1024,heads=16,seq=1024,vocab=51200

# near NAME PERCENT WANTED EXPRESSION: the expression (jq, of the first result) is within PERCENT of WANTED (a jq expression too)
near() {
    if [ "$status" -ne 0 ] && [ "$status" -ne 1 ]; then
        bad "$1" 'no prediction'
    elif jq -e "(.results[0] | $4) as \$x | ($3) as \$w | (\$x - \$w | fabs) <= ($2) / 100 * \$w" "$SCRATCH/out" > /dev/null; then
        printf 'ok %s\n' "$1"
    else
        bad "$1" "$(jq -r "\"found \\(.results[0] | $4), expected \\($3) within $2 %\"" "$SCRATCH/out")"
    fi
}
predict() { run predict --system dgx-a100-80 --nodes 1 "$@" --json; }

# Weights, gradients, optimizer: bytes per parameter. PyTorch's mixed precision is autocast: parameters are fp32, so their gradients
# are too. The 16-bit parameters of apex O2, Megatron and bf16 have 16-bit gradients (F-GRADIENT-WIDTH).
while read -r precision optimizer weights gradients states; do
    predict --workload "$gpt" --framework pytorch-ddp -g 1 -b 1 --precision "$precision" --optimizer "$optimizer"
    near "$precision $optimizer: weights" 5 "$weights * $P" .memory.weights_bytes
    near "$precision $optimizer: gradients" 5 "$gradients * $P" .memory.gradients_bytes
    near "$precision $optimizer: optimizer" 5 "$states * $P" .memory.optimizer_bytes
done << 'END'
fp32 sgd 4 4 0
fp32 momentum 4 4 4
fp32 adam 4 4 8
fp32 lamb 4 4 8
mixed adam 6 4 8
bf16 adam 6 2 8
END
predict --workload "$gpt" --framework pytorch-ddp -g 1 -b 1 --precision bf16 --optimizer adam --master-weights none
near 'bf16 without masters: weights' 5 "2 * $P" .memory.weights_bytes
predict --workload "$gpt" --framework megatron -g 1 -b 1 --precision mixed --optimizer adam
near 'mixed, 16-bit parameters: gradients' 5 "2 * $P" .memory.gradients_bytes
# Megatron-LM sums gradients in fp32, NVIDIA's measured runs of NeMo in bf16; this one ran on 8 GPUs of 80 GB.
llama='--system dgx-h100 --workload llama3_8b:seq=8192 --nodes 1 --tp 1 --cp 2 --micro-batch 1 --global-batch 128 --zero 1 --recompute none --precision bf16'
while read -r release width; do
    # shellcheck disable=SC2086 # options apart by spaces
    run predict $llama --framework megatron-core --release "$release" --json
    near "megatron-core $release: gradients" 1 "$width * 8030261248" .memory.gradients_bytes
done << 'END'
0.12 4
NeMo-24.09 2
END
near 'a run of NeMo that ran is said to fit' 0 1 'if .fits then 1 else 0 end'

# ZeRO over 8 ranks with Adam in mixed precision: 16 P; 4 P + 12 P/N; 2 P + 14 P/N; 16 P/N
all='.memory | .weights_bytes + .gradients_bytes + .optimizer_bytes'
while read -r stage wanted; do
    predict --workload "$gpt" --framework megatron -g 8 --tp 1 --dp 8 -b 1 --precision mixed --zero "$stage"
    near "ZeRO stage $stage: states" 5 "$wanted * $P" "$all"
    [ "$stage" = 0 ] && continue
    predict --workload "$gpt" --framework "deepspeed-zero$stage" -g 8 -b 1 --precision mixed
    near "deepspeed-zero$stage: states" 5 "$wanted * $P" "$all"
done << 'END'
0 16
1 (4+12/8)
2 (2+14/8)
3 16/8
END
# What stage 3 gathers while it works is a buffer: the weights of two layers, 2 x 2 x (12 h^2 + 13 h) bytes
near 'ZeRO stage 3: gathered parameters' 5 '4 * (12 * 1024 * 1024 + 13 * 1024) + ([711577600, 2 * 355788800] | min)' .memory.buffers_bytes
# Stage 2 of 2 interleaved stages of 4 parts: 8 micro-batches sum gradients 4 times where a round of 2 sums once; the part whose round
# is under way has whole gradients, a quarter of the stage's.
rounds='--system dgx-a100-80 --nodes 4 --workload gpt:layers=16,hidden=2048,heads=16,seq=2048,vocab=51200 --framework llama3-4d --precision bf16
    --tp 4 --pp 2 --dp 4 --micro-batch 1 --global-batch 32 --schedule interleaved --virtual-stages 4 --sequence-parallel'
# shellcheck disable=SC2086 # options apart by spaces
run predict $rounds --zero 1 --json
whole=$(jq '.results[0].memory.gradients_bytes' "$SCRATCH/out")
kept=$(jq '.results[0].memory.buffers_bytes' "$SCRATCH/out")
# shellcheck disable=SC2086
run predict $rounds --zero 2 --json
near 'rounds: a part has whole gradients' 0.01 "$kept + $whole / 4" .memory.buffers_bytes
near 'rounds: the shards' 0.01 "$whole / 4" .memory.gradients_bytes
# shellcheck disable=SC2086
run explain $rounds --zero 2 --all
says 'rounds: 4 sums' grep -q 'gradients, reduce-scatter x 4 ' "$SCRATCH/out"
# Tensor parallelism divides the states: 16 P/t
for t in 2 4 8; do
    predict --workload "$gpt" --framework megatron -g "$t" --tp "$t" --micro-batch 1 --global-batch 1 --precision mixed
    near "tp $t: states" 5 "16 * $P / $t" "$all"
done

# Activations of one layer: the difference between networks of 24 and 12 layers over 12. One micro-batch of b samples.
# per_layer NAME WANTED WORKLOAD-TAIL OPTIONS...: WANTED is in units of s b h
per_layer() {
    name=$1 wanted=$2 network=$3 unit=$4
    shift 4
    predict --workload "gpt:layers=12,$network" --framework megatron "$@"
    few=$(jq '.results[0].memory.activations_bytes' "$SCRATCH/out")
    predict --workload "gpt:layers=24,$network" --framework megatron "$@"
    near "$name: a layer" 2 "($wanted) * $unit" "(.memory.activations_bytes - $few) / 12"
}
b=2
while read -r network s h scores tail; do # scores: 5 a s / h
    sbh="$s * $b * $h"
    for t in 1 2 8; do
        set -- -g "$t" --tp "$t" --micro-batch "$b" --global-batch "$b" --precision mixed
        per_layer "$network, tp $t" "10 + 24 / $t + $scores / $t" "$tail" "$sbh" "$@" --recompute none
        per_layer "$network, tp $t, selective" "10 + 24 / $t" "$tail" "$sbh" "$@" --recompute selective
        per_layer "$network, tp $t, full" 2 "$tail" "$sbh" "$@" --recompute full
        per_layer "$network, tp $t, flash" "10 + 24 / $t" "$tail,flash=1" "$sbh" "$@" --recompute none
        [ "$t" = 1 ] && continue
        per_layer "$network, tp $t, sequence parallel" "(34 + $scores) / $t" "$tail" "$sbh" "$@" --sequence-parallel --recompute none
        per_layer "$network, tp $t, sequence parallel, selective" "34 / $t" "$tail" "$sbh" "$@" --sequence-parallel --recompute selective
    done
done << 'END'
medium 1024 1024 80 hidden=1024,heads=16,seq=1024,vocab=51200
wide 1024 4096 40 hidden=4096,heads=32,seq=1024,vocab=51200
END

# The whole: L layers; dropout of the embedding s b h and 8 s b of positions; before the loss 4 s b h (1 + V / h), which is more than
# the layer that full recomputation has alive when the loss is through.
s=1024 h=1024 b=4
outside="8 * $s * $b + $s * $b * $h + 4 * $s * $b * $h * (1 + 51200 / $h)"
# FSDP's selective recomputation repeats every second layer as a whole.
while read -r recompute kept; do
    for framework in megatron pytorch-ddp pytorch-fsdp ideal; do
        amount=$kept
        [ "$framework $recompute" = 'pytorch-fsdp selective' ] && amount='12*(34+80) + 12*2'
        predict --workload "$gpt" --framework "$framework" -g 1 -b "$b" --precision mixed --attention composed --recompute "$recompute"
        near "$framework, $recompute: activations" 2 "$s * $b * $h * ($amount) + $outside" .memory.activations_bytes
    done
done << 'END'
none 24*(34+80)
selective 24*34
full 24*2
END

# Pipelines: the first of pp stages keeps min(pp, m) micro-batches with 1F1B, pp + (pp - 1) / v interleaved, its own inputs and
# embedding besides; with GPipe the last stage is the fullest: all m, and what precedes the loss
layer="$s * $b * $h * (34 + 80)"
while read -r schedule flight end; do
    predict --workload "$gpt" --framework megatron -g 4 --tp 1 --pp 4 --micro-batch "$b" --global-batch $((8 * b)) --precision mixed \
        --recompute none --schedule "$schedule"
    near "pp 4, $schedule: activations of the fullest stage" 2 "($flight) * (6 * $layer + $s * $b * $h * ($end))" .memory.activations_bytes
done << 'END'
1f1b 4 1
gpipe 8 4*(1+51200/1024)
interleaved 4+3/2 1
END

# GPT-3 of 175 billion parameters on 8-way tensor and 16-way pipeline parallelism, sequence parallel: six layers a stage
run predict --system dgx-a100-80 --workload gpt3_175b --framework megatron --nodes 16 --tp 8 --pp 16 --micro-batch 1 --global-batch 64 \
    --sequence-parallel --recompute selective --precision mixed --json
near 'gpt3_175b: activations of the first stage and scores of the layer at work' 2 '(16 * 6 * 34 + 80) * 2048 * 12288 / 8' .memory.activations_bytes


# TensorFlow keeps what its composed kernels read again: 150 bytes per token and hidden unit in mixed precision, 194 in fp32
# (tools/count_kept.py). 14 samples of BERT fit into 32 GB and 16 do not: NVIDIA/DeepLearningExamples #101.
on_v100() { run predict --system iris-v100-32 --framework horovod-tensorflow -g 1 "$@" --json; }
while read -r precision kept; do
    on_v100 -w bert_large:seq=512,layers=12 -b 8 --precision "$precision"
    few=$(jq '.results[0].memory.activations_bytes' "$SCRATCH/out")
    on_v100 -w bert_large:seq=512,layers=24 -b 8 --precision "$precision"
    near "TensorFlow, $precision: a layer" 0.1 "$kept * 512 * 1024 * 8" "(.memory.activations_bytes - $few) / 12"
done << 'END'
mixed 150
fp32 194
END
on_v100 -w bert_large:seq=512 -b max --precision mixed --optimizer lamb
near 'TensorFlow, mixed: the largest batch of BERT' 0 14 .batch_per_device_samples

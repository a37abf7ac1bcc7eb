#!/bin/sh
# entrances.sh - one question asked in two ways has one answer: `-b max` and its number, `predict` and `search`, one axis given, a framework alone and
# in a list, a list of nodes and each of them, a command written out in full.
. "$(dirname "$0")/lib.sh"

plan='.plan, .zero, .iteration_s, .memory.total_bytes, .batch_per_device_samples, .dp'
same() { # same NAME FILTER-A FILTER-B FILE-A FILE-B
    a=$(jq -c "$2" "$4" 2> /dev/null) b=$(jq -c "$3" "$5" 2> /dev/null)
    if [ -n "$a" ] && [ "$a" = "$b" ]; then echo "ok $1"; else bad "$1" "$a and $b"; fi
}
agree() { # agree NAME JQ-CONDITION FILE
    if [ "$(jq "$2" "$3" 2> /dev/null)" = true ]; then echo "ok $1"; else bad "$1" "not: $2"; fi
}

# The largest batch is the answer of its own number, and exists wherever one sample fits.
for job in 'dgx-h100 bert_large megatron-core 2' 'dgx-h100 llama3_8b megatron-core 2' 'iris-v100 gpt2_xl deepspeed-zero3 2' 'iris-v100 resnet50 pytorch-ddp 2' \
    'dgx-a100-40 gpt2_xl pytorch-fsdp 1' 'dgx-a100-80 llama2_7b jax-maxtext 1' 'dgx-a100-80 vgg16 horovod-pytorch 4' 'stampede2-skx resnet50 caffe-mlsl 2'; do
    # shellcheck disable=SC2086
    set -- $job
    run predict -s "$1" -w "$2" -f "$3" -n "$4" -b max --json
    check "$job: -b max" 0
    cp "$SCRATCH/out" "$SCRATCH/max"
    run predict -s "$1" -w "$2" -f "$3" -n "$4" -b "$(jq '.results[0].batch_per_device_samples' "$SCRATCH/max")" --json
    same "$job: -b max is -b of its number" ".results[0] | [$plan]" ".results[0] | [$plan]" "$SCRATCH/max" "$SCRATCH/out"
    agree "$job: it fits" '.results[0].fits' "$SCRATCH/max"
done
run predict -s iris-v100 -w llama3_8b -f pytorch-ddp -n 1 -b max
check 'one sample does not fit: max' 1 'not even one sample'
run predict -s iris-v100 -w llama3_8b -f pytorch-ddp -n 1 -b 1
check 'one sample does not fit: 1' 1 'no plan fits'

# What `predict` chooses is what `search` puts first, at most 3 % behind the fastest; so with one axis given, and with the command written out.
for job in 'llama3_70b megatron-core' 'llama3_8b pytorch-fsdp2' 'qwen3_30b_a3b megatron-core' 'mixtral_8x7b megatron-core --tp 4' 'llama3_70b megatron-core --tp 8' \
    'llama3_70b megatron-core --pp 4' 'llama2_13b megatron --zero 1' 'llama3_8b:seq=131072 pytorch-fsdp2' 'llama2_7b deepspeed-zero2' 'llama2_13b megatron-core --micro-batch 2' \
    'llama2_13b megatron-core --recompute full' 'llama3_8b megatron-core --schedule gpipe' 'llama3_8b ideal --cp 2'; do
    # shellcheck disable=SC2086
    set -- $job
    workload=$1 framework=$2
    shift 2
    run predict -s dgx-h100 --gpus 64 -w "$workload" -f "$framework" -B 128 -p bf16 "$@" --json
    check "$job: predict" 0
    cp "$SCRATCH/out" "$SCRATCH/predicted"
    run search -s dgx-h100 --gpus 64 -w "$workload" -f "$framework" -B 128 -p bf16 "$@" --top 20 --json
    same "$job: predict and search" ".results[0] | [$plan]" ".results[0] | [$plan]" "$SCRATCH/predicted" "$SCRATCH/out"
    agree "$job: within 3 %" '[.results[].iteration_s] | .[0] <= 1.03 * min' "$SCRATCH/out"
    jq -r '.results[0].command' "$SCRATCH/out" > "$SCRATCH/command"
    dlmodel() { run "$@" --json; }
    . "$SCRATCH/command"
    same "$job: written out in full" ".results[0] | [.iteration_s, .memory.total_bytes]" ".results[0] | [.iteration_s, .memory.total_bytes]" \
        "$SCRATCH/predicted" "$SCRATCH/out"
done

# A framework in a list is the framework alone, also where a release of it builds the network its own way.
for job in 'iris-v100 vgg16 chainermn,pytorch-ddp chainermnx_2020-02' 'iris-v100 bert_base horovod-mxnet,horovod-pytorch NGC_19.07' \
    'dgx-h100 llama3_8b megatron-core,pytorch-fsdp2'; do
    # shellcheck disable=SC2086
    set -- $job
    release=$(echo "${4:-}" | tr _ ' ')
    ask() { run predict -s "$1" -w "$2" -f "$3" ${release:+--release "$release"} -n 2 --json; }
    ask "$1" "$2" "$3"
    check "$job: list" 0
    cp "$SCRATCH/out" "$SCRATCH/list"
    for framework in $(echo "$3" | tr , ' '); do
        [ -n "$release" ] && ! grep -q "\"$release\"" "data/frameworks/$framework.json" && continue
        ask "$1" "$2" "$framework"
        same "$job: $framework alone" ".results[] | select(.framework == \"$framework\") | [.workload, $plan]" ".results[0] | [.workload, $plan]" \
            "$SCRATCH/list" "$SCRATCH/out"
    done
done

# Numbers of nodes in a list are those alone; an impossible one is named and skipped.
run predict -s h200-8x -w resnet50 -f pytorch-ddp -n 1-128*2 -B 512 --json
check 'an impossible number of nodes' 0 '128 nodes.*512 samples are fewer than 1024'
agree 'the others are answered' '[.results[].nodes] == [1, 2, 4, 8, 16, 32, 64]' "$SCRATCH/out"
cp "$SCRATCH/out" "$SCRATCH/list"
run predict -s h200-8x -w resnet50 -f pytorch-ddp -n 16 -B 512 --json
same 'nodes in a list' ".results[] | select(.nodes == 16) | [$plan]" ".results[0] | [$plan]" "$SCRATCH/list" "$SCRATCH/out"
run predict -s h200-8x -w resnet50 -f pytorch-ddp -n 128 -B 512
check 'alone it is an error' 2 '512 samples are fewer than 1024'
run predict -s h200-8x -w resnet50 -f pytorch-ddp -n 128,256 -B 512
check 'so are two of them' 2 '512 samples are fewer than'

# A job script trains in the precision and with the optimizer that the prediction of that job takes.
for job in 'resnet50 pytorch-ddp' 'bert_base pytorch-ddp'; do
    # shellcheck disable=SC2086
    set -- $job
    run predict -s iris-v100 -w "$1" -f "$2" -n 2 --json
    words=$(jq -r '.inputs | "--precision=\(.precision | @sh) --optimizer=\(.optimizer | @sh)"' "$SCRATCH/out")
    batch=$(jq '.results[0].batch_per_device_samples' "$SCRATCH/out")
    run slurm script --site iris -w "$1" -f "$2" -n 2
    check "$job: job script" 0
    if grep -qF -- "$words" "$SCRATCH/out" && grep -q -- "--batch=$batch " "$SCRATCH/out"; then echo "ok $job: as predicted"; else bad "$job: as predicted" "$words"; fi
done

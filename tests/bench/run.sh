#!/bin/sh
# run.sh BUILD - timings of the functions and of the whole process. Shared machines are noisy: compare on one machine only.
set -u
build=$1
"$build/tests/bench/bench"
export DLMODEL_LOCAL=/dev/null/local.json
process() { # process NAME ARGS...: mean over 50 runs
    name=$1
    shift
    start=$(date +%s%N)
    i=0
    while [ $i -lt 50 ]; do
        "$build/dlmodel" "$@" > /dev/null 2>&1
        i=$((i + 1))
    done
    end=$(date +%s%N)
    printf 'whole process: %-28s %6.1f ms\n' "$name" "$(awk "BEGIN { print ($end - $start) / 50e6 }")"
}
process 'one row' predict --system iris-v100 --framework pytorch-ddp --nodes 16
process 'all frameworks, 16 nodes' predict --system iris-v100 --nodes 16
process 'compare published runs' compare data/runs/azure_batch_ai.csv data/runs/dlperf_oneflow.csv data/runs/nvidia_deeplearningexamples.csv \
    data/runs/paradl_abci.csv data/runs/tensorflow_2017.csv data/runs/vtrain_a100.csv data/runs/megatron.csv data/runs/keras_aws.csv

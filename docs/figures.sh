#!/bin/sh
# figures.sh - the figures of the manual, from data/ alone, into $BUILD/plots. Run by `make plots`.
# Environment: BUILD, the folder with dlmodel (build).
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
out=$build/plots
mkdir -p "$out"
plot() { "$build/dlmodel" plot "$@"; }

plot scaling data/runs/dlperf_oneflow.csv --workload resnet50 -o "$out/scaling-v100"
plot scaling data/runs/azure_batch_ai.csv --workload resnet50 --where backend=nccl -o "$out/scaling-p100-k80"
plot scaling data/runs/tensorflow_2017.csv --workload vgg16 -o "$out/scaling-vgg16"
plot scaling data/runs/paradl_abci.csv --where strategy=data -o "$out/scaling-1024"
plot scaling --system iris-v100 --workload vgg16 --framework horovod-tensorflow,pytorch-ddp,tensorflow-ps --nodes 1-64*2 -o "$out/frameworks"
plot breakdown --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 1-64*2 -o "$out/breakdown"
plot error data/runs/*.csv -o "$out/error-by-source"
plot error data/runs/*.csv --by workload -o "$out/error-by-workload"
plot roofline --system iris-v100 --workload resnet50 --precision mixed --framework pytorch-ddp --nodes 1 -o "$out/roofline"
plot kernels data/kernels/deepbench_conv.csv --where device=V100 --where precision=fp32 -o "$out/kernels"

#!/bin/sh
# figures.sh - the figures of docs/gallery.md, from data/ alone. Run by `make plots`, which puts them into docs/img.
# Environment: BUILD, the folder with dlmodel (build); OUT, where to (docs/img).
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
out=${OUT:-docs/img}
mkdir -p "$out"
plot() { "$build/dlmodel" -q plot "$@"; }

plot scaling data/runs/dlperf_oneflow.csv --workload resnet50 -o "$out/scaling.svg"
plot efficiency data/runs/azure_batch_ai.csv --workload resnet50 --where backend=nccl -o "$out/efficiency.svg"
plot scaling --system iris-v100 --workload vgg16 --framework horovod-tensorflow,pytorch-ddp,tensorflow-ps --nodes 1-16*2 -o "$out/frameworks.svg"
plot strategies --system abci-v100 --workload vgg16 --strategy data,spatial,filter,data+spatial,data+filter,data+channel --nodes 1-64*2 -o "$out/strategies.svg"
plot breakdown --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 1-16*2 -o "$out/breakdown.svg"
plot pipeline --system dgx-a100-80 --workload gpt2_xl --framework megatron --nodes 2 --pp 4 --global-batch 32 --micro-batch 1 --precision bf16 \
    --schedule interleaved --virtual-stages 2 -o "$out/pipeline.svg"
plot timeline --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 4 -o "$out/timeline.svg"
plot memory --system iris-v100 --workload bert_large --precision mixed --batch-per-device 8 \
    --framework pytorch-ddp,horovod-pytorch,pytorch-fsdp,deepspeed-zero1,deepspeed-zero2,deepspeed-zero3 --nodes 4 -o "$out/memory.svg"
plot memory --system iris-v100 --workload vgg16 --framework pytorch-ddp --strategy pipeline --nodes 1 -o "$out/memory_course.svg"
plot roofline --system iris-v100 --workload resnet50 --framework pytorch-ddp --nodes 1 -o "$out/roofline.svg"
"$build/dlmodel" -q search --system dgx-a100-80 --workload gpt:layers=24,hidden=2048,heads=16 --nodes 4 --global-batch 256 --precision mixed --pareto \
    --csv > "$out/front.csv"
plot pareto "$out/front.csv" --title 'Pareto front: GPT (24 layers, 2048 wide), global batch 256, dgx-a100-80, 4 nodes x 8 devices, mixed precision' -o "$out/pareto.svg"
rm -f "$out/front.csv"
plot alphabeta data/collectives/published.csv --where library=NCCL --where nodes=1 --where device=V100-SXM2-16GB -o "$out/alphabeta.svg"
plot kernels data/kernels/deepbench_conv.csv --where device=V100 --where precision=fp32 -o "$out/kernels.png"
plot error docs/generalize/source.csv -o "$out/error.svg"
plot error data/runs/*.csv -o "$out/error_rows.png"

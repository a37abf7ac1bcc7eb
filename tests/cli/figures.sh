#!/bin/sh
# figures: every kind at 600 and at 1,400 pixels without a warning of gnuplot, and with nothing cut off at an edge.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
if ! command -v gnuplot > /dev/null 2>&1 || ! command -v python3 > /dev/null 2>&1; then
    echo 'skip figures: no gnuplot or no Python (Debian packages gnuplot-nox, python3)'
    exit 0
fi
if [ -n "${SANITIZED-}" ]; then
    echo 'skip figures: once, without sanitizers: the pictures are those of gnuplot'
    exit 0
fi

drawn() { # drawn NAME KIND ARGUMENTS...
    picture=$1
    shift
    for width in 600 1400; do
        # shellcheck disable=SC2086 # words
        run plot "$@" --width $width -o "$work/$picture-$width.png"
        check "$picture at $width pixels" 0
        says "$picture at $width pixels: no warning" test "$(cat "$work/err")" = "wrote $work/$picture-$width.png"
    done
}
runs=data/runs/tensorflow_2017.csv
run search --system dgx-a100-80 --workload gpt2_xl --nodes 2 --global-batch 64 --precision bf16 --pareto --csv
cp "$work/out" "$work/front.csv"
run campaign --system iris-v100 --nodes 4 --workload resnet50 --framework pytorch-ddp --epochs 2 --trials 8 --search asha --show schedule --csv
cp "$work/out" "$work/schedule.csv"
run search --heterogeneous iris-v100:2,das5-titanx:2 --workload resnet50 --framework tensorflow-ps --global-batch 256 --csv
cp "$work/out" "$work/choices.csv"
vgg='--system iris-v100 --workload vgg16'
gpt='--system dgx-a100-80 --workload gpt2_xl --framework megatron --precision bf16 --micro-batch 1'
# shellcheck disable=SC2086 # words
{
    drawn runs scaling data/runs/dlperf_oneflow.csv --workload resnet50
    drawn panels scaling "$runs" --workload resnet50
    drawn scaling scaling $vgg --framework horovod-tensorflow,pytorch-ddp,tensorflow-ps --nodes 1-16*2
    drawn efficiency efficiency data/runs/azure_batch_ai.csv --workload resnet50 --where backend=nccl
    drawn strategies strategies --system abci-v100 --workload vgg16 --strategy data,spatial,filter,data+spatial,data+filter,data+channel --nodes 1-64*2
    drawn breakdown breakdown $vgg --framework pytorch-ddp,horovod-tensorflow --nodes 1-8*2
    drawn timeline timeline $vgg --framework pytorch-ddp --nodes 4
    drawn pipeline pipeline $gpt --nodes 2 --pp 4 --global-batch 32 --schedule interleaved --virtual-stages 2
    drawn memory memory $vgg --framework pytorch-ddp,pytorch-fsdp,deepspeed-zero1,deepspeed-zero3 --nodes 2
    drawn stages memory $vgg --framework pytorch-ddp --strategy pipeline --nodes 1
    drawn mfu mfu --system dgx-h100 --workload llama3_8b --framework megatron-core,pytorch-fsdp,deepspeed-zero3 --nodes 1-64*2
    drawn roofline roofline --system iris-v100 --workload bert_large --precision mixed --framework ideal --nodes 1
    drawn pareto pareto "$work/front.csv"
    drawn campaign campaign "$work/schedule.csv"
    drawn checkpoint checkpoint $gpt --nodes 8
    drawn formats checkpoint --system dgx-h100 --workload llama3_8b --framework pytorch-fsdp --nodes 8 --checkpoint-format all
    drawn advise advise $vgg --framework pytorch-ddp --nodes 8
    drawn match match --systems iris-v100,dgx-a100-80,dgx-h100 --workloads resnet50,bert_large --framework pytorch-ddp
    drawn heterogeneous heterogeneous "$work/choices.csv"
    drawn error error "$runs" data/runs/dlperf_oneflow.csv
    drawn unseen error docs/generalize/source.csv
    drawn kernels kernels data/kernels/deepbench_conv.csv --where device=V100 --where precision=fp32
    drawn alphabeta alphabeta data/collectives/published.csv --where library=NCCL --where nodes=1 --where device=V100-SXM2-16GB
}
python3 tests/cli/png_rim.py "$work"/*-600.png > "$work/out" 2> "$work/err"
says 'nothing is cut off at an edge' test ! -s "$work/out" -a ! -s "$work/err"
kinds=$("$DLMODEL" plot none 2>&1 | sed -n 's/.*there are //p' | tr -d ',')
for kind in $kinds; do grep -Eq "^ +drawn [a-z]+ $kind " tests/cli/figures.sh || bad "$kind" 'no picture of this kind is tried'; done

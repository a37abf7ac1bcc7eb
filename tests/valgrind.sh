#!/bin/sh
# valgrind.sh PROGRAM - the main commands under valgrind's memcheck: no invalid access, nothing uninitialised, no leak.
# `make valgrind`; a few minutes. "ok", "not ok" lines; exit 1 when one is not.
set -u
cd "$(dirname "$0")/.." || exit 2
program=${1:?usage: tests/valgrind.sh PROGRAM}
command -v valgrind > /dev/null 2>&1 || { echo 'error: valgrind is not here: apt install valgrind' >&2; exit 2; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export DLMODEL_LOCAL="$work/local.json" DLMODEL_DATA="$PWD/data"
failed=0
memcheck() { # memcheck STATUS ARGS...
    expected=$1
    shift
    valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect,possible "$program" "$@" \
        > "$work/out" 2> "$work/err" < /dev/null
    status=$?
    if [ $status -eq "$expected" ] && ! grep -q '^==[0-9]*==' "$work/err"; then
        echo "ok $*"
    else
        echo "not ok $* (exit status $status, expected $expected)"
        grep '^==[0-9]*==' "$work/err" | head -n 40
        failed=1
    fi
}
memcheck 0 --version
memcheck 0 help
memcheck 0 help --man
memcheck 0 list systems --json
memcheck 0 schema system
memcheck 0 predict --nodes 1,4 --framework pytorch-ddp
memcheck 0 predict --system dgx1-v100 --workload bert_base --framework horovod-pytorch --nodes 2 --precision mixed --json
memcheck 0 predict --system dgx-a100-80 --workload gpt:layers=4,hidden=1024,heads=16 --framework megatron --nodes 2 --tp 8 --micro-batch 1 --csv
memcheck 0 explain --framework pytorch-ddp --nodes 4 --workload alexnet
memcheck 0 search --system dgx-a100-80 --workload gpt:layers=2,hidden=1024,heads=16 --nodes 1 --global-batch 16
memcheck 0 search --system iris-v100 --workload alexnet --nodes 1 --global-batch 64
memcheck 0 compare data/runs/keras_aws.csv
memcheck 0 report --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 1,4 --markdown
memcheck 0 plot scaling --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 1-8*2 --csv
memcheck 0 slurm script --site iris --framework pytorch-ddp --workload resnet50 --nodes 2
if "$program" --version -v | grep -q protobuf-c; then memcheck 0 import onnx tests/fixtures/onnx/mlp.onnx; fi
memcheck 0 import nccl-tests tests/fixtures/bench/nccl_2.17_two_runs.txt
memcheck 0 calibrate --dry-run
memcheck 2 predict --workload vgg61
memcheck 3 predict --system tests/fixtures/unpredictable_runs.csv
exit $failed

#!/bin/sh
# golden.sh [accept] - the job script of every framework against the one that was accepted before (tests/slurm/scripts); $DLMODEL is the
# program. Each must also be bash, and without findings of shellcheck. "ok NAME" and "not ok NAME" lines with the difference.
set -u
cd "$(dirname "$0")/../.." || exit 2
: "${DLMODEL:=$PWD/build/dlmodel}"
expected=tests/slurm/scripts
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
programs=$(cd slurm/frameworks && pwd)

# The command lines: for all frameworks that have a `launch` one job, and one for each thing that a site or option changes.
frameworks=$(grep -l '"launch": {' data/frameworks/*.json | sed 's|.*/||; s|[.]json$||')

make_script() { # make_script NAME ARGS...
    name=$1
    shift
    "$DLMODEL" slurm script --dir /runs "$@" > "$work/raw" 2> "$work/err" < /dev/null || cat "$work/err" >> "$work/raw"
    sed "s|$programs|/programs|g" "$work/raw" > "$work/$name.sh"
    if [ "${accept-}" ]; then cp "$work/$name.sh" "$expected/$name.sh"; fi
    if diff -u "$expected/$name.sh" "$work/$name.sh" > "$work/diff" 2>&1; then echo "ok script of $name"; else
        echo "not ok script of $name"
        head -n 30 "$work/diff"
    fi
    if bash -n "$work/raw" 2> "$work/err"; then echo "ok bash -n of $name"; else echo "not ok bash -n of $name"; cat "$work/err"; fi
    command -v shellcheck > /dev/null 2>&1 || return
    if shellcheck -s bash -S style -e SC2016,SC1090,SC1091 "$work/raw" > "$work/err" 2>&1; then echo "ok shellcheck of $name"; else
        echo "not ok shellcheck of $name"
        head -n 20 "$work/err"
    fi
}

accept=${1-}
for f in $frameworks; do
    case $f in
    keras-m* | tensorflow-mirrored | pytorch-dp | mxnet-device | caffe-nccl) nodes=1 ;;
    *) nodes=4 ;;
    esac
    workload=resnet50
    [ "$f" = megatron ] && workload=gpt2
    make_script "$f" --site iris --framework "$f" --workload "$workload" --nodes $nodes
done
make_script custom --site iris --framework custom --nodes 2 --steps 5 -- ./train.sh --lr=0.1 "two words" '$HOME' -x
make_script profile --site iris --framework pytorch-ddp --workload vgg16 --profile
make_script container --site tests/slurm/container.json --framework pytorch-ddp --workload resnet50 --nodes 2 --precision mixed --dataset "/data/image net"
make_script cpu --site example-cpu --framework horovod-pytorch --workload lenet --nodes 2 --batch-per-device 64 --optimizer adam

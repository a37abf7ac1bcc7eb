#!/bin/sh
# run.sh OUT.csv: measures checkpoints of PyTorch, TensorFlow and Keras on this machine: first the probe that calibrates, then three networks at 1, 2 and 4
# ranks. Needs a quiet machine (10 minutes). TORCH_PYTHON: an interpreter with torch >= 2.2, safetensors and numpy; TENSORFLOW_PYTHON: one with tensorflow
# and keras >= 3; either may be empty. CHECKPOINT_DIR: the file system to write to. RANKS, NETWORKS, REPEATS, PARTS (probe networks): what to measure.
set -eu
out=$1
here=$(cd "$(dirname "$0")" && pwd)
: "${TORCH_PYTHON=python3}" "${TENSORFLOW_PYTHON=}" "${RANKS:=1 2 4}" "${NETWORKS:=lenet squeezenet1_1 resnet50}" "${REPEATS:=7}" "${PARTS:=probe networks}"
work=$(mktemp -d "${CHECKPOINT_DIR:-${TMPDIR:-/tmp}}/checkpoint.XXXXXX")
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2086
"$here/networks.sh" "$work/networks" $NETWORKS
for r in $RANKS; do
    for part in $PARTS; do
        files=
        [ "$part" = probe ] || for n in $NETWORKS; do files="$files $work/networks/$n.json"; done
        # shellcheck disable=SC2086
        [ -z "$TORCH_PYTHON" ] || "$TORCH_PYTHON" "$here/measure_torch.py" --ranks "$r" --folder "$work/files" --out "$out" --repeats "$REPEATS" $files
        # how PyTorch's ranks plan, in one process
        [ -z "$TORCH_PYTHON" ] || [ "$part $r" != "probe 1" ] ||
            "$TORCH_PYTHON" "$here/measure_torch.py" --planning --folder "$work/files" --out "$out" --repeats "$REPEATS"
        # shellcheck disable=SC2086
        [ -z "$TENSORFLOW_PYTHON" ] || "$TENSORFLOW_PYTHON" "$here/measure_tensorflow.py" --ranks "$r" --folder "$work/files" --out "$out" --repeats "$REPEATS" $files
    done
done

#!/bin/bash
# measure.sh FOLDER [WORKLOAD...] - what `dlmodel advise` promises, measured with PyTorch DDP (Gloo) on two cores of this machine: about 5 minutes. Needs root, Slurm,
# Debian's python3-torch and a machine that does nothing else. Leaves in FOLDER: system.json (calibrate, with Gloo's all-reduce), layers-WORKLOAD.json (profiles
# of one task at the batches that are predicted), advise_WORKLOAD.csv (runs); what is there already is not measured again.
# tests/cli/advise_measured.sh compares those kept in tests/fixtures/advise.
set -eu
mkdir -p "$1"
folder=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- resnet18 lenet densenet121
cd "$(dirname "$0")/../.."
: "${DLMODEL:=$PWD/build/dlmodel}"
export PATH=$PATH:/usr/sbin:/sbin
[ -s "$folder/system.json" ] || "$DLMODEL" -q calibrate --quick --cores 1 --virtual-nodes 2 -o "$folder/cores.json"
trap 'bash tests/slurm/testbed.sh stop "$folder/bed"' EXIT
rm -rf "$folder/bed" "$folder/runs"
bash tests/slurm/testbed.sh start "$folder/bed" 2
export SLURM_CONF=$folder/bed/slurm.conf DLMODEL_SITE=$PWD/tests/slurm/bed.json
one() { # one RUN ARGS...: a job, and its end
    "$DLMODEL" -q slurm submit --dir "$folder/runs/$1" --time 120s --framework pytorch-ddp --devices-per-node 1 "${@:2}" > /dev/null
    while [ -n "$(squeue -h)" ]; do sleep 0.2; done
}
if [ ! -s "$folder/system.json" ]; then
    one collectives --profile --nodes 2 --workload lenet --batch-per-device 8
    DLMODEL_LOCAL=$folder/cores.json "$DLMODEL" -q import osu "$folder"/runs/collectives/*/collectives.txt --library gloo --nodes 2 --ranks 2 --profile "$folder/cores.json" \
        -o "$folder/system.json"
fi
measure() { # measure WORKLOAD INPUT BATCHES
    local traces=() batch
    if [ -s "$folder/layers-$1.json" ]; then return; fi
    for batch in $(echo "$3" | tr , ' '); do
        one "$1-$batch" --profile --workload "$1" --input "$2" --batch-per-device "$batch" --warmup 3 --steps 12
        traces+=("$folder/runs/$1-$batch"/*/trace.json)
        cp "$folder/runs/$1-$batch"/*/network.json "$folder/$1.json"
    done
    "$DLMODEL" -q import trace "${traces[@]}" --workload "$1" --framework pytorch-ddp --batch "$3" --system "$folder/system.json" -o "$folder/layers-$1.json"
}
for workload; do
    case $workload in
    resnet18) measure resnet18 64x64 4,8,16 ;;
    lenet) measure lenet 28x28 8 ;;
    densenet121) measure densenet121 32x32 2 ;;
    esac
    [ -s "$folder/advise_$workload.csv" ] || /usr/bin/python3 tests/advise/measure.py "$folder" "$workload"
done

#!/bin/bash
# method.sh FOLDER - the method of Deep500 on a real Slurm on this machine (testbed.sh): LeNet with PyTorch DDP on one and on two nodes of one core is repeated until
# the 95 % interval of the median is at most WIDTH (10%) wide, at most MOST (40) runs each; then collect and report. Needs root, Slurm and Debian's python3-torch; 2 to 5
# minutes on a quiet machine. Leaves in FOLDER: rounds.txt (what each round found and planned), runs.csv, report.md, report.html, figures/ (PDF and CSV).
# tests/fixtures/deep500 has what it gave once. ALONE: a command before each round, e.g. one that waits until the machine is free.
set -eu
: "${DLMODEL:=$PWD/build/dlmodel}" "${WIDTH:=10%}" "${MOST:=40}"
export PATH=$PATH:/usr/sbin:/sbin
round() { # round FOLDER: plans, runs and waits
    "$DLMODEL" slurm submit --method deep500 --interval-width "$WIDTH" --most-repeats "$MOST" --framework pytorch-ddp --workload lenet --nodes 1,2 \
        --batch-per-device 64 --warmup 5 --steps 60 --time 120s --dir "$1/runs" --csv > "$1/round.csv" 2> "$1/round.err" || { cat "$1/round.err" >&2; exit 1; }
    sed '/^after the jobs/d' "$1/round.err" | tee -a "$1/rounds.txt"
    while [ -n "$(squeue -h)" ]; do sleep 0.3; done
}
if [ "$1" = round ]; then
    round "$2"
    exit
fi
mkdir -p "$1"
folder=$(realpath "$1")
cd "$(dirname "$0")/../.."
trap 'bash tests/slurm/testbed.sh stop "$folder/bed"' EXIT
rm -rf "$folder/bed" "$folder/runs" "$folder/rounds.txt"
bash tests/slurm/testbed.sh start "$folder/bed" 2
export SLURM_CONF=$folder/bed/slurm.conf DLMODEL_SITE=$PWD/tests/slurm/bed.json DLMODEL WIDTH MOST
for _ in $(seq 1 40); do
    # a round that ALONE did not run, or cut off, is taken up by the next one: open runs count
    ${ALONE-} bash "$PWD/tests/slurm/method.sh" round "$folder" || continue
    grep -q ' 0 runs are missing' "$folder/round.err" && [ -z "$(squeue -h)" ] && break
done
"$DLMODEL" slurm collect --dir "$folder/runs" -o "$folder/runs.csv"
"$DLMODEL" report "$folder/runs.csv" --attach "$folder/figures" -o "$folder/report.html"
"$DLMODEL" report "$folder/runs.csv" -o "$folder/report.md"

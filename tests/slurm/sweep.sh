#!/bin/bash
# sweep.sh - a sweep as a job array on a real Slurm with four nodes (testbed.sh): the parts joined are what one process gives. Needs root,
# Slurm and MariaDB as testbed.sh does; $DLMODEL is the program, $SCRATCH an empty folder.
set -u
: "${DLMODEL:?}" "${SCRATCH:?}"
bed=$SCRATCH/bed
bash tests/slurm/testbed.sh start "$bed" 4 || exit 1
trap 'bash tests/slurm/testbed.sh stop "$bed"' EXIT
export SLURM_CONF=$bed/slurm.conf
sed 's/"exclusive": true/"exclusive": false/; s/"system": "local"/"system": "iris-v100", "options": ["--exclusive"]/' tests/slurm/bed.json > "$SCRATCH/site.json"
{
    echo 'system,workload,nodes,global_batch,framework'
    for system in dgx-a100-80 dgx1-v100 dgx-h100 summit-v100; do
        for workload in gpt2 gpt2_xl bert_large; do
            for nodes in 1 2 4 8 16; do echo "$system,$workload,$nodes,256,megatron"; done
        done
    done
} > "$SCRATCH/sweep.csv"
"$DLMODEL" search --sweep "$SCRATCH/sweep.csv" --csv -o "$SCRATCH/whole.csv" || exit 1
submitted=$("$DLMODEL" slurm submit --site "$SCRATCH/site.json" --sweep "$SCRATCH/sweep.csv" --parts 4 --dir "$SCRATCH/runs") || exit 1
echo "job and folder: $submitted"
for _ in $(seq 600); do
    [ -e "$SCRATCH/runs/sweep/result.csv" ] && break
    sleep 0.1
done
sleep 2 # accounting comes later
sacct -a -j "${submitted%% *}" -X -P -n -o JobID,State,NodeList,Elapsed
if cmp -s "$SCRATCH/whole.csv" "$SCRATCH/runs/sweep/result.csv"; then
    echo "ok $(($(wc -l < "$SCRATCH/whole.csv") - 1)) searches in 4 tasks are, joined, what one process gives"
else
    echo 'not ok the joined parts differ from one process'
    cat "$SCRATCH"/runs/sweep/slurm-*.out
    exit 1
fi

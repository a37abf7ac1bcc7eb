#!/bin/sh
# trust.sh - what a folder of data must not do, and what a job must not write.
cd "$(dirname "$0")/../.." || exit 2
. tests/cli/lib.sh

# A folder of data on a shared file system, with a plot script and benchmark programs next to it.
shared=$SCRATCH/shared
mkdir -p "$shared/data" "$shared/plots" "$shared/slurm/frameworks" "$shared/slurm/sites"
cp -R data/. "$shared/data/"
for script in style scaling breakdown; do echo "system 'touch $SCRATCH/ran'" > "$shared/plots/$script.gp"; done
sed 's/"name": "iris"/"name": "planted"/' slurm/sites/iris.json > "$shared/slurm/sites/planted.json"
echo 'planted' > "$shared/slurm/frameworks/pytorch_bench.py"
if command -v gnuplot > /dev/null 2>&1; then
    run --data "$shared/data" plot breakdown --nodes 2 -o "$SCRATCH/figure.svg"
    check 'a figure with data from elsewhere' 0
    if [ -s "$SCRATCH/figure.svg" ] && [ ! -e "$SCRATCH/ran" ]; then echo 'ok no script next to --data runs'; else bad 'no script next to --data runs' "$(ls "$SCRATCH")"; fi
    DLMODEL_DATA=$shared/data run plot breakdown --nodes 2 -o "$SCRATCH/figure2.svg"
    if [ -s "$SCRATCH/figure2.svg" ] && [ ! -e "$SCRATCH/ran" ]; then echo 'ok no script next to DLMODEL_DATA runs'; else bad 'no script next to DLMODEL_DATA runs' "$(ls "$SCRATCH")"; fi
else
    echo 'skip plot scripts: no gnuplot (Debian package gnuplot-nox)'
fi
run --data "$shared/data" slurm script --site iris --framework pytorch-ddp --workload resnet50
check 'a job script with data from elsewhere' 0
if grep -q "$shared/slurm" "$SCRATCH/out"; then bad 'programs of jobs come with dlmodel' "$(grep "$shared/slurm" "$SCRATCH/out")"; else echo 'ok programs of jobs come with dlmodel'; fi
run --data "$shared/data" slurm script --site planted --framework pytorch-ddp
check 'no site next to --data' 2 "unknown site 'planted'"

# The part of a job that records its environment, run as the job runs it.
run slurm script --site iris --framework pytorch-ddp --workload resnet50
sed -n "/^speed_variables='/,/environment.txt/p" "$SCRATCH/out" > "$SCRATCH/part.sh"
SLURM_JWT=s3cr3t SLURM_JOB_ID=77 TF_VAR_password=s3cr3t TF_TOKEN_example=s3cr3t NCCL_DEBUG=WARN UCX_SECRET_TOKEN=s3cr3t AWS_SECRET_ACCESS_KEY=s3cr3t run='' \
    bash -c "umask 022; run='$SCRATCH'; . '$SCRATCH/part.sh'"
if [ -s "$SCRATCH/part.sh" ] && grep -qx 'SLURM_JOB_ID=77' "$SCRATCH/environment.txt" && grep -qx 'NCCL_DEBUG=WARN' "$SCRATCH/environment.txt"; then
    echo 'ok a job records what affects its speed'
else
    bad 'a job records what affects its speed' "$(cat "$SCRATCH/environment.txt")"
fi
if grep -q s3cr3t "$SCRATCH/environment.txt"; then bad 'a job writes no credentials' "$(grep s3cr3t "$SCRATCH/environment.txt")"; else echo 'ok a job writes no credentials'; fi
mode=$(stat -c %a "$SCRATCH/environment.txt")
if [ "$mode" = 600 ]; then echo 'ok only its owner reads environment.txt'; else bad 'only its owner reads environment.txt' "$mode"; fi

#!/bin/sh
# networks.sh FOLDER NAME...: FOLDER/NAME.json, the networks as `dlmodel slurm` hands them to the benchmark programs. Nothing is submitted.
set -eu
out=$1
shift
cd "$(dirname "$0")/../.."
: "${DLMODEL:=$PWD/build/dlmodel}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/bin"
printf '#!/bin/sh\necho 1\n' > "$work/bin/sbatch"
chmod +x "$work/bin/sbatch"
for n; do
    PATH=$work/bin:$PATH DLMODEL_SITE=$PWD/tests/slurm/bed.json "$DLMODEL" -q slurm submit --framework pytorch-ddp --workload "$n" --dir "$work/runs" > /dev/null
    cp "$work/runs/pytorch-ddp-$n"-*/network.json "$out/$n.json"
done

#!/bin/sh
# capture: what a script would start is written down and imported; the script itself runs, the training does not.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
TMPDIR=$SCRATCH/tmp
export TMPDIR
mkdir "$TMPDIR"
run capture --system dgx-a100-80 -- bash tests/fixtures/runs/megatron.sh
check 'a script of Megatron' 0 'not started: torchrun --nnodes=2'
cp "$SCRATCH/out" "$SCRATCH/captured"
says 'it says what it changes' grep -q 'stand-ins for torchrun.*runs as always' "$SCRATCH/err"
run import megatron tests/fixtures/runs/megatron.sh --system dgx-a100-80
says 'as import reads the script' cmp -s "$SCRATCH/out" "$SCRATCH/captured"

cat > "$SCRATCH/train.sh" << 'T'
#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gpus-per-node=8
echo of the script
touch "$SCRATCH/touched"
mkdir -p "$SCRATCH/venv/bin"
printf '#!/bin/sh\ntouch "$SCRATCH/trained"\n' > "$SCRATCH/venv/bin/python"
chmod +x "$SCRATCH/venv/bin/python"
export PATH="$SCRATCH/venv/bin:$PATH"
python -c 'print(8)'
python prepare.py --name "a b" "it's" '' 'x
y'
srun torchrun --nproc_per_node 8 train.py --model resnet50 &
T
export SCRATCH
run capture --commands -- bash "$SCRATCH/train.sh"
check 'commands' 0 'of the script'
has 'quotes, blanks, empty words and lines come through' "^python prepare.py --name 'a b' 'it'.*s' '' 'x$"
has 'of the background too' '^srun torchrun --nproc_per_node 8 train.py --model resnet50$'
has "Slurm's lines" '^#SBATCH --gpus-per-node=8$'
says 'the script runs' test -e "$SCRATCH/touched"
says 'an environment that comes first in PATH trains nothing' test ! -e "$SCRATCH/trained"
"$DLMODEL" capture --commands -- bash "$SCRATCH/train.sh" 2> /dev/null > "$SCRATCH/again.sh"
run import launch "$SCRATCH/again.sh" --system dgx-h100 --skip-unknown
check 'import reads the commands' 0
run capture --system dgx-h100 -- bash "$SCRATCH/train.sh"
check 'the launcher is imported' 0 'other commands captured: 1'
has 'with the nodes of Slurm' '--workload resnet50 .*--nodes 4 --devices-per-node 8$'
run capture --system dgx-h100 --json -o "$SCRATCH/plan.json" -- sh -c 'exec torchrun --nproc_per_node 4 train.py --model vgg16'
check 'a file of JSON' 0
says 'it is whole' grep -q '"vgg16"' "$SCRATCH/plan.json"

echo before > "$SCRATCH/kept"
run capture --commands -o "$SCRATCH/kept" -- true
check 'no training' 1 'started no training'
says 'the output file stays' grep -q before "$SCRATCH/kept"
run capture -- python -c 'print(1)'
check 'Python for a line is none' 1 'started no training'
run capture --commands -- "$SCRATCH/nowhere"
check 'no such command' 2 'not found'
run capture
check 'no command' 2 'expected a command'
run capture --commands --time-limit 0.5 -- sh -c 'torchrun a.py; trap "" TERM; sleep 60 & sleep 60'
check 'a script that does not end' 0 'ended at its time limit'
has 'what it started before' '^torchrun a.py$'
run capture --commands -- sh -c 'torchrun a.py; exit 3'
check 'a script that fails' 0 'exit status 3'
run capture --system dgx-h100 -- sh -c 'torchrun train.py --tensor-model-paralel-size 2'
check 'what import refuses' 3 'captured.sh'
"$DLMODEL" capture -- sh -c 'kill -TERM $PPID; sleep 20' > "$SCRATCH/out" 2> "$SCRATCH/err"
status=$?
check 'a signal ends it' 5 'ended by signal'
says 'no folder is left' test -z "$(ls "$TMPDIR")"

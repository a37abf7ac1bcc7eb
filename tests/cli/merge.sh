#!/bin/sh
# merge: parts of a sweep and of a comparison give, joined, what one process gives, byte for byte.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH/work
mkdir -p "$work"
same() { # same NAME FILE FILE
    if cmp -s "$2" "$3"; then printf 'ok %s\n' "$1"; else bad "$1" "$2 and $3 differ"; fi
}
cat > "$work/sweep.csv" << 'END'
system,workload,nodes,global_batch,framework
dgx-a100-80,gpt2_xl,1,64,
dgx-a100-80,gpt2_xl,2,64,
iris-v100,resnet50,4,512,chainermn
iris-v100,resnet61,4,512,
single-k80,gpt3_175b,1,8,megatron
dgx-a100-80,bert_large,2,128,
iris-v100,vgg16,2,256,chainermn
END
run search --sweep "$work/sweep.csv" --csv -o "$work/whole.csv"
check 'a sweep' 0
cp "$work/whole.csv" "$SCRATCH/out"
# The fastest plan is data parallel with ZeRO 1, which 3d with --zero 1 on dp 16 is too: the search names it once.
has 'what it says is found for each row' '^2,dgx-a100-80,gpt2_xl,2,64,,,zero1,dp16 mb4 zero1,2,16,16,1,1,'
has 'why there is none' '^4,iris-v100,resnet61,4,512,,"no workload '
has 'the header' '^row,sweep_system,sweep_workload,sweep_nodes,sweep_global_batch,sweep_framework,why,strategy,plan,nodes,'
for i in 0 1 2; do
    run search --sweep "$work/sweep.csv" --shard "$i/3" --csv -o "$work/part-$i.csv"
    check "part $i of it" 0
done
run merge "$work/part-2.csv" "$work/part-0.csv" "$work/part-1.csv" -o "$work/joined.csv"
check 'merge' 0
same 'the parts joined are the whole' "$work/whole.csv" "$work/joined.csv"
iteration=$(awk -F , '$1 == 2 { for (i = 1; i <= NF; i++) if (name[i] == "iteration_s") print $i } NR == 1 { for (i = 1; i <= NF; i++) name[i] = $i }' "$work/whole.csv")
run search --system dgx-a100-80 --workload gpt2_xl --nodes 2 --global-batch 64 --threads 1 --top 1 --csv
has 'a row is what a search alone gives' ",$iteration,"
run search --sweep "$work/sweep.csv" --top 2 --shard 1/7
check 'two plans a row' 0
if [ "$(wc -l < "$SCRATCH/out")" -eq 3 ]; then echo 'ok header and two plans'; else bad 'header and two plans' 'other lines'; fi

for i in 0 1 2 3; do
    run compare data/runs/tensorflow_2017.csv data/runs/paradl_abci.csv data/collectives/published.csv --rows --csv --shard "$i/4" -o "$work/rows-$i.csv"
    check "part $i of a comparison" 0
done
run compare data/runs/tensorflow_2017.csv data/runs/paradl_abci.csv data/collectives/published.csv --rows --csv -o "$work/rows.csv"
check 'the whole comparison' 0
run merge "$work"/rows-*.csv -o "$work/rows-joined.csv"
check 'merge' 0
same 'the rows joined are the whole, with causes' "$work/rows.csv" "$work/rows-joined.csv"

run merge "$work/part-0.csv" "$work/part-2.csv"
check 'a missing part' 3 'row 2 is in no part'
run merge "$work/part-0.csv" "$work/part-1.csv" "$work/part-2.csv" "$work/part-1.csv"
check 'no part missing, one given twice' 0
cp "$work/part-1.csv" "$work/part-1-again.csv"
run merge "$work/part-0.csv" "$work/part-1.csv" "$work/part-2.csv" "$work/part-1-again.csv"
check 'a part twice' 3 'is also in'
run merge "$work/part-0.csv" "$work/rows-1.csv"
check 'parts of different kinds' 3 'other columns'
head -c 300 "$work/part-1.csv" > "$work/cut.csv"
run merge "$work/part-0.csv" "$work/cut.csv" "$work/part-2.csv"
check 'a part that was cut' 3 'is cut'
run merge "$work/whole-none.csv"
check 'no such file' 3 'cannot read'
run merge data/runs/tensorflow_2017.csv
check 'no part at all' 3 'shard'
run merge
check 'nothing to merge' 2 'expected the parts'
run compare data/runs/tensorflow_2017.csv --shard 0/2
check 'a part of a summary' 2 'goes with --rows --csv'
run search --sweep "$work/sweep.csv" --shard 3/3
check 'a part beyond the last' 2 'I/N'
printf 'system,nodez\niris-v100,1\n' > "$work/wrong.csv"
run search --sweep "$work/wrong.csv"
check 'a column that is no option' 3 'wrong.csv:1:1: error: nodez'
# the job array, without Slurm
cat > "$work/site.json" << 'END'
{"format": "dlmodel-site", "version": 1, "name": "bed", "summary": "test", "system": "iris-v100", "device": "cpu", "devices_per_node": 1, "cores_per_node": 4,
 "partition": "bed", "time_limit_s": 600, "exclusive": false, "accounting": false, "login_shell": false, "python": "python3"}
END
run slurm submit --site "$work/site.json" --sweep "$work/sweep.csv" --parts 3 --dir "$work/runs" --dry-run -- --precision mixed
if [ "$status" -eq 0 ]; then
    has 'an array' '^#SBATCH --array=0-2$'
    has 'quoted words of search' "search=\\('--precision' 'mixed'\\)"
    if bash -n "$SCRATCH/out"; then echo 'ok bash reads it'; else bad 'bash reads it' 'syntax'; fi
else
    check 'the script of a sweep' 0
fi

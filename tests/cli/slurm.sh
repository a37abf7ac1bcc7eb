#!/bin/sh
# dlmodel slurm without a Slurm: what is asked for, scripts that stay inert, runs that are collected from folders and a sacct of our own.
# The real Slurm is in tests/slurm.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
export DLMODEL_SITE=''
unset XDG_CONFIG_HOME
HOME=$work
export HOME

# What is wrong with the question
run slurm
check 'no subcommand' 2 'script, submit, status, collect or cancel'
run slurm submitt
check 'unknown subcommand' 2 "did you mean 'submit'"
run slurm submit --framework pytorch-ddp
check 'no site' 2 'no site: .*--site.*iris'
run slurm submit --site irris --framework pytorch-ddp
check 'unknown site' 2 "unknown site 'irris'.*iris"
run slurm submit --site iris
check 'no framework' 2 '--framework NAME'
run slurm submit --site iris --framework pytorch-dpp
check 'unknown framework' 2 'did you mean "pytorch-d'
printf '%s' '{"format": "dlmodel-framework", "version": 1, "name": "mine", "summary": "s", "source": "mem", "release": "1", "behaviour": "bucketed",
"library": "nccl", "bucket_bytes": 25e6}' > "$work/mine.json"
run slurm script --site iris --framework "$work/mine.json"
check 'a framework that no job can start' 2 'does not say how to launch it'
sed 's|25e6|25e6, "launch": {"program": "pytorch_bench.py", "mode": "ddp", "tasks": "device", "environment": ["MINE=a b"]}|' "$work/mine.json" > "$work/launched.json"
run slurm script --site iris --framework "$work/launched.json"
check 'a framework of the user starts as its file says' 0
has 'its environment, quoted' "^export MINE='a b'"
has 'its library as backend' "backend='nccl'"
run slurm submit --site iris --framework ideal
check 'ideal does not run' 2 "bound"
sed 's/iris-v100/dgx-a100-80/' "$DLMODEL_ROOT/slurm/sites/iris.json" > "$work/a100.json"
for job in pytorch-ddp:bf16 chainermn:fp32; do # what predict takes
    run slurm script --site "$work/a100.json" --framework "${job%:*}" --workload resnet50
    check "${job%:*} in a precision that it has" 0
    has "${job#*:}" "--precision='${job#*:}'"
    "$DLMODEL" predict -s dgx-a100-80 -f "${job%:*}" --json 2> /dev/null | jq -r '.results[0].precision' > "$work/out"
    has 'as predict' "^${job#*:}$"
done
run slurm submit --site iris --framework pytorch-ddp --workload resnet5O
check 'unknown workload' 2 "resnet50"
run slurm submit --site iris --framework keras-multi-gpu --nodes 2 --dry-run
check 'one process on two nodes' 2 'one process on one node'
run slurm submit --site iris --framework keras-multi-gpu,pytorch-ddp --nodes 1,2 --dry-run
check 'a framework that cannot run does not end the sweep' 0 'left out: keras-multi-gpu runs as one process on one node; got --nodes 2'
has 'the others are there' '^ pytorch-ddp-resnet50-n2x4-b32-r1 '
run slurm submit --site iris --framework pytorch-ddp --devices-per-node 5 --dry-run
check 'more devices than there are' 2 'a node of site .iris. has 4'
run slurm submit --site iris --framework pytorch-ddp --global-batch 10 --dry-run
check 'a batch that does not divide' 2 'are not divisible by 4 devices'
run slurm submit --site iris --framework custom --dry-run
check 'custom without a command' 2 'COMMAND'
run slurm submit --site iris --framework pytorch-ddp --dry-run -- ./x
check 'a command without custom' 2 'framework custom'
run slurm submit --site iris --framework pytorch-ddp --workload resnet50 --input seq128 --dry-run
check 'a sequence for an image network' 2 'seq128'
run slurm script --site iris --framework pytorch-ddp --nodes 1,2
check 'script of two jobs' 2 'prints one job, but 2'
run slurm submit --site iris --framework pytorch-ddp --profile --devices-per-node 2 --dry-run
check 'profile of two devices' 2 'one device'
run slurm script --site iris --framework mxnet-dist-sync --profile --nodes 2
check 'profile of two nodes: collectives' 0
has 'with its servers' '--role=server'
run slurm script --site iris --framework mxnet-dist-sync --profile
check 'profile of one node: layers' 0
hasnt 'without servers' '--role=server'
run slurm status --dir "$work/nothing"
check 'no folder of runs' 3 'cannot open the folder of runs'
run slurm collect surplus
check 'a surplus word' 2 'use --dir'
printf '{"format":"dlmodel-site","version":1,"name":"a","summary":"b","system":"c","device":"gpu","devices_per_node":1,"partitoin":"x"}' > "$work/bad.json"
run slurm submit --site "$work/bad.json" --framework pytorch-ddp
check 'a misspelt key of a site file' 3 'bad\.json:1:.*partitoin.*partition'
printf '{"format":"dlmodel-site","version":1,"name":"a","summary":"b","system":"c","device":"gpu","devices_per_node":1,"options":["-x"]}' > "$work/bad.json"
run slurm script --site "$work/bad.json" --framework pytorch-ddp
check 'an option of a site that is none' 3 'expected "--name=value"'
run slurm script --site iris --framework pytorch-ddp --partition "$(printf 'a\nb')"
check 'a newline in a directive' 2 'partition: expected text without control characters'

# What was asked for
run slurm submit --site iris --framework horovod-tensorflow --workload resnet50 --nodes 1-16*2 --repeat 3 --dry-run --csv
check 'a scaling study in one line' 0 'limits jobs to 4 nodes'
has 'its last job' '^horovod-tensorflow-resnet50-n16x4-b32-r3,horovod-tensorflow,resnet50,16,4,7,32,50,,'
[ "$(wc -l < "$work/out")" -eq 16 ] && echo 'ok fifteen jobs' || bad 'fifteen jobs' 'wrong count'
DLMODEL_SITE=iris run slurm submit --framework pytorch-ddp,horovod-pytorch --workload resnet50,vgg16 --dry-run --json
check 'site of the environment' 0
has 'JSON of runs' '"format": "dlmodel-slurm-runs"'
mkdir -p "$work/.config/dlmodel"
cp slurm/sites/iris.json "$work/.config/dlmodel/site.json"
run slurm submit --framework pytorch-ddp --dry-run
check 'site of the user' 0
rm -r "$work/.config"
PATH=$work/nothing run slurm submit --site iris --framework pytorch-ddp --dir "$work/no slurm"
check 'no Slurm here' 6 'sbatch is not in PATH'

# Hostile names: the script runs under commands of our own, nothing of the names runs, and each arrives as it is.
mkdir -p "$work/bin"
for c in srun module; do
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nfor a in "$@"; do printf "%%s\\0" "$a"; done > "%s/argv.$$"\n' "$work" > "$work/bin/$c" # a file a call: calls run side by side
    chmod +x "$work/bin/$c"
done
evil="\$(touch $work/evil1)\`touch $work/evil2\`; touch $work/evil3 #\" ' -rf"
newline=$(printf -- '-x\n$(touch %s/evil4)' "$work")
folder="$work/-runs 'q' \"d\" \$(touch $work/evil5)
second line"
mkdir -p "$folder"
sed "s|/opt/it's/env.sh|/dev/null|" tests/slurm/container.json > "$work/site.json"
run slurm script --site "$work/site.json" --framework custom --name "$evil" --dir "$folder" --dataset "$evil" -- "$newline" "$evil" -n 'a b'
check 'a script of hostile names' 0
cp "$work/out" "$work/hostile.sh"
if bash -n "$work/hostile.sh"; then echo 'ok hostile names are bash'; else bad 'hostile names are bash' 'bash -n'; fi
mkdir -p "$folder/custom-custom-n1x2-b32-r1"
(cd "$work" && PATH=$work/bin:$PATH SLURM_JOB_ID=1 SLURM_JOB_NODELIST=n1 SLURM_JOB_NUM_NODES=1 bash "$work/hostile.sh" > "$work/log" 2>&1)
find "$work" . -maxdepth 2 -name 'evil*' | grep . && bad 'nothing of the names ran' 'a file was made' || echo 'ok nothing of the names ran'
cat "$work"/argv.* | tr '\0' '\1' | tr '\n' '\2' > "$work/flat"
expected=$(printf -- '-x\2$(touch %s/evil4)\1%s\1-n\1a b\1' "$work" "$evil")
if grep -qaF -- "$expected" "$work/flat"; then echo 'ok the words arrive as they are'; else bad 'the words arrive as they are' "$(cat "$work/log")"; fi
grep -qaF '"event":"exit","status":0' "$folder/custom-custom-n1x2-b32-r1/job.jsonl" && echo 'ok the job says how it ended' || bad 'the job says how it ended' "$(cat "$work/log")"

# Runs of our own making
python_is_here=$(command -v python3 || true)
[ -n "$python_is_here" ] || { echo '# no python3: collecting was not tested'; exit 0; }
python3 tests/slurm/fake_runs.py "$work/spool" 7 > /dev/null
printf '#!/bin/sh\nexec python3 "%s/tests/slurm/fake_sacct.py" "%s/spool" "$@"\n' "$PWD" "$work" > "$work/bin/sacct"
printf '#!/bin/sh\necho "1006|RUNNING|/elsewhere"\n' > "$work/bin/squeue"
chmod +x "$work/bin/sacct" "$work/bin/squeue"
PATH=$work/bin:$PATH
run slurm collect --dir "$work/spool" -o "$work/runs.csv"
check 'collect' 0 '3 runs complete \(1 disturbed in all\), 2 incomplete but kept, 1 ended without measured steps, 1 not ended yet'
cp "$work/runs.csv" "$work/out"
has 'the columns of runs' '^id,source,system,framework,strategy,backend,workload,input,precision,optimizer,nodes,devices_per_node,batch_per_device,global_batch,dp,tp,pp,micro_batch,metric,value,unit,notes,'
has 'a complete run: median of the steps without warm-up' '^r0000,.*,iteration,0\.11,s,median of 20 steps,1000,COMPLETED,'
has 'an outlier is excluded, and the notes say so' '^r0001,.*median of 19 steps; 1 outliers excluded'
has 'a disturbed run is marked' '^r0002,.*disturbed: other processes used 40 % of a node.s cores during the run.*,yes,'
has 'a run that was cut off keeps its steps' '^r0003,.*incomplete: TIMEOUT after 12 of 20 steps; 1 damaged log lines'
has 'a run of a dead node keeps its steps' '^r0004,.*incomplete: NODE_FAIL after 5 of 20 steps'
hasnt 'no row without steps, or of a running job' '^r000[56],'
has 'energy of the site' ',1234,'
has 'how long a job took' '^r0000,.*,no,[0-9]*,61,1234,'
has 'not before the accounting has its end' '^r0002,.*,yes,[0-9]*,,,'
cp "$work/runs.csv" "$work/first.csv"
inode=$(ls -i "$work/runs.csv")
run slurm collect --dir "$work/spool" -o "$work/runs.csv"
cmp -s "$work/runs.csv" "$work/first.csv" && [ "$inode" = "$(ls -i "$work/runs.csv")" ] && echo 'ok collecting twice changes nothing' || bad 'collecting twice changes nothing' 'the file changed'
printf 'other,x,iris-v100,ideal,data,,resnet50,,fp32,sgd,1,1,1,1,,,,,iteration,1,s,kept,,,,,,,,,,,,,\n' >> "$work/runs.csv"
run slurm collect --dir "$work/spool" -o "$work/runs.csv"
cp "$work/runs.csv" "$work/out"
has 'rows of other runs stay' '^other,'
run slurm collect --dir "$work/spool" -o data/runs/intel_caffe.csv
check 'not into a table with other columns' 3 'expected the columns that collect writes'
run slurm status --dir "$work/spool"
check 'status' 0
has 'a running job' 'r0006 .*RUNNING'
has 'why it failed' 'r0005 .*FAILED.*no such device'

# slurmctld died and forgot the job: the accounting has it for running for ever. What was measured is kept.
cp -r "$work/spool" "$work/forgotten"
for i in 0 1 2 3 4 5; do printf '{"event":"step","step":%d,"step_s":0.1}\n' $i; done >> "$work/forgotten/r0006/bench-00000.jsonl"
printf '#!/bin/sh\necho "7|RUNNING|/elsewhere"\n' > "$work/bin/squeue"
run slurm collect --dir "$work/forgotten" -o "$work/forgotten.csv"
check 'a job that Slurm forgot' 0 'r0006: LOST after'
cp "$work/forgotten.csv" "$work/out"
has 'its steps are kept' '^r0006,.*incomplete: LOST after .*,1006,LOST,'
printf '#!/bin/sh\necho "1006|COMPLETED|/elsewhere"\n' > "$work/bin/squeue"
run slurm collect --dir "$work/forgotten" -o "$work/behind.csv"
cp "$work/behind.csv" "$work/out"
has 'the queue knows of an end before the accounting' '^r0006,.*,1006,COMPLETED,'
# submit died after sbatch had taken the job, and before it wrote the number down
sed -i 's/, "job_id": "1006"//' "$work/forgotten/r0006/run.json"
rm -f "$work/forgotten/r0006/job.jsonl"
printf '#!/bin/sh\necho "1006|RUNNING|%s"\n' "$work/forgotten/r0006" > "$work/bin/squeue"
run slurm status --dir "$work/forgotten"
has 'a job whose number was not written down is found in the queue' 'r0006 .*1006 .*RUNNING'
printf '#!/bin/sh\necho "$@" > "%s/cancelled"\n' "$work" > "$work/bin/scancel"
chmod +x "$work/bin/scancel"
run slurm cancel r0006 --dir "$work/forgotten"
grep -qx 1006 "$work/cancelled" && echo 'ok and cancelled' || bad 'and cancelled' "$(cat "$work/log")"
# An operator requeued the job: only its last attempt counts.
{ printf '{"event":"start"}\n'; for i in 0 1 2 3; do printf '{"event":"step","step":%d,"step_s":0.7}\n' $i; done; printf '{"event":"end"}\n'; } > "$work/again"
cat "$work/again" "$work/forgotten/r0000/bench-00000.jsonl" > "$work/both" && mv "$work/both" "$work/forgotten/r0000/bench-00000.jsonl"
run slurm collect --dir "$work/forgotten" -o "$work/requeued.csv"
cmp -s "$work/requeued.csv" "$work/first.csv" && echo 'ok a requeued run is its last attempt' || bad 'a requeued run is its last attempt' "$(diff "$work/requeued.csv" "$work/first.csv")"
printf '#!/bin/sh\necho "1006|RUNNING|/elsewhere"\n' > "$work/bin/squeue"
(cd slurm/frameworks && SLURM_RESTART_COUNT=2 python3 -B -c 'import sys, common; print(common.Meeting(sys.argv[1], "7").folder)' "$work") > "$work/out"
has 'tasks of a requeued job meet anew' '/meet-7\.2$'
# Nobody ends the watch of a node whose slurmd has died: it sees the exit of the script, or that the script or its own parent is gone.
watch() { # watch NAME COMMAND: a watch in the folder $work/watched, and whether COMMAND ends it
    rm -rf "$work/watched" && mkdir "$work/watched"
    printf '{"event":"job","job_id":"9"}\n' > "$work/watched/job.jsonl"
    sleep 1000 & script=$!
    sh -c 'SLURM_JOB_ID=9 python3 -B slurm/frameworks/preflight.py --run="$1" --script="$2" --watch --period 0.3 & echo $! > "$1/pid"; wait' sh "$work/watched" "$script" &
    parent=$!
    within 120 grep -qs '"event":"watch"' "$work/watched"/node-00000.jsonl || bad "$1" 'it did not begin'
    pid=$(cat "$work/watched/pid")
    eval "$2"
    if within 120 ended "$pid"; then echo "ok $1"; else bad "$1" 'the watch goes on'; kill -9 "$pid"; fi
    kill "$script" "$parent" 2> /dev/null
    wait "$script" "$parent" 2> /dev/null
}
ended() { ! kill -0 "$1" 2> /dev/null; }
watch 'a watch ends with the exit of the script' 'printf "{\"event\":\"exit\",\"status\":0}\n" >> "$work/watched/job.jsonl"'
watch 'a watch ends when the script is killed' 'kill -9 "$script"; wait "$script" 2> /dev/null'
watch 'a watch ends with the process that started it' 'kill -9 "$parent"'

# Slurm does not answer: what is there is kept, and the next time all is well.
printf '#!/bin/sh\necho "sacct: error: slurm_persist_conn_open: Connection refused" >&2\nexit 1\n' > "$work/bin/sacct"
run slurm collect --dir "$work/spool" -o "$work/down.csv"
check 'accounting is down' 6 'sacct failed:.*Connection refused'
cp "$work/down.csv" "$work/out"
has 'logs are collected all the same' '^r0000,.*,iteration,0\.11,s,'
printf '#!/bin/sh\nexec python3 "%s/tests/slurm/fake_sacct.py" "%s/spool" "$@"\n' "$PWD" "$work" > "$work/bin/sacct"
run slurm collect --dir "$work/spool" -o "$work/down.csv"
cmp -s "$work/down.csv" "$work/first.csv" && echo 'ok the next time it is complete' || bad 'the next time it is complete' "$(diff "$work/down.csv" "$work/first.csv")"

# No controller answers, as after the end of an allocation: the accounting and the logs do.
cp "$work/bin/squeue" "$work/squeue"
printf '#!/bin/sh\necho "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2\nexit 1\n' > "$work/bin/squeue"
run slurm collect --dir "$work/spool" -o "$work/away.csv"
check 'no controller answers' 0 'warning: squeue failed: .*Unable to contact slurm controller.*; ends are taken from the accounting'
cmp -s "$work/away.csv" "$work/first.csv" && echo 'ok the table is that of a controller that answers' || bad 'the table is that of a controller that answers' "$(diff "$work/away.csv" "$work/first.csv")"
run slurm status --dir "$work/spool"
check 'status without a controller says so' 6 'squeue failed: .*Unable to contact'
has 'and what the accounting says' 'r0003 .*TIMEOUT'
mv "$work/bin/sacct" "$work/sacct"
run slurm collect --dir "$work/spool" -o "$work/away.csv"
check 'neither of them is here' 6 'warning: squeue failed: .*; ends are taken from the logs'
mv "$work/sacct" "$work/bin/sacct"
sed 's/"exclusive": true/&,\n  "accounting": false/' tests/slurm/bed.json > "$work/bare.json"
run slurm collect --site "$work/bare.json" --dir "$work/spool" -o "$work/bare.csv"
check 'no controller and no accounting: the logs' 0 'warning: squeue failed: .*; ends are taken from the logs'
cp "$work/bare.csv" "$work/out"
has 'a run that logged its end' '^r0000,.*,iteration,0\.11,s,.*,1000,unknown,'
mv "$work/squeue" "$work/bin/squeue"

# Full disk: no half table, nothing lost
if [ -w /dev/full ]; then
    run slurm collect --dir "$work/spool" -o /dev/full
    check 'a full disk at collect' 5 'No space left'
fi
cp "$work/first.csv" "$work/limited.csv"
printf 'other,x,iris-v100,ideal,data,,resnet50,,fp32,sgd,1,1,1,1,,,,,iteration,1,s,kept,,,,,,,,,,,,,,,,\n' >> "$work/limited.csv"
cp "$work/limited.csv" "$work/before.csv"
sed -i 's/^r0000,/r000x,/' "$work/limited.csv" "$work/before.csv"
(ulimit -f 1; trap '' XFSZ; "$DLMODEL" slurm collect --dir "$work/spool" -o "$work/limited.csv" > "$work/out" 2> "$work/err")
status=$?
check 'no room for the table' 5 'File too large'
cmp -s "$work/limited.csv" "$work/before.csv" && echo 'ok the old table is untouched' || bad 'the old table is untouched' 'it changed'
run slurm collect --dir "$work/spool" -o "$work/limited.csv"
check 'collect succeeds afterwards' 0
# A table that a version without the last column wrote is gone on with.
head -n 1 "$work/first.csv" | sed 's/,core_s,framework_version$//' > "$work/older.csv"
printf 'other,x,iris-v100,ideal,data,,resnet50,,fp32,sgd,1,1,1,1,,,,,iteration,1,s,kept,,,,,,,,,,,,,,\n' >> "$work/older.csv"
run slurm collect --dir "$work/spool" -o "$work/older.csv"
check 'a table without the last column' 0
if grep -q '^other,.*,kept,' "$work/older.csv" && grep -q ',framework_version$' "$work/older.csv" && grep -q '^r0000,' "$work/older.csv"; then echo 'ok its rows stay'; else bad 'its rows stay' "$(head -n 3 "$work/older.csv")"; fi

# Folders that are damaged
printf '{"format":"dlmodel-run",' > "$work/spool/r0001/run.json"
: > "$work/spool/r0000/bench-00000.jsonl"
run slurm collect --dir "$work/spool" -o "$work/damaged.csv"
check 'damaged folders are named' 0 '1 folders were skipped.*r0001/run\.json'

# cancel touches named runs alone
# shellcheck disable=SC2016
printf '#!/bin/sh\nprintf "%%s\\n" "$@" > "%s/cancelled"\n' "$work" > "$work/bin/scancel"
chmod +x "$work/bin/scancel"
run slurm cancel --dir "$work/spool"
check 'cancel what' 2 'missing names of runs'
run slurm cancel r0006 nonsense --dir "$work/spool"
check 'cancel of an unknown run' 2 'not in .*nothing was cancelled'
run slurm cancel r0006 --dir "$work/spool"
check 'cancel' 0
[ "$(cat "$work/cancelled")" = 1006 ] && echo 'ok the job of that run alone' || bad 'the job of that run alone' "$(cat "$work/cancelled")"

# Many runs
if [ -z "${SANITIZED-}" ]; then
    python3 tests/slurm/fake_runs.py "$work/many" 1000 > /dev/null
    printf '#!/bin/sh\nexec python3 "%s/tests/slurm/fake_sacct.py" "%s/many" "$@"\n' "$PWD" "$work" > "$work/bin/sacct"
    begin=$(date +%s%N)
    run slurm collect --dir "$work/many" -o "$work/many.csv"
    took=$((($(date +%s%N) - begin) / 1000000))
    check 'a thousand runs' 0 '996 runs complete'
    echo "# a thousand runs collected in $took ms"
fi
sh tests/slurm/golden.sh

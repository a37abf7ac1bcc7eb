#!/bin/bash
# A real Slurm (testbed.sh): frameworks are submitted, run and collected, and things go wrong. "ok NAME" and "not ok NAME" lines; times are
# recorded but not judged, for other work may use this machine. $DLMODEL is the program, $SCRATCH an empty folder.
# REAL_PART: short (half a minute: a network on one and two nodes, a cancelled job), long (what short leaves out) or all (default).
# REAL_FRAMEWORKS: more frameworks than PyTorch (validate.sh); REAL_KEEP: where the table of runs is kept.
set -u
cd "$(dirname "$0")/../.." || exit 2
export PATH=$PATH:/usr/sbin:/sbin
: "${DLMODEL:=$PWD/build/dlmodel}" "${SCRATCH:=$(mktemp -d)}"
skip() { echo "skip real Slurm: $1"; exit 0; }
part=${REAL_PART:-all}
case $part in
short) nodes=1,2 networks=lenet bed_nodes=2 ;;
long) nodes=1,2,4 networks='squeezenet1_1 resnet18' bed_nodes=4 ;;
all) nodes=1,2,4 networks='lenet squeezenet1_1 resnet18' bed_nodes=4 ;;
*) echo "not ok real Slurm: REAL_PART is short, long or all, not $part"; exit 1 ;;
esac

[ -n "${SANITIZED-}" ] && skip 'once, in the pass without sanitizers'
[ "$(id -u)" -eq 0 ] || skip 'the test bed starts daemons as root'
for c in slurmctld slurmd slurmdbd sbatch sacct munged mariadbd python3; do
    command -v $c > /dev/null || skip "no $c (Debian packages slurmctld slurmd slurmdbd slurm-client munge mariadb-server python3)"
done
bed=$SCRATCH/bed runs=$SCRATCH/runs
export DLMODEL_SITE=$PWD/tests/slurm/bed.json SLURM_CONF=$bed/slurm.conf
testbed() { bash tests/slurm/testbed.sh "$@"; }
finish() {
    testbed stop "$bed" > /dev/null 2>&1
    umount "$SCRATCH/small" 2> /dev/null
    # the node that dies leaves the processes of its job behind
    ps -eo pid=,args= | awk -v at="$SCRATCH/" -v me=$$ 'index($0, at) && $1 != me { print $1 }' | xargs -r kill 2> /dev/null
}
trap finish EXIT
trap 'exit 1' TERM INT
# Only a bed that cannot be (no rights) is skipped; a bed that could be and is broken says why and fails below.
testbed start "$bed" $bed_nodes > "$SCRATCH/start" 2>&1 || skip "the test bed did not start: $(tail -n 1 "$SCRATCH/start")"

good() { echo "ok $1"; }
wrong() { echo "not ok $1"; printf '%s\n' "${2-}" | tail -n 20 | sed 's/^/  /'; }
judge() { # judge NAME STATUS DETAILS
    if [ "$2" -eq 0 ]; then good "$1"; else wrong "$1" "$3"; fi
}
dl() { timeout 400 "$DLMODEL" "$@" > "$SCRATCH/out" 2> "$SCRATCH/err" < /dev/null; }
said() { cat "$SCRATCH/out" "$SCRATCH/err"; }
wait_idle() { # until the queue is empty, and the accounting, which lags behind, knows it
    for _ in $(seq 1 "$1"); do
        [ -z "$(timeout 60 squeue -h 2> /dev/null)" ] && [ -n "$(timeout 60 sinfo -h 2> /dev/null)" ] &&
            ! timeout 60 sacct -X -n -P -o State 2> /dev/null | grep -qE 'RUNNING|PENDING' && return 0
        sleep 0.5
    done
    return 1
}
steps_of() { cat "$1"/bench-*.jsonl 2> /dev/null | grep -c '"event": *"step"'; }
wait_steps() { # wait_steps RUN-FOLDER COUNT
    for _ in $(seq 1 1200); do
        [ "$(steps_of "$1")" -ge "$2" ] && return 0
        sleep 0.25
    done
    return 1
}
python=$(command -v python3)
custom() { # custom DIR NAME COUNT PERIOD: one run of steps.py, its folder in $folder
    rm -rf "$1"
    dl slurm submit --framework custom --workload "$2" --steps "$3" --dir "$1" -- "$python" "$PWD/tests/slurm/steps.py" "$3" "$4" || { wrong "submit $2" "$(said)"; return 1; }
    folder=$(echo "$1"/custom-*)
}

# Frameworks: small networks on 1, 2 and 4 nodes of one core each.
options_of() { # options_of NETWORK: what to submit it with
    case $1 in
    lenet) echo "--batch-per-device 64 --warmup 3 --steps ${REAL_STEPS:-10}" ;;
    squeezenet1_1) echo "--input 64x64 --batch-per-device 8 --warmup 2 --steps ${REAL_STEPS:-6}" ;;
    resnet18) echo "--input 64x64 --batch-per-device 8 --warmup 1 --steps ${REAL_STEPS:-4}" ;;
    esac
}
frameworks() {
    local w n row count=0
    for w in $networks; do
        # shellcheck disable=SC2046
        dl slurm submit --framework "pytorch-ddp${REAL_FRAMEWORKS:+,$REAL_FRAMEWORKS}" --nodes $nodes --dir "$runs" --workload "$w" $(options_of "$w")
        judge "submit $w on $nodes nodes" $? "$(said)"
    done
    if [ "$part" != short ]; then
        dl slurm submit --framework pytorch-ddp --workload lenet --batch-per-device 64 --profile --dir "$runs"
        judge 'submit --profile' $? "$(said)"
    fi
    wait_idle "${REAL_WAIT:-1000}"
    judge 'all jobs end' $? "$(squeue; "$DLMODEL" slurm status --dir "$runs")"
    dl slurm collect --dir "$runs" -o "$SCRATCH/runs.csv"
    judge 'collect' $? "$(said)"
    cp "$SCRATCH/err" "$SCRATCH/collected"
    [ -n "${REAL_KEEP-}" ] && cp "$SCRATCH/runs.csv" "$REAL_KEEP"
    for w in $networks; do
        for n in ${nodes//,/ }; do
            count=$((count + 1))
            row=$(grep "^pytorch-ddp-$w-.*n${n}x1-" "$SCRATCH/runs.csv")
            case $row in
            *,COMPLETED,*) good "pytorch-ddp $w on $n nodes: $(echo "$row" | cut -d, -f20,21 | head -n 1) s" ;;
            *) wrong "pytorch-ddp $w on $n nodes" "$row $(cat "$SCRATCH/collected" "$runs"/pytorch-ddp-"$w"-*n"${n}"x1-*/slurm-*.out)" ;;
            esac
        done
    done
    sed 's/,local,/,iris-v100,/' "$SCRATCH/runs.csv" > "$SCRATCH/compared.csv"
    dl compare "$SCRATCH/compared.csv" --json && [ "$(grep -c '"id": "pytorch-ddp' "$SCRATCH/out")" -ge $count ] && ! grep -q '"skipped": true' "$SCRATCH/out"
    judge 'compare reads the table' $? "$(said)"
    cp "$SCRATCH/runs.csv" "$SCRATCH/again.csv"
    dl slurm collect --dir "$runs" -o "$SCRATCH/again.csv"
    cmp -s "$SCRATCH/runs.csv" "$SCRATCH/again.csv"
    judge 'collecting twice changes nothing' $? "$(diff "$SCRATCH/runs.csv" "$SCRATCH/again.csv")"
}
accounting_down() { # while collecting
    grep -q '"layer:conv1:backward"' "$runs"/pytorch-ddp-lenet-*profile*/trace.json
    judge 'the profile has times of layers' $? "$(cat "$runs"/*profile*/slurm-*.out)"
    testbed down "$bed" slurmdbd
    timeout 400 "$DLMODEL" slurm collect --dir "$runs" -o "$SCRATCH/down.csv" > "$SCRATCH/out" 2> "$SCRATCH/err"
    [ $? -eq 6 ] && grep -q 'sacct failed' "$SCRATCH/err" && [ "$(grep -c '^pytorch-ddp' "$SCRATCH/down.csv")" -eq "$(grep -c '^pytorch-ddp' "$SCRATCH/runs.csv")" ]
    judge 'slurmdbd is down at collect: said, and the logs are collected' $? "$(said)"
    testbed restart "$bed" slurmdbd > /dev/null 2>&1
    for _ in $(seq 1 100); do sacctmgr -n list cluster > /dev/null 2>&1 && break; sleep 0.2; done
    dl slurm collect --dir "$runs" -o "$SCRATCH/down.csv"
    cmp -s "$SCRATCH/runs.csv" "$SCRATCH/down.csv"
    judge 'collect succeeds afterwards' $? "$(said; diff "$SCRATCH/runs.csv" "$SCRATCH/down.csv")"
}
if /usr/bin/python3 -c 'import torch' 2> "$SCRATCH/torch"; then
    frameworks
    [ "$part" = short ] || accounting_down
else
    echo "skip frameworks on a real Slurm: no PyTorch (Debian package python3-torch): $(tail -n 1 "$SCRATCH/torch")"
fi

if [ "$part" != long ]; then # A job is cancelled.
    custom "$SCRATCH/c1" cancelled 1000 0.1 && wait_steps "$folder" 5
    dl slurm cancel --all --dir "$SCRATCH/c1"
    judge 'cancel' $? "$(said)"
    wait_idle 600
    dl slurm collect --dir "$SCRATCH/c1" -o "$SCRATCH/c1.csv"
    grep -q ',CANCELLED,' "$SCRATCH/c1.csv" && grep -q 'CANCELLED after [0-9]* of 1000 steps, which are kept' "$SCRATCH/err"
    judge 'a cancelled job keeps its steps' $? "$(said)"
fi
[ "$part" != short ] || exit 0

# slurmctld is restarted while a job runs.
custom "$SCRATCH/c2" restarted 40 0.1 && wait_steps "$folder" 3
testbed restart "$bed" slurmctld > /dev/null 2>&1
wait_idle 900
dl slurm collect --dir "$SCRATCH/c2" -o "$SCRATCH/c2.csv"
grep -q ',COMPLETED,40,' "$SCRATCH/c2.csv"
judge 'slurmctld restarted under a job: complete' $? "$(said)"

# The log is cut in half by hand.
log=$(echo "$folder"/bench-00000.jsonl)
head -c "$(($(wc -c < "$log") / 2))" "$log" > "$log.half" && mv "$log.half" "$log"
dl slurm collect --dir "$SCRATCH/c2" -o "$SCRATCH/c2.csv"
grep -Eq 'incomplete: COMPLETED after (1[5-9]|2[0-5]) of 40 steps' "$SCRATCH/c2.csv"
judge 'a log cut in half: the half is kept and said' $? "$(said; cat "$SCRATCH/c2.csv")"

# The disk is full: a small one, or a limit on files.
mkdir -p "$SCRATCH/small"
if mount -t tmpfs -o size=128k tmpfs "$SCRATCH/small" 2> /dev/null; then where=$SCRATCH/small/runs full='a full disk'; else where=$SCRATCH/c3 full='a limit on files'; fi
rm -rf "$where"
dl slurm submit --framework custom --workload full --steps 5000 --dir "$where" -- bash -c "ulimit -f 90; exec '$python' '$PWD/tests/slurm/steps.py' 5000 0.002"
judge "submit for $full" $? "$(said)"
wait_idle 900
dl slurm collect --dir "$where" -o "$SCRATCH/c3.csv"
judge "collect from $full" $? "$(said)"
grep -Eq 'incomplete: FAILED after [0-9]{3,4} of 5000 steps' "$SCRATCH/c3.csv"
judge "$full: what was measured is kept" $? "$(said; cat "$SCRATCH/c3.csv"; tail -n 3 "$where"/*/slurm-*.out)"
umount "$SCRATCH/small" 2> /dev/null

# A node dies.
custom "$SCRATCH/c4" dead 1000 0.1 && wait_steps "$folder" 5
node=$(timeout 60 squeue -h -o %N | head -n 1)
testbed crash "$bed" "${node:-node1}"
for _ in $(seq 1 150); do
    state=$(timeout 60 sacct -X -n -P -o State -j "$(sed -n 's/.*"job_id": "\([0-9]*\)".*/\1/p' "$folder/run.json")" 2> /dev/null)
    [ "$state" = NODE_FAIL ] && break
    sleep 0.5
done
dl slurm collect --dir "$SCRATCH/c4" -o "$SCRATCH/c4.csv"
grep -q 'incomplete: NODE_FAIL after [0-9]* of 1000 steps' "$SCRATCH/c4.csv"
judge 'a slurmd killed under a job: its steps are kept' $? "$state $(said)"

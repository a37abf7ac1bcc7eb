#!/bin/sh
# Whatever call fails - memory, writing, syncing, renaming, starting another program - a file that dlmodel writes is the old one or the new
# one, whole; nothing is left beside it; and dlmodel says that it failed. tests/fault/fault.c makes the calls fail, one by one.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
library=$(dirname "$DLMODEL")/tests/fault/libfault.so
[ -z "${SANITIZED-}" ] || { echo 'skip faults: sanitizers have an allocator of their own'; exit 0; }
[ -f "$library" ] || { echo "not ok there is no $library"; exit 1; }
root=$PWD
export DLMODEL_DATA="$root/data"

# What a file says but for dates and the load of the machine.
plain() { sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:]+Z?)?/DATE/g; /"(load_(before|after)|load_average|measured_at|seconds|finished|duration_s)"/d' "$1" 2> /dev/null; }

# Calls to fail of COUNT: all when they are few, else MOST spread evenly, always the last ones.
chosen() { awk -v count="$1" -v most="$2" 'BEGIN { if (count <= most) { for (i = 1; i <= count; i++) print i; exit }
    for (i = 0; i < most - 3; i++) print 1 + int(i * (count - 3) / (most - 3)); for (i = count - 2; i <= count; i++) print i }'; }

prepare() { # the state before each run: `before` holds the folder
    rm -rf "$work/at"
    cp -R "$work/before" "$work/at"
}
broken() { # broken CASE REASON
    wrong=$((wrong + 1))
    [ $wrong -le 3 ] && bad "$1" "$2"
}
judge() { # judge CASE TARGET: after a run with a fault
    plain "$work/at/$2" > "$work/now"
    if cmp -s "$work/now" "$work/new.plain"; then is=new
    elif cmp -s "$work/now" "$work/old.plain"; then is=old
    else is=neither; fi
    if [ $is = neither ]; then broken "$1" "$2 is neither the old file nor the new one"
    elif [ "$status" -eq 0 ] && [ $is = old ]; then broken "$1" "$2 was not written, and nobody said so"
    elif [ "$status" -gt 6 ]; then broken "$1" 'an exit status that means nothing'
    elif [ "$status" -ne 0 ] && [ ! -s "$work/err" ]; then broken "$1" 'failed without a word'; fi
    left=$(find "$work/at" -name '*.tmp')
    [ -z "$left" ] || broken "$1" "left behind: $left"
    tried=$((tried + 1))
    failures=$((failures + (status != 0)))
}

# faults NAME TARGET MOST CALLS -- ARGS...: runs in $work/at with every chosen one of the CALLS failing
faults() {
    name=$1 target=$2 most=$3 calls=$4
    shift 5
    prepare
    plain "$work/at/$target" > "$work/old.plain"
    rm -f "$work/log"
    (cd "$work/at" && env PATH="$found" FAULT_LOG="$work/log" LD_PRELOAD="$library" "$DLMODEL" -q "$@" > "$work/out" 2> "$work/err" < /dev/null)
    status=$?
    plain "$work/at/$target" > "$work/new.plain"
    check "$name without faults" 0
    cmp -s "$work/old.plain" "$work/new.plain" && bad "$name without faults" 'the file did not change'
    tried=0 failures=0 wrong=0
    for call in $calls; do
        short=
        [ "$call" = short ] && call=write short=1
        count=$(grep -cx "$call" "$work/log")
        for n in $(chosen "$count" "$most"); do
            for kind in FAULT_AT FAULT_FROM; do
                [ $kind = FAULT_FROM ] && [ "$call" != malloc ] && continue # memory stays exhausted, or not
                prepare
                (cd "$work/at" && env PATH="$found" $kind="$n" FAULT_CALL="$call" ${short:+FAULT_SHORT=1} LD_PRELOAD="$library" "$DLMODEL" -q "$@" \
                    > "$work/out" 2> "$work/err" < /dev/null)
                status=$?
                judge "$name, $call $n of $count fails ($kind)" "$target"
                [ -z "${afterwards-}" ] || $afterwards "$name, after $call $n of $count"
            done
        done
    done
    [ $failures -gt 0 ] || broken "$name" 'no fault did anything'
    if [ $wrong -eq 0 ]; then echo "ok $name: $tried faults, $failures of them fatal, no file lost"; fi
}
found=$PATH
writes='open write short fsync close rename'

rm -rf "$work/before"
mkdir -p "$work/before"
echo old > "$work/before/out"
faults 'predict -o' out 16 "malloc $writes" -- predict --system iris-v100 --framework pytorch-ddp --nodes 2 --json -o out
faults 'predict --trace' out 8 "malloc $writes" -- predict --system iris-v100 --workload alexnet --framework pytorch-ddp --nodes 2 --trace out
faults 'report' out 6 "malloc $writes" -- report --system iris-v100 --workload alexnet --framework pytorch-ddp --nodes 1,2 --no-figures -o out
if command -v gnuplot > /dev/null 2>&1; then
    faults 'report with figures' out 4 'malloc fork fsync' -- report --system iris-v100 --workload alexnet --framework pytorch-ddp --nodes 1 -o out
    mv "$work/before/out" "$work/before/out.svg"
    faults 'plot' out.svg 8 "malloc fork $writes" -- plot breakdown --system iris-v100 --workload alexnet --framework pytorch-ddp --nodes 1 -o out.svg
    mv "$work/before/out.svg" "$work/before/out"
fi
faults 'import nccl-tests' out 16 "malloc $writes" -- import nccl-tests "$root/tests/fixtures/bench/nccl_2.18_a100.txt" --system dgx-a100-80 -o out
if "$DLMODEL" -v --version 2> /dev/null | grep -q protobuf-c; then
    faults 'import onnx' out 16 "malloc $writes" -- import onnx "$root/tests/fixtures/onnx/alexnet.onnx" -o out
fi

# calibrate: one run with a probe program made of shell leaves its journal, because it may not rename the profile; from then on each
# run takes its samples from the journal and measures nothing.
mkdir -p "$work/bin" "$work/journal"
cp "$DLMODEL" "$work/bin/dlmodel"
sed -n '/^cat > "\$work\/bin\/dlmodel-probe-cpu"/,/^SH$/p' tests/cli/calibrate.sh | sed '1d;$d' > "$work/bin/dlmodel-probe-cpu"
chmod +x "$work/bin/dlmodel-probe-cpu"
real=$DLMODEL DLMODEL=$work/bin/dlmodel
mkdir "$work/path" # an mpirun that cannot start anything
printf '#!/bin/sh\nexit 1\n' > "$work/path/mpirun"
chmod +x "$work/path/mpirun"
found=$work/path:$PATH
cal() { env PATH="$found" "$@" < /dev/null; }
(cd "$work/journal" && cal FAULT_CALL=rename FAULT_AT=1 LD_PRELOAD="$library" "$DLMODEL" -q calibrate --quick -o p.json > "$work/out" 2> "$work/err")
status=$?
check 'a profile that cannot be renamed' 5 'p\.json'
if [ -s "$work/journal/p.json.journal" ] && [ ! -e "$work/journal/p.json" ]; then echo 'ok its journal is kept'; else bad 'its journal is kept' 'no journal, or half a profile'; fi
(cp "$work/journal/p.json.journal" "$work/journal/again.json.journal"; cd "$work/journal" && cal "$DLMODEL" -q calibrate --quick --resume -o again.json > "$work/out" 2>&1)
rm -rf "$work/before"
mkdir "$work/before"
sed 's/"measured_on": "[^"]*"/"measured_on": "an older profile"/' "$work/journal/again.json" > "$work/before/p.json"
cp "$work/journal/p.json.journal" "$work/before"
resumes() { # nothing is lost: without the fault the profile is complete
    [ "$status" -eq 0 ] && return
    [ -e "$work/at/p.json.journal" ] || { cmp -s "$work/now" "$work/new.plain" || broken "$1" 'the journal is gone and there is no profile'; return; }
    (cd "$work/at" && cal "$DLMODEL" -q calibrate --quick --resume -o p.json > "$work/out" 2> "$work/err")
    status=$?
    plain "$work/at/p.json" > "$work/now"
    [ "$status" -eq 0 ] && cmp -s "$work/now" "$work/new.plain" || broken "$1" 'cannot be resumed'
}
afterwards=resumes
faults 'calibrate' p.json 4 "malloc $writes fork exec" -- calibrate --quick --resume -o p.json
afterwards=
for call in fork exec; do # no probe can be started: the old profile stays
    prepare
    rm -f "$work/at/p.json.journal"
    (cd "$work/at" && cal FAULT_CALL=$call FAULT_FROM=1 LD_PRELOAD="$library" "$DLMODEL" -q calibrate --quick -o p.json > "$work/out" 2> "$work/err")
    status=$?
    if [ "$status" -ge 1 ] && [ "$status" -le 6 ] && [ -s "$work/err" ] && cmp -s "$work/at/p.json" "$work/before/p.json"; then
        echo "ok calibrate when every $call fails keeps the old profile and says so"
    else bad "calibrate when every $call fails" 'silent, or the profile changed'; fi
done
found=$PATH DLMODEL=$real

# slurm collect: a table of runs with a row of somebody else's, sacct beside it
if command -v python3 > /dev/null 2>&1; then
    rm -rf "$work/before"
    mkdir "$work/before"
    python3 tests/slurm/fake_runs.py "$work/before/spool" 7 > /dev/null
    printf '#!/bin/sh\nexec python3 "%s/tests/slurm/fake_sacct.py" "%s/before/spool" "$@"\n' "$root" "$work" > "$work/bin/sacct"
    chmod +x "$work/bin/sacct"
    printf '#!/bin/sh\nexit 0\n' > "$work/bin/squeue" && chmod +x "$work/bin/squeue" # nothing runs any more
    PATH=$work/bin:$PATH
    found=$PATH
    (cd "$work/before" && "$DLMODEL" -q slurm collect --dir spool -o runs.csv > /dev/null 2>&1)
    sed -i '/^r0000,/d; s/^r0001,/other,/' "$work/before/runs.csv"
    faults 'slurm collect' runs.csv 8 "malloc $writes" -- slurm collect --dir spool -o runs.csv
fi

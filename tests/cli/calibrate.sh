#!/bin/sh
# calibrate: options, kills and resumption, probes that fail, places that cannot be written. A probe program made of a few
# lines of shell stands in for dlmodel-probe-cpu, so that a run takes seconds and its samples are known; the last part
# uses the real one.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
real=$DLMODEL
root=$(pwd)

# The stand-in: answers --list, and one sample a point. FAKE_SLEEP: before each; FAKE_FAIL: N KIND, what happens instead
# of sample N (crash, kill, garbage, skip, hang).
mkdir "$work/bin"
cp "$real" "$work/bin/dlmodel"
cat > "$work/bin/dlmodel-probe-cpu" <<'SH'
#!/bin/sh
echo $$ >> "${FAKE_PIDS:-/dev/null}"
if [ "$1" = --list ]; then
    for p in gemm matmul conv stream write read; do echo "{\"probe\":{\"name\":\"$p\"}}"; done
    exit 0
fi
while [ "$1" != --points ]; do shift; done
shift
echo '{"fact":{"key":"openblas","value":"made up"}}'
set -- "$@"
fail_at=${FAKE_FAIL%% *} kind=${FAKE_FAIL#* } n=0
while [ $# -ge 4 ]; do
    n=$((n + 1))
    [ -n "${FAKE_SLEEP-}" ] && sleep "$FAKE_SLEEP"
    if [ "$n" = "${fail_at:-0}" ]; then
        case $kind in
        crash) echo 'something broke' >&2; exit 9 ;;
        kill) kill -9 $$ ;;
        garbage) echo '{"sample":{"probe":"gemm"' ;;
        negative) echo '{"sample":{"probe":"gemm","shape":"m=1","median_s":-1}}' ;;
        skip) echo '{"skipped":{"name":"'"$1"'","unavailable":"no room"}}'; shift 4; continue ;;
        noise) echo 'a library says hello' ;;
        esac
    fi
    # Times in ns: products at 200, convolutions at 150 Gflop/s, bytes at 10 GB/s, and 2 us. No command is started for this.
    m=1 k=1 n_=1 c=1 f=1 h=1 r=1 s=1 bytes=0
    for pair in $2; do
        case $pair in
        m=*) m=${pair#*=} ;; n=*) n_=${pair#*=} ;; k=*) k=${pair#*=} ;; c=*) c=${pair#*=} ;; f=*) f=${pair#*=} ;;
        h=*) h=${pair#*=} ;; r=*) r=${pair#*=} ;; s=*) s=${pair#*=} ;; bytes=*) bytes=${pair#*=} ;;
        esac
    done
    case $1 in
    gemm | matmul) t=$((2000 + 2 * m * n_ * k / 200)) ;;
    conv) t=$((2000 + 2 * n_ * f * c * h * h * r * r / (s * s) / 150)) ;;
    *) t=$((2000 + bytes / 10)) ;;
    esac
    t=${t}e-9
    printf '{"sample":{"probe":"%s","shape":"%s","pass":"%s","precision":"fp32","median_s":%s,"low_s":%s,"high_s":%s,"repeats":10,"outliers":1}}\n' \
        "$1" "$2" "$3" "$t" "$t" "$t"
    shift 4
done
SH
chmod +x "$work/bin/dlmodel-probe-cpu"
DLMODEL=$work/bin/dlmodel
export DLMODEL_DATA="$root/data" DLMODEL_LOCAL="$work/local.json" FAKE_PIDS="$work/pids"
unset DLMODEL_LIBEXEC FAKE_FAIL FAKE_SLEEP
profile=$work/p.json
journal=$profile.journal
# No mpirun in this PATH: the MPI probes cannot run.
mkdir "$work/path"
for tool in sh sleep awk kill printf; do
    full=$(command -v "$tool")
    case $full in /*) ln -s "$full" "$work/path/$tool" ;; esac
done
everywhere=$PATH
PATH=$work/path:$PATH
slow_path=$work/path
measured() { # measured COUNT: waits until $pid has measured so much (or has ended): a busy machine may take its time
    for _ in $(seq 1 1200); do
        now=$(samples)
        [ "${now:-0}" -ge "$1" ] && return
        kill -0 "$pid" 2> /dev/null || return
        sleep 0.05
    done
}
samples() { grep -c '"sample"' "$journal" 2> /dev/null; }
cal() { PATH=$slow_path run calibrate "$@"; }

# What can run, and the plan
cal --list
check '--list' 0
for p in gemm matmul conv stream write read pingpong allreduce; do has "--list names $p" "$p"; done
has '--list says why there are no GPU probes' 'gpu-gemm +no .*dlmodel-probe-cuda is missing'
has '--list says why MPI cannot run' '(pingpong|allreduce) .* no .*(mpirun|MPI)'
cal --list --json
has '--list --json' '"name": *"gemm"'
cal --quick --dry-run -o "$profile"
check '--dry-run' 0
has '--dry-run says the expected time' 'expected time .* s; nothing was measured'
says '--dry-run writes nothing' [ ! -e "$profile" -a ! -e "$journal" ]

# A whole run
cal --quick -o "$profile"
check 'a run without MPI' 0 'pingpong skipped: dlmodel-probe-mpi is missing'
has 'the summary names the profile' 'p\.json'
says 'the journal is gone' [ ! -e "$journal" ]
all=$(grep -c '"median_s"' "$profile")
says 'samples are kept in the profile' [ "$all" -gt 60 ]
for f in measured_on measured_at load_before load_after kernel openblas kernel_models device_profile; do
    says "the profile has $f" grep -q "\"$f\"" "$profile"
done
run predict --system "$profile" --workload resnet50 --framework ideal --nodes 1
check 'predict takes the profile' 0
cal --quick --json -o "$profile"
has '--json prints the profile' '"format": *"dlmodel-system"'
says '--json is what was written' cmp -s "$work/out" "$profile"
cal --quick --csv -o "$profile"
says '--csv has a line a sample' [ "$(grep -c . "$work/out")" -eq $((all + 1)) ]
cal --quick -o -
has '-o - prints the profile' '"format": *"dlmodel-system"'
cal --quick
check 'without -o the profile is the local one' 0
says 'without -o: written' [ -s "$DLMODEL_LOCAL" ]

# What changed since
cp "$profile" "$work/before.json"
cal --compare "$work/before.json" -o "$profile"
check '--compare with itself' 0
has '--compare with itself: nothing changed' '^0 of these changed'
sed 's/"openblas": *"made up"/"openblas": "of yesterday"/' "$profile" > "$work/before.json"
cal --compare "$work/before.json" -o "$profile"
has '--compare names a version that changed' 'openblas .*of yesterday .*made up .* yes'
cal --compare "$work/before.json" --csv -o "$profile"
has '--compare --csv' '^openblas,of yesterday,made up'
cal --compare "$work/nosuch.json" -o "$profile"
check '--compare with a file that is not there' 3 'nosuch'
cal --compare "$work/before.json" -o "$work/none.json"
check '--compare without a present profile' 5 'run .dlmodel calibrate'

# Only some probes: the others are taken from the present profile
cp "$profile" "$work/before.json"
cal --quick --only stream -o "$profile"
check '--only' 0
says '--only keeps the other samples' [ "$(grep -c '"median_s"' "$profile")" -eq "$all" ]

# Probes that fail: 6, a sentence, the old profile untouched, --resume continues
# (the profile is removed first: --only would take the other samples from it)
rm -f "$profile"
cal --quick --only gemm,stream -o "$profile"
few=$(grep -c '"median_s"' "$profile")
cp "$profile" "$work/before.json"
for kind in crash kill garbage negative; do
    FAKE_FAIL="10 $kind"
    export FAKE_FAIL
    cal --quick --only gemm,stream -o "$profile"
    case $kind in
    crash) check 'a probe that fails' 6 'exit status 9.*something broke.*--resume' ;;
    kill) check 'a probe that is killed' 6 'signal 9.*--resume' ;;
    *) check "a probe that writes $kind" 6 'not a sample' ;;
    esac
    says "$kind: the old profile is untouched" cmp -s "$profile" "$work/before.json"
    says "$kind: the finished samples are kept" [ "$(samples)" -eq 9 ]
    unset FAKE_FAIL
    cal --quick --only gemm,stream --resume -o "$profile"
    check "$kind: --resume completes" 0
    says "$kind: every sample once" [ "$(grep -c '"median_s"' "$profile")" -eq "$few" ]
    cp "$profile" "$work/before.json"
done
FAKE_FAIL='10 skip' && export FAKE_FAIL
rm -f "$profile"
cal --quick --only gemm,stream -o "$profile"
check 'a point that the machine refuses is skipped' 0 'skipped: no room'
says 'the other samples are there' [ "$(grep -c '"median_s"' "$profile")" -eq $((few - 1)) ]
FAKE_FAIL='10 noise'
cal --quick --only gemm,stream -o "$profile"
check 'words of a library on stdout do no harm' 0
unset FAKE_FAIL

# 20 times kill -9 at another moment: no profile but a complete one, no sample lost but the one in flight, no children left
rm -f "$profile" "$journal" "$FAKE_PIDS"
FAKE_SLEEP=0.1 && export FAKE_SLEEP
before=0 lost=0 round=0
while [ $round -lt 20 ] && [ ! -e "$profile" ]; do
    round=$((round + 1))
    PATH=$slow_path "$DLMODEL" calibrate --quick --resume -o "$profile" > "$work/out" 2> "$work/err" < /dev/null &
    pid=$!
    measured $((before + 1))
    sleep "0.0$((round * 3 % 10))"
    kill -9 $pid 2> /dev/null
    wait $pid 2> /dev/null
    [ -e "$profile" ] && break
    now=$(samples)
    [ "${now:-0}" -lt "$before" ] && lost=$((lost + 1))
    before=${now:-0}
done
status=$round
says 'kill -9: 20 times before the run was complete' [ $round -eq 20 -a "$before" -gt 10 ]
says 'kill -9: no finished sample is lost' [ $lost -eq 0 ]
unset FAKE_SLEEP
cal --quick --resume -o "$profile"
check 'kill -9: --resume completes' 0
says 'kill -9: every sample once' [ "$(grep -c '"median_s"' "$profile")" -eq "$all" ]
no_probe() {
    while IFS= read -r pid; do
        ! grep -qs dlmodel-probe-cpu "/proc/$pid/cmdline" || return 1
    done < "$FAKE_PIDS"
}
says 'kill -9: the probes end too' within 60 no_probe

# Ctrl-C and SIGTERM
cp "$profile" "$work/before.json"
for signal in INT TERM; do
    rm -f "$journal"
    FAKE_SLEEP=0.05 PATH=$slow_path "$DLMODEL" calibrate --quick -o "$profile" > "$work/out" 2> "$work/err" < /dev/null &
    pid=$!
    measured 2 # it listens to signals by then
    kill -$signal $pid
    wait $pid
    status=$?
    check "SIG$signal" 5 'interrupted after .* samples.*--resume'
    says "SIG$signal: the old profile is untouched" cmp -s "$profile" "$work/before.json"
done
cal --quick --resume -o "$profile"
check 'after signals --resume completes' 0

# Two at a time
rm -f "$journal"
FAKE_SLEEP=0.05 PATH=$slow_path "$DLMODEL" calibrate --quick -o "$profile" > /dev/null 2>&1 < /dev/null &
pid=$!
measured 1
cal --quick -o "$profile"
check 'a second calibration of the same profile is refused' 5 'another calibration'
kill $pid
wait $pid

# Journals that do not belong
cal --quick --ranks 4 --resume -o "$profile"
check 'resumed with other options' 3 'other options'
printf 'not a journal\n' > "$journal"
cal --quick --resume -o "$profile"
status_first=$status
says 'a journal of which no line is good starts anew, or is refused' [ "$status_first" -eq 0 -o "$status_first" -eq 3 ]
rm -f "$journal"
FAKE_FAIL='5 crash' && export FAKE_FAIL
cal --quick -o "$profile"
unset FAKE_FAIL
printf '{"sample":{"probe":"gemm"}}\n' >> "$journal"
cal --quick --resume -o "$profile"
check 'a damaged journal' 3 'p\.json\.journal:[0-9]+:[0-9]+: error'
rm -f "$journal"

# Places that cannot be written
cal --quick -o /proc/nowhere/p.json
check 'a directory that cannot be made' 5 '/proc'
cal --quick -o "$work"
check 'a directory for the profile' 5 'directory'
if [ "$(id -u)" -ne 0 ]; then
    mkdir "$work/ro"
    chmod 500 "$work/ro"
    cal --quick -o "$work/ro/p.json"
    check 'a read-only directory' 5 'ro/p\.json'
fi
# Root writes into any directory: a small file system, then one that is read-only
mkdir -p "$work/small"
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=16k tmpfs "$work/small" 2> /dev/null; then
    cal --quick -o "$work/small/p.json"
    check 'a file system that fills up' 5 'small/p.json.*No space left'
    mount -o remount,ro "$work/small"
    cal --quick -o "$work/small/q.json"
    check 'a read-only file system' 5 'small/q.json.*[Rr]ead-only'
    umount "$work/small"
else
    echo 'skip a full and a read-only file system: mounting one is not allowed here'
fi
if [ -w /dev/full ]; then
    cal --quick -o /dev/full
    check 'a full disk' 5 'No space left|cannot write'
    rm -f "$DLMODEL_LOCAL.journal"
    PATH=$slow_path "$DLMODEL" calibrate --list > /dev/full 2> "$work/err"
    status=$?
    check 'standard output is full' 5 'standard output'
fi

# Wrong use
cal --only gem
check '--only of an unknown probe' 2 "did you mean 'gemm'"
cal --budget -3
check '--budget below 0' 2 'budget'
cal --ranks 1
check '--ranks 1' 2 'ranks'
cal --nodes 2 --quick
check '--nodes outside an allocation' 2 'no allocation here.*--hostfile'
cal --hostfile "$work/none" --quick
check '--hostfile without --nodes' 2 'go with --nodes'
cal --nodes 2 --quick --launcher 'false {ranks}' -o "$work/nodes.json"
check '--nodes without a probe program for MPI' 6 'dlmodel-probe-mpi is missing'
says 'nothing is written' [ ! -e "$work/nodes.json" ]
cal --nosuch
check 'an unknown option' 2 'nosuch'
cal some.csv
check 'a file without --kernels' 2 'kernels'
cal --device v100_sxm2_16
check '--device without --kernels' 2 'kernels'
rm -f "$work/bin/dlmodel-probe-cpu"
cal --quick -o "$profile"
check 'no probe program' 6 'dlmodel-probe-cpu'

# Fitting published kernel times
grep -E '^(device|P100),' data/kernels/deepbench_gemm.csv | head -n 31 > "$work/gemm.csv"
run calibrate --kernels "$work/gemm.csv" --device p100_pcie16 -o "$work/kernel_models.json"
check '--kernels' 0
says '--kernels writes kernel-time models' grep -q '"dlmodel-kernel-models"' "$work/kernel_models.json"
# A tenth of the measured times is above any peak: no correction mends that, so nothing is written.
awk -F, 'BEGIN { OFS = "," } NR == 1 { for (i = 1; i <= NF; i++) if ($i == "time_ms") time = i } NR > 1 { $time /= 10 } { print }' \
    "$work/gemm.csv" > "$work/fast.csv"
run calibrate --kernels "$work/fast.csv" --device p100_pcie16 -o "$work/fast.json"
check '--kernels of products above the peak' 3 'break the law .no faster than the peak.'
says 'a refused fit writes no file' [ ! -e "$work/fast.json" ]
run calibrate --kernels data/kernels/deepbench_gemm.csv --device nosuch -o "$work/none.json"
check '--kernels of an unknown device' 2

# The real probe program: memory bandwidth alone, or what it says when there is no library for products
PATH=$everywhere
DLMODEL=$real
run calibrate --list
check 'the real --list' 0
if grep -Eq '^ *(gemm|matmul) +yes' "$work/out"; then
    run calibrate --quick --only stream,gemm --budget 1 -o "$work/real.json"
    check 'a real run' 0
    run predict --system "$work/real.json" --workload alexnet --framework ideal
    check 'predict takes a real profile' 0
    "$DLMODEL" calibrate --quick --only gemm,stream --budget 2 -o "$work/killed.json" > /dev/null 2>&1 < /dev/null &
    pid=$!
    sleep 0.7
    kill -9 $pid
    wait $pid 2> /dev/null
    says 'a real run, killed: no profile' [ ! -e "$work/killed.json" ]
    run calibrate --quick --only gemm,stream --budget 2 --resume -o "$work/killed.json"
    check 'a real run, killed and resumed' 0
else
    run calibrate --quick -o "$work/real.json"
    check 'no library for products' 6 'OpenBLAS'
fi

#!/bin/bash
# validate.sh - predicted against measured with real frameworks on the real Slurm test bed: PyTorch DDP (Debian), and TensorFlow, Keras, MXNet and Horovod from PyPI, each
# with 1, 2 and 4 tasks of one core. Needs root, network for what is not installed yet, and a machine that does nothing else. Jobs run one at a time.
#   FRAMEWORKS_DIR (build/frameworks): where the packages from PyPI are, or come to be; VALIDATE_SECONDS (3600): no job is begun later than that;
#   VALIDATE_ROUNDS (3); VALIDATE_RESUME: runs of an earlier call that ended are kept, the others made; VALIDATE_PYTHON, VALIDATE_FRAMEWORKS_PYTHON: interpreters for PyTorch and for the others, or wrappers of them
# What cannot be installed or does not run is said with its error. Results: build/validate (runs.csv, system.json, layers-*.json, table.md). Predictions: from
# `calibrate --cores 1`, the frameworks' own profile of one task (times of layers), and their own all-reduce between two tasks by size; nothing is fitted to the runs.
# Other guests of the machine slow each of its cores for seconds to minutes (1.4 times where this was written). So all is measured in rounds, and of profiles, all-reduces
# and runs alike the median over the rounds counts; of calibrations the one that was disturbed least.
set -u
cd "$(dirname "$0")/../.." || exit 2
export PATH=$PATH:/usr/sbin:/sbin
: "${DLMODEL:=$PWD/build/dlmodel}" "${FRAMEWORKS_DIR:=$PWD/build/frameworks}" "${VALIDATE_SECONDS:=3600}" "${VALIDATE_ROUNDS:=3}" "${VALIDATE_RESUME:=}" "${VALIDATE_PYTHON:=/usr/bin/python3}"
work=$PWD/build/validate python=$FRAMEWORKS_DIR/bin/python
: "${VALIDATE_FRAMEWORKS_PYTHON:=$python}"
[ -n "$VALIDATE_RESUME" ] || rm -rf "$work"
mkdir -p "$work"
failures=$work/failures.txt
: > "$failures"
say() { echo "$*" | tee -a "$failures"; }

# Packages: one that can be imported is not installed again.
[ -x "$python" ] || /usr/bin/python3 -m venv --system-site-packages "$FRAMEWORKS_DIR" || exit 5
install() { # install MODULE PACKAGE...
    local module=$1
    shift
    "$python" -c "import $module" > "$work/import.log" 2>&1 && return
    HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITH_MPI=1 HOROVOD_CPU_OPERATIONS=MPI HOROVOD_WITHOUT_GLOO=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1 \
        timeout 3600 "$python" -m pip install -q "$@" > "$work/pip.log" 2>&1
    "$python" -c "import $module" > "$work/import.log" 2>&1 ||
        say "cannot install $*: $(cat "$work/pip.log" "$work/import.log" 2> /dev/null | grep -iE 'error' | tail -n 1)"
}
install tensorflow 'tensorflow-cpu==2.12.0' 'numpy==1.23.5'
install mxnet 'mxnet==1.9.1' 'numpy==1.23.5'
install horovod.tensorflow --no-build-isolation 'horovod==0.28.1' # built against the TensorFlow that is there
there() { "$python" -c "import $1" > /dev/null 2>&1; }

begin=$SECONDS left_out=0
calibrate() { # calibrate ROUND
    [ -s "$work/system-$1.json" ] && return
    "$DLMODEL" -q calibrate --quick --cores 1 --virtual-nodes 4 -o "$work/system-$1.json" > "$work/calibrate.log" 2>&1 || { cat "$work/calibrate.log"; exit 6; }
}
rm -rf "$work/bed"
trap 'bash tests/slurm/testbed.sh stop "$work/bed"' EXIT
bash tests/slurm/testbed.sh start "$work/bed" 4 || exit 6
sed "s|\"/usr/bin/python3\"|\"$VALIDATE_PYTHON\"|" tests/slurm/bed.json > "$work/torch.json"
sed "s|\"/usr/bin/python3\"|\"$VALIDATE_FRAMEWORKS_PYTHON\"|; s|\"devices_per_node\": 1|\"devices_per_node\": 4|" tests/slurm/bed.json > "$work/others.json"
export SLURM_CONF=$work/bed/slurm.conf
one() { # one SITE FOLDER ARGS...: a job, and its end
    local site=$1 folder=$2
    shift 2
    if [ $((SECONDS - begin)) -gt "$VALIDATE_SECONDS" ]; then
        left_out=$((left_out + 1))
        return
    fi
    DLMODEL_SITE=$work/$site.json "$DLMODEL" -q slurm submit --dir "$work/$folder" --time 120s "$@" > /dev/null || { say "not submitted: $*"; return; }
    while [ -n "$(squeue -h 2> /dev/null)" ]; do sleep 0.5; done
}
shape() { # shape WORKLOAD: its options, split by the shell
    case $1 in
    lenet) echo '--workload lenet --batch-per-device 64 --warmup 8 --steps 40' ;;
    squeezenet1_1) echo '--workload squeezenet1_1 --input 64x64 --batch-per-device 8 --warmup 6 --steps 30' ;;
    resnet18) echo '--workload resnet18 --input 64x64 --batch-per-device 8 --warmup 3 --steps 12' ;;
    esac
}
workloads='lenet squeezenet1_1 resnet18'

# Five modes train three networks: the libraries' all-reduce, then a profile, one and two tasks in rounds, so that what drifts meets all of them; four tasks once.
modes=pytorch-ddp rest='' local_modes=''
if there tensorflow; then modes="$modes tensorflow-multiworker" rest=tensorflow-ps local_modes='tensorflow-mirrored keras-mirrored'; fi
if there horovod.tensorflow; then modes="$modes horovod-tensorflow horovod-keras"; fi
if there mxnet; then rest="$rest mxnet-dist-sync" local_modes="$local_modes mxnet-device"; fi
site_of() { case $1 in pytorch*) echo torch ;; *) echo others ;; esac }
run() { # run ROUND FRAMEWORK WORKLOAD ARGS...
    local folder=round$1 framework=$2 shaped name=$2-$3
    read -r -a shaped <<< "$(shape "$3")"
    shift 3
    case "$*" in *--nodes*) name="$name*-n${*: -1}x1-b*" ;; *) name="$name*-n1x1-b*" ;; esac
    case "$*" in *--profile*) name="$name-profile-r1" ;; *) name="${name}[0-9]-r1" ;; esac
    find "$work/$folder" -path "*/$name/bench-00000.jsonl" -exec cat {} + 2> /dev/null | grep -q '"event":"end"' && return
    one "$(site_of "$framework")" "$folder" --framework "$framework" --devices-per-node 1 "${shaped[@]}" "$@"
}
for round in $(seq 1 "$VALIDATE_ROUNDS"); do
    calibrate "$round"
    for f in $modes $rest; do
        case $f in horovod-keras | tensorflow-ps) ;; *) run "$round" "$f" lenet --profile --nodes 2 ;; esac # one for all that use the library
    done
    for w in $workloads; do
        for f in $modes; do
            run "$round" "$f" "$w" --profile
            run "$round" "$f" "$w" --nodes 1
            run "$round" "$f" "$w" --nodes 2
            [ "$round" -gt 1 ] || run 1 "$f" "$w" --nodes 4
        done
    done
    for f in $rest; do
        run "$round" "$f" lenet --profile
        run "$round" "$f" lenet --nodes 1
        run "$round" "$f" lenet --nodes 2
        [ "$round" -gt 1 ] || run 1 "$f" lenet --nodes 4
    done
    case $rest in *mxnet*) # its servers fail with more than a few arrays, not always
        for w in squeezenet1_1 resnet18; do
            run "$round" mxnet-dist-sync "$w" --profile
            run "$round" mxnet-dist-sync "$w" --nodes 1
        done ;;
    esac
done
if [ ! -d "$work/local" ]; then
    for f in $local_modes; do # one process, several devices on the core of its node
        one others local --framework "$f" --devices-per-node 2 --workload lenet --batch-per-device 64 --warmup 8 --steps 40
    done
fi

# What the predictions are made from.
rm -f "$work/runs.csv"
"$DLMODEL" slurm collect --dir "$work/local" -o "$work/local.csv" 2>> "$work/collect.log"
for round in $(seq 1 "$VALIDATE_ROUNDS"); do
    "$DLMODEL" slurm collect --dir "$work/round$round" -o "$work/round.csv" 2>> "$work/collect.log" || continue
    [ -s "$work/runs.csv" ] || head -n 1 "$work/round.csv" > "$work/runs.csv"
    tail -n +2 "$work/round.csv" | sed "s/-r1,/-r$round,/" >> "$work/runs.csv"
done
middle() { # middle FILE...: the median of each size over the rounds, in the form of one of them
    sed -n 1,2p "$1"
    awk '!/^#/ { v[$1] = v[$1] " " $2; if (!($1 in seen)) { seen[$1] = 1; order[++n] = $1 } } END { for (i = 1; i <= n; i++) print order[i] v[order[i]] }' "$@" |
        while read -r size times; do echo "$size $(echo "$times" | tr ' ' '\n' | sort -g | awk '{ a[NR] = $1 } END { print (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2 }')"; done
}
gemm_s() { # gemm_s FILE: time of a GEMM on one core plus that on all cores concurrently
    "$python" -c 'import json, sys; print(sum(s["min_s"] for s in json.load(open(sys.argv[1]))["samples"] if s["probe"] == "concurrent" and s["pass"] == "gemm"))' "$1"
}
for s in "$work"/system-*.json; do echo "$(gemm_s "$s") $s"; done | sort -g | sed -n '1s/^[^ ]* //p' | while read -r s; do cp "$s" "$work/system.json"; done
for pair in pytorch-ddp:gloo tensorflow-multiworker:grpc horovod-tensorflow:mpi mxnet-dist-sync:ps-lite; do
    files=("$work"/round*/"${pair%:*}"-lenet-n2x1-*profile*/collectives.txt)
    [ -s "${files[0]}" ] || { say "no collectives of ${pair#*:}"; continue; }
    middle "${files[@]}" > "$work/collectives-${pair#*:}.txt"
    DLMODEL_LOCAL=$work/system.json "$DLMODEL" -q import osu "$work/collectives-${pair#*:}.txt" --library "${pair#*:}" --nodes 2 --ranks 2 --profile "$work/system.json" \
        -o "$work/system.new" 2>> "$work/import.log" && mv "$work/system.new" "$work/system.json"
done
export DLMODEL_LOCAL=$work/system.json
layers=()
for f in $modes $rest; do
    for w in $workloads; do
        traces=() batches=''
        for t in "$work"/round*/"$f-$w"-*n1x1*profile*/trace.json; do
            [ -s "$t" ] || continue
            traces+=("$t")
            batches=$batches${batches:+,}$([ "$w" = lenet ] && echo 64 || echo 8)
        done
        [ ${#traces[@]} -gt 0 ] && "$DLMODEL" import trace "${traces[@]}" --workload "$w" --framework "$f" --batch "$batches" --system "$work/system.json" \
            -o "$work/layers-$f-$w.json" 2>> "$work/import.log" && layers+=(--layers "$work/layers-$f-$w.json")
    done
done
compare() { "$DLMODEL" compare "$work/runs.csv" --set devices_per_node=4 --median ${layers[@]+"${layers[@]}"} "$@" 2>> "$work/compare.log"; }
{
    echo 'From the calibration, the profile of one task and the library'"'"'s all-reduce between two:'
    echo
    compare --markdown | grep '^|'
    echo
    for f in $modes $rest; do
        printf '%s, one and two tasks: m' "$f"
        compare --where nodes=1,2 --where framework="$f" --markdown | sed -n 's/^Mean/ean/p'
    done
    printf 'All, one and two tasks: m'
    compare --where nodes=1,2 --markdown | sed -n 's/^Mean/ean/p'
    echo
    [ -s "$work/local.csv" ] && echo 'One process, two devices on one core (not predicted):' && cut -d, -f1,20,24 "$work/local.csv"
    grep -h '"event":"fail"' "$work"/round*/*/*.jsonl "$work"/local/*/*.jsonl 2> /dev/null | sed 's/.*"text":"/did not run: /; s/"}$//' | sort | uniq -c
    grep -h -A 1 'what():' "$work"/round*/*/slurm-*.out 2> /dev/null | cut -c 1-300 | sort | uniq -c
    cat "$failures"
    [ "$left_out" -eq 0 ] || echo "left out, $VALIDATE_SECONDS s were up: $left_out jobs"
    echo
    echo "took $((SECONDS - begin)) s; $(grep -h 'runs complete' "$work/collect.log" | tr '\n' ' ')"
} | tee "$work/table.md"

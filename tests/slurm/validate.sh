#!/bin/bash
# validate.sh - predicted against measured with real frameworks on the real Slurm test bed: PyTorch DDP (Debian), and TensorFlow, Keras, MXNet and Horovod from PyPI, each
# with 1, 2 and 4 tasks of one core. Needs root, network for what is not installed yet, and a machine that does nothing else. Jobs run one at a time.
#   FRAMEWORKS_DIR (build/frameworks): where the packages from PyPI are, or come to be; VALIDATE_SECONDS (660): no job is begun later than that;
#   VALIDATE_ROUNDS (3): of PyTorch; VALIDATE_PYTHON: an interpreter for PyTorch, or a wrapper of one
# What cannot be installed or does not run is said with its error. Results: build/validate (runs.csv, system.json, layers-*.json, table.md). Predictions: from
# `calibrate --cores 1`, and from the profile of one task for PyTorch; for the other frameworks, which have no profile, compute is anchored by the run of one task.
set -u
cd "$(dirname "$0")/../.." || exit 2
export PATH=$PATH:/usr/sbin:/sbin
: "${DLMODEL:=$PWD/build/dlmodel}" "${FRAMEWORKS_DIR:=$PWD/build/frameworks}" "${VALIDATE_SECONDS:=660}" "${VALIDATE_ROUNDS:=3}" "${VALIDATE_PYTHON:=/usr/bin/python3}"
work=$PWD/build/validate python=$FRAMEWORKS_DIR/bin/python
rm -rf "$work"
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

begin=$SECONDS
"$DLMODEL" -q calibrate --quick --cores 1 --virtual-nodes 4 -o "$work/system.json" > "$work/calibrate.log" 2>&1 || { cat "$work/calibrate.log"; exit 6; }
trap 'bash tests/slurm/testbed.sh stop "$work/bed"' EXIT
bash tests/slurm/testbed.sh start "$work/bed" 4 || exit 6
sed "s|\"/usr/bin/python3\"|\"$VALIDATE_PYTHON\"|" tests/slurm/bed.json > "$work/torch.json"
sed "s|\"/usr/bin/python3\"|\"$python\"|; s|\"devices_per_node\": 1|\"devices_per_node\": 4|" tests/slurm/bed.json > "$work/others.json"
export SLURM_CONF=$work/bed/slurm.conf
one() { # one SITE FOLDER ARGS...: a job, and its end
    local site=$1 folder=$2
    shift 2
    if [ $((SECONDS - begin)) -gt "$VALIDATE_SECONDS" ]; then
        say "left out, time is up: $*"
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

# PyTorch: profile, one, two tasks in rounds, so that what drifts meets all of them; four tasks once.
for round in $(seq 1 "$VALIDATE_ROUNDS"); do
    for w in $workloads; do
        # shellcheck disable=SC2046
        one torch "torch$round" --framework pytorch-ddp $(shape "$w") --profile
        for n in 1 2 $([ "$round" -eq 1 ] && echo 4); do
            # shellcheck disable=SC2046
            one torch "torch$round" --framework pytorch-ddp $(shape "$w") --nodes "$n"
        done
    done
done

# The others: three workloads for one mode of each framework, the smallest for the rest of the modes.
modes='' rest='' local_modes=''
if there tensorflow; then modes="tensorflow-multiworker" rest="tensorflow-ps" local_modes="tensorflow-mirrored keras-mirrored"; fi
if there mxnet; then modes="$modes mxnet-dist-sync" rest="$rest mxnet-dist-async" local_modes="$local_modes mxnet-device"; fi
if there horovod.tensorflow; then modes="$modes horovod-tensorflow" rest="$rest horovod-keras"; fi
for w in $workloads; do
    for f in $modes; do
        for n in 1 2 4; do
            # shellcheck disable=SC2046
            one others others --framework "$f" --nodes "$n" --devices-per-node 1 $(shape "$w")
        done
    done
done
for n in 1 2; do
    for f in $rest; do
        # shellcheck disable=SC2046
        one others others --framework "$f" --nodes "$n" --devices-per-node 1 $(shape lenet)
    done
    for f in $local_modes; do
        # shellcheck disable=SC2046
        one others others --framework "$f" --devices-per-node "$n" $(shape lenet)
    done
done

# Tables.
collect() { "$DLMODEL" slurm collect --dir "$work/$1" -o "$work/$1.csv" 2>> "$work/collect.log"; }
head_done=''
for round in $(seq 1 "$VALIDATE_ROUNDS"); do
    collect "torch$round" || continue
    [ "$head_done" ] || { head -n 1 "$work/torch$round.csv" > "$work/runs.csv"; head_done=yes; }
    tail -n +2 "$work/torch$round.csv" | sed "s/-r1,/-r$round,/" >> "$work/runs.csv"
done
layers=()
for w in $workloads; do
    traces=() batches=''
    for t in "$work"/torch*/pytorch-ddp-"$w"-*profile*/trace.json; do
        [ -s "$t" ] || continue
        traces+=("$t")
        batches=$batches${batches:+,}$([ "$w" = lenet ] && echo 64 || echo 8)
    done
    [ ${#traces[@]} -gt 0 ] && "$DLMODEL" import trace "${traces[@]}" --workload "$w" --batch "$batches" --system "$work/system.json" -o "$work/layers-$w.json" 2>> "$work/import.log" &&
        layers+=(--layers "$work/layers-$w.json")
done
export DLMODEL_LOCAL=$work/system.json
{
    echo 'PyTorch DDP, from the calibration and the profile of one task:'
    echo
    "$DLMODEL" compare "$work/runs.csv" --median --markdown ${layers[@]+"${layers[@]}"} 2> /dev/null | grep '^|'
    echo
    printf 'One and two tasks: m'
    "$DLMODEL" compare "$work/runs.csv" --median --where nodes=1,2 --markdown ${layers[@]+"${layers[@]}"} 2> /dev/null | sed -n 's/^Mean/ean/p'
    if collect others; then
        echo
        echo 'Other frameworks, compute anchored by the run of one task (the error of scaling; four tasks share two cores):'
        echo
        "$DLMODEL" compare "$work/others.csv" --anchor --markdown 2> /dev/null
        echo
        echo 'The same from the calibration alone:'
        echo
        "$DLMODEL" compare "$work/others.csv" --markdown 2> /dev/null
    fi
    DLMODEL_SITE=$work/others.json "$DLMODEL" slurm status --dir "$work/others" --csv 2> /dev/null | grep -i 'fail' | sed 's/^/did not run: /'
    cat "$failures"
    echo
    echo "took $((SECONDS - begin)) s; $(grep -h 'runs complete' "$work/collect.log" | tr '\n' ' ')"
} | tee "$work/table.md"

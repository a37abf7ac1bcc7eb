#!/bin/sh
# CPU nodes: runs compared with profiled layers, their medians and Markdown; a device of a few cores; cores that are shared.
. tests/cli/lib.sh
here=tests/fixtures/slurm work=$SCRATCH/cpu
mkdir -p "$work"
layers="--layers $here/pytorch_cpu_lenet.layers.json --layers $here/pytorch_cpu_squeezenet1_1.layers.json --layers $here/pytorch_cpu_resnet18.layers.json"
with() { # with ARGS...: the profile of the test bed
    DLMODEL_LOCAL=$PWD/$here/pytorch_cpu_system.json run "$@"
}

# shellcheck disable=SC2086
with compare $here/pytorch_cpu_runs.csv --median --markdown $layers
check 'compare --markdown' 0
has 'a row for each run' '^\| pytorch-ddp-resnet18-64x64-n2x1-b8 \| 2 \| [0-9.]+ ms \| [0-9.]+ ms \| [-+][0-9.]+ % \| compute \| '
has 'shared cores are said' 'n4x1-b64 \| 4 \| .*oversubscribed 2 times: 4 devices time-slice a host for 2'
has 'errors over all' '^Mean absolute time error over 9 rows: '
# shellcheck disable=SC2086
with compare $here/pytorch_cpu_runs.csv --where nodes=1,2 --json $layers
check 'every repeat without --median' 0
rows=$(grep -c '"id": ' "$SCRATCH/out") shown=$(grep -c '^pytorch-ddp-.*-n[12]x1-' $here/pytorch_cpu_runs.csv)
if [ "$rows" -eq "$shown" ]; then echo 'ok every repeat'; else bad 'every repeat' "$rows of $shown"; fi
# Horovod's thread polls in MPI next to one that computes; the release says its cycle. MXNet's server works on its worker's core.
with compare $here/cpu_runs.csv --set devices_per_node=4 --where framework=horovod-tensorflow --where nodes=2 --median --json --layers $here/horovod-tensorflow-lenet.layers.json
check 'Horovod on CPUs' 0
# shellcheck disable=SC2086
with predict --system local --nodes 2 --devices-per-node 1 --workload lenet --batch-per-device 64 --framework horovod-tensorflow --set framework.cycle_s=1ms
check 'a polling thread' 0 'polls in MPI next to 1 computing thread: compute takes 1.8 times as long'
with explain --all --system local --nodes 1 --devices-per-node 1 --workload lenet --batch-per-device 64 --framework mxnet-dist-sync
check 'a server on the core of its only worker' 0
has 'pushes and pulls' 'push and pull 1 of 8 '
with compare $here/pytorch_cpu_runs.csv --layers $here/none.json
check 'layers that are not there' 3 'none.json'

# The median of three repeats, and cells that would break a table.
{
    echo 'id,source,system,framework,workload,nodes,devices_per_node,batch_per_device,metric,value,unit'
    echo 'a|b-r1,s,dgx1-v100,pytorch-ddp,resnet50,1,1,32,iteration,0.4,s'
    echo 'a|b-r2,s,dgx1-v100,pytorch-ddp,resnet50,1,1,32,iteration,0.1,s'
    echo 'a|b-r3,s,dgx1-v100,pytorch-ddp,resnet50,1,1,32,iteration,0.2,s'
    echo 'other,s,dgx1-v100,pytorch-ddp,resnet50,1,2,32,iteration,0.3,s'
} > "$work/repeats.csv"
run compare "$work/repeats.csv" --median --markdown
check 'repeats' 0
has 'the median' '^\| a\\\|b \| 1 \| 200 ms \|'
has 'a run without repeats' '^\| other \| 2 \| 300 ms \|'

# Four one-core devices on two cores; sharing stands in explain.
lenet="--workload lenet --batch-per-device 64 --framework pytorch-ddp --layers $here/pytorch_cpu_lenet.layers.json"
# shellcheck disable=SC2086
with predict --system local --nodes 4 --devices-per-node 1 $lenet
check 'oversubscribed cores' 0 '4 devices of 1 cores on a host of 2: oversubscribed 2 times.*at most 2'
# shellcheck disable=SC2086
with predict --system local --nodes 2 --devices-per-node 1 --strict $lenet
if grep -q oversubscribed "$SCRATCH/err"; then bad 'two fit' 'oversubscribed'; else echo 'ok two fit'; fi
# shellcheck disable=SC2086
with explain --all --system local --nodes 2 --devices-per-node 1 --set device.together_ratio=1.5 $lenet --csv
check 'explain on a shared host' 0
has 'it says so' '^conv1 forward,.*on a shared host'

# Traces of one batch are repeats; what of a CPU's iteration lies in no layer is the update's.
trace() { # trace FILE FORWARD BACKWARD STEP: microseconds of conv1, and of the whole iteration
    printf '{"traceEvents": [{"ph": "X", "name": "ProfilerStep#0", "ts": 0, "dur": %s}, {"ph": "X", "name": "layer:conv1:forward", "ts": 1, "dur": %s},\n' "$4" "$2" > "$1"
    printf '{"ph": "X", "name": "layer:conv1:backward", "ts": 50000, "dur": %s}, {"ph": "X", "name": "update", "ts": 90000, "dur": 10}]}\n' "$3" >> "$1"
}
trace "$work/one.json" 1000 2000 100000
trace "$work/two.json" 3000 4000 120000
run import trace "$work/one.json" "$work/two.json" --workload lenet --batch 64,64 --device any
check 'two traces of one batch' 0
has 'median of forward' '"forward_s": 0.002,?$'
has 'median of backward' '"backward_s": 0.003,?$'
has 'the rest of the iteration' '"update_s": 0.105,?$'
# One slow step of three does not count: the median.
{
    printf '{"traceEvents": [{"ph": "X", "name": "ProfilerStep#0", "ts": 0, "dur": 10000}, {"ph": "X", "name": "ProfilerStep#1", "ts": 20000, "dur": 90000},\n'
    printf '{"ph": "X", "name": "ProfilerStep#2", "ts": 200000, "dur": 11000}'
    for i in 0 1 2; do
        printf ',\n{"ph": "X", "name": "layer:conv1:forward", "ts": %d, "dur": 4000}, {"ph": "X", "name": "layer:conv1:backward", "ts": %d, "dur": 5000}' $((300000 + 20000 * i)) $((310000 + 20000 * i))
    done
    echo ']}'
} > "$work/slow.json"
run import trace "$work/slow.json" --workload lenet --batch 64 --device any --framework tensorflow
check 'a trace with a slow step' 0
has 'the rest of the median step' '"update_s": 0.002,?$'
has 'the framework' '"framework": "tensorflow",'
run import trace "$work/slow.json" --workload lenet --batch 64 --device any --quartile
check 'the lower quartile' 0
has 'the rest of the fastest of three' '"update_s": 0.001,?$'
{
    echo 'id,source,system,framework,workload,nodes,devices_per_node,batch_per_device,metric,value,unit,disturbed,quartile_s'
    echo 'a-r1,s,dgx1-v100,pytorch-ddp,resnet50,1,1,32,iteration,0.4,s,yes,0.3'
    echo 'b-r1,s,dgx1-v100,pytorch-ddp,resnet50,1,2,32,iteration,0.4,s,no,0.3'
} > "$work/disturbed.csv"
run compare "$work/disturbed.csv" --quartile --markdown
check 'disturbed runs' 0
has 'a quartile where it was disturbed' '^\| a-r1 \| 1 \| 300 ms \|'
has 'the value where not' '^\| b-r1 \| 2 \| 400 ms \|'
run compare "$work/disturbed.csv" --markdown
has 'the median without --quartile' '^\| a-r1 \| 1 \| 400 ms \|'

# A device of one core, and of the cores that the process is bound to.
run calibrate --cores 100000 --dry-run
check 'more cores than there are' 2 'cores'
cores=$(nproc)
run calibrate --quick --cores 1 --virtual-nodes 3 --only concurrent --budget 0.5 --gpus 0 -o "$work/one-core.json"
if [ "$status" -eq 6 ] && grep -qE 'concurrent|OpenBLAS|oneDNN|arithmetic' "$SCRATCH/err"; then echo "# the probe concurrent cannot run here: $(tail -n 1 "$SCRATCH/err")"; exit 0; fi
check 'calibrate --cores 1' 0
cp "$work/one-core.json" "$SCRATCH/out"
has 'one core a device' '"unit_count": 1,'
has 'nodes of one host' '"nodes_share_host": true'
has 'as many as were said' '"nodes": 3,'
if [ "$cores" -ge 2 ]; then has 'how devices slow each other down' '"together_ratio": [1-9]'; else hasnt 'one core has no neighbours' 'together_ratio'; fi
first=$(taskset -pc $$ | sed 's/.*: //; s/[,-].*//')
status=0
taskset -c "$first" "$DLMODEL" calibrate --quick --only stream --budget 0.3 --gpus 0 -o "$work/bound.json" > "$SCRATCH/out" 2> "$SCRATCH/err" < /dev/null || status=$?
check 'calibrate under taskset' 0
cp "$work/bound.json" "$SCRATCH/out"
has 'its device is the core it may use' '"unit_count": 1,'

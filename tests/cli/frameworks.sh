#!/bin/sh
# frameworks.sh - releases, datasets, traces, accumulation, fits: what a user types and sees.
. tests/cli/lib.sh
set -u

run predict -n 1 -f pytorch-ddp --release nope
check 'unknown release' 2 'no release "nope"; there are pytorch-ddp'
run predict -n 1 -f pytorch-ddp --release 'NGC 19.03' -p mixed
check 'a release by name' 0
run predict -n 1 --dataset imagnet
check 'unknown dataset' 2 'did you mean imagenet'
run predict -n 1 --dataset synthetic --input real
check 'contradicting input' 2 'contradict'
run predict -n 1 -f pytorch-ddp --dataset imagenet
check 'a dataset in the page cache says so' 0 'page cache'
run predict -n 1 -f pytorch-ddp --micro-batch 7 -b 32
check 'micro-batch that does not divide' 2 'not a multiple'
run predict -n 1 -f pytorch-ddp --micro-batch 8 -b 32
check 'micro-batches' 0

run predict -n 2 -f pytorch-ddp,horovod-pytorch --trace "$SCRATCH/t.json"
[ "$status" -ne 0 ] && echo 'ok a trace of several is refused' || bad 'a trace of several is refused' 'expected an error'
run predict -n 2 -s iris-v100 -f pytorch-ddp -w resnet50 --json -q --trace "$SCRATCH/t.json"
check 'a trace' 0
if jq -e --slurpfile p "$SCRATCH/out" '
    def sum(f): [.traceEvents[] | select(.ph == "X") | select(f) | .dur] | add / 1e6;
    def same(a; b): ((a - b) | fabs) <= 1e-9 + 1e-6 * b;
    $p[0].results[0] as $r |
    same(sum(.cat == "breakdown"); $r.iteration_s) and same(sum(.cat == "forward"); $r.forward_s) and
    same(sum(.cat == "forward" or .cat == "backward" or .cat == "update"); $r.compute_s) and
    ([.traceEvents[] | select(.ph == "X") | .ts] | min >= 0)' "$SCRATCH/t.json" > /dev/null; then
    echo 'ok the trace adds up to the printed breakdown'
else
    bad 'the trace adds up to the printed breakdown' "$(head -c 300 "$SCRATCH/t.json")"
fi
run predict -n 2 -s iris-v100 -f pytorch-ddp --trace "$SCRATCH/none/t.json"
check 'a trace that cannot be written' 5

run predict -n 2 -s iris-v100 -f mxnet-dist-async
check 'asynchronous says what its rate means' 0 'nothing about convergence'
run predict -n 2 -s iris-v100 -f pytorch-dp
check 'DataParallel is of one node' 2 'use --nodes 1'

run compare data/runs/keras_aws.csv --fit message_s=0.0001 --csv
check 'a fit' 0
has 'a fit prints key, start and value' '^all,message_s,0.0001,[1-9][0-9.]*e-05,3,'
run compare data/runs/keras_aws.csv --fit nosuchfield=1
check 'a fit of a field that nothing has' 2 "no row has the field 'nosuchfield'"
run compare data/runs/keras_aws.csv --fit replicate_s
check 'a fit without start' 2 'expected KEY=START'
run compare data/runs/keras_aws.csv --leave-out source
check 'leave-out without fit' 2 'goes with --fit'
run compare data/runs/tensorflow_2017.csv --fit framework.stream_scale=1 --where 'workload=resnet50' --where system=gce-k80 --leave-out batch_per_device --csv
check 'a fit that leaves out' 0
has 'it predicts what was left out' '^without 32,'
run compare data/runs/tensorflow_2017.csv --where nosuch=1
check 'a condition on a column that is not there' 2 "no file has a column 'nosuch'"
run compare data/runs/tensorflow_2017.csv --where workload=nosuch
check 'a condition that no row meets' 2 'no row of the files'
run compare data/runs/tensorflow_2017.csv --where 'notes~b1e174e' --where workload=alexnet --rows --csv
check 'rows whose cells hold a text' 0
has 'they are compared' 'alexnet'
run compare data/runs/paradl_abci.csv --where strategy=data
check 'causes' 0
has 'runs that fall short have a likely cause' 'Slower than predicted, and why|inside the predicted'

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
# a data set of one's own: JPEG images without a time decode by their bytes, half as large ones in half the time
mkdir -p "$SCRATCH/own"
printf 'name,samples,sample_bytes,decode_s_per_sample,jpeg\nmine,1281167,117000,,crop\nsmall,1281167,58500,,crop\nwhole,1281167,117000,,whole\nbad,9,9,,jpg\n' > "$SCRATCH/own/datasets.csv"
decoding() { run predict --data "$SCRATCH/own" -q --json -s dgx1-v100 -w alexnet -f "$2" -n 1 -b 512 -p mixed --dataset "$1" && jq '.results[0].iteration_s' "$SCRATCH/out"; }
says "as ImageNet" jq -en --argjson a "$(decoding mine pytorch-ddp)" --argjson b "$(decoding imagenet pytorch-ddp)" '$a / $b - 1 | fabs < 1e-9'
says 'by bytes' jq -en --argjson a "$(decoding small pytorch-ddp)" --argjson b "$(decoding mine pytorch-ddp)" '$b / $a > 1.9 and $b / $a < 2.1'
says 'TensorFlow decodes the crop alone' jq -en --argjson a "$(decoding mine tensorflow-mirrored)" --argjson b "$(decoding whole tensorflow-mirrored)" '$b / $a > 1.8 and $b / $a < 2'
run predict --data "$SCRATCH/own" -n 1 --dataset bad
check 'a data set with an unknown kind of image' 3 'datasets.csv:5:[0-9]+: error: jpeg: expected crop'
run predict -n 1 --dataset synthetic --input real
check 'contradicting input' 2 'contradict'
run predict -n 1 -f pytorch-ddp --dataset imagenet
check 'a dataset in the page cache says so' 0 'only the first epoch reads from storage'
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
if jq -e '(.traceEvents | length > 10) and (.traceEvents | all(
        (.name | type == "string") and (.pid | type == "number") and
        (if .ph == "X" then (.tid | type == "number") and (.ts | type == "number") and (.dur | type == "number") and .dur >= 0
         elif .ph == "M" then (.name | IN("process_name", "thread_name", "process_sort_index", "thread_sort_index")) and
                              (.args | type == "object")
         elif .ph == "C" then (.ts | type == "number") and (.args.bytes > 0) else false end))) and
    ([.traceEvents[] | select(.ph == "X") | [.pid, .tid]] | unique) as $used |
    ([.traceEvents[] | select(.ph == "M" and .name == "thread_name") | [.pid, .tid]] | unique) as $named |
    ($used - $named | length == 0)' "$SCRATCH/t.json" > /dev/null; then
    echo 'ok the trace is in the format of trace viewers: complete events, counters and metadata, every lane named'
else
    bad 'the trace is in the format of trace viewers' "$(head -c 300 "$SCRATCH/t.json")"
fi
if command -v python3 > /dev/null 2>&1; then
    set -- -w resnet18 -s dgx-h100 -f pytorch-ddp -n 2
    run explain "$@" --json -q
    cp "$SCRATCH/out" "$SCRATCH/terms.json"
    run predict "$@" --trace "$SCRATCH/rank.0.et"
    check 'a trace of Chakra' 0
    python3 tests/python/chakra.py "$SCRATCH/rank.0.et" "$SCRATCH/terms.json"
    set -- -w gpt2_xl -s dgx-a100-80 -f megatron -n 2 --pp 4 -B 64 --micro-batch 1 --precision bf16
    for schedule in 1f1b gpipe interleaved zero-bubble; do
        run predict "$@" --schedule "$schedule" --trace "$SCRATCH/$schedule.et"
        check "traces of Chakra of the stages, $schedule" 0
        python3 tests/python/chakra.py "$SCRATCH/$schedule.0.et" "$SCRATCH/$schedule.1.et" "$SCRATCH/$schedule.2.et" "$SCRATCH/$schedule.3.et"
    done
    run predict "$@" --trace "$SCRATCH/stages.json"
    check 'a trace of stages' 0
    python3 - "$SCRATCH/stages.json" << 'EOF'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X" and e["tid"] != 4]
passes = [e for e in events if e["name"].startswith("micro-batch")]
holds = len(passes) == 4 * 2 * 16 and {e["pid"] for e in passes} == {1, 2, 3, 4}
print("ok a trace of stages has each pass of each stage" if holds else f"not ok a trace of stages has each pass of each stage\n  {len(passes)}")
critical = sorted((e["ts"], e["dur"]) for e in events if e.get("args", {}).get("critical") and not e["name"].startswith("send"))
gaps = [b[0] - a[0] - a[1] for a, b in zip(critical, critical[1:]) if abs(b[0] - a[0] - a[1]) > 1]
print("ok its critical path has no gap" if critical[0][0] == 0 and not gaps else f"not ok its critical path has no gap\n  {gaps}")
EOF
    run predict -w gpt2_xl -s dgx-a100-80 -f megatron -n 2 --pp 4 -B 4096 --micro-batch 1 --precision bf16 --trace "$SCRATCH/many.et"
    check 'Chakra repeats no periods' 2 'micro-batches more than are listed; give a smaller --global-batch'
else
    echo 'skip a trace of Chakra: no python3 (Debian package python3)'
fi
run predict -w vgg16 -s gce-k80 -f tensorflow-ps -n 2 --trace "$SCRATCH/ps.et"
check 'a trace of Chakra without receivers' 2 "'push 1 of 64' is no collective"
says 'and no file' test ! -e "$SCRATCH/ps.et"
run predict -n 2 -s iris-v100 -f pytorch-ddp --trace "$SCRATCH/none/t.json"
check 'a trace that cannot be written' 5

run predict -n 2 -s iris-v100 -f mxnet-dist-async
check 'asynchronous says what its rate means' 0 'nothing about convergence'
run predict -n 2 -s iris-v100 -f pytorch-dp
check 'DataParallel is of one node' 2 'use --nodes 1'

run compare data/runs/keras_aws.csv --fit message_s=0.0001 --csv
check 'a fit' 0
has 'a fit prints key, start and value' '^all,message_s,0.0001,(0\.0001[0-9]+|[1-9][0-9.]*e-05),3,'
run compare data/runs/keras_aws.csv --fit nosuchfield=1
check 'a fit of a field that nothing has' 2 "no row has the field 'nosuchfield'"
run compare data/runs/keras_aws.csv --fit replicate_s
check 'a fit without start' 2 'expected KEY=START'
run compare data/runs/keras_aws.csv --leave-out source
check 'leave-out without fit' 2 'goes with --fit'
run compare data/runs/tensorflow_2017.csv --fit device.norm_scale=1.5 --where 'workload=resnet50' --where system=gce-k80 --leave-out batch_per_device --csv
check 'a fit that leaves out' 0
has 'it predicts what was left out' '^without 32,'
sed 's/"behaviour"/"composed_scale": 2, "behaviour"/' data/frameworks/pytorch-ddp.json > "$SCRATCH/old.json"
run predict --framework "$SCRATCH/old.json" -n 1
check 'a key of an earlier release names what replaces it' 3 'composed_scale: no longer a key of dlmodel-framework: state the kernels'
# Horovod runs PyTorch's kernels: the version of PyTorch selects them.
# Small experts run one by one: the host is longer than a device with one sequence of 4,096 tokens, shorter with four times as
# many, and neither where a CUDA graph holds the iteration (released for Blackwell alone).
experts() { # experts SYSTEM MICRO-BATCH [OPTIONS...]: iteration [s] of 64 sequences
    system=$1 micro=$2
    shift 2
    run predict -s "$system" --nodes 1 -w qwen3_30b_a3b:capacity=1 -f megatron-core -p mxfp8 --ep 8 --etp 1 --zero 1 \
        --micro-batch "$micro" --global-batch 64 --json "$@"
    sed -n 's/^ *"iteration_s": *\([0-9.e+-]*\).*/\1/p' "$SCRATCH/out" | head -n 1
}
one=$(experts dgx-b200 1) four=$(experts dgx-b200 4)
one_graph=$(experts dgx-b200 1 --release 'NeMo 25.09') four_graph=$(experts dgx-b200 4 --release 'NeMo 25.09')
if echo "$one $four $one_graph $four_graph" | awk 'NF == 4 && $1 > 1.4 * $2 && $1 > 1.4 * $3 && $4 <= $2 && $4 > 0.97 * $2 { ok = 1 } END { exit !ok }'
then echo 'ok the host issues each expert of a rank'; else bad 'the host issues each expert of a rank' "$one $four $one_graph $four_graph"; fi

run predict -n 1 -f horovod-pytorch --release 2.0 -p mixed
check 'a release of the framework whose kernels it runs' 0
for version in 'NGC 19.03' 'PyTorch 2.3.1' nosuch; do
    printf 'id,source,system,framework,framework_version,workload,precision,nodes,devices_per_node,batch_per_device,metric,value,unit\n' > "$SCRATCH/runs.csv"
    printf 'a,s,iris-v100,horovod-pytorch,%s,resnet50,mixed,1,1,64,throughput,500,samples/s\n' "$version" >> "$SCRATCH/runs.csv"
    run compare "$SCRATCH/runs.csv" --rows --csv
    cp "$SCRATCH/out" "$SCRATCH/out.$(printf %s "$version" | tr ' ' _)"
done
has 'a version that nothing covers is named' 'no release of horovod-pytorch covers'
status=0
if cmp -s "$SCRATCH/out.NGC_19.03" "$SCRATCH/out.PyTorch_2.3.1"; then bad 'versions of PyTorch differ under Horovod' 'the same prediction'; else echo 'ok versions of PyTorch differ under Horovod'; fi
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

run predict -n 8 -s iris-v100 -f tensorflow-ps --backup-workers 2
check 'spare workers say what is dropped' 0 '2 of 8 workers .25 %. are dropped'
run predict -n 8 -s iris-v100 -f tensorflow-ps --backup-workers 8
check 'not all workers are spare' 2 'at most 7 of 8 nodes'
run predict -n 8 -s iris-v100 -f pytorch-ddp --backup-workers 1
check 'spare workers belong to parameter servers' 2 'use --framework tensorflow-ps'
run explain --all -n 8 -s iris-v100 -f tensorflow-ps --backup-workers 2
has 'spare workers in explain' 'F-BACKUP'
run search -n 2 -s iris-v100 -w resnet50 -B 64 --backup-workers 1
check 'search does not look at spare workers' 2 'use predict'
run predict -n 1-8*8 -s iris-v100 -f pytorch-ddp -B 100
check 'samples that do not go evenly' 0 '100 samples do not divide evenly among 32 devices: those with 4 set the pace'
run predict --system iris-v100 --framework chainermn --strategy data+spatial --spatial 2 --nodes 2
if grep -q 'divide evenly' "$SCRATCH/err"; then bad 'replicas of two devices share 256 samples' 'no warning'; else echo 'ok replicas of two devices share 256 samples'; fi

run predict --heterogeneous dgx1-v100:4,dgx1-p100:4 -f pytorch-ddp --json -q
check 'nodes of two kinds' 0
if jq -e '.results[0] as $r | $r.groups as [$fast, $slow] |
    $r.nodes == 8 and $r.devices == 64 and $fast.samples == 1024 and $slow.samples == 1024 and $slow.busy_frac == 1 and
    $fast.busy_frac < 1 and $r.iteration_s == $slow.iteration_s and
    (($r.throughput_samples_per_s * $r.iteration_s - 2048) | fabs) < 1e-6' "$SCRATCH/out" > /dev/null; then
    echo 'ok equal batches: the slowest group sets the pace'
else
    bad 'equal batches: the slowest group sets the pace' "$(head -c 300 "$SCRATCH/out")"
fi
cp "$SCRATCH/out" "$SCRATCH/equal"
run predict --heterogeneous dgx1-v100:4,dgx1-p100:4 -f pytorch-ddp --split balanced --json -q
if jq -e --slurpfile e "$SCRATCH/equal" '.results[0] as $r | $r.groups as [$fast, $slow] |
    $fast.samples + $slow.samples == 2048 and $fast.samples > $slow.samples and
    $r.throughput_samples_per_s > 1.1 * $e[0].results[0].throughput_samples_per_s' "$SCRATCH/out" > /dev/null; then
    echo 'ok balanced batches: faster, every sample placed'
else
    bad 'balanced batches: faster, every sample placed' "$(head -c 300 "$SCRATCH/out")"
fi
run predict --heterogeneous dgx1-v100:4,dgx1-p100:4 -f pytorch-ddp
has 'groups in the table' 'dgx1-p100 .*p100_sxm2 .*4'
run explain --all --heterogeneous dgx1-v100:4,dgx1-p100:4 -f pytorch-ddp
has 'groups in explain' 'F-HETEROGENEOUS'
# The former names of options work for one release, and messages print the new ones.
run predict --heterogeneous dgx1-v100:4,dgx1-p100:4 -f pytorch-ddp --csv -q
cp "$SCRATCH/out" "$SCRATCH/renamed"
run predict --mixed-nodes dgx1-v100:4,dgx1-p100:4 -f pytorch-ddp --csv -q
if cmp -s "$SCRATCH/out" "$SCRATCH/renamed"; then echo 'ok --mixed-nodes is --heterogeneous'; else bad '--mixed-nodes is --heterogeneous'; fi
run predict -s iris-v100 -f tensorflow-ps --parameter-device gpu --csv -q
cp "$SCRATCH/out" "$SCRATCH/renamed"
run predict -s iris-v100 -f tensorflow-ps --placement gpu --csv -q
if cmp -s "$SCRATCH/out" "$SCRATCH/renamed"; then echo 'ok --placement is --parameter-device'; else bad '--placement is --parameter-device'; fi
run predict -s iris-v100 -f tensorflow-ps --csv -q
if cmp -s "$SCRATCH/out" "$SCRATCH/renamed"; then bad '--parameter-device matters'; else echo 'ok --parameter-device matters'; fi
run predict --placement disk
check 'a former name, the new one in the message' 2 '--parameter-device: expected one of cpu, gpu, got "disk"'
run predict --sp 2 --cp 2
check 'an option given under both names' 2 '--cp: given twice'
run predict --cp 2 --spatial 2
check 'sequences or images' 2 'give --cp \(sequences\) or --spatial \(images\), not both'
run predict --heterogeneous dgx1-v100:4 -s iris-v100
check 'mixed nodes and a system' 2 '--heterogeneous replaces --system and --nodes'
run predict --heterogeneous dgx1-v100
check 'mixed nodes without a number' 2 'expected SYSTEM:NODES'
run predict --heterogeneous dgx1-v100:4,nowhere:2
check 'mixed nodes of no system' 2 'nowhere'
run predict --split balanced
check 'a split of nothing' 2 '--split needs --heterogeneous'
run predict --heterogeneous dgx1-v100:4,dgx1-p100:4 -f megatron -w gpt2
check 'mixed nodes are data-parallel' 2 'go with data parallelism'
# Horovod's fusion buffer: 64 MiB up to 0.20, 128 MiB from 0.21 on, for every binding.
for f in horovod-pytorch horovod-tensorflow horovod-mxnet horovod-keras; do
    run predict -q --framework "$f" --nodes 2 --json
    has "$f fuses 64 MiB" '"buffers_bytes": *67108864'
    run predict -q --framework "$f" --release 0.21 --nodes 2 --json
    has "$f 0.21 fuses 128 MiB" '"buffers_bytes": *134217728'
done

# workers that do not wait for each other are not called the fastest
run predict --nodes 16 --framework mxnet-dist-async,tensorflow-ps
has 'the fastest waits for all' '^Fastest: [a-z-]+ on 16 nodes: .*\(mxnet-dist-async would reach [0-9,]+ samples/s, but its workers do not wait'
hasnt 'and is not the asynchronous one' '^Fastest: mxnet-dist-async'
run predict --system iris-v100 --nodes 16 --framework mxnet-dist-async,mxnet-dist-sync
has 'a retired one that waits comes before one that does not' '^Fastest: mxnet-dist-sync .*mxnet-dist-async would reach'
run predict --nodes 16 --framework mxnet-dist-async
has 'unless nothing else was asked for' '^mxnet-dist-async on 16 nodes'

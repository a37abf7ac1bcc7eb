#!/bin/sh
# Files where a name is taken: models in other forms as workloads, devices of usual nodes as systems, a training's own files as the
# plan. What a file is follows from its content.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

value() { # value FILE KEY: the first number of that key in a JSON answer
    sed -n "s/.*\"$2\": \([-0-9.e+]*\).*/\1/p" "$1" | head -n 1
}
same() { # same NAME KEY: the last two answers, $SCRATCH/a and $SCRATCH/b
    a=$(value "$SCRATCH/a" "$2") b=$(value "$SCRATCH/b" "$2")
    if [ -n "$a" ] && [ "$a" = "$b" ]; then echo "ok $1"; else bad "$1" "$2: $a and $b"; fi
}
answer() { # answer PLACE ARGS...
    place=$1
    shift
    run "$@" --json
    cp "$SCRATCH/out" "$SCRATCH/$place"
}

# ---- workloads: the model behaves as the workload that import writes of it
fast='-s dgx-a100-40 -f pytorch-fsdp -b 4'
# shellcheck disable=SC2086
for kind in onnx config; do
    case $kind in onnx) file=tests/fixtures/onnx/gpt2.onnx ;; *) file=tests/fixtures/config/qwen2.json ;; esac
    run import $kind $file -o "$SCRATCH/workload.json"
    if [ "$status" -eq 6 ]; then
        echo 'skip onnx: built without protobuf-c'
        continue
    fi
    cp $file "$SCRATCH/model"
    answer a predict -w "$SCRATCH/workload.json" $fast
    answer b predict -w "$SCRATCH/model" $fast
    check "$kind: a name without an ending" 0 "model: read as $kind"
    same "$kind: as imported" iteration_s
done
mkdir "$SCRATCH/checkpoint"
cp tests/fixtures/config/qwen2.json "$SCRATCH/checkpoint/config.json"
# shellcheck disable=SC2086
answer b predict -w "$SCRATCH/checkpoint" $fast
same 'the folder of a checkpoint' iteration_s
for command in 'explain -f pytorch-fsdp' 'search --global-batch 64 --top 1' 'advise' 'report -o page.html' 'plot memory -o page.svg'; do
    # shellcheck disable=SC2086
    (cd "$SCRATCH" && "$DLMODEL" -v $command -w checkpoint -s 4x8xa100_sxm4_80 > command.out 2> err < /dev/null)
    status=$?
    check "${command%% *} takes a folder by its name" 0 'read as config'
done
printf 'id,source,system,workload,framework,precision,nodes,devices_per_node,batch_per_device,metric,value,unit\na,own,8xA100_SXM4_80,%s,pytorch-fsdp,bf16,1,8,4,throughput,50,samples/s\n' \
    "$SCRATCH/checkpoint" > "$SCRATCH/runs.csv"
run compare "$SCRATCH/runs.csv" --rows
check 'a table names a folder and devices' 0
has 'its row is predicted' '^ *a +8xA100_SXM4_80 .*compute|memory'

form() { # form NAME BYTES REGEX: what a file in another form is reported to be
    # shellcheck disable=SC2059
    printf "$2" > "$SCRATCH/other"
    run predict -w "$SCRATCH/other" -s iris-v100
    check "$1" 3 "$3"
}
form 'torch.export' 'PK\003\004............................archive_formatpt2' 'expected a torch.export archive .*python -m dlmodel export .*other`'
form 'torch.save' 'PK\003\004............................archive/data.pkl' 'weights saved by PyTorch.*config.json'
form 'safetensors' '\100\000\000\000\000\000\000\000{"__metadata__":{}}' 'weights.*config.json'
form 'HDF5' '\211HDF\r\n\032\n' 'HDF5'
form 'a SavedModel' '\010\001\022\007abcdefg' 'SavedModel'
form 'a script' '#!/bin/bash\necho' 'expected a workload, .* or config.json, found .* launch'
form 'bytes of no kind' '\010\000\000' 'expected a value'

# ---- systems
answer a predict -s dgx-h100 -w resnet50 -f pytorch-ddp
answer b predict -s 8xH100 -w resnet50 -f pytorch-ddp
check 'devices in any case' 0 '1 node with 8 h100_sxm; host and links of dgx-h100'
same 'the usual node is that system' iteration_s
has 'JSON says whose links' '"system_summary": "1 node with 8 h100_sxm; host and links of dgx-h100'
answer a predict -s dgx-h100 -n 4 -g 4 -w vgg16 -f pytorch-ddp
answer b predict -s 4x4xh100_sxm -w vgg16 -f pytorch-ddp
same 'nodes x devices' iteration_s
answer b predict -s 9x8xh100_sxm -n 4 -g 4 -w vgg16 -f pytorch-ddp
same 'options say other numbers' iteration_s
run predict -s 2xrtx4090 -w resnet50 -f pytorch-ddp
check 'a consumer board' 0 'pcie4-workstation \(unverified\)'
run predict -s 8xa100 -w resnet50
check 'a name of several devices' 2 'may be a100_64, a100_pcie40, .*: name one'
run predict -s 12xh100 -w resnet50
check 'more than a node, no multiple' 2 'nodes with h100_sxm have 8 devices'
run predict -s 8xh800_sxm -w resnet50
check 'a device without a usual node' 2 'no usual host and links are known for h800_sxm'
run predict -s 8xtpu -w resnet50
check 'no device' 2 'no device "tpu"'
for file in data/devices/*.json; do
    device=${file#data/devices/}
    [ "$device" = h800_sxm.json ] && continue
    run -q predict -s "1x${device%.json}" -w lenet -f pytorch-ddp
    [ "$status" -eq 0 ] || bad "1x${device%.json}" 'expected a prediction'
done
echo 'ok every device has a usual node'

# ---- plans
plan=tests/fixtures/runs/megatron.sh
answer a predict --plan $plan -s dgx-a100-80
run import megatron $plan -s dgx-a100-80
# shellcheck disable=SC2046
answer b $(sed 's/^dlmodel //' "$SCRATCH/out")
same 'the command that import prints' iteration_s
run predict --plan $plan -s dgx-a100-80 --micro-batch 1 --gpus 32
check 'the command line wins' 0 '--micro-batch 1 of the command line replaces --micro-batch 2'
has 'its devices' ' 32 '
run predict --plan tests/fixtures/runs/megatron_quoted_pair.bash -s dgx-h100
check 'what is not modelled' 0 'not modelled, though it changes the prediction: fp8_param_gather'
run predict --plan tests/fixtures/runs/titan_flavor_qwen3.toml -s dgx-h100
check 'the number of devices is required' 3 'how many are there\? Give --gpus N'
for more in '-n 8' '--gpus 64' '-n 16 -g 4'; do
    # shellcheck disable=SC2086
    run predict --plan tests/fixtures/runs/titan_flavor_qwen3.toml -s dgx-h100 $more
    has "devices by $more" ' 64 '
done
run predict --plan tests/fixtures/runs/titan_flavor_qwen3.toml -s 8x8xh100
has 'devices by the system' ' 64 '
for file in composer.yaml nemo.yaml megatron_argument_dump.log deepspeed.json; do
    run search --plan tests/fixtures/runs/$file -s dgx-h100 --gpus 16 -w gpt2_large --top 1
    case $file in *.yaml) if [ "$status" -eq 6 ]; then
        check "search: $file" 6 'built without libyaml'
        continue
    fi ;; esac
    check "search: $file" 0
done
printf 'NCCL_ALGO=Ring\nSLURM_GPUS_ON_NODE=2\nSLURM_JOB_NUM_NODES=3\n' > "$SCRATCH/environment.txt"
answer a predict --plan "$SCRATCH/environment.txt" -s iris-v100 -f pytorch-ddp
answer b predict -n 3 -g 2 --set nccl_algorithm=ring -s iris-v100 -f pytorch-ddp
same 'the environment of a job' iteration_s
run predict --plan "$SCRATCH/runs.csv" -s iris-v100
check 'no plan' 3 'no script, configuration or log of a training'
run predict --plan "$SCRATCH/none" -s iris-v100
check 'no file' 3 'none.*No such file'

# ---- a system file of devices and links alone takes the rest from the usual machine of its device: written out, it is the same
links='"intra": {"kind": "nvlink2", "bandwidth_bytes_per_s": 120e9, "latency_s": 2e-6},
  "inter": {"kind": "infiniband", "bandwidth_bytes_per_s": 12.1e9, "latency_s": 1.3e-6, "adapters_per_node": 1, "rdma": true}'
head='"format": "dlmodel-system", "version": 1, "summary": "x", "source": "assumed", "device": "v100_sxm2_16", "nodes": 24, "devices_per_node": 4'
jitter=$(sed -n 's/.*"jitter_frac": \([0-9.]*\).*/\1/p' data/systems/dgx1-v100.json)
printf '{%s, "name": "little", "links": {%s}}\n' "$head" "$links" > "$SCRATCH/little.json"
printf '{%s, "name": "more", "jitter_frac": %s, "links": {%s}}\n' "$head" "$jitter" "$links" > "$SCRATCH/more.json"
answer a predict -s "$SCRATCH/little.json" -w resnet50 -f pytorch-ddp -n 16
check 'a small system file: what is assumed' 0 'little: .*dgx1-v100.*: jitter [0-9.]+ %, host, switches'
answer b predict -s "$SCRATCH/more.json" -w resnet50 -f pytorch-ddp -n 16
check 'a small system file: its jitter' 0 'more: .*dgx1-v100.*: host, switches'
same 'a small system file: jitter of the usual machine' iteration_s

#!/bin/sh
# plans.sh - plans in the words of frameworks: what --export prints, import reads as the same plan; foreign files; hostile ones.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
command -v jq > /dev/null 2>&1 || { echo 'skip plans: no jq (Debian package jq)'; exit 0; }
mkdir -p "$work/bin"
ln -sf "$DLMODEL" "$work/bin/dlmodel"
gpt='gpt:layers=24,hidden=1024,heads=16,seq=512,vocab=51200,flash=1'
moe='gpt:layers=8,hidden=1024,heads=16,seq=512,vocab=51200,experts=8,topk=2,capacity=1'

numbers() { jq -r '.results[0] | "\(.iteration_s) \(.memory.total_bytes) \(.gpu_hours)"' "$1"; }
# back NAME FORMAT KIND IMPORT-OPTIONS -- OPTIONS: predict, export, import and predict again; times to 1e-9
back() {
    name=$1 format=$2 kind=$3
    shift 3
    more=
    while [ "$1" != -- ]; do more="$more $1"; shift; done
    shift
    run predict "$@" --json
    cp "$work/out" "$work/first.json"
    run predict "$@" --export "$format"
    check "$name: export" 0
    cp "$work/out" "$work/args"
    # shellcheck disable=SC2086 # words
    run import "$kind" "$work/args" --system dgx-a100-80 $more
    check "$name: import" 0
    command=$(cat "$work/out")
    PATH=$work/bin:$PATH sh -c "$command --json" > "$work/second.json" 2> "$work/err" < /dev/null
    if echo "$(numbers "$work/first.json") $(numbers "$work/second.json")" |
        awk '{ d = $1 - $4; e = $2 - $5 } NF != 6 || $3 != $6 || d > 1e-9 * $1 || -d > 1e-9 * $1 || e > 1 || -e > 1 { exit 1 }'; then
        echo "ok $name: the same plan"; else bad "$name: the same plan" "$command: $(numbers "$work/first.json") then $(numbers "$work/second.json")"; fi
}
a='--system dgx-a100-80 --framework megatron-core --precision bf16 --optimizer adam --global-batch 64'
# shellcheck disable=SC2086
megatron() { name=$1; shift; back "$name" megatron megatron -- $a "$@"; }
megatron 'tensor and pipeline' --workload "$gpt" --nodes 2 --tp 2 --pp 2 --micro-batch 2 --recompute full --strategy 3d
megatron 'interleaved, sequence parallel, sharded' --workload "$gpt" --nodes 2 --tp 2 --pp 4 --micro-batch 1 --schedule interleaved --virtual-stages 3 \
    --sequence-parallel --zero 1 --recompute selective --tokens 1G --strategy 3d
megatron 'pipeline inside, sharded parameters' --workload "$gpt" --nodes 2 --tp 2 --pp 2 --micro-batch 4 --mapping pipeline-inside --zero 3 --recompute none --strategy 3d
megatron 'context ranks' --workload "$gpt" --nodes 2 --tp 2 --cp 4 --micro-batch 1 --recompute none --strategy 3d
megatron 'uneven stages' --workload 'gpt:layers=30,hidden=1024,heads=16,seq=512,vocab=51200' --nodes 2 --tp 2 --pp 4 --micro-batch 1 --recompute none --strategy 3d
megatron 'experts' --workload "$moe" --nodes 2 --tp 2 --ep 4 --micro-batch 1 --recompute none --zero 1
megatron 'data parallelism alone' --workload "$gpt" --nodes 1 --tp 1 --pp 1 --micro-batch 8 --recompute none --strategy 3d
megatron 'hybrid sharding' --workload "$gpt" --nodes 2 --tp 2 --pp 1 --micro-batch 2 --zero 1 --zero-group 4 --recompute none --strategy 3d
back '16 bit, momentum' megatron megatron -- --system dgx-a100-80 --framework megatron-core --precision fp16 --optimizer momentum --global-batch 64 --workload "$gpt" \
    --nodes 1 --tp 4 --pp 1 --micro-batch 4 --recompute none --strategy 3d
llama='gpt:layers=16,hidden=2048,heads=16,kv_heads=4,ffn=5632,seq=1024,vocab=32000,mlp=swiglu,norm=rmsnorm,pos=rope,tied=0,flash=1'
megatron 'a Llama with its own kernels' --workload "$llama" --nodes 1 --tp 2 --pp 2 --micro-batch 2 --sequence-parallel --zero 1 --recompute none --strategy 3d
megatron 'composed attention' --workload "$gpt" --set flash=0 --attention composed --nodes 1 --tp 2 --pp 1 --micro-batch 2 --recompute selective --strategy 3d
megatron 'narrow and shared experts' --workload 'gpt:layers=8,hidden=1024,heads=16,ffn=4096,seq=512,vocab=51200,experts=8,topk=2,expert_ffn=1024,shared_experts=1' \
    --nodes 1 --tp 1 --ep 8 --micro-batch 1 --recompute none
for w in llama3_8b mixtral_8x7b nemotron4_15b; do
    megatron "$w" --workload $w --nodes 16 --tp 4 --pp 4 --micro-batch 1 --sequence-parallel --zero 1 --recompute full --strategy 3d
done
# The gather that the prediction hides is asked for; half of nemotron's channels turn, its norms keep their biases.
has_argument() { if grep -qE -- "--$2( |\$)" "$work/args"; then echo "ok $1"; else bad "$1" "no --$2"; fi; }
has_argument 'gathers behind the next forward' overlap-param-gather
has_argument 'half of the channels turn' 'rotary-percent 0.5'
back 'Llama 3 8B in torchtitan' torchtitan torchtitan -- --system dgx-a100-80 --framework pytorch-fsdp2 --precision bf16 --optimizer adam --global-batch 64 \
    --workload llama3_8b --nodes 2 --micro-batch 1 --recompute selective --compiler inductor --zero 3
back 'Llama 3 70B in torchtitan, all ranks' torchtitan torchtitan -- --system dgx-a100-80 --framework pytorch-fsdp2 --precision bf16 --optimizer adam \
    --global-batch 64 --workload llama3_70b --nodes 16 --tp 4 --pp 4 --micro-batch 1 --schedule interleaved --virtual-stages 5 --sequence-parallel --zero 3 \
    --recompute full --strategy 3d
f='--system dgx-a100-80 --framework pytorch-fsdp --precision bf16 --optimizer adam --global-batch 64 --workload gpt2_xl --set seq=512'
back 'ZB-V in torchtitan' torchtitan torchtitan -- --system dgx-a100-80 --framework pytorch-fsdp2 --precision bf16 --optimizer adam \
    --global-batch 64 --workload llama3_8b --nodes 2 --tp 2 --pp 4 --micro-batch 1 --schedule zbv --sequence-parallel --zero 2
# shellcheck disable=SC2086
titan() { name=$1; shift; back "$name" torchtitan torchtitan --workload gpt2_xl --framework pytorch-fsdp -- $f "$@"; }
titan 'sharded data' --nodes 2 --micro-batch 2 --recompute full
titan 'sharded in groups' --nodes 2 --micro-batch 2 --recompute selective --zero-group 8 --tokens 100M

# Host memory: what each format has comes back, what it lacks is refused.
host='--system dgx-a100-80 --precision bf16 --optimizer adam --global-batch 64 --workload llama3_8b --nodes 2 --micro-batch 1'
# shellcheck disable=SC2086
here() { name=$1 format=$2; shift 2; more=$1; shift; back "$name" "$format" "$format" $more -- $host "$@"; }
# shellcheck disable=SC2086
{
    here 'activations of 8 layers' megatron '' --framework megatron-core --tp 2 --pp 1 --sequence-parallel --zero 1 --recompute none --strategy 3d --offload activations --offload-fraction 0.25
    here 'a share of the states' megatron '' --framework megatron-core --tp 2 --pp 1 --recompute none --strategy 3d --zero 1 --offload optimizer --offload-fraction 0.5
    here 'shards' torchtitan '' --framework pytorch-fsdp2 --zero 3 --recompute full --offload weights
    here 'states of gathered weights' torchtitan '' --framework pytorch-fsdp2 --zero 2 --recompute full --offload optimizer
    for stage in 1 2 3; do here "states of stage $stage" deepspeed '--workload llama3_8b --ranks 16' --framework deepspeed-zero$stage --offload optimizer; done
    here 'a share of stage 3' deepspeed '--workload llama3_8b --ranks 16' --framework deepspeed-zero3 --offload optimizer --offload-fraction 0.5
    here 'weights of stage 3' deepspeed '--workload llama3_8b --ranks 16' --framework deepspeed-zero3 --offload weights
    here '16 bits on the wire' deepspeed '--workload llama3_8b --ranks 16' --framework deepspeed-zero2 --gradient-compression bf16
}
while IFS='|' read -r format options message; do
    # shellcheck disable=SC2086
    run predict $host $options --export "$format"
    check "$format: $options" 2 "export $format: .*$message"
done << 'T'
megatron|--framework megatron-core --tp 2 --pp 2 --recompute none --offload activations --offload-fraction 0.5|it offloads activations of whole layers, fewer than the 32
megatron|--framework megatron-core --tp 2 --pp 1 --recompute none --offload activations|it offloads activations of whole layers, fewer than the 32
megatron|--framework megatron-core --tp 2 --pp 1 --recompute none --offload optimizer,activations|it takes optimizer or activations, one of them
torchtitan|--framework pytorch-fsdp2 --zero 3 --recompute full --offload optimizer|enable_cpu_offload moves all shards
torchtitan|--framework pytorch-fsdp2 --zero 3 --recompute full --offload weights --offload-fraction 0.5|enable_cpu_offload moves all shards
deepspeed|--framework deepspeed-zero2 --offload optimizer --offload-fraction 0.5|--offload-fraction goes with --offload optimizer of ZeRO stage 3
deepspeed|--framework deepspeed-zero3 --recompute full --offload activations|it takes optimizer or weights, one of them
T

# The number of devices, Megatron's defaults, NeMo's keys; what is ignored is named.
run import megatron tests/fixtures/runs/megatron.sh --system dgx-a100-80
check 'a launch script' 0 '4 arguments cost no time: lr, lr_decay_style, save, data_path'
has 'variables, padded vocabulary, virtual stages' 'layers=48,hidden=1600,heads=25,seq=1024,vocab=50304,ffn=6400,flash=1 .*--pp 2 .*--schedule interleaved --virtual-stages 2'
has 'devices of torchrun' '--nodes 2 --devices-per-node 8'
if "$DLMODEL" -v --version 2> /dev/null | grep -q libyaml; then
    run import nemo tests/fixtures/runs/nemo.yaml --json
    check 'a NeMo configuration' 0
    if [ "$(jq -r '[.format, .options.tp, .options.zero, .options."sequence-parallel", .options.precision, (.ignored | index("mcore_gpt") != null)] | join(" ")' "$work/out")" = \
        'dlmodel-plan 2 1 true bf16 true' ]; then echo 'ok its parts as JSON'; else bad 'its parts as JSON' "$(cat "$work/out")"; fi
else
    echo 'skip a NeMo configuration: built without libyaml (Debian package libyaml-dev)'
fi
run import torchtitan tests/fixtures/runs/torchtitan.toml --workload gpt2_xl
check 'a torchtitan configuration' 0 'not modelled: parallelism.pipeline_parallel_split_points'
has 'hybrid sharding of it' '--strategy zero3 --zero-group 8 --set seq=1024 --gpus 16 --global-batch 32 --micro-batch 2 --tokens 32768000 .*--recompute full'
run import torchtitan tests/fixtures/runs/torchtitan.toml
check 'a flavor without a name here' 3 'torchtitan.toml:[0-9]+:1: error: model.flavor: no workload is known for llama3 custom'

# Refused, with the place and the reason.
wrong() { # wrong NAME KIND TEXT MESSAGE
    printf '%b' "$3" > "$work/wrong"
    run import "$2" "$work/wrong"
    check "$1" 3 "$4"
}
wrong 'no arguments' megatron 'hello\n' 'no program with arguments'
wrong 'an open quote' megatron '--num-layers "3\n' 'wrong:1:1: error: expected the closing "'
wrong 'no number of layers' megatron '--nnodes 1 --nproc-per-node 8\n--hidden-size 3' 'num_layers: there is none: where a recipe'
wrong 'no number' megatron '--nnodes 1 --nproc-per-node 8\n--num-layers many' 'wrong:2:1: error: num_layers: expected a number from 1 to 1e\+09, found "many"'
wrong 'a variable without a value' megatron '--num-layers 2 --hidden-size 8 --num-attention-heads 2 --seq-length 4 --vocab-size 8 --nnodes $NODES' 'nnodes: .*give it by --env NODES=N'
wrong 'no width' megatron '--num-layers 3\n' 'no hidden_size: it is needed'
wrong 'no key' nemo 'hello\n' 'no program with arguments'
wrong 'a key twice' torchtitan 'a = 1\na = 2\n' 'wrong:2:1: error: the key was given before'
wrong 'a string without an end' torchtitan 'a = "b\n' 'wrong:1:7: error: expected the end of the string'
wrong 'a word' torchtitan '[t]\na = hello\n' 'wrong:2:5: error: expected a number, true, false, a string or an array'
wrong 'a table in a table' torchtitan '[[t]]\n' 'arrays of tables are not read'
wrong 'a date' torchtitan 'a = 2024-01-01\n' 'expected a number'
wrong 'no devices in it' torchtitan '[model]\nflavor = "8B"\n' 'Give --ranks N'
# Nothing of a file runs.
printf -- '--num-layers $(touch %s/ran) --hidden-size `touch %s/ran`\n' "$work" "$work" > "$work/hostile"
run import megatron "$work/hostile" --ranks 8
check 'a command in a value' 3
if [ -e "$work/ran" ]; then echo 'not ok nothing of a file runs'; else echo 'ok nothing of a file runs'; fi

# What a framework lacks is refused; a job has its wall time.
# shellcheck disable=SC2086
export_of() { run predict $a --workload "$gpt" --nodes 2 --tp 2 --pp 2 --micro-batch 2 "$@"; }
export_of --schedule gpipe --export megatron
check 'a schedule that it has not' 2 '--export megatron: megatron-core .* has no pipeline schedule gpipe'
export_of --export torchtitan
check 'tensor without sequence parallelism' 2 'pytorch-fsdp2 .* has no tensor parallelism without sequence parallelism'
export_of --export deepspeed
check 'a pipeline in a configuration' 2 'arguments of the program'
export_of --export sbatch
check 'a job without a length' 2 'give --tokens or --epochs'
export_of --export sbatch --tokens 1G
check 'a job' 0
has 'nodes and wall time' '^#SBATCH --nodes=2$'
has 'wall time' '^#SBATCH --time=[0-9]+-[0-9]{2}:[0-9]{2}:00$'
if bash -n "$work/out"; then echo 'ok a job is a script'; else echo 'not ok a job is a script'; fi
run predict --system dgx-a100-80 --framework deepspeed-zero2 --workload gpt2 --precision bf16 --global-batch 64 --micro-batch 2 --nodes 1 --export deepspeed
check 'DeepSpeed' 0
if [ "$(jq -r '[.train_batch_size, .train_micro_batch_size_per_gpu, .gradient_accumulation_steps, .zero_optimization.stage, .bf16.enabled] | join(" ")' "$work/out")" = \
    '64 2 4 2 true' ]; then echo 'ok its numbers'; else bad 'its numbers' "$(cat "$work/out")"; fi
run predict --nodes 2 --export megatron
check 'one plan' 2 'prints one plan'

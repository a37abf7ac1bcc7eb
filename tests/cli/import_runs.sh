#!/bin/sh
# import of runs: one small input a kind of fault, with the plan that its framework would run. What cannot be decided or predicted is
# said; every printed command is accepted by predict.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
runs=tests/fixtures/runs

# plan FILE KIND OPTIONS STDOUT...: every STDOUT matches the printed command, which runs.
plan() {
    file=$1 kind=$2 options=$3
    shift 3
    # shellcheck disable=SC2086
    run import "$kind" "$runs/$file" --system dgx-h100 $options
    check "$file" 0
    for expected in "$@"; do has "$file: $expected" "$expected"; done
    cp "$SCRATCH/out" "$SCRATCH/command"
    cp "$SCRATCH/err" "$SCRATCH/said"
    # shellcheck disable=SC2046
    run $(sed 's/^dlmodel //' "$SCRATCH/command")
    case $status in 0 | 1) echo "ok $file: the command runs" ;; *) bad "$file: the command runs" "$(cat "$SCRATCH/command")" ;; esac
}
said() { # said NAME REGEX: of the last plan
    if grep -Eq -- "$2" "$SCRATCH/said"; then echo "ok $1"; else bad "$1" "expected: $2, found: $(cat "$SCRATCH/said")"; fi
}
refused() { # refused FILE KIND OPTIONS REGEX
    # shellcheck disable=SC2086
    run import "$2" "$runs/$1" --system dgx-h100 $3
    check "$1 is refused" 3 "$4"
}

# ---- Megatron: expansions, quotes, conditions, launchers
sed 's/nproc_per_node/nprox_per_node/' "$runs/megatron_quoted_pair.bash" > "$SCRATCH/launcher.sh"
run import megatron "$SCRATCH/launcher.sh" --system dgx-h100
check 'a misspelt option of a launcher is named' 0 'no option --nprox_per_node and it was not read; did you mean --nproc-per-node'
mkdir "$SCRATCH/data"
printf 'format,use,name\nmegatron,harmless,lr\n' > "$SCRATCH/data/run_arguments.csv"
run import megatron "$runs/megatron_conditional.bash" --system dgx-h100 --data "$SCRATCH/data"
check 'a table of arguments with an unknown use is refused' 3 'run_arguments.csv:2:10: .*expected no effect, not modelled'
plan megatron_default_value.bash megatron '' '--nodes 2 ' '--tp 4 '
said 'a default is reported' 'SLURM_NNODES=2'
plan megatron_default_value.bash megatron '--env SLURM_NNODES=8' '--nodes 8 '
plan megatron_quoted_pair.bash megatron '' '--precision fp8' 'vocab=51200'
plan megatron_quoted_precision.bash megatron '' '--precision fp8'
plan megatron_conditional.bash megatron '' '--precision bf16'
plan megatron_launchers_srun.bash megatron '' '--nodes 4 --devices-per-node 8'
plan megatron_argument_dump.log megatron '' '--gpus 16' '--tp 2' '--zero 1' 'vocab=51200'
plan megatron_tokenizer.bash megatron '' 'vocab=50432'
said 'a vocabulary is reported' '50257 words of the tokenizer "GPT2BPETokenizer"'
plan megatron_tokenizer.bash megatron '--vocab-size 60000' 'vocab=60160'
plan megatron_mla_kv_channels.bash megatron '' 'head_dim=192' 'kv_rank=512'
if [ "$(grep -o head_dim "$SCRATCH/command" | wc -l)" -eq 1 ]; then echo 'ok head_dim once'; else bad 'head_dim once' "$(cat "$SCRATCH/command")"; fi
plan megatron_pretrain_bert.bash megatron '' 'bert_base:layers=24,hidden=1024'
refused megatron_pretrain_hybrid.bash megatron '' 'hybrid_override_pattern: expected a letter for each of 56 layers'
# The order that Megatron-LM's 8B hybrid of 56 layers has (Waleffe et al. 2024: 4 of attention, 28 MLPs, 24 Mamba-2).
run import megatron "$runs/megatron_hybrid_shares.bash" --system dgx-h100
check 'shares of attention and MLPs' 0
has 'shares of attention and MLPs: order' 'pattern=M-M-M--M-M\*-M-M-M-M--M\*-M-M-M-M-M\*--M-M-M-M-M\*-M--M-M-M-,ssm_chunk=128,ssm_state=128'
sed "s|^dlmodel|$DLMODEL|" "$SCRATCH/out" > "$SCRATCH/command.sh"
sh "$SCRATCH/command.sh" > "$SCRATCH/out" 2> "$SCRATCH/err"
status=$?
check 'shares of attention and MLPs: the command runs' 0
plan megatron_partial_recompute.bash megatron '' '--recompute-layers 8 --recompute full'
plan megatron_offload.bash megatron '' '--recompute mlp' '--offload optimizer'
plan megatron_functions.bash megatron '' '--nodes 4 --devices-per-node 8' 'layers=32,hidden=4096,heads=32,seq=4096,vocab=50432' '--tp 2 --pp 2' \
    '--global-batch 1024' '--zero 1' '--recompute full'
said 'a condition on the machine is reported' 'line 33 of .*: the condition depends on the machine; taken as false'

# ---- an argument that looks like a degree, a precision, a compiler or an offload, or is misspelt, is never passed over
cat > "$SCRATCH/run.sh" << 'T'
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 8 --vocab-size 128 --micro-batchsize 2
T
sed 's/micro-batchsize/tensor-parallel-degree/' "$SCRATCH/run.sh" > "$SCRATCH/degree.sh"
runs=$SCRATCH
refused run.sh megatron '' "micro_batchsize: .*did you mean 'micro_batch_size'"
refused degree.sh megatron '' 'looks like a degree of parallelism'
plan degree.sh megatron --skip-unknown '--tp 1'
runs=tests/fixtures/runs

# ---- a script that takes its values from its command line
cat > "$SCRATCH/args.sh" << 'T'
ENV=$1
MODEL_SIZE=$2
GLOBAL_BATCH_SIZE=$3
TP=${4}
LOAD=$5
if [ $MODEL_SIZE = 8B ]; then LAYERS=32; HIDDEN=4096; HEADS=32; fi
torchrun --nproc_per_node 8 pretrain_llama.py --num-layers $LAYERS --hidden-size $HIDDEN --num-attention-heads $HEADS --seq-length 128 --swiglu \
    --micro-batch-size 1 --global-batch-size $GLOBAL_BATCH_SIZE --tensor-model-parallel-size $TP --load $LOAD \
    --patch-tokenizer-type LLama3Tokenizer --extra-vocab-size 256 --bf16 --num-layers-at-start-in-bf16 1 --my-name x
T
runs=$SCRATCH
refused args.sh megatron '' "give them by --args 'ENV MODEL_SIZE GLOBAL_BATCH_SIZE TP LOAD'"
run import megatron "$runs/args.sh" --system dgx-h100 --args 'dsw 8B 16 4 /ckpts/llama3'
check 'a script with arguments' 0
has 'its command' 'layers=32,hidden=4096,.*vocab=128256.*--tp 4 .*--global-batch 16 '
if grep -q 'not modelled: num_layers_at_start_in_bf16' "$SCRATCH/err"; then echo 'ok a precision of some layers is not modelled'; else bad 'a precision of some layers is not modelled' "$(cat "$SCRATCH/err")"; fi
if grep -q 'not known, and not modelled: my_name' "$SCRATCH/err"; then echo 'ok a name that no list has is shown'; else bad 'a name that no list has is shown' "$(cat "$SCRATCH/err")"; fi
# what changes the time and has no option is named, with the settings that are on alone; balanced experts are the plan's
sed 's/--my-name x/--expert-model-parallel-size 4 --num-experts 8 --moe-router-force-load-balancing --moe-router-num-groups 4 --delay-wgrad-compute --reset-attention-mask --fine-grained-activation-offloading --offload-modules core_attn --freeze-vision-model --timing-log-level 2 --empty-unused-memory-level 0 --hybrid-context-parallel --moe-router-score-function sigmoid/' "$SCRATCH/args.sh" > "$SCRATCH/named.sh"
run import megatron "$SCRATCH/named.sh" --system dgx-h100 --args 'dsw 8B 16 4 /ckpts/llama3'
has 'balanced experts' '--expert-imbalance 1 '
for name in moe_router_num_groups delay_wgrad_compute reset_attention_mask fine_grained_activation_offloading offload_modules freeze_vision_model timing_log_level hybrid_context_parallel; do
    if grep -Eq "change the prediction and are not modelled: .*$name" "$SCRATCH/err"; then echo "ok $name is named"; else bad "$name is named" "$(cat "$SCRATCH/err")"; fi
done
for name in empty_unused_memory_level moe_router_score_function; do
    if grep -Eq "cost no time: .*$name" "$SCRATCH/err"; then echo "ok $name costs no time"; else bad "$name costs no time" "$(cat "$SCRATCH/err")"; fi
done
runs=tests/fixtures/runs

# ---- a recipe by name with overrides, in a script that the script writes and a launcher starts
cat > "$SCRATCH/recipe.sh" << 'T'
worker=$(cat << EOM
python run_script.py --model_family_name llama --model_recipe_name llama31_405b --compute_dtype fp8_cs --seq_length 8192 \
    --global_batch_size 128 --tensor_model_parallel_size 8 --pipeline_model_parallel_size 8 --recompute_modules core_attn train.manual_gc_interval=100
EOM
)
echo "$worker" > worker.sh
torchrun --nproc-per-node=8 --nnodes=16 --no-python bash worker.sh 2>&1 | tee log
T
sed 's/llama31_405b/unheard_of_7b/' "$SCRATCH/recipe.sh" > "$SCRATCH/unknown.sh"
runs=$SCRATCH
plan recipe.sh megatron '' '--workload llama3_405b ' '--nodes 16 --devices-per-node 8' '--tp 8 --pp 8' '--zero 1' '--set seq=8192' '--precision fp8' '--recompute selective'
said 'what the recipe decides is reported' 'recipe "llama31_405b": it also decides context_parallel_size, micro_batch_size,'
refused unknown.sh megatron '' 'unheard_of_7b: .*--workload'
runs=tests/fixtures/runs

# ---- torchtitan: keys and values of its releases, flavors
plan titan_2024_keys.toml torchtitan '--ranks 64' '--tp 8 --pp 2' '--global-batch 8' '--precision fp8' '--compiler inductor' '--recompute full'
plan titan_converters_string.toml torchtitan '--ranks 64' '--precision fp8' '--compiler inductor' '--tp 2' '--global-batch 64'
plan titan_flavor_llama2.toml torchtitan '--ranks 64' '--workload llama2_7b '
plan titan_flavor_qwen3.toml torchtitan '--ranks 64' 'layers=64,hidden=5120,heads=64'
plan titan_flavor_dsv3_16b.toml torchtitan '--ranks 64' 'deepseek_v3:layers=27'
# a list of compiled parts that leaves the model out
printf '[model]\nname = "llama3"\nflavor = "8B"\n[compile]\nenable = true\ncomponents = ["loss"]\n' > "$SCRATCH/loss.toml"
run import torchtitan "$SCRATCH/loss.toml" --ranks 8
hasnt 'only the loss is compiled' '--compiler'

# ---- torchtitan in Python: functions that build, change and wrap configurations; nothing is executed
plan titan_config_registry.py torchtitan '--ranks 64' '--workload llama3_8b ' '--tp 2 ' '--set seq=8192' '--global-batch 256 --micro-batch 8'
mkdir -p "$SCRATCH/titan/models/qwen3" "$SCRATCH/titan/wrapped"
cat > "$SCRATCH/titan/models/qwen3/config_registry.py" << 'T'
"""Configurations."""
from dataclasses import replace
from titan.trainer import Trainer
from . import model_registry as registry

_LENGTH = 2 * 2048
_DEGREES = {"tensor_parallel_degree": 4, "expert_parallel_degree": 1}


def _base(flavor: str, *, steps: int = 10, **more) -> Trainer.Config:
    spec = registry(flavor, attn_backend="flex")  # a remark
    return Trainer.Config(
        model_spec=spec,
        optimizer=default_adamw(lr=8e-4),
        training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=4 * _LENGTH, max_context_length=_LENGTH, steps=steps),
        activation_checkpoint=SelectiveAC.Config(), **more)


def qwen3_14b() -> Trainer.Config:
    config = _base("14B", steps=1_000)
    config.parallelism = ParallelismConfig(**_DEGREES)
    config.activation_checkpoint = FullAC.Config()
    config.compile.enable = True if _LENGTH > 100 and not config.training.steps == 1 else False
    return config


def qwen3_14b_fp8():
    config = qwen3_14b()
    with_model = "model" in config.compile.components
    config.model_spec = registry("14B", converters=[Float8LinearConverter.Config(model_compile_enabled=with_model)])
    for degree in ("a", "b"):
        if degree == "b":
            config.parallelism.pipeline_parallel_degree, ignored = 2, lambda x: (x, [1])
            config.parallelism.pipeline_parallel_degree = 2
        elif degree == "a": pass
        else:
            raise ValueError(f"no {degree}")
    config.parallelism.num_pp_microbatches = 8
    return replace(config, compile=CompileConfig(enable=True, components=["loss"]))


def qwen3_undecided():
    config = qwen3_14b()
    if torch.cuda.is_available():
        config.training.steps = 7
    config.activation_checkpoint = None
    return config
T
cat > "$SCRATCH/titan/wrapped/config.py" << 'T'
from models.qwen3.config_registry import qwen3_14b as base, qwen3_14b_fp8
def wrapped():
    return to_other_trainer(base(), "x", [y for y in range(3)])
T
cat > "$SCRATCH/titan/job.py" << 'T'
from torchtitan.config import JobConfig, Model, Training, Parallelism, ActivationCheckpoint
job = JobConfig(
    model=Model(name="llama3", flavor="70B", converters=["float8"]),
    training=Training(local_batch_size=2, seq_len=8192, global_batch_size=64),
    parallelism=Parallelism(tensor_parallel_degree=8, data_parallel_shard_degree=-1),
    activation_checkpoint=ActivationCheckpoint(mode="full"),
)
job.training.seq_len //= 2
job.parallelism.enable_sequence_parallel = False
T
runs=$SCRATCH/titan
registry=models/qwen3/config_registry.py
plan $registry torchtitan '--ranks 64 --config qwen3_14b' 'layers=40,hidden=5120' '--tp 4 ' 'seq=4096' '--global-batch 64 --micro-batch 4' '--tokens 262144000' \
    '--recompute full' '--compiler inductor'
plan $registry torchtitan '--ranks 64 --config qwen3_14b_fp8' '--tp 4 --pp 2' '--global-batch 256 --micro-batch 4' '--precision fp8'
said 'only the loss' 'compiler: only the loss is compiled'
plan $registry torchtitan '--ranks 64 --config qwen3_undecided' '--recompute none' '--tokens 262144000'
said 'an undecided condition' 'line 44 .* does not decide the condition; taken as false'
plan wrapped/config.py torchtitan '--ranks 64' 'layers=40,hidden=5120' '--tp 4 '
said 'what wraps it' 'what to_other_trainer changes is not known'
refused $registry torchtitan '--ranks 64' 'several configurations: .*--config NAME, of qwen3_14b, qwen3_14b_fp8, qwen3_undecided'
refused $registry torchtitan '--ranks 64 --config qwen3_140b' 'config qwen3_140b: expected a function'
plan job.py torchtitan '--ranks 64' '--workload llama3_70b' '--tp 8 ' '--global-batch 64 --micro-batch 2' '--precision fp8' '--recompute full'
said 'a value that is changed in place' 'line 8: the file does not say what training.seq_len is'
hasnt 'without sequence parallelism' '--sequence-parallel'
printf 'def f():\n    return Trainer.Config(model_spec=model_registry("9B"), training=T(steps=(1))\n' > "$SCRATCH/titan/open.py"
refused open.py torchtitan '--ranks 8' 'open.py:3:1: error: expected the end of a bracket'
printf 'from x import y\ndef f(): return f()\n' > "$SCRATCH/titan/endless.py"
refused endless.py torchtitan '--ranks 8' 'expected fewer levels'
runs=tests/fixtures/runs

# ---- formats that a table of keys describes
plan deepspeed.json deepspeed '--workload llama2_7b --ranks 32' '--framework deepspeed-zero3' '--gpus 32' '--global-batch 256 --micro-batch 4' '--precision bf16'
has 'states of DeepSpeed on the host' '--offload optimizer '
said 'pageable copies are reported' 'offload without pin_memory: pageable copies'
refused deepspeed.json deepspeed '' 'the file does not describe the model: give it by --workload'
runs=$SCRATCH
# DeepSpeed's ZeRO, as "STAGE | KEYS | PATTERN OF THE COMMAND OR THE REPORT"; NVMe is never predicted as host memory
while IFS='|' read -r stage keys pattern; do
    printf '{"train_batch_size": 256, "train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true}%s}' "$(printf '%s' "$keys" | sed "s/ZERO/, \"zero_optimization\": {\"stage\": $stage/")" > "$SCRATCH/zero.json"
    plan zero.json deepspeed '--workload llama2_7b --ranks 32' '--global-batch 256'
    cat "$SCRATCH/command" "$SCRATCH/said" > "$SCRATCH/both"
    if grep -Eq -- "$pattern" "$SCRATCH/both"; then echo "ok DeepSpeed: $keys"; else bad "DeepSpeed: $keys" "expected: $pattern, found: $(cat "$SCRATCH/both")"; fi
    case $keys in *nvme*) if grep -q -- --offload "$SCRATCH/command"; then bad 'NVMe' "$(cat "$SCRATCH/command")"; else echo 'ok no host memory for NVMe'; fi ;; esac
done << 'T'
3|ZERO, "offload_optimizer": {"device": "cpu", "ratio": 0.4, "pin_memory": true}}|--offload optimizer --offload-fraction 0.4
2|ZERO, "offload_optimizer": {"device": "cpu", "ratio": 0.4}}|--framework deepspeed-zero2 --offload optimizer --gpus .*
2|ZERO, "cpu_offload": true}|--framework deepspeed-zero2 --offload optimizer
3|ZERO, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}|--framework deepspeed-zero3 --offload weights
3|ZERO, "offload_param": {"device": "cpu"}}|offload_param without offload_optimizer: predicted with gradients and optimizer states
2|ZERO, "offload_param": {"device": "cpu"}}|not modelled: zero_optimization.offload_param.device
3|ZERO, "offload_optimizer": {"device": "nvme", "nvme_path": "/x"}}|not modelled: zero_optimization.offload_optimizer.device
3|ZERO, "offload_param": {"device": "nvme"}}|not modelled: zero_optimization.offload_param.device
3|ZERO}, "sequence_parallel_size": 4|--framework pytorch-fsdp2 --cp-comm alltoall --gpus 32 --strategy 3d --tp 1 --pp 1 --cp 4 --zero 3 --global-batch 256 --micro-batch 4
2|ZERO}, "communication_data_type": "bf16"|--gradient-compression bf16
2|ZERO}, "communication_data_type": "fp32"|not modelled: communication_data_type
T
printf 'accelerate launch --num_machines 2 --num_processes 16 train.py --model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 1 --max_seq_length 4096 --bf16 --fsdp "full_shard auto_wrap offload"\n' > "$SCRATCH/trainer.sh"
plan trainer.sh launch '' '--framework pytorch-fsdp .*--offload weights'
printf '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nenable_cpu_offload = true\n[parallelism]\nfsdp_reshard_after_forward = "%s"\n' never > "$SCRATCH/host.toml"
plan host.toml torchtitan '--ranks 32' '--strategy zero2 --offload optimizer'
said 'gathered weights stay' 'offload of FSDP that keeps gathered weights'
sed 's/never/default/' "$SCRATCH/host.toml" > "$SCRATCH/shards.toml"
plan shards.toml torchtitan '--ranks 32' '--strategy zero3 --offload weights'
# NeMo's number of layers counts only where its switch is on; options without it are Megatron-LM's
megatron='torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --vocab-size 32000 --micro-batch-size 1 --global-batch-size 8 --bf16 --cpu-offloading-num-layers 8'
echo "$megatron" > "$SCRATCH/layers.sh"
plan layers.sh megatron '' '--offload activations --offload-fraction 0.25'
echo "$megatron --cpu-offloading false" > "$SCRATCH/switch.sh"
plan switch.sh megatron '' '--tp 1'
hasnt 'a switch that is off' '--offload'
runs=tests/fixtures/runs
printf 'horovodrun -np 16 -H a:8,b:8 python train.py --model resnet50 --batch-size 64 --fp16-allreduce\n' > "$SCRATCH/horovod.sh"
runs=$SCRATCH
plan horovod.sh launch '' '--workload resnet50' '--framework horovod-pytorch' '--gpus 16' '--global-batch 1024'
said 'what changes the gradients is reported' 'not modelled: fp16_allreduce'
runs=tests/fixtures/runs

# ---- words that people use
run predict -s dgx-h100 -w llama3_8b -n 1 --optimizer adamw --precision bfloat16 -f fsdp
check 'adamw, bfloat16, fsdp' 0
cp "$SCRATCH/out" "$SCRATCH/words"
run predict -s dgx-h100 -w llama3_8b -n 1 --optimizer adam --precision bf16 -f pytorch-fsdp
if [ "$(grep '^ pytorch-fsdp' "$SCRATCH/words")" = "$(grep '^ pytorch-fsdp' "$SCRATCH/out")" ]; then echo 'ok they are adam, bf16, pytorch-fsdp'; else bad 'they are adam, bf16, pytorch-fsdp' "$(cat "$SCRATCH/words")"; fi

for words in '-s p4d.24xlarge -w gpt2' '-s DGX_A100-40 -w resnet-50' '-s 8xH100 -w gpt2-xl' '-s dgx-h100 -w BertForPreTraining'; do
    # shellcheck disable=SC2086
    run predict $words -n 1 -f DDP
    check "names as people write them: $words" 0
done
run predict -s a3-highgpu-8g -w gpt2 -n 1
check 'an instance without a file' 2 'give -s 8xh100_sxm'

# ---- a file without a kind is recognized
recognized() { # recognized FILE KIND
    run import "$1" --system dgx-h100
    if grep -q "read as $2" "$SCRATCH/err"; then echo "ok $1 is read as $2"; else bad "$1 is read as $2" "$(cat "$SCRATCH/err")"; fi
}
for file in "$runs"/megatron*.bash "$runs/megatron_argument_dump.log" "$runs/megatron_functional.yaml"; do recognized "$file" megatron; done
for file in "$runs"/titan*; do recognized "$file" torchtitan; done
recognized "$runs/nemo_launcher_form.yaml" nemo
recognized "$runs/deepspeed.json" deepspeed
recognized "$runs/accelerate.yaml" accelerate
recognized "$runs/composer.yaml" composer
recognized "$runs/maxtext.yml" maxtext
recognized tests/fixtures/config/case_opt.json config
recognized tests/fixtures/bench/nccl_torn_row.log nccl-tests
recognized tests/fixtures/bench/osu_nccl.txt osu
run import README.md
check 'a file that no reader knows' 2 "cannot import 'README.md'"

# ---- YAML: Megatron's tests, NeMo's resolvers, sections and recipes
if "$DLMODEL" -v --version 2> /dev/null | grep -q libyaml; then
    plan megatron_functional.yaml megatron '--ranks 8' 'layers=24' '--tp 4' '--zero 1' '--global-batch 64'
    plan nemo_launcher_form.yaml nemo '' 'layers=24,hidden=4096' 'ffn=16384' 'vocab=50304' '--nodes 16 --devices-per-node 8' '--tp 1' '--zero 1' \
        '--recompute selective' '--global-batch 2048'
    plan nemo_sched_name.yaml nemo '' '--zero 1'
    refused bridge_override.yaml nemo '--ranks 8' 'recipe .*--workload'
    plan bridge_override.yaml nemo '--ranks 8 --workload llama3_8b' '--workload llama3_8b' '--set seq=4096' '--tp 2' '--global-batch 8'
    plan accelerate.yaml accelerate '--workload llama2_7b' '--framework pytorch-fsdp' '--nodes 2 --devices-per-node 8' '--zero 3 --zero-group 8' '--recompute full'
    sed -e 's/offload_params: false/offload_params: true/' -e 's/fsdp_sharding_strategy: HYBRID_SHARD/fsdp_reshard_after_forward: false/' "$runs/accelerate.yaml" > "$SCRATCH/host.yaml"
    runs=$SCRATCH
    plan host.yaml accelerate '--workload llama2_7b' '--offload optimizer .*--zero 2 '
    printf '%s\n' 'compute_environment: LOCAL_MACHINE' 'distributed_type: DEEPSPEED' 'num_machines: 1' 'num_processes: 8' 'deepspeed_config:' '  zero_stage: 3' '  offload_optimizer_device: cpu' '  offload_param_device: cpu' > "$SCRATCH/zero.yaml"
    plan zero.yaml accelerate '--workload llama2_7b' '--framework deepspeed-zero3 --offload weights'
    runs=tests/fixtures/runs
    plan composer.yaml composer '--ranks 32' 'gpt:.*ffn=8192,hidden=2048,layers=24,heads=16,vocab=50368,seq=2048' '--zero 3' '--global-batch 512 --micro-batch 4'
    plan maxtext.yml maxtext '--ranks 32' '--workload llama2_70b --framework jax-maxtext' '--tp 4' '--set seq=4096' '--precision fp8' '--global-batch 128'
    maxtext() { # maxtext NAME REFUSAL-OR-PATTERN LINE...: a decoder of MaxText
        name=$1 expected=$2
        shift 2
        printf '%s\n' 'base_emb_dim: 2048' 'base_num_decoder_layers: 24' 'base_num_query_heads: 32' 'base_num_kv_heads: 4' 'base_mlp_dim: 768' \
            'per_device_batch_size: 4' "decoder_block: $name" "$@" > "$SCRATCH/$name.yml"
        run import maxtext "$SCRATCH/$name.yml" --system dgx-h100 --ranks 8
        case $expected in
            *'the model has'* | *'no workload'*) check "MaxText: $name" 3 "$expected" ;;
            *) has "MaxText: $name" "$expected" ;;
        esac
    }
    mesh() { # mesh OPTIONS PATTERN LINE...: what MaxText's axes and batch say
        options=$1 expected=$2
        shift 2
        printf '%s\n' 'model_name: llama2-7b' "$@" > "$SCRATCH/mesh.yml"
        plan mesh.yml maxtext "$options" "$expected"
    }
    runs=$SCRATCH
    mesh '' '--gpus 128 --zero-group 8 --global-batch 512' 'dcn_data_parallelism: 16' 'ici_fsdp_parallelism: 8' 'per_device_batch_size: 4'
    refused mesh.yml maxtext '--ranks 64' 'its mesh is of 128 devices, not of 64'
    mesh '--ranks 8' '--gpus 8 --zero-group 4 --global-batch 96' 'dcn_data_parallelism: 1' 'ici_data_parallelism: 2'
    refused mesh.yml maxtext '' 'its mesh is of a multiple of 2 devices: give them by --ranks N'
    mesh '' '--gpus 16 --zero 0 --global-batch 192' 'dcn_data_parallelism: 2' 'ici_data_parallelism: 8' 'ici_fsdp_parallelism: 1'
    mesh '' '--gpus 8 --strategy 3d --tp 8 --pp 1 --cp 1 --zero 0 --global-batch 4 ' 'per_device_batch_size: 0.5' \
        'ici_tensor_parallelism: 8' 'dcn_data_parallelism: 1' 'ici_fsdp_parallelism: 1'
    mesh '--ranks 8' '--mtp-layers 2' 'mtp_num_layers: 2'
    mesh '' '--recompute selective' 'remat_policy: minimal_offloaded'
    said 'what a policy keeps' 'remat_policy minimal_offloaded keeps .*on the host; predicted as selective'
    printf '%s\n' 'decoder_block: llama2' 'base_emb_dim: 2048' 'base_num_decoder_layers: 4' 'use_qk_norm: true' 'attention: dot_product' > "$SCRATCH/parts.yml"
    plan parts.yml maxtext '' 'flash=0'
    said 'a norm that the decoder lacks' 'not modelled: use_qk_norm'
    runs=tests/fixtures/runs
    maxtext gemma2 'layers=48,.*post_norm=1,full_every=2,mlp=geglu,.*window=4096' 'mlp_activations: [gelu, linear]' 'sliding_window_size: 4096'
    maxtext qwen3_moe 'head_norm=1,.*head_dim=128,experts=128,topk=8,expert_ffn=768' 'num_experts: 128' 'num_experts_per_tok: 8' 'base_moe_mlp_dim: 768'
    maxtext deepseek 'head_dim=192,q_rank=1536,kv_rank=512,rotary=64,value_dim=128' 'attention_type: mla' 'q_lora_rank: 1536'
    maxtext gpt3 'norm=layernorm,pos=learned,.*mlp=gelu,.*positions=4096' 'mlp_activations: [gelu]' 'trainable_position_size: 4096'
    maxtext envy 'no workload has the layers of a decoder of "envy"'
    maxtext qwen3_next 'gdn_num_key_heads: the model has gated linear attention layers' 'gdn_num_key_heads: 16'
    plan megatron_deepspeed.bash megatron '' '--framework megatron-deepspeed' '--nodes 2 --devices-per-node 4' '--zero 2' '--global-batch 32' \
        '--precision fp16' '--recompute full'
else
    run import nemo "$runs/nemo.yaml"
    check 'YAML without libyaml' 6 'built without libyaml.*: install libyaml-dev'
    echo 'skip YAML of runs: built without libyaml'
fi

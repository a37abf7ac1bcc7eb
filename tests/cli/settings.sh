#!/bin/sh
# Settings of a plan that replace what the framework's release or the system does (F-PLAN-SETTINGS).
set -u
. "${0%/*}/lib.sh"

# field NAME OPTIONS... - a number of the one predicted result
field() {
    name=$1
    shift
    "$DLMODEL" predict "$@" --json 2> /dev/null | sed -n "s/^ *\"$name\": *\\([^,]*\\),*\$/\\1/p" | head -n 1
}
holds() { # holds NAME EXPRESSION of awk
    if [ "$(awk "BEGIN { print ($2) ? 1 : 0 }" 2> /dev/null)" = 1 ]; then echo "ok $1"; else echo "not ok $1: $2"; fi
}
vgg='--system dgx1-v100 --workload vgg16 --framework pytorch-ddp --nodes 8 --devices-per-node 1 --batch-per-device 32 --precision fp32'

# Without overlap all communication is exposed; with it, the release's own way.
# shellcheck disable=SC2086
{
    comm=$(field comm_s $vgg)
    off=$(field iteration_s $vgg --overlap-grad-reduce 0) open=$(field iteration_s $vgg) on=$(field iteration_s $vgg --overlap-grad-reduce 1)
    exposed=$(field exposed_comm_s $vgg --overlap-grad-reduce 0)
    holds 'overlap of DDP is its own way' "$on == $open"
    holds 'without overlap the collectives come after backward' "$exposed > 0.9 * $comm && $off > $open + 0.8 * $comm"

}
iris="--system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 8 --devices-per-node 1 --batch-per-device 32 --precision fp32"
# 138,357,544 gradients of 4 bytes on a ring of 8 over a connection of 5 GB/s: 2 * 7/8 * 553.4 MB / 5 GB/s = 0.1937 s
# shellcheck disable=SC2086
{
    tcp=$(field comm_s $iris --transport tcp) verbs=$(field comm_s $iris)
    holds 'TCP by hand' "$tcp >= 0.1937 && $tcp < 1.08 * 0.1937"
    holds 'TCP is slower than verbs' "$tcp > $verbs"
    # half the bytes of each bucket: the time of the ring halves but for latencies
    narrow=$(field comm_s $iris --transport tcp --gradient-compression fp16)
    holds 'fp16 on the wire halves the ring' "$narrow > 0.5 * 0.1937 && $narrow < 0.56 * $tcp"
}
for system in dgx1-v100 iris-v100 dgx-h100 abci-v100; do
    for gpus in 1 4; do
        o="--system $system --workload vgg16 --framework pytorch-ddp --nodes 4 --devices-per-node $gpus --batch-per-device 32 --precision fp32"
        # shellcheck disable=SC2086
        holds "TCP never beats verbs without GPUDirect on $system, $gpus devices" "$(field comm_s $o --transport tcp) >= $(field comm_s $o --gpudirect 0) * 0.999999"
    done
done

nodes='--system iris-v100 --workload vgg16 --framework horovod-pytorch --nodes 8 --batch-per-device 32 --precision fp32'
# shellcheck disable=SC2086
run explain --all $nodes --allreduce hierarchical
check 'hierarchical all-reduce' 0
has 'explain names the hierarchical all-reduce' 'F-HIERARCHICAL-SYNC'
# shellcheck disable=SC2086
run explain --all $nodes --allreduce flat
check 'flat all-reduce' 0
hasnt 'a flat one is none' 'F-HIERARCHICAL-SYNC'

# What the release lacks is a what-if; exports refuse it.
llama='--system dgx-h100 --workload llama3_8b --framework megatron-core --nodes 4 --tp 4 --global-batch 128 --micro-batch 1 --sequence-parallel'
# shellcheck disable=SC2086
{
    run predict $llama --gradient-compression bf16
    check 'Megatron-Core has no compression' 0 'a what-if: megatron-core .* has no --gradient-compression bf16'
    run predict $llama --overlap-grad-reduce 0
    check 'its overlap is an option' 0
    says 'an option of the release is no what-if' test -z "$(grep 'a what-if' "$SCRATCH/err")"
    run predict $llama --gradient-compression bf16 --export megatron
    check 'an export refuses what the release lacks' 2 'has no --gradient-compression bf16'
    holds 'tensor overlap saves' "$(field iteration_s $llama --tp-comm-overlap 0) > 1.02 * $(field iteration_s $llama)"
}
# Recomputation of some layers: the mean of none and full by their share (F-RECOMPUTE-SOME): 4 of the 16 layers of each of two stages; every second one.
# shellcheck disable=SC2086
{
    two='--system dgx-h100 --workload llama3_8b --framework megatron-core --nodes 1 --tp 4 --pp 2 --global-batch 16 --micro-batch 1 --precision bf16'
    none=$(field iteration_s $two --recompute none) full=$(field iteration_s $two --recompute full)
    few=$(field iteration_s $two --recompute-layers 4) half=$(field iteration_s $two --recompute-every 2)
    holds '4 of 16 layers take a quarter of full recomputation' "$few - ($none + ($full - $none) / 4) < 1e-6 * $none && ($none + ($full - $none) / 4) - $few < 1e-6 * $none"
    holds 'every second layer takes half of it' "$half - ($none + $full) / 2 < 1e-6 * $none && ($none + $full) / 2 - $half < 1e-6 * $none"
    # A layer of 8192 tokens on 4 ranks keeps of its MLP what fc1 (2 * 14336 channels) and SwiGLU write, 2 bytes each: 16 layers of 2 micro-batches hold 5.637 GB; less one layer's, while it is repeated.
    kept=$(field activations_bytes $two --recompute none) mlp=$(field activations_bytes $two --recompute mlp)
    holds 'memory of the MLP by hand' "$kept - $mlp > 0.999 * (32 - 1) * 8192 * 3 * 14336 / 4 * 2 && $kept - $mlp < 1.001 * 32 * 8192 * 3 * 14336 / 4 * 2"
    holds 'attention alone is selective recomputation' "$(field iteration_s $two --recompute attention) == $(field iteration_s $two --recompute selective)"
    # shellcheck disable=SC2016
    printf 'id,source,system,framework,workload,precision,nodes,devices_per_node,global_batch,micro_batch,tp,pp,metric,value,unit,recompute,recompute_layers\na,x,dgx-h100,megatron-core,llama3_8b,bf16,1,8,16,1,4,2,iteration,1,s,full,4\nb,x,dgx-h100,megatron-core,llama3_8b,bf16,1,8,16,1,4,2,iteration,1,s,"mlp,norm",\n' > "$SCRATCH/some.csv"
    both=$("$DLMODEL" compare "$SCRATCH/some.csv" --rows --json 2> /dev/null | sed -n 's/^ *"predicted": *\([^,]*\),*$/\1/p' | tr '\n' ' ')
    holds 'columns of recomputation are the options' "\"$both\" == \"$few $(field iteration_s $two --recompute mlp,norm) \""
    holds 'all modules stay below full recomputation' "$(field iteration_s $two --recompute attention,mlp,norm) < $full"
    # A layer of DeepSeek-V3 keeps for each token what a norm writes of both latents (1536, 512), queries (128 * 192), keys and values (128 * (192 + 128)), 2 bytes each: the first of 16 stages holds 16 micro-batches of 4 layers; less what a stage repeats at once.
    deep='--system dgx-b200 --workload deepseek_v3 --framework megatron-core --nodes 32 --tp 1 --pp 16 --ep 8 --etp 1 --global-batch 4096 --micro-batch 1 --zero 1 --precision bf16 --attention flash'
    kept=$(field activations_bytes $deep --recompute none) latent=$(field activations_bytes $deep --recompute latent)
    holds 'memory of queries, keys and values of latents by hand' "$kept - $latent > 58 * 4096 * 67584 * 2 && $kept - $latent < 1.001 * 64 * 4096 * 67584 * 2"
    run predict $two --recompute latent
    check 'a network without latents' 2 '--recompute latent: llama3_8b has no latent attention'
    run predict $two --recompute moe
    check 'a dense network has no experts' 2 '--recompute moe: llama3_8b has no mixture of experts'
    run predict $two --recompute mlp,nothing
    check 'an unknown module' 2 '--recompute: expected one of none, selective, full'
    run predict $two --recompute none --recompute-layers 4
    check 'some layers of none' 2 'recompute-layers .* go with --recompute full'
    run predict --system dgx-h100 --workload resnet50 --recompute-layers 4 --framework pytorch-ddp
    check 'layers of a network without equal ones' 2 'recompute'
    run predict --system dgx-h100 --workload llama3_8b --framework pytorch-fsdp2 --zero 3 --recompute-layers 4
    check 'a release without it' 0 'a what-if: pytorch-fsdp2 .* --recompute-layers'
}
# Graphs: a step of 512 tokens is issued more slowly than it is computed; a graph of the iteration leaves kernels, messages and the fixed time of the host, one of each layer's passes little more.
# shellcheck disable=SC2086
{
    short='--system dgx-h100 --workload llama3_8b --framework megatron-core --nodes 1 --tp 8 --global-batch 8 --micro-batch 1 --set seq=512 --sequence-parallel'
    eager=$(field iteration_s $short --cuda-graphs none) layer=$(field iteration_s $short --cuda-graphs layer) whole=$(field iteration_s $short --cuda-graphs iteration)
    kernels=$(field compute_s $short) messages=$(field comm_s $short)
    holds 'a graph of the iteration leaves kernels and messages' "$whole >= $kernels + $messages && $whole < 1.15 * ($kernels + $messages)"
    # 8 micro-batches of 32 layers: a launch of 5 us and the call for each pass of a layer
    holds 'graphs of layers take a launch for each pass' "$layer >= $whole && $layer < $whole + 8 * 32 * 2 * 10e-6"
    holds 'the host issues 1 kernel after another' "$eager > 2 * $layer"
    holds 'none is the way of a release without graphs' "$eager == $(field iteration_s $short)"
    run predict $short --cuda-graphs layer --recompute full
    check 'graphs of layers do not recompute all' 2 'cuda-graphs layer: not with --recompute full'
    run predict --system dgx-h100 --workload mixtral_8x7b --framework megatron-core --nodes 1 --cuda-graphs iteration
    check 'dropless experts are in no graph of the iteration' 2 'take every token, whose number the host waits for'
    run predict --system dgx-h100 --workload resnet50 --framework pytorch-ddp --cuda-graphs layer
    check 'graphs of layers need a stack' 2 'cuda-graphs layer: goes with a stack'
}
# Experts' exchanges behind another micro-batch: all of them hide but those of one of m. Published for Qwen3-30B-A3B on 16 H100 (4,096 tokens, 1,024 samples): 24.71 s to 20.99 s by HybridEP, with graphs; 41.25 s to 31.31 s by all-to-all.
# shellcheck disable=SC2086
{
    qwen='--system dgx-h100 --workload qwen3_30b_a3b --set seq=4096 --framework megatron-core --nodes 2 --tp 1 --pp 1 --ep 16 --micro-batch 1 --precision bf16 --zero 1 --recompute none'
    holds 'one micro-batch hides nothing' "$(field iteration_s $qwen --global-batch 16 --moe-overlap) == $(field iteration_s $qwen --global-batch 16)"
    open=$(field exposed_comm_s $qwen --global-batch 64 --moe-dispatch hybridep) on=$(field exposed_comm_s $qwen --global-batch 64 --moe-dispatch hybridep --moe-overlap)
    rest=$(field exposed_comm_s $qwen --global-batch 64 --moe-dispatch hybridep --set links.inter.bandwidth=1e6GB/s --set links.intra.bandwidth=1e6GB/s)
    holds 'of 4 micro-batches a quarter stays exposed' "$on > ($open - $rest) / 4 && $on < $open / 4 + 0.1 * $open"
    off=$(field iteration_s $qwen --global-batch 1024 --moe-dispatch hybridep --cuda-graphs layer) on=$(field iteration_s $qwen --global-batch 1024 --moe-dispatch hybridep --cuda-graphs layer --moe-overlap)
    holds 'published step without overlap' "$off > 0.8 * 24.71 && $off < 1.2 * 24.71"
    holds 'published step with overlap' "$on > 0.75 * 20.99 && $on < 1.2 * 20.99"
    # NCCL's exchange occupies a multiprocessor of 132 for each of its 18 channels inside a node
    off=$(field iteration_s $qwen --global-batch 1024 --moe-dispatch alltoall) on=$(field iteration_s $qwen --global-batch 1024 --moe-dispatch alltoall --moe-overlap)
    holds 'published step by all-to-all' "$off > 0.85 * 41.25 && $off < 1.15 * 41.25"
    # Predicted 25 % too fast (docs/settings.md): its permutation was not fused, and what kernels cost a concurrent exchange is not modelled. The interval says so.
    holds 'the interval holds the published step with overlap' "$(field iteration_low_s $qwen --global-batch 1024 --moe-dispatch alltoall --moe-overlap) < 31.31 && $(field iteration_high_s $qwen --global-batch 1024 --moe-dispatch alltoall --moe-overlap) > 31.31"
    taken=$(awk "BEGIN { print $(field compute_s $qwen --global-batch 1024 --moe-dispatch alltoall --moe-overlap) - $(field compute_s $qwen --global-batch 1024 --moe-dispatch alltoall) }")
    hidden=$(awk "BEGIN { print $(field exposed_comm_s $qwen --global-batch 1024 --moe-dispatch alltoall) - $(field exposed_comm_s $qwen --global-batch 1024 --moe-dispatch alltoall --moe-overlap) }")
    holds 'multiprocessors of the exchange by hand' "$taken > 0.99 * $hidden * 18 / 132 && $taken < 1.01 * $hidden * 18 / 132"
    run predict $two --moe-overlap
    check 'a dense network exchanges no tokens' 2 '--moe-overlap: llama3_8b has no mixture'
    run predict ${qwen% --recompute none} --global-batch 64 --moe-overlap --recompute full
    check 'no full recomputation behind another micro-batch' 2 'moe-overlap: not with --recompute full'
}
# Adapters of rank 16 beside QKV (8192 to 10240 channels) and the output projection (8192 to 8192) of 80 layers: 44,564,480 parameters with fp32 gradients; MLPerf's step of Llama-2-70B took 1.543 s on 8 B200, and 3.10 to 3.19 s on 8 H200 with 2 context ranks.
# shellcheck disable=SC2086
{
    lora="--workload llama2_70b --set seq=8192 --framework megatron-core --nodes 1 --tp 1 --pp 1 --micro-batch 1 --global-batch 8 --precision fp8 --zero 1 --recompute none --overlap-grad-reduce 0 --overlap-param-gather 0"
    holds 'parameters of adapters by hand' "$(field gradients_bytes --system dgx-b200 $lora --cp 1 --lora-rank 16) == 4 * 80 * 16 * (8192 + 10240 + 8192 + 8192)"
    holds 'those beside the MLP, too' "$(field gradients_bytes --system dgx-b200 $lora --cp 1 --lora-rank 16 --lora-targets qkv,proj,fc1,fc2) == 4 * 80 * 16 * (8192 + 10240 + 8192 + 8192 + 8192 + 2 * 28672 + 28672 + 8192)"
    b200=$(field iteration_s --system dgx-b200 $lora --cp 1 --lora-rank 16) h200=$(field iteration_s --system h200-8x $lora --cp 2 --lora-rank 16)
    holds 'published step on B200' "$b200 > 0.9 * 1.543 && $b200 < 1.1 * 1.543"
    eight=$(echo "$lora" | sed 's/--nodes 1/--nodes 8/')
    # MLPerf's context ranks exchange heads; 8 of them, graphs: 0.256 s on 64 B200
    heads=$(field iteration_s --system h200-8x $lora --cp 2 --lora-rank 16 --cp-comm alltoall) many=$(field iteration_s --system dgx-b200 $eight --cp 8 --lora-rank 16 --cp-comm alltoall --cuda-graphs layer)
    holds 'published step on H200, heads exchanged' "$heads > 0.9 * 3.10 && $heads < 1.1 * 3.19"
    holds 'published step on 64 B200, heads exchanged' "$many > 0.9 * 0.256 && $many < 1.1 * 0.256"
    holds 'published step on H200' "$h200 > 0.9 * 3.10 && $h200 < 1.1 * 3.19"
    # Kept of a layer and token, in bytes for each of 8192 channels: 1 operand of qkv, 1 mask, 1.25 and 1 + 1/32 in attention, 3 adapter of the
    # projection, 2 each before the norms, 7 before the activation; the logits 15.6 once. MLPerf measured 168.8 GB on 8 B200, allocated.
    stored=$(field activations_bytes --system dgx-b200 $lora --cp 1 --lora-rank 16 --fp8-store attention,mlp)
    holds 'activations kept in 8 bits by hand' "$stored > 0.98 * 8192 * 8192 * (80 * (18.25 + 1/32) + 15.6) && $stored < 1.03 * 8192 * 8192 * (80 * (18.25 + 1/32) + 15.6)"
    held=$(awk "BEGIN { print $stored + $(field weights_bytes --system dgx-b200 $lora --cp 1 --lora-rank 16 --fp8-store attention,mlp) }")
    holds 'published memory on B200' "$held > 0.95 * 168.8e9 && $held < 1.05 * 168.8e9"
    run predict --system dgx-h100 --nodes 1 --workload llama3_8b --framework megatron-core --precision bf16 --fp8-store mlp
    check 'kept in 8 bits without 8-bit training' 2 'fp8-store: goes with --precision fp8'
    # no pass for gradients of weights, which takes a third of the products
    holds 'frozen weights save a third at most' "$b200 < 0.85 * $(field iteration_s --system dgx-b200 $lora --cp 1) && $b200 > 0.6 * $(field iteration_s --system dgx-b200 $lora --cp 1)"
    # FSDP shares out fp32 weights, frozen ones too: 8,030,261,248 and 32 layers' adapters of 8 * (4096 + 6144 + 2 * 4096) on 8 GPUs
    fsdp="--system dgx-h100 --workload llama3_8b --framework pytorch-fsdp2 --nodes 1 --global-batch 16 --tp 1 --pp 1 --cp 1 --micro-batch 1 --zero 3"
    holds 'frozen weights are sharded by hand' "$(field weights_bytes $fsdp --lora-rank 8) == 4 / 8 * (8030261248 + 32 * 8 * (4096 + 6144 + 2 * 4096))"
    run predict --system dgx-b200 $lora --lora-targets qkv
    check 'targets without adapters' 2 'lora-targets: goes with --lora-rank'
    run predict --system dgx-b200 $lora --lora-rank 16 --lora-targets qkv,nothing
    check 'an unknown target' 2 'lora-targets: expected one of qkv, proj, fc1, fc2'
    run predict --system dgx-b200 $lora --lora-rank 16 --export megatron
    check 'a script of pretraining has no adapters' 2 'lora'
}
# Frozen layers (F-FROZEN). ResNet-50's classifier has 2048 x 1000 weights and 1000 biases; a layer of Llama 3 8B has 218,112,000, its embedding 128256 x 4096 of all 8,030,261,248.
# shellcheck disable=SC2086
{
    resnet="--system dgx1-v100 --workload resnet50 --framework pytorch-ddp --nodes 1 --batch-per-device 64 --precision fp32"
    holds 'gradients of a classifier by hand' "$(field gradients_bytes $resnet --frozen-layers backbone) == 4 * (2048 * 1000 + 1000)"
    holds 'weights stay' "$(field weights_bytes $resnet --frozen-layers backbone) == $(field weights_bytes $resnet)"
    # input, features and two tensors of logits; forward alone is about a third of a step
    kept=$(field activations_bytes $resnet --frozen-layers backbone) all_s=$(field iteration_s $resnet)
    holds 'a frozen backbone keeps its result alone' "$kept >= 64 * 4 * (3 * 224 * 224 + 2048) && $kept <= 64 * 4 * (3 * 224 * 224 + 2048 + 2 * 1000)"
    backbone_s=$(field iteration_s $resnet --frozen-layers backbone) head_s=$(field iteration_s $resnet --frozen-layers head)
    holds 'a frozen backbone has no backward pass' "$backbone_s > 0.28 * $all_s && $backbone_s < 0.36 * $all_s"
    holds 'a frozen head passes gradients on' "$head_s > 0.98 * $all_s && $head_s < $all_s"
    # conv1 with bn1 and the 10 convolutions of layer1 are the first 11 layers with weights
    holds 'names and numbers say the same' "$(field iteration_s $resnet --frozen-layers conv1,bn1,layer1) == $(field iteration_s $resnet --frozen-layers 11)"
    holds 'gradients of frozen layers are not sent' "$(field gradients_bytes $fsdp --frozen-layers 8) == 4 / 8 * (8030261248 - 128256 * 4096 - 8 * 218112000)"
    tp="--system dgx-h100 --workload llama3_8b --framework megatron-core --nodes 1 --tp 4 --micro-batch 1 --global-batch 16 --precision bf16"
    eight=$(field iteration_s $tp --pp 1 --frozen-layers 8) sixteen=$(field iteration_s $tp --pp 1 --frozen-layers 16) most=$(field iteration_s $tp --pp 1 --frozen-layers 24)
    holds 'each layer saves as much' "$eight - $sixteen > 0.99 * ($sixteen - $most) && $eight - $sixteen < 1.01 * ($sixteen - $most)"
    holds 'one trained layer is a stack' "$(field iteration_s $tp --pp 1 --frozen-layers 31) < $most"
    run predict $tp --pp 2 --frozen-layers 16
    check 'frozen layers of a pipeline' 2 'frozen-layers: with 2 pipeline stages at most 15 layers'
    run predict $resnet --frozen-layers 99
    check 'more layers than there are' 2 'resnet50 has 54 layers, got 99'
    run predict $resnet --frozen-layers layer9
    check 'no such block' 2 "expected a number of first layers, backbone, head, or names .* got 'layer9'"
    run predict $tp --pp 1 --frozen-layers 8 --lora-rank 8
    check 'adapters freeze all' 2 'frozen-layers: --lora-rank freezes all layers'
    run predict $tp --pp 1 --frozen-layers 8 --export megatron
    check 'no script freezes layers' 2 'frozen-layers'
    printf 'id,source,system,framework,workload,precision,nodes,devices_per_node,batch_per_device,metric,value,unit,frozen_layers\na,made,dgx1-v100,pytorch-ddp,resnet50,fp32,1,8,64,iteration,1,s,backbone\n' > "$SCRATCH/frozen.csv"
    column=$("$DLMODEL" compare "$SCRATCH/frozen.csv" --json 2> /dev/null | sed -n 's/^ *"predicted": *\([^,]*\),*$/\1/p' | head -n 1)
    holds 'frozen_layers is a column' "\"$column\" == \"$backbone_s\""
}
# Blocks of networks that are no transformers (F-RECOMPUTE): ResNet-50's 16 blocks read 5,619,712 elements of an image; a repeated forward pass is a third of a step at most.
# shellcheck disable=SC2086
{
    kept=$(field activations_bytes $resnet --recompute full) all_s=$(field iteration_s $resnet) full_s=$(field iteration_s $resnet --recompute full)
    holds 'inputs of blocks are kept' "$kept > 64 * 4 * 5619712 && $kept < 0.55 * $(field activations_bytes $resnet)"
    holds 'blocks run forward twice' "$full_s > 1.25 * $all_s && $full_s < 1.34 * $all_s"
    run predict ${resnet%%--workload*} --workload alexnet --framework pytorch-ddp --nodes 1 --batch-per-device 64 --recompute full
    check 'no blocks to recompute' 2 'alexnet has no numbered blocks'
}
# DeepSpeed's Adam moves 30 bytes a parameter on the host, PyTorch's 80: 50 x 8,030,261,248 bytes at 614.4 GB/s
# shellcheck disable=SC2086
{
    ds="--system dgx-h100 --workload llama3_8b --framework deepspeed-zero2 --nodes 1 --micro-batch 1 --global-batch 8 --precision bf16 --recompute full --offload optimizer"
    saved=$(awk "BEGIN { print $(field iteration_s $ds --set host_update_bytes=80) - $(field iteration_s $ds) }")
    holds 'one pass over the states by hand' "$saved > 0.999 * 50 * 8030261248 / 614.4e9 && $saved < 1.001 * 50 * 8030261248 / 614.4e9"
}
# Optimizer states on the host (F-OFFLOAD): 30.5e9 parameters of Qwen3-30B-A3B on 16 ranks. Published: 3.8 GB less for each 25 %; of a step of 623 ms 0.56 s more at 25 %, 1.99 s at 100 %.
# shellcheck disable=SC2086
{
    off='--system dgx-h100 --workload qwen3_30b_a3b --set seq=4096 --framework megatron-core --nodes 2 --tp 2 --sequence-parallel --pp 2 --ep 4 --micro-batch 1 --precision bf16 --zero 1 --recompute none --global-batch 8'
    step=$(field iteration_s $off) quarter=$(field iteration_s $off --offload optimizer --offload-fraction 0.25) all=$(field iteration_s $off --offload optimizer)
    less=$(awk "BEGIN { print $(field optimizer_bytes $off) - $(field optimizer_bytes $off --offload optimizer --offload-fraction 0.25) }")
    holds 'published memory of a quarter' "$less > 0.98 * 3.8e9 && $less < 1.02 * 3.8e9"
    holds 'published time of a quarter' "$quarter - $step > 0.85 * 0.56 && $quarter - $step < 1.15 * 0.56"
    holds 'published time of all' "$all - $step > 0.85 * 1.99 && $all - $step < 1.15 * 1.99"
    # 8 ranks of a node with 1.909e9 parameters each, 80 bytes, 614.4 GB/s; 4 bytes out and 2 back at 52 GB/s; less the device's own update
    holds 'the step of the host by hand' "$all - $step > 8 * 1.909e9 * 80 / 614.4e9 && $all - $step < 8 * 1.909e9 * 80 / 614.4e9 + 1.909e9 * 6 / 52e9 + 0.01"
    holds 'a step between' "$quarter - $step < 0.26 * ($all - $step) && $quarter - $step > 0.24 * ($all - $step)"
    holds 'activations of half the layers' "$(field activations_bytes $off --offload activations --offload-fraction 0.5) < 0.6 * $(field activations_bytes $off)"
    holds 'slow links to the host show' "$(field iteration_s $off --offload activations --set host.copy_bandwidth=5GB/s) > 3 * $step"
    fsdp='--system dgx-h100 --workload llama3_8b --framework pytorch-fsdp2 --nodes 1 --zero 3 --recompute full --global-batch 16'
    holds 'shards on the host' "$(field weights_bytes $fsdp --offload weights) == 0 && $(field iteration_s $fsdp --offload weights) > $(field iteration_s $fsdp)"
    run predict $fsdp --offload weights --set host.memory_bytes=10GB
    check 'a host that is too small' 2 'offload: 128.5 GB on the host of each node, which has 10 GB'
    run predict $off --offload weights
    check 'weights that are not sharded' 2 'offload weights: goes with --zero 3'
    run predict $off --offload-fraction 0.5
    check 'a share of nothing' 2 'offload-fraction: goes with --offload'
    run predict $fsdp --offload nothing
    check 'what is not' 2 'offload: expected one of optimizer, activations, weights'
    printf 'id,source,system,framework,workload,precision,nodes,devices_per_node,global_batch,micro_batch,tp,pp,ep,metric,value,unit,recompute,zero,sequence_parallel,strategy,offload,offload_fraction\n' > "$SCRATCH/host.csv"
    for cells in ',' 'optimizer,0.25' 'optimizer,' '"optimizer,activations",0.5'; do
        echo "a,x,dgx-h100,megatron-core,mixtral_8x7b,bf16,2,8,64,1,2,1,4,iteration,1,s,none,1,1,expert,$cells" >> "$SCRATCH/host.csv"
    done
    columns=$("$DLMODEL" compare "$SCRATCH/host.csv" --rows --json 2> "$SCRATCH/err" | sed -n 's/^ *"predicted": *\([^,]*\),*$/\1/p' | head -n 4 | tr '\n' ' ')
    mixtral='--system dgx-h100 --workload mixtral_8x7b --framework megatron-core --nodes 2 --tp 2 --sequence-parallel --pp 1 --ep 4 --strategy expert --micro-batch 1 --precision bf16 --zero 1 --recompute none --global-batch 64'
    options="$(field iteration_s $mixtral) $(field iteration_s $mixtral --offload optimizer --offload-fraction 0.25) $(field iteration_s $mixtral --offload optimizer) $(field iteration_s $mixtral --offload optimizer,activations --offload-fraction 0.5) "
    holds 'the columns offload and offload_fraction are the options' "\"$columns\" == \"$options\""
    sed -e '1s/$/,weather/' -e '2,$s/$/,rain/' "$SCRATCH/host.csv" > "$SCRATCH/weather.csv"
    run compare "$SCRATCH/weather.csv" --rows
    if grep -q 'weather.csv: columns that are not modelled: weather$' "$SCRATCH/err"; then echo 'ok a column that is not modelled is named'; else bad 'a column that is not modelled is named' "$(cat "$SCRATCH/err")"; fi
    holds 'they differ' "$(echo "$columns" | tr ' ' '\n' | sort -u | grep -c .) == 4"
}
# Documents of 2048 tokens in sequences of 8192 (F-PACKED): attention as in 4 times as many sequences of 2048, everything else as before. Causal pairs of a token: (d + 1)/2.
# shellcheck disable=SC2086
{
    packed='--system dgx-h100 --workload llama3_8b --framework megatron-core --nodes 1 --tp 4 --sequence-parallel --pp 1 --micro-batch 1 --precision bf16 --zero 1 --recompute none'
    whole=$(field compute_s $packed --global-batch 8) docs=$(field compute_s $packed --global-batch 8 --packed-length 2048)
    # model flop of a sample: 6 for each parameter that multiplies and token, 12 * layers * hidden for each pair of tokens
    flop() { "$DLMODEL" predict $packed --global-batch 8 "$@" --json 2> /dev/null | awk '/"(model_flop_per_s_per_device|throughput_samples_per_s)"/ { gsub(/[",]/, ""); v[$1] = $2 } END { printf "%.9g", v["model_flop_per_s_per_device:"] * 8 / v["throughput_samples_per_s:"] }'; }
    saved=$(awk "BEGIN { print $(flop) - $(flop --packed-length 2048) }")
    holds 'model flop by hand' "$saved / (12 * 32 * 4096 * 8192 * (8192 - 2048) / 2) > 0.9999 && $saved / (12 * 32 * 4096 * 8192 * (8192 - 2048) / 2) < 1.0001"
    holds 'shorter attention' "$docs < $whole && $docs > $whole - 1.6 * $saved / 600e12"
    holds 'documents as long as the sequence' "$(field compute_s $packed --global-batch 8 --packed-length 8192) == $whole"
    run predict --workload resnet50 --packed-length 100
    check 'no attention' 2 'packed-length: resnet50 has no attention'
    printf 'id,source,system,framework,workload,precision,nodes,devices_per_node,global_batch,micro_batch,tp,pp,metric,value,unit,recompute,zero,sequence_parallel,packed_length\na,x,dgx-h100,megatron-core,llama3_8b,bf16,1,8,8,1,4,1,iteration,1,s,none,1,1,2048\n' > "$SCRATCH/packed.csv"
    column=$("$DLMODEL" compare "$SCRATCH/packed.csv" --rows --json 2> /dev/null | sed -n 's/^ *"predicted": *\([^,]*\),*$/\1/p' | head -n 1)
    holds 'the column is the option' "\"$column\" == \"$(field iteration_s $packed --global-batch 8 --packed-length 2048)\""
}
# A module that predicts a further token (F-MTP), of DeepSeek-V3: a layer with experts (attention 187,107,328, router 1,835,264, 257 experts of 44,040,192, norms 14,336), a projection of 2 * 7168 * 7168 and 3 norms: 11,610,068,224 parameters ("11.5B unique"); with its copies of embedding and head, 129280 * 7168 each, the 684,489,845,504 of the Hub. 6 bytes for each: bf16 and the master copy.
# shellcheck disable=SC2086
{
    one='--system dgx-h100 --workload deepseek_v3 --framework megatron-core --nodes 1 --devices-per-node 1 --tp 1 --pp 1 --ep 1 --zero 0 --precision bf16 --global-batch 8 --micro-batch 1 --recompute none'
    holds 'parameters of a module by hand' "$(field weights_bytes $one --mtp-layers 1) - $(field weights_bytes $one) == 6 * 11610068224"
    holds 'the Hub counts both' "$(field weights_bytes $one --mtp-layers 1) == 6 * (684489845504 - 2 * 129280 * 7168)"
    # kept of a token and module: what a layer keeps; the shared embedding, the joined norms, the projection and the last norm, 10 bytes a channel; 4 for each norm; logits and their gradient, 4 a word
    small='--system dgx-h100 --framework megatron-core --nodes 1 --devices-per-node 1 --tp 1 --pp 1 --zero 0 --precision bf16 --global-batch 8 --micro-batch 1 --recompute none'
    kept() { field activations_bytes $small --workload deepseek_v3:layers=$1,dense_layers=0,experts=8 --mtp-layers $2; }
    holds 'memory of a module by hand' "$(kept 4 2) - $(kept 4 1) == $(kept 5 1) - $(kept 4 1) + 4096 * (10 * 7168 + 3 * 4 + 4 * 129280)"
    # model flop of a token: 6 for each weight of attention, router, 8 experts and the shared one, projection and head; 6 * 128 * (192 + 128) for each of its (4096 + 1)/2 keys
    ep='--system dgx-b200 --workload deepseek_v3 --framework megatron-core --nodes 128 --tp 1 --pp 16 --ep 64 --zero 1 --precision bf16 --micro-batch 1 --global-batch 2048 --recompute full'
    flop() { "$DLMODEL" predict $ep "$@" --json 2> /dev/null | awk '/"(model_flop_per_s_per_device|throughput_samples_per_s)"/ { gsub(/[",]/, ""); v[$1] = $2 } END { printf "%.9g", v["model_flop_per_s_per_device:"] * 1024 / v["throughput_samples_per_s:"] }'; }
    more=$(awk "BEGIN { print ($(flop --mtp-layers 1) - $(flop)) / (6 * 4096 * (187105280 + 1835008 + 9 * 44040192 + 2 * 7168 * 7168 + 129280 * 7168 + 128 * (192 + 128) * 4097 / 2)) }")
    holds 'model flop of a module by hand' "$more > 0.9999 && $more < 1.0001"
    # the last of 16 stages has a layer and a head more than its at most 4 layers and head
    slower=$(awk "BEGIN { print $(field iteration_s $ep --mtp-layers 1) / $(field iteration_s $ep) }")
    holds 'the last stage sets the pace' "$slower > 1.1 && $slower < 1.6"
    holds 'the key is the option' "$(field iteration_s $ep --mtp-layers 1) == $(field iteration_s $ep --set mtp_layers=1)"
    run predict --workload resnet50 --system dgx-h100 --framework megatron-core --mtp-layers 1
    check 'no layers' 2 'mtp-layers: resnet50 has no parameter mtp_layers'
    printf 'id,source,system,framework,workload,precision,nodes,devices_per_node,global_batch,micro_batch,strategy,tp,pp,ep,metric,value,unit,recompute,zero,mtp_layers\na,x,dgx-b200,megatron-core,deepseek_v3,bf16,128,8,2048,1,expert,1,16,64,iteration,1,s,full,1,1\n' > "$SCRATCH/further.csv"
    column=$("$DLMODEL" compare "$SCRATCH/further.csv" --rows --json 2> /dev/null | sed -n 's/^ *"predicted": *\([^,]*\),*$/\1/p' | head -n 1)
    holds 'the column mtp_layers is the option' "\"$column\" == \"$(field iteration_s $ep --mtp-layers 1 --release 'NeMo 26.02')\"" # a run without a version: the release that was usual for Blackwell
}
# Stages as listed (F-STAGE-LAYERS): 8 equal ones are the default's; one of 5 layers instead of 4 on the first of 8 stages, which holds all 8 micro-batches, keeps 5/4 of the activations.
# shellcheck disable=SC2086
{
    eight='--system dgx-h100 --workload llama3_8b --framework megatron-core --nodes 1 --tp 1 --pp 8 --global-batch 64 --micro-batch 1'
    even=$(field activations_bytes $eight) more=$(field activations_bytes $eight --stage-layers 5,6x4,3)
    holds 'equal stages listed' "$(field iteration_s $eight --stage-layers 8x4) == $(field iteration_s $eight)"
    holds 'a longer stage keeps more' "$more > 1.23 * $even && $more < 1.25 * $even"
    # the last stage has the head: a layer less on it, the whole pipeline is faster
    holds 'a shorter last stage' "$(field iteration_s $eight --stage-layers 5,6x4,3) < 0.9 * $(field iteration_s $eight)"
    run predict $eight --stage-layers 8x5
    check 'layers that are not there' 2 'stage-layers: lists 40 layers, llama3_8b has 32'
    run predict $eight --stage-layers 4x8
    check 'other stages than the pipeline' 2 'stage-layers: lists 4 stages, of --pp 8'
    run predict $eight --stage-layers 4,4,x4
    check 'no list' 2 'stage-layers: expected layers of each stage'
    # 22 layers on 8 stages, the first and the last a layer less than the others: 11.8 samples/s for each of 8 A100 with 1F1B (zero-bubble, tables 3 and 4)
    rate=$(field throughput_samples_per_s --system a100-8x-roce --workload gpt:layers=22,hidden=2304,heads=24,seq=1024,vocab=50304 --framework megatron-core --nodes 1 --tp 1 --pp 8 --global-batch 144 --micro-batch 6 --precision bf16 --recompute none --stage-layers 2,6x3,2)
    holds 'published rate with shorter ends' "$rate > 0.8 * 8 * 11.8 && $rate < 1.2 * 8 * 11.8"
}
printf 'torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 30 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 128 --pipeline-model-parallel-size 8 --bf16 --vocab-size 32000' > "$SCRATCH/stages.sh"
while read -r wanted words; do
    { cat "$SCRATCH/stages.sh"; echo " $words"; } > "$SCRATCH/listed.sh"
    run import "$SCRATCH/listed.sh" --system dgx-h100
    has "stages: '$words'" "stage-layers $wanted"
done << 'END'
3,6x4,3 --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split
2,6x4,4 --decoder-first-pipeline-num-layers 2
5,6x3,7 --decoder-first-pipeline-num-layers 5 --decoder-last-pipeline-num-layers 7
END
# Leaves of 8 of 64 nodes (F-NETWORK-LEAF): the ring of each data group crosses an uplink of 8 nodes' rate / 64 with one node's traffic, 8 times too much; all 8 nodes of a leaf send to the next stage, 16 nodes away, 64 times too much. 2 : 1 slows neither ring.
# shellcheck disable=SC2086
{
    leaves='--system dgx-h100 --workload llama3_70b --framework megatron-core --nodes 64 --tp 8 --global-batch 256 --micro-batch 1 --sequence-parallel --set fabric.topology=fat-tree --set fabric.nodes_per_leaf=8 --overlap-grad-reduce 0 --overlap-param-gather 0 --set fabric.oversubscription'
    term() { "$DLMODEL" explain "$@" --json 2> /dev/null | awk -v name="\"$name" 'index($0, name) { found = 1 } found && /"seconds"|"value_s"|"time_s"/ { gsub(/[",]/, ""); print $2; exit }'; }
    name='gradients, all-reduce' ring=$(term $leaves=1 --pp 1) same=$(term $leaves=2 --pp 1) slow=$(term $leaves=64 --pp 1)
    holds 'a ring in node order hides 2 : 1' "$ring == $same"
    holds 'a ring takes 8 times as long at 64 : 1' "$slow > 7.8 * $ring && $slow < 8.001 * $ring"
    name='between stages' near=$(term $leaves=1 --pp 4) far=$(term $leaves=64 --pp 4)
    holds 'stages on other leaves exchange 64 times as long' "$far > 55 * $near && $far < 64.001 * $near"
    servers='--system dgx1-v100 --workload vgg16 --framework mxnet-dist-sync --nodes 64 --batch-per-device 32 --set fabric.topology=fat-tree --set fabric.nodes_per_leaf=8 --set fabric.oversubscription'
    holds 'parameter servers use the uplinks' "$(field iteration_s $servers=100) > 2 * $(field iteration_s $servers=1)"
}
run predict --system aws-p3-16xlarge --transport rdma --workload resnet50 --nodes 2
check 'RDMA must be there' 2 'transport rdma: nodes of aws-p3-16xlarge have no RDMA'
run predict --transport carrier-pigeon
check 'another transport' 2 '--transport: .*(rdma|tcp)'

# FSDP without prefetch exposes the gathers of all layers: of 32 forward and 31 backward for each of 8 micro-batches, all but the first forward, which stays exposed, are hidden else.
# shellcheck disable=SC2086
{
    ahead='--system dgx-h100 --nodes 4 --workload llama3_8b --framework pytorch-fsdp2 --zero 3 --tp 1 --pp 1 --cp 1 --micro-batch 1 --global-batch 256 --precision bf16 --recompute none'
    gathers_s=$("$DLMODEL" explain $ahead --json 2> /dev/null | jq '[.terms[] | select(.term == "layer all-gather x 504").value_s] | first')
    more=$(awk "BEGIN { print $(field exposed_comm_s $ahead --overlap-param-gather 0) - $(field exposed_comm_s $ahead --overlap-param-gather 1) }")
    holds 'prefetch hides the gathers by hand' "$more > 0.999 * $gathers_s * 62 / 63 && $more < 1.001 * $gathers_s * 62 / 63"
}

# A script of Megatron-LM that does not say so does not overlap; what is exported is imported as it was.
base='pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 128 --tensor-model-parallel-size 4 --bf16 --use-distributed-optimizer --sequence-parallel --vocab-size 32000'
printf 'torchrun --nproc_per_node 8 --nnodes 4 %s\n' "$base" > "$SCRATCH/plain.sh"
printf 'torchrun --nproc_per_node 8 --nnodes 4 %s --overlap-grad-reduce --overlap-param-gather --tp-comm-overlap\n' "$base" > "$SCRATCH/overlap.sh"
run import "$SCRATCH/plain.sh" --system dgx-h100
has 'a plain script does not overlap' 'overlap-grad-reduce 0 --overlap-param-gather 0 --tp-comm-overlap 0'
run import "$SCRATCH/overlap.sh" --system dgx-h100
has 'a script that says so overlaps' 'overlap-grad-reduce 1 --overlap-param-gather 1 --tp-comm-overlap 1'
printf 'torchrun --nproc_per_node 8 --nnodes 4 %s --num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1' "$base" > "$SCRATCH/experts.sh"
while read -r wanted words; do
    { cat "$SCRATCH/experts.sh"; echo " $words"; } > "$SCRATCH/dispatch.sh"
    run import "$SCRATCH/dispatch.sh" --system dgx-h100
    has "experts: '$words'" "moe-dispatch $wanted"
done << 'END'
allgather
alltoall --moe-token-dispatcher-type alltoall
deepep --moe-token-dispatcher-type flex
deepep --moe-token-dispatcher-type flex --moe-enable-deepep
hybridep --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep
END
# shellcheck disable=SC2086
for off in '' '--cp 2 --cp-comm alltoall' '--cp 2 --cp-comm allgather' '--offload optimizer --offload-fraction 0.5' '--pp 2 --stage-layers 18,14' '--mtp-layers 2' '--cuda-graphs layer' '--cuda-graphs iteration' '--recompute-layers 5' '--recompute attention,norm' '--overlap-param-gather 0' '--overlap-grad-reduce 0' '--tp-comm-overlap 0'; do
    "$DLMODEL" predict $llama --zero 1 $off --export megatron > "$SCRATCH/exported.sh" 2> /dev/null
    there=$(field iteration_s $llama --zero 1 $off) back=$("$DLMODEL" predict --system dgx-h100 --plan "$SCRATCH/exported.sh" --json 2> /dev/null | sed -n 's/^ *"iteration_s": *\([^,]*\),*$/\1/p' | head -n 1)
    if [ -n "$there" ] && [ "$there" = "$back" ]; then echo "ok exported and imported '$off'"; else echo "not ok exported and imported '$off': $there, $back"; fi
done

titan='--system dgx-h100 --workload llama3_8b --framework pytorch-fsdp2 --nodes 1 --zero 3 --recompute-every 2 --global-batch 8'
# shellcheck disable=SC2086
"$DLMODEL" predict $titan --export torchtitan > "$SCRATCH/titan.toml" 2> /dev/null
run import "$SCRATCH/titan.toml" --ranks 8 --system dgx-h100
has 'torchtitan repeats every second layer' 'recompute-every 2 --recompute full'

newest='NeMo 25.11 to 26.02'
for way in alltoall allgather deepep hybridep; do
    mixtral="--system dgx-h100 --workload mixtral_8x7b --framework megatron-core --nodes 4 --ep 8 --etp 1 --tp 2 --sequence-parallel --global-batch 64 --micro-batch 1 --moe-dispatch $way --moe-overlap --release '$newest'"
    eval "\"\$DLMODEL\" predict $mixtral --export megatron" > "$SCRATCH/experts.out" 2> "$SCRATCH/err"
    run import "$SCRATCH/experts.out" --system dgx-h100
    has "exported and imported: experts by $way, overlapped" "moe-dispatch $way .*--moe-overlap"
done

# 4 context ranks exchange heads: of 16384 tokens a rank has 4096, whose queries and results have 1024 channels and whose keys and
# values 512, of 2 bytes: 2 layers x 2 passes x 2 x (8.39 + 4.19) MB, 3 quarters of them to others; twice 8192 tokens' 37.7 MB.
# shellcheck disable=SC2086
{
    cp="--system dgx-h100 --nodes 1 --devices-per-node 4 --framework megatron-core --tp 1 --cp 4 --pp 1 --global-batch 1 --micro-batch 1 --precision bf16 --recompute none --cp-comm alltoall --set links.intra.bandwidth=1GB/s"
    net='gpt:layers=2,hidden=1024,heads=16,kv_heads=8,vocab=1024,seq='
    more=$(awk "BEGIN { print $(field exposed_comm_s --workload ${net}16384 $cp) - $(field exposed_comm_s --workload ${net}8192 $cp) }")
    holds 'heads exchanged for tokens by hand' "$more > 0.0377 && $more < 1.4 * 0.0377"
    run predict --workload gpt:layers=2,hidden=1024,heads=16,kv_heads=2,seq=8192 $cp
    check 'heads that context ranks do not share evenly' 2 'cp-comm alltoall: --tp 1 x --cp 4 does not divide the 16 query and 2 key heads'
}

# The search predicts what each of its rows' commands does.
while read -r network setting; do
    # shellcheck disable=SC2086
    "$DLMODEL" search --system dgx-h100 --framework megatron-core --nodes 2 --precision bf16 --global-batch 32 --workload "$network" $setting --json > "$SCRATCH/search.json" 2> /dev/null
    there=$(sed -n 's/^ *"iteration_s": *\([^,]*\),*$/\1/p' "$SCRATCH/search.json" | head -n 1)
    line=$(sed -n 's/^ *"command": *"dlmodel predict \(.*\)",*$/\1/p' "$SCRATCH/search.json" | head -n 1)
    # shellcheck disable=SC2086
    holds "a searched plan with $setting" "\"$there\" != \"\" && $(field iteration_s $line) / $there < 1 + 1e-9 && $(field iteration_s $line) / $there > 1 - 1e-9"
done << 'END'
llama2_70b --lora-rank 16
llama3_8b --recompute-layers 4
llama3_8b --recompute mlp,norm
mixtral_8x7b --moe-overlap
llama3_8b --cuda-graphs layer
END

# Columns of a table of runs are the same options.
# shellcheck disable=SC2016
printf 'id,source,system,framework,workload,precision,nodes,devices_per_node,batch_per_device,metric,value,unit,overlap_grad_reduce,transport,gradient_compression\na,x,iris-v100,pytorch-ddp,vgg16,fp32,8,1,32,iteration,1,s,0,tcp,fp16\n' > "$SCRATCH/runs.csv"
run compare "$SCRATCH/runs.csv" --rows --json
# shellcheck disable=SC2086
wanted=$(field iteration_s $iris --overlap-grad-reduce 0 --transport tcp --gradient-compression fp16 --release 1.8)
found=$(sed -n 's/^ *"predicted": *\([^,]*\),*$/\1/p' "$SCRATCH/out" | head -n 1)
holds 'columns are the options' "\"$found\" != \"\" && $found / $wanted < 1.000001 && $found / $wanted > 0.999999"

# One exchange of a mixture of experts on H100, published by its authors for NCCL's all-to-all (moe-exchange-times): within 15 %; a token once to each node takes less than each of its 8 copies.
exchange_us() { # exchange_us NODES DISPATCH: 16 exchanges of 4 layers of an iteration
    "$DLMODEL" explain --system dgx-h100 --workload gpt:layers=4,hidden=7168,heads=128,seq=4096,vocab=129280,experts=256,topk=8,expert_ffn=2048,ffn=2048 --framework megatron-core --nodes "$1" --ep $((8 * $1)) --tp 1 --pp 1 --batch-per-device 1 --precision bf16 --set expert_imbalance=1 --recompute none --moe-dispatch "$2" --json 2> /dev/null |
        awk '/"expert all-to-all x 16"/ { found = 1 } found && /"seconds"|"value_s"|"time_s"/ { gsub(/[",]/, ""); print $2 * 1e6 / 16; exit }'
}
while read -r nodes dispatch_us combine_us; do
    us=$(exchange_us "$nodes" alltoall) once=$(exchange_us "$nodes" hybridep)
    holds "all-to-all of experts over $nodes nodes" "$us > 0.85 * ($dispatch_us + $combine_us) / 2 && $us < 1.15 * ($dispatch_us + $combine_us) / 2"
    holds "a token once to each of $nodes nodes" "$once > 0 && $once < 0.75 * $us"
done << 'END'
1 1265 1277
2 5774 5628
4 8059 7815
8 9164 8727
END
run predict --system dgx-h100 --workload mixtral_8x7b --framework megatron-core --nodes 4 --moe-dispatch hybridep --release 0.8
check 'a release without HybridEP' 0 'has no --moe-dispatch hybridep'

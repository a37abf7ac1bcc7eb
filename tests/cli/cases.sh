#!/bin/sh
# cases.sh - questions that people asked in public, with the answer that is right: which kernels run, what limits, what to change,
# what is missing. README.md lists the tests of the other cases.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

row() { # row ID COLUMN MIN MAX: of the last comparison
    value=$(jq -r --arg id "$1" ".rows[] | select(.id == \$id) | .$2" "$SCRATCH/out")
    if awk -v v="$value" -v a="$3" -v b="$4" 'BEGIN { exit !(v + 0 >= a && v + 0 <= b) }'; then echo "ok $1: $2"; else bad "$1: $2" "expected $3 to $4, found $value"; fi
}
cause() { # cause ID REGEX
    if jq -r --arg id "$1" '.rows[] | select(.id == $id) | .cause' "$SCRATCH/out" | grep -Eq "$2"; then echo "ok $1: cause"; else bad "$1: cause" "expected: $2"; fi
}

holds() { # holds NAME FILTER FILE
    if jq -e "$2" "$3" > /dev/null; then echo "ok $1"; else bad "$1" "failed: $2"; fi
}

# Kernels: fused attention where the release runs it (pytorch/ao 1297), none on a V100 (aliyun/SimAI 166). Slow networks (horovod 396,
# torchtitan 708), communication that is not overlapped (torchtitan 929).
cat > "$SCRATCH/runs.csv" << 'T2'
id,source,system,framework,framework_version,strategy,workload,precision,nodes,devices_per_node,batch_per_device,recompute,compiler,metric,value,unit
ao1297,issue,dgx-h100,pytorch-ddp,2.5,data,gpt2_xl:dropout=0,bf16,1,1,12,,inductor,throughput,46.8,samples/s
s166,issue,single-v100,megatron-core,,data,"gpt:layers=12,hidden=768,heads=8,seq=2048,vocab=50304",fp16,1,1,8,selective,,iteration,0.71,s
h396-8,issue,aws-p3-16xlarge,horovod-tensorflow,1.8,data,resnet50,fp32,1,8,64,,,throughput,2697.29,samples/s
h396-16,issue,aws-p3-16xlarge,horovod-tensorflow,1.8,data,resnet50,fp32,2,8,64,,,throughput,2632.95,samples/s
t708-32,issue,dgx-h100,pytorch-fsdp2,2.6,zero3,llama3_8b,bf16,4,8,1,selective,,throughput,6.977,samples/s
t929,issue,dgx-a100-80,pytorch-fsdp2,2.7,zero3,llama3_8b,bf16,1,8,1,selective,inductor,throughput,2.862,samples/s
T2
run compare "$SCRATCH/runs.csv" --json
check 'runs of public issues' 0
row ao1297 predicted 38 47
row s166 predicted 0.43 0.74
cause h396-16 'network between nodes'
cause t708-32 'network between nodes'
cause t929 'not overlapped'

# Collectives that are slower than their links (NVIDIA/nccl-tests 309, NVIDIA/nccl 2409): an interval, and why.
cat > "$SCRATCH/collectives.csv" << 'T2'
library,lib_version,collective,device,system,nodes,ranks,network,dtype,size_bytes,time_us,algbw_GBs,busbw_GBs,source,notes
nccl,2.26,all_reduce,,dgx-h100,2,16,,float,8589934592,64425,,,a,
nccl,2.31,p2p,,dgx-h100,2,2,,float,1073741824,81965,,,a,
nccl,2.26,all_reduce,,dgx-h100,1,8,,float,8589934592,33500,,,a,
nccl,2.26,all_reduce,,dgx-h100,2,16,,float,8,900,,,a,
T2
run compare "$SCRATCH/collectives.csv" --json
row "$SCRATCH/collectives.csv:2" predicted_low 0.015 0.032
row "$SCRATCH/collectives.csv:2" predicted_high 0.034 0.06
cause "$SCRATCH/collectives.csv:2" 'adapters of a node in use'
cause "$SCRATCH/collectives.csv:3" '28 % of its links or adapters'
cause "$SCRATCH/collectives.csv:4" null
cause "$SCRATCH/collectives.csv:5" 'start-up of messages'

# Shards inside nodes on a slow network (foundation-model-stack/fms-fsdp 78): the network limits, as its sensitivity says.
slow='-s dgx-h100 -w llama3_8b -n 4 -b 1 -p bf16 --recompute selective --set links.inter.bandwidth=1GB/s'
# shellcheck disable=SC2086
run predict $slow -f pytorch-fsdp2 --zero-group 8 --json
cp "$SCRATCH/out" "$SCRATCH/group"
holds 'groups of shards are data parallel' '.results[0] | .bottleneck == "inter-link" and .dp == 32 and .zero == 3' "$SCRATCH/group"
# shellcheck disable=SC2086
run predict $slow -f hsdp --json
says 'hsdp: shards inside a node' [ "$(jq -c .results "$SCRATCH/out")" = "$(jq -c .results "$SCRATCH/group")" ]
run explain --all -s dgx-h100 -w llama3_8b -n 4 -b 1 -f HSDP --tp 2
check 'hsdp with tensor ranks' 0
printf 'id,source,system,framework,workload,precision,nodes,devices_per_node,batch_per_device,recompute,zero_group,metric,value,unit\n' > "$SCRATCH/hsdp.csv"
printf '%s\n' 'a,x,dgx-h100,hsdp,llama3_8b,bf16,4,8,1,selective,,iteration,1,s' 'b,x,dgx-h100,pytorch-fsdp2,llama3_8b,bf16,4,8,1,selective,8,iteration,1,s' \
    'c,x,dgx-h100,pytorch-fsdp2,llama3_8b,bf16,4,8,1,selective,,iteration,1,s' >> "$SCRATCH/hsdp.csv"
run compare "$SCRATCH/hsdp.csv" --json
holds 'hsdp in a table' '[.rows[].predicted] | .[0] == .[1] and .[0] != .[2]' "$SCRATCH/out"

# What does not fit (NVIDIA/Megatron-LM 1000): nothing that is set already, and how many devices would do.
full='-s dgx-a100-80 -w llama3_70b:seq=4096 -f megatron-core --tp 4 --pp 2 -B 128 --micro-batch 1 -p bf16 --recompute full --zero 1'
# shellcheck disable=SC2086
run predict $full
check 'devices that would hold it' 1 '16 devices would hold'
for word in '--recompute full' '--micro-batch' 'sharded'; do
    says "what is set is not advised: $word" [ "$(grep 'does not fit' "$SCRATCH/err" | grep -c -e "$word")" -eq 0 ]
done
run advise -s dgx-h100 -w llama2_70b:seq=4096 -f megatron-core -n 16 --tp 8 --pp 8 -B 512 --micro-batch 1 -p bf16 --recompute full --zero 1 --json
holds 'advice: sequence parallelism gains 20 % and more (Megatron-LM 1031)' '.advice[] | select(.advice == "sequence-parallel") | .gain_frac > 0.2' "$SCRATCH/out"
holds 'advice: virtual stages' '[.advice[].advice] | index("interleave") != null' "$SCRATCH/out"

# A device is no system, a system of one node has no network (nanoGPT 179, InternLM 22).
run predict -s rtx4090 -w gpt2 -n 1
check 'a device as a system' 2 'it is a device; give -s 1xrtx4090'
run predict -s a100-pcie-8x -w llama2_7b -f pytorch-fsdp -n 2
check 'all that is missing, and how to give it' 3 '--set links.inter.kind=KIND --set links.inter.bandwidth=RATE'
run predict -s a100-pcie-8x -w llama2_7b -f pytorch-fsdp -n 2 --set links.inter.bandwidth=25GB/s --set links.inter.kind=infiniband
check 'a network by --set' 0

# The best plan of a search is one that the framework's files can say.
run search -s h200-8x -w llama3_8b -f pytorch-fsdp2 --nodes 4 -B 128 -p bf16 --json
best=$(jq -r '.results[0].command' "$SCRATCH/out")
# shellcheck disable=SC2086
run ${best#dlmodel } --export torchtitan
check 'the best plan can be exported' 0

#!/bin/sh
# Collectives in traces of torch.profiler, in the form that Kineto writes (args of kernels since PyTorch 2.3, of record_param_comms before).
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
kernel() { # kernel NAME ELEMENTS_IN ELEMENTS_OUT TYPE GROUP RANKS US
    printf '{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic","ts":1,"dur":%s,"args":{"Collective name":"%s","In msg nelems":%s,"Out msg nelems":%s,"dtype":"%s","Group size":%s,"Process Group Ranks":"%s"}},\n' \
        "$7" "$1" "$2" "$3" "$4" "$5" "$6"
}
trace() { printf '{"distributedInfo":{"backend":"nccl","rank":0,"world_size":16},"traceEvents":[\n%s {"ph":"M"}]}\n' "$1" > "$SCRATCH/$2"; }
eight="[0, 1, 2, 3, 4, 5, 6, 7]"
across="[3, 11]"
trace "$(kernel allreduce 1000 1000 Float 8 "$eight" 30; kernel allreduce 1000 1000 Float 8 "$eight" 10; kernel allreduce 1000 1000 Float 8 "$eight" 20
    kernel _allgather_base 500 1000 BFloat16 2 "$across" 50; kernel reduce_scatter_tensor_coalesced 16000 1000 BFloat16 16 '[0, 1, ..., 15]' 80
    kernel send 10 10 Float 2 "$across" 5)" rank0.json
run import torch-nccl "$SCRATCH/rank0.json" --nodes 2 --system dgx-h100
check 'a trace' 0
# library, version, collective, device, system, nodes, ranks, network, type, bytes, time, bytes/time, times the factor of the bus
has 'the median of equal calls, inside a node' '^nccl,,all_reduce,,dgx-h100,1,8,,float,4000,20,0.2,0.35,torch.profiler,"median of 3 calls'
has 'a group of two nodes; bytes are those of the whole buffer' '^nccl,,all_gather,,dgx-h100,2,2,,bfloat16,2000,50,'
has 'a list of ranks that is cut short' '^nccl,,reduce_scatter,,dgx-h100,2,16,,bfloat16,32000,80,'
hasnt 'sends have no row' ',p2p,'
cp "$SCRATCH/out" "$SCRATCH/rows.csv"
run compare "$SCRATCH/rows.csv" --json
says 'rows that compare takes' test "$(jq '[.rows[] | select(.predicted > 0)] | length' "$SCRATCH/out")" = 3
trace "$(kernel allreduce 1000 1000 Float 8 "$eight" 15)" rank1.json
run import torch-nccl "$SCRATCH/rank0.json" "$SCRATCH/rank1.json" --nodes 2
has 'of the traces of two ranks the one that waited less' ',all_reduce,,,1,8,,float,4000,15,'

# operators with the metadata, kernels with the same External id, in either order
printf '[{"ph":"X","cat":"kernel","name":"ncclKernel_AllReduce","ts":9,"dur":40,"args":{"External id":7}},
{"ph":"X","cat":"cpu_op","name":"record_param_comms","ts":1,"dur":3,"args":{"External id":7,"Collective name":"allreduce","In msg nelems":8,"Out msg nelems":8,"dtype":"Half","Group size":4}},
{"ph":"X","cat":"kernel","name":"ncclKernel_AllReduce","ts":9,"dur":40,"args":{"External id":8}}]' > "$SCRATCH/old.json"
run import torch-nccl "$SCRATCH/old.json" --nodes 1
check 'how ranks lie on nodes' 2 'give --nodes and.*--ranks'
run import torch-nccl "$SCRATCH/old.json" --nodes 1 --ranks 4
has 'by External id' '^nccl,,all_reduce,,,1,4,,half,16,40,.*median of 1 calls'
printf '[{"ph":"X","cat":"kernel","name":"ncclKernel_AllReduce","ts":9,"dur":40,"args":{"External id":8}}]' > "$SCRATCH/bare.json"
run import torch-nccl "$SCRATCH/bare.json" --nodes 1 --ranks 4
check 'kernels without metadata' 3 '1 kernels of NCCL, 0 such operators'
trace "$(kernel allreduce 1000 1000 Float 8 "$eight" -1)" bad.json
run import torch-nccl "$SCRATCH/bad.json" --nodes 2
check 'a negative duration' 3 "event 0 .*expected a duration above 0"
printf '{"traceEvents": 3}' > "$SCRATCH/bad.json"
run import torch-nccl "$SCRATCH/bad.json" --nodes 2
check 'no trace' 3 'bad.json.* error'

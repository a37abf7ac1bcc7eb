#!/bin/bash -l
#SBATCH --job-name=pytorch-dp-resnet50-n1x4-b32-r1
#SBATCH --partition=gpu
#SBATCH --qos=normal
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=28
#SBATCH --gres=gpu:4
#SBATCH --exclusive
#SBATCH --time=01:00:00
#SBATCH --no-requeue
#SBATCH --output=slurm-%j.out
# One run of dlmodel slurm; every value is quoted.
set -u -o pipefail
export LC_ALL=C
run='/runs/pytorch-dp-resnet50-n1x4-b32-r1'
programs='/programs'
cd -- "$run" || exit 5
say() { printf '%s\n' "$1" >> "$run/job.jsonl"; }
say "{\"event\":\"job\",\"job_id\":\"${SLURM_JOB_ID:?not under Slurm: sbatch job.sh}\",\"nodes\":\"$SLURM_JOB_NODELIST\",\"time_s\":$(date +%s)}"
watcher='' training='' helpers=()
finish() {
    status=$?
    trap '' TERM
    for p in ${helpers[@]+"${helpers[@]}"} $training $watcher; do kill "$p" 2> /dev/null; done
    for ((i = 0; i < 50; i++)); do [ -n "$(jobs -rp)" ] || break; sleep 0.1; done
    say "{\"event\":\"exit\",\"status\":$status,\"time_s\":$(date +%s)}"
    exit "$status"
}
trap finish EXIT
trap 'exit 143' TERM
module load 'numlib/cuDNN' || exit 6
export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}" PYTHONUNBUFFERED=1 DLMODEL_RUN="$run"
export GLOO_SOCKET_IFNAME='ib0'
export NCCL_SOCKET_IFNAME='ib0'
export HOROVOD_GLOO_IFACE='ib0'
export OMPI_MCA_btl_tcp_if_include='ib0'
export DMLC_INTERFACE='ib0'
export DLMODEL_INTERFACE='ib0'
export NCCL_ASYNC_ERROR_HANDLING='1'
export TORCH_NCCL_ASYNC_ERROR_HANDLING='1'
program=(
    'python3' "$programs/"'pytorch_bench.py'
    --run="$run" --mode='dp' --network='network.json' --precision='fp32' --optimizer='momentum' --device='gpu' --backend='copy'
    --batch=32 --devices=4 --steps=50 --warmup=10
)
speed_variables='PATH LD_LIBRARY_PATH PYTHONPATH VIRTUAL_ENV LOADEDMODULES SLURM_CLUSTER_NAME SLURM_JOB_ID SLURM_JOB_PARTITION SLURM_JOB_NODELIST SLURM_JOB_NUM_NODES SLURM_NTASKS SLURM_NTASKS_PER_NODE SLURM_CPUS_PER_TASK SLURM_CPUS_ON_NODE SLURM_GPUS_ON_NODE SLURM_MEM_PER_NODE SLURM_CPU_BIND SLURM_DISTRIBUTION SLURM_HINT TF_CPP_MIN_LOG_LEVEL TF_GPU_THREAD_MODE TF_GPU_THREAD_COUNT TF_FORCE_GPU_ALLOW_GROWTH TF_ENABLE_ONEDNN_OPTS TF_XLA_FLAGS XLA_FLAGS MXNET_CUDNN_AUTOTUNE_DEFAULT MXNET_ENGINE_TYPE TORCH_NCCL_ASYNC_ERROR_HANDLING DLMODEL_SITE DLMODEL_DATA'
speed_variables+=" $(compgen -e | grep -E '^(OMP|KMP|MKL|NCCL|GLOO|HOROVOD|OMPI_MCA|UCX|FI|CUDA)_' | grep -viE 'token|key|secret|pass|cred|auth|jwt|cookie' | tr '\n' ' ')"
(umask 077; for name in $speed_variables; do [ -z "${!name+x}" ] || printf '%s=%s\n' "$name" "${!name}"; done | sort > "$run/environment.txt")
preflight=(python3 "$programs/preflight.py" --run="$run" --script=$$)
on_nodes=(srun --overlap --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --cpus-per-task=1 --mem=0 --mpi=none --input=none)
timeout -k 10 300 "${on_nodes[@]}" "${preflight[@]}" --look || say '{"event":"note","text":"preflight failed"}'
"${on_nodes[@]}" "${preflight[@]}" --watch &
watcher=$!
srun --overlap --kill-on-bad-exit=1 --input=none --mem=0 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=28 \
    --mpi='none' --cpu-bind='cores' --mem-bind='local' --distribution='block:block' -- "${program[@]}" &
training=$!
wait "$training"

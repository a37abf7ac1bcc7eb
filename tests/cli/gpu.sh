#!/bin/sh
# gpu: calibrate on GPUs, against fake CUDA, cuBLAS, cuDNN, NCCL and NVML (tests/fake_cuda): the real probe programs, numbers
# checked, times made up. Nothing here is a measurement.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
fakes=$(cd "$(dirname "$DLMODEL")/fake_cuda" && pwd) || exit 2
mkdir "$work/bin" "$work/path"
cp "$DLMODEL" "$work/bin/dlmodel"
cp "$fakes"/dlmodel-probe-* "$work/bin/"
real_cpu=$(dirname "$DLMODEL")/dlmodel-probe-cpu
[ -x "$real_cpu" ] && cp "$real_cpu" "$work/bin/"
DLMODEL=$work/bin/dlmodel
export DLMODEL_DATA="${DLMODEL_DATA:-$(pwd)/data}" DLMODEL_LOCAL="$work/local.json" DLMODEL_SYS="$work/sys" TMPDIR="$work"
unset DLMODEL_LIBEXEC FAKE_CUDA DLMODEL_GPU_BUSY
# What exits through another library's error has no time to free; leaks are looked for in the other scripts.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
usual=$PATH
for tool in sh sed grep; do
    full=$(command -v "$tool")
    case $full in /*) ln -s "$full" "$work/path/$tool" ;; esac
done
profile=$work/p.json
journal=$profile.journal
gpu() { # gpu SCENE DEVICES ARGS...: dlmodel on the fake; no mpirun in its PATH
    scene=$1 devices=$2
    shift 2
    FAKE_CUDA=$scene FAKE_CUDA_COUNT=$devices LD_LIBRARY_PATH=$fakes PATH=$work/path run "$@"
}
probe() { # probe SCENE DEVICES PROGRAM ARGS...
    scene=$1 devices=$2 program=$3
    shift 3
    FAKE_CUDA=$scene FAKE_CUDA_COUNT=$devices LD_LIBRARY_PATH=$fakes "$fakes/dlmodel-probe-$program" "$@" > "$work/out" 2> "$work/err" < /dev/null
    status=$?
}
value() { sed -n "s/.*\"key\":\"$1\",\"value\":\"\([^\"]*\)\".*/\1/p" "$work/out" | tail -n 1; }

# ---- the probe programs ----
square='m=96 n=64 k=80 ta=1'
probe - 1 cuda --list
check 'probe-cuda --list' 0
has '--list names a probe' '"name":"gpu-gemm"\}'
has '--list tells the device' 'Fake GPU'
for program in cuda cudnn nccl; do
    probe nodriver 1 $program --list
    check "probe-$program --list without a driver" 0
    has "probe-$program says that there is no driver" 'no NVIDIA driver'
    probe nodriver 1 "$program" --points gpu-gemm "$square" fwd 0.01
    [ "$program" = nccl ] || check "probe-$program without a driver" 6 'no NVIDIA driver'
done
probe nodriver 1 nccl --spawn 2 --points nccl-allreduce 'bytes=64 ranks=2' gpu 0.01
check 'probe-nccl without a driver' 6 'no NVIDIA driver'
probe nodevice 1 cuda --points gpu-gemm "$square" fwd 0.01
check 'no device' 6 'no GPU is visible'
probe exclusive 1 cuda --points gpu-gemm "$square" fwd 0.01
check 'a device in exclusive use' 6 'exclusive use by another process.*CUDA_VISIBLE_DEVICES'
probe busy 1 cuda --points gpu-gemm "$square" fwd 0.01
check 'a device that another process uses' 6 'in use by process 4242.*DLMODEL_GPU_BUSY'
DLMODEL_GPU_BUSY=1 && export DLMODEL_GPU_BUSY
probe busy 1 cuda --points gpu-gemm "$square" fwd 0.01
check 'measured all the same' 0
unset DLMODEL_GPU_BUSY
probe loaded 1 cuda --points gpu-gemm "$square" fwd 0.01
check 'a device that is busy with what NVML does not name' 6 '60 % busy'
probe hot 1 cuda --points gpu-gemm "$square" fwd 0.01
check 'a throttled device' 0
says 'throttled: all blocks are marked' sh -c "grep -q '\"preempted\":[1-9]' '$work/out'"
says 'throttled: the facts say so' sh -c "case '$(value gpu_disturbed)' in *' 0 thermal throttling'*) exit 1 ;; *'thermal throttling'*) exit 0 ;; *) exit 1 ;; esac"
has 'the clock stands with the sample' '"clock_hz":765000000'
probe shared 1 cuda --points gpu-gemm "$square" fwd 0.01 gpu-host bytes=67108864 h2d_pageable 1.5
check 'a process comes while measuring' 0
says 'shared: the facts say so' sh -c "case '$(value gpu_disturbed)' in *' 0 concurrent processes'*) exit 1 ;; *'concurrent processes'*) exit 0 ;; *) exit 1 ;; esac"
probe wrong 1 cuda --points gpu-gemm "$square" fwd 0.01
check 'a product that is wrong' 6 'wrong result at element'
probe - 1 cuda --points gpu-gemm "$square prec=nosuch" fwd 0.01
has 'an unknown precision is left out' '"skipped"'
probe - 1 cuda --points gpu-gemm "$square prec=bf16" fwd 0.01
has 'bf16 on a device without it is left out' 'bf16 needs compute capability 8.0'
FAKE_CUDA_CAPABILITY=80 && export FAKE_CUDA_CAPABILITY
for p in '' ' prec=mixed' ' prec=tf32' ' prec=bf16'; do
    set --
    for t in 'ta=0 tb=0' 'ta=1 tb=0' 'ta=0 tb=1' 'ta=1 tb=1'; do
        set -- "$@" gpu-gemm "m=48 n=100 k=72 $t$p" fwd 0.005 gpu-batch "m=33 n=17 k=29 $t b=7$p" fwd 0.005
    done
    probe - 1 cuda --points "$@"
    check "products$p are right" 0
    says "products$p: all eight are measured" [ "$(grep -c '"sample"' "$work/out")" -eq 8 ]
done
FAKE_CUDA_CAPABILITY=90
probe - 1 cuda --points gpu-gemm 'm=64 n=48 k=96 ta=1 prec=fp8' fwd 0.005 gpu-gemm 'm=64 n=48 k=90 ta=1 prec=fp8' fwd 0.005
check 'fp8 products' 0
has 'fp8: measured' '"precision":"fp8","implementation":"cublaslt"'
has 'fp8: odd sides are left out' '"skipped".*multiples of 16'
FAKE_CUDA_CAPABILITY=80
probe - 1 cuda --points gpu-copy bytes=1048576 copy 0.01 gpu-copy bytes=1048576 axpy 0.01 gpu-copy bytes=1048576 scale 0.01 \
    gpu-launch n=32 queue 0.01 gpu-launch n=32 train 0.01 gpu-launch n=32 wait 0.01 gpu-host bytes=65536 h2d_pinned 0.01 \
    gpu-host bytes=65536 d2h_pinned 0.01 gpu-host bytes=65536 h2d_pageable 0.01 gpu-host bytes=65536 d2h_pageable 0.01 \
    gpu-host bytes=16777216 h2d_pinned 0.01 gpu-update bytes=1048576 momentum 0.01
check 'copies, launches, updates are right' 0
says 'copies, launches, updates: all there' [ "$(grep -c '"sample"' "$work/out")" -eq 12 ]
for p in '' ' prec=tf32' ' prec=mixed' ' prec=bf16'; do
    [ -n "${SANITIZED-}" ] && [ "$p" != ' prec=mixed' ] && continue
    set --
    for shape in 'n=2 c=16 f=24 h=14 r=3 s=1 p=1' 'n=2 c=16 f=8 h=15 r=3 s=2 p=1' 'n=3 c=3 f=8 h=20 r=7 s=2 p=3' 'n=2 c=16 f=24 h=9 r=1 s=1 p=0' \
        'n=2 c=16 f=24 h=9 w=13 r=1 q=7 s=1 p=0 t=3' 'n=2 c=16 f=24 h=9 r=3 s=1 p=1 g=4' 'n=2 c=8 f=8 h=12 r=3 s=1 p=2 e=2' 'n=1 c=4 f=6 d=6 h=7 r=3 s=1 p=1'; do
        for pass in fwd bwd_data bwd_filter; do set -- "$@" gpu-conv "$shape$p" $pass 0.002; done
    done
    probe - 1 cudnn --points "$@"
    check "convolutions$p are right" 0
    says "convolutions$p: all 24 are measured" [ "$(grep -c '"sample"' "$work/out")" -eq 24 ]
    for pass in fwd bwd_data; do
        probe - 1 cudnn --points gpu-norm "n=4 c=6 h=9$p" $pass 0.002 gpu-act "n=4 c=6 h=9$p" $pass 0.002 gpu-pool "n=4 c=6 h=9$p" $pass 0.002 \
            gpu-softmax "n=30 c=101 h=1$p" $pass 0.002 gpu-layernorm "n=40 c=96$p" $pass 0.002 gpu-attention "n=2 heads=3 q=24 d=16$p" $pass 0.002
        check "layers $pass$p are right" 0
        says "layers $pass$p are measured" [ "$(grep -c '"sample"' "$work/out")" -eq 6 ]
    done
done
probe wrong 1 cudnn --points gpu-conv 'n=2 c=16 f=24 h=14 r=3 s=1 p=1' fwd 0.002
check 'a convolution that is wrong' 6 'wrong result'
for shape in 'gpu-layernorm:n=40 c=96' 'gpu-attention:n=2 heads=3 q=24 d=16'; do
    for pass in fwd bwd_data; do
        probe wrong 1 cudnn --points "${shape%%:*}" "${shape#*:}" $pass 0.002
        check "$shape $pass that is wrong" 6 'wrong result'
    done
done
unset FAKE_CUDA_CAPABILITY

# ---- NCCL ----
for op in allreduce reducescatter allgather broadcast alltoall sendrecv; do
    probe - 3 nccl --spawn 3 --points nccl-$op 'bytes=3000 ranks=3' gpu 0.01 nccl-$op 'bytes=1048576 ranks=2' gpu 0.01
    check "NCCL $op is right" 0
    says "NCCL $op: two samples, of rank 0 alone" [ "$(grep -c '"sample"' "$work/out")" -eq 2 ]
done
probe - 2 nccl --spawn 2 --points nccl-allreduce 'bytes=64 ranks=4' gpu 0.01
has 'more ranks than there are' '"skipped".*4 ranks on 1 nodes'
FAKE_RANK=1 FAKE_CALL=7 && export FAKE_RANK FAKE_CALL
probe die 3 nccl --spawn 3 --points nccl-allreduce 'bytes=3000 ranks=3' gpu 0.01
check 'a rank that dies' 6 'rank 1 of 3 .* was killed by signal 9'
# The others end because of it, and a busy machine may show their ends first: the one that started them looks when all have ended.
# On a busy machine it may see the first end before it is stopped: then again.
running() { ps -o stat= --ppid "$pid" | grep -cv '^Z'; }
for _ in $(seq 1 20); do
    FAKE_CUDA=die FAKE_CUDA_COUNT=3 LD_LIBRARY_PATH=$fakes "$fakes/dlmodel-probe-nccl" --spawn 3 --points nccl-allreduce 'bytes=3000 ranks=3' gpu 0.01 \
        > "$work/out" 2> "$work/err" < /dev/null &
    pid=$!
    for _ in $(seq 1 6000); do [ "$(pgrep -c -P "$pid")" -eq 3 ] && break; sleep 0.01; done
    kill -STOP "$pid"
    for _ in $(seq 1 600); do # those that have ended stay as zombies, which pgrep counts too
        [ "$(running)" -eq 0 ] && break
        sleep 0.1
    done
    if [ "$(running)" -gt 0 ] || [ "$(ps -o stat= --ppid "$pid" | grep -c '^Z')" -eq 3 ]; then break; fi
    kill -CONT "$pid"
    wait "$pid"
done
says 'all ranks end with the one that dies' [ "$(ps -o stat= --ppid "$pid" | grep -c '^Z')" -eq 3 ]
kill -CONT "$pid"
wait "$pid"
status=$?
check 'a rank that dies, found last' 6 'rank 1 of 3 .* was killed by signal 9'
FAKE_CALL=7 DLMODEL_PATIENCE_S=3 && export FAKE_CALL DLMODEL_PATIENCE_S
probe mute 3 nccl --spawn 3 --points nccl-allreduce 'bytes=3000 ranks=3' gpu 0.01
check 'a rank that hangs in a collective is named' 6 'rank 1 of 3 hangs: .* after 3 s'
probe late 3 nccl --spawn 3 --points nccl-allreduce 'bytes=3000 ranks=3' gpu 0.01
check 'a rank that does not join' 6 'the communicator was not created'
probe stopped 3 nccl --spawn 3 --points nccl-allreduce 'bytes=3000 ranks=3' gpu 0.01
check 'a rank that hangs between collectives is named' 6 'rank 1 of 3 hangs: it has not answered for 3 s'
unset FAKE_RANK FAKE_CALL DLMODEL_PATIENCE_S
rm -f "$work"/fake-nccl-* # of ranks that never met
probe wrong 2 nccl --spawn 2 --points nccl-allreduce 'bytes=3000 ranks=2' gpu 0.01
check 'a collective that is wrong' 6 'wrong result'
probe - 2 nccl --points nccl-allreduce 'bytes=3000 ranks=2' gpu 0.01
check 'neither launcher nor --spawn' 6 'start this program with mpirun or srun'
# As Slurm starts them: two tasks on one node, which learn from their environment who they are
slurm_task() {
    SLURM_PROCID=$1 SLURM_LOCALID=$1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST=localhost SLURM_JOB_ID=$$ SLURM_STEP_ID=1 \
        FAKE_CUDA_COUNT=2 LD_LIBRARY_PATH=$fakes "$fakes/dlmodel-probe-nccl" --points nccl-allreduce 'bytes=4096 ranks=2' gpu 0.01
}
slurm_task 1 > "$work/out1" 2> "$work/err1" < /dev/null &
slurm_task 0 > "$work/out" 2> "$work/err" < /dev/null
status=$?
wait
check 'ranks that srun started meet' 0
says 'ranks that srun started: rank 0 alone prints' [ "$(grep -c '"sample"' "$work/out")" -eq 1 -a ! -s "$work/out1" ]
if command -v mpirun > /dev/null 2>&1 && [ -x "$(dirname "$fakes")/dlmodel-probe-mpi" ] && mpirun --version 2> /dev/null | grep -q 'Open MPI'; then
    FAKE_CUDA_COUNT=2 LD_LIBRARY_PATH=$fakes mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2 "$fakes/dlmodel-probe-nccl" \
        --points nccl-allreduce 'bytes=4096 ranks=2' gpu 0.01 > "$work/out" 2> "$work/err" < /dev/null
    status=$?
    check 'ranks that mpirun started meet' 0
    says 'ranks that mpirun started: one sample' [ "$(grep -c '"sample"' "$work/out")" -eq 1 ]
    # one process a "node", each with two ranks of its own
    FAKE_CUDA_COUNT=2 LD_LIBRARY_PATH=$fakes mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2 "$fakes/dlmodel-probe-nccl" --spawn 2 \
        --points nccl-allreduce 'bytes=4096 ranks=4 nodes=2' gpu-net 0.01 nccl-sendrecv 'bytes=4096 ranks=2 nodes=2' gpu-net 0.01 > "$work/out" 2> "$work/err" < /dev/null
    status=$?
    check 'two ranks on each of two nodes' 0
    says 'two ranks on each of two nodes: two samples' [ "$(grep -c '"sample"' "$work/out")" -eq 2 ]
fi

# ---- MPI from device memory; the MPI here knows of no GPU, and the fake's memory is the host's ----
if command -v mpirun > /dev/null 2>&1 && [ -x "$(dirname "$fakes")/dlmodel-probe-mpi" ] && mpirun --version 2> /dev/null | grep -q 'Open MPI'; then
    real_mpi=$(dirname "$fakes")/dlmodel-probe-mpi
    messages() { # messages SCENE ARGS...: two ranks
        FAKE_CUDA=$1 FAKE_CUDA_COUNT=2 LD_LIBRARY_PATH=$fakes timeout 400 mpirun --allow-run-as-root --oversubscribe --bind-to none --mca btl vader,self \
            -np 2 "$real_mpi" --points gpu-pingpong 'bytes=4000 ranks=2' shm 0.02 gpu-allreduce 'bytes=4000 ranks=2' shm 0.02 > "$work/out" 2> "$work/err" < /dev/null
        status=$?
    }
    DLMODEL_MPI_CUDA=0 && export DLMODEL_MPI_CUDA
    messages -
    check 'MPI without GPUs' 0
    says 'MPI without GPUs: both are left out with the reason' [ "$(grep -c 'does not support device buffers' "$work/out")" -eq 2 ]
    DLMODEL_MPI_CUDA=1
    messages -
    check 'MPI from device memory is right' 0
    says 'MPI from device memory: two samples' [ "$(grep -c '"sample"' "$work/out")" -eq 2 ]
    messages wrong
    says 'MPI from device memory that is wrong' grep -q 'a message delivered wrong data' "$work/err"
    messages nodevice
    has 'MPI without a device' 'no GPU is visible'
    cp "$real_mpi" "$work/bin/"
    FAKE_CUDA_COUNT=2 LD_LIBRARY_PATH=$fakes run calibrate --list
    has '--list: MPI was asked' 'gpu-pingpong +yes'
    FAKE_CUDA_COUNT=2 LD_LIBRARY_PATH=$fakes run calibrate --quick --budget 1 --only gpu-allreduce,allreduce -o "$work/mpi.json"
    check 'calibrate: MPI from device memory' 0
    says 'the profile has it' [ "$(grep -c '"buffers": *"device"' "$work/mpi.json")" -eq 1 ]
    rm -f "$work/bin/dlmodel-probe-mpi"
    unset DLMODEL_MPI_CUDA
else
    echo 'skip MPI from device memory: no Open MPI (Debian package libopenmpi-dev)'
fi

# ---- topology ----
mkdir -p "$work/sys/bus/pci/devices" "$work/sys/class/infiniband" "$work/sys/class/net" "$work/sys/module/nvidia_peermem"
adapter() { # adapter NAME PATH RATE: a verbs adapter below /sys/devices
    mkdir -p "$work/sys/devices/$2/infiniband/$1/ports/1"
    ln -s "../../devices/$2/infiniband/$1" "$work/sys/class/infiniband/$1"
    ln -s "../.." "$work/sys/devices/$2/infiniband/$1/device"
    echo '4: ACTIVE' > "$work/sys/devices/$2/infiniband/$1/ports/1/state"
    echo 'InfiniBand' > "$work/sys/devices/$2/infiniband/$1/ports/1/link_layer"
    echo "$3 Gb/sec (4X EDR)" > "$work/sys/devices/$2/infiniband/$1/ports/1/rate"
    echo "${4:-0}" > "$work/sys/devices/$2/numa_node"
}
gpu_at() { # gpu_at PATH: where the device 0000:3b:00.0 hangs
    mkdir -p "$work/sys/devices/$1"
    echo 0 > "$work/sys/devices/$1/numa_node"
    rm -f "$work/sys/bus/pci/devices/0000:3b:00.0"
    ln -s "../../../devices/$1" "$work/sys/bus/pci/devices/0000:3b:00.0"
}
switch=pci0000:3a/0000:3a:00.0/0000:50:00.0
gpu_at "$switch/0000:51:04.0/0000:3b:00.0"
adapter mlx5_0 "$switch/0000:51:08.0/0000:5e:00.0" 100
adapter mlx5_1 "$switch/0000:51:10.0/0000:60:00.0/0000:61:00.0/0000:62:00.0" 100
adapter mlx5_2 pci0000:3a/0000:3a:02.0/0000:70:00.0 100
adapter mlx5_3 pci0000:17/0000:17:00.0/0000:18:00.0 100 0
adapter mlx5_4 pci0000:ae/0000:ae:00.0/0000:af:00.0 25 1
probe - 1 cuda --list
for want in 'nic_0:mlx5_0 infiniband 100 Gb/s PIX' 'nic_1:.* PXB' 'nic_2:.* PHB' 'nic_3:.* NODE' 'nic_4:mlx5_4 infiniband 25 Gb/s SYS'; do
    has "an adapter: $want" "\"key\":\"${want%%:*}\",\"value\":\"${want#*:}\""
done
has 'GPUDirect' '"gpudirect","value":"nvidia_peermem"'
probe - 4 cuda --list
has 'NVLinks of a mesh' '"gpu_links","value":"0-1:2 0-2:2 0-3:2 1-2:2 1-3:2 2-3:2"'
has 'their generation' '"gpu_link_kind","value":"nvlink2"'
FAKE_CUDA_LINKS=switch && export FAKE_CUDA_LINKS
probe - 4 cuda --list
has 'NVLinks to switches' '"gpu_switch_links","value":"12"'
hasnt 'no links between pairs then' '"gpu_links"'
FAKE_CUDA_LINKS=none
probe - 4 cuda --list
hasnt 'no NVLinks' 'gpu_link'
unset FAKE_CUDA_LINKS

# ---- dlmodel calibrate ----
gpu - 1 calibrate --list
check 'calibrate --list' 0
has 'calibrate --list: the GPU can be measured' 'gpu-gemm +yes'
gpu nodriver 1 calibrate --list
has 'calibrate --list without a driver says why' 'gpu-gemm +no .*no NVIDIA driver'
mkdir "$work/lacking"
cp "$fakes"/lib* "$work/lacking/"
: > "$work/lacking/libcudnn.so" # not just away: this machine may have a real one
LD_LIBRARY_PATH=$work/lacking run calibrate --list
has 'without libcudnn the rest is there' 'gpu-gemm +yes'
has 'without libcudnn the reason is the loader'"'"'s' 'gpu-conv +no .*dlmodel-probe-cudnn does not run: .*libcudnn'
LD_LIBRARY_PATH=$work/lacking run calibrate --only gpu-conv -o "$profile"
check 'without libcudnn --only gpu-conv' 6 'libcudnn'
rm -f "$work/lacking/libnvidia-ml.so.1"
LD_LIBRARY_PATH=$work/lacking "$fakes/dlmodel-probe-cuda" --points gpu-gemm "$square" fwd 0.01 > "$work/out" 2> "$work/err"
status=$?
check 'without NVML' 0
has 'without NVML it says what was not watched' '"nvml","value":"not installed'

gpu - 2 calibrate --dry-run --csv
check 'the plan' 0
has 'the plan: products' '^gpu-gemm,fwd,m=4096 n=4096 k=4096'
has 'the plan: mixed precision' '^gpu-conv,bwd_filter,.* prec=mixed'
hasnt 'the plan: no tf32 before Ampere' 'prec=tf32'
hasnt 'the plan: not the arithmetic of the CPU' '^conv,'
has 'the plan: collectives over both devices' '^nccl-allreduce,gpu,bytes=8 ranks=2'
FAKE_CUDA_CAPABILITY=90 && export FAKE_CUDA_CAPABILITY
gpu - 1 calibrate --dry-run --csv
has 'the plan on Hopper: fp8' 'prec=fp8'
has 'the plan on Hopper: tf32' '^gpu-conv.*prec=tf32'
hasnt 'one device: no collectives' '^nccl'
unset FAKE_CUDA_CAPABILITY
gpu - 1 calibrate --dry-run --csv --gpus 0
hasnt '--gpus 0' '^gpu'
has '--gpus 0: the CPU' '^conv,'
gpu - 1 calibrate --dry-run --gpus 3
check '--gpus beyond what is there' 2 'only 1 are visible'
gpu nodriver 1 calibrate --dry-run --gpus 1
check '--gpus without a driver' 6 'no NVIDIA driver'
gpu - 1 calibrate --dry-run --csv --quick --workload vgg16
has '--workload: its exact layers' '^gpu-conv,bwd_data,n=32 c=256 f=512 h=28 w=28 r=3'
has '--workload: its products' '^gpu-gemm,fwd,m=[0-9]+ n=[0-9]+ k=25088|^gpu-gemm,fwd,m=25088|^gpu-gemm,fwd,m=4096 n=32 k=25088'
gpu - 1 calibrate --dry-run --workload nosuchnet
check '--workload of an unknown name' 2 'nosuchnet'

for scene in nodriver nodevice; do
    gpu $scene 1 calibrate --only gpu-gemm -o "$profile"
    check "$scene: --only gpu-gemm" 6 'NVIDIA driver|no GPU is visible'
done
gpu busy 1 calibrate --quick --only gpu-gemm -o "$profile"
check 'a busy GPU ends it' 6 'in use by process 4242'
says 'a busy GPU: no profile' [ ! -e "$profile" ]
rm -f "$journal"

# Under sanitizers without the convolutions, which the probes' own checks make slow
kinds=gpu-gemm,gpu-copy,gpu-launch,gpu-host,gpu-norm,gpu-act,nccl-allreduce,nccl-sendrecv fits=fit_gemm_fwd_mixed
[ -z "${SANITIZED-}" ] && kinds='' fits=fit_conv_fwd_mixed
gpu - 2 calibrate --quick --budget 1 ${kinds:+--only $kinds} -o "$profile"
check 'a quick calibration' 0
has 'the summary names the device' 'Fake GPU'
says 'the journal is gone' [ ! -e "$journal" ]
for f in 'local-gpu' 'nvlink2' '"nccl"' $fits 'fit_stream_fwd_fp32' 'gpu_disturbed' 'copy_bandwidth_bytes_per_s' 'clock_hz' '"fp16"' 'PIX'; do
    says "the profile has $f" grep -q -- "$f" "$profile"
done
for w in resnet50 bert_base vgg16; do
    for p in fp32 mixed; do
        run predict --system "$profile" --workload $w --framework pytorch-ddp --nodes 1 --precision $p
        check "predict takes it: $w $p" 0
    done
done
run explain --all --system "$profile" --workload resnet50 --framework pytorch-ddp --nodes 1
has 'explain: kernel times are fitted' 'fitted'
[ -n "$kinds" ] || hasnt 'explain: convolutions come from no datasheet' 'conv.*F-KERNEL-ROOFLINE'
cp "$profile" "$work/before.json"
gpu wrong 2 calibrate --quick --budget 1 --only gpu-gemm -o "$profile"
check 'a wrong result ends it' 6 'wrong result.*--resume'
says 'a wrong result: the old profile is untouched' cmp -s "$profile" "$work/before.json"
rm -f "$journal"
gpu small 1 calibrate --quick --budget 0.5 --only gpu-gemm,gpu-copy -o "$work/small.json"
check 'a device with little memory: what does not fit is skipped' 0 'gpu-(gemm|copy) skipped: allocating .*out of memory'

# A rank dies, then all is well again
FAKE_RANK=1 FAKE_CALL=400 && export FAKE_RANK FAKE_CALL
rm -f "$profile"
gpu die 2 calibrate --quick --budget 0.5 --only nccl-allreduce,nccl-broadcast -o "$profile"
check 'a rank dies' 6 'killed by signal 9.*continue with --resume'
kept=$(grep -c '"sample"' "$journal")
says 'a rank dies: finished samples are kept' [ "$kept" -gt 3 ]
unset FAKE_RANK FAKE_CALL
gpu - 2 calibrate --quick --resume -o "$profile"
check '--resume completes' 0
says '--resume keeps the samples' [ "$(grep -c '"median_s"' "$profile")" -gt "$kept" ]

# A rank hangs, then all is well again
rm -f "$profile"
FAKE_RANK=1 FAKE_CALL=400 DLMODEL_PATIENCE_S=2 && export FAKE_RANK FAKE_CALL DLMODEL_PATIENCE_S
gpu mute 2 calibrate --quick --budget 0.5 --only nccl-allreduce,nccl-broadcast -o "$profile"
check 'a rank hangs' 6 'rank 1 of 2 hangs.*continue with --resume'
unset FAKE_RANK FAKE_CALL DLMODEL_PATIENCE_S
gpu - 2 calibrate --quick --resume -o "$profile"
check 'after a rank that hung --resume completes' 0

# 8 times killed at another moment, each after at least one more sample; a calibration that ends first begins again
rm -f "$profile"
some=gpu-gemm,gpu-batch,gpu-norm,gpu-layernorm,gpu-copy,nccl-allreduce,nccl-broadcast
finished() { grep -c '"sample"' "$journal" 2> /dev/null; }
before=0 lost=0 round=0 starts=0
while [ $round -lt 8 ] && [ $starts -lt 100 ]; do
    starts=$((starts + 1))
    FAKE_CUDA_COUNT=2 LD_LIBRARY_PATH=$fakes PATH=$work/path "$DLMODEL" calibrate --quick --budget 16 --only $some --resume -o "$profile" \
        > /dev/null 2>&1 < /dev/null &
    pid=$!
    tries=0
    while [ $tries -lt 400 ] && kill -0 $pid 2> /dev/null; do
        now=$(finished)
        [ "${now:-0}" -gt "$before" ] && break
        tries=$((tries + 1))
        sleep 0.05
    done
    sleep "0.0$((round * 3 % 5))" # short enough that 8 rounds usually end before the calibration
    kill -9 $pid 2> /dev/null
    wait $pid 2> /dev/null
    if [ -e "$profile" ]; then
        rm -f "$profile" "$journal"
        before=0
        continue
    fi
    now=$(finished)
    [ "${now:-0}" -lt "$before" ] && lost=$((lost + 1))
    before=${now:-0}
    round=$((round + 1))
done
status=$round
says 'kill -9: 8 times, and no profile from some of the samples' [ $round -eq 8 ]
says 'kill -9: no finished sample is lost' [ $lost -eq 0 ]
rm -f "$work"/fake-nccl-*
gpu - 2 calibrate --quick --resume -o "$profile"
check 'kill -9: --resume completes' 0
says 'kill -9: every sample once' [ "$(grep -c '"median_s"' "$profile")" -ge "$before" -a \
    -z "$(grep -E '"(probe|shape|pass)"' "$profile" | paste - - - 2> /dev/null | sort | uniq -d)" ]
gpu - 1 predict --system "$profile" --workload resnet50 --framework pytorch-ddp --nodes 1
check 'kill -9: predict takes the profile' 0

# Places that cannot be written
gpu - 1 calibrate --quick --budget 0.2 --only gpu-gemm -o /proc/nowhere/p.json
check 'a directory that cannot be made' 5 '/proc'
mkdir -p "$work/tiny"
if [ "$(id -u)" -eq 0 ] && PATH=$usual mount -t tmpfs -o size=8k tmpfs "$work/tiny" 2> /dev/null; then
    gpu - 1 calibrate --quick --budget 0.2 --only gpu-gemm -o "$work/tiny/p.json"
    check 'a file system that fills up' 5 'tiny/p.json.*No space left'
    PATH=$usual mount -o remount,ro "$work/tiny"
    gpu - 1 calibrate --quick --budget 0.2 --only gpu-gemm -o "$work/tiny/q.json"
    check 'a read-only file system' 5 'tiny/q.json.*[Rr]ead-only'
    PATH=$usual umount "$work/tiny"
else
    echo 'skip a full and a read-only file system: mounting one is not allowed here'
fi

# Without a GPU the CPU part is done, and what was left out is said
if [ -x "$work/bin/dlmodel-probe-cpu" ] && "$work/bin/dlmodel-probe-cpu" --list | grep -Eq '"name":"(gemm|matmul)"\}' && [ -z "${SANITIZED-}" ]; then
    gpu nodriver 1 calibrate --quick --budget 0.1 -o "$work/cpu.json"
    check 'no GPU: the CPU part' 0 'no GPU is measured: no NVIDIA driver'
    says 'no GPU: a profile of the CPU' grep -q '"local-cpu"' "$work/cpu.json"
fi

# ---- its own allocation ----
run calibrate --submit --nodes 4 --quick --only "gpu-gemm,it's" --dry-run -o "$work/a b.json"
check '--submit --dry-run' 0
has '--submit: nodes' '^#SBATCH --nodes=4$'
has '--submit: words are quoted' "--only 'gpu-gemm,it'\\\\''s' -o '.*/a b.json'"
hasnt '--submit: the job does not submit' '^exec.*--submit'
"$DLMODEL" calibrate --submit --gpus 2 --dry-run -o "$profile" > "$work/job.sh"
says '--submit: a script that sh reads' sh -n "$work/job.sh"
cp slurm/sites/iris.json "$work/site.json"
run calibrate --submit --site "$work/site.json" --gpus 4 --account me --dry-run -o "$profile"
check '--submit --site' 0
has 'the partition of the site' '^#SBATCH --partition=gpu$'
has 'the account given' '^#SBATCH --account=me$'
has 'its GPUs' '^#SBATCH --gres=gpu:4$'
hasnt 'the job takes no site' '^exec.*--\(site\|account\)'
run calibrate --submit --partition 'gpu --wrap=x' --dry-run -o "$profile"
check 'a partition is a name' 2 'expected a name'
run calibrate --submit --site nowhere --dry-run -o "$profile"
check 'an unknown site' 2 "unknown site 'nowhere'"
PATH=$work/path run calibrate --submit -o "$profile"
check '--submit without Slurm' 6 'sbatch is not in PATH'
printf '#!/bin/sh\n[ "$1" = --parsable ] && grep -q "^#SBATCH --nodes=2$" "$2" && echo 1234\n' > "$work/path/sbatch"
chmod +x "$work/path/sbatch"
PATH=$work/path run calibrate --submit --nodes 2 -o "$profile"
check '--submit' 0
has '--submit says the job' 'job 1234'
printf '#!/bin/sh\necho "invalid partition" >&2\nexit 1\n' > "$work/path/sbatch"
PATH=$work/path run calibrate --submit -o "$profile"
check '--submit: sbatch refuses' 6 'invalid partition'
run calibrate --submit -o -
check '--submit to standard output' 2 'needs -o FILE'
PATH=$usual
says 'nothing of the fakes is left' [ -z "$(find "$work" -name 'fake-nccl-*')" ]

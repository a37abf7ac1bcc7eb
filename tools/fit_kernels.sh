#!/bin/sh
# Fits the kernel-time models of the devices in by_gpu_*.csv again. PROGRAM: build/dlmodel by default.
# fit_kernels.sh [DEVICE...]
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
program=${PROGRAM:-$here/build/dlmodel}
[ $# -gt 0 ] || set -- a100_sxm4_40 a100_sxm4_80 a100_pcie40 a100_pcie80 h100_sxm h100_pcie h200_sxm \
    h800_sxm b200_sxm gb200 rtx_pro_6000_server rtx4090 l4 l40s a10 a10g p4 v100_pcie32 mi100 mi210 \
    mi250x_gcd mi300x mi355x p100_pcie16_cuda12 t4_cuda12
for device in "$@"; do
    "$program" calibrate --kernels "$here/data/kernels/by_gpu_gemm.csv" "$here/data/kernels/by_gpu_attention.csv" \
        "$here/data/kernels/by_gpu_conv.csv" "$here/data/kernels/by_gpu_stream.csv" --device "$device" \
        -o "$here/data/kernels/$device.json" ||
        echo "no models of $device" >&2
done

#!/bin/sh
# cuda-headers.sh DIR... - compiles the GPU probes, warnings as errors, against the CUDA, cuDNN and NCCL headers below these
# directories (each is searched), without linking: does the code fit a release of CUDA that is not installed? The PyPI packages
# nvidia-cuda-runtime-cu11, nvidia-cublas-cu11, nvidia-cudnn-cu11, nvidia-nccl-cu11 (and -cu12) have them in nvidia/*/include.
set -u
cd "$(dirname "$0")/.." || exit 2
[ $# -gt 0 ] || { echo 'usage: tests/cuda-headers.sh DIR...' >&2; exit 2; }
includes=
for directory; do
    [ -d "$directory" ] || { echo "no directory $directory" >&2; exit 2; }
    includes="$includes -isystem $directory"
done
failed=0
for source in calibrate/probes/gpu/*.c calibrate/probes/cuda/*.c calibrate/probes/cudnn/*.c calibrate/probes/nccl/*.c; do
    # shellcheck disable=SC2086
    if ${CC:-gcc} -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wwrite-strings -Wvla -Werror -I. $includes -fsyntax-only "$source"; then
        echo "ok $source"
    else
        echo "not ok $source"
        failed=1
    fi
done
exit $failed

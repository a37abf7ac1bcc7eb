#!/bin/sh
# validate_gpu: does the program that judges calibration on a GPU (make validate-gpu) run, and count right? On the fake CUDA libraries, with
# PyTorch on the CPU: its numbers mean nothing here.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
fakes=$(cd "$(dirname "$DLMODEL")/fake_cuda" && pwd) || exit 2
python=${PYTHON:-/usr/bin/python3}
if [ -n "${SANITIZED-}" ]; then
    echo 'skip validate-gpu: once, without sanitizers'
    exit 0
fi
if ! "$python" -c 'import torch' > /dev/null 2>&1; then
    echo "skip validate-gpu: no PyTorch for $python (Debian package python3-torch)"
    exit 0
fi
mkdir "$work/bin"
cp "$DLMODEL" "$fakes"/dlmodel-probe-* "$work/bin/"
ln -s "$(pwd)" "$work/bin/source" # where a build folder finds slurm/ and plots/
export DLMODEL_DATA="${DLMODEL_DATA:-$(pwd)/data}" OMP_NUM_THREADS=1
unset DLMODEL_LIBEXEC FAKE_CUDA
validate() { # validate SCENE ARGS...
    scene=$1
    shift
    FAKE_CUDA=$scene LD_LIBRARY_PATH=$fakes "$python" tests/gpu/validate.py --dlmodel "$work/bin/dlmodel" --out "$work/v" --device cpu --steps 3 --warmup 1 \
        --budget 0.2 "$@" > "$work/out" 2> "$work/err" < /dev/null
    status=$?
}

# The same shapes: results have the sizes that the probes' have (column-major, so transposed here)
"$python" - > "$work/out" 2> "$work/err" << 'PY'
import sys
sys.path.insert(0, "tests/gpu")
import torch, rates
where = torch.device("cpu")
def made(probe, shape, p="fwd"):
    return rates.MAKERS[probe](rates.numbers(shape), p, torch.float32, where)()
for ta in (0, 1):
    for tb in (0, 1):
        assert made("gpu-gemm", "m=5 n=3 k=7 ta=%d tb=%d" % (ta, tb)).shape == (3, 5)
        assert made("gpu-batch", "m=5 n=3 k=7 ta=%d tb=%d b=4" % (ta, tb)).shape == (4, 3, 5)
conv = "n=2 c=4 f=6 h=9 w=8 r=3 q=1 s=2 p=1 t=0 g=2"
assert made("gpu-conv", conv).shape == (2, 6, 5, 4)
assert made("gpu-conv", conv, "bwd_data").shape == (2, 4, 9, 8) and made("gpu-conv", conv, "bwd_filter").shape == (6, 2, 3, 1)
assert made("gpu-attention", "n=2 heads=3 q=5 d=4").shape == (6, 5, 4) and len(made("gpu-attention", "n=2 heads=3 q=5 d=4", "bwd_data")) == 3
assert made("gpu-pool", "n=1 c=2 h=9").shape == (1, 2, 5, 5) and made("gpu-softmax", "n=3 c=4 h=1", "bwd_data")[0].shape == (3, 4)
assert abs(float(made("gpu-layernorm", "n=3 c=64").mean())) < 1e-5
picked = list(rates.chosen([{"probe": "gpu-act", "pass": "fwd", "median_s": t} for t in (1e-6, 1e-4, 2e-4, 3e-4, 4e-4)], 2, 3e-5, 1))
assert [s["median_s"] for s in picked] == [1e-4, 3e-4], picked
PY
status=$?
check 'PyTorch is asked for the same shapes' 0

validate - --workloads lenet --precisions fp32 --batches 4,8 --calibrate '--only gpu-gemm,gpu-conv' --rates '--most 1 --from-s 1e-6 --to-s 3e-5'
check 'a validation' 0
has 'both calibrations are timed' '^\| full \| [0-9]+ \| 300 \| [0-9]+ \|'
has 'rates and those of PyTorch' '^\| gpu-gemm \| fwd \| fp32 \| 1 \| [0-9.]+ \|'
has 'steps and memory are compared' '^\| lenet \| fp32 \| 8 \| [0-9.]+ \| [0-9.]+ \| [-+][0-9.]+ \|'
has 'their errors are summed up' '^peak memory: 2 compared, mean [0-9.]+ %'
for f in profile.json rates.csv steps.csv table.md log.txt; do says "it leaves $f" [ -s "$work/v/$f" ]; done
says 'the error of a row is predicted over measured' awk -F, 'NR > 1 { n++; if ($5 <= 0 || $6 <= 0 || $10 <= 0) bad = 1 } END { exit bad || n != 2 }' "$work/v/steps.csv"
rm -rf "$work/v"
validate nodevice --workloads lenet --calibrate '--only gpu-gemm'
check 'without a GPU it fails' 1
has 'without a GPU it says where' 'failed: exit status 6, see log.txt'
says 'without a GPU: the reason is in the log' grep -q 'no GPU is visible' "$work/v/log.txt"

#!/bin/sh
# gpu_kit: the folder with which a GPU is measured (tools/gpu_kit): is it small, does it build its probes, calibrate, train, stop in time and keep
# what it has? On the fake CUDA libraries, with PyTorch on the CPU: its numbers mean nothing here.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
fakes=$(cd "$(dirname "$DLMODEL")/fake_cuda" && pwd) || exit 2
python=${PYTHON:-/usr/bin/python3}
if [ -n "${SANITIZED-}" ]; then
    echo 'skip gpu_kit: once, without sanitizers'
    exit 0
fi
if ! "$python" -c 'import torch' > /dev/null 2>&1; then
    echo "skip gpu_kit: no PyTorch for $python (Debian package python3-torch)"
    exit 0
fi
BUILD=$(cd "$(dirname "$DLMODEL")" && pwd)
export BUILD OMP_NUM_THREADS=1
unset DLMODEL_LIBEXEC DLMODEL_DATA FAKE_CUDA
kit="$work/the k it"

sh tools/gpu_kit "$kit" > "$work/out" 2> "$work/err"
status=$?
check 'the folder is made' 0
says 'it has at most 60 MiB' [ "$(du -sm "$kit" | cut -f 1)" -le 60 ]
has 'it says the command' '^.*/the k it: [0-9]+ MiB; .*python3 .*run.py$'
mkdir "$work/thesis"
: > "$work/thesis/chapter"
sh tools/gpu_kit "$work/thesis" > "$work/out" 2> "$work/err"
status=$?
check 'another folder is left alone' 2 'is no kit'
says 'and keeps its files' [ -e "$work/thesis/chapter" ]

# The networks are those of the workloads: as many weights (and running statistics), without filling them.
cat > "$work/counts.py" << 'PY'
import json, subprocess, sys
sys.path.insert(0, sys.argv[1])
import torch, networks, run
for name in ("kaiming_uniform_", "uniform_", "normal_"):
    setattr(torch.nn.init, name, lambda tensor, *_, **__: tensor)
for name, workload in run.NETWORKS.items():
    model = networks.make(workload)
    own = sum(p.numel() * 4 for p in model.parameters()) + sum(4 for k in model.state_dict() if k.endswith("num_batches_tracked"))
    own += sum(b.numel() * 4 for k, b in model.named_buffers() if "running" in k)
    got = subprocess.run([sys.argv[2], "-q", "predict", "-s", "h200-8x", "-w", workload, "-f", "pytorch-ddp", "--gpus", "1", "-b", "1", "-p", "fp32",
                          "--optimizer", "sgd", "--json"], stdout=subprocess.PIPE, check=True)
    weights = json.loads(got.stdout)["results"][0]["memory"]["weights_bytes"]
    print("%s %s %d %d" % ("equal" if own == weights else "other", name, own, weights))
PY
"$python" "$work/counts.py" "$kit" "$DLMODEL" > "$work/out" 2> "$work/err"
status=$?
check 'weights of all networks' 0
says 'are those of the workloads' [ "$(grep -c '^equal ' "$work/out")" -eq 5 ]

# Results of PyTorch's operators have the sizes that the probes' have (column-major, so transposed here).
"$python" - "$kit" > "$work/out" 2> "$work/err" << 'PY'
import sys
sys.path.insert(0, sys.argv[1])
import torch, rates, tables
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
# the power of a run is that of its own time
power = [{"time_s": str(t), "power_w": str(w), "sm_clock_hz": ""} for t, w in ((1, 90), (2, 300), (3, 310), (4, 320), (5, 95))]
ran = {"name": "a", "torch": "2", "workload": "resnet50", "precision": "bf16", "mode": "graphs", "optimizer": "momentum", "batch": 2, "steps": 30,
       "began": 1.5, "ended": 4.5, "iteration_s": 0.1, "low_s": 0.1, "high_s": 0.2}
row, = tables.runs([ran, {"name": "b", "failed": "why"}], power, "1xh200_sxm", "s")
assert row["power_median_w"] == 310 and row["sm_clock_median_hz"] == "" and row["cuda_graphs"] == "iteration" and row["value"] == "0.1", row
PY
status=$?
check 'PyTorch gets the same shapes, runs their power' 0

# A machine with a fake driver and CUDA in a folder of its own.
mkdir -p "$work/cu da" "$work/path"
ln -s "$(pwd)/tests/fake_cuda/include" "$work/cu da/include"
ln -s "$fakes" "$work/cu da/lib64"
cat > "$work/path/nvidia-smi" << 'SH'
#!/bin/sh
case "$*" in
*query-gpu=name*) echo 'NVIDIA H200' ;;
*-lms*) while :; do echo '351.5, 1980, 45' && sleep 0.1 || exit; done ;;
*) echo 'Product Name : NVIDIA H200' ;;
esac
SH
chmod +x "$work/path/nvidia-smi"
tiny='gpt:layers=1,hidden=64,heads=4,kv_heads=2,ffn=128,seq=32,vocab=100,mlp=swiglu,norm=rmsnorm,pos=rope,tied=0,experts=4,topk=2,expert_ffn=64'
results="$work/re sults"
kit_run() { # kit_run SCENE ARGS...
    scene=$1
    shift
    rm -rf "$results" "$results.tar.gz"
    FAKE_CUDA=$scene FAKE_CUDA_CAPABILITY=90 LD_LIBRARY_PATH=$fakes CUDA_HOME="$work/cu da" PATH="$work/path:$PATH" \
        "$python" "$kit/run.py" --out "$results" --device cpu --networks "$tiny" --batch 2 --steps 2 --warmup 1 "$@" > "$work/out" 2> "$work/err" < /dev/null
    status=$?
}
kit_run - --calibrate '--budget 0.5 --only gpu-gemm,gpu-conv' --rates '--most 1 --from-s 1e-6 --to-s 3e-5'
check 'a run' 0
for f in profile.json runs.csv gemm.csv conv.csv rates.csv comparison.md power.csv environment.txt log.txt; do says "it leaves $f" [ -s "$results/$f" ]; done
says 'three cases have times' [ "$(grep -c '^kit-.*,iteration,[0-9.e-]*,s,' "$results/runs.csv")" -eq 3 ]
says 'the power is recorded' grep -q '^[0-9.]*,351.5,1980000000,45$' "$results/power.csv"
has 'the comparison has profile and device' '^\| network0-bf16 \| 2 \| [0-9.]+ \| [0-9.]+ \| [-+][0-9.]+ \| (yes|no) \| [0-9.]+ \| [-+][0-9.]+ \|'
has 'a case that cannot run says why' '^\| network0-bf16-graphs \| 2 \| CUDA graphs need a GPU'
has 'kernels against the device file' '^\| gemm.csv \| [1-9][0-9]* \| 0 \|'
has 'and against PyTorch' '^\| gpu-gemm \| fwd \| fp32 \| 1 \| [0-9.]+ \|'
says 'all is in one archive' [ "$(tar -tzf "$results.tar.gz" | grep -cE '/(profile.json|runs.csv|comparison.md|train/network0-bf16.json)$')" -eq 4 ]
cp "$results/runs.csv" "$work/runs.csv"
run compare "$work/runs.csv" --rows
check 'dlmodel reads its runs' 0
has 'all of them' '^ all +3 +0 .* all$'

kit_run - --seconds 12
check 'no time: exit status' 1
has 'no time: it says so' 'time is over before: environment'
says 'no time: an archive all the same' [ -s "$results.tar.gz" ]
kit_run nodevice --seconds 30 --calibrate '--only gpu-gemm'
check 'no GPU: exit status' 1
says 'no GPU: the log says it' grep -q 'no GPU is visible' "$results/log.txt"
says 'no GPU: what was trained is kept' grep -q '^kit-' "$results/runs.csv"

rm -rf "$results" "$results.tar.gz"
FAKE_CUDA=- LD_LIBRARY_PATH=$fakes CUDA_HOME="$work/cu da" PATH="$work/path:$PATH" "$python" "$kit/run.py" --out "$results" --device cpu --networks "$tiny" \
    --calibrate '--budget 60' > "$work/out" 2> "$work/err" < /dev/null &
pid=$!
says 'a signal: it calibrates' within 120 grep -qs '"sample"' "$results/profile.json.journal"
kill -TERM $pid
wait $pid
status=$?
check 'a signal: exit status' 1
has 'a signal: it says so' 'stopped: signal 15'
says 'a signal: the samples are in the archive' [ "$(tar -xOzf "$results.tar.gz" 're sults/profile.json.journal' | grep -c '"sample"')" -gt 0 ]
says 'nothing runs on' [ -z "$(pgrep -f "$results")" ]

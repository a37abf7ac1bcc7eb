#!/bin/sh
# python: the Python module against the program's JSON, and the notebook of docs/. Installation by pip: wheel.sh.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
built=$(cd "$(dirname "$DLMODEL")" && pwd)
export DLMODEL DLMODEL_DATA="${DLMODEL_DATA:-$(pwd)/data}" DLMODEL_LIBRARY="$built/libdlmodel.so.0"
if [ -n "${SANITIZED-}" ]; then
    echo 'skip python: the library has sanitizers, Python has none'
    exit 0
fi
if ! command -v python3 > /dev/null 2>&1; then
    echo 'skip python: no Python (Debian package python3)'
    exit 0
fi
export PYTHONDONTWRITEBYTECODE=1
PYTHONPATH=$(pwd)/python python3 tests/python/test_dlmodel.py > "$work/out" 2> "$work/err"
status=$?
check 'the module gives what the program prints' 0
python3 tools/python_types.py "$DLMODEL" > "$work/typed.py"
status=$?
check 'the types of the Python module' 0
says 'they are those of the program (make golden-accept)' cmp "$work/typed.py" python/dlmodel/typed.py
if command -v mypy > /dev/null 2>&1; then
    # releases before 1.7 check options (PEP 692) on demand; the module's own sources are checked elsewhere, and reading pandas'
    # takes a minute
    MYPYPATH=$(pwd)/python mypy --strict --enable-incomplete-feature=Unpack --follow-imports=silent --cache-dir="$work/mypy" \
        --no-site-packages --ignore-missing-imports \
        tests/python/typed_sample.py > "$work/out" 2> "$work/err"
    status=$?
    says 'mypy finds the misuse of the sample' test "$(grep -c 'typed_sample.py:\(29\|3[012]\): error' "$work/out")" = 4
    says 'and nothing else' test "$(grep -c error: "$work/out")" = 4
else
    echo 'skip the types of a program: no mypy (Debian package mypy)'
fi
PYTHONPATH=$(pwd)/python python3 tests/python/test_snapshot.py > "$work/out" 2> "$work/err"
status=$?
check "snapshots of PyTorch's memory" 0
# predicted memory as such a snapshot: its peak is the total without the context, what lies outside of the allocator
peak() { PYTHONPATH=$(pwd)/python python3 -c 'import dlmodel, sys; print(dlmodel.read_snapshot(sys.argv[1], int(sys.argv[2])).peak_allocated_bytes)' "$work/m.pickle" "$1"; }
run predict -w resnet50 -s iris-v100 -f pytorch-ddp -n 1 -b 32 --json --trace "$work/m.pickle"
check 'predict --trace m.pickle' 0
says 'the peak of the written snapshot' test "$(peak 0)" = "$(jq '.results[0].memory | .total_bytes - .context_bytes | floor' "$SCRATCH/out")"
run predict -w llama3_8b -s dgx-h100 -f megatron-core --tp 4 --pp 2 -n 1 -B 16 --micro-batch 1 -p bf16 --json --trace "$work/m.pickle"
check 'predict --trace m.pickle: a pipeline' 0
largest=$(peak 0)
[ "$(peak 1)" -le "$largest" ] || largest=$(peak 1)
says 'a device for each stage' test "$largest" = "$(jq '.results[0].memory | .total_bytes - .context_bytes | floor' "$SCRATCH/out")"
PYTHONPATH=$(pwd)/python python3 - docs/notebook.ipynb > "$work/out" 2> "$work/err" << 'PY'
import json, sys
notebook = json.load(open(sys.argv[1]))
assert notebook["nbformat"] == 4
space = {}
for cell in notebook["cells"]:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]), space)
print("cells run:", sum(cell["cell_type"] == "code" for cell in notebook["cells"]))
PY
status=$?
check 'the cells of the notebook run' 0
has 'all of them' '^cells run: [1-9]'
# A file that was recorded from PyTorch 2.15: 3 blocks of a transformer with grouped queries and one output shared with the embedding.
fixture=tests/fixtures/recorded/tiny.json
mkdir -p "$work/data/workloads"
cp "$fixture" "$work/data/workloads"
for part in data/*; do [ "$part" = data/workloads ] || ln -s "$(pwd)/$part" "$work/data/"; done
run --data "$work/data" list workloads --json
check 'a recorded workload is listed' 0
has 'with the parameters that PyTorch counts' '"parameters": 155840'
has 'and its multiply-adds' '"forward_macs_per_sample": 5316608'
run predict --workload "$fixture" --system dgx-a100-80 --framework megatron-core --nodes 3 --tp 2 --pp 3 --micro-batch 1 --global-batch 96
check 'its blocks are split by tensor and pipeline ranks' 0
PYTHONPATH=$(pwd)/python python3 -m dlmodel --help > "$work/out" 2> "$work/err"
status=$?
check 'python -m dlmodel says how to record a model' 0
has 'with examples' 'python -m dlmodel torchvision resnet50'
mkdir -p "$work/none/torch"
echo 'raise ImportError("none here")' > "$work/none/torch/__init__.py"
PYTHONPATH=$work/none:$(pwd)/python python3 -m dlmodel torchvision resnet50 > "$work/out" 2> "$work/err"
status=$?
check 'without PyTorch it says what to install' 5 'pip install dlmodel\[torch\]'

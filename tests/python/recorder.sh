#!/bin/sh
# recorder: models recorded from PyTorch 2 against its own counters and the named workloads. PyTorch, torchvision, timm, transformers and
# diffusers are those of build/python/torch (make deps DEPS=rest), else of python3.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
built=$(cd "$(dirname "$DLMODEL")" && pwd)
export DLMODEL DLMODEL_DATA="${DLMODEL_DATA:-$(pwd)/data}" DLMODEL_LIBRARY="$built/libdlmodel.so.0" PYTHONDONTWRITEBYTECODE=1
PYTHONPATH=$(pwd)/python
export PYTHONPATH
for python in "$(pwd)/build/python/torch/bin/python" python3; do
    "$python" -c 'import dlmodel; dlmodel.from_torch' > /dev/null 2>&1 && break
    python=
done
if [ -z "$python" ]; then
    echo 'skip recorder: PyTorch 2.5 or later is not here (make deps DEPS=rest)'
    exit 0
fi
"$python" tests/python/test_recorder.py > "$SCRATCH/out" 2> "$SCRATCH/err"
status=$?
sed -n "s/^\(.*\) \.\.\. ok$/ok \1/p; s/^\(test_[a-z_]*\) .*skipped '\(.*\)'$/skip \1: \2/p" "$SCRATCH/err"
check 'recorded models are exact' 0

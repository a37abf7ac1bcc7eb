#!/bin/sh
# python: the Python module against the program's JSON, its installation by pip, and the notebook of docs/.
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
if python3 -c 'import setuptools, pip, wheel' > /dev/null 2>&1; then
    cp -r python "$work/python"
    python3 -m pip install --quiet --no-build-isolation --no-deps --no-index --target "$work/site" "$work/python" > "$work/out" 2> "$work/err"
    status=$?
    check 'pip installs it' 0
    (cd "$work" && PYTHONPATH=$work/site python3 -c 'import dlmodel; print(dlmodel.__file__, dlmodel.version())') > "$work/out" 2> "$work/err"
    status=$?
    check 'and it runs from there' 0
    has 'from there' '/site/dlmodel/'
else
    echo 'skip installation by pip: no pip, setuptools or wheel (Debian packages python3-pip, python3-setuptools, python3-wheel)'
fi

#!/bin/sh
# wheel: one file for pip, with the program, the library and the data; installed offline into an empty environment and used from elsewhere.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
built=$(cd "$(dirname "$DLMODEL")" && pwd)
if [ -n "${SANITIZED-}" ]; then
    echo 'skip wheel: once, without sanitizers'
    exit 0
fi
if ! python3 -c 'import ensurepip, venv' > /dev/null 2>&1; then
    echo 'skip wheel: no Python with virtual environments (Debian package python3-venv)'
    exit 0
fi
export PYTHONDONTWRITEBYTECODE=1
mkdir "$work/again" "$work/else where"
BUILD=$built python3 packaging/wheel.py "$work" > "$work/out" 2> "$work/err"
status=$?
check 'the wheel is built' 0
wheel=$(ls "$work"/dlmodel-*.whl)
BUILD=$built python3 packaging/wheel.py "$work/again" > "$work/out" 2> "$work/err"
says 'twice the same bytes' cmp "$wheel" "$work/again/${wheel##*/}"

# The tag names the newest glibc that a file of the wheel needs, found here with another tool.
python3 -m venv "$work/ve nv" && "$work/ve nv/bin/python" -m pip install --quiet --no-index "$wheel" > "$work/out" 2> "$work/err"
status=$?
check 'pip installs it without a network' 0
newest=$(find "$work/ve nv/bin/dlmodel" "$work/ve nv/share/dlmodel/lib" -type f -exec objdump -T {} + | grep -o 'GLIBC_2\.[0-9]*' | sort -t. -k2 -n | tail -1)
says 'the tag is the glibc that it needs' test "${wheel##*manylinux_2_}" = "${newest#GLIBC_2.}_$(uname -m).whl"

clean() { # clean COMMAND...: in the environment of nobody, from another folder
    (cd "$work/else where" && env -i PATH="$work/ve nv/bin:/usr/bin:/bin" LC_ALL=C PYTHONDONTWRITEBYTECODE=1 "$@") > "$work/out" 2> "$work/err"
    status=$?
}
run predict --system iris-v100 --workload resnet50 --framework pytorch-ddp --nodes 4 --json
cp "$work/out" "$work/expected"
clean dlmodel predict --system iris-v100 --workload resnet50 --framework pytorch-ddp --nodes 4 --json
check 'its program predicts' 0
says 'the same' cmp "$work/expected" "$work/out"
clean python -c 'import dlmodel
print(dlmodel.Model().text({"command": "predict", "options": {"system": "iris-v100", "workload": "resnet50", "framework": "pytorch-ddp", "nodes": 4}}), end="")'
check 'its module predicts' 0
says 'the same in Python' cmp "$work/expected" "$work/out"
clean dlmodel list systems --json
jq length "$work/out" > "$work/judged"
says 'all systems came along' test "$(cat "$work/judged")" = "$(find data/systems -name '*.json' | wc -l)"
clean dlmodel plot breakdown --framework pytorch-ddp --nodes 1,2 -o figure.svg
if grep -q 'gnuplot is needed' "$work/err"; then echo 'skip wheel: it draws: no gnuplot (Debian package gnuplot-nox)'; else check 'it draws' 0; fi
clean dlmodel slurm --help
check 'commands with scripts of their own' 0
clean ldd "$work/ve nv/share/dlmodel/lib/libdlmodel.so.0"
says 'no library of this machine but those of glibc' test "$(grep -c '=> /\(usr/\)\?lib' "$work/out")" = "$(grep -c 'lib\(c\|m\)\.so\.6 =>' "$work/out")"
"$work/ve nv/bin/python" -m pip install --quiet --no-index --target "$work/target" "$wheel" > "$work/out" 2> "$work/err"
clean env PYTHONPATH="$work/target" python3 -c 'import dlmodel; print(dlmodel.__file__, len(dlmodel.names("systems")))'
check 'pip install --target' 0
has 'from there' '/target/dlmodel/.* [1-9]'
"$work/ve nv/bin/python" -m pip uninstall --quiet --yes dlmodel > "$work/out" 2> "$work/err"
says 'no file is left after it is removed' test -z "$(find "$work/ve nv" -path '*dlmodel*' -type f)"

#!/bin/sh
# states: the commands, the service and the figures as users have them: a fresh home, a calibrated one, one with a site and systems of its
# own, a home that cannot be written, none at all, and a program from `make install`. The other tests hide homes. All folders have blanks,
# the checkout, DESTDIR and PREFIX too.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
unset DLMODEL_LOCAL DLMODEL_DATA DLMODEL_SITE XDG_DATA_HOME XDG_CONFIG_HOME
if [ -n "${SANITIZED-}" ]; then
    echo 'skip states: once, without sanitizers'
    exit 0
fi
root=$(pwd)
profile=$root/tests/fixtures/advise/system.json
python=$(command -v python3)

# What every user does first. battery STATE SYSTEM [STATUS]: in the environment as it is; SYSTEM is the one that predict takes by itself,
# STATUS what calibrate exits with where there is no profile.
battery() {
    state=$1
    run predict --nodes 1 --json
    check "$state: predict" 0
    has "$state: for $2" "\"system\": \"$2\""
    for command in explain search advise match report cite 'plot timeline --framework pytorch-ddp --format terminal'; do
        # shellcheck disable=SC2086 # words of a command
        run $command --nodes 1
        check "$state: $command" 0
    done
    run probe-run --framework pytorch-ddp --nodes 8
    check "$state: probe-run" 0
    run compare "$root/data/runs/keras_aws.csv"
    check "$state: compare" 0
    printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"predict","arguments":{"nodes":1}}}' > "$SCRATCH/request"
    "$DLMODEL" mcp < "$SCRATCH/request" > "$SCRATCH/out" 2> "$SCRATCH/err"
    status=$?
    check "$state: mcp" 0
    has "$state: mcp predicts for $2" "system[^a-z]*$2"
    run list systems
    if [ "$2" = local ]; then has "$state: local is listed" '^ *local '; else hasnt "$state: no local is listed" '^ *local '; fi
    run plot scaling --nodes 1,2 --framework pytorch-ddp -o "$SCRATCH/pic ture.svg"
    [ "$status" -eq 6 ] || check "$state: plot" 0
    run calibrate --compare "$profile"
    if [ "$2" = local ]; then check "$state: the profile is compared" 0; else check "$state: no profile to compare" "$3" 'no profile|no place'; fi
}
service() { # service STATE: the same over HTTP
    "$DLMODEL" serve --listen nowhere > "$SCRATCH/out" 2>&1
    [ $? -eq 6 ] || [ -z "$python" ] || PYTHONDONTWRITEBYTECODE=1 "$python" "$root/tests/serve/states.py" "$1" "$SCRATCH"
}

HOME="$SCRATCH/fresh ho me"
export HOME SCRATCH
mkdir "$HOME"
battery 'fresh home' iris-v100 5
service 'fresh home'
says 'a fresh home stays as it was' [ -z "$(ls -A "$HOME")" ]

HOME="$SCRATCH/calibrated ho me"
mkdir -p "$HOME/.local/share/dlmodel"
cp "$profile" "$HOME/.local/share/dlmodel/local.json"
battery 'calibrated home' local
service 'calibrated home'

# The user's own site, and a data folder with a system of that name and another.
HOME="$SCRATCH/own ho me"
export DLMODEL_DATA="$SCRATCH/own da ta"
mkdir -p "$HOME/.config/dlmodel" "$DLMODEL_DATA/systems"
sed 's/"name": *"[^"]*"/"name": "mine"/' "$profile" > "$DLMODEL_DATA/systems/mine.json"
printf '{"format": "dlmodel-site", "version": 1, "name": "ours", "summary": "s", "source": "own", "system": "mine", "device": "gpu", "devices_per_node": 3, "partition": "p7"}\n' \
    > "$HOME/.config/dlmodel/site.json"
battery 'own site and systems' iris-v100 5
service 'own site and systems'
run predict --system mine --nodes 1 --json
check 'own system by its name' 0
run slurm script --framework pytorch-ddp --workload resnet50 --nodes 2
check 'a job for the own site' 0
has 'on its partition' '^#SBATCH --partition=p7'
printf '{"format": "dlmodel-site", "version": 1, "name": 5}\n' > "$HOME/.config/dlmodel/site.json"
run slurm script --framework pytorch-ddp --nodes 2
check 'a broken site names its file and place' 3 'own ho me/.config/dlmodel/site.json:1:[0-9]*: error: name: '
printf '{\n' > "$HOME/.config/dlmodel/site.json"
run serve --listen 127.0.0.1:1
[ "$status" -eq 6 ] || check 'serve does not start with a broken site' 3 'site.json:2:1: error: '
unset DLMODEL_DATA

HOME=/dev/null/home # not even root can write there
battery 'a home that cannot be written' iris-v100 5
run calibrate --quick
if grep -q 'built without OpenBLAS and oneDNN' "$SCRATCH/err"; then
    echo 'skip calibrate where it cannot write: built without OpenBLAS and oneDNN (Debian packages libopenblas-dev, libdnnl-dev)'
else
    check 'and calibrate says so before it measures' 5 'cannot make directory'
fi
service 'a home that cannot be written'
unset HOME
battery 'no home' iris-v100 2
service 'no home'

# `make install` from a checkout with blanks, by a compiler that compiles nothing: files arrive where they should, uninstall removes them, and
# what lies next to them stays.
HOME="$SCRATCH/calibrated ho me"
export HOME
REAL=$(realpath "$DLMODEL")
export REAL
unset MAKEFLAGS MFLAGS MAKELEVEL BUILD
tools="$SCRATCH/to ols"
checkout="$SCRATCH/sp ace/check out"
mkdir -p "$tools" "$checkout"
# It writes an empty object for -c, else a program that is this one: install asks it for the manual.
cat > "$tools/nocc" << 'EOF'
#!/bin/sh
out=
while [ $# -gt 0 ]; do
    case $1 in -o) out=$2; shift ;; esac
    shift
done
case $out in
'') ;;
*.o) : > "$out" ;;
*) printf '#!/bin/sh\nexec "$REAL" "$@"\n' > "$out" && chmod +x "$out" ;;
esac
EOF
chmod +x "$tools/nocc"
PATH="$tools:$PATH"
tar -c Makefile dlmodel.c calibrate data docs import include library model packaging plots predict serve slurm tests/tests.mk | tar -x -C "$checkout"
made() { # made NAME ARGUMENTS: make in the checkout
    name=$1
    shift
    (cd "$checkout" && make --no-print-directory CC=nocc PROTOBUF_C=0 "$@") > "$SCRATCH/out" 2> "$SCRATCH/err" < /dev/null
    status=$?
    check "$name" 0
}
made 'make in a folder with blanks' -j4 all
says 'it finds its own folder' [ -d "$checkout/build/source/plots" ]

dest="$SCRATCH/u v's"
mkdir -p "$SCRATCH/u" "$dest"
echo kept > "$SCRATCH/u/file"
for prefix in /usr '/opt/my models'; do
    where="PREFIX $prefix"
    missing=
    made "install: $where" install DESTDIR="$dest" PREFIX="$prefix"
    for file in bin/dlmodel share/dlmodel/data/systems/iris-v100.json share/dlmodel/slurm/sites/iris.json share/dlmodel/plots/style.gp \
        share/man/man1/dlmodel.1 share/man/man1/dlmodel-predict.1 include/dlmodel.h lib/libdlmodel.so.0 lib/pkgconfig/dlmodel.pc \
        share/bash-completion/completions/dlmodel share/zsh/site-functions/_dlmodel libexec/dlmodel/dlmodel-probe-cpu; do
        [ -e "$dest$prefix/$file" ] || missing="$missing $file"
    done
    says "install: $where: all files$missing" [ -z "$missing" ]
    touch "$dest$prefix/bin/other" "$dest$prefix/lib/libdlmodel.txt"
    made "uninstall: $where" uninstall DESTDIR="$dest" PREFIX="$prefix"
    says "uninstall: $where: what is not ours stays, and nothing else" [ "$(cd "$dest$prefix" && find . -type f -o -type l | sort | tr '\n' ' ')" = './bin/other ./lib/libdlmodel.txt ' ]
    rm -rf "${dest:?}$prefix"
done
says 'DESTDIR: nothing next to it is touched' [ "$(ls "$SCRATCH/u")$(cat "$SCRATCH/u/file")" = filekept ]
says 'DESTDIR: nothing goes into the checkout' [ -z "$(find "$checkout" -maxdepth 1 -name 'v*')" ]

# `make -n uninstall` can be read before it is run: each rm with its path in quotes.
(cd "$checkout" && make -n uninstall DESTDIR='/x/u v' PREFIX=/usr) > "$SCRATCH/out" 2> "$SCRATCH/err"
status=$?
check 'make -n uninstall' 0
says 'make -n uninstall: each rm has one quoted path' [ "$(grep -c . "$SCRATCH/out")" -eq "$(grep -cE "^rm -r?f '/x/u v/usr/[^']*'[^ ]*$" "$SCRATCH/out")" ]

refused() { # refused NAME REGEX ARGUMENTS
    name=$1 regex=$2
    shift 2
    (cd "$checkout" && make "$@") > "$SCRATCH/out" 2> "$SCRATCH/err" < /dev/null
    status=$?
    check "$name" 2 "$regex"
}
refused 'BUILD with a blank' 'BUILD: expected the name of a folder without blanks' BUILD='a b' all
refused 'a quote in PREFIX' 'PREFIX and LIBDIR: expected paths without quotes' PREFIX="/a'b" uninstall

# As packages install it, away from the source tree.
made 'install for use' install DESTDIR="$SCRATCH/in stalled" PREFIX=/usr
DLMODEL="$SCRATCH/in stalled/usr/bin/dlmodel"
export DLMODEL
cp "$REAL" "$DLMODEL"
cd "$SCRATCH" || exit 2
battery 'installed, calibrated home' local
service 'installed, calibrated home'
run slurm script --site iris --framework pytorch-ddp --nodes 2
check 'installed: a job' 0
has 'installed: its program' 'in stalled/usr/share/dlmodel/slurm/frameworks'

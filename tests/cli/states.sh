#!/bin/sh
# states: the commands, the service and the figures as users have them: a fresh home, a calibrated one, one with a site and systems of its
# own, a home that cannot be written, none at all, and a program from `make install`. All folders have blanks. The other tests hide homes.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
unset DLMODEL_LOCAL DLMODEL_DATA DLMODEL_SITE XDG_DATA_HOME XDG_CONFIG_HOME
if [ -n "${SANITIZED-}" ]; then
    echo 'skip states: once, without sanitizers'
    exit 0
fi
root=$(pwd)
profile=$root/tests/fixtures/advise/system.json
says() {
    name=$1
    shift
    if "$@"; then printf 'ok %s\n' "$name"; else bad "$name" "failed: $*"; fi
}
python=$(command -v python3)

# What every user does first. battery STATE SYSTEM: in the environment as it is; SYSTEM is the one that predict takes by itself.
battery() {
    state=$1
    run predict --nodes 1 --json
    check "$state: predict" 0
    has "$state: for $2" "\"system\": \"$2\""
    for command in explain search advise match report; do
        run $command --nodes 1
        check "$state: $command" 0
    done
    run list systems
    if [ "$2" = local ]; then has "$state: local is listed" '^local '; else hasnt "$state: no local is listed" '^local '; fi
    run plot scaling --nodes 1,2 --framework pytorch-ddp -o "$SCRATCH/pic ture.svg"
    [ "$status" -eq 6 ] || check "$state: plot" 0
    run calibrate --show
    if [ "$2" = local ]; then check "$state: the profile is shown" 0; else check "$state: no profile to show" 2 'calibrate'; fi
    "$DLMODEL" serve --listen nowhere > "$SCRATCH/out" 2>&1
    [ $? -eq 6 ] || [ -z "$python" ] || PYTHONDONTWRITEBYTECODE=1 "$python" "$root/tests/serve/states.py" "$state" "$SCRATCH"
}

HOME="$SCRATCH/fresh ho me"
export HOME SCRATCH
mkdir "$HOME"
battery 'fresh home' iris-v100
says 'a fresh home stays as it was' [ -z "$(ls -A "$HOME")" ]

HOME="$SCRATCH/calibrated ho me"
mkdir -p "$HOME/.local/share/dlmodel"
cp "$profile" "$HOME/.local/share/dlmodel/local.json"
battery 'calibrated home' local

# The user's own site, and a data folder with a system of that name and another.
HOME="$SCRATCH/own ho me"
export DLMODEL_DATA="$SCRATCH/own da ta"
mkdir -p "$HOME/.config/dlmodel" "$DLMODEL_DATA/systems"
sed 's/"name": *"[^"]*"/"name": "mine"/' "$profile" > "$DLMODEL_DATA/systems/mine.json"
printf '{"format": "dlmodel-site", "version": 1, "name": "ours", "summary": "s", "source": "own", "system": "mine", "device": "gpu", "devices_per_node": 3, "partition": "p7"}\n' \
    > "$HOME/.config/dlmodel/site.json"
battery 'own site and systems' iris-v100
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
battery 'a home that cannot be written' iris-v100
run calibrate --quick
check 'and calibrate says so before it measures' 5 'cannot make directory'
unset HOME
battery 'no home' iris-v100

# As packages install it: make install into a prefix, away from the source tree.
HOME="$SCRATCH/calibrated ho me"
export HOME
built=$(realpath "$DLMODEL")
make -s --no-print-directory BUILD="$(basename "$(dirname "$built")")" install DESTDIR="$SCRATCH/in stalled" PREFIX=/usr > "$SCRATCH/out" 2> "$SCRATCH/err"
status=$?
check 'make install' 0
DLMODEL="$SCRATCH/in stalled/usr/bin/dlmodel"
export DLMODEL
cd "$SCRATCH" || exit 2 # nothing of the source tree is near
battery 'installed, calibrated home' local
run slurm script --site iris --framework pytorch-ddp --nodes 2
check 'installed: a job' 0
has 'installed: its program' 'in stalled/usr/share/dlmodel/slurm/frameworks'

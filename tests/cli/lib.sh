# shellcheck shell=sh
# lib.sh - for tests of the command line. A test is a script that sources this file, runs the program and says what it expects:
#
#   run ARGS...                 runs $DLMODEL; its output is in $SCRATCH/out and $SCRATCH/err, its exit status in $status
#   check NAME STATUS [REGEX]   one result line: exit status as expected, and standard error matches REGEX (extended)
#   has NAME REGEX              standard output matches
#   hasnt NAME REGEX            there is standard output, and it does not match
#   says NAME COMMAND...        one result line: COMMAND succeeds
#   within SECONDS COMMAND...   waits until COMMAND succeeds; fails when SECONDS are over. Generous: a busy machine is no fault
#
# $DLMODEL is the program, $SCRATCH an empty folder of the test's own. Lines "ok NAME" and "not ok NAME" are counted.

# A profile of this machine would become the default system; tests/run hides it too.
: "${DLMODEL_LOCAL:=/dev/null/local.json}"
export DLMODEL_LOCAL
: "${DLMODEL:?set DLMODEL to the program}"
: "${SCRATCH:?set SCRATCH to an empty folder}"

run() {
    "$DLMODEL" "$@" > "$SCRATCH/out" 2> "$SCRATCH/err" < /dev/null
    status=$?
}

bad() { # bad NAME REASON
    printf 'not ok %s\n  %s\n  exit %s\n' "$1" "$2" "$status"
    head -c 600 "$SCRATCH/err" | sed 's/^/  err: /'
    head -c 300 "$SCRATCH/out" | sed 's/^/  out: /'
}

check() {
    if [ "$status" -ne "$2" ]; then
        bad "$1" "expected exit $2"
    elif [ -n "${3-}" ] && ! grep -Eq -- "$3" "$SCRATCH/err"; then
        bad "$1" "expected on stderr: $3"
    elif grep -Eq 'AddressSanitizer|runtime error:|LeakSanitizer' "$SCRATCH/err"; then
        bad "$1" 'a sanitizer spoke'
    else
        printf 'ok %s\n' "$1"
    fi
}

has() {
    if grep -Eq -- "$2" "$SCRATCH/out"; then printf 'ok %s\n' "$1"; else bad "$1" "expected on stdout: $2"; fi
}

hasnt() {
    if [ ! -s "$SCRATCH/out" ]; then
        bad "$1" 'expected output'
    elif grep -Eq -- "$2" "$SCRATCH/out"; then
        bad "$1" "not expected on stdout: $2"
    else
        printf 'ok %s\n' "$1"
    fi
}

says() {
    name=$1
    shift
    if "$@"; then printf 'ok %s\n' "$name"; else bad "$name" "failed: $*"; fi
}

within() {
    within_turns=$(($1 * 20))
    shift
    until "$@"; do
        [ "$within_turns" -gt 0 ] || return 1
        within_turns=$((within_turns - 1))
        sleep 0.05
    done
}

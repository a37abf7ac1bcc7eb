#!/bin/sh
# campaign.sh BUILD SECONDS [TARGETS...] - runs the fuzzers of BUILD in turns of SECONDS each, one at a time: $TURNS of each target, or until
# it is ended. Adds a line "DATE BUILD TARGET RUNS SECONDS STATUS" to $FUZZ_LOG (BUILD/fuzz.log) for each; `campaign.sh --sum LOG` adds up.
# What a target finds lies in BUILD/finds; its turns go on, and the exit status is 1. FUZZ_CORPUS: where the growing corpora are (BUILD/corpus).
# Inputs are at most 1024 bytes in one turn, 256 in the next, which is up to three times as fast, then 1024 and 8192, for whole models and traces.
set -u
cd "$(dirname "$0")/../.." || exit 2
if [ "${1-}" = --sum ]; then
    awk '{ runs[$3] += $4; s[$3] += $5; all += $4; finds[$3] += $6 != 0 }
        END { for (t in runs) printf "%-14s %12d runs %8d s %3d turns with a find\n", t, runs[t], s[t], finds[t]; printf "%-14s %12d runs\n", "~sum", all }' "$2" | sort
    exit
fi
build=${1:?BUILD} seconds=${2:?SECONDS}
shift 2
log=${FUZZ_LOG:-$build/fuzz.log} corpus=${FUZZ_CORPUS:-$build/corpus}
mkdir -p "$build/finds"
child=
trap '[ -z "$child" ] || kill "$child" 2> /dev/null; exit 0' INT TERM
if [ $# -eq 0 ]; then
    for source in tests/fuzz/fuzz_*.c; do
        source=${source#tests/fuzz/fuzz_}
        set -- "$@" "${source%.c}"
    done
fi
turn=0 finds=0
while [ "$turn" -lt "${TURNS:-1000000000}" ]; do
    turn=$((turn + 1))
    case $((turn % 4)) in 0) bytes=8192 ;; 2) bytes=256 ;; *) bytes=1024 ;; esac
    for target in "$@"; do
        program=$build/tests/fuzz/fuzz_$target
        [ -x "$program" ] || continue
        mkdir -p "$corpus/$target"
        began=$(date +%s)
        "$program" -max_total_time="$seconds" -max_len="$bytes" -timeout=20 -rss_limit_mb=1024 -entropic=0 -print_final_stats=1 \
            -artifact_prefix="$build/finds/$target-" "$corpus/$target" "tests/fuzz/corpus/$target" > "$build/finds/$target.said" 2>&1 &
        child=$!
        wait "$child"
        status=$?
        child=
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/finds/$target.said")
        echo "$(date -u +%FT%TZ) $build $target ${runs:-0} $(($(date +%s) - began)) $status" >> "$log"
        [ -z "${TURNS-}" ] || echo "$target: ${runs:-0} runs"
        [ "$status" -eq 0 ] || { finds=$((finds + 1)); tail -n 20 "$build/finds/$target.said" >&2; }
    done
done
[ "$finds" -eq 0 ]

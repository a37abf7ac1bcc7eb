#!/bin/sh
# one.sh FOLDER NUMBER - runs the test on line NUMBER of FOLDER/list ("KIND DIR PREFIX FILE", with tabs between them) and counts what it says. tests/run calls it,
# several at a time. It leaves in FOLDER, the last of them when everything is there:
#   NUMBER.log     what the test said, when something failed
#   NUMBER.skips   what was skipped, and why
#   NUMBER.count   "CHECKS NAME" of a script that passed and skipped nothing
#   NUMBER.done    "PASSED FAILED SKIPPED SECONDS NAME"
# KIND is cmocka (a program; test functions count), corpus (a fuzzer's replay program; the corpus counts as one), fuzz (a fuzzer for a few
# seconds) or tap (a script that prints "ok NAME", "not ok NAME", "skip NAME: REASON" lines). A crash, a timeout and a test that says nothing are one failure.
# Environment: TEST_TIMEOUT, the seconds that a program may take (900: a hang ends, a busy machine does not fail); a script may take three times that.
set -u
folder=$1 number=$2
limit=${TEST_TIMEOUT:-900}
IFS='	' read -r kind dir prefix file << EOF
$(sed -n "${number}p" "$folder/list")
EOF
[ "$prefix" = - ] && prefix= || prefix="$prefix "
name=$prefix$(basename "${file%.*}")
said=$folder/$number.said
passed=0 failed=0 skipped=0
: > "$folder/$number.skips"
lines() { grep -c "$1" "$said"; }
limited() { # limited SECONDS COMMAND...: NUMBER.pid is there while it runs, for tests/run to end it when it is ended itself
    timeout -k 60 "$@" > "$said" 2>&1 &
    echo $! > "$folder/$number.pid"
    wait $!
    status=$?
    rm -f "$folder/$number.pid"
}
# tests.mk builds these only where there is jansson
jansson_or_skip() { # jansson_or_skip PROGRAM
    [ ! -x "$1" ] && grep -q '^#include <jansson.h>' "$file" || return 1
    echo "$name: no jansson (Debian package libjansson-dev)" > "$folder/$number.skips"
    skipped=1 status=0
    : > "$said"
}

start=$(date +%s%N)
case $kind in
cmocka)
    limited "$limit" "$dir/${file%.c}"
    passed=$(lines '^\[       OK \]')
    failed=$(($(lines '^\[  FAILED  \] [a-z]') / 2)) # cmocka names each failed test twice: when it fails and in its summary
    skipped=$(($(lines '^\[  SKIPPED \] [a-z]') / 2))
    grep '^skip ' "$said" | sort -u | sed "s/^skip /$prefix/" > "$folder/$number.skips"
    ;;
fuzz)
    target=$(basename "$file" .c)
    name="${prefix}fuzz ${target#fuzz_}"
    mkdir -p "$folder/$number.corpus"
    jansson_or_skip "$dir/tests/fuzz/$target" ||
        limited "$limit" "$dir/tests/fuzz/$target" -max_total_time="${FUZZ_SECONDS:-5}" -max_len=2048 -timeout=60 \
            -artifact_prefix="$folder/$number." "$folder/$number.corpus" "tests/fuzz/corpus/${target#fuzz_}"
    # the input that it found, for whoever reads the log
    for found in "$folder/$number".*-*; do [ ! -e "$found" ] || { echo "${found##*/}, base64:"; base64 "$found"; } >> "$said"; done
    [ "$status" -ne 0 ] || [ "$skipped" -ne 0 ] || passed=1
    rm -rf "$folder/$number.corpus"
    ;;
corpus)
    target=$(basename "$file" .c)
    name="${prefix}corpus ${target#fuzz_}"
    jansson_or_skip "$dir/tests/fuzz/replay_$target" ||
        limited "$limit" "$dir/tests/fuzz/replay_$target" "tests/fuzz/corpus/${target#fuzz_}"
    [ "$status" -ne 0 ] || [ "$skipped" -ne 0 ] || passed=1
    ;;
tap)
    scratch=$folder/$number.scratch
    mkdir -p "$scratch"
    interpreter=$(head -n 1 "$file" | sed 's/^#!//')
    export DLMODEL="$dir/dlmodel" SCRATCH="$scratch"
    limited $((3 * limit)) "$interpreter" "$file"
    rm -rf "$scratch"
    passed=$(lines '^ok ')
    failed=$(lines '^not ok ')
    skipped=$(lines '^skip ')
    recorded=$(sed -n "s/^\([0-9]*\) $name\$/\1/p" tests/counts.txt)
    if [ "$status" -eq 0 ] && [ "$failed" -eq 0 ] && [ "$skipped" -eq 0 ]; then
        echo "$passed $name" > "$folder/$number.count"
        if [ "$passed" -lt "${recorded:-0}" ]; then
            echo "$passed checks, but tests/counts.txt records $recorded; where they were removed on purpose: make counts-accept" >> "$said"
            failed=1
        fi
    fi
    grep '^skip ' "$said" | sed "s/^skip /$prefix/" > "$folder/$number.skips"
    [ "$failed" -eq 0 ] && [ "$status" -eq 0 ] || { grep -v '^ok ' "$said" > "$said.bad"; mv "$said.bad" "$said"; }
    ;;
*) echo "one.sh: no kind of test is named $kind" > "$said"; status=2 ;;
esac
[ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
[ "$status" -ne 124 ] || echo "no end after the limit (TEST_TIMEOUT=$limit)" >> "$said"
if [ $((passed + failed + skipped)) -eq 0 ]; then
    failed=1
    echo 'it said nothing that could be counted' >> "$said"
fi
if [ "$failed" -gt 0 ]; then mv "$said" "$folder/$number.log"; else rm -f "$said"; fi
seconds=$(awk -v start="$start" -v now="$(date +%s%N)" 'BEGIN { printf "%.1f", (now - start) / 1e9 }')
echo "$passed $failed $skipped $seconds $name" > "$folder/$number.new"
mv "$folder/$number.new" "$folder/$number.done"

#!/bin/sh
# hostile.sh - names that would drive a terminal or a spreadsheet, files without end, a plot program that hangs or prints something else, and
# a limit on file sizes.
cd "$(dirname "$0")/../.." || exit 2
. tests/cli/lib.sh
escape=$(printf '\033')

# A system whose name sets the terminal's title and clears the screen.
sed 's/"name": "iris-v100"/"name": "iris\\u001b]0;owned\\u0007\\u001b[2J\\u009b31m"/' data/systems/iris-v100.json > "$SCRATCH/loud.json"
for command in predict explain; do
    run "$command" --system "$SCRATCH/loud.json" --framework pytorch-ddp --color always
    if [ "$status" -ne 0 ]; then bad "$command with a loud name" 'it failed'
    elif grep -q "$escape\|$(printf '\302\233')" "$SCRATCH/out" "$SCRATCH/err"; then bad "$command: no escape of a name reaches the terminal" "$(grep -n "$escape" "$SCRATCH/out" | head -3 | cat -v)"
    else echo "ok $command: no escape of a name reaches the terminal"; fi
done
run predict --system "$SCRATCH/loud.json" --framework pytorch-ddp -v
if grep -q "$escape" "$SCRATCH/err"; then bad 'notes have no escapes' 'an escape on stderr'; else echo 'ok notes have no escapes'; fi

# Cells that a spreadsheet would run.
for start in '=' '@'; do
    sed "s/\"name\": \"iris-v100\"/\"name\": \"${start}cmd\"/" data/systems/iris-v100.json > "$SCRATCH/formula.json"
    run predict --system "$SCRATCH/formula.json" --framework pytorch-ddp --csv
    if [ "$status" -eq 0 ] && grep -q "'${start}cmd" "$SCRATCH/out" && ! grep -Eq "(^|,|\")${start}cmd" "$SCRATCH/out"; then
        echo "ok a cell that begins with $start is text"
    else
        bad "a cell that begins with $start is text" "$(sed -n 2p "$SCRATCH/out" | cut -c1-80)"
    fi
done

# A message is cut between characters: a long name of two-byte letters, at both parities.
for prefix in '' x; do
    long=$prefix$(printf 'é%.0s' $(seq 1 400))
    run predict --strategy "$long"
    if [ "$status" -eq 2 ] && iconv -f UTF-8 -t UTF-8 "$SCRATCH/err" > /dev/null 2>&1; then echo "ok message with a long name ${prefix:-y}"; else bad "message with a long name ${prefix:-y}" 'not UTF-8'; fi
    run predict --system "$long.json"
    if iconv -f UTF-8 -t UTF-8 "$SCRATCH/err" > /dev/null 2>&1; then echo "ok message with a long file ${prefix:-y}"; else bad "message with a long file ${prefix:-y}" 'not UTF-8'; fi
done

# A file without end is refused soon; memory stays small.
if grep -q "^HAVE_PROTOBUF_C := ." "$(dirname "$DLMODEL")/config.mk" 2> /dev/null; then
    # shellcheck disable=SC3045 # dash and bash have it; elsewhere the limit is missing, the test is not
    (ulimit -v 1500000 2> /dev/null; "$DLMODEL" import onnx /dev/zero > "$SCRATCH/out" 2> "$SCRATCH/err" < /dev/null)
    status=$?
    if nm -D "$DLMODEL" 2> /dev/null | grep -q __asan_init; then echo 'skip an endless model: address space of the sanitizer'; else check 'an endless model' 3 'expected a file of at most'; fi
fi

# gnuplot that prints something else, and one that never ends (the limit is a minute: only that it is ended is of interest, by a signal here).
mkdir -p "$SCRATCH/bin"
printf '#!/bin/sh\necho hello\n' > "$SCRATCH/bin/gnuplot"
chmod +x "$SCRATCH/bin/gnuplot"
PATH=$SCRATCH/bin:$PATH run plot scaling --nodes 1,2 -o "$SCRATCH/not.svg"
check 'what gnuplot prints is no figure' 5 'no svg file'
if [ -e "$SCRATCH/not.svg" ]; then bad 'no file from it' 'there is one'; else echo 'ok no file from it'; fi
if [ "${SLOW_TESTS-}" = 1 ]; then
    printf '#!/bin/sh\nexec sleep 1000\n' > "$SCRATCH/bin/gnuplot"
    PATH=$SCRATCH/bin:$PATH run plot scaling --nodes 1,2 -o "$SCRATCH/not.svg"
    check 'gnuplot that hangs' 5 'did not finish in 60 s'
fi

# A limit on file sizes: an error, and no temporary file stays.
mkdir "$SCRATCH/small"
(ulimit -f 1; exec "$DLMODEL" predict --nodes '1-64*2' --framework all --json -o "$SCRATCH/small/out.json" > "$SCRATCH/out" 2> "$SCRATCH/err" < /dev/null)
status=$?
check 'a limit on file sizes' 5 'File too large'
if [ -z "$(ls -A "$SCRATCH/small")" ]; then echo 'ok no temporary file stays'; else bad 'no temporary file stays' "$(ls -A "$SCRATCH/small")"; fi

# Rows of a benchmark's table whose size is no size are not another program's lines.
cat > "$SCRATCH/nccl.txt" << 'END'
# nThread 1 nGpus 2 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
# all_reduce_perf
#  Rank  0 Group  0 Pid 1 on node1 device  0 [0x07] NVIDIA A100
#  Rank  1 Group  0 Pid 1 on node1 device  1 [0x08] NVIDIA A100
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
        1024           256     float     sum      -1     10.0    0.10    0.10      0     10.0    0.10    0.10      0
END
run import nccl-tests "$SCRATCH/nccl.txt"
check 'a good table of nccl-tests' 0
for size in -2048 2048.5 2k 1e300 0x800; do
    sed "s/^        1024 /        $size /" "$SCRATCH/nccl.txt" > "$SCRATCH/nccl-bad.txt"
    run import nccl-tests "$SCRATCH/nccl-bad.txt"
    check "nccl-tests: a size of $size" 3 'nccl-bad\.txt:6:1: error: size: expected a size in bytes'
done
printf '# OSU MPI Allreduce Latency Test v5.9\n# Size       Avg Latency(us)\n4 1.5\nX8 1.6\n' > "$SCRATCH/osu.txt"
run import osu --ranks 2 --nodes 1 "$SCRATCH/osu.txt"
check 'OSU: a size that is none' 3 'osu\.txt:4:1: error: Size: expected a size in bytes'
printf '{"traceEvents": [{"ph": "X", "name": "ProfilerStep#1", "cat": "user_annotation", "ts": 1, "dur": 1e308}]}' > "$SCRATCH/trace.json"
run import trace --workload resnet50 --batch 2 --device v100_sxm2_16 "$SCRATCH/trace.json"
check 'a trace with an endless step' 3 "event [0-9]+ .'ProfilerStep#1'.: expected a start and a duration"

#!/bin/sh
# oracles.sh - the committed answers of tests/oracle are those of its scripts; neither the order of options nor the locale changes a number.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

for name in nccl_tuning flops record_memory; do
    if ! command -v python3 > /dev/null 2>&1; then
        echo "skip oracle $name: no python3 (Debian package python3)"
    elif python3 "tests/oracle/$name.py" --check; then
        echo "ok oracle $name"
    else
        echo "not ok oracle $name: run tests/oracle/$name.py"
    fi
done

# Options in any order: rotations of twelve of them.
set -- --system=dgx-a100-80 --workload=resnet50 --framework=pytorch-ddp --nodes=1-8*2 --batch-per-device=64 --precision=mixed \
    --optimizer=adam --set=links.inter.bandwidth=20GB/s --set=links.intra.latency=3us --micro-batch=16 --first-epoch --csv
run predict "$@"
check 'options' 0
cp "$SCRATCH/out" "$SCRATCH/first"
same=yes count=$#
while [ "$count" -gt 1 ]; do
    last=$1
    shift
    set -- "$@" "$last"
    count=$((count - 1))
    run predict "$@"
    cmp -s "$SCRATCH/first" "$SCRATCH/out" || { same=no; break; }
done
if [ "$same" = yes ] && [ -s "$SCRATCH/first" ]; then echo 'ok order of options'; else bad 'order of options' "differs: $*"; fi

# A locale whose numbers have a comma.
if command -v localedef > /dev/null 2>&1 && localedef -i de_DE -f UTF-8 "$SCRATCH/de_DE.UTF-8" > /dev/null 2>&1; then
    for command in predict explain search; do
        set -- "$command" --system dgx-a100-80 --workload 'gpt:layers=4,hidden=512,heads=8' --nodes 2 --set links.inter.bandwidth=20.5GB/s
        [ "$command" = search ] && set -- "$@" --global-batch 64
        [ "$command" = predict ] || set -- "$@" --framework megatron
        run "$@"
        cp "$SCRATCH/out" "$SCRATCH/first"
        LOCPATH=$SCRATCH LC_ALL=de_DE.UTF-8
        export LOCPATH LC_ALL
        run "$@"
        unset LOCPATH LC_ALL
        # but for how long a search took, and what two threads pruned meanwhile
        for output in first out; do grep -v "plans evaluated" "$SCRATCH/$output" > "$SCRATCH/$output.numbers"; done
        if [ "$status" -eq 0 ] && [ -s "$SCRATCH/first.numbers" ] && cmp -s "$SCRATCH/first.numbers" "$SCRATCH/out.numbers"; then
            echo "ok $command with commas"
        else
            bad "$command with commas" 'another output'
        fi
    done
else
    echo 'skip commas: no localedef with de_DE (Debian package locales)'
fi

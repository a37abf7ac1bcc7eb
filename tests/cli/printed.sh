#!/bin/sh
# printed.sh - every command line that predict and report print runs as printed, in a shell, and gives the number that they show.
cd "$(dirname "$0")/../.." || exit 2
. tests/cli/lib.sh

own="$SCRATCH/it's my \$(framework).json" # a name that only quoting saves
sed 's/"name": "pytorch-ddp"/"name": "my-ddp"/' data/frameworks/pytorch-ddp.json > "$own"
mkdir -p "$SCRATCH/bin"
ln -sf "$DLMODEL" "$SCRATCH/bin/dlmodel"

iteration_of() { # iteration_of COMMAND: seconds, from the printed command line with --json
    PATH=$SCRATCH/bin:$PATH sh -c "$1 --json" 2> "$SCRATCH/err" < /dev/null | jq -r '.results[0].iteration_s // .iteration_s'
}
same() { # same NAME COMMAND EXPECTED
    if [ -z "$2" ]; then bad "$1" 'no command was printed'; return; fi
    got=$(iteration_of "$2")
    if [ "$got" = "$3" ]; then echo "ok $1"; else bad "$1" "$2: $got instead of $3"; fi
}
from_predict() { # from_predict NAME ARGS...: the line after "Every term:"
    name=$1
    shift
    run predict "$@"
    cp "$SCRATCH/out" "$SCRATCH/table"
    line=$(sed -n 's/^Every term: //p' "$SCRATCH/out" "$SCRATCH/err" | head -n 1)
    case $line in '') bad "predict $name" 'no command was printed'; return ;; esac
    chosen=$(printf '%s\n' "$line" | sed -n 's/.*--framework \([a-z0-9-]*\).*/\1/p')
    run predict "$@" --json
    expected=$(jq -r --arg f "$chosen" '[.results[] | select($f == "" or .framework == $f)] | max_by(.nodes) | .iteration_s' "$SCRATCH/out")
    same "predict $name" "$line" "$expected"
}
command -v jq > /dev/null 2>&1 || { echo 'skip printed commands: no jq (Debian package jq)'; exit 0; }

from_predict 'of one framework' --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 16
from_predict 'with a change' --system iris-v100 --framework horovod-tensorflow --nodes 4 --set links.inter.bandwidth=5GB/s
from_predict 'of a framework file' --system iris-v100 --framework "$own" --set framework.dispatch_s=0.002 --nodes 4
from_predict 'of a transformer' --system dgx-a100-80 --workload gpt:layers=24,hidden=2048 --framework megatron --nodes 2 --tp 4 --pp 2 --micro-batch 1 --precision mixed

from_report() { # from_report NAME ARGS...: the command in the page's last section
    name=$1
    shift
    run report --no-figures --markdown "$@"
    cp "$SCRATCH/out" "$SCRATCH/page"
    line=$(sed -n 's/^ *\(dlmodel explain .*\)$/\1/p' "$SCRATCH/page" | tail -n 1)
    run predict "$@" --json
    [ "$status" -eq 0 ] || run predict "$1" "$2" "$3" "$4" "$5" "$6" "$7" "$8" --json
    same "report $name" "$line" "$(jq -r '.results | max_by(.nodes) | .iteration_s' "$SCRATCH/out")"
}
from_report 'of one framework' --system iris-v100 --workload resnet50 --framework pytorch-ddp --nodes 1-4*2
from_report 'of a framework file, with a title' --system iris-v100 --workload resnet50 --framework "$own" --nodes 4 --title 'A "title" of $(two)'

# The figure uses the same framework as the table: bars of its own name.
if command -v gnuplot > /dev/null 2>&1; then
    run report --system iris-v100 --workload resnet50 --framework "$own" --set framework.dispatch_s=0.002 --nodes 4 -o "$SCRATCH/page.html"
    check 'a page about a framework file' 0
    cp "$SCRATCH/page.html" "$SCRATCH/out"
    has 'table and figures name the file'"'"'s framework' 'my-ddp'
    hasnt 'no figure of the built-in' 'pytorch-ddp</'
fi

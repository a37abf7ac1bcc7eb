#!/bin/sh
# One plan, written in two ways, has one iteration, memory and bottleneck in JSON, and the table shows what JSON says. $DLMODEL is the program.
set -u
common='--workload bert_large --nodes 4 --devices-per-node 8 --batch-per-device 4 --set jitter_frac=0.06 --system dgx1-v100'

# figures OPTIONS... - iteration, memory and bottleneck, all digits
figures() {
    # shellcheck disable=SC2086
    "$DLMODEL" predict $common "$@" --json 2> /dev/null | tr ',{}' '\n\n\n' | grep -E '"(iteration_s|total_bytes|bottleneck)"' | tr -d ' ' | sort -u
}

for framework in ideal megatron pytorch-ddp; do
    wanted=$(figures --framework "$framework" --strategy data)
    [ -n "$wanted" ] || echo "not ok $framework: nothing predicted"
    for words in 'data+tensor --tp 1' '3d --tp 1 --pp 1' 'data+pipeline --pp 1' 'data+filter --tp 1' 'data --micro-batch 4' '3d --tp 1 --pp 1 --sp 1 --zero 0'; do
        # shellcheck disable=SC2086
        found=$(figures --framework "$framework" --strategy $words)
        if [ "$found" = "$wanted" ]; then
            echo "ok $framework: data is $words"
        else
            printf 'not ok %s: data is %s\n%s\n%s\n' "$framework" "$words" "$wanted" "$found"
        fi
    done
done

# shellcheck disable=SC2086
json=$("$DLMODEL" predict $common --framework megatron --json 2> /dev/null | tr ',{}' '\n\n\n' | sed -n 's/.*"iteration_s": *//p' | head -n 1)
# shellcheck disable=SC2086
table=$("$DLMODEL" predict $common --framework megatron 2> /dev/null | awk '$1 == "megatron" { for (i = 2; i <= NF; i++) print $i }')
shown=$(awk -v s="$json" 'BEGIN { printf "%.3g", 1e3 * s }')
if echo "$table" | grep -qx "$shown"; then echo 'ok the table shows what JSON says'; else printf 'not ok the table shows what JSON says: %s of\n%s\n' "$shown" "$table"; fi

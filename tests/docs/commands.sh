#!/bin/sh
# commands.sh - sourced: the commands of a document run.

# run_commands NAME: each line of $SCRATCH/commands, at least 8, in the folder $SCRATCH/at with `dlmodel` in the path.
run_commands() {
    mkdir -p "$SCRATCH/bin" "$SCRATCH/at"
    ln -sf "$DLMODEL" "$SCRATCH/bin/dlmodel"
    [ "$(wc -l < "$SCRATCH/commands")" -ge 8 ] || echo "not ok commands of the $1: $(wc -l < "$SCRATCH/commands")"
    while IFS= read -r line; do
        if (cd "$SCRATCH/at" && PATH=$SCRATCH/bin:$PATH sh -c "$line") > "$SCRATCH/out" 2> "$SCRATCH/err" < /dev/null; then
            echo "ok $1: $line"
        else
            echo "not ok $1: $line"
            cat "$SCRATCH/err"
        fi
    done < "$SCRATCH/commands"
}

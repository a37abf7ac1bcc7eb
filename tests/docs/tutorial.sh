#!/bin/sh
# The commands of docs/tutorial.md run, in their order, in an empty folder.
set -u
mkdir -p "$SCRATCH/bin" "$SCRATCH/at"
ln -sf "$DLMODEL" "$SCRATCH/bin/dlmodel"
sed -n '/^```/,/^```/s/^\$ \(dlmodel .*\)/\1/p' docs/tutorial.md > "$SCRATCH/commands"
[ "$(wc -l < "$SCRATCH/commands")" -ge 8 ] || echo "not ok commands of the tutorial: $(wc -l < "$SCRATCH/commands")"
while IFS= read -r line; do
    if (cd "$SCRATCH/at" && PATH=$SCRATCH/bin:$PATH sh -c "$line") > "$SCRATCH/out" 2> "$SCRATCH/err" < /dev/null; then
        echo "ok tutorial: $line"
    else
        echo "not ok tutorial: $line"
        cat "$SCRATCH/err"
    fi
done < "$SCRATCH/commands"

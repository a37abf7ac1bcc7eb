#!/bin/sh
# The commands of docs/tutorial.md run, in their order, in an empty folder.
set -u
. tests/docs/commands.sh
sed -n '/^```/,/^```/s/^\$ \(dlmodel .*\)/\1/p' docs/tutorial.md > "$SCRATCH/commands"
run_commands tutorial

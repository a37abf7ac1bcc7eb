#!/bin/sh
# cite.sh - BibTeX of the program, of the sources of an answer and of tables: well-formed, each once, none that is no publication.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
entries() { sed -n 's/^@[a-z]*{\(.*\),$/\1/p' "$SCRATCH/out"; }
formed() { # each entry opens, closes, and holds as many { as }
    awk '/^@/ { open++ } /^}$/ { closed++ } { line = $0; gsub(/\\[{}]/, "", line); up += gsub(/{/, "", line); down += gsub(/}/, "", line) }
        /[^\\][&%$#_]/ && !/^@/ { bare++ } END { exit !(open > 0 && open == closed && up == down && !bare) }' "$SCRATCH/out"
}
run cite
check 'the program' 0
says 'is cited alone' test "$(entries)" = dlmodel
run cite -s iris-v100 -w resnet50 -f pytorch-ddp
check 'sources of an answer' 0
says 'are well-formed' formed
has 'the system file' '^@misc\{ulhpc-iris-docs,'
says 'each once' test -z "$(entries | sort | uniq -d)"
unknown=$(entries | grep -vx dlmodel | while read -r key; do grep -q "^- \`$key\`: " data/SOURCES.md || echo "$key"; done)
says 'each is a key of SOURCES.md' test -z "$unknown"
hasnt 'no assumption is a source' '^@misc\{(unverified|assumed|derived|borrowed|fit-runs|measured),'
first=$(entries | sort)
run cite -s dgx-h100 -w llama3_8b -f megatron-core
says 'another answer has others' test "$(entries | sort)" != "$first"
run cite data/runs/keras_aws.csv data/runs/paradl_abci.csv data/runs/keras_aws.csv
check 'sources of tables' 0
says 'are well-formed too' formed
has 'with their names' 'title = \{\{Keras multi\\_gpu\\_model on AWS P3\}\}'
says 'two of them' test "$(entries | wc -l)" -eq 3
run cite data/kernels/deepbench_gemm.csv
if [ "$status" -eq 0 ]; then has 'kernels have sources' '^@misc'; else check 'a table without sources' 3 'source'; fi
run cite --json
check 'only as BibTeX' 2

#!/bin/sh
# Help, man pages, completion and the theory manual: all from the tables of commands and options, so all must agree.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH

run help
commands=$(sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p' "$work/out")
for command in $commands; do
    run help --man "$command"
    check "man page of $command" 0
    cp "$work/out" "$work/page"
    [ "$(sed -n 1p "$work/page" | cut -d' ' -f2)" = "DLMODEL\\-$(echo "$command" | tr '[:lower:]' '[:upper:]')" ] || bad "title of the page of $command" "$(sed -n 1p "$work/page")"
    run help "$command" --help-all
    missing=
    for option in $(sed -n 's/^  \(-., \|    \)\(--[a-z-]*\).*/\2/p' "$work/out"); do
        grep -q -- "$(echo "$option" | sed 's/-/\\\\-/g')" "$work/page" || missing="$missing $option"
    done
    if [ -z "$missing" ]; then echo "ok the page of $command has its options"; else echo "not ok the page of $command has its options:$missing"; fi
    awk '/^Examples/ { on = 1; next } /^$/ { on = 0 } on' "$work/out" | sed 's/^  //; s/-/\\-/g; s/^\./\\\&./' > "$work/examples"
    if [ "$(grep -cxFf "$work/examples" "$work/page")" -ge "$(wc -l < "$work/examples")" ]; then
        echo "ok the page of $command has the examples of its help" # tests/cli/commands.sh runs them
    else echo "not ok the page of $command has the examples of its help"; fi
    if command -v groff > /dev/null 2>&1; then
        groff -man -ww -Tutf8 "$work/page" > "$work/out" 2> "$work/err"
        if [ ! -s "$work/err" ]; then echo "ok the page of $command is sound roff"; else bad "the page of $command is sound roff" "$(head -n 1 "$work/err")"; fi
    fi
done
run help --man
for command in $commands; do grep -q "dlmodel\\\\-$command (1)" "$work/out" || bad 'the page of dlmodel names every command' "$command"; done
run help --man prdict
check 'no such page' 2 "did you mean 'predict'"

for shell in bash zsh; do
    run help --completion $shell
    check "completion of $shell" 0
    cp "$work/out" "$work/completion.$shell"
    lost=
    for word in $commands --system --no-figures --pareto --markdown; do grep -q -- "$word" "$work/out" || lost="$lost $word"; done
    if [ -z "$lost" ]; then echo "ok completion of $shell knows commands and options"; else echo "not ok completion of $shell:$lost"; fi
    if command -v $shell > /dev/null 2>&1; then
        if $shell -n "$work/completion.$shell" 2> "$work/err"; then echo "ok completion is $shell"; else bad "completion is $shell" syntax; fi
    fi
done
cat > "$work/complete.sh" <<'END'
. "$1"
COMP_WORDS=(dlmodel "${@:2}"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_dlmodel
echo "${COMPREPLY[*]}"
END
if command -v bash > /dev/null 2>&1; then
    completed() { # completed NAME EXPECTED WORDS...
        name=$1 expected=$2
        shift 2
        [ "$(bash "$work/complete.sh" "$work/completion.bash" "$@")" = "$expected" ] && echo "ok $name" || bad "$name" "$(bash "$work/complete.sh" "$work/completion.bash" "$@")"
    }
    completed 'a command is completed' 'report' rep
    completed 'an option is completed' '--markdown' report --mark
    completed 'a value is completed' 'csv' predict --format c
fi

# every option, in whatever way the help is called; terms of the answers
run help predict --help-all
cp "$work/out" "$work/all"
run predict --help-all
if cmp -s "$work/out" "$work/all" && grep -q -- '^ *--zero-group' "$work/out"; then echo 'ok predict --help-all'; else bad 'predict --help-all' 'not the text of help predict --help-all'; fi
run help glossary
for term in $(sed -n 's/^\([a-z][a-z-]*\)  *.*/\1/p' "$work/out"); do
    run help "$term"
    has "help $term" "^$term "
done
for term in efficiency exposed jitter measured GPU; do
    run help "$term"
    check "help $term" 0
done

# did you mean
run help unit
check 'a topic' 2 "did you mean 'units'"
run predict --strategy dta
check 'a strategy' 2 'did you mean "data"'
run predict --system v100
check 'one of several systems' 2 'did you mean "abci-v100", .*, \.\.\.\? \(.dlmodel list systems. shows all\)'
run predict --workload BERT-Large
check 'a name in another case' 0
run predict --framework pytorch
check 'one of several frameworks' 2 'did you mean "horovod-pytorch", "pytorch-ddp", "pytorch-dp", "pytorch-fsdp" or "pytorch-fsdp2"\?'
run help predict search
check 'two words' 2 'expected one command or topic'
run help --completion fish
check 'a shell' 2 'expected one of bash, zsh'

# theory
run help theory
check 'the whole manual' 0
has 'it is the manual' '^# The model$'
hasnt 'it is wrapped' '^.{106}'
run help theory F-NCCL
has 'what a formula is' '^F-NCCL: NCCL'
has 'where it stands' '^  code +[a-z/]*nccl'
has 'its source' '^  source +nccl-tuning'
has 'its derivation' 'T = latency'
run help theory interval
has 'without F-, in small letters' '^F-INTERVAL: 80 %'
run help theory F-COLL-RNG
check 'a formula' 2 "did you mean 'F-COLL-RING'"
run explain --system iris-v100 --framework pytorch-ddp --nodes 2 --csv
for id in $(grep -ohE 'F-[A-Z]+(-[A-Z0-9]+)*' "$work/out" | sort -u); do
    run help theory "$id"
    check "explain's $id leads to its derivation" 0
    [ "$(grep -c . "$work/out")" -gt 3 ] || bad "derivation of $id" 'only its row of the index'
done

# Every key of gpt: is explained.
run help models
check 'help models' 0
for key in $(sed -n '/"parameters": {/,/}/p' data/workloads/gpt.json | grep -o '"[a-z_]*":' | tr -d '":' | grep -v '^parameters$'); do
    has "help models: $key" "(^|[^a-z_])$key([^a-z_]|\$)"
done

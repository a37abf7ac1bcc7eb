#!/bin/sh
# samples.sh DLMODEL [check] - the outputs in README.md and docs/examples.md: below a line "$ dlmodel ..." inside a fence stands what that command prints, up
# to the end of the fence. `check` only compares. Run by `make accuracy`.
set -eu
dlmodel=$1
mode=${2-}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$(realpath "$dlmodel")" "$work/bin/dlmodel"
ln -s "$PWD/data" "$work/data" # commands may write files: they run in a folder of their own
export DLMODEL_LOCAL=/dev/null/local.json PATH="$work/bin:$PATH" # no profile of this machine

for document in README.md docs/examples.md; do
    fence=0 skip=0
    while IFS= read -r line; do
        case $line in
        '```'*) fence=$((1 - fence)) skip=0 ;;
        '$ dlmodel '*)
            printf '%s\n' "$line"
            (cd "$work" && sh -c "${line#??}") 2> /dev/null < /dev/null | sed 's/ *$//'
            [ "$fence" = 1 ] && skip=1
            continue
            ;;
        esac
        [ "$skip" = 1 ] || printf '%s\n' "$line"
    done < "$document" > "$work/printed"
    if [ "$mode" = check ]; then
        if diff "$document" "$work/printed"; then echo "ok $document shows what this version prints"; else
            echo "not ok $document shows what this version prints (make accuracy)"
        fi
    else
        cat "$work/printed" > "$document"
    fi
done

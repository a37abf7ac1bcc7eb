#!/bin/sh
# golden.sh [accept] - the output of the commands in cases.txt against what was accepted before; $DLMODEL is the program.
# "ok NAME" and "not ok NAME" lines with the difference. `accept` writes the present output as the expected one: review the diff.
set -u
cd "$(dirname "$0")/../.." || exit 2
: "${DLMODEL:=$PWD/build/dlmodel}"
export DLMODEL_LOCAL=/dev/null/local.json
actual=$(mktemp) || exit 2
trap 'rm -f "$actual"' EXIT
status=0
rounded() { # numbers to 6 digits, as the last ones depend on the math library
    awk '{
        line = ""
        while (match($0, /[0-9]+\.[0-9]+(e[-+][0-9]+)?/)) {
            number = substr($0, RSTART, RLENGTH)
            line = line substr($0, 1, RSTART - 1) (length(number) > 8 ? sprintf("%.6g", number) : number)
            $0 = substr($0, RSTART + RLENGTH)
        }
        print line $0
    }'
}
while IFS= read -r line; do
    case $line in '#'* | '') continue ;; esac
    name=${line%%:*}
    expected=tests/golden/$name.out
    # shellcheck disable=SC2086
    "$DLMODEL" ${line#*: } > "$actual.raw" 2>&1 < /dev/null
    printf 'exit %s\n' "$?" >> "$actual.raw"
    # how long a search took
    sed 's/, in [0-9.e+-]* [mu]*s on 1 thread (.* plans\/s)//' "$actual.raw" > "$actual"
    case $line in *' --csv'*) rounded < "$actual" > "$actual.raw" && cp "$actual.raw" "$actual" ;; esac
    rm -f "$actual.raw"
    if [ "${1-}" = accept ]; then
        cp "$actual" "$expected"
    elif diff -u "$expected" "$actual" > "$actual.diff" 2>&1; then
        echo "ok golden $name"
    else
        echo "not ok golden $name"
        head -n 30 "$actual.diff"
        status=1
    fi
    rm -f "$actual.diff"
done < tests/golden/cases.txt
exit $status

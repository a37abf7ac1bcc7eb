#!/bin/sh
# Tables of runs of any length: compare reads them row by row, in memory that does not grow with the text, and with the results of
# a table that is read whole. What never ends is refused in little memory.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
limited() { # limited KB ARGS...: with so much address space; sanitizers take more than any limit
    kb=$1
    shift
    (
        # shellcheck disable=SC3045 # dash and bash have it
        [ -n "${SANITIZED-}" ] || ulimit -v "$kb"
        exec "$DLMODEL" "$@" > "$work/out" 2> "$work/err" < /dev/null
    )
    status=$?
}
table() { awk -v count="$1" -v cases="$2" -f tests/bench/rows.awk; }

# The same results as of a table that is read whole, which a pipe is: rows, names, causes, order, remarks.
table 9000 700 > "$work/rows.csv"
sed -e '2s/iris-v100/nowhere/' -e '9s/,throughput,[0-9.]*,/,throughput,,/' -e '20s/resnet50/nonet/' "$work/rows.csv" > "$work/mixed.csv"
mkfifo "$work/pipe"
for shape in '' '--csv --rows' '--rows' '--markdown' '--csv --rows --where nodes=2,4' '--csv --rows --shard 1/3' '--json'; do
    cat "$work/mixed.csv" > "$work/pipe" &
    # shellcheck disable=SC2086
    "$DLMODEL" compare "$work/pipe" $shape 2> "$work/err.whole" > "$work/whole"
    # shellcheck disable=SC2086
    run compare "$work/mixed.csv" $shape
    check "row by row: $shape" 0
    sed "s|$work/pipe|$work/mixed.csv|" "$work/whole" > "$work/whole.named"
    case $shape in *shard*) # which rows a part has is its own matter; that all parts have all rows is not
        for part in 0 1 2; do "$DLMODEL" compare "$work/mixed.csv" --csv --rows --shard "$part/3" 2> /dev/null > "$work/part$part.csv"; done
        "$DLMODEL" merge "$work/part0.csv" "$work/part1.csv" "$work/part2.csv" > "$work/out" 2> "$work/err"
        "$DLMODEL" compare "$work/mixed.csv" --csv --rows 2> /dev/null > "$work/whole.named" ;;
    esac
    cmp "$work/out" "$work/whole.named" > "$work/err" 2>&1
    status=$?
    check "row by row as read whole: $shape" 0
done

# Faults have their places in the file, far behind its beginning too.
sed '8000s/,4,/,four,/' "$work/rows.csv" > "$work/wrong.csv"
run compare "$work/wrong.csv"
check 'a wrong count in row 7,999' 0
has 'it is named' 'wrong\.csv:8000:[0-9]+: error: devices_per_node: expected a number'
column=$(sed -n 8000p "$work/wrong.csv" | awk '{ print index($0, "four") }')
if grep -q "wrong\.csv:8000:$column:" "$work/out"; then echo 'ok its column'; else status=1; bad 'its column' "expected column $column"; fi
sed '8000s/,throughput,[0-9.]*/,throughput,fast/' "$work/rows.csv" > "$work/wrong.csv"
run compare "$work/wrong.csv"
check 'a wrong value in row 7,999' 0
has 'it is named too' 'wrong\.csv:8000:[0-9]+: error: value: expected a number'
sed '8000s/samples/"samples/' "$work/rows.csv" > "$work/wrong.csv"
run compare "$work/wrong.csv"
check 'a quote in row 7,999' 3 'wrong\.csv:8000:[0-9]+: error: expected '

# 90 MB of rows in 96 MB of address space, programs and libraries included (read whole, they take 2.3 GB).
rows=700000
[ -z "${SANITIZED-}" ] || rows=20000
table "$rows" 300 > "$work/many.csv"
limited 96000 compare "$work/many.csv"
check 'many rows in little memory' 0
has 'many rows: all of them' "\\($rows rows\\)"
limited 96000 compare "$work/many.csv" --csv --rows -o "$work/many.out"
check 'many rows printed in little memory' 0
lines=$(wc -l < "$work/many.out")
if [ "$lines" -eq $((rows + 1)) ]; then echo 'ok many rows: all printed'; else bad 'many rows: all printed' "$lines lines"; fi
rm -f "$work/many.csv" "$work/many.out"

# What never ends: one line, one quoted field, one header.
head -n 3 "$work/rows.csv" > "$work/line.csv"
head -c 100000000 /dev/zero | tr '\0' 'x' >> "$work/line.csv"
limited 64000 compare "$work/line.csv"
check 'a line of 100 MB' 3 'line\.csv:4:1: error: .*expected a record of at most 1048576 bytes'
head -n 3 "$work/rows.csv" > "$work/line.csv"
printf 'r9,"' >> "$work/line.csv"
head -c 100000000 /dev/zero | tr '\0' '\n' >> "$work/line.csv"
limited 64000 compare "$work/line.csv"
check 'a quote that 100 MB do not close' 3 'line\.csv:4:4: error: .*closing quote'
head -c 100000000 /dev/zero | tr '\0' ',' > "$work/line.csv"
limited 64000 compare "$work/line.csv"
check 'a header of 100 MB' 3 'line\.csv:1:1: error: expected a header of at most'
rm -f "$work/line.csv"

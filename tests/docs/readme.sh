#!/bin/sh
# The documents tell the truth: errors, sample outputs, index of formulas, commands of the README, files and tests that they name.
set -u
. tests/docs/commands.sh
sh tools/accuracy.sh "$DLMODEL" check
sh tools/cpu_accuracy.sh "$DLMODEL" check
sh tools/memory.sh "$DLMODEL" check
sh tools/known.sh "$DLMODEL" check
sh tools/chosen.sh "$DLMODEL" check
sh tools/settings.sh "$DLMODEL" check || echo "not ok tools/settings.sh ends"
sh tools/learning.sh "$DLMODEL" check
sh tools/samples.sh "$DLMODEL" check
sh tools/formulas.sh check

none() { # none NAME OFFENDERS: there should be none
    if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1: $(echo "$2" | tr '\n' ' ')"; fi
}

# Ids: code, index, section 8 of the theory manual and help agree. "F-FW-*" in the text stands for a family.
ids() { grep -rhoE '\bF-[A-Z]+(-[A-Z0-9]+)*(-\*)?' "$@" | grep -v '\*$' | sort -u; }
mkdir -p "$SCRATCH/ids"
ids model calibrate predict fits --include='*.c' --include='*.h' > "$SCRATCH/ids/code"
ids docs/theory.md > "$SCRATCH/ids/theory"
sed -n 's/^| \(F-[A-Z0-9-]*\) |.*/\1/p' docs/theory.md | sort > "$SCRATCH/ids/rows"
sed -n 's/^| \(F-[A-Z0-9-]*\) |.*/\1/p' docs/formulas.md | sort > "$SCRATCH/ids/index"
none 'every formula of the code has a row in docs/theory.md (| ID | what | formula | holds | test | source |)' "$(comm -23 "$SCRATCH/ids/code" "$SCRATCH/ids/rows")"
none 'every formula of docs/theory.md is in the code' "$(comm -13 "$SCRATCH/ids/code" "$SCRATCH/ids/theory")"
none 'every formula has one row' "$(uniq -d "$SCRATCH/ids/rows")"
none 'the index has the formulas of docs/theory.md' "$(comm -3 "$SCRATCH/ids/rows" "$SCRATCH/ids/index")"
unknown=
while read -r id; do
    "$DLMODEL" help theory "$id" > "$SCRATCH/theory" 2>&1 && head -n 1 "$SCRATCH/theory" | grep -q "^$id: ." && grep -qE '^  code     .*[a-z_]+\.' "$SCRATCH/theory" &&
        grep -q '^  formula ' "$SCRATCH/theory" && grep -q '^  test ' "$SCRATCH/theory" || unknown="$unknown $id"
done < "$SCRATCH/ids/index"
none 'help theory knows every formula with code, formula and test' "$unknown"

# Tests named in the theory manual exist.
column=$(sed -n '/^| id |/{p;q;}' docs/theory.md | tr '|' '\n' | sed 's/ //g' | grep -nx test | cut -d: -f1)
none 'tests named in docs/theory.md exist' "$(grep -hE '^\| F-' docs/theory.md | awk -F'|' -v column="$column" '{ print $column }' | tr ';' '\n' | while IFS=: read -r file names; do
    file=$(echo "$file" | tr -d ' ')
    case $file in cli/*) [ -f "tests/$file.sh" ] || echo "$file"; continue ;; esac
    source=$(ls tests/unit/"$file".c tests/property/"$file".c 2> /dev/null)
    [ -n "$source" ] || { echo "a row without a test: $file"; continue; }
    for name in $(echo "$names" | tr ',' ' '); do grep -qE "cmocka_unit_test[a-z_]*\($name\b" "$source" || echo "$file:$name"; done
done)"

# Files named in the documents exist: what stands between backticks or in a link and begins like a path of this tree, as it is or from
# the document's folder. NAME and other words in capitals stand for something else.
lost=
for document in README.md CONTRIBUTING.md model/README.md docs/*.md packaging/README.md tests/README.md tests/fixtures/slurm/README.md data/SOURCES.md; do
    folder=$(dirname "$document")
    for path in $( (grep -oE '`[A-Za-z0-9_./*-]+`' "$document" | tr -d '`'; grep -oE '\]\([^):# ]+\)' "$document" | sed 's/^](//; s/)$//') | sort -u); do
        case $path in
        *[A-Z][A-Z]*.[a-z]* | *NAME* | *KIND*) case $path in *README.md | *SOURCES.md | *CONTRIBUTING.md) ;; *) continue ;; esac ;;
        esac
        first=${path%%/*}
        case $path in
        ./* | ../*) ;;
        build/*) continue ;; # a run makes it
        /rnode/* | /var/www/*) continue ;; # of another machine
        */*) [ -e "$first" ] || [ -e "$folder/$first" ] || continue ;; # a path of another project
        *.md) ;;
        *) continue ;;
        esac
        # shellcheck disable=SC2086 # a * in the path is a pattern
        ls -d $path > /dev/null 2>&1 || (cd "$folder" && ls -d $path > /dev/null 2>&1) || lost="$lost $document:$path"
    done
done
none 'files named in the documents exist' "$lost"

lines=$(wc -l < README.md)
none 'the README has at most 110 lines' "$([ "$lines" -le 110 ] || echo "$lines lines")"
rows=$(sed -n '/<!-- accuracy:begin -->/,/<!-- accuracy:end -->/p' README.md | grep -c '^| [^-]')
none 'its table of errors has at most 8 lines' "$([ "$rows" -le 8 ] || echo "$rows lines")"

# The commands of the README run; those with a sample output ran above. Calibration measures, and has tests of its own.
mkdir -p "$SCRATCH/at"
ln -sfn "$PWD/data" "$SCRATCH/at/data"
{
    sed -n '/^```/,/^```/s/^\(\$ \)\{0,1\}\(dlmodel .*\)/\2/p' README.md | sed 's/ *#.*//'
    sed -n '/^| I want/,/^$/p' README.md | grep -oE '`dlmodel [^`]+`' | tr -d '`'
} | grep -vE '^dlmodel (calibrate|slurm|[0-9])|FILE|runs\.csv' | sed 's/ |.*//' > "$SCRATCH/commands"
run_commands README

# Figures of the gallery exist, and tools/figures.sh draws them.
lost=
for image in $(grep -ohE '(docs/)?img/[a-z-]+\.(svg|png)' README.md docs/gallery.md | sed 's|^docs/||' | sort -u); do
    [ -s "docs/$image" ] && grep -q "out/${image#img/}" tools/figures.sh || lost="$lost $image"
done
none 'figures of the gallery' "$lost"

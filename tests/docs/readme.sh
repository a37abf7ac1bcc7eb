#!/bin/sh
# The documents say what is true: accuracy table, formula ids, commands in the README, sizes.
set -u
sh tests/accuracy.sh "$DLMODEL" README.md check
sh tests/cpu_accuracy.sh "$DLMODEL" README.md check

missing=
for id in $(grep -rhoE '\bF-[A-Z]+(-[A-Z0-9]+)*' model calibrate predict --include='*.c' --include='*.h' | sort -u); do
    grep -q "$id" model/README.md || missing="$missing $id"
done
if [ -z "$missing" ]; then echo 'ok every formula id stands in the index'; else echo "not ok every formula id stands in the index:$missing"; fi

stale=
for id in $(grep -hoE '\bF-[A-Z]+(-[A-Z0-9]+)*' model/README.md docs/theory.md | sort -u); do
    grep -rq "$id" model calibrate predict --include='*.c' --include='*.h' || case $id in F-LAYER | F-FW | F-COLL) ;; *) stale="$stale $id" ;; esac
done
if [ -z "$stale" ]; then echo 'ok no formula id is left over'; else echo "not ok no formula id is left over:$stale"; fi

lines=$(wc -l < README.md)
if [ "$lines" -lt 250 ]; then echo 'ok the README is short'; else echo "not ok the README is short: $lines lines"; fi

# The commands of the README run, but for those that measure or draw (they have tests of their own).
mkdir -p "$SCRATCH/bin"
ln -sf "$DLMODEL" "$SCRATCH/bin/dlmodel"
mkdir -p "$SCRATCH/at" # they write files
ln -sfn "$PWD/data" "$SCRATCH/at/data"
sed -n '/^## Use it/,/^## /p' README.md | sed -n '/^```/,/^```/p' | grep '^dlmodel' | sed 's/ *#.*//' | grep -vE '^dlmodel (calibrate|plot)' > "$SCRATCH/commands"
while IFS= read -r line; do
    if (cd "$SCRATCH/at" && PATH=$SCRATCH/bin:$PATH sh -c "$line") > /dev/null 2> "$SCRATCH/err" < /dev/null; then
        echo "ok README: $line"
    else
        echo "not ok README: $line"
        cat "$SCRATCH/err"
    fi
done < "$SCRATCH/commands"

# Figures of the gallery are there, and docs/figures.sh makes them.
lost=
for image in $(grep -ohE '(docs/)?img/[a-z-]+\.(svg|png)' README.md docs/gallery.md | sed 's|^docs/||' | sort -u); do
    [ -s "docs/$image" ] && grep -q "out/${image#img/}" docs/figures.sh || lost="$lost $image"
done
if [ -z "$lost" ]; then echo 'ok figures of the gallery'; else echo "not ok figures of the gallery:$lost"; fi

# Every formula of the index stands in the theory manual's tables, whose tests exist.
untold=
for id in $(grep -ohE '\bF-[A-Z]+(-[A-Z0-9]+)*' model/README.md | sort -u); do
    case $id in F-NAME) continue ;; esac
    grep -q "^| $id |" docs/theory.md || untold="$untold $id"
done
if [ -z "$untold" ]; then echo 'ok every formula stands in docs/theory.md with its test'; else echo "not ok every formula stands in docs/theory.md with its test (add '| ID | formula | holds | test_file: function |'):$untold"; fi
untested=$(grep -hE '^\| F-' docs/theory.md | awk -F'|' '{ print $(NF - 1) }' | tr ';' '\n' | while IFS=: read -r file names; do
    file=$(echo "$file" | tr -d ' ')
    case $file in cli/*) [ -f "tests/$file.sh" ] || echo "$file"; continue ;; esac
    source=$(ls tests/unit/"$file".c tests/property/"$file".c 2> /dev/null)
    [ -n "$source" ] || { echo "$file"; continue; }
    for name in $(echo "$names" | tr ',' ' '); do grep -qE "cmocka_unit_test[a-z_]*\($name\b" "$source" || echo "$file:$name"; done
done)
if [ -z "$untested" ]; then echo 'ok tests named in docs/theory.md exist'; else echo "not ok tests named in docs/theory.md exist:" $untested; fi

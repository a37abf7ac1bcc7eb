#!/bin/sh
# formulas.sh [check] - makes docs/formulas.md, the index of formulas: ids from section 8 of docs/theory.md, files from the
# code. `check` compares the index with what it would write. Run by `make formulas`.
#
# A formula's files are those below model/ and calibrate/ with a comment that names it ("F-MEM-*" there stands for every id with that
# beginning); where there is none, those of the other folders; else those that print it. A header and its source are one entry: `cost.[ch]`.
set -eu
cd "$(dirname "$0")/.."
new=$(mktemp)
trap 'rm -f "$new"' EXIT

# "ID FILE RANK" for every mention: 1 in a comment of the model or of calibrate, 2 in a comment elsewhere, 3 in a string or in a file that only explains.
mentions() {
    find model calibrate import predict fits plots library -name '*.[ch]' ! -path 'predict/manual/*' | LC_ALL=C sort | while read -r file; do
        awk -v file="$file" '
            { line = $0
              while (match(line, /F-[A-Z]+(-[A-Z0-9]+)*(-\*)?/)) {
                  before = RSTART > 1 ? substr(line, RSTART - 1, 1) : " "
                  id = substr(line, RSTART, RLENGTH)
                  line = substr(line, RSTART + RLENGTH)
                  rank = before == "\"" || file ~ /explain/ ? 3 : file !~ /^(model|calibrate)\// ? 2 : 1
                  if (before !~ /[A-Za-z0-9_]/) print id, file, rank
              } }' "$file"
    done
}

{
    cat <<'END'
# Index of formulas

The files that implement each formula of section 8 of [theory.md](theory.md), generated from the code by `make formulas`.
`dlmodel help theory ID` prints both.
END
    mentions | awk -F ' *[|] *' '
        FILENAME == "-" { split($0, m, " "); count++; ids[count] = m[1]; files[count] = m[2]; ranks[count] = m[3] + 0; next }
        /^## 8/ { on = 1 }
        on && /^### / { printf "\n%s\n\n| id | where |\n|---|---|\n", "##" substr($0, 4); next }
        on && /^\| F-/ { printf "| %s | %s |\n", $2, where($2) }
        function names(mention, id) {
            if (mention == id) return 1
            return mention ~ /-\*$/ && index(id, substr(mention, 1, length(mention) - 1)) == 1
        }
        function where(id,   i, best, list, stem, seen, both) {
            best = 4
            for (i = 1; i <= count; i++) if (names(ids[i], id) && ranks[i] < best) best = ranks[i]
            for (i = 1; i <= count; i++) if (names(ids[i], id) && ranks[i] == best) {
                stem = files[i]; sub(/\.[ch]$/, "", stem)
                if (stem in seen) continue
                seen[stem] = 1
                both = (system("test -f " stem ".c") == 0) && (system("test -f " stem ".h") == 0)
                list = list (list == "" ? "" : ", ") "`" (both ? stem ".[ch]" : files[i]) "`"
            }
            return list == "" ? "nowhere" : list
        }' - docs/theory.md
} > "$new"

if [ "${1-}" = check ]; then
    if diff docs/formulas.md "$new"; then echo 'ok docs/formulas.md is up to date'; else
        echo 'not ok docs/formulas.md is up to date (make formulas)'
        exit 1
    fi
    exit 0
fi
cat "$new" > docs/formulas.md

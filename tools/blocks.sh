# shellcheck shell=sh
# blocks.sh - for the scripts that write parts of the documents: `block FILE NAME` puts its input between the lines
# <!-- NAME:begin --> and <!-- NAME:end --> of FILE; with mode=check it only compares ("ok" and "not ok" lines).

block() {
    block_text=$(mktemp) || exit 2
    cat > "$block_text"
    if [ "${mode-}" = check ]; then
        if sed -n "/<!-- $2:begin -->/,/<!-- $2:end -->/p" "$1" | sed '1d;$d' | diff - "$block_text"; then
            echo "ok $1: '$2' is that of this version"
        else
            echo "not ok $1: '$2' is that of this version (make accuracy)"
        fi
    else
        for marker in begin end; do
            grep -qxF "<!-- $2:$marker -->" "$1" || { echo "$1: no line <!-- $2:$marker -->" >&2; exit 1; }
        done
        awk -v text="$block_text" -v name="$2" '
            $0 == "<!-- " name ":begin -->" { print; while ((getline line < text) > 0) print line; skip = 1; next }
            $0 == "<!-- " name ":end -->" { skip = 0 }
            !skip' "$1" > "$block_text.new"
        cat "$block_text.new" > "$1"
        rm -f "$block_text.new"
    fi
    rm -f "$block_text"
}

# Awk functions for CSV: csv(line) splits into field[1..n]; a first line read by head() makes value(NAME) work.
# shellcheck disable=SC2034 # used by the scripts that source this
csv_awk='
    function csv(line,   i, c, q, f) { n = 0; f = ""; q = 0
        for (i = 1; i <= length(line); i++) { c = substr(line, i, 1)
            if (c == "\"") q = !q; else if (c == "," && !q) { field[++n] = f; f = "" } else f = f c }
        field[++n] = f }
    function head(line,   i) { csv(line); for (i = 1; i <= n; i++) column[field[i]] = i }
    function value(name) { return field[column[name]] }
    function number(x) { return x == "" ? "-" : sprintf("%.1f", x) }'

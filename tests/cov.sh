#!/bin/sh
# cov.sh - line and branch coverage of model/, file by file; exit 1 when a test fails, or below 95 % of the lines or 85 % of the branches.
# `make cov` builds into $BUILD (build-cov) without optimisation and calls this.
#   tests     unit/ and property/ alone: what the command line, goldens and fuzzers reach besides is not counted
#   branches  each way that each condition, and each part of it, can go; gcov's count
#   left out  nothing. model/ has no assert and no unreachable marks.
set -u
cd "$(dirname "$0")/.." || exit 2
BUILD=${BUILD:-build-cov}
least_lines=95 least_branches=85
find "$BUILD" -name '*.gcda' -delete
find "$BUILD" -name '*.gcno' | while read -r notes; do # of a source that is gone
    source=${notes#"$BUILD"/}
    [ -f "${source%.gcno}.c" ] || case $source in import/onnx.pb-c.* | predict/manual/theory_text.*) ;; *) rm -f "$notes" ;; esac
done
TEST_TIMEOUT=${TEST_TIMEOUT:-1200} sh tests/run programs || { echo 'error: coverage is counted when all tests pass' >&2; exit 1; }
table=$(mktemp) || exit 2
trap 'rm -f "$table"' EXIT
gcovr -r . --object-directory "$BUILD" -f 'model/' --csv -o "$table" --html-details "$BUILD/coverage.html" "$BUILD" || exit 1
awk -F, -v least_lines=$least_lines -v least_branches=$least_branches '
    function row(name, lines, hit, branches, taken) {
        printf "%-26s %6d %6.1f %% %8d %6s\n", name, lines, lines ? 100 * hit / lines : 100, branches,
            branches ? sprintf("%.1f %%", 100 * taken / branches) : "-"
    }
    NR == 1 { printf "%-26s %6s %8s %8s %8s\n", "file", "lines", "run", "branches", "taken"; next }
    { sub("model/", "", $1); row($1, $2, $3, $5, $6); lines += $2; hit += $3; branches += $5; taken += $6 }
    END {
        row("model/", lines, hit, branches, taken)
        if (!lines || 100 * hit < least_lines * lines || 100 * taken < least_branches * branches) {
            printf "error: expected %d %% of the lines and %d %% of the branches\n", least_lines, least_branches
            exit 1
        }
    }' "$table" || exit 1
echo "Each line: $BUILD/coverage.html"

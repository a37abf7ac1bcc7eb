#!/bin/sh
# lint.sh - rules that a compiler does not check. "ok NAME" and "not ok NAME" lines; exit 1 when a rule is broken. Tools that are not
# there are said and left out.
set -u
cd "$(dirname "$0")/.." || exit 2
broken=0

rule() { # rule NAME OFFENDERS
    if [ -z "$2" ]; then
        printf 'ok %s\n' "$1"
    else
        printf 'not ok %s\n%s\n' "$1" "$2" | head -n 30
        broken=1
    fi
}


rule 'model includes model alone' "$(grep -nE '#include "(predict|calibrate|slurm|tests)/' model/*.[ch])"
rule 'predict does not include its siblings' "$(grep -nE '#include "(calibrate|slurm)/' predict/*.[ch])"
rule 'calibrate does not include its siblings' "$(grep -nE '#include "(predict|slurm)/' calibrate/*.[ch])"
rule 'only json.c includes cJSON' "$(grep -lE '#include [<"].*cJSON' model/*.[ch] predict/*.[ch] calibrate/*.[ch] dlmodel.c | grep -v '^model/json.c$')"
rule 'vendor headers in probes alone' "$(grep -lE '#include <(cuda|cublas|cudnn|nccl|mpi|cblas|oneapi|dnnl)' model/*.[ch] predict/*.[ch] calibrate/*.[ch] dlmodel.c | grep -v '^calibrate/probe_')"
rule 'the model has no clock and prints nothing' "$(grep -nE '\b(clock_gettime|time\(NULL\)|gettimeofday|printf\(|fprintf\(|puts\(|exit\(|abort\()' model/*.c | grep -vE 'snprintf|vsnprintf|dl_arena_printf|__attribute__')"
rule 'the model has no writable globals' "$(grep -nE '^static [a-z].*;$' model/*.c | grep -vE 'const|\(|^[^:]*:[0-9]*:static (inline|_Noreturn)')"
rule 'file names are unique' "$(find model predict calibrate slurm tests -name '*.[ch]' | sed 's|.*/||' | sort | uniq -d)"
rule 'nothing names a path of one machine' "$(git grep -nIE '(/root/|/home/[a-z]|/work/|/tmp/h/)' -- . ':!tests/lint.sh' 2> /dev/null)"

alone=
for header in model/*.h predict/*.h calibrate/*.h; do
    ${CC:-gcc} -std=c11 -D_POSIX_C_SOURCE=200809L -I. -Wall -Wextra -fsyntax-only -x c "$header" 2> /dev/null || alone="$alone $header"
done
rule 'every header compiles alone' "$alone"

# A double in a header says its unit, or is a pure number that this list knows.
pure='batch|batch_|samples|elements|parameters|channels|kernel|stride|pad|dilation|groups|heads|hidden|rows|tables|vocabulary|sequence|layers|macs|efficiency|share|oversubscription|sigma|ranks|size|number|value|minimum|maximum|fallback|scale|steps|count|launches|tensor|bias|nodes|flow|ratio|factor|correction|low|high|min|max|in\[|out\[|in,|out,|m,|n,|k,|points|weights|lengths|x\b|y\b|z\b|p\b|q\b|error|predicted|measured|mean|median|quantile|mad|domain|features|\bbytes\b|power|_us\[|half_waves|gain|dropout|bytes_per_sample|folds|bandwidth|tolerance'
unitless=$(grep -nE '^ *(const )?double \*?[a-z_]+' model/*.h | grep -vE '_(s|bytes|flop|count|flop_per_s|bytes_per_s|s_per_byte|hz|w|j|frac|pct|samples|elements|log|per_s|s2)\b' | grep -vE "$pure" | grep -vE '\(')
rule 'doubles in headers carry a unit' "$unitless"

long=$(wc -l model/*.[ch] predict/*.[ch] calibrate/*.[ch] dlmodel.c | awk '$1 > 500 && $2 != "total" { print $2 ": " $1 " lines" }')
rule 'files stay under 500 lines' "$long"

if command -v shellcheck > /dev/null 2>&1; then
    rule 'shell scripts' "$(find tests docs .ci \( -name "*.sh" -o -path tests/run -o -path .ci/run \) -exec shellcheck -x -S warning -e SC1091 {} + 2>&1)"
else
    echo '# shellcheck is not here: shell scripts were not checked'
fi
if [ "${1-}" = all ]; then
    if command -v cppcheck > /dev/null 2>&1; then
        rule 'cppcheck' "$(cppcheck -q --enable=warning,portability --inline-suppr --suppress=missingIncludeSystem --std=c11 -I. model predict dlmodel.c 2>&1)"
    fi
    if command -v clang-tidy > /dev/null 2>&1; then
        rule 'clang-tidy' "$(clang-tidy --quiet --checks='-*,clang-analyzer-*,bugprone-*,-bugprone-easily-swappable-parameters,-bugprone-narrowing-conversions,-bugprone-reserved-identifier,-bugprone-implicit-widening-of-multiplication-result,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling' model/*.c predict/*.c dlmodel.c -- -std=c11 -D_POSIX_C_SOURCE=200809L -I. 2> /dev/null | grep -E 'warning:|error:')"
    fi
fi
exit $broken

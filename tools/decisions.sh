#!/bin/sh
# decisions.sh - 40 decisions (20 systems x which framework, how many nodes): what an expert would say, and what the program says now.
#   sh tools/decisions.sh > docs/decisions.md        the table again
# The expert's answers (docs/decisions.csv) were written from published practice before the program was asked.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
dlmodel=${DLMODEL:-$root/build/dlmodel}
rows=0 accepted=0
command -v jq > /dev/null 2>&1 || { echo 'decisions.sh: needs jq' >&2; exit 2; }
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT

among() { # among LIST VALUE: VALUE is one of a|b|c
    case "|$1|" in *"|$2|"*) return 0 ;; *) return 1 ;; esac
}

cat "$root/docs/decisions.head.md"
echo '| system | workload, nodes | expert: framework | program | | expert: nodes | program | |'
echo '|---|---|---|---|---|---|---|---|'
tail -n +2 "$root/docs/decisions.csv" > "$tmp/rows"
# the comment is for people: the table of differences prints it
while IFS=';' read -r system workload nodes options frameworks framework_text low high nodes_text comment; do
    rows=$((rows + 1))
    # shellcheck disable=SC2086
    if ! "$dlmodel" predict --system "$system" --workload "$workload" --nodes "$nodes" $options --json -q > "$tmp/out" 2> "$tmp/err" < /dev/null &&
        [ ! -s "$tmp/out" ]; then
        echo "decisions.sh: $system, $workload: $(head -1 "$tmp/err")" >&2
        exit 2
    fi
    take=$(jq -r '.recommendation.framework // "none fits"' "$tmp/out")
    tied=$(jq -r '.recommendation.tied_with_fastest // [] | length' "$tmp/out")
    knee=$(jq -r '.advice.knee.nodes // .recommendation.nodes // 0' "$tmp/out")
    # the most nodes at 80 % efficiency
    most=$(jq -r '.advice.below_80.nodes as $below | [.results[] | select(.framework == $f and .fits) | .nodes |
        select($below == null or . < $below)] | max // 0' --arg f "$take" "$tmp/out")
    [ "$most" -ge "$knee" ] || most=$knee
    same=no more=no
    among "$frameworks" "$take" && same=yes
    if [ "$knee" -le "$high" ] && [ "$most" -ge "$low" ]; then more=yes; fi
    for answer in $same $more; do if [ "$answer" = yes ]; then accepted=$((accepted + 1)); fi; done
    [ "$most" -gt "$knee" ] && range="$knee to $most" || range=$knee
    [ "$tied" -gt 0 ] && tie=" ($tied tied)" || tie=
    echo "| $system | $workload, $nodes | $framework_text | $take$tie | $same | $nodes_text | $range | $more |"
    if [ "$same" = no ] || [ "$more" = no ]; then printf -- '- **%s, %s**: %s\n' "$system" "$workload" "$comment" >> "$tmp/differences"; fi
done < "$tmp/rows"
printf '\n%s of %s answers are what the expert accepts.\n\n## Where they differ\n\n' "$accepted" "$((2 * rows))"
[ ! -s "$tmp/differences" ] || cat "$tmp/differences"

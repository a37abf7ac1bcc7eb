#!/bin/sh
# settings.sh DLMODEL [check] - plans without and with a setting (docs/settings.csv), next to published figures, into docs/settings.md.
# Run by `make accuracy`.
set -eu
dlmodel=$1
mode=${2-}
. tools/blocks.sh
export DLMODEL_LOCAL=/dev/null/local.json # no profile of this machine
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# predicted QUANTITY OPTIONS... - in the unit that named() prints; what does not fit in memory has a time, too
predicted() {
    quantity=$1 command=predict
    shift
    [ "$quantity" != exchange ] || command=explain
    "$dlmodel" $command "$@" --json -q > "$work/answer" 2> "$work/err" || [ -s "$work/answer" ] || { head -n 1 "$work/err" >&2; exit 1; }
    jq -er --arg quantity "$quantity" '
        def first_of($name): first(.. | objects | .[$name]? | numbers);
        if $quantity == "step" then first_of("iteration_s")
        elif $quantity == "comm" then first_of("comm_s")
        elif $quantity == "parameters" then first_of("weights_bytes") / 2 / 1e9 # of 16 bits
        elif $quantity == "activations" then first_of("activations_bytes") / 1e9
        elif $quantity == "allocated" then
            ([first_of("weights_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes", "buffers_bytes")] | add) / 1e9
        elif $quantity == "exchange" then first(.. | objects | select(.term? and (.term | startswith("expert all-to-all"))) | 1e3 * .value_s / (.term | split(" x ")[1] | tonumber))
        else error("no such quantity") end' "$work/answer"
}
named() { # named QUANTITY
    case $1 in
    step) echo 's a step' ;; comm) echo 's of communication' ;; exchange) echo 'ms an exchange' ;;
    parameters) echo 'billion parameters' ;; activations) echo 'GB of activations' ;; allocated) echo 'GB allocated' ;;
    esac
}
value() { # value EXPRESSION: as a number, nothing for nothing
    [ -z "$1" ] || awk "BEGIN { printf \"%.9g\", $1 }"
}

number=0
tail -n +2 docs/settings.csv > "$work/rows"
while IFS=';' read -r setting base without with quantity published_without published_with source note; do
    number=$((number + 1))
    if [ -n "$source" ] && ! grep -q "^- \`$source\`: " data/SOURCES.md; then
        echo "settings.sh: docs/settings.csv:$((number + 1)): source: $source is not in data/SOURCES.md" >&2
        exit 1
    fi
    # shellcheck disable=SC2086
    before=$(predicted "$quantity" $base $without < /dev/null)
    # shellcheck disable=SC2086
    after=$(predicted "$quantity" $base $with < /dev/null)
    # shellcheck disable=SC2016
    printf '%s. `dlmodel %s %s %s`\n' "$number" "$([ "$quantity" = exchange ] && echo explain || echo predict)" "$base" "$with" >> "$work/commands"
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$number" "$setting" "${without:--}" "$with" "$(named "$quantity")" "$before" "$after" \
        "$(value "$published_without")" "$(value "$published_with")" "${source:--}" "$note" >> "$work/table"
done < "$work/rows"

{
    printf '| | without | with | unit | predicted without | predicted with | change [%%] '
    printf '| published without | published with | change [%%] | error without [%%] | error with [%%] | source | note |\n'
    printf '|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n'
    awk -F '\t' '
        function shown(x) { return x == "" ? "-" : sprintf("%.4g", x) }
        function percent(x, of) { return x == "" || of == "" ? "-" : sprintf("%.1f", 100 * (x / of - 1)) }
        function code(x) { return x == "-" ? x : "`" x "`" }
        function counted(x, of) { if (of != "") { d = x / of - 1; sum += d < 0 ? -d : d; figures++ } }
        { printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", $1, code($3), code($4), $5, shown($6), shown($7), percent($7, $6),
              shown($8), shown($9), percent($9, $8), percent($6, $8), percent($7, $9), $10, $11
          counted($6, $8); counted($7, $9)
          if (!($2 in settings)) { settings[$2] = 1; all++ }
          if ($9 != "" && !($2 in public)) { public[$2] = 1; known++ } }
        END { printf "\n%d of %d settings have published figures: %d, which are predicted with a mean error of %.1f %%.\n\n", known, all, figures, 100 * sum / figures }' "$work/table"
    cat "$work/commands"
} | block docs/settings.md settings

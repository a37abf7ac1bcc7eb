#!/bin/sh
# accuracy.sh DLMODEL [check] - the tables of errors in docs/accuracy.md and the summary in README.md, from the published
# measurements in data/. `check` only compares. Run by `make accuracy`, after tools/cpu_accuracy.sh, whose result the summary repeats.
set -eu
dlmodel=$1
mode=${2-}
. tools/blocks.sh
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export DLMODEL_LOCAL=/dev/null/local.json # no profile of this machine
errors() { "$dlmodel" compare "$@" --csv 2> /dev/null; }

errors data/runs/*.csv > "$work/runs"
errors data/first_sight/*.csv > "$work/first"
errors data/runs/*.csv --anchor > "$work/anchored"
errors data/collectives/published.csv > "$work/collectives"
errors data/collectives/published.csv --calibrated sizes > "$work/sizes"
errors data/collectives/published.csv --calibrated ranks > "$work/ranks"
"$dlmodel" calibrate --kernels data/kernels/deepbench_gemm.csv data/kernels/deepbench_conv.csv --device v100_sxm2_16 --csv 2> /dev/null > "$work/kernels"
# The jitter of each class of systems, refitted without the system that it then predicts (tools/fit_frameworks.sh has the classes).
for class in dgx1-v100,dgx1-p100 gce-k80,azure-nc24rs-p100,azure-nc24r-k80 v100-8x-edr,abci-v100; do
    errors data/runs/*.csv --where strategy=data --where system=$class --anchor --fit system.jitter_frac=0.04 --leave-out system
done > "$work/jitter"

# Published runs, by source.
rows() {
    printf '| source | rows | not predicted | mean | median | 90th | worst | bias |\n|---|---|---|---|---|---|---|---|\n'
    awk "$csv_awk"'
        NR == 1 { head($0); next }
        { csv($0); if (value("by") == "system") next
          name = value("group") == "all-by-source" ? "macro-average over sources" : value("group")
          printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", name, value("rows"), value("skipped"), number(value("mape_pct")),
              number(value("median_ape_pct")), number(value("p90_ape_pct")), number(value("max_ape_pct")), number(value("bias_pct")) }' "$1"
}
rows "$work/runs" | block docs/accuracy.md runs
rows "$work/anchored" | block docs/accuracy.md anchored

# Sources that no fit has seen, from the last `make generalize`. Its counts and in-sample errors are those of this version, or it is stale.
generalized() { # generalized FILE
    printf '| left out | rows | mean | median | 90th | worst | bias | mean in-sample | coverage | interval ratio |\n|---|---|---|---|---|---|---|---|---|---|\n'
    awk "$csv_awk"'
        NR == 1 { head($0); next }
        { csv($0); if (value("rows") == 0) next
          printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", value("group"), value("rows"), number(value("mape_pct")),
              number(value("median_ape_pct")), number(value("p90_ape_pct")), number(value("max_ape_pct")), number(value("bias_pct")),
              number(value("in_sample_mape_pct")), number(value("coverage_pct")),
              value("interval_ratio_median") == "" ? "-" : sprintf("%.2f", value("interval_ratio_median")) }' "$1"
}
in_sample() { # in_sample FILE MEAN-COLUMN: what both tables must agree on
    awk -v mean="$2" "$csv_awk"' NR == 1 { head($0); next }
        { csv($0); if (("by" in column) && value("by") == "system") next
          if (value("group") != "all-by-source" && value("group") != "macro-average") print value("group"), value("rows"), number(value(mean)) }' "$1" | LC_ALL=C sort
}
if [ "$mode" = check ]; then
    in_sample "$work/runs" mape_pct > "$work/now"
    in_sample docs/generalize/source.csv in_sample_mape_pct > "$work/then"
    if diff "$work/now" "$work/then" > "$work/diff"; then
        echo 'ok docs/generalize: rows and in-sample errors are those of this version'
    else
        head -n 10 "$work/diff"
        echo 'not ok docs/generalize: rows and in-sample errors are those of this version (make generalize)'
    fi
    hash=$("$dlmodel" compare data/runs/keras_aws.csv --json 2> /dev/null | sed -n 's/.*"constants_hash": "\([0-9a-f]*\)".*/\1/p')
    if [ -n "$hash" ] && grep -q "\"$hash\"" data/intervals.json; then
        echo 'ok data/intervals.json: its constants are those of this version'
    else
        echo 'not ok data/intervals.json: its constants are those of this version (make generalize)'
    fi
fi
for by in source framework device system; do
    generalized docs/generalize/$by.csv | block docs/accuracy.md "generalize-$by"
done
generalized docs/generalize/source_anchored.csv | block docs/accuracy.md generalize-anchored
{
    printf '| choice among | jobs | mean regret | worst | distinguished | mean regret of these | worst of these | jobs of three and more | rank correlation |\n'
    printf '|---|---|---|---|---|---|---|---|---|\n'
    awk "$csv_awk"' NR == 1 { head($0); next } { csv($0)
        printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", value("kind"), value("jobs"), number(value("regret_mean_pct")), number(value("regret_max_pct")),
            value("distinguished_jobs"), number(value("distinguished_mean_pct")), number(value("distinguished_max_pct")),
            value("ranked_jobs"), value("rank_correlation") == "" ? "-" : sprintf("%.2f", value("rank_correlation")) }' docs/generalize/decisions.csv
} | block docs/accuracy.md decisions
{
    printf '| runs given | mean error of the rest | coverage | the smallest runs given |\n|---|---|---|---|\n'
    awk "$csv_awk"' NR == 1 { head($0); next } { csv($0)
        printf "| %s | %s | %s | %s |\n", value("runs_given"), number(value("mape_pct")), number(value("coverage_pct")), number(value("smallest_mape_pct")) }' docs/generalize/learning.csv
} | block docs/accuracy.md learning
{
    printf '| constant | in its file | fitted | 95 %% interval | sources | refused because |\n|---|---|---|---|---|---|\n'
    awk "$csv_awk"' NR == 1 { head($0); next } { csv($0); key = value("key"); gsub(/,/, ", ", key)
        printf "| %s | %.4g | %.4g | %.3g to %.3g | %s | %s |\n", key, value("value"), value("fitted"), value("low"), value("high"), value("sources"), value("refused") }' docs/generalize/constants.csv
} | block docs/accuracy.md constants

# One constant refitted without the system that it predicts.
{
    printf '| jitter fitted without | rows | mean error there |\n|---|---|---|\n'
    awk "$csv_awk"' /^fit,/ { head($0); next } { csv($0) } value("fit") ~ /^without/ {
        printf "| %s | %s | %s |\n", substr(value("fit"), 9), value("left_out_rows"), number(value("left_out_error_pct")) }' "$work/jitter"
} | block docs/accuracy.md jitter

# Collectives, by system: three ways to know them.
{
    printf '| system | rows | system file alone: median | worst | sizes left out: mean | worst | rank counts left out: mean | worst |\n|---|---|---|---|---|---|---|---|\n'
    awk "$csv_awk"'
        FNR == 1 { file++; head($0); next }
        { csv($0); if (value("by") == "source" || value("group") == "all") next
          g = value("group")
          if (file == 1) { order[++count] = g; shown[g] = value("rows"); median[g] = value("median_ape_pct") }
          mean[file, g] = value("mape_pct"); worst[file, g] = value("max_ape_pct") }
        END { for (i = 1; i <= count; i++) { g = order[i]
            printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", g == "all-by-source" ? "macro-average over sources" : g, shown[g], number(median[g]),
                number(worst[1, g]), number(mean[2, g]), number(worst[2, g]), number(mean[3, g]), number(worst[3, g]) } }' \
        "$work/collectives" "$work/sizes" "$work/ranks"
} | block docs/accuracy.md collectives

# Kernels of a V100, by operation.
{
    printf '| operation | pass | precision | samples | median | 90th | worst | bias |\n|---|---|---|---|---|---|---|---|\n'
    awk "$csv_awk"' NR == 1 { head($0); next } { csv($0)
        printf "| %s | %s | %s | %s | %.1f | %.1f | %.1f | %.1f |\n", value("op"), value("pass"), value("precision"), value("samples"),
            100 * value("median_error_frac"), 100 * value("p90_error_frac"), 100 * value("max_error_frac"), 100 * value("bias_frac") }' "$work/kernels"
} | block docs/accuracy.md kernels

# The summary: at most ten lines with its head. "worst group" is the source, system or framework with the largest mean error.
average() { # average FILE BY: rows, macro-average over sources, worst group of BY and its error
    awk -v by="$2" "$csv_awk"' NR == 1 { head($0); next } { csv($0) }
        value("group") == "all-by-source" { rows = value("rows"); mean = value("mape_pct") }
        value("by") == by && value("mape_pct") + 0 > worst { worst = value("mape_pct") + 0; name = value("group") }
        END { printf "%d | %.1f %% | %.1f %% (%s)", rows, mean, worst, name }' "$1"
}
# The errors of the time, sources as they were first compared; the share of measurements inside the 80 % intervals of then.
first_sight() {
    awk "$csv_awk"' NR == 1 { head($0); next } { csv($0) }
        value("group") == "all-by-source" { rows = value("rows"); mean = value("time_mape_pct"); inside = value("coverage_pct") }
        value("by") == "source" && value("time_mape_pct") + 0 > worst { worst = value("time_mape_pct") + 0; name = value("group") }
        END { printf "%d | %.0f %%, %.0f %% inside the 80 %% intervals | %.0f %% (%s)", rows, mean, inside, worst, name }' "$1"
}
left_out() { # left_out FILE: rows, macro-average, worst group
    awk "$csv_awk"' NR == 1 { head($0); next } { csv($0) }
        value("group") == "macro-average" { rows = value("rows"); mean = value("mape_pct"); next }
        value("group") != "all" && value("mape_pct") + 0 > worst { worst = value("mape_pct") + 0; name = value("group") }
        END { printf "%d | %.1f %% | %.1f %% (%s)", rows, mean, worst, name }' "$1"
}
{
    printf '| predicted | seen by a fit? | cases | mean error | worst group |\n|---|---|---|---|---|\n'
    echo "| training runs of a new source, before anything was changed for it | first sight | $(first_sight "$work/first") |"
    awk "$csv_awk"' NR == 1 { head($0); next } { csv($0); m = 100 * value("median_error_frac"); p = 100 * value("p90_error_frac"); cases += value("samples")
        if (!low || m < low) low = m; if (m > high) high = m; if (p > worst) worst = p }
        END { printf "| kernels of a V100, other shapes | never seen | %d | medians %.1f to %.1f %% | 90th percentile %.0f %% |\n", cases, low, high, worst }' "$work/kernels"
    echo "| collectives, other rank counts | never seen | $(average "$work/ranks" system) |"
    sed -n 's/^- One and two tasks, \(.*\): mean absolute error over \([0-9]*\) rows: \([0-9.]*\) %.*/\1 \2 \3/p' docs/accuracy.md | awk '
        $1 == "all" { rows = $2; mean = $3; next } $3 + 0 > worst { worst = $3 + 0; name = $1 }
        END { printf "| CPU training, 1 and 2 tasks, from a profile of one | never seen | %d | %.1f %% | %.1f %% (%s) |\n", rows, mean, worst, name }'
    echo "| training runs of a source that no fit has seen | never seen | $(left_out docs/generalize/source.csv) |"
    echo "| the same, scaling from the smallest run (\`--anchor\`) | never seen | $(left_out docs/generalize/source_anchored.csv) |"
    echo "| published training runs | in-sample | $(average "$work/runs" source) |"
} | block README.md accuracy

#!/bin/sh
# accuracy.sh DLMODEL [check] - the tables of errors in docs/accuracy*.md and the summary in README.md, from the published
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
          printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", name, value("rows"), value("skipped"), number(value("time_mape_pct")),
              number(value("time_median_ape_pct")), number(value("time_p90_ape_pct")), number(value("time_max_ape_pct")), number(value("time_bias_pct")) }' "$1"
}
rows "$work/runs" | block docs/accuracy_tables.md runs
rows "$work/anchored" | block docs/accuracy_tables.md anchored

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
# The last rows of each table are averages over the rows and over the groups above them: a figure that was edited by hand contradicts them.
averages() { # averages FILE...: names each average that is another
    awk "$csv_awk"'
        FNR == 1 { head($0); keys = split("mape_pct bias_pct in_sample_mape_pct coverage_pct", key, " "); rows = groups = 0; split("", by_row); split("", by_group); next }
        { csv($0); group = value("group"); last = group == "all" || group == "macro-average" }
        !last && value("rows") > 0 {
            rows += value("rows"); groups++
            for (i = 1; i <= keys; i++) { by_row[i] += value("rows") * value(key[i]); by_group[i] += value(key[i]) } }
        last { for (i = 1; i <= keys; i++) {
                d = value(key[i]) - (group == "all" ? by_row[i] / rows : by_group[i] / groups)
                if (d > 1e-6 || d < -1e-6) print FILENAME ": " group ": " key[i] } }' "$@"
}
if [ "$mode" = check ]; then
    contradicted=$(averages docs/generalize/source.csv docs/generalize/framework.csv docs/generalize/device.csv docs/generalize/system.csv docs/generalize/source_anchored.csv)
    if [ -z "$contradicted" ]; then
        echo 'ok docs/generalize: averages are those of the groups'
    else
        printf '%s\nnot ok docs/generalize: averages are those of the groups (make generalize)\n' "$contradicted"
    fi
    in_sample "$work/runs" time_mape_pct > "$work/now"
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
# First sights: each row with the interval that this version gives it, its source left out. Averages over sources come from these rows.
# What was recorded then, and what is left out now, by kind.
first_sights() {
    for f in data/first_sight/*.csv docs/generalize/first_sight_rows.csv; do echo "FILE"; cat "$f"; done | awk "$csv_awk"'
        $0 == "FILE" { first = 1; next }
        first { split("", column); head($0); first = 0; next }
        { csv($0); key = value("file") "," value("id") }
        "low_log" in column { low[key] = value("low_log") + 0; high[key] = value("high_log") + 0; next }
        { rows++; k[rows] = key; source[rows] = value("source"); kind[rows] = value("kind"); predicted[rows] = value("predicted")
          lo[rows] = value("low") + 0; hi[rows] = value("high") + 0; m[rows] = value("measured") + 0; unit[rows] = value("unit") }
        function abs(x) { return x < 0 ? -x : x }
        function score(e, a, b) { return b - a + 10 * ((a > e ? a - e : 0) + (e > b ? e - b : 0)) }
        function add(group, i,   s) { s = group SUBSEP source[i]
            if (!(s in num)) { sources[group]++; of[group, sources[group]] = s }
            num[s]++; total[group]++; error[s] += abs(t); bias[s] += t; inside[s] += in_then; inside_now[s] += in_now; wide[s] += b - a; wide_now[s] += d - c
            then_score[s] += score(e, a, b); now_score[s] += score(e, c, d) }
        END { for (i = 1; i <= rows; i++) if (predicted[i] != "" && (k[i] in low)) {
                time = unit[i] == "s" || unit[i] == "ms" || unit[i] == "us"
                ratio = time ? predicted[i] / m[i] : m[i] / predicted[i]; t = 100 * (ratio - 1); e = -log(ratio)
                a = log(time ? lo[i] / predicted[i] : predicted[i] / hi[i]); b = log(time ? hi[i] / predicted[i] : predicted[i] / lo[i])
                c = low[k[i]]; d = high[k[i]]
                in_then = lo[i] <= m[i] && m[i] <= hi[i]; in_now = c <= e && e <= d
                add("all", i); parts = split(kind[i], word, "/"); for (w = 1; w <= parts; w++) add(word[w], i) }
            count = split("all dense moe cnn encoder one-node several-nodes samples no-samples", order, " ")
            for (o = 1; o <= count; o++) { g = order[o]; N = sources[g]; if (!N) continue
                E = B = I = J = W = V = S = R = 0
                for (q = 1; q <= N; q++) { s = of[g, q]; E += error[s] / num[s]; B += bias[s] / num[s]; I += inside[s] / num[s]; J += inside_now[s] / num[s]
                    W += wide[s] / num[s]; V += wide_now[s] / num[s]; S += then_score[s] / num[s]; R += now_score[s] / num[s] }
                printf "%s,%d,%d,%.1f,%.1f,%.1f,%.2f,%.2f,%.1f,%.2f,%.2f\n", g, N, total[g], E / N, B / N, 100 * I / N, exp(W / N), S / N, 100 * J / N, exp(V / N), R / N } }'
}
first_sights > "$work/first_sights"
if [ "$mode" = check ]; then
    # the tables of `make generalize` are the averages of its rows, and those of this record
    awk "$csv_awk"' NR == 1 { head($0); next } { csv($0); printf "%s,%d,%d", field[1], field[2], field[3]
        for (i = 4; i <= n; i++) printf (i == 7 || i == 8 || i > 9) ? ",%.2f" : ",%.1f", field[i]; print "" }' docs/generalize/first_sight.csv > "$work/averages"
    # rounding of the rows may move the last digit
    if paste -d , "$work/first_sights" "$work/averages" | awk -F, '{ if ($1 != $12) bad = 1; for (i = 2; i <= 11; i++) { d = $i - $(i + 11); if (d > 0.11 || d < -0.11) bad = 1 } }
        END { exit bad || NR == 0 }'; then
        echo 'ok docs/generalize/first_sight.csv: averages are those of its rows and of the record'
    else
        diff "$work/first_sights" "$work/averages" | head -n 10
        echo 'not ok docs/generalize/first_sight.csv: averages are those of its rows and of the record (make generalize)'
    fi
    last=$(tail -n 1 data/first_sight/chain | cut -d ' ' -f 1)
    if [ -n "$last" ] && grep -q "\"first_sight_hash\": \"$last\"" data/intervals.json; then
        echo 'ok data/intervals.json: its first sights are those of the record'
    else
        echo 'not ok data/intervals.json: its first sights are those of the record (make generalize)'
    fi
fi
kind_text='function text(g) { return g == "all" ? "all" : g == "dense" ? "dense language models" : g == "moe" ? "mixtures of experts" : g == "cnn" ? "CNNs, data parallel" :
    g == "encoder" ? "BERT and ViT, data parallel" : g == "one-node" ? "one node" : g == "several-nodes" ? "several nodes" : g == "samples" ? "devices with kernel samples" : "devices without" }'
{
    printf '| first sight of | sources | rows | mean error of the time | bias | then inside the 80 %% interval | high / low | score | now inside, source left out | high / low | score |\n'
    printf '|---|---|---|---|---|---|---|---|---|---|---|\n'
    awk -F, "$kind_text"' { printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", text($1), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 }' "$work/first_sights"
} | block docs/accuracy.md first-sight

for by in source framework device system; do
    generalized docs/generalize/$by.csv | block docs/accuracy_tables.md "generalize-$by"
done
generalized docs/generalize/source_anchored.csv | block docs/accuracy_tables.md generalize-anchored
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
        printf "| %s | %.4g | %.4g | %.3g to %.3g | %s | %s |\n", key, value("value_s"), value("fitted"), value("low"), value("high"), value("sources"), value("refused") }' docs/generalize/constants.csv
} | block docs/accuracy_tables.md constants

# One constant refitted without the system that it predicts.
{
    printf '| jitter fitted without | rows | mean error there |\n|---|---|---|\n'
    awk "$csv_awk"' /^fit,/ { head($0); next } { csv($0) } value("fit") ~ /^without/ {
        printf "| %s | %s | %s |\n", substr(value("fit"), 9), value("left_out_rows"), number(value("left_out_error_pct")) }' "$work/jitter"
} | block docs/accuracy_tables.md jitter

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
} | block docs/accuracy_tables.md collectives

# Kernels of a V100, by operation.
{
    printf '| operation | pass | precision | samples | median | 90th | worst | bias |\n|---|---|---|---|---|---|---|---|\n'
    awk "$csv_awk"' NR == 1 { head($0); next } { csv($0)
        printf "| %s | %s | %s | %s | %.1f | %.1f | %.1f | %.1f |\n", value("op"), value("pass"), value("precision"), value("samples"),
            100 * value("median_error_frac"), 100 * value("p90_error_frac"), 100 * value("max_error_frac"), 100 * value("bias_frac") }' "$work/kernels"
} | block docs/accuracy_tables.md kernels

# "worst group" is the source, system or framework with the largest mean error.
average() { # average FILE BY: rows, macro-average over sources, worst group of BY and its error
    awk -v by="$2" "$csv_awk"' NR == 1 { head($0); next } { csv($0) }
        value("group") == "all-by-source" { rows = value("rows"); mean = value("mape_pct") }
        value("by") == by && value("mape_pct") + 0 > worst { worst = value("mape_pct") + 0; name = value("group") }
        END { printf "%d | %.1f %% | %.1f %% (%s)", rows, mean, worst, name }' "$1"
}
left_out() { # left_out FILE: rows, macro-average, worst group
    awk "$csv_awk"' NR == 1 { head($0); next } { csv($0) }
        value("group") == "macro-average" { rows = value("rows"); mean = value("mape_pct"); next }
        value("group") != "all" && value("mape_pct") + 0 > worst { worst = value("mape_pct") + 0; name = value("group") }
        END { printf "%d | %.1f %% | %.1f %% (%s)", rows, mean, worst, name }' "$1"
}
# For README, pages, reports and figures: first sight, left out, in-sample.
{
    echo 'met,sources,rows,time_mape_pct,coverage_pct'
    awk -F, '$1 == "all" { printf "on first sight,%d,%d,%.1f,%.1f\n", $2, $3, $4, $9 }' "$work/first_sights"
    awk "$csv_awk"' NR == 1 { head($0); next } { csv($0) }
        value("group") == "macro-average" { printf "left out of the fit,%d,%d,%.1f,%.2f\n", groups, value("rows"), value("mape_pct"), value("coverage_pct"); next }
        value("group") != "all" { groups++ }' docs/generalize/source.csv
    awk "$csv_awk"' NR == 1 { head($0); next } { csv($0) }
        value("by") == "source" { groups++ }
        value("group") == "all-by-source" { printf "in-sample,%d,%d,%.1f,%.2f\n", groups, value("rows"), value("time_mape_pct"), value("coverage_pct") }' "$work/runs"
} > "$work/headline"
{
    printf '| training runs | how they were met | sources | rows | mean error | inside the 80 %% interval |\n|---|---|---|---|---|---|\n'
    awk -F, "$kind_text"' $1 == "one-node" { exit }
        { printf "| %s | first sight | %s | %s | %.0f %% | then %.0f, now %.0f %% |\n", text($1), $2, $3, $4, $6, $9 }' "$work/first_sights"
    awk -F, 'NR > 2 { printf "| %s | %s | %d | %d | %.1f %% | %.0f %% |\n", NR == 3 ? "those that constants were fitted to" : "the same", $1, $2, $3, $4, $5 }' "$work/headline"
} | block README.md accuracy
if [ "$mode" != check ]; then
    cat "$work/headline" > data/headline.csv
elif diff data/headline.csv "$work/headline"; then
    echo 'ok data/headline.csv: the averages of its rows'
else
    echo 'not ok data/headline.csv: the averages of its rows (make accuracy)'
fi
awk -F, 'NR > 1 { printf "%s%s %.*f %% (%d sources, %d runs; %.0f %% inside the 80 %% interval)", NR == 2 ? "<p class=\"hint\">Mean error of the predicted time over sources: " : "; ",
    $1, $4 < 9.95, $4, $2, $3, $5 } END { print ".</p>" }' "$work/headline" | block serve/page/index.html accuracy
# The example of docs/theory.md.
example='-s iris-v100 -w resnet50 -f pytorch-ddp -n 4'
# shellcheck disable=SC2086
"$dlmodel" predict $example --csv 2> /dev/null > "$work/example"
# shellcheck disable=SC2086
"$dlmodel" explain $example --csv 2> /dev/null > "$work/terms"
{
    printf '| part | ms | how |\n|---|---|---|\n'
    awk "$csv_awk"'
        FNR == 1 { file++; head($0); next }
        { csv($0) }
        file == 1 { for (name in column) result[name] = value(name); next }
        value("group") == "forward" || value("group") == "backward" { pass[value("group")] += value("value_s"); kernels[value("group")]++ }
        value("formula") == "F-NCCL" { buckets++; if (value("value_s") > largest) { largest = value("value_s"); inputs = value("inputs") } }
        value("formula") == "F-STRAGGLER" || value("formula") == "F-HOST-GAP" || value("formula") == "F-HOST-COUNT" {
            overhead = overhead (overhead == "" ? "" : "; ") value("formula") " " value("inputs") }
        END { printf "| forward | %.1f | %d layers and operations |\n| backward | %.1f | %d |\n", 1000 * pass["forward"], kernels["forward"], 1000 * pass["backward"], kernels["backward"]
            printf "| compute | %.1f | forward, backward, update, and what collectives slow down while they run |\n", 1000 * result["compute_s"]
            printf "| communication | %.1f | %d buckets; the longest takes %.1f: F-NCCL %s |\n", 1000 * result["comm_s"], buckets, 1000 * largest, inputs
            printf "| exposed communication | %.1f | the rest hides behind backward |\n", 1000 * result["exposed_comm_s"]
            printf "| exposed input | %.1f | |\n", 1000 * result["exposed_input_s"]
            printf "| overhead | %.1f | %s |\n", 1000 * result["overhead_s"], overhead
            printf "| **iteration** | **%.1f** | compute + exposed communication + exposed input + bubble + overhead; 80 %% interval %.1f to %.1f |\n",
                1000 * result["iteration_s"], 1000 * result["iteration_low_s"], 1000 * result["iteration_high_s"] }' "$work/example" "$work/terms"
} | block docs/theory.md worked
{
    printf '| predicted | how it was met | cases | mean error | worst group |\n|---|---|---|---|---|\n'
    awk "$csv_awk"' NR == 1 { head($0); next } { csv($0); m = 100 * value("median_error_frac"); p = 100 * value("p90_error_frac"); cases += value("samples")
        if (!low || m < low) low = m; if (m > high) high = m; if (p > worst) worst = p }
        END { printf "| kernels of a V100, other shapes | left out of the fit | %d | medians %.1f to %.1f %% | 90th percentile %.0f %% |\n", cases, low, high, worst }' "$work/kernels"
    echo "| collectives, other message sizes | left out of the fit | $(average "$work/sizes" system) |"
    echo "| collectives, other rank counts | left out of the fit | $(average "$work/ranks" system) |"
    sed -n 's/^- One and two tasks, \(.*\): mean absolute error over \([0-9]*\) rows: \([0-9.]*\) %.*/\1 \2 \3/p' docs/accuracy_tables.md | awk '
        $1 == "all" { rows = $2; mean = $3; next } $3 + 0 > worst { worst = $3 + 0; name = $1 }
        END { printf "| CPU training, 1 and 2 tasks, from a profile of one | never fitted | %d | %.1f %% | %.1f %% (%s) |\n", rows, mean, worst, name }'
    echo "| training runs, scaling from the smallest run (\`--anchor\`) | left out of the fit | $(left_out docs/generalize/source_anchored.csv) |"
} | block docs/accuracy.md parts

#!/bin/sh
# dlmodel plot: numbers as CSV, valid pictures, texts that stay texts, and messages that help.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
runs=data/runs/tensorflow_2017.csv

magic() { # magic NAME FILE HEX: the file begins with these bytes
    got=$(od -An -tx1 -N8 "$2" 2> /dev/null | tr -d ' \n')
    case $got in
    "$3"*) printf 'ok %s\n' "$1" ;;
    *) bad "$1" "$2 begins with '$got', expected $3" ;;
    esac
}
sound() { # sound NAME FILE: an SVG that every engine draws
    cp "$2" "$work/sound.svg"
    python3 tests/cli/svg_rules.py "$work/sound.svg" > "$work/out" 2>&1
    has "$1" '^good$'
    command -v rsvg-convert > /dev/null 2>&1 || return 0
    rsvg-convert "$work/sound.svg" -o "$work/sound.png" > "$work/out" 2> "$work/err"
    status=$?
    check "$1, in rsvg-convert" 0
}
absent() { # absent NAME FILE
    if [ -e "$2" ]; then bad "$1" "$2 exists"; else printf 'ok %s\n' "$1"; fi
}

# The numbers
run plot scaling "$runs" --workload resnet50 --system dgx1-p100 --where batch_per_device=64 --csv
check 'scaling as numbers' 0
has 'columns of scaling' '^group,label,devices,measured_samples_per_s,predicted_samples_per_s,predicted_low_samples_per_s,predicted_high_samples_per_s,ideal_samples_per_s,id,nodes$'
awk -F, 'NR > 1 { n++; if (!($6 < $5 && $5 < $7 && $4 > 0)) wrong = 1; if (n == 1) one = $4 / $3; if ($8 != one * $3) off = $8 - one * $3
    if (off > 1e-6 * $8 || off < -1e-6 * $8) wrong = 1 } END { print n, wrong + 0 }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'prediction inside its interval, ideal linear from the smallest run' '^4 0$'
run plot scaling data/runs/paradl_abci.csv --workload resnet50 --where strategy=data --where batch_per_device=64 --csv
awk -F, 'NR == 2 { print ($4 > 340 && $4 < 356) ? "samples per second" : "wrong " $4 }' "$work/out" > "$work/judged" # 64 / 0.18384 s = 348.1
cp "$work/judged" "$work/out"
has 'iteration times become throughputs' '^samples per second$'
run plot breakdown --system iris-v100 --framework pytorch-ddp --nodes 1,4 --csv
check 'breakdown as numbers' 0
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { sum = 0; for (i = at["forward_s"]; i < at["iteration_s"]; i++) sum += $i; r = sum / $at["iteration_s"]
      if (r < 0.999999 || r > 1.000001) wrong = 1; n++ } END { print n, wrong + 0 }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'the pieces add up to the iteration' '^2 0$'
run plot mfu --system dgx-a100-80 --workload gpt2 --framework megatron,pytorch-fsdp --nodes 1-2 --precision bf16 --micro-batch 1 --recompute full --csv
check 'MFU as numbers' 0
awk -F, 'NR > 1 { n++; m = $(NF - 7); if (!(m > 0 && m < $(NF - 6) && $(NF - 5) < m && m < $(NF - 4))) wrong = 1 } END { print n, wrong + 0 }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'recomputation counts in HFU alone, MFU inside its interval' '^4 0$'
run plot memory --system iris-v100 --workload vgg16 --framework pytorch-ddp,horovod-tensorflow --nodes 2 --csv
check 'memory as numbers' 0
awk -F, 'NR > 1 { sum = $4 + $5 + $6 + $7 + $8 + $9 + $10; if (sum / $11 < 0.999999 || sum / $11 > 1.000001 || $12 != 17179869184) wrong++; n++ }
    END { print n, wrong + 0 }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'the parts of memory add up' '^2 0$'
memory_course() {
    "$DLMODEL" predict --system iris-v100 "$@" --csv 2>/dev/null | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { print $at["memory.total_bytes"] }' > "$work/most"
    run plot memory --system iris-v100 "$@" --csv
    check "memory over time: $*" 0
    awk -F, -v most="$(cat "$work/most")" 'NR == 1 { next } { sum = $4 + $5 + $6 + $7 + $8; if (sum / $9 < 0.999999 || sum / $9 > 1.000001) wrong++ }
        $1 != group { if (group && last != first) wrong++; first = $9; group = $1; time = 0 } $3 < time { wrong++ } { last = $9; time = $3; if ($9 > top) top = $9 }
        END { print wrong + (last != first) + 0, top / most }' "$work/out" > "$work/judged"
    cp "$work/judged" "$work/out"
    has 'it begins and ends alike, and reaches what predict says' '^0 1$'
}
memory_course --workload resnet50 -f pytorch-ddp --nodes 2
memory_course --workload vgg16 -f pytorch-ddp --strategy pipeline --nodes 1
memory_course --workload gpt2_xl -f megatron --nodes 4 --pp 4 --global-batch 4096 --micro-batch 1 --precision mixed
run plot error data/runs/dlperf_oneflow.csv "$runs" --csv
awk -F, 'NR > 1 { e = $4 < 0 ? -$4 : $4; sum[$1] += e; n[$1]++; last = $1 } END { for (g = 2; g <= last; g++) if (sum[g] / n[g] < sum[g - 1] / n[g - 1]) wrong = 1
    print last, wrong + 0 }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'sources best first' '^2 0$'
run plot error "$runs" --csv
check 'error as numbers' 0
has 'columns of error' '^group,label,offset,time_error_pct,mean_pct,'

run plot roofline --system iris-v100 --workload resnet50 --precision mixed --framework ideal --nodes 1 --csv
check 'roofline as numbers' 0
has 'columns of roofline' '^group,label,layer,flop_per_byte,flop_per_s,roof_flop_per_s,time_s,share,limit,kind,kind_rank,marker_share$'
# Streams stay below the roof; shares are parts of one iteration; ResNet-50 in mixed precision has both kinds of layers.
awk -F, 'NR > 1 { sum += $8; if ($4 < 2 && $5 > $6) above++; kinds[$9]++ }
    END { print above + 0, (sum > 0.5 && sum <= 1.000001), (kinds["compute"] > 10 && kinds["memory-bandwidth"] > 10) }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'roofline: below the roof, shares, both limits' '^0 1 1$'
run plot roofline --system iris-v100 --workload resnet50 --precision mixed --framework ideal --nodes 1 --csv
awk -F, 'NR > 1 { all += $8; if ($12 != "") { markers++; drawn += $12 } if ($10 == "conv 3x3") three++; if ($11 < 1 || $11 > 7) wrong++ }
    END { r = drawn / all; print (markers < NR - 1), (r > 0.999999 && r < 1.000001), (three > 20), wrong + 0 }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'roofline: equal layers share a marker, kinds have names' '^1 1 1 0$'
run plot error docs/generalize/source.csv --csv
check 'never seen errors as numbers' 0
awk -F, 'NR > 1 { if ($4 < last) wrong = 1; last = $4; n += $3 } END { print wrong + 0, (n > 1000) }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'best first, all runs' '^0 1$'
run plot pipeline --system dgx-a100-80 --workload gpt2_xl --framework megatron --nodes 2 --pp 4 --global-batch 32 --micro-batch 1 --precision bf16 --csv
check 'a pipeline as numbers' 0
# 4 stages x 8 micro-batches forward and backward, and one bar each; no stage does two things at once.
awk -F, 'NR > 1 { n++; if ($1 == stage && $3 < last - 1e-9) overlap = 1; stage = $1; last = $4 } END { print n, overlap + 0 }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'every pass once' '^68 0$'
run plot pipeline --system dgx-a100-80 --workload gpt2_xl --framework megatron --nodes 2 --pp 4 --global-batch 16384 --micro-batch 1 --precision bf16 --csv
check 'thousands of micro-batches as numbers' 0
# Each stage works from the first pass to the last one but for the stretch that stands for whole periods.
awk -F, 'NR > 1 { n++; if ($1 == stage && $3 < last - 1e-9) overlap = 1; stage = $1; last = $4; if ($5 == 5 && $4 - $3 > 100) left++; if ($7 > most) most = $7 }
    END { print (n < 4096), overlap + 0, left, most }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'equal periods are one bar of each stage' '^1 0 4 4096$'
run plot pipeline --system iris-v100 --framework pytorch-ddp
check 'no pipeline' 2 'this plan has no pipeline; give --pp'
run plot timeline --system dgx-a100-80 --workload gpt2_xl --framework megatron --nodes 2 --pp 4 --global-batch 32 --micro-batch 1 --precision bf16
check 'a pipeline has no timeline of layers' 2 'plot timeline shows one device; a pipeline: plot pipeline'
run plot kernels data/kernels/deepbench_conv.csv --where device=V100 --where precision=fp32 --csv
check 'kernels as numbers' 0
awk -F, 'NR > 1 { n++; e = 100 * ($4 - $3) / $3 - $5; if (e > 1e-6 || e < -1e-6) wrong++ } END { print n, wrong + 0 }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'one row a kernel, its error' '^231 0$'
run plot alphabeta data/collectives/published.csv --where library=NCCL --where nodes=1 --where device=V100-SXM2-16GB --csv
check 'alphabeta as numbers' 0
awk -F, 'NR > 1 { n[$2]++; if ($2 == 1 && ($5 > 5 || $5 < -5)) far++ } END { print n[1], (n[2] > n[1]), (n[3] >= 90), (n[4] >= 2), far + 0 }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'samples, fit, model and switches, small residuals of the fit' '^25 1 1 1 0$'
run plot alphabeta data/collectives/published.csv
check 'too many series says how to narrow' 2 'more than 6 series.*--where'
run plot alphabeta data/runs/tensorflow_2017.csv
check 'alphabeta of runs' 3 'expected a table of collectives'
run plot alphabeta --system iris-v100
check 'alphabeta without samples' 2 'no series of two sizes'

run plot efficiency "$runs" --workload resnet50 --system dgx1-p100 --where batch_per_device=64 --csv
check 'efficiency as numbers' 0
awk -F, 'NR > 1 { n++; if (!($6 <= $5 && $5 <= $7)) wrong = 1; if (n == 1) { if ($4 != 1 || $5 != 1 || $6 != 1 || $7 != 1) wrong = 1 }
    else if (!($4 > 0.5 && $4 < 1.1 && $5 > 0.5 && $5 < 1.1)) wrong = 1 } END { print n, wrong + 0 }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'the smallest run has 100 %, and no interval' '^4 0$'
run plot strategies --system abci-v100 --workload vgg16 --strategy data,filter,spatial --nodes 1-4*2 --csv
check 'strategies as numbers' 0
cut -d, -f2 "$work/out" | sort -u | tr '\n' ' ' > "$work/judged"
cp "$work/judged" "$work/out"
has 'one curve a strategy' '^data filter label spatial $'
run plot strategies --system abci-v100 --workload vgg16 --strategy mlsl-hybrid --nodes 1
check 'a strategy that cannot be' 2 'no strategy of "mlsl-hybrid" can run this'
run plot timeline --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 4 --csv
check 'a timeline as numbers' 0
cp "$work/out" "$work/timeline.csv"
run predict --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 4 --csv
# Messages never overlap on the network; the parts end where the iteration does.
awk -F, 'NR == FNR { if (FNR == 1) for (i = 1; i <= NF; i++) if ($i == "iteration_s") at = i; if (FNR == 2) whole = $at; next }
    FNR > 1 { if ($1 == 2 && $3 < last - 1e-9) overlap = 1; if ($1 == 2) last = $4; if ($1 == 3) end = $4; lanes[$2] = 1 }
    END { d = end / whole - 1; print ((d < 1e-6 && d > -1e-6) ? "whole" : "cut"), overlap + 0, ("device" in lanes) + ("network" in lanes) + ("sum" in lanes) }' \
    "$work/out" "$work/timeline.csv" > "$work/judged"
cp "$work/judged" "$work/out"
has 'the parts are the iteration' '^whole 0 3$'
# With data parallelism the device waits exactly for the communication that the sum calls exposed.
awk -F, 'NR > 1 && $5 == 5 { wait[$1] += $4 - $3 } END { r = wait[1] / wait[3]; print (r > 0.99 && r < 1.01) }' "$work/timeline.csv" > "$work/out"
has 'the device waits for what is exposed' '^1$'
run plot timeline --framework pytorch-ddp --nodes 1,2 --csv
check 'a timeline of two plans' 2 'one number of nodes'
run search --system dgx-a100-80 --workload gpt:layers=8,hidden=1024,heads=16 --nodes 1 --global-batch 64 --precision mixed --pareto --csv
cp "$work/out" "$work/front.csv"
run plot pareto "$work/front.csv" --csv
check 'a front as numbers' 0
awk -F, 'BEGIN { n = 0 } NR > 1 && $5 > 0 { m[n] = $3; t[n++] = $4 } END { for (i = 0; i < n; i++) for (k = 0; k < n; k++) if (m[k] < m[i] && t[k] < t[i]) beaten = 1
    print (n > 3), beaten + 0 }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'nothing on the front is beaten' '^1 0$'
run plot pareto "$runs"
check 'a front of runs' 3 'search --pareto --csv'
run plot pareto
check 'a front of nothing' 2 'search --pareto --csv -o FILE'

# What is wrong with the question
run plot kernels
check 'kernels without files' 2 'needs tables of kernel times'
run plot kernels "$runs"
check 'kernels of runs' 2 'is no kernel'
run plot
check 'no kind' 2 'scaling, efficiency, strategies, breakdown'
run plot scalling "$runs"
check 'unknown kind' 2 "did you mean 'scaling'"
run plot scaling "$runs"
check 'too many groups says how to narrow' 2 'groups of runs match.*--workload'
run plot scaling "$runs" --workload resnet5
check 'no such workload in the rows' 2 'no row has workload "resnet5"; did you mean resnet50'
run plot scaling "$runs" --workload resnet50 --where batch_per_device=512
check 'no row meets all' 2 'no row meets them all'
run plot scaling "$runs" --where batchperdevice=64
check 'unknown column' 2 "did you mean 'batch_per_device'"
run plot scaling "$runs" --nodes 4
check 'a plan and files' 2 '--nodes: the rows of the files'
run plot error
check 'error without files' 2 'needs files'
run plot scaling "$work/missing.csv"
check 'missing file' 3 'missing\.csv'
run plot breakdown -o "$work/a.gif"
check 'unknown extension' 2 'expected \.png, \.svg, \.pdf'
run plot breakdown -o "$work/a.png" --format svg
check 'name against format' 2 'contradicts'
run plot breakdown --framework pytorch-ddp,nonsense
check 'unknown framework in a list' 2 'no framework "nonsense"'
run plot breakdown --framework pytorch-ddp,pytorch-ddp
check 'a framework twice in a list' 2 'names one twice'
mkdir -p "$work/folder"
run plot breakdown --framework pytorch-ddp -o "$work/folder"
check 'a folder for a picture' 2 'a directory'

# Without gnuplot: a message, no file
env PATH="$work/nothing" "$DLMODEL" plot scaling "$runs" --workload resnet50 --system dgx1-p100 -o "$work/none.png" \
    > "$work/out" 2> "$work/err" < /dev/null
status=$?
check 'gnuplot missing' 5 'gnuplot-nox.*--csv'
absent 'nothing written without gnuplot' "$work/none.png"

command -v gnuplot > /dev/null 2>&1 || exit 0 # the rest draws

run plot scaling "$runs" --workload resnet50 --system dgx1-p100 -o "$work/both"
check 'a name without extension' 0
magic 'PNG' "$work/both.png" 89504e470d0a1a0a
magic 'SVG' "$work/both.svg" 3c3f786d6c
run plot breakdown --system iris-v100 --framework pytorch-ddp --nodes 1,4 -o "$work/parts.pdf"
check 'breakdown as PDF' 0
magic 'PDF' "$work/parts.pdf" 25504446
run plot breakdown --system iris-v100 --framework pytorch-ddp --nodes 1,4 -o "$work/parts.eps"
magic 'EPS' "$work/parts.eps" 2521
run plot roofline --system iris-v100 --workload resnet50 --framework pytorch-ddp --nodes 1 -o "$work/roofline.png"
magic 'PNG of a roofline' "$work/roofline.png" 89504e470d0a1a0a
run plot kernels data/kernels/deepbench_gemm.csv --where device=V100 -o "$work/kernels.svg"
magic 'SVG of kernels' "$work/kernels.svg" 3c3f786d6c
for kind in scaling timeline memory mfu efficiency strategies; do
    run plot $kind --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 2 -o "$work/$kind.svg"
    check "$kind as SVG" 0
    magic "SVG of $kind" "$work/$kind.svg" 3c3f786d6c
    sound "$kind is sound" "$work/$kind.svg"
    run plot $kind --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 2
    check "$kind in the terminal" 0
done
run plot scaling --system iris-v100 --workload vgg16 --framework pytorch-ddp,horovod-tensorflow --nodes 1-4*2 --width 1400 -o "$work/two.svg"
cp "$work/two.svg" "$work/out"
has 'a curve has its name and last value next to it' '>horovod-tensorflow: [0-9]+<'
hasnt 'what is absent is not explained' 'points: measured'
has 'each curve has its interval' 'bars at their ends: 80 % intervals'
has 'linear from where' 'grey dashes: ideal scaling from 4 devices, [a-z-]+<'
has 'where a node ends' '>several nodes<'
run plot strategies --system abci-v100 --workload vgg16 --strategy data,spatial,filter,data+spatial,data+filter --nodes 1-4*2 -o "$work/panels.svg"
check 'small multiples' 0
sound 'small multiples are sound' "$work/panels.svg"
cp "$work/panels.svg" "$work/out"
has 'a panel each' 'grey: the others'
run plot pipeline --system dgx-a100-80 --workload gpt2_xl --framework megatron --nodes 2 --pp 4 --global-batch 32 --micro-batch 1 --precision bf16 -o "$work/pipeline.svg"
check 'a pipeline as SVG' 0
sound 'a pipeline is sound' "$work/pipeline.svg"
run plot memory --system dgx-a100-80 --workload gpt2_xl --framework megatron --nodes 2 --pp 4 --global-batch 32 --micro-batch 1 --precision bf16 -o "$work/stages.svg"
check 'memory of stages as SVG' 0
sound 'memory of stages is sound' "$work/stages.svg"
run plot error docs/generalize/source.csv -o "$work/unseen.svg"
check 'errors that no fit has seen' 0
sound 'they are sound' "$work/unseen.svg"
cp "$work/unseen.svg" "$work/out"
hasnt 'averages are no group' '>(all|macro-average) '
run plot roofline --system iris-v100 --workload resnet50 --framework ideal --nodes 1 -o "$work/above.svg"
cp "$work/above.svg" "$work/out"
has 'points above the roof are explained' 'above the roof: Winograd'
LC_ALL=C.UTF-8
export LC_ALL
run plot breakdown --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 1-4*2 --color never
check 'bars of blocks' 0
has 'three parts of a bar' '^ +4 █+▓+.* ms$'
COLUMNS=80 run plot memory --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 1-2 --color never
has 'the capacity' '│ 16 GiB: capacity'
COLUMNS=80 run plot memory --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 2 --color never
has 'memory of one plan over time' 'time \(ms\); vertical: memory per device \(GiB\)$'
run plot timeline --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 4 --color never
has 'lanes of blocks' '^ +device █+ ?▓+'
run plot pipeline --system dgx-a100-80 --workload gpt2_xl --framework megatron --nodes 2 --pp 4 --global-batch 32 --micro-batch 1 --precision bf16 --color always
has 'stages in colour' 'stage 4.*\[38;5;25m█'
run plot scaling --system iris-v100 --workload vgg16 --framework pytorch-ddp,tensorflow-ps --nodes 1-8*2
check 'curves' 0
has 'the curve of each framework ends at its name' '[^ ] +pytorch-ddp$'
has 'and that of the slower one' '[^ ] +tensorflow-ps$'
has 'the numbers of devices are the ticks' '^ +4 +8 +16 +32$'
has 'what is drawn' 'devices; vertical: samples/s of one device$'
run plot roofline --system iris-v100 --workload resnet50 --framework pytorch-ddp --nodes 1
has 'the roof has its name' '[^ ] +roof$'
has 'a symbol for each pass' '^ ● forward   ▲ backward$'
run plot error "$DLMODEL_ROOT/docs/generalize/source.csv"
has 'an error of each source' '^ +OneFlow .*│.*◆.*·'
has 'symbols of errors' '· nine of ten runs are below   ▒ median   ○ mean in-sample   ◆ mean'
run plot error "$DLMODEL_ROOT/data/runs/azure_batch_ai.csv" --color always
has 'rows and mean in colour' '\[38;5;22m◆'
run plot timeline --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 4 --color never --title "$(printf 'a\033[31mb')"
if grep -q "$(printf '\033')" "$work/out"; then bad 'no escape sequence of a title' 'there is one'; else printf 'ok no escape sequence of a title\n'; fi
unset LC_ALL
run plot pareto "$work/front.csv" -o "$work/front.png"
check 'a front as PNG' 0
magic 'PNG of a front' "$work/front.png" 89504e470d0a1a0a
run plot error "$runs" --by workload -o "$work/error.png"
check 'error as PNG' 0
magic 'PNG of errors' "$work/error.png" 89504e470d0a1a0a
run plot scaling "$runs" --workload resnet50 --system dgx1-p100
check 'in the terminal' 0
has 'axis with its unit, in the terminal' 'devices'
COLUMNS=80 LINES=24 run plot scaling "$runs" --workload resnet50 --system dgx1-p100
awk 'length($0) > 80 { long = 1 } END { print (long || NR > 25) ? "too large" : "fits" }' "$work/out" > "$work/judged"
cp "$work/judged" "$work/out"
has 'as large as the terminal' '^fits$'

# Texts stay texts
title="it's \`touch $work/evil1\` \$(touch $work/evil2)'; system('touch $work/evil3'); x=' {/=40 a}_b %s %d \\n <svg> & \"q\""
run plot scaling "$runs" --workload resnet50 --system dgx1-p100 --title "$title" --width 2400 -o "$work/title"
check 'a hostile title' 0
for i in 1 2 3; do absent "no command of the title runs ($i)" "$work/evil$i"; done
cp "$work/title.svg" "$work/out"
has 'the title as it is' "it's .touch .*_b %s %d .*&lt;svg(>|&gt;) &amp;"
mkdir -p "$work/a'b; system('touch x')"
hostile="$work/a'b; system('touch x')/| \$(touch evil4) \"%s.svg"
run plot scaling "$runs" --workload resnet50 --system dgx1-p100 -o "$hostile"
check 'a hostile file name' 0
magic 'the file of that name' "$hostile" 3c3f786d6c
awk -F, 'BEGIN { OFS = "," } NR > 1 { $2 = "\"%d %s `touch evil5`'"'"'; {x}_y \"\"quoted\"\" #\"" } { print }' "$runs" > "$work/names.csv"
run plot error "$work/names.csv" -o "$work/names.svg"
check 'hostile names in the data' 0
cp "$work/names.svg" "$work/out"
has 'the name as it is' '%d %s .touch evil5'
absent 'no command of the data runs' evil5
run plot breakdown --system iris-v100 --framework pytorch-ddp -o "$work/no/such/folder/a.png"
check 'a folder that is not there' 5 'no/such/folder'
run plot breakdown --system iris-v100 --framework pytorch-ddp --format png -o -
magic 'PNG on standard output' "$work/out" 89504e470d0a1a0a

# Interleaved without a number of virtual stages: 2, in the prediction as in the figure.
piped='-s dgx-a100-80 -w gpt2_xl -f megatron-core -n 1 --tp 1 --pp 4 -B 64 --micro-batch 1 --schedule interleaved'
# shellcheck disable=SC2086 # words
run plot pipeline $piped --csv && cp "$SCRATCH/out" "$SCRATCH/usual.csv"
# shellcheck disable=SC2086
run plot pipeline $piped --virtual-stages 2 --csv
if [ -s "$SCRATCH/usual.csv" ] && cmp -s "$SCRATCH/usual.csv" "$SCRATCH/out"; then echo 'ok plot pipeline: two virtual stages'; else bad 'plot pipeline: two virtual stages' 'another figure than with --virtual-stages 2'; fi
# shellcheck disable=SC2086
run predict $piped
has 'predict says how many' ' pp4 v2 mb1 '

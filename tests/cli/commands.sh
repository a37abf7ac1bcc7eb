#!/bin/sh
# Commands as their help and the file formats promise: examples run, fields are there, exit statuses mean what they say.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH

# Every example in the help of every command runs as printed, from the root of the source tree. --generalize refits all constants for
# each source, 30 s: COMMANDS_PART=long (make check-all) runs it, generalize.sh the same on fewer runs.
mkdir "$work/bin"
ln -s "$DLMODEL" "$work/bin/dlmodel"
for command in predict search explain compare list schema help; do
    "$DLMODEL" help "$command" | awk '/^Examples/ { on = 1; next } /^$/ { on = 0 } on' > "$work/examples"
    number=0
    while IFS= read -r line; do
        number=$((number + 1))
        case $line in *' --generalize '*) [ "${COMMANDS_PART-}" = long ] || continue ;; esac
        PATH=$work/bin:$PATH sh -c "$line" > "$work/out" 2> "$work/err" < /dev/null
        status=$?
        check "example $number of $command" 0
    done < "$work/examples"
    if [ "$number" -ge 2 ]; then echo "ok $command has two examples"; else echo "not ok $command has two examples"; fi
done

# JSON and CSV carry the contract's fields.
fields='system workload framework strategy precision nodes devices batch_per_device_samples global_batch_samples dp tp pp sp
iteration_s iteration_low_s iteration_high_s throughput_samples_per_s scaling_efficiency epoch_s forward_s backward_s update_s
compute_s comm_s exposed_comm_s input_s exposed_input_s bubble_s overhead_s fits bottleneck bottleneck_share extrapolated'
parts='weights_bytes gradients_bytes optimizer_bytes activations_bytes workspace_bytes buffers_bytes context_bytes total_bytes
capacity_bytes'
run predict --system iris-v100 --nodes 16 --json
check 'predict --json' 0
for f in $fields $parts warnings memory format version dlmodel inputs results; do has "json field $f" "\"$f\":"; done
hasnt 'no NaN in JSON' '[^a-z](nan|inf)[^a-z]'
run predict --system iris-v100 --nodes 16 --csv
check 'predict --csv' 0
for f in $fields; do has "csv field $f" "^([a-z_.]+,)*$f(,|\$)"; done
for f in $parts; do has "csv field memory.$f" "[,^]memory\\.$f(,|\$)"; done

# A row for each framework that works on 16 nodes.
run predict --system iris-v100 --nodes 16 --all-frameworks --long
check 'predict' 0
for f in pytorch-ddp horovod-tensorflow horovod-pytorch horovod-mxnet horovod-keras tensorflow-ps tensorflow-multiworker \
    mxnet-dist-sync chainermn ideal; do has "row of $f" "$f .*[0-9]"; done
for f in tensorflow-mirrored mxnet-device keras-multi-gpu; do
    run predict --system iris-v100 --nodes 1 --framework "$f"
    check "$f inside a node" 0
done

# The identity of the iteration in every row, from the CSV.
"$DLMODEL" predict --system iris-v100 --nodes 1-16*2 --csv 2> /dev/null > "$work/rows.csv"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { d = $c["iteration_s"] - ($c["compute_s"] + $c["exposed_comm_s"] + $c["exposed_input_s"] + $c["bubble_s"] + $c["overhead_s"])
      if (d > 1e-9 * $c["iteration_s"] || -d > 1e-9 * $c["iteration_s"]) bad++ ; n++ }
    END { exit !(n > 20 && bad == 0) }' "$work/rows.csv"
status=$?
check 'iteration is the sum of its parts in every row' 0

# A what-if changes what it should.
awk_iteration() { "$DLMODEL" predict --system iris-v100 --workload vgg16 --framework chainermn --nodes 8 --csv "$@" 2> /dev/null |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i } NR == 2 { print $c["exposed_comm_s"] }'; }
slow=$(awk_iteration --set links.inter.bandwidth=1GB/s) fast=$(awk_iteration --set links.inter.bandwidth=50GB/s)
awk "BEGIN { exit !($slow > 3 * $fast) }"
status=$?
check 'a slower network exposes more communication' 0
run predict --workload bert_base --set seq=512 --framework ideal --system iris-v100
check '--set seq' 0
run predict --workload resnet50 --set input=256x256 --framework ideal --system iris-v100
check '--set input' 0
run predict --workload gpt:layers=2,hidden=256,seq=128,vocab=1000 --optimizer adam --precision mixed --framework ideal --system iris-v100
check 'gpt of any size' 0

# Exit statuses
run predict --system iris-v100 --batch-per-device 100000 --framework pytorch-ddp
check '1: does not fit' 1 'does not fit|fits in memory'
run compare data/runs/tensorflow_2017.csv --max-error 0.1
check '1: error above --max-error' 1 'max-error'
run predict --system iris-v100 --nodes 500 --strict --framework ideal
check '4: extrapolated with --strict' 4 'extrapolated'
run predict --system iris-v100 --nodes 500 --framework ideal
check 'extrapolated is a warning otherwise' 0 'warning'
run predict --system iris-v100 -o "$work/no/such/dir/x"
check '5: no such directory' 5 'no/such/dir'
"$DLMODEL" predict --system iris-v100 > /dev/full 2> "$work/err"
status=$?
: > "$work/out"
check '5: full standard output' 5 'standard output'
run predict --system iris-v100 --nodes 2 -o "$work/result.txt"
check '-o FILE' 0
if grep -q pytorch-ddp "$work/result.txt"; then echo 'ok -o wrote the table'; else echo 'not ok -o wrote the table'; fi

# Messages
run -q predict --system iris-v100 --nodes 500 --framework ideal
check '-q' 0
if [ -s "$work/err" ]; then echo 'not ok -q is silent'; else echo 'ok -q is silent'; fi
run --version
has 'version' '^dlmodel [0-9]'
run help --man
has 'man page' '^\.TH DLMODEL'
run help --completion bash
check 'completion' 0
if bash -n "$work/out" 2> /dev/null; then echo 'ok completion is bash'; else echo 'not ok completion is bash'; fi
run zzzz
check 'a command that is not there' 2 "no command 'zzzz'; there are"
for kind in systems devices workloads frameworks strategies libraries collectives behaviours layers; do
    run list "$kind" --json
    check "list $kind" 0
    has "list $kind has sources" '"source": "'
done
for f in parameters forward_macs_per_sample activation_elements_per_sample layers input; do
    run list workloads --json
    has "list workloads has $f" "\"$f\":"
done
for kind in system device workload framework kernel-models runs collectives; do
    run schema "$kind"
    check "schema $kind" 0
done
run schema options plot --json
check 'schema options COMMAND' 0
has 'each with its type' '"type": "choice"'
run schema options no-such
check 'of commands alone' 2

# compare
run compare data/runs/tensorflow_2017.csv --json
check 'compare --json' 0
for f in id predicted measured unit error_pct bottleneck skipped why group rows mape_pct median_ape_pct p90_ape_pct max_ape_pct bias_pct; do
    has "comparison field $f" "\"$f\":"
done
has 'all-by-source' '"all-by-source"'
run compare tests/fixtures/unpredictable_runs.csv --json
has 'what cannot be predicted is skipped with the reason' '"why": ".*strateg|"why": ".*framework'
run compare data/collectives/published.csv
check 'compare collectives' 0
run compare data/kernels/deepbench_gemm.csv
check 'compare kernels' 0
run compare data/runs/nvidia_deeplearningexamples.csv --anchor
check 'compare --anchor' 0

# explain
run explain --all --system iris-v100 --framework pytorch-ddp --nodes 4
check 'explain' 0
for id in F-KERNEL-MODEL F-KERNEL-STREAM F-NCCL F-MEM-ACTIVATIONS F-ITERATION; do has "explain names $id" "$id"; done
# Every part of the overhead is a term that names its inputs, and every line fits 120 columns, with a long workload's name too.
run explain --all --system iris-v100 --framework pytorch-ddp --nodes 4
has 'explain: stragglers are a term' '^ straggler wait +F-STRAGGLER +- +[0-9.]+ ms +- +jitter=[0-9.]+ x E\[max of 16'
has 'explain: launch gaps are a term' '^ launch gaps +F-HOST-GAP .* kernel_gap=[0-9.]+ us x [0-9]+ kernels'
has 'explain: waits for launches are a term' '^ device waits for the host +F-HOST-COUNT .* [0-9]+ launches x [0-9.]+ us='
for plan in '--system iris-v100 --framework pytorch-ddp --nodes 4' '-s iris-v100 -f tensorflow-ps -n 8 --backup-workers 2' \
    '-s dgx-a100-80 -f megatron -n 4 --tp 4 --pp 2 -p mixed -w gpt:layers=24,hidden=1024,heads=16,seq=1024,vocab=51200'; do
    # shellcheck disable=SC2086 # several words on purpose
    run explain $plan
    check "explain $plan" 0
    wide=$(awk 'length($0) > 120' "$SCRATCH/out")
    if [ -z "$wide" ]; then echo "ok 120 columns: $plan"; else bad "120 columns: $plan" "$wide"; fi
done
run explain --system iris-v100 --framework pytorch-ddp --nodes 4 --csv
has 'CSV has inputs in full' '^straggler wait,overhead,F-STRAGGLER,jitter=[0-9.]+ x E\[max of 16 devices\]=1\.77 x compute=[0-9.]+ ms,'
# The parts of the overhead add up to it.
if command -v jq > /dev/null 2>&1; then
    run explain --system iris-v100 --framework pytorch-ddp --nodes 4 --json
    if jq -e '([.terms[] | select(.group == "overhead") | .value_s] | add) / .results[0].overhead_s - 1 | fabs < 1e-9' "$SCRATCH/out" > /dev/null; then
        echo 'ok explain: parts of the overhead add up'
    else bad 'explain: parts of the overhead add up' "$(jq -c '[.terms[] | select(.group == "overhead")]' "$SCRATCH/out")"; fi
fi
# Only the longest: 8 of them (memory as it is), the others as sums that leave the groups' sums as they were.
run explain --all --system iris-v100 --framework pytorch-ddp --nodes 4
sums=$(grep -E '^ = ' "$SCRATCH/out" | tr -s ' ')
run explain --system iris-v100 --framework pytorch-ddp --nodes 4 --top 8
check 'explain the longest' 0
has 'the others as a sum' '^ [0-9]+ shorter +sum +- +[0-9.]+ ms +- +[0-9]+ terms'
if [ "$(grep -E '^ = ' "$SCRATCH/out" | tr -s ' ')" = "$sums" ]; then echo 'ok sums of groups stay'; else bad 'sums of groups stay' "$sums"; fi
run explain --system iris-v100 --framework pytorch-ddp --nodes 4 --top 8 --csv
rows=$(grep -c -E ',(forward|backward|update|communication|input|overhead),F-' "$SCRATCH/out")
# And a ninth, alone below them in its group: a sum of one would say no more.
if [ "$rows" -eq 9 ]; then echo 'ok eight rows'; else bad 'eight rows' "$rows"; fi
run explain --top 0
check 'at least one' 2 '--top'
# Mixed precision explains itself: what limits each layer, and why eight times the peak rate is not eight times the speed.
mixed='--system dgx1-v100 --workload resnet50 --framework pytorch-ddp --nodes 1 -g 1 -b 128'
# shellcheck disable=SC2086 # several words on purpose
run explain $mixed --precision mixed --csv
has 'mixed: a convolution on tensor cores' '^layer4.1.conv2 forward,.*limited by tensor cores'
has 'mixed: a normalisation by bandwidth' '^layer1.0.bn1 forward,.*limited by memory bandwidth'
# shellcheck disable=SC2086
run explain --all $mixed --precision mixed
has 'mixed: the limit wraps below its layer' '^ layer4.1.conv2 forward +F-KERNEL-MODEL'
has 'mixed: how many layers bandwidth limits' '^[0-9]+ of [0-9]+ layers, [0-9]+ % of their time, are limited by memory bandwidth, [0-9]+ \([0-9]+ %\) by tensor cores'
has 'mixed: the gain and the peak' '^mixed is [23]\.[0-9]x as fast as fp32 \(peak rates: 8\.0x\); layers limited by tensor cores gain [0-9.]+x, layers limited by memory'
if command -v jq > /dev/null 2>&1; then
    # shellcheck disable=SC2086
    run explain $mixed --precision mixed --json
    shown=$(jq -r '.limits | [.arithmetic_on, (.speedup_over_fp32 > 1.8 and .speedup_over_fp32 < 4), (.memory_bandwidth.share > 0.3),
        .layers == .arithmetic.layers + .memory_bandwidth.layers + .latency.layers] | join(" ")' "$SCRATCH/out")
    if [ "$shown" = 'tensor cores true true true' ]; then echo 'ok mixed: limits in JSON'; else bad 'mixed: limits in JSON' "$shown"; fi
    # The times of the three kinds are those of the terms, each of which names its limit.
    sums=$(jq '[.terms[] | select(.limit != null and (.group == "forward" or .group == "backward")) | .value_s] | add' "$SCRATCH/out")
    if jq -e --argjson s "$sums" '[.limits.arithmetic, .limits.memory_bandwidth, .limits.latency | .value_s] | add / $s - 1 | fabs < 1e-9' \
        "$SCRATCH/out" > /dev/null; then echo 'ok mixed: limits add up'; else bad 'mixed: limits add up' "$sums"; fi
fi
# shellcheck disable=SC2086
run explain --all $mixed
has 'fp32: arithmetic, not tensor cores' 'layers, .* limited by memory bandwidth, .* by arithmetic'
hasnt 'fp32: nothing to compare' 'as fast as fp32'
run list devices
has 'a device with samples of its own' '^ v100_sxm2_16 .* own samples *$'
has 'a device with borrowed kernel times' '^ k80 .* borrowed from m40 *$'

# One prediction stays small: at most 20 MiB of memory, by the limit on its data and its stack together with the libraries.
if [ -z "${SANITIZED-}" ] && command -v time > /dev/null 2>&1; then
    peak=$({ command time -f %M "$DLMODEL" predict --system iris-v100 --nodes 16 --framework pytorch-ddp > /dev/null; } 2>&1 | tail -n 1)
    case $peak in
    *[!0-9]* | '') echo '# time(1) does not tell memory here: not checked' ;;
    *) if [ "$peak" -le 20480 ]; then echo 'ok memory of one prediction'; else echo "not ok memory of one prediction: $peak KiB"; fi ;;
    esac
fi

# An option has the same letter wherever it has one, and a command for runs has all letters of predict.
for command in $("$DLMODEL" help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    "$DLMODEL" "$command" --help-all | sed -nE "s/^  (-[a-zA-Z], |    )(--[a-z-]+).*/\\2 \\1$command/p" | tr -d ,
done | awk 'NF == 3' | sort > "$SCRATCH/letters"
two=$(cut -d ' ' -f 1,2 "$SCRATCH/letters" | sort -u | cut -d ' ' -f 1 | uniq -d)
if [ -z "$two" ]; then echo 'ok an option has one letter'; else echo "not ok an option has one letter: $two"; fi
missing=
for option in framework workload nodes devices-per-node batch-per-device global-batch precision; do
    for command in predict explain search advise campaign match plot report slurm; do
        grep -q "^--$option -[a-zA-Z] $command\$" "$SCRATCH/letters" || missing="$missing $command:$option"
    done
done
if [ -z "$missing" ]; then echo 'ok each command has the letters of predict'; else echo "not ok each command has the letters of predict:$missing"; fi

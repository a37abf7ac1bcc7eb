#!/bin/sh
# throughput.sh - tokens/s, MFU, the length of a run, memory of stages, the largest micro-batch, several frameworks, devices in all.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
gpt='gpt:layers=30,hidden=1024,heads=16,seq=512,vocab=51200'
predict() { run predict --system dgx-a100-80 --workload "$gpt" --framework megatron --precision bf16 --global-batch 64 "$@"; }
of() { jq -r "$1" "$work/out"; }
agree() { # agree NAME A B: within 1e-9
    if echo "$2 $3" | awk '{ d = $1 - $2; exit !(NF == 2 && d <= 1e-9 * $1 && -d <= 1e-9 * $1) }'; then echo "ok $1"; else bad "$1" "$2 and $3"; fi
}
command -v jq > /dev/null 2>&1 || { echo 'skip throughput: no jq (Debian package jq)'; exit 0; }

predict --gpus 16 --json --tokens 1G
check 'predict --gpus' 0
agree 'two nodes' "$(of '.results[0].nodes')" 2
agree 'tokens are samples x length' "$(of '.results[0].tokens_per_s')" "$(of '.results[0] | .throughput_samples_per_s * 512')"
agree 'tokens of a device' "$(of '.results[0].tokens_per_s_per_device')" "$(of '.results[0] | .tokens_per_s / 16')"
# F-MODEL-FLOP: 30 layers of 12 h^2 + (s + 1) h (half of the scores), and the head; 312 Tflop/s
agree 'model flop by hand' "$(of '.results[0].model_flop_per_s_per_device')" \
    "$(of '.results[0] | 6 * .tokens_per_s_per_device * (30 * (12 * 1024 * 1024 + 513 * 1024) + 1024 * 51200)')"
agree 'MFU' "$(of '.results[0].mfu_frac')" "$(of '.results[0].model_flop_per_s_per_device / 312e12')"
iterations=$(awk 'BEGIN { n = 1e9 / 512 / 64; print int(n) + (n > int(n)) }')
agree 'device-hours of 1G tokens' "$(of '.results[0].gpu_hours')" "$(of ".results[0] | $iterations * .iteration_s * 16 / 3600")"
if [ "$(of '.results[0] | [.cost, .carbon_g, .currency] | map(. == null) | all')" = true ]; then echo 'ok what is unknown is null'; else echo 'not ok what is unknown is null'; fi
agree 'energy of 1G tokens' "$(of '.results[0].energy_j')" "$(of ".results[0] | $iterations * .iteration_energy_j")"
predict --gpus 4 --json
agree 'a part of a node' "$(of '.results[0].devices')" 4
if [ "$(of '.results[0].gpu_hours')" = null ]; then echo 'ok no length, no device-hours'; else echo 'not ok no length, no device-hours'; fi
predict --gpus 12
check 'devices that fill no whole nodes' 2 'nearest are 8 and 16'
predict --gpus 8 --nodes 1
check '--gpus and --nodes' 2 'not both'
predict --gpus 8 --tokens 1G --epochs 1
check '--tokens and --epochs' 2 'not both'
run predict --workload resnet50 --framework pytorch-ddp --tokens 1G
check 'tokens of images' 2 'no sequences of tokens; use --epochs'
run predict --workload resnet50 --framework pytorch-ddp --epochs 90 --json
check 'epochs of images' 0
agree 'device-hours of 90 epochs' "$(of '.results[0].gpu_hours')" \
    "$(of '.results[0] | (90 * 1281167 / .global_batch_samples | ceil) * .iteration_s * .devices / 3600')"
if [ "$(of '.results[0].tokens_per_s')" = null ]; then echo 'ok images have no tokens'; else echo 'not ok images have no tokens'; fi

predict --gpus 16 --tp 2 --pp 4 --micro-batch 1 --tokens 15T
check 'length of a run' 0
has 'tokens, days, GPU-hours' '^15T tokens with megatron: [0-9.]+ days .* [0-9,]+ iterations, [0-9,]+ GPU-hours \(excluding startup'
has 'memory by stage' '^Memory per pipeline stage .limit 80 GiB.: ([0-9.]+, ){3}[0-9.]+ GiB \([0-9]+ % free in the fullest\)\. The largest micro-batch that fits is [0-9]+ samples'
has 'MFU in the answer' 'MFU [0-9]+ %'
predict --gpus 16 --tp 2 --pp 4 --micro-batch 1 --long
has 'MFU in the long table' ' MFU +HFU '
predict --gpus 16 --tp 2 --pp 4 --micro-batch 1 --json
agree 'the fullest stage is the memory' "$(of '.results[0].memory.total_bytes')" "$(of '[.results[0].stages[].total_bytes] | max')"
agree 'as many stages as asked' "$(of '.results[0].stages | length')" 4

# The largest micro-batch divides the share of a data rank and fits; twice it does not, or is more than the share.
run predict --system dgx1-v100 --workload "$gpt" --framework megatron --precision mixed --global-batch 512 --recompute none --gpus 8 --micro-batch max --json
check '--micro-batch max' 0
most=$(of '.results[0].max_micro_batch_samples')
run predict --system dgx1-v100 --workload "$gpt" --framework megatron --precision mixed --global-batch 512 --recompute none --gpus 8 --tp 1 --micro-batch 64
check 'the next micro-batch' 1 'does not fit'
if [ "$most" -ge 1 ] && [ "$most" -lt 64 ]; then echo 'ok the largest is below it'; else bad 'the largest is below it' "$most"; fi
run predict --workload resnet50 --framework pytorch-ddp --micro-batch max
check 'the largest micro-batch of a network that is no stack' 2 'give a number'

# Several frameworks.
run predict --nodes 2 --framework horovod-pytorch,pytorch-ddp --json
check 'several frameworks' 0
if [ "$(of '[.results[].framework] | join(" ")')" = 'horovod-pytorch pytorch-ddp' ]; then echo 'ok as listed'; else bad 'as listed' "$(of '[.results[].framework] | join(" ")')"; fi
run predict --nodes 2 --framework pytorch-ddp,pytorch-dp
check 'one of several cannot run here' 0 'Omitted'
run predict --framework pytorch-ddp,pytorch-dpp
check 'an unknown one of several' 2 'pytorch-dp'
run predict --framework pytorch-ddp,pytorch-ddp
check 'one twice' 2 'names one twice'
run explain --all --framework pytorch-ddp,pytorch-dp
check 'explain takes one' 2 'takes one framework'

# Published totals of whole trainings (data/energy/gpu_hours.csv): each includes restarts and pauses, which the model leaves out, and plans that the
# program chooses by itself (F-DEFAULT-PLAN); half to a third more of them, and in the median a tenth to two fifths less.
tail -n +2 data/energy/gpu_hours.csv | sed 's/,"\(gpt:[^"]*\)",/,@,/' > "$work/totals"
: > "$work/ratios"
while IFS=, read -r id _ system workload framework nodes batch precision tokens hours _; do
    [ "$workload" != @ ] || workload=$(sed -n "s/^$id,.*\"\(gpt:[^\"]*\)\".*/\1/p" data/energy/gpu_hours.csv)
    run predict --system "$system" --workload "$workload" --framework "$framework" --nodes "$nodes" --global-batch "$batch" --precision "$precision" \
        --tokens "$tokens" --json < /dev/null
    echo "$id $(of '.results[0].gpu_hours') $hours" | awk '{ print $1, $2 / $3 }' >> "$work/ratios"
    if tail -n 1 "$work/ratios" | awk '{ exit !($2 > 0.5 && $2 < 1.34) }'; then echo "ok GPU-hours of $id"; else bad "GPU-hours of $id" "$(tail -n 1 "$work/ratios") of the published"; fi
done < "$work/totals"
if sort -k 2 -g "$work/ratios" | awk '{ r[NR] = $2 } END { m = r[int((NR + 1) / 2)]; exit !(NR >= 9 && m > 0.6 && m < 0.9) }'; then
    echo 'ok GPU-hours in the median'; else bad 'GPU-hours in the median' "$(sort -k 2 -g "$work/ratios" | tr '\n' ' ')"; fi

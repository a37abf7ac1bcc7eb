#!/bin/sh
# Logs as runs: for each format a small log with the row worked out by hand; what the log does not say is asked for or taken from
# the prediction that it corrects.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
logs=tests/fixtures/logs

# row FILE OPTIONS COLUMN=VALUE...: the row of the log
row() {
    file=$1 options=$2
    shift 2
    # shellcheck disable=SC2086
    run import log "$logs/$file" $options
    check "$file" 0
    for pair in "$@"; do
        value=$(python3 -c 'import csv, sys; print(next(csv.DictReader(open(sys.argv[1]))).get(sys.argv[2]))' "$SCRATCH/out" "${pair%%=*}")
        if [ "$value" = "${pair#*=}" ]; then echo "ok $file: $pair"; else bad "$file: $pair" "found: $value"; fi
    done
}
# 16 devices of the argument table; the first step is warm-up: the median of 400, 410 and 420 ms
row megatron.log '' workload=gpt:layers=24,hidden=2048,heads=16,seq=2048,vocab=51200,ffn=8192 tp=2 pp=2 zero=1 micro_batch=2 global_batch=64 \
    precision=bf16 metric=iteration value=0.41 unit=s p10=0.402 p90=0.418 steps=3 warmup_steps=1
# 16 devices x 8192 tokens/s / 4096 tokens; a step that two ranks report counts once; colours go
row torchtitan.log '-s dgx-h100' workload=llama3_8b nodes=2 devices_per_node=8 global_batch=16 tp=2 zero=3 zero_group=4 recompute=full compiler=inductor \
    input=seq4096 metric=throughput value=32 unit=samples/s steps=2 warmup_steps=1
row nemo.log '' framework=megatron-core global_batch=8 metric=iteration value=1.5 steps=2 warmup_steps=1
row nemo_bar.log '' metric=iteration value=3.125 steps=2
row nanotron.log '' framework=nanotron global_batch=20 metric=iteration value=0.405 warmup_steps=1
# 16 devices: the job's rate over that of a device
row composer.log '-s dgx-h100' nodes=2 metric=throughput value=16.5
row deepspeed.log '-s dgx-h100' framework=deepspeed-zero3 nodes=2 global_batch=64 metric=throughput value=26
row deepspeed_pipeline.log '' metric=iteration value=0.187
row maxtext.log '' framework=jax-maxtext metric=iteration value=2.1
row transformers.log '' metric=throughput value=3.663
row lightning.log '' metric=iteration value=0.04444444444
row keras.log '' metric=iteration value=0.998 steps=2 warmup_steps=1
# evaluate() announces no epoch
{ cat "$logs/keras.log" && echo '100/100 [==============================] - 9s 90ms/step - loss: 0.2'; } > "$SCRATCH/evaluated.log"
{ cat "$logs/megatron.log" && echo 'epoch=0/micro_step=9/global_step=9, RunningAvgSamplesPerSec=58.7, CurrSamplesPerSec=61.3'; } > "$SCRATCH/megatron_deepspeed.log"
printf '%s\n' '[launch.py:164:main] dist_world_size=8' '[timer.py:157:stop] 0/50, SamplesPerSec=1292.5' '[timer.py:157:stop] 0/100, SamplesPerSec=1303.5' > "$SCRATCH/2020.log"
printf '%s\n' '[1,0]<stdout>:Iter #0: 598.5 img/sec per GPU' '[1,0]<stdout>:Total img/sec on 8 GPU(s): 4800.1 +-30.3' > "$SCRATCH/tail.log"
logs=$SCRATCH
row tail.log '-s dgx-h100' devices_per_node=8 value=4788
row evaluated.log '' value=0.998 steps=2 warmup_steps=1
row megatron_deepspeed.log '' framework=megatron-deepspeed value=0.41
row 2020.log '-s dgx-h100' nodes=1 devices_per_node=8 metric=throughput value=1303.5
logs=tests/fixtures/logs
# the total, not the running means
row tf_cnn_benchmarks.log '-s iris-v100' framework=horovod-tensorflow framework_version=1.10 workload=resnet50 layout=nchw optimizer=sgd nodes=1 \
    devices_per_node=2 global_batch=64 metric=throughput value=240.5
# 8 x 1500
row horovod.log '-s dgx1-v100' workload=resnet50 nodes=1 devices_per_node=8 batch_per_device=96 metric=throughput value=12000 steps=3 warmup_steps=1
# 960 samples in 20 s, 48 an iteration
row mlperf.log '' workload=bert_large global_batch=48 metric=iteration value=1
# BERT's evaluations count samples: 1000 in 20, 30 and 40 s, the first of them warm-up
row mlperf_evaluations.log '' workload=bert_large global_batch=100 metric=iteration value=3.5
# epochs of 1000 samples in 10 (warm-up), 20 and 30 s, four in 160 s
row mlperf_epochs.log '' global_batch=100 metric=iteration value=3 steps=3
row mlperf_throughput.log '' metric=throughput value=50.5
# the sample at rest does not count
row nvidia_smi.csv '' metric=power value=691 unit=W scope=device
row nvidia_smi_dmon.log '' metric=power value=404
row dcgmi.log '' metric=power value=351.5

run import "$logs/nanotron.log"
check 'a log is recognized' 0 'read as log'
run import "$logs/megatron.log" -s dgx-h100
has 'a log with its arguments is a plan' '^dlmodel predict .*layers=24'
sed '/Trainer/d; /Model/d' "$logs/torchtitan.log" > "$SCRATCH/short.log"
run import log "$SCRATCH/short.log" -s dgx-h100
check 'tokens without a length' 3 'expected workload, as it gives tokens/s'
run import log "$logs/horovod.log" "$logs/megatron.log" --ranks 16 -s dgx-h100
has 'several logs, one table' '^megatron.log,'
check 'devices of an option and of the log' 0 '16 devices, as given; the log says 8'
run import log tests/fixtures/runs/nemo.yaml
check 'no log' 3 'no log of a training'
run import log "$logs/horovod.log" --plan tests/fixtures/runs/megatron.sh -s dgx-h100 -w resnet50
check 'a plan of another file' 0

# ---- where a table is taken
run compare "$logs/megatron.log" --fill system=dgx-h100 --long
check 'compare' 0 'read as a log'
has 'compare: its row' 'megatron.log +dgx-h100 +megatron-core .* 16 '
run compare "$logs/horovod.log" --rows
check 'compare: what is missing' 1 'no row could be predicted'
run compare "$logs/horovod.log" --fill system
check 'compare: --fill' 2 'expected COLUMN=VALUE'
run predict -s dgx1-v100 -w resnet50 -f horovod-pytorch -n 1,4 -b 96 -p mixed --measured "$logs/horovod.log"
check 'measured' 0 'corrected by 1 of the 1 runs'
run search -s dgx-h100 -w llama3_8b --nodes 2 -p bf16 --global-batch 16 --measured "$logs/torchtitan.log" -f pytorch-fsdp2 --top 1
check 'search' 0 'corrected by 1 of the 1 runs'

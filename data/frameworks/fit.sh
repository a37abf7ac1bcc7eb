#!/bin/sh
# fit.sh - fits the constants that differ between releases of frameworks to the published runs, and writes them into the
# files in this folder. One value for a whole release, never for one row. Needs jq; run it from the root of the source tree after
# the kernel times, workloads or systems changed: sh data/frameworks/fit.sh [DLMODEL]
#
# What is fitted: the factors on kernel times (F-FRAMEWORK-KERNELS) from runs on ONE device, so that no communication is in them;
# then host costs of exchanges from runs on several.
set -eu
dlmodel=${1:-./dlmodel}
runs='data/runs/azure_batch_ai.csv data/runs/dlperf_oneflow.csv data/runs/intel_caffe.csv data/runs/keras_aws.csv
data/runs/nvidia_deeplearningexamples.csv data/runs/tensorflow_2017.csv'
export DLMODEL_LOCAL=/dev/null/local.json
new=$(mktemp)
trap 'rm -f "$new"' EXIT

# fit "KEY=START..." WHERE... : prints KEY VALUE lines
fit() {
    keys=$1
    shift
    set -- $(for w in "$@"; do [ "$w" = --anchor ] && printf -- '--anchor ' || printf -- '--where %s ' "$(printf %s "$w" | tr ' ' '?')"; done)
    args=
    for k in $keys; do args="$args --fit $k"; done
    # A '?' stands for a space inside one --where.
    for a in "$@"; do set -- "$@" "$(printf %s "$a" | tr '?' ' ')"; shift; done
    "$dlmodel" compare $runs $args "$@" --csv | awk -F, 'NR > 1 { printf "%s %.4g %.1f %.1f %d\n", $2, $4, $6, $7, $5 }'
}

# release FRAMEWORK RELEASE "KEY=START..." WHERE...: RELEASE "" sets the file's own members
release() {
    framework=$1 name=$2 keys=$3
    shift 3
    fit "$keys" "$@" | while read -r key value before after rows; do
        printf '%-20s %-24s %-22s %10s   error %5s -> %5s %% over %d rows\n' "$framework" "$name" "$key" "$value" "$before" "$after" "$rows"
        file=data/frameworks/$framework.json
        if [ -z "$name" ]; then
            jq --arg k "$key" --argjson v "$value" '.[$k] = $v | .sources[$k] = "fit-runs" | (.releases // null) as $r | (.sources) as $s |
                del(.releases, .sources) + (if $r == null then {} else {releases: $r} end) + {sources: $s}' "$file" > "$new"
        else
            jq -e --arg n "$name" --arg k "$key" --argjson v "$value" '(.releases[] | select(.name == $n) | .set[$k]) = $v' "$file" > "$new"
        fi
        [ -s "$new" ] && cat "$new" > "$file"
    done
}
# devices KEY DEVICE WHERE...: one value for a device, from runs on it alone
devices() {
    key=$1 device=$2
    shift 2
    fit "device.$key=1.5" "$@" | while read -r name value before after rows; do
        printf '%-20s %-24s %-22s %10s   error %5s -> %5s %% over %d rows\n' "$device" '' "$name" "$value" "$before" "$after" "$rows"
        jq --arg k "$key" --argjson v "$value" '.[$k] = $v | .sources[$k] = "fit-runs"' "data/devices/$device.json" > "$new"
        [ -s "$new" ] && cat "$new" > "data/devices/$device.json"
    done
}
# systems KEY VALUE FILE...: writes a dotted key and its source
systems() {
    key=$1 value=$2
    shift 2
    for file in "$@"; do
        jq --arg k "$key" --argjson v "$value" '($k | split(".")) as $p | setpath($p; $v) |
            setpath($p[:-1] + ["sources", $p[-1]]; "fit-runs")' "$file" > "$new"
        [ -s "$new" ] && cat "$new" > "$file"
    done
}
one='nodes=1'
alone='devices_per_node=1'

# PyTorch: ResNet-50 tells the streams, ResNeXt the grouped convolutions, BERT the composed layers. First for releases that are not
# known, then for those that are.
release pytorch-ddp '' 'grouped_scale=1' framework=pytorch-ddp $one $alone workload=resnext101_32x4d precision=fp32
release pytorch-ddp '' 'composed_scale=1' framework=pytorch-ddp $one $alone workload=bert_base
release pytorch-ddp '' 'mixed_stream_scale=1' framework=pytorch-ddp $one $alone 'framework_version~21.03-py3' workload=resnet50 precision=mixed
release pytorch-ddp '' 'mixed_grouped_scale=1' framework=pytorch-ddp $one $alone 'framework_version~21.03-py3' workload=resnext101_32x4d precision=mixed
release pytorch-ddp 'NGC 19.03' 'mixed_stream_scale=1' framework=pytorch-ddp $one $alone 'framework_version~19.03-py3' precision=mixed
release pytorch-ddp 'NGC 20.06' 'mixed_stream_scale=1' framework=pytorch-ddp $one $alone 'framework_version~20.06-py3' workload=resnet50 precision=mixed
release pytorch-ddp 'NGC 20.06 channels last' 'mixed_stream_scale=1' framework=pytorch-ddp $one $alone layout=nhwc workload=resnext101_32x4d precision=mixed
for r in 20.02 20.12; do
    release pytorch-ddp "NGC $r" 'mixed_stream_scale=1' framework=pytorch-ddp $one $alone "framework_version~$r-py3" workload=resnet50 precision=mixed
    release pytorch-ddp "NGC $r" 'mixed_grouped_scale=1' framework=pytorch-ddp $one $alone "framework_version~$r-py3" workload=resnext101_32x4d precision=mixed
done
# 20.03 has no runs in mixed precision here: as 20.02, a month older (20.06 agrees: NHWC came with 20.12).
jq '(.releases[] | select(.name == "NGC 20.02").set) as $s | (.releases[] | select(.name == "NGC 20.03").set) = $s' data/frameworks/pytorch-ddp.json > "$new"
[ -s "$new" ] && cat "$new" > data/frameworks/pytorch-ddp.json
# Horovod with TensorFlow.
release horovod-tensorflow '' 'grouped_scale=1' framework=horovod-tensorflow $one $alone 'framework_version~20.06-tf1' precision=fp32
release horovod-tensorflow '' 'composed_scale=1' framework=horovod-tensorflow $one $alone workload=bert_base
release horovod-tensorflow '' 'mixed_stream_scale=1' framework=horovod-tensorflow $one $alone 'framework_version~20.03-tf1' workload=resnet50 precision=mixed
release horovod-tensorflow '' 'mixed_grouped_scale=1' framework=horovod-tensorflow $one $alone 'framework_version~20.06-tf1' precision=mixed
release horovod-tensorflow 'NGC 19.05' 'mixed_stream_scale=1' framework=horovod-tensorflow $one $alone 'framework_version~tensorflow-19.0' precision=mixed
release horovod-tensorflow 'NGC 20.03' 'mixed_stream_scale=1' framework=horovod-tensorflow $one $alone 'framework_version~20.03-tf1' workload=resnet50 precision=mixed
release horovod-tensorflow 'NGC 20.03' 'grouped_scale=1' framework=horovod-tensorflow $one $alone 'framework_version~20.03-tf1' workload=resnext101_32x4d precision=fp32
release horovod-tensorflow 'NGC 20.03' 'mixed_grouped_scale=1' framework=horovod-tensorflow $one $alone 'framework_version~20.03-tf1' workload=resnext101_32x4d precision=mixed
# MXNet.
release horovod-mxnet '' 'stream_scale=1' framework=horovod-mxnet $one $alone workload=resnet50 precision=fp32
release horovod-mxnet '' 'composed_scale=1' framework=horovod-mxnet $one $alone workload=bert_base
release horovod-mxnet '' 'mixed_stream_scale=1' framework=horovod-mxnet $one $alone workload=resnet50 precision=mixed
# TensorFlow 1.1 (cuDNN 5.1): batch normalisation and 1x7 convolutions, from the P100; what Kepler's direct convolutions take, from K80
# with these (kept from the first fit of this release, and used by every other one).
for f in tensorflow-ps tensorflow-mirrored; do
    release $f '1.1' 'norm_scale=2 unequal_scale=2' framework=tensorflow-ps,tensorflow-mirrored $one $alone 'framework_version~1.1' system=dgx1-p100
done
devices direct_conv_scale k80 framework=tensorflow-ps $one $alone 'framework_version~1.1' system=gce-k80
# Horovod with TensorFlow 1.9 (cuDNN 7), K80 and P100.
release horovod-tensorflow '1.9 tf_cnn_benchmarks' 'norm_scale=1.5 grouped_scale=10 dispatch_s=4e-5' framework=horovod-tensorflow $one $alone system=azure-nc24r-k80,azure-nc24rs-p100
# Devices before Volta, whatever the framework: batch normalisation by cuDNN 5 to 7.1, over both of the releases above (leaving one
# out: TensorFlow 1.1 8.6 %, 1.9 6.6 % of error on one device).
norm=$(fit 'framework.norm_scale=2' $one $alone 'source=TensorFlow performance benchmarks (May 2017),Azure Batch AI Horovod benchmark (msalvaris)' workload=resnet50,resnet101,resnet152,vgg16,alexnet | cut -d' ' -f2)
for d in k40 k80 m40 titanx_maxwell titanx_pascal titanxp gtx1080ti p100_pcie16 p100_sxm2 p40; do
    jq --argjson v "$norm" '.norm_scale = $v | .sources.norm_scale = "fit-runs"' "data/devices/$d.json" > "$new"
    [ -s "$new" ] && cat "$new" > "data/devices/$d.json"
done
echo "norm_scale $norm on devices before Volta"
# Keras: its unfused graph, from one device. What the copies cost is not fitted: SOURCES.md, keras-aws-cifar.
release keras-multi-gpu '' 'stream_scale=1' framework=keras-multi-gpu $one $alone

# How much the devices of a job differ from step to step (F-STRAGGLER), from the scaling alone (--anchor): one value for NVIDIA's own
# DGX servers, one for virtual machines in clouds, one for all other machines. vTrain's runs (DGX A100) are in no fit: their scaling
# errs by 4.4 % with one value for all systems and by 3.1 % with that of the DGX-1.
jitter() {
    what=$1 systems=$2
    shift 2
    value=$(fit 'system.jitter_frac=0.04' strategy=data "system=$systems" --anchor | cut -d' ' -f2)
    systems jitter_frac "$value" "$@"
    echo "jitter_frac of $what: $value"
}
runs='data/runs/dlperf_oneflow.csv data/runs/nvidia_deeplearningexamples.csv data/runs/tensorflow_2017.csv data/runs/azure_batch_ai.csv
data/runs/paradl_abci.csv'
dgx=$(ls data/systems/dgx*.json)
clouds=$(ls data/systems/aws-*.json data/systems/azure-*.json data/systems/gc*.json data/systems/h200-8x.json)
others=$(ls data/systems/*.json | grep -v -x -F "$dgx
$clouds")
jitter 'DGX servers' dgx1-v100,dgx1-p100 $dgx
jitter 'virtual machines' gce-k80,azure-nc24rs-p100,azure-nc24r-k80 $clouds
jitter 'other machines' v100-8x-edr,abci-v100 $others
# What kernels of NCCL 1's ring take from the backward pass that runs concurrently (F-SLOWDOWN).
release tensorflow-mirrored '1.1' 'overlap_slowdown_frac=0.2' framework=tensorflow-mirrored 'framework_version~1.1' --anchor
runs=data/runs/azure_batch_ai.csv
rate=$(fit 'links.inter.nccl_bandwidth_bytes_per_s=1e9' backend=nccl workload=resnet50,resnet101,resnet152 system=azure-nc24rs-p100 --anchor | cut -d' ' -f2)
systems links.inter.nccl_bandwidth_bytes_per_s "$rate" data/systems/azure-nc24r-k80.json data/systems/azure-nc24rs-p100.json data/systems/azure-nc24rs-v100.json data/systems/azure-nd24rs-p40.json
echo "NCCL between Azure nodes: $rate byte/s"
# Horovod before its response cache (0.16): every tensor is negotiated through rank 0 in each cycle; between nodes that costs time, more
# of it in the jobs with NCCL, which reach other nodes through sockets, than in those with Intel's MPI on InfiniBand.
azure='framework=horovod-tensorflow system=azure-nc24r-k80,azure-nc24rs-p100'
release horovod-tensorflow '1.9 tf_cnn_benchmarks' 'negotiation_s=1e-2' $azure backend=mpi --anchor
release horovod-tensorflow '1.9 tf_cnn_benchmarks' 'socket_negotiation_s=1e-2' $azure backend=nccl --anchor
# What NCCL's kernels take on a K80 from the backward pass that runs concurrently: from the NCCL runs there. More than 1 is possible, because they hold
# multiprocessors also while they wait for their partners' kernels, which is no part of the transfers.
slowdown=$(fit 'device.collective_slowdown_frac=0.5' system=azure-nc24r-k80 backend=nccl --anchor | cut -d' ' -f2)
jq --argjson v "$slowdown" '.collective_slowdown_frac = $v' data/devices/k80.json > "$new"
[ -s "$new" ] && cat "$new" > data/devices/k80.json
echo "collective_slowdown_frac of the K80: $slowdown"

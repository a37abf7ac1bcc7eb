#!/bin/sh
# shellcheck disable=SC2046,SC2010,SC2086 # names in this tree have no blanks
# fit_frameworks.sh - fits the constants that differ between releases of frameworks to the published runs, and writes them into the
# files in data/frameworks. One value for a whole release, never for one row. Needs jq; run it from the root of the source tree after
# the kernel times, workloads or systems changed: sh tools/fit_frameworks.sh [DLMODEL]
#
# What is fitted: host costs of exchanges from runs on several devices. Kernels are facts of a version and not fitted (F-KERNEL-FACTS);
# rates of devices and the host's time for a kernel: `dlmodel compare data/runs/*.csv --fit-constants`.
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
# How much the devices of a job differ from step to step (F-STRAGGLER), from the scaling alone (--anchor): one value for NVIDIA's own
# DGX servers, one for all other machines.
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
others=$(ls data/systems/*.json | grep -v -x -F "$dgx")
jitter 'DGX servers' dgx1-v100,dgx1-p100 $dgx
jitter 'other machines' v100-8x-edr,abci-v100,gce-k80,azure-nc24rs-p100,azure-nc24r-k80 $others

#!/bin/sh
# run.sh BUILD - timings of the functions, of the library and of the whole process. Shared machines are noisy: compare on one machine only.
set -u
build=$1
"$build/tests/bench/bench"
"$build/tests/threads/threads" data 5
export DLMODEL_LOCAL=/dev/null/local.json
PYTHONPATH=python DLMODEL_LIBRARY=$build/libdlmodel.so.0 DLMODEL_DATA=data python3 tests/bench/python.py
process() { # process NAME RUNS ARGS...: time of the whole process
    name=$1 runs=$2
    shift 2
    "$build/tests/bench/spawn" "$name" "$runs" "$build/dlmodel" "$@"
}
process 'nothing (--version)' 301 --version
process 'one row, cold: ResNet-50, one node' 301 predict --system dgx1-v100 --workload resnet50 --framework pytorch-ddp --nodes 1
process 'one row, 16 nodes' 51 predict --system iris-v100 --framework pytorch-ddp --nodes 16
process 'one row, JSON' 51 predict --system iris-v100 --framework pytorch-ddp --nodes 16 --json
process 'all frameworks, 16 nodes' 21 predict --system iris-v100 --nodes 16
process 'list systems' 51 list systems
process 'list workloads' 21 list workloads
process 'search of ResNet-50 on 64 nodes' 11 search --system iris-v100 --workload resnet50 --framework chainermn --nodes 64 --threads 1
process 'compare all published runs' 5 compare data/runs/*.csv
# Rows, and memory: measurements of a few jobs and of many. ROWS=10000000 takes minutes and a gigabyte of disk.
rows=$(mktemp -d) || exit 1
trap 'rm -rf "$rows"' EXIT
memory() { [ ! -x /usr/bin/time ] || /usr/bin/time -f "               memory: %M kB" "$@" 2>&1 > /dev/null | tail -n 1; }
for count in 100000 ${ROWS:-1000000}; do
    for cases in 3000 100000; do
        awk -v count="$count" -v cases="$cases" -f tests/bench/rows.awk > "$rows/rows.csv"
        process "compare $count rows, $cases jobs" 1 compare "$rows/rows.csv"
        memory "$build/dlmodel" compare "$rows/rows.csv"
    done
done
rm -f "$rows/rows.csv"
# A profiler's trace: 24 kB a step. STEPS=45000 makes a gigabyte.
awk -v steps="${STEPS:-4500}" -f tests/bench/trace.awk > "$rows/trace.json"
set -- import trace "$rows/trace.json" --workload resnet18 --device v100_sxm2_16 --batch 32
process "import a trace of $(($(wc -c < "$rows/trace.json") / 1000000)) MB" 1 "$@"
memory "$build/dlmodel" "$@"

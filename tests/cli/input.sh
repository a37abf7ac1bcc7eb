#!/bin/sh
# Real input, precision and batch as users first meet them: what is asked for counts, or the program says why not.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

# The workload's usual dataset is decoded, and as many workers as asked for do it.
run predict --system iris-v100 --workload resnet50 --framework pytorch-ddp --precision mixed --input real --decode-workers 1 --csv
check 'real input names its dataset' 0 'those of imagenet'
cp "$SCRATCH/out" "$SCRATCH/one"
run predict --system iris-v100 --workload resnet50 --framework pytorch-ddp --precision mixed --dataset imagenet --decode-workers 1 --csv
cmp -s "$SCRATCH/one" "$SCRATCH/out" && echo same > "$SCRATCH/out"
has 'it is what --dataset says' '^same$'
run explain --all --system iris-v100 --workload resnet50 --framework pytorch-ddp --precision mixed --input real --decode-workers 1
has 'decoding is called decoding' '^F-BOUND +bottleneck input \(decoding\)'
run predict --system iris-v100 --workload resnet50 --framework pytorch-ddp --decode-workers 4
check 'synthetic input is not decoded' 2 'give --input real or --dataset'
run predict --workload unet --framework pytorch-ddp --batch-per-device 4 --input real
check 'no usual dataset: what is not counted' 0 'real input: .* is unknown and not counted'

# 16-bit numbers at the rate of 32-bit ones
run predict --system azure-nc24r-k80 --workload resnet50 --framework pytorch-ddp --precision mixed
check 'mixed precision on a K80' 0 'k80 computes in mixed no faster than in fp32'
run predict --system azure-nd24rs-p40 --workload resnet50 --framework pytorch-ddp --precision mixed
check 'and on a P40' 0 'p40 computes in mixed no faster than in fp32'
run predict --system iris-v100 --workload resnet50 --framework pytorch-ddp --precision mixed -q
grep -q 'no faster' "$SCRATCH/err" && echo 'warned' > "$SCRATCH/out"
hasnt 'not on a V100' '^warned$'
run predict --system azure-nc24r-k80 --workload resnet50 --framework pytorch-ddp --json
has 'the memory of a K80 that programs see' '"capacity_bytes": 11996758016'

# Horovod: one more sample never shortens an iteration, whichever cycle sees the last gradient.
for batch in 31 32 33 34 35; do
    run predict --system aws-p3-16xlarge --workload alexnet --framework horovod-tensorflow --nodes 16 --batch-per-device $batch --csv -q
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "iteration_s") at = i; next } { print $at }' "$SCRATCH/out"
done > "$SCRATCH/times"
awk '$1 <= last { print "shorter" } { last = $1; n++ } END { print n }' "$SCRATCH/times" > "$SCRATCH/out"
has 'iterations grow with the batch' '^5$'
hasnt 'none is shorter' '^shorter$'

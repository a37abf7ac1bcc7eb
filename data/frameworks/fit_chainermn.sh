#!/bin/sh
# fit_chainermn.sh - the constants of data/frameworks/chainermn.json and data/systems/abci-v100.json that are fitted to published
# runs, each one value for all rows. Prints what it finds; the files hold rounded values.
# Fitted one after the other, each with those before it as the files have them:
#   nccl channels              of 1 to 6, data and channel parallelism inside a node: 2 (3.3 % of scaling error; 3.4, 3.9 and 4.5 % with 1, 3, 6)
#   nccl bandwidth             data parallelism, how it scales (--anchor)
# Halos, input and the host time of activations are not fitted: they follow from what the scripts do (fields halo_*, leader_*, activation_*).
# Filter and channel parallelism of VGG-16 cost what gathers, exchanges and sums through the host cost, at every scale, those of
# ResNet-50 what direct copies and NCCL cost: the files of releases say so (managed_memory, reduce_library); that the scripts differ
# is inferred from these runs. Sums are taken of bare arrays, which ends the graph: convolutions have no backward there
# (channel_detached, of the later version).
set -eu
dlmodel=${DLMODEL:-dlmodel}
runs=$(dirname "$0")/../runs/paradl_abci.csv
fit() { "$dlmodel" compare "$runs" "$@"; }
for channels in 1 2 3 6; do
    echo "NCCL channels $channels:"
    fit --where nodes=1 --anchor --set links.intra.channels=$channels
done
fit --where strategy=data --anchor --fit links.inter.nccl_bandwidth=3e9

#!/bin/sh
# fit_chainermn.sh - the constants of data/frameworks/chainermn.json and data/systems/abci-v100.json that are fitted to published
# runs, each one value for all rows. Prints what it finds; the files hold rounded values.
# Fitted one after the other, each with those before it as the files have them:
#   nccl channels              of 1 to 6, data and channel parallelism inside a node: 2 (3.3 % of scaling error; 3.4, 3.9 and 4.5 % with 1, 3, 6)
#   nccl bandwidth             data parallelism, how it scales (--anchor)
#   staged_bytes_per_s         filter parallelism of VGG-16
#   staged_sum_bytes_per_s     channel parallelism of VGG-16; left out one scale at a time, that one errs by 1.4 to 7.1 %
# staged_above_bytes lies between the largest activation of ResNet-50 (206 MB), whose runs show none of it, and that of VGG-16
# (418 MB), whose runs show it; why such activations are slow is not known (some of the runs' scripts allocate unified memory).
# Halos, input and the host time of activations are not fitted: they follow from what the scripts do (fields halo_*, leader_*, activation_*).
# Sums of channel parallelism are NCCL's (the scripts' communicator), gathers and exchanges of filter parallelism MPI's; the scripts' sums
# are taken of bare arrays, which ends the graph: convolutions have no backward there (channel_detached, in that release alone).
set -eu
dlmodel=${DLMODEL:-dlmodel}
runs=$(dirname "$0")/../runs/paradl_abci.csv
fit() { "$dlmodel" compare "$runs" "$@"; }
for channels in 1 2 3 6; do
    echo "NCCL channels $channels:"
    fit --where nodes=1 --anchor --set links.intra.channels=$channels
done
fit --where strategy=data --anchor --fit links.inter.nccl_bandwidth=3e9
fit --where strategy=filter --where workload=vgg16 --fit staged_bytes_per_s=2.06e9
fit --where strategy=channel --where workload=vgg16 --fit staged_sum_bytes_per_s=3.8e8 --leave-out nodes

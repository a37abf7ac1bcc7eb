#!/bin/sh
# verdicts.sh - what limits training: known cases, each with the bottleneck that practice knows.
. tests/cli/lib.sh
set -u

verdict() { # verdict NAME BOTTLENECKS ARGS... : the bottleneck of the only row is one of the words
    name=$1 words=$2
    shift 2
    run predict --json -q "$@"
    got=$(jq -r '.results[0].bottleneck' "$SCRATCH/out" 2> /dev/null)
    case " $words " in
    *" $got "*) printf 'ok %s\n' "$name" ;;
    *) bad "$name" "expected one of: $words; got $got" ;;
    esac
}

# Large gradients, little work, a slow network: the link between nodes.
verdict 'AlexNet on 10 Gb/s Ethernet' inter-link -s iris-v100 -w alexnet -f horovod-tensorflow -n 8 -b 128 --set links.inter.bandwidth=1.2GB/s
verdict 'VGG-16 on 10 Gb/s Ethernet' inter-link -s iris-v100 -w vgg16 -f pytorch-ddp -n 8 -b 32 --set links.inter.bandwidth=1.2GB/s
verdict 'VGG-16 by NCCL over sockets on Azure' inter-link -s azure-nc24rs-v100 -w vgg16 -f horovod-pytorch -n 8 -b 64
# Between devices of a node: PCIe with the processors' link in between.
verdict 'ResNet-50 with weights on the host of 8 V100' 'intra-link framework' -s aws-p3-16xlarge -w resnet50 -f keras-multi-gpu -n 1 -b 32
# Parameter servers: the whole network passes the servers' links.
verdict 'VGG-16 with parameter servers' 'parameter-server inter-link' -s iris-v100 -w vgg16 -f tensorflow-ps -n 8 -b 32
# A small input of many samples from a shared file system.
verdict 'AlexNet from a shared file system, first epoch' input -s iris-v100 -w alexnet -f pytorch-ddp -n 16 -b 256 --dataset imagenet --first-epoch --set storage.total_read_bytes_per_s=2GB/s
verdict 'AlexNet decoded on few workers' input -s dgx1-v100 -w alexnet -f pytorch-ddp -n 1 -b 256 --dataset imagenet --decode-workers 2
verdict 'ResNet-50 in mixed precision decoded on few workers' input -s dgx1-v100 -w resnet50 -f pytorch-ddp -n 1 -b 256 -p mixed --dataset imagenet --decode-workers 2
# Compute.
verdict 'ResNet-50 in a DGX-1' compute -s dgx1-v100 -w resnet50 -f horovod-tensorflow -n 1 -b 128
verdict 'ResNet-50 on 16 nodes of Iris' compute -s iris-v100 -w resnet50 -f pytorch-ddp -n 16 -b 64
verdict 'Inception v3 on one K80' compute -s single-k80 -w inception_v3 -f tensorflow-mirrored -n 1 -b 32
verdict 'ResNet-50 on KNL' compute -s stampede2-knl -w resnet50_v1 -f caffe-mlsl -n 4 -b 32
# One voice: what 10 % more of a resource saves is what predict says with that much more, and where that is not the bottleneck's own resource, it says so.
run predict --json -q -s iris-v100 -w vgg16 -f pytorch-ddp -n 8
first=$(jq -r '.recommendation.gains[0].resource' "$SCRATCH/out")
said=$(jq -r '.recommendation.gains[0].saved_frac' "$SCRATCH/out") base=$(jq -r '.results[0].iteration_s' "$SCRATCH/out")
run predict --json -q -s iris-v100 -w vgg16 -f pytorch-ddp -n 8 --set host.copy_bandwidth=12.21GB/s
more=$(jq -r '.results[0].iteration_s' "$SCRATCH/out")
if [ "$first" = host.copy_bandwidth ] && echo "$said $base $more" | awk '{ d = $1 - (1 - $3 / $2); exit !($1 > 0.01 && d < 1e-6 && -d < 1e-6) }'; then
    echo 'ok what 10 % more saves'; else bad 'what 10 % more saves' "$first: $said of $base, $more"; fi
run predict -s iris-v100 -w vgg16 -f pytorch-ddp -n 8
has 'without GPUDirect the copy through the host limits' 'Bottleneck: host-copy'
hasnt 'bottleneck and gains agree' 'what to raise first'
run predict -s dgx1-v100 -w resnet50 -f pytorch-ddp -n 1
hasnt 'no such sentence where they agree' 'what to raise first'
run explain --all -s iris-v100 -w vgg16 -f pytorch-ddp -n 8
has 'explain says it too' '10 % more of one resource shortens'

# What does not fit, and what bandwidth bounds.
verdict 'BERT large on 16 GB with a large batch' memory-capacity -s iris-v100 -w bert_large -f pytorch-ddp -n 1 -b 128
verdict 'ResNet-50 in mixed precision: normalization and activation' 'memory-bandwidth' -s dgx1-v100 -w resnet50 -f pytorch-ddp -n 1 -b 256 -p mixed --release 'NGC 19.03'

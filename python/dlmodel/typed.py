"""Options of the commands and columns of their results, made by tools/python_types.py. Do not edit."""

from __future__ import annotations

from typing import Literal, Mapping, Optional, Sequence, TypedDict, Union

Scalar = Union[str, int, float]
Text = Union[Scalar, Sequence[Scalar]]  # a list is joined by commas
Words = Union[str, Sequence[str]]


class PlanOptions(TypedDict, total=False):
    # system, or devices of usual nodes: 8xh100_sxm, 4x8xh100_sxm (nodes x devices); predict and
    # search: also a list, the best plan on each; default: this machine's calibrated profile (local)
    # if there is one, else iris-v100
    system: Optional[Text]
    # network, e.g. resnet50 or gpt:layers=24,hidden=1024,seq=1024,vocab=51200; an ONNX model, a
    # config.json or its folder; default resnet50
    workload: Optional[Text]
    # one framework (with its mode), or a comma-separated list; default all; explain, search and
    # advise take one, by default a usual one for the workload
    framework: Optional[Text]
    # with --framework all: also frameworks that are retired, lossy or asynchronous
    all_frameworks: Optional[bool]
    # release or version of the framework ("2.0", "NeMo 26.04"), as in column framework_version;
    # default: usual on the device
    release: Optional[Text]
    # what if: change any field of the system, device, workload or framework, e.g.
    # links.inter.bandwidth=25GB/s
    set: Optional[Mapping[str, Scalar]]
    # layer times written by import trace, used instead of modelled ones; default: matching files in
    # data/layers/
    layers: Optional[Text]
    # table of your own runs (columns: dlmodel schema runs); those of the same system and framework
    # correct the predictions
    measured: Optional[Text]
    # script, configuration or log of a training, or the environment.txt of a job: options that the
    # command line leaves out (import FILE lists them)
    plan: Optional[Text]
    # number of nodes: 16 or 1,2,4 or 1-64*2; default 1
    nodes: Optional[Text]
    # total number of devices, instead of --nodes; the system determines the number of nodes
    gpus: Optional[Union[int, str]]
    # devices used on each node; default: all of them
    devices_per_node: Optional[Union[int, str]]
    # samples per device and iteration, or max: as many as fit in memory (help theory F-MAX-BATCH);
    # default 32 for images, 8 for sequences, a quarter of that on CPUs
    batch_per_device: Optional[Union[float, str]]
    # samples per iteration over all devices
    global_batch: Optional[Union[float, str]]
    # parallel strategy, whose open ranks fill the nodes; predict and plot strategies also take all;
    # default: planned for transformers on frameworks that split or shard them, else that of the
    # framework, usually data
    strategy: Optional[Text]
    # arithmetic; default bf16 on devices that have it, else fp32
    precision: Optional[Literal["fp32", "tf32", "mixed", "fp16", "bf16", "fp8", "mxfp8", "nvfp4"]]
    # optimizer; default adam for transformers, momentum for other networks
    optimizer: Optional[Literal["sgd", "momentum", "adam", "lamb"]]
    # copy of the weights that the optimizer updates in bf16 and narrower precisions; default fp32
    master_weights: Optional[Literal["fp32", "none"]]
    # collective library (nccl, mpi, gloo, ...); default: the framework's own
    library: Optional[Text]
    # tensorflow-ps on one node: device that holds the variables; default cpu
    parameter_device: Optional[Literal["cpu", "gpu"]]
    # data-parallel ranks, expert-parallel ones among them; default: all devices that the other axes
    # leave
    dp: Optional[Union[int, str]]
    # tensor-, filter- or channel-parallel ranks; default: planned (help theory F-DEFAULT-PLAN);
    # with a strategy that splits inside nodes (3d, data+tensor, ...) the devices that other axes
    # leave in a node, else 1
    tp: Optional[Union[int, str]]
    # pipeline stages; default: planned, else 1
    pp: Optional[Union[int, str]]
    # context-parallel ranks, which split the sequence in attention; default: planned, else 1
    cp: Optional[Union[int, str]]
    # parts that spatial parallelism cuts an image into; default 1
    spatial: Optional[Union[int, str]]
    # expert-parallel ranks of a mixture of experts (gpt:...,experts=8,topk=2,capacity=1.25);
    # default 1
    ep: Optional[Union[int, str]]
    # tensor ranks that split each expert: 1 (whole experts; --ep then counts tensor and context
    # ranks too) or as many as --tp; default as --tp
    etp: Optional[Union[int, str]]
    # tokens of the busiest expert-parallel rank / mean over the ranks, without a capacity limit: 1
    # is balanced, at --ep one rank gets all; default: the framework's, for a trained router
    expert_imbalance: Optional[Union[float, str]]
    # samples per micro-batch, or max: as many as divide the batch and fit in memory; default:
    # planned, else the whole share of a data rank, and 1 with pipeline stages
    micro_batch: Optional[Union[float, str]]
    # tensorflow-ps: workers (one per node) that a synchronous step does not wait for; default 0
    backup_workers: Optional[Union[int, str]]
    # activations recomputed in backward: none, those of attention scores, all of each transformer
    # layer, or those of the modules attention, mlp, norm, moe, latent; default: as the framework
    # does
    recompute: Optional[Words]
    # full recomputation of N layers of each pipeline stage; default: all
    recompute_layers: Optional[Union[int, str]]
    # full recomputation of one layer of N; default: all
    recompute_every: Optional[Union[int, str]]
    # kernels of attention: scale, mask and softmax apart, in one kernel, or all of it in one;
    # default: those of the framework's version
    attention: Optional[Literal["composed", "fused-softmax", "flash"]]
    # compiler that fuses the framework's operations; default: the framework's own
    compiler: Optional[Literal["none", "xla", "inductor"]]
    # with tensor or pipeline parallelism, or sharded states: the host waits for each kernel, as
    # with CUDA_LAUNCH_BLOCKING=1
    blocking_launches: Optional[bool]
    # tensorflow-ps, mxnet-dist-*: parameter servers; default: one per node, next to its workers
    servers: Optional[Union[int, str]]
    # with tensor parallelism: split layer norms and dropout along the sequence, as Megatron does
    sequence_parallel: Optional[bool]
    # shard over data ranks: optimizer states (1), gradients too (2), weights too (3); default: as
    # the strategy or the framework has (zero1, ...), else 0
    zero: Optional[Union[int, str]]
    # hybrid sharding (HSDP): shard states over groups of N neighbouring data ranks and replicate
    # them across groups; default: shard over all
    zero_group: Optional[Union[int, str]]
    # neighbours of tensor and context ranks: data ranks or pipeline stages; default data-inside,
    # Megatron's order
    mapping: Optional[Literal["data-inside", "pipeline-inside"]]
    # pipeline schedule; default 1f1b
    schedule: Optional[Literal["1f1b", "gpipe", "interleaved", "async", "zero-bubble", "zbv", "dualpipe", "dualpipev"]]
    # virtual pipeline stages per device, with --schedule interleaved; default 2
    virtual_stages: Optional[Union[int, str]]
    # layers of each pipeline stage in order, e.g. 15,6x16,15 (6x16: 6 stages of 16); default: as
    # even as they go, the ends one less
    stage_layers: Optional[Text]
    # reduce gradients behind the backward pass (1) or after it (0); default: as the framework's
    # release does
    overlap_grad_reduce: Optional[Literal[0, 1]]
    # with ZeRO stages 1 and 2: gather the updated parameters behind the next forward pass (1) or
    # before it (0); with stage 3: gather those of a layer while the one before it computes (1) or
    # when it needs them (0); default: as the framework's release does, stage 3: 1
    overlap_param_gather: Optional[Literal[0, 1]]
    # with tensor parallelism: exchange activations piece by piece behind the matrix products that
    # read or write them; default: as the framework's release does
    tp_comm_overlap: Optional[Literal[0, 1]]
    # width of gradients in collectives; default: as the framework's release does
    gradient_compression: Optional[Literal["none", "fp16", "bf16"]]
    # all-reduce gradients over all ranks at once, or inside nodes, between them and inside nodes
    # again; default auto: as the framework's release does
    allreduce: Optional[Literal["auto", "flat", "hierarchical"]]
    # how tokens reach experts on other ranks: each copy to its expert's rank, all tokens to all
    # ranks, or each token once to every node of its experts (DeepEP, HybridEP); default: as the
    # framework's release does
    moe_dispatch: Optional[Literal["alltoall", "allgather", "deepep", "hybridep"]]
    # with 8-bit precision: also keep in 8 bits what attention reads and writes (attention) and what
    # the MLP's activation reads (mlp)
    fp8_store: Optional[Words]
    # with context parallelism: pass keys and values around a ring, gather them, or exchange shares
    # of the tokens for shares of the heads (DeepSpeed-Ulysses); default: as the framework's release
    # does
    cp_comm: Optional[Literal["ring", "allgather", "alltoall"]]
    # what stays in host memory: optimizer (states, which its cores update), activations, weights
    # (with --zero 3: shards, their gradients and states)
    offload: Optional[Words]
    # share of it: of the parameters, of each stage's layers; default 1
    offload_fraction: Optional[Union[float, str]]
    # layers that predict further tokens (multi-token prediction), each with a loss, on the last
    # pipeline stage; default: as the workload
    mtp_layers: Optional[Union[int, str]]
    # mean length of a document [tokens] in packed sequences, whose attention stays inside
    # documents; default: one document fills a sequence
    packed_length: Optional[Union[float, str]]
    # fine-tuning: train an adapter of rank N for each linear layer, freeze all other weights
    lora_rank: Optional[Union[int, str]]
    # layers with adapters: qkv, proj, fc1, fc2; default qkv,proj
    lora_targets: Optional[Words]
    # fine-tuning: layers whose weights are not trained: a number of first ones (of a transformer
    # with its embedding), backbone (all but the head), head, or names of layers or blocks
    frozen_layers: Optional[Text]
    # exchange the tokens of a micro-batch with their experts behind the kernels of another one
    moe_overlap: Optional[bool]
    # what the host launches at once: kernels, each pass of a layer, or the iteration; default: as
    # the framework's release does
    cuda_graphs: Optional[Literal["none", "layer", "iteration"]]
    # between nodes: verbs, or sockets of the kernel; default: as the system has
    transport: Optional[Literal["rdma", "tcp"]]
    # adapters read and write GPU memory (1) or buffers of the host (0); default: as the system has
    gpudirect: Optional[Literal[0, 1]]
    # make the simplifying assumptions of another model, for comparison: nothing or paradl; default
    # nothing
    assume: Optional[Literal["nothing", "paradl"]]
    # data created on the device, or the workload's usual dataset read from storage and decoded;
    # default synthetic
    input: Optional[Literal["synthetic", "real"]]
    # real input with that dataset's sizes: imagenet, openimages-v4, cifar10, ...; or synthetic
    dataset: Optional[Text]
    # processes or threads per device that decode real input; default: all cores of the node
    decode_workers: Optional[Union[float, str]]
    # read real input from storage even if it would fit in the page cache
    first_epoch: Optional[bool]
    # also print how long training on N tokens takes, e.g. 300B or 15T: iterations, time,
    # device-hours
    tokens: Optional[Union[float, str]]
    # the same for training on N epochs of the dataset
    epochs: Optional[Union[float, str]]
    # exit with 4 when a result is extrapolated
    strict: Optional[bool]


class PredictOptions(PlanOptions, total=False):
    # one job on N nodes of each system, instead of --system and --nodes; the slowest network
    # carries all traffic
    heterogeneous: Optional[Text]
    # with --heterogeneous: the same batch on each device (equal) or one in proportion to its speed
    # (balanced); default equal
    split: Optional[Literal["equal", "balanced"]]
    # print the cost of checkpoints and failures for the best interval (Daly) or a given one, e.g.
    # 30min; the system must have storage.write_bytes_per_s; without node_mtbf_s a failure in 50,700
    # device-hours is assumed, as in the training of Llama 3
    checkpoint: Optional[Text]
    # format of the checkpoints ('dlmodel list checkpoints'), or several to compare; default: what
    # the framework writes
    checkpoint_format: Optional[Text]
    # table of checkpoints that tests/checkpoint/run.sh measured on the machine: what formats cost
    # its cores; default: a measured 2-core Xeon
    checkpoint_probe: Optional[Text]
    # price of a node per hour, e.g. 24.5 or 24.5USD; default: that of the system's file
    price: Optional[Text]
    # power of a node under load; default: modelled from its devices (help theory F-POWER)
    power: Optional[Union[float, str]]
    # carbon dioxide of the electricity in g/kWh; default: unknown
    carbon: Optional[Union[float, str]]
    # with --tokens or --epochs: the cheapest number of nodes that ends the run in TIME, e.g. 24h
    deadline: Optional[Union[float, str]]
    # with --tokens or --epochs: the fastest number of nodes within AMOUNT, e.g. 500EUR
    budget: Optional[Text]
    # print every row with all columns, also plans that do not fit
    long: Optional[bool]


class SearchOptions(PlanOptions, total=False):
    # quantity to optimize; default time
    objective: Optional[Literal["time", "throughput", "memory", "devices", "energy", "cost"]]
    # try every node count that is a power of two and has at most N devices; default: only --nodes
    max_devices: Optional[Union[int, str]]
    # memory limit per device; default: the device's memory
    memory: Optional[Union[float, str]]
    # with --tokens or --epochs: only plans that end the run in TIME, e.g. 24h; default none
    deadline: Optional[Union[float, str]]
    # time limit of an iteration, e.g. 2s; default none
    max_iteration: Optional[Union[float, str]]
    # number of best plans, 1 to 64, of --long, --json and --csv; default 10
    top: Optional[Union[int, str]]
    # print the --top best plans with all columns, their commands, the terms and limits of the best
    long: Optional[bool]
    # also print the Pareto front of iteration time, memory and devices
    pareto: Optional[bool]
    # also search settings that the framework's release has and that are not given, by option:
    # overlap-grad-reduce, overlap-param-gather, tp-comm-overlap, allreduce, moe-dispatch, cp-comm,
    # cuda-graphs, moe-overlap, recompute-layers, recompute-every, recompute-modules, offload; or
    # all but recompute-* (all); default none
    vary: Optional[Words]
    # threads that search; default: all cores
    threads: Optional[Union[int, str]]
    # power of a device under load, the same in all plans, for --objective energy; default: modelled
    # for each plan (help theory F-POWER)
    device_power: Optional[Union[float, str]]
    # search only part I (from 0) of N, to split a search into N jobs; write each part with --csv,
    # then combine them with --merge
    shard: Optional[Text]
    # with --heterogeneous: place these networks, each trained for an epoch (--epochs N) on nodes of
    # one kind, all at the same time
    jobs: Optional[Text]
    # with --heterogeneous: what goes to which kind of node: whole replicas, some nodes left out
    # (nodes), stages of a pipeline (stages), or workers, parameter servers and the decoding of real
    # input (parts); default nodes
    place: Optional[Literal["nodes", "stages", "parts"]]
    # one job on N nodes of each system, instead of --system and --nodes; the slowest network
    # carries all traffic
    heterogeneous: Optional[Text]
    # with --heterogeneous: the same batch on each device (equal) or one in proportion to its speed
    # (balanced); default equal
    split: Optional[Literal["equal", "balanced"]]
    # price of a node per hour, e.g. 24.5 or 24.5USD; default: that of the system's file
    price: Optional[Text]
    # power of a node under load; default: modelled from its devices (help theory F-POWER)
    power: Optional[Union[float, str]]
    # carbon dioxide of the electricity in g/kWh; default: unknown
    carbon: Optional[Union[float, str]]


class ExplainOptions(PlanOptions, total=False):
    # print the N longest terms with their inputs and sum the others by group (memory in full)
    top: Optional[Union[int, str]]
    # print every term with its inputs; default: a tree of the longest
    all: Optional[bool]
    # one job on N nodes of each system, instead of --system and --nodes; the slowest network
    # carries all traffic
    heterogeneous: Optional[Text]
    # with --heterogeneous: the same batch on each device (equal) or one in proportion to its speed
    # (balanced); default equal
    split: Optional[Literal["equal", "balanced"]]
    # print the cost of checkpoints and failures for the best interval (Daly) or a given one, e.g.
    # 30min; the system must have storage.write_bytes_per_s; without node_mtbf_s a failure in 50,700
    # device-hours is assumed, as in the training of Llama 3
    checkpoint: Optional[Text]
    # format of the checkpoints ('dlmodel list checkpoints'), or several to compare; default: what
    # the framework writes
    checkpoint_format: Optional[Text]
    # table of checkpoints that tests/checkpoint/run.sh measured on the machine: what formats cost
    # its cores; default: a measured 2-core Xeon
    checkpoint_probe: Optional[Text]


class AdviseOptions(PlanOptions, total=False):
    # samples per second or per joule; default time
    objective: Optional[Literal["time", "energy"]]
    # changes that the combination may hold: the same numbers, also equal up to rounding, or also
    # those that train differently; default rounding
    allow: Optional[Literal["exact", "rounding", "model"]]
    # smallest gain that counts in %; default 0.5
    least_gain: Optional[Union[float, str]]
    # print the network rewritten in that way as a workload file (-o FILE), in place of advice
    rewrite: Optional[Literal["channels", "kernels", "depthwise"]]


class CampaignOptions(PlanOptions, total=False):
    # which trials run how far: grid, random, successive-halving, hyperband, asha, median-stop;
    # default grid
    search: Optional[Literal["grid", "random", "successive-halving", "hyperband", "asha", "median-stop"]]
    # one hyper-parameter and its values, e.g. lr=0.1,0.01; batch=32,64 are samples per device and
    # change the time of a step; once per parameter
    space: Optional[Text]
    # number of trials; default: all points of the space; more than that repeat it with other seeds
    trials: Optional[Union[int, str]]
    # iterations of a trial in full, in place of --epochs or --tokens
    until_step: Optional[Union[float, str]]
    # devices that a trial trains on; default best: each power of two up to the machine is tried
    devices_per_trial: Optional[Union[int, str]]
    # which waiting task starts first; default fifo
    order: Optional[Literal["fifo", "longest-first"]]
    # of halving, hyperband and asha: one trial of ETA is kept at each rung; default 3
    reduction: Optional[Union[float, str]]
    # of them: a trial is compared after ETA^-(N-1), ..., 1/ETA and all of its training; default 4
    rungs: Optional[Union[int, str]]
    # of median-stop: fraction of trials kept at each of the evenly spaced evaluations; default
    # 0.5,0.5,0.5
    survive: Optional[Text]
    # the scheduler starts one task per this time; default 0.1s (unverified)
    dispatch: Optional[Union[float, str]]
    # launch, imports and graph of a task; default 20s (unverified)
    startup: Optional[Union[float, str]]
    # further start-up of a task that goes on from a checkpoint; default 5s (unverified)
    resume: Optional[Union[float, str]]
    # data that each node copies from the shared file system before its first task; default none
    stage: Optional[Union[float, str]]
    # training between checkpoints, from which failed tasks go on; default: they begin again
    checkpoint_every: Optional[Union[float, str]]
    # until the devices of a failed task are back; the rate of failures is that of the system's
    # node_mtbf, 0 without it; default 10min
    repair: Optional[Union[float, str]]
    # of random trials, scores and failures; default 1
    seed: Optional[Union[int, str]]
    # one row for each number of devices per trial, or one for each task of the best; default widths
    show: Optional[Literal["widths", "schedule"]]
    # price of a node per hour, e.g. 24.5 or 24.5USD; default: that of the system's file
    price: Optional[Text]
    # power of a node under load; default: modelled from its devices (help theory F-POWER)
    power: Optional[Union[float, str]]
    # carbon dioxide of the electricity in g/kWh; default: unknown
    carbon: Optional[Union[float, str]]


class MatchOptions(PlanOptions, total=False):
    # systems to compare; default:
    # cartesius-knl,cartesius-k40,das5-titanx,das5-titanx-pascal,iris-v100,iris-skylake
    systems: Optional[Text]
    # networks to compare; default: resnet50,vgg16,bert_base
    workloads: Optional[Text]
    # for each workload the share of the first system's time that it takes, e.g. 60,40: compares the
    # systems on the mix
    weights: Optional[Text]
    # price of a node-hour of each system, in their order
    prices: Optional[Text]
    # print every combination, and why others cannot run
    long: Optional[bool]
    # price of a node per hour, e.g. 24.5 or 24.5USD; default: that of the system's file
    price: Optional[Text]
    # power of a node under load; default: modelled from its devices (help theory F-POWER)
    power: Optional[Union[float, str]]
    # carbon dioxide of the electricity in g/kWh; default: unknown
    carbon: Optional[Union[float, str]]


class CompareOptions(TypedDict, total=False):
    # print every row, not only the errors by group and the worst rows (JSON has both)
    rows: Optional[bool]
    # print every row with all columns: also system, framework and why it is not predicted
    long: Optional[bool]
    # for runs that other programs disturbed: use the lower quartile of the steps instead of their
    # median, and the fastest repeat of checkpoints
    quartile: Optional[bool]
    # count repeats of a run once, with the median of their measurements
    median: Optional[bool]
    # normalize compute to the smallest run of each group (same batch per device, or else the same
    # global batch; same release), so that only the scaling error of the others remains
    anchor: Optional[bool]
    # predict collectives from other samples of the same table, as a calibration would: sizes (five
    # folds) or ranks (each rank count from the others)
    calibrated: Optional[Text]
    # exit with 1 when the mean absolute error, macro-averaged over sources, exceeds this
    max_error: Optional[Text]
    # use only rows with that value, with one of several values (workload=vgg16,alexnet), or that
    # contain a text (notes~NGC)
    where: Optional[Mapping[str, Scalar]]
    # of a log in place of a table: a column of the run that it does not say, e.g. system=dgx-h100
    fill: Optional[Text]
    # release of the framework for every row, instead of the one that its framework_version selects
    release: Optional[Text]
    # layer times written by import trace, used for matching runs; default: the files in
    # data/layers/
    layers: Optional[Text]
    # what if: change a field of every system, workload or framework
    set: Optional[Mapping[str, Scalar]]
    # record these predictions of runs that nobody has worked with as data/first_sight/NAME.csv;
    # refuses runs that are recorded already
    first_sight: Optional[Text]
    # with --rows --csv: only part I (from 0) of N of the rows, for `merge`; rows that explain each
    # other stay together
    shard: Optional[Text]
    # with --generalize: leave out this source, framework, ... alone, not each; repeat it for more
    only: Optional[Text]
    # errors of runs when 0, 1, 2, 4 and 8 other runs of their system and framework are given, as to
    # predict --measured
    learning_curve: Optional[bool]


class PlotOptions(PlanOptions, total=False):
    # draw only rows of the files with that value, e.g. backend=nccl or batch_per_device=64,32
    where: Optional[Mapping[str, Scalar]]
    # plot error: group rows by workload, system, precision, framework, ...; default source
    by: Optional[Text]
    # title of the figure; default: what it shows
    title: Optional[Text]
    # width of the figure in pixels, 400 to 4000; text keeps its size; default: by the kind, 800 to
    # 1000 (PDF and EPS: 24 cm are 800)
    width: Optional[Union[int, str]]
    # print the cost of checkpoints and failures for the best interval (Daly) or a given one, e.g.
    # 30min; the system must have storage.write_bytes_per_s; without node_mtbf_s a failure in 50,700
    # device-hours is assumed, as in the training of Llama 3
    checkpoint: Optional[Text]
    # format of the checkpoints ('dlmodel list checkpoints'), or several to compare; default: what
    # the framework writes
    checkpoint_format: Optional[Text]
    # table of checkpoints that tests/checkpoint/run.sh measured on the machine: what formats cost
    # its cores; default: a measured 2-core Xeon
    checkpoint_probe: Optional[Text]
    # systems to compare; default:
    # cartesius-knl,cartesius-k40,das5-titanx,das5-titanx-pascal,iris-v100,iris-skylake
    systems: Optional[Text]
    # networks to compare; default: resnet50,vgg16,bert_base
    workloads: Optional[Text]
    # for each workload the share of the first system's time that it takes, e.g. 60,40: compares the
    # systems on the mix
    weights: Optional[Text]
    # price of a node-hour of each system, in their order
    prices: Optional[Text]


PredictionRow = TypedDict("PredictionRow", {
    # name of the system
    "system": str,
    # name of the workload
    "workload": str,
    # a framework in one distributed mode
    "framework": str,
    # parallel strategy
    "strategy": Optional[str],
    # ranks, micro-batch, schedule, recomputation and ZeRO stage in short; absent of plain data
    # parallelism
    "plan": Optional[str],
    # arithmetic
    "precision": Optional[str],
    # nodes of the job
    "nodes": Optional[int],
    # devices of the job
    "devices": Optional[int],
    # batch of one device per iteration
    "batch_per_device_samples": Optional[float],
    # batch of all devices per iteration
    "global_batch_samples": Optional[float],
    # data-parallel ranks
    "dp": Optional[int],
    # tensor-parallel ranks
    "tp": Optional[int],
    # pipeline stages
    "pp": Optional[int],
    # context-parallel ranks or spatial parts
    "sp": Optional[int],
    # forward + backward + update
    "compute_s": Optional[float],
    # all communication of an iteration, hidden or not
    "comm_s": Optional[float],
    # communication that is not hidden by computation
    "exposed_comm_s": Optional[float],
    # compute + exposed communication + exposed input + bubble + overhead
    "iteration_s": Optional[float],
    # low end of the 80 % interval
    "iteration_low_s": Optional[float],
    # high end of the 80 % interval
    "iteration_high_s": Optional[float],
    # global batch / iteration
    "throughput_samples_per_s": Optional[float],
    # time of one device alone with the same batch per device / iteration
    "scaling_efficiency": Optional[float],
    # time of an epoch of the usual dataset; absent when the workload has none
    "epoch_s": Optional[float],
    # tokens of all devices; absent when the input is no sequence
    "tokens_per_s": Optional[float],
    # the same of one device
    "tokens_per_s_per_device": Optional[float],
    # flop that the model needs (F-MODEL-FLOP) per second and device
    "model_flop_per_s_per_device": Optional[float],
    # that rate / the device's dense datasheet rate at this precision (F-MFU)
    "mfu_frac": Optional[float],
    # the same with recomputation (F-HFU)
    "hfu_frac": Optional[float],
    # time of the run of --tokens or --epochs; absent without them
    "run_s": Optional[float],
    # cost of that run; absent when unknown
    "cost": Optional[float],
    # energy of that run; absent when unknown
    "energy_j": Optional[float],
    # device-hours of that run; absent without --tokens and --epochs
    "gpu_hours": Optional[float],
    # carbon dioxide of that run; absent without --carbon
    "carbon_g": Optional[float],
    # mean power of all nodes, with PUE (F-POWER); absent when unknown
    "power_w": Optional[float],
    # energy of one iteration (F-ENERGY)
    "iteration_energy_j": Optional[float],
    # forward pass on the device
    "forward_s": Optional[float],
    # backward pass on the device, with the slowdown while collectives run
    "backward_s": Optional[float],
    # optimizer step
    "update_s": Optional[float],
    # data loading and host-to-device copy, hidden or not
    "input_s": Optional[float],
    # input that is not hidden by computation
    "exposed_input_s": Optional[float],
    # idle time of pipeline stages (bubble)
    "bubble_s": Optional[float],
    # launch gaps, host time and straggler wait
    "overhead_s": Optional[float],
    # parameters, with a master copy where the precision keeps one
    "memory.weights_bytes": Optional[float],
    # gradients of all parameters
    "memory.gradients_bytes": Optional[float],
    # optimizer states
    "memory.optimizer_bytes": Optional[float],
    # activations kept for backward
    "memory.activations_bytes": Optional[float],
    # workspace of libraries, and what the allocator reserves in vain
    "memory.workspace_bytes": Optional[float],
    # buffers of gradient synchronization
    "memory.buffers_bytes": Optional[float],
    # context of runtime and framework
    "memory.context_bytes": Optional[float],
    # memory of one device, with fragmentation
    "memory.total_bytes": Optional[float],
    # of it, reserved by the framework's allocator: all but the context
    "memory.reserved_bytes": Optional[float],
    # memory that one device has
    "memory.capacity_bytes": Optional[float],
    # the total fits in the capacity
    "fits": bool,
    # probability that it fits, from the spread of measured over predicted memory
    "fits_probability": Optional[float],
    # compute, memory-bandwidth, latency, intra-link, inter-link, host-copy, host, parameter-server,
    # input, pipeline-bubble, framework, memory-capacity or scaling-limit
    "bottleneck": Optional[str],
    # share of the bottleneck in the iteration
    "bottleneck_share": Optional[float],
    # outside the calibrated range
    "extrapolated": bool,
    # largest micro-batch with which every pipeline stage fits; absent where it is not modelled
    "max_micro_batch_samples": Optional[float],
    # currency of cost; absent where no price is known
    "currency": Optional[str],
    # expert-parallel ranks
    "ep": Optional[int],
    # samples per micro-batch; absent where the batch is not divided
    "micro_batch_samples": Optional[float],
    # pipeline schedule; absent without a pipeline
    "schedule": Optional[str],
    # virtual pipeline stages per device
    "virtual_stages": Optional[int],
    # activations recomputed in backward: none, selective, full or modules
    "recompute": Optional[str],
    # layers outside attention and MLP are split along the sequence
    "sequence_parallel": bool,
    # ZeRO stage, 0 to 3
    "zero": Optional[int],
    # release of the framework
    "release": Optional[str],
    # runs of --measured that corrected the result
    "corrected_by": Optional[int],
    "warnings": Sequence[str],
})


MatchRow = TypedDict("MatchRow", {
    # network
    "workload": str,
    # framework
    "framework": str,
    # system
    "system": str,
    # device of the system
    "device": str,
    # numeric precision
    "precision": str,
    # devices in use
    "devices": int,
    # samples of all devices per second
    "throughput_samples_per_s": Optional[float],
    # low end of the 80 % interval
    "throughput_low_samples_per_s": Optional[float],
    # high end of the 80 % interval
    "throughput_high_samples_per_s": Optional[float],
    # samples of one device per second
    "samples_per_s_per_device": Optional[float],
    # samples per joule, hosts included
    "samples_per_joule": Optional[float],
    # low end of the 80 % interval
    "samples_per_joule_low": Optional[float],
    # high end of the 80 % interval
    "samples_per_joule_high": Optional[float],
    # cost, in the currency of the price
    "cost_per_million_samples": Optional[float],
    # CO2
    "carbon_kg_per_million_samples": Optional[float],
    # the plan fits in memory
    "fits": bool,
    # release of the framework
    "release": str,
})


AdviceRow = TypedDict("AdviceRow", {
    # kind of change
    "advice": str,
    # what to change
    "change": str,
    # what it does to the mathematics: none, rounding or another optimization
    "effect": str,
    # the effect on the mathematics, in words
    "mathematics": Optional[str],
    # the change as an option
    "setting": Optional[str],
    # where the method comes from
    "source": Optional[str],
    # the part of the gain that no measurement confirms
    "unmeasured": Optional[str],
    # the change is possible here
    "possible": bool,
    # throughput gained, as a fraction
    "gain_frac": Optional[float],
    # low end of the 80 % interval
    "gain_low_frac": Optional[float],
    # high end of the 80 % interval
    "gain_high_frac": Optional[float],
    # time of an iteration with it
    "iteration_s": Optional[float],
    # samples per second with it
    "throughput_samples_per_s": Optional[float],
    # the plan fits in memory
    "fits": bool,
    # why it is not possible
    "why": Optional[str],
    # the command that predicts it
    "command": Optional[str],
})


CampaignRow = TypedDict("CampaignRow", {
    # devices of one training
    "devices_per_trial": int,
    # trainings that run at the same time
    "slots": Optional[int],
    # time of one training in full
    "trial_s": Optional[float],
    # time until the last training ends
    "makespan_s": Optional[float],
    # low end of the 80 % interval
    "makespan_low_s": Optional[float],
    # high end of the 80 % interval
    "makespan_high_s": Optional[float],
    # lower bound of the makespan of any schedule
    "lower_bound_s": Optional[float],
    # bound of any list schedule
    "list_bound_s": Optional[float],
    # bound of longest-first schedules
    "longest_first_bound_s": Optional[float],
    # share of device time in use
    "utilization_frac": Optional[float],
    # node-hours of the campaign
    "node_hours": Optional[float],
    # device-hours of the campaign
    "device_hours": Optional[float],
    # cost, in the currency of the price
    "cost": Optional[float],
    # energy, hosts included
    "energy_j": Optional[float],
    # tasks that are started
    "tasks": Optional[int],
    # tasks that fail and run again
    "failures": Optional[int],
    # trainings that are not stopped early
    "trials_in_full": Optional[int],
    # best, tie, or not possible
    "choice": Optional[str],
    # why it is not possible
    "why": Optional[str],
})


ComparisonRow = TypedDict("ComparisonRow", {
    # name of the row, or file and line
    "id": str,
    # where it was measured
    "source": Optional[str],
    # system
    "system": Optional[str],
    # framework, or library
    "framework": Optional[str],
    # network, collective or kernel
    "workload": Optional[str],
    # devices in use
    "devices": Optional[int],
    # predicted value
    "predicted": Optional[float],
    # measured value
    "measured": Optional[float],
    # low end of the 80 % interval
    "predicted_low": Optional[float],
    # high end of the 80 % interval
    "predicted_high": Optional[float],
    # unit of the values
    "unit": Optional[str],
    # predicted over measured value, minus 1
    "error_pct": Optional[float],
    # predicted over measured time, minus 1; positive: predicted too slow
    "time_error_pct": Optional[float],
    # bottleneck of the prediction
    "bottleneck": Optional[str],
    # bottleneck of the measured run
    "measured_bottleneck": Optional[str],
    # likely causes where it is slower than the interval
    "cause": Optional[str],
    # the row could not be predicted
    "skipped": bool,
    # why the row could not be predicted
    "why": Optional[str],
    # what was assumed
    "remark": Optional[str],
    "interval": Optional[Sequence[float]],
    "causes": Sequence[Mapping[str, Scalar]],
})

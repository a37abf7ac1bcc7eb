"""MXNet: KVStore device, dist_sync, dist_device_sync, dist_async, and Horovod. Scheduler and servers are this program with another role."""
import os

import common


def meet_kvstore(bench):
    """ps-lite finds its tasks through the environment, which must be set before mxnet is loaded."""
    args, task = bench.args, bench.task
    if args.role == "scheduler":
        bench.meeting.tell("mx-scheduler", "%s %d" % (common.own_address(), common.free_port()))
    if args.role in ("worker", "server") and task.rank == 0:
        bench.meeting.tell("mx-%s-count" % args.role, str(task.size))
    uri, port = bench.meeting.hear("mx-scheduler").split()
    os.environ.update(DMLC_ROLE=args.role, DMLC_PS_ROOT_URI=uri, DMLC_PS_ROOT_PORT=port,
                      DMLC_NUM_WORKER=bench.meeting.hear("mx-worker-count"), DMLC_NUM_SERVER=bench.meeting.hear("mx-server-count"))
    os.environ.setdefault("DMLC_NODE_HOST", common.own_address())


def batches(bench, mx, contexts):
    """A function that gives one batch for each context."""
    args, shape = bench.args, tuple(int(n) for n in bench.net["input"])
    if args.dataset is None:
        fixed = [(mx.nd.random.normal(shape=(args.batch,) + shape, ctx=c), mx.nd.zeros((args.batch,), ctx=c)) for c in contexts]
        return lambda: fixed
    vision = mx.gluon.data.vision
    change = vision.transforms.Compose([vision.transforms.Resize((shape[2], shape[1])), vision.transforms.ToTensor()])
    data = vision.ImageFolderDataset(args.dataset).transform_first(change)
    loader = mx.gluon.data.DataLoader(data, args.batch * len(contexts), shuffle=True, last_batch="discard", num_workers=max(1, common.threads() // 2))

    def stream():
        while True:
            for x, y in loader:
                yield list(zip(mx.gluon.utils.split_and_load(x, contexts), mx.gluon.utils.split_and_load(y, contexts)))
    running = stream()
    return lambda: next(running)


def reduce_of(mx, store):
    """For common.collectives: push and pull."""
    known = {}

    def make(elements):
        if elements not in known:
            data, key = mx.nd.zeros((elements,)), str(elements)
            store.init(key, data)
            known[elements] = data, key
        data, key = known[elements]

        def call():
            store.push(key, data)
            store.pull(key, out=data)
            data.wait_to_read()
        return call
    return make


def main():
    args = common.options()
    bench = common.Bench(args)
    if args.mode.startswith("dist") and (not args.profile or args.role != "worker" or bench.task.size > 1):
        meet_kvstore(bench)
    mx = common.needs("mxnet", "MXNet")
    if args.role != "worker":
        return  # it served while mxnet was loaded, until the workers ended
    import net_mxnet
    task, hvd, versions = bench.task, None, {"mxnet": mx.__version__}
    if args.mode == "horovod":
        hvd = common.needs("horovod.mxnet", "horovod-mxnet")
        hvd.init()
        task.rank, task.size, task.local = hvd.rank(), hvd.size(), hvd.local_rank()
        versions["horovod"] = common.needs("horovod", "horovod-mxnet").__version__
    if args.profile and task.size > 1:
        if hvd is not None or not args.mode.startswith("dist"):
            raise RuntimeError("MXNet: no collectives to measure in mode %s" % args.mode)
        bench.start(versions, task.size, 0)
        common.collectives(bench, "ps-lite", reduce_of(mx, mx.kv.create(args.mode)))
        return bench.end()
    if args.precision not in ("fp32", "fp16"):
        raise RuntimeError("MXNet: no precision %s (fp32, fp16)" % args.precision)
    many = args.mode in ("device", "dist_device_sync")
    kind = mx.gpu if args.device == "gpu" else mx.cpu
    contexts = [kind(i) for i in range(args.devices)] if many else [kind(task.local if args.device == "gpu" else 0)]
    net = net_mxnet.network(mx.gluon, bench.net)
    net.cast("float16" if args.precision == "fp16" else "float32")
    net.initialize(mx.init.Xavier(), ctx=contexts)
    net.hybridize(static_alloc=True, static_shape=True)
    names = {"sgd": ("sgd", {}), "momentum": ("sgd", {"momentum": 0.9}), "adam": ("adam", {}), "lamb": ("lamb", {})}
    name, options = names[args.optimizer]
    options = dict(options, learning_rate=1e-4)
    following = batches(bench, mx, contexts)
    for x, _ in following():
        net(x)  # parameters are made at the first use
    if hvd is not None:
        hvd.broadcast_parameters(net.collect_params(), root_rank=0)
        trainer = hvd.DistributedTrainer(net.collect_params(), mx.optimizer.create(name, **options))
    else:
        trainer = mx.gluon.Trainer(net.collect_params(), name, options, kvstore=None if args.profile else args.mode)
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    count = sum(int(p.data(contexts[0]).size) for p in net.collect_params().values() if p.grad_req != "null")
    replicas = task.size * len(contexts)
    bench.start(versions, task.size, args.batch * replicas, count)

    def step():
        losses = []
        with mx.autograd.record():
            for x, y in following():
                losses.append(loss_of(net(x), y))
        mx.autograd.backward(losses)
        trainer.step(args.batch * replicas)
        mx.nd.waitall()

    def phases():
        """Seconds of forward and backward of the whole network, for a profile."""
        (x, y), = following()

        def forward():
            with mx.autograd.record():
                return loss_of(net(x), y)
        loss, forward_s = profile_mxnet.timed(mx, forward)
        return {"forward": forward_s, "backward": profile_mxnet.timed(mx, lambda: mx.autograd.backward([loss]))[1]}
    if args.profile:
        import profile_mxnet
        (x, y), = following()
        blocks = net_mxnet.layer_calls(mx, net, bench.net, lambda out: loss_of(out, y))
        common.profile(bench, step, common.Recorder(bench, versions), profile_mxnet.layers_of(bench, mx, phases, blocks, x))
    else:
        bench.measure(step)
    bench.end()


if __name__ == "__main__":
    main()

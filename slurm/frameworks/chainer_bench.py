"""ChainerMN: one process a device, gradients over NCCL (pure_nccl) or, on CPUs, over MPI (naive)."""
import common


def whole(values):
    return tuple(int(v) for v in values)


def links(L, net):
    """Those layers that have parameters, by number."""
    makers = {
        "conv": lambda la: L.ConvolutionND(len(la["in"]) - 1, int(la["in"][0]), int(la["out"][0]), whole(la["kernel"]), whole(la["stride"]),
                                           whole(la.get("pad", [0])), nobias=not la.get("bias", False), groups=int(la.get("groups", 1))),
        "dense": lambda la: L.Linear(int(la["in"][0]), int(la["out"][0]), nobias=not la.get("bias", False)),
        "batchnorm": lambda la: L.BatchNormalization(int(la["in"][0])),
    }
    return {i: makers[la["kind"]](la) for i, la in enumerate(net["layers"]) if la["kind"] in makers}


def functions(F):
    def pool(kind):
        return lambda la, x: kind(x, whole(la["kernel"]), whole(la["stride"]), whole(la.get("pad", [0] * (len(la["in"]) - 1))),
                                  **({"cover_all": la.get("ceil", False)} if kind is F.max_pooling_nd else {}))
    return {"relu": lambda la, x: F.relu(x), "relu6": lambda la, x: F.clipped_relu(x, 6.0), "sigmoid": lambda la, x: F.sigmoid(x),
            "tanh": lambda la, x: F.tanh(x), "dropout": lambda la, x: F.dropout(x, la.get("dropout", 0.0)),
            "maxpool": pool(F.max_pooling_nd), "avgpool": pool(F.average_pooling_nd), "lrn": lambda la, x: F.local_response_normalization(x),
            "global_pool": lambda la, x: F.mean(x, axis=tuple(range(2, x.ndim)), keepdims=len(la["out"]) > 1),
            "flatten": lambda la, x: F.reshape(x, (len(x), -1)), "add": lambda la, *xs: sum(xs), "concat": lambda la, *xs: F.concat(xs),
            "loss": lambda la, x: x}


def main():
    args = common.options()
    bench = common.Bench(args)
    chainer = common.needs("chainer", "ChainerMN")
    chainermn = common.needs("chainermn", "ChainerMN")
    import numpy
    comm = chainermn.create_communicator("pure_nccl" if args.device == "gpu" else "naive")
    bench.task.rank, bench.task.size, bench.task.local = comm.rank, comm.size, comm.intra_rank
    calls, net = functions(chainer.functions), bench.net

    class Network(chainer.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                for i, link in links(chainer.links, net).items():
                    setattr(self, "l%d" % i, link)

        def forward(self, x, y):
            values = []
            for i, la in enumerate(net["layers"]):
                xs = [x if j < 0 else values[j] for j in la["inputs"]]
                own = getattr(self, "l%d" % i, None)
                if own is None and la["kind"] not in calls:
                    raise RuntimeError("ChainerMN: no layer kind %s yet (%s)" % (la["kind"], la["name"]))
                values.append(own(xs[0]) if own is not None else calls[la["kind"]](la, *xs))
            return chainer.functions.softmax_cross_entropy(values[-1], y)
    model, xp = Network(), numpy
    if args.device == "gpu":
        chainer.backends.cuda.get_device_from_id(comm.intra_rank).use()
        model.to_gpu()
        xp = chainer.backends.cuda.cupy
    makers = {"sgd": chainer.optimizers.SGD, "momentum": chainer.optimizers.MomentumSGD, "adam": chainer.optimizers.Adam}
    optimizer = chainermn.create_multi_node_optimizer(makers[args.optimizer](), comm).setup(model)
    x = xp.random.normal(size=(args.batch,) + whole(net["input"])).astype(xp.float32)
    y = xp.zeros((args.batch,), xp.int32)
    bench.start({"chainer": chainer.__version__}, comm.size, args.batch * comm.size, model.count_params())

    def step():
        optimizer.update(model, x, y)
        if args.device == "gpu":
            xp.cuda.Device().synchronize()
    bench.measure(step)
    bench.end()


if __name__ == "__main__":
    main()

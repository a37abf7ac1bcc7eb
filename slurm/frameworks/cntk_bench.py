"""CNTK with 1-bit SGD: data parallel over MPI, gradients in one bit."""
import common


def whole(values):
    return tuple(int(v) for v in values)


def model_of(C, net, x):
    def pool(la, xs):
        kind = C.MAX_POOLING if la["kind"] == "maxpool" else C.AVG_POOLING
        pad = [False] + [p > 0 for p in la.get("pad", [0] * (len(la["in"]) - 1))]
        return C.pooling(xs[0], kind, whole(la["kernel"]), whole(la["stride"]), auto_padding=pad, ceil_out_dim=la.get("ceil", False))
    kinds = {
        "conv": lambda la, xs: C.layers.Convolution(whole(la["kernel"]), int(la["out"][0]), strides=whole(la["stride"]), pad=la.get("pad", [0])[0] > 0,
                                                    bias=la.get("bias", False))(xs[0]),
        "dense": lambda la, xs: C.layers.Dense(int(la["out"][0]), bias=la.get("bias", False))(xs[0]),
        "batchnorm": lambda la, xs: C.layers.BatchNormalization(map_rank=1)(xs[0]), "relu": lambda la, xs: C.relu(xs[0]),
        "maxpool": pool, "avgpool": pool, "global_pool": lambda la, xs: C.layers.GlobalAveragePooling()(xs[0]),
        "add": lambda la, xs: C.plus(*xs), "concat": lambda la, xs: C.splice(*xs, axis=0), "flatten": lambda la, xs: C.reshape(xs[0], (int(la["out"][0]),)),
        "dropout": lambda la, xs: C.dropout(xs[0], la.get("dropout", 0.0)), "loss": lambda la, xs: xs[0],
    }
    values = []
    for la in net["layers"]:
        if la["kind"] not in kinds:
            raise RuntimeError("CNTK: no layer kind %s yet (%s)" % (la["kind"], la["name"]))
        values.append(kinds[la["kind"]](la, [x if j < 0 else values[j] for j in la["inputs"]]))
    return values[-1]


def main():
    args = common.options()
    bench = common.Bench(args)
    C = common.needs("cntk", "cntk-1bit")
    import numpy
    bench.task.rank, bench.task.size = C.Communicator.rank(), C.Communicator.num_workers()
    shape, classes = whole(bench.net["input"]), int(bench.net["layers"][-1]["in"][0])
    x, y = C.input_variable(shape), C.input_variable((classes,))
    out = model_of(C, bench.net, x)
    rate = C.learning_parameter_schedule(1e-4)
    makers = {"sgd": lambda: C.learners.sgd(out.parameters, rate),
              "momentum": lambda: C.learners.momentum_sgd(out.parameters, rate, C.learners.momentum_schedule(0.9))}
    if args.optimizer not in makers:
        raise RuntimeError("CNTK: no optimizer %s (sgd, momentum)" % args.optimizer)
    learner = makers[args.optimizer]()
    learner = C.train.distributed.data_parallel_distributed_learner(learner, num_quantization_bits=1, distributed_after=0)
    trainer = C.Trainer(out, C.cross_entropy_with_softmax(out, y), [learner])
    batch = {x: numpy.random.normal(size=(args.batch,) + shape).astype("float32"), y: numpy.eye(classes, dtype="float32")[[0] * args.batch]}
    bench.start({"cntk": C.__version__}, bench.task.size, args.batch * bench.task.size)
    bench.measure(lambda: trainer.train_minibatch(batch) and None)
    bench.end()
    C.Communicator.finalize()


if __name__ == "__main__":
    main()

"""TensorFlow 2 and Keras: parameter servers, MirroredStrategy, MultiWorkerMirroredStrategy, multi_gpu_model, and Horovod."""
import json
import os

import common

LOCAL = ("mirrored", "keras-mirrored", "multi-gpu")  # one process, all devices of its node


def set_up(bench, tf):
    """Devices and threads of this process; returns the names of the devices that train."""
    args, task = bench.args, bench.task
    tf.config.threading.set_intra_op_parallelism_threads(common.threads())
    tf.config.threading.set_inter_op_parallelism_threads(max(1, min(2, common.threads())))
    if args.precision == "mixed":
        tf.keras.mixed_precision.set_global_policy("mixed_float16")
    elif args.precision == "bf16":
        tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    elif args.precision not in ("fp32", "tf32"):
        raise RuntimeError("TensorFlow: no precision %s" % args.precision)
    tf.config.experimental.enable_tensor_float_32_execution(args.precision == "tf32")
    if args.device == "cpu":
        if args.mode in LOCAL and args.devices > 1:
            cpu = tf.config.list_physical_devices("CPU")[0]
            tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * args.devices)
        return ["CPU:%d" % i for i in range(args.devices if args.mode in LOCAL else 1)]
    gpus = tf.config.list_physical_devices("GPU")
    if args.mode in LOCAL or args.mode == "multiworker":
        tf.config.set_visible_devices(gpus[:args.devices], "GPU")
        return ["GPU:%d" % i for i in range(min(args.devices, len(gpus)))]
    tf.config.set_visible_devices(gpus[task.local:task.local + 1], "GPU")
    return ["GPU:0"]


def optimizer_of(tf, name):
    makers = {"sgd": lambda: tf.keras.optimizers.SGD(1e-4), "momentum": lambda: tf.keras.optimizers.SGD(1e-4, 0.9),
              "adam": lambda: tf.keras.optimizers.Adam(1e-5)}
    if name not in makers:
        raise RuntimeError("TensorFlow: no optimizer %s (sgd, momentum, adam)" % name)
    return makers[name]()


def dataset_of(bench, tf, samples):
    """Batches without end: images of --dataset, or the same random numbers each time."""
    import net_keras
    if bench.args.dataset is None:
        return tf.data.Dataset.from_tensors(net_keras.batch_of(tf, bench.net, samples)).repeat()
    size = [int(n) for n in bench.net["input"][1:]]
    paths, labels = zip(*common.images(bench.args.dataset))

    def read(path, label):
        image = tf.io.decode_image(tf.io.read_file(path), 3, expand_animations=False)
        return tf.image.resize(image, size) / 255.0, label
    data = tf.data.Dataset.from_tensor_slices((list(paths), list(labels))).shuffle(len(paths)).repeat()
    return data.map(read, tf.data.AUTOTUNE).batch(samples, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def batches(bench, tf, samples):
    """A function that gives the next batch; random numbers are on the device already."""
    import net_keras
    if bench.args.dataset is None:
        batch = net_keras.batch_of(tf, bench.net, samples)
        return lambda: batch
    stream = iter(dataset_of(bench, tf, samples))
    return lambda: next(stream)


def gradient_step(tf, model, optimizer, tape_of=lambda tape: tape):
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.cast(loss_of(y, model(x, training=True)), tf.float32))
        optimizer.apply_gradients(zip(tape_of(tape).gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss
    return train


def strategy_step(bench, tf, strategy, local_devices):
    """Every replica trains its own batch; reading the loss waits for the step."""
    import net_keras
    with strategy.scope():
        model = net_keras.model_of(tf.keras, bench.net)
        optimizer = optimizer_of(tf, bench.args.optimizer)
        train = gradient_step(tf, model, optimizer)
    step_of = tf.function(lambda x, y: strategy.run(train, (x, y)))
    following = batches(bench, tf, bench.args.batch)

    def step():
        out = step_of(*following())
        strategy.experimental_local_results(out)[-1].numpy()
    bench.note_ranks = strategy.num_replicas_in_sync
    return step, model


def keras_step(bench, tf, scope, wrap=lambda model: model, optimizer=None, samples=None):
    """Keras' own training step, as fit() runs it: one stream for all steps. (train_on_batch makes one, and threads, for each.)"""
    import net_keras
    with scope():
        model = wrap(net_keras.model_of(tf.keras, bench.net))
        model.compile(optimizer or optimizer_of(tf, bench.args.optimizer), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        data = dataset_of(bench, tf, samples or bench.args.batch)
        stream = iter(tf.distribute.get_strategy().experimental_distribute_dataset(data))
        train = model.make_train_function()

    def step():
        train(stream)["loss"].numpy()
    return step, model


def multiworker(bench, tf):
    task = bench.task
    bench.meeting.tell("tf-%d" % task.rank, "%s:%d" % (common.own_address(), common.free_port()))
    workers = [bench.meeting.hear("tf-%d" % i) for i in range(task.size)]
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": task.rank}})
    return tf.distribute.MultiWorkerMirroredStrategy()


def ps_cluster(bench, tf):
    """Addresses of all workers and servers; a server runs here until the job ends it."""
    task, own = bench.task, "%s:%d" % (common.own_address(), common.free_port())
    kind = bench.args.role
    bench.meeting.tell("tf-%s-%d" % (kind, task.rank), own)
    if task.rank == 0:
        bench.meeting.tell("tf-%s-count" % kind, str(task.size))
    counts = {k: int(bench.meeting.hear("tf-%s-count" % k)) for k in ("worker", "ps")}
    spec = {k: [bench.meeting.hear("tf-%s-%d" % (k, i)) for i in range(n)] for k, n in counts.items()}
    return tf.distribute.Server(tf.train.ClusterSpec(spec), job_name=kind, task_index=task.rank, protocol="grpc"), spec


def ps_step(bench, tf, server, spec):
    """Between-graph replication as TensorFlow's own benchmarks do it: variables lie on the servers, each worker pulls them, pushes its
    gradients, and waits for the others."""
    import net_keras
    v1, task, workers = tf.compat.v1, bench.task, len(spec["worker"])
    setter = v1.train.replica_device_setter(ps_tasks=len(spec["ps"]), worker_device="/job:worker/task:%d" % task.rank, ps_device="/job:ps")
    with v1.device(setter):
        x, y = net_keras.batch_of(tf, bench.net, bench.args.batch)
        x, y = v1.get_local_variable("x", initializer=x), v1.get_local_variable("y", initializer=y)
        logits = net_keras.model_of(tf.keras, bench.net)(x, training=True)
        loss = tf.reduce_mean(v1.losses.sparse_softmax_cross_entropy(y, logits))
        makers = {"sgd": lambda: v1.train.GradientDescentOptimizer(1e-4), "momentum": lambda: v1.train.MomentumOptimizer(1e-4, 0.9),
                  "adam": lambda: v1.train.AdamOptimizer(1e-5)}
        train = makers[bench.args.optimizer]().minimize(loss)
    with v1.device("/job:ps/task:0/cpu:0"):
        queues = [v1.FIFOQueue(workers, [tf.bool], [()], shared_name="barrier-%d" % i) for i in range(workers)]
        with v1.control_dependencies([train]):
            tokens = [q.enqueue(False) for i, q in enumerate(queues) if i != task.rank]
        with v1.control_dependencies(tokens):
            done = queues[task.rank].dequeue_many(workers - 1) if workers > 1 else tf.no_op()
        with v1.control_dependencies([train] + tokens + ([done] if workers > 1 else [])):
            step_op = tf.no_op()
    session = v1.Session(server.target)
    session.run(v1.local_variables_initializer())
    if task.rank == 0:
        session.run(v1.global_variables_initializer())
        bench.meeting.tell("tf-ready", "yes")
    bench.meeting.hear("tf-ready")
    return lambda: session.run(step_op)


def run_ps(bench, tf):
    tf.compat.v1.disable_eager_execution()
    server, spec = ps_cluster(bench, tf)
    if bench.args.role == "ps":
        server.join()
    bench.start({"tensorflow": tf.__version__}, bench.task.size, bench.args.batch * bench.task.size)
    bench.measure(ps_step(bench, tf, server, spec))
    bench.end()
    # A worker that left would take its part of the graph with it while others still wait in the barrier.
    bench.meeting.tell("tf-end-%d" % bench.task.rank, "yes")
    for i in range(bench.task.size):
        bench.meeting.hear("tf-end-%d" % i)
    os._exit(0)


def reduce_of(tf, hvd, strategy):
    """For common.collectives."""
    known = {}

    def make(elements):
        if elements not in known:
            data = tf.zeros([elements])
            if hvd is not None:
                call = tf.function(lambda: hvd.allreduce(data, op=hvd.Sum, name="sum%d" % elements)[0])
            else:
                call = tf.function(lambda: strategy.run(lambda: tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, data)[0]))
            known[elements] = lambda: call().numpy()
        return known[elements]
    return make


def horovod(bench, tf):
    hvd = common.needs("horovod.tensorflow.keras" if bench.args.mode == "horovod-keras" else "horovod.tensorflow", "Horovod")
    hvd.init()
    bench.task.rank, bench.task.size, bench.task.local = hvd.rank(), hvd.size(), hvd.local_rank()
    return hvd


def main():
    args = common.options()
    bench = common.Bench(args)
    tf = common.needs("tensorflow", "TensorFlow")
    hvd = horovod(bench, tf) if args.mode.startswith("horovod") else None
    devices = set_up(bench, tf)
    versions = {"tensorflow": tf.__version__, "keras": tf.keras.__version__}
    if args.mode == "ps" and not args.profile:
        run_ps(bench, tf)
    replicas = bench.task.size * (len(devices) if args.mode in LOCAL + ("multiworker",) else 1)
    if args.mode in ("mirrored", "multiworker"):
        strategy = multiworker(bench, tf) if args.mode == "multiworker" else tf.distribute.MirroredStrategy(devices)
        step, model = strategy_step(bench, tf, strategy, devices)
        replicas = strategy.num_replicas_in_sync
    elif args.mode == "keras-mirrored":
        strategy = tf.distribute.MirroredStrategy(devices)
        step, model = keras_step(bench, tf, strategy.scope, samples=args.batch * len(devices))
    elif args.mode == "multi-gpu":
        if not hasattr(tf.keras.utils, "multi_gpu_model"):
            raise RuntimeError("keras-multi-gpu: multi_gpu_model was removed in TensorFlow 2.4; this is %s" % tf.__version__)
        wrap = (lambda m: tf.keras.utils.multi_gpu_model(m, len(devices))) if len(devices) > 1 else (lambda m: m)
        step, model = keras_step(bench, tf, lambda: tf.device("/cpu:0"), wrap, samples=args.batch * len(devices))
    elif args.mode == "horovod-keras":
        step, model = keras_step(bench, tf, lambda: tf.device(devices[0]), optimizer=hvd.DistributedOptimizer(optimizer_of(tf, args.optimizer)))
    elif args.mode in ("horovod", "ps"):  # ps: profiled, one task without a server
        import net_keras
        model, optimizer = net_keras.model_of(tf.keras, bench.net), optimizer_of(tf, args.optimizer)
        train = tf.function(gradient_step(tf, model, optimizer, *([hvd.DistributedGradientTape] if hvd is not None else [])))
        following = batches(bench, tf, args.batch)

        def step():
            train(*following()).numpy()
    else:
        raise RuntimeError("TensorFlow: no mode %s" % args.mode)
    if hvd is not None:
        versions["horovod"] = common.needs("horovod", "Horovod").__version__
    bench.start(versions, bench.task.size, args.batch * replicas, model.count_params())
    if args.profile and bench.task.size > 1:
        if hvd is None and args.mode != "multiworker":
            raise RuntimeError("TensorFlow: no collectives to measure in mode %s" % args.mode)
        common.collectives(bench, "horovod" if hvd is not None else "grpc", reduce_of(tf, hvd, None if hvd is not None else strategy),
                           agrees=hvd is not None)
    elif args.profile:
        import profile_keras
        common.profile(bench, step, common.Recorder(bench, versions), profile_keras.layers_of(bench, tf))
    else:
        bench.measure(step)
    peak = tf.config.experimental.get_memory_info("GPU:0")["peak"] if args.device == "gpu" else None
    bench.end(peak)


if __name__ == "__main__":
    main()

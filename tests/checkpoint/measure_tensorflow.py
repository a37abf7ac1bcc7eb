"""Checkpoints of TensorFlow and Keras: tf.train.Checkpoint (V2: an index and data), .keras, .h5 and .weights.h5; rank 0 writes, the others wait.

measure_tensorflow.py --ranks N --folder EMPTY --out TABLE.csv [--repeats N] [--formats NAME,...] NETWORK.json...; without networks: the probe.
"""
import argparse
import multiprocessing
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "slurm", "frameworks")]
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")  # a rank has one core
import common
from come_first import come_first


def probe_model(keras, tensors, elements, adam=False):
    """Dense layers without bias: one tensor each, a row of `elements`; with Adam two more a layer that have none of their own."""
    entry = keras.Input((1,))
    outs = [keras.layers.Dense(elements, use_bias=False, name="layer%d" % i)(entry) for i in range(tensors)]
    model = keras.Model(entry, outs)
    if adam:
        model.compile(keras.optimizers.Adam(1e-5), "mse")
        model.optimizer.build(model.trainable_variables)
    return model


def network_model(keras, tf, path):
    import net_keras
    model = net_keras.model_of(keras, common.network(path))
    model.compile(keras.optimizers.Adam(1e-5), "sparse_categorical_crossentropy")
    model.optimizer.build(model.trainable_variables)
    model.optimizer.apply([tf.random.normal(v.shape) for v in model.trainable_variables])
    return model


def savers(tf, model):
    whole = {"model": model}
    if getattr(model, "optimizer", None) is not None:
        whole["optimizer"] = model.optimizer
    checkpoint = tf.train.Checkpoint(**whole)
    return {"raw": common.raw_write, "tensorflow-v2": lambda folder: checkpoint.write(os.path.join(folder, "checkpoint")) and None,
            "keras": lambda folder: model.save(os.path.join(folder, "checkpoint.keras")),
            "keras-h5": lambda folder: model.save(os.path.join(folder, "checkpoint.h5")),
            "keras-weights-h5": lambda folder: model.save_weights(os.path.join(folder, "checkpoint.weights.h5"))}


def work(rank, args, barrier, answer):
    import absl.logging
    import keras
    import tensorflow as tf
    absl.logging.set_verbosity(absl.logging.ERROR)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(0)
    def agree(done):
        if rank == 0:
            answer.value = done
        barrier.wait()
        done = bool(answer.value)
        barrier.wait()  # nobody changes it before all have read it
        return done

    models = {os.path.basename(n)[:-5]: lambda n=n: network_model(keras, tf, n) for n in args.networks}
    if not models:
        models = {name: lambda c=count: probe_model(keras, *c) for name, count in common.PROBES.items()}
        models["probe-adam"] = lambda: probe_model(keras, *common.PROBES["probe-many"], adam=True)
    for name, make in models.items():
        keras.backend.clear_session()
        model = make()
        variables = model.variables + (model.optimizer.variables if getattr(model, "optimizer", None) is not None else [])
        for kind, save in savers(tf, model).items():
            if kind == "raw" and name != "probe-large" or args.formats and kind not in args.formats.split(","):
                continue
            folder = os.path.join(args.folder, kind)
            times, blocked = common.timed(folder, save if rank == 0 else lambda f: None, args.repeats, barrier.wait, rank == 0, agree)
            if rank == 0:
                common.row(args.out, {"platform": "tensorflow", "version": "%s, keras %s" % (tf.__version__, keras.__version__), "format": kind,
                                      "state": name, "optimizer": "adam" if args.networks or name == "probe-adam" else "none", "ranks": args.ranks,
                                      "layers": len(model.layers), "tensors": len(variables), "elements": sum(int(tf.size(v)) for v in variables)}, folder, times, blocked)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ranks", type=int, default=1)
    p.add_argument("--folder", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--formats", help="only these")
    p.add_argument("networks", nargs="*")
    args = p.parse_args()
    come_first(True)
    spawn = multiprocessing.get_context("spawn")
    barrier, answer = spawn.Barrier(args.ranks), spawn.Value("b", 0)
    tasks = [spawn.Process(target=work, args=(r, args, barrier, answer)) for r in range(args.ranks)]
    for t in tasks:
        t.start()
    for t in tasks:
        t.join()
    sys.exit(max(t.exitcode for t in tasks))


if __name__ == "__main__":
    main()

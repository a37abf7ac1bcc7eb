"""Is a training that was killed and resumed from its last checkpoint bit-exact with one that was not?

resume.py torch|keras OUT.csv NETWORK.json: trains a network behind dropout on shuffled samples; kills it (SIGKILL) between two checkpoints, resumes it, and
compares losses and weights with those of a run without interruption. Once with all states in the checkpoint, and once without each of them.
"""
import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "slurm", "frameworks")]
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
STEPS, EVERY, KILLED_AT, SAMPLES, BATCH = 12, 4, 7, 64, 16
STATES = ["weights", "optimizer", "rng", "position"]


def order(epoch, position):
    """Samples of the steps of an epoch, shuffled by its number; from a position on."""
    import numpy
    indices = numpy.random.default_rng(epoch).permutation(SAMPLES)
    return [indices[i:i + BATCH] for i in range(position * BATCH, SAMPLES, BATCH)]


def batches(step):
    """Endless, from the step on: what a loader yields that knows its position."""
    each = SAMPLES // BATCH
    while True:
        for indices in order(step // each, step % each):
            yield indices
            step += 1


def torch_trainer(path):
    import torch
    import common
    import net_torch
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = common.network(path)
    model = torch.nn.Sequential(torch.nn.Dropout(0.2), net_torch.Network(net))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    data = torch.randn((SAMPLES,) + net_torch.whole(net["input"]), generator=torch.Generator().manual_seed(2))

    def step(indices):
        optimizer.zero_grad()
        loss = model(data[torch.as_tensor(indices)])
        loss.backward()
        optimizer.step()
        return float(loss).hex()

    def save(file, done):
        torch.save({"weights": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state(), "position": done}, file)

    def load(file, states):
        found = torch.load(file)
        if "weights" in states:
            model.load_state_dict(found["weights"])
        if "optimizer" in states:
            optimizer.load_state_dict(found["optimizer"])
        if "rng" in states:
            torch.set_rng_state(found["rng"])
        return found["position"]
    weights = lambda: b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    return step, save, load, weights, "checkpoint.pt"


def keras_trainer(path):
    import keras
    import numpy
    import tensorflow as tf
    import common
    import net_keras
    keras.utils.set_random_seed(1)
    tf.config.experimental.enable_op_determinism()
    net = common.network(path)
    inner = net_keras.model_of(keras, net)
    model = keras.Sequential([keras.Input(inner.input_shape[1:]), keras.layers.Dropout(0.2, seed=3), inner])
    model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.optimizer.build(model.trainable_variables)
    data = numpy.random.default_rng(2).standard_normal((SAMPLES,) + inner.input_shape[1:]).astype("float32")

    def step(indices):
        model.reset_metrics()  # else it is the mean since they were reset
        return float(model.train_on_batch(data[indices], numpy.zeros(len(indices), "int32"))).hex()

    seeds = [v for v in model.non_trainable_variables if "seed" in v.path]

    def save(file, done):
        """load_model starts seed generators anew: their states go with the position, as a script has to do it."""
        model.save(file)
        with open(file + ".position", "w", encoding="utf-8") as f:
            json.dump([done, [v.numpy().tolist() for v in seeds]], f)

    def load(file, states):
        found = keras.models.load_model(file)
        with open(file + ".position", encoding="utf-8") as f:
            done, saved = json.load(f)
        if "weights" in states:
            for a, b in zip(model.trainable_variables, found.trainable_variables):
                a.assign(b)
        if "rng" in states:
            for v, old in zip(seeds, saved):
                v.assign(old)
        if "optimizer" in states:
            for a, b in zip(model.optimizer.variables, found.optimizer.variables):
                a.assign(b)
        return done
    weights = lambda: b"".join(w.tobytes() for w in model.get_weights())
    return step, save, load, weights, "checkpoint.keras"


def train(platform, path, folder, states, kill):
    step, save, load, weights, name = {"torch": torch_trainer, "keras": keras_trainer}[platform](path)
    file, done = os.path.join(folder, name), 0
    if os.path.exists(file):
        done = load(file, states)
    position = done if "position" in states else 0
    with open(os.path.join(folder, "losses"), "a", encoding="utf-8") as log:
        for indices in batches(position):
            if done == STEPS:
                break
            log.write("%d %s\n" % (done, step(indices)))
            log.flush()
            done += 1
            if kill and done == KILLED_AT:
                os.kill(os.getpid(), signal.SIGKILL)
            if done % EVERY == 0:
                save(file + ".new" + os.path.splitext(name)[1], done)
                os.replace(file + ".new" + os.path.splitext(name)[1], file)
                if platform == "keras":
                    os.replace(file + ".new.keras.position", file + ".position")
    with open(os.path.join(folder, "weights"), "w", encoding="utf-8") as f:
        f.write(hashlib.sha256(weights()).hexdigest())


def ran(platform, path, folder, states, kill=False):
    command = [sys.executable, os.path.abspath(__file__), platform, path, folder, ",".join(states), "kill" if kill else "whole"]
    status = subprocess.run(command, check=False).returncode
    if status != (-signal.SIGKILL if kill else 0):
        raise SystemExit("%s ended with %d" % (" ".join(command), status))


def result(folder):
    """Loss of each step, the last one that was logged, and the hash of the weights."""
    with open(os.path.join(folder, "losses"), encoding="utf-8") as f:
        losses = dict(line.split() for line in f)
    with open(os.path.join(folder, "weights"), encoding="utf-8") as f:
        return losses, f.read()


def main():
    if len(sys.argv) == 6:
        train(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4].split(","), sys.argv[5] == "kill")
        return
    platform, out, path = sys.argv[1:]
    rows = []
    with tempfile.TemporaryDirectory() as work:
        def place(name):
            os.makedirs(os.path.join(work, name))
            return os.path.join(work, name)
        whole, again = place("whole"), place("again")
        ran(platform, path, whole, STATES)
        ran(platform, path, again, STATES)
        rows.append(("not killed, twice", result(whole) == result(again)))
        for left_out in [None] + STATES:
            states = [s for s in STATES if s != left_out]
            folder = place("without-%s" % left_out)
            ran(platform, path, folder, STATES, kill=True)
            ran(platform, path, folder, states)
            rows.append(("killed, resumed with all states" if left_out is None else "resumed without " + left_out, result(folder) == result(whole)))
    new = not os.path.exists(out)
    with open(out, "a", newline="", encoding="utf-8") as f:
        writer = csv.writer(f)
        if new:
            writer.writerow(["platform", "case", "bit_exact"])
        writer.writerows((platform, case, "yes" if same else "no") for case, same in rows)


if __name__ == "__main__":
    main()

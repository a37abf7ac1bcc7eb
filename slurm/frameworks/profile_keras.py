"""Times of layers under TensorFlow: its profiler's events of operations, which have the names of the Keras layers in their scopes."""
import glob
import os
import shutil
import tempfile
import time

import net_keras

BACKWARD = ("gradient_tape", "gradients")


def owner(names, loss, operation):
    """(layer, part) of "gradient_tape/model/conv1/Conv2D/Conv2DBackpropInput"; None: of no layer (optimizer, communication)."""
    scopes = operation.split("/")
    part = "backward" if any(s in BACKWARD for s in scopes) else "forward"
    for scope in scopes:
        if scope in names:
            return names[scope], part
        if "crossentropy" in scope.lower():
            return loss, part
    return None


def events_of(folder):
    """[(name of the operation, seconds)] in the order of time, of the processor that ran them."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2
    out = []
    for path in glob.glob(os.path.join(folder, "plugins", "profile", "*", "*.xplane.pb")):
        space = xplane_pb2.XSpace()
        with open(path, "rb") as f:
            space.ParseFromString(f.read())
        gpu = any(p.name.startswith("/device:GPU") for p in space.planes)
        for plane in space.planes:
            if not plane.name.startswith("/device:GPU" if gpu else "/host:CPU"):
                continue
            stat = {i: m.name for i, m in plane.stat_metadata.items()}
            for line in plane.lines:
                for e in line.events:
                    name = plane.event_metadata[e.metadata_id].name
                    for s in e.stats if gpu else ():  # a kernel says its operation in a statistic
                        if stat.get(s.metadata_id) in ("tf_op", "name"):
                            name = s.str_value or stat.get(s.ref_value, name)
                    out.append((line.timestamp_ns * 1000 + e.offset_ps, name.rsplit(":", 1)[0], 1e-12 * e.duration_ps))
    out.sort()
    return [(name, seconds) for _, name, seconds in out]


def layers_of(bench, tf):
    """A function for common.profile."""
    net = bench.net["layers"]
    names = {n: la["name"] for la in net for n in net_keras.names_of(la)}
    loss = next((la["name"] for la in net if la["kind"] == "loss"), None)

    def watch(step, watched):
        folder = tempfile.mkdtemp(prefix="dlmodel-profile-")
        try:
            tf.profiler.experimental.start(folder, tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0))
            for _ in range(bench.args.steps):
                begin = time.perf_counter()
                step()
                watched.append(time.perf_counter() - begin)
            tf.profiler.experimental.stop()
            events = events_of(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        times, seen = {}, {}
        for name, seconds in events:
            of = owner(names, loss, name)
            if of is None or of[0] is None:
                continue
            i = seen[name] = seen.get(name, -1) + 1  # an operation occurs once a step
            times.setdefault(min(i, bench.args.steps - 1), {}).setdefault(of, []).append(seconds)
        if not times:
            raise RuntimeError("TensorFlow's profiler named no operation of a layer")
        # A layer that was fused into the next one has no operation of its own: it took no time.
        wanted = [(la["name"], "forward") for la in net] + [(la["name"], "backward") for la in reversed(net)]
        return [[(layer, part, sum(step_times.get((layer, part), [0.0]))) for layer, part in wanted] for _, step_times in sorted(times.items())]
    return watch

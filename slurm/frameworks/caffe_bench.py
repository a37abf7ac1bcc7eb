"""Caffe (NCCL, one process for all GPUs of a node) and Intel Caffe (MLSL, one process a task): writes the network and a solver as
prototxt, runs `caffe train`, and takes the times of the iterations from its log. --binary is the caffe program."""
import os
import re
import subprocess

import common


def block(kind_, **fields):
    lines = []
    for key, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            lines.append("%s %s" % (key, one) if isinstance(one, str) and one.startswith("{") else "%s: %s" % (key, one))
    return "%s { %s }" % (kind_, " ".join(lines)) if kind_ else "{ %s }" % " ".join(lines)


def text(word):
    return '"%s"' % word.replace("\\", "\\\\").replace('"', '\\"')


def square(layer, key):
    values = layer.get(key, [0])
    if len(set(values)) > 1 or values[0] != int(values[0]):
        raise RuntimeError("Caffe: %s of %s is not square" % (key, layer["name"]))
    return int(values[0])


def window(layer, **more):
    return block("", kernel_size=square(layer, "kernel"), stride=square(layer, "stride"), pad=square(layer, "pad"), **more)


KINDS = {
    "conv": ("Convolution", lambda la: {"convolution_param": window(la, num_output=int(la["out"][0]), group=int(la.get("groups", 1)),
                                                                    bias_term=str(la.get("bias", False)).lower())}),
    "dense": ("InnerProduct", lambda la: {"inner_product_param": block("", num_output=int(la["out"][0]), bias_term=str(la.get("bias", False)).lower())}),
    "relu": ("ReLU", lambda la: {}), "sigmoid": ("Sigmoid", lambda la: {}), "tanh": ("TanH", lambda la: {}),
    "maxpool": ("Pooling", lambda la: {"pooling_param": window(la, pool="MAX")}),
    "avgpool": ("Pooling", lambda la: {"pooling_param": window(la, pool="AVE")}),
    "global_pool": ("Pooling", lambda la: {"pooling_param": block("", pool="AVE", global_pooling="true")}),
    "lrn": ("LRN", lambda la: {"lrn_param": block("", local_size=5)}),
    "dropout": ("Dropout", lambda la: {"dropout_param": block("", dropout_ratio=la.get("dropout", 0.0))}),
    "batchnorm": ("BatchNorm", lambda la: {}), "add": ("Eltwise", lambda la: {"eltwise_param": block("", operation="SUM")}),
    "concat": ("Concat", lambda la: {}), "flatten": ("Flatten", lambda la: {}),
}


def prototxt(net, batch):
    shape = block("", dim=[batch] + [int(n) for n in net["input"]])
    lines = ["name: %s" % text(net["name"]),
             "layer { name: \"data\" type: \"DummyData\" top: \"data\" top: \"label\" dummy_data_param { shape %s shape { dim: %d } "
             "data_filler { type: \"gaussian\" } data_filler { type: \"constant\" } } }" % (shape, batch)]
    for layer in net["layers"]:
        below = ["data" if j < 0 else net["layers"][j]["name"] for j in layer["inputs"]]
        if layer["kind"] == "loss":
            lines.append("layer { name: %s type: \"SoftmaxWithLoss\" bottom: %s bottom: \"label\" top: %s }"
                         % (text(layer["name"]), text(below[0]), text(layer["name"])))
            continue
        if layer["kind"] not in KINDS:
            raise RuntimeError("Caffe: no layer kind %s yet (%s)" % (layer["kind"], layer["name"]))
        kind, options = KINDS[layer["kind"]]
        lines.append(block("layer", name=text(layer["name"]), type=text(kind), bottom=[text(b) for b in below], top=text(layer["name"]), **options(layer)))
        if layer["kind"] == "batchnorm":  # Caffe's own has no factor and offset
            lines.append("layer { name: %s type: \"Scale\" bottom: %s top: %s scale_param { bias_term: true } }"
                         % (text(layer["name"] + "/scale"), text(layer["name"]), text(layer["name"])))
    return "\n".join(lines) + "\n"


def times(lines):
    """Seconds between the log lines of iterations: "I0520 12:00:00.123456 ... Iteration 12 ..."."""
    before = None
    for line in lines:
        found = re.match(r"I\d{4} (\d\d):(\d\d):(\d\d\.\d+) .*\] *Iteration (\d+)\b.*loss", line)
        if not found:
            continue
        now = 3600 * int(found[1]) + 60 * int(found[2]) + float(found[3])
        if before is not None:
            yield (now - before) % 86400
        before = now


def main():
    args = common.options()
    bench = common.Bench(args)
    task = bench.task
    binary = args.binary or "caffe"
    net, solver = (os.path.join(args.run, "%s-%d.prototxt" % (n, task.rank)) for n in ("net", "solver"))
    with open(net, "w", encoding="utf-8") as f:
        f.write(prototxt(bench.net, args.batch))
    steps = args.warmup + args.steps
    with open(solver, "w", encoding="utf-8") as f:
        f.write("net: %s\nbase_lr: 0.0001\nlr_policy: \"fixed\"\nmomentum: %s\nmax_iter: %d\ndisplay: 1\nsnapshot_after_train: false\nsolver_mode: %s\n"
                % (text(net), "0.9" if args.optimizer == "momentum" else "0", steps + 1, args.device.upper()))
    command = [binary, "train", "--solver=" + solver] + (["--gpu=" + ",".join(map(str, range(args.devices)))] if args.device == "gpu" else [])
    replicas = args.devices if args.mode == "nccl" else task.size
    bench.start({"caffe": binary}, task.size, args.batch * replicas)
    try:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as error:
        raise RuntimeError("Caffe: cannot start %s: %s (frameworks[].program of the site file)" % (binary, error)) from error
    count = 0
    for i, step_s in enumerate(times(iter(child.stdout.readline, ""))):
        count = i + 1
        if task.rank == 0:
            bench.log.write("warmup" if i < args.warmup else "step", step=i, step_s=round(step_s, 6))
    if child.wait() != 0 or count < steps:
        raise RuntimeError("caffe train ended with status %d after %d of %d iterations" % (child.returncode, count, steps))
    bench.end()


if __name__ == "__main__":
    main()

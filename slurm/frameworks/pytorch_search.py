"""PyTorch: one trial of a hyper-parameter search. Trains the network of the run on a task that can be learned and logs what it reached.

The task is made, not read: each class is a smooth random image, a sample is its class's image behind noise. So every trial sees the same data, and learning
rate and batch decide how far it comes. --trial N is trial N of campaign.json; results: a line of trials/trial-N.jsonl.
"""
import json
import os
import time

import common

CLASSES, SAMPLES, TESTS, NOISE = 10, 2048, 512, 2.0


def task(torch, shape):
    """Training and test samples with their classes."""
    generator = torch.Generator().manual_seed(7)
    coarse = torch.randn((CLASSES, int(shape[0]), 4, 4), generator=generator)
    images = torch.nn.functional.interpolate(coarse, [int(n) for n in shape[1:]], mode="bilinear", align_corners=False)
    count = SAMPLES + TESTS
    classes = torch.randint(0, CLASSES, (count,), generator=generator)
    samples = images[classes] + NOISE * torch.randn((count,) + images.shape[1:], generator=generator)
    return samples[:SAMPLES], classes[:SAMPLES], samples[SAMPLES:], classes[SAMPLES:]


def logits_of(net_torch, net):
    """The network without its loss."""
    if net["layers"][-1]["kind"] != "loss":
        raise RuntimeError("a search needs a network that ends with a loss")
    return net_torch.Network(dict(net, layers=net["layers"][:-1]))


def main():
    parser = common.parser()
    parser.add_argument("--trial", type=int, required=True)
    args = parser.parse_args()
    asked_s = float(os.environ.get("DLMODEL_TRIAL_START") or time.time())
    with open(os.path.join(args.run, "campaign.json"), encoding="utf-8") as f:
        campaign = json.load(f)
    trial = campaign["trials"][args.trial]
    parameters, batch = trial.get("parameters", {}), int(trial["batch_per_device"])
    logs = os.path.join(args.run, "trials")
    os.makedirs(logs, exist_ok=True)
    log = common.Log(logs, "trial-%d" % args.trial)
    try:
        torch = common.needs("torch", "PyTorch")
        import net_torch
        torch.set_num_threads(common.threads())
        torch.manual_seed(int(parameters.get("seed", 0)))
        net = common.network(args)
        model = logits_of(net_torch, net)
        rate = float(parameters.get("lr", 0.01))
        makers = {"sgd": lambda p: torch.optim.SGD(p, rate), "adam": lambda p: torch.optim.Adam(p, rate),
                  "momentum": lambda p: torch.optim.SGD(p, rate, momentum=float(parameters.get("momentum", 0.9)))}
        if campaign["optimizer"] not in makers:
            raise RuntimeError("PyTorch search: no optimizer %s (sgd, momentum, adam)" % campaign["optimizer"])
        optimizer = makers[campaign["optimizer"]](model.parameters())
        x, y, test_x, test_y = task(torch, net["input"])
        train_s, loss_of = time.time(), torch.nn.functional.cross_entropy
        for step in range(int(campaign["steps"])):
            at = step * batch % (SAMPLES - batch + 1)
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(model(x[at:at + batch]), y[at:at + batch])
            loss.backward()
            optimizer.step()
        trained_s = time.time()
        model.eval()
        with torch.no_grad():
            found = model(test_x)
        log.write("trial", trial=args.trial, node=common.own_name(), asked_s=asked_s, train_s=train_s, trained_s=trained_s, end_s=time.time(),
                  batch=batch, parameters=parameters, loss=finite(float(loss_of(found, test_y))),
                  accuracy=float((found.argmax(1) == test_y).float().mean()), versions={"torch": torch.__version__})
    except Exception as error:
        log.write("fail", trial=args.trial, asked_s=asked_s, end_s=time.time(), text=str(error))
        raise
    log.sync()


def finite(value):
    """None for a training that diverged: JSON has no NaN."""
    return value if value == value and abs(value) != float("inf") else None


if __name__ == "__main__":
    main()

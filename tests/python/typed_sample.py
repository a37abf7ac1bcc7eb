"""A program that uses the module; tests/cli/python.sh lets mypy check it."""

from typing import List

import dlmodel


def throughput(nodes: List[int]) -> List[float]:
    plans = [dlmodel.predict_row(system="iris-v100", workload="vgg16", nodes=n, precision="mixed") for n in nodes]
    return [row["throughput_samples_per_s"] or 0.0 for row in plans if row["fits"]]


def best() -> float:
    rows = dlmodel.search(progress=lambda done, seconds: seconds > 10, system="dgx-a100-80", workload="gpt2_xl", nodes=2,
                          global_batch=64, objective="time").rows()
    return rows[0]["iteration_s"] or 0.0


def others() -> List[float]:
    machines = dlmodel.match(systems=["iris-v100", "dgx-h100"], workloads="resnet50").rows()
    changes = dlmodel.advise(system="iris-v100", workload="vgg16", nodes=4).rows()
    widths = dlmodel.campaign(system="iris-v100", workload="resnet18", nodes=4, trials=8, epochs=1).rows()
    runs = dlmodel.compare("data/runs/keras_aws.csv").rows()
    return [machines[0]["throughput_samples_per_s"] or 0.0, changes[0]["gain_frac"] or 0.0, float(widths[0]["devices_per_trial"]),
            runs[0]["time_error_pct"] or 0.0]


print(throughput([1, 2, 4]), best(), dlmodel.names("systems"), others())
dlmodel.predict(precision="fp23")  # error: no such precision
dlmodel.search(global_bach=64)  # error: no such option
dlmodel.predict_row()["iteration_ms"]  # error: no such column
dlmodel.match().rows()[0]["samples"]  # error: no such column

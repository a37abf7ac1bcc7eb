"""Warm predictions a second of CPU time through the Python module: 256 plans of ResNet-50 that differ in batch and nodes."""

import sys
import time

import dlmodel

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
PLANS = [{"system": "iris-v100", "workload": "resnet50", "framework": "pytorch-ddp", "nodes": nodes, "batch_per_device": batch}
         for nodes in (1, 2, 4, 8) for batch in range(16, 80)]


def rate(name, count, call):
    call(PLANS)  # warm
    plans = [PLANS[i % len(PLANS)] for i in range(count)]
    rates = []
    for _ in range(3):
        start = time.process_time()
        call(plans)
        rates.append(count / (time.process_time() - start))
    print("%-32s %10.0f per CPU second" % (name, max(rates)))


rate("Python: predict", CALLS // 8, lambda plans: [dlmodel.predict(**plan) for plan in plans])
rate("Python: predict_row", CALLS, lambda plans: [dlmodel.predict_row(**plan) for plan in plans])
rate("Python: predict_rows, 1 thread", CALLS, lambda plans: dlmodel.predict_rows(plans, threads=1))

#!/usr/bin/env python3
"""Fits VOLTAGE_FLOOR of F-POWER-CAP (model/hardware/power_cap.c) to trainings under power limits
(cap.csv) by least squares of log(measured / modelled slowdown), and prints it, the spread of these
logarithms, and the fit without each device: python3 data/energy/fit_cap.py

Of each job the run with the highest limit says the power and the time without one. Idle: 0.15 of
the rated power, as in power_cap.c.
"""
import collections
import csv
import math
import os

IDLE_FRAC, LEAST_SPAN = 0.15, 0.05


def slowdown(left, floor):
    """Of kernels for which `left` of the power above idle remains; F-POWER-CAP."""
    left = min(1.0, max(LEAST_SPAN, left))
    return floor**2 / left if left < floor**3 else left ** (-1 / 3)


def read(path):
    """(device, power left, slowdown) of every run that has one with a higher limit."""
    jobs = collections.defaultdict(list)
    with open(path, newline="") as text:
        for row in csv.DictReader(text):
            jobs[row["device"], row["job"]].append(
                [float(row[k]) for k in ("power_limit_w", "value_w", "time_s", "rated_w")])
    points = []
    for (device, _), runs in jobs.items():
        free = max(runs)
        idle = IDLE_FRAC * free[3]
        for limit, _, time, _ in runs:
            if limit < free[0]:
                points.append((device, (limit - idle) / (free[1] - idle), time / free[2]))
    return points


def spread(points, floor):
    errors = [math.log(time / slowdown(left, floor)) for _, left, time in points]
    return math.sqrt(sum(e * e for e in errors) / len(errors))


def fit(points):
    return min((i / 1000 for i in range(500, 1001)), key=lambda floor: spread(points, floor))


def main():
    points = read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cap.csv"))
    floor = fit(points)
    print(f"VOLTAGE_FLOOR {floor:.3f}: spread {spread(points, floor):.3f} of {len(points)} runs")
    for device in sorted({point[0] for point in points}):
        own = [point for point in points if point[0] == device]
        rest = [point for point in points if point[0] != device]
        other = fit(rest)
        print(f"  without {device}: {other:.3f}; spread there {spread(own, other):.3f} of {len(own)}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Fits VOLTAGE_FLOOR of F-POWER-CAP (model/machine/power_cap.c) to trainings under power limits
(cap.csv) by least squares of log(measured / modelled slowdown), and prints it, the spread of these
logarithms, and the fit without each device: python3 tools/fit_cap.py

Of each job the run with the highest limit says the power and the time without one. Idle: 0.15 of
the rated power, as in power_cap.c. Then, with that floor, uncapped_load_w of the chip of B200 and
GB200, whose clock the rated power lowers: from the times of its kernels under one limit over those
under another (cap_chip.csv).
"""
import collections
import csv
import math
import os

IDLE_FRAC, LEAST_SPAN, B200_RATED_W = 0.15, 0.05, 1000


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


def chip_ratios(path, idle):
    """(power left under the limit, under the other, time ratio) as functions of the load."""
    with open(path, newline="") as text:
        for row in csv.DictReader(text):
            limits = [float(row[k]) if row[k] else math.inf for k in ("limit_w", "than_limit_w")]
            yield [limit - idle for limit in limits], float(row["time_ratio"])


def chip_errors(ratios, load, idle, floor):
    span = load - idle
    return [math.log(slowdown(limit / span, floor) / slowdown(than / span, floor) / ratio)
            for (limit, than), ratio in ratios]


def main():
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    points = read(os.path.join(folder, "data/energy/cap.csv"))
    floor = fit(points)
    print(f"VOLTAGE_FLOOR {floor:.3f}: spread {spread(points, floor):.3f} of {len(points)} runs")
    for device in sorted({point[0] for point in points}):
        own = [point for point in points if point[0] == device]
        rest = [point for point in points if point[0] != device]
        other = fit(rest)
        print(f"  without {device}: {other:.3f}; spread there {spread(own, other):.3f} of {len(own)}")
    idle = IDLE_FRAC * B200_RATED_W
    ratios = list(chip_ratios(os.path.join(folder, "data/energy/cap_chip.csv"), idle))
    squares = {load: sum(e * e for e in chip_errors(ratios, load, idle, floor))
               for load in range(1000, 2000, 5)}
    load = min(squares, key=squares.get)
    print(f"uncapped_load_w {load}: spread {math.sqrt(squares[load] / len(ratios)):.3f} "
          f"of {len(ratios)} ratios")


if __name__ == "__main__":
    main()

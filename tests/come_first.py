"""come_first.py - for measurements by hand on a machine that does other things too."""
import os


def come_first():
    """What else runs on this machine waits for what this process and its children compute (round-robin of Linux, under which nice means nothing). Memory and disk are
    shared all the same, and the kernel keeps 5 % of each second for the others. Nothing happens without root."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        pass

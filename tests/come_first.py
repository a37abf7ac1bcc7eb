"""come_first.py - for measurements by hand on a machine that does other things too."""
import os


def come_first(wakes_at_once):
    """What else runs on this machine waits for what this process and its children compute; memory and disk are shared all the same. Nothing happens without root.

    False: a session of their own with the highest priority (sched_autogroup, under which nice orders only processes of one session); a process that waits for another
    one still wakes up to 4 ms late. True: round-robin of Linux, which wakes at once, but whose long slices change how the threads of a process share a core: for what
    computes in one thread at a time.
    """
    try:
        if wakes_at_once:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
            return
        if os.getpid() != os.getsid(0):
            os.setsid()
        with open("/proc/self/autogroup", "w", encoding="ascii") as f:
            f.write("-20")
    except OSError:
        pass

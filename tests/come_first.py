"""come_first.py - for measurements by hand on a machine that does other things too."""
import os


def come_first():
    """What else runs on this machine waits for what this process and its children compute: a session of their own with the highest priority (sched_autogroup, under
    which nice orders only processes of one session). Not a real-time class: its long slices change how the threads of a process share a core. Memory and disk are
    shared all the same. Nothing happens without root."""
    try:
        if os.getpid() != os.getsid(0):
            os.setsid()
        with open("/proc/self/autogroup", "w", encoding="ascii") as f:
            f.write("-20")
    except OSError:
        pass

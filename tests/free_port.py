#!/usr/bin/env python3
"""free_port.py - prints a port for a test's server: free on all addresses, and none that outgoing connections are given (Linux takes theirs
from 32768 up), so that no other test takes it, or leaves it in TIME_WAIT, before the server listens."""
import random
import socket


def free_port():
    """A port from 10000 to 31999; OSError if none of 100 is free."""
    for _ in range(99):
        try:
            return taken(random.randrange(10000, 32000))
        except OSError:
            pass
    return taken(random.randrange(10000, 32000))


def taken(port):
    """`port`, once it was bound on all addresses."""
    with socket.socket() as s:
        s.bind(("", port))
        return port


if __name__ == "__main__":
    print(free_port())

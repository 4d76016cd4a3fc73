"""Crash points: named places between two durable steps. Tests arm one, and the process kills itself there.

A comment at each call tells what is durable by then, and what happens after the restart.
"""

import os
import signal

_armed = ""


def arm(point: str) -> None:
    global _armed  # noqa: PLW0603 - one process dies once
    _armed = point


def crashpoint(point: str) -> None:
    if point == _armed:
        os.kill(os.getpid(), signal.SIGKILL)

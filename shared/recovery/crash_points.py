"""The named places between two stores where a process may die. Tests arm one, and the process dies there.

At each call, a comment says what is durable by then and what happens after the restart.
"""

import os
import signal

_armed = ""


def arm(point: str) -> None:
    global _armed  # noqa: PLW0603 - one process, one death
    _armed = point


def crashpoint(point: str) -> None:
    if point == _armed:
        os.kill(os.getpid(), signal.SIGKILL)

"""Finds out how `till` is called from here: by its name if the shell finds it, as `./till` in a clone."""

import re
import shutil
import sys
from functools import cache
from pathlib import Path

COMMAND = re.compile(r"(?<![\w./`-])till (?=[a-z])")


@cache
def program() -> str:
    """Returns what to type in front of a command."""
    if shutil.which("till"):
        return "till"
    if Path("till").is_file():
        return "./till"
    installed = Path(sys.executable).with_name("till")
    return str(installed) if installed.exists() else "till"


def callable_here(text: str) -> str:
    """Rewrites the commands in a hint, such as `till up`, so that they can be typed as they are printed."""
    return COMMAND.sub(lambda _: f"{program()} ", text)

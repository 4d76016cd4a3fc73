"""Measures a cold `till up` of each server alone and of all together, `till down`, and their memory.

Cold means that nothing runs. It is measured in a new home, where data folders have to be created, and again in a home
with data. The commands are timed as a person runs them, including the start of Python. Figures are medians, because a
machine is never quite idle.
"""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import orjson

from infra.local.throwaway import throwaway
from infra.settings import Settings
from shared.errors import OperatorError
from tests.bench.figures import Figure

TILL = Path(sys.executable).with_name("till")
ROUNDS = 3
MB = 1_000_000

ALL = "all"
PARTS = {
    "PostgreSQL": ["--only", "postgres"],
    "Kafka": ["--only", "kafka"],
    "registry (with its PostgreSQL)": ["--only", "registry"],
    ALL: ["--servers-only"],
}
HOMES = ("new home", "home with data")


async def run(_settings: Settings) -> list[Figure]:
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    downs: list[float] = []
    memory: list[float] = []
    _round(PARTS[ALL], {}, [], [])  # the first start after an installation may have classes to archive
    for _ in range(ROUNDS):
        for part, options in PARTS.items():
            took: dict[str, float] = {}
            _round(options, took, downs if part == ALL else [], memory if part == ALL else [])
            for home, value in took.items():
                seconds[home, part].append(value)

    figures = []
    for home in HOMES:
        together = median(seconds[home, ALL])
        alone = {part: median(seconds[home, part]) for part in PARTS if part != ALL}
        slowest = max(alone.values())
        figures += [
            Figure(f"up, {home}, beside {part} alone", together, took, "s", at_most=1.3 if took == slowest else None)
            for part, took in alone.items()
        ]
    figures.append(Figure("down", max(downs), 5, "s", at_most=1))
    figures.append(Figure("resident memory of the three servers", max(memory), 900, "MB", at_most=1))
    return figures


def _round(options: list[str], took: dict[str, float], downs: list[float], memory: list[float]) -> None:
    with throwaway() as environment:
        for home in HOMES:
            took[home], _ = _timed(environment, "up", *options)
            _, report = _timed(environment, "status")
            memory.append(sum(process["memory"] for process in report["processes"]) / MB)
            down, _ = _timed(environment, "down")
            downs.append(down)


def _timed(environment: dict[str, str], *command: str) -> tuple[float, Any]:
    began = perf_counter()
    ran = subprocess.run([TILL, *command, "--json"], env=environment, cwd=environment["TILL_HOME"], capture_output=True)
    took = perf_counter() - began
    if ran.stderr:
        raise OperatorError(f"till {' '.join(command)} failed: {ran.stderr.decode()}")
    return took, orjson.loads(ran.stdout)

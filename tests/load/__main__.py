"""`python -m tests.load`: a short load test with a report, on a shop started for it or on the running one."""

import asyncio
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import click

from infra.local.stack import up
from infra.local.throwaway import settings_of, throwaway
from infra.settings import Settings

ROOT = Path(__file__).parents[2]


@click.command()
@click.option("--users", default=20, show_default=True, type=click.IntRange(1, 2000))
@click.option("--seconds", default=20, show_default=True, type=click.IntRange(1, 3600))
@click.option("--patience", default=60.0, show_default=True, help="Seconds to wait for the last orders.")
@click.option("--here", is_flag=True, help="Use the running shop of this home instead of starting one.")
@click.pass_context
def load(context: click.Context, users: int, seconds: int, patience: float, here: bool) -> None:
    """Run a load test. Exit code 1 when a request failed or the books do not balance."""
    report = Settings.load().home / "load" / "report.html"
    report.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        environment = dict(os.environ)
        if not here:
            environment = stack.enter_context(throwaway())
            asyncio.run(up(settings_of(environment)))
        shape = ["--users", str(users), "--spawn-rate", str(users), "--run-time", f"{seconds}s"]
        locust = [sys.executable, "-m", "locust", "-f", "tests/load/locustfile.py", "--headless", *shape]
        how = ["--only-summary", "--html", str(report), "--patience", str(patience)]
        ended = subprocess.run([*locust, *how], cwd=ROOT, env=environment)
    click.echo(f"Report: {report}")
    context.exit(ended.returncode)


if __name__ == "__main__":
    load()

"""Runs a command to its end before a server starts, such as one that creates its data folder."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from infra.local.processes import logs
from shared.errors import OperatorError


async def run_tool(home: Path, name: str, purpose: str, command: Sequence[str], stdin: str = "") -> None:
    """Runs the command with its output in the server's log. It is killed if this task is cancelled."""
    with logs.log_file(home, name).open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
        )
    try:
        await process.communicate(stdin.encode())
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        reason = "".join(f"\n    {line}" for line in logs.likely_reasons(logs.log_file(home, name)))
        raise OperatorError(f"{name}: {purpose} failed:{reason}", f"The whole log: till logs {name}")

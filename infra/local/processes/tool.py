"""Commands that run to their end before a server starts, such as those that create its data folder."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from infra.local import logs
from shared.errors import OperatorError


async def run_tool(home: Path, name: str, purpose: str, command: Sequence[str], stdin: str = "") -> None:
    """Its output goes to the log of the server it is for. Killed if this is cancelled."""
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
        reason = "".join(f"\n    {line}" for line in logs.telling_lines(logs.log_file(home, name)))
        raise OperatorError(f"{name}: {purpose} failed:{reason}", f"All of it: till logs {name}")

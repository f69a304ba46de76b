"""Runs the command that makes a token: no shell, no input, bounded in time and output, and quoted nowhere."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Sequence

from proxy.errors import SecretError

OUTPUT_BYTES = 64 * 1024
"""The longest output; a longer one is no token."""

Run = Callable[[Sequence[str], float], Awaitable[bytes]]
"""Runs a command within seconds and returns what it printed. Raises `SecretError`."""


async def run_command(command: Sequence[str], seconds: float) -> bytes:
    """Return what the command prints; see `Run`. Whatever it started is ended with it."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # it may quote the secrets it was given
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "no program can be called so"
        raise SecretError(f"command {command[0]!r} can't be run: {why}") from None
    try:
        async with asyncio.timeout(seconds):
            output = await _output(process, command[0])
            code = await process.wait()
    except TimeoutError:
        raise SecretError(f"command {command[0]!r} did not end within {seconds:g} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError):  # all of its session, it may have left something behind
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if code:
        raise SecretError(f"command {command[0]!r} fails with exit code {code}")
    return output


async def _output(process: asyncio.subprocess.Process, program: str) -> bytes:
    assert process.stdout is not None
    output = b""
    while piece := await process.stdout.read(OUTPUT_BYTES):
        output += piece
        if len(output) > OUTPUT_BYTES:
            raise SecretError(f"command {program!r} prints more than {OUTPUT_BYTES} bytes")
    return output

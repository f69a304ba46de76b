"""What whoever is on duty does: commands with the settings of the replicas, and the page's API of one of them."""

import asyncio
import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp

from load.worker import WorkerError

COMMAND_SECONDS = 120.0
"""A command may take so long; on a machine alone it takes some seconds."""


class Duty:
    """Acts on a group whose replicas' admin addresses are at these ports of this machine."""

    def __init__(self, settings: Path, ports: Sequence[int]) -> None:
        self._settings = settings
        self.ports = ports

    async def command(self, name: str, *arguments: str, code: int = 0) -> Any:
        """Return what a command answers in JSON. Raises WorkerError if it ends with another code."""
        return await _answer(name, "-c", str(self._settings), *arguments, "--json", code=code)

    async def top(self) -> Any:
        """Return what `tidegate top` sums up of all replicas."""
        return await _answer("top", "--json", *(part for one in self.ports for part in ("--admin", f"127.0.0.1:{one}")))

    async def ask(self, method: str, path: str, replica: int = 0, **parts: Any) -> tuple[int, Any]:
        """Return status and answer of one replica's admin address, JSON or text."""
        address = f"http://127.0.0.1:{self.ports[replica]}"
        async with aiohttp.ClientSession(address) as client, client.request(method, path, **parts) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, await (answer.json() if is_json else answer.text())

    async def first_of_stream(self, replica: int = 0) -> Any:
        """Return the first thing that the page is told."""
        address = f"http://127.0.0.1:{self.ports[replica]}"
        async with aiohttp.ClientSession(address) as client, client.get("/stream") as answer:
            async for line in answer.content:
                if line.startswith(b"data: "):
                    return json.loads(line.removeprefix(b"data: "))
        raise WorkerError("the stream ended before it told anything")

    async def gauge(self, name: str) -> float:
        """Return the sum of a metric over all replicas, series by series."""
        total = 0.0
        for replica in range(len(self.ports)):
            _, text = await self.ask("GET", "/metrics", replica)
            for line in text.splitlines():
                if line.startswith(name):
                    total += float(line.rpartition(" ")[2])
        return total


async def _answer(*command: str, code: int = 0) -> Any:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proxy", *command),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(COMMAND_SECONDS):
            out, err = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    if process.returncode != code:
        raise WorkerError(f"`tidegate {' '.join(command)}` ended with {process.returncode}: {err.decode()[-1000:]}")
    return json.loads(out)

"""A whole bridge in this process: it runs until the end of a block, with what must run beside it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from proxy.app import App


@asynccontextmanager
async def running(app: App, *beside: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run it until the end of the block, then stop it in good order; what is beside it ends after it."""
    async with asyncio.TaskGroup() as tasks:
        others = [tasks.create_task(one) for one in beside]
        bridge = tasks.create_task(app.run())
        try:
            yield bridge
        finally:
            app.stop()
            await asyncio.wait({bridge})
            for task in others:
                task.cancel()

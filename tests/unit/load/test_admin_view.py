"""What a generator reads of a Tidegate's admin port."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from load.admin_view import wanted
from proxy.operations.admin import Admin
from proxy.settings import AdminSettings

APART = {
    "wanted_consumers": None,
    "queues": {"run.slow": {"wanted_consumers": 6}, "run.new": {"wanted_consumers": None}},
}
TOGETHER = {"wanted_consumers": 4, "queues": {}}


@pytest.mark.parametrize(
    ("route", "queue", "count"),
    [
        ("apart", "run.slow", 6),
        ("apart", "run.new", None),
        ("together", "run.slow", 4),
        ("unknown", "run.slow", None),
    ],
)
async def test_the_consumers_wanted_of_a_queue_are_its_own_or_those_of_its_route(
    route: str, queue: str, count: int | None
) -> None:
    told: dict[str, Any] = {"routes": {"apart": APART, "together": TOGETHER}}
    admin = Admin(AdminSettings(listen="127.0.0.1:0"), status=dict, families=list, scaling=lambda: told)
    running = asyncio.create_task(admin.run())
    async with asyncio.timeout(5):
        while admin.port is None:  # noqa: ASYNC110 -- seen by looking
            await asyncio.sleep(0.001)
    assert await asyncio.to_thread(wanted, admin.port, route, queue) == count
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running

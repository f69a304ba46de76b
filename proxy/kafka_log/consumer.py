"""How the library's consumer is set up, and ended where its own stop does not end it."""

import asyncio
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, errors

from proxy.kafka_log.assignor import Assignor
from proxy.kafka_log.client import options
from proxy.kafka_log.fetching import LEAST_SHARE
from proxy.kafka_log.login import Credentials
from proxy.kafka_log.nodes import Bounds, Nodes
from proxy.settings import Limits, LogSettings

_say = structlog.get_logger("tidegate.kafka")

_STOP_SECONDS = 4.0
"""Leaving the group; then the connections are closed without it."""
_HEARTBEATS_PER_SESSION = 12
"""By its heartbeat a replica learns that another one has died. Fewer: the partitions of the dead stand still longer."""
_SHARES_PER_ANSWER = 16
"""A broker's answer has room for at least so many partitions, so that one busy partition can't fill it ..."""
_MOST_SHARE = 1024**2
"""... within this and `LEAST_SHARE`. The memory is bounded by the answer as a whole, `log.fetch_bytes` per broker."""
_OF_INBOXES = 4
"""Of what all inboxes may hold a part of so many is what a fetch of every partition may bring: where many event types
stand still, each with what its first fetch has brought, there must be room for those that don't. Events take up to
twice their bytes in memory, and more if they came compressed."""


def new_consumer(
    settings: LogSettings,
    limits: Limits,
    nodes: Nodes,
    credentials: Credentials,
    assignor: Assignor,
    *,
    first: str = "",
) -> Any:
    """Return a consumer that is not started yet, and asks the host `first` first; `teach_manners` comes before."""
    rebalance_seconds = settings.session_timeout + limits.drain_deadline + 2 * limits.commit_deadline
    share = min(max(settings.fetch_bytes // _SHARES_PER_ANSWER, LEAST_SHARE), _MOST_SHARE)
    consumer = AIOKafkaConsumer(
        **options(settings, credentials, request_seconds=settings.answer_deadline, first=first),
        group_id=settings.group,
        group_instance_id=settings.group_instance_id,
        client_rack=settings.client_rack,
        partition_assignment_strategy=(assignor,),
        session_timeout_ms=round(settings.session_timeout * 1000),
        heartbeat_interval_ms=round(settings.session_timeout * 1000 / _HEARTBEATS_PER_SESSION),
        rebalance_timeout_ms=round(rebalance_seconds * 1000),
        isolation_level=settings.isolation_level,
        enable_auto_commit=False,
        auto_offset_reset="none",
        fetch_max_wait_ms=round(settings.fetch_wait * 1000),
        fetch_max_bytes=settings.fetch_bytes,
        max_partition_fetch_bytes=share,
    )
    network = consumer._client  # noqa: SLF001  # made by the constructor, of the class that `teach_manners` has set
    network.nodes = nodes
    network.bounds = Bounds(
        settings.answer_deadline,
        settings.fetch_wait,
        rebalance_seconds,
        first_fetches=limits.inboxes_bytes // _OF_INBOXES,
    )
    return consumer


async def leave(consumer: Any) -> None:
    """Stop the consumer; where that fails or hangs, at least end its tasks and close its connections.

    Its stop is a task of its own because it can end in a cancellation of the library's making, out of a fetch that
    waits for the log to return.
    """
    leaving = asyncio.create_task(consumer.stop(), name="kafka-leaving")
    try:
        done, _ = await asyncio.wait({leaving}, timeout=_STOP_SECONDS)
        if not done:
            _say.warning("log_left_unsaid", effect="the group notices after one session timeout")
    finally:
        leaving.cancel()
        await asyncio.wait({leaving})
        await _end(consumer)
    if not leaving.cancelled() and not isinstance(leaving.exception(), errors.KafkaError | None):
        leaving.result()


async def _end(consumer: Any) -> None:
    """End what a stop that failed or was given up has left: the tasks, which would connect again, then connections."""
    coordinator, fetcher = consumer._coordinator, consumer._fetcher  # noqa: SLF001  # None before it has started
    tasks = [
        *(
            getattr(coordinator, name, None)
            for name in ("_coordination_task", "_heartbeat_task", "_commit_refresh_task")
        ),
        getattr(fetcher, "_fetch_task", None),
        *getattr(fetcher, "_pending_tasks", ()),
    ]
    left = [task for task in tasks if task is not None and not task.done()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)
    await consumer._client.close()  # noqa: SLF001  # closed by nothing else then

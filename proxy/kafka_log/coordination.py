"""The library's part in the group, mended.

- A subscription may change while the group's broker is sought.
- Heartbeats go on after a refusal that the library doesn't know: without them the group drops this replica, and one
  that has no partitions at that time would never notice, and take over nothing.
- A task that is ended before it has begun ends nothing else: whoever awaits one that was cancelled is cancelled, too.
  With the library the group was left for good, without a word, if the subscription changed just as it was joined.
- What other members have sent is looked at before the library takes it: what it can't understand would end it.
"""

import asyncio
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from aiokafka import errors
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.coordinator.protocol import ConsumerProtocol, ConsumerProtocolMemberAssignment

_NOTHING = ConsumerProtocolMemberAssignment(0, [], b"").encode()


class Coordination(GroupCoordinator):  # type: ignore[misc]  # the library is untyped
    """See above. The library would take the partitions of an old subscription for granted, and end."""

    _heartbeat_task: asyncio.Task[None] | None
    _commit_refresh_task: asyncio.Task[None] | None

    def need_rejoin(self, subscription: Any) -> bool:
        """Return whether the group is to be joined, or the subscription is another by now."""
        return not subscription.active or bool(super().need_rejoin(subscription))

    async def ensure_active_group(self, subscription: Any, prev_assignment: Any) -> Any:
        """Join the group; None if the caller must look again at what it is subscribed to."""
        return await super().ensure_active_group(subscription, prev_assignment) if subscription.active else None

    async def _send_req(self, request: Any) -> Any:
        """Ask the coordinator; of the answer to a join the assignors learn which other member leads the group."""
        response = await super()._send_req(request)
        leader = getattr(response, "leader_id", None)
        if leader and leader != response.member_id and self._group_instance_id is None:
            for assignor in self._assignors:
                if (tell := getattr(assignor, "led_by", None)) is not None:  # the library's own do not ask
                    tell(leader)
        return response

    async def _heartbeat_routine(self) -> None:
        """Send heartbeats until cancelled, or out of the group; refused once the group has dropped us, we join anew."""
        with suppress(asyncio.CancelledError):
            while True:
                try:
                    await super()._heartbeat_routine()
                except errors.KafkaError:
                    await asyncio.sleep(self._heartbeat_interval_ms / 1000)
                else:
                    return

    async def _stop_heartbeat_task(self) -> None:
        if self._heartbeat_task is not None:
            await _end(self._heartbeat_task)
            self._heartbeat_task = None

    async def _stop_commit_offsets_refresh_task(self) -> None:
        if self._commit_refresh_task is not None:
            await _end(self._commit_refresh_task)
            self._commit_refresh_task = None

    async def _perform_assignment(self, response: Any) -> Any:
        """Share out as the leader. Raises `KafkaError` if somebody has said what can't be understood."""
        with _understood("what a member of the group says of itself"):
            _known(self._lookup_assignor(response.group_protocol))
            for *_, said in response.members:
                ConsumerProtocol.METADATA.decode(said)
        return await super()._perform_assignment(response)

    async def _on_join_complete(self, generation: int, member_id: str, protocol: str, assigned: bytes) -> None:
        """Take what was assigned, no bytes for nothing. Raises `KafkaError` if it can't be understood."""
        with _understood("what the group's leader has assigned"):
            _known(self._lookup_assignor(protocol))
            if not member_id or generation < 0:
                raise ValueError(f"to member {member_id!r} in generation {generation}")
            assigned = assigned or _NOTHING
            for topic, partitions in ConsumerProtocol.ASSIGNMENT.decode(assigned).assignment:
                if topic not in self._subscription.topics or min(partitions, default=0) < 0:
                    raise ValueError(f"{topic} {partitions}")
        await super()._on_join_complete(generation, member_id, protocol, assigned)


async def _end(task: asyncio.Task[None]) -> None:
    """End a task of the library's, in no more turns of the loop than it takes: others look at the group meanwhile."""
    if task.done():
        return
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        this = asyncio.current_task()
        if this is not None and this.cancelling():
            raise


@contextmanager
def _understood(what: str) -> Iterator[None]:
    """Raise `KafkaError`, upon which the group is joined anew, for what reading it may raise."""
    try:
        yield
    except (ValueError, struct.error, IndexError, TypeError) as error:
        raise errors.KafkaError(f"{what} can't be understood: {error!r}") from error


def _known(assignor: Any) -> None:
    if assignor is None:
        raise ValueError("an assignor that is not ours")

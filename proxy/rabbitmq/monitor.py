"""How deep the queues are: passive declares, all at once, over a connection that publishes nothing.

The broker blocks and slows only connections that publish, so this one answers while those do not.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from pamqp import commands

from proxy.bridge.broker import QueueKind, QueueState
from proxy.rabbitmq.inquiry import Inquiry, is_absent, opened
from proxy.rabbitmq.login import Login, Logins
from proxy.rabbitmq.queue_kind import ask_kind, kind_in
from proxy.rabbitmq.words import cause, speaking

POLL_DEADLINE = 1.0
"""Seconds for one poll, connecting included."""
MISSING_INTERVAL = 1.0
"""Seconds before a queue that did not exist is asked for again: every such question costs a channel ..."""
MISSING_PER_POLL = 4
"""... and so many channels may be spent in one poll; queues known to exist are asked for first."""
KINDS_PER_POLL = 4
"""Queues that are asked for their kind in one poll; this as well costs a channel and a line in its log."""
KIND_DEADLINE = 0.3
"""Seconds for such an answer; the depths are not lost for it."""
KIND_INTERVAL = 60.0
"""Seconds before a queue is asked again whose kind was not told, or that is a stream ..."""
KIND_DOUBT_INTERVAL = 10.0
"""... and before one is asked that looks like another kind than it was."""


class RabbitMonitor:
    """See `proxy.bridge.broker.DepthMonitor`. Connects when polled; after a failed poll the next one connects anew."""

    def __init__(self, logins: Logins) -> None:
        self._inquiry = Inquiry(logins, "monitor", logins.hosts())
        self._missing: dict[str, float] = {}
        self._whys: dict[str, str] = {}
        """Of those missing that are not just absent."""
        self._kinds: dict[str, QueueKind] = {}
        self._kind_asked: dict[str, float] = {}
        """When a queue was asked for its kind last."""
        self._last: dict[str, QueueState] = {}
        """What was told of each queue last."""
        self._doubtful: set[str] = set()
        """Queues that may have been made anew, as another kind, between two polls."""

    async def poll(self, queues: Collection[str]) -> Mapping[str, QueueState | None]:
        """Ask for every queue; see `DepthMonitor.poll`."""
        now = asyncio.get_running_loop().time()
        states: dict[str, QueueState | None] = {queue: None for queue in queues if queue in self._missing}
        asked = [queue for queue in queues if queue not in states]
        asked += [queue for queue in states if self._missing[queue] <= now]
        missing = 0
        async with self._inquiry.answering(POLL_DEADLINE):
            while asked and missing < MISSING_PER_POLL:
                found = await self._ask(asked)
                states.update(found)
                for queue in found:
                    self._missing.pop(queue, None)
                    self._whys.pop(queue, None)
                if len(found) < len(asked):
                    states[asked[len(found)]] = None
                    self._missing[asked[len(found)]] = now + MISSING_INTERVAL
                    self._kinds.pop(asked[len(found)], None)
                    self._kind_asked.pop(asked[len(found)], None)
                    missing += 1
                asked = asked[len(found) + 1 :]
            await self._learn_kinds(states, now)
        return {queue: states[queue] for queue in queues if queue in states}

    async def _learn_kinds(self, states: dict[str, QueueState | None], now: float) -> None:
        """Ask the next few of those that exist and were not asked yet, or have begun to look like another kind."""
        due: list[tuple[str, QueueState]] = []
        for queue, state in states.items():
            if state is not None:
                self._compare(queue, state)
                if self._kind_is_due(queue, state, now):
                    due.append((queue, state))
        for queue, state in due[:KINDS_PER_POLL]:
            self._kind_asked[queue] = now
            kind = await self._kind(await self._inquiry.connected(), queue)
            self._doubtful.discard(queue)
            if kind is not None:
                self._kinds[queue] = kind
                states[queue] = replace(state, kind=kind)

    def _compare(self, queue: str, state: QueueState) -> None:
        """Doubt the kind of a queue that begins to look like another one.

        A stream keeps what was read and shows no consumers. So doubtful is whatever else begins to look so, and a
        stream that holds less than before.
        """
        before, self._last[queue] = self._last.get(queue, state), state
        is_stream = state.kind is QueueKind.STREAM
        if state.ready < before.ready if is_stream else _stands(state) and not _stands(before):
            self._doubtful.add(queue)

    def _kind_is_due(self, queue: str, state: QueueState, now: float) -> bool:
        """Return whether a queue of unknown or doubtful kind may be asked now.

        A stream that was empty when it was made anew shows nothing, so streams are asked now and then.
        """
        is_stream = state.kind is QueueKind.STREAM
        asked = self._kind_asked.get(queue)
        if asked is None:
            return True
        if queue in self._doubtful:
            return now - asked >= KIND_DOUBT_INTERVAL
        return (state.kind is None or is_stream) and now - asked >= KIND_INTERVAL

    async def _kind(self, login: Login, queue: str) -> QueueKind | None:
        """Ask for one; a connection that gives anything but a refusal is ended, and with it what came of it."""
        with speaking(login.host), suppress(TimeoutError):
            async with asyncio.timeout(KIND_DEADLINE):
                channel = await opened(login)
                closing = channel.closing
                await ask_kind(channel, queue)
                if await _first(channel.rpc_frames, closing) is None:
                    return kind_in(cause(closing.exception()))
        await self._inquiry.end(gracefully=False)
        return None

    def why(self, queue: str) -> str:
        """See `DepthMonitor.why`."""
        return self._whys.get(queue, "")

    async def close(self) -> None:
        """Close the connection."""
        await self._inquiry.end(gracefully=True)

    async def _ask(self, queues: Sequence[str]) -> dict[str, QueueState]:
        """Return the states of the queues before the first that does not exist, which closes the channel."""
        told, said = await self._inquiry.ask(queues)
        if len(told) < len(queues):
            self._whys[queues[len(told)]] = "" if is_absent(said) else said
        kinds = self._kinds
        return {queue: QueueState(*each, kinds.get(queue)) for queue, each in zip(queues, told, strict=False)}


def _stands(state: QueueState) -> bool:
    return bool(state.ready) and not state.consumers


async def _first(
    answers: "asyncio.Queue[commands.Queue.DeclareOk]", closing: "asyncio.Future[Any]"
) -> commands.Queue.DeclareOk | None:
    """Return the next answer, None if the channel closes first."""
    if answers.empty() and not closing.done():
        waiting: asyncio.Future[Any] = asyncio.ensure_future(answers.get())
        try:
            await asyncio.wait({waiting, closing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not waiting.done():
                waiting.cancel()
        if not waiting.cancelled() and waiting.done():
            return cast("commands.Queue.DeclareOk", waiting.result())
    return answers.get_nowait() if not answers.empty() else None

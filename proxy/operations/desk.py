"""Where interventions are asked for over HTTP: pins them for the whole group, and tells who has answered.

Whichever replica is asked: it writes to the board, reads its own part there like all others, and waits for them.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol

import structlog
from aiohttp import web

from proxy.config.items import printable
from proxy.errors import SettingsError, TidegateError
from proxy.model import Mode
from proxy.operations.command_words import as_json, scope_text
from proxy.operations.endpoints import END, JSON
from proxy.operations.intervening import GroupBoard, answered, given
from proxy.operations.intervention import Intervention
from proxy.operations.intervention_request import RequestError, author, requested, words
from proxy.operations.interventions import MOST_HELD
from proxy.operations.pinned import Pinned
from proxy.operations.scope import class_of
from proxy.settings import Settings

MOST_PENDING = 8
"""Questions at a time; each may wait 10 s for the answers of replicas."""
BODY_SECONDS = 10.0
"""How long the rest of a question may take to arrive."""
_say = structlog.get_logger("tidegate.admin")


class DeskBoard(GroupBoard, Protocol):
    """A board that can be made; nobody else may read by this instance."""

    async def create(self) -> None:
        """Create the board if there is none. Raises `LogError`."""
        ...


class Desk:
    """Answers /interventions; `proof` is what is proved of whoever asks."""

    def __init__(
        self, settings: Callable[[], Settings], board: DeskBoard, *, wall: Callable[[], float] = time.time
    ) -> None:
        """Make one; `settings` returns those in force now, `wall` is in seconds since 1970."""
        self._settings = settings
        self._board = board
        self._pinned = Pinned(lambda name: class_of(settings(), name))
        self._wall = wall
        self._pending = 0

    async def told(self) -> web.Response:
        """Answer what holds now."""
        async with self._place(), _board("nothing was asked of the group"):
            members = await self._board.members()
            await self._look()
            holding = self._pinned.holding(self._now_ms())
            found = [_told(one, given(members, self._pinned, one)) for one in holding]
        return web.json_response({"interventions": found})

    async def begin(self, request: web.Request, proof: str) -> web.Response:
        """Pin what is asked; answer when every replica has, or the time for that is over."""
        if request.content_type != JSON:
            raise RequestError(415, f"the question must be of type {JSON}")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await request.read()
        except TimeoutError as error:
            raise RequestError(408, "the question did not arrive in time") from error
        wanted = requested(body, self._settings(), proof, self._now_ms())
        async with self._place():
            async with _board("nothing was changed"):
                await self._board.create()
                await self._look()
            pinning = self._pinnable(wanted, self._now_ms())
            told = await self._pin(pinning, request.remote or "")
        return web.json_response(told, status=201, headers={"Location": END.path.format(id=pinning.id)})

    async def end(self, request: web.Request, proof: str) -> web.Response:
        """End one before its time; answer when every replica has done so, or the time for that is over."""
        allowed = [one.name for one in END.parameters if one.place == "query"]
        if unknown := sorted(request.query.keys() - set(allowed)):
            raise RequestError(400, f"{unknown[0]} is no parameter; allowed: {', '.join(allowed)}")
        who, why = (words(name, request.query.get(name)) for name in ("who", "why"))
        id_ = request.match_info["id"]
        async with self._place():
            async with _board("nothing was changed"):
                await self._look()
            one = self._pinned.found(id_, self._now_ms())
            if one is None:
                raise RequestError(404, f"no intervention {id_[:100]} holds: nothing was changed")
            if one.ended_by is None:
                one = replace(one, ended_by=author(proof, who), ended_why=why)
            return web.json_response(await self._pin(one, request.remote or ""))

    def _pinnable(self, wanted: Intervention, now_ms: int) -> Intervention:
        try:
            pinning = self._pinned.resuming(wanted, now_ms) if wanted.mode is Mode.RUN else wanted
        except SettingsError as error:
            raise RequestError(409, f"{error}; nothing was changed") from error
        if pinning is None:
            raise RequestError(409, f"nothing holds for {scope_text(wanted)}: nothing was changed")
        if self._pinned.standing(now_ms) >= MOST_HELD:
            raise RequestError(409, f"{MOST_HELD} interventions hold already: nothing was changed")
        return pinning

    async def _pin(self, one: Intervention, address: str) -> Mapping[str, Any]:
        async with _board("perhaps it is pinned all the same"):
            await self._board.pin(one.key, one.as_json())
        _say.warning("intervention_pinned", id=one.id, mode=one.mode.value, by=one.ended_by or one.by, address=address)
        async with _board(f"its id is {one.id}"):
            return _told(one, await answered(self._board, self._pinned, one))

    async def _look(self) -> None:
        self._pinned.take(await self._board.news())
        self._pinned.forget(self._now_ms())

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Bound who speaks to Kafka at once."""
        if self._pending >= MOST_PENDING:
            raise RequestError(429, f"{MOST_PENDING} questions wait for Kafka or for replicas: ask again in a moment")
        self._pending += 1
        try:
            yield
        finally:
            self._pending -= 1

    def _now_ms(self) -> int:
        return int(self._wall() * 1000)


@asynccontextmanager
async def _board(effect: str) -> AsyncIterator[None]:
    """Say what an error of the log's means for whoever asks."""
    try:
        yield
    except TidegateError as error:
        raise RequestError(503, f"{error}; {effect}") from error


def _told(one: Intervention, replicas: list[Any]) -> Mapping[str, Any]:
    silent = [printable(replica.member.id) for replica in replicas if replica.answer is None]
    return {**as_json(one, replicas), "silent": silent}

"""A group's cursors on Nakadi, seen and moved, for the commands `skip` and `rewind`.

A cursor names the last event that is done with, a place the next one that is not. So of every place that may be moved
to, or counted from, the cursor before it is kept: places can't be reckoned with over timelines and gaps, Nakadi can.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

import structlog

from proxy.access import Access, nakadi_access
from proxy.errors import LogError, SettingsError
from proxy.model import Partition
from proxy.nakadi_log.bus import CONFLICT, NOT_FOUND, UNPROCESSABLE, Bus, RefusedError, quoted
from proxy.nakadi_log.event_types import AT_ONCE, EventTypes
from proxy.nakadi_log.grip import LOOK_SECONDS, MOVE_SECONDS, Grip, gripped, owners_of
from proxy.nakadi_log.offsets import BEGIN, offset_at, place
from proxy.positions.identity import Committed, Found
from proxy.positions.port import EARLIEST
from proxy.settings import LogSettings

_Told = TypeVar("_Told")
_say = structlog.get_logger("tidegate.nakadi")

_PAGE = 100
_FAILED = 500
"""From this status on an answer does not say whether it was done."""


@dataclass(slots=True)
class Distance:
    """How many events lie in `[first, end)` of a partition."""

    first: int
    end: int
    events: int = 0
    newer: int = 0
    """No time is ever named."""
    is_done: bool = False


class NakadiCursors:
    """One group's cursors of the event types for which `is_meant`.

    Every method but `close` raises `LogError` if Nakadi refuses or does not answer in time.
    """

    def __init__(self, settings: LogSettings, is_meant: Callable[[str], bool], *, access: Access | None = None) -> None:
        """Make one; without `access` it shows what `settings.nakadi` names."""
        assert settings.nakadi is not None
        self._settings = settings
        self._nakadi = settings.nakadi
        self._is_meant = is_meant
        self._bus = Bus(settings.nakadi.url, access or nakadi_access(settings.nakadi))
        self._subscriptions: dict[str, str] = {}
        """Ids by event type."""
        self._before: dict[tuple[Partition, int], str] = {}
        """The offset of the cursor that stands at a place."""
        self._oldest: dict[Partition, str] = {}
        self._newest: dict[Partition, str] = {}
        self._stood: dict[Partition, int] = {}
        """What was committed when it was last asked for."""
        self._grip: Grip | None = None
        """What holds the partitions that are moved now, where replicas read them."""

    async def open(self) -> None:
        """Find the group's subscriptions; none is made."""
        nakadi, first = self._nakadi, 0
        while True:
            query = {"owning_application": nakadi.owning_application, "offset": first, "limit": _PAGE}
            told = await self._ask("GET", f"/subscriptions?{urlencode(query)}")
            items = told.get("items") if isinstance(told, dict) else None
            if not isinstance(items, list):
                raise LogError("the answer names no subscriptions; is log.nakadi.url right?")
            for one in items:
                names = one.get("event_types") or []
                if one.get("consumer_group") == nakadi.consumer_group and len(names) == 1 and self._is_meant(names[0]):
                    self._subscriptions[names[0]] = str(one["id"])
            first += _PAGE
            if len(items) < _PAGE:
                return

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._bus.close()

    async def topics(self) -> dict[str, Found]:
        """Return the event types that are meant, and learn their ends."""
        names = sorted(filter(self._is_meant, await EventTypes(self._bus, within=self._within).all()))
        for told in await _each(names, self._ends):
            for at, oldest, newest in told:
                self._oldest[at], self._newest[at] = oldest, newest
                self._before[at, max(0, place(newest) + 1)] = newest
                self._before[at, max(0, place(oldest))] = BEGIN
        return {name: Found("", tuple(sorted(at.number for at in self._newest if at.topic == name))) for name in names}

    async def committed(self) -> dict[Partition, Committed | None]:
        """Return everything that the group has committed, as places."""
        found: dict[Partition, Committed | None] = {}
        for told in await _each(sorted(self._subscriptions), self._cursors):
            for at, offset in told.items():
                done = place(offset) + 1
                found[at] = Committed(done, "")
                self._stood[at] = done
                self._before.setdefault((at, done), offset)
        return found

    async def offsets(self, times: Mapping[Partition, int]) -> dict[Partition, int]:
        """Return the first places, or the ends; `EARLIEST` and `LATEST` are the only times that Nakadi knows."""
        return {
            at: max(0, place(self._oldest[at]) if time == EARLIEST else place(self._newest[at]) + 1)
            for at, time in times.items()
        }

    def range(self, first: int, end: int, before_ms: int | None) -> Distance:  # noqa: ARG002 -- see `Distance.newer`
        """Return the count of a range, of which nothing is asked yet."""
        return Distance(first, end)

    async def read_on(self, partition: Partition, count: Distance) -> None:
        """Ask how many events a range holds. Raises `SettingsError` if the group does not read its event type."""
        if partition.topic not in self._subscriptions:
            group = self._nakadi.consumer_group
            raise SettingsError([f"group {group} has no subscription of {partition.topic}: there is no cursor to move"])
        first, last = await self._cursor(partition, count.first), await self._cursor(partition, count.end)
        initial = self._oldest[partition] if first == BEGIN else first
        if last != BEGIN:
            number = str(partition.number)
            item = {
                "initial_cursor": {"partition": number, "offset": initial},
                "final_cursor": {"partition": number, "offset": last},
            }
            told = await self._ask("POST", f"/event-types/{quoted(partition.topic)}/cursor-distances", [item])
            try:
                count.events = int(told[0]["distance"]) + (first == BEGIN)
            except (TypeError, LookupError, ValueError) as error:
                raise LogError(f"Nakadi does not tell how many events {partition} holds") from error
        count.is_done = True

    @asynccontextmanager
    async def held(self, partitions: Collection[Partition]) -> AsyncIterator[None]:
        """Let nobody else read or commit partitions of one event type meanwhile, if anybody reads it now.

        Raises `LogError` if replicas don't give them up in time. It lasts for seconds only; see `commit`.
        """
        subscription, within = self._subscriptions[next(iter(partitions)).topic], self._within
        if not await owners_of(self._bus, subscription, within=within):
            yield
            return
        async with gripped(self._bus, subscription, partitions, within=within) as grip:
            self._grip = grip
            try:
                yield
            finally:
                self._grip = None

    async def commit(self, offsets: Mapping[Partition, Committed]) -> Collection[Partition]:
        """Move cursors, one event type after the other; return those that stand where they should, for certain.

        Raises `SettingsError`, with nothing changed, if a place is none, `LogError` if what was held is not any more.
        """
        wanted: dict[str, dict[Partition, str]] = {}
        taken = [at for at, one in offsets.items() if one.offset == self._stood.get(at)]
        for at, one in offsets.items():
            if at not in taken:
                wanted.setdefault(at.topic, {})[at] = await self._cursor(at, one.offset)
        for name, targets in sorted(wanted.items()):
            try:
                await self._move(name, targets)
            except LogError as error:
                _say.error("cursors_not_moved", event_type=name, why=str(error))
            else:
                taken += targets
        return taken

    # -- within -------------------------------------------------------------------------------------------------------

    @property
    def _within(self) -> float:
        return self._settings.answer_deadline

    async def _ask(self, method: str, path: str, body: object = None) -> Any:
        return (await self._bus.ask(method, path, body, within=self._within))[1]

    async def _ends(self, name: str) -> list[tuple[Partition, str, str]]:
        told = await self._ask("GET", f"/event-types/{quoted(name)}/partitions")
        try:
            return [
                (Partition(name, int(one["partition"])), one["oldest_available_offset"], one["newest_available_offset"])
                for one in told
            ]
        except (TypeError, LookupError, ValueError) as error:
            raise LogError(f"Nakadi does not tell the partitions of {name}") from error

    async def _cursors(self, name: str) -> dict[Partition, str]:
        told = await self._ask("GET", f"/subscriptions/{self._subscriptions[name]}/cursors")
        try:
            return {Partition(name, int(one["partition"])): one["offset"] for one in told["items"]}
        except (TypeError, LookupError, ValueError) as error:
            raise LogError(f"Nakadi does not tell what is committed of {name}") from error

    async def _cursor(self, at: Partition, where: int) -> str:
        """Return the offset of the last event before a place. Raises `SettingsError` if no event stands there."""
        if (known := self._before.get((at, where))) is None:
            offset = offset_at(where, self._newest[at])
            item = {"partition": str(at.number), "offset": offset, "shift": -1}
            try:
                told = await self._ask("POST", f"/event-types/{quoted(at.topic)}/shifted-cursors", [item])
                known = self._before[at, where] = str(told[0]["offset"])
            except RefusedError as error:
                if error.status in {NOT_FOUND, UNPROCESSABLE}:
                    raise SettingsError([f"{at} has no event at {where}: {error}"]) from error
                raise
            except (TypeError, LookupError) as error:
                raise LogError(f"Nakadi does not tell what stands before {where} in {at}") from error
        return known

    async def _move(self, name: str, targets: Mapping[Partition, str]) -> None:
        """Move one event type's cursors; return once it is certain that they stand there. Raises `LogError`.

        What may have been heard is not asked for a second time: only looked at, until Nakadi must be done with it.
        """
        grip, subscription = self._grip, self._subscriptions[name]
        items = [{"event_type": name, "partition": str(at.number), "offset": offset} for at, offset in targets.items()]
        clock = asyncio.get_running_loop().time
        end, path = clock() + MOVE_SECONDS, f"/subscriptions/{subscription}/cursors"
        while True:
            if grip is not None and not await grip.holds(self._bus, subscription, targets, within=self._within):
                raise LogError("it is not held still any more: nothing was moved; run the same command again")
            try:
                await self._bus.ask("PATCH", path, {"items": items}, within=max(LOOK_SECONDS, end - clock()))
            except RefusedError as error:
                if error.status >= _FAILED:
                    break
                if error.status != CONFLICT or clock() >= end:
                    raise
            except LogError:
                break
            else:
                return
            await asyncio.sleep(LOOK_SECONDS)
        await self._see_moved(name, targets)

    async def _see_moved(self, name: str, targets: Mapping[Partition, str]) -> None:
        """Return once cursors are seen where they should stand. Raises `LogError` if that is not so in time."""
        clock = asyncio.get_running_loop().time
        end = clock() + MOVE_SECONDS
        while clock() < end:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                stand = await self._cursors(name)
            except LogError:
                continue
            if all(at in stand and self._is_there(at, stand[at], offset) for at, offset in targets.items()):
                return
        raise LogError(
            "it was asked for, and whether it is done is not known: look with --dry-run before you repeat it"
        )

    def _is_there(self, at: Partition, stands: str, wanted: str) -> bool:
        if self._grip is not None:  # replicas go on at once, and forward: only what lies back they don't reach alone
            return place(wanted) <= place(stands) < self._stood.get(at, 0) - 1
        if wanted == BEGIN:
            return place(stands) < place(self._oldest[at])
        return place(stands) == place(wanted)


async def _each(names: Sequence[str], ask: Callable[[str], Awaitable[_Told]]) -> list[_Told]:
    found: list[_Told] = []
    for start in range(0, len(names), AT_ONCE):
        found += await asyncio.gather(*map(ask, names[start : start + AT_ONCE]))
    return found

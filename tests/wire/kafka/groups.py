"""A consumer group as its coordinator keeps it: members, static ones too, generations, sessions, committed offsets.

As Kafka's: a dynamic member is told its name first and joins with it; a rebalance ends when all have joined or the
longest of their rebalance timeouts is over; the leader says who gets what; a static member that comes back under
another name takes the place of the old one, which is fenced, and no rebalance follows.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from itertools import count
from typing import Any, NamedTuple, Protocol

from proxy.model import Partition
from proxy.positions.identity import Committed
from proxy.simulation.memory_group import COORDINATOR
from tests.wire.kafka.messages import Error

JOIN_SECONDS = 0.02
"""An empty group waits so long for further members."""


class Host(Protocol):
    """The cluster, as its groups see it."""

    is_down: bool
    on_commit: Callable[[str, Mapping[Partition, Committed]], None]

    def exists(self, partition: Partition) -> bool:
        """Tell whether there is such a partition."""
        ...


class Phase(Enum):
    """Of a generation."""

    EMPTY = auto()
    JOINING = auto()
    SYNCING = auto()
    STABLE = auto()


class Joined(NamedTuple):
    """What becomes of a request to join."""

    error: Error
    member: str = ""
    leader: str = ""
    protocol: str = ""
    generation: int = -1
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    """Name, instance, and what it says of itself; for the leader alone."""


class Synced(NamedTuple):
    """What becomes of a request for one's partitions."""

    error: Error
    assignment: bytes = b""


@dataclass(slots=True, eq=False)
class Member:
    """One member."""

    name: str
    client: str
    """The process that it is."""
    instance: str | None
    session: float
    rebalance: float
    protocols: list[dict[str, Any]]
    joining: "asyncio.Future[Joined] | None" = None
    syncing: "asyncio.Future[Synced] | None" = None
    expiry: asyncio.TimerHandle | None = None
    assignment: bytes = b""


class ScriptedGroup:
    """One group."""

    def __init__(self, host: Host, coordinator: int) -> None:
        self.coordinator = coordinator
        """The broker that keeps it."""
        self.is_loading = False
        """Its new coordinator does not know it yet."""
        self.on_joining: Callable[[str], None] = lambda _: None
        """Called with the process that asks to join."""
        self.members: dict[str, Member] = {}
        self.committed: dict[Partition, Committed] = {}
        self.generation = 0
        self.phase = Phase.EMPTY
        self.rebalances = 0
        """Generations that were begun."""
        self._host = host
        self._leader = ""
        self._names = count(1)
        self._expected: set[str] = set()
        """Names given to members that have not joined with them yet."""
        self._deadline: asyncio.TimerHandle | None = None

    # -- requests -----------------------------------------------------------------------------------------------------

    async def join(self, client: str, body: dict[str, Any]) -> Joined:
        """Take part in the next generation; in this one, if nothing changes by it."""
        self.on_joining(client)
        name = self._named(client, body)
        if isinstance(name, Joined):
            return name
        self._expected.discard(name)
        known = self.members.get(name)
        if known is not None and known.protocols == body["protocols"] and self._needs_no_other(known):
            self._renew(known)
            return self._current(known)
        return await self._take_part(name, client, body)

    async def sync(self, body: dict[str, Any]) -> Synced:
        """Hand out what the leader gives, once it has said so."""
        error = self.refusal(body["member"], body["generation"])
        if error is not Error.NONE:
            return Synced(error)
        member = self.members[body["member"]]
        if self.phase is Phase.JOINING:
            return Synced(Error.REBALANCE_IN_PROGRESS)
        if self.phase is Phase.SYNCING:
            if member.name != self._leader:
                member.syncing = asyncio.get_running_loop().create_future()
                return await member.syncing
            self._assign({one["member"]: one["assignment"] for one in _renamed(body["assignments"])})
        self._renew(member)
        return Synced(Error.NONE, member.assignment)

    def heartbeat(self, body: dict[str, Any]) -> Error:
        """Renew a session."""
        error = self.refusal(body["member"], body["generation"])
        if error is not Error.NONE:
            return error
        self._renew(self.members[body["member"]])
        return Error.REBALANCE_IN_PROGRESS if self.phase is Phase.JOINING else Error.NONE

    def commit(self, client: str, body: dict[str, Any], offsets: Mapping[Partition, Committed]) -> Error:
        """Take the offsets of partitions that there are, all of them or none."""
        is_simple = body["generation"] < 0 and self.phase is Phase.EMPTY
        error = Error.NONE if is_simple else self.refusal(body["member"], body["generation"])
        if error is not Error.NONE:
            return error
        if self.phase is Phase.SYNCING:
            return Error.REBALANCE_IN_PROGRESS
        if not is_simple:
            self._renew(self.members[body["member"]])
        self._host.on_commit(client, offsets)
        self.committed |= offsets
        return Error.NONE

    def refusal(self, member: str, generation: int) -> Error:
        """Return why a member may not speak for a generation."""
        if member not in self.members:
            return Error.UNKNOWN_MEMBER
        return Error.NONE if generation == self.generation else Error.ILLEGAL_GENERATION

    # -- hands --------------------------------------------------------------------------------------------------------

    def leave(self, who: str) -> None:
        """Remove a member by its name, or by the process that it is."""
        for member in [one for one in self.members.values() if who in {one.name, one.client}]:
            self._remove(member, Error.UNKNOWN_MEMBER)

    def rebalance(self) -> None:
        """Have all members join again."""
        if self.members:
            self._begin()

    def renew_sessions(self) -> None:
        """Begin the session of every member anew, as a new coordinator does."""
        for member in self.members.values():
            self._renew(member)

    def on_topic_changed(self, topic: str) -> None:
        """Do nothing: it is for the members to see."""

    def end(self) -> None:
        """Arm no timer any more."""
        for member in self.members.values():
            if member.expiry is not None:
                member.expiry.cancel()
        if self._deadline is not None:
            self._deadline.cancel()

    # -- within -------------------------------------------------------------------------------------------------------

    def _named(self, client: str, body: dict[str, Any]) -> str | Joined:
        """Return the name by which a member may join, or what it is told instead."""
        name, instance = str(body["member"]), body["instance"]
        if not body["protocols"]:
            return Joined(Error.INCONSISTENT_PROTOCOL)
        if not name and instance is not None:
            return self._take_place(instance, client, body)
        if not name:
            name = f"{client}-{next(self._names)}"
            self._expected.add(name)
            return Joined(Error.MEMBER_ID_REQUIRED, name)
        if name not in self.members and name not in self._expected:
            return Joined(Error.UNKNOWN_MEMBER)
        if instance is not None and self._holder(instance) not in {name, None}:
            return Joined(Error.FENCED_INSTANCE)
        return name

    def _holder(self, instance: str) -> str | None:
        return next((one.name for one in self.members.values() if one.instance == instance), None)

    def _take_place(self, instance: str, client: str, body: dict[str, Any]) -> str | Joined:
        """Return the name of a static member, or all that is to be said if the generation goes on with it."""
        name = f"{instance}-{next(self._names)}"
        old = self.members.get(self._holder(instance) or "")
        if old is None:
            self._expected.add(name)
            return name
        for waiting, fenced in (
            (old.joining, Joined(Error.FENCED_INSTANCE)),
            (old.syncing, Synced(Error.FENCED_INSTANCE)),
        ):
            if waiting is not None and not waiting.done():
                waiting.set_result(fenced)  # type: ignore[arg-type]
        old.joining = old.syncing = None
        self.members = {(name if one is old else at): one for at, one in self.members.items()}
        if self._leader == old.name:
            self._leader = name
        old.name, old.client = name, client
        if self.phase is Phase.SYNCING:
            # The leader shares out among names of which one is gone: its new one would get nothing.
            self._begin()
        if self.phase is Phase.STABLE and old.protocols == body["protocols"]:
            self._renew(old)
            # Were it told that it leads, it would say anew who gets what, of which nobody else would hear.
            return self._current(old)._replace(leader="")
        return name

    def _needs_no_other(self, member: Member) -> bool:
        """Return whether the present generation serves a member that asks for the next."""
        if self.phase is Phase.STABLE:
            return member.name != self._leader
        return self.phase is Phase.SYNCING

    def _current(self, member: Member) -> Joined:
        members = self._said() if member.name == self._leader and self.phase is Phase.SYNCING else ()
        return Joined(Error.NONE, member.name, self._leader, self._protocol(), self.generation, members)

    async def _take_part(self, name: str, client: str, body: dict[str, Any]) -> Joined:
        loop = asyncio.get_running_loop()
        known = self.members.get(name)
        member = Member(
            name, client, body["instance"], body["session_ms"] / 1000, body["rebalance_ms"] / 1000, body["protocols"]
        )
        if known is not None:
            self._silence(known)
            if known.joining is not None and not known.joining.done():
                known.joining.set_result(Joined(Error.UNKNOWN_MEMBER))  # another request of its own came later
            member.assignment = known.assignment
        self.members[name] = member
        joining: asyncio.Future[Joined] = loop.create_future()
        member.joining = joining
        if self.phase is Phase.JOINING:
            self._complete()
        else:
            self._begin()
        return await joining

    def _begin(self) -> None:
        """Begin a rebalance."""
        was_empty, self.phase = self.phase is Phase.EMPTY, Phase.JOINING
        for member in self.members.values():
            if member.syncing is not None and not member.syncing.done():
                member.syncing.set_result(Synced(Error.REBALANCE_IN_PROGRESS))
            member.syncing = None
        if self._deadline is not None:
            self._deadline.cancel()
        loop = asyncio.get_running_loop()
        longest = max(member.rebalance for member in self.members.values())
        wait = JOIN_SECONDS if was_empty else longest
        self._deadline = loop.call_later(wait, self._end_joining, context=COORDINATOR)
        if not was_empty:
            self._complete()

    def _end_joining(self) -> None:
        self._deadline = None
        for member in [one for one in self.members.values() if one.joining is None]:
            self._silence(member)
            del self.members[member.name]
        self._complete(is_over=True)

    def _complete(self, *, is_over: bool = False) -> None:
        """Begin the next generation once every member has asked to be part of it."""
        if self.phase is not Phase.JOINING or (self._deadline is not None and self._is_first()):
            return
        if not self.members:
            self.phase = Phase.EMPTY
            self.generation += 1
        elif is_over or all(member.joining is not None for member in self.members.values()):
            self._start_generation()
        else:
            return
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _is_first(self) -> bool:
        """Return whether an empty group still waits for further members."""
        assert self._deadline is not None
        return not self._leader and bool(self.members)

    def _start_generation(self) -> None:
        self.generation += 1
        self.rebalances += 1
        self.phase = Phase.SYNCING
        if self._leader not in self.members:
            self._leader = next(iter(self.members))
        for member in self.members.values():
            member.assignment = b""
            joining, member.joining = member.joining, None
            self._renew(member)
            if joining is not None and not joining.done():
                members = self._said() if member.name == self._leader else ()
                joining.set_result(
                    Joined(Error.NONE, member.name, self._leader, self._protocol(), self.generation, members)
                )

    def _said(self) -> tuple[tuple[str, str | None, bytes], ...]:
        return tuple((one.name, one.instance, one.protocols[0]["metadata"]) for one in self.members.values())

    def _protocol(self) -> str:
        return str(next(iter(self.members.values())).protocols[0]["name"])

    def _assign(self, assignments: Mapping[str, bytes]) -> None:
        self.phase = Phase.STABLE
        for member in self.members.values():
            member.assignment = assignments.get(member.name, b"")
            if member.syncing is not None and not member.syncing.done():
                member.syncing.set_result(Synced(Error.NONE, member.assignment))
            member.syncing = None
            self._renew(member)

    def _remove(self, member: Member, why: Error) -> None:
        self._silence(member)
        self.members.pop(member.name, None)
        for waiting, said in ((member.joining, Joined(why)), (member.syncing, Synced(why))):
            if waiting is not None and not waiting.done():
                waiting.set_result(said)  # type: ignore[arg-type]
        if not self.members:
            self._leader = ""
            self.phase = Phase.JOINING
            self._complete()
        elif self.phase is Phase.JOINING:
            self._complete()
        else:
            self._begin()

    def _renew(self, member: Member) -> None:
        self._silence(member)
        loop = asyncio.get_running_loop()
        member.expiry = loop.call_later(member.session, self._expire, member, context=COORDINATOR)

    def _expire(self, member: Member) -> None:
        """End a session; not while the member waits to be part of a generation, nor while nobody keeps sessions."""
        if self._host.is_down or self.is_loading or member.joining is not None:
            self._renew(member)
        elif self.members.get(member.name) is member:
            self._remove(member, Error.UNKNOWN_MEMBER)

    @staticmethod
    def _silence(member: Member) -> None:
        if member.expiry is not None:
            member.expiry.cancel()


def _renamed(assignments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"member": one["member"], "assignment": one["metadata"]} for one in assignments]

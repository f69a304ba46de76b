"""One consumer group of the log in memory: members, generations, sessions, committed offsets."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextvars import Context
from dataclasses import dataclass, field
from typing import Protocol

from proxy.errors import AssignmentLostError
from proxy.model import Partition
from proxy.positions.identity import Committed
from proxy.positions.sharing import Claim, share_out

COORDINATOR = Context()
"""In which the group's own timers run: they belong to no member."""


class GroupHost(Protocol):
    """The cluster, as its groups see it."""

    is_down: bool
    on_commit: Callable[[str, Mapping[Partition, Committed]], None]

    def partitions(self, topics: Collection[str]) -> list[Partition]:
        """Return all partitions of the topics, sorted."""
        ...


@dataclass(frozen=True, slots=True)
class Seat:
    """What a member gets in one generation."""

    generation: int
    partitions: tuple[Partition, ...]


@dataclass(slots=True)
class Member:
    """One member as its group sees it."""

    name: str
    topics: frozenset[str]
    session_timeout: float
    stirred: asyncio.Event
    """Set when there may be something to fetch."""
    fresh: dict[Partition, None] = field(default_factory=dict)
    """Where that may be; a fetch looks nowhere else."""
    joining: "asyncio.Future[Seat | None] | None" = None
    expiry: asyncio.TimerHandle | None = None


class Group:
    """A consumer group: who is in it, whose turn it is, what it has committed."""

    def __init__(self, cluster: GroupHost) -> None:
        self._cluster = cluster
        self._is_rebalancing = False
        self._laggards: asyncio.TimerHandle | None = None
        self.members: dict[str, Member] = {}
        self.generation = 0
        self.committed: dict[Partition, Committed] = {}
        self._seats: dict[str, Seat] = {}
        """What each member got last."""

    def join(self, member: Member, rebalance_timeout: float) -> "asyncio.Future[Seat | None]":
        """Take part in the next generation; None if the member leaves before.

        Members that have not joined after `rebalance_timeout` seconds are left out.
        """
        loop = asyncio.get_running_loop()
        known = self.members.get(member.name)
        if known is not None and known.expiry is not None:
            known.expiry.cancel()
        self.members[member.name] = member
        joining: asyncio.Future[Seat | None] = loop.create_future()
        member.joining = joining
        self._is_rebalancing = True
        if self._laggards is None:
            self._laggards = loop.call_later(rebalance_timeout, self._drop_laggards, context=COORDINATOR)
        self._complete()
        return joining

    def heartbeat(self, name: str, generation: int) -> bool:
        """Renew the member's session; True if it is to join again. Raises `AssignmentLostError` if it is no member."""
        self.check(name, generation)
        self._renew(self.members[name])
        return self._is_rebalancing

    def commit(self, name: str, generation: int, offsets: Mapping[Partition, Committed]) -> None:
        """Take the offsets; renew the member's session, as Kafka does.

        Returns whose it took.

        Raises `AssignmentLostError` if the member is not of the current generation.
        """
        self.check(name, generation)
        if self.members[name].joining is None:
            self._renew(self.members[name])
        self._cluster.on_commit(name, offsets)
        self.committed |= offsets

    def rebalance(self) -> None:
        """Have all members join again."""
        self._is_rebalancing = bool(self.members)

    def leave(self, name: str) -> None:
        """Remove the member, whether it asks for that or its session has expired."""
        member = self.members.pop(name, None)
        if member is None:
            return
        if member.expiry is not None:
            member.expiry.cancel()
        if member.joining is not None and not member.joining.done():
            member.joining.set_result(None)
        self._is_rebalancing = bool(self.members)
        self._complete()

    def renew_sessions(self) -> None:
        """Begin the session of every member anew."""
        for member in self.members.values():
            if member.joining is None:
                self._renew(member)

    def on_topic_changed(self, topic: str) -> None:
        """Have the members join again if one of them reads the topic."""
        if any(topic in member.topics for member in self.members.values()):
            self._is_rebalancing = True

    def check(self, name: str, generation: int) -> None:
        """Raise `AssignmentLostError` if the member is not of the current generation."""
        if name not in self.members or generation != self.generation:
            raise AssignmentLostError("the group has fenced this replica")

    def _renew(self, member: Member) -> None:
        if member.expiry is not None:
            member.expiry.cancel()
        loop = asyncio.get_running_loop()
        member.expiry = loop.call_later(member.session_timeout, self._expire, member.name, context=COORDINATOR)

    def _expire(self, name: str) -> None:
        """End a session, unless the log is down: who keeps the sessions is down with it."""
        if not self._cluster.is_down:
            self.leave(name)

    def _drop_laggards(self) -> None:
        self._laggards = None
        for name in [name for name, member in self.members.items() if member.joining is None]:
            self.leave(name)

    def _complete(self) -> None:
        """Begin the next generation once every member has joined."""
        joined = {name: member.joining for name, member in self.members.items() if member.joining is not None}
        if not self._is_rebalancing or len(joined) < len(self.members):
            return
        if self._laggards is not None:
            self._laggards.cancel()
            self._laggards = None
        self.generation += 1
        self._is_rebalancing = False
        claims = {}
        for name in joined:
            seat = self._seats.get(name, Seat(-1, ()))
            claims[name] = Claim(self.members[name].topics, seat.partitions, seat.generation)
        topics = frozenset().union(*(claim.topics for claim in claims.values()))
        given = share_out(claims, self._cluster.partitions(topics))
        self._seats = {name: Seat(self.generation, tuple(given[name])) for name in joined}
        for name, future in joined.items():
            member = self.members[name]
            member.joining = None
            self._renew(member)
            if not future.done():
                future.set_result(self._seats[name])

"""Fetch sessions as a broker keeps them (KIP-227): what is fetched, from where, and what was told of it last."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, Self

from proxy.model import Partition
from tests.wire.kafka.messages import Error

_NONE = 0
_FIRST, _WITHOUT = 0, -1
"""Epochs: of the fetch that begins a session, and of one that asks for none."""
MOST = 8
"""A broker keeps so many, and drops the oldest for a new one."""


@dataclass(slots=True, eq=False)
class Session:
    """One; a fetch without any is served by one that is kept nowhere."""

    number: int = _NONE
    epoch: int = _FIRST
    asked: dict[Partition, dict[str, Any]] = field(default_factory=dict)
    """What is fetched, those with records last."""
    by_id: bool = False
    """Topics stand in it by their ids, printed, instead of their names."""
    _told: dict[Partition, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def alone(cls, body: Mapping[str, Any]) -> Self:
        """Return one that ends with the fetch that asks."""
        session = cls(by_id=body.get("by_id", False))
        session.change(body)
        return session

    def change(self, body: Mapping[str, Any]) -> None:
        """Take what a fetch names and forgets."""
        for topic in body["topics"]:
            for asked in topic["partitions"]:
                self.asked[Partition(topic["topic"], asked["partition"])] = asked
        for topic in body["forgotten"]:
            for number in topic["partitions"]:
                at = Partition(topic["topic"], number)
                self.asked.pop(at, None)
                self._told.pop(at, None)

    def news(self, read: Mapping[Partition, dict[str, Any]], *, is_whole: bool) -> list[dict[str, Any]]:
        """Return of what was read what is to be told: all in the first answer, then what has changed."""
        topics: dict[str, list[dict[str, Any]]] = {}
        for at, told in read.items():
            marks = told["high_watermark"], told["log_start"]
            if is_whole or told["records"] or told["error"] or self._told.get(at) != marks:
                topics.setdefault(at.topic, []).append(told)
                self._told[at] = marks
            if told["records"] and at in self.asked:
                self.asked[at] = self.asked.pop(at)
        return [{"topic": topic, "partitions": partitions} for topic, partitions in topics.items()]


class Sessions:
    """Those of one broker."""

    def __init__(self) -> None:
        self._kept: dict[int, Session] = {}
        self._numbers = count(1)

    def of(self, body: Mapping[str, Any]) -> Session | Error:
        """Return the session that a fetch belongs to, or why there is none."""
        number, epoch = body["session"], body["session_epoch"]
        if epoch in {_FIRST, _WITHOUT}:
            self._kept.pop(number, None)
            if epoch == _WITHOUT:
                return Session.alone(body)
            session = self._new(by_id=body.get("by_id", False))
            session.change(body)
            return session
        if number not in self._kept:
            return Error.FETCH_SESSION_ID_NOT_FOUND
        session = self._kept[number]
        if session.by_id != body.get("by_id", False):
            return Error.FETCH_SESSION_TOPIC_ID_ERROR
        if epoch != session.epoch + 1:
            return Error.INVALID_FETCH_SESSION_EPOCH
        session.epoch = epoch
        session.change(body)
        return session

    def lose(self, chance: Random) -> None:
        """Forget a session, or how far it has come."""
        if self._kept:
            number = chance.choice(sorted(self._kept))
            self._kept[number].epoch += 1
            if chance.random() < 1 / 2:
                del self._kept[number]

    def _new(self, *, by_id: bool) -> Session:
        if len(self._kept) == MOST:
            del self._kept[min(self._kept)]
        session = Session(next(self._numbers), by_id=by_id)
        self._kept[session.number] = session
        return session

"""Which member of a group gets which partition: evenly, and as few as possible change hands."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from proxy.model import Partition


class Claim(NamedTuple):
    """What one member says of itself when it joins."""

    topics: frozenset[str]
    """What it reads."""
    owned: Collection[Partition] = ()
    """What it was given last ..."""
    generation: int = -1
    """... and in which generation; of two that claim one partition the later is believed."""


@dataclass(slots=True)
class _Topic:
    """The partitions of one topic, and who may read them."""

    readers: list[str]
    free: list[Partition]
    held: dict[str, list[Partition]] = field(default_factory=lambda: defaultdict(list))
    least: int = 0
    """So many every reader gets; some get one more."""


def share_out(members: Mapping[str, Claim], partitions: Iterable[Partition]) -> dict[str, list[Partition]]:
    """Return what each member gets.

    Of a topic all its readers get the same number, or one more; who gets one more is chosen so that members with the
    same topics also own the same number in all, or one more. Within that, partitions stay where they are: when one
    joins or leaves, hardly more change hands than it gets, or had. Whoever computes it gets the same.
    """
    owners = _owners(members)
    topics: dict[str, _Topic] = {}
    for partition in sorted(partitions):
        if partition.topic not in topics:
            readers = sorted(name for name, claim in members.items() if partition.topic in claim.topics)
            topics[partition.topic] = _Topic(readers, [])
        topics[partition.topic].free.append(partition)
    shared = [topic for topic in topics.values() if topic.readers]
    totals = dict.fromkeys(members, 0)
    for topic in shared:
        _keep(topic, owners, totals)
    for topic in shared:
        _fill(topic, totals)
    while sum(_level(topic, totals) for topic in shared):  # each move brings two totals closer, so it ends
        pass
    given: dict[str, list[Partition]] = {name: [] for name in members}
    for topic in shared:
        for name, held in topic.held.items():
            given[name] += held
    return {name: sorted(held) for name, held in given.items()}


def _owners(members: Mapping[str, Claim]) -> dict[Partition, str]:
    owners: dict[Partition, str] = {}
    for name, claim in sorted(members.items(), key=lambda member: (member[1].generation, member[0])):
        owners |= dict.fromkeys(claim.owned, name)
    return owners


def _keep(topic: _Topic, owners: Mapping[Partition, str], totals: dict[str, int]) -> None:
    """Leave with every reader what it had, up to its share."""
    topic.least, spare = divmod(len(topic.free), len(topic.readers))
    left = []
    for partition in topic.free:
        name = owners.get(partition, "")
        held = topic.held[name] if name in topic.readers else None
        if held is None or len(held) > topic.least or (len(held) == topic.least and not spare):
            left.append(partition)
            continue
        spare -= len(held) == topic.least
        held.append(partition)
        totals[name] += 1
    topic.free = left


def _fill(topic: _Topic, totals: dict[str, int]) -> None:
    """Give what is free first to readers that lack their share, then to those who own the least."""
    for partition in topic.free:
        held = topic.held
        name = min(
            (name for name in topic.readers if len(held[name]) <= topic.least),
            key=lambda name: (len(held[name]) == topic.least, totals[name], name),
        )
        held[name].append(partition)
        totals[name] += 1


def _level(topic: _Topic, totals: dict[str, int]) -> bool:
    """Hand what somebody has beyond the least of this topic to who owns the fewest in all; return whether it did."""
    more = [name for name in topic.readers if len(topic.held[name]) > topic.least]
    less = [name for name in topic.readers if len(topic.held[name]) <= topic.least]
    if not more or not less:
        return False
    rich, poor = max(more, key=lambda name: (totals[name], name)), min(less, key=lambda name: (totals[name], name))
    if totals[rich] - totals[poor] < 2:  # noqa: PLR2004  # one more or less is even
        return False
    topic.held[poor].append(topic.held[rich].pop())
    totals[rich] -= 1
    totals[poor] += 1
    return True

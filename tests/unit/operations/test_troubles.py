"""What keeps events from being read, and what is nearly lost, in words."""

from types import SimpleNamespace
from typing import Any

import pytest

from proxy.bridge.event_log import Standing
from proxy.congestion.retention import Span
from proxy.model import Partition
from proxy.operations.troubles import Troubles


def troubles(
    *,
    has_looked: bool = True,
    unread: tuple[str, ...] = (),
    standing: Any = None,
    outside: str | None = None,
    near: Any = None,
    refused: tuple[str, ...] = (),
) -> Troubles:
    catalog: Any = SimpleNamespace(has_looked=has_looked, unread=list(unread))
    left: dict[str, float] = near or {}
    retention: Any = SimpleNamespace(
        near=dict.fromkeys(left, 1), spans={name: Span(seconds, 3_600) for name, seconds in left.items()}
    )
    standstill: Any = SimpleNamespace(standing=lambda: standing or {}, outside=lambda: outside)
    in_force: Any = SimpleNamespace(refused=refused)
    return Troubles(catalog, standstill, retention, in_force)


def test_nothing_is_said_when_all_is_read() -> None:
    assert (troubles().unread(), troubles().nearly_lost()) == ([], [])


def test_it_is_said_why_the_group_gives_it_nothing() -> None:
    assert troubles(outside="no right").unread() == ["this replica gets no partitions: no right"]


def test_three_reasons_and_how_many_more_are_said_when_files_are_refused() -> None:
    assert troubles(refused=("a", "b", "c")).refused() == ["a", "b", "c"]
    assert troubles(refused=("a", "b", "c", "d", "e")).refused() == ["a", "b", "c", "2 more mistakes"]
    assert troubles().refused() == []


def test_it_is_said_that_nothing_is_read_when_the_log_has_not_answered() -> None:
    said = troubles(has_looked=False, unread=("a", "b")).unread()
    assert said == ["the log has not answered yet, so nothing is read"]


@pytest.mark.parametrize(
    ("unread", "said"),
    [(("orders",), "orders is not read: its topic is missing"), (("a", "b", "c", "d"), "a, b, c and 1 more are not")],
)
def test_types_are_named_when_their_topics_are_missing(unread: tuple[str, ...], said: str) -> None:
    (found,) = troubles(unread=unread).unread()
    assert found.startswith(said)


def test_partitions_are_counted_by_reason_when_they_stand_still() -> None:
    why = "node 1 at k:9092, which leads it, does not answer: no answer in time"
    standing = {Partition("t", at): Standing("node", why) for at in range(3)}
    standing[Partition("u", 0)] = Standing("leaderless", "no node leads it")
    said = ["3 partitions stand still: " + why, "1 partition stands still: no node leads it"]
    assert troubles(standing=standing).unread() == said


def test_what_is_lost_first_is_said_first_when_several_are_near() -> None:
    near = {"a": 300.0, "brand": 109.0, "c": 400.0, "d": 500.0, "e": 600.0}
    assert troubles(near=near).nearly_lost() == [
        "brand: the log may drop it in 1 min 49 s, unsent",
        "a: the log may drop it in 5 min 0 s, unsent",
        "c: the log may drop it in 6 min 40 s, unsent",
        "2 more event types likewise",
    ]

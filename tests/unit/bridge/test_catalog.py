"""Topics come, go and come back; each has one listener."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from proxy.bridge.catalog import ABSENT, Catalog
from proxy.bridge.event_log import Survey
from proxy.errors import LogError
from proxy.settings import EventType, RoutingKey
from proxy.simulation import virtual_time
from tests.support.bridge_fakes import ScriptedLog


def surveyed(*readable: str, missing: str = "", refused: str = "") -> Survey:
    return Survey(frozenset(readable), frozenset(missing.split()), frozenset(refused.split()))


class Read:
    """A catalog that wants `orders` and every topic that begins with `n`."""

    def __init__(self) -> None:
        self.log = ScriptedLog()
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.unwanted: set[str] = set()
        """Topics that the settings have no type for any more."""
        self.catalog = Catalog(
            self.log,
            lambda: {"orders": "orders"} if "orders" not in self.unwanted else {},
            self._resolve,
            lambda one: self.opened.append(one.topic),
            self.closed.append,
            60.0,
        )

    async def sees(self, survey: Survey) -> frozenset[str]:
        """Let it look at a log that answers so; return what it reads."""
        self.log.surveyed = survey
        await self.catalog.look()
        return self.log.subscribed

    def _resolve(self, topic: str) -> EventType | None:
        if topic in self.unwanted or not (topic == "orders" or topic.startswith("n")):
            return None
        return EventType(name=topic, topic=topic, priority="P1", route="r", routing_key=RoutingKey(constant="q"))


def read(story: Callable[[Read], Awaitable[None]]) -> None:
    """Live through a story under virtual time."""

    async def live() -> None:
        await story(Read())

    virtual_time.run(live())


def test_only_topics_with_an_event_type_are_read_when_the_log_has_others() -> None:
    async def story(it: Read) -> None:
        assert await it.sees(surveyed("orders", "news", "other")) == {"orders", "news"}
        assert sorted(it.opened) == ["news", "orders"]

    read(story)


def test_nothing_is_subscribed_anew_when_nothing_has_changed() -> None:
    async def story(it: Read) -> None:
        await it.sees(surveyed("orders"))
        await it.sees(surveyed("orders", "other"))
        assert it.log.subscriptions == 1

    read(story)


def test_a_topic_is_looked_for_soon_when_it_was_read_and_has_vanished() -> None:
    async def story(it: Read) -> None:
        it.log.surveyed = surveyed("orders")
        looking = asyncio.create_task(it.catalog.run())
        await asyncio.sleep(1)
        it.log.surveyed = surveyed(missing="orders")
        await asyncio.sleep(60)
        assert it.log.subscribed == frozenset()
        it.log.surveyed = surveyed("orders")
        await asyncio.sleep(ABSENT)
        assert it.log.subscribed == {"orders"}
        it.log.surveyed = surveyed()
        await asyncio.sleep(50)
        assert it.log.subscribed == {"orders"}  # nothing is absent: one look a minute
        looking.cancel()

    read(story)


def test_the_topics_are_looked_at_within_a_second_when_the_log_doubts_them() -> None:
    async def story(it: Read) -> None:
        it.log.surveyed = surveyed("orders")
        looking = asyncio.create_task(it.catalog.run())
        await asyncio.sleep(1)
        it.log.surveyed, it.log.has_doubts = surveyed(missing="orders"), True
        await asyncio.sleep(1.1)
        assert it.log.subscribed == it.catalog.topics == frozenset()
        looking.cancel()

    read(story)


def test_a_topic_keeps_its_one_listener_when_it_vanishes_and_comes_back() -> None:
    async def story(it: Read) -> None:
        await it.sees(surveyed("orders", "news"))
        assert await it.sees(surveyed("news", missing="orders")) == {"news"}
        assert await it.sees(surveyed("orders", "news")) == {"orders", "news"}
        assert sorted(it.opened) == ["news", "orders"]

    read(story)


def test_a_topic_keeps_its_one_listener_when_subscribing_failed_the_first_time() -> None:
    async def story(it: Read) -> None:
        it.log.subscribe_failure = LogError("slow")
        it.log.surveyed = surveyed("orders")
        looking = asyncio.create_task(it.catalog.run())
        await asyncio.sleep(0.5)
        it.log.subscribe_failure = None
        await asyncio.sleep(1)
        assert it.log.subscribed == {"orders"}
        assert it.opened == ["orders"]
        looking.cancel()

    read(story)


def test_a_failed_look_is_repeated_soon_and_a_good_one_after_the_interval() -> None:
    async def story(it: Read) -> None:
        it.log.failure = LogError("down")
        looking = asyncio.create_task(it.catalog.run())
        await asyncio.sleep(4.5)
        it.log.failure = None
        it.log.surveyed = surveyed("orders")
        await asyncio.sleep(1)
        assert it.log.subscribed == {"orders"}
        it.log.surveyed = surveyed("orders", "news")
        await asyncio.sleep(58)
        assert it.log.subscribed == {"orders"}
        await asyncio.sleep(2)
        assert it.log.subscribed == {"orders", "news"}
        looking.cancel()

    read(story)


def test_a_topic_out_of_reach_is_named_once_and_again_when_the_trouble_changes() -> None:
    async def story(it: Read) -> None:
        with capture_logs() as said:
            for survey in (
                surveyed(missing="orders"),
                surveyed(missing="orders"),
                surveyed(refused="orders"),
                surveyed("orders"),
                surveyed("orders"),
                surveyed(missing="orders"),
            ):
                await it.sees(survey)
        names = [entry["event"] for entry in said if entry["event"] != "topics_subscribed"]
        assert names == ["topic_missing", "topic_refused", "topic_available", "topic_missing"]
        assert {entry["topic"] for entry in said if "topic" in entry} == {"orders"}

    read(story)


def test_a_missing_topic_is_not_told_as_available_when_nobody_asks_for_it_any_more() -> None:
    async def story(it: Read) -> None:
        await it.sees(surveyed(missing="orders"))
        with capture_logs() as said:
            await it.sees(surveyed())
            await it.sees(surveyed(missing="orders"))
        assert [entry["event"] for entry in said] == ["topic_missing"]

    read(story)


def test_a_type_is_unread_from_the_start_until_its_topic_is_read_and_when_that_is_gone() -> None:
    async def story(it: Read) -> None:
        assert (it.catalog.unread, it.catalog.has_looked) == (["orders"], False)
        await it.sees(surveyed("news", missing="orders"))
        assert (it.catalog.unread, it.catalog.has_looked) == (["orders"], True)
        await it.sees(surveyed("news", "orders"))
        assert it.catalog.unread == []
        await it.sees(surveyed("orders"))
        assert it.catalog.unread == ["news"]

    read(story)


def test_a_topic_is_given_up_before_its_listener_ends_when_the_settings_drop_its_type() -> None:
    async def story(it: Read) -> None:
        await it.sees(surveyed("orders", "news"))
        it.unwanted = {"news"}
        assert await it.sees(surveyed("orders", "news")) == {"orders"}
        assert it.closed == ["news"]
        assert it.catalog.unread == []

    read(story)


def test_a_dropped_topic_has_a_new_listener_when_the_settings_name_it_again() -> None:
    async def story(it: Read) -> None:
        await it.sees(surveyed("orders"))
        it.unwanted = {"orders"}
        assert await it.sees(surveyed("orders")) == frozenset()
        it.unwanted = set()
        assert await it.sees(surveyed("orders")) == {"orders"}
        assert (it.opened, it.closed) == (["orders", "orders"], ["orders"])

    read(story)


def test_a_listener_lives_on_when_giving_up_its_topic_failed() -> None:
    async def story(it: Read) -> None:
        await it.sees(surveyed("orders", "news"))
        it.unwanted = {"news"}
        it.log.subscribe_failure = LogError("gone")
        with pytest.raises(LogError):
            await it.sees(surveyed("orders", "news"))
        assert it.closed == []
        it.log.subscribe_failure = None
        await it.sees(surveyed("orders", "news"))
        assert it.closed == ["news"]

    read(story)


def test_the_log_is_looked_at_at_once_when_that_is_called_for() -> None:
    async def story(it: Read) -> None:
        it.log.surveyed = surveyed("orders")
        running = asyncio.create_task(it.catalog.run())
        await asyncio.sleep(1.5)
        it.log.surveyed = surveyed("orders", "news")
        it.catalog.look_soon()
        await asyncio.sleep(0.01)
        assert it.opened == ["orders", "news"]
        running.cancel()

    read(story)

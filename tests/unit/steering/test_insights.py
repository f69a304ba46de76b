"""What the broker's statistics add: told while fresh, unknown when blind, and never in the data's way."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping

from structlog.testing import capture_logs

from proxy.bridge.broker import QueueInsight
from proxy.errors import BrokerError
from proxy.simulation import virtual_time
from proxy.steering.insights import Insights


class ScriptedInsights:
    """Tells what the test puts in, or fails."""

    def __init__(self) -> None:
        self.unacked: dict[str, int] = {}
        self.failure: BrokerError | None = None
        self.asked = 0
        self.delay = 0.01
        self.is_closed = False

    async def ask(self, queues: Collection[str]) -> Mapping[str, QueueInsight | None]:
        await asyncio.sleep(self.delay)
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return {queue: QueueInsight(0, self.unacked[queue], 0) if queue in self.unacked else None for queue in queues}

    async def close(self) -> None:
        self.is_closed = True


def watched(story: Callable[[ScriptedInsights, Insights], Awaitable[None]]) -> list[str]:
    """Watch `a` and `b` every 2 s while a story is lived; return what was said."""

    async def live() -> None:
        source = ScriptedInsights()
        insights = Insights(source, ["a", "b"], 2.0)
        running = asyncio.create_task(insights.run())
        await story(source, insights)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert source.is_closed

    with capture_logs() as said:
        virtual_time.run(live())
    return [entry["event"] for entry in said]


async def _grow(source: ScriptedInsights, seconds: int) -> None:
    for _ in range(seconds):
        source.unacked["a"] = source.unacked.get("a", 0) + 50
        await asyncio.sleep(1.0)


def test_growth_is_told_by_queue_when_consumers_have_stopped() -> None:
    async def story(source: ScriptedInsights, insights: Insights) -> None:
        source.unacked = {"b": 7}
        assert insights.is_growing("a") is None
        await _grow(source, 10)
        assert (insights.is_growing("a"), insights.is_growing("b")) == (True, False)
        del source.unacked["a"]
        await asyncio.sleep(3)
        assert (insights.of("a"), insights.is_growing("a")) == (None, None)

    assert watched(story) == []


def test_nothing_is_known_after_three_intervals_and_it_is_said_once_when_questions_fail() -> None:
    async def story(source: ScriptedInsights, insights: Insights) -> None:
        await _grow(source, 10)
        source.failure = BrokerError("refused")
        await asyncio.sleep(4)
        assert insights.is_growing("a") is True
        assert insights.is_blind
        await asyncio.sleep(6)
        assert insights.is_growing("a") is None
        assert insights.is_blind
        source.failure = None
        await asyncio.sleep(3)
        assert insights.of("a") is not None
        assert not insights.is_blind

    assert watched(story) == ["insights_blind", "insights_back"]


def test_the_broker_is_asked_less_often_when_its_answers_take_long() -> None:
    async def story(source: ScriptedInsights, insights: Insights) -> None:
        source.unacked, source.delay = {"a": 7}, 1.0
        await asyncio.sleep(60)
        assert source.asked <= 7
        assert insights.of("a") is not None

    assert watched(story) == []


def test_nobody_is_asked_when_no_queue_is_watched() -> None:
    async def live() -> list[int]:
        source = ScriptedInsights()
        insights = Insights(source, [], 2.0)
        task = asyncio.create_task(insights.run())
        await asyncio.sleep(10)
        asked = [source.asked]
        insights.watch(["q"])
        await asyncio.sleep(1)
        task.cancel()
        return [*asked, source.asked]

    assert virtual_time.run(live()) == [0, 1]

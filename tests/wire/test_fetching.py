"""Fetches that wait for nothing but their answer take no task; real client inside, scripted brokers, virtual time."""

import asyncio
import gc
from typing import Any

import pytest

from tests.wire.bridge import GROUP, KAFKA, PLACE, TOPIC, Bridge, lived, until


def fetcher(bridge: Bridge) -> Any:
    return bridge.log._consumer._fetcher


def test_a_fetch_takes_no_task_when_its_node_is_connected() -> None:
    async def story() -> None:
        async with Bridge.running() as bridge:
            bridge.produce()
            await bridge.arrived()
            await until(lambda: fetcher(bridge)._answers)
            assert not fetcher(bridge)._pending_tasks
            assert fetcher(bridge)._in_flight == {1}

    lived(story)


@pytest.mark.parametrize(("knows_ids", "fetches_by_id"), [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("keeps_sessions", [True, False])
def test_everything_arrives_whatever_the_node_knows_of_ids_and_keeps_of_sessions(
    *, knows_ids: bool, fetches_by_id: bool, keeps_sessions: bool
) -> None:
    def prepare(bridge: Bridge) -> None:
        bridge.kafka.knows_ids, bridge.kafka.fetches_by_id = knows_ids, fetches_by_id
        bridge.kafka.keeps_sessions = keeps_sessions

    async def story() -> None:
        async with Bridge.running(prepare=prepare) as bridge:
            for _ in range(20):
                bridge.produce()
                await bridge.arrived()
            assert len(bridge.received) == bridge.produced == 20
            assert bridge.kafka.fetched_by_id is (knows_ids and fetches_by_id)

    lived(story)


@pytest.mark.parametrize("fetches_by_id", [True, False])
def test_a_topic_is_read_from_its_beginning_when_it_is_made_anew(*, fetches_by_id: bool) -> None:
    def prepare(bridge: Bridge) -> None:
        bridge.kafka.fetches_by_id = fetches_by_id

    async def story() -> None:
        async with Bridge.running(prepare=prepare) as bridge:
            for _ in range(3):
                bridge.produce()
            await bridge.arrived()
            bridge.kafka.recreate_topic(TOPIC, 1)
            for _ in range(5):
                bridge.produce()
            committed, new = bridge.kafka.group(GROUP).committed, bridge.kafka.tracks[PLACE]

            def is_read() -> bool:
                """Whether it is said of the new topic: until that is noticed, its end is read as the old one's."""
                held = committed.get(PLACE)
                return held is not None and (held.offset, held.topic_id) == (new.end, new.topic_id)

            await until(is_read)
            bridge.take()
            assert new.end == 5
            assert set(bridge.received) == set(range(8)), "nothing before the old position is passed over"
            assert bridge.kafka.fetched_by_id is fetches_by_id

    lived(story)


def test_fetching_goes_on_when_the_connection_is_lost_under_a_fetch() -> None:
    async def story() -> None:
        async with Bridge.running() as bridge:
            for _ in range(20):
                await until(lambda: fetcher(bridge)._answers)
                bridge.loop.network.reset(f"{KAFKA}:9092")
                bridge.produce()
                await bridge.arrived()
            assert len(bridge.received) == bridge.produced == 20

    lived(story)


def test_nothing_is_under_way_when_reading_has_ended() -> None:
    async def story() -> None:
        async with Bridge.running() as bridge:
            bridge.produce()
            await bridge.arrived()
            await until(lambda: fetcher(bridge)._answers)
        assert not fetcher(bridge)._answers
        assert not fetcher(bridge)._pending_tasks

    lived(story)


# A process that ends by a fault of ours has not closed its connections.
@pytest.mark.filterwarnings("ignore:Unclosed AIOKafkaConnection:ResourceWarning")
@pytest.mark.filterwarnings("ignore:loop is closed:ResourceWarning")
def test_reading_ends_with_the_reason_when_what_an_answer_brings_can_not_be_taken_in() -> None:
    def fails(*_: Any) -> bool:
        raise ZeroDivisionError("a fault of ours")

    async def story() -> None:
        async with Bridge.running() as bridge:
            fetcher(bridge)._take_in = fails
            bridge.produce()
            await asyncio.sleep(5)

    with pytest.raises(BaseException) as raised:  # noqa: PT011  # a group of groups
        lived(story)
    assert "a fault of ours" in "".join(map(str, _leaves(raised.value)))
    del raised
    gc.collect()  # or another test would be told of what this one left


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    return [error]

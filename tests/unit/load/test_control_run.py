"""What a scenario on real brokers offers, how its consumers work, what is made of all that is seen."""

import asyncio
import math
import random
import time
from collections import Counter
from dataclasses import replace

import pytest

from load.control import generator, offer
from load.control.calibration import share_at
from load.control.hands import Hand
from load.control.happenings import for_real, impossible, left_out, needs_management
from load.control.payload import FIRST, LEAST, Mark, decode, encode, filler
from load.control.record import Record
from load.control.replicas import placed
from load.control.run import arguments
from load.sender import Record as Written
from proxy.simulation import scenario_file
from proxy.simulation.figures import Figures
from proxy.simulation.scenario import Expectation, Happening, Queue, Rate, RouteIn, Scenario, Stream
from proxy.simulation.trace import QueueSample
from tests.support.scenarios import plain


def scenario(**changes: object) -> Scenario:
    expected = Expectation(figure="use", at_least=0.9, why="for a test")
    return plain(expected, streams={"orders": Stream(priority="P1", rate=20.0, types=2)}).model_copy(update=changes)


JOINED = {
    "orders": Stream(priority="P1", rate=20.0, types=2, partitions=3),
    "old": Stream(priority="P1", rate={"backlog": 7, "age": 3600}, types=2, partitions=2, joins="orders"),
    "late": Stream(priority="P1", rate=5.0, types=2, joins="orders"),
}
"""Two topics of six partitions."""


def hand(*, mean: float = 1.0) -> Hand[str]:
    return Hand(mean, "constant", random.Random(1))


class TestPayload:
    def test_an_event_says_which_it_is_and_has_the_size_asked_for(self) -> None:
        value = encode(3, 1, 70_000, 12.5, filler(256))

        assert len(value) == 256
        assert decode(value) == Mark(3, 1, 70_000, 12.5)

    def test_what_others_published_is_no_event(self) -> None:
        assert decode(bytes(256)) is None
        assert decode(encode(0, 0, 0, 0.0, b"")[: LEAST - 1]) is None


class TestHands:
    def test_work_begins_when_the_hand_was_free_when_its_timer_fires_late(self) -> None:
        one = hand()
        one.take("a", 0.0)
        one.take("b", 0.1)
        assert one.begin() == ("a", 0.0)
        assert one.finish(0.9) is None

        assert one.finish(1.4) == "a"
        assert one.begin() == ("b", 1.0)

    def test_work_begins_when_it_comes_when_the_hand_has_waited(self) -> None:
        one = hand()
        one.take("a", 5.0)

        assert one.begin() == ("a", 5.0)

    def test_what_is_left_of_the_present_work_takes_as_much_longer_when_the_pace_falls(self) -> None:
        one = hand()
        one.take("a", 0.0)
        one.begin()
        one.change(10.0, 0.5)

        assert one.finish(5.4) is None
        assert one.finish(5.5) == "a"

    def test_a_stalled_hand_neither_ends_nor_begins_and_goes_on_afterwards(self) -> None:
        one = hand()
        one.take("a", 0.0)
        one.take("b", 0.0)
        one.begin()
        one.change(None, 0.5)
        assert one.finish(60.0) is None

        one.change(1.0, 60.0)
        assert one.finish(60.0) == "a"
        assert one.begin() == ("b", 60.0)

    def test_all_that_is_not_finished_is_given_back_when_it_leaves(self) -> None:
        one = hand()
        for name in "abc":
            one.take(name, 0.0)
        one.begin()

        assert one.give_back() == ["a", "b", "c"]
        assert one.begin() is None

    def test_a_dear_event_takes_as_much_longer(self) -> None:
        one = hand(mean=0.5)
        one.take("a", 0.0, cost=10)
        one.take("b", 0.0)
        one.begin()
        assert one.finish(4.9) is None
        assert one.finish(5.0) == "a"
        assert one.begin() == ("b", 5.0)
        assert one.expected == 5.5

    @pytest.mark.parametrize("service", ["uniform", "exponential", "constant"])
    def test_work_takes_its_mean_on_average(self, service: str) -> None:
        one = replace(hand(mean=0.01), service=service)
        for _ in range(20_000):
            one.take("a", 0.0)
            one.begin()
            one.finish(math.inf)

        assert one.drawn == pytest.approx(one.expected, rel=0.03)
        assert one.expected == pytest.approx(200)


class TestOffer:
    def test_events_are_due_evenly_and_types_take_turns(self) -> None:
        due = list(offer.schedule(scenario()))

        assert len(due) == 199
        assert Counter(one.topic for one in due) == {0: 100, 1: 99}
        assert all(one.at == pytest.approx((place + 1) / 20) for place, one in enumerate(due))

    def test_streams_come_in_one_order_when_their_rates_differ(self) -> None:
        step = [[0, 0], [5, 0], [5, 1000]]
        both = scenario(
            streams={
                "orders": Stream(priority="P1", rate=20.0),
                "campaign": Stream(priority="P3", rate=step, partitions=3),
            }
        )
        due = list(offer.schedule(both))
        campaign = [one for one in due if one.topic == 1]

        assert due == sorted(due)
        assert len(campaign) == pytest.approx(5000, abs=5)
        assert campaign[0].at >= 5
        assert {one.partition for one in campaign} == {0, 1, 2}

    def test_only_the_active_types_have_events_and_give_way_to_the_next(self) -> None:
        few = scenario(streams={"orders": Stream(priority="P1", rate=20.0, types=6, active=2, rotation=5.0)})
        due = list(offer.schedule(few))

        assert {one.topic for one in due if one.at < 5} == {0, 1}
        assert {one.topic for one in due if one.at > 5} == {2, 3}

    def test_endless_streams_are_in_the_log_before_and_are_more_than_can_be_taken(self) -> None:
        endless = scenario(streams={"campaign": Stream(priority="P3", rate="endless", types=4)})
        counts = offer.preload(endless)

        assert list(offer.schedule(endless)) == []
        assert set(counts) == {(0, 0), (1, 0), (2, 0), (3, 0)}
        assert sum(counts.values()) > 100 * 10 * 1.25
        assert offer.preload_bytes(endless) == sum(counts.values()) * 256

    def test_a_capacity_that_doubles_is_reckoned_with(self) -> None:
        endless = {"campaign": Stream(priority="P3", rate="endless")}
        doubled = (Happening(name="step", at=5, what="capacity", to=200),)

        assert offer.preload(scenario(streams=endless, events=doubled))[0, 0] > 1.9 * 1.25 * 1000

    def test_a_stream_that_joins_comes_in_partitions_of_its_own_of_the_other_s_topics(self) -> None:
        joined = scenario(streams=JOINED)
        due = list(offer.schedule(joined))

        assert [(one.name, one.partitions) for one in offer.topics(joined)] == [("orders-0", 6), ("orders-1", 6)]
        assert {(one.topic, one.partition) for one in due} == {(at, part) for at in (0, 1) for part in (0, 1, 2, 5)}
        assert Counter(one.partition == 5 for one in due) == {False: 199, True: 49}

    def test_a_backlog_is_never_due_lies_in_all_its_partitions_and_is_older_from_front_to_back(self) -> None:
        joined = scenario(streams=JOINED)
        laid = offer.backlogs(joined)

        assert {place: old.events for place, old in laid.items()} == {(0, 3): 2, (0, 4): 2, (1, 3): 2, (1, 4): 1}
        assert laid[0, 3].instants(0, 9) == [-3600.0, -1800.0]
        assert laid[0, 3].instants(1, 2) == [-1800.0]
        assert not laid.keys() & {(one.topic, one.partition) for one in offer.schedule(joined)}
        assert offer.preload_bytes(joined) == 7 * 256


class TestGenerator:
    def test_old_events_are_written_in_their_order_and_say_when_they_were_due(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        written: dict[tuple[str, int], list[Written]] = {}

        class Kafka:
            def __init__(self, _: str) -> None:
                """Keep what is written."""

            async def send(self, topic: str, partition: int, records: list[Written], _: object) -> None:
                written.setdefault((topic, partition), []).extend(records)

        monkeypatch.setattr(generator, "Sender", Kafka)
        monkeypatch.setattr(generator, "OLD_AT_ONCE", 2)
        joined = scenario(streams=JOINED | {"old": JOINED["old"].model_copy(update={"rate": Rate(backlog=20, age=60)})})
        record, start = Record(joined), time.monotonic()
        one = generator.Generator("kafka:1", offer.topics(joined))
        asyncio.run(one.lay(offer.backlogs(joined), start, record.on_laid))

        assert {place: len(records) for place, records in written.items()} == {
            (topic, part): 5 for topic in ("orders-0", "orders-1") for part in (3, 4)
        }
        marks = [decode(record.value) for record in written["orders-1", 4]]
        assert marks == [Mark(1, 4, FIRST + at, pytest.approx(start - 60 + 12 * at)) for at in range(5)]
        ages = [time.time() - record.at_ms / 1000 for record in written["orders-1", 4]]
        assert ages == pytest.approx([60, 48, 36, 24, 12], abs=5)
        assert record.trace.offered["old"].between(0, 0.1) == 20


class TestRecord:
    def test_times_count_from_the_due_instant_and_from_the_start_of_the_run(self) -> None:
        record = Record(scenario(), start=100.0)
        record.on_begun("work", 102.5, Mark(1, 0, 0, 102.0))
        record.on_begun("work", 99.0, Mark(1, 0, 1, 98.0))
        record.on_begun("work", 103.0, None)

        assert list(record.trace.consumed["orders"].at) == [2.5]
        assert list(record.trace.consumed["orders"].seconds) == [0.5]
        assert record.trace.worked["work"].between(0, 10) == 2

    def test_an_event_is_its_stream_s_and_costs_as_much_when_streams_share_a_topic(self) -> None:
        streams = {name: stream.model_copy(update={"cost": 3}) for name, stream in JOINED.items()}
        record = Record(scenario(streams=streams), start=100.0)
        record.on_begun("work", 102.5, Mark(1, 2, 0, 102.0))
        record.on_begun("work", 104.0, Mark(1, 3, 0, -3500.0))
        record.on_begun("work", 105.0, Mark(0, 5, 0, 104.0))
        record.on_due(offer.Due(1.0, 0, 5))

        assert {name: list(times.seconds) for name, times in record.trace.consumed.items()} == {
            "orders": [0.5],
            "old": [3604.0],
            "late": [1.0],
        }
        assert record.trace.worked["work"].between(0, 10) == 9
        assert record.trace.offered["late"].between(0, 10) == 1

    def test_what_a_queue_took_in_is_what_it_holds_more_and_gave_out_less_what_others_published(self) -> None:
        record = Record(scenario(), start=0.0)
        record.on_sample("work", QueueSample(0.0, 5, 0, 100.0, 0.0, work=5), delivered=10, foreign=0)
        record.on_sample("work", QueueSample(0.05, 8, 0, 100.0, 20.0, work=8), delivered=14, foreign=1)

        assert record.trace.admitted["work"].between(0, 1) == 6

    def test_what_waited_cost_what_came_out_next(self) -> None:
        streams = {"orders": Stream(priority="P1", rate=20.0), "campaign": Stream(priority="P3", rate=2.0, cost=10)}
        record = Record(scenario(streams=streams), start=0.0)
        record.on_stored("work", Mark(0, 0, 0, 0.0))
        record.on_sample("work", QueueSample(0.0, 2, 0, 100.0, 0.0, work=2), delivered=1, foreign=0)
        record.on_stored("work", Mark(1, 0, 0, 0.0))
        record.on_stored("work", None)
        record.on_sample("work", QueueSample(0.05, 4, 0, 100.0, 0.0, work=4), delivered=2, foreign=0)
        record.on_left("work", [Mark(1, 0, 1, 0.0)], set())
        record.on_begun("work", 0.1, Mark(1, 0, 0, 0.0))
        record.weigh("work")

        assert [sample.work for sample in record.trace.queues["work"]] == [11, 10]
        assert record.trace.worked["work"].between(0, 1) == 10

    def test_consumers_lose_less_between_events_when_these_are_dear(self) -> None:
        streams = {"orders": Stream(priority="P1", rate=20.0), "campaign": Stream(priority="P3", rate=2.0, cost=10)}
        record = Record(scenario(streams=streams), start=0.0)
        assert record.mean_cost("work") == 1.0
        for topic in (0, 0, 1):
            record.on_stored("work", Mark(topic, 0, 0, 0.0))

        assert record.mean_cost("work") == 4.0
        assert share_at(0.9, 1.0) == pytest.approx(0.9)
        assert share_at(0.9, 4.0) == pytest.approx(4 / (4 + 1 / 9))

    def test_committed_events_that_came_out_of_no_queue_are_lost_and_repeated_ones_are_duplicates(self) -> None:
        record = Record(scenario(), start=0.0)
        for number in (0, 1, 1, 3):
            record.on_stored("work", Mark(0, 0, FIRST + number, 0.0))
        left = [Mark(0, 0, FIRST + 3, 0.0), Mark(0, 0, FIRST + 4, 0.0), None]
        record.on_left("work", left, {Mark(0, 0, FIRST + 3, 0.0)})
        record.account({(0, 0): FIRST + 5, (1, 0): FIRST + 2})

        assert record.trace.lost == 3  # the third, and both of the other topic
        assert record.trace.duplicates == 1

    def test_use_is_counted_against_what_the_consumers_took_of_a_full_queue(self) -> None:
        record = Record(scenario(), start=0.0)
        for tick in range(201):
            record.on_sample("work", QueueSample(tick * 0.05, 1, 0, 100.0, 0.0, work=1), delivered=0, foreign=0)
        for number in range(850):
            record.on_begun("work", 1.0 + number / 100, None)
        record.scale("work", 0.95)

        assert Figures(scenario(), record.trace).value("use") == pytest.approx(850 / 9 / 95, rel=0.01)


class TestPlaces:
    def test_everything_at_the_brokers_is_called_by_the_run(self) -> None:
        told = placed(scenario_file.document(scenario(), "static", (), kafka="k:1", rabbitmq="r:1"), "run-1")

        assert told["log"] == {"hosts": ["k:1"], "group": "run-1"}
        assert told["routes"]["shop"]["exchange"] == "run-1.shop"
        assert told["routes"]["shop"]["queues"] == ["run-1.work"]
        assert told["event_types"]["orders-types"]["topics"] == ["run-1.orders-0", "run-1.orders-1"]

    def test_a_route_that_is_not_watched_stays_so(self) -> None:
        blind = scenario(routes={"shop": RouteIn(queues=("work",), watched=False)})

        assert "queues" not in placed(scenario_file.document(blind, "static"), "run-1")["routes"]["shop"]

    def test_queues_are_declared_with_their_bound_and_kind(self) -> None:
        assert arguments(Queue(capacity=300)) == {"x-max-length": 600, "x-overflow": "reject-publish"}
        assert arguments(Queue(capacity=300, bound=None, kind="quorum")) == {"x-queue-type": "quorum"}
        assert "x-max-priority" in arguments(Queue(capacity=300, kind="priority"))


class TestWhatCanHappen:
    stall = Happening(name="stall", at=5, what="paging_stall", seconds=1)
    step = Happening(name="step", at=2, what="capacity", to=50)

    def test_a_scenario_of_nothing_but_the_impossible_is_skipped_with_the_reason(self) -> None:
        assert "stall (paging_stall): " in (impossible(scenario(events=(self.stall,))) or "")
        assert impossible(scenario(only="sim")) is not None
        assert impossible(scenario(events=(self.stall, self.step))) is None
        assert impossible(scenario()) is None

    def test_a_stack_serves_the_management_api_when_a_scenario_that_can_run_tells_of_it(self) -> None:
        told = scenario(management=True)

        assert needs_management([scenario(), told])
        assert not needs_management([scenario(), told.model_copy(update={"only": "sim"})])

    def test_what_can_not_happen_is_left_out_together_with_what_was_expected_of_it(self) -> None:
        expect = tuple(
            Expectation(figure=figure, at_most=1, why="for a test", only=only)
            for figure, only in (
                ("settled_after.stall", None),
                ("settled_after.step", None),
                ("told.blind", None),
                ("use", "sim"),
            )
        )
        mixed = scenario(events=(self.stall, self.step), expect=expect)

        assert for_real(mixed).events == (self.step,)
        assert [one.figure for one in for_real(mixed).expect] == ["settled_after.step", "told.blind"]
        assert len(left_out(mixed)) == 1

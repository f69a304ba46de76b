"""Whatever the broker confirms, in whatever order and ranges: every tag is resolved once, as it was confirmed."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.bridge.broker import Address, Batch
from proxy.model import Event, Outcome, Partition, Reason
from proxy.publish_lane.ledger import Ledger
from proxy.publish_lane.message_ids import message_id
from proxy.publish_lane.outcomes import Resolved
from proxy.settings import RoutingKey

ADDRESS = Address("", RoutingKey(constant="q"), "text/plain")


class Nobody:
    def may_send(self) -> bool:
        return True

    def on_outcome(self, *_: object, **__: object) -> None:
        raise AssertionError


def batch_of(count: int, number: int) -> Batch:
    events = [Event(position, 0, None, b"x", (), 1) for position in range(count)]
    return Batch(Partition("t", number), events, 0, ADDRESS, 0, Nobody())


class Model:
    """Tags one by one."""

    def __init__(self) -> None:
        self.open: dict[int, tuple[Batch, int]] = {}
        self.returned: set[int] = set()

    def confirm(self, tag: int, *, multiple: bool, acked: bool) -> dict[tuple[int, int], Outcome]:
        last = tag or max(self.open, default=0)
        tags = [one for one in self.open if one == tag or (multiple and one <= last)]
        ends = {}
        for one in tags:
            batch, index = self.open.pop(one)
            accepted = Outcome.UNDELIVERABLE if one in self.returned else Outcome.CONFIRMED
            ends[batch.partition.number, index] = accepted if acked else Outcome.NACKED
        return ends


def flat(resolved: Sequence[Resolved]) -> dict[tuple[int, int], Outcome]:
    ends: dict[tuple[int, int], Outcome] = {}
    for one in resolved:
        for index in range(one.start, one.end):
            assert (one.batch.partition.number, index) not in ends
            ends[one.batch.partition.number, index] = one.outcome
    return ends


steps = st.one_of(
    st.tuples(st.just("write"), st.integers(1, 30)),
    st.tuples(st.sampled_from(["ack", "nack"]), st.integers(0, 200), st.booleans()),
    st.tuples(st.just("return"), st.integers(0, 200)),
)


@given(st.lists(steps, max_size=60))
@settings(max_examples=500)
def test_each_tag_is_resolved_once_and_rightly_whatever_is_confirmed(history: list[tuple[object, ...]]) -> None:
    ledger, model = Ledger(), Model()
    ended: dict[tuple[int, int], Outcome] = {}
    for number, step in enumerate(history):
        match step:
            case ("write", int(count)):
                batch = batch_of(count + 2, number)
                for index in range(1, count + 1):
                    model.open[ledger.next_tag + index - 1] = batch, index
                ledger.add(batch, 1, count + 1, now=float(number))
            case ("return", int(tag)):
                if tag in model.open and tag not in model.returned:
                    batch, index = model.open[tag]
                    model.returned.add(tag)
                    assert ledger.on_return(message_id(batch.address, batch.partition, batch.events[index]), "no route")
            case (str(kind), int(tag), bool(multiple)):
                resolved = ledger.confirm(tag, multiple=multiple, acked=kind == "ack", now=100.0)
                ends = flat(resolved)
                assert ends == model.confirm(tag, multiple=multiple, acked=kind == "ack")
                assert not ended.keys() & ends.keys()
                assert all(one.seconds == 100.0 - one.batch.partition.number for one in resolved)
                ended |= ends
        assert ledger.count == len(model.open)
        written = None if ledger.oldest is None else ledger.oldest.written
        assert written == min((float(b.partition.number) for b, _ in model.open.values()), default=None)
    rest = flat(ledger.abandon(Outcome.UNKNOWN))
    assert rest.keys() == {(batch.partition.number, index) for batch, index in model.open.values()}
    assert (ledger.count, ledger.oldest) == (0, None)


@given(st.integers(1, 300), st.integers(1, 5))
def test_one_range_per_slice_is_told_when_all_is_confirmed_at_once(count: int, slices: int) -> None:
    ledger = Ledger()
    batch = batch_of(count * slices, 0)
    for start in range(0, count * slices, count):
        ledger.add(batch, start, start + count, now=0.0)
    assert len(ledger.confirm(count * slices, multiple=True, acked=True, now=1.0)) == slices


def test_a_return_is_unknown_when_its_message_is_not_open() -> None:
    ledger = Ledger()
    batch = batch_of(3, 0)
    ledger.add(batch, 0, 3, now=0.0)
    ledger.confirm(1, multiple=False, acked=True, now=1.0)
    assert not ledger.on_return(message_id(batch.address, batch.partition, batch.events[0]), "no route")


def test_the_earlier_is_returned_first_when_one_event_is_out_twice() -> None:
    ledger = Ledger()
    for batch in (batch_of(1, 0), batch_of(1, 0)):
        ledger.add(batch, 0, 1, now=0.0)
        last = batch
    returned = message_id(last.address, last.partition, last.events[0])
    assert ledger.on_return(returned, "first")
    (one,) = ledger.confirm(1, multiple=False, acked=True, now=1.0)
    assert (one.outcome, one.reason, one.detail) == (Outcome.UNDELIVERABLE, Reason.UNROUTABLE, "first")
    assert ledger.on_return(returned, "second")
    (one,) = ledger.confirm(2, multiple=False, acked=True, now=1.0)
    assert one.detail == "second"


def test_the_later_was_returned_when_one_event_is_out_twice_and_the_earlier_is_nacked() -> None:
    ledger = Ledger()
    for batch in (batch_of(1, 0), batch_of(1, 0)):
        ledger.add(batch, 0, 1, now=0.0)
        last = batch
    assert ledger.on_return(message_id(last.address, last.partition, last.events[0]), "no route")
    (one,) = ledger.confirm(1, multiple=False, acked=False, now=1.0)
    assert one.outcome is Outcome.NACKED
    (one,) = ledger.confirm(2, multiple=False, acked=True, now=1.0)
    assert (one.outcome, one.reason) == (Outcome.UNDELIVERABLE, Reason.UNROUTABLE)


def test_each_message_is_looked_at_once_when_a_whole_window_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = Counter[bytes]()

    def counted(address: Address, partition: Partition, event: Event) -> bytes:
        found = message_id(address, partition, event)
        looked[found] += 1
        return found

    monkeypatch.setattr("proxy.publish_lane.ledger.message_id", counted)
    ledger, batch = Ledger(), batch_of(2_000, 0)
    for start in range(0, 2_000, 2):
        ledger.add(batch, start, start + 2, now=0.0)
    for event in batch.events:
        assert ledger.on_return(message_id(batch.address, batch.partition, event), "no route")
    assert set(looked.values()) == {1}
    ends = flat(ledger.confirm(2_000, multiple=True, acked=True, now=1.0))
    assert set(ends.values()) == {Outcome.UNDELIVERABLE}

"""Confirms and returns in any order, with any tags, cut anywhere by TCP: every event ends once, as it was told."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pamqp import commands, frame
from pamqp.header import ContentHeader

from proxy.model import Outcome
from proxy.publish_lane.message_ids import message_id
from tests.support.events import ADDRESS, PARTITION, events
from tests.support.told_lane import ToldLane


def returned(number: int, size: int) -> bytes:
    (event,) = events(number, number + 1)
    properties = commands.Basic.Properties(message_id=message_id(ADDRESS, PARTITION, event).decode())
    parts: list[Any] = [commands.Basic.Return(312, "NO_ROUTE", "exchange", "queue"), ContentHeader(0, size, properties)]
    parts += [frame.body.ContentBody(bytes(1))] * size
    return b"".join(frame.marshal(part, 1) for part in parts)


class Model:
    """The open tags, one by one: tag n is event n - 1."""

    def __init__(self) -> None:
        self.next_tag = 2
        self.open: set[int] = set()
        self.came_back: set[int] = set()
        self.ends: dict[object, Outcome] = {"p0": Outcome.CONFIRMED}

    def write(self, count: int) -> None:
        self.open |= set(range(self.next_tag, self.next_tag + count))
        self.next_tag += count

    def confirm(self, tag: int, *, multiple: bool, acked: bool) -> None:
        for one in {one for one in self.open if one == tag or (multiple and (one <= tag or not tag))}:
            self.open.remove(one)
            accepted = Outcome.UNDELIVERABLE if one in self.came_back else Outcome.CONFIRMED
            self.ends[f"p{one - 1}"] = accepted if acked else Outcome.NACKED


tags = st.integers(0, 40) | st.sampled_from([2**31, 2**63 - 1])
told = st.one_of(
    st.tuples(st.just("return"), st.integers(0, 40), st.integers(0, 5)),
    st.tuples(st.sampled_from(["ack", "nack"]), tags, st.booleans()),
)
rounds = st.lists(st.tuples(st.integers(0, 12), st.lists(told, max_size=12)), min_size=1, max_size=5)
anywhere = st.lists(st.integers(0, 2_000), max_size=12)


@settings(max_examples=40)
@given(rounds, anywhere)
def test_every_event_ends_once_as_it_was_told_when_confirms_come_in_any_order_and_cut(
    history: list[tuple[int, list[tuple[str, int, int]]]], cuts: list[int]
) -> None:
    async def told_and_checked() -> None:
        model, count = Model(), 1
        async with ToldLane.open() as stage:
            for written, said in history:
                await stage.publish(written)
                model.write(written)
                data = b""
                for kind, number, more in said:
                    if kind == "return":
                        data += returned(number, more)
                        model.came_back |= {number + 1} & model.open
                    else:
                        value = (commands.Basic.Ack if kind == "ack" else commands.Basic.Nack)(number, bool(more))
                        data += frame.marshal(value, 1)
                        model.confirm(number, multiple=bool(more), acked=kind == "ack")
                count += len(said)
                await stage.say(data, cuts)
                await stage.connector.told.counted(count)
                await stage.recorder.ended(len(model.ends))
                assert {end.position: end.outcome for end in stage.recorder.ends} == model.ends
                assert stage.lane.in_flight == len(model.open) == stage.lane._window.bytes
            model.confirm(0, multiple=True, acked=True)
            stage.server.say(commands.Basic.Ack(0, multiple=True))
            await stage.recorder.ended(len(model.ends))
            assert {end.position: end.outcome for end in stage.recorder.ends} == model.ends
            assert stage.lane.in_flight == stage.lane._window.bytes == 0

    asyncio.run(told_and_checked())

"""A dead letter tells the whole event: what is sent again is what would have been sent, and one header more."""

from itertools import chain
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proxy.bridge.broker import Address
from proxy.bridge.letter_queue import Illegible, TakenLetter
from proxy.model import Event, Origin, Partition
from proxy.publish_lane.envelope import Envelope
from proxy.publish_lane.headers import UnfitError
from proxy.publish_lane.letters import IllegibleError, read_letter
from proxy.redrive.choice import Choice, Going, Wanted
from proxy.settings import BrokerSettings, EventType, LogSettings, Route, RoutingKey, Settings
from tests.properties.test_any_event import any_event, sources
from tests.support.amqp_messages import Message, read

PARTITION = Partition("orders.a-b", 3)
NOTES = (("tidegate-type", "orders"), ("tidegate-reason", "unroutable"), ("tidegate-topic-id", "id"))
DEAD = Address("", RoutingKey(constant="dead"), "text/plain", notes=NOTES, lenient=True)


def encoded(address: Address, event: Event) -> bytes:
    return Envelope(address, PARTITION, channel=7, frame_max=131_072, event_bytes=20_000, headers=24).encode(event)


def told(message: Message) -> Any:
    return read_letter(
        message.headers,
        message_id=message.properties.message_id,
        content_type=message.properties.content_type,
        body=message.body,
    )


def settings(origin: Origin, source: RoutingKey) -> Settings:
    kind = EventType(
        name="orders", topic=PARTITION.topic, priority="P1", route="r", routing_key=source, content_type="text/plain"
    )
    return Settings(
        log=LogSettings(hosts=["kafka:9092"], group="g"),
        broker=BrokerSettings(hosts=["rabbit:5672"]),
        routes={"r": Route(exchange="x", origin=origin)},
        event_types={"orders": kind},
    )


@given(any_event, sources, st.sampled_from(list(Origin)))
def test_the_same_message_goes_out_when_an_event_was_a_letter_in_between(
    event: Event, source: RoutingKey, origin: Origin
) -> None:
    letter = read(encoded(DEAD, event))
    assume(not {"tidegate-omitted", "tidegate-original-size"} & set(letter.headers))
    going = Choice(settings(origin, source), Wanted()).judge(TakenLetter(1, 0, 0, told(letter)))
    assert isinstance(going, Going)
    assert (going.letter.partition, going.letter.topic_id, going.letter.reason) == (PARTITION, "id", "unroutable")
    address = going.address
    before = Address(
        address.exchange,
        source,
        "text/plain",
        priority=address.priority,
        origin=origin,
    )
    try:
        expected = read(encoded(before, event))
    except UnfitError as error:
        with pytest.raises(UnfitError, match=error.detail[:10]):
            encoded(address, going.event)
        return
    found = read(encoded(address, going.event))
    assert found.headers.pop("tidegate-redriven") == 1
    assert found.headers == expected.headers
    assert (found.body, found.publish.routing_key) == (expected.body, expected.publish.routing_key)
    names = ("message_id", "content_type", "priority", "timestamp", "delivery_mode")
    assert [getattr(found.properties, name) for name in names] == [getattr(expected.properties, name) for name in names]


def test_its_content_type_is_empty_again_when_the_record_said_so() -> None:
    event = Event(1, 1_700_000_000_000, None, b"v", (("content-type", b""),), 13)
    letter = told(read(encoded(DEAD, event)))
    going = Choice(settings(Origin.ID, RoutingKey(constant="q")), Wanted()).judge(TakenLetter(1, 0, 0, letter))
    assert isinstance(going, Going)
    assert read(encoded(going.address, going.event)).properties.content_type == ""


def test_it_is_routed_as_before_when_the_header_that_routes_it_has_a_name_of_the_broker() -> None:
    event = Event(1, 1_700_000_000_000, None, b"v", (("x-route", b"mail"), ("x-other", None)), 20)
    letter = told(read(encoded(DEAD, event)))
    assert letter.event.headers == event.headers
    going = Choice(settings(Origin.ID, RoutingKey(header="x-route")), Wanted()).judge(TakenLetter(1, 0, 0, letter))
    assert isinstance(going, Going)
    assert read(encoded(going.address, going.event)).publish.routing_key == "mail"


@pytest.mark.parametrize("origin", list(Origin))
def test_a_copy_that_died_in_a_queue_is_known_by_its_count(origin: Origin) -> None:
    event = Event(17, 1_700_000_000_123, b"k", b"v", (("trace", b"a"),), 8)
    again = read(encoded(Address("x", RoutingKey(constant="q"), "", origin=origin, redriven=2), event))
    died = again.headers | {"x-death": [{"reason": "rejected", "queue": "q"}], "x-first-death-reason": "rejected"}
    letter = read_letter(died, message_id=again.properties.message_id, content_type="", body=again.body)
    assert letter == (None, "queue_rejected", PARTITION, "", event, "", 2)


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ({}, Illegible.FOREIGN),
        ({"x-death": [{"reason": "rejected"}]}, Illegible.FOREIGN),
        ({"tidegate-type": "orders", "tidegate-omitted": "key"}, Illegible.INCOMPLETE),
        ({"tidegate-type": "orders", "tidegate-original-size": 9}, Illegible.INCOMPLETE),
        ({"tidegate-type": "orders"}, Illegible.UNREADABLE),
        ({"tidegate-type": "orders", "tidegate-topic": "t", "tidegate-partition": 0}, Illegible.UNREADABLE),
        ({"tidegate-type": 7, "tidegate-topic": "t"}, Illegible.UNREADABLE),
        ({"tidegate-redriven": -1}, Illegible.UNREADABLE),
        ({"tidegate-redriven": "1"}, Illegible.UNREADABLE),
        ({"tidegate-redriven": 1}, Illegible.UNREADABLE),
    ],
)
def test_it_is_told_what_it_is_when_a_message_is_no_letter(headers: dict[str, Any], kind: Illegible) -> None:
    with pytest.raises(IllegibleError) as refused:
        read_letter(headers, message_id="no-place", content_type=None, body=b"")
    assert refused.value.kind is kind


whole = {"tidegate-type": "orders", "tidegate-topic": "t", "tidegate-partition": 0, "tidegate-position": "1"}


@given(
    st.dictionaries(
        st.sampled_from([*whole, "tidegate-timestamp", "tidegate-key", "tidegate-redriven", "x-death", "a", "log.CC"]),
        st.none() | st.integers() | st.text() | st.binary() | st.lists(st.integers() | st.text()) | st.just({"a": 1}),
    ),
    st.none() | st.text() | st.sampled_from(["t-0-1-zz", "t-0-1-", "t-0-1-0_1", "t-0-1--5", "t-²-1-", "-0-1-"]),
)
def test_nothing_but_its_own_error_is_raised_when_headers_are_anything(
    headers: dict[str, Any], name: str | None
) -> None:
    for given_headers in (headers, dict(chain(whole.items(), headers.items()))):
        try:
            letter = read_letter(given_headers, message_id=name, content_type=None, body=b"b")
        except IllegibleError:
            continue
        assert isinstance(letter.event.position, int)
        assert letter.partition.number >= 0
        assert letter.redriven >= 0

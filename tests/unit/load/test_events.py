"""Payloads: repeatable, realistic in size, bulk values that betray every changed byte."""

import json
import random
from collections.abc import Callable

import pytest

from load.events import Bulk, Payload, brand_alert, marketing, order_confirmation


@pytest.mark.parametrize("size", [32, 256, 1024])
def test_a_bulk_value_has_its_size_and_says_where_it_belongs(size: int) -> None:
    bulk = Bulk(size, seed=1)

    assert len(bulk.value(7, 123_456)) == size
    assert bulk.read(bulk.value(7, 123_456)) == (7, 123_456)


def test_a_changed_byte_is_found_wherever_it_is() -> None:
    bulk = Bulk(64, seed=1)
    value = bulk.value(3, 99)

    for at in range(len(value)):
        changed = bytes(byte ^ (i == at) for i, byte in enumerate(value))
        with pytest.raises(ValueError, match=r"bytes|bulk"):
            bulk.read(changed)


def test_values_of_another_seed_or_size_are_not_taken_for_ones_own() -> None:
    with pytest.raises(ValueError, match="other bytes"):
        Bulk(64, seed=1).read(Bulk(64, seed=2).value(0, 0))
    with pytest.raises(ValueError, match="other bytes"):
        Bulk(64, seed=1).read(Bulk(65, seed=1).value(0, 0))


def test_a_bulk_value_is_refused_when_it_has_no_room_for_its_place() -> None:
    with pytest.raises(ValueError, match="at least 32"):
        Bulk(31, seed=1)


@pytest.mark.parametrize(
    ("make", "smallest", "largest"),
    [(order_confirmation, 800, 1_300), (brand_alert, 230, 500), (marketing, 450, 800)],
)
def test_payloads_are_json_of_the_size_promised_with_their_instant_inside(
    make: Callable[[int, int, random.Random], Payload], smallest: int, largest: int
) -> None:
    chance = random.Random(1)
    payloads = [make(number, 1_700_000_000_123, chance) for number in range(200)]

    assert all(smallest <= len(payload.value) <= largest for payload in payloads)
    assert all(json.loads(payload.value)["event_ms"] == 1_700_000_000_123 for payload in payloads)
    assert len({payload.key for payload in payloads}) > 4


def test_the_same_seed_gives_the_same_payloads() -> None:
    first, again = (order_confirmation(1, 2, random.Random(3)) for _ in range(2))

    assert first == again

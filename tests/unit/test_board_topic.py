"""The topic in which a group keeps what people have asked for: one for each group, whatever its name."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.settings import LogSettings

groups = st.text(min_size=1, max_size=249) | st.text("ab._-/ ä", min_size=1, max_size=249)


def topic(group: str) -> str:
    return LogSettings(hosts=("kafka:9092",), group=group).board_topic


@pytest.mark.parametrize("group", ["tidegate", "a.b_c-D9", "g" * 240])
def test_it_is_named_after_the_group(group: str) -> None:
    assert topic(group) == f"{group}.tidegate"


@given(groups, groups)
def test_each_group_has_its_own_that_kafka_takes(one: str, other: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic(one))
    assert (topic(one) == topic(other)) == (one == other)

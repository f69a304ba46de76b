"""What a process calls itself."""

import re

from proxy.instance import instance_name


def test_names_differ_when_host_process_and_second_are_the_same() -> None:
    assert len({instance_name() for _ in range(20)}) > 1


def test_a_name_tells_what_it_is_for_and_when_it_began() -> None:
    assert re.fullmatch(r"redrive-.+-\d+-\d{10}-[0-9a-f]{4}", instance_name("redrive"))

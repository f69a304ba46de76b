"""More wire histories than a quick check has time for; see `tests/histories/test_wire_histories.py`."""

import pytest

from tests.histories.test_kafka_histories import SEEDS, command

MOST = 1_000


@pytest.mark.timeout(560)
def test_no_wire_history_shows_what_it_must_not_when_a_thousand_seeds_are_lived() -> None:
    ran = command("--seeds", f"{SEEDS}..{MOST - 1}")
    assert ran.returncode == 0, ran.stdout + ran.stderr

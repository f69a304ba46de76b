"""What commands say of interventions."""

import pytest

from proxy.model import Mode
from proxy.operations.command_words import intervention_text
from proxy.operations.intervention import Intervention


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.4, "0s"), (59, "59s"), (599, "599s"), (1_772, "29m"), (1_800, "30m"), (90_061, "25h"), (604_800, "7d")],
)
def test_what_is_left_is_told_in_a_unit_that_is_read_when_it_is_long(seconds: float, told: str) -> None:
    one = Intervention("a", Mode.PAUSE, (), ("P3",), "ann", "a flood", 0, 604_800_000)
    assert f" (in {told}), by ann: a flood" in intervention_text(one, one.until_ms - int(seconds * 1000))

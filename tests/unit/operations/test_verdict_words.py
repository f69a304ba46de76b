"""Verdicts in words."""

from typing import Any

import pytest

from proxy.congestion.detector import Cause
from proxy.congestion.signs import Sign
from proxy.operations.verdict_words import why

NOTHING: dict[str, Any] = {
    "p50_us": None,
    "errors": 0,
    "samples": 0,
    "threshold_us": None,
    "threshold_errors": None,
    "min_samples": None,
    "hot": None,
    "queue_delay_us": None,
    "ruled_by": None,
}
BY_STATISTICS = {
    "p50_us": 62_000,
    "threshold_us": 50_000,
    "errors": 4,
    "samples": 9,
    "threshold_errors": 2.0,
    "min_samples": 10,
}


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (
            {"cause": "depth", "queue_delay_us": 310_000, "ruled_by": "mail", "hot": ["P2", "P3"]},
            "an event would wait 0.31 s in queue mail: too long for P2, P3",
        ),
        ({"cause": "depth", "hot": ["P3"]}, "an event would wait for ever in its queues: too long for P3"),
        ({"cause": "latency"}, "confirms take longer than they do for so many in flight"),
        (
            {"cause": "latency", **BY_STATISTICS},
            "half of the confirms took 62 ms or longer, 50 ms is the limit",
        ),
        ({"cause": "errors", **BY_STATISTICS}, "4 of 9 publications failed, 2 may"),
        (
            {"cause": "latency+errors", **BY_STATISTICS},
            "half of the confirms took 62 ms or longer, 50 ms is the limit, and 4 of 9 publications failed, 2 may",
        ),
        ({"cause": "too_few_samples", **BY_STATISTICS}, "9 outcomes say too little, 10 are needed"),
    ],
)
def test_the_sentence_has_what_was_seen_when_a_route_is_judged(told: dict[str, Any], words: str) -> None:
    assert why(NOTHING | told) == words


@pytest.mark.parametrize("cause", [*Sign, *Cause])
def test_there_is_a_sentence_when_a_verdict_has_any_cause(cause: str) -> None:
    assert " " in why({**NOTHING, **BY_STATISTICS, "cause": cause})

"""What the demo says of the loop: from the records alone, and never that nothing was lost when something was."""

from typing import Any

from load.checker import Whereabouts
from load.comparison import Seen, sentence, shortcomings, whereabouts_rows


def verdict(cause: str, p50_us: int | None = 500, *, said: bool = True) -> dict[str, Any]:
    congested = (cause != "none") if said else None
    return {"kind": "verdict", "congested": congested, "cause": cause, "p50_us": p50_us, "threshold_us": 50_000}


def route(depth: int | None, nacked: int = 0) -> dict[str, Any]:
    return {"kind": "route", "depth": depth, "nacked": nacked}


def test_causes_are_counted_apart_and_a_double_cause_for_both() -> None:
    seen = Seen.of([verdict("none"), verdict("errors"), verdict("latency", 60_000), verdict("latency+errors", 70_000)])

    assert (seen.verdicts, seen.by_errors, seen.by_latency) == (4, 2, 2)
    assert seen.worst_p50_ms == 70


def test_verdicts_that_say_nothing_are_left_out() -> None:
    assert Seen.of([verdict("too_few_samples", None, said=False), verdict("none")]).verdicts == 1


def test_depths_that_were_not_known_count_neither_as_zero_nor_at_all() -> None:
    seen = Seen.of([route(100, 3), route(None, 4), route(300), route(200)])

    assert (seen.median_depth, seen.peak_depth, seen.nacked) == (200, 300, 7)


def test_a_policy_without_a_threshold_of_latency_is_summed_up_as_well() -> None:
    depth = {"kind": "verdict", "congested": True, "cause": "depth", "p50_us": None}
    seen = Seen.of([depth, route(30)])

    assert (seen.verdicts, seen.by_latency, seen.by_errors, seen.threshold_ms, seen.peak_depth) == (1, 0, 0, 0, 30)


def test_an_empty_log_gives_zeroes_instead_of_failing() -> None:
    assert Seen.of([]) == Seen(0, 0, 0, 0.0, 0.0, 0, 0.0, 0)


def test_the_sentence_names_the_events_that_its_percentile_leaves_out() -> None:
    seen = Seen(60, 0, 20, 1.2, 50.0, 900, 240, 300)
    classes = {
        "static": {"P1": Whereabouts(produced=3900, delivered=900, in_log=3000), "P3": Whereabouts()},
        "per_type": {"P1": Whereabouts(produced=3900, delivered=3900)},
    }
    p99 = {"static": 31_000.0, "per_type": None}
    runs = {"static": seen, "per_type": seen, "class_budget": Seen(60, 0, 0, 1.2, 50.0, 0, 15, 42)}
    words = sentence(runs, seed="per_type", bound=300, capacity=300, consumed_p99_ms=p99, classes=classes)

    assert "31.0 s with control off (3,000 not delivered yet)" in words
    assert "none delivered under per_type (0 not delivered yet)" in words
    assert "slow confirms in 0 of 60 verdicts" in words
    assert "refused publications in 20" in words
    assert "240 events (0.8 s of work)" in words
    assert "Under class_budget half of the time at most 15 events (0.05 s of work)" in words
    assert "42 at most; none was refused" in words


def test_a_loss_is_said_with_policy_and_class() -> None:
    lost = Whereabouts(produced=10, delivered=9, lost=1)
    classes = {"static": {"P1": Whereabouts(produced=10, delivered=10)}, "per_type": {"P1": lost}}

    assert shortcomings(classes) == ["per_type, P1: 1 events LOST"]
    assert whereabouts_rows(classes)[2] == ["per_type P1", "10", "9", "0", "0", "1"]


def test_the_sentence_does_not_call_the_loop_blind_when_latency_spoke_or_nothing_did() -> None:
    def words(by_latency: int, by_errors: int) -> str:
        seen = Seen(60, by_latency, by_errors, 1.2, 50.0, 900, 240, 300)
        return sentence({"per_type": seen}, seed="per_type", bound=300, capacity=300, consumed_p99_ms={}, classes={})

    assert "only from a queue that is full" in words(0, 20)
    assert "only from a queue that is full" in words(4, 20)
    assert "slow confirms for a sign as well" in words(5, 20)
    assert "had nothing to act on" in words(0, 0)

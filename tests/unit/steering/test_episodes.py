"""When an episode begins and ends, from verdicts, and what is suggested."""

from types import SimpleNamespace
from typing import Any

from proxy.congestion.signs import Sign
from proxy.steering.episodes import Episode, Episodes

AFTER, QUIET = 10.0, 30.0


class Told:
    def __init__(self) -> None:
        self.told: list[Episode] = []
        self.backlogs: dict[str, int] = {}
        self.episodes = Episodes(["P1", "P3"], AFTER, QUIET, self.backlogs.get, self.told.append)

    def say(
        self,
        at: float,
        hot: tuple[bool, bool],
        congested: bool | None = None,
        rate: float = 20.0,
        waited: tuple[bool, bool] = (True, True),
    ) -> None:
        said = any(hot) if congested is None else congested
        reading = SimpleNamespace(at=at, confirmed=(0, int(at * rate)), waited=waited)
        cause = Sign.DEPTH if any(hot) else Sign.BLOCKED if said else Sign.NONE
        verdict: Any = SimpleNamespace(route="r", congested=said, cause=cause, hot=hot, reading=reading)
        self.episodes.on_verdict(verdict)


COLD, HOT, BOTH = (False, False), (False, True), (True, True)


def test_begin_and_end_are_told_once_with_what_has_passed_when_a_class_is_held_back_every_few_ticks() -> None:
    told = Told()
    for tick in range(400):
        told.say(tick / 10, HOT if tick % 20 == 0 else COLD)
    assert [(one.priority, one.is_over, one.cause, one.passed) for one in told.told] == [("P3", False, "depth", 20.0)]
    assert told.told[0].seconds == AFTER
    for tick in range(400, 800):
        told.say(tick / 10, COLD)
    assert [(one.number, one.is_over) for one in told.told] == [(1, False), (1, True)]


def test_nothing_is_told_when_a_class_is_held_back_for_a_moment_now_and_then() -> None:
    told = Told()
    for second in range(600):
        told.say(float(second), HOT if second % 5 == 0 else COLD)
    assert told.told == []


def test_every_class_is_told_with_a_rate_of_nothing_when_all_is_stopped() -> None:
    told = Told()
    for second in range(12):
        told.say(float(second), COLD, congested=True, rate=0.0)
    assert [(one.priority, one.cause, one.passed) for one in told.told] == [
        ("P1", "blocked", 0.0),
        ("P3", "blocked", 0.0),
    ]


def test_the_next_episode_has_another_number_when_the_first_is_over() -> None:
    told = Told()
    for second in range(120):
        told.say(float(second), COLD if 20 < second < 80 else BOTH)
    assert [(one.number, one.priority, one.is_over) for one in told.told] == [
        (1, "P1", False),
        (2, "P3", False),
        (1, "P1", True),
        (2, "P3", True),
        (3, "P1", False),
        (4, "P3", False),
    ]


def test_a_class_is_not_told_when_it_is_over_its_threshold_and_only_others_wait() -> None:
    told = Told()
    for second in range(60):
        told.say(float(second), BOTH, waited=(False, True))
    assert [one.priority for one in told.told] == ["P3"]


def test_a_class_is_told_only_then_when_more_of_it_waits_than_passes_in_a_second() -> None:
    told = Told()
    for second in range(60):
        told.backlogs["P3"] = 20 if second < 40 else 21
        told.say(float(second), HOT)
    assert [(one.priority, one.seconds) for one in told.told] == [("P3", 40.0)]


def test_every_episode_ends_when_the_process_does() -> None:
    told = Told()
    for second in range(20):
        told.say(float(second), BOTH)
    told.episodes.forget()
    told.episodes.forget()
    assert [(one.number, one.is_over) for one in told.told] == [(1, False), (2, False), (1, True), (2, True)]

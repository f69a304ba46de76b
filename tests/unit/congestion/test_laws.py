"""What holds for every rate law, and where laws come from."""

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from math import inf, isfinite
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.congestion import laws
from proxy.congestion.laws import LAWS, Beginning
from proxy.congestion.per_type import AimdBatchSize
from proxy.congestion.rate_law import PROBE, Level, LevelRate, RateLaw
from proxy.errors import RateLawError
from proxy.settings import ClassBudget

TICK = 0.05
CALM = Level(now=0.0, target=300.0, drain=300.0, is_used=True)
HOT = replace(CALM, is_hot=True, is_cool=False)
EVERY = pytest.mark.parametrize("name", LAWS)


def level(name: str, start: float = 50.0, *, is_top: bool = False) -> LevelRate:
    return LevelRate(law(name, inf if is_top else start), is_top=is_top)


def law(name: str, start: float) -> RateLaw:
    return laws.find(name)(Beginning(ClassBudget(), start=start, chance=lambda: 0.5))


def after(rate: LevelRate, seen: Level, start: float, seconds: float) -> float:
    for step in range(round(seconds / TICK) + 1):
        rate.on_tick(replace(seen, now=start + step * TICK))
    return rate.rate


@EVERY
def test_the_rate_doubles_every_third_of_a_second_when_the_queues_are_seen_empty(
    name: str,
) -> None:
    rate = level(name)
    after(rate, CALM, 0.0, 2.0)
    after(rate, HOT, 2.1, 1.0)
    low = rate.rate
    empty = replace(CALM, empty_for=1.0, empty_since_last=TICK)
    assert after(rate, empty, 4.0, 1.2) >= 0.9 * low * 2**4


@EVERY
def test_nothing_goes_when_the_route_must_stop_and_something_does_after(name: str) -> None:
    rate = level(name)
    after(rate, CALM, 0.0, 3.0)
    assert after(rate, replace(CALM, must_stop=True), 3.1, 10.0) == 0
    assert 0 < after(rate, CALM, 13.2, 0.0) < inf


@EVERY
def test_nothing_grows_when_the_rate_is_not_used_or_something_needed_is_unknown(name: str) -> None:
    for seen in (replace(CALM, is_used=False), replace(CALM, sees=False)):
        assert after(level(name), seen, 0.0, 10.0) == 50


@EVERY
def test_it_gives_way_to_less_than_what_drains_when_the_queue_stays_long_and_grows(name: str) -> None:
    rate = level(name, 3_000.0)
    assert after(rate, HOT, 0.0, 2.0) < 300


@EVERY
def test_the_top_level_has_no_limit_when_nothing_is_long_and_an_allowance_bounds_it(name: str) -> None:
    rate = level(name, is_top=True)
    allowed = replace(CALM, has_allowance=True)
    assert after(rate, allowed, 0.0, 1.0) == inf
    assert after(rate, HOT, 1.1, 0.0) < inf
    assert after(rate, allowed, 1.2, 0.0) == inf


LEVELS = st.builds(
    replace,
    st.just(CALM),
    must_stop=st.booleans(),
    is_hot=st.booleans(),
    is_falling=st.booleans(),
    is_cool=st.booleans(),
    is_rising=st.booleans(),
    empty_for=st.none() | st.floats(0, 10),
    empty_since_last=st.floats(0, 1),
    excess=st.floats(0, 100) | st.just(inf),
    target=st.floats(0, 1e6),
    own=st.floats(0, 1e6),
    drain=st.floats(0, 1e6),
    is_used=st.booleans(),
    sees=st.booleans(),
    bound=st.floats(1, 1e5),
    held=st.floats(0, 1e6) | st.just(inf),
    has_allowance=st.booleans(),
)


@EVERY
@given(seen=st.lists(st.tuples(LEVELS, st.floats(0, 5)), max_size=60))
def test_a_rate_is_a_number_and_the_probe_at_least_whatever_is_seen(name: str, seen: list[tuple[Level, float]]) -> None:
    rate, now = level(name), 0.0
    for one, gap in seen:
        now += gap
        before = rate.rate
        was_cut = rate.on_tick(replace(one, now=now))
        assert rate.rate == 0 if one.must_stop else rate.rate >= PROBE
        assert isfinite(rate.rate)
        if was_cut:
            assert rate.rate < before or before == 0


@EVERY
def test_every_law_says_what_it_counts_in(name: str) -> None:
    assert law(name, 50.0).unit


def test_so_does_the_seeds_own() -> None:
    assert AimdBatchSize.unit == "events a tick, of one event type"


# -- where they come from ---------------------------------------------------------------------------------------------


def constant(begin: Beginning) -> RateLaw:
    return law("aimd", begin.start)


NO_FUNCTION = 3


def raises(begin: Beginning) -> RateLaw:
    del begin
    raise SystemExit(3)


class Bare:
    unit = "nothing"

    def __init__(self, begin: Beginning) -> None:
        del begin

    def on_calm(self, level: Level) -> bool:
        del level
        return True


def negative(begin: Beginning) -> RateLaw:
    return law("aimd", min(-5.0, begin.start))


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    def bring(name: str, value: str) -> None:
        def found(*, group: str, name: str | None = None) -> list[EntryPoint]:
            entry = EntryPoint(name=bringing, value=value, group=laws.GROUP)
            return [entry] if group == laws.GROUP and name in {None, bringing} else []

        bringing = name
        monkeypatch.setattr(laws, "entry_points", found)

    return bring


def test_a_law_of_an_installed_package_is_found_by_its_entry_point(brought: Callable[[str, str], None]) -> None:
    brought("constant", f"{__name__}:constant")
    assert laws.names() == (*LAWS, "constant")
    assert laws.find("constant") is constant


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("no_such_package:law", "can't be loaded: ModuleNotFoundError"),
        (f"{__name__}:NO_FUNCTION", "makes no law: TypeError: 'int' object is not callable"),
        (f"{__name__}:raises", "makes no law: SystemExit: 3"),
        (f"{__name__}:Bare", "what it returns has no hears_trips, rate, on_hot, on_used, on_resume, on_trips"),
        (f"{__name__}:negative", "its rate is -5.0"),
    ],
)
def test_it_is_said_what_is_wrong_when_the_package_is_broken(
    brought: Callable[[str, str], None], value: str, words: str
) -> None:
    brought("broken", value)
    with pytest.raises(RateLawError, match=words):
        laws.find("broken")


def test_no_package_takes_the_place_of_a_law_that_comes_with_tidegate(brought: Callable[[str, str], None]) -> None:
    brought("aimd", f"{__name__}:constant")
    assert laws.names() == tuple(LAWS)
    assert laws.find("aimd") is LAWS["aimd"]


@pytest.mark.parametrize("rate", [float("nan"), -5.0, None, "fast"])
@pytest.mark.parametrize("seen", [CALM, HOT], ids=["calm", "hot"])
def test_a_law_that_gives_no_rate_is_named_at_once(rate: Any, seen: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    made = law("aimd", 50.0)
    for method in ("on_calm", "on_hot"):
        monkeypatch.setattr(made, method, lambda _: setattr(made, "rate", rate))
    found = LevelRate(made, is_top=False)
    with pytest.raises(RateLawError, match="the law Aimd has a rate of"):
        assert found.on_tick(seen) or found.rate

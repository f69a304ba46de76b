"""Whatever queues show, somebody counts, states follow one another in their times, and the right one rules."""

from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.congestion.group import LEAVES_AFTER, LONGEST_LOOK, RESTS_FOR, STUCK_FOR, Group, Rules, Tether
from tests.support.queue_views import HIGHEST, view

NAMES = ("one", "two", "three")
NEXT = {
    Tether.ACTIVE: (Tether.LINGER, STUCK_FOR),
    Tether.LINGER: (Tether.RESTING, STUCK_FOR),
    Tether.RESTING: (Tether.ACTIVE, RESTS_FOR),
}
delays = st.sampled_from([0.0, 0.05, 0.2, 0.44, 1.0, inf, None])
steps = st.lists(
    st.tuples(st.floats(0.05, 6.0), st.tuples(*[st.tuples(delays, st.integers(0, 2)) for _ in NAMES])), max_size=40
)


@given(strategy=st.sampled_from(["min", "max", "tagged"]), untether=st.booleans(), steps=steps)
@settings(max_examples=300)
def test_somebody_counts_and_nobody_rests_or_returns_too_soon_when_anything_is_seen(
    strategy: str,
    untether: bool,
    steps: list[tuple[float, tuple[tuple[float | None, int], ...]]],
) -> None:
    tags = frozenset({"one", "two"})
    group = Group(Rules(strategy, untether=untether, tags=tags), HIGHEST)
    now, alone = 0.0, dict.fromkeys(NAMES, inf)
    states: dict[str, tuple[Tether, float]] = {}
    for seconds, told in steps:
        now += seconds
        views = [view(name, *one) for name, one in zip(NAMES, told, strict=True)]
        counted = group.count(now, views)
        assert counted.views
        delays = [-1.0 if one.delay is None else one.delay for one in counted.views]
        ruling = group.ruling(counted.views, 0).delay
        assert (-1.0 if ruling is None else ruling) == (min(delays) if strategy == "max" else max(delays))
        for one in views:
            passed = min(LONGEST_LOOK, seconds) if one.is_known else 0.0
            alone[one.name] = 0.0 if one.consumers else alone[one.name] + passed
            state = counted.states[one.name]
            assert (state is Tether.ABSENT) is (alone[one.name] > LEAVES_AFTER)
            if state is Tether.ABSENT:
                states.pop(one.name, None)  # what it goes on from is its own affair
                continue
            before, since = states.get(one.name, (state, now))
            if state is not before:
                follower, least = NEXT[before]
                assert state is follower
                assert untether
                assert now - since >= least - 1e-6
                since = now
            states[one.name] = state, since
        if strategy == "tagged":
            assert {one.name for one in counted.views} <= tags

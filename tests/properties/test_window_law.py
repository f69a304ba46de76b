"""The width of a window: whatever comes back, and whenever, it stays within its bounds and moves by steps."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.model import Outcome
from proxy.publish_lane.line import Window
from proxy.publish_lane.outcomes import Resolved
from proxy.publish_lane.window_law import EMPTY, FIRST, STEP, WindowLaw
from tests.support.events import ADDRESS, PARTITION, events
from tests.support.recipient import Recorder

BATCH = Recorder(ADDRESS, PARTITION).batch(events(0, 1_000))


def confirm(law: WindowLaw, seconds: float | None, count: int, now: float, *, acked: bool = True) -> None:
    outcome = Outcome.CONFIRMED if acked else Outcome.NACKED
    law.on_confirm([Resolved(BATCH, 0, count, outcome, seconds)], acked=acked, now=now)


CONFIRMS = st.lists(
    st.tuples(
        st.floats(0, 0.3),
        st.one_of(st.none(), st.floats(0, 40), st.floats(0, 0.05), st.just(0.02)),
        st.integers(1, 1_000),
        st.booleans(),
        st.booleans(),
    ),
    max_size=300,
)


@given(most=st.integers(1, 5_000), confirms=CONFIRMS)
def test_the_width_stays_within_its_bounds_and_steps_whatever_comes_back(
    most: int, confirms: list[tuple[float, float | None, int, bool, bool]]
) -> None:
    window, now = Window(most, 1, adapts=True), 0.0
    law = WindowLaw(window, now)
    law.look(now)
    assert window.max_events == min(FIRST, most)
    widths = [window.max_events]
    for pause, seconds, count, acked, full in confirms:
        now += pause
        confirm(law, seconds, count, now, acked=acked)
        window.was_full |= full
        law.look(now)
        assert 1 <= window.max_events <= most
        if window.max_events > max(EMPTY):  # else it may be measuring, and go back to what it was
            assert window.max_events <= max(1, STEP * max(widths[-20:]))
        widths.append(window.max_events)


@given(confirms=CONFIRMS)
def test_a_window_that_does_not_adapt_is_left_alone(
    confirms: list[tuple[float, float | None, int, bool, bool]],
) -> None:
    window, now = Window(300, 1), 0.0
    law = WindowLaw(window, now)
    for pause, seconds, count, acked, _ in confirms:
        now += pause
        confirm(law, seconds, count, now, acked=acked)
        window.was_full = True
        law.look(now)
        assert window.max_events == 300


@given(confirms=CONFIRMS)
def test_the_width_stays_when_the_window_is_never_full(
    confirms: list[tuple[float, float | None, int, bool, bool]],
) -> None:
    window, now = Window(1_000, 1, adapts=True), 0.0
    law = WindowLaw(window, now)
    for pause, seconds, count, acked, _ in confirms:
        now += pause
        confirm(law, seconds, count, now, acked=acked)
        law.look(now)
        assert window.max_events == FIRST


@given(pauses=st.lists(st.floats(0, 5), max_size=50))
def test_the_width_stays_when_nothing_is_acked(pauses: list[float]) -> None:
    window, now = Window(1_000, 1, adapts=True), 0.0
    law = WindowLaw(window, now)
    for pause in pauses:
        now += pause
        confirm(law, pause, 10, now, acked=False)
        window.was_full = True
        law.look(now)
        assert window.max_events == FIRST

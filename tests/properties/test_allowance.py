"""Whatever is seen, the top class gets no more ahead of an answer than it may; in front of any consumers it overshoots
by a bounded part of what they take, and is held back by nothing for long.
"""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.congestion.allowance import AHEAD, LONGEST, Allowance, Answer
from proxy.congestion.class_budget import RouteBudget
from proxy.congestion.reading import QueueReading, Reading
from proxy.settings import ClassBudget

START = 50.0
THRESHOLDS = (0.5, 0.2, 0.08)
TICK = 0.05
_answers = st.lists(
    st.builds(
        Answer,
        at=st.floats(0.01, 3.0),
        has_queue=st.booleans(),
        waiting=st.floats(0, 10_000),
        threshold=st.just(0.5),
        drain=st.just(0.0) | st.floats(1, 20_000),
        is_used=st.booleans(),
        sees=st.booleans(),
        bound=st.just(float("inf")) | st.floats(100, 30_000),
    ),
    max_size=40,
)


@given(_answers)
@settings(max_examples=300)
def test_the_allowance_keeps_its_bounds_when_anything_is_answered(answers: list[Answer]) -> None:
    allowance, now, before = Allowance(START), 0.0, 0.0
    for number, step in enumerate(answers):
        poll = TICK if number == 0 else min(LONGEST, step.at)
        now += step.at
        told = Answer(
            at=now,
            has_queue=step.has_queue,
            waiting=step.waiting,
            threshold=step.threshold,
            drain=step.drain,
            is_used=step.is_used,
            sees=step.sees,
            bound=step.bound,
        )
        events = allowance.on_answer(told)
        base = max(START * poll, AHEAD * step.drain)
        doubles = step.is_used and step.sees and not step.has_queue
        assert events >= 1
        assert events <= max(1.0, base, 2 * before if doubles else 0.0) + 1e-6
        assert events <= max(1.0, step.bound * poll) + 1e-6
        if step.has_queue and step.drain and step.waiting >= step.threshold * step.drain:
            assert events <= max(1.0, step.drain * poll), "a queue that is long enough grows no further"
        before = events


@dataclass
class Flow:
    """P1 always wants more; one queue; what is admitted arrives at once, some of it disappears into the prefetch."""

    capacity: float
    budget: RouteBudget = field(default_factory=lambda: RouteBudget("r", THRESHOLDS, ClassBudget()))
    now: float = 100.0
    held: float = 0.0
    """By the consumers."""
    ready: float = 0.0
    confirmed: float = 0.0
    stock: float = 0.0
    rate: float = START

    def live(self, seconds: float) -> float:
        """Return the longest queue, in seconds of the capacity."""
        worst = 0.0
        for _ in range(round(seconds / TICK)):
            sent = self.stock if self.rate == float("inf") else self.rate * TICK
            self.stock -= min(self.stock, sent)
            self.confirmed += sent
            waiting = max(0.0, self.held + self.ready + sent - self.capacity * TICK)
            self.held = min(waiting, 0.05 * self.capacity)
            self.ready = waiting - self.held
            worst = max(worst, self.ready / self.capacity)
            self.now += TICK
            queue = QueueReading(round(self.ready), 4, self.now, 3 * TICK)
            verdict = self.budget.judge(
                Reading(
                    at=self.now,
                    queues=(queue,),
                    confirmed=(round(self.confirmed), 0, 0),
                    waited=(True, False, False),
                )
            )
            self.rate = verdict.rates[0]
            if verdict.allowance is not None:
                self.stock = verdict.allowance
        return worst


@given(st.floats(50, 5_000), st.floats(1.5, 20))
@settings(max_examples=40)
def test_it_overshoots_by_less_than_its_bound_and_finds_all_there_is_when_consumers_become_quicker(
    capacity: float, times: float
) -> None:
    flow = Flow(capacity)
    # 0.3 s of the capacity beyond the aim, half of the class's threshold; a tick's worth is on its way besides.
    assert flow.live(10.0) <= AHEAD + THRESHOLDS[0] / 2 + TICK
    flow.capacity *= times
    flow.live(0.1)
    assert flow.live(3.0) <= AHEAD + THRESHOLDS[0] / 2 + TICK
    before = flow.confirmed
    flow.live(2.0)
    assert flow.confirmed - before >= 0.9 * 2.0 * flow.capacity

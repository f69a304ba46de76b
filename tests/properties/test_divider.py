"""Whatever is asked, granted, cancelled and changed: no token is made or lost, and nobody overtakes a waiting head."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.congestion.divider import Divider
from proxy.congestion.pools import Ticket

RATE, BURST = 100.0, 7.0
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 3), st.floats(0.1, 30)),
        st.tuples(st.just("wait"), st.just(0), st.floats(0, 0.2)),
        st.tuples(st.just("cancel"), st.integers(0, 50), st.just(0.0)),
    ),
    max_size=80,
)


@dataclass
class Life:
    """One divider with one pool, and what was seen of it."""

    divider: Divider
    now: float = 0.0
    asked: list[Ticket] = field(default_factory=list)
    granted: list[Ticket] = field(default_factory=list)
    waiting: list[Ticket] = field(default_factory=list)

    def take(self, granted: list[Ticket]) -> None:
        for ticket in granted:
            first = min(self.waiting, key=lambda one: (one.tier, self.asked.index(one)))
            assert ticket is first, "served from the head"
            self.waiting.remove(ticket)
            self.granted.append(ticket)

    def step(self, what: str, number: int, amount: float) -> None:
        if what == "ask":
            ticket, granted = self.divider.request(number, amount, self.now)
            self.take(granted)
            self.asked.append(ticket)
            if ticket.granted:
                assert number == 0 or not [one for one in self.waiting if one.tier <= number], "nothing is overtaken"
                self.granted.append(ticket)
            else:
                self.waiting.append(ticket)
        elif what == "wait":
            self.now += amount
            self.take(self.divider.advance(self.now))
        elif self.waiting:
            ticket = self.waiting[number % len(self.waiting)]
            granted = self.divider.cancel(ticket, self.now)
            self.waiting.remove(ticket)
            self.take(granted)


@given(_steps)
@settings(max_examples=200, deadline=None)
def test_lower_tiers_never_get_more_than_the_rate_and_one_burst_when_anything_is_asked(
    steps: list[tuple[str, int, float]],
) -> None:
    life = Life(Divider(tiers=4))
    life.divider.set_rate(0, RATE, BURST, 0.0)
    for step in steps:
        life.step(*step)
    lower = sum(ticket.size for ticket in life.granted if ticket.tier)
    assert lower <= RATE * life.now + BURST + RATE * 0.01 + 1e-6


@given(_steps)
@settings(max_examples=200, deadline=None)
def test_everything_asked_is_granted_in_the_end_when_one_waits_long_enough(steps: list[tuple[str, int, float]]) -> None:
    life = Life(Divider(tiers=4))
    life.divider.set_rate(0, RATE, BURST, 0.0)
    for step in steps:
        life.step(*step)
    owed = sum(ticket.size - ticket.reserve for ticket in life.waiting)
    life.step("wait", 0, (owed + BURST) / RATE + 0.03)
    assert life.waiting == []
    assert life.divider.next_due() is None

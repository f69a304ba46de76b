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
@settings(max_examples=200)
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
@settings(max_examples=200)
def test_everything_asked_is_granted_in_the_end_when_one_waits_long_enough(steps: list[tuple[str, int, float]]) -> None:
    life = Life(Divider(tiers=4))
    life.divider.set_rate(0, RATE, BURST, 0.0)
    for step in steps:
        life.step(*step)
    owed = sum(ticket.size - ticket.reserve for ticket in life.waiting)
    life.step("wait", 0, (owed + BURST) / RATE + 0.03)
    assert life.waiting == []
    assert life.divider.next_due() is None


_tiered_steps = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 5), st.floats(0.1, 30)),
        st.tuples(st.just("wait"), st.just(0), st.floats(0, 0.2)),
        st.tuples(st.just("cancel"), st.integers(0, 50), st.just(0.0)),
        st.tuples(st.just("rate"), st.integers(0, 2), st.floats(1, 300)),
    ),
    max_size=80,
)


@dataclass
class Tiered:
    """A divider with a pool per class and catch-up tiers, and what was seen of it."""

    last: bool
    share: float
    divider: Divider = field(init=False)
    now: float = 0.0
    waiting: list[Ticket] = field(default_factory=list)
    overtaken: int = 0
    """Times that somebody went although another waited above."""

    def __post_init__(self) -> None:
        self.divider = Divider(tiers=3, pools=3, last=self.last, share=self.share)
        for pool in range(3):
            self.divider.set_rate(pool, RATE, 40.0, 0.0)

    def place(self, ticket: Ticket) -> tuple[int, int]:
        """Return where a ticket's tier stands, as docs/design/0027 says it."""
        is_old, rank = divmod(ticket.tier, 3)
        return (is_old, rank) if self.last else (rank, is_old)

    def take(self, granted: list[Ticket]) -> None:
        for ticket in granted:
            mates = [one for one in self.waiting if one.tier == ticket.tier]
            assert ticket is mates[0], "within a tier they go in the order of their arrival"
            # A class below never keeps one above waiting, and is not counted by its pools.
            above = [one for one in self.waiting if self.place(one) < self.place(ticket)]
            self.overtaken += bool([one for one in above if one.tier % 3 <= ticket.tier % 3 or self.last])
            self.waiting.remove(ticket)

    def step(self, what: str, number: int, amount: float) -> None:
        if what == "ask":
            ticket, granted = self.divider.request(number, amount, self.now)
            self.take(granted)
            self.waiting.append(ticket)
            if ticket.granted:
                self.take([ticket])
        elif what == "wait":
            self.now += amount
            self.take(self.divider.advance(self.now))
        elif what == "rate":
            self.take(self.divider.set_rate(number, amount, 40.0, self.now))
        elif self.waiting:
            ticket = self.waiting[number % len(self.waiting)]
            granted = self.divider.cancel(ticket, self.now)
            self.waiting.remove(ticket)
            self.take(granted)


@given(steps=_tiered_steps, last=st.booleans())
@settings(max_examples=200)
def test_nothing_goes_before_what_waits_above_it_when_nobody_has_a_share(
    steps: list[tuple[str, int, float]], last: bool
) -> None:
    life = Tiered(last, 0.0)
    for step in steps:
        life.step(*step)
    assert life.overtaken == 0


@given(steps=_tiered_steps, last=st.booleans(), share=st.floats(0, 0.5))
@settings(max_examples=200)
def test_every_tier_is_served_in_the_end_whatever_stands_above_it(
    steps: list[tuple[str, int, float]], last: bool, share: float
) -> None:
    life = Tiered(last, share)
    for step in steps:
        life.step(*step)
    for pool in range(3):
        life.step("rate", pool, RATE)
    owed = sum(ticket.size - ticket.reserve for ticket in life.waiting)
    life.step("wait", 0, (owed + 40.0) / RATE + 0.03)
    assert life.waiting == []
    assert life.divider.next_due() is None


@given(
    rates=st.lists(st.floats(0, 400), min_size=1, max_size=20),
    burst=st.floats(1, 30),
    each=st.floats(0.1, 5),
)
@settings(max_examples=100)
def test_all_tiers_together_take_the_cap_and_a_burst_and_what_is_told_as_forgiven_when_tier_0_takes_what_it_likes(
    rates: list[float], burst: float, each: float
) -> None:
    divider, total, lower = Divider(tiers=3), 0.0, 0.0
    divider.set_rate(0, RATE, burst, 0.0)
    divider.request(2, each, 0.0)
    for step in range(len(rates) * 20):
        now = (step + 1) * 0.01
        for ticket in divider.advance(now):
            lower += ticket.size
        size = rates[step // 20] * 0.01
        divider.request(0, size, now)
        total += size
        if not divider.waiting(2):
            lower += each if divider.request(2, each, now)[0].granted else 0.0
    seconds = len(rates) * 0.2
    assert lower <= RATE * (seconds + 0.01) + burst + each
    assert total + lower <= RATE * (seconds + 0.01) + burst + divider.forgiven + each

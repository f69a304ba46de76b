"""Figures of a run, each a plain function of what was seen; what they mean is said in `MEANINGS`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from proxy.congestion.buckets import quantile
from proxy.simulation.scenario import Expectation, Happening, Scenario
from proxy.simulation.scenario_checks import OF_QUEUE
from proxy.simulation.trace import BIN, Counts, QueueSample, Times, Trace

MEANINGS = {
    "X.consumed_p50, _p99, _max": "seconds from an event's due instant to the begin of a consumer's work on it",
    "X.bridge_p50, _p99": "seconds from an event's due instant to the broker's confirm; of a class",
    "X.goodput": "events that consumers began, as a share of those due",
    "X.share": "events that consumers began, as a share of all they began from Tidegate",
    "use[.QUEUE]": "work that consumers began, as a share of what they take from an always-full queue",
    "queue_delay_p50, _p99, _max[.QUEUE]": "seconds that what is ready stands for at the consumers' true capacity",
    "nack_ratio": "publications refused, as a share of all",
    "sent_ratio": "publications for each event that was taken",
    "sent_most": "publications in any one second, at most",
    "added_after.EVENT": "most that was added to the queue in 10 s, in seconds of the capacity before",
    "settled_after.EVENT": "seconds until in 95 % of all seconds what is admitted is the capacity +-10 %",
    "stopped_after.EVENT": "seconds until next to nothing is sent, from the first nack if there is one",
    "lost": "events committed that no queue ever took",
    "truncated": "events that the log dropped before they were read",
    "duplicates": "events that queues took more than once",
    "cuts": "verdicts `congested`",
    "told.CAUSE": "verdicts with that cause",
    "balance": "events confirmed by the slowest replica for each of the quickest, of those that read the same",
    "group_requests": "questions of all replicas to Kafka about what the group has committed, a second",
    "group_bytes": "bytes of the answers, a second, as Kafka writes them",
    "scalings": "changes of the number of consumers by autoscale; `scalings.QUEUE` of one queue",
    "consumers_most": "consumers that autoscale had at most; `consumers_most.QUEUE` in one queue",
    "X.late_until": "second of the run at which an event was last begun later than 5 s after it was due; 0 if none was",
}
"""X is a class or a stream. A figure of no sample is 0 or, where less is better, none."""

LATE = 5.0
"""Seconds after which an event is late."""
ADDED_WITHIN = 10.0
NEAR = 0.1
SHORT = 0.2
STRAYS = 0.05
"""Share of the seconds after settling that may yet stray: a saw-tooth and chance in the service do that."""
NOTHING = 0.02
_STEPS_A_SECOND = round(1 / BIN)


@dataclass(frozen=True, slots=True)
class Judged:
    """One expectation and what came of it."""

    expectation: Expectation
    value: float | None
    """None: there was nothing to measure."""
    at_least: float | None
    at_most: float | None
    """The bounds, with what was added to them."""

    @property
    def holds(self) -> bool:
        """Whether the value lies in its range."""
        if self.value is None:
            return False
        above = self.at_least is None or self.value >= self.at_least
        return above and (self.at_most is None or self.value <= self.at_most)


class Figures:
    """All figures of one run, over one window unless told otherwise."""

    def __init__(self, scenario: Scenario, trace: Trace) -> None:
        self._scenario = scenario
        self._trace = trace

    def judge(self, expectation: Expectation, unloaded: "Figures | None" = None) -> Judged:
        """Compare a figure with its range; `unloaded` is needed where the range counts from it."""
        value = self.value(expectation.figure, expectation.since, expectation.until)
        added = 0.0
        if expectation.plus_unloaded and unloaded is not None:
            added = unloaded.value(expectation.figure) or 0.0
        low, high = expectation.at_least, expectation.at_most
        return Judged(expectation, value, None if low is None else low + added, None if high is None else high + added)

    def value(self, figure: str, since: float | None = None, until: float | None = None) -> float | None:
        """Return a figure by its name; None if there was nothing to measure."""
        since = self._scenario.warm_up if since is None else since
        until = self._scenario.seconds if until is None else until
        name, _, rest = figure.partition(".")
        after: dict[str, Callable[[Happening], float | None]] = {
            "added_after": self._added,
            "settled_after": self._settled,
            "stopped_after": self._stopped,
        }
        if name in after:
            return after[name](next(event for event in self._scenario.events if event.name == rest))
        if name == "told":
            return sum(told.cause == rest and since <= told.at <= until for told in self._trace.told)
        if name in OF_QUEUE:
            return self._of_queues(name, [rest] if rest else list(self._scenario.queues), since, until)
        if rest:
            return self._of_class(name, rest, since, until)
        return self._of_all(figure, since, until)

    def delays(self, since: float, until: float) -> list[float]:
        """Return the queue delay of the worst queue at every look."""
        return self._delays(list(self._scenario.queues), since, until)

    def _of_all(self, figure: str, since: float, until: float) -> float | None:
        trace = self._trace
        match figure:
            case "lost" | "truncated" | "duplicates":
                return float(getattr(trace, figure))
            case "cuts":
                return sum(told.congested is True and since <= told.at <= until for told in trace.told)
            case "sent_most":
                return self._sent_most(since, until)
            case "balance":
                return self._balance(since, until)
            case "group_requests" | "group_bytes":
                counts: Counts = getattr(trace, figure)
                return counts.between(since, until) / (until - since)
            case _:
                return self._publications(figure, since, until)

    def _of_queues(self, figure: str, queues: Sequence[str], since: float, until: float) -> float | None:
        if figure == "use":
            return self._use(queues, since, until)
        if figure.startswith("queue_delay"):
            return _part(self._delays(queues, since, until), figure.removeprefix("queue_delay_"))
        counts = [count for name in queues for at, count in self._trace.scalings[name] if since <= at <= until]
        begun_with = max(self._scenario.queues[name].consumers for name in queues)
        return len(counts) if figure == "scalings" else max([begun_with, *counts])

    def _publications(self, figure: str, since: float, until: float) -> float | None:
        trace = self._trace
        sent = sum(counts.between(since, until) for counts in trace.sent.values())
        refused = sum(counts.between(since, until) for counts in trace.refused.values())
        if figure == "nack_ratio":
            return refused / sent if sent else 0.0
        return sent / (sent - refused) if sent > refused else None

    def _sent_most(self, since: float, until: float) -> float | None:
        starts = range(round(since / BIN), round(until / BIN) - _STEPS_A_SECOND + 1)
        sent = self._trace.sent.values()
        return max((sum(one.between(at * BIN, at * BIN + 1) for one in sent) for at in starts), default=None)

    def _of_class(self, name: str, figure: str, since: float, until: float) -> float | None:
        streams = [one for one, stream in self._scenario.streams.items() if name in {one, stream.priority}]
        trace = self._trace
        if figure.startswith("bridge"):
            return self._bridge(name, figure.removeprefix("bridge_"), since, until)
        if figure == "late_until":
            return max((_late_until(trace.consumed[stream]) for stream in streams), default=0.0)
        if figure.startswith("consumed"):
            every = chain.from_iterable(_within(trace.consumed[stream], since, until) for stream in streams)
            return _part(every, figure.removeprefix("consumed_"))
        begun = sum(_count(trace.consumed[stream], since, until) for stream in streams)
        if figure == "goodput":
            offered = sum(trace.offered[stream].between(since, until) for stream in streams)
            return begun / offered if offered else None
        everything = sum(_count(trace.consumed[stream], since, until) for stream in self._scenario.streams)
        return begun / everything if everything else None

    def _bridge(self, name: str, part: str, since: float, until: float) -> float | None:
        merged: dict[int, int] = {}
        for at, buckets in self._trace.bridged[name]:
            if since < at <= until + 1:
                for index, count in buckets.items():
                    merged[index] = merged.get(index, 0) + count
        us = quantile(merged, 0.5 if part == "p50" else 0.99)
        return None if us is None else us / 1e6

    def _use(self, queues: Sequence[str], since: float, until: float) -> float | None:
        worked = sum(self._trace.worked[queue].between(since, until) for queue in queues)
        possible = sum(self._possible(queue, since, until) for queue in queues)
        return worked / possible if possible else None

    def _possible(self, queue: str, since: float, until: float) -> float:
        """Return what its consumers could have done: the capacity, summed over the looks."""
        samples = [sample.capacity for sample in self._trace.queues[queue] if since <= sample.at < until]
        return sum(samples) / len(samples) * (until - since) if samples else 0.0

    def _delays(self, queues: Sequence[str], since: float, until: float) -> list[float]:
        looks: dict[float, float] = {}
        for queue in queues:
            for sample in self._trace.queues[queue]:
                if since <= sample.at <= until and sample.capacity:
                    looks[sample.at] = max(looks.get(sample.at, 0.0), sample.work / sample.capacity)
        return list(looks.values())

    def _balance(self, since: float, until: float) -> float | None:
        by_reads: dict[tuple[str, ...], list[int]] = {}
        for number, reads in self._trace.reads.items():
            by_reads.setdefault(reads, []).append(self._trace.confirmed[number].between(since, until))
        ratios = [min(counts) / max(counts) for counts in by_reads.values() if len(counts) > 1 and max(counts)]
        return min(ratios, default=None)

    # -- after something happened -------------------------------------------------------------------------------------

    def _affected(self, event: Happening) -> list[str]:
        touches = event.what in {"capacity", "consumers", "foreign"}
        return [self._scenario.queue_of(event)] if touches else list(self._scenario.queues)

    def _added(self, event: Happening) -> float | None:
        worst: float | None = None
        for queue in self._affected(event):
            before = [sample for sample in self._trace.queues[queue] if sample.at <= event.at]
            after = [s.work for s in self._trace.queues[queue] if event.at <= s.at <= event.at + ADDED_WITHIN]
            # What happens at second 0 may have changed the first sample already.
            capacity = before[-2].capacity if len(before) > 1 else self._scenario.queues[queue].capacity
            if capacity and after:
                worst = max(worst or 0.0, (max(after) - (before[-1].work if before else 0.0)) / capacity)
        return worst

    def _settled(self, event: Happening) -> float | None:
        """None if it never settles before the next event."""
        ends = event.seconds is not None and event.what not in {"capacity", "consumers", "foreign"}
        begin = event.at + (event.seconds or 0.0) if ends else event.at
        instants = (at for other in self._scenario.events for at in (other.at, other.at + (other.seconds or 0.0)))
        end = min([self._scenario.seconds, *(at for at in instants if at > begin)])
        queues = self._affected(event)
        steps = range(round(begin / BIN), round(end / BIN) - _STEPS_A_SECOND + 1)
        settled: float | None = None
        unsettled = 0
        for seen, step in enumerate(reversed(steps), start=1):
            if not self._is_settled(queues, step * BIN, step * BIN + 1):
                unsettled += 1
            elif unsettled <= STRAYS * seen:
                settled = step * BIN - begin
        return settled

    def _is_settled(self, queues: Sequence[str], since: float, until: float) -> bool:
        samples = [_slice(self._trace.queues[queue], since, until) for queue in queues]
        for queue, looks in zip(queues, samples, strict=True):
            if any(sample.work >= SHORT * sample.capacity for sample in looks):
                return False
            ours = sum(max(0.0, sample.capacity - sample.foreign) for sample in looks) / max(1, len(looks))
            admitted = self._trace.admitted[queue].between(since, until)
            full = sum(sample.capacity for sample in looks) / max(1, len(looks))
            if abs(admitted - ours * (until - since)) > NEAR * full * (until - since):
                return False
        return True

    def _stopped(self, event: Happening) -> float | None:
        queues = self._affected(event)
        capacity = sum(self._scenario.queues[queue].capacity for queue in queues)
        refused = [counts.bins for counts in self._trace.refused.values()]
        last = round(self._scenario.seconds / BIN)
        first = round(event.at / BIN)
        begin = next((i for i in range(first, last) if any(i < len(b) and b[i] for b in refused)), first)
        for step in range(begin, last - _STEPS_A_SECOND + 1):
            since = step * BIN
            sent = sum(counts.between(since, since + 1) for counts in self._trace.sent.values())
            if sent <= NOTHING * capacity:
                return since - begin * BIN
        return None


def _slice(samples: Sequence[QueueSample], since: float, until: float) -> Sequence[QueueSample]:
    """Return the looks of a window; they are evenly spaced, so their places are reckoned."""
    if len(samples) < 2:  # noqa: PLR2004 -- no spacing to tell
        return samples
    spacing = samples[1].at - samples[0].at
    return samples[round(since / spacing) : round(until / spacing)]


def _within(times: Times, since: float, until: float) -> Iterable[float]:
    return (seconds for at, seconds in zip(times.at, times.seconds, strict=True) if since <= at < until)


def _count(times: Times, since: float, until: float) -> int:
    return sum(since <= at < until for at in times.at)


def _part(values: Iterable[float], part: str) -> float | None:
    """Return the median, the 99th percentile or the largest value."""
    ordered = sorted(values)
    if not ordered:
        return None
    share = {"p50": 0.5, "p99": 0.99, "max": 1.0}[part]
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _late_until(times: Times) -> float:
    return max((at for at, seconds in zip(times.at, times.seconds, strict=True) if seconds > LATE), default=0.0)

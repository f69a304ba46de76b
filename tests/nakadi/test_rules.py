"""Whatever clients do: the rules hold, and a patient client gets every event."""

from math import inf
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nakadi.rig import Batch, Rig
from tests.nakadi.stream import Stream

PARTITIONS = 3
MOST = 4

DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(0, PARTITIONS - 1)),
        st.tuples(st.just("open"), st.integers(-1, PARTITIONS - 1)),
        st.tuples(st.just("pull"), st.integers(0, 4)),
        st.tuples(st.just("commit"), st.integers(0, 4)),
        st.tuples(st.just("close"), st.integers(0, 4)),
        st.tuples(st.just("wait"), st.integers(1, 70)),
    ),
    max_size=60,
)


class Clients:
    """Do what is drawn, and keep account of what they were sent."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.rig.bus.create("a", PARTITIONS)
        self.found = self.rig.subscribe("a")
        self.streams: list[Stream] = []
        self.lines: dict[str, list[Batch]] = {}
        self.next: dict[tuple[str, str], int] = {}
        self.committed = dict.fromkeys(map(str, range(PARTITIONS)), 0)

    def do(self, deed: str, number: int) -> None:
        """Do one thing."""
        rig, found = self.rig, self.found
        if deed == "publish":
            rig.publish("a", 2, number)
        elif deed == "wait":
            rig.now += number
            found.advance(rig.now)
        elif deed == "open":
            named = {} if number < 0 else {"partitions": (("a", str(number)),)}
            self.open(batch_limit=2, max_uncommitted_events=MOST, **named)
        elif self.streams:
            stream = self.streams[number % len(self.streams)]
            if deed == "pull":
                self.pull(stream)
            elif deed == "close":
                found.close(stream, "test", rig.now)
            else:
                self.commit(stream)
        self.judge()

    def open(self, **asked: Any) -> None:
        """Open a stream if there is a place for it."""
        before = set(self.found.streams)
        assert self.rig.refusal(self.rig.open, self.found, **asked) in {0, 409}
        self.streams += [each for name, each in self.found.streams.items() if name not in before]

    def pull(self, stream: Stream) -> None:
        """Take what a stream sends: each partition in order, from what is committed on."""
        for line in self.rig.pull(self.found, stream):
            partition, events = line["cursor"]["partition"], line.get("events", [])
            if events:
                start = self.next.get((stream.id, partition), self.committed[partition])
                assert events == list(range(start, start + len(events)))
                self.next[stream.id, partition] = start + len(events)
                self.lines.setdefault(stream.id, []).append(line)
                assert stream.state == "streaming"

    def commit(self, stream: Stream) -> None:
        """Commit the first line that is left."""
        if not self.lines.get(stream.id):
            return
        line = self.lines[stream.id].pop(0)
        partition = line["cursor"]["partition"]
        may = stream.state != "gone" and ("a", partition) in stream.readings
        assert (self.rig.refusal(self.rig.commit, self.found, stream, [line]) == 0) == may
        if may:
            self.committed[partition] = line["events"][-1] + 1

    def judge(self) -> None:
        """Hold the subscription to what must always be so."""
        owned = [key for each in self.found.streams.values() for key in each.readings]
        assert len(owned) == len(set(owned))
        for each in self.found.streams.values():
            assert each.uncommitted <= MOST
            assert each.uncommitted == sum(reading.uncommitted for reading in each.readings.values())
            assert each.uncommitted == sum(sum(reading.borders.values()) for reading in each.readings.values())
            assert each.state == "streaming" or (each.uncommitted and self.rig.now < each.gone_by)
        for key, part in self.found.parts.items():
            assert part.committed == self.committed[key[1]]
        for stream in self.streams:
            for partition in self.committed:
                if ("a", partition) not in stream.readings:
                    self.next.pop((stream.id, partition), None)


@settings(max_examples=200, deadline=None)
@given(DEEDS)
def test_the_rules_hold_and_nothing_is_lost_whatever_clients_do(deeds: list[tuple[str, int]]) -> None:
    clients = Clients()
    for deed, number in deeds:
        clients.do(deed, number)
    rig, found = clients.rig, clients.found
    for stream in list(found.streams.values()):
        found.close(stream, "test", rig.now)
    rig.now += 60.0
    found.advance(rig.now)
    assert not found.streams
    patient = rig.open(found, max_uncommitted_events=1_000)
    clients.streams.append(patient)
    clients.pull(patient)
    while clients.lines.get(patient.id):
        clients.commit(patient)
    ends = [log.end for log in rig.bus.event_types["a"].partitions]
    assert list(clients.committed.values()) == ends
    assert patient.gone_by == inf

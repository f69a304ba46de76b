"""What a recording does not tell, and what stands in its place: said in words in every output."""

from collections.abc import Collection, Iterator, Mapping

from proxy.tuning.arrivals import AT_FIRST
from proxy.tuning.intake import Intake
from proxy.tuning.recording import Recording

SEEN = 0.95
"""Share of the window in which the capacity must have been seen, to be called known."""


def assumed(recording: Recording, came: Collection[str], intakes: Mapping[str, Intake]) -> Iterator[str]:
    """Yield it; `came` are the classes of which it is known what came, `intakes` what is known of routes."""
    yield "consumers' prefetch: 50 ms of what they take; the time that one event takes: evenly within ±50 %"
    yield from _of_settings(recording)
    for name, told in intakes.items():
        yield from _of_route(recording, name, told)
    if any(record.get("depth_cost") is not None for record in recording.of_kind("verdict")):
        yield "events differ in cost; each counts as the mean one"
    if silent := [name for name in recording.classes if name not in came]:
        yield f"class {', '.join(silent)}: its lag was never known; left out"
    spans = [(recording.at(one[0]), recording.at(one[-1])) for one in recording.by_process("class")]
    if any(begin > AT_FIRST or end < recording.seconds - AT_FIRST for begin, end in spans):
        yield "replicas came or went: as many all the time as there were at most"


def _of_settings(recording: Recording) -> Iterator[str]:
    start = recording.in_force
    if start is None:
        yield "no `start` record: the default policy, the default settings, classes by their names"
    elif start.get("settings") is None:
        yield "the log is of a version that does not record its settings: the defaults"
    meanwhile = sum(recording.at(record) >= 0 for record in recording.of_kind("settings"))
    if meanwhile:
        yield f"settings changed while it was recorded ({meanwhile} records say so): all the time those of the end"


def _of_route(recording: Recording, name: str, told: Intake) -> Iterator[str]:
    seen = [record for record in recording.of_kind("route") if record["route"] == name]
    queues = [queue for queue, depth in (seen[-1]["queues"] or {}).items() if depth is not None]
    if len(queues) > 1:
        yield f"route {name}: its {len(queues)} queues as one; which events go where is not recorded"
    if not told.known:
        yield f"route {name}: its consumers were never busy; they can do twice the most that they did"
    elif told.known < SEEN:
        yield (
            f"route {name}: what its consumers can take was seen in {told.known:.0%} of the time; elsewhere, "
            "the higher of before and after"
        )
    if told.bound is None:
        yield f"route {name}: its queues have no bound; nothing was refused"
    if any(record["state"] in {"lost", "blocked"} for record in seen):
        yield f"route {name}: its connection was lost or blocked for a time; that is not replayed"

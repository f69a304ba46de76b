"""The generator of fleets: its truth holds together, and its logs tell what the truth says, as far as they can."""

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from load.metric_fleet import Fault, FleetError, Plan, faults, make
from load.metric_fleet.__main__ import main
from load.metric_fleet.files import as_version_1
from load.metric_fleet.fleet import Fleet
from load.metric_fleet.flow import work, work_at
from load.metric_fleet.life import Part, parts
from load.metric_fleet.make import records_a_minute
from load.metric_fleet.outcomes import Claim, fates, strongest
from load.metric_fleet.plan import START_MS
from load.metric_fleet.samples import Pools, percentiles
from load.metric_fleet.truth import truth
from proxy.congestion.buckets import highest_of
from proxy.records import KINDS, Buckets, Envelope, enveloped, fields_of
from proxy.records import Part as Fields

HARMLESS = frozenset(Fault) - {Fault.CRASH, Fault.LOSSY, Fault.ZOMBIE, Fault.REWIND, Fault.REDRIVE, Fault.OLD}
"""With these every position is committed, recorded and read once."""


def plan(*names: str, **changes: Any) -> Plan:
    return Plan(**{"types": 18, "active": 16, "minutes": 5.0, "faults": faults(names)} | changes)


def told(fleet: Fleet) -> "Iterator[tuple[Part, list[dict[str, Any]]]]":
    """Every part of every life with its records, as they are written by a clock that is right."""
    pools = Pools(fleet.plan)
    for life in fleet.lives:
        for number in range(parts(life)):
            part = Part(fleet, pools, life, number)
            records = [
                enveloped(record, at_ms=START_MS + at, instance=life.instance)
                for some in part.told()
                for at, record in some
            ]
            yield part, records


@pytest.fixture(scope="module")
def everything() -> "tuple[Fleet, list[dict[str, Any]], dict[str, Any]]":
    """A fleet in which everything goes wrong: itself, its records, its truth but for files."""
    fleet = Fleet(plan("all"))
    records = [record for _, some in told(fleet) for record in some]
    return fleet, records, truth(fleet, [], None)


# -- positions --------------------------------------------------------------------------------------------------------

some_faults = st.sets(st.sampled_from(list(Fault))).map(frozenset)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(seed=st.integers(0, 10**6), names=some_faults, replicas=st.integers(2, 5), minutes=st.integers(5, 30))
def test_every_position_has_one_outcome_when_anything_goes_wrong(
    seed: int, names: frozenset[Fault], replicas: int, minutes: int
) -> None:
    fleet = Fleet(Plan(seed=seed, faults=names, replicas=replicas, minutes=minutes, types=17, active=16))
    found = list(fates(fleet))
    assert {(one.log.kind.name, one.log.number) for one in found} == {
        (log.kind.name, log.number) for log in fleet.logs if not log.kind.is_old and log.kind.rate
    } | {(log.kind.name, log.number) for log in fleet.logs if not log.kind.rate and not log.kind.is_old}
    for one in found:
        if not one.log.kind.rate:
            assert one.ranges == []
            continue
        assert all(claim.first < claim.end for claim in one.ranges)
        assert all(left.end == right.first for left, right in zip(one.ranges, one.ranges[1:], strict=False))
        assert all(left.outcome != right.outcome for left, right in zip(one.ranges, one.ranges[1:], strict=False))
        if one.topic is one.log.topics[-1]:
            assert one.ranges[-1].end == one.log.end(fleet.plan.end_ms)


def test_the_stronger_claim_counts_when_two_overlap() -> None:
    claims = [
        Claim(0, 100, "in_log"),
        Claim(0, 50, "delivered"),
        Claim(40, 60, "dead_lettered:refused"),
        Claim(55, 70, "unrecorded"),
        Claim(10, 20, "expired"),
        Claim(30, 30, "skipped"),
    ]
    assert strongest(claims) == [
        Claim(0, 50, "delivered"),
        Claim(50, 60, "dead_lettered:refused"),
        Claim(60, 70, "unrecorded"),
        Claim(70, 100, "in_log"),
    ]


def outcomes(truth: dict[str, Any]) -> dict[tuple[str, int], dict[int, str]]:
    """The outcome of each position."""
    return {
        (one["topic_id"], one["partition"]): {
            position: outcome for first, end, outcome in one["ranges"] for position in range(first, end)
        }
        for one in truth["partitions"]
    }


def compare(records: list[dict[str, Any]], known: dict[str, Any]) -> tuple[int, dict[tuple[str, int], set[int]]]:
    """Read a ledger in plain Python, as far as the records tell one, and compare it.

    Return how many positions were held against the truth, and which were read twice, by topic id and partition.
    """
    compared = 0
    fate = outcomes(known)
    read: dict[tuple[str, int], set[int]] = defaultdict(set)
    twice: dict[tuple[str, int], set[int]] = defaultdict(set)
    other: dict[tuple[str, int], set[int]] = defaultdict(set)
    ranges = []
    for record in records:
        if record["kind"] == "committed":
            ranges += record["ranges"]
        elif record["kind"] in {"skip", "rewind", "redrive", "discard"}:
            other[record["topic_id"], record["partition"]] |= set(range(record["first"], record["end"]))
    for one in ranges:
        key, positions = (one["topic_id"], one["partition"]), set(range(one["first"], one["end"]))
        twice[key] |= read[key] & positions
        read[key] |= positions
    for one in ranges:
        key, positions = (one["topic_id"], one["partition"]), range(one["first"], one["end"])
        if not (twice[key] | other[key]).isdisjoint(positions):
            continue
        compared += len(positions)
        found = Counter(fate[key][position].removeprefix("dead_lettered:") for position in positions)
        letters = {name: count for name, count in found.items() if name not in {"delivered", "absent", "truncated"}}
        assert (one["delivered"], one["dead_lettered"]) == (found["delivered"], letters)
        assert len(one["letters"]) == 50 or sum(letter["count"] for letter in one["letters"]) == sum(letters.values())
        for letter in one["letters"]:
            reasons = {fate[key][position] for position in range(letter["first"], letter["end"])}
            assert reasons <= {letter["reason"], f"dead_lettered:{letter['reason']}"}
    for key, positions in fate.items():
        silent = {position for position, outcome in positions.items() if outcome in {"unrecorded", "in_log"}}
        assert silent.isdisjoint(read[key])
        explained = {position for position, outcome in positions.items() if outcome in {"truncated", "skipped"}}
        assert set(positions) - read[key] - silent - other[key] <= explained
    return compared, twice


def test_committed_ranges_tell_the_truth_when_everything_goes_wrong(
    everything: "tuple[Fleet, list[dict[str, Any]], dict[str, Any]]",
) -> None:
    _, records, known = everything
    compared, twice = compare(records, known)
    assert compared > sum(map(len, twice.values()))
    both = {(one["topic_id"], one["partition"]): range(one["first"], one["end"]) for one in known["conflicts"]}
    assert all(set(both[key]) <= twice[key] for key in both)
    assert len(both) > 3


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(seed=st.integers(0, 10**6), names=some_faults)
def test_committed_ranges_tell_the_truth_when_anything_goes_wrong(seed: int, names: frozenset[Fault]) -> None:
    fleet = Fleet(plan(*names, seed=seed))
    known = truth(fleet, [], None)
    compared, _ = compare([record for _, some in told(fleet) for record in some], known)
    fates = Counter(outcome for fate in outcomes(known).values() for outcome in fate.values())
    assert compared >= fates["delivered"] // 2, "what is held against the truth is too little to tell anything"


def test_the_ranges_of_an_epoch_follow_one_another_when_no_record_is_lost() -> None:
    fleet = Fleet(plan(*(set(Fault) - {Fault.LOSSY})))
    at: dict[tuple[str, int], int] = {}
    for _, records in told(fleet):
        for record in sorted(records, key=lambda one: one["at_ms"]):
            if record["kind"] == "assigned":
                at[record["instance"], record["epoch"]] = record["first"]
            for one in record.get("ranges", ()):
                key = (record["instance"], one["epoch"])
                assert one["first"] == at[key]
                at[key] = one["end"]


def test_unrecorded_is_only_what_a_kill_or_a_lossy_log_took(
    everything: "tuple[Fleet, list[dict[str, Any]], dict[str, Any]]",
) -> None:
    found = Counter(outcome for one in everything[2]["partitions"] for _, _, outcome in one["ranges"])
    wanted = {"delivered", "expired", "discarded", "skipped", "truncated", "absent", "unrecorded", "in_log"}
    assert wanted <= set(found)
    assert any(name.startswith("dead_lettered:") for name in found)
    for cause in ("crash", "lossy"):
        alone = truth(Fleet(plan(cause)), [], None)
        assert sum(one["positions"].get("unrecorded", 0) for one in alone["partitions"]) > 20
    calm = truth(Fleet(plan(*HARMLESS)), [], None)
    assert not any(outcome == "unrecorded" for one in calm["partitions"] for _, _, outcome in one["ranges"])


# -- counts -----------------------------------------------------------------------------------------------------------


def test_classes_types_routes_and_positions_say_the_same_when_no_record_is_lost() -> None:
    fleet = Fleet(plan(*HARMLESS))
    by_class: Counter[str] = Counter()
    by_type: Counter[str] = Counter()
    routes: Counter[str] = Counter()
    stops: Counter[str] = Counter()
    for part, records in told(fleet):
        for sums, into in ((part.known.by_class, by_class), (part.known.by_type, by_type)):
            for one in sums.values():
                into.update(one.counts)
                into["dead"] += one.dead_lettered.total()
        for record in records:
            if record["kind"] == "route":
                routes["confirmed"] += record["confirmed"]
                routes["samples"] += sum(record["publish_us"].values())
            if record["kind"] == "stop":
                stops["confirmed"] += record["confirmed"]
            if record["kind"] in {"class", "type"}:
                assert sum(record["publish_us"].values()) == record["confirmed"]
    delivered = sum(one["positions"].get("delivered", 0) for one in truth(fleet, [], None)["partitions"])
    assert by_class == by_type
    assert by_class["confirmed"] == routes["confirmed"] == routes["samples"] == delivered > 5_000
    assert by_class["dead"] > 100


def test_a_process_that_stops_in_order_says_what_it_did() -> None:
    fleet = Fleet(plan("restart", "letters", "gaps", "congestion"))
    of_instances: dict[str, Counter[str]] = defaultdict(Counter)
    stops = {}
    for _, records in told(fleet):
        for record in records:
            if record["kind"] == "class":
                of_instances[record["instance"]]["confirmed"] += record["confirmed"]
                of_instances[record["instance"]]["dead_lettered"] += sum(record["dead_lettered"].values())
            if record["kind"] == "stop":
                stops[record["instance"]] = {name: record[name] for name in ("confirmed", "dead_lettered")}
    assert stops == {name: dict(counts) for name, counts in of_instances.items()}


def test_percentiles_are_by_nearest_rank() -> None:
    found = percentiles(Counter(dict.fromkeys(range(1, 1001), 1)))
    ranks = {"p50_us": 500, "p90_us": 900, "p99_us": 990, "p999_us": 999, "p9999_us": 1_000}
    assert found == {"samples": 1_000, "max_us": 1_000} | ranks


# -- records ----------------------------------------------------------------------------------------------------------


def fits(kind: Any, value: Any) -> bool:
    """Whether a value is of a declared type; every number is 0 or more."""
    if get_origin(kind) is UnionType:
        return any((one is type(None) and value is None) or fits(one, value) for one in get_args(kind))
    if get_origin(kind) is list:
        return isinstance(value, list) and all(fits(get_args(kind)[0], one) for one in value)
    if get_origin(kind) is dict:
        return all(fits(get_args(kind)[1], one) for one in value.values())
    return has_fields(kind, value) if isinstance(value, dict) and kind is not Buckets else is_scalar(kind, value)


def has_fields(kind: type[Fields], value: dict[str, Any]) -> bool:
    fields = {field.name: field for field in fields_of(kind)}
    return set(value) == set(fields) and all(
        (field.is_optional and value[name] is None) or fits(field.type, value[name]) for name, field in fields.items()
    )


def is_scalar(kind: Any, value: Any) -> bool:
    if kind is Buckets:
        return all(0 <= int(index) <= 3286 and count > 0 for index, count in value.items())
    if kind is float:
        return isinstance(value, int | float) and value >= 0
    return isinstance(value, kind) and isinstance(value, bool) == (kind is bool) and (kind is not int or value >= 0)


def test_every_record_is_as_it_is_declared_when_everything_goes_wrong(
    everything: "tuple[Fleet, list[dict[str, Any]], dict[str, Any]]",
) -> None:
    envelope = {field.name for field in fields_of(Envelope)}
    for record in everything[1]:
        rest = {name: value for name, value in record.items() if name not in envelope}
        assert fits(KINDS[record["kind"]], rest), record
    kinds = {record["kind"] for record in everything[1]}
    assert set(KINDS) - kinds == {"produced", "consumed", "intervention", "settings"}


def test_a_record_of_version_1_lacks_what_came_later() -> None:
    found = as_version_1({"v": 2, "kind": "class", "at_ms": 5, "instance": "i", "confirmed": 3, "old": 1, "ahead": 0})
    assert found == {"v": 1, "kind": "class", "at_ms": 5, "instance": "i", "confirmed": 3}


def test_verdicts_hold_to_the_edges_of_episodes_within_a_tick(
    everything: "tuple[Fleet, list[dict[str, Any]], dict[str, Any]]",
) -> None:
    _, records, known = everything
    said: dict[str, set[int]] = defaultdict(set)
    before: dict[tuple[str, str], bool] = {}
    for record in sorted(records, key=lambda one: one["at_ms"]):
        if record["kind"] == "verdict" and record["congested"] is not None:
            key = (record["route"], record["instance"])
            if before.get(key, False) != record["congested"]:
                said[record["route"]].add(record["at_ms"])
            before[key] = record["congested"]
    for one in known["episodes"]:
        for edge in (at for stretch in one["stretches"] for at in stretch):
            assert any(0 <= at - edge <= one["within_ms"] for at in said[one["route"]])
    assert {one["cause"] for one in known["episodes"]} >= {"depth", "unacked", "latency"}


# -- files ------------------------------------------------------------------------------------------------------------


def lines(folder: Path) -> list[tuple[str, str]]:
    """The lines of every file, with its name; a file that lies in two places once."""
    files = {file.name: file for file in folder.rglob("*.jsonl.*")}
    texts = {
        name: (gzip.decompress(file.read_bytes()) if name.endswith("gz") else file.read_bytes()).decode()
        for name, file in files.items()
    }
    return [(name, line) for name, text in sorted(texts.items()) for line in text.split("\n") if line]


def test_the_same_plan_makes_the_same_bytes_and_each_line_is_accounted_for(tmp_path: Path) -> None:
    asked = plan("all")
    for workers in (1, 2):
        found = make(tmp_path / str(workers), asked, workers)
    one, two = (
        {
            file.relative_to(tmp_path / name): file.read_bytes()
            for file in (tmp_path / name).rglob("*")
            if file.is_file()
        }
        for name in "12"
    )
    assert one == two
    sound, rejected = Counter[str](), 0
    for _, line in lines(tmp_path / "1"):
        try:
            kind = json.loads(line)["kind"] if line.startswith("{") else "none"
        except (ValueError, KeyError):
            kind = "none"
        sound[kind] += 1
    rejected = sum(found["rejected"].values())
    assert sum(sound.values()) == sum(found["records"].values()) + rejected
    assert {name: sound[name] for name in ("class", "verdict", "committed")} == {
        name: found["records"][name] for name in ("class", "verdict", "committed")
    }
    assert sound["dream"] == found["rejected"]["unknown kind"] > 0
    assert {folder for file in found["files"] for folder in file["folders"]} == {"logs", "late", "again"}


def test_producers_and_consumers_tell_of_each_event_when_they_are_asked(tmp_path: Path) -> None:
    found = make(tmp_path / "out", plan("crash", "letters", events=True), 1)
    produced, consumed = set(), Counter[str]()
    for name, line in lines(tmp_path / "out"):
        if "producers" in name:
            produced.add(json.loads(line)["id"])
        if "consumers" in name:
            consumed[json.loads(line)["id"]] += 1
    proof = found["proof"]["by_class"].values()
    assert sum(one["produced"] for one in proof) == len(produced) == sum(
        end - first for one in found["partitions"] for first, end, _ in one["ranges"]
    )  # fmt: skip
    assert sum(one["delivered"] for one in proof) == len(consumed)
    assert sum(one["duplicated"] for one in proof) == consumed.total() - len(consumed) > 0
    assert sum(one["missing"] for one in proof) == len(produced - set(consumed)) > 20


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> "tuple[dict[str, Any], list[dict[str, Any]]]":
    """A fleet that tells of each event and has late ones: what is true of its targets, and its records."""
    out = tmp_path_factory.mktemp("fleet") / "out"
    faults = ("congestion", "crash", "letters", "truncated", "discard", "skip", "rewind", "unfinished")
    found = make(out, plan(*faults, events=True), 1)
    return found["slos"], [json.loads(line) for _, line in lines(out) if line.endswith("}")]


def test_every_process_tells_what_is_promised(lived: "tuple[dict[str, Any], list[dict[str, Any]]]") -> None:
    slos, records = lived
    told = [record["slos"] for record in records if record["kind"] == "start"]
    assert len(told) > 3
    for promised in told:
        assert promised == {name: {key: one[key] for key in promised[name]} for name, one in slos.items()}


@pytest.mark.parametrize("priority", ["P1", "P3"])
def test_late_bridge_times_are_those_of_the_buckets_minute_by_minute(
    lived: "tuple[dict[str, Any], list[dict[str, Any]]]", priority: str
) -> None:
    slo, records = lived[0][priority], lived[1]
    judged, at_most = Counter[int](), Counter[int]()
    for record in records:
        if record["kind"] == "class" and record["class"] == priority:
            minute = (record["at_ms"] - 1) // 60_000
            for index, number in record["bridge_us"].items():
                judged[minute] += number
                at_most[minute] += number * (highest_of(int(index)) > slo["within_s"] * 1e6)
    assert {begin // 60_000: number for begin, number, _ in slo["minutes"]} == judged
    assert sum(missed for *_, missed in slo["minutes"]) > 20
    for begin, _, missed in slo["minutes"]:
        assert 0 <= at_most[begin // 60_000] - missed <= 3  # what a bucket can't tell


def test_late_consumed_times_are_those_of_the_lines_minute_by_minute(
    lived: "tuple[dict[str, Any], list[dict[str, Any]]]",
) -> None:
    slo, records = lived[0]["P2"], [record for record in lived[1] if record.get("class") == "P2"]
    due = {record["id"]: record["at_ms"] for record in records if record["kind"] == "produced"}
    taken: dict[str, int] = {}
    for record in records:
        if record["kind"] == "consumed":
            taken[record["id"]] = min(record["at_ms"], taken.get(record["id"], record["at_ms"]))
    end_ms = START_MS + 300_000
    expected: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for key, at in due.items():
        if key in taken or at + 1_000 < end_ms:
            of_minute = expected[taken.get(key, at) // 60_000]
            of_minute[0] += 1
            of_minute[1] += key not in taken or taken[key] - at > 1_000
    assert slo["minutes"] == [[minute * 60_000, *expected[minute]] for minute in sorted(expected)]
    assert len(due.keys() - taken.keys()) > 20


# -- what is asked for ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("replicas", "types", "wanted"), [(2, 100, 100_000), (4, 400, 400_000)])
def test_about_as_many_records_are_made_as_are_asked_for(replicas: int, types: int, wanted: int) -> None:
    asked = Plan(replicas=replicas, types=types, active=types)
    minutes = wanted / records_a_minute(asked)
    fleet = Fleet(Plan(replicas=replicas, types=types, active=types, minutes=1))
    made = sum(len(records) for _, records in told(fleet))
    assert abs(made * minutes - wanted) < 0.15 * wanted


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--faults", "flood"], "--faults flood: there is none"),
        (["--faults", "crash", "--replicas", "1"], "needs --replicas 2"),
        (["--faults", "gaps", "--minutes", "1"], "faults need room"),
        (["--active", "50", "--types", "40"], "--active at most --types"),
        (["--events", "--rate", "90", "--minutes", "60"], "are more than 2,000,000"),
    ],
)
def test_one_sentence_says_what_to_change_when_a_fleet_can_not_be(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "out"), *options]) == 2
    assert words in capsys.readouterr().err


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FleetError, match="not empty"):
        make(tmp_path, plan())


def test_work_and_its_inverse_agree() -> None:
    for t_ms in range(-60_000, 40_000_000, 777_777):
        at = work_at(work(t_ms))
        assert abs(at - t_ms) <= 2

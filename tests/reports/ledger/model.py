"""The ledger by hand: position by position in plain Python, from docs/design/0032 and not from the queries."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tests.reports.ledger.told import Key, Partition, Record, partitions


class Row(NamedTuple):
    """One of the ledger, or a finding (then without a reason)."""

    key: Key
    first: int
    end: int
    name: str
    reason: str | None
    positions: int


class Claim(NamedTuple):
    """A range and so many events, by the name of what it is."""

    first: int
    end: int
    kind: str = ""
    count: int | None = None
    reason: str | None = None
    is_full: bool = True
    is_redriven: bool = False
    elsewhere: tuple[tuple[str, int], ...] = ()


def ledger(run: str, records: Sequence[Record]) -> tuple[set[Row], set[Row]]:
    """Return the ledger and the findings of a run."""
    rows: list[tuple[Row, bool]] = []
    findings: list[tuple[Row, bool]] = []
    for key, told in partitions(run, records).items():
        book = Book(key, told)
        rows += book.rows()
        findings += book.findings()
    return _joined(rows), _joined(findings)


def _holders(claims: Iterable[Claim]) -> dict[int, Claim]:
    """Return who has each position: who comes first."""
    holders: dict[int, Claim] = {}
    for claim in claims:
        for position in range(claim.first, claim.end):
            holders.setdefault(position, claim)
    return holders


def _by_place(record: Record) -> tuple[Any, ...]:
    count = record.get("delivered", record.get("count"))
    return record["first"], -record["end"], record["instance"], record.get("epoch", 0), 1 if count is None else -count


def _placed(one: Record) -> Counter[str]:
    """Return how many dead letters of a range have a place, by reason."""
    placed = Counter[str]()
    for letter in one["letters"]:
        placed[letter["reason"]] += letter["count"]
    return placed


class Book:
    """Of one partition."""

    def __init__(self, key: Key, told: Partition) -> None:
        self._key = key
        self._told = told
        self._order = sorted(told.ranges, key=_by_place)
        reads = [
            Claim(one["first"], one["end"], f"read {at}", one["delivered"], elsewhere=self._elsewhere(one))
            for at, one in enumerate(self._order)
        ]
        letters = [letter for reason in self._reasons() for letter in self._letters(reason)]
        self._holders = {
            "read": _holders(reads),
            "letter": _holders(sorted(letters, key=lambda one: (one.first, -one.end, one.reason))),
            "discard": _holders(self._people("discard")),
            "skip": _holders(self._people("skip")),
        }
        self._through = {one["committed"] for one in told.assigned if one["committed"] is not None}
        self._jumps = {
            one["first"] for one in told.assigned if one["committed"] is None or one["committed"] < one["first"]
        }
        self._edges = self._through | {one["first"] for one in told.assigned}
        self._edges |= {edge for one in (*reads, *letters) for edge in (one.first, one.end)}
        placed = [letter for one in told.ranges for letter in one["letters"]]
        self._full = [one for one in told.of["redrive"] if one["count"] >= one["end"] - one["first"]]
        some = [*self._full, *(one for kind, some in told.of.items() if kind != "redrive" for one in some)]
        self._edges |= {edge for one in (*some, *placed) for edge in (one["first"], one["end"])}
        self._done = self._done_with()
        log_ends = [one["end"] for one in told.assigned if one["end"] is not None]
        self._positions = range(min(self._edges, default=0), max([*self._edges, *log_ends], default=0))
        self._fates = {position: self._fate(position) for position in self._positions} if self._edges else {}

    def rows(self) -> Iterator[tuple[Row, bool]]:
        """Yield the rows of each position, or of each claim that has fewer events than positions."""
        members: dict[Claim, list[int]] = defaultdict(list)
        for position, (name, claim) in self._fates.items():
            if claim is None:
                yield self._row(position, position + 1, name), True
            else:
                members[claim].append(position)
        for claim, positions in members.items():
            shared = [at for at, holder in self._holders["read"].items() if holder is claim and self._is_shared(at)]
            yield from self._of_claim(claim, positions, len(shared) + self._shared_before(claim))

    def findings(self) -> Iterator[tuple[Row, bool]]:
        """Yield what contradicts itself, or is missing."""
        for position, (name, _) in self._fates.items():
            if name in {"passed_over", "deleted"}:
                yield self._row(position, position + 1, "gap" if name == "passed_over" else name), True
            if self._covering(position, "read") - 1 > self._covering(position, "rewind"):
                yield self._row(position, position + 1, "overlap"), True
        for at, one in enumerate(self._order):
            mine = [position for position, holder in self._holders["read"].items() if holder.kind == f"read {at}"]
            more = one["delivered"] + sum(one["dead_lettered"].values()) - (one["end"] - one["first"])
            if mine and more > 0:
                yield self._row(min(mine), one["end"], "repeated", more), True
        for at in {one["first"] for one in self._told.assigned}:
            is_inside = self._epoch(at) is not None and self._epoch(at) == self._epoch(at - 1)
            if is_inside and not self._covering(at, "rewind") and self._covering(at, "read") == 1:
                yield self._row(at, min(edge for edge in self._edges if edge > at), "went_back"), True

    def _row(self, first: int, end: int, name: str, positions: int | None = None, reason: str | None = None) -> Row:
        return Row(self._key, first, end, name, reason, end - first if positions is None else positions)

    def _reasons(self) -> set[str]:
        return {letter["reason"] for one in self._told.ranges for letter in one["letters"]}

    def _letters(self, reason: str) -> Iterator[Claim]:
        """Yield the dead letters of a reason, disjoint, cut at the edges of redrives of it."""
        letters = [
            {**letter, "instance": one["instance"], "epoch": one["epoch"]}
            for one in self._told.ranges
            for letter in one["letters"]
            if letter["reason"] == reason
        ]
        redrives = [one for one in self._told.of["redrive"] if one["reason"] == reason]
        edges = {edge for one in redrives for edge in (one["first"], one["end"])}
        at = -1
        for letter in sorted(letters, key=_by_place):
            start, end = max(at, letter["first"]), letter["end"]
            is_full = letter["count"] >= end - letter["first"]
            cuts = [start, *sorted(edge for edge in edges if start < edge < end), end] if start < end else []
            for first, until in pairwise(cuts):
                count = until - first if is_full else min(letter["count"], until - first)
                is_sent = any(one["first"] <= first < one["end"] for one in redrives)
                yield Claim(first, until, "letter", count, reason, is_full=is_full, is_redriven=is_sent)
            at = max(at, end)

    def _people(self, kind: str) -> list[Claim]:
        some = sorted(self._told.of[kind], key=_by_place)
        return [Claim(one["first"], one["end"], f"{kind} {at}", one["count"]) for at, one in enumerate(some)]

    @staticmethod
    def _elsewhere(one: Record) -> tuple[tuple[str, int], ...]:
        """Return the dead letters that have no place."""
        placed = _placed(one)
        left = {name: count - placed[name] for name, count in one["dead_lettered"].items()}
        return tuple(sorted((name, count) for name, count in left.items() if count > 0))

    def _done_with(self) -> int:
        """Return up to where the group is done: the furthest told; if something was rewound, the last told."""
        told = self._told
        dones = [(one["at_ms"], one["end"]) for one in (*told.ranges, *told.of["skip"], *told.of["discard"])]
        dones += [(one["at_ms"], one["first"]) for one in told.assigned]
        dones += [(one["at_ms"], one["committed"]) for one in told.assigned if one["committed"] is not None]
        if told.of["rewind"]:
            return max(dones, default=(0, -1))[1]
        return max((done for _, done in dones), default=-1)

    def _covering(self, position: int, kind: str) -> int:
        some = self._told.ranges if kind == "read" else self._told.of[kind]
        return sum(one["first"] <= position < one["end"] for one in some)

    def _is_exact(self, one: Record) -> bool:
        room = one["end"] - one["first"] - sum(letter["end"] - letter["first"] for letter in one["letters"])
        return not self._elsewhere(one) and bool(one["delivered"] >= room)

    def _sure(self, position: int) -> int:
        """Return how many ranges say for certain that the position was delivered."""
        found = 0
        for one in self._told.ranges:
            if self._is_exact(one) and one["first"] <= position < one["end"]:
                found += 1 - sum(letter["first"] <= position < letter["end"] for letter in one["letters"])
        return found

    def _is_sure(self, position: int) -> bool:
        return self._covering(position, "read") > 1 and self._sure(position) > 0

    def _fate(self, position: int) -> tuple[str, Claim | None]:
        """Return what became of a position, and by which claim, if that counts events."""
        letter, read = (self._holders[kind].get(position) for kind in ("letter", "read"))
        discard, skip = (self._holders[kind].get(position) for kind in ("discard", "skip"))
        is_sent = any(one["first"] <= position < one["end"] for one in self._full)
        is_skipped = self._covering(position, "skip") > self._covering(position, "rewind")
        decided: list[tuple[Any, str, Claim | None]] = [
            (self._is_sure(position) or is_sent, "delivered", None),
            (letter and letter.is_full, "letter", letter),
            (discard, "discarded", discard),
            (is_skipped, "skipped", skip),
            (self._covering(position, "truncated"), "truncated", None),
            (letter, "letter", letter),
            (read, "delivered", read),
            (True, self._unclaimed(position), None),
        ]
        return next((name, claim) for holds, name, claim in decided if holds)

    def _unclaimed(self, position: int) -> str:
        if position >= self._done:
            return "in_log" if self._told.is_current else "deleted"
        following = min((edge for edge in self._edges if edge > position), default=None)
        return "passed_over" if following in self._jumps - self._through else "unrecorded"

    def _shared_before(self, claim: Claim) -> int:
        """Return how many events of a range lie in an earlier one that reaches furthest and is sure of them."""
        if not claim.kind.startswith("read"):
            return 0
        at = int(claim.kind.split()[1])
        last = max(((one["end"], self._is_exact(one)) for one in self._order[:at]), default=(0, False))
        cut = last[0] - claim.first - sum(self._order[at]["dead_lettered"].values())
        return max(0, cut) if last[1] else 0

    def _is_shared(self, position: int) -> bool:
        """Return whether who holds a position, and another who is sure, both delivered it."""
        others = any(position in self._holders[kind] for kind in ("letter", "discard", "skip"))
        return self._is_sure(position) and not others and not self._covering(position, "truncated")

    def _of_claim(self, claim: Claim, positions: Sequence[int], shared: int) -> Iterator[tuple[Row, bool]]:
        """Yield the rows of a claim that decides these positions."""
        size, elsewhere = len(positions), dict(claim.elsewhere)
        name, reason = self._fates[positions[0]][0], None
        if name == "letter":
            name = "expired" if claim.reason == "expired" else "dead_lettered"
            name, reason = ("delivered" if claim.is_redriven else name), claim.reason
        reason = reason if name == "dead_lettered" else None
        events = min(size if claim.count is None else max(0, claim.count - shared), size)
        if events == size and not elsewhere:
            yield from ((self._row(at, at + 1, name, reason=reason), True) for at in positions)
            return
        letters = min(sum(elsewhere.values()), size)
        events = min(events, size - letters)
        if sum(elsewhere.values()) > size:
            elsewhere = {"": size}
        parts = [(name, reason, events), ("absent", None, size - letters - events)]
        for of, count in elsewhere.items():
            parts.append(("expired", None, count) if of == "expired" else ("dead_lettered", of or None, count))
        for part, why, count in parts:
            if count:
                yield self._row(min(positions), max(positions) + 1, part, count, why), False

    def _epoch(self, position: int) -> tuple[str, int] | None:
        """Return whose range has a position."""
        holder = self._holders["read"].get(position)
        one = None if holder is None else self._order[int(holder.kind.split()[1])]
        return None if one is None else (one["instance"], one["epoch"])


def _joined(rows: Iterable[tuple[Row, bool]]) -> set[Row]:
    """Join rows of one fate that touch or overlap."""
    alike: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row, is_exact in rows:
        alike[row.key, row.name, row.reason, is_exact].append(row)
    joined = set()
    for some in alike.values():
        now: Row | None = None
        for row in sorted(some, key=lambda one: (one.first, one.end)):
            if now is None or row.first > now.end:
                if now is not None:
                    joined.add(now)
                now = row
            else:
                now = now._replace(end=max(now.end, row.end), positions=now.positions + row.positions)
        if now is not None:
            joined.add(now)
    return joined

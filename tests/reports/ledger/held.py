"""A history's ledger held against what truly happened in it (`tests.histories.true_ledger`)."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tests.histories.true_ledger import ABSENT, Account, At, Truth, records_of
from tests.reports.ledger.model import Row

_TOLD = {"delivered", "dead_lettered", "expired", "absent"}
"""What a record says that was written when it was committed."""


def differences(account: Account, rows: Sequence[Row], findings: Sequence[Row]) -> Iterator[str]:
    """Yield where a history's ledger says what is not so."""
    recorded = _recorded(account)
    of, found = defaultdict[At, list[Row]](list), defaultdict[At, list[Row]](list)
    for some, by_place in ((rows, of), (findings, found)):
        for row in some:
            _, _, topic, topic_id, partition = row.key
            by_place[topic, topic_id, partition].append(row)
    for at, truth in account.truth.items():
        for wrong in _wrong(truth, of[at], found[at], recorded[at]):
            yield f"seed {account.seed}, {at}: {wrong}"
    yield from (f"seed {account.seed}: {at} was nobody's" for at in of.keys() - account.truth.keys())


def _recorded(account: Account) -> dict[At, Counter[int]]:
    """Return how many records that are left say of each position that it was committed."""
    found: dict[At, Counter[int]] = defaultdict(Counter)
    for record in records_of(account):
        for one in record["ranges"] if record["kind"] == "committed" else ():
            found[record["topic"], one["topic_id"], one["partition"]].update(range(one["first"], one["end"]))
    return found


def _wrong(truth: Truth, rows: Sequence[Row], findings: Sequence[Row], recorded: Counter[int]) -> Iterator[str]:
    exact = {at: row for row in rows if row.positions == row.end - row.first for at in range(row.first, row.end)}
    for position, row in exact.items():
        name = row.reason or row.name
        if wrong := _wrong_position(truth, position, name, is_recorded=bool(recorded[position])):
            yield f"{position} is {name}, {wrong}"
    if not truth.is_blurred:
        numbers = Counter[str]()
        for row in rows:
            if row.positions != row.end - row.first:
                numbers[row.reason or row.name] += row.positions
        wanted = Counter(truth.ends.get(at, "nothing") for at in recorded if at not in exact)
        if numbers != wanted:
            yield f"by number {dict(numbers)}, it was {dict(wanted)}"
    overlap = {at for row in findings if row.name == "overlap" for at in range(row.first, row.end)}
    if overlap != {at for at, count in recorded.items() if count > 1}:
        yield f"{sorted(overlap)} are said to be committed twice, {+recorded} are recorded"
    if lacking := truth.ends.keys() - set(range(min(truth.ends, default=0), max((row.end for row in rows), default=0))):
        certain = [at for at in lacking if not truth.may_lack[at]]
        yield from (f"{at} is in no row" for at in certain)


def _wrong_position(truth: Truth, position: int, name: str, *, is_recorded: bool) -> str | None:
    """Return what is wrong with the end that the ledger gives a position; None if it is right."""
    end = truth.ends.get(position)
    match name:
        case "truncated":
            right = position in truth.dropped and end in {None, "truncated"}
        case "unrecorded":
            right = not is_recorded and (truth.may_lack[position] if end else position < truth.reached)
        case "in_log" | "deleted":
            right = not is_recorded and truth.is_there == (name == "in_log") and (not end or truth.may_lack[position])
        case "passed_over":
            right = not is_recorded and (not end or truth.may_lack[position])
        case _:
            right = is_recorded and (name == end or (truth.is_blurred and ABSENT in {name, end}))
    return None if right else f"it was {end}, recorded: {is_recorded}, committed up to {truth.reached}"

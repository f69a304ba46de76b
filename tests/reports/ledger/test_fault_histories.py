"""The ledger against the truth: metric records of fault histories, and what log and broker know of every position."""

from collections import Counter, defaultdict
from typing import Any

import pytest

from tests.histories.history import lived
from tests.histories.plan import CURSORS, Plan, draw
from tests.histories.true_ledger import account, records_of
from tests.reports.ledger.books import ledger_of
from tests.reports.ledger.held import differences
from tests.reports.ledger.model import Row

SEEDS = 100
QUICK_SEEDS = 15
"""Of them, before every commit."""


def _unmoved(plan: Plan) -> Plan:
    """Return the plan without moves of cursors: of these the judge does not keep a ledger of its own yet."""
    return plan.only(frozenset(at for at, fault in enumerate(plan.faults) if fault.kind not in CURSORS))


@pytest.mark.parametrize(
    ("seeds", "met"),
    [
        pytest.param(range(QUICK_SEEDS), {"expired", "dead_lettered", "unrecorded"}, id="first"),
        pytest.param(
            range(QUICK_SEEDS, SEEDS),
            {"expired", "dead_lettered", "unrecorded", "passed_over", "deleted", "in_log"},
            id="others",
            marks=pytest.mark.long,
        ),
    ],
)
def test_the_ledger_is_what_happened_when_histories_of_faults_are_lived(
    spark: Any, seeds: range, met: set[str]
) -> None:
    accounts = {f"seed{seed}": account(lived(_unmoved(draw(seed)))) for seed in seeds}
    rows, findings = ledger_of(spark, {run: records_of(one) for run, one in accounts.items()})
    of: dict[str, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for number, some in enumerate((rows, findings)):
        for row in some:
            of[row.key[0]][number].append(row)
    wrong = [text for run, one in accounts.items() for text in differences(one, *of[run])]
    assert wrong == []
    outcomes = Counter[str]()
    for row in rows:
        outcomes[row.name] += row.positions
    assert outcomes.keys() >= {"delivered", "absent", *met}

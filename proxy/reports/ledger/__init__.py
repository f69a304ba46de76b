"""The ledger: of every partition which positions met which end, and what contradicts itself in that (docs/design/0032).

`claims` is what each record says of which positions, `segments` lays all claims on a partition over each other, and
`outcomes` says what became of each segment and joins neighbours of one fate.
"""

from proxy.reports.ledger.claims import Told
from proxy.reports.ledger.outcomes import accounts, by_topic, finding_rows, ledger_rows
from proxy.reports.ledger.words import sentence

__all__ = ["Told", "accounts", "by_topic", "finding_rows", "ledger_rows", "sentence"]

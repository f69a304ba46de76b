"""For how long a partition is left out of the fetches of a node that answers with an error for it."""

from typing import Any

FIRST_REST = 0.1
LONGEST_REST = 2.0
"""Seconds for which a partition that fails is left out: the first time, doubled up to the longest."""
LONGEST_REST_MOVED = 0.4
"""The same where the error says that another node leads it by now: the metadata are on their way."""


class Refusal:
    """A node's error for one partition."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.error = 0
        self.rest = 0.0
        self.until = 0.0

"""Which host a lane tries next: each in turn, but for those that were just found silent. Pure: handed `now`."""

from collections.abc import Iterator

SILENT_FOR = 15.0
"""Seconds for which a host that said nothing is passed over, if there is another: to try it costs seconds."""


class HostTurn:
    """Of one lane; `hosts` gives all in turn, without end."""

    def __init__(self, hosts: Iterator[str]) -> None:
        self._hosts = hosts
        self._silent_until: dict[str, float] = {}

    def next(self, now: float) -> str:
        """Return the next that is not known to be silent; the next of all if each is."""
        first = host = next(self._hosts)
        while self._silent_until.get(host, now) > now:
            host = next(self._hosts)
            if host == first:
                break
        return host

    def pass_over(self, host: str, now: float) -> None:
        """Know that a host said nothing when it should have."""
        self._silent_until[host] = now + SILENT_FOR

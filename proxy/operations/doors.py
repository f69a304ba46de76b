"""Who is let in at the admin address: proofs, and what is refused, counted and said without filling the log."""

import hmac
import ipaddress
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

import structlog
from prometheus_client.core import CounterMetricFamily

from proxy.access import Access
from proxy.operations.endpoints import Openness
from proxy.settings import AdminSettings

SAID_EVERY_SECONDS = 60.0
"""Between two lines of the log about refusals of one kind."""
_say = structlog.get_logger("tidegate.admin")


class Refusal(StrEnum):
    """Why somebody was not let in."""

    NO_PROOF = "no_proof"
    WRONG_TOKEN = "wrong_token"  # noqa: S105 - no secret
    WRONG_CERTIFICATE = "wrong_certificate"
    """Or no TLS at all: the connection never came about."""
    UNGUARDED = "unguarded"
    """There is nothing by which anyone could prove who they are."""
    FOREIGN_NAME = "foreign_name"
    """A page of somebody else's, in the browser of whoever may ask, asks in their name."""


@dataclass(frozen=True, slots=True)
class Caller:
    """What is known of whoever asks."""

    host: str
    """The `Host` header."""
    origin: str | None = None
    """The `Origin` header."""
    authorization: str | None = None
    """The `Authorization` header."""
    has_certificate: bool = False
    """It showed one that its authority has signed."""


class Doors:
    """Judges callers. `clock` gives seconds."""

    def __init__(self, settings: AdminSettings, access: Access, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._access = access
        self._clock = clock
        self._refused: Counter[Refusal] = Counter()
        self._unsaid: Counter[Refusal] = Counter()
        self._said_at: dict[Refusal, float] = {}

    def judge(self, openness: Openness, caller: Caller) -> Refusal | None:
        """Return why the caller is not answered; None: it is."""
        settings = self._settings
        if openness is Openness.PROBE:
            return None
        if settings.asks_proof:
            return self._judge_proof(caller)
        if openness is Openness.FIGURES:
            return None
        if not settings.is_local:
            return Refusal.UNGUARDED
        # Without a proof the address itself is one, so the question must have been meant for it.
        is_own = _is_loopback(caller.host) and (caller.origin is None or caller.origin.split("//")[-1] == caller.host)
        return None if is_own else Refusal.FOREIGN_NAME

    def _judge_proof(self, caller: Caller) -> Refusal | None:
        tls = self._settings.tls
        if caller.has_certificate and tls is not None and tls.client_ca_file is not None:
            return None
        if caller.authorization is None or self._access.password is None:
            return Refusal.NO_PROOF
        kind, _, shown = caller.authorization.partition(" ")
        is_ours = hmac.compare_digest(shown.strip().encode(), self._access.password.encode())
        return None if is_ours and kind.lower() == "bearer" else Refusal.WRONG_TOKEN

    def on_refused(self, why: Refusal, address: str) -> None:
        """Count a refusal, and say so unless that was said just now."""
        self._refused[why] += 1
        self._unsaid[why] += 1
        now, said_at = self._clock(), self._said_at.get(why)
        if said_at is None or now - said_at >= SAID_EVERY_SECONDS:
            self._said_at[why] = now
            _say.warning("admin_refused", why=why.value, last_from=address, times=self._unsaid.pop(why))

    def families(self) -> Iterable[CounterMetricFamily]:
        """Yield what /metrics tells of them."""
        refused = CounterMetricFamily("tidegate_admin_refused", "Not let in at the admin address.", labels=["why"])
        for why in Refusal:
            refused.add_metric([why.value], self._refused[why])
        yield refused


def _is_loopback(host: str) -> bool:
    """Return whether a `Host` header names this host: a page from elsewhere can only have its own name lead here."""
    name = host[: host.rindex("]") + 1].strip("[]") if "]" in host else host.partition(":")[0]
    try:
        return name.lower() == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False

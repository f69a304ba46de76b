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
    certificate: str = ""
    """The name in it."""


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
        if openness in {Openness.PROBE, Openness.SHELL}:
            return None
        is_own_page = caller.origin is None or caller.origin.split("//")[-1] == caller.host
        if settings.asks_proof:
            refusal = self._judge_proof(caller)
            # A browser shows its certificate for whatever page asks; a token it does not know.
            by_certificate = refusal is None and self._shows_certificate(caller)
            is_led = openness is Openness.CHANGES and by_certificate and not is_own_page
            return Refusal.FOREIGN_NAME if is_led else refusal
        if openness is Openness.FIGURES:
            return None
        if not settings.is_local:
            return Refusal.UNGUARDED
        # Without a proof the address itself is one, so the question must have been meant for it.
        return None if _is_loopback(caller.host) and is_own_page else Refusal.FOREIGN_NAME

    def name(self, caller: Caller, address: str) -> str:
        """Return what is proved of whoever was let in: the certificate's name, the token, or only the address."""
        if self._shows_certificate(caller):
            return f"certificate {caller.certificate}"
        return "token" if self._settings.asks_proof else address

    def _shows_certificate(self, caller: Caller) -> bool:
        tls = self._settings.tls
        return caller.has_certificate and tls is not None and tls.client_ca_file is not None

    def _judge_proof(self, caller: Caller) -> Refusal | None:
        if self._shows_certificate(caller):
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

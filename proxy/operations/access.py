"""What /metrics tells of certificates and tokens: for how long they are valid still."""

import time
from collections.abc import Callable, Iterable, Sequence

from prometheus_client.core import GaugeMetricFamily

from proxy.access import Access


def access_families(logins: Sequence[Access], wall: Callable[[], float] = time.time) -> Iterable[GaugeMetricFamily]:
    """Yield the seconds left, negative after the end; `at` is the part of the settings."""
    certificates = GaugeMetricFamily(
        "tidegate_certificate_seconds_left", "Of our own certificate, or of a server's.", labels=["at", "whose"]
    )
    tokens = GaugeMetricFamily("tidegate_token_seconds_left", "Of the token in use.", labels=["at"])
    now = wall()
    for login in logins:
        for whose, left in login.expiries.left(now):
            certificates.add_metric([login.place, whose], left)
        token_left = login.token_left()
        if token_left is not None:
            tokens.add_metric([login.place], token_left)
    yield certificates
    yield tokens

"""What log and broker are logged in with, always as it is now: certificates, keys, passwords, tokens.

    settings ─► Access ─┬─► kafka_log    asked at every login, and before a session there ends
        ▲ files, command └─► rabbitmq     asked at every login; a new token is sent on living connections

Nothing here knows a client. What is half written, missing or wrong for a moment never replaces what was usable.
"""

from proxy.access.access import (
    LOOK_SECONDS,
    Access,
    admin_access,
    broker_access,
    log_access,
    management_access,
    nakadi_access,
    notice_access,
)

__all__ = [
    "LOOK_SECONDS",
    "Access",
    "admin_access",
    "broker_access",
    "log_access",
    "management_access",
    "nakadi_access",
    "notice_access",
]

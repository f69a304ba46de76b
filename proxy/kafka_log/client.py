"""How every connection to Kafka is made: addresses, encryption, login, and the manners taught to the library."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import aiokafka.conn
import aiokafka.consumer.consumer
import structlog
from aiokafka import errors
from aiokafka.conn import create_conn, get_ip_port_afi

from proxy.errors import RefusedLoginError
from proxy.kafka_log import schemas, unpacking
from proxy.kafka_log.asking import ASK_ANOTHER
from proxy.kafka_log.coordination import Coordination
from proxy.kafka_log.login import Credentials, SecuredConnection, refusal
from proxy.kafka_log.network import Network
from proxy.kafka_log.slices import Slices
from proxy.kafka_log.subscriptions import Subscriptions
from proxy.kafka_log.words import NoHostError, unreached
from proxy.settings import LogSettings

_say = structlog.get_logger("tidegate.kafka")

_T = TypeVar("_T")

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 2.0
"""Seconds between attempts to reach an absent log: the first pause, doubled up to the longest."""


class Reach:
    """Whether the log answers; every change is said to `say` once, however many callers notice it."""

    def __init__(self, hosts: Sequence[str], say: Any = _say) -> None:
        self._hosts = list(hosts)
        self._say = say
        self._failing: dict[str, str] = {}
        """Why, by caller."""
        self._since = 0.0

    @property
    def is_lost(self) -> bool:
        """True while some caller's last request failed."""
        return bool(self._failing)

    def why(self, caller: str) -> str | None:
        """Return why the caller's last request failed; None: it did not."""
        return self._failing.get(caller)

    def lost(self, caller: str, why: str) -> None:
        """Note that the caller's request failed or stayed unanswered."""
        if not self._failing:
            self._since = asyncio.get_running_loop().time()
            self._say.warning("log_unavailable", hosts=self._hosts, why=why, effect="waiting for it")
        self._failing[caller] = why

    def found(self, caller: str) -> None:
        """Note that the caller's request was answered."""
        if caller in self._failing:
            del self._failing[caller]
            if not self._failing:
                self._say.info("log_available", after_s=round(asyncio.get_running_loop().time() - self._since, 1))


CLIENT = "tidegate"
"""What it is called to the log; a group names its members by it, but for static ones."""


def options(
    settings: LogSettings, credentials: Credentials, *, request_seconds: float, first: str = ""
) -> dict[str, Any]:
    """Return what every client of the library is made with; its connections ask `credentials` for the secrets.

    The library tries the hosts one after the other; `first` is one that is known to answer.
    """
    security = settings.security
    return {
        "bootstrap_servers": sorted(settings.hosts, key=lambda host: host != first),
        "client_id": CLIENT,
        "request_timeout_ms": round(request_seconds * 1000),
        "metadata_max_age_ms": round(settings.metadata_age * 1000),
        "security_protocol": security.protocol,
        "ssl_context": credentials.access.context,
        "sasl_mechanism": security.mechanism,
        "sasl_plain_username": security.username,
        "sasl_plain_password": "",
        "sasl_oauth_token_provider": credentials,
    }


def teach_manners() -> None:
    """Teach the library what it does not offer. May be called any number of times.

    - One timeout serves all its requests, and one silent node holds up the others: its consumer gets our `Network`.
    - It reads answers as a whole, whatever they hold once decompressed, and names every partition in every fetch: its
      consumer gets our `Slices`, and the `Subscriptions` that tell them what has changed.
    - A subscription that changes while it seeks the group's broker ends it: its consumer gets our `Coordination`.
    - Between a reset and its notice of it, it writes to a transport that is closed already. asyncio's lets that pass,
      uvloop's raises RuntimeError, which is no failure of Kafka's to anyone: it would end the process.
    - It logs in once, with what it was told at the beginning; see `login`.
    - It logs every failed attempt of every connection. `Reach` and the adapter say the same once per change of state.
      Whoever gives the logger a level of its own keeps it.
    """
    aiokafka.conn.AIOKafkaConnection = SecuredConnection
    aiokafka.consumer.consumer.AIOKafkaClient = Network
    aiokafka.consumer.consumer.Fetcher = Slices
    aiokafka.consumer.consumer.SubscriptionState = Subscriptions
    aiokafka.consumer.consumer.GroupCoordinator = Coordination
    unpacking.teach()
    schemas.teach()
    library = logging.getLogger("aiokafka")
    if library.level == logging.NOTSET:
        library.setLevel(logging.CRITICAL + 1)


async def persist(connect: Callable[[], Awaitable[_T]], reach: Reach, protocol: str) -> _T:
    """Call `connect` until it succeeds, however long that takes; return what it does.

    `protocol`, that of `log.security`, is for the words about a failure.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            made = await connect()
        except (OSError, errors.KafkaError) as error:
            reach.lost("start", unreached(error, protocol))
        else:
            reach.found("start")
            return made
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


async def log_in(settings: LogSettings, client: Mapping[str, Any]) -> str:
    """Log in once to any host, only to see it succeed: the library's own start hides why it fails. Return the host.

    One after the other is tried, the next after a second: a silent one holds up nothing. Raises `RefusedLoginError` if
    one refuses the login or shows a certificate that isn't trusted, `NoHostError` if there is none.
    """
    wanted = {name: client[name] for name in client if name.startswith(("sasl_", "ssl_", "security_", "request_"))}
    waiting = list(settings.hosts)
    attempts: dict[asyncio.Task[None], str] = {}
    failures: dict[str, Exception] = {}
    try:
        while waiting or attempts:
            if waiting:
                host = waiting.pop(0)
                attempts[asyncio.create_task(_knock(host, wanted), name=f"kafka-login {host}")] = host
            seconds = ASK_ANOTHER if waiting else None
            done, _ = await asyncio.wait(attempts, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            for attempt in done:
                host = attempts.pop(attempt)
                try:
                    attempt.result()
                except (OSError, errors.KafkaError) as error:
                    if (why := refusal(error)) is not None:
                        raise RefusedLoginError(
                            f"log host {host} refuses the login; see log.security: {why}"
                        ) from error
                    failures[host] = error
                else:
                    return host
        raise NoHostError(failures)
    finally:
        for attempt in attempts:
            attempt.cancel()
        await asyncio.gather(*attempts, return_exceptions=True)


async def _knock(host: str, wanted: Mapping[str, Any]) -> None:
    name, port, _ = get_ip_port_afi(host)
    connection = await create_conn(name, port, **wanted)
    await connection.close()

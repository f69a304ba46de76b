"""RabbitMQ as the bridge sees it: a lane per route, one for dead letters, a monitor, and what is declared if asked.

Nothing connects before a lane runs or the monitor is polled.
"""

from collections.abc import Collection, Mapping, Sequence
from random import Random

import structlog
from aio_pika import ExchangeType
from aio_pika.abc import AbstractQueue
from aiormq.exceptions import AMQPChannelError, ChannelPreconditionFailed

from proxy.access import Access, broker_access, management_access
from proxy.publish_lane import PublishLane
from proxy.rabbitmq.connection import RabbitConnector
from proxy.rabbitmq.exchanges import missing_exchanges
from proxy.rabbitmq.finder import RabbitFinder
from proxy.rabbitmq.letter_queue import RabbitLetterQueue
from proxy.rabbitmq.login import Login, Logins
from proxy.rabbitmq.management import RabbitManagement
from proxy.rabbitmq.monitor import RabbitMonitor
from proxy.rabbitmq.words import speaking
from proxy.settings import BrokerSettings, JudgedQueue, Limits, Route

MOST_CONNECTIONS = 16
"""Publishing connections of the routes; more routes share them."""
DEAD_LETTER_EVENTS = 10_000
DEAD_LETTER_BYTES = 2**40
"""The in-flight window of the dead-letter lane: out of the way, for `LetterSlots` bounds what each type has in it."""
REDRIVE_EVENTS = 500
REDRIVE_BYTES = 8 * 1024**2
"""The in-flight window of a redrive."""

_say = structlog.get_logger("tidegate.broker")


class RabbitBroker:
    """Makes lanes and monitor; `chance` spreads their connections over the hosts.

    Raises `SettingsError` if the certificates can't be read.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        routes: Mapping[str, Route],
        limits: Limits,
        access: Access | None = None,
        chance: Random | None = None,
    ) -> None:
        self._settings = settings
        self._limits = limits
        self.access = access or broker_access(settings)
        self._logins = Logins(settings, self.access, chance)
        self._lanes: dict[str, PublishLane] = {}
        self._routes: Mapping[str, Route] = {}
        self.lanes(routes)

    def lanes(self, routes: Mapping[str, Route]) -> Mapping[str, PublishLane]:
        """Return the lane of each route; beyond 16 routes some of them have the same. See `Lanes`."""
        kept = {name: lane for name, lane in self._lanes.items() if self._stays(name, routes)}
        groups: list[list[str]] = [
            [name for name in kept if kept[name] is lane] for lane in dict.fromkeys(kept.values())
        ]
        for name in routes:
            if name in kept:
                continue
            if len(groups) < MOST_CONNECTIONS or (routes[name].declare and self._lanes):
                groups.append([name])
            else:
                min(groups, key=len).append(name)
        if len(routes) > MOST_CONNECTIONS >= len(self._routes):
            _say.warning(
                "routes_share_connections",
                routes=len(routes),
                connections=MOST_CONNECTIONS,
                effect="routes on one connection share the smallest in-flight window and are blocked together",
            )
        self._routes, self._lanes = routes, {}
        for group in groups:
            lane = kept.get(group[0]) or self._lane(group, routes)
            self._lanes.update(dict.fromkeys(group, lane))
            lane.resize(*_window(group, routes), adapts=any(routes[name].adapts for name in group))
        return {name: self._lanes[name] for name in routes}

    def _stays(self, name: str, routes: Mapping[str, Route]) -> bool:
        """Return whether a route's lane leads to what the route says now: what is declared is so as it is opened."""
        before, now = self._routes[name], routes.get(name)
        if now is None or not now.declare:
            return now is not None
        return before.declare and (before.exchange, before.queues) == (now.exchange, now.queues)

    def lane(self, route: str) -> PublishLane:
        """Return the lane of a route."""
        return self._lanes[route]

    async def keep_access(self) -> None:
        """Follow secrets that change, until cancelled; see `Logins.run`."""
        await self._logins.run()

    def dead_letter_lane(self) -> PublishLane:
        """Return a new lane for dead letters."""
        return self._made("dead letters", RabbitConnector(self._logins, "dead letters"))

    def redrive_lane(self) -> PublishLane:
        """Return a new lane for letters that are sent again, with a small window: they are in nobody's way."""
        connector = RabbitConnector(self._logins, "redrive")
        return self._made("redrive", connector, events=REDRIVE_EVENTS, size=REDRIVE_BYTES)

    def letter_queue(self, queue: str) -> RabbitLetterQueue:
        """Return a queue of dead letters."""
        return RabbitLetterQueue(self._logins, queue)

    async def missing_exchanges(self, names: Collection[str]) -> frozenset[str]:
        """Return which of these exchanges do not exist. Raises `BrokerError`, `RefusedLoginError`."""
        return await missing_exchanges(self._logins, names, self._limits.connect_deadline)

    def monitor(self) -> RabbitMonitor:
        """Return a new monitor."""
        return RabbitMonitor(self._logins)

    def finder(self) -> RabbitFinder:
        """Return who finds queues that events came back from."""
        return RabbitFinder(self._logins)

    def insights(self) -> RabbitManagement | None:
        """Return the broker's own statistics if the settings name a management API."""
        management = self._settings.management
        if management is None:
            return None
        access = self.access if management.password is None else management_access(self._settings, management)
        return RabbitManagement(self._settings, management, access)

    def _lane(self, shared: Sequence[str], routes: Mapping[str, Route]) -> PublishLane:
        name = ", ".join(shared)
        topology = Topology({route: routes[route] for route in shared if routes[route].declare})
        return self._made(
            name,
            RabbitConnector(self._logins, name, topology.declare),
        )

    def _made(
        self,
        name: str,
        connector: RabbitConnector,
        *,
        events: int = DEAD_LETTER_EVENTS,
        size: int = DEAD_LETTER_BYTES,
    ) -> PublishLane:
        return PublishLane(
            name,
            connector,
            window_events=events,
            window_bytes=size,
            limits=self._limits,
            backoff=self._settings.backoff,
            backoff_limit=self._settings.backoff_limit,
        )


def _window(group: Sequence[str], routes: Mapping[str, Route]) -> tuple[int, int]:
    """Return how many events, and how many bytes of them, a lane may have in flight."""
    own = [routes[name] for name in group]
    return min(route.most_in_flight for route in own), min(route.in_flight_bytes for route in own)


class Topology:
    """What routes with `declare: true` need, declared over the first connection that opens."""

    def __init__(self, routes: Mapping[str, Route]) -> None:
        self._missing = dict(routes)

    async def declare(self, login: Login) -> None:
        """Declare what is not declared yet; what the broker refuses is said once and left. Raises `BrokerError`."""
        for name, route in list(self._missing.items()):
            with speaking(login.host):
                try:
                    async with login.connection.channel() as channel:
                        await channel.declare_exchange(route.exchange, ExchangeType.TOPIC, durable=True)
                    for queue in route.judged:
                        await self._declare(login, name, route.exchange, queue)
                except AMQPChannelError as error:
                    _refused(name, error)
            del self._missing[name]

    @staticmethod
    async def _declare(login: Login, route: str, exchange: str, queue: JudgedQueue) -> None:
        """Declare and bind; one that is there in another form is bound as it is."""
        try:
            async with login.connection.channel() as channel:
                await _bind(await channel.declare_queue(queue.name, durable=True), exchange, queue)
        except ChannelPreconditionFailed as error:
            _refused(route, error, effect="the queue is bound, and used, as it is")
            async with login.connection.channel() as channel:
                await _bind(await channel.get_queue(queue.name, ensure=False), exchange, queue)


async def _bind(found: AbstractQueue, exchange: str, queue: JudgedQueue) -> None:
    for key in queue.routing_keys or ("#",):
        await found.bind(exchange, routing_key=key)


def _refused(route: str, error: AMQPChannelError, **more: str) -> None:
    why = str(error.args[-1] if error.args else error)
    remedy = "declare it by other means and set `declare: false`"
    _say.error("declaration_refused", route=route, why=why, remedy=remedy, **more)

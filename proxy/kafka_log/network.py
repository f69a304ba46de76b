"""The library's client with a bound of its own for every request, so that one silent node holds up nobody else.

The library has one timeout for everything, which must be as long as its longest request, the join of a group; it
connects to one node at a time; and it asks a node chosen by chance. Here

- a request is answered within `Bounds.answer` seconds of the one before it on the same connection, beyond what the node
  may hold it back: a fetch its wait, a join and a sync as long as the group takes to gather. Or its connection is given
  up. A fetch that took too long is given twice the time, up to eight times: a slow node is no silent one;
- a node that holds back a join is asked every second whether it is there, on another connection;
- every node is connected to by itself, once for all who wait; they wait no longer than for an answer, and hardly at all
  for a node known to be silent, while the attempt goes on;
- who may ask any node asks one that answers, each kind of question in a turn of its own, and another one every
  second (`asking`); after all nodes the hosts of the settings: where the nodes told of are all gone, or never were
  where they were said to be, these know more;
- what a node tells of leaders counts as far as nobody has told of newer ones (`leaders`).
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from aiokafka import errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.cluster import ClusterMetadata
from aiokafka.conn import CloseReason, create_conn
from aiokafka.protocol.admin import ApiVersionRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.group import JoinGroupRequest, SyncGroupRequest

from proxy.kafka_log.asking import ask_in_turn, watched
from proxy.kafka_log.connection import UnderWay
from proxy.kafka_log.fetch_sessions import Fetch
from proxy.kafka_log.fetch_wire import FetchAnswer, adopted
from proxy.kafka_log.leaders import Leaders
from proxy.kafka_log.nodes import CONNECT, Bounds, Nodes, Turns
from proxy.kafka_log.words import failure

KNOCK = 0.5
"""Seconds for which a request waits for a connection to a node that is known to be silent."""
_CONNECT_ANSWERS = 1.5
"""One attempt to connect, login included, takes at most the time of so many answers."""
_STRETCHES = 3
"""How often the time for a fetch is doubled."""
_FETCH = "Fetch"
_SILENCE = (errors.RequestTimedOutError, errors.KafkaConnectionError)
_METADATA_PAUSE = 0.1
"""Seconds between two requests for metadata: partitions without a leader would have it asked for without end."""


class Network(AIOKafkaClient):  # type: ignore[misc]  # the library is untyped
    """Who asks the nodes of the log. `bounds` and `nodes` are to be set before it is used."""

    bounds: Bounds
    nodes: Nodes

    def __init__(self, **wanted: Any) -> None:
        super().__init__(**wanted)
        hosts = ClusterMetadata(bootstrap_servers=wanted["bootstrap_servers"])
        self._hosts = {broker.nodeId: broker for broker in hosts.brokers()}
        """What the settings name, under names that no node has."""
        seconds = self._request_timeout_ms / 1000
        self.bounds = Bounds(seconds)
        self.nodes = Nodes(self._loop.time)
        self.on_fetched: Callable[[Any, Fetch, FetchAnswer], None] = lambda _node, _request, _answer: None
        """Told of every answer to a fetch."""
        self.on_metadata: list[Callable[[], None]] = []
        """Called when leaders or partitions may be others than before."""
        self._attempts: dict[tuple[object, ConnectionGroup], asyncio.Task[Any]] = {}
        self._stretch: dict[object, int] = {}
        self.leaders = Leaders()
        """Of what is subscribed to, with the topics' ids."""
        self._turns = Turns()
        self._metadata_at = 0.0
        self._is_closing = False

    async def close(self) -> None:
        """Close all connections, and give up those under way."""
        self._is_closing = True
        attempts = list(self._attempts.values())
        for attempt in attempts:
            attempt.cancel()
        if attempts:
            await asyncio.wait(attempts)
        await super().close()

    async def send(self, node_id: Any, request: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT) -> Any:
        """Send a request to a node and return its answer. Raises `KafkaError`."""
        kind = getattr(request, "name", type(request).__name__).removesuffix("Request")
        try:
            if isinstance(request, JoinGroupRequest | SyncGroupRequest):
                async with self._watched(node_id, group):
                    response = await self._ask(node_id, request, group)
            else:
                response = await self._ask(node_id, request, group)
        except _SILENCE as error:
            self._failed(node_id, kind, f"{kind}: {failure(error)}")
            raise
        self._answered(node_id, kind, getattr(response, "throttle_time_ms", 0))
        return response

    async def fetch(self, node_id: Any, request: Fetch) -> FetchAnswer:
        """Send a fetch to a node and return its answer. Raises `KafkaError`."""
        if (connection := self._conns.get((node_id, ConnectionGroup.DEFAULT))) is not None:
            # A node that has us wait for a quota would read it no sooner, and nothing that is sent behind it.
            muted = connection.muted_until - self._loop.time()
            if muted > 0:
                await asyncio.sleep(muted)
        try:
            return self._fetched(node_id, request, await self._ask(node_id, request))
        except _SILENCE as error:
            self._fetch_failed(node_id, error)
            raise

    def begin_fetch(self, node_id: Any, request: Fetch) -> UnderWay | None:
        """Send a fetch at once, without a task; None: something has to be waited for first, see `fetch`."""
        connection = self._conns.get((node_id, ConnectionGroup.DEFAULT))
        if connection is None or not connection.connected() or (answer := connection.fetch(request)) is None:
            return None
        return UnderWay(connection, answer)

    def end_fetch(self, node_id: Any, request: Fetch, under_way: UnderWay) -> FetchAnswer:
        """Return what came of a fetch that was begun so and is done. Raises as `fetch`."""
        try:
            return self._fetched(node_id, request, under_way.answer.result())
        except TimeoutError as error:
            under_way.connection.close(reason=CloseReason.CONNECTION_TIMEOUT)  # renewed by the next request
            self._fetch_failed(node_id, timed_out := errors.RequestTimedOutError())
            raise timed_out from error
        except _SILENCE as error:
            self._fetch_failed(node_id, error)
            raise

    def _fetched(self, node_id: Any, request: Fetch, response: Any) -> FetchAnswer:
        answer = adopted(response)
        self._stretch.pop(node_id, None)
        self.on_fetched(node_id, request, answer)
        self._answered(node_id, _FETCH, answer.throttle_time_ms)
        return answer

    def _fetch_failed(self, node_id: Any, error: errors.KafkaError) -> None:
        if isinstance(error, errors.RequestTimedOutError):
            self._stretch[node_id] = min(self._stretch.get(node_id, 0) + 1, _STRETCHES)
        self._failed(node_id, _FETCH, f"{_FETCH}: {failure(error)}")

    async def _ask(self, node_id: Any, request: Any, group: ConnectionGroup = ConnectionGroup.DEFAULT) -> Any:
        connection = self._conns.get((node_id, group))
        if connection is None or not connection.connected():
            connection = await self._get_conn(node_id, group=group)
        if connection is None:
            raise errors.NodeNotReadyError(f"node {node_id} is not connected")
        try:
            return await connection.send(request)
        except NotImplementedError as error:  # so the library says that the node knows other versions of it only
            connection.close()  # unless what it said of them was damaged on its way
            raise errors.IncompatibleBrokerVersion(str(error)) from error
        except TimeoutError as error:
            connection.close(reason=CloseReason.CONNECTION_TIMEOUT)  # renewed by the next request
            raise errors.RequestTimedOutError from error

    async def ask_any(self, request: Any, kind: str) -> Any:
        """Ask the nodes in turn, another one every second, until one answers. Raises `KafkaError` if none does.

        Each `kind` of question has a turn of its own.
        """
        known = {(broker.host, broker.port): broker.nodeId for broker in self.cluster.brokers()}
        others = [name for name, (_, *at, _) in self._hosts.items() if tuple(at) not in known]
        asked_at = partial(self._turns.asked, kind=kind)

        def ask(node: object) -> Coroutine[Any, Any, Any]:
            self._turns.ask(node, kind)
            return self.send(node, request)

        nodes = [*self.nodes.in_turn(known.values(), asked_at), *self.nodes.in_turn(others, asked_at)]
        return await ask_in_turn(nodes, ask, self.nodes.late)

    async def coordinator_lookup(self, coordinator_type: int, coordinator_key: str) -> Any:
        """Return the node that coordinates the group. Raises `KafkaError`."""
        response = await self.ask_any(FindCoordinatorRequest(coordinator_key, coordinator_type), "coordinator")
        if response.error_code:
            raise errors.for_code(response.error_code)
        return response.coordinator_id

    async def _metadata_update(self, cluster_metadata: Any, topics: Any) -> bool:
        await asyncio.sleep(max(0.0, self._metadata_at + _METADATA_PAUSE - self._loop.time()))
        question = (self.leaders if cluster_metadata is self.cluster else Leaders()).question(topics)
        try:
            came = await self.ask_any(question, "leaders")
        except errors.KafkaError as error:
            cluster_metadata.failed_update(error)
            return False
        finally:
            self._metadata_at = self._loop.time()
        if came.response is not None and not came.response.brokers:
            return False  # it knows of no node yet
        if self.leaders.take(came, cluster_metadata):
            for act in self.on_metadata:
                act()
        for name in (*self._hosts, "bootstrap"):  # the library's own name for one that knew of no node yet
            if (connection := self._conns.pop((name, ConnectionGroup.DEFAULT), None)) is not None:
                connection.close()
        return True

    async def _get_conn(
        self, node_id: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT, no_hint: bool = False
    ) -> Any:
        """Return a connection to the node, or None if there is none in time."""
        del no_hint
        at = (node_id, group)
        connection = self._conns.get(at)
        if connection is not None and connection.connected():
            return connection
        attempt = self._attempts.get(at)
        if attempt is None:
            attempt = self._attempts[at] = asyncio.create_task(self._connect(node_id, group), name="kafka-connect")
            attempt.add_done_callback(lambda _: self._attempts.pop(at))
        patience = min(KNOCK, self.bounds.answer) if self.nodes.is_failing(node_id) else self.bounds.answer
        done, _ = await asyncio.wait({attempt}, timeout=patience)
        if not done:
            if not self.nodes.is_failing(node_id):
                self._failed(node_id, CONNECT, f"no connection within {patience:g} s")
            self.force_metadata_update()
            return None
        return None if attempt.cancelled() else attempt.result()

    async def _connect(self, node_id: Any, group: ConnectionGroup) -> Any:
        """Return a new connection, or None if the node takes none."""
        await asyncio.sleep(self.nodes.pause(node_id))
        broker = self._broker(node_id)
        if broker is None:  # a leader or coordinator of which the metadata say nothing yet
            self.force_metadata_update()
            return None
        seconds = _CONNECT_ANSWERS * self.bounds.answer
        try:
            async with asyncio.timeout(seconds):
                connection = await self._open(broker, seconds)
        except (OSError, errors.KafkaError) as error:
            self._failed(node_id, CONNECT, failure(error))
            self.force_metadata_update()
            return None
        connection.patience = lambda request: self._patience(node_id, request)
        self._conns[node_id, group] = connection
        self.nodes.answered(node_id, self.host(node_id), CONNECT)
        return connection

    async def _open(self, broker: Any, seconds: float) -> Any:
        return await create_conn(
            broker.host,
            broker.port,
            client_id=self._client_id,
            request_timeout_ms=round(seconds * 1000),
            ssl_context=self._ssl_context,
            security_protocol=self._security_protocol,
            on_close=self._on_connection_closed,
            max_idle_ms=self._connections_max_idle_ms,
            sasl_mechanism=self._sasl_mechanism,
            sasl_plain_username=self._sasl_plain_username,
            sasl_plain_password=self._sasl_plain_password,
            sasl_kerberos_service_name=self._sasl_kerberos_service_name,
            sasl_kerberos_domain_name=self._sasl_kerberos_domain_name,
            sasl_oauth_token_provider=self._sasl_oauth_token_provider,
        )

    def _patience(self, node_id: Any, request: Any) -> float:
        bounds = self.bounds
        match request:
            case Fetch():
                return bounds.fetch_wait + bounds.answer * (1 << self._stretch.get(node_id, 0))
            case JoinGroupRequest() | SyncGroupRequest():
                return bounds.gather + bounds.answer
            case _:
                return bounds.answer

    def _watched(self, node_id: Any, group: ConnectionGroup) -> AbstractAsyncContextManager[None]:
        """Give the node's connection up once it no longer answers on another."""

        def give_up(error: errors.KafkaError) -> None:
            if connection := self._conns.get((node_id, group)):
                connection.close(reason=CloseReason.CONNECTION_TIMEOUT, exc=error)

        return watched(lambda: self._ask(node_id, ApiVersionRequest()), give_up)

    def _answered(self, node_id: Any, kind: str, throttled_ms: int) -> None:
        host = self.host(node_id)
        self.nodes.answered(node_id, host, kind)
        if throttled_ms:
            self.nodes.throttles(node_id, host, throttled_ms / 1000)

    def _failed(self, node_id: Any, kind: str, why: str) -> None:
        if not self._is_closing and node_id not in self._hosts:
            self.nodes.failed(node_id, self.host(node_id), kind, why)

    def _broker(self, node_id: Any) -> Any:
        return self._hosts.get(node_id) or self.cluster.broker_metadata(node_id)

    def host(self, node_id: Any) -> str:
        """Return where the node is said to be."""
        broker = self._broker(node_id)
        return f"{broker.host}:{broker.port}" if broker is not None else "an unknown host"

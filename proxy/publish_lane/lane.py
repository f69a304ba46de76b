"""Confirmed publishing over one connection, inside an in-flight window: the data path's last step.

The lane waits (for slots, for the connection) and keeps the connection's state; `session` writes and counts
tags. All writing happens in one place, the lane's turn, which runs at most once per turn of the event loop, whatever
asked for it: callers, confirms, a written piece. Only a caller who finds nobody in the line, no turn asked for and the
window roomy has a turn at once, once a millisecond: there is nobody before whom it could go, and at everyday rates most
events come alone. A caller that is cancelled is simply no longer in the line.
Knows no client: it is handed a `Connector`, RabbitMQ's or the simulation's. See docs/design/0002-publish-lane.md.
"""

import asyncio
from collections.abc import Collection, Sequence

from proxy.bridge.alarm import Alarm
from proxy.bridge.broker import Batch, LaneState
from proxy.errors import BrokerError, RefusedLoginError
from proxy.publish_lane.condition import Condition
from proxy.publish_lane.home import Home, Opened
from proxy.publish_lane.line import Line, Request, Window
from proxy.publish_lane.outcomes import Outcomes
from proxy.publish_lane.patience import HostPatience, Patience
from proxy.publish_lane.quarantine import Quarantine
from proxy.publish_lane.refusals import Refusals
from proxy.publish_lane.session import Session
from proxy.publish_lane.watch import Watch
from proxy.publish_lane.wire import Connector, Wire
from proxy.settings import Limits

ROOMY_SHARE = 4
"""While no more than so small a share of the window is in flight, what comes alone goes in the step that brings it."""
APART_SECONDS = 0.001
"""... and who calls within so short a time of that is written with the others of a turn: one answer of the log may
bring events of many types, and a turn for each costs more than it saves."""
WATCH_INTERVAL = 0.05
"""Seconds between two looks at deadlines and at whether the broker blocks the connection."""


class PublishLane:
    """See `proxy.bridge.broker.Lane`.

    `window_events` and `window_bytes` bound what is in flight; if it `adapts`, the first is the most it ever is.
    `backoff` and `backoff_limit` are the first and the longest pause between attempts to connect, in seconds.
    """

    def __init__(
        self,
        name: str,
        connector: Connector,
        *,
        window_events: int,
        window_bytes: int,
        limits: Limits,
        backoff: float,
        backoff_limit: float,
        adapts: bool = False,
    ) -> None:
        self.name = name
        self._connector = connector
        self._limits = limits
        self._backoff = backoff
        self._backoff_limit = backoff_limit
        self._patience = Patience(limits.confirm_deadline)
        self._refusals = Refusals()
        self._host_patience = HostPatience(limits.connect_deadline)
        self._window = Window(window_events, window_bytes, adapts=adapts)
        self._quarantine = Quarantine(Line(self._window))
        self._outcomes = Outcomes(self._window, self._quarantine)
        self._requests: dict[Batch, Request] = {}
        self._is_running = False
        self._condition = Condition(name)
        self._watch = Watch(name, connector, self._patience, self._condition)
        self._session: Session | None = None
        self._home = Home(connector.home, self._open)
        self._logged_in = False
        self._turn_due = False
        self._at_once_again = 0.0
        """From when on somebody may have a turn at once."""
        self._failure: Exception | None = None
        self._wake = Alarm()

    @property
    def state(self) -> LaneState:
        """Where the connection stands."""
        return self._condition.state

    @property
    def host(self) -> str:
        """Which host it is connected with; empty while with none."""
        wire = self._session.wire if self._session is not None and not self._session.over else None
        return "" if wire is None else wire.host

    @property
    def in_flight(self) -> int:
        """Events written whose outcome is open."""
        return self._window.events

    @property
    def window(self) -> int:
        """Events that may be in flight now."""
        return self._window.max_events

    def resize(self, events: int, size: int, *, adapts: bool) -> None:
        """Bound what is in flight otherwise from now on; nothing that is out is recalled."""
        self._window.resize(events, size, adapts=adapts)
        if self._session is not None:
            self._stir()

    def oldest(self, now: float) -> float:
        """Return for how many seconds the oldest open event has been out; 0 if none is."""
        oldest = self._session.oldest if self._session is not None else None
        return 0.0 if oldest is None else now - oldest

    def unanswered(self, now: float) -> float:
        """Return for how many seconds the broker has owed a confirm; see `Lane.unanswered`."""
        since = self._session.awaited_since if self._session is not None else None
        return 0.0 if since is None else now - since

    async def publish(self, batches: Sequence[Batch]) -> None:
        """Write the batches, all of one topic, in order; return when each is wholly written or withdrawn."""
        if not batches:
            return
        loop = asyncio.get_running_loop()
        written = loop.create_future()
        request = Request(batches, lambda: None if written.done() else written.set_result(None))
        if request.batch is None:
            return
        is_alone = self._is_idle and self._window.events + request.want <= self._window.max_events // ROOMY_SHARE
        is_alone = is_alone and loop.time() >= self._at_once_again
        self._requests.update(dict.fromkeys(batches, request))
        self._quarantine.add(request)
        if is_alone:
            self._at_once_again = loop.time() + APART_SECONDS
            self._quarantine.line.keep_nothing()
            self._turn()
        else:
            self._stir()
        try:
            if not written.done():
                await written
        finally:
            self._quarantine.remove(request)
            for batch in batches:
                self._requests.pop(batch, None)

    @property
    def _is_idle(self) -> bool:
        """Whether nobody waits and no turn is due."""
        return not self._turn_due and self._session is not None and not self._quarantine.waits

    def withdraw(self, batches: Collection[Batch]) -> None:
        """Mark the batches withdrawn and end their waits."""
        for batch in batches:
            batch.called_back = True
            request = self._requests.get(batch)
            if request is not None and request.batch is None:
                self._quarantine.remove(request)
                request.end()

    async def run(self) -> None:
        """Keep the connection until cancelled; every event written has got its outcome when this ends.

        Routes that share a lane each call this: the first call keeps the connection, the others only wait.
        """
        if self._is_running:
            await asyncio.Event().wait()
        self._is_running = True
        loop = asyncio.get_running_loop()
        pause = self._backoff
        while True:
            began = loop.time()
            await self._connect_once()
            if self._failure is not None:
                raise self._failure
            if loop.time() - began > self._backoff_limit:
                pause = self._backoff
                continue
            await asyncio.sleep(pause)
            pause = min(self._backoff_limit, 2 * pause)

    async def _connect_once(self) -> None:
        """Try one host and stay with it as long as it lasts, or until the home host takes over."""
        try:
            opened: Opened | None = await self._open()
            while opened is not None and self._failure is None:
                await self._use(*opened)
                opened = self._home.take()
        except RefusedLoginError as error:
            if not self._logged_in:
                raise
            self._condition.on_unreachable(str(error))
        except BrokerError as error:
            self._condition.on_unreachable(str(error))
        except TimeoutError:
            self._condition.on_unreachable(self._connector.silence(self._host_patience.limit))
            self._host_patience.lose()
        finally:
            unused = self._home.take()
            if unused is not None:
                self._condition.state = LaneState.LOST
                await unused[1].close(gracefully=False)

    async def _open(self, host: str | None = None) -> Opened:
        """Connect with the host, or the next one. Raises `BrokerError`, TimeoutError."""
        session = Session(
            self._outcomes,
            self._limits,
            self._patience,
            self._refusals,
            stir=self._stir,
            lost=lambda why: self._on_lost(session, why),
        )
        wire: Wire | None = None
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._host_patience.limit if host is None else self._limits.connect_deadline):
                wire = await self._connector.connect(session, host)
                self._logged_in = True
                await session.start(wire)
            self._host_patience.saw(loop.time() - began)
        except BaseException:
            session.over = True
            if wire is not None:
                self._connector.doubt(wire.host)  # it let us in, and opened no channel
                await wire.close(gracefully=False)
            raise
        return session, wire

    async def _use(self, session: Session, wire: Wire) -> None:
        """Write and watch over an open connection until it is lost, or another one is to be used."""
        self._session = session
        try:
            if not session.over:
                self._watch.begin(wire)
                await self._keep(session, wire)
        finally:
            is_lost = session.over
            if self._home.calls:
                session.over = True  # nothing is open in it
            elif not is_lost:
                self._condition.state = LaneState.LOST
                session.on_lost("", refused=False)
            self._session = None
            self._turn()
            await wire.close(gracefully=not is_lost)

    async def _keep(self, session: Session, wire: Wire) -> None:
        async with asyncio.TaskGroup() as tasks:
            others = [tasks.create_task(session.keep_channels(), name=f"channels of lane {self.name}")]
            if wire.host != self._home.host:
                others.append(tasks.create_task(self._home.seek(session, self._wake), name=f"home of lane {self.name}"))
            while not session.over and self._failure is None and not self._home.calls:
                self._watch.look(session, wire)
                self._stir()
                await self._wake.until(asyncio.get_running_loop().time() + WATCH_INTERVAL)
            for task in others:
                task.cancel()

    def _stir(self) -> None:
        """Ask for a turn."""
        if not self._turn_due:
            self._turn_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Tell what ended, write what may be written."""
        self._turn_due = False
        session = self._session
        try:
            self._outcomes.tell()
            if session is not None and session.holds and session.is_empty and self._condition.state is LaneState.OPEN:
                self._home.emptied.set()
            if session is not None and session.wire is not None and not session.over and self._failure is None:
                self._watch.follow_block(session.wire)
                if self._condition.state is LaneState.OPEN:
                    self._quarantine.line.turn()
                    session.write()
                    if self._quarantine.line.wants_turn:
                        self._stir()
        except Exception as error:  # noqa: BLE001 -- a recipient's fault must end `run`, not the client's reader
            self._failure = error
            self._wake.ring()

    def _on_lost(self, session: Session, why: str) -> None:
        if self._session is None or self._session is session:
            self._wake.ring()
            self._condition.enter(LaneState.LOST, why=why)

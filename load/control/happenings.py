"""What a scenario lets happen, done to real brokers, consumers and replicas."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from load.control.relay import Relay
from load.control.replicas import Replicas
from load.control.services import Services
from load.stack import Stack
from load.terminal import say
from load.wire import Wire, WireError
from proxy.simulation.scenario import Autoscale, Happening, Scenario
from proxy.simulation.scenario_checks import figure_names

IMPOSSIBLE = {
    "paging_stall": "no command makes a RabbitMQ page out for so many seconds",
    "management_lost": "the management API of the local RabbitMQ goes with its node only",
}
"""What can't be done for real, and why."""
ALARM = "vm_memory_monitor:set_vm_memory_high_watermark({})."
LOW, USUAL = 0.0001, 0.4
"""Share of the machine's memory beyond which RabbitMQ blocks publishers: any use at all, and its default."""
FOREIGN_TICK = 0.01
FOREIGN_BYTES = 64
RECONNECT_SECONDS = 0.2


def impossible(scenario: Scenario) -> str | None:
    """Return why a scenario can't run on real brokers; None if it can."""
    if scenario.only == "sim":
        return "it is marked as one for the simulation"
    if scenario.events and all(one.what in IMPOSSIBLE for one in scenario.events):
        return "; ".join(left_out(scenario))
    return None


def needs_management(scenarios: Iterable[Scenario]) -> bool:
    """Return whether one that can run tells Tidegate of the management API; serving it costs RabbitMQ a little."""
    return any(one.management and impossible(one) is None for one in scenarios)


def left_out(scenario: Scenario) -> list[str]:
    """Return, in words, what of a scenario can't happen on real brokers, and why."""
    return [f"{one.name} ({one.what}): {IMPOSSIBLE[one.what]}" for one in scenario.events if one.what in IMPOSSIBLE]


def for_real(scenario: Scenario) -> Scenario:
    """Return the scenario with what can happen on real brokers, and what can then be expected of it there."""
    events = tuple(one for one in scenario.events if one.what not in IMPOSSIBLE)
    figures = set(figure_names(scenario.model_copy(update={"events": events})))
    expect = tuple(
        one
        for one in scenario.expect
        if one.only != "sim" and (one.figure in figures or one.figure.startswith("told."))
    )
    return scenario.model_copy(update={"events": events, "expect": expect})


@dataclass
class Happenings:
    """Lets everything happen at its time, which is counted from `start`, of the monotonic clock."""

    stack: Stack
    scenario: Scenario
    services: dict[str, Services]
    """By the queue's name in the scenario."""
    queues: dict[str, str]
    """Its name at the broker."""
    relay: Relay | None
    replicas: Replicas
    start: float = 0.0

    def __post_init__(self) -> None:
        """Prepare the counts of what others publish."""
        self.foreign: dict[str, int] = dict.fromkeys(self.scenario.queues, 0)
        """Published by others so far."""
        self.foreign_rate: dict[str, float] = dict.fromkeys(self.scenario.queues, 0.0)
        self.scalings: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
        self._down = False
        self._took: dict[str, float] = {}
        """Seconds that events really lasted, where they take the time they need."""

    @property
    def happened(self) -> Scenario:
        """The scenario with its events as they were."""
        events = (
            one.model_copy(update={"seconds": self._took.get(one.name, one.seconds)}) for one in self.scenario.events
        )
        return self.scenario.model_copy(update={"events": tuple(events)})

    @property
    def are_arranged(self) -> bool:
        """Whether the broker must be told something beforehand."""
        return any(event.what == "alarm" for event in self.scenario.events)

    def arrange(self) -> None:
        """Tell the broker beforehand what to do when: rabbitmqctl alone takes a second of a core."""
        for event in self.scenario.events:
            if event.what == "alarm":
                ahead = self.start - time.monotonic() + event.at
                for delay, share in ((ahead, LOW), (ahead + (event.seconds or 0.0), USUAL)):
                    later = f"timer:apply_after({round(delay * 1000)}, vm_memory_monitor,"
                    self.stack.rabbitmqctl("eval", f"{later} set_vm_memory_high_watermark, [{share}]).")

    def mend(self) -> None:
        """Leave the broker as it was."""
        if self.are_arranged:
            self.stack.rabbitmqctl("eval", ALARM.format(USUAL))

    async def run(self) -> None:
        """Let everything happen."""
        everything = [self._happen(event) for event in self.scenario.events]
        for name, queue in self.scenario.queues.items():
            everything.append(self._stay_connected(name))
            if queue.autoscale is not None:
                everything.append(self._autoscale(name, queue.autoscale, queue.consumers))
        tasks = [asyncio.create_task(work) for work in everything]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _happen(self, event: Happening) -> None:
        await asyncio.sleep(self.start + event.at - time.monotonic())
        say(f"  second {event.at:g}: {event.name} ({event.what})")
        match event.what:
            case "foreign":
                await self._publish(self.scenario.queue_of(event), event)
            case "replica_joins":
                self.replicas.start(event.reads)
            case "replica_leaves" | "replica_killed":
                await self.replicas.end(event.replica or 0, kill=event.what == "replica_killed")
            case "broker_restart":
                self._down = True
                await asyncio.to_thread(self.stack.stop_rabbitmq)
                await self._until_end(event)
                await asyncio.to_thread(self.stack.start_rabbitmq)
                self._down = False
                self._took[event.name] = time.monotonic() - self.start - event.at
            case "log_lost":
                await self._stall_log(event)
            case "monitor_lost":
                assert self.relay is not None
                self.relay.cut()
                await self._until_end(event)
                self.relay.mend()
            case "capacity" | "consumers":
                await self._change(event)

    async def _change(self, event: Happening) -> None:
        services = self.services[self.scenario.queue_of(event)]
        assert event.to is not None
        change = services.set_capacity if event.what == "capacity" else services.set_consumers
        before = services.capacity if event.what == "capacity" else services.consumers
        change(int(event.to) if event.what == "consumers" else event.to)  # type: ignore[arg-type]
        if event.seconds is not None:
            await self._until_end(event)
            change(before)  # type: ignore[arg-type]

    async def _until_end(self, event: Happening) -> None:
        await asyncio.sleep(self.start + event.at + (event.seconds or 0.0) - time.monotonic())

    async def _stall_log(self, event: Happening) -> None:
        """Let Kafka stand still: it answers nobody, and goes on where it was."""
        pid = self.stack.kafka_pid
        if pid is None:
            return
        kafka = psutil.Process(pid)
        kafka.suspend()
        try:
            await self._until_end(event)
        finally:
            kafka.resume()

    async def _publish(self, queue: str, event: Happening) -> None:
        """Publish into a queue past Tidegate, over a connection of its own: an alarm would hold up the consumers'."""
        assert event.to is not None
        self.foreign_rate[queue] = event.to
        end = self.scenario.seconds if event.seconds is None else event.at + event.seconds
        body, owed, tick = bytes(FOREIGN_BYTES), 0.0, 0
        with await asyncio.to_thread(Wire, self.stack.amqp_port) as wire:
            while (tick := tick + 1) * FOREIGN_TICK <= end - event.at:
                await asyncio.sleep(self.start + event.at + tick * FOREIGN_TICK - time.monotonic())
                owed += event.to * FOREIGN_TICK
                wire.publish(self.queues[queue], [body] * int(owed))
                self.foreign[queue] += int(owed)
                owed -= int(owed)
        self.foreign_rate[queue] = 0.0

    async def _stay_connected(self, name: str) -> None:
        """Bring the consumers back after the broker was away."""
        services = self.services[name]
        while True:
            await asyncio.sleep(RECONNECT_SECONDS)
            if not services.is_connected and not self._down:
                try:
                    await services.connect()
                except WireError as error:
                    say(f"  the consumers of {name} are not back yet: {error}")

    async def _autoscale(self, name: str, rule: Autoscale, least: int) -> None:
        """Want consumers by the rule; get them after the delay, lose them as late."""
        services, loop = self.services[name], asyncio.get_running_loop()
        while True:
            await asyncio.sleep(rule.interval)
            wanted = await self._wanted(name, services, rule)
            if wanted is not None:
                loop.call_later(rule.delay, self._scale, name, min(max(wanted, least), rule.most))

    async def _wanted(self, name: str, services: Services, rule: Autoscale) -> int | None:
        """Return how many consumers the rule wants; None if it knows nothing."""
        if rule.by == "wanted":
            return await self.replicas.wanted(self.scenario.route_to(name), name)
        waiting = await services.ready() if rule.by == "ready" else await self.replicas.lag()
        return -(-waiting // rule.per_consumer)

    def _scale(self, name: str, count: int) -> None:
        services = self.services[name]
        if services.is_connected and services.consumers not in {0, count}:
            services.set_consumers(count)
            self.scalings[name].append((time.monotonic() - self.start, count))

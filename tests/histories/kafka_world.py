"""Kafka's half of the world of a wire history: a scripted cluster on a network in memory, aiokafka in every replica."""

import asyncio
from collections.abc import Mapping
from contextvars import Context, copy_context
from math import inf
from typing import Any

from proxy.bridge.event_log import Beginning
from proxy.model import Partition
from proxy.positions.identity import LOOK_SECONDS, Committed
from proxy.simulation.virtual_time import PROCESS
from tests.histories.plan import Plan
from tests.histories.replica import Replica
from tests.histories.watched_kafka import WatchedKafkaLog
from tests.histories.world import World
from tests.wire.kafka.cluster import ScriptedCluster
from tests.wire.kafka.node import Node
from tests.wire.loop import WireLoop
from tests.wire.network import Fault, Network

KAFKA = "kafka-*"
"""All addresses of the Kafka cluster."""
_PORT = 9092
_BATCHES = (1, 3, 8)
"""Events in a batch at most, one of these."""
_NOTICE = 2 * LOOK_SECONDS
"""Seconds within which a reader has noticed that its topic was made anew, and has said so to the group."""

_OLDER = 4
"""One in so many histories has brokers that know topics in a fetch by their names only."""


class NetworkedCluster(ScriptedCluster):
    """A scripted cluster of which replicas are cut off by the network."""

    def __init__(self, plan: Plan, network: Network, chance: Any) -> None:
        addresses = [(f"kafka-{number}", _PORT) for number in range(1, len(plan.settings.log.hosts) + 1)]
        batch_events = min(chance.choice(_BATCHES), plan.fetch_events)
        super().__init__(chance, addresses, batch_events=batch_events, fetch_events=plan.fetch_events)
        self._network = network
        self._faults: dict[str, Fault] = {}

    def at(self, node: int) -> str:
        """Return a broker's address."""
        host, port = self.addresses[node]
        return f"{host}:{port}"

    def cut_off(self, member: str) -> None:
        """Let nothing of a process pass."""
        if member not in self._faults:
            self._faults[member] = self._network.silence(KAFKA, member)

    def reconnect(self, member: str) -> None:
        """Let it pass again."""
        if member in self._faults:
            self._network.end(self._faults.pop(member))

    def go_down(self) -> None:
        """Let all brokers die, or none of them answer."""
        super().go_down()
        if "all" in self._faults:
            return
        if self.chance.random() < 0.5:
            self._faults["all"] = self._network.refuse(KAFKA)
            self._network.reset(KAFKA)
        else:
            self._faults["all"] = self._network.silence(KAFKA)

    def come_up(self) -> None:
        """See `MemoryCluster`."""
        self._network.end(self._faults.pop("all"))
        super().come_up()


class KafkaWorld(World):
    """Made inside a `WireLoop`."""

    cluster: NetworkedCluster

    def __init__(self, plan: Plan) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WireLoop)
        self._loop = loop
        self.network = loop.network
        self._tasks: dict[asyncio.Task[Any], str] = {}
        """Whose every task is, of those that were not over when it was last looked."""
        loop.set_task_factory(self._new_task)
        super().__init__(plan)
        self.coordinated = self.cluster.group(plan.settings.log.group)
        """The group, as its coordinator keeps it."""
        self.coordinated.on_joining = lambda _: self.witness.on_joining()
        self.cluster.on_commit = self._on_commit
        self.witness.on_begin = self._on_begin
        self._nodes = [Node(number, self.cluster, _process_of) for number in self.cluster.addresses]
        self._listeners = [self.network.serve(self.cluster.at(node.number), node.serve) for node in self._nodes]
        self._first = {at: track.topic_id for at, track in self.cluster.tracks.items()}
        """Of the partitions that there were from the beginning, not begun by the group yet."""
        self._ended: dict[str, float] = {}
        """When each replica that is no more had ended."""

    def new_cluster(self) -> NetworkedCluster:
        """See `World`."""
        cluster = NetworkedCluster(self.plan, self.network, self.chance)
        cluster.fetches_by_id = self.plan.seed % _OLDER != 0
        return cluster

    def new_log(self, name: str) -> WatchedKafkaLog:
        """See `World`; static members take a place that is free."""
        settings = self.plan.settings
        log = settings.log
        if log.group_instance_id is not None:
            log = log.model_copy(update={"group_instance_id": self._free_place()})
        return WatchedKafkaLog(log, settings.limits, name=name, witness=self.witness, kill=self._kill)

    async def close(self) -> None:
        """See `World`."""
        for listener in self._listeners:
            listener.close()
        for node in self._nodes:
            await node.close()
        self.cluster.close()
        self.network.calm()

    def retire(self, replica: Replica) -> None:
        """See `World`."""
        super().retire(replica)
        self._ended[replica.name] = asyncio.get_running_loop().time()
        self._tasks = {task: whose for task, whose in self._tasks.items() if not task.done()}

    def is_awake(self, replica: Replica) -> bool:
        """See `World`."""
        return super().is_awake(replica) and replica.name not in self._loop.stopped

    def state_of(self, replica: Replica | None) -> str:
        """See `World`."""
        if replica is not None and replica.name in self._loop.stopped:
            return "stopped"
        if isinstance(log := replica and replica.log, WatchedKafkaLog) and log.is_committing:
            return "committing"
        return super().state_of(replica)

    def is_of_dead(self, task: asyncio.Task[Any]) -> bool:
        """See `World`."""
        return self._tasks.get(task) in {replica.name for replica in self.retired if replica.crashed}

    def tasks_of(self, process: str) -> list[asyncio.Task[Any]]:
        """Return the tasks of a process, ended ones perhaps among them."""
        return [task for task, whose in self._tasks.items() if whose == process]

    def _free_place(self) -> str:
        taken = {one.log._settings.group_instance_id for one in self.replicas if isinstance(one.log, WatchedKafkaLog)}
        return next(place for number in range(len(taken) + 1) if (place := f"place-{number}") not in taken)

    def _on_begin(self, at: Partition, beginning: Beginning) -> None:
        """Forget what lies before the latest, where reading begins there, until something is committed."""
        is_unknown = beginning.committed is None and self._is_unknown(at.topic)
        is_new = is_unknown or self._first.get(at) == beginning.topic_id
        if self.plan.settings.log.start != "earliest" and is_new:
            facts = self.witness.facts
            track = facts.tracks.get(at)
            facts.forget(fact for fact in (track.facts if track else ()) if fact.offset < beginning.first)

    def _is_unknown(self, topic: str) -> bool:
        """Return whether a topic was made anew so lately that nobody could know, or all who could have ended first.

        Kafka forgets what was committed in a deleted topic: to who comes later it is new. See docs/guarantees.md.
        """
        when, readers = self.witness.deleted.get(topic, (float("-inf"), frozenset()))
        is_late = asyncio.get_running_loop().time() > when + _NOTICE
        return not is_late or (bool(readers) and all(self._ended.get(one, inf) <= when + _NOTICE for one in readers))

    def _on_commit(self, replica: str, offsets: Mapping[Partition, Committed]) -> None:
        """Let the witness judge a commit."""
        for at, committed in offsets.items():
            if self._first.get(at) == committed.topic_id:
                del self._first[at]
        self.witness.on_commit(replica, offsets)

    def _new_task(self, loop: asyncio.AbstractEventLoop, work: Any, context: Context | None = None) -> Any:
        task = asyncio.Task(work, loop=loop, context=context)
        whose = (context if context is not None else copy_context()).get(PROCESS, "")
        if whose:
            self._tasks[task] = whose
        return task

    def _kill(self, process: str) -> None:
        """Close a process's sockets; let nothing of it run on but what is cancelled by its own end."""
        self.network.die(process)
        loop: Any = asyncio.get_running_loop()
        for handle in loop._scheduled:
            if handle._context.get(PROCESS) == process:
                handle.cancel()
        for task, whose in self._tasks.items():
            if whose == process and not task.done() and task.get_name() != process:
                task.cancel()


def _process_of(writer: asyncio.StreamWriter) -> str:
    transport: Any = writer.transport
    return str(transport._out.link.process)

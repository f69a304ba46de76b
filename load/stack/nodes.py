"""The nodes of a stack, made from what its state file says."""

import sys
from pathlib import Path

from load.stack import kafka_node, kafka_settings, network, rabbitmq_node, security
from load.stack.containers import ContainerNode
from load.stack.kafka_node import KafkaNode
from load.stack.node import Kafka, Rabbitmq
from load.stack.processes import MARK, Identity, spawn
from load.stack.rabbitmq_node import RabbitmqNode
from load.stack.state import KAFKA, NETWORK, PROJECT, RABBITMQ, State, numbered


def port_names(kafka_nodes: int, rabbitmq_nodes: int) -> tuple[str, ...]:
    """Return the names of all ports that a stack of so many nodes needs."""
    if kafka_nodes + rabbitmq_nodes == 2:
        return (*kafka_node.PORTS, *rabbitmq_node.PORTS)
    names = [network.CONTROL, network.EPMD]
    for count, single, several in (
        (kafka_nodes, kafka_node.PORTS, kafka_node.CLUSTER_PORTS),
        (rabbitmq_nodes, rabbitmq_node.PORTS, rabbitmq_node.CLUSTER_PORTS),
    ):
        names += [numbered(name, at) for at in range(1, count + 1) for name in (several if count > 1 else single)]
    return tuple(dict.fromkeys(names))


def kafka(state: State) -> dict[str, Kafka]:
    """Return Kafka's nodes by role."""
    if state.software is None:
        return {KAFKA: ContainerNode(state, KAFKA)}
    every = [
        _ports(state, number, (*kafka_node.CLUSTER_PORTS, *security.PORTS))
        for number in range(1, state.kafka_nodes + 1)
    ]
    several = state.kafka_nodes > 1
    return {
        role: KafkaNode(
            state.home,
            state.data / role,
            jars=state.software.jars,
            java=state.software.java,
            ports=every[number - 1],
            heap=state.heap,
            role=role,
            cluster=kafka_settings.clustered(number, every) if several else {},
            cluster_id=state.cluster_id,
        )
        for number, role in enumerate(state.kafka_roles, 1)
    }


def rabbitmq(state: State) -> dict[str, Rabbitmq]:
    """Return RabbitMQ's nodes by role."""
    if state.software is None:
        return {RABBITMQ: ContainerNode(state, RABBITMQ)}
    names = [state.erlang_name(number) for number in range(1, state.rabbitmq_nodes + 1)]
    wanted = (*rabbitmq_node.CLUSTER_PORTS, rabbitmq_node.MANAGEMENT, *security.PORTS)
    return {
        role: RabbitmqNode(
            state.home,
            state.data / role,
            sbin=state.software.rabbitmq_sbin,
            ports={**_ports(state, number, wanted), network.EPMD: state.ports[network.EPMD]},
            name=names[number - 1],
            role=role,
            members=tuple(names) if len(names) > 1 else (),
        )
        for number, role in enumerate(state.rabbitmq_roles, 1)
    }


def start_network(state: State) -> Identity:
    """Start the network between the nodes; it is ready when its port answers."""
    mark = {MARK: f"{state.home}:{NETWORK}", "PYTHONPATH": str(PROJECT), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", "load.stack.network", str(state.home)]
    return spawn(command, env=mark, output=state.home / "network.txt")


def last_words_of_network(home: Path) -> str:
    """Return what the network said."""
    file = home / "network.txt"
    return file.read_text()[-1000:] if file.exists() else ""


def _ports(state: State, number: int, names: tuple[str, ...]) -> dict[str, int]:
    return {name: state.ports[numbered(name, number)] for name in names if numbered(name, number) in state.ports}

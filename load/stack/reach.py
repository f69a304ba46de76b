"""How to reach the nodes of a stack, as its state file says it."""

from pathlib import Path

from load.stack import nodes, rabbitmq_node, security
from load.stack.authority import Authority
from load.stack.errors import StackError
from load.stack.state import State, numbered

VARIABLE = "TIDEGATE_STACK"


class Reach:
    """Names, addresses and versions."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def name(self) -> str:
        """Name, as `--name` takes it."""
        return self._state.name

    @property
    def state_file(self) -> Path:
        """Path of the state file."""
        return self._state.path

    @property
    def data(self) -> Path:
        """Folder that holds the data of all nodes."""
        return self._state.data

    @property
    def in_containers(self) -> bool:
        """Whether the nodes are containers; their data is in the engine's volumes then, not in `data`."""
        return self._state.software is None

    @property
    def kafka_roles(self) -> tuple[str, ...]:
        """What Kafka's nodes are called: kafka, kafka-2, ..."""
        return self._state.kafka_roles

    @property
    def rabbitmq_roles(self) -> tuple[str, ...]:
        """What RabbitMQ's nodes are called: rabbitmq, rabbitmq-2, ..."""
        return self._state.rabbitmq_roles

    @property
    def kafka_ports(self) -> list[int]:
        """Ports of Kafka's nodes on 127.0.0.1, in their order: no encryption, no login, all rights."""
        return self._ports("kafka", self._state.kafka_nodes)

    @property
    def kafka(self) -> str:
        """Kafka's address, HOST:PORT, that of each node with a comma between: no encryption, no login, all rights."""
        return _addresses(self.kafka_ports)

    @property
    def kafka_sasl(self) -> str:
        """Kafka's address for SASL_PLAINTEXT by PLAIN or SCRAM-SHA-256; its users are `kafka_settings.USERS`."""
        return _addresses(self._ports("kafka_sasl", self._state.kafka_nodes))

    @property
    def amqp_ports(self) -> list[int]:
        """Ports of RabbitMQ's nodes on 127.0.0.1, in their order."""
        return self._ports("amqp", self._state.rabbitmq_nodes)

    @property
    def amqp_port(self) -> int:
        """Port of RabbitMQ, of its first node, on 127.0.0.1."""
        return self.amqp_ports[0]

    @property
    def amqp(self) -> str:
        """RabbitMQ's URL, that of its first node."""
        return amqp_url(self.amqp_port)

    @property
    def management(self) -> str:
        """RabbitMQ's HTTP API, user guest. Raises StackError if the stack was brought up without it."""
        port = self._state.ports.get(rabbitmq_node.MANAGEMENT)
        if port is None:
            raise StackError(f"stack {self.name} has no management API; bring it up with management=True")
        return f"http://127.0.0.1:{port}"

    @property
    def secured(self) -> dict[str, str]:
        """The addresses of `security.PORTS`, HOST:PORT. Raises StackError if the stack was brought up without them."""
        if not set(security.PORTS) <= set(self._state.ports):
            raise StackError(f"stack {self.name} has plain listeners only; bring it up with secured=True")
        return {name: f"localhost:{self._state.ports[name]}" for name in security.PORTS}

    @property
    def authority(self) -> Authority:
        """Who vouches for the certificates of a secured stack."""
        return Authority(self._state.home / "certificates")

    @property
    def versions(self) -> dict[str, str]:
        """Versions: kafka, rabbitmq, erlang."""
        return dict(self._state.versions)

    @property
    def environment(self) -> dict[str, str]:
        """What `run` sets for its command."""
        return {
            "TIDEGATE_KAFKA": self.kafka,
            "TIDEGATE_KAFKA_SASL": self.kafka_sasl,
            "TIDEGATE_AMQP": self.amqp,
            "TIDEGATE_AMQP_HOSTS": _addresses(self.amqp_ports),
            VARIABLE: str(self.state_file),
        }

    def address(self, role: str) -> str:
        """Return where clients reach a node: an address of Kafka's, a URL of RabbitMQ's."""
        if role in self.kafka_roles:
            return _addresses([self.kafka_ports[self.kafka_roles.index(role)]])
        return amqp_url(self.amqp_ports[self.rabbitmq_roles.index(role)])

    def erlang_name(self, role: str) -> str:
        """Return the full name of one of RabbitMQ's nodes, as its tools show it."""
        return f"{self._state.erlang_name(self.rabbitmq_roles.index(role) + 1)}@localhost"

    def answers(self) -> dict[str, bool]:
        """Ask each node in its own protocol, now, and tell which answered."""
        every = {**nodes.kafka(self._state), **nodes.rabbitmq(self._state)}
        return {role: node.answers() for role, node in every.items()}

    def _ports(self, name: str, count: int) -> list[int]:
        return [self._state.ports[numbered(name, number)] for number in range(1, count + 1)]


def amqp_url(port: int) -> str:
    """Return the URL of a RabbitMQ."""
    return f"amqp://guest:guest@127.0.0.1:{port}/%2f"


def _addresses(ports: list[int]) -> str:
    return ",".join(f"127.0.0.1:{port}" for port in ports)

"""The settings of the Kafka node and the rights of its users, the same in a process and in a container."""

import struct
from collections.abc import Sequence
from pathlib import Path

from load.stack import probes, security
from load.stack.errors import StackError

USERS = {"admin": "admin-secret", "tidegate": "tidegate-secret", "reader": "reader-secret"}
"""Who can log in on the SASL listener. admin may do all, tidegate uses all topics outside `forbidden.`, reader none."""

FORBIDDEN_PREFIX = "forbidden."

FSYNC = "syncs when the operating system does (log.flush.interval.* unset, as shipped)"

CREATE_ACLS = 30

REPLICATION, LEAST_IN_SYNC = 3, 2
"""Of every topic where there are several nodes: copies, and how many must have an event before it is acknowledged."""

_LOGIN = "org.apache.kafka.common.security"


def settings(
    ports: dict[str, int], *, log_folder: str, listen_on: str = "127.0.0.1", certificates: Path | None = None
) -> dict[str, str]:
    """Return the server's properties: one small node, nothing created unasked, no wait before a group's first join.

    With a folder of `certificates` the listeners of `security` are added. A killed broker is let in again once its
    session has run out: 5 s here, to shorten what waits for its return.
    """
    plain, sasl, controller = (ports[name] for name in ("kafka", "kafka_sasl", "kafka_controller"))
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    found = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAIN://{listen_on}:{plain},SASL://{listen_on}:{sasl},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAIN://127.0.0.1:{plain},SASL://127.0.0.1:{sasl}",
        "listener.security.protocol.map": "PLAIN:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAIN",
        "controller.listener.names": "CONTROLLER",
        "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl.plain.sasl.jaas.config": f"{_LOGIN}.plain.PlainLoginModule required {users};",
        "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
        "broker.session.timeout.ms": "5000",
        "broker.heartbeat.interval.ms": "1000",
        "log.dirs": log_folder,
        "log.segment.bytes": str(64 << 20),
        "log.retention.ms": "-1",  # or events with timestamps of last year vanish at the next look, within minutes
        # What a run deletes is gone before the next one; after the default minute it would go in the midst of that.
        "log.segment.delete.delay.ms": "1000",
        "log.cleaner.threads": "1",
        "log.cleaner.dedupe.buffer.size": str(8 << 20),
        "auto.create.topics.enable": "false",
        "num.partitions": "1",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }
    more = security.kafka_settings(ports, certificates, USERS, listen_on) if certificates else {}
    return found | {key: found.get(key, "") + value for key, value in more.items()}


def clustered(number: int, every: Sequence[dict[str, int]]) -> dict[str, str]:
    """Return what a node of several has beside and instead of `settings`: each topic on three nodes, two must have it.

    Brokers and controllers reach each other by the ports in front of their own; clients come straight.
    """
    ports = every[number - 1]
    plain, sasl, internal = (ports[name] for name in ("kafka", "kafka_sasl", "kafka_internal"))
    voters = (f"{at}@127.0.0.1:{its['kafka_controller_front']}" for at, its in enumerate(every, 1))
    copies, needed = str(min(REPLICATION, len(every))), str(min(LEAST_IN_SYNC, len(every)))
    internal_topics = ("transaction.state.log", "share.coordinator.state.topic")
    return {
        "node.id": str(number),
        "controller.quorum.voters": ",".join(voters),
        "listeners": (
            f"PLAIN://127.0.0.1:{plain},SASL://127.0.0.1:{sasl},INTERNAL://127.0.0.1:{internal},"
            f"CONTROLLER://127.0.0.1:{ports['kafka_controller']}"
        ),
        "advertised.listeners": (
            f"PLAIN://127.0.0.1:{plain},SASL://127.0.0.1:{sasl},INTERNAL://127.0.0.1:{ports['kafka_internal_front']},"
            f"CONTROLLER://127.0.0.1:{ports['kafka_controller_front']}"
        ),
        "listener.security.protocol.map": (
            "PLAIN:PLAINTEXT,SASL:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "inter.broker.listener.name": "INTERNAL",
        "default.replication.factor": copies,
        "min.insync.replicas": needed,
        "offsets.topic.replication.factor": copies,
        **{f"{topic}.replication.factor": copies for topic in internal_topics},
        **{f"{topic}.min.isr": needed for topic in internal_topics},
    }


def grant(port: int) -> None:
    """Let tidegate use every group and every topic but those that begin with `forbidden.`.

    Raises StackError when Kafka refuses or does not answer.
    """
    topic, group, literal, prefixed, everything, deny, allow = 2, 3, 3, 4, 2, 2, 3
    rules = [
        (topic, "*", literal, allow),
        (group, "*", literal, allow),
        (topic, FORBIDDEN_PREFIX, prefixed, deny),
    ]
    body = struct.pack(">i", len(rules))
    for kind, name, pattern, permission in rules:
        body += struct.pack(">b", kind) + _string(name) + struct.pack(">b", pattern)
        body += _string("User:tidegate") + _string("*") + struct.pack(">bb", everything, permission)
    try:
        answer = probes.kafka_call(port, CREATE_ACLS, 1, body)
    except probes.NotReadyError as error:
        raise StackError(f"Kafka no longer answers: {error}") from error
    at = 8  # behind the throttle time and the number of results, each of which is an error code and a message
    for _ in rules:
        (error_code,) = struct.unpack_from(">h", answer, at)
        message, at = probes.string_at(answer, at + 2)
        if error_code:
            raise StackError(f"Kafka refuses the rights of its users: {message} (error {error_code})")


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()

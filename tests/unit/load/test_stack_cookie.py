"""The secret by which the nodes of a RabbitMQ cluster know each other."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from load.stack import rabbitmq_node
from load.stack.rabbitmq_node import RabbitmqNode

PORTS = {"amqp": 1, "rabbitmq_dist": 2, "epmd": 3}
MEMBERS = tuple(f"node-{number}" for number in range(8))


def test_all_nodes_have_the_same_cookie_when_they_start_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rabbitmq_node, "spawn", lambda *_, **__: None)
    nodes = [RabbitmqNode(tmp_path, tmp_path / name, Path("/sbin"), PORTS, name, members=MEMBERS) for name in MEMBERS]

    with ThreadPoolExecutor(len(nodes)) as threads:
        list(threads.map(RabbitmqNode.start, nodes))

    cookies = [tmp_path / name / "home" / ".erlang.cookie" for name in MEMBERS]
    assert len({cookie.read_text() for cookie in cookies}) == 1
    assert len(cookies[0].read_text()) == 40
    assert {cookie.stat().st_mode & 0o777 for cookie in cookies} == {0o600}

"""Brokers of three nodes, one of them silent or down: nothing is lost, and events flow without it."""

from pathlib import Path

import aio_pika
import pytest

from load.faults.plan import CLUSTER_KINDS, named
from load.faults.session import session
from load.faults.verdicts import Round, broken
from load.stack import Stack, rabbitmq_4
from load.terminal import run
from tests.support.tidegate import Ends, Tidegate, until

KEPT = ("nowhere", "not what was sent", "duplicates", "out of order", "overtaken", "without")
"""Words of the promises that no busy machine excuses; what took how long `load.faults --cluster` judges."""


def rounds(folder: Path, *names: str, rabbitmq_sbin: Path | None = None) -> list[Round]:
    with session(folder / "figures.json", 5, rabbitmq_sbin, nodes=3) as here:
        run(here.run([named(name) for name in names]))
        return here.rounds


def broken_promises(told: Round) -> list[str]:
    return [words for words in broken(told) if any(word in words for word in KEPT)]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_nothing_is_lost_and_events_flow_when_a_leader_of_three_falls_silent(tmp_path: Path) -> None:
    (told,) = rounds(tmp_path, "leader-silent")

    assert told.node.startswith("kafka")
    assert told.counts.arrived > 0
    assert not broken_promises(told)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("rabbitmq", ["system", "4"])
def test_every_promise_but_the_seconds_holds_when_each_fault_of_clusters_comes_once(
    tmp_path: Path, rabbitmq: str
) -> None:
    sbin = rabbitmq_4.sbin() if rabbitmq == "4" else None

    every = rounds(tmp_path, *(kind.name for kind in CLUSTER_KINDS), rabbitmq_sbin=sbin)

    assert len(every) == len(CLUSTER_KINDS)
    assert not [words for told in every for words in broken_promises(told)]


@pytest.mark.timeout(180)
async def test_events_wait_and_none_is_a_dead_letter_when_the_node_of_their_classic_queue_is_down(
    tmp_path: Path,
) -> None:
    with Stack.up(heap="384m", rabbitmq_nodes=3) as stack:
        async with Ends.open(stack) as ends:
            other = stack.rabbitmq_roles[1]
            near, far, dead = await ends.queue(".near"), f"{ends.name}.far", await ends.queue(".dead")
            connection = await aio_pika.connect(stack.address(other))
            async with connection:
                await (await connection.channel()).declare_queue(far, durable=True)
            steady, kept, bare = [await ends.topic(suffix) for suffix in (".steady", ".kept", ".bare")]
            types = {
                steady: {"routing_key": near},
                kept: {"routing_key": far, "dead_letter": {"routing_key": dead}},
                bare: {"routing_key": far},
            }
            with Tidegate(tmp_path, ends.settings(types)) as tidegate:
                await tidegate.ready()
                for topic in types:
                    await ends.produce(topic, [b"%d" % number for number in range(100)])
                for topic in types:
                    await until(lambda topic=topic: ends.all_committed(topic, 1, 100))
                stack.stop(other, kill=True)
                for topic in types:
                    await ends.produce(topic, [b"%d" % number for number in range(100, 600)])
                await until(lambda: ends.all_committed(steady, 1, 600))
                (away,) = await until(lambda: tidegate.events("queue_away"))
                assert away["queue"] == far
                assert "down" in away["why"]
                stack.start(other)
                for topic in types:
                    await until(lambda topic=topic: ends.all_committed(topic, 1, 600))
                assert tidegate.events("queue_back")
                assert await tidegate.stop() == 0
            assert await ends.depth(dead) == 0
            bodies = [int(message.body) for message in await ends.receive(far, 1200)]
            assert sorted(bodies) == sorted([*range(600), *range(600)])

"""Three nodes of each broker, one of them silent: nothing is lost, and events flow without it."""

from pathlib import Path

import pytest

from load.faults.plan import CLUSTER_KINDS, named
from load.faults.session import session
from load.faults.verdicts import Round, broken
from load.stack import rabbitmq_4
from load.terminal import run

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

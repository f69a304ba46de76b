"""Where lanes and replicas connect first, and where they go from there."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from random import Random

from proxy.rabbitmq.host_turn import DOUBTED_FOR, DoubtedHosts, HostTurn
from proxy.rabbitmq.login import Logins
from proxy.settings import BrokerSettings

HOSTS = ["a:1", "b:2", "c:3"]


def logins(seed: int) -> Logins:
    return Logins(BrokerSettings(hosts=HOSTS), chance=Random(seed))


def order(replica: Logins) -> Iterator[str]:
    hosts = replica.hosts()
    turns = [hosts.next(0.0) for _ in range(9)]
    assert turns[0] == hosts.home
    return iter(turns)


def test_the_lanes_of_a_replica_begin_at_each_host_equally_often() -> None:
    replica = logins(1)
    assert set(Counter(next(order(replica)) for _ in range(9)).values()) == {3}


def test_replicas_with_one_lane_begin_at_different_hosts() -> None:
    first = Counter(next(order(logins(seed))) for seed in range(300))
    assert min(first.values()) > 60


def test_every_host_is_tried_before_one_is_tried_again() -> None:
    turns = list(islice(order(logins(2)), 7))
    assert sorted(turns[:3]) == HOSTS
    assert turns[:3] == turns[3:6]
    assert turns[6] == turns[0]


def test_those_who_lose_a_host_go_to_different_ones() -> None:
    replica = logins(3)
    orders = [list(islice(order(replica), 2)) for _ in range(90)]
    assert {second for first, second in orders if first == "a:1"} == {"b:2", "c:3"}


def test_the_order_is_the_same_when_chance_is() -> None:
    assert [next(order(logins(4))) for _ in range(5)] == [next(order(logins(4)))] * 5


def turn(count: int) -> tuple[HostTurn, DoubtedHosts]:
    doubted = DoubtedHosts()
    return HostTurn(HOSTS[:count], doubted), doubted


def test_a_host_in_doubt_is_passed_over_for_a_while_when_there_are_others() -> None:
    hosts, doubted = turn(3)
    doubted.add("b:2", 100.0)
    assert [hosts.next(100.0 + DOUBTED_FOR - 0.1) for _ in range(4)] == ["a:1", "c:3", "a:1", "c:3"]
    assert [hosts.next(100.0 + DOUBTED_FOR) for _ in range(3)] == HOSTS


def test_hosts_are_tried_in_turn_when_each_is_in_doubt() -> None:
    hosts, doubted = turn(3)
    for host in HOSTS:
        doubted.add(host, 100.0)
    assert [hosts.next(100.0) for _ in range(6)] == 2 * HOSTS


def test_the_only_host_is_tried_when_it_is_in_doubt() -> None:
    hosts, doubted = turn(1)
    doubted.add("a:1", 100.0)
    assert hosts.next(100.0) == "a:1"
    assert not hosts.is_better_elsewhere("a:1", 100.0)


def test_it_is_better_elsewhere_when_a_host_is_in_doubt_and_another_is_not() -> None:
    hosts, doubted = turn(2)
    assert not hosts.is_better_elsewhere("a:1", 100.0)
    doubted.add("a:1", 100.0)
    assert hosts.is_better_elsewhere("a:1", 100.0)
    doubted.add("b:2", 100.0)
    assert not hosts.is_better_elsewhere("a:1", 100.0)
    doubted.remove("b:2")
    assert hosts.is_better_elsewhere("a:1", 100.0)
    assert hosts.next(100.0) == "b:2"


def test_all_lanes_know_when_one_has_found_a_host_in_doubt() -> None:
    replica = logins(5)
    replica.doubted.add("a:1", 100.0)
    assert "a:1" not in {replica.hosts().next(100.0) for _ in range(30)}

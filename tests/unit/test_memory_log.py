"""What only the log in memory can show: faults at a chosen moment, under virtual time, the same every time."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

import pytest

from proxy.errors import LogError
from proxy.model import Partition
from proxy.settings import Limits, LogSettings
from proxy.simulation import virtual_time
from proxy.simulation.memory_cluster import MemoryCluster
from proxy.simulation.memory_log import MemoryLog
from tests.contract.log_adapters import Owner

A, B = Partition("orders", 0), Partition("orders", 1)
Result = TypeVar("Result")


def lived(story: Callable[[MemoryCluster], Awaitable[Result]], seed: int = 1) -> Result:
    async def live() -> Result:
        cluster = MemoryCluster(Random(seed), fetch_events=10)
        cluster.create_topic("orders", 2)
        return await story(cluster)

    return virtual_time.run(live())


async def member(cluster: MemoryCluster, name: str) -> tuple[MemoryLog, Owner]:
    settings = LogSettings(hosts=["memory:9092"], group="g", session_timeout=6.0)
    log, owner = MemoryLog(cluster, settings, Limits(), name=name), Owner()
    await log.start(owner)
    await log.subscribe(frozenset({"orders"}))
    return log, owner


async def polled(seconds: float, *members: tuple[MemoryLog, Owner]) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while loop.time() < until:
        for log, owner in members:
            owner.take(await log.poll(0.05))


def test_another_member_takes_over_when_one_is_killed() -> None:
    async def story(cluster: MemoryCluster) -> None:
        one, two = await member(cluster, "one"), await member(cluster, "two")
        await polled(3, one, two)
        assert len(one[1].owned) == len(two[1].owned) == 1
        await one[0].sever()
        await polled(5, two)
        assert len(two[1].owned) == 1
        await polled(5, two)
        assert two[1].owned == {A, B}
        await two[0].stop()

    lived(story)


def test_a_member_that_was_cut_off_is_fenced_when_it_returns() -> None:
    async def story(cluster: MemoryCluster) -> None:
        one, two = await member(cluster, "one"), await member(cluster, "two")
        await polled(3, one, two)
        cluster.cut_off("one")
        await polled(10, two)
        assert two[1].owned == {A, B}
        assert one[1].owned
        assert not await one[0].affirm()
        cluster.reconnect("one")
        await polled(5, one, two)
        assert len(one[1].owned) == len(two[1].owned) == 1
        assert len(one[1].assignments) == 3
        await one[0].stop()
        await two[0].stop()

    lived(story)


def test_requests_fail_in_time_and_work_again_when_the_log_is_down_for_a_while() -> None:
    async def story(cluster: MemoryCluster) -> None:
        log, owner = await member(cluster, "one")
        await polled(3, (log, owner))
        position = cluster.produce("orders", 0, value=b"1")
        cluster.go_down()
        started = asyncio.get_running_loop().time()
        with pytest.raises(LogError):
            await log.commit({A: position})
        assert asyncio.get_running_loop().time() - started == pytest.approx(Limits().commit_deadline, abs=0.1)
        assert await log.lags({A: None}) == {}
        assert not await log.affirm()
        await polled(60, (log, owner))
        assert not owner.received
        cluster.come_up()
        await polled(1, (log, owner))
        assert owner.values(A) == [b"1"]
        await log.commit(owner.finish())
        assert cluster.group("g").committed[A].offset == 1
        await log.stop()

    lived(story)


def test_a_rebalance_leaves_out_who_does_not_join_when_its_time_is_over() -> None:
    async def story(cluster: MemoryCluster) -> None:
        one, two = await member(cluster, "one"), await member(cluster, "two")
        await polled(3, one, two)
        one[1].revoking = asyncio.Event()
        three = await member(cluster, "three")
        await polled(60, two, three)
        assert len(two[1].owned) == len(three[1].owned) == 1
        one[1].revoking.set()
        await polled(5, one, two, three)
        assert sorted(len(owner.owned) for _, owner in (one, two, three)) == [0, 1, 1]
        for log, _ in (one, two, three):
            await log.stop()

    lived(story)


def test_the_same_seed_gives_the_same_history_when_it_is_lived_again() -> None:
    async def story(cluster: MemoryCluster) -> list[tuple[float, str]]:
        for number in range(200):
            cluster.produce("orders", number % 2, value=b"%d" % number)
        seen: list[tuple[float, str]] = []
        one, two = await member(cluster, "one"), await member(cluster, "two")
        for _ in range(80):
            for log, owner in (one, two):
                fetched = await log.poll(0.05)
                owner.take(fetched)
                seen += [(asyncio.get_running_loop().time(), f"{p} {len(found)}") for p, found in fetched.items()]
                await log.commit(owner.finish())
        await one[0].stop()
        await two[0].stop()
        return seen

    assert lived(story, seed=3) == lived(story, seed=3)
    assert lived(story, seed=3) != lived(story, seed=4)

"""How long a replica may take its partitions for its own."""

import asyncio

from proxy.bridge.lease import Lease
from proxy.simulation import virtual_time


def test_it_is_not_held_before_the_first_renewal_and_exactly_for_its_term_after() -> None:
    lease = Lease(3.0)
    assert lease.left(0.0) <= 0
    lease.renew(10.0)
    assert lease.left(12.5) == 0.5
    assert lease.left(13.0) == 0


def test_an_older_proof_shortens_nothing_when_it_is_answered_last() -> None:
    lease = Lease(3.0)
    lease.renew(10.0)
    lease.renew(9.0)
    assert lease.left(10.0) == 3.0


async def test_it_ends_at_once_when_it_is_given_up() -> None:
    lease = Lease(3.0)
    lease.renew(10.0)
    lease.end()
    assert lease.left(10.0) <= 0


def test_it_has_lapsed_since_it_was_last_held_or_wanted_anew() -> None:
    async def live() -> None:
        loop = asyncio.get_running_loop()
        lease = Lease(3.0)
        lease.renew(loop.time())
        await asyncio.sleep(2)
        assert lease.lapsed(loop.time()) == 0
        await asyncio.sleep(5)
        assert lease.lapsed(loop.time()) == 4
        lease.ask()
        assert lease.lapsed(loop.time()) == 0
        await asyncio.sleep(1)
        assert lease.lapsed(loop.time()) == 1
        lease.renew(loop.time())
        lease.end()
        await asyncio.sleep(2)
        assert lease.lapsed(loop.time()) == 2

    virtual_time.run(live())


def test_everyone_who_waits_goes_on_when_it_is_renewed_and_not_before() -> None:
    async def live() -> list[float]:
        loop = asyncio.get_running_loop()
        lease = Lease(3.0)
        lease.renew(-10.0)  # a proof too old to hold

        async def wait() -> float:
            await lease.held()
            return loop.time()

        waiting = [asyncio.create_task(wait()) for _ in range(3)]
        await asyncio.sleep(1)
        lease.renew(-5.0)
        await asyncio.sleep(1)
        lease.renew(loop.time())
        return await asyncio.gather(*waiting)

    assert virtual_time.run(live()) == [2.0, 2.0, 2.0]

"""How the long commands end when they are told to."""

import asyncio
import signal
from collections.abc import Iterator

import pytest

from load.terminal import interrupted_by_signals, run


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)}
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_what_runs_is_cancelled_once_and_cleans_up_when_a_signal_comes(
    signum: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    cleaned: list[str] = []

    async def side() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("side")

    async def work() -> None:
        other = asyncio.create_task(side())
        asyncio.get_running_loop().call_later(0.01, signal.raise_signal, signum)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            cleaned.append("work")
            other.cancel()
            await asyncio.wait({other})

    with pytest.raises(KeyboardInterrupt) as ended:
        run(work())
    assert ended.value.args == (signum,)
    assert cleaned == ["work", "side"]
    assert capfd.readouterr().err == ""


def test_a_signal_interrupts_what_follows_when_the_loop_has_ended() -> None:
    async def work() -> int:
        return 7

    interrupted_by_signals()
    assert run(work()) == 7
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


def test_a_cancellation_of_the_works_own_making_stays_one() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run(work())

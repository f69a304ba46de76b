"""Several processes under test, seen as one."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from load.crew import Crew
from load.worker import Worker, WorkerError

SLEEPS = ("timeit", "-n1", "-r1", "-s", "import time", "time.sleep(60)")
FAILS = ("timeit", "-n1", "-r1", "1 / 0")


def made(tmp_path: Path, *commands: tuple[str, ...]) -> list[Callable[[], Worker]]:
    return [partial(Worker, *command, output=tmp_path / "said.txt") for command in commands]


async def never() -> bool:
    return False


def test_all_end_with_it_and_count_as_one(tmp_path: Path) -> None:
    with Crew(made(tmp_path, SLEEPS, SLEEPS)) as crew:
        crew.check()
        assert crew.began() <= time.time()
        assert crew.rss() <= crew.peak_rss()
        assert crew.cpu_seconds() == pytest.approx(sum(one.cpu_seconds() for one in crew.workers), abs=0.5)
        pids = [one.process.pid for one in crew.workers]
    assert len(pids) == 2
    assert not any(map(psutil.pid_exists, pids))


async def test_waiting_ends_when_one_of_them_has_failed(tmp_path: Path) -> None:
    with Crew(made(tmp_path, SLEEPS, FAILS)) as crew, pytest.raises(WorkerError, match="ZeroDivisionError"):
        await crew.until(never, 30)


def test_none_is_left_behind_when_one_can_not_be_made(tmp_path: Path) -> None:
    begun: list[Worker] = []

    def first() -> Worker:
        begun.append(made(tmp_path, SLEEPS)[0]())
        return begun[0]

    def second() -> Worker:
        raise OSError("no more processes")

    with pytest.raises(OSError, match="no more"), Crew([first, second]):
        pass
    assert begun[0].code is not None

"""The metric log: every record once or counted, whatever the disk does; files bounded, finished, shared."""

import asyncio
import errno
import gzip
import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from proxy.recording import MetricLog, metric_log
from proxy.recording import folder as folder_module
from proxy.recording.folder import MetricFolder
from proxy.settings import MetricLogSettings

WALL = 1_700_000_000.0
KIB = 1024


def settings_of(folder: Path | None, **changes: Any) -> MetricLogSettings:
    return MetricLogSettings(folder=None if folder is None else str(folder), **changes)


def log_of(folder: Path, instance: str = "host-1-0", **changes: Any) -> MetricLog:
    return MetricLog(settings_of(folder, **changes), lambda: WALL, instance)


def records_in(folder: Path) -> list[dict[str, Any]]:
    found = []
    for path in sorted(folder.glob("*.jsonl.*")):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]  # a line that is being written may be torn
        found += [json.loads(line) for line in whole.decode().splitlines()]
    return found


def names_in(folder: Path, pattern: str = "*") -> list[str]:
    return sorted(path.name for path in folder.glob(pattern))


def lines_in(folder: Path) -> list[list[bytes]]:
    """The lines of each finished file."""
    return [gzip.decompress(path.read_bytes()).splitlines(keepends=True) for path in sorted(folder.glob("*.gz"))]


def suffixes_in(folder: Path) -> set[str]:
    return {path.suffix for path in folder.iterdir()}


def numbers_in(folder: Path) -> list[int]:
    return [record["n"] for record in records_in(folder) if record["kind"] == "incident"]


def incident(number: int, detail: str = "") -> dict[str, object]:
    return {"kind": "incident", "name": "lane_state", "n": number, "detail": detail}


async def inline(work: Callable[[float], None], now: float) -> None:
    work(now)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the disk tells nobody
            await asyncio.sleep(0.005)


@asynccontextmanager
async def running(log: MetricLog) -> AsyncIterator[MetricLog]:
    task = asyncio.create_task(log.run())
    try:
        yield log
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric_log, "FLUSH_INTERVAL", 0.01)
    monkeypatch.setattr(metric_log, "RETRY_INTERVAL", 0.01)


async def test_a_record_reaches_the_folder_as_it_is_and_drops_in_their_envelope_when_written(tmp_path: Path) -> None:
    log = log_of(tmp_path, buffer_records=100)
    record = {"v": 2, "kind": "consumed", "at_ms": 5}
    for _ in range(101):
        log.write(record)
    await log.close()
    drops, *records = records_in(tmp_path)
    assert records == [record] * 100
    envelope = {"v": 2, "kind": "drops", "at_ms": 1_700_000_000_000, "instance": "host-1-0"}
    assert drops == envelope | {"records": 1, "files": 0}


async def test_records_are_readable_before_the_file_is_finished_when_run_writes_them(tmp_path: Path) -> None:
    async with running(log_of(tmp_path)) as log:
        for number in range(1_200):
            log.write(incident(number))
        await until(lambda: len(numbers_in(tmp_path)) == 1_200)
        assert suffixes_in(tmp_path) == {".open"}
    await log.close()
    assert suffixes_in(tmp_path) == {".gz"}
    assert numbers_in(tmp_path) == list(range(1_200))


async def test_nothing_is_kept_or_written_when_there_is_no_folder(tmp_path: Path) -> None:
    log = MetricLog(settings_of(None), lambda: WALL, "x")
    for number in range(200_000):
        log.write(incident(number))
    await log.run()
    await log.close()
    assert (log.dropped_records, log.dropped_files) == (0, 0)


async def test_records_beyond_the_buffer_are_dropped_and_counted_when_nobody_writes_them(tmp_path: Path) -> None:
    log = log_of(tmp_path, buffer_records=100)
    for number in range(130):
        log.write(incident(number))
    assert log.dropped_records == 30
    await log.close()
    assert numbers_in(tmp_path) == list(range(100))
    assert [(r["records"], r["files"]) for r in records_in(tmp_path) if r["kind"] == "drops"] == [(30, 0)]


async def test_a_loss_is_told_once_when_more_records_follow(tmp_path: Path) -> None:
    log = log_of(tmp_path, buffer_records=100)
    for number in range(105):
        log.write(incident(number))
    async with running(log):
        await until(lambda: len(numbers_in(tmp_path)) == 100)
        log.write(incident(200))
        await until(lambda: 200 in numbers_in(tmp_path))
    await log.close()
    assert [r["records"] for r in records_in(tmp_path) if r["kind"] == "drops"] == [5]


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}])
async def test_a_record_is_dropped_and_its_neighbours_written_when_it_is_not_json(
    tmp_path: Path, value: object
) -> None:
    log = log_of(tmp_path)
    log.write(incident(1))
    log.write({"kind": "incident", "n": value})
    log.write(incident(2))
    with capture_logs() as said:
        await log.close()
    assert numbers_in(tmp_path) == [1, 2]
    assert log.dropped_records == 1
    assert [line["kind"] for line in said] == ["incident"]


async def test_files_are_finished_when_they_reach_their_size(tmp_path: Path) -> None:
    log = log_of(tmp_path, file_bytes=64 * KIB)
    async with running(log):
        for number in range(2_000):
            log.write(incident(number, "x" * 100))
        await until(lambda: log.waiting == 0 and len(names_in(tmp_path, "*.gz")) >= 4)
    sizes = [sum(map(len, lines)) for lines in lines_in(tmp_path)]
    assert len(sizes) >= 4
    assert all(64 * KIB <= size < 65 * KIB for size in sizes)
    await log.close()
    assert numbers_in(tmp_path) == list(range(2_000))


async def test_a_file_is_finished_when_it_reaches_its_age(tmp_path: Path) -> None:
    now = 100.0

    async def at_that_time(work: Callable[[float], None], _: float) -> None:
        work(now)

    log = MetricLog(settings_of(tmp_path, file_age=10), lambda: WALL, "one", offload=at_that_time)
    async with running(log):
        log.write(incident(1))
        await until(lambda: numbers_in(tmp_path) == [1])
        now = 109.9
        await asyncio.sleep(0)
        assert not names_in(tmp_path, "*.gz")
        now = 110.0
        await until(lambda: len(names_in(tmp_path, "*.gz")) == 1)
    assert not names_in(tmp_path, "*.open")


async def test_no_thread_is_started_when_work_is_offloaded_inline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: threading.Thread) -> None:
        raise AssertionError("a thread was started")

    monkeypatch.setattr(threading.Thread, "start", refused)
    log = MetricLog(settings_of(tmp_path), lambda: WALL, "one", offload=inline)
    async with running(log):
        log.write(incident(1))
        await until(lambda: log.waiting == 0)
    await log.close()
    assert numbers_in(tmp_path) == [1]


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """Every thread that is started."""
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def noted(self: threading.Thread) -> None:
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", noted)
    return started


async def test_one_thread_does_all_the_writing_when_there_is_much_of_it(
    tmp_path: Path, starts: list[threading.Thread]
) -> None:
    async with running(log_of(tmp_path)) as log:
        for number in range(20):
            log.write(incident(number))
            await until(lambda: log.waiting == 0)
    await log.close()
    assert numbers_in(tmp_path) == list(range(20))
    (thread,) = starts
    await until(lambda: not thread.is_alive())


async def test_records_wait_and_the_failure_is_said_once_when_the_system_has_no_thread_to_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def refused(self: threading.Thread) -> None:
        tries.append(self)
        raise RuntimeError("can't start new thread")

    with capture_logs() as said, monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refused)
        async with running(log_of(tmp_path)) as log:
            log.write(incident(1))
            await until(lambda: len(tries) > 3)
            assert (log.failing, log.waiting) == (True, 1)
            limited.undo()
            monkeypatch.setattr(metric_log, "FLUSH_INTERVAL", 0.01)
            await until(lambda: numbers_in(tmp_path) == [1])
        await log.close()
    assert [(line["log_level"], line["event"]) for line in said] == [
        ("warning", "metric_log_unavailable"),
        ("info", "metric_log_available"),
    ]


async def test_the_records_are_said_to_be_lost_when_there_is_no_thread_at_the_end_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    log = log_of(tmp_path)
    log.write(incident(1))
    with capture_logs() as said:
        await log.close()
    assert [line.get("records_left") for line in said] == [None, 1]


async def test_data_flows_on_when_the_folder_fails_in_a_way_that_nobody_foresaw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("not a time")

    with capture_logs() as said:
        async with running(log_of(tmp_path)) as log:
            with monkeypatch.context() as breaking:
                breaking.setattr(MetricFolder, "append", broken)
                log.write(incident(1))
                await until(lambda: log.failing)
            await until(lambda: numbers_in(tmp_path) == [1])
        await log.close()
    assert [line.get("why") for line in said] == ["ValueError('not a time')", None]


async def test_the_oldest_finished_files_are_dropped_and_counted_when_the_folder_is_full(tmp_path: Path) -> None:
    total = 1024 * KIB
    stranger = tmp_path / "produced.jsonl.gz"
    stranger.write_bytes(os.urandom(900 * KIB))
    settings = settings_of(tmp_path, file_bytes=64 * KIB, total_bytes=total)
    log = MetricLog(settings, lambda: WALL, "one", offload=inline)
    most = 0
    async with running(log):
        for turn in range(60):
            for number in range(20):
                log.write(incident(turn * 20 + number, os.urandom(1_500).hex()))
            await until(lambda: log.waiting == 0)
            most = max(most, size_of(tmp_path, besides=stranger))
    await log.close()
    assert stranger.exists()
    stranger.unlink()
    kept = numbers_in(tmp_path)
    assert most <= total
    assert log.dropped_files > 0
    assert kept == list(range(kept[0], 1_200))
    assert all(r["records"] == 0 for r in records_in(tmp_path) if r["kind"] == "drops")


def size_of(folder: Path, besides: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path != besides)


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every write takes at most `room[0]` bytes, then fails as a full disk does."""
    room = [10**9]
    write = os.write

    def limited(fd: int, data: bytes) -> int:
        if room[0] <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = write(fd, data[: room[0]])
        room[0] -= taken
        return taken

    monkeypatch.setattr(os, "write", limited)
    return room


@pytest.mark.parametrize("room", [0, 1, 63, 200, 5_000])
async def test_every_record_is_written_once_when_the_disk_was_full_meanwhile(
    tmp_path: Path, full_disk: list[int], room: int
) -> None:
    full_disk[0] = room
    log = log_of(tmp_path)
    with capture_logs() as said:
        async with running(log):
            for number in range(300):
                log.write(incident(number))
            await until(lambda: log.failing)
            full_disk[0] = 10**9
            await until(lambda: len(numbers_in(tmp_path)) == 300)
            await until(lambda: not log.failing)
        await log.close()
    assert numbers_in(tmp_path) == list(range(300))
    assert log.dropped_records == 0
    assert [line["log_level"] for line in said] == ["warning", "info"]


async def test_what_is_lost_is_said_and_no_recovery_is_when_the_disk_is_full_to_the_end(
    tmp_path: Path, full_disk: list[int]
) -> None:
    log = log_of(tmp_path)
    full_disk[0] = 0
    with capture_logs() as said:
        async with running(log):
            log.write(incident(1))
            await until(lambda: log.failing)
            log.write(incident(2))
        await log.close()
    assert log.failing
    assert [line["event"] for line in said] == ["metric_log_unavailable", "metric_log_unfinished"]
    assert said[1]["records_left"] == 2


def short_disk(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[int]:
    """A disk of `[0]` bytes below what is written with `os.write` and what is compressed, as a small one shows it."""
    size = [10**9]
    write, compress = os.write, folder_module._compress

    def free() -> int:
        return size[0] - sum(path.stat().st_size for path in folder.iterdir())

    def limited(fd: int, data: bytes) -> int:
        if free() <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data[: free()])

    def packed(source: int, path: Path) -> None:
        if os.fstat(source).st_size // 2 > free():
            raise OSError(errno.ENOSPC, "No space left on device")
        compress(source, path)

    monkeypatch.setattr(os, "write", limited)
    monkeypatch.setattr(folder_module, "_compress", packed)
    monkeypatch.setattr(folder_module, "_free_bytes", lambda _: free())
    return size


async def test_ended_files_are_finished_and_recovery_is_said_once_when_a_small_disk_has_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = short_disk(monkeypatch, tmp_path)
    size[0] = 160 * KIB
    log = log_of(tmp_path, file_bytes=64 * KIB, buffer_records=100)
    noise = Random(1)
    taken = 0
    with capture_logs() as said:
        async with running(log):
            while not log.failing or log.dropped_records < 50:
                log.write(incident(taken, noise.randbytes(128).hex()))
                taken += 1
                if log.waiting >= 50:
                    await asyncio.sleep(0.005)
            full = suffixes_in(tmp_path)
            size[0] = 1000 * KIB
            await until(lambda: not log.failing)
            lost = log.dropped_records
            log.write(incident(taken))
            await until(lambda: taken in numbers_in(tmp_path))
            open_ones = names_in(tmp_path, "*.open")
        await log.close()
    assert full == {".gz", ".open"}
    assert len(open_ones) == 1
    assert suffixes_in(tmp_path) == {".gz"}
    assert len(numbers_in(tmp_path)) == taken + 1 - lost
    assert [line["event"] for line in said] == ["metric_log_unavailable", "metric_log_available"]
    assert "total_bytes" in said[0]["remedy"]
    assert said[1]["dropped_records"] == lost


async def test_nothing_is_compressed_again_and_again_when_a_full_disk_shows_no_more_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, tries = short_disk(monkeypatch, tmp_path), []
    size[0] = 90 * KIB
    short = folder_module._compress

    def counted(source: int, path: Path) -> None:
        tries.append(path)
        short(source, path)

    monkeypatch.setattr(folder_module, "_compress", counted)
    folder = MetricFolder(tmp_path, settings_of(tmp_path, file_bytes=64 * KIB), lambda: WALL, "one")
    lines = deque([b"x" * 64 * KIB, b"y"])
    folder.append(lines, 0.0)
    for now in (0.0, 2.0, 59.0, 61.0, 63.0):
        with pytest.raises(OSError, match="No space"):
            folder.finish_leftovers(now)
        with pytest.raises(OSError, match="No space"):
            folder.append(lines, now)
    assert len(tries) == 2
    size[0] = 160 * KIB
    folder.append(lines, 64.0)
    assert not lines
    assert len(tries) == 3


async def test_a_torn_line_stays_and_the_rest_goes_on_in_a_new_file_when_it_can_not_be_cut_off(
    tmp_path: Path, full_disk: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(fd: int, size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "ftruncate", refused)
    full_disk[0] = 250
    log = log_of(tmp_path)
    async with running(log):
        for number in range(10):
            log.write(incident(number))
        await until(lambda: log.failing)
        full_disk[0] = 10**9
        await until(lambda: not log.failing)
    await log.close()
    lines = [line for file in lines_in(tmp_path) for line in file]
    assert len([line for line in lines if not line.endswith(b"}\n")]) == 1
    assert [json.loads(line)["n"] for line in lines if line.endswith(b"}\n")] == list(range(10))


async def test_failure_is_said_once_and_records_follow_when_the_folder_can_not_be_made_at_first(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    folder.write_text("a file where the folder should be")
    tries = []

    async def counted(work: Callable[[float], None], now: float) -> None:
        work(now)
        tries.append(now)

    log = MetricLog(settings_of(folder), lambda: WALL, "one", offload=counted)
    with capture_logs() as said:
        async with running(log):
            log.write(incident(1))
            await until(lambda: log.failing)
            log.write(incident(2))
            await until(lambda: len(tries) > 5)
            folder.unlink()
            await until(lambda: not log.failing and numbers_in(folder) == [1, 2])
        await log.close()
    assert [line["log_level"] for line in said] == ["warning", "info"]


async def test_new_records_go_to_a_new_file_when_the_folder_is_removed_under_it(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "metrics"
    log = log_of(folder)
    async with running(log):
        log.write(incident(1))
        await until(lambda: numbers_in(folder) == [1])
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        log.write(incident(2))
        await until(lambda: folder.exists() and numbers_in(folder) == [2])
    await log.close()
    assert numbers_in(folder) == [2]


@pytest.mark.parametrize(("is_removed", "lost"), [(True, 2), (False, 0)])
async def test_an_open_file_that_is_taken_away_is_said_and_what_is_lost_with_it_is_counted(
    tmp_path: Path, is_removed: bool, lost: int
) -> None:
    folder = tmp_path / "metrics"
    log = log_of(folder)
    with capture_logs() as said:
        async with running(log):
            log.write(incident(1))
            log.write(incident(2))
            await until(lambda: numbers_in(folder) == [1, 2])
            [file] = folder.iterdir()
            file.unlink() if is_removed else file.rename(tmp_path / "elsewhere")
            await until(lambda: bool(said))
            log.write(incident(3))
            await until(lambda: numbers_in(folder) == [3])
        await log.close()
    assert [line["event"] for line in said] == ["metric_log_file_taken"]
    assert log.dropped_records == lost
    drops = [record["records"] for record in records_in(folder) if record["kind"] == "drops"]
    assert drops == ([lost] if lost else [])


DYING = """
import asyncio, os, signal, sys
from proxy.recording import metric_log
from proxy.recording import MetricLog
from proxy.settings import MetricLogSettings

async def main():
    log = MetricLog(MetricLogSettings(folder=sys.argv[1]), lambda: 1_600_000_000.0, "dying")
    task = asyncio.create_task(log.run())
    log.write({"kind": "incident", "n": 7})
    while log.waiting:
        await asyncio.sleep(0.01)
    print("written", flush=True)
    sys.stdin.read()

asyncio.run(main())
"""


async def test_an_open_file_is_left_alone_while_its_process_lives_and_finished_when_it_was_killed(
    tmp_path: Path,
) -> None:
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DYING, str(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    assert await other.stdout.readline() == b"written\n"
    log = log_of(tmp_path)
    log.write(incident(1))
    await log.close()
    (theirs,) = names_in(tmp_path, "*dying*.open")
    with (tmp_path / theirs).open("ab") as file:
        file.write(b'{"v":1,"kind":"inci')
    other.kill()
    await other.wait()
    later = log_of(tmp_path, "later")
    later.write(incident(2))
    await later.close()
    assert names_in(tmp_path, "*dying*") == [theirs.replace(".open", ".gz")]
    first, torn = lines_in(tmp_path)[0]
    assert (json.loads(first)["n"], torn) == (7, b'{"v":1,"kind":"inci')


async def test_a_dead_process_leaves_one_copy_when_it_died_between_compressing_and_removing(tmp_path: Path) -> None:
    name = "20200101T000000Z-dead-000001.jsonl"
    line = json.dumps(incident(1)).encode() + b"\n"
    (tmp_path / f"{name}.open").write_bytes(line)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(line))
    (tmp_path / f".{name}.gz.part").write_bytes(b"half")
    await log_of(tmp_path).close()
    assert numbers_in(tmp_path) == [1]


async def test_half_compressed_files_are_compressed_again_when_a_process_died_over_them(tmp_path: Path) -> None:
    name = "20200101T000000Z-dead-000001.jsonl"
    (tmp_path / f"{name}.open").write_bytes(json.dumps(incident(1)).encode() + b"\n")
    (tmp_path / f".{name}.gz.part").write_bytes(b"half")
    await log_of(tmp_path).close()
    assert names_in(tmp_path) == [f"{name}.gz"]
    assert numbers_in(tmp_path) == [1]


async def test_a_finished_file_is_not_overwritten_when_a_process_of_the_same_name_wrote_it_in_the_same_second(
    tmp_path: Path,
) -> None:
    for number in (1, 2):
        log = log_of(tmp_path)
        log.write(incident(number))
        await log.close()
    assert numbers_in(tmp_path) == [1, 2]


async def test_what_can_not_be_finished_keeps_nothing_else_from_it(tmp_path: Path) -> None:
    (tmp_path / "20200101T000000Z-dead-000001.jsonl.open" / "a folder where a file should be").mkdir(parents=True)
    (tmp_path / "20200101T000000Z-dead-000002.jsonl.open").write_text(json.dumps(incident(1)) + "\n")
    log = log_of(tmp_path)
    log.write(incident(2))
    with capture_logs() as said:
        await log.close()
    assert [json.loads(line)["n"] for lines in lines_in(tmp_path) for line in lines] == [1, 2]
    assert "directory" in said[0]["why"]


async def test_a_living_process_keeps_its_open_file_when_another_one_makes_room(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, file_bytes=64 * KIB, total_bytes=1024 * KIB)
    quiet = MetricLog(settings, lambda: WALL - 3600, "quiet", offload=inline)
    busy = MetricLog(settings, lambda: WALL, "busy", offload=inline)
    async with running(quiet), running(busy):
        quiet.write(incident(-1))
        await until(lambda: quiet.waiting == 0)
        for turn in range(60):
            for number in range(20):
                busy.write(incident(turn * 20 + number, os.urandom(1_500).hex()))
            await until(lambda: busy.waiting == 0)
    assert busy.dropped_files > 0
    assert -1 in numbers_in(tmp_path)


async def test_no_record_is_lost_or_doubled_when_several_processes_share_a_folder(tmp_path: Path) -> None:
    logs = [log_of(tmp_path, name, file_bytes=64 * KIB) for name in ("a", "a", "b/c:d é")]
    tasks = [asyncio.create_task(log.run()) for log in logs]
    for number in range(3_000):
        logs[number % 3].write(incident(number, "x" * 100))
        if number % 100 == 0:
            await asyncio.sleep(0.002)
    for log in logs:
        await log.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert sorted(numbers_in(tmp_path)) == list(range(3_000))
    assert suffixes_in(tmp_path) == {".gz"}


async def test_close_returns_at_its_deadline_and_the_loop_never_stops_when_the_disk_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metric_log, "CLOSE_DEADLINE", 0.2)
    answer = threading.Event()
    write = os.write

    def hung(fd: int, data: bytes) -> int:
        answer.wait(30)
        return write(fd, data)

    monkeypatch.setattr(os, "write", hung)
    loop = asyncio.get_running_loop()
    log = log_of(tmp_path, buffer_records=100)
    beats = [loop.time()]
    async with running(log):
        for number in range(500):
            log.write(incident(number))
            await asyncio.sleep(0.001)
            beats.append(loop.time())
    started = loop.time()
    with capture_logs() as said:
        await log.close()
    assert loop.time() - started < 5
    assert max(later - earlier for earlier, later in pairwise(beats)) < 2
    assert log.dropped_records == 400
    assert said[0]["records_left"] == 100
    answer.set()
    await until(lambda: not [t for t in threading.enumerate() if t.name == "metric-log"])


async def test_close_may_be_called_again_when_all_is_written(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.write(incident(1))
    await log.close()
    await log.close()
    assert numbers_in(tmp_path) == [1]

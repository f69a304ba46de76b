"""What every command that breaks things shares: a stack and a folder of its own, and their end, whatever comes."""

import asyncio
import shutil
import signal
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from load.faults import results, small_disk
from load.faults.ledger import Counts
from load.faults.plan import Kind
from load.faults.rounds import Rounds
from load.faults.verdicts import Round, broken
from load.kafka import KafkaError
from load.stack import SetupError, Stack, StackError
from load.terminal import interrupted_by_signals, say
from load.wire import WireError
from load.worker import WorkerError

FAILURES = (StackError, WorkerError, WireError, KafkaError)
"""What ends a test before its end."""
NEEDS_DISK = "metric-disk-full"


@dataclass
class Session:
    """One stack on which rounds are run."""

    stack: Stack
    folder: Path
    disk: Path | None
    """A small file system to be filled; None where none can be mounted."""
    seed: int
    past: results.Past = field(default_factory=results.Past)
    """What an earlier session that this one resumes came to."""
    rounds: list[Round] = field(default_factory=list)
    """Of this session."""
    whole: Counts = field(default_factory=Counts)
    returned: int = 0
    """Messages that RabbitMQ gave out again because the checker's connection had broken."""

    def possible(self, kinds: Iterable[Kind]) -> list[Kind]:
        """Return those kinds of faults that can happen on this machine."""
        if self.disk is not None:
            return list(kinds)
        say(f"{NEEDS_DISK} is left out: this user may not mount a small file system")
        return [kind for kind in kinds if kind.name != NEEDS_DISK]

    @property
    def every(self) -> list[Round]:
        """All rounds, those of earlier sessions first."""
        return [*self.past.rounds, *self.rounds]

    async def run(
        self,
        kinds: Iterable[Kind],
        watch: Callable[[Rounds], Coroutine[Any, Any, None]] | None = None,
        keep: Callable[[], None] = lambda: None,
        volume: int = 0,
        last: Callable[[Rounds], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """Let one fault after another happen, watched by a task of its own; `keep` is called after each.

        `last` is awaited when the replicas have ended, while the brokers still run.
        So many events as `volume` says stand in the log when the first begins.
        Raises WorkerError, WireError, KafkaError or StackError if that fails.
        """
        async with AsyncExitStack() as running:
            faults = await Rounds.prepared(self.stack, self.folder, self.disk, self.seed, running)
            self.rounds = faults.every
            await faults.pour(volume)
            watching = None if watch is None else asyncio.create_task(watch(faults), name="watch")
            try:
                for number, kind in enumerate(kinds, len(self.past.rounds) + 1):
                    say(f"round {number}: {kind.what}")
                    say(results.line(await faults.run(number, kind)))
                    self.whole, self.returned = faults.so_far(), faults.sink.returned
                    keep()
            finally:
                if watching is not None:
                    watching.cancel()
            self.whole = await faults.end()
            self.returned = faults.sink.returned
            if last is not None:
                await last(faults)


@contextmanager
def session(
    file: Path, seed: int, rabbitmq_sbin: Path | None, nodes: int = 1, past: results.Past | None = None
) -> Iterator[Session]:
    """Bring up a stack of so many nodes of each kind and take it down.

    Where a promise was broken, the replicas' logs are kept beside `file`.
    """
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-faults-", ignore_cleanup_errors=True) as folder,
        small_disk.mounted(Path(folder) / "metric-disk") as disk,
        Stack.up(rabbitmq_sbin=rabbitmq_sbin, kafka_nodes=nodes, rabbitmq_nodes=nodes) as stack,
    ):
        here = Session(stack, Path(folder), disk, seed, past or results.Past())
        try:
            yield here
        except FAILURES:
            _keep(Path(folder), file, stack)
            raise
        if any(map(broken, here.rounds)):
            _keep(Path(folder), file, stack)


def _keep(folder: Path, file: Path, stack: Stack) -> None:
    logs = file.with_suffix(".logs")
    shutil.copytree(folder, logs, dirs_exist_ok=True)
    for role, log in stack.logs.items():
        with suppress(OSError):  # a node that never started has none
            shutil.copy(log, logs / f"{role}.log")
    say(f"settings, output and metric logs of the replicas, and the logs of the brokers, are in {logs}")


def guarded(work: Callable[[], int]) -> int:
    """Do the work of a command; return its exit code, or that of what went wrong, after one sentence."""
    interrupted_by_signals()
    try:
        return work()
    except SetupError as error:
        say(str(error))
        return 2
    except FAILURES as error:
        say(f"the test could not be ended: {error}")
        return 1
    except KeyboardInterrupt as error:
        say("interrupted; everything is taken down")
        return 128 + (error.args[0] if error.args and isinstance(error.args[0], int) else signal.SIGINT)

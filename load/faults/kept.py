"""What a run leaves for `load.ledger_check`: all its metric logs, and the truth about every position."""

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from load.faults import truth
from load.faults.reckoning import METRIC_SECONDS
from load.faults.replicas import GROUP
from load.faults.rounds import Rounds
from load.faults.streams import PAYLOAD, STREAMS
from load.faults.truth import Loss, Sample
from load.kafka import KafkaError, contents
from proxy.positions.identity import Committed
from proxy.reports.files import PATTERNS

LOOK_SECONDS = 0.25
"""Between two looks at what the group has committed."""
TRUTH = "truth.json"
KILLED = "killed"
LOSSY = {
    "metric-disk-full": METRIC_SECONDS,
    **dict.fromkeys(
        (
            *("kafka-reset", "kafka-black-hole", "kafka-cut-off", "kafka-slow", "kafka-restart", "kafka-killed"),
            *("leader-killed", "leader-silent", "follower-killed", "follower-silent", "controller-killed"),
            *("controller-silent", "coordinator-killed", "coordinator-silent", "kafka-node-cut-off"),
            *("kafka-node-hidden", "kafka-rolling", "partitions-reassigned", "replica-stopped"),
        ),
        0.0,
    ),
}
"""Faults that may lose records or Kafka's answer to a commit, and for how many seconds before and behind them."""


class Kept:
    """Looks at commits while a run lasts and writes everything down when it has ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._samples: list[Sample] = []

    async def watch(self, rounds: Rounds) -> None:
        """Look until cancelled."""
        while True:
            await self._look(rounds)
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self, rounds: Rounds) -> None:
        asked = time.monotonic()
        try:
            marks = await rounds.world.kafka.marks(GROUP)
        except KafkaError:
            return  # it is away, or its coordinator does not know yet
        ends = {at: (Committed.read(offset, note).topic_id, offset) for at, (offset, note) in marks.items()}
        if ends:
            self._samples.append(Sample(asked, time.monotonic(), ends))

    async def last(self, rounds: Rounds) -> None:
        """Write everything, when the replicas have ended. Raises KafkaError if the log can't be read."""
        await self._look(rounds)
        for replica in rounds.replicas.every:
            folder = self._folder / f"replica-{replica.number}"
            folder.mkdir(parents=True, exist_ok=True)
            for file in (file for pattern in PATTERNS for file in replica.metrics.glob(pattern)):
                shutil.copy(file, folder)
        partitions = [one async for one in self._partitions(rounds)]
        losses = [Loss(KILLED, at - METRIC_SECONDS, at) for at in rounds.replicas.kills]
        losses += [
            Loss(name, since - LOSSY[name], until + LOSSY[name])
            for name, (since, until) in rounds.spans
            if name in LOSSY
        ]
        told = truth.document(GROUP, partitions, self._samples, losses)
        (self._folder / TRUTH).write_text(json.dumps(told) + "\n", encoding="utf-8")

    async def _partitions(self, rounds: Rounds) -> AsyncIterator[dict[str, Any]]:
        for at, stream in enumerate(STREAMS):
            ledgers, ids = rounds.source.of(at), rounds.world.topic_ids[stream.name]
            found, ends = await contents(
                rounds.world.stack.kafka, stream.name, len(ledgers), lambda value: PAYLOAD.read(value)[1]
            )
            for partition, ledger in ledgers.items():
                lives = ledger.lives()
                # A partition that was added later has not lived as often as its topic.
                for topic_id, life in zip(reversed(ids), reversed(lives), strict=False):
                    is_there = life is lives[-1]
                    end = ends[partition] if is_there else max(map(ledger.offset, life), default=-1) + 1
                    until, back = truth.committed(self._samples, stream.name, topic_id, partition)
                    yield {
                        "topic": stream.name,
                        "topic_id": topic_id,
                        "partition": partition,
                        "is_there": is_there,
                        "end": end,
                        "committed": until,
                        "went_back": back,
                        "ranges": truth.ranges(ledger, life, end, found[partition] if is_there else {}),
                    }

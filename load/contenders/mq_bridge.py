"""mq-bridge, a Rust bridge with Python bindings (`pip install mq-bridge`); order is kept with one task only."""

import argparse
import signal
import sys
import threading
from typing import Any


def route(kafka: str, amqp: str, topic: str, group: str, queue: str, *, tasks: int, batch: int) -> dict[str, Any]:
    """Return its settings: at least once, persistent, offsets committed as batches are confirmed."""
    return {
        "input": {
            "kafka": {
                "url": kafka,
                "topic": topic,
                "group_id": group,
                "consumer_options": [["auto.offset.reset", "earliest"], ["fetch.wait.max.ms", "50"]],
            }
        },
        "output": {"amqp": {"url": amqp, "queue": queue, "no_declare_queue": True}},
        "concurrency": tasks,
        "batch_size": batch,
        "required_delivery": "at_least_once",
        "startup_timeout_ms": 30_000,
    }


def main() -> int:
    """Run it until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m load.contenders.mq_bridge", description=__doc__)
    for name in ("kafka", "amqp", "topic", "group", "queue"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--tasks", type=int, default=1, help="side by side; more than one lose the order (default: 1)")
    parser.add_argument("--batch", type=int, default=512, help="events of one batch at most (default: 512)")
    given = parser.parse_args()
    import mq_bridge

    settings = route(
        given.kafka, given.amqp, given.topic, given.group, given.queue, tasks=given.tasks, batch=given.batch
    )
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with mq_bridge.Route.from_config(settings) as running:
        ended.wait()
        running.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

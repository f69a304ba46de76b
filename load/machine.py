"""What a figure was measured on: without it a figure is none."""

import os
import platform
import subprocess
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from load.stack import Stack
from load.stack.disk import filesystem, warning

CLIENTS = ("aiokafka", "aio-pika", "uvloop")


def describe(stack: Stack) -> dict[str, Any]:
    """Return machine, versions and file system, for the JSON of a measurement."""
    kind = filesystem(stack.data)
    return {
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
            "load_before": os.getloadavg()[0],
            "system": platform.platform(),
        },
        "additions_s": round(_additions(), 2),
        "versions": stack.versions
        | {"python": platform.python_version(), "tidegate": commit()}
        | {client: version(client) for client in CLIENTS}
        | ({"mq-bridge": version("mq-bridge")} if find_spec("mq_bridge") else {}),
        "filesystem": kind,
        "warning": warning(kind),
    }


def _additions() -> float:
    """Return how many seconds this Python takes for ten million additions: its build and the machine's hour in one."""
    began, total = time.process_time(), 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - began


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def commit() -> str:
    """Return the commit measured, marked when the tree holds more than it; the version where there is no repository."""
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent, capture_output=True, text=True, check=True, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return version("tidegate")
    return answer.stdout.strip()

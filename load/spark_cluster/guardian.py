"""The guardian of a cluster: `python -m load.spark_cluster.guardian HOME PID STARTED`, which outlives the script.

It waits for the end of the script that made the cluster, however that ends, `kill -9` included, and clears what it has
left.
"""

import os
import shutil
import sys
from pathlib import Path

from load.stack.guardian import await_owner
from load.stack.processes import Identity, kill_marked, spawn
from load.stack.state import PROJECT


def start(home: Path, owner: Identity) -> Identity:
    """Start the guardian of a cluster."""
    command = [sys.executable, "-m", "load.spark_cluster.guardian", str(home), str(owner.pid), str(owner.started)]
    return spawn(command, env={"PYTHONPATH": str(PROJECT), "PYTHONSAFEPATH": "1"}, output=Path(os.devnull))


def clear(home: Path) -> None:
    """End every process of the cluster, executors included, and delete its folder. Raises StackError."""
    kill_marked(home)
    shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    await_owner(Identity(int(sys.argv[2]), int(sys.argv[3])))
    clear(Path(sys.argv[1]))

"""A cluster for one command: `python -m load.spark_cluster -- COMMAND`, which finds it in its environment."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from load.spark_cluster.cluster import SparkCluster
from load.stack.__main__ import HANDED_ON, run_command
from load.stack.errors import SetupError, StackError
from load.stack.terminal import say

FAILED, UNUSABLE = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the cluster, run the command, take the cluster down; return the command's exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m load.spark_cluster",
        description="A Spark master, two workers and an S3 for one command. It finds their settings in SPARK_CONF_DIR, "
        "the master in MASTER, and the store's folder in BUCKETS: each folder there is a bucket.",
        epilog="example: python -m load.spark_cluster -- bash -c "
        "'mkdir $BUCKETS/some && tidegate report --master $MASTER /var/lib/tidegate --out s3a://some/report'",
    )
    parser.add_argument("command", nargs="+", metavar="-- CMD", help="the command and its arguments")
    command = parser.parse_args(arguments).command
    try:
        with SparkCluster.up() as cluster:
            say(f"Spark {cluster.master}, buckets in {cluster.buckets}")
            found = {"MASTER": cluster.master, "BUCKETS": str(cluster.buckets)}
            return run_command(command, os.environ | cluster.environment | found)
    except SetupError as error:
        say(str(error))
        return UNUSABLE
    except StackError as error:
        say(str(error))
        return FAILED


def _interrupt(signum: int, _frame: object) -> None:
    raise KeyboardInterrupt(signum)


if __name__ == "__main__":
    for handed_on in HANDED_ON:
        signal.signal(handed_on, _interrupt)
    sys.exit(main())

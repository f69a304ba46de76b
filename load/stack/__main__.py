"""The command line of the local stack."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from load.stack import disk, kafka_settings, packages, rabbitmq_4
from load.stack.errors import AlreadyUpError, SetupError, StackError
from load.stack.leftovers import clear
from load.stack.rabbitmq_node import RabbitmqNode
from load.stack.stack import CLUSTER_HEAP, HEAP, Stack
from load.stack.state import home_of, homes, locked
from load.stack.terminal import say

DEFAULT_NAME = "default"
FAILED, UNUSABLE = 1, 2
HANDED_ON = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})
TITLES = {"kafka": "Kafka", "rabbitmq": "RabbitMQ"}
MOST_NODES = 5
LOOK_SECONDS = 0.5
"""How often to look after the command unasked: a thread of another library may have taken the news of its end."""

EXAMPLES = f"""\
examples:
  python -m load.stack up                                    leaves a stack running, prints how to reach it
  python -m load.stack status                                which stacks there are, and whether their nodes answer
  python -m load.stack down                                  ends its processes, deletes its data
  python -m load.stack run -- python -m pytest tests/integration
      a stack of its own for one command, which finds it in TIDEGATE_KAFKA, TIDEGATE_KAFKA_SASL, TIDEGATE_AMQP
      and TIDEGATE_STACK; afterwards everything is gone, and the exit code is the command's. Should this script be
      killed (kill -9), a guardian takes the stack down
  python -m load.stack up --name four --rabbitmq-sbin "$(python -m load.stack rabbitmq-4)"
      a second stack beside the first, on RabbitMQ 4
  python -m load.stack up --name three --kafka-nodes 3 --rabbitmq-nodes 3
      clusters: every topic on three nodes of which two must have an event (min.insync.replicas), RabbitMQ's members
      share quorum queues; about 2 GB of memory. The addresses of all nodes stand in TIDEGATE_KAFKA and
      TIDEGATE_AMQP_HOSTS, with a comma between. Nodes are called kafka, kafka-2, kafka-3, rabbitmq, rabbitmq-2, ...;
      in Python `Stack` stops, kills, suspends each, and cuts it off from the others

Kafka's plain address needs no login and has all rights. Its SASL address (PLAIN or SCRAM-SHA-256) knows
admin/admin-secret (all rights), tidegate/tidegate-secret (all topics and groups, but no topic that begins
with "{kafka_settings.FORBIDDEN_PREFIX}") and reader/reader-secret (no rights).

exit codes: 0 done; 1 a node failed or does not answer; 2 the machine lacks something, and the message says what;
with `run` else the command's own
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says and return the exit code."""
    options = _parser().parse_args(arguments)
    for signum in HANDED_ON:
        signal.signal(signum, _interrupt)
    try:
        code: int = options.action(options)
    except SetupError as error:
        say(str(error))
        return UNUSABLE
    except StackError as error:
        say(str(error))
        return FAILED
    except KeyboardInterrupt as error:
        return 128 + int(error.args[0])
    return code


def _interrupt(signum: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt(signum)


def _up(options: argparse.Namespace) -> int:
    try:
        stack = Stack.up(options.name, **_what(options), owned=False)
    except AlreadyUpError:
        say(f"Stack {options.name} is up already.")
        stack = Stack.named(options.name)
    _describe(stack)
    for variable, value in stack.environment.items():
        print(f"export {variable}={value}")
    return 0


def _what(options: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ("data", "rabbitmq_sbin", "heap", "kafka_nodes", "rabbitmq_nodes")}


def _down(options: argparse.Namespace) -> int:
    home = home_of(options.name)
    with locked(home):
        clear(home)
    return 0


def _status(_options: argparse.Namespace) -> int:
    found = homes()
    if not found:
        say("No stack is up.")
    return max([_status_of(home.name) for home in found], default=FAILED)


def _status_of(name: str) -> int:
    try:
        stack = Stack.named(name)
        answers = stack.answers()
    except StackError as error:
        print(f"{name}: {error}")
        return FAILED
    print(f"{name}: data in {_place(stack)}")
    for role, does_answer in answers.items():
        pid, kind = stack.pid(role), role.partition("-")[0]
        condition = "answers" if does_answer else "does not answer" if pid else "not running"
        version = stack.versions.get(kind, "")
        print(f"  {role} {version}: {stack.address(role)}, {condition}{f', pid {pid}' if pid else ''}")
    return 0 if all(answers.values()) else FAILED


def _run(options: argparse.Namespace) -> int:
    stack = Stack.up(None, **_what(options), owned=not options.keep)
    try:
        _describe(stack)
        return run_command(options.command, os.environ | stack.environment)
    finally:
        if options.keep:
            say(f"Kept; `python -m load.stack down --name {stack.name}` takes it down.")
        else:
            for signum in HANDED_ON:  # impatience must not leave half a stack behind; it is a matter of a moment
                signal.signal(signum, signal.SIG_IGN)
            stack.down()


def _rabbitmq_4(_options: argparse.Namespace) -> int:
    print(rabbitmq_4.sbin())
    return 0


def run_command(command: list[str], environment: dict[str, str]) -> int:
    """Run a command to its end, handing on the signals that ask this script to end.

    Return its exit code, 128 + N when signal N ended it. Raises StackError when it can't be run.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*HANDED_ON, signal.SIGCHLD})
    try:
        try:
            child = os.posix_spawnp(command[0], command, environment, setsigmask=before, setsigdef=HANDED_ON)
        except OSError as error:
            raise StackError(f"{command[0]} can't be run: {error.strerror}") from error
        while True:
            arrived = signal.sigtimedwait({*HANDED_ON, signal.SIGCHLD}, LOOK_SECONDS)
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            # What a terminal sends (no sender) went to the command as well; twice would mean more than once.
            if arrived and arrived.si_signo in HANDED_ON and arrived.si_pid:
                os.kill(child, arrived.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _describe(stack: Stack) -> None:
    versions = stack.versions
    sasl = stack.kafka_sasl.split(",")
    for role, address in zip(stack.kafka_roles, sasl, strict=True):
        say(f"{_titled(role)} {versions['kafka']} (pid {stack.pid(role)}) on {stack.address(role)}, SASL on {address}")
    for role, port in zip(stack.rabbitmq_roles, stack.amqp_ports, strict=True):
        erlang = f"Erlang {versions['erlang']}, pid {stack.pid(role)}"
        say(f"{_titled(role)} {versions['rabbitmq']} ({erlang}) on 127.0.0.1:{port}")
    say(f"Data in {_place(stack)}")
    say(f"Fsync: Kafka {kafka_settings.FSYNC}; RabbitMQ {RabbitmqNode.fsync(versions['rabbitmq'])}")
    if not stack.in_containers and (remark := disk.warning(disk.filesystem(stack.data))):
        say(f"Warning: {remark}.")


def _titled(role: str) -> str:
    """Return the name of a node as people write it: Kafka, RabbitMQ 2."""
    kind, _, number = role.partition("-")
    return f"{TITLES[kind]}{number and f'-{number}'}"


def _place(stack: Stack) -> str:
    return "the engine's volumes" if stack.in_containers else f"{stack.data} on {disk.filesystem(stack.data)}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m load.stack",
        description="A real Kafka and a real RabbitMQ without containers: free ports, own data, nothing left behind.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    nodes = argparse.ArgumentParser(add_help=False)
    nodes.add_argument(
        "--data", type=Path, metavar="DIR", help="new or empty folder for the data (default: below .build/stack)"
    )
    nodes.add_argument(
        "--rabbitmq-sbin", type=Path, metavar="DIR",
        help=f"scripts of the RabbitMQ to run (default: ${packages.SBIN_VARIABLE}, else the system's)",
    )  # fmt: skip
    nodes.add_argument(
        "--heap",
        metavar="SIZE",
        help=f"heap of each Kafka node, as 512m or 2g (default: {HEAP}; {CLUSTER_HEAP} of several)",
    )
    for kind, title in TITLES.items():
        nodes.add_argument(
            f"--{kind}-nodes", type=int, default=1, choices=range(1, MOST_NODES + 1), metavar="N",
            help=f"nodes of {title}: 1, or a cluster of up to {MOST_NODES} (default: 1)",
        )  # fmt: skip
    name = argparse.ArgumentParser(add_help=False)
    name.add_argument("--name", default=DEFAULT_NAME, help="which stack, of any number side by side (default: default)")

    up = actions.add_parser("up", parents=[name, nodes], help="start a stack and leave it running")
    up.set_defaults(action=_up)
    down = actions.add_parser(
        "down", parents=[name], help="end a stack's processes and delete its data, whatever state it is in"
    )
    down.set_defaults(action=_down)
    status = actions.add_parser("status", help="list the stacks of this project")
    status.set_defaults(action=_status)
    run = actions.add_parser("run", parents=[nodes], help="run one command with a stack of its own")
    run.add_argument("--keep", action="store_true", help="leave the stack running afterwards")
    run.add_argument("command", nargs="+", metavar="-- CMD", help="the command and its arguments")
    run.set_defaults(action=_run)
    four = actions.add_parser(
        "rabbitmq-4", help="make a RabbitMQ 4 beside the system's, once, and print its scripts' folder"
    )
    four.set_defaults(action=_rabbitmq_4)
    return parser


if __name__ == "__main__":
    sys.exit(main())

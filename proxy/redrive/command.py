"""`tidegate redrive`: arguments, and the wiring of a pass over each queue."""

import argparse
import asyncio
import contextlib
import getpass
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from proxy import config
from proxy.bridge.letter_queue import OF_QUEUE
from proxy.config.items import complaint, listing, printable
from proxy.errors import BrokerError, SettingsError, TidegateError
from proxy.instance import instance_name
from proxy.model import Reason
from proxy.operations.instant import instant
from proxy.operations.log_lines import log_to_stderr
from proxy.operations.scope import Scope, checked
from proxy.redrive.audit import Asked, FolderAudit
from proxy.redrive.choice import Choice, Wanted, letter_queues
from proxy.redrive.count import Count
from proxy.redrive.pace import DEFAULT_RATE, Pace
from proxy.redrive.run import Redrive
from proxy.redrive.words import HELP, account, as_json, progress
from proxy.settings import Settings

_DONE, _FAILED, _MISTAKE = 0, 1, 2
_MOST_RATE = 100_000
_MOST_TIMES = 1_000
_MOST_CHARACTERS = 500


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Add the command; return its parser, to which whoever calls adds the settings file, `config`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "redrive",
        help="send dead letters again, where they were meant to go",
        description=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=_redrive)
    for name, metavar, words in (
        ("--reason", "NAME", f"only letters of this reason: {', '.join(Reason)}, {OF_QUEUE}rejected; repeatable"),
        ("--type", "NAME", "only of this event type; repeatable"),
        ("--class", "NAME", "only of this class; likewise"),
        ("--queue", "NAME", "the queue that holds letters, if no type names it; repeatable"),
    ):
        kept = {"--class": "classes"}.get(name, name[2:])
        kind = _reason if name == "--reason" else _text
        parser.add_argument(name, action="append", default=[], dest=kept, metavar=metavar, type=kind, help=words)
    parser.add_argument("--since", type=instant, metavar="TIME", help="only events of that time and later: 2h, or UTC")
    parser.add_argument("--until", type=instant, metavar="TIME", help="only events of before that time")
    parser.add_argument(
        "--times",
        type=_number(1, _MOST_TIMES),
        default=3,
        metavar="N",
        help="letters sent again so often stay; %(default)s",
    )
    parser.add_argument(
        "--rate", type=_number(1, _MOST_RATE), default=DEFAULT_RATE, metavar="N", help="letters a second; 100"
    )
    parser.add_argument("--dry-run", action="store_true", help="tell which would go, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--by", type=_text, metavar="NAME", help="who asks; your login name if not given")
    parser.add_argument("--why", type=_text, metavar="TEXT", help="for the records")
    parser.add_argument("--json", action="store_true", help="answer in JSON, for programs")
    return parser


def _number(least: int, most: int) -> Callable[[str], int]:
    def number(given: str) -> int:
        if not (given.isascii() and given.isdigit() and least <= int(given) <= most):
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}")
        return int(given)

    return number


def _reason(given: str) -> str:
    if given in frozenset(Reason) or given.startswith(OF_QUEUE):
        return given
    raise argparse.ArgumentTypeError(f"must be one of {', '.join(Reason)}, or {OF_QUEUE}rejected and the like")


def _text(given: str) -> str:
    if not 1 <= len(given.strip()) <= _MOST_CHARACTERS:
        raise argparse.ArgumentTypeError(f"must have 1 to {_MOST_CHARACTERS} characters")
    return given


def _redrive(options: argparse.Namespace) -> int:
    settings = config.load(options.config, os.environ, config.Inspection(time.time()), ("admin", "traces"))
    wanted = _wanted(options, settings)
    queues = _queues(options, settings, wanted)
    try:
        by = options.by or getpass.getuser()
    except (OSError, KeyError) as error:
        raise SettingsError(["nobody is logged in under a name: say who asks, by --by NAME"]) from error
    if not options.dry_run and not options.yes and not _is_meant(queues, options.rate):
        _tell("Nothing was changed.")
        return _FAILED
    lines = log_to_stderr()
    try:
        return asyncio.run(_run(options, settings, wanted, queues, Asked(by, options.why, settings.log.group)))
    except TidegateError as error:
        _tell(complaint(error))
        return _FAILED if isinstance(error, BrokerError) else _MISTAKE
    finally:
        lines.close()


def _wanted(options: argparse.Namespace, settings: Settings) -> Wanted:
    """Return what is asked for. Raises `SettingsError`."""
    scope = checked(settings, options.type, options.classes) if options.type or options.classes else Scope((), ())
    if options.since is not None and options.until is not None and options.since >= options.until:
        raise SettingsError(["--since is not before --until: no event can be meant"])
    return Wanted(
        frozenset(options.reason),
        frozenset(scope.types),
        frozenset(scope.classes),
        options.since,
        options.until,
        options.times,
    )


def _queues(options: argparse.Namespace, settings: Settings, wanted: Wanted) -> list[str]:
    """Return the queues to go over. Raises `SettingsError` if none is known."""
    if options.queue:
        return list(dict.fromkeys(options.queue))
    found = letter_queues(settings, wanted)
    if unknown := sorted(found.get("", ())):
        _tell(printable(f"letters of {listing(unknown)} go to an exchange: name their queue by --queue"))
    queues = sorted(queue for queue in found if queue)
    if not queues:
        raise SettingsError(
            ["no event type that is meant names a queue for its dead letters: say which, by --queue NAME"]
        )
    return queues


def _is_meant(queues: list[str], rate: float) -> bool:
    if not sys.stdin.isatty():
        raise SettingsError(["redrive asks before it sends, and there is no terminal: say --yes, or --dry-run to look"])
    what = f"Letters in {listing(queues)} that are asked for will be sent again, up to {rate:g} a second"
    _tell(printable(f"{what}. Type yes: "), end="")
    return sys.stdin.readline().strip() == "yes"


async def _run(options: argparse.Namespace, settings: Settings, wanted: Wanted, queues: list[str], asked: Asked) -> int:
    from proxy.rabbitmq import RabbitBroker

    loop = asyncio.get_running_loop()
    broker = RabbitBroker(settings.broker, {}, settings.limits)
    instance = instance_name("redrive")
    audit = FolderAudit(settings.metric_log, asked, wall=time.time, instance=instance, now=loop.time)
    if not audit.keeps and not options.dry_run:
        _tell("metric_log.folder is not set: no record is kept of what is sent again")
    if not options.dry_run:
        audit.try_out()
    missing = await broker.missing_exchanges({route.exchange for route in settings.routes.values()})
    choice, pace = Choice(settings, wanted, missing), Pace(options.rate, loop.time())
    lane, monitor = broker.redrive_lane(), broker.monitor()
    helpers = [loop.create_task(broker.keep_access(), name="broker access")]
    if not options.dry_run:
        helpers.append(loop.create_task(lane.run(), name="lane"))
    counts: list[tuple[str, Count]] = []
    try:
        for name in queues:
            queue = broker.letter_queue(name)
            tell = partial(_tell_progress, name, is_dry=options.dry_run)
            redrive = Redrive(queue, lane, monitor, audit, choice, pace, is_dry=options.dry_run, tell=tell)
            counts.append((name, redrive.count))
            try:
                is_whole = await _passed(redrive, helpers)
            finally:
                await queue.close()
            if not is_whole:
                return _FAILED
    finally:
        for task in helpers:
            task.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
        await monitor.close()
        with contextlib.suppress(OSError):
            audit.close()
        _answer(options, counts)
    return _FAILED if any(count.failed for _, count in counts) else _DONE


async def _passed(redrive: Redrive, helpers: Sequence[asyncio.Task[None]]) -> bool:
    """Make one pass; return whether it came to its end. The first signal has it stop in order."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, redrive.stop)
    passing = loop.create_task(redrive.run(), name="redrive")
    try:
        await asyncio.wait([passing, *helpers], return_when=asyncio.FIRST_COMPLETED)
        for task in (passing, *helpers):
            if task.done():
                task.result()
    except (BrokerError, OSError) as error:
        _tell(complaint(error))
        return False
    finally:
        passing.cancel()
        await asyncio.gather(passing, return_exceptions=True)
    return not redrive.is_stopping


def _tell_progress(queue: str, count: Count, *, is_dry: bool) -> None:
    _tell(progress(queue, count, is_dry=is_dry))


def _answer(options: argparse.Namespace, counts: list[tuple[str, Count]]) -> None:
    if options.json:
        print(json.dumps([as_json(name, count, is_dry=options.dry_run) for name, count in counts]))
        return
    for name, count in counts:
        print(*account(name, count, is_dry=options.dry_run), sep="\n")


def _tell(words: str, end: str = "\n") -> None:
    """Tell what is no answer."""
    with contextlib.suppress(OSError):
        print(words, end=end, file=sys.stderr, flush=True)

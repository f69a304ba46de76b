"""The commands of an incident: `tidegate pause | discard | cap | policy | resume | interventions`.

They speak to Kafka alone and to no process, so they work from anywhere, and with every replica stopped.
"""

import argparse
import asyncio
import contextlib
import getpass
import json
import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from proxy import config
from proxy.config.items import complaint, printable
from proxy.errors import LogError, SettingsError, TidegateError
from proxy.model import Mode
from proxy.operations.command_words import (
    CAP,
    DISCARD,
    LIST,
    NO_BOARD,
    PAUSE,
    POLICY,
    RESUME,
    as_json,
    conclusion,
    intervention_text,
    replica_text,
    scope_text,
)
from proxy.operations.intervening import answered, replicas
from proxy.operations.intervention import HIGHEST_RATE, LEAST_RATE, LONGEST_MS, MOST_CHARACTERS, Intervention
from proxy.operations.log_lines import log_to_stderr
from proxy.operations.pinned import Pinned
from proxy.operations.scope import BY_OPTION, checked, class_of
from proxy.settings import POLICIES, Settings
from proxy.settings.parts import Seconds, duration_text

if TYPE_CHECKING:
    from proxy.kafka_log.board import KafkaBoard

Work: TypeAlias = "Callable[[KafkaBoard, Pinned], Awaitable[int]]"

_UNUSED = ("broker", "admin", "metric_log", "traces")
"""Blocks of the settings that the commands do without."""
_DONE, _FAILED, _MISTAKE = 0, 1, 2
_MS = 1000
_DURATION: TypeAdapter[float] = TypeAdapter(Annotated[Seconds, Field(ge=1, le=LONGEST_MS / _MS)])


def add_commands(commands: Any) -> list[argparse.ArgumentParser]:
    """Add the six commands; return their parsers, to which whoever calls adds the settings file, `config`."""
    made = [
        _added(commands, "pause", "send nothing of some event types for a time", PAUSE, _pause),
        _added(commands, "discard", "drop the events of some event types for a time", DISCARD, _discard),
        _added(commands, "cap", "let no more than so many events of some types go, for a time", CAP, _cap),
        _added(commands, "resume", "take a pause, a discard or a cap back", RESUME, _resume),
        _added(commands, "policy", "hold a route back by another policy, for a time", POLICY, _policy),
        _added(commands, "interventions", "tell what is paused, discarded or capped now, and why", LIST, _list),
    ]
    made[2].add_argument(
        "--rate", type=_rate, required=True, metavar="EVENTS", help="a second, all that is named together, in the group"
    )
    longest = duration_text(LONGEST_MS / _MS)
    made[3].add_argument(
        "--route", action="append", default=[], dest="routes", metavar="NAME", help="a route; likewise"
    )
    made[4].add_argument("routes", nargs=1, metavar="ROUTE")
    made[4].add_argument("policy", choices=POLICIES)
    made[4].set_defaults(type=[], classes=[])
    for parser in made[:5]:
        if parser is not made[4]:
            parser.add_argument("--type", action="append", default=[], metavar="NAME", help="an event type; repeatable")
            parser.add_argument(
                "--class", action="append", default=[], dest="classes", metavar="NAME", help="a class; likewise"
            )
        if parser is not made[3]:
            parser.add_argument(
                "--for",
                type=_duration,
                required=True,
                dest="seconds",
                metavar="TIME",
                help=f"like 10m or 2h; at most {longest}",
            )
        parser.add_argument("--by", type=_text, metavar="NAME", help="who asks; your login name if not given")
        parser.add_argument("--why", type=_text, metavar="TEXT", help="for the others on duty, and for the records")
    made[1].add_argument("--yes", action="store_true", help="do not ask")
    for parser in made:
        parser.add_argument("--json", action="store_true", help="answer in JSON, for programs")
    return made


def _added(
    commands: Any, name: str, words: str, description: str, command: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=words, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(command=command, word=name)
    return parser


def _duration(given: str) -> float:
    try:
        return _DURATION.validate_python(given)
    except ValidationError as error:
        longest = duration_text(LONGEST_MS / _MS)
        raise argparse.ArgumentTypeError(f"is no duration from 1s to {longest}, like 30s, 10m or 2h") from error


def _rate(given: str) -> float:
    try:
        rate = float(given)
    except ValueError:
        rate = 0.0
    if not LEAST_RATE <= rate <= HIGHEST_RATE:
        raise argparse.ArgumentTypeError(f"is no number from {LEAST_RATE:g} to {HIGHEST_RATE:g}")
    return rate


def _text(given: str) -> str:
    if not 1 <= len(given.strip()) <= MOST_CHARACTERS:
        raise argparse.ArgumentTypeError(f"must have 1 to {MOST_CHARACTERS} characters")
    return given


def _pause(options: argparse.Namespace) -> int:
    return _begin(options, _settings(options), Mode.PAUSE)


def _cap(options: argparse.Namespace) -> int:
    return _begin(options, _settings(options), Mode.CAP)


def _policy(options: argparse.Namespace) -> int:
    return _begin(options, _settings(options), Mode.POLICY)


def _discard(options: argparse.Namespace) -> int:
    settings = _settings(options)
    scope = scope_text(checked(settings, options.type, options.classes))
    if not options.yes:
        if not sys.stdin.isatty():
            raise SettingsError(["discard asks before it drops events, and there is no terminal: say --yes"])
        what = (
            f"Events of {scope} will be dropped for {duration_text(options.seconds)}, unsent, by every replica of group"
        )
        _tell(f"{what} {settings.log.group}. Type yes: ", end="")
        if sys.stdin.readline().strip() != "yes":
            _tell("Nothing was changed.")
            return _FAILED
    return _begin(options, settings, Mode.DISCARD)


def _begin(options: argparse.Namespace, settings: Settings, mode: Mode) -> int:
    now_ms = time.time_ns() // 1_000_000
    wanted = _intervention(options, settings, mode, now_ms, now_ms + round(options.seconds * _MS))

    async def pin(board: "KafkaBoard", pinned: Pinned) -> int:
        await board.create()
        return await _pin(options, settings, wanted, board, pinned)

    return _on_board(settings, pin)


def _resume(options: argparse.Namespace) -> int:
    settings = _settings(options)
    now_ms = time.time_ns() // 1_000_000
    wanted = _intervention(options, settings, Mode.RUN, now_ms, now_ms + LONGEST_MS)

    async def work(board: "KafkaBoard", pinned: Pinned) -> int:
        """Take back what holds, as far as anybody can know."""
        await board.open()
        pinned.take(await board.news())
        resuming = pinned.resuming(wanted, now_ms)
        if resuming is None and not board.is_there and await board.members():
            resuming = wanted  # the board was perhaps deleted, and replicas go by what they have read of it
            await board.create()
        if resuming is None:
            _print("null" if options.json else f"Nothing holds for {scope_text(wanted)}: nothing was changed.")
            return _DONE
        return await _pin(options, settings, resuming, board, pinned)

    return _on_board(settings, work)


def _list(options: argparse.Namespace) -> int:
    settings = _settings(options)

    async def work(board: "KafkaBoard", pinned: Pinned) -> int:
        """Tell what holds."""
        await board.open()
        pinned.take(await board.news())
        now_ms = time.time_ns() // 1_000_000
        found = [(one, await replicas(board, pinned, one)) for one in pinned.holding(now_ms)]
        if not board.is_there:
            _tell(NO_BOARD.format(topic=board.topic))
        for key, why in pinned.not_understood.items():
            _tell(printable(f"warning: note {key[:100]} is not understood: {why}"))
        if options.json:
            _print(json.dumps([as_json(one, given) for one, given in found]))
        elif not found:
            _print("Nothing is paused, discarded or capped, and no route has another policy.")
        else:
            for one, given in found:
                _print(intervention_text(one, now_ms), *map(replica_text, given))
        return _DONE

    return _on_board(settings, work)


def _settings(options: argparse.Namespace) -> Settings:
    settings = config.load(options.config, os.environ, config.Inspection(time.time()), _UNUSED)
    config.demand_board(settings, options.word)
    return settings


def _intervention(
    options: argparse.Namespace, settings: Settings, mode: Mode, now_ms: int, until_ms: int
) -> Intervention:
    named = getattr(options, "routes", [])
    needed = BY_OPTION if mode is not Mode.RUN else f"{BY_OPTION}, or which route by --route NAME"
    types, classes, routes = checked(settings, options.type, options.classes, needed, named)
    try:
        by = options.by or getpass.getuser()
    except (OSError, KeyError) as error:
        raise SettingsError(["nobody is logged in under a name: say who asks, by --by NAME"]) from error
    try:
        rate = options.rate if mode is Mode.CAP else None
        policy = options.policy if mode is Mode.POLICY else None
        return Intervention(
            secrets.token_hex(6),
            mode,
            types,
            classes,
            by,
            options.why,
            now_ms,
            until_ms,
            rate=rate,
            routes=routes,
            policy=policy,
        )
    except ValueError as error:
        raise SettingsError([str(error)]) from error


async def _pin(
    options: argparse.Namespace, settings: Settings, one: Intervention, board: "KafkaBoard", pinned: Pinned
) -> int:
    """Pin it and tell who has done it; return the exit code."""
    await board.pin(one.key, one.as_json())
    _tell(f"kept in topic {board.topic} as {one.id}; waiting for the answer of every replica")
    given = await answered(board, pinned, one)
    if options.json:
        _print(json.dumps(as_json(one, given)))
    else:
        _print(intervention_text(one, one.at_ms), *map(replica_text, given))
    concluded = conclusion(settings.log.group, given)
    if concluded is not None:
        _tell(concluded)
    return _DONE if all(replica.answer is not None for replica in given) else _FAILED


def _on_board(settings: Settings, work: Work) -> int:
    from proxy.kafka_log.board import KafkaBoard

    async def run() -> int:
        board = KafkaBoard(settings.log)
        try:
            return await work(board, Pinned(lambda name: class_of(settings, name)))
        finally:
            await board.close()

    lines = log_to_stderr()
    try:
        return asyncio.run(run())
    except TidegateError as error:
        _tell(complaint(error))
        return _FAILED if isinstance(error, LogError) else _MISTAKE
    finally:
        lines.close()


def _print(*lines: str) -> None:
    print(*lines, sep="\n")


def _tell(words: str, end: str = "\n") -> None:
    """Tell what is no answer."""
    with contextlib.suppress(OSError):
        print(words, end=end, file=sys.stderr, flush=True)

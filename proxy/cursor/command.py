"""`tidegate skip` and `tidegate rewind`: arguments, and the wiring of a move from choice to outcome.

They speak to the log alone and to no process, so they work from anywhere, and with every replica stopped. On Nakadi,
where no plan can be left for replicas, the command moves cursors itself in any case.
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
from collections.abc import Mapping, Sequence
from typing import Any

from proxy import config
from proxy.bridge.move import Direction
from proxy.config.items import complaint, printable
from proxy.cursor.adapters import Opened, demand_end, opened
from proxy.cursor.audit import records, write
from proxy.cursor.carrying import Carried, carry_out, is_made, make
from proxy.cursor.choice import Chosen, Plans, Wanted, choose, planned
from proxy.cursor.words import REWIND, SKIP, Counted, as_json, dry, outcome
from proxy.errors import LogError, SettingsError, TidegateError
from proxy.instance import instance_name
from proxy.model import Partition
from proxy.operations.instant import instant
from proxy.operations.intervening import ANSWER_SECONDS
from proxy.operations.log_lines import log_to_stderr
from proxy.operations.plan import LIFE_MS, MOST_CHARACTERS, Plan
from proxy.operations.scope import checked
from proxy.positions.port import EARLIEST, LATEST
from proxy.settings import Settings

_DONE, _FAILED, _MISTAKE = 0, 1, 2
_MOST_OFFSET = 2**62


def add_commands(commands: Any) -> list[argparse.ArgumentParser]:
    """Add both commands; return their parsers, to which whoever calls adds the settings file, `config`."""
    made = []
    for direction, words, description in (
        (Direction.SKIP, "pass over events of some event types, unsent", SKIP),
        (Direction.REWIND, "send events of some event types again", REWIND),
    ):
        parser: argparse.ArgumentParser = commands.add_parser(
            direction.value,
            help=words,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.set_defaults(command=_move, direction=direction)
        parser.add_argument("--type", action="append", default=[], metavar="NAME", help="an event type; repeatable")
        parser.add_argument(
            "--class", action="append", default=[], dest="classes", metavar="NAME", help="a class; likewise"
        )
        parser.add_argument("--partition", type=_number, metavar="N", help="only this partition of each topic")
        ends = parser.add_mutually_exclusive_group(required=True)
        ends.add_argument("--to", type=instant, metavar="TIME", help="to the first event of a time: 2h ago, or UTC")
        ends.add_argument("--to-offset", type=_number, metavar="N", help="to an offset")
        if direction is Direction.SKIP:
            ends.add_argument("--to-end", action="store_const", const=LATEST, dest="to", help="to the topic's end")
        else:
            ends.add_argument("--to-start", action="store_const", const=EARLIEST, dest="to", help="to its beginning")
            parser.add_argument("--again", action="store_true", help="make the same rewind once more")
        parser.add_argument("--dry-run", action="store_true", help="tell what it would be, and change nothing")
        parser.add_argument("--yes", action="store_true", help="do not ask")
        parser.add_argument("--by", type=_text, metavar="NAME", help="who asks; your login name if not given")
        parser.add_argument("--why", type=_text, metavar="TEXT", help="for the others on duty, and for the records")
        parser.add_argument("--json", action="store_true", help="answer in JSON, for programs")
        made.append(parser)
    return made


def _number(given: str) -> int:
    if not (given.isascii() and given.isdigit() and int(given) < _MOST_OFFSET):
        raise argparse.ArgumentTypeError("must be a whole number")
    return int(given)


def _text(given: str) -> str:
    if not 1 <= len(given.strip()) <= MOST_CHARACTERS:
        raise argparse.ArgumentTypeError(f"must have 1 to {MOST_CHARACTERS} characters")
    return given


def _move(options: argparse.Namespace) -> int:
    settings = config.load(options.config, os.environ, config.Inspection(time.time()), ("broker", "admin", "traces"))
    scope = checked(settings, options.type, options.classes)
    if options.to is not None and options.to > time.time() * 1000:
        raise SettingsError(["--to is a time that has not come yet"])
    if not (options.dry_run or options.yes or sys.stdin.isatty()):
        name = options.direction
        raise SettingsError([f"{name} asks before it moves, and there is no terminal: say --yes, or --dry-run to look"])
    try:
        by = options.by or getpass.getuser()
    except (OSError, KeyError) as error:
        raise SettingsError(["nobody is logged in under a name: say who asks, by --by NAME"]) from error
    again = getattr(options, "again", False)
    wanted = Wanted(options.direction, scope, options.to, options.to_offset, options.partition, again)
    demand_end(settings, wanted)
    lines = log_to_stderr()
    try:
        return asyncio.run(_run(options, settings, wanted, by))
    except TidegateError as error:
        _tell(complaint(error))
        return _FAILED if isinstance(error, LogError) else _MISTAKE
    finally:
        lines.close()


async def _run(options: argparse.Namespace, settings: Settings, wanted: Wanted, by: str) -> int:
    async with opened(settings, wanted) as found:
        return await _Moving(options, settings, wanted, by, found).run()


class _Moving:
    """One command, from choice to outcome."""

    def __init__(self, options: argparse.Namespace, settings: Settings, wanted: Wanted, by: str, found: Opened) -> None:
        self._options = options
        self._settings = settings
        self._wanted = wanted
        self._by = by
        self._cursors, self._board, self._held = found
        self._plans = Plans()

    async def run(self) -> int:
        """Do it; return the exit code. Raises `TidegateError`."""
        options, wanted = self._options, self._wanted
        if self._board is not None:
            self._plans.take(await self._board.news())
        chosen, committed = await choose(wanted, self._settings, self._cursors, self._plans, _now_ms())
        counts = await self._counted(chosen)
        lines = dry(wanted.direction, chosen, counts, _named(wanted.time))
        if not options.json:
            print(*lines, sep="\n")
        moving = [one for one in chosen if one.is_moved]
        pending = {
            one.partition: one.asked_before
            for one in chosen
            if one.asked_before and not is_made(committed.get(one.partition), one.asked_before)
        }
        if options.dry_run or not (moving or pending):
            self._answer(None, chosen, counts, None)
            if not moving:
                _tell("Nothing is to be moved: nothing was changed.")
            return _DONE
        if moving and not options.yes and not self._is_meant(lines):
            _tell("Nothing was changed.")
            return _FAILED
        plan = await self._pinned(moving) if moving else None
        return await self._carried(plan, pending, chosen, counts)

    async def _counted(self, chosen: Sequence[Chosen]) -> Mapping[Chosen, Counted]:
        """Return what the ranges hold that are moved. Raises `LogError`."""
        before_ms = _named(self._wanted.time)
        found = {}
        for one in (one for one in chosen if one.is_moved):
            count = self._cursors.range(*one.range, before_ms)
            while not count.is_done:
                await self._cursors.read_on(one.partition, count)
            found[one] = Counted(count.events, None if before_ms is None else count.newer)
        return found

    def _is_meant(self, lines: Sequence[str]) -> bool:
        if self._options.json:
            _tell("\n".join(lines))
        what = "dropped, unsent" if self._wanted.direction is Direction.SKIP else "sent again"
        _tell(printable(f"These will be {what}, by group {self._settings.log.group}. Type yes: "), end="")
        return sys.stdin.readline().strip() == "yes"

    async def _pinned(self, moving: Sequence[Chosen]) -> Plan:
        """Pin the plan, where there is a board; its number is above all that others have taken meanwhile.

        Raises `TidegateError`.
        """
        board = self._board
        if board is not None:
            await board.create()
            self._plans.take(await board.news())
        number = self._plans.next_number(await self._cursors.committed())
        now_ms = _now_ms()
        name = f"{number}-{secrets.token_hex(6)}"
        why = self._options.why
        try:
            plan = Plan(name, self._wanted.direction, self._by, why, now_ms, now_ms + LIFE_MS, planned(moving))
        except ValueError as error:
            raise SettingsError([str(error)]) from error
        if board is not None:
            await board.pin(plan.key, plan.as_json())
            _tell(f"kept in topic {board.topic} as {plan.id}; waiting for every replica")
        return plan

    async def _carried(
        self,
        plan: Plan | None,
        pending: dict[Partition, str],
        chosen: Sequence[Chosen],
        counts: Mapping[Chosen, Counted],
    ) -> int:
        settings = self._settings
        wanted = dict(pending) if plan is None else pending | dict.fromkeys(plan.moves(), plan.id)
        alive = [one for one in self._plans.named(set(wanted.values())) if _now_ms() < one.until_ms]
        if plan is not None and plan.id not in {one.id for one in alive}:
            alive.append(plan)
        seconds: float | None = None
        if self._board is None:
            assert plan is not None, "nothing is pending where no plan is kept"
            assert self._held is not None
            _tell("moving; what is being read stands still meanwhile: some 15 s, or longer if it is held back")
            carried = await make(plan, self._cursors, self._held)
        else:
            seconds = settings.limits.drain_deadline + ANSWER_SECONDS
            carried = await carry_out(wanted, alive, self._cursors, self._board, self._plans, seconds)
        self._keep(carried, {one.partition: one.event_type for one in chosen})
        if not self._options.json:
            meant = [one for one in chosen if one.partition in wanted]
            answered = len(carried.members) - len(carried.silent)
            print(*outcome(settings.log.group, meant, carried, answered, seconds), sep="\n")
        self._answer(plan, chosen, counts, carried)
        if carried.left or carried.silent:
            holds = "" if self._board is None else "It holds for whoever reads it within 10 minutes; "
            _tell(f"Not all is done. {holds}run the same command again to see.")
        return _FAILED if carried.left or carried.silent else _DONE

    def _keep(self, carried: Carried, types: Mapping[Partition, str]) -> None:
        """Record what this command has moved itself; replicas record what they do."""
        if not carried.moved:
            return
        settings = self._settings
        instance = instance_name("move")
        found = records(carried.moved, types, settings.log.group)
        try:
            is_kept = write(found, settings.metric_log, wall=time.time, now=time.monotonic, instance=instance)
        except OSError as error:
            _tell(printable(f"the moves are made, but no record of them could be written: {error}"))
        else:
            if not is_kept:
                _tell("metric_log.folder is not set: no record is kept of these moves")

    def _answer(
        self,
        plan: Plan | None,
        chosen: Sequence[Chosen],
        counts: Mapping[Chosen, Counted],
        carried: Carried | None,
    ) -> None:
        if self._options.json:
            name, is_dry = None if plan is None else plan.id, self._options.dry_run
            print(json.dumps(as_json(self._wanted.direction, name, chosen, counts, carried, is_dry=is_dry)))


def _named(time_ms: int | None) -> int | None:
    """Return the time that was named; None for an end of the log."""
    return None if time_ms is None or time_ms < 0 else time_ms


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _tell(words: str, end: str = "\n") -> None:
    """Tell what is no answer."""
    with contextlib.suppress(OSError):
        print(words, end=end, file=sys.stderr, flush=True)

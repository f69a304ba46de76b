"""What `tidegate top` shows: lines of text for a terminal of any size, and the loop that shows them and hears keys."""

import contextlib
import curses
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple

from proxy.config.items import printable
from proxy.operations.questions import duration
from proxy.operations.top_group import Group
from proxy.operations.top_links import Replica
from proxy.operations.top_sum import Sum, TypeLine

KEYS = "sort: w waits o oldest n name c class r reverse  / filter  q quit"
_QUESTIONS = (("late", "LATE"), ("why", "WHY"), ("drop", "DROP?"), ("better", "BETTER?"))
_LABEL = 9
_LOOK_MS = 250
_ESCAPE = 27
_BACKSPACES = (curses.KEY_BACKSPACE, 8, 127)
_ANSWER_LINES, _ROUTES = (2, 12), (4, 6)
"""How many at least, and one for every so many lines of the screen; a sheet without a height has all.

Of more routes the congested ones, and those that are not open, come first.
"""
_SORTS: dict[str, tuple[Callable[[TypeLine], tuple[object, ...]], bool]] = {
    "w": (lambda one: (one.waits, one.age_s or 0), True),
    "o": (lambda one: (one.age_s or 0, one.waits), True),
    "n": (lambda one: (one.name,), False),
    "c": (lambda one: (one.priority, -one.waits), False),
}
"""By key: what it sorts by, and whether the largest comes first."""


class Style(Enum):
    """How a line looks."""

    PLAIN = "plain"
    TITLE = "title"
    HEAD = "head"
    BAD = "bad"


class Line(NamedTuple):
    """One line of the screen."""

    text: str
    style: Style = Style.PLAIN


@dataclass
class Choice:
    """What whoever looks has chosen."""

    sort: str = "w"
    is_reversed: bool = False
    wanted: str = ""
    """Part of a name, class, route or what is waited for."""
    is_typing: bool = False
    first: int = 0
    """The first type that is shown."""


def lines(found: Sum, choice: Choice, width: int, height: int | None) -> list[Line]:
    """Return what is shown; without a height all types, and no keys."""
    instant = datetime.fromtimestamp(found.at_ms / 1000, UTC).strftime("%H:%M:%S UTC") if found.at_ms else ""
    names = ", ".join(printable(one["instance"] or one["address"]) for one in found.replicas)
    said = [Line(_ends(f"Tidegate  {names}", instant, width), Style.TITLE)]
    said += [
        Line(_cut(printable(f"{one['address']}: {one['why']}; {_shown(one)}"), width), Style.BAD)
        for one in found.replicas
        if one["why"]
    ]
    said += [Line(_cut(printable(f"{'REFUSED':{_LABEL}}{why}"), width), Style.BAD) for why in found.refused]
    for name, label in _QUESTIONS:
        is_bad = (name == "late" and not found.answers[name].startswith("No")) or found.answers[name].startswith("No:")
        most = _most(_ANSWER_LINES, height)
        wrapped = textwrap.wrap(printable(found.answers[name]), width - _LABEL, max_lines=most, placeholder=" ...")
        for place, text in enumerate(wrapped):
            label_text = label if place == 0 else ""
            said.append(Line(f"{label_text:{_LABEL}}{text}", Style.BAD if is_bad else Style.PLAIN))
    said += [Line(_cut(_held(one, found.at_ms), width), Style.BAD) for one in found.held]
    said += [*_classes(found, width), *_routes(found, width, _most(_ROUTES, height))]
    shown = chosen(found.types, choice)
    room = len(shown) if height is None else max(0, height - len(said) - 2)
    choice.first = max(0, min(choice.first, len(shown) - room))
    said.append(Line(_type_text("EVENT TYPE", "CLASS", "WAITS", "OLDEST", "WAITS FOR", width), Style.HEAD))
    said += [_type(one, width) for one in shown[choice.first : choice.first + room]]
    if height is not None:
        said = [*said[: height - 1], *[Line("")] * (height - 1 - len(said))]
        foot = (
            f"filter: {choice.wanted}_"
            if choice.is_typing
            else f"{len(shown)} {'type' if len(shown) == 1 else 'types'}  {KEYS}"
        )
        said.append(Line(_cut(printable(foot), width), Style.TITLE))
    return said


def chosen(types: Iterable[TypeLine], choice: Choice) -> list[TypeLine]:
    """Return the event types that are wanted, sorted."""
    wanted = choice.wanted.lower()
    found = [one for one in types if wanted in f"{one.name} {one.priority} {one.route} {_state(one)}".lower()]
    by, is_down = _SORTS[choice.sort]
    return sorted(sorted(found, key=lambda one: one.name), key=by, reverse=is_down != choice.is_reversed)


def press(key: int, choice: Choice, page: int) -> bool:
    """Do what a key means; return whether to go on."""
    if choice.is_typing:
        _type_letter(key, choice)
        return True
    steps = {curses.KEY_DOWN: 1, curses.KEY_UP: -1, curses.KEY_NPAGE: page, curses.KEY_PPAGE: -page}
    if key in steps:
        choice.first = max(0, choice.first + steps[key])
    elif key == curses.KEY_HOME:
        choice.first = 0
    elif key == ord("/"):
        choice.is_typing = True
    elif key == ord("r"):
        choice.is_reversed = not choice.is_reversed
    elif 0 <= key < 128 and chr(key) in _SORTS:  # noqa: PLR2004 - ASCII
        choice.sort, choice.is_reversed, choice.first = chr(key), False, 0
    return key not in {ord("q"), _ESCAPE}


def _type_letter(key: int, choice: Choice) -> None:
    if key in {curses.KEY_ENTER, 10, 13}:
        choice.is_typing = False
    elif key == _ESCAPE:
        choice.is_typing, choice.wanted = False, ""
    elif key in _BACKSPACES:
        choice.wanted = choice.wanted[:-1]
    elif 32 <= key < 127:  # noqa: PLR2004 - printable ASCII
        choice.wanted += chr(key)


def show(replicas: Sequence[Replica]) -> None:
    """Show until whoever looks has enough."""
    curses.wrapper(_loop, replicas)


def _loop(screen: "curses.window", replicas: Sequence[Replica]) -> None:
    styles = {
        Style.PLAIN: curses.A_NORMAL,
        Style.TITLE: curses.A_REVERSE,
        Style.HEAD: curses.A_BOLD | curses.A_UNDERLINE,
    }
    styles[Style.BAD] = curses.A_BOLD
    if curses.has_colors():
        curses.use_default_colors()
        curses.init_pair(1, curses.COLOR_RED, -1)
        styles[Style.BAD] |= curses.color_pair(1)
    with contextlib.suppress(curses.error):  # not every terminal can hide it
        curses.curs_set(0)
    screen.timeout(_LOOK_MS)
    choice, group = Choice(), Group(replicas)
    drawn, key = -1.0, -1
    while True:
        heard = max(one.heard_at for one in replicas)
        if heard != drawn or key != -1 or any(one.why for one in replicas):
            drawn = heard
            height, width = screen.getmaxyx()
            screen.erase()
            for row, line in enumerate(lines(group.summed(), choice, width - 1, height)):
                screen.addnstr(row, 0, line.text, width - 1, styles[line.style])
            screen.refresh()
        key = screen.getch()
        if key != -1 and not press(key, choice, page=max(1, screen.getmaxyx()[0] // 2)):
            return


def _classes(found: Sum, width: int) -> list[Line]:
    said = [Line(_cut(f"{'CLASS':<12}{'WAITS':>12}{'OLDEST':>14}{'CONFIRMED/S':>14}{'TYPES':>8}", width), Style.HEAD)]
    for name, one in found.classes.items():
        rate = "-" if one["rate"] is None else f"{one['rate']:,.1f}"
        lag = "-" if one["lag"] is None else f"{one['lag']:,}"
        text = f"{_cut(printable(name), 11):<12}{lag:>12}{_age(one['lag_age_s']):>14}{rate:>14}{one['types']:>8}"
        is_late = (one["lag_age_s"] or 0) > one["late_after_s"]
        said.append(Line(_cut(text, width), Style.BAD if is_late else Style.PLAIN))
    return said


def _most(bounds: tuple[int, int], height: int | None) -> int | None:
    least, lines_each = bounds
    return None if height is None else max(least, height // lines_each)


def _routes(found: Sum, width: int, most: int | None) -> list[Line]:
    def trouble(route: dict[str, object]) -> tuple[bool, bool]:
        lane, verdict = route["lane"], route["verdict"]
        assert isinstance(lane, dict)
        return lane["state"] == "open", not (isinstance(verdict, dict) and verdict["congested"])

    said = [Line(_cut("GATE: allowed events/s of each class with those above it", width), Style.HEAD)]
    ordered = sorted(found.routes.items(), key=lambda pair: trouble(pair[1]))
    for name, route in ordered[:most]:
        is_open, is_calm = trouble(route)
        state = route["lane"]["state"] if not is_open else "open" if is_calm else "congested"
        verdict = route["verdict"] or {}
        rates = "  ".join(f"{of} {rate:,.0f}" for of, rate in (verdict.get("rates") or {}).items()) or "no limit"
        if is_watched := bool(route.get("shadow")):
            state = f"shadow {state}"
            rates = f"would be {rates}" if verdict.get("rates") else rates
        delay = verdict.get("queue_delay_s")
        waits = "" if delay is None else f"  queue {duration(delay)}"
        text = printable(f"{_cut(name, 22):<23}{f'{state} ':<11}{rates}{waits}")
        is_fine = is_open and (is_calm or is_watched)
        said.append(Line(_cut(text, width), Style.PLAIN if is_fine else Style.BAD))
    if left := [] if most is None else ordered[most:]:
        watched = sum(bool(route.get("shadow")) for _, route in left)
        said.append(Line(f"and {len(left)} more" + (f", {watched} in shadow" if watched else "")))
    return said


def _type(one: TypeLine, width: int) -> Line:
    waits = f"{one.waits:,}"
    text = _type_text(printable(one.name), printable(one.priority), waits, _age(one.age_s), _state(one), width)
    return Line(text, Style.PLAIN if one.mode == "run" else Style.BAD)


def _type_text(name: str, priority: str, waits: str, age: str, state: str, width: int) -> str:
    rest = f" {_cut(priority, 6):<6}{waits:>10}{age:>13}  {_cut(state, 20):<20}"
    room = max(10, width - len(rest))
    return _cut(f"{_cut(name, room):<{room}}{rest}", width)


def _state(one: TypeLine) -> str:
    cap = "" if one.cap is None else f"cap {one.cap:,g}/s"
    return ", ".join(word for word in ("" if one.mode == "run" else one.mode, cap, one.awaits or "") if word)


def _shown(one: dict[str, object]) -> str:
    if one["instance"] is None:
        return "nothing of it is shown"
    return "what is shown of it is old" if one["counts"] else "nothing of it is shown: others have its partitions"


def _held(one: dict[str, object], at_ms: int) -> str:
    until_ms = one["until_ms"]
    assert isinstance(until_ms, int)
    names = ", ".join([*one["classes"], *one["types"], *one.get("routes", [])])  # type: ignore[misc]
    left = duration(max(0, until_ms - at_ms) / 1000)
    return printable(f"{'HELD':{_LABEL}}{names}: {one['mode']} by {one['by']}, {left} left")


def _age(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + "~"


def _ends(left: str, right: str, width: int) -> str:
    room = width - len(right) - 1
    return f"{_cut(left, room):<{room}} {right}"

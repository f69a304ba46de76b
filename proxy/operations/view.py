"""What the page and `tidegate top` are told every second: what has changed since the second before, written once.

Every route, class and event type is a member of a part; a member is told when it differs from what was told last, and
is null when it has gone. Ages are told as the instant they are counted from, so what only waits is told once.
"""

import asyncio
import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from proxy import __version__
from proxy.bridge.assignment import Assignment
from proxy.bridge.awaited import awaited
from proxy.bridge.listener import Listener
from proxy.model import Partition
from proxy.operations import questions
from proxy.operations.intervention import Intervention
from proxy.operations.questions import Waiting
from proxy.operations.state import TYPES, State
from proxy.operations.steps import PIECE, Steps
from proxy.operations.totals import Totals
from proxy.operations.troubles import Troubles
from proxy.settings import Settings

POINTS = 600
"""Seconds of the past whose curves are kept."""
CHOSEN_SECONDS = 10
"""Between two choices of which types are told, where there are more than `TYPES`."""
LATE_SECONDS = 5.0
"""From when on an event is late whose class has no `slo`."""
SETTLE_SECONDS = 2.0
"""So long the lags of a second ago may still be those of other partitions than are owned now."""
COLUMNS = ("class", "route", "partitions", "mode", "awaits", "inbox_events", "lag", "oldest_ms", "dead_letters", "cap")
"""Of an event type's row; `lag` is as of its last record, null if there was none; `cap` is a person's, null: none."""
Row = tuple[str, str, int, str, str | None, int, int | None, int | None, int, float | None]


class _Part:
    """Members by name, as they were told last."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._texts: dict[str, str] = {}

    async def take(self, members: Iterable[tuple[str, Any]], steps: Steps) -> str:
        """Take all members there are; return those that have changed as JSON."""
        changed: list[str] = []
        seen = set()
        for count, (name, value) in enumerate(members, 1):
            seen.add(name)
            if self.values.get(name) != value:
                self.values[name] = value
                self._texts[name] = text = f"{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}"
                changed.append(text)
            if not count % PIECE:
                await steps.pause()
        for name in self.values.keys() - seen:
            del self.values[name], self._texts[name]
            changed.append(f"{json.dumps(name)}:null")
        return "{" + ",".join(changed) + "}"

    def whole(self) -> str:
        """Return all members as JSON."""
        return "{" + ",".join(self._texts.values()) + "}"


class View:
    """Looks at the parts once a second; changes nothing. `wall` gives seconds since 1970."""

    def __init__(
        self,
        settings: Settings,
        assignment: Assignment,
        state: State,
        totals: Totals,
        held: Callable[[], Sequence[Intervention]],
        troubles: Troubles,
        *,
        wall: Callable[[], float],
        instance: str,
    ) -> None:
        self._assignment = assignment
        self._state = state
        self._totals = totals
        self._held = held
        self._troubles = troubles
        self._wall = wall
        self._routes, self._decisions, self._classes, self._types = _Part(), _Part(), _Part(), _Part()
        self._points: deque[str] = deque(maxlen=POINTS)
        """Each as JSON, in the order of classes and routes."""
        self._named: list[str] = []
        self.go_by(settings)
        self._lags: deque[tuple[float, int]] = deque(maxlen=questions.TREND_SECONDS)
        """Instants in seconds since 1970, and events of all classes; of the partitions that are owned now."""
        self._owned = set[Partition]()
        self._owned_since = 0.0
        self._chosen: list[Listener] = []
        self._chosen_at = 0.0
        self._head = json.dumps({"version": __version__, "instance": instance, "columns": COLUMNS})[1:-1]
        self._rest = ""
        """What is told every second, changed or not."""

    def go_by(self, settings: Settings) -> None:
        """Go by what these settings promise of each class, and by their routes, from now on."""
        if list(settings.routes) != self._named:
            self._named = list(settings.routes)
            self._points.clear()  # a point has a figure for each route
        self._late_after = {
            name: LATE_SECONDS if one.slo is None else one.slo.within for name, one in settings.classes.items()
        }

    async def look(self, steps: Steps, *, is_told: bool) -> str:
        """Look at everything, at event types only if somebody `is_told`; return what has changed as JSON."""
        now = self._wall()
        chosen = self._choose(now)
        listeners = self._assignment.listeners.values()
        per_route = Counter(one.event_type.route for one in listeners)
        per_class = Counter(one.event_type.priority for one in listeners)
        routes = dict(self._state.routes(per_route))
        decisions = {name: one.pop("decisions") for name, one in routes.items()}
        classes = {
            name: {**one, "late_after_s": self._late_after[name]} for name, one in self._state.classes(per_class)
        }
        parts = {
            "routes": await self._routes.take(routes.items(), steps),
            "decisions": await self._decisions.take(decisions.items(), steps),
            "classes": await self._classes.take(classes.items(), steps),
        }
        if is_told:
            parts["types"] = await self._types.take(self._rows(chosen), steps)
        point = self._point(now, classes, routes)
        self._rest = self._others(now, classes, routes)
        return "{" + ",".join([self._rest, f'"point":{point}', *(f'"{name}":{it}' for name, it in parts.items())]) + "}"

    def whole(self) -> str:
        """Return everything as it was at the last look, with the curves of the last ten minutes, as JSON."""
        parts = {
            "routes": self._routes.whole(),
            "decisions": self._decisions.whole(),
            "classes": self._classes.whole(),
            "types": self._types.whole(),
            "points": "[" + ",".join(self._points) + "]",
        }
        return "{" + ",".join([self._head, self._rest, *(f'"{name}":{it}' for name, it in parts.items())]) + "}"

    def _choose(self, now: float) -> list[Listener]:
        """Return those told of: of too many what has stopped, what a person holds, and what waits comes first."""
        listeners = self._assignment.listeners
        is_old = len(listeners) > TYPES and now - self._chosen_at >= CHOSEN_SECONDS
        if is_old or len(self._chosen) != min(len(listeners), TYPES):
            chosen = list(listeners.values())
            if len(chosen) > TYPES:
                chosen.sort(key=lambda one: not (one.is_stopped or one.inbox.events))
            self._chosen, self._chosen_at = chosen[:TYPES], now
        return self._chosen

    def _rows(self, chosen: Iterable[Listener]) -> Iterator[tuple[str, Row]]:
        now = asyncio.get_running_loop().time()
        lags = self._totals.type_lags
        for one in chosen:
            kind, inbox = one.event_type, one.inbox
            oldest = inbox.oldest_ms() if inbox.events else None
            yield (
                kind.name,
                (
                    kind.priority,
                    kind.route,
                    len(inbox.flows),
                    one.stance.mode.value,
                    awaited(one, now) or None,
                    inbox.events,
                    lags.get(kind.name),
                    oldest,
                    one.dead_letters.open,
                    None if one.stance.cap is None else one.stance.cap.rate,
                ),
            )

    def _point(self, now: float, classes: Mapping[str, Any], routes: Mapping[str, Any]) -> str:
        figures = [
            int(now * 1000),
            [[one["lag"], one["lag_age_s"]] for one in classes.values()],
            [one["verdict"] and one["verdict"]["queue_delay_s"] for one in routes.values()],
        ]
        self._points.append(json.dumps(figures, separators=(",", ":")))
        owned = {at for one in self._assignment.listeners.values() for at in one.inbox.flows}
        if owned != self._owned:  # what moved here or away is no trend
            self._owned, self._owned_since = owned, now
            self._lags.clear()
        known = [one["lag"] for one in classes.values() if one["lag"] is not None]
        if len(known) == len(classes) and now >= self._owned_since + SETTLE_SECONDS:
            self._lags.append((now, sum(known)))
        return self._points[-1]

    def _others(self, now: float, classes: Mapping[str, Any], routes: Mapping[str, Any]) -> str:
        held = [asdict(one) for one in self._held()]
        unread, nearly_lost = self._troubles.unread(), self._troubles.nearly_lost()
        waiting = [
            Waiting(name, row[0], row[4], row[5] if row[6] is None else row[6])
            for name, row in self._types.values.items()
            if row[5] or row[6]
        ]
        told = {
            "at_ms": int(now * 1000),
            "types_in_all": len(self._assignment.listeners),
            "held": held,
            "unread": unread,
            "nearly_lost": nearly_lost,
            "refused": self._troubles.refused(),
            "answers": {
                "late": questions.late(classes, nearly_lost),
                "why": questions.why(routes, held, waiting, unread),
                "drop": questions.droppable(classes, waiting),
                "better": questions.better(self._lags),
            },
        }
        return json.dumps(told, separators=(",", ":"))[1:-1]

"""A view as a browser is told it: a campaign floods one route, its lowest class waits."""

import json
from math import sin
from typing import Any

from proxy.operations import questions
from proxy.operations.questions import Waiting
from proxy.operations.steps import Steps
from proxy.operations.view import COLUMNS

CLASSES = ("P1", "P2", "P3")
SHARES = (0.0, 0.03, 0.97)


class ToldView:
    """Stands in for `View`; the same figures every time. `ending` is put behind every name.

    `shadow`: the policy of the congested route is only watched.
    """

    def __init__(
        self, types: int = 30, *, ending: str = "", held: tuple[dict[str, Any], ...] = (), shadow: bool = False
    ) -> None:
        self.names = [f"shop.{['order', 'brand-alert', 'campaign'][i % 3]}-{i:04d}{ending}" for i in range(types)]
        self.route = "mail" + ending
        self.held = list(held)
        self.refused: list[str] = []
        self.cap: float | None = None
        """Of the types that wait."""
        self.shadow = shadow
        self.at_ms = 1_795_474_800_000
        self.looks = 0

    async def look(self, steps: Steps, *, is_told: bool) -> str:  # noqa: ARG002
        """Tell all members as changed: no update costs a page more."""
        self.looks += 1
        self.at_ms += 1000
        return json.dumps({**self._now(), "point": self._point(self.at_ms)})

    def whole(self) -> str:
        """Tell the curves, too."""
        points = [self._point(self.at_ms - 1000 * back) for back in range(420, -1, -1)]
        head = {"version": "0.1.0", "instance": "gate-0-7-1795463012", "columns": COLUMNS, "points": points}
        return json.dumps({**head, **self._now()})

    def _lag(self, at_ms: int) -> int:
        back = (at_ms - 1_795_474_800_000) / 1000 + 300
        return int(max(0.0, 18_000 * sin(max(0.0, back) / 190)))

    def _point(self, at_ms: int) -> list[Any]:
        lag = self._lag(at_ms)
        wave = 1 + 0.3 * sin(at_ms / 9_000)
        pairs = [[int(share * lag) + 2, round(0.05 * wave + share * lag / 90, 3)] for share in SHARES]
        return [at_ms, pairs, [round(0.01 * wave + lag / 90_000, 4), 0.004 * wave]]

    def _now(self) -> dict[str, Any]:
        point = self._point(self.at_ms)
        classes = {
            name: {
                "types": len(self.names) // 3,
                "rate": (320.4, 95.2, 41.0)[i],
                "confirmed": 10_000,
                "lag": point[1][i][0],
                "lag_age_s": point[1][i][1],
                "waiting": 5,
                "catching_up": 0,
                "late_after_s": 5.0,
            }
            for i, name in enumerate(CLASSES)
        }
        rows = {name: self._row(i) for i, name in enumerate(self.names)}
        routes = {self.route: self._route(0, congested=True), "push": self._route(1, congested=False)}
        waiting = [Waiting(name, row[0], row[4], row[6]) for name, row in rows.items() if row[6]]
        lags = [(at / 1000, self._lag(at)) for at in range(self.at_ms - 60_000, self.at_ms + 1, 1000)]
        return {
            "at_ms": self.at_ms,
            "types_in_all": len(rows),
            "held": self.held,
            "refused": self.refused,
            "routes": routes,
            "decisions": {name: [route["verdict"]] * 3 for name, route in routes.items()},
            "classes": classes,
            "types": rows,
            "answers": {
                "late": questions.late(classes),
                "why": questions.why(routes, self.held, waiting),
                "drop": questions.droppable(classes, waiting),
                "better": questions.better(lags),
            },
        }

    def _row(self, i: int) -> tuple[Any, ...]:
        lag = (i * 7919 + self.looks * 31) % 4000 if i % 3 == 2 else (i + self.looks) % 3
        route = self.route if i % 3 == 2 else "push"
        oldest = self.at_ms - lag * 45 if lag else None
        return (
            CLASSES[i % 3],
            route,
            4,
            "run",
            "rate" if lag else None,
            min(lag, 500),
            lag,
            oldest,
            0,
            self.cap if lag else None,
        )

    def _route(self, number: int, *, congested: bool) -> dict[str, Any]:
        tick = 1 + 0.2 * sin(self.looks / 3)
        verdict = {
            "at_ms": self.at_ms - 500,
            "congested": congested,
            "cause": "depth" if congested else "none",
            "why": f"an event would wait 0.19 s in queue {self.route}.out: too long for P3"
            if congested
            else "nothing speaks against sending",
            "hot": ["P3"] if congested else [],
            "queue_delay_s": 0.19 if congested else 0.004,
            "ruled_by": None,
            "drain_rate": 460.0,
            "rates": {"P1": 900.0, "P2": 430.0 * tick, "P3": 41.0 / tick}
            if congested
            else dict.fromkeys(CLASSES, 800.0),
        }
        return {
            "policy": "class_budget",
            "shadow": self.shadow and congested,
            "types": 10,
            "lane": {"state": "open", "in_flight": 88 - number, "window": 120, "oldest_s": 0.01},
            "publish_p50_s": 0.0021,
            "verdict": verdict,
            "queues": {f"{self.route}.out": {"ready": 87, "consumers": 4, "delay_s": None}},
        }

"""Findings as a report makes them, without Spark, and a browser that looks at their page."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from math import sin
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from load import browser as installed
from proxy.reports.findings import Findings
from proxy.reports.page import page

Row = dict[str, Any]
Make = Callable[..., Findings]
LOOP = "session"
"""All tests in a browser share one, and so an event loop."""

CLASSES = ("P1", "P2", "P3")
COUNTS = ("received", "confirmed", "dead_lettered", "nacked", "unknown", "resent", "possible_duplicates", "overtaken")
TIMES = ("p50_ms", "p99_ms", "p999_ms", "max_ms")
DEADLINE = 30.0
"""Seconds within which a page must come to look so."""


@dataclass
class Seen:
    """A page in a browser, and what it should not do."""

    page: Page
    path: Path
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    async def until(self, script: str, arg: Any = None) -> None:
        """Wait until a script says so. The library's own way is evaluated by the page, which forbids that."""
        async with asyncio.timeout(DEADLINE):
            while not await self.page.evaluate(script, arg):  # noqa: ASYNC110 -- a page tells of no change
                await asyncio.sleep(0.05)


def _per_class(run: str, name: str) -> Row:
    proven = ("produced", "delivered", "missing", "left_in_log", "lost", "duplicated", "unexpected")
    times = {f"{time}_{figure}": 12.5 for time in ("bridge", "consumed") for figure in TIMES}
    return {
        "run": run,
        "class": name,
        **dict.fromkeys(COUNTS, 0),
        **dict.fromkeys(proven, 0),
        **times,
        "produced": 1200,
    }


def _over_time(runs: tuple[str, ...], seconds: int) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {}

    def put(table: str, **row: Any) -> None:
        tables.setdefault(table, []).append(row)

    for run in runs:
        for second in range(seconds):
            at = {"run": run, "t_s": second + 0.5}
            wave = 1.5 + sin(second / 7)
            for number, name in enumerate(CLASSES):
                key = {**at, "class": name}
                put("bridge_time_over_time", **key, p50_ms=5 * wave, p99_ms=40 * wave * (number + 1))
                put("consumed_time_over_time", **key, p50_ms=50 * wave, p99_ms=90 * wave * (number + 1))
                put("lag_over_time", **key, lag=int(1000 * number * wave))
                put("traffic_over_time", **key, received_rate=90.0, confirmed_rate=80 * wave)
            put("depth_over_time", **at, route="mail", depth=int(20 * wave))
            put("routes_over_time", **at, route="mail", in_flight=int(9 * wave), consumers=4)
            put("control_over_time", **at, route="mail", delay_ms=60 * wave, drain_rate=300.0)
            put("rates_over_time", **at, route="mail", rate=200 * wave, **{"class": "P3"})
    return tables


def _of_types(runs: tuple[str, ...], types: int, seconds: int, ending: str) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {"traffic_by_type": [], "latency_by_type": [], "types_over_time": []}
    for run in runs:
        for number in range(types):
            key = {"run": run, "class": CLASSES[number % 3], "type": f"type-{number:04d}{ending}"}
            tables["traffic_by_type"].append(
                {**key, **dict.fromkeys(COUNTS, 0), "confirmed": 1_000_000 + number * 7919}
            )
            for measure in ("bridge time", "publish latency"):
                figures = {name: (number * 7 % 83 + 1.25) * (place + 1) for place, name in enumerate(TIMES)}
                tables["latency_by_type"].append({**key, "measure": measure, "samples": 123_456 + number, **figures})
            if number < 60:
                tables["types_over_time"] += [
                    {**key, "from_s": from_s, "seconds": 10, "confirmed": 50, "p99_ms": 10.0 + number + from_s}
                    for from_s in range(0, seconds, 10)
                ]
    return tables


def _of_control(runs: tuple[str, ...]) -> dict[str, list[Row]]:
    common = {"route": "mail", "from_s": 10.5, "to_s": 20.25, "seconds": 9.75, "congested_s": 7.5, "stretches": 3}
    told = {"ended": True, "verdicts": 80, "causes": "depth", "queues": "mail.out", "worst_p50_ms": 3.25, "errors": 0}
    seen = {"instance": "host-1", "congested": True, "cause": "depth", "p50_ms": 2.5, "errors": 0, "samples": 31}
    did = {
        "drain_rate": 300.2,
        "depth": 25,
        "cuts": 1,
        "hot": "P3",
        "rates": "P2 312.4, P3 258.9",
        "ruled_by": "mail.out",
    }
    place = {"route": "mail", "from_s": 10.5, "of": 80}
    return {
        "episodes": [{"run": run, **common, **told, "worst_delay_ms": 151.5, "cuts": 9} for run in runs],
        "episode_verdicts": [
            {"run": run, **place, "number": n + 1, **seen, **did, "t_s": 10.5 + n / 8, "delay_ms": 80.0 + n}
            for run in runs
            for n in range(60)
        ],
        "spectra": [
            {
                "run": run,
                "level": "class",
                "name": name,
                "measure": measure,
                "percentile": share,
                "ms": 3 + share,
                "samples": 9,
            }
            for run in runs
            for name in CLASSES
            for measure in ("bridge time", "consumed time")
            for share in (30.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
        ],
    }


@pytest.fixture
def found() -> Make:
    """Findings of some runs and event types, whose names have an `ending`; tables given by name replace those made."""

    def make(
        *runs: str,
        types: int = 30,
        ending: str = "",
        seconds: int = 60,
        notices: tuple[str, ...] = (),
        sentences: tuple[str, ...] = (),
        **tables: list[Row],
    ) -> Findings:
        names = runs or ("run",)
        made = {
            **_over_time(names, seconds),
            **_of_types(names, types, seconds, ending),
            **_of_control(names),
            **tables,
        }
        made |= {"proof_by_class": [{"run": run, "class": name} for run in names for name in CLASSES]}
        times = {
            "started_at": "2026-11-22T14:00:00.000+00:00",
            "ended_at": "2026-11-22T14:01:00.000+00:00",
            "seconds": float(seconds),
        }
        about = {
            "processes": 2,
            "versions": ["0.1.0"],
            "routes": '{"mail":{"policy":"class_budget","queues":[]}}',
            "policies": {"mail": ["class_budget"]},
            "records": {"class": 9},
        }
        return Findings(
            made_at="2026-11-22T15:00:00+00:00",
            runs=[{"name": run, **times, **about} for run in names],
            classes=CLASSES,
            per_class=[_per_class(run, name) for name in CLASSES for run in names],
            tables=made,
            totals={name: len(rows) for name, rows in made.items()},
            sentences=sentences,
            notices=notices,
            width_s=1,
        )

    return make


@pytest_asyncio.fixture(loop_scope=LOOP, scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Debian's Chromium: the newest that its distribution keeps safe, instead of one of the library's own."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=installed.provide(), args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def look(browser: Browser, tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[Seen]]]:
    """Open the page of findings; by default as wide as a laptop."""
    contexts = []

    async def open_page(findings: Findings, *, width: int = 1280, height: int = 900, scheme: Any = "light") -> Seen:
        path = tmp_path / f"report-{len(contexts)}.html"
        path.write_text(page(findings), encoding="utf-8")
        contexts.append(await browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme))
        seen = Seen(await contexts[-1].new_page(), path)
        seen.page.on("console", lambda message: seen.errors.append(message.text))
        seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
        seen.page.on("dialog", lambda dialog: seen.errors.append(dialog.message))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        await seen.page.goto(path.as_uri())
        await seen.until("[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('canvas'))")
        return seen

    yield open_page
    for context in contexts:
        await context.close()

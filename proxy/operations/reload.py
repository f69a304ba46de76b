"""Other settings without a restart: asked for by a signal or by a change of the files, whole or not at all."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from proxy.config import Difference, InForce, difference
from proxy.errors import SettingsError
from proxy.settings import Settings

LOOK_SECONDS = 5.0
"""Between two looks at the files."""
SETTLE_SECONDS = 1.0
"""A change counts once it has been found twice, so long apart: files are not written at once."""
_MISTAKES = 20
"""Of the mistakes in refused files that are told."""
_say = structlog.get_logger("tidegate.reload")


@dataclass(frozen=True, slots=True)
class Files:
    """How the settings are read, away from the event loop."""

    load: Callable[[], Awaitable[Settings]]
    """Raises `SettingsError` with every mistake."""
    fingerprint: Callable[[], Awaitable[bytes]]
    """Returns what is another one if the files have changed."""
    seen: bytes
    """The fingerprint of what is in force at the start."""


@dataclass(slots=True)
class _Counts:
    by_result: dict[str, int] = field(default_factory=lambda: {"applied": 0, "refused": 0, "unchanged": 0})
    applied_at: float | None = None


class Reload:
    """Reads the files again. `in_force` is told why they are refused, `apply` puts others in their place."""

    def __init__(
        self,
        files: Files,
        in_force: InForce,
        apply: Callable[[Settings], None],
        *,
        wall: Callable[[], float],
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """Make it; `look` has topics looked for at once: whoever asks may just have made one."""
        self._files = files
        self._in_force = in_force
        self._apply = apply
        self._wall = wall
        self._look = look
        self._asked = asyncio.Event()
        self._turn = asyncio.Lock()
        self._counts = _Counts()
        self._seen = files.seen
        """Of the files that were loaded last, whether they could be used or not."""

    def ask(self) -> None:
        """Read the files again now, changed or not."""
        self._asked.set()

    @property
    def is_loading(self) -> bool:
        """Whether the files are being read now."""
        return self._turn.locked()

    async def now(self, by: str) -> dict[str, Any]:
        """Read the files again because somebody asks; return what came of it, with `error` if they were refused."""
        _say.info("reload_asked", by=by)
        self._look()
        async with self._turn:
            self._seen = await self._files.fingerprint()
            return await self._load()

    def families(self) -> Iterable[Metric]:
        """Yield what /metrics tells of it."""
        counts = CounterMetricFamily("tidegate_reloads", "Of the settings, by result.", labels=["result"])
        for result, count in self._counts.by_result.items():
            counts.add_metric([result], count)
        yield counts
        yield GaugeMetricFamily(
            "tidegate_settings_refused",
            "1 while the files say what is not in force: it was refused.",
            int(bool(self._in_force.refused)),
        )
        if self._counts.applied_at is not None:
            yield GaugeMetricFamily(
                "tidegate_last_reload_timestamp_seconds",
                "When other settings came into force.",
                self._counts.applied_at,
            )

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._asked.wait()
            is_asked = self._asked.is_set()
            self._asked.clear()
            if is_asked:
                self._look()
            found = await self._files.fingerprint()
            if not is_asked and found != self._seen:
                found = await self._settled(found)
            if is_asked or found != self._seen:
                async with self._turn:
                    self._seen = found
                    await self._load()

    async def _settled(self, found: bytes) -> bytes:
        """Return the fingerprint once two looks have found the same."""
        while True:
            before = found
            await asyncio.sleep(SETTLE_SECONDS)
            found = await self._files.fingerprint()
            if found == before:
                return found

    async def _load(self) -> dict[str, Any]:
        try:
            settings = await self._files.load()
        except SettingsError as error:
            return self._refuse(error.mistakes)
        what = difference(self._in_force.said, settings)
        if reasons := obstacles(what):
            return self._refuse(reasons)
        self._in_force.refused = ()
        result = "applied" if what else "unchanged"
        self._counts.by_result[result] += 1
        if what:
            self._apply(settings)
            self._counts.applied_at = self._wall()
            _say.info("settings_reloaded", **what.told())
        else:
            _say.info("settings_unchanged")
        return {"result": result, **what.told()}

    def _refuse(self, reasons: Iterable[str]) -> dict[str, Any]:
        told = list(reasons)
        self._in_force.refused = told
        self._counts.by_result["refused"] += 1
        why: dict[str, Any] = {"why": told[:_MISTAKES], "mistakes": len(told)}
        effect = "the settings in force stay, all of them"
        _say.error("settings_not_reloaded", **why, effect=effect, remedy="mend the files, or restart")
        return {"error": effect, **why}


def obstacles(what: Difference) -> list[str]:
    """Return why settings can't come into force without a restart; empty if they can."""
    return [f"{path} can't change while events are moved; restart" for path in what.fixed]

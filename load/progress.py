"""What a run looks like while it lasts: a table that stays in place on a terminal, a line now and then elsewhere."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

LINE_SECONDS = 5.0
"""Between two lines where there is no terminal."""


@dataclass
class Glance:
    """The last of everything that a metric log says, and how fast what is counted elsewhere moves."""

    classes: Sequence[str]
    route: dict[str, Any] = field(default_factory=dict)
    verdict: dict[str, Any] = field(default_factory=dict)
    of_class: dict[str, dict[str, Any]] = field(default_factory=dict)
    rates: dict[str, Counter[str]] = field(default_factory=dict)
    """Events a second by class, of `produced` and `consumed`."""
    peak_depth: int = 0
    _counted: dict[str, tuple[float, Counter[str]]] = field(default_factory=dict)

    def take(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Keep the last record of each kind."""
        for record in records:
            if record["kind"] == "route":
                self.route = dict(record)
                self.peak_depth = max(self.peak_depth, record["depth"] or 0)
            elif record["kind"] == "verdict":
                self.verdict = dict(record)
            elif record["kind"] == "class":
                self.of_class[record["class"]] = dict(record)

    def count(self, what: str, totals: Mapping[str, int], now: float) -> None:
        """Take totals by class and turn their growth since the last call into rates."""
        then, before = self._counted.get(what, (now, Counter()))
        if now > then:
            self.rates[what] = Counter(
                {name: round((totals.get(name, 0) - before[name]) / (now - then)) for name in totals}
            )
        self._counted[what] = (now, Counter(totals))

    def verdict_text(self) -> str:
        """Return the last verdict in words."""
        if not self.verdict:
            return "none yet"
        word = {True: "congested", False: "not congested", None: "nothing said"}[self.verdict["congested"]]
        p50 = self.verdict["p50_us"]
        latency = "no confirms" if p50 is None else f"confirm latency P50 {p50 / 1000:.1f} ms"
        return f"{word} ({self.verdict['cause']}): {latency}, {self.verdict['errors']} errors"

    def route_text(self) -> str:
        """Return the state of the route in words."""
        if not self.route:
            return "no record yet"
        interval = self.route["interval_s"] or 1.0
        accepted, nacked = (round(self.route[what] / interval) for what in ("confirmed", "nacked"))
        depth = "?" if self.route["depth"] is None else self.route["depth"]
        return f"queue depth {depth}, accepted {accepted}/s, nacked {nacked}/s, in flight {self.route['in_flight']}"

    def rows(self) -> list[list[str]]:
        """Return a row of figures for each class."""
        rows = []
        for name in self.classes:
            record = self.of_class.get(name, {})
            size, age, interval = record.get("batch_size"), record.get("lag_age_s"), record.get("interval_s") or 1.0
            rows.append(
                [
                    name,
                    str(self.rates.get("produced", Counter())[name]),
                    str(round(record.get("confirmed", 0) / interval)),
                    str(self.rates.get("consumed", Counter())[name]),
                    "?" if record.get("lag") is None else f"{record['lag']:,}",
                    "-" if age is None else f"{age:.1f} s",
                    "off" if size is None else f"{size['sum']:.1f}",
                ]
            )
        return rows


COLUMNS = ("class", "produced/s", "confirmed/s", "consumed/s", "lag", "oldest", "batch size")


class Progress:
    """Shows a glance on stderr, as often as it is told to; a context manager."""

    def __init__(self, title: str, glance: Glance, *, seconds: float) -> None:
        self._title = title
        self._glance = glance
        self._seconds = seconds
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._next_line = 0.0

    def __enter__(self) -> Self:
        """Take over the terminal, if there is one."""
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the terminal back."""
        self._live.stop()

    def show(self, passed: float) -> None:
        """Show how things are `passed` seconds into the run."""
        if self._console.is_terminal:
            self._live.update(self._table(passed), refresh=True)
        elif passed >= self._next_line:
            self._next_line = passed + LINE_SECONDS
            self._console.print(self._line(passed), soft_wrap=True, highlight=False, markup=False)

    def _table(self, passed: float) -> Table:
        table = Table(
            title=f"{self._title}   {passed:.0f} of {self._seconds:.0f} s",
            caption=f"{self._glance.route_text()}\nverdict: {self._glance.verdict_text()}",
            title_justify="left", caption_justify="left", min_width=78,
        )  # fmt: skip
        for at, column in enumerate(COLUMNS):
            table.add_column(column, justify="right" if at else "left")
        for row in self._glance.rows():
            table.add_row(*row)
        return table

    def _line(self, passed: float) -> str:
        classes = "; ".join(
            f"{name} {produced}/s in, {confirmed}/s confirmed, {consumed}/s done, lag {lag}, batch {size}"
            for name, produced, confirmed, consumed, lag, _, size in self._glance.rows()
        )
        return f"{self._title} {passed:3.0f} s: {self._glance.route_text()}; {classes}; {self._glance.verdict_text()}"

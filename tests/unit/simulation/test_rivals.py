"""What a route judged by a rival is told, and where rivals can be had."""

from math import inf
from pathlib import Path

import pytest

from load.control.__main__ import main as load_control
from proxy import config
from proxy.congestion.budget_verdict import BudgetVerdict
from proxy.congestion.class_budget import RouteBudget
from proxy.congestion.reading import QueueReading, Reading
from proxy.congestion.signs import Sign
from proxy.errors import SettingsError
from proxy.settings import ClassBudget
from proxy.simulation import scenario_file
from proxy.simulation.command import main
from proxy.simulation.rivals import RIVALS, judging
from proxy.simulation.scenario import RouteIn
from proxy.simulation.shedding import Look, Shedder

TICK = 0.05


class Noting:
    """A rule that notes what it sees and lets P3 pass as it is told."""

    def __init__(self) -> None:
        self.rates = (inf, inf, inf)
        self.looks: list[Look] = []
        self.stops = 0

    def on_look(self, look: Look) -> None:
        self.looks.append(look)

    def on_stop(self) -> None:
        self.stops += 1


class Judged:
    """A route, and how it is judged tick by tick."""

    def __init__(self) -> None:
        self.rule = Noting()
        self.shedder = Shedder(RouteBudget("shop", (0.5, 0.2, 0.08), ClassBudget()), self.rule)
        self._at = 0.0
        self._charged = (0.0, 0.0, 0.0)

    def tick(
        self,
        *events: float,
        waited: tuple[bool, bool, bool] = (False, False, False),
        ready: int | None = 20,
        consumers: int = 4,
        others: float = 0.0,
    ) -> BudgetVerdict:
        self._at += TICK
        self._charged = tuple(sum(both) for both in zip(self._charged, events or (0, 0, 0), strict=True))  # type: ignore[assignment]
        queue = None if ready is None else QueueReading(ready, consumers, self._at, 3 * TICK)
        return self.shedder.judge(
            Reading(
                at=self._at,
                queues=(queue,),
                confirmed=tuple(map(int, self._charged)),
                charged=self._charged,
                others=others,
                waited=waited,
            )
        )


def judged(ticks: int = 20) -> Judged:
    """Return a route whose consumers have taken 300/s for so many ticks."""
    route = Judged()
    for _ in range(ticks):
        route.tick(3, 3, 9)
    return route


def test_all_pass_and_none_counts_another_when_the_rule_says_so() -> None:
    verdict = judged().tick(3, 3, 9)
    assert verdict.rates == (inf, inf, inf)
    assert verdict.counts == ((True, False, False), (False, True, False), (False, False, True))
    assert (verdict.congested, verdict.trickles, verdict.allowance) == (False, (0, 0, 0), inf)


def test_the_verdict_has_the_rates_of_the_rule_when_it_holds_a_class() -> None:
    route = judged()
    route.rule.rates = (inf, inf, 90.0)
    verdict = route.tick(3, 3, 9)
    assert (verdict.rates, verdict.hot) == ((inf, inf, 90.0), (False, False, True))
    assert (verdict.congested, verdict.cause) == (True, Sign.DEPTH)


def test_a_class_that_waits_asks_again_for_what_the_consumers_could_take() -> None:
    route = judged()
    route.tick(3, 3, 9, waited=(False, False, True))
    look = route.rule.looks[-1]
    assert look.admitted == (3, 3, 9)
    assert look.rejected == (0, 0, pytest.approx(300 * TICK, rel=0.05))
    assert look.could == pytest.approx(300 * TICK, rel=0.05)


def test_a_class_asks_again_when_nothing_is_known_of_the_consumers() -> None:
    route = judged(2)
    route.tick(0, 0, 0, waited=(False, False, True))
    assert route.rule.looks[-1].rejected[2] > 0


def test_the_delay_of_the_queue_is_what_counts_when_it_is_known() -> None:
    route = judged()
    assert route.rule.looks[-1].delay == pytest.approx(20 / 300, rel=0.05)
    assert route.rule.looks[-1].waiting == 20


def test_nothing_is_said_of_the_queue_when_it_is_not_known() -> None:
    route = judged()
    for _ in range(20):
        route.tick(3, 3, 9, ready=None)
    assert (route.rule.looks[-1].delay, route.rule.looks[-1].waiting) == (None, None)


def test_what_other_replicas_put_in_counts_as_inflow_and_not_as_own() -> None:
    route = judged()
    route.tick(3, 3, 9, others=100.0)
    assert route.rule.looks[-1].inflow == pytest.approx(15 + 5)
    assert route.rule.looks[-1].admitted == (3, 3, 9)


def test_nothing_passes_when_the_route_must_stop_whatever_the_rule_says() -> None:
    route = judged()
    seen = len(route.rule.looks)
    for _ in range(3):
        verdict = route.tick(0, 0, 0, ready=600, consumers=0)
    assert (verdict.rates, verdict.congested) == ((0.0, 0.0, 0.0), True)
    assert verdict.cause is Sign.NO_CONSUMERS
    assert route.rule.stops
    assert len(route.rule.looks) + route.rule.stops == seen + 3


def test_a_route_with_a_policy_of_its_own_keeps_its_budget_when_a_rival_is_simulated() -> None:
    scenario = scenario_file.load(scenario_file.shipped()["flash-campaign"])
    budget = RouteBudget("shop", (0.5, 0.2, 0.08), ClassBudget())
    assert isinstance(judging(scenario, "dagor")("shop", budget), Shedder)
    assert judging(scenario, "class_budget")("shop", budget) is budget
    own = scenario.model_copy(update={"routes": {"shop": RouteIn(queues=("work",), policy="class_budget")}})
    assert judging(own, "dagor")("shop", budget) is budget


@pytest.mark.parametrize("name", sorted(RIVALS))
@pytest.mark.parametrize(
    ("key", "words"),
    [("policy", "is unknown; allowed: static, per_type"), ("law", "does not exist; allowed: aimd, cubic")],
)
def test_settings_refuse_a_rival_as_policy_and_as_law(name: str, key: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(
        "log: {hosts: ['k:9092'], group: g}\nbroker: {hosts: ['r:5672']}\n"
        f"routes: {{a: {{exchange: a, {key}: {name}}}}}\n"
        "event_types: {t: {topic: t, class: P1, route: a, routing_key: q}}\n"
    )
    with pytest.raises(SettingsError) as error:
        config.load(file, {})
    assert [line.split(": ", 1)[1] for line in error.value.mistakes if f'routes.a.{key}: "{name}" {words}' in line]


@pytest.mark.parametrize("name", sorted(RIVALS))
def test_only_the_simulator_offers_a_rival(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert name in capsys.readouterr().out
    with pytest.raises(SystemExit):
        load_control(["--policy", name, "--list"])
    assert f"invalid choice: '{name}'" in capsys.readouterr().err

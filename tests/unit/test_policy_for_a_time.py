"""A person has a route held back by another policy for a time: obeyed, answered, recorded, undone at its end."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from proxy.bridge.throttle import OpenThrottle
from proxy.config.in_force import InForce
from proxy.model import Mode
from proxy.operations.intervention import Answer, Intervention, read
from proxy.settings import POLICIES, Route, Settings
from proxy.steering.budgeted import BudgetedThrottle, HeldThrottle
from tests.support.memory_board import MemoryBoard
from tests.support.process import settings
from tests.support.reloaded import MAILS, Running, lived, of


def asked(name: str, policy: str | None, seconds: float = 60, **fields: Any) -> Intervention:
    now_ms = int(asyncio.get_running_loop().time() * 1000)
    mode = Mode.RUN if policy is None else Mode.POLICY
    given: dict[str, Any] = {"mode": mode, "types": (), "classes": (), "routes": ("r",)} | fields
    until_ms = now_ms + int(seconds * 1000)
    return Intervention(id=name, by="ann", why="too slow", at_ms=now_ms, until_ms=until_ms, policy=policy, **given)


def throttle(it: Running) -> type:
    held = it.app.assignment.listeners["mails"].throttle
    assert isinstance(held, HeldThrottle)
    return type(held.inner)


def boarded(story: Callable[[Running, Callable[[Intervention], Awaitable[None]]], Awaitable[None]]) -> MemoryBoard:
    board = MemoryBoard()
    people = board.beside()

    async def pin(one: Intervention) -> None:
        await people.pin(one.key, one.as_json())
        await asyncio.sleep(1.5)

    async def live(it: Running) -> None:
        it.app._log.member = lambda: "m-1"  # type: ignore[method-assign]
        await story(it, pin)

    lived(live, of("class_budget", orders={}, mails={}), board)
    return board


def test_a_route_has_another_policy_until_the_end_and_nothing_pauses_for_it() -> None:
    records: list[Any] = []

    async def story(it: Running, pin: Callable[[Intervention], Awaitable[None]]) -> None:
        flow = it.app.assignment.listeners["mails"].inbox.flows[MAILS]
        await pin(asked("a", "static"))
        assert throttle(it) is OpenThrottle
        assert it.app.in_force.settings.routes["r"].policy == "static"
        assert it.app.in_force.said.routes["r"].policy == "class_budget", "what the files say is known"
        it.produce("mails", 50)
        await asyncio.sleep(1)
        assert len(it.written("mails")) == 50
        await asyncio.sleep(60)
        assert throttle(it) is BudgetedThrottle
        assert it.app.assignment.listeners["mails"].inbox.flows[MAILS] is flow
        records.extend(one for one in it.records if one["kind"] == "intervention")

    board = boarded(story)
    assert [(one["phase"], one["mode"], one["routes"], one["policy"]) for one in records] == [
        ("begun", "policy", ["r"], "static"),
        ("ended", "policy", ["r"], "static"),
    ]
    answers = [said for note in board.notes if isinstance(said := read(note), Answer)]
    assert [(one.id, one.types) for one in answers] == [("a", 2)], "for two event types that it serves"


def test_a_policy_stays_when_other_settings_come_into_force_meanwhile() -> None:
    async def story(it: Running, pin: Callable[[Intervention], Awaitable[None]]) -> None:
        await pin(asked("a", "static"))
        it.app.go_by(of("per_type", orders={"content_type": "text/new"}, mails={}))
        await asyncio.sleep(1)
        assert throttle(it) is OpenThrottle
        await pin(asked("b", None))
        assert it.app.in_force.settings.routes["r"].policy == "per_type", "as the files say now"
        assert it.app.in_force.settings is it.app.in_force.said

    boarded(story)


def test_the_one_asked_for_last_counts_when_there_are_two() -> None:
    async def story(it: Running, pin: Callable[[Intervention], Awaitable[None]]) -> None:
        await pin(asked("a", "static", 60))
        await pin(asked("b", "per_type", 10))
        assert it.app.in_force.settings.routes["r"].policy == "per_type"
        await asyncio.sleep(12)
        assert it.app.in_force.settings.routes["r"].policy == "static"

    boarded(story)


def test_a_pause_stays_when_a_policy_comes_and_is_taken_back() -> None:
    async def story(it: Running, pin: Callable[[Intervention], Awaitable[None]]) -> None:
        await pin(asked("p", None, mode=Mode.PAUSE, types=("mails",), routes=()))
        for policy in ("static", None):
            await pin(asked("a" if policy else "b", policy))
            assert it.app.assignment.listeners["mails"].stance.mode is Mode.PAUSE

    boarded(story)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"policy": "fast"}, "the policy is none of"),
        ({"policy": None}, "what sets a policy names one"),
        ({"policy": "static", "routes": ()}, "an intervention names 1 to"),
        ({"policy": "static", "types": ("mails",)}, "a policy is set for routes"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_it_is_made(fields: dict[str, Any], why: str) -> None:
    given: dict[str, Any] = {"types": (), "classes": (), "routes": ("r",)} | fields
    with pytest.raises(ValueError, match=why):
        Intervention(id="a", mode=Mode.POLICY, by="ann", why=None, at_ms=0, until_ms=1_000, **given)


@pytest.mark.parametrize("said", POLICIES)
@pytest.mark.parametrize("policy", POLICIES)
def test_all_else_is_as_the_files_say_when_a_policy_is_put_above_them(said: str, policy: Any) -> None:
    route = Route.model_validate({"exchange": "x", "policy": said})
    force = InForce(settings(routes={"r": route, "other": Route(exchange="y")}))
    before = force.settings
    force.steer({"r": policy, "gone": "static"})
    assert force.settings.routes["r"].policy == policy
    assert {key for key in Settings.model_fields if getattr(force.settings, key) != getattr(before, key)} <= {"routes"}
    assert force.settings.routes["other"] == before.routes["other"]
    force.steer({})
    assert force.settings is before

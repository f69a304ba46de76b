"""The metric log tells which settings are in force from when on, whoever changed them."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from proxy.model import Mode, Note
from proxy.operations.intervention import Intervention
from proxy.settings import DEFAULT_CLASSES, Route, Settings, Slo
from tests.support.memory_board import MemoryBoard
from tests.support.reloaded import Running, lived, of
from tests.unit.test_policy_for_a_time import asked, boarded


def changed(**parts: Any) -> Settings:
    given = of("class_budget", orders={}, mails={})
    return Settings(**{key: getattr(given, key) for key in Settings.model_fields} | parts)


def told(it: Running) -> list[Mapping[str, Any]]:
    return [one for one in it.records if one["kind"] == "settings"]


def test_other_settings_are_recorded_whole_when_they_come_into_force() -> None:
    async def story(it: Running) -> None:
        (start,) = (one for one in it.records if one["kind"] == "start")
        assert told(it) == []
        shadow = Route(exchange="x", policy="class_budget", queues=("q1",), shadow=True)
        it.app.go_by(changed(routes={"r": shadow, "more": Route(exchange="y", policy="static")}))
        await asyncio.sleep(1)
        slo = Slo(within=2.0, share=0.99, judges="bridge")
        it.app.go_by(changed(classes=DEFAULT_CLASSES | {"P1": DEFAULT_CLASSES["P1"].model_copy(update={"slo": slo})}))
        first, second = told(it)
        assert second["at_ms"] - first["at_ms"] == 1_000
        assert first["routes"] == {
            "r": {"policy": "class_budget", "queues": ["q1"]},
            "more": {"policy": "static", "queues": []},
        }
        assert json.loads(first["settings"])["routes"] == {
            "r": {"shadow": True},
            "more": {"policy": "static"},
        }
        assert first["slos"] is None
        assert second["routes"] == start["routes"]
        assert second["slos"] == {"P1": {"within_s": 2.0, "share": 0.99, "judges": "bridge"}}

    lived(story, of("class_budget", orders={}, mails={}))


def test_nothing_is_recorded_when_only_event_types_change() -> None:
    async def story(it: Running) -> None:
        it.app.go_by(of("static", orders={"content_type": "text/new"}, mails={}))
        await asyncio.sleep(1)
        assert told(it) == []

    lived(story)


def test_a_policy_is_recorded_from_its_begin_to_its_end_when_a_person_asks_for_it() -> None:
    found: list[tuple[str, int]] = []

    async def story(it: Running, pin: Any) -> None:
        begun_ms = int(asyncio.get_running_loop().time() * 1000)
        await pin(asked("a", "static", 10))
        await asyncio.sleep(12)
        found.extend((one["routes"]["r"]["policy"], (one["at_ms"] - begun_ms) // 5_000) for one in told(it))

    boarded(story)
    assert found == [("static", 0), ("class_budget", 2)]


def test_a_policy_that_holds_already_is_recorded_behind_the_start_when_a_replica_begins() -> None:
    board = MemoryBoard()
    given = Intervention("a", Mode.POLICY, (), (), "ann", None, 0, 60_000, routes=("r",), policy="per_type")
    board.notes.append(Note(given.key, given.as_json()))

    async def story(it: Running) -> None:
        kinds = [(one["kind"], one["routes"]["r"]["policy"]) for one in it.records if "routes" in one and "slos" in one]
        assert kinds == [("start", "static"), ("settings", "per_type")]

    lived(story, board=board)

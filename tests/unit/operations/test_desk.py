"""Interventions asked for over HTTP: pinned for the group, answered by its replicas, or refused."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from proxy.errors import LogError
from proxy.kafka_log.own_topic import Member
from proxy.model import Mode
from proxy.operations import desk, endpoints, intervening, pinned
from proxy.operations.admin import Admin
from proxy.operations.desk import Desk
from proxy.operations.intervention import Answer, Intervention, read
from proxy.settings import AdminSettings
from tests.support.memory_board import MemoryBoard
from tests.support.process import settings
from tests.unit.operations.test_endpoints import misfit

PAUSE = {"mode": "pause", "class": "P1", "for": "10m", "why": "a flood", "who": "ann"}
ONE, OTHER = Member("m-1", "10.0.0.1"), Member("m-2", "10.0.0.2")


class Group:
    """A group's board, its desk, and a replica that answers."""

    def __init__(self, client: aiohttp.ClientSession, board: MemoryBoard) -> None:
        self.client, self.board = client, board

    @property
    def pinned(self) -> list[Intervention]:
        return [said for said in map(read, self.board.notes) if isinstance(said, Intervention)]

    async def ask(self, body: Any = PAUSE, **parts: Any) -> tuple[int, Any]:
        async with self.client.post("/interventions", **(parts or {"json": body})) as answer:
            told = await answer.json()
            form = endpoints.BEGIN.told[answer.status].schema
            assert form is not None
            assert misfit(form, told) == ""
            return answer.status, told

    async def end(self, id_: str, **query: str) -> tuple[int, Any]:
        async with self.client.delete(f"/interventions/{id_}", params=query) as answer:
            assert answer.status in endpoints.END.told
            return answer.status, await answer.json()

    async def listed(self) -> tuple[int, Any]:
        async with self.client.get("/interventions") as answer:
            assert answer.status in endpoints.LIST.told
            return answer.status, await answer.json()


async def answering(board: MemoryBoard, member: Member) -> None:
    """Answer as a replica does."""
    while True:
        for note in await board.news():
            said = read(note)
            if isinstance(said, Intervention):
                answer = Answer(said.id, f"host of {member.id}", member.id, 2, said.at_ms, said.ended_by is not None)
                await board.pin(answer.key, answer.as_json())
        await asyncio.sleep(0.001)


@asynccontextmanager
async def group(*, silent: bool = False) -> AsyncIterator[Group]:
    """Open the desk of a group of two; `silent`: the second one does not answer."""
    board = MemoryBoard()
    board.present = [ONE, OTHER]
    made = Admin(AdminSettings(listen="127.0.0.1:0"), status=dict, families=list, desk=Desk(settings, board))
    tasks = [asyncio.create_task(made.run())]
    tasks += [asyncio.create_task(answering(board.beside(), one)) for one in ([ONE] if silent else [ONE, OTHER])]
    try:
        async with asyncio.timeout(5):
            while made.port is None:  # noqa: ASYNC110 -- seen by looking
                await asyncio.sleep(0.001)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{made.port}") as client, asyncio.timeout(15):
            yield Group(client, board)
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError, LogError):
                await task


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervening, "ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(intervening, "_LOOK_SECONDS", 0.005)


async def test_it_is_pinned_for_the_group_with_who_and_why_and_every_answer_is_told() -> None:
    async with group() as one:
        with capture_logs() as said:
            status, told = await one.ask()
        (pinned,) = one.pinned
        assert (status, told["id"], told["silent"]) == (201, pinned.id, [])
        assert (pinned.mode, pinned.classes, pinned.by, pinned.why) == (
            Mode.PAUSE,
            ("P1",),
            "127.0.0.1: ann",
            "a flood",
        )
        assert pinned.until_ms - pinned.at_ms == 600_000
        assert [(its["id"], its["answer"]["types"]) for its in told["replicas"]] == [("m-1", 2), ("m-2", 2)]
        assert [(line["event"], line["by"]) for line in said] == [("intervention_pinned", "127.0.0.1: ann")]
        assert await one.listed() == (200, {"interventions": [told]})


async def test_the_silent_replica_is_named_when_only_the_other_answers() -> None:
    async with group(silent=True) as one:
        status, told = await one.ask({**PAUSE, "type": ["orders", "news.a"]})
        assert (status, told["silent"], told["types"]) == (201, ["m-2"], ["orders", "news.a"])


async def test_one_is_ended_with_who_and_why_and_the_end_is_answered_too_and_again_changes_nothing() -> None:
    async with group() as one:
        _, told = await one.ask()
        status, ended = await one.end(told["id"], who="bob", why="done with")
        assert (status, ended["ended_by"], ended["ended_why"]) == (200, "127.0.0.1: bob", "done with")
        assert [its["answer"]["has_ended"] for its in ended["replicas"]] == [True, True]
        assert await one.listed() == (200, {"interventions": []})
        _, again = await one.end(told["id"], who="carl")
        assert again["ended_by"] == "127.0.0.1: bob"
        assert (await one.end("nobody"))[0] == 404
        assert (await one.end(told["id"], whom="x"))[0] == 400
        assert (await one.end(told["id"], why=" "))[0] == 400


async def test_what_is_paused_runs_again_for_as_long_as_that_would_have_lasted_when_it_is_to_run() -> None:
    async with group() as one:
        assert (await one.ask({"mode": "run", "type": "orders"}))[0] == 409
        _, paused = await one.ask()
        status, told = await one.ask({"mode": "run", "type": "orders"})
        assert (status, told["mode"], told["until_ms"]) == (201, "run", paused["until_ms"])


async def test_a_class_that_is_to_run_names_its_types_that_are_held_and_is_refused_when_these_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with group() as one:
        await one.ask({"mode": "pause", "type": "orders", "for": "10m"})
        monkeypatch.setattr(pinned, "MOST_NAMES", 1)
        status, told = await one.ask({"mode": "run", "class": "P1"})
        assert (status, "resume some of them first, by name: orders" in told["error"]) == (409, True)
        monkeypatch.undo()
        status, told = await one.ask({"mode": "run", "class": "P1"})
        assert (status, told["types"], told["classes"]) == (201, ["orders"], ["P1"])


async def test_a_policy_is_pinned_for_a_route_and_taken_back() -> None:
    policy = {"mode": "policy", "route": "r", "policy": "static", "for": "30m", "why": "too slow"}
    async with group() as one:
        status, told = await one.ask(policy)
        assert (status, told["routes"], told["policy"], told["types"]) == (201, ["r"], "static", [])
        assert (one.pinned[0].routes, one.pinned[0].policy) == (("r",), "static")
        for wrong, why in (
            ({"route": "s"}, 'route "s" does not exist'),
            ({"route": []}, "say which routes are meant, by route"),
            ({"policy": "fast"}, "the policy is none of static, per_type, class_budget"),
            ({"type": "orders"}, "a policy is set for routes"),
            ({"mode": "pause"}, "what sets a policy names one"),
        ):
            status, told = await one.ask(policy | wrong)
            assert status == 400
            assert why in told["error"]
        status, told = await one.ask({"mode": "run", "route": "r"})
        assert (status, told["routes"]) == (201, ["r"])
        assert (await one.ask({"mode": "run", "route": "r"}))[0] == 409


async def test_a_cap_is_pinned_with_its_rate() -> None:
    async with group() as one:
        status, told = await one.ask({**PAUSE, "mode": "cap", "rate": 50})
        assert (status, told["rate"], one.pinned[0].rate) == (201, 50, 50)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"mode": None}, "say what is to become of the events, by mode: run, pause, discard, cap"),
        ({"mode": "puase"}, 'mode "puase" does not exist; did you mean "pause"?'),
        ({"mode": ["pause"]}, "mode must be a text"),
        ({"class": None, "type": None}, "type must be a name, or a list of names"),
        ({"class": []}, "say which event types are meant, by type or class"),
        ({"class": "P9"}, 'class "P9" does not exist'),
        ({"class": ["P1", 7]}, "class must be a name"),
        ({"type": "ordres"}, 'event type "ordres" does not exist; did you mean "orders"?'),
        ({"type": [f"news.{at}" for at in range(1_001)]}, "names 1 to 1000 event types and classes"),
        ({"for": None}, "say when it ends"),
        ({"for": "8d"}, "it must end 1 second to 7 days from now"),
        ({"for": "0s"}, "it must end"),
        ({"for": "soon"}, "for is no duration"),
        ({"for": 1e300}, "it must end"),
        ({"for": True}, "for is no duration"),
        ({"until": "2026-11-23T20:58:12Z"}, "by for or by until, not by both"),
        ({"for": None, "until": "2026-11-23T20:58:12"}, "until is no time with its zone"),
        ({"for": None, "until": "2001-11-23T20:58:12Z"}, "it must end"),
        ({"for": None, "until": "0001-01-01T00:00:00+23:00"}, "it must end"),
        ({"rate": 5}, "a cap has a rate, and nothing else has one"),
        ({"mode": "cap"}, "a cap has a rate, and nothing else has one"),
        ({"mode": "cap", "rate": "5"}, "rate must be a number of events a second"),
        ({"mode": "cap", "rate": True}, "rate must be a number"),
        ({"mode": "cap", "rate": 0}, "rate is not 0.1 to 1e+09 events a second"),
        ({"why": ""}, "why must be a text of 1 to 500"),
        ({"who": "x" * 501}, "who must be a text of 1 to 500"),
        ({"classs": "P3"}, '"classs" means nothing; did you mean "class"?'),
        ({"\x1b[2J": 1}, '"\\u001b[2J" means nothing'),
    ],
)
async def test_a_mistake_is_told_and_changes_nothing(change: dict[str, Any], why: str) -> None:
    async with group() as one:
        kept = [name for name, value in change.items() if value is None and name != "type"]
        status, told = await one.ask({name: value for name, value in {**PAUSE, **change}.items() if name not in kept})
        assert (status, one.board.notes) == (400, [])
        assert why in told["error"]


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ({"data": json.dumps(PAUSE), "headers": {"Content-Type": "text/plain"}}, 415),
        ({"data": PAUSE}, 415),
        ({"json": [PAUSE]}, 400),
        ({"data": b"{", "headers": {"Content-Type": "application/json"}}, 400),
        ({"data": b'{"mode": NaN}', "headers": {"Content-Type": "application/json"}}, 400),
        (
            {"data": b'{"mode": "run", "class": "P3", "class": "P1"}', "headers": {"Content-Type": "application/json"}},
            400,
        ),
        ({"data": b"[" * 60_000, "headers": {"Content-Type": "application/json"}}, 400),
        ({"data": b"\xff\xfe", "headers": {"Content-Type": "application/json"}}, 400),
        ({"json": {**PAUSE, "why": "x" * 70_000}}, 413),
    ],
    ids=["text", "form", "list", "cut off", "no number", "twice", "deep", "no text", "long"],
)
async def test_what_is_no_question_of_ours_is_refused_and_changes_nothing(parts: dict[str, Any], status: int) -> None:
    async with group() as one:
        assert (await one.ask(**parts))[0] == status
        assert one.board.notes == []


async def test_a_question_that_never_arrives_whole_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "BODY_SECONDS", 0.05)
    never = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b'{"mode": '
        await never.wait()

    async with group() as one:
        status, _ = await one.ask(data=body(), headers={"Content-Type": "application/json"})
        assert (status, one.board.notes) == (408, [])


async def test_so_many_questions_wait_at_a_time_and_one_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "MOST_PENDING", 2)
    async with group(silent=True) as one:
        first = [asyncio.create_task(one.ask()) for _ in range(2)]
        while len(one.pinned) < 2:  # noqa: ASYNC110 -- seen by looking
            await asyncio.sleep(0.001)
        assert [(await one.ask())[0], (await one.listed())[0]] == [429, 429]
        assert [status for status, _ in await asyncio.gather(*first)] == [201, 201]
        assert len(one.pinned) == 2
        assert (await one.ask())[0] == 201


async def test_it_is_said_what_became_of_it_when_kafka_is_away() -> None:
    async with group() as one:
        one.board.failure = LogError("Kafka does not answer")
        for status, told in (await one.ask(), await one.end("a")):
            assert (status, told["error"]) == (503, "Kafka does not answer; nothing was changed")
        one.board.failure = None
        one.board.silent_after = 1
        status, told = await one.ask()
        (pinned,) = one.pinned
        assert status == 503
        assert told["error"].startswith("it is pinned, but who has answered is not known: ")
        assert told["error"].endswith(f"its id is {pinned.id}")


async def test_no_more_than_a_thousand_hold_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "MOST_HELD", 1)
    async with group() as one:
        assert [(await one.ask())[0], (await one.ask())[0]] == [201, 409]
        assert len(one.pinned) == 1

"""`tidegate top`: one replica and several, in a real terminal and for scripts, and what it refuses."""

import asyncio
import contextlib
import json
import os
import re
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from load.told_view import ToldView
from proxy.errors import SettingsError
from proxy.operations import stream as stream_module
from proxy.operations.admin import Admin
from proxy.operations.stream import Stream
from proxy.operations.top_group import Group
from proxy.operations.top_links import Link, Replica, context
from proxy.operations.top_screen import Choice, Style, lines
from proxy.operations.top_sum import summed
from proxy.operations.view import COLUMNS
from proxy.settings import AdminSettings
from tests.support.terminal import terminal

TOKEN = "a-token-of-sixteen-letters"


@asynccontextmanager
async def served(view: ToldView, **settings: Any) -> AsyncIterator[str]:
    """Serve a view; give its address."""
    stream = Stream(view)
    admin = Admin(AdminSettings(**{"listen": "127.0.0.1:0", **settings}), status=dict, families=list, stream=stream)
    tasks = [asyncio.create_task(stream.run()), asyncio.create_task(admin.run())]
    try:
        async with asyncio.timeout(5):
            while admin.port is None:  # noqa: ASYNC110 - seen by looking
                await asyncio.sleep(0.001)
        yield f"127.0.0.1:{admin.port}"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "SECONDS", 0.05)


async def answered(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """Run the command to its end; return exit code, stdout, stderr."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "proxy",
        "top",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
    )
    async with asyncio.timeout(30):
        out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def told(view: ToldView, instance: str) -> Replica:
    """A replica that has told everything."""
    replica = Replica(instance)
    replica.take({**json.loads(view.whole()), "instance": instance})
    return replica


async def test_it_prints_the_four_answers_classes_gates_and_types_once_for_scripts() -> None:
    async with served(ToldView()) as address:
        code, out, err = await answered("--once", "--admin", address, COLUMNS="80")
    assert (code, err) == (0, "")
    for words in ("LATE", "DROP?", "BETTER?", "P3", "GATE", "mail", "congested", "shop.campaign-0029", "rate"):
        assert words in out
    assert max(map(len, out.splitlines())) <= 80


async def test_a_route_in_shadow_is_told_as_such_with_what_would_be_allowed_however_narrow_the_terminal() -> None:
    told_view = ToldView(shadow=True)
    for width in (40, 79):
        shown = lines(summed([await told(told_view, "gate-0")]), Choice(), width, 24)
        (mail,) = [line for line in shown if line.text.startswith("mail ")]
        (push,) = [line for line in shown if line.text.startswith("push ")]
        assert "shadow congested" in mail.text
        assert mail.style is Style.PLAIN, "nothing is held back"
        assert "shadow" not in push.text
    assert "would be P1 900" in mail.text


async def test_it_is_told_how_many_routes_are_in_shadow_when_there_is_no_room_for_them() -> None:
    replicas = [await told(ToldView(shadow=True), f"gate-{number}") for number in range(4)]
    shown = lines(summed(replicas), Choice(), 79, 24)
    assert "and 4 more" in [line.text for line in shown]
    hidden = summed([await told(ToldView(), f"gate-{number}") for number in range(3)])
    hidden.routes["push at gate-2"]["shadow"] = True
    assert "and 2 more, 1 in shadow" in [line.text for line in lines(hidden, Choice(), 79, 24)]


async def test_it_prints_json_for_programs() -> None:
    async with served(ToldView(), token=TOKEN) as address:
        code, out, _ = await answered("--json", "--admin", address, TIDEGATE_ADMIN_TOKEN=TOKEN)
    found = json.loads(out)
    assert code == 0
    assert set(found) == {"at_ms", "replicas", "answers", "classes", "routes", "held", "refused", "types"}
    assert found["replicas"][0]["instance"] == "gate-0-7-1795463012"
    assert len(found["types"]) == 30


async def test_replicas_are_summed_up_when_there_are_several() -> None:
    one, other = await told(ToldView(), "gate-0"), await told(ToldView(), "gate-1")
    alone, both = summed([one]), summed([one, other])
    assert both.classes["P3"]["lag"] == 2 * alone.classes["P3"]["lag"]
    assert both.classes["P3"]["lag_age_s"] == alone.classes["P3"]["lag_age_s"]
    assert set(both.routes) == {"mail at gate-0", "push at gate-0", "mail at gate-1", "push at gate-1"}
    assert {line.name: line.waits for line in both.types} == {line.name: 2 * line.waits for line in alone.types}
    assert both.answers["better"] != "Not known yet."


async def test_why_names_each_route_once_and_on_how_many_replicas_when_several_are_congested() -> None:
    replicas = [await told(ToldView(), f"gate-{number}") for number in range(3)]
    verdict = replicas[1].told["routes"]["mail"]["verdict"]
    replicas[1].told["routes"]["mail"]["verdict"] = verdict | {"queue_delay_s": 7.0, "why": "an event would wait 7 s"}
    for replica, state in ((replicas[2], "calm"), (replicas[0], "shut")):
        push = replica.told["routes"]["push"]
        push["verdict"] = push["verdict"] | {"congested": state == "shut", "why": "it is slow"}
        push["lane"] = push["lane"] | {"state": "lost" if state == "shut" else "open"}
    assert summed(replicas).answers["why"] == (
        "route push on 1 of 3 replicas: its connection is lost; route mail on 3 of 3 replicas: an event would wait 7 s."
    )
    assert "replicas" not in summed(replicas[1:2]).answers["why"]


async def test_why_prefers_what_knows_no_delay_when_that_holds_back_most() -> None:
    replicas = [await told(ToldView(), f"gate-{number}") for number in range(2)]
    verdict = replicas[0].told["routes"]["mail"]["verdict"]
    replicas[0].told["routes"]["mail"]["verdict"] = verdict | {"queue_delay_s": None, "why": "nobody consumes"}
    assert summed(replicas).answers["why"] == "route mail on 2 of 2 replicas: nobody consumes."


async def test_refused_files_are_said_once_when_several_replicas_refuse_them() -> None:
    view = ToldView()
    view.refused = ["tidegate.yaml:3: no\x1b[31m", "tidegate.yaml:9: neither"]
    found = summed([await told(view, "gate-0"), await told(view, "gate-1"), await told(ToldView(), "gate-2")])
    said = [line for line in lines(found, Choice(), 79, None) if line.text.startswith("REFUSED")]
    assert [line.style for line in said] == [Style.BAD, Style.BAD]
    assert [line.text for line in said] == [
        "REFUSED  tidegate.yaml:3: no\\x1b[31m",
        "REFUSED  tidegate.yaml:9: neither",
    ]


async def test_a_cap_is_named_in_the_row_of_its_type_however_many_replicas_there_are() -> None:
    view = ToldView(types=3)
    view.cap = 50.0
    for replicas in (
        [await told(view, "gate-0")],
        [await told(ToldView(types=3), "gate-1"), await told(view, "gate-0")],
    ):
        shown = [line.text for line in lines(summed(replicas), Choice(), 79, None)]
        assert any(line.startswith("shop.campaign-0002") and line.rstrip().endswith("cap 50/s, rate") for line in shown)


async def test_an_older_replica_tells_nothing_of_caps_and_refused_files() -> None:
    replica = await told(ToldView(types=3), "gate-0")
    del replica.told["refused"]
    replica.told["columns"].remove("cap")
    found = summed([replica])
    assert (found.refused, {line.cap for line in found.types}) == ([], {None})


async def test_all_routes_and_whole_answers_are_shown_when_there_is_room() -> None:
    replicas = [await told(ToldView(ending="-" + "long" * 20), f"gate-{number}") for number in range(4)]
    found = summed(replicas)
    found.answers["why"] = "word " * 100
    for height, gates, words in ((24, 4, 2), (60, 8, 5), (None, 8, 8)):
        said = [line.text for line in lines(found, Choice(), 79, height)]
        first = next(place for place, text in enumerate(said) if text.startswith("GATE"))
        assert sum("open" in text or "congested" in text for text in said[first + 1 :][:8]) == gates
        assert sum("word word" in text for text in said) == words
        assert any("and 4 more" in text for text in said) == (gates == 4)


async def test_a_replica_that_is_away_counts_until_others_have_its_partitions_and_again_when_it_comes() -> None:
    replicas = [await told(ToldView(types=3), f"gate-{number}") for number in range(3)]
    for one in replicas:
        one.why = ""
    group = Group(replicas)
    alone, everything = summed(replicas[:1]).classes["P3"]["lag"], 3 * summed(replicas[:1]).classes["P3"]["lag"]
    assert group.summed().classes["P3"]["lag"] == everything
    replicas[2].why = "Connection refused"
    found = group.summed()
    assert found.classes["P3"]["lag"] == everything, "nobody else tells of it"
    assert "what is shown of it is old" in lines(found, Choice(), 200, 24)[1].text
    owned = COLUMNS.index("partitions")
    for one in replicas[:2]:
        for name, row in one.told["types"].items():
            one.told["types"][name] = [*row[:owned], row[owned] + 2, *row[owned + 1 :]]
    found = group.summed()
    assert found.classes["P3"]["lag"] == 2 * alone
    assert "others have its partitions" in lines(found, Choice(), 200, 24)[1].text
    assert found.answers["better"] == "Not known yet.", "what moved from one to another is no trend"
    assert found.replicas[2]["counts"] is False
    replicas[2].why = ""
    assert group.summed().classes["P3"]["lag"] == everything


async def test_one_that_is_away_counts_on_when_there_is_no_other() -> None:
    (one,) = replicas = [await told(ToldView(types=3), "gate-0")]
    group = Group(replicas)
    before, one.why = group.summed(), "Connection refused"
    assert group.summed().classes == before.classes


async def test_a_replica_follows_what_changes_and_forgets_what_has_gone() -> None:
    replica = await told(ToldView(), "gate-0")
    name = next(iter(replica.told["types"]))
    replica.take({"at_ms": 5, "types": {name: None}, "classes": {}, "point": [5, [[1, 0.1]], [0.0]], "held": []})
    assert name not in replica.told["types"]
    assert len(replica.told["types"]) == 29
    assert replica.told["points"][-1][0] == 5
    assert replica.told["instance"] == "gate-0"


@pytest.mark.parametrize(("width", "height"), [(79, 24), (40, 10), (200, 60)])
async def test_what_is_shown_fits_the_terminal_when_names_are_long(width: int, height: int) -> None:
    held = {"id": "a", "mode": "pause", "types": ["x" * 200], "classes": ["P3"], "by": "ann", "why": "w" * 300}
    view = ToldView(ending="-\x1b[31m" + "long" * 50, held=({**held, "at_ms": 0, "until_ms": 1_795_475_800_000},))
    shown = lines(summed([await told(view, "gate-0")]), Choice(), width, height)
    assert len(shown) == height
    assert max(len(line.text) for line in shown) <= width
    assert not any("\x1b" in line.text for line in shown)


async def test_keys_sort_filter_and_end_it_in_a_terminal() -> None:
    async with served(ToldView()) as address, terminal("top", "--admin", address) as shown:
        # Which of the campaigns waits most is another one at every look.
        await shown.shows(lambda text: "LATE" in text and bool(re.search(r"EVENT TYPE.*\nshop.campaign-", text)))
        shown.press("n")
        await shown.shows(lambda text: bool(re.search(r"EVENT TYPE.*\nshop.brand-alert-0001", text)))
        shown.press("r")
        await shown.shows(lambda text: bool(re.search(r"EVENT TYPE.*\nshop.order-0027", text)))
        shown.press("/order-0003")
        await shown.shows(lambda text: "filter: order-0003_" in text and "shop.order-0027" not in text)
        shown.press("\n")
        await shown.shows(lambda text: "1 type " in text)
        shown.press("q")
        assert await shown.ends() == 0


async def test_it_says_so_and_comes_again_when_a_replica_goes_and_comes() -> None:
    async with contextlib.AsyncExitStack() as stack:
        async with served(ToldView()) as address:
            shown = await stack.enter_async_context(terminal("top", "--admin", address))
            await shown.shows(lambda text: "30 types" in text)
        await shown.shows(lambda text: "what is shown of it is old" in text)
        async with served(ToldView(types=3), listen=address):
            await shown.shows(lambda text: "3 types" in text and "is old" not in text)
            shown.press("q")
            assert await shown.ends() == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--admin", "127.0.0.1:1"), "127.0.0.1:1: Connection refused"),
        (("--admin", "127.0.0.1:x"), "--admin 127.0.0.1:x"),
        (("--admin", "ftp://h"), "--admin ftp://h is no address"),
        (("--token-file", "/none"), "--token-file /none can't be read: No such file or directory"),
        (("--ca-file", "/none"), "/none can't be used: No such file or directory"),
        (("--key", "/none"), "--key is of no use without --cert"),
    ],
)
async def test_a_mistake_ends_it_with_2_and_its_reason(arguments: tuple[str, ...], words: str) -> None:
    code, out, err = await answered("--once", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


async def test_a_token_is_refused_and_not_shown_when_no_header_can_bear_it() -> None:
    code, out, err = await answered("--once", "--admin", "127.0.0.1:1", TIDEGATE_ADMIN_TOKEN="con\nfidential")
    assert (code, out) == (2, "")
    assert "TIDEGATE_ADMIN_TOKEN holds no token" in err
    assert "fidential" not in err


async def test_every_address_that_is_wrong_is_named(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("no-token-of-this-bridge\n")
    async with served(ToldView(), token=TOKEN) as guarded, served(ToldView()) as fine:
        code, _, err = await answered(
            "--once", "--admin", guarded, "--admin", "127.0.0.1:1", "--admin", fine, "--token-file", f"{tmp_path}/token"
        )
        _, _, tls = await answered("--once", "--admin", f"https://{fine}")
    assert code == 2
    assert f"{guarded}: the token is wrong" in err
    assert "127.0.0.1:1: " in err
    assert fine not in err
    assert "TLS fails" in tls


async def test_the_others_are_shown_when_one_replica_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.shutdown(socket.SHUT_RDWR)  # listens no more, and keeps the port
        away = f"127.0.0.1:{server.getsockname()[1]}"
        async with served(ToldView()) as fine:
            code, out, _ = await answered("--once", "--admin", away, "--admin", fine, COLUMNS="100")
            _, told_json, _ = await answered("--json", "--admin", away, "--admin", fine)
    assert code == 1
    assert f"{away}: Connection refused; nothing of it is shown" in out
    assert "shop.campaign-0029" in out
    found = json.loads(told_json)
    assert [one["why"] for one in found["replicas"]] == ["Connection refused", None]
    assert len(found["types"]) == 30


async def test_what_any_replica_says_of_the_log_is_in_the_answers_once() -> None:
    one, other = await told(ToldView(), "gate-0"), await told(ToldView(), "gate-1")
    for replica in (one, other):
        replica.take({"at_ms": 5, "unread": ["a is not read"], "nearly_lost": ["b: soon gone"]})
    found = summed([one, other]).answers
    assert found["why"].startswith("a is not read; route ")
    assert found["late"].startswith("b: soon gone; P")


async def test_it_needs_a_terminal_or_a_word_that_it_has_none() -> None:
    async with served(ToldView()) as address:
        code, _, err = await answered("--admin", address)
    assert (code, err) == (2, "top needs a terminal; without one say --once or --json\n")


async def test_who_answers_but_is_no_tidegate_is_named_as_such() -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(other, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        link = Link(f"127.0.0.1:{port}", None, context(None, None, None))
        with pytest.raises(SettingsError, match=r"what answers is no Tidegate that has /stream \(status 404\)"):
            await asyncio.to_thread(link.first)

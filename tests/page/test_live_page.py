"""The live page in a real browser: what it shows, by keyboard, light and dark, on a phone, with and without a word."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from load.told_view import ToldView
from proxy.operations import stream as stream_module
from proxy.operations.admin import Admin
from proxy.operations.stream import Stream
from proxy.settings import AdminSettings

LOOP = "session"
pytestmark = pytest.mark.asyncio(loop_scope=LOOP)
TOKEN = "a-token-of-sixteen-letters"
HOSTILE = "</script><script>alert('x')</script><img src=x onerror=alert(1)>"
SIDEWAYS = """() => [...document.querySelectorAll('body *')]
  .filter((part) => part.offsetParent !== null && !part.closest('td, button'))
  .filter((part) => part.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((part) => `${part.tagName}.${part.className}#${part.id} ${part.textContent.slice(0, 60)}`)"""
FIRST_NAMES = "() => [...document.querySelectorAll('#rows .open')].slice(0, 3).map((one) => one.textContent)"


@dataclass
class Live:
    """A page, who serves it, and what it should not do."""

    page: Page
    stream: Stream
    admin: Admin
    view: ToldView
    tasks: list[asyncio.Task[None]]
    address: str = ""
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    async def shown(self) -> None:
        """Wait until it shows something."""
        await self.page.locator("#classes article").first.wait_for()

    async def close(self) -> None:
        """End whoever serves it."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


Open = Callable[..., Awaitable[Live]]


async def listening(admin: Admin) -> str:
    async with asyncio.timeout(10):
        while admin.port is None:  # noqa: ASYNC110 - seen by looking
            await asyncio.sleep(0.005)
    return f"http://127.0.0.1:{admin.port}/"


def made(view: ToldView, **settings: Any) -> tuple[Stream, Admin, list[asyncio.Task[None]]]:
    stream = Stream(view)
    admin = Admin(AdminSettings(**{"listen": "127.0.0.1:0", **settings}), status=dict, families=list, stream=stream)
    return stream, admin, [asyncio.create_task(stream.run()), asyncio.create_task(admin.run())]


@pytest_asyncio.fixture(loop_scope=LOOP)
async def live(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Open]:
    """Serve a view and open its page; five events a second."""
    monkeypatch.setattr(stream_module, "SECONDS", 0.2)
    contexts, opened = [], []

    async def open_page(
        view: ToldView | None = None, *, width: int = 1280, height: int = 900, scheme: Any = "light", **settings: Any
    ) -> Live:
        view = view or ToldView()
        stream, admin, tasks = made(view, **settings)
        address = await listening(admin)
        contexts.append(await browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme))
        seen = Live(await contexts[-1].new_page(), stream, admin, view, tasks, address)
        opened.append(seen)
        seen.page.on("console", lambda message: seen.errors.append(message.text))
        seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
        seen.page.on("dialog", lambda dialog: seen.errors.append(dialog.message))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        await seen.page.goto(address)
        return seen

    yield open_page
    for context in contexts:
        await context.close()
    for one in opened:
        with suppress(Exception):
            await one.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
async def test_it_loads_nothing_foreign_and_tells_no_error_while_it_is_told_news(
    live: Open, scheme: str, width: int
) -> None:
    seen = await live(width=width, scheme=scheme)
    await seen.shown()
    looks = seen.view.looks
    await expect(seen.page.locator("#link")).to_have_attribute("data-state", "live")
    async with asyncio.timeout(10):
        while seen.view.looks < looks + 5:  # noqa: ASYNC110 - seen by looking
            await asyncio.sleep(0.01)
    assert seen.errors == []
    assert {url for url in seen.requests if not url.startswith(("data:", seen.address))} == set()
    paper = await seen.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
    assert (int(paper) < 100) == (scheme == "dark")


async def test_the_four_questions_are_answered_and_go_on_being_answered(live: Open) -> None:
    seen = await live()
    await seen.shown()
    await expect(seen.page.locator("#late")).to_contain_text("P3: ")
    await expect(seen.page.locator("#why")).to_have_text(
        "route mail: an event would wait 0.19 s in queue mail.out: too long for P3."
    )
    await expect(seen.page.locator("#drop")).to_contain_text("P3, the least important class that waits")
    before = await seen.page.locator("#better").text_content()
    await expect(seen.page.locator("#better")).not_to_have_text(before or "")


@pytest.mark.parametrize("width", [1280, 700, 360])
async def test_nothing_scrolls_sideways_when_names_are_long(live: Open, width: int) -> None:
    held = {"id": "a", "mode": "pause", "types": ["x" * 200], "classes": ["P3"], "by": "b" * 200, "why": "w" * 300}
    view = ToldView(ending="-of-a-very-long-name" * 10, held=({**held, "at_ms": 0, "until_ms": 1_795_475_800_000},))
    seen = await live(view, width=width)
    await seen.shown()
    await seen.page.locator("#rows .open").first.click()
    assert await seen.page.evaluate("document.scrollingElement.scrollWidth <= window.innerWidth")
    assert await seen.page.evaluate(SIDEWAYS) == []
    name = await seen.page.locator("#rows .c-name").first.bounding_box()
    assert name["width"] > width / 5


async def test_a_name_that_is_markup_stays_text(live: Open) -> None:
    seen = await live(ToldView(ending=HOSTILE))
    await seen.shown()
    await seen.page.locator("#rows .open").first.click()
    assert HOSTILE in (await seen.page.locator("#rows .open").first.text_content() or "")
    assert await seen.page.locator("img").count() == 0
    assert seen.errors == []


async def test_types_are_sorted_searched_and_opened_by_keys_alone(live: Open) -> None:
    seen = await live()
    await seen.shown()
    await seen.page.locator("th button", has_text="Event type").focus()
    await seen.page.keyboard.press("Enter")
    assert await seen.page.evaluate(FIRST_NAMES) == [
        "shop.brand-alert-0001",
        "shop.brand-alert-0004",
        "shop.brand-alert-0007",
    ]
    await expect(seen.page.locator("th.c-name")).to_have_attribute("aria-sort", "ascending")
    await seen.page.keyboard.press("Space")
    assert (await seen.page.evaluate(FIRST_NAMES))[0] == "shop.order-0027"
    await seen.page.get_by_label("Search").focus()
    await seen.page.keyboard.type("alert-0004")
    await expect(seen.page.locator("#found")).to_have_text("1 of 30")
    await seen.page.keyboard.press("Tab")
    await seen.page.keyboard.press("Tab")
    for _ in range(6):  # over the headings
        await seen.page.keyboard.press("Tab")
    await seen.page.keyboard.press("Enter")
    await expect(seen.page.locator("#type h3")).to_contain_text("shop.brand-alert-0004")
    await seen.page.get_by_role("button", name="Close").press("Enter")
    await expect(seen.page.locator("#type")).to_be_hidden()


async def test_every_control_and_picture_has_a_name_for_who_can_not_see(live: Open) -> None:
    seen = await live()
    await seen.shown()
    unnamed = await seen.page.evaluate(
        """() => [...document.querySelectorAll('button, input, canvas, [role=region], section')]
        .filter((one) => !(one.textContent.trim() || one.labels?.length || one.getAttribute('aria-label')
          || one.getAttribute('aria-labelledby'))).map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []
    assert "P3" in (await seen.page.locator("canvas").first.get_attribute("aria-label") or "")


async def test_only_rows_that_can_be_seen_are_made_when_there_are_a_thousand_types(live: Open) -> None:
    seen = await live(ToldView(1_000))
    await seen.shown()
    assert await seen.page.locator("#rows tbody tr").count() < 60
    rows = seen.page.locator("#rows")
    await rows.evaluate("(rows) => { rows.scrollTop = rows.scrollHeight }")
    await expect(seen.page.locator('#rows tr[aria-rowindex="1001"]')).to_have_count(1)
    page = len((await seen.page.content()).encode())
    assert page + len(seen.view.whole()) < 1_000_000


async def test_a_token_is_asked_for_and_a_wrong_one_is_said_and_no_address_holds_it(live: Open) -> None:
    seen = await live(token=TOKEN)
    await expect(seen.page.locator("#proof-why")).to_have_text("This address wants a token.")
    await expect(seen.page.get_by_label("Token")).to_be_focused()
    await seen.page.keyboard.type("no-token-of-this-bridge")
    await seen.page.keyboard.press("Enter")
    await expect(seen.page.locator("#proof-why")).to_have_text("This token is wrong.")
    await seen.page.keyboard.type(TOKEN)
    await seen.page.keyboard.press("Enter")
    await seen.shown()
    await expect(seen.page.locator("#proof")).to_be_hidden()
    assert not any(TOKEN in url for url in seen.requests)
    assert await seen.page.evaluate("[localStorage.length, document.cookie]") == [0, ""]


async def test_it_says_so_and_comes_again_when_the_connection_goes(live: Open) -> None:
    seen = await live()
    await seen.shown()
    port = seen.admin.port
    await seen.close()
    await expect(seen.page.locator("#link")).to_have_attribute("data-state", "lost")
    await expect(seen.page.locator("#link")).to_contain_text("what you see is old")
    seen.stream, seen.admin, seen.tasks = made(seen.view, listen=f"127.0.0.1:{port}")
    await listening(seen.admin)
    await expect(seen.page.locator("#link")).to_have_attribute("data-state", "live", timeout=15_000)


async def test_what_a_person_holds_is_told_with_its_end(live: Open) -> None:
    held = {"id": "a", "mode": "pause", "types": [], "classes": ["P3"], "by": "ann", "why": "ticket 4711", "at_ms": 0}
    view = ToldView()
    view.held = [{**held, "until_ms": view.at_ms + 600_000}]
    seen = await live(view)
    await seen.shown()
    await expect(seen.page.locator("#held")).to_contain_text("P3 paused until 23:10:00")
    await expect(seen.page.locator("#held")).to_contain_text("by ann: ticket 4711")
    await expect(seen.page.locator("#routes article").first).to_contain_text("paused")
    view.held = []
    await expect(seen.page.locator("#holds")).to_be_hidden()
    assert json.loads(view.whole())["held"] == []


async def test_it_is_told_why_the_files_are_refused_as_long_as_they_are_and_what_a_cap_allows(live: Open) -> None:
    view = ToldView()
    view.refused, view.cap = ["tidegate.yaml:3: <b>no</b>", "tidegate.yaml:9: neither"], 50.0
    seen = await live(view)
    await seen.shown()
    await expect(seen.page.locator("#refusal")).to_contain_text("They are not in force")
    await expect(seen.page.locator("#refused li")).to_have_text(view.refused)
    await expect(seen.page.locator("#rows")).to_contain_text("capped at 50/s; its turn at the allowed rate")
    view.refused = []
    await expect(seen.page.locator("#refusal")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
async def test_a_route_in_shadow_says_so_and_what_it_would_do_and_no_more_when_it_is_not(
    live: Open, scheme: str, width: int
) -> None:
    view = ToldView(shadow=True)
    seen = await live(view, width=width, scheme=scheme)
    await seen.shown()
    mail, push = seen.page.locator("#routes article").first, seen.page.locator("#routes article").nth(1)
    await expect(mail.locator(".pill").first).to_have_text("in shadow")
    await expect(mail).to_contain_text("Nothing is held back: the policy only decides, and is watched.")
    await expect(mail).to_contain_text("would be congested")
    await expect(mail.locator(".gates")).to_have_attribute("aria-label", "What each class would be allowed")
    await expect(push.locator(".pill").first).to_be_hidden()
    await expect(push).not_to_contain_text("would")
    await expect(seen.page.locator("#verdicts li", has_text="mail").first).to_contain_text("would slow down")
    assert await seen.page.evaluate(SIDEWAYS) == []
    view.shadow = False
    await expect(mail.locator(".pill").first).to_be_hidden()
    await expect(mail).not_to_contain_text("Nothing is held back")
    await expect(mail.locator(".gates")).to_have_attribute("aria-label", "What each class is allowed")
    assert seen.errors == []


ANSWERS = {"replicas": [{"id": "m", "host": "h", "answer": {"types": 3}}], "silent": []}


async def asked_by(seen: Live, *, status: int = 201, answer: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Let the page find POST /interventions; return where its questions go."""
    asked: list[dict[str, Any]] = []

    async def on_openapi(route: Any) -> None:
        post = {"/interventions": {"post": {}}, "/interventions/{id}": {"delete": {}}}
        await route.fulfill(json={"paths": post})

    async def on_asked(route: Any) -> None:
        request = route.request
        asked.append({"method": request.method, "url": request.url, "body": request.post_data_json})
        await route.fulfill(json=ANSWERS if answer is None else answer, status=status)

    await seen.page.route("**/openapi.json", on_openapi)
    await seen.page.route("**/interventions**", on_asked)
    await seen.page.reload()
    await seen.shown()
    return asked


async def test_no_action_is_shown_when_this_tidegate_can_not_be_asked(live: Open) -> None:
    seen = await live()
    await seen.page.route("**/openapi.json", lambda route: route.fulfill(json={"paths": {}}))
    await seen.page.reload()
    await seen.shown()
    await expect(seen.page.locator("#link")).to_have_attribute("data-state", "live")
    assert await seen.page.locator(".acts button:visible").count() == 0


async def test_a_class_is_paused_by_keys_after_it_was_said_what_will_happen(live: Open) -> None:
    seen = await live()
    asked = await asked_by(seen)
    await seen.page.get_by_role("button", name="Pause class P3").press("Enter")
    await expect(seen.page.locator("#act-means")).to_contain_text(
        "No replica of the group sends anything more of class P3"
    )
    await expect(seen.page.locator("#act-means")).to_contain_text("events wait here now")
    await seen.page.get_by_role("textbox", name="Why").focus()
    await seen.page.keyboard.type("ticket 4711")
    await seen.page.keyboard.press("Enter")
    await expect(seen.page.locator("#act-said")).to_have_text("Done by the one replica.")
    assert [(one["method"], one["body"]) for one in asked] == [
        ("POST", {"mode": "pause", "class": "P3", "for": "10m", "why": "ticket 4711"})
    ]
    await seen.page.keyboard.press("Escape")
    await expect(seen.page.locator("#act")).to_be_hidden()


async def test_nothing_is_discarded_before_it_was_confirmed_and_a_refusal_is_said(live: Open) -> None:
    seen = await live()
    asked = await asked_by(seen, status=503, answer={"error": "Kafka does not answer"})
    await seen.page.locator("#rows .open").first.click()
    await seen.page.locator("#type").get_by_role("button", name="Discard type").click()
    await expect(seen.page.locator("#act-means")).to_contain_text("never sent later")
    await seen.page.locator("#act-go").click()
    assert asked == []
    await seen.page.get_by_label("I know that these events are not sent later").check()
    await seen.page.locator("#act-go").click()
    await expect(seen.page.locator("#act-said")).to_have_text("Not done: Kafka does not answer.")
    assert [one["body"]["mode"] for one in asked] == ["discard"]


async def test_what_holds_can_be_ended(live: Open) -> None:
    held = {"id": "a b", "mode": "pause", "types": [], "classes": ["P3"], "by": "ann", "why": None, "at_ms": 0}
    seen = await live(ToldView(held=({**held, "until_ms": 1_795_475_800_000},)))
    asked = await asked_by(seen)
    await seen.page.get_by_role("button", name="End what ann asked for").click()
    await expect(seen.page.locator("#act-means")).to_contain_text("P3 paused since")
    await seen.page.get_by_role("textbox", name="Why").fill("too early")
    assert asked == []
    await seen.page.locator("#act-go").click()
    await expect(seen.page.locator("#act-said")).to_have_text("Done by the one replica.")
    assert [(one["method"], one["url"].removeprefix(seen.address)) for one in asked] == [
        ("DELETE", "interventions/a%20b?why=too+early")
    ]

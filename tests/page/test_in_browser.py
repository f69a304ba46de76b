"""The page in a real browser: it loads nothing, nothing scrolls sideways, and what a mouse can do keys can."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="session")
Make = Callable[..., Any]
Look = Callable[..., Awaitable[Any]]
HOSTILE = "</script><script>alert('x')</script><img src=x onerror=alert(1)><b>"

SIDEWAYS = """() => {
  const wide = (part) => part.scrollWidth > part.clientWidth + 1;
  const hides = (part) => getComputedStyle(part).overflowX !== 'visible';
  const found = [...document.querySelectorAll('body, main, section, .run, .holder, figure, td, li, p')];
  const outside = found.filter((part) => part.getBoundingClientRect().right > document.documentElement.clientWidth + 1);
  return [...found.filter((part) => wide(part) && (hides(part) || part === document.body)), ...outside]
    .filter((part) => part.offsetParent !== null && !part.closest('.types'))
    .map((part) => `${part.tagName}.${part.className} ${part.textContent.slice(0, 60)}`);
}"""
SHOWN = "() => [...document.querySelectorAll('#pictures .at')].map((at) => at.textContent)"
FIRST_COLUMN = "(id) => [...document.querySelectorAll(`#${id} tbody tr > td:first-child`)].map((td) => td.textContent)"
PICTURE = "() => document.querySelector('#pictures canvas').toDataURL()"
BRIGHTNESS = """() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3)
  .reduce((sum, part) => sum + Number(part), 0) / 3"""


async def open_all(seen: Any) -> None:
    """Open every closed table and the first episode."""
    await seen.page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    await seen.page.locator("#episodes button.open").first.click()
    await seen.page.locator("#episodes tr.detail table").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
async def test_nothing_is_loaded_and_no_error_told_when_everything_is_opened(
    look: Look, found: Make, scheme: str, width: int
) -> None:
    seen = await look(found("static", "class_budget"), width=width, scheme=scheme)
    await open_all(seen)
    assert seen.errors == []
    assert [url for url in seen.requests if not url.startswith("data:")] == [seen.path.as_uri()]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("runs", [("run",), ("static", "per_type", "class_budget")])
async def test_nothing_scrolls_sideways_when_names_are_long(
    look: Look, found: Make, width: int, runs: tuple[str, ...]
) -> None:
    name = "order-confirmation-of-a-very-long-name." * 5
    incident = {"name": name, "place": name, "times": 123_456_789, "count": 1, "first_s": 0.0, "last_s": 0.0}
    findings = found(*runs, incidents=[{"run": runs[0], **incident, "last_detail": "x" * 300}], notices=("y" * 400,))
    findings.tables["types_over_time"][0]["type"] = name
    for row in (*findings.tables["depth_over_time"], *findings.tables["routes_over_time"]):
        row["route"] = "r" * 249
    seen = await look(findings, width=width)
    await open_all(seen)
    assert await seen.page.evaluate("document.scrollingElement.scrollWidth <= window.innerWidth")
    assert await seen.page.evaluate(SIDEWAYS) == []


async def test_the_crosshair_shows_the_same_instant_in_all_pictures_when_the_pointer_moves(
    look: Look, found: Make
) -> None:
    seen = await look(found("static", "class_budget"))
    plot = seen.page.locator("#pictures .u-over").nth(3)
    await plot.scroll_into_view_if_needed()
    await plot.hover(position={"x": 150, "y": 40})
    shown = await seen.page.evaluate(SHOWN)
    assert len(shown) == 18
    assert len(set(shown)) == 1
    assert shown[0].endswith("UTC")
    heat = await seen.page.evaluate("[...document.querySelectorAll('.crossline')].map((line) => line.style.left)")
    assert len(set(heat)) == 1
    await seen.page.mouse.move(5, 5)
    assert set(await seen.page.evaluate(SHOWN)) == {""}


async def test_the_crosshair_goes_by_keys_when_the_pictures_have_the_focus(look: Look, found: Make) -> None:
    seen = await look(found("static", "class_budget"))
    await seen.page.focus("#pictures-box")
    for key, second in (
        ("ArrowRight", 0.5),
        ("ArrowRight", 1.5),
        ("PageDown", 11.5),
        ("ArrowLeft", 10.5),
        ("End", 59.5),
    ):
        await seen.page.keyboard.press(key)
        assert {text.split(" ·")[0] for text in await seen.page.evaluate(SHOWN)} == {f"+{second} s"}
    await seen.page.keyboard.press("Escape")
    assert set(await seen.page.evaluate(SHOWN)) == {""}


async def test_the_crosshair_of_the_pictures_follows_when_the_pointer_is_on_the_heat_map(
    look: Look, found: Make
) -> None:
    seen = await look(found("static", "class_budget"))
    cells = seen.page.locator(".cells").first
    await cells.scroll_into_view_if_needed()
    await cells.hover(position={"x": 60, "y": 24})
    assert len({*await seen.page.evaluate(SHOWN)} - {""}) == 1
    assert "type-0001" in await seen.page.locator("#heat .at").first.text_content()


async def test_a_stretch_is_shown_in_all_pictures_when_it_is_dragged_over_in_one(look: Look, found: Make) -> None:
    seen = await look(found("static", "class_budget"))
    whole = seen.page.get_by_role("button", name="Show the whole run")
    assert not await whole.is_visible()
    before = await seen.page.evaluate(
        "[...document.querySelectorAll('#pictures canvas')].map((one) => one.toDataURL())"
    )
    box = await seen.page.locator("#pictures .u-over").first.bounding_box()
    await seen.page.mouse.move(box["x"] + 40, box["y"] + 30)
    await seen.page.mouse.down()
    await seen.page.mouse.move(box["x"] + 160, box["y"] + 30, steps=4)
    await seen.page.mouse.up()
    await whole.wait_for()
    after = await seen.page.evaluate("[...document.querySelectorAll('#pictures canvas')].map((one) => one.toDataURL())")
    assert all(one != other for one, other in zip(before, after, strict=True))
    await whole.click()
    await whole.wait_for(state="hidden")


async def test_a_table_is_sorted_when_its_heading_is_clicked_or_entered(look: Look, found: Make) -> None:
    seen = await look(found(types=15))
    await seen.page.evaluate("document.querySelector('#table-traffic_by_type details').open = true")
    names = [f"type-{number:04d}" for number in range(15)]
    assert await seen.page.evaluate(FIRST_COLUMN, "table-traffic_by_type") == names
    heading = seen.page.locator("#table-traffic_by_type th", has_text="confirmed")
    await heading.locator("button").click()
    assert await heading.get_attribute("aria-sort") == "descending"
    assert await seen.page.evaluate(FIRST_COLUMN, "table-traffic_by_type") == names[::-1]
    await heading.locator("button").focus()
    await seen.page.keyboard.press("Enter")
    assert await heading.get_attribute("aria-sort") == "ascending"
    assert await seen.page.evaluate(FIRST_COLUMN, "table-traffic_by_type") == names


async def test_a_long_table_shows_what_is_searched_for(look: Look, found: Make) -> None:
    seen = await look(found(types=1_000))
    await seen.page.evaluate("document.querySelector('#table-traffic_by_type details').open = true")
    await seen.page.locator("#table-traffic_by_type input").fill("0777")
    assert await seen.page.evaluate(FIRST_COLUMN, "table-traffic_by_type") == ["type-0777"]
    assert seen.errors == []


async def test_an_episode_opens_its_verdicts_when_it_is_entered(look: Look, found: Make) -> None:
    seen = await look(found("static", "class_budget"))
    await seen.page.locator("#episodes button.open").first.focus()
    await seen.page.keyboard.press("Enter")
    detail = seen.page.locator("#episodes tr.detail")
    assert "60 of 80 verdicts" in await detail.text_content()
    assert "P2 312.4, P3 258.9" in await detail.locator("tbody tr").first.text_content()
    await seen.page.get_by_role("button", name="Show it in the pictures").click()
    assert await seen.page.get_by_role("button", name="Show the whole run").is_visible()
    await seen.page.keyboard.press("Shift+Tab")
    await seen.page.keyboard.press("Enter")
    assert await detail.count() == 0


async def test_a_line_is_hidden_when_its_name_is_pressed(look: Look, found: Make) -> None:
    seen = await look(found())
    before = await seen.page.evaluate(PICTURE)
    await seen.page.locator("#pictures .key").first.focus()
    await seen.page.keyboard.press("Enter")
    assert await seen.page.locator("#pictures .key").first.get_attribute("aria-pressed") == "false"
    await seen.until(f"(before) => ({PICTURE})() !== before", arg=before)


async def test_the_page_turns_dark_with_its_pictures_when_the_system_does(look: Look, found: Make) -> None:
    seen = await look(found())
    light, before = await seen.page.evaluate(BRIGHTNESS), await seen.page.evaluate(PICTURE)
    await seen.page.emulate_media(color_scheme="dark")
    await seen.until(f"(before) => ({PICTURE})() !== before", arg=before)
    assert light > 230
    assert await seen.page.evaluate(BRIGHTNESS) < 40


async def test_paper_is_white_and_pictures_light_when_a_dark_page_is_printed(look: Look, found: Make) -> None:
    seen = await look(found(), scheme="dark")
    dark = await seen.page.evaluate(PICTURE)
    await seen.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")  # as the browser does before it prints
    await seen.until(f"(before) => ({PICTURE})() !== before", arg=dark)
    await seen.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    await seen.until(f"(before) => ({PICTURE})() === before", arg=dark)
    await seen.page.emulate_media(media="print", color_scheme="dark")
    assert await seen.page.evaluate(BRIGHTNESS) == 255
    assert not await seen.page.locator("#contents").is_visible()
    assert len(await seen.page.pdf()) > 10_000
    assert seen.errors == []


async def test_no_name_of_a_log_is_run_or_becomes_an_element_when_it_is_markup(look: Look, found: Make) -> None:
    incident = {"name": HOSTILE, "place": HOSTILE, "times": 1, "count": 1, "first_s": 0.0, "last_s": 0.0}
    findings = found(HOSTILE, incidents=[{"run": HOSTILE, **incident, "last_detail": HOSTILE}], notices=(HOSTILE,))
    for table in ("types_over_time", "traffic_by_type"):
        findings.tables[table][0]["type"] = HOSTILE
    for row in (*findings.tables["episodes"], *findings.tables["episode_verdicts"]):
        row.update(route=HOSTILE, queues=HOSTILE, ruled_by=HOSTILE)
    findings.tables["depth_over_time"][0]["route"] = HOSTILE
    seen = await look(findings)
    await open_all(seen)
    assert seen.errors == []
    assert await seen.page.locator("img").count() == 0
    assert await seen.page.locator("script").count() == 3
    assert await seen.page.get_by_text(HOSTILE, exact=True).count() > 3


async def test_the_page_is_whole_when_a_report_has_next_to_nothing(look: Look, found: Make) -> None:
    findings = found()
    findings.tables.clear()
    seen = await look(findings)
    assert seen.errors == []
    assert await seen.page.get_by_role("heading", name="Per class").is_visible()

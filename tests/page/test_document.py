"""What page and document hold, whatever a log says."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from proxy.reports.page import PAGE_BYTES, page
from proxy.reports.summary import summary

Make = Callable[..., Any]
HOSTILE = "</script><script>alert('x')</script><!--<img src=x onerror=alert(1)>\u2028&amp;"


def document_of(html: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    told: dict[str, Any] = json.loads(text)
    return told


def rows_of(html: str, name: str) -> Any:
    return next(table for table in document_of(html)["tables"] if table["name"] == name)


def test_no_text_of_a_log_is_markup_when_it_looks_like_some(found: Make) -> None:
    incident = {"name": HOSTILE, "place": HOSTILE, "times": 1, "count": 1, "first_s": 0.0, "last_s": 0.0}
    html = page(
        found(
            HOSTILE,
            notices=(HOSTILE,),
            sentences=(HOSTILE,),
            incidents=[{"run": HOSTILE, **incident, "last_detail": HOSTILE}],
        )
    )
    assert html.count("<script") == 3
    assert html.count("</script") == 3
    assert "<img" not in html
    assert rows_of(html, "incidents")["rows"][0][0] == HOSTILE


def test_the_policy_allows_the_pages_own_scripts_and_style_when_nothing_else_is_allowed(found: Make) -> None:
    html = page(found())
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', html)
    assert policy.startswith("default-src &#x27;none&#x27;;")
    for text in [
        *re.findall(r"<style>(.*?)</style>", html, re.DOTALL),
        *re.findall(r"<script>(.*?)</script>", html, re.DOTALL),
    ]:
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    ("types", "ending", "rows"),
    [(30, "", 180), (1_000, "", 6_000), (20_000, "", 10_000), (20_000, ".of-a-long-name" * 20, 2_000)],
)
def test_the_page_stays_within_its_bytes_when_there_are_many_types(
    found: Make, types: int, ending: str, rows: int
) -> None:
    html = page(found("one", "two", "three", types=types, ending=ending))
    assert len(html.encode()) <= PAGE_BYTES
    table = rows_of(html, "latency_by_type")
    assert (len(table["rows"]), table["total"]) == (rows, 6 * types)


def test_a_column_is_left_out_and_named_when_it_is_nought_in_every_row(found: Make) -> None:
    table = rows_of(page(found()), "traffic_by_type")
    assert [column["field"] for column in table["columns"]] == ["type", "class", "confirmed", "dead_lettered"]
    assert "nacked, unknown, resent" in table["remark"]


def test_a_line_has_a_hole_where_nothing_is_known(found: Make) -> None:
    rows = [{"run": "run", "route": "mail", "t_s": at + 0.5, "depth": 7} for at in (-1, 0, 9)]
    pictures = document_of(page(found(depth_over_time=rows)))
    (line,) = next(one for one in pictures["pictures"] if one["title"].startswith("Queue depth"))["lines"]
    assert pictures["first"] == -1
    assert line["values"][:12] == [7, 7, *[None] * 8, 7, None]


def test_a_picture_is_left_out_when_there_is_nothing_to_show_in_it(found: Make) -> None:
    told = document_of(page(found(consumed_time_over_time=[], control_over_time=[], types_over_time=[], spectra=[])))
    titles = " ".join(picture["title"] for picture in told["pictures"])
    assert "Bridge time" in titles
    assert "Consumed time" not in titles
    assert "Rates of route" not in titles
    assert (told["heat"], told["spectra"]) == (None, [])


def test_the_first_picture_is_what_the_customer_feels_when_that_is_known(found: Make) -> None:
    assert document_of(page(found()))["pictures"][0]["title"].startswith("Consumed time")


def test_a_sentence_says_of_each_class_how_late_it_was_and_what_was_lost(found: Make) -> None:
    findings = found("static", "other")
    findings.per_class[0]["lost"] = 3
    said = summary(findings, "static")
    assert said[0] == ("P1", "1,200 events, consumed time P99 12.5 ms, bridge time P99 12.5 ms, 3 lost")
    assert said[1] == ("P2", "1,200 events, consumed time P99 12.5 ms, bridge time P99 12.5 ms, nothing lost")
    assert said[-1] == ("", "One episode of congestion, from 10.5 s to 20.2 s on route mail, cause: depth of mail.out.")


def test_a_sentence_says_nothing_of_loss_when_producers_and_consumers_left_no_records(found: Make) -> None:
    findings = found(episodes=[])
    findings.per_class[0].update(produced=None, lost=None, confirmed=5, consumed_p99_ms=None, dead_lettered=2)
    said = summary(findings, "run")
    assert said[0] == ("P1", "5 events confirmed, bridge time P99 12.5 ms, 2 dead-lettered")
    assert said[-1] == ("", "Never congested.")

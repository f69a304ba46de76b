"""What is known of commits when a subscription has to be made anew."""

from typing import Any

import pytest

from proxy.nakadi_log.heard import Heard


def test_the_last_that_was_told_is_known_when_a_cursor_went_back() -> None:
    heard = Heard()
    heard.committed("orders", "0", "001-0001-000000000000000009")
    heard.cursors("orders", {"items": [{"partition": "0", "offset": "7"}, {"partition": "1", "offset": "BEGIN"}]})
    heard.committed("mails", "0", "3")
    assert heard.offsets("orders") == {"0": "7", "1": "BEGIN"}
    heard.forget("orders")
    assert heard.offsets("orders") == {}
    assert heard.offsets("mails") == {"0": "3"}


@pytest.mark.parametrize("told", [None, [], "x", {}, {"items": None}, {"items": 3}, {"items": [None, 1, {}, []]}])
def test_nothing_is_forgotten_when_an_answer_is_none_of_this_api(told: Any) -> None:
    heard = Heard()
    heard.committed("orders", "0", "7")
    heard.cursors("orders", told)
    heard.cursors("orders", {"items": [{"partition": 0, "offset": "9"}, {"partition": "0", "offset": 9}]})
    assert heard.offsets("orders") == {"0": "7"}

"""`docs/guarantees.md` names tests that exist and shows the consumer that is tested."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")


def test_every_test_named_exists_when_a_guarantee_rests_on_it() -> None:
    named = set(re.findall(r"`(test_\w+)`", TEXT))
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) > 20
    assert {name for name in named if not re.search(rf"def {name}\(", tests)} == set()


def test_the_consumer_shown_is_the_one_that_is_tested() -> None:
    example = (ROOT / "docs" / "examples" / "consume_once.py").read_text(encoding="utf-8")
    assert example.strip() in TEXT

"""The deliberate bugs still fit the sources; `python -m tests.mutations`, too slow for here, shows each is caught."""

import re
import signal
from pathlib import Path

import pytest

from tests.mutations.__main__ import Catch, catch_by_tests, table
from tests.mutations.mutations import CHECKOUT, MUTATIONS, Mutation
from tests.support.process_group import START_SECONDS, process_group

TABLE = CHECKOUT / "docs" / "guarantees-mutations.md"
END_SECONDS = 10.0
"""A moment; on a machine that does much else it is longer."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_bug_still_applies_when_the_sources_have_changed(mutation: Mutation) -> None:
    text = (CHECKOUT / mutation.file).read_text(encoding="utf-8")
    broken = mutation.applied(text)
    assert broken != text
    compile(broken, mutation.file, "exec")


def test_table_in_the_docs_names_every_bug_and_what_caught_it() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| `[^|]+` \| (?:\d+(?: wire)?|`(test_\w+)`) \| [^|]+ \|$",
        TABLE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert [(name, bool(test)) for name, test in rows] == [(one.name, bool(one.tests)) for one in MUTATIONS]


def test_the_readme_and_the_table_tell_how_many_there_are() -> None:
    assert f"and {len(MUTATIONS)} deliberate bugs" in (CHECKOUT / "README.md").read_text(encoding="utf-8")
    assert f"of {len(MUTATIONS)} are caught" in TABLE.read_text(encoding="utf-8")


@pytest.mark.parametrize("tests", sorted({one.tests for one in MUTATIONS if one.tests}))
def test_the_tests_that_catch_a_bug_are_there_when_it_names_some(tests: tuple[str, ...]) -> None:
    assert all((CHECKOUT / test.partition("::")[0]).is_file() for test in tests)


def test_the_table_keeps_what_it_said_when_some_bugs_are_tried() -> None:
    first, second, third = MUTATIONS[:3]
    before = table([Catch(first, "5", "lost"), Catch(second, None, "survived")])
    after = table([Catch(second, "7 wire", "a | b"), Catch(third, None, "survived")], before)
    assert "1 of 2 are caught" in before
    assert "2 of 3 are caught" in after
    assert f"| {first.name} | `{first.file.removeprefix('proxy/')}` | 5 | lost |" in after
    assert f"| {second.name} | `{second.file.removeprefix('proxy/')}` | 7 wire | a / b |" in after


@pytest.mark.parametrize(
    ("text", "place"), [("assert 2 == 2", None), ("assert 2 == 3", "`test_it`"), ("assert 2 ==", None)]
)
async def test_a_bug_is_caught_when_its_test_fails_and_only_then(text: str, place: str | None, tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(f"def test_it():\n    {text}\n")
    bug = Mutation("bug", "f.py", "a", "b", tests=(str(tmp_path / "test_some.py"),))
    caught = await catch_by_tests(bug, CHECKOUT)
    assert caught.place == place
    assert (caught.said == "survived") is (text == "assert 2 == 2")


def test_a_bug_is_refused_when_its_text_is_gone() -> None:
    with pytest.raises(ValueError, match="stands 0 times"):
        MUTATIONS[0].applied("")


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_no_process_and_no_file_is_left_when_the_search_is_interrupted(signum: int, code: int, tmp_path: Path) -> None:
    with process_group("-m", "tests.mutations", cwd=CHECKOUT, TMPDIR=str(tmp_path)) as group:
        group.until(lambda: len(group.living) > 1, deadline=START_SECONDS)
        assert list(tmp_path.iterdir())
        group.process.send_signal(signum)
        assert group.process.wait(END_SECONDS) == code
        assert group.living == []
        assert list(tmp_path.iterdir()) == []
        assert group.process.stdout is not None
        *_, last = group.process.stdout.read().splitlines()
        assert last == "interrupted"

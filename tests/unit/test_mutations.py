"""The deliberate bugs still fit the sources; `python -m tests.mutations`, too slow for here, shows each is caught."""

import re
import signal
from pathlib import Path

import pytest

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
        r"^\| ([^|]+) \| `[^|]+` \| (\d+)(?: wire)? \| [^|]+ \|$", TABLE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [name for name, _ in rows] == [mutation.name for mutation in MUTATIONS]


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

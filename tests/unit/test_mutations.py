"""The deliberate bugs still fit the sources; `python -m tests.mutations`, too slow for here, shows each is caught."""

import re

import pytest

from tests.mutations.mutations import CHECKOUT, MUTATIONS, Mutation

TABLE = CHECKOUT / "docs" / "guarantees-mutations.md"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_bug_still_applies_when_the_sources_have_changed(mutation: Mutation) -> None:
    text = (CHECKOUT / mutation.file).read_text(encoding="utf-8")
    broken = mutation.applied(text)
    assert broken != text
    compile(broken, mutation.file, "exec")


def test_table_in_the_docs_names_every_bug_and_what_caught_it() -> None:
    rows = re.findall(r"^\| ([^|]+) \| `[^|]+` \| (\d+) \| [^|]+ \|$", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for name, _ in rows] == [mutation.name for mutation in MUTATIONS]


def test_a_bug_is_refused_when_its_text_is_gone() -> None:
    with pytest.raises(ValueError, match="stands 0 times"):
        MUTATIONS[0].applied("")

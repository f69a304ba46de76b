"""The declaration of the records: documented as it is, and only ever growing."""

import json
from dataclasses import MISSING, fields
from typing import Annotated, ClassVar

import pytest

from proxy.records import KINDS, READABLE, VERSION, Drops, Record, Skip, declaration, enveloped, fields_of
from proxy.records.declaration import Part
from tests.records import tables


def shrunk(kept: dict[str, dict[str, str]], told: dict[str, dict[str, str]]) -> list[str]:
    """Return what a reader of version 2 relies on and would not find."""
    return [
        f"{kind}.{path}: {was}, now {told.get(kind, {}).get(path)}"
        for kind, paths in kept.items()
        for path, was in paths.items()
        if told.get(kind, {}).get(path) != was
    ]


def test_no_field_has_gone_or_changed_its_type_since_version_2() -> None:
    kept = json.loads(tables.SNAPSHOT.read_text())
    assert shrunk(kept, tables.fields()) == []


def test_the_snapshot_holds_every_field_that_is_declared() -> None:
    kept = json.loads(tables.SNAPSHOT.read_text())
    missing = shrunk(tables.fields(), kept)
    assert missing == [], "python -m tests.records"


@pytest.mark.parametrize("change", ["gone", "another type", "kind gone"])
def test_a_field_that_is_gone_or_of_another_type_is_found(change: str) -> None:
    told = tables.fields()
    match change:
        case "gone":
            del told["drops"]["files"]
        case "another type":
            told["drops"]["files"] = "text"
        case _:
            del told["drops"]
    assert "drops.files" in " ".join(shrunk(tables.fields(), told))


def test_the_document_shows_every_field_of_every_kind_as_declared() -> None:
    text = tables.DOCUMENT.read_text()
    assert tables.documented(text) == list(dict.fromkeys(tables.documented(text)))
    assert set(tables.documented(text)) == set(tables.parts())
    assert tables.document(text) == text, "python -m tests.records"


def test_the_examples_of_the_document_are_records_of_their_kind() -> None:
    lines = [line for line in tables.DOCUMENT.read_text().splitlines() if line.startswith('{"v":')]
    shown = [json.loads(line) for line in lines]
    for record in shown:
        declared = {field.name: field for field in fields_of(KINDS[record["kind"]])}
        assert set(record) - {"v", "kind", "at_ms", "instance"} <= set(declared)
        assert {name for name, field in declared.items() if field.is_required} <= set(record)
        assert record["v"] in READABLE
    assert {record["kind"] for record in shown} >= set(KINDS) - set(ACTIONS)


ACTIONS = ("skip", "rewind", "discard", "redrive", "shadow", "retention", "scaling")


def test_every_field_says_what_it_means_and_what_may_be_absent_is_optional() -> None:
    for part in tables.parts().values():
        for path, field in tables.flat(part):
            assert field.meaning, path
        defaults = {one.name.removesuffix("_") for one in fields(part) if one.default is not MISSING}  # type: ignore[arg-type]
        assert defaults <= {field.name for field in fields_of(part) if field.is_optional}


def test_a_record_stands_in_its_envelope_when_it_is_written() -> None:
    record = enveloped(Drops(records=3, files=0), at_ms=5, instance="i")
    assert record == {"v": VERSION, "kind": "drops", "at_ms": 5, "instance": "i", "records": 3, "files": 0}


def test_what_stands_inside_of_a_record_is_written_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declaration, "KINDS", {})

    class Inner(Part):
        class_: Annotated[str, "x"]

    class Outer(Record):
        KIND: ClassVar[str] = "outer"

        one: Annotated[Inner, "x"]
        many: Annotated[list[Inner], "x"]
        named: Annotated[dict[str, Inner], "x"]

    inner = Inner(class_="P1")
    told = Outer(one=inner, many=[inner], named={"a": inner}).as_json()
    assert told == {"one": {"class": "P1"}, "many": [{"class": "P1"}], "named": {"a": {"class": "P1"}}}
    assert list(declaration.KINDS) == ["outer"]


def test_what_people_will_do_names_the_range_it_concerns() -> None:
    for kind in ("skip", "rewind", "discard", "redrive"):
        names = {field.name for field in fields_of(KINDS[kind])}
        assert names >= {"by", "why", "type", "topic", "topic_id", "partition", "first", "end", "count"}
    assert KINDS["skip"] is Skip

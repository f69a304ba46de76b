"""Files and folders by Hadoop's client, on a disk; `test_cluster` asks the same of an object store."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from proxy.reports.files import ReportError
from proxy.reports.places import Places, join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def places(spark: "SparkSession") -> Places:
    return Places(spark)


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path)


def check_places(places: Places, home: str) -> None:
    """Everything that must hold of the place `home`, where nothing is yet."""
    text = join(home, "store", "state.json")
    assert not places.exists(join(home, "store"))
    assert places.entries(join(home, "store")) == []
    assert places.files(join(home, "store")) == []
    places.delete(join(home, "store"))

    places.write_text(text, "first, and longer")
    places.write_text(text, "second ü")
    assert places.read_text(text) == "second ü"
    assert not places.create_text(text, "third")
    assert places.read_text(text) == "second ü"
    (entry,) = places.entries(join(home, "store"))
    assert (entry.place, entry.is_folder, entry.size) == (text, False, 9)
    assert places.entries(text) == places.files(text) == [entry]

    deep = join(home, "store", "kind=verdict", "batch=1", "a b[1]{*}?%20.json")
    places.write_text(deep, "")
    assert [(one.place, one.is_folder) for one in places.entries(join(home, "store"))] == [
        (join(home, "store", "kind=verdict"), True),
        (text, False),
    ]
    assert [one.place for one in places.files(join(home, "store"))] == [deep, text]

    new = join(home, "other", "locks", "1")
    assert places.create_text(new, "first")
    assert places.create_text(new, "first"), "the same, asked for twice"
    assert not places.create_text(new, "second")
    assert places.read_text(new) == "first"
    places.delete(join(home, "other"))

    moved = join(home, "other", "kind=verdict")
    places.rename(join(home, "store", "kind=verdict"), moved)
    assert not places.exists(deep)
    assert [one.place for one in places.files(home)] == [join(moved, "batch=1", "a b[1]{*}?%20.json"), text]
    with pytest.raises(ReportError, match=r"can't be renamed: .*kind=verdict exists"):
        places.rename(text, moved)
    with pytest.raises(ReportError, match=r"gone: no such file or folder"):
        places.rename(join(home, "gone"), join(home, "new"))
    with pytest.raises(ReportError, match=r"gone: FileNotFoundException"):
        places.read_text(join(home, "gone"))

    places.delete(join(home, "other"))
    places.delete(text)
    assert places.files(home) == []


def test_places_keep_their_word_when_they_are_on_a_disk(places: Places, home: str) -> None:
    check_places(places, home)


def test_nothing_is_left_beside_a_text_when_it_is_written_over(places: Places, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("of somebody else")
    places.write_text(str(tmp_path / "text"), "ours")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("text", "ours")]


def test_a_path_is_of_the_folder_we_are_in_when_it_is_relative(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    places.write_text("here/text", "ours")
    assert (tmp_path / "here" / "text").read_text() == "ours"
    assert [entry.place for entry in places.files("here")] == [str(tmp_path / "here" / "text")]


def test_an_address_and_a_path_are_one_place_when_they_name_one_file(places: Places, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("ours")
    assert places.read_text(f"file://{tmp_path}/text") == "ours"
    assert places.entries(f"file://{tmp_path}") == places.entries(str(tmp_path))


def test_a_file_is_copied_over_another_one_when_it_is_uploaded(places: Places, tmp_path: Path) -> None:
    (tmp_path / "page").write_bytes(b"\x89\xff\x00")
    (tmp_path / "there").write_bytes(b"old")
    places.upload(tmp_path / "page", str(tmp_path / "there"))
    assert (tmp_path / "there").read_bytes() == b"\x89\xff\x00"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page", "there"]


def test_the_store_is_quoted_when_spark_has_no_client_for_it(places: Places) -> None:
    with pytest.raises(ReportError, match=r'nosuch://bucket/logs: .*No FileSystem for scheme "nosuch"'):
        places.entries("nosuch://bucket/logs")

"""A change of any file of the settings is seen, and only a change."""

from pathlib import Path

from proxy.config import Source
from tests.support.settings_files import HEAD, ONE_TYPE, Files


def test_nothing_has_changed_when_files_are_only_touched(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.load(HEAD + ONE_TYPE)
    source = Source(files.main, {})
    first = source.fingerprint()
    files.main.write_text(HEAD + ONE_TYPE, encoding="utf-8")
    assert source.fingerprint() == first


def test_a_change_is_seen_when_a_link_is_swapped_as_kubernetes_does(tmp_path: Path) -> None:
    for version in ("one", "two"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "tidegate.yaml").write_text(HEAD + ONE_TYPE + f"# {version}\n", encoding="utf-8")
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "tidegate.yaml").symlink_to("..data/tidegate.yaml")
    source = Source(tmp_path / "tidegate.yaml", {})
    first = source.fingerprint()
    (tmp_path / "..tmp").symlink_to("two")
    (tmp_path / "..tmp").rename(tmp_path / "..data")
    assert source.fingerprint() != first


def test_a_change_is_seen_when_an_included_file_comes_changes_and_goes(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.write("tidegate.yaml", HEAD + "include: types\n")
    files.write("types/a.yaml", ONE_TYPE)
    source = Source(files.main, {})
    seen = [source.fingerprint()]
    files.write("types/b.yaml", "event_types: {b: {}}\n")
    seen.append(source.fingerprint())
    files.write("types/b.yaml", "event_types: {b: {class: P1}}\n")
    seen.append(source.fingerprint())
    (tmp_path / "types/b.yaml").rename(tmp_path / "types/c.yaml")
    seen.append(source.fingerprint())
    assert len(set(seen)) == 4
    (tmp_path / "types/c.yaml").unlink()
    assert source.fingerprint() == seen[0]


def test_the_included_folder_is_looked_for_again_when_the_main_file_names_another(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.write("tidegate.yaml", HEAD + "include: types\n")
    files.write("other/a.yaml", ONE_TYPE)
    source = Source(files.main, {})
    source.fingerprint()
    files.write("tidegate.yaml", HEAD + "include: other\n")
    first = source.fingerprint()
    files.write("other/a.yaml", ONE_TYPE + "# more\n")
    assert source.fingerprint() != first


def test_a_file_that_is_gone_for_a_moment_is_a_change_and_its_return_another(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.load(HEAD + ONE_TYPE)
    source = Source(files.main, {})
    first = source.fingerprint()
    files.main.rename(tmp_path / "away")
    assert source.fingerprint() != first
    (tmp_path / "away").rename(files.main)
    assert source.fingerprint() == first

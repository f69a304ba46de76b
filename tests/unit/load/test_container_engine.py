"""Which engine is taken and what it is told, with programs in the path that only write down how they were called."""

from pathlib import Path

import pytest

from load.container import Image, Mount, engine
from load.container.engine import Buildah, Docker, find_engine
from load.stack import SetupError, StackError

IMAGE = Image.from_config(
    "tidegate:test", {"Entrypoint": ["tidegate"], "User": "65532:65532", "Env": ["PATH=/opt/bin"]}
)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f'#!/bin/sh\necho "$@" >>{folder}/{name}.calls\n{script}\n')
    (folder / name).chmod(0o755)


def calls(folder: Path, name: str) -> list[str]:
    return (folder / f"{name}.calls").read_text().splitlines()


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_an_engine_is_taken_when_it_answers(name: str, programs: Path) -> None:
    program(programs, name, "exit 0")
    found = find_engine()
    assert isinstance(found, Docker)
    assert found.name == name


def test_buildah_is_taken_when_docker_is_there_without_its_engine(programs: Path) -> None:
    program(programs, "docker", "exit 1")
    program(programs, "buildah", "exit 0")
    program(programs, "debootstrap", "exit 0")
    assert isinstance(find_engine(), Buildah)
    assert calls(programs, "docker") == ["info"]


def test_one_sentence_says_what_to_install_when_nothing_may_be(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "may_install", lambda: False)
    with pytest.raises(SetupError, match="Docker or Podman, or root and `apt-get install buildah debootstrap`"):
        find_engine()


def test_packages_are_announced_and_installed_when_they_are_missing(
    programs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    installed: list[str] = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(engine, "may_install", lambda: True)
    monkeypatch.setattr(engine, "apt_install", installed.extend)
    assert isinstance(find_engine(), Buildah)
    assert {"buildah", "debootstrap"} <= {*installed}
    assert capsys.readouterr().err.startswith("Installing buildah and debootstrap")


def test_a_container_has_no_rights_beyond_its_mounts_when_an_engine_starts_it(programs: Path) -> None:
    program(programs, "docker", "exit 3")
    mounts = [Mount(Path("/its/settings"), "/etc/it"), Mount(Path("/its/log"), "/var/it", writable=True)]
    with Docker("docker").start(IMAGE, ["run"], mounts=mounts, environment={"ONE": "1"}) as container:
        assert container.wait(10) == 3
    (line,) = calls(programs, "docker")
    assert {"--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--env=ONE=1"} <= {*line.split()}
    assert {"--volume=/its/settings:/etc/it:ro", "--volume=/its/log:/var/it"} <= {*line.split()}
    assert line.endswith("--entrypoint=tidegate tidegate:test run")


def test_a_container_is_removed_and_its_words_are_told_when_it_does_not_end(programs: Path) -> None:
    program(programs, "docker", 'case "$1" in run) echo "still busy"; exec /bin/sleep 60 ;; esac')
    with Docker("docker").start(IMAGE, []) as container:
        while "still busy" not in container.output:
            assert container.is_running
        with pytest.raises(StackError, match=r"did not end within 0 s; it said:\nstill busy"):
            container.wait(0.01)
    started, removed = calls(programs, "docker")
    name = next(word.partition("=")[2] for word in started.split() if word.startswith("--name="))
    assert removed == f"rm --force {name}"


def test_an_image_has_no_health_check_when_that_would_need_a_shell() -> None:
    config = {"Healthcheck": {"Test": ["CMD-SHELL", "tidegate health"]}}
    assert Image.from_config("it", config).health_check == ()
    config = {"Healthcheck": {"Test": ["CMD", "tidegate", "health"]}}
    assert Image.from_config("it", config).health_check == ("tidegate", "health")

"""What the machine lacks is installed where that is permitted, else named in one sentence."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from load.stack import __main__ as command_line
from load.stack import cache, packages
from load.stack.errors import SetupError

Program = Callable[[str, str], Path]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Make an executable of a machine that has nothing else."""

    def make(path: str, script: str = "") -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        return file

    return make


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hide what this machine has; programs are looked for in tmp_path/bin."""
    for name in ("JAVA_HOME", packages.SBIN_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(packages, "SERVERS", tmp_path / "rabbitmq")
    monkeypatch.setattr(packages, "JVMS", tmp_path / "jvm")
    return tmp_path


def java(version: str) -> str:
    return f"""echo 'openjdk version "{version}" 2030-01-01' >&2"""


def test_one_sentence_names_all_when_nothing_may_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "may_install", lambda: False)

    with pytest.raises(SetupError) as caught:
        packages.provide(None)

    assert str(caught.value).count("\n") == 0
    assert "needs Java 17 or later and Maven and RabbitMQ" in str(caught.value)
    assert "sudo apt-get install openjdk-17-jre-headless maven rabbitmq-server" in str(caught.value)


def test_the_command_line_ends_with_2_when_the_machine_lacks_something(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packages, "may_install", lambda: False)

    assert command_line.main(["up", "--name", "never-made"]) == 2
    assert "sudo apt-get install" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "found"), [("1.8.0_292", False), ("11.0.2", False), ("17", True), ("21.0.3", True)]
)
def test_java_is_taken_when_it_is_17_or_later(program: Program, version: str, found: bool) -> None:
    made = program("bin/java", java(version))

    assert packages.find_java() == (made if found else None)


def test_a_later_java_is_found_when_the_one_in_the_path_is_too_old(program: Program) -> None:
    program("bin/java", java("11.0.2"))
    later = program("jvm/java-17/bin/java", java("17.0.1"))

    assert packages.find_java() == later


def test_maven_is_not_missed_when_the_jars_are_there(bare_machine: Path) -> None:
    assert packages.MAVEN in packages.missing(None)
    packages.jar_folder().mkdir(parents=True)

    assert packages.MAVEN not in packages.missing(None)


def test_scripts_are_taken_from_the_option_the_environment_the_system_when_given_in_this_order(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, fromenv, system = (
        program(f"{folder}/rabbitmq-server", "").parent
        for folder in ("named", "fromenv", "rabbitmq/rabbitmq_server-9/sbin")
    )
    for folder in ("named", "fromenv", "rabbitmq/rabbitmq_server-9/sbin"):
        program(f"{folder}/rabbitmqctl", "")

    assert packages.chosen_rabbitmq(None) == system
    monkeypatch.setenv(packages.SBIN_VARIABLE, str(fromenv))
    assert packages.chosen_rabbitmq(None) == fromenv
    assert packages.chosen_rabbitmq(named) == named


def test_the_folder_is_named_when_it_holds_no_rabbitmq(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="holds no rabbitmq-server and rabbitmqctl"):
        packages.provide(tmp_path)


def test_apt_is_asked_for_what_is_missing_when_it_may_be_used(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tmp_path / "asked"
    # newer ones are only referred to by others, and nothing is known before the lists are there
    program(
        "bin/apt-cache", f'[ -e {asked} ] && [ "$1 $2" = "madison openjdk-17-jre-headless" ] && echo "$2 | 17"; true'
    )
    program("bin/apt-get", f'echo "$@" >> {asked}')
    program("bin/mvn", "")
    monkeypatch.setattr(packages, "may_install", lambda: True)

    with pytest.raises(SetupError, match=r"apt-get says it is done, but .* can't be found"):
        packages.provide(None)

    update, install = asked.read_text().splitlines()
    assert update.endswith("update")
    assert install.endswith("--no-install-recommends openjdk-17-jre-headless rabbitmq-server")
    assert capsys.readouterr().err.splitlines() == [
        "Installing what the local stack needs with apt-get: Java 17 or later, RabbitMQ ..."
    ]


def test_apts_last_lines_are_shown_when_it_fails(program: Program) -> None:
    program("bin/apt-get", "echo E: no such package; exit 100")

    with pytest.raises(SetupError, match="E: no such package"):
        packages.apt_install(["nothing"])


def test_jars_are_fetched_once_when_asked_for_twice(program: Program, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    program(
        "bin/mvn", f'for a; do case $a in -DoutputDirectory=*) : > "${{a#*=}}/kafka.jar";; esac; done; echo >> {asked}'
    )

    folder = packages.kafka_jars()

    assert packages.kafka_jars() == folder
    assert [path.name for path in folder.iterdir()] == ["kafka.jar"]
    assert len(asked.read_text()) == 1


def test_nothing_half_made_is_used_when_making_it_fails(tmp_path: Path) -> None:
    folder = cache.cache() / "thing"

    def fail(part: Path) -> None:
        (part / "half").touch()
        raise SetupError("no network")

    with pytest.raises(SetupError, match="no network"):
        cache.made_once(folder, fail)
    assert not folder.exists()

    assert list(cache.made_once(folder, lambda part: (part / "whole").touch()).iterdir()) == [folder / "whole"]


def test_what_a_killed_script_left_is_replaced_when_it_is_made_again() -> None:
    folder = cache.cache() / "thing"
    (cache.cache() / "thing.part" / "half").mkdir(parents=True)

    cache.made_once(folder, lambda part: (part / "whole").touch())

    assert os.listdir(folder) == ["whole"]  # noqa: PTH208 names only


def test_a_tool_is_stopped_when_it_takes_too_long(program: Program) -> None:
    slow = program("slow", "exec /bin/sleep 60")

    with pytest.raises(SetupError, match="waited in vain: not done after 0 s"):
        cache.run_tool([str(slow)], seconds=0.05, purpose="waited in vain")

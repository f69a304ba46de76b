"""What a container engine is asked for; a script stands in for the engine."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from load.stack import containers, kafka_settings, packages
from load.stack.containers import ContainerNode
from load.stack.errors import StackError
from load.stack.processes import Identity, is_running
from load.stack.state import State

PORTS = {"kafka": 20001, "kafka_sasl": 20002, "kafka_controller": 20003, "amqp": 20004}


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Put a docker in the path that does this and notes what it was asked for."""
    asked = tmp_path / "asked"
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    compose = tmp_path / "compose.yaml"
    compose.touch()
    monkeypatch.setattr(containers, "COMPOSE_FILE", compose)

    def install(script: str) -> Path:
        docker = tmp_path / "bin" / "docker"
        docker.parent.mkdir(exist_ok=True)
        docker.write_text(f'#!/bin/sh\necho "$@" >> {asked}\n{script}\n')
        docker.chmod(0o755)
        return asked

    return install


@pytest.fixture
def known(tmp_path: Path) -> State:
    return State("one", tmp_path / "one", tmp_path / "one" / "data", PORTS, software=None)


def test_an_engine_counts_when_it_answers(engine: Callable[[str], Path]) -> None:
    engine("exit 0")
    assert containers.engine_answers()


@pytest.mark.parametrize("script", ["exit 1", '[ "$1" = info ]', '[ "$1" = compose ]'])
def test_an_engine_does_not_count_when_it_or_its_compose_command_fails(
    engine: Callable[[str], Path], script: str
) -> None:
    engine(script)
    assert not containers.engine_answers()


def test_containers_are_only_left_when_java_is_missing_and_not_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_java", lambda: None)
    monkeypatch.setattr(packages, "may_install", lambda: True)
    assert not packages.lacks_java_for_good()
    monkeypatch.setattr(packages, "may_install", lambda: False)
    assert packages.lacks_java_for_good()


def test_the_stack_gets_its_own_ports_when_it_is_made_of_containers(known: State) -> None:
    class Loader(yaml.SafeLoader):
        """Reads the tag by which compose replaces a list."""

    Loader.add_constructor("!override", lambda loader, node: loader.construct_sequence(node))
    containers.write_ports(known)

    services = yaml.load((known.home / "ports.yaml").read_text(), Loader)["services"]
    assert services["rabbitmq"]["ports"] == ["127.0.0.1:20004:5672"]
    assert services["kafka"]["ports"] == ["127.0.0.1:20001:20001", "127.0.0.1:20002:20002"]
    environment = services["kafka"]["environment"]
    assert environment["KAFKA_LISTENERS"] == "PLAIN://:20001,SASL://:20002,CONTROLLER://127.0.0.1:20003"
    assert environment["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"
    assert "KAFKA_LISTENER_NAME_SASL_SCRAM___SHA___256_SASL_JAAS_CONFIG" in environment
    assert len(environment) == len(kafka_settings.settings(PORTS, log_folder=""))


def test_the_services_process_is_remembered_but_never_signalled_when_it_starts(
    engine: Callable[[str], Path], known: State
) -> None:
    asked = engine('case "$*" in *ps*) echo abc;; inspect*) echo 1;; esac')

    process = ContainerNode(known, "kafka").start()

    assert process == Identity(1, containers.NO_START)
    assert not is_running(process)
    up, listed, inspected = asked.read_text().splitlines()
    assert "--project-name tidegate-one" in up
    assert up.endswith("up --detach --no-deps kafka")
    assert listed.endswith("ps --all --quiet kafka")
    assert inspected.endswith("{{.State.Pid}} abc")


@pytest.mark.parametrize(("kill", "ending"), [(False, "stop --timeout 30 kafka"), (True, "kill kafka")])
def test_the_service_is_stopped_as_asked_when_a_test_stops_it(
    engine: Callable[[str], Path], known: State, kill: bool, ending: str
) -> None:
    asked = engine("exit 0")

    ContainerNode(known, "kafka").stop(Identity(1, 0), kill=kill)

    assert asked.read_text().rstrip().endswith(ending)


def test_containers_and_volumes_go_when_the_stack_goes(engine: Callable[[str], Path], known: State) -> None:
    asked = engine("exit 0")

    containers.remove(known)

    assert asked.read_text().rstrip().endswith("down --volumes --timeout 0")


def test_the_engines_last_lines_are_shown_when_it_fails(engine: Callable[[str], Path], known: State) -> None:
    engine("echo no space left; exit 1")

    with pytest.raises(StackError, match="no space left"):
        ContainerNode(known, "rabbitmq").control("status")


def test_the_state_tells_containers_from_processes_when_it_is_read_again(known: State) -> None:
    known.save()

    assert json.loads(known.path.read_text())["software"] is None
    assert State.load(known.path).software is None

"""What `docker/compose.yaml` promises, as far as it can be told without an engine."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from load.container.engine import DOCKERFILE

FOLDER = DOCKERFILE.parent
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]


@pytest.mark.parametrize("name", SERVICES)
def test_logs_are_bounded_when_a_service_talks_much(name: str) -> None:
    assert {"max-size", "max-file"} <= SERVICES[name]["logging"]["options"].keys()


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_open_to_this_machine_only_when_published(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", ()))


@pytest.mark.parametrize("name", ["kafka", "rabbitmq"])
def test_brokers_say_when_they_are_ready_when_others_wait_for_them(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize(("name", "version"), [("kafka", "4."), ("rabbitmq", "4.")])
def test_brokers_are_of_the_present_generation_when_pulled(name: str, version: str) -> None:
    assert SERVICES[name]["image"].rpartition(":")[2].startswith(version)


def test_tidegate_has_no_more_rights_than_it_needs_when_it_runs() -> None:
    tidegate = SERVICES["tidegate"]
    assert tidegate["read_only"] is True
    assert tidegate["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in tidegate["security_opt"]
    assert (FOLDER / tidegate["build"]["context"] / tidegate["build"]["dockerfile"]).samefile(DOCKERFILE)


def test_every_named_volume_and_file_exists_when_it_is_mounted() -> None:
    sources = [volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())]
    named, files = ([s for s in sources if s.startswith(".") == is_file] for is_file in (False, True))
    assert {*named} == {*COMPOSE["volumes"]}
    assert all((FOLDER / file).exists() for file in files)


def test_settings_are_right_and_name_the_services_when_checked() -> None:
    path = FOLDER / "tidegate.yaml"
    done = subprocess.run(
        [Path(sys.executable).with_name("tidegate"), "check", "-c", path],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    settings = yaml.safe_load(path.read_text())
    assert {host.partition(":")[0] for part in ("log", "broker") for host in settings[part]["hosts"]} == {
        "kafka",
        "rabbitmq",
    }
    created = " ".join(SERVICES["topics"]["command"])
    assert all(topic in created for topic in settings["event_types"])

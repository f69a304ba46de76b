"""The Helm chart: rendered by Helm, every object held to Kubernetes' schemas, its settings to Tidegate's check."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from load import helm
from load.stack.errors import StackError

ALL = [
    "networkPolicy.enabled=true", "serviceMonitor.enabled=true", "alerts.enabled=true", "board.enabled=true",
    "autoscaling.enabled=true", "keda.enabled=true", "keda.target=mailers", "keda.route=orders",
    "secretFiles=tidegate",
]  # fmt: skip
SIDECAR = ["sidecarOf[0].name=app", "sidecarOf[0].image=registry.example/app:1"]
FOREIGN = {"ServiceMonitor", "PrometheusRule", "ScaledObject"}
"""Of operators: not in Kubernetes' schemas."""
VERSIONS = ("1.29", "1.33", "1.36")


PAGE = (helm.CHART.parents[1] / "docs" / "how-to" / "kubernetes.md").read_text()
SMALLEST = next(block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "settings:" in block)


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smallest values, as the page of the docs shows them."""
    file = tmp_path_factory.mktemp("chart") / "values.yaml"
    file.write_text(SMALLEST)
    return file


def rendered(values: Path, settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {
        f"{one['kind']}/{one['metadata']['name']}": one
        for one in yaml.safe_load_all(helm.render(values, settings))
        if one
    }


@pytest.fixture(scope="module")
def whole(values: Path) -> dict[str, dict[str, Any]]:
    return rendered(values, ALL)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("settings", [[], ALL, SIDECAR], ids=["plain", "all", "sidecar"])
def test_every_object_is_one_of_kubernetes_when_rendered(values: Path, settings: list[str], version: str) -> None:
    objects = rendered(values, settings)
    for found in objects.values():
        if found["kind"] not in FOREIGN:
            kubernetes_validate.validate(found, version, strict=True)
    assert {found["kind"] for found in objects.values()} >= {
        "Deployment",
        "ConfigMap",
        "Service",
        "PodDisruptionBudget",
    }


def test_a_mistake_is_found_when_an_object_has_a_field_that_kubernetes_lacks(whole: dict[str, dict[str, Any]]) -> None:
    wrong = whole["Deployment/try-tidegate"]
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong | {"spec": wrong["spec"] | {"replica": 2}}, VERSIONS[0], strict=True)


def test_objects_of_operators_say_what_they_must_when_all_is_asked_for(whole: dict[str, dict[str, Any]]) -> None:
    service, monitor = whole["Service/try-tidegate"], whole["ServiceMonitor/try-tidegate"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    alerts = yaml.safe_load((helm.CHART / "files" / "alerts.yaml").read_text())
    assert whole["PrometheusRule/try-tidegate"]["spec"] == alerts
    (trigger,) = whole["ScaledObject/try-tidegate-consumers"]["spec"]["triggers"]
    assert trigger["metadata"]["url"] == "http://try-tidegate.default:8080/scaling?route=orders"


def test_tidegate_takes_the_settings_when_they_come_from_the_chart(
    whole: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text(whole["ConfigMap/try-tidegate"]["data"]["tidegate.yaml"])
    command = [Path(sys.executable).with_name("tidegate"), "check", "-c", file]
    environment = os.environ | {"RABBITMQ_PASSWORD": "secret"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30, env=environment)
    assert done.returncode == 0, done.stderr


def test_tidegate_starts_before_the_others_and_stops_after_them_when_it_is_a_sidecar(values: Path) -> None:
    pod = rendered(values, SIDECAR)["Deployment/try-tidegate"]["spec"]["template"]["spec"]
    (sidecar,) = pod["initContainers"]
    assert (sidecar["name"], sidecar["restartPolicy"]) == ("tidegate", "Always")
    assert [one["name"] for one in pod["containers"]] == ["app"]


def test_the_container_may_do_nothing_that_it_does_not_need_when_rendered(whole: dict[str, dict[str, Any]]) -> None:
    pod = whole["Deployment/try-tidegate"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    probes = {container[name]["httpGet"]["path"] for name in ("livenessProbe", "readinessProbe")}
    assert probes == {"/health", "/ready"}


def test_other_settings_make_other_pods_when_they_change(values: Path) -> None:
    def mark(*settings: str) -> str:
        spec = rendered(values, settings)["Deployment/try-tidegate"]["spec"]
        return str(spec["template"]["metadata"]["annotations"]["tidegate/settings"])

    assert mark() == mark()
    assert mark() != mark("settings.log.group=other")


def test_the_pods_stay_and_read_the_new_file_when_only_event_types_change(values: Path) -> None:
    before, after = rendered(values, ()), rendered(values, ["settings.event_types.more.topic=more"])
    assert before["Deployment/try-tidegate"] == after["Deployment/try-tidegate"]
    settings = [objects["ConfigMap/try-tidegate"]["data"] for objects in (before, after)]
    assert settings[0] != settings[1]
    pod = after["Deployment/try-tidegate"]["spec"]["template"]["spec"]
    (mount,) = (one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "settings")
    assert "subPath" not in mount, "Kubernetes would never hand out another file"


def test_the_chart_says_what_is_missing_when_keda_has_no_target(values: Path) -> None:
    with pytest.raises(StackError, match=r"keda\.target"):
        helm.render(values, ["keda.enabled=true"])


def test_the_chart_says_what_is_missing_when_there_are_no_settings() -> None:
    with pytest.raises(StackError, match=r"settings\.log is missing"):
        helm.render()

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
from proxy import config
from proxy.config.difference import LIVE_LIMITS
from proxy.settings import Limits, Settings

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


def other(tmp_path: Path, change: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is rendered when some settings are others."""
    values = yaml.safe_load(SMALLEST)
    for part, keys in change.items():
        values["settings"][part] = values["settings"].get(part, {}) | keys
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    return rendered(file, ())


def loaded(objects: dict[str, dict[str, Any]], tmp_path: Path) -> Settings:
    file = tmp_path / "tidegate.yaml"
    file.write_text(objects["ConfigMap/try-tidegate"]["data"]["tidegate.yaml"])
    return config.load(file, {"RABBITMQ_PASSWORD": "secret"})


ORDERS = {"exchange": "", "queues": ["orders"]}
CHANGES: dict[str, dict[str, Any]] = {
    "event types": {"event_types": {"more": {"class": "P2", "route": "orders", "routing_key": "more"}}},
    "patterns": {"event_types": {"more": {"pattern": "more.*", "class": "P2", "route": "orders", "routing_key": "x"}}},
    "what types share": {"defaults": {"order": "strict"}},
    "a route in shadow": {"routes": {"orders": ORDERS | {"shadow": True}}},
    "a route more": {"routes": {"more": {"exchange": "more"}}},
    "what a class says": {"classes": {"P1": {"queue_delay": "900ms"}, "P2": {}, "P3": {}}},
    "fewer classes": {"classes": {"P1": {}, "P2": {}}},
    "a class more": {"classes": {"P0": {"increase": 1, "decrease": 0.5}, "P1": {}, "P2": {}, "P3": {}}},
    "class_budget": {"class_budget": {"growth": 0.13}},
    "throttling": {"throttling": {"tick": "200ms"}},
    "statistics": {"statistics": {"interval": "2s"}},
    "detector": {"detector": {"min_samples": 20}},
    "retention": {"retention": {"alarm": "2h"}},
    "live limits": {"limits": {"inbox_events": 1_500, "uncommitted_events": 900}},
    "limits": {"limits": {"confirm_deadline": "20s"}},
    "the log": {"log": {"group": "other"}},
    "the broker": {"broker": {"virtual_host": "other"}},
    "the metric log": {"metric_log": {"folder": "/var/lib/tidegate", "route_interval": "2s"}},
    "the admin address": {"admin": {"listen": "0.0.0.0:8081"}},
    "notices": {"notices": {"after": "20s"}},
    "traces": {"traces": {"sample": 0.5}},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_other_pods_are_made_when_what_changed_needs_a_restart_and_only_then(
    values: Path, change: dict[str, Any], tmp_path: Path
) -> None:
    before, after = rendered(values, ()), other(tmp_path, change)
    assert before["ConfigMap/try-tidegate"]["data"] != after["ConfigMap/try-tidegate"]["data"]
    found = config.difference(loaded(before, tmp_path), loaded(after, tmp_path))
    assert found, "a change that changes nothing shows nothing"
    pods = [objects["Deployment/try-tidegate"]["spec"]["template"] for objects in (before, after)]
    assert (pods[0] != pods[1]) is bool(found.fixed)


def test_no_part_of_the_settings_is_forgotten_when_it_is_asked_what_makes_other_pods(
    values: Path, tmp_path: Path
) -> None:
    assert {key for change in CHANGES.values() for key in change} | {"patterns"} >= set(Settings.model_fields)
    before = rendered(values, ())["Deployment/try-tidegate"]
    of_limits = {name: other(tmp_path, {"limits": {name: 7}}) for name in Limits.model_fields}
    stay = {name for name, objects in of_limits.items() if objects["Deployment/try-tidegate"] == before}
    assert stay == LIVE_LIMITS


def test_kubernetes_hands_out_another_file_to_the_pods_that_run(values: Path) -> None:
    pod = rendered(values, ())["Deployment/try-tidegate"]["spec"]["template"]["spec"]
    (mount,) = (one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "settings")
    assert "subPath" not in mount


def test_the_chart_says_what_is_missing_when_keda_has_no_target(values: Path) -> None:
    with pytest.raises(StackError, match=r"keda\.target"):
        helm.render(values, ["keda.enabled=true"])


GRADES = {"gold": {"increase": 15, "decrease": 0.8}, "silver": {}, "bronze": {"increase": 5, "decrease": 0.4}}


def graded(tmp_path: Path, classes: Sequence[str]) -> Path:
    """Return values whose classes are not in the order of their names."""
    values = yaml.safe_load(SMALLEST)
    values["settings"]["classes"] = GRADES
    for one in values["settings"]["event_types"].values():
        one["class"] = "silver"
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values | ({"classes": list(classes)} if classes else {})))
    return file


def test_classes_stand_in_the_order_that_is_said_when_their_names_have_another(tmp_path: Path) -> None:
    objects = rendered(graded(tmp_path, list(GRADES)), ())
    assert list(yaml.safe_load(objects["ConfigMap/try-tidegate"]["data"]["tidegate.yaml"])["classes"].items()) == [
        *GRADES.items()
    ]


def test_other_pods_are_made_when_classes_change_their_order(tmp_path: Path) -> None:
    pods = [
        rendered(graded(tmp_path, order), ())["Deployment/try-tidegate"]["spec"]["template"]
        for order in (["gold", "silver", "bronze"], ["silver", "gold", "bronze"])
    ]
    assert pods[0] != pods[1]


@pytest.mark.parametrize(
    "said", [[], ["gold", "silver"], ["gold", "silver", "bronze", "gold"], ["gold", "silver", "tin"]]
)
def test_the_chart_asks_for_the_order_of_classes_when_it_is_not_said_whole(tmp_path: Path, said: list[str]) -> None:
    with pytest.raises(StackError, match=r"most important first"):
        helm.render(graded(tmp_path, said))


def test_the_chart_says_what_is_missing_when_there_are_no_settings() -> None:
    with pytest.raises(StackError, match=r"settings\.log is missing"):
        helm.render()

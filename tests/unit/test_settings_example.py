"""`config/tidegate.yaml` documents every setting, and what it says of them is true."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

import pytest
import yaml
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from proxy import config
from proxy.config.words import FILE_KEYS, bounds_text
from proxy.settings import CatchUpSettings, EventType, Part, Secret, Settings, Statistics, Traits, TypePattern
from proxy.settings.parts import Unit, duration_text, size_text

FOLDER = Path(__file__).parents[2] / "config"
EXAMPLE = FOLDER / "tidegate.yaml"
KEY = re.compile(r"(?P<indent> *)(?P<left_out>#?)(?P<key>[A-Za-z_][A-Za-z0-9_-]*):(?: (?P<value>.*))?")
TOLD_OTHERWISE = {
    "statistics.interval": duration_text(Statistics().period or 0),
    "class_budget.catch_up.after": duration_text(CatchUpSettings().after or 0),
    "classes.*.queue_delay": "by place between class_budget.lowest_queue_delay and highest_queue_delay",
    "event_types.*.topic": "the name of the entry",
    "event_types.*.pattern": "none",
}
"""Settings whose default is no constant of the model."""


def documented() -> dict[str, tuple[str, str]]:
    """Return path -> (comment, value) of every line that sets a key, also of those left out by a `#`."""
    found: dict[str, tuple[str, str]] = {}
    comment: list[str] = []
    stack: list[str] = []
    for line in EXAMPLE.read_text(encoding="utf-8").splitlines():
        match = KEY.fullmatch(line)
        if match:
            del stack[len(match["indent"]) // 2 :]
            stack.append(
                "*" if stack and len(stack) == 1 and stack[0] in {"routes", "classes", "event_types"} else match["key"]
            )
            found.setdefault(".".join(stack), (" ".join(comment), match["value"] or ""))
        stripped = line.strip()
        comment = [*comment, stripped[2:]] if stripped.startswith("# ") else []
    return found


def fields(model: type[Part], path: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Return every setting below a part with its path in the file."""
    for name, field in model.model_fields.items():
        here = f"{path}{FILE_KEYS.get(name, name)}"
        yield here, field
        entry = f"{here}.*." if get_origin(field.annotation) is dict else f"{here}."
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, Part):
                yield from fields(kind, entry)


def settings() -> dict[str, FieldInfo]:
    """Return every setting of the file; traits once, at `defaults`, though types may give them too."""
    found = {path: field for path, field in fields(Settings) if path.split(".")[0] not in {"event_types", "patterns"}}
    found |= dict(fields(Traits, "defaults."))
    found["event_types.*.topic"] = EventType.model_fields["topic"]
    found["event_types.*.pattern"] = TypePattern.model_fields["pattern"]
    return found


def default_text(field: FieldInfo) -> str:
    """Return the default as the file would write it."""
    default = field.get_default(call_default_factory=True)
    if isinstance(default, Secret) and default.text is not None:
        default = default.text.get_secret_value()
    if Unit.SECONDS in field.metadata and default is not None:
        return duration_text(default)
    if Unit.BYTES in field.metadata:
        return size_text(default)
    if isinstance(default, float):
        return f"{default:g}"
    return {"None": "none", "()": "none", "": '""', "True": "true", "False": "false"}.get(str(default), str(default))


DOCUMENTED = documented()
SETTINGS = settings()
LEAVES = {
    path: field for path, field in SETTINGS.items() if not any(other.startswith(f"{path}.") for other in SETTINGS)
}
SHOWN = {path for path in LEAVES if "${" not in DOCUMENTED[path][1] and "{file:" not in DOCUMENTED[path][1]}
"""Settings whose value stands in the file itself, not in the environment or another file."""


def test_every_setting_is_documented_when_it_exists() -> None:
    assert len(LEAVES) > 60
    assert {path for path in SETTINGS if path not in DOCUMENTED} == set()
    assert {path for path in LEAVES if not DOCUMENTED[path][0]} == set()


@pytest.mark.parametrize("path", sorted(LEAVES))
def test_the_documented_default_is_the_code_s_when_a_setting_has_one(path: str) -> None:
    comment, field = DOCUMENTED[path][0].lower(), LEAVES[path]
    if field.is_required() and path not in TOLD_OTHERWISE:
        assert re.search(r"\brequired\b", comment)
    else:
        default = TOLD_OTHERWISE.get(path) or default_text(field)
        assert re.search(rf"\bdefault {re.escape(default.lower())}(?=[.,;: ]|$)", comment), f"default {default}"


@pytest.mark.parametrize("path", sorted(LEAVES))
def test_the_documented_range_is_the_code_s_when_a_setting_has_one(path: str) -> None:
    field = LEAVES[path]
    kinds = {field.annotation, *get_args(field.annotation)} - {NoneType}
    if kinds & {int, float} or "Unit" in repr(field):
        bounds = bounds_text(field.annotation, tuple(field.metadata))
        comment = DOCUMENTED[path][0]
        assert re.search(rf"\b{re.escape(bounds)}[,;]", comment), bounds
        assert "Larger" in comment


def mistakes(field: FieldInfo, value: Any) -> list[str]:
    """Return what is wrong with a value."""
    adapter = TypeAdapter[Any](Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation)
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        return [str(mistake["msg"]) for mistake in error.errors()]
    return []


@pytest.mark.parametrize("path", sorted(SHOWN))
def test_the_value_shown_is_allowed_when_it_is_left_out_or_not(path: str) -> None:
    shown = DOCUMENTED[path][1]
    field = LEAVES[path]
    value: Any = yaml.load(shown, yaml.BaseLoader) if field.annotation is not bool else yaml.safe_load(shown)
    if path.endswith("routing_key.key"):
        value = True
    assert mistakes(field, value) == []


@pytest.mark.parametrize("name", ["tidegate.yaml", "minimal.yaml", "nakadi-per-type.yaml"])
def test_the_file_loads_without_a_warning_when_nothing_is_set_in_the_environment(name: str) -> None:
    loaded = config.load(FOLDER / name, {})
    assert loaded.event_types
    assert config.warnings(loaded) == []


def test_the_example_changes_no_default_when_it_is_used_as_it_is() -> None:
    loaded = config.load(EXAMPLE, {})
    assert loaded.limits == Settings.model_fields["limits"].default
    assert loaded.detector == Settings.model_fields["detector"].default
    assert loaded.throttling == Settings.model_fields["throttling"].default
    assert loaded.metric_log == Settings.model_fields["metric_log"].default
    assert loaded.admin == Settings.model_fields["admin"].default
    assert loaded.classes == Settings.model_fields["classes"].get_default(call_default_factory=True)


def test_the_seeds_pipeline_reads_nakadi_by_its_own_coefficients_when_its_example_is_loaded() -> None:
    settings = config.load(FOLDER / "nakadi-per-type.yaml", {})
    assert settings.log.nakadi is not None
    assert {route.policy for route in settings.routes.values()} == {"per_type"}
    steps = [(each.increase, each.decrease) for each in settings.classes.values()]
    assert steps == [(15, 0.8), (10, 0.6), (5, 0.4)]

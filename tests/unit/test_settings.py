"""What the settings classes take and give, without any file."""

from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from proxy.config.files import SECRETS
from proxy.settings import BrokerSettings, EventType, LogSettings, Part, Route, RoutingKey, Secret, Settings
from proxy.settings.parts import Bytes, Seconds, duration_text, size_text, split_host

SECONDS = TypeAdapter[float](Seconds)
BYTES = TypeAdapter[int](Bytes)


def some_settings() -> Settings:
    event_type = EventType(name="a", topic="a.v2", priority="P2", route="r", routing_key=RoutingKey(constant="k"))
    return Settings(
        log=LogSettings(hosts=["localhost:9092"], group="g"),
        broker=BrokerSettings(hosts=["[::1]:5672"]),
        routes={"r": Route(exchange="e")},
        event_types={"a": event_type},
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250ms", 0.25),
        ("5s", 5.0),
        ("1.5s", 1.5),
        ("10m", 600.0),
        ("2h", 7200.0),
        ("7d", 604800.0),
        ("3", 3.0),
        (" 5 s ", 5.0),
    ],
)
def test_a_duration_is_read_in_seconds_when_it_has_a_unit(text: str, seconds: float) -> None:
    assert SECONDS.validate_python(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "5 seconds", "-5s", "1e3s", "\u0665s", "1" * 16 + "s", "5s5s", "inf", "nan"])
def test_a_duration_is_refused_when_it_has_another_form(text: str) -> None:
    with pytest.raises(ValidationError):
        SECONDS.validate_python(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("512B", 512), ("64KiB", 65536), ("4MiB", 4194304), ("2GiB", 2147483648), ("1TiB", 1024**4), ("7", 7)],
)
def test_a_size_is_read_in_bytes_when_it_has_a_unit(text: str, size: int) -> None:
    assert BYTES.validate_python(text) == size


@pytest.mark.parametrize("text", ["", "5MB", "1.5MiB", "-1B", "5 mib", "1" * 5000])
def test_a_size_is_refused_when_it_has_another_form(text: str) -> None:
    with pytest.raises(ValidationError):
        BYTES.validate_python(text)


@pytest.mark.parametrize("seconds", [0.0, 0.0001, 0.05, 0.25, 1.0, 1.5, 60.0, 90.0, 3600.0, 86400.0, 604800.0])
def test_a_duration_returns_from_its_text_when_read_again(seconds: float) -> None:
    assert SECONDS.validate_python(duration_text(seconds)) == seconds


@pytest.mark.parametrize("size", [0, 1, 1000, 1024, 1536, 1024**2, 1024**3, 3 * 1024**4])
def test_a_size_returns_from_its_text_when_read_again(size: int) -> None:
    assert BYTES.validate_python(size_text(size)) == size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kafka-1:9092", ("kafka-1", 9092)),
        ("10.0.0.1:1", ("10.0.0.1", 1)),
        ("kafka_1.internal:9092", ("kafka_1.internal", 9092)),
        ("[2001:db8::1]:9092", ("2001:db8::1", 9092)),
    ],
)
def test_a_host_is_taken_apart_when_it_has_a_port(text: str, expected: tuple[str, int]) -> None:
    assert split_host(text) == expected


@pytest.mark.parametrize(
    "text", ["", "host", ":1", "host:", "host:x", "host:99999", "::1:5", "[::1]", "[no]:5", "u:p@host:5", "a b:5"]
)
def test_a_host_is_refused_when_it_has_another_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"host:port|address|IPv4|2|octet|At least"):
        split_host(text)


def test_settings_can_not_be_changed_when_made() -> None:
    with pytest.raises(ValidationError):
        some_settings().limits.headers = 5  # type: ignore[misc]


def test_types_are_found_by_topic_when_their_name_differs() -> None:
    settings = some_settings()
    assert settings.by_topic == {"a.v2": settings.event_types["a"]}
    assert settings.by_topic is settings.by_topic
    assert settings == some_settings()


def test_every_secret_may_come_from_a_file_when_the_model_holds_one() -> None:
    def secrets(model: type[Part], path: tuple[str, ...]) -> set[tuple[str, ...]]:
        found = set()
        for name, field in model.model_fields.items():
            for kind in (field.annotation, *get_args(field.annotation)):
                if kind is Secret:
                    found.add((*path, name))
                elif isinstance(kind, type) and issubclass(kind, Part):
                    found |= secrets(kind, (*path, name))
        return found

    assert secrets(Settings, ()) == set(SECRETS)


def test_every_number_is_bounded_on_both_sides_when_it_is_a_setting() -> None:
    def unbounded(model: type[Part], path: str) -> set[str]:
        found = set()
        for name, field in model.model_fields.items():
            kinds = [kind for kind in (field.annotation, *get_args(field.annotation)) if isinstance(kind, type)]
            marks = repr(field)
            if {int, float} & set(kinds) and not ("ge=" in marks and "le=" in marks):
                found.add(f"{path}{name}")
            for kind in kinds:
                found |= unbounded(kind, f"{path}{name}.") if issubclass(kind, Part) else set()
        return found

    assert unbounded(Settings, "") == set()


@pytest.mark.parametrize("parts", [{"policy": "static", "queues": ("q",)}, {"queues": ()}])
def test_wanted_consumers_are_refused_when_nobody_could_tell_what_they_take(parts: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="scaling: "):
        Route.model_validate({"exchange": "x", "scaling": {}, **parts})
    assert Route.model_validate({"exchange": "x", "scaling": {}, "queues": ("a", "b")}).scaling is not None

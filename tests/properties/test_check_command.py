"""Whatever a settings file near a valid one holds, `tidegate check` explains it or names every mistake: 0 or 2."""

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.__main__ import main

VALID: dict[str, Any] = {
    "log": {"hosts": ["kafka:9092"], "group": "tidegate", "security": {"protocol": "SSL"}},
    "broker": {"hosts": ["rabbit:5672"], "password": "${SECRET}", "heartbeat": "5s", "depth_polls": 1000},
    "routes": {
        "mails": {"exchange": "events", "queues": ["mail", "push"], "in_flight_events": 200, "in_flight_bytes": "8MiB"},
        "orders": {"exchange": "", "policy": "per_type", "cap": {"events": 100}},
    },
    "classes": {"P1": {"increase": 15, "decrease": 0.8}, "P2": {"queue_delay": "200ms", "events": {"max_age": "1h"}}},
    "class_budget": {"tick": "50ms", "growth": 0.12},
    "statistics": {"cron": "*/5 * * * * *"},
    "limits": {"event_bytes": "1MiB", "headers": 64},
    "metric_log": {"folder": "metrics", "total_bytes": "2GiB"},
    "admin": {"listen": "127.0.0.1:8080"},
    "defaults": {"class": "P2", "route": "mails", "routing_key": "key", "dead_letter": {"routing_key": "dead"}},
    "event_types": {
        "order-confirmed": {"class": "P1", "route": "orders", "routing_key": {"header": "to"}, "order": "strict"},
        "news": {"pattern": "news.*", "max_age": "5m"},
        "brand": {"topic": "brand.v2"},
    },
}
SECRET = "hunter2-correct-horse"
MISTAKE = re.compile(r".+?:[0-9]+: .+")

numbers = st.one_of(
    st.integers(-2, 10), st.integers(), st.floats(), st.sampled_from([0, -1, 2**31, 2**63, 10**400, 1e308, 5e-324])
)
texts = st.one_of(
    st.sampled_from(["", " ", "P1", "mails", "5s", "1e9h", "0.1ms", "1EiB", "a:99999", "[::1]:1", "*"]),
    st.sampled_from(["\x00", "\x1b[2J", "\x7f\x9b", "\u2028", "\u202e", "a\nb", "é", "→", "😀", "\ufeff", "n" * 300]),
    st.text(max_size=12),
    numbers.map(lambda number: f"{number}s"[:300]),
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
places = st.integers(0, 10_000)
changes = st.one_of(
    st.tuples(st.just("set"), places, values),
    st.tuples(st.just("drop"), places, st.none()),
    st.tuples(
        st.just("rename"), places, texts | st.sampled_from(["cap", "policy", "topic", "pattern", "queues", "tls"])
    ),
    st.tuples(st.just("wrap"), places, st.booleans()),
    st.tuples(st.just("many"), places, st.sampled_from([2, 2, 2, 300])),
    st.tuples(st.just("alias"), places, places),
)


def entries(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of every value in a tree; one that holds itself is gone through once."""
    waiting, known = [tree], {id(tree)}
    while waiting:
        holder = waiting.pop()
        for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            yield holder, key
            if isinstance(value, dict | list) and id(value) not in known:
                known.add(id(value))
                waiting.append(value)


def changed(tree: Any, kind: str, place: int, more: Any) -> None:
    found = list(entries(tree))
    holder, key = found[place % len(found)]
    match kind:
        case "set":
            holder[key] = more
        case "drop":
            del holder[key]
        case "rename" if isinstance(holder, dict):
            holder[more] = holder.pop(key)
        case "wrap":
            holder[key] = [holder[key]] if more else {"key": holder[key]}
        case "many":
            holder[key] = [holder[key]] * more
        case "alias":
            other, name = found[more % len(found)]
            holder[key] = other[name]


@contextmanager
def terminal(encoding: str) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Standard output and error as files of an encoding."""
    out, err = io.BytesIO(), io.BytesIO()
    with (
        mock.patch.object(sys, "stdout", io.TextIOWrapper(out, encoding, write_through=True)),
        mock.patch.object(sys, "stderr", io.TextIOWrapper(err, encoding, "backslashreplace", write_through=True)),
    ):
        yield out, err


def check(file: Path, data: bytes, *options: str, encoding: str = "utf-8") -> tuple[int, str]:
    """Run the command; return its exit code and all that it said."""
    file.write_bytes(data)
    with terminal(encoding) as (out, err), mock.patch.dict("os.environ", {"SECRET": SECRET}):
        code = main(["check", "-c", str(file), *options])
        said, told = out.getvalue().decode(encoding), err.getvalue().decode(encoding)
    if code == 0:
        assert said
        assert all(line.startswith("warning: ") for line in told.splitlines()), told
    else:
        assert (code, said) == (2, "")
        assert told.splitlines()
        assert all(MISTAKE.fullmatch(line) for line in told.splitlines()), told
    if data.count(b"${SECRET}") < 2:  # the password, not copied to where things are shown
        assert SECRET not in said + told
    if "--json" not in options:
        assert (said + told).replace("\n", "").isprintable(), "what a terminal obeys is not for it"
    return code, said + told


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(changes, min_size=1, max_size=3), st.sampled_from([(), ("--json",)]), st.sampled_from(["utf-8", "ascii"])
)
def test_the_command_explains_or_names_every_mistake_when_a_valid_file_is_changed(
    tmp_path: Path, made: list[tuple[str, int, Any]], options: tuple[str, ...], encoding: str
) -> None:
    tree = deepcopy(VALID)
    for kind, place, more in made:
        changed(tree, kind, place, more)
        if not tree:
            break
    check(
        tmp_path / "tidegate.yaml",
        yaml.dump(tree, allow_unicode=True).encode(errors="replace"),
        *options,
        encoding=encoding,
    )


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(places, min_size=1, max_size=3))
def test_a_key_that_is_given_twice_is_named_when_lines_are_repeated(tmp_path: Path, repeated: list[int]) -> None:
    lines = yaml.dump(VALID).splitlines()
    for place in repeated:
        number = place % len(lines)
        lines.insert(number, lines[number])
    code, said = check(tmp_path / "tidegate.yaml", "\n".join(lines).encode())
    assert code == 2 or "warning: " in said


def test_the_file_they_are_changed_from_is_valid(tmp_path: Path) -> None:
    assert check(tmp_path / "tidegate.yaml", yaml.dump(VALID).encode())[0] == 0


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(["mäil→", "a\x1b[2Jb", "a\nb", "\u202eliam", "\u2028", "😀"]) | st.text(max_size=5))
def test_the_summary_is_printable_when_exchange_and_queue_are_called_anything(tmp_path: Path, name: str) -> None:
    tree = deepcopy(VALID)
    tree["routes"]["mails"] |= {"exchange": f"x{name}", "queues": [f"q{name}"]}
    said = [check(tmp_path / "tidegate.yaml", yaml.dump(tree).encode(), encoding=of) for of in ("utf-8", "ascii")]
    assert {code for code, _ in said} == {0}

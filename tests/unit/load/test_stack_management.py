"""The management API of a local stack is there only where it was asked for, and says so."""

from pathlib import Path

import pytest

from load.stack import Stack, StackError, containers, packages
from load.stack.errors import SetupError
from load.stack.state import State


def test_the_address_is_told_when_the_stack_has_the_api(tmp_path: Path) -> None:
    stack = Stack(State("one", tmp_path, tmp_path, {"management": 20005}, software=None))
    assert stack.management == "http://127.0.0.1:20005"


def test_asking_for_the_address_is_a_mistake_when_the_stack_has_no_api(tmp_path: Path) -> None:
    stack = Stack(State("one", tmp_path, tmp_path, {"amqp": 20004}, software=None))
    with pytest.raises(StackError, match="management=True"):
        _ = stack.management


def test_the_api_is_refused_when_the_nodes_would_be_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "lacks_java_for_good", lambda: True)
    monkeypatch.setattr(containers, "engine_answers", lambda: True)
    with pytest.raises(SetupError, match="management"):
        Stack.up(management=True)

"""The state file, the lock, and what is deleted."""

import multiprocessing
import os
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from load.stack import state as module
from load.stack.errors import StackError
from load.stack.packages import Software
from load.stack.processes import Identity, identity
from load.stack.state import State, home_of, homes, locked, remove


def a_state(home: Path, **changes: object) -> State:
    software = Software(Path("/java"), Path("/jars"), Path("/sbin"))
    known = State("one", home, home / "data", {"kafka": 20001, "amqp": 20002}, software)
    return replace(known, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("software", [None, Software(Path("/java"), Path("/jars"), Path("/sbin"))])
def test_a_state_reads_as_it_was_written_when_saved(tmp_path: Path, software: Software | None) -> None:
    known = a_state(tmp_path / "one", software=software, owner=Identity(7, 70), versions={"kafka": "4"})
    known = known.with_process("kafka", Identity(8, 80))

    known.save()

    assert State.load(known.path) == known


def test_a_process_is_forgotten_when_it_is_stopped(tmp_path: Path) -> None:
    known = a_state(tmp_path).with_process("kafka", Identity(8, 80)).with_process("rabbitmq", Identity(9, 90))

    assert known.with_process("kafka", None).processes == {"rabbitmq": Identity(9, 90)}


def test_the_file_stays_whole_when_writing_the_next_is_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = a_state(tmp_path)
    known.save()
    monkeypatch.setattr(module.os, "fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))

    with pytest.raises(KeyboardInterrupt):
        replace(known, heap="2g").save()

    assert State.load(known.path) == known


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"processes": 3}'])
def test_the_file_is_named_when_it_is_no_state(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)

    with pytest.raises(StackError, match=r"state.json is no state file"):
        State.load(tmp_path / "state.json")


def test_the_way_to_start_one_is_told_when_there_is_no_stack(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="no stack is up"):
        State.load(tmp_path / "state.json")


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "-a", "a" * 41, "a b", "a.lock"])
def test_a_name_is_refused_when_it_could_mean_another_folder(name: str) -> None:
    with pytest.raises(StackError, match="can't name a stack"):
        home_of(name)


def test_a_stack_is_abandoned_when_its_owner_has_ended(tmp_path: Path) -> None:
    this = identity(os.getpid())
    assert this is not None

    assert not a_state(tmp_path).is_abandoned()
    assert not a_state(tmp_path, owner=this).is_abandoned()
    assert a_state(tmp_path, owner=replace(this, started=this.started - 1)).is_abandoned()


def test_only_what_the_stack_made_is_deleted_when_others_use_its_data_folder(tmp_path: Path) -> None:
    data = tmp_path / "given"
    known = a_state(tmp_path / "one", data=data)
    known.save()
    (data / "kafka" / "log").mkdir(parents=True)
    (data / "notes").write_text("mine")

    remove(known.home, known)

    assert [path.name for path in data.iterdir()] == ["notes"]
    assert not known.home.exists()


def test_nothing_is_left_when_the_data_folder_was_the_stacks_alone(tmp_path: Path) -> None:
    known = a_state(tmp_path / "one", data=tmp_path / "given")
    known.save()
    (known.data / "rabbitmq").mkdir(parents=True)

    remove(known.home, known)

    assert list(tmp_path.iterdir()) == []


def test_stacks_are_found_when_locks_lie_beside_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HOMES", tmp_path)
    a_state(tmp_path / "one").save()

    with locked(tmp_path / "two"):
        assert homes() == [tmp_path / "one"]
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def _hold(home: Path, ready: Connection) -> None:
    with locked(home):
        ready.send(None)
        ready.poll(60)


def test_others_wait_for_the_lock_when_it_is_held_and_get_it_when_the_holder_is_killed(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    holder = context.Process(target=_hold, args=(tmp_path / "one", there))
    holder.start()
    here.recv()

    with pytest.raises(BlockingIOError), locked(tmp_path / "one", wait=False):
        pass
    holder.kill()
    holder.join()
    with locked(tmp_path / "one"):
        assert (tmp_path / "one.lock").exists()
    assert not (tmp_path / "one.lock").exists()
    holder.close()

"""Who has a store at an address: one process, until it has ended or nothing was heard of it for a while."""

import threading
from collections.abc import Callable

import pytest

from proxy.reports.files import ReportError
from proxy.reports.places import Entry, Places
from proxy.reports.store import lease as module
from proxy.reports.store.lease import LEASE_S, RENEWAL_S, Lease, leased

STORE = "s3a://bucket/store"
DEADLINE = 30.0


class Memory(Places):
    """A store in memory, whose clock a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.texts: dict[str, tuple[str, int]] = {}
        self.before_making: Callable[[], None] = lambda: None

    def entries(self, place: str) -> list[Entry]:
        found = [(name, *held) for name, held in self.texts.items() if name == place or name.startswith(f"{place}/")]
        return sorted(Entry(name, is_folder=False, size=len(text), changed_ms=at) for name, text, at in found)

    def read_text(self, place: str) -> str:
        return self.texts[place][0]

    def write_text(self, place: str, text: str) -> None:
        self.texts[place] = text, round(1000 * self.seconds)

    def create_text(self, place: str, text: str) -> bool:
        before, self.before_making = self.before_making, lambda: None
        before()
        if place in self.texts:
            return False
        self.write_text(place, text)
        return True

    def delete(self, place: str) -> None:
        self.texts.pop(place, None)


@pytest.fixture
def store() -> Memory:
    return Memory()


def test_a_second_report_is_told_who_has_the_store_and_how_long_it_is_his_when_he_was_killed(store: Memory) -> None:
    Lease(store, STORE).take("process 1")
    store.seconds = 20.0
    wait = f"{LEASE_S - 20:.0f}"
    with pytest.raises(ReportError, match=rf"^{STORE}: another report has .+\(process 1\);.+ or in {wait} s if it was"):
        Lease(store, STORE).take("process 2")


def test_a_store_is_free_at_once_when_its_report_has_ended(store: Memory) -> None:
    for number in range(3):
        lease = Lease(store, STORE)
        lease.take(f"process {number}")
        lease.release()
    assert sorted(store.texts) == [f"{STORE}/locks/00000003"]


def test_a_store_is_free_after_a_while_when_its_report_was_killed(store: Memory) -> None:
    Lease(store, STORE).take("process 1")
    store.seconds = LEASE_S - 1
    with pytest.raises(ReportError, match="process 1"):
        Lease(store, STORE).take("process 2")
    store.seconds = LEASE_S
    Lease(store, STORE).take("process 2")


def test_a_store_stays_held_when_its_report_says_that_it_lives(store: Memory) -> None:
    lease = Lease(store, STORE)
    lease.take("process 1")
    for _ in range(20):
        store.seconds += RENEWAL_S
        lease.renew()
    with pytest.raises(ReportError, match="process 1"):
        Lease(store, STORE).take("process 2")
    lease.check()


def test_a_report_that_stood_still_hears_that_the_store_is_another_s_and_leaves_it_alone(store: Memory) -> None:
    stopped, other = Lease(store, STORE), Lease(store, STORE)
    stopped.take("process 1")
    store.seconds = LEASE_S
    other.take("process 2")
    held = dict(store.texts)
    stopped.renew()
    stopped.release()
    assert store.texts == held
    with pytest.raises(ReportError, match="another report has taken this store over"):
        stopped.check()
    other.release()
    with pytest.raises(ReportError, match="another report has taken this store over"):
        stopped.check()


def test_one_report_has_the_store_when_several_take_it_at_the_same_time(store: Memory) -> None:
    def others() -> None:
        Lease(store, STORE).take("process 2")

    store.before_making = others
    with pytest.raises(ReportError, match="another report took this store just now"):
        Lease(store, STORE).take("process 1")


def test_one_report_has_the_store_when_numbers_went_on_between_a_look_and_a_take(store: Memory) -> None:
    Lease(store, STORE).take("process 0")
    store.seconds = LEASE_S

    def others() -> None:
        first, second = Lease(store, STORE), Lease(store, STORE)
        first.take("process 2")
        first.release()
        second.take("process 3")

    store.before_making = others
    with pytest.raises(ReportError, match="another report took this store just now"):
        Lease(store, STORE).take("process 1")
    with pytest.raises(ReportError, match="process 3"):
        Lease(store, STORE).take("process 4")


def test_what_a_report_runs_is_ended_when_another_has_taken_the_store(
    store: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEWAL_S", 0.001)
    ended = threading.Event()

    def work() -> None:
        with leased(store, STORE, "process 1", ended.set):
            store.seconds = 2 * LEASE_S
            store.texts = {f"{STORE}/locks/00000002": ("process 2\n", 0)}
            ended.wait(DEADLINE)
            raise RuntimeError("what Spark says when it was told to stop")

    with pytest.raises(ReportError, match="another report has taken this store over"):
        work()
    assert ended.is_set()
    assert store.texts[f"{STORE}/locks/00000002"] == ("process 2\n", 0)

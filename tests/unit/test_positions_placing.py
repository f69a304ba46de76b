"""Where reading goes on when the log has changed under an epoch."""

import asyncio
from collections.abc import Collection, Mapping

import pytest
from structlog.testing import capture_logs

from proxy.bridge.event_log import Beginning
from proxy.bridge.move import Moved
from proxy.errors import LogError
from proxy.model import Partition, Position
from proxy.positions.identity import Committed
from proxy.positions.placing import SETTLE_SECONDS, Placing
from proxy.positions.port import EARLIEST, Membership
from proxy.positions.positions import FIRST_PAUSE, LONGEST_PAUSE, Positions
from proxy.positions.share import Share
from proxy.settings import LogSettings
from proxy.simulation import virtual_time

AT = Partition("orders", 0)
SETTINGS = LogSettings(hosts=["h:1"], group="g")


class Log:
    """Fetches, offsets, a group and an owner in one, as far as placing asks them."""

    def __init__(self, first: int, end: int) -> None:
        self.bounds = (first, end)
        self.held_back = 0
        """Records of a transaction that has not ended."""
        self.ids = {"orders": "one"}
        self.group: dict[Partition, Committed] = {}
        self.sought: list[int] = []
        self.flowing = False
        self.epochs: list[Partition] = []
        self.lost = 0
        self.beginnings: list[Beginning] = []
        self.read_by: int | None = None
        """The epoch of the leader whose events were read last."""
        self.kept: dict[Partition, int | None] = {}
        """Where its log ended."""
        self.trusted = False
        self.believed: list[tuple[int | None, int]] = []

    def leader_epoch(self, _: Partition) -> int | None:
        return self.read_by

    def believe(self, _: Partition, epoch: int | None, offset: int) -> None:
        self.believed.append((epoch, offset))

    def trust(self, _: Partition) -> None:
        self.trusted = True

    async def leader_ends(self, epochs: Mapping[Partition, int]) -> dict[Partition, int | None]:
        assert set(epochs.values()) == {self.read_by}
        return {at: end for at, end in self.kept.items() if at in epochs}

    def seek(self, _: Partition, offset: int) -> None:
        self.sought.append(offset)

    def pause(self, _: Partition) -> None:
        self.flowing = False

    def resume(self, _: Partition) -> None:
        self.flowing = True

    async def offsets(self, times: Mapping[Partition, int]) -> dict[Partition, int]:
        return {at: self.bounds[0 if time == EARLIEST else 1] for at, time in times.items()}

    async def ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return dict.fromkeys(partitions, self.bounds[1] + self.held_back)

    async def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        return {name: topic_id for name, topic_id in self.ids.items() if name in names}

    async def committed(self) -> dict[Partition, Committed]:
        return self.group

    def on_assigned(self, partitions: Collection[Partition]) -> Collection[Partition]:
        self.epochs += partitions
        return []

    async def on_revoked(self, _: Collection[Partition]) -> Mapping[Partition, Position]:
        return {}

    def on_begun(self, _: Partition, beginning: Beginning) -> None:
        self.beginnings.append(beginning)

    async def on_moving(self, _: Collection[Partition]) -> Mapping[Partition, Position]:
        return {}

    def on_moved(self, moved: Moved) -> None: ...

    def on_ended(self, taken: Mapping[Partition, int]) -> None: ...

    def on_passed(self, partition: Partition) -> None: ...

    def on_truncated(self, _: Partition, at_most: int, first: int) -> None:
        self.lost += at_most
        self.first_left = first


async def attend(log: Log, share: Share, **settings: str) -> bool:
    chosen = LogSettings.model_validate({"hosts": ["h:1"], "group": "g"} | settings)
    placing = Placing(chosen, log, log, log, log)  # type: ignore[arg-type]
    shares = {AT: share}
    return await placing.attend(lambda: shares)


async def test_an_epoch_begins_in_steps_and_no_further_when_it_ends_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("proxy.positions.placing.BEGUN_AT_ONCE", 10)
    log, places = Log(first=0, end=5), [Partition("orders", number) for number in range(35)]
    shares = {at: Share(at, is_paused=True) for at in places}
    placing = Placing(LogSettings(hosts=("h:1",), group="g"), log, log, log, log)  # type: ignore[arg-type]
    attending = asyncio.create_task(placing.attend(lambda: shares))
    async with asyncio.timeout(5):
        for step in (10, 20):
            while len(log.beginnings) < step:  # noqa: ASYNC110 -- the step is what is looked for
                await asyncio.sleep(0)
            assert len(log.beginnings) == step
        shares = {}
        assert await attending
    assert len(log.beginnings) == 20


async def attended(log: Log, wanted: int, *, unfinished: int = 0) -> Share:
    share = Share(AT, is_paused=True, began=0, done=wanted - unfinished, next=wanted, unavailable=wanted)
    assert await attend(log, share)
    return share


async def test_a_new_epoch_begins_when_the_topic_was_deleted_and_made_anew_unnoticed() -> None:
    log = Log(first=0, end=5)
    share = await attended(log, wanted=50)
    assert log.epochs == [Partition("orders", 0)]
    assert (share.began, share.done, log.sought, log.flowing, log.lost) == (0, 0, [0], True, 0)


async def test_the_epoch_goes_on_and_the_loss_is_counted_when_the_log_was_truncated() -> None:
    log = Log(first=70, end=100)
    share = await attended(log, wanted=50, unfinished=10)
    assert (log.epochs, log.lost, log.sought) == ([], 20, [70])
    assert share.done == 40
    share.finish(49)
    assert share.done == 70


@pytest.mark.parametrize(("end", "kept", "begins"), [(100, 30, 30), (40, 30, 30), (100, 3, 10), (100, 49, 49)])
async def test_a_new_epoch_begins_where_the_last_leader_ended_when_the_log_was_cut_behind_it(
    end: int, kept: int, begins: int
) -> None:
    log = Log(first=10, end=end)
    log.read_by, log.kept = 4, {AT: kept}
    with capture_logs() as said:
        share = await attended(log, wanted=50)
    assert log.epochs == [AT]
    assert (share.began, share.done, log.sought, log.flowing, log.trusted) == (begins, begins, [begins], True, True)
    assert not share.is_pinned, "what was committed stands behind it"
    assert [(entry["event"], entry["wanted"], entry["kept"]) for entry in said] == [("log_cut_back", 50, kept)]


async def test_the_epoch_goes_on_when_the_log_has_long_held_what_it_says_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Read from where the leader ended, it brings more of that leader: without end, if that were believed."""
    monkeypatch.setattr("proxy.positions.kept.CONTRADICTED_SECONDS", 0.05)
    log = Log(first=10, end=100)
    log.read_by, log.kept = 4, {AT: 30}
    with capture_logs() as said:
        share = await attended(log, wanted=50)
        for _ in range(20):
            if log.sought[-1] == 30:
                share.unavailable = share.next = 50
                await asyncio.sleep(0.01)
                assert await attend(log, share)
    assert log.sought[-1] == 50
    assert len(log.sought) > 2, "it was not believed at once"
    events = [entry["event"] for entry in said]
    assert events == ["log_cut_back"] * (len(events) - 1) + ["leader_end_contradicted"]
    assert log.epochs == [AT] * (len(events) - 1), "the last goes on in the epoch there is"


@pytest.mark.parametrize("kept", [50, 51, None])
async def test_the_epoch_goes_on_when_another_leader_has_all_that_was_read_or_nobody_knows(kept: int | None) -> None:
    log = Log(first=10, end=100)
    log.read_by, log.kept = 4, {AT: kept}
    share = await attended(log, wanted=50)
    assert (log.epochs, share.done, share.is_placed, log.sought, log.trusted) == ([], 50, True, [50], True)


async def test_it_is_asked_again_when_the_leader_can_not_tell_now_where_the_one_before_ended() -> None:
    log = Log(first=10, end=100)
    log.read_by = 4
    share = Share(AT, is_paused=True, began=0, done=50, unavailable=50)
    assert not await attend(log, share)
    assert (share.unavailable, log.sought, log.trusted) == (50, [], False)


@pytest.mark.parametrize(("topic_id", "believed"), [("one", [(4, 50)]), ("", [(4, 50)]), ("two", [])])
async def test_what_the_group_knows_of_leaders_is_believed_when_it_is_of_this_log(
    topic_id: str, believed: list[tuple[int | None, int]]
) -> None:
    log = Log(first=0, end=100)
    log.group = {AT: Committed(50, topic_id, leader_epoch=4)}
    await attend(log, Share(AT, is_paused=False))
    assert log.believed == believed


async def test_the_loss_is_counted_when_what_was_read_and_what_the_last_leader_kept_is_gone() -> None:
    log = Log(first=70, end=100)
    log.read_by, log.kept = 4, {AT: 20}
    await attended(log, wanted=50)
    assert (log.epochs, log.lost, log.sought) == ([], 20, [70])


async def test_the_epoch_goes_on_when_its_offset_stands_behind_a_transaction_that_is_open() -> None:
    log = Log(first=0, end=50)
    log.held_back = 20
    share = await attended(log, wanted=60)
    assert (log.epochs, log.lost, log.sought, share.began, share.done) == ([], 0, [60], 0, 60)


async def test_a_loss_is_said_to_be_the_most_there_can_be_when_the_log_was_truncated() -> None:
    with capture_logs() as said:
        await attended(Log(first=70, end=100), wanted=50)
    [truncated] = [entry for entry in said if entry["event"] == "log_truncated"]
    assert truncated["lost_at_most"] == 20
    assert "lost" not in truncated


async def test_a_new_epoch_begins_when_the_id_changed_although_the_offset_is_there() -> None:
    log = Log(first=0, end=90)
    share = Share(AT, is_paused=False, is_placed=True, began=0, done=50, next=50, topic_id="one")
    assert await attend(log, share)
    assert log.epochs == log.sought == []
    log.ids = {"orders": "two"}
    assert not await attend(log, share)
    assert not share.is_placed  # nothing more is read, and commits still name the topic that is gone
    assert (share.done, share.topic_id, log.epochs) == (50, "one", [])
    share.noticed_at -= SETTLE_SECONDS
    assert await attend(log, share)
    assert log.epochs == [Partition("orders", 0)]
    assert (share.began, share.done, share.next, share.topic_id, log.sought[-1]) == (0, 0, 0, "two", 0)
    assert share.is_placed
    assert not share.is_pinned  # its beginning is committed at once
    assert await attend(log, share)
    assert len(log.epochs) == 1


async def test_it_is_said_that_a_log_began_anew_when_the_group_was_without_its_topic_in_between() -> None:
    log = Log(first=0, end=90)
    placing = Placing(SETTINGS, log, log, log, log)  # type: ignore[arg-type]
    with capture_logs() as said:
        for log.ids in ({"orders": "one"}, {"orders": "one"}, {"orders": "two"}, {"orders": "two"}):
            shares = {
                AT: Share(AT, is_paused=False)
            }  # a new epoch; Kafka forgets what was committed in a topic deleted
            assert await placing.attend(lambda shares=shares: shares)  # type: ignore[misc]
    assert [(entry["event"], entry["topic_id"]) for entry in said] == [("log_restarted", "two")]


@pytest.mark.parametrize(("missing", "begins"), [(["orders"], 0), (["news"], 90)])
async def test_reading_begins_at_the_first_offset_when_the_topic_was_missing_before(
    missing: list[str], begins: int
) -> None:
    log, share = Log(first=0, end=90), Share(AT, is_paused=False)
    placing = Placing(SETTINGS.model_copy(update={"start": "latest"}), log, log, log, log)  # type: ignore[arg-type]
    placing.note_missing(missing)
    shares = {AT: share}
    assert await placing.attend(lambda: shares)
    assert (share.began, share.is_pinned) == (begins, False)


@pytest.mark.parametrize(("start", "is_pinned"), [("latest", False), ("earliest", True)])
async def test_the_group_is_to_remember_a_log_when_another_took_its_name_and_reading_would_begin_at_the_end(
    start: str, *, is_pinned: bool
) -> None:
    log = Log(first=0, end=90)
    share = Share(AT, is_paused=False, is_placed=True, is_pinned=True, began=0, done=50, next=50, topic_id="one")
    log.ids = {"orders": "two"}
    assert not await attend(log, share, start=start)
    assert (share.is_pinned, share.done, share.topic_id) == (is_pinned, 50, "one")


async def test_a_new_log_has_settled_when_it_was_noticed_before_a_rebalance() -> None:
    log = Log(first=0, end=90)
    placing = Placing(SETTINGS, log, log, log, log)  # type: ignore[arg-type]
    log.ids, log.group = {"orders": "two"}, {AT: Committed(50, "one")}

    async def noticed_at() -> float:
        shares = {AT: Share(AT, is_paused=False)}
        assert not await placing.attend(lambda: shares)
        return shares[AT].noticed_at

    first = await noticed_at()
    assert await noticed_at() == first


def test_a_new_epoch_is_placed_at_once_when_the_log_has_not_answered_for_long() -> None:
    log = Log(first=0, end=90)
    answering = log.topic_ids

    async def silent(_: Collection[str]) -> dict[str, str]:
        raise LogError("no answer")

    async def placed() -> None:
        positions = Positions(SETTINGS, log, log, log, log)  # type: ignore[arg-type]
        keeper = asyncio.create_task(positions.keep())
        log.topic_ids = silent  # type: ignore[method-assign]
        positions.begin([AT], Membership(1, "m"))
        await asyncio.sleep(10 * LONGEST_PAUSE)
        log.topic_ids = answering  # type: ignore[method-assign]
        positions.begin([AT], Membership(2, "m"))
        await asyncio.sleep(FIRST_PAUSE / 2)
        assert log.flowing
        keeper.cancel()

    virtual_time.run(placed())


async def test_a_truncation_is_none_when_the_topic_was_made_anew() -> None:
    log = Log(first=70, end=100)
    log.ids = {"orders": "two"}
    share = Share(AT, is_paused=False, is_placed=True, began=0, done=50, unavailable=50, topic_id="one")
    assert not await attend(log, share)
    share.noticed_at -= SETTLE_SECONDS
    assert await attend(log, share)
    assert (log.lost, share.done, share.unavailable) == (0, 70, None)


async def test_the_epoch_goes_on_when_the_id_can_not_be_told_for_a_while() -> None:
    log = Log(first=0, end=90)
    share = Share(AT, is_paused=False, is_placed=True, began=0, done=50, next=50, topic_id="one")
    for ids in ({}, {"orders": ""}, {"orders": "one"}):
        log.ids = ids
        assert await attend(log, share)
    assert share.is_placed
    assert (share.done, share.topic_id, log.epochs) == (50, "one", [])


async def test_reading_goes_on_where_it_stood_when_a_broker_was_behind_the_others() -> None:
    log = Log(first=0, end=90)
    share = Share(AT, is_paused=False, is_placed=True, began=0, done=50, next=60, topic_id="two")
    assert not await attend(log, share)  # it tells the former id still
    assert not share.is_placed
    log.ids = {"orders": "two"}
    assert await attend(log, share)
    assert (share.is_placed, share.done, share.next, log.sought[-1], log.epochs) == (True, 50, 60, 60, [])


@pytest.mark.parametrize(
    ("committed", "told", "begins", "known"),
    [
        (Committed(50, "one"), "one", 50, "one"),
        (Committed(50, ""), "one", 50, "one"),
        (Committed(50, ""), "", 50, ""),
        (Committed(50, "one"), "", 50, "one"),
        (None, "one", 10, "one"),
        (None, "", 10, ""),
    ],
)
async def test_reading_begins_where_the_group_left_it_when_the_topic_is_not_known_to_be_another(
    committed: Committed | None, told: str, begins: int, known: str
) -> None:
    log, share = Log(first=10, end=90), Share(AT, is_paused=False)
    log.ids = {"orders": told}
    log.group = {} if committed is None else {AT: committed}
    assert await attend(log, share)
    assert (share.began, share.done, share.topic_id, share.is_placed) == (begins, begins, known, True)
    assert log.epochs == []


async def test_reading_begins_at_the_first_offset_when_the_commit_is_of_a_topic_that_is_gone() -> None:
    log, share = Log(first=0, end=90), Share(AT, is_paused=False)
    log.ids, log.group = {"orders": "two"}, {AT: Committed(50, "one")}
    assert not await attend(log, share, start="latest")
    share.noticed_at -= SETTLE_SECONDS
    assert await attend(log, share, start="latest")
    assert (share.began, share.done, share.topic_id, share.is_pinned) == (0, 0, "two", False)
    assert log.epochs == []  # nothing of this epoch was read yet


async def test_nothing_is_read_when_the_topic_is_gone_or_its_id_can_not_be_told() -> None:
    log, share = Log(first=0, end=90), Share(AT, is_paused=False)
    log.ids = {}
    assert not await attend(log, share)
    assert share.began is None
    assert not share.is_placed


async def test_a_loss_is_counted_once_when_nothing_follows_it_and_another_replica_takes_over() -> None:
    log = Log(first=70, end=70)
    share = Share(AT, is_paused=False, is_placed=True, is_pinned=True, began=0, done=50, next=50, unavailable=51)
    assert await attend(log, share)
    assert (log.lost, share.done, share.is_pinned) == (19, 70, False)  # what is not pinned is committed at once
    log.group, successor = {AT: Committed(share.done, share.topic_id)}, Share(AT, is_paused=False)
    assert await attend(log, successor)
    assert (log.lost, successor.next) == (19, 70)


async def test_a_loss_is_passed_only_with_the_events_before_it_when_some_are_still_out() -> None:
    log = Log(first=70, end=70)
    share = Share(AT, is_paused=False, is_placed=True, is_pinned=True, began=0, done=30, next=50, unavailable=50)
    assert await attend(log, share)
    assert (share.done, share.is_pinned) == (30, True)
    log.bounds, share.unavailable = (90, 95), 70  # and dropped once more before anything was read
    assert await attend(log, share)
    share.finish(48)
    assert share.done == 49
    share.finish(49)
    assert (share.done, log.lost) == (90, 40)
    share.finish(91)
    assert share.done == 92

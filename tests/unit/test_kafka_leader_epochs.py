"""By which leader partitions were read, and what is known of it when reading goes on elsewhere."""

import pytest
from aiokafka import TopicPartition

from proxy.kafka_log.leader_epochs import LeaderEpochs, NewLeaderError

AT, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_a_later_leader_is_stopped_at_until_it_is_trusted() -> None:
    leaders = LeaderEpochs()
    leaders.pass_on(AT, 4, 10)
    leaders.pass_on(AT, 4, 20)
    for _ in range(2):
        with pytest.raises(NewLeaderError, match="epoch 6 follows 4"):
            leaders.pass_on(AT, 6, 30)
    leaders.pass_on(OTHER, 6, 30)
    assert leaders.of(AT) == 4
    leaders.forget(AT)
    leaders.pass_on(AT, 6, 30)
    assert leaders.of(AT) == 6


def test_what_an_earlier_leader_wrote_and_what_does_not_tell_changes_nothing() -> None:
    leaders = LeaderEpochs()
    leaders.pass_on(AT, -1, 5)
    assert leaders.of(AT) is None
    leaders.pass_on(AT, 4, 10)
    leaders.pass_on(AT, 2, 4)
    leaders.pass_on(AT, -1, 5)
    assert leaders.of(AT) == 4


@pytest.mark.parametrize(("offset", "known"), [(0, 4), (10, 4), (11, None)])
def test_nothing_is_known_beyond_what_was_read_when_reading_goes_on_elsewhere(offset: int, known: int | None) -> None:
    leaders = LeaderEpochs()
    leaders.pass_on(AT, 4, 10)
    leaders.move(AT, offset)
    leaders.move(OTHER, offset)
    assert (leaders.of(AT), leaders.of(OTHER)) == (known, None)


@pytest.mark.parametrize("epoch", [3, 5, None])
def test_what_is_told_counts_and_not_what_was_read_before_perhaps_of_another_log(epoch: int | None) -> None:
    leaders = LeaderEpochs()
    leaders.pass_on(AT, 4, 10)
    leaders.believe(AT, epoch, 5)
    leaders.move(AT, 5)
    assert leaders.of(AT) == epoch
    leaders.move(AT, 6)
    assert leaders.of(AT) is None

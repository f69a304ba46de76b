"""When the flow is back after a fault, on made-up sightings."""

from load.flow_back import Fault, FlowBack, Sighting, flow_back

A, B = ("t", 0), ("t", 1)
ENDS = {A: 100, B: 100}
FAULT = Fault("restart", began=10.0, mended=14.0)
BEFORE = Sighting(9.9, 50, {A: 20, B: 30})


def test_the_flow_is_back_when_queues_grow_and_every_partition_commits() -> None:
    seen = [
        BEFORE,
        Sighting(12.0, None, {A: 20, B: 30}),
        Sighting(14.5, 50, {A: 20, B: 30}),
        Sighting(15.0, 51, {A: 21, B: 30}),
        Sighting(16.0, 60, {A: 25, B: 31}),
    ]

    assert flow_back(FAULT, seen, ENDS) == FlowBack(first=5.0, everywhere=6.0)


def test_one_partition_that_stands_still_keeps_the_flow_from_being_back_everywhere() -> None:
    seen = [BEFORE, Sighting(14.5, 50, {A: 20, B: 30}), Sighting(40.0, 90, {A: 99, B: 30})]

    assert flow_back(FAULT, seen, ENDS) == FlowBack(first=30.0, everywhere=None)


def test_a_partition_that_was_finished_before_is_not_waited_for() -> None:
    seen = [BEFORE, Sighting(14.5, 50, {A: 100, B: 30}), Sighting(15.0, 51, {A: 100, B: 31})]

    assert flow_back(FAULT, seen, ENDS).everywhere == 5.0


def test_what_a_replica_committed_between_the_last_look_and_its_death_is_no_flow() -> None:
    seen = [BEFORE, Sighting(14.2, 55, {A: 28, B: 38}), Sighting(14.4, 55, {A: 28, B: 38})]

    assert flow_back(FAULT, seen, ENDS) == FlowBack(first=None, everywhere=None)
    assert flow_back(FAULT, [*seen, Sighting(20.0, 56, {A: 29, B: 39})], ENDS).everywhere == 10.0


def test_nothing_is_said_when_nobody_answered_after_the_mending() -> None:
    seen = [BEFORE, Sighting(11.0, 55, {A: 21, B: 31}), Sighting(14.5, None, None)]

    assert flow_back(FAULT, seen, ENDS) == FlowBack(first=None, everywhere=None)


def test_what_a_broker_brings_back_from_its_disk_is_no_new_arrival() -> None:
    seen = [BEFORE, Sighting(14.5, 52, None), Sighting(15.0, 52, None), Sighting(16.0, 53, None)]

    assert flow_back(FAULT, seen, ENDS).first == 6.0


def test_a_partition_never_committed_must_commit_something() -> None:
    seen = [Sighting(14.5, 5, {A: 20}), Sighting(15.0, 51, {A: 21}), Sighting(17.0, 51, {A: 22, B: 1})]

    assert flow_back(FAULT, seen, ENDS).everywhere == 7.0

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
    seen = [Sighting(9.9, 50, {A: 100, B: 30}), Sighting(14.5, 50, None), Sighting(15.0, 51, {A: 100, B: 31})]

    assert flow_back(FAULT, seen, ENDS).everywhere == 5.0


def test_commits_of_before_the_mending_do_not_count() -> None:
    seen = [BEFORE, Sighting(11.0, 55, {A: 21, B: 31}), Sighting(14.5, None, None)]

    assert flow_back(FAULT, seen, ENDS) == FlowBack(first=None, everywhere=None)


def test_what_a_broker_brings_back_from_its_disk_is_no_new_arrival() -> None:
    seen = [BEFORE, Sighting(14.5, 52, None), Sighting(15.0, 52, None), Sighting(16.0, 53, None)]

    assert flow_back(FAULT, seen, ENDS).first == 6.0


def test_a_partition_never_committed_before_the_fault_must_commit_something() -> None:
    seen = [Sighting(9.9, 5, {A: 20}), Sighting(15.0, 51, {A: 21}), Sighting(17.0, 51, {A: 21, B: 1})]

    assert flow_back(FAULT, seen, ENDS).everywhere == 7.0

"""How long a static member waits that is put out of its group."""

from proxy.kafka_log.put_out import AT_ONCE, LONGEST, SETTLED, PutOut


def put_out(member: PutOut, now: float, *, after: float = 1.0) -> float:
    member.on_joined(now - after)
    member.on_put_out(now)
    return member.pause


def test_it_waits_twice_as_long_each_time_when_it_is_put_out_again_and_again() -> None:
    member = PutOut()
    pauses = [put_out(member, 10.0 * time) for time in range(1, 12)]
    assert pauses == [*[0.0] * AT_ONCE, 1.0, 2.0, 4.0, 8.0, 16.0, *[LONGEST] * 4]
    assert "11 times" in member.why
    assert "log.group_instance_id" in member.why


def test_it_joins_at_once_when_it_was_a_member_for_long() -> None:
    member = PutOut()
    for time in range(1, 8):
        put_out(member, 10.0 * time)
    assert put_out(member, 500.0, after=SETTLED) == 0.0


def test_one_loss_counts_once_when_several_answers_tell_of_it() -> None:
    member = PutOut()
    for _ in range(5):
        member.on_joined(0.0)
        for _ in range(AT_ONCE + 1):
            member.on_put_out(1.0)
    assert member.times == 5


def test_nothing_is_waited_for_when_it_is_in_the_group() -> None:
    member = PutOut()
    for time in range(1, 8):
        put_out(member, 10.0 * time)
    member.on_joined(100.0)
    assert member.pause == 0.0

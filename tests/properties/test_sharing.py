"""How partitions are shared out among the members of a group."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.model import Partition
from proxy.positions.sharing import Claim, share_out

TOPICS = [f"t{number}" for number in range(6)]
NAMES = [f"m{number}" for number in range(6)]

partitions = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9)).map(
    lambda counts: [Partition(topic, number) for topic, count in counts.items() for number in range(count)]
)
claims = st.builds(
    Claim,
    st.frozensets(st.sampled_from(TOPICS)),
    st.lists(st.builds(Partition, st.sampled_from(TOPICS), st.integers(0, 9)), max_size=20),
    st.integers(-1, 5),
)
names = st.lists(st.sampled_from(NAMES), min_size=1, unique=True)


def joined(members: list[str], owned: dict[str, list[Partition]] | None = None) -> dict[str, Claim]:
    return {name: Claim(frozenset(TOPICS), (owned or {}).get(name, ()), 1) for name in members}


@given(st.dictionaries(st.sampled_from(NAMES), claims, min_size=1), partitions)
def test_every_partition_goes_to_one_of_its_readers_and_each_gets_as_many_when_anything_is_claimed(
    members: dict[str, Claim], there: list[Partition]
) -> None:
    shared = share_out(members, there)
    given_out = [partition for held in shared.values() for partition in held]
    read = frozenset().union(*(claim.topics for claim in members.values()))
    assert sorted(given_out) == sorted(partition for partition in there if partition.topic in read)
    for topic in read:
        counts = [
            sum(partition.topic == topic for partition in shared[name])
            for name, claim in members.items()
            if topic in claim.topics
        ]
        assert max(counts) - min(counts) <= 1
    assert all(partition.topic in members[name].topics for name, held in shared.items() for partition in held)


@given(names, partitions)
def test_members_own_as_many_in_all_when_they_read_the_same(members: list[str], there: list[Partition]) -> None:
    totals = [len(held) for held in share_out(joined(members), there).values()]
    assert max(totals) - min(totals) <= 1


@given(names, partitions)
def test_nothing_changes_hands_when_nothing_has_changed(members: list[str], there: list[Partition]) -> None:
    before = share_out(joined(members), there)
    assert share_out(joined(members, before), there) == before


def moved(before: dict[str, list[Partition]], after: dict[str, list[Partition]], among: list[str]) -> int:
    """Count what went from one of them to another."""
    owner = {partition: name for name in among for partition in before[name]}
    return sum(owner.get(at, name) != name for name in among for at in after[name])


@given(names, partitions)
def test_hardly_more_change_hands_than_the_new_one_gets_when_one_joins(
    members: list[str], there: list[Partition]
) -> None:
    before = share_out(joined(members), there)
    after = share_out(joined([*members, "new"], before), there)
    assert moved(before, after, members) <= len(TOPICS)


@given(names.filter(lambda members: len(members) > 1), partitions)
def test_hardly_more_change_hands_than_it_had_when_one_leaves(members: list[str], there: list[Partition]) -> None:
    before = share_out(joined(members), there)
    after = share_out(joined(members[1:], before), there)
    assert moved(before, after, members[1:]) <= len(TOPICS)


def test_only_the_new_one_gets_anything_when_one_joins_four_of_a_hundred_topics() -> None:
    there = [Partition(f"t{topic}", number) for topic in range(100) for number in range(4)]
    topics = frozenset(at.topic for at in there)
    before = share_out({name: Claim(topics) for name in NAMES[:4]}, there)
    claims = {name: Claim(topics, before.get(name, ()), 1) for name in NAMES[:5]}
    after = share_out(claims, there)
    assert {len(held) for held in after.values()} == {80}
    assert moved(before, after, NAMES[:4]) == 0


def test_the_later_generation_is_believed_when_two_claim_a_partition() -> None:
    there = [Partition("t0", number) for number in range(2)]
    members = {
        "a": Claim(frozenset(TOPICS), there, 3),
        "b": Claim(frozenset(TOPICS), there[:1], 4),
    }
    assert share_out(members, there) == {"a": [there[1]], "b": [there[0]]}
    assert share_out(members | {"a": Claim(frozenset(TOPICS), there[:1], 5)}, there)["a"] == [there[0]]

"""What `tidegate redrive` says: its help, and its answers."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from proxy.config.items import printable
from proxy.redrive.choice import Stay
from proxy.redrive.count import Count

HELP = """
Sends dead letters again, where their events were meant to go: by the settings as they are now, as the same message
(the same id, so that consumers know an event that they have had), with one header more, tidegate-redriven: how often.

A letter is taken off its queue only when the broker has confirmed its copy and the record of it is on disk. Whatever
goes wrong, it stays where it is; run the command again. It makes one pass over what waits when it begins: letters that
come meanwhile stay. Whoever kills it may find up to 1,000 events delivered twice.

Which letters: --reason, --type, --class, --since and --until may be combined; without them all. The times are those of
the events. Letters that can't go stay, and are counted with the reason: not a letter of Tidegate's, not the whole
event, a type or an exchange that is gone, sent again --times times already.

How fast: up to --rate letters a second, and only while the queues that they go to are nearly empty; it waits while
something is congested. Start low where you don't know what consumers bear.

Order: letters are taken in the order of their queue and sent in the order of their partition, as far as they are in
hand together (up to 500). They come behind all that has been delivered meanwhile. After a nack or an unknown outcome
nothing more of that partition is sent in this pass.

examples:
  tidegate redrive -c tidegate.yaml --dry-run                      which letters are there, which could go
  tidegate redrive -c tidegate.yaml --reason unroutable --yes      the queue is back
  tidegate redrive -c tidegate.yaml --type brand-alert --since 2026-11-23T14:00:00Z --until 2026-11-23T15:00:00Z
  tidegate redrive -c tidegate.yaml --class P1 --rate 3000         consumers are idle

exit codes: 0 all that was meant to go has gone, 1 some of it stays, or RabbitMQ does not answer, 2 a mistake
"""

_STAYS = {
    Stay.NOT_OURS: "are no dead letters of Tidegate's",
    Stay.INCOMPLETE: "do not hold the whole event: Kafka has it, as long as it is kept there",
    Stay.UNREADABLE: "can't be read",
    Stay.UNKNOWN_TYPE: "are of an event type that the settings no longer make",
    Stay.NO_EXCHANGE: "would go to an exchange that does not exist",
    Stay.NOT_CHOSEN: "were not asked for",
    Stay.TOO_OFTEN: "have been sent again as often as --times allows",
    Stay.LATER: "came after the beginning",
    Stay.REFUSED: "are as undeliverable as before",
    Stay.NACKED: "were not taken: the broker has no room for them",
    Stay.UNKNOWN: "were sent, and nothing was heard of them: sent again they may come twice",
    Stay.BEHIND: "stand behind such a one in their partition",
    Stay.BLIND: "would go to a queue of which nothing is known",
    Stay.UNFINISHED: "were not come to",
}


def stalled(left: int) -> str:
    """Return why a pass ends over a queue that gives no letter."""
    return (
        f"it says that {left:,} letters wait, and gives none: a stream never does, nor does a queue with "
        "x-single-active-consumer while another consumer is the active one"
    )


def progress(queue: str, count: Count, *, is_dry: bool) -> str:
    """Return one line for people who wait."""
    did = "would go" if is_dry else "redriven"
    return printable(f"{queue}: {count.taken:,} of {count.waiting:,} letters looked at, {count.done:,} {did}")


def account(queue: str, count: Count, *, is_dry: bool) -> list[str]:
    """Return what became of the letters of one queue."""
    did = "would go" if is_dry else "redriven"
    lines = [f"{queue}: {count.waiting:,} letters, {count.done:,} {did}"]
    by: Counter[tuple[str, str]] = Counter()
    places: dict[tuple[str, str], set[str]] = {}
    for (name, partition, reason), events in count.redriven.items():
        by[name, reason] += events
        places.setdefault((name, reason), set()).add(partition)
    for (name, reason), events in sorted(by.items()):
        many = len(places[name, reason])
        lines.append(f"  {name}, {reason}: {events:,} of {many} partition{'' if many == 1 else 's'}")
    if count.copies:
        lines.append(f"  {count.copies:,} more were copies of these letters, and are taken off, too")
    unsettled = count.confirmed - count.done
    if not is_dry and unsettled > 0:
        lines.append(f"  {unsettled:,} were delivered and still lie there: sent again they come twice")
    for why in Stay:
        if stayed := count.stays(why):
            examples = "; ".join(count.examples.get(why, []))
            lines.append(f"  {stayed:,} stay: they {_STAYS[why]}{f' ({examples})' if examples else ''}")
    if count.absent:
        lines.append(
            f"  {count.absent:,} did not come: not reached, or they expired, were purged, or somebody holds them"
        )
    if count.anew:
        lines.append(f"  {count.anew:,} that stay had come back before, and lie at the queue's end now")
    return [printable(line) for line in lines]


def as_json(queue: str, count: Count, *, is_dry: bool) -> Mapping[str, Any]:
    """Return the same for programs."""
    return {
        "queue": queue,
        "dry_run": is_dry,
        "waiting": count.waiting,
        "redriven": count.done,
        "confirmed": count.confirmed,
        "copies": count.copies,
        "absent": count.absent,
        "laid_anew": count.anew,
        "of": [
            {"type": name, "partition": partition, "reason": reason, "count": events}
            for (name, partition, reason), events in sorted(count.redriven.items())
        ],
        "stay": [
            {"why": str(why), "type": name, "reason": reason, "count": events}
            for (why, name, reason), events in sorted(count.stayed.items())
        ],
    }

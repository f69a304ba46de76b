"""What the commands of an incident say: their help, and their answers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from proxy.config.items import listing, printable
from proxy.operations.intervening import ANSWER_SECONDS, Replica
from proxy.operations.intervention import Intervention
from proxy.operations.scope import Scope
from proxy.settings.parts import duration_text

_MS = 1000

_SCOPE = """
Which events: --type names an event type, --class all types of a class; each may be repeated. Of several interventions
that mean a type the one asked for last counts. It ends by itself: after its time everything is as before.
"""
_ANSWERS = """
Every replica of the group answers. A line tells what each has done; one that does not answer within 10 s is named, and
the exit code is 1: the intervention is kept all the same, and holds for it as soon as it reads it.

exit codes: 0 every replica has answered (or there is none now), 1 not every one, or Kafka does not answer, 2 a mistake
"""
PAUSE = f"""
Sends nothing more of some event types for a time, on every replica of the group. They wait in Kafka; what is on its way
gets its outcome, and the order is kept.
{_SCOPE}
examples:
  tidegate pause -c tidegate.yaml --class P3 --for 30m --why "campaign floods the mail service"
  tidegate pause -c tidegate.yaml --type brand-alert --type price-alert --for 2h
  tidegate resume -c tidegate.yaml --class P3
{_ANSWERS}"""
DISCARD = f"""
Drops the events of some event types for a time, on every replica of the group: what waits and what comes is committed
unsent, and recorded as discarded. They stay in Kafka as long as the topic keeps them, but Tidegate reads them no more.
On a terminal it asks first; without one it needs --yes.
{_SCOPE}
examples:
  tidegate discard -c tidegate.yaml --type brand-alert --for 10m --why "sent twice by mistake, ticket 4711"
  tidegate resume -c tidegate.yaml --type brand-alert
{_ANSWERS}"""
CAP = f"""
Lets no more than so many events a second of some event types go for a time, on every replica of the group together: all
that is named shares the rate. It is divided over the partitions by what waits and comes in each, anew every second. The
throttles stay as they are underneath, so afterwards all goes on as congestion allows.
{_SCOPE}
A pause or a discard may hold beside it.

examples:
  tidegate cap -c tidegate.yaml --class P3 --rate 100 --for 30m --why "mail service at half its size"
  tidegate resume -c tidegate.yaml --class P3
{_ANSWERS}"""
POLICY = f"""
Holds routes back by another policy for a time, on every replica of the group: static (no congestion control), per_type
(a batch size per event type) or class_budget (a rate per class). Nothing pauses for it: connections, order and what is
on its way stay. Under class_budget the rates begin as at a start. Afterwards the policy is what the settings say.

examples:
  tidegate policy -c tidegate.yaml mail static --for 30m --why "the law holds back too much, ticket 4711"
  tidegate resume -c tidegate.yaml --route mail
{_ANSWERS}"""
RESUME = f"""
Takes back what pauses, discards or caps some event types, or another policy of some routes (--route), on every replica
of the group, before its time is over. What was discarded is not sent any more. A type may be resumed alone where its
whole class is paused.

examples:
  tidegate resume -c tidegate.yaml --class P3
  tidegate resume -c tidegate.yaml --type order-confirmed --why "must go out"
{_ANSWERS}"""
NO_BOARD = (
    "There is no topic {topic}: nobody has asked for anything, or it was deleted. A replica goes by what it has read "
    "of a deleted one: GET /interventions tells it, `tidegate resume` takes it back."
)
LIST = """
Tells which event types are paused, discarded or capped now, which routes have another policy, who asked and why, until
when, and which replicas have answered. It changes nothing.
"""


def scope_text(scope: Intervention | Scope) -> str:
    """Return `type brand-alert, class P3`, or `route mail`."""
    words = {"type": scope.types, "class": scope.classes, "route": scope.routes}
    return printable(listing([f"{kind} {name}" for kind, names in words.items() for name in names]))


def intervention_text(one: Intervention, now_ms: int) -> str:
    """Return one line: what, of which events, until when, by whom and why."""
    until = datetime.fromtimestamp(one.until_ms / _MS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    left = duration_text(_rounded(max(0, one.until_ms - now_ms) // _MS))
    why = "" if one.why is None else f": {one.why}"
    what = one.policy or ("" if one.rate is None else f"{one.rate:g}/s")
    return printable(f"{one.mode} {what}{what and ' '}{scope_text(one)} until {until} (in {left}), by {one.by}{why}")


def _rounded(seconds: int) -> int:
    """Return whole minutes where it is ten of them or more, and whole hours likewise: nobody reads 1772s."""
    unit = next(unit for unit in (3600, 60, 1) if seconds >= 10 * unit or unit == 1)
    return seconds // unit * unit


def replica_text(replica: Replica) -> str:
    """Return one line: what the replica has answered."""
    (member, host), answer = replica
    if answer is None:
        return printable(f"  no answer from {member} at {host}")
    types = "1 event type" if answer.types == 1 else f"{answer.types} event types"
    return printable(f"  {answer.instance} at {host}: done, for {types} that it serves")


def conclusion(group: str, replicas: Sequence[Replica]) -> str | None:
    """Return what to say of all answers together, None if every replica has given one."""
    if not replicas:
        return printable(f"no replica is in group {group} now: it holds for whoever starts")
    silent = sum(replica.answer is None for replica in replicas)
    if not silent:
        return None
    return (
        f"{silent} of {len(replicas)} replicas did not answer within {ANSWER_SECONDS:g} s: it holds for them as "
        "soon as they read it. Is it a Tidegate of this version, and does it reach Kafka?"
    )


def as_json(one: Intervention, replicas: Sequence[Replica]) -> Mapping[str, Any]:
    """Return the same for programs; `answer` is null where there is none."""
    answers = [
        {**replica.member._asdict(), "answer": None if replica.answer is None else asdict(replica.answer)}
        for replica in replicas
    ]
    return {**asdict(one), "replicas": answers}

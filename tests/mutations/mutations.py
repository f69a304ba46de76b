"""Deliberate bugs: each a small exact replacement in a production file, each breaking one promise of the bridge."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One bug."""

    name: str
    file: str
    before: str
    """Found exactly once in the file."""
    after: str
    histories: Literal["memory", "wire"] = "memory"
    """Which histories catch it: with lanes and log in memory, or with the real clients inside."""
    tests: tuple[str, ...] = ()
    """Which tests catch it, as pytest is told them, where histories are not its natural proof."""

    def applied(self, text: str) -> str:
        """Return the file's text with the bug in it. Raises `ValueError` if it no longer applies."""
        if text.count(self.before) != 1:
            raise ValueError(f"{self.name}: its text stands {text.count(self.before)} times in {self.file}, not once")
        return text.replace(self.before, self.after)


NAKADI_LINES = "proxy/nakadi_log/lines.py"
NAKADI_SESSION = "proxy/nakadi_log/session.py"
NAKADI_WINDOW = "proxy/nakadi_log/window.py"
NAKADI_CURSORS = "proxy/nakadi_log/cursors.py"
NAKADI_GRIP = "proxy/nakadi_log/grip.py"
IN_NAKADI_CURSORS = "tests/contract/test_nakadi_cursors.py"
IN_NAKADI_BACKLOG = "tests/histories/test_nakadi_backlog.py"
IN_NAKADI_LIVE_MOVES = "tests/contract/test_nakadi_live_moves.py"
IN_NAKADI_LINES = "tests/unit/nakadi_log/test_lines.py"
IN_NAKADI_SESSION = "tests/unit/nakadi_log/test_session.py"
FLOW = "proxy/bridge/flow.py"
RETURNS = "proxy/bridge/returns.py"
INSISTENCE = "proxy/bridge/insistence.py"
INQUIRIES = "proxy/bridge/inquiries.py"
IN_RETURNS = "tests/unit/bridge/test_returns.py"
LISTENER = "proxy/bridge/listener.py"
APP = "proxy/app.py"
INTERVENTIONS = "proxy/operations/interventions.py"
EFFECT = "proxy/operations/effect.py"
CAPS = "proxy/steering/caps.py"
CAP_SHARE = "proxy/congestion/cap_share.py"
DESK = "proxy/operations/desk.py"
PINNED = "proxy/operations/pinned.py"
DOORS = "proxy/operations/doors.py"
LIVENESS = "proxy/operations/liveness.py"
GUARD = "proxy/steering/retention_guard.py"
EPISODES = "proxy/steering/episodes.py"
NOTICES = "proxy/operations/notices.py"
SHADOW = "proxy/steering/shadow.py"
SHADOW_QUEUE = "proxy/congestion/shadow_queue.py"
WOULD_WAIT = "proxy/congestion/would_wait.py"
WEBHOOK = "proxy/operations/webhook.py"
AGE = "proxy/steering/partition_age.py"
RETENTION = "proxy/congestion/retention.py"
SENDING = "proxy/bridge/sending.py"
LETTERS = "proxy/bridge/dead_letters.py"
ASSIGNMENT = "proxy/bridge/assignment.py"
COMMITTER = "proxy/bridge/committer.py"
CATALOG = "proxy/bridge/catalog.py"
LISTENERS = "proxy/listeners.py"
RENEWING = "proxy/positions/renewing.py"
RELOAD = "proxy/operations/reload.py"
INBOX = "proxy/bridge/inbox.py"
BUDGET = "proxy/bridge/budget.py"
OFFSETS = "proxy/bridge/offsets.py"
DIVIDER = "proxy/congestion/divider.py"
LADDER = "proxy/congestion/ladder.py"
POOLS = "proxy/congestion/pools.py"
BUDGETED = "proxy/steering/budgeted.py"
RECORDER = "proxy/recording/recorder.py"
WAITING = "proxy/recording/waiting.py"
IN_WAITING = "tests/unit/recording/test_waiting.py"
SBOM = "load/container/sbom.py"
TALLY = "proxy/recording/tally.py"
BOOKS = "proxy/recording/books.py"
SHARE = "proxy/positions/share.py"
LEDGER = "proxy/publish_lane/ledger.py"
SESSION = "proxy/publish_lane/session.py"
ENVELOPE = "proxy/publish_lane/envelope.py"
CONTENT_HEADER = "proxy/publish_lane/content_header.py"
HEADERS = "proxy/publish_lane/headers.py"
LANE = "proxy/publish_lane/lane.py"
LINE = "proxy/publish_lane/line.py"
OUTCOMES = "proxy/publish_lane/outcomes.py"
EPOCH = "proxy/positions/epoch.py"
MOVING = "proxy/positions/moving.py"
IDENTITY = "proxy/positions/identity.py"
MOVE = "proxy/bridge/move.py"
PLACING = "proxy/positions/placing.py"
POSITIONS = "proxy/positions/positions.py"
SHARE = "proxy/positions/share.py"
QUARANTINE = "proxy/publish_lane/quarantine.py"
PATIENCE = "proxy/publish_lane/patience.py"
SLICES = "proxy/kafka_log/slices.py"
FETCHING = "proxy/kafka_log/fetching.py"
SESSIONS = "proxy/kafka_log/fetch_sessions.py"
FETCH_PLAN = "proxy/kafka_log/fetch_plan.py"
ROUTE_CONTROL = "proxy/steering/route_control.py"
ANSWER = "proxy/kafka_log/answer.py"
UNPACKING = "proxy/kafka_log/unpacking.py"
NETWORK = "proxy/kafka_log/network.py"
REFUSALS = "proxy/kafka_log/refusals.py"
ASKING = "proxy/kafka_log/asking.py"
NODES = "proxy/kafka_log/nodes.py"
LEADERS = "proxy/kafka_log/leaders.py"
HOST_TURN = "proxy/rabbitmq/host_turn.py"
KAFKA_CONNECTION = "proxy/kafka_log/connection.py"
GROUP = "proxy/kafka_log/group.py"
READER = "proxy/kafka_log/reader.py"
STALLS = "proxy/kafka_log/stalls.py"
UNREADABLE = "proxy/kafka_log/unreadable.py"
COORDINATION = "proxy/kafka_log/coordination.py"
LEADER_EPOCHS = "proxy/kafka_log/leader_epochs.py"
KAFKA_LOGIN = "proxy/kafka_log/login.py"
RABBIT_LOGIN = "proxy/rabbitmq/login.py"
RABBIT_CONNECTION = "proxy/rabbitmq/connection.py"
MONITOR = "proxy/rabbitmq/monitor.py"
QUESTIONS = "proxy/rabbitmq/questions.py"
QUEUE_KIND = "proxy/rabbitmq/queue_kind.py"
RABBIT_BROKER = "proxy/rabbitmq/broker.py"
POLICY = "proxy/steering/policies.py"
LEASE = "proxy/bridge/lease.py"
STATUS = "proxy/operations/status.py"
HOME = "proxy/publish_lane/home.py"
KAFKA_CONSUMER = "proxy/kafka_log/consumer.py"
RATE_LAW = "proxy/congestion/rate_law.py"
AIMD = "proxy/congestion/aimd.py"
CUBIC = "proxy/congestion/cubic.py"
VEGAS = "proxy/congestion/vegas.py"
TRIPS = "proxy/congestion/trips.py"
QUEUE_GROUP = "proxy/congestion/group.py"
COHORTS = "proxy/simulation/cohorts.py"
SHEDDING = "proxy/simulation/shedding.py"
DAGOR = "proxy/simulation/dagor.py"
CINNAMON = "proxy/simulation/cinnamon.py"
DRAIN_RATE = "proxy/congestion/drain_rate.py"
DEPTHS = "proxy/steering/depths.py"
ROTA = "proxy/steering/rota.py"
OTHERS = "proxy/steering/other_replicas.py"
UNSHARED = "proxy/kafka_log/unshared.py"
INQUIRY = "proxy/kafka_log/inquiry.py"

IN_SLICES = "tests/unit/test_kafka_slices.py"
IN_SESSIONS = "tests/unit/test_kafka_fetch_sessions.py"
IN_BATCHES = "tests/properties/test_kafka_batches.py"
IN_NETWORK = "tests/unit/test_kafka_network.py"
IN_ANSWERS = "tests/unit/test_kafka_answers.py"
IN_KAFKA_LOG = "tests/unit/test_kafka_log.py"
IN_STALLS = "tests/unit/test_kafka_stalls.py"
IN_UNREADABLE = "tests/unit/test_kafka_unreadable.py"
IN_COORDINATION = "tests/unit/test_kafka_coordination.py"
IN_LEADER_ENDS = "tests/wire/test_leader_ends.py"
CATCH_UP = "tests/unit/bridge/test_catch_up.py"
TIERS = "tests/unit/congestion/test_divider_catch_up.py"
IN_LINE = "tests/properties/test_line.py"
IN_LANE = "tests/unit/publish_lane/test_lane.py"
IN_APP = "tests/unit/test_app.py"
REDRIVE = "proxy/redrive/run.py"
IN_REDRIVE = "tests/unit/redrive/test_redrive_histories.py"
IN_STANCE = "tests/unit/bridge/test_stance.py"
IN_DESK = "tests/unit/operations/test_desk.py"
IN_PINNED = "tests/unit/operations/test_pinned.py"
IN_DOORS = "tests/unit/operations/test_doors.py"
IN_LIVENESS = "tests/unit/operations/test_liveness.py"
IN_RELOAD = "tests/unit/operations/test_reload.py"
IN_BUDGET = "tests/unit/bridge/test_budget.py"
IN_RELOAD_TYPES = "tests/unit/test_reload_types.py"
IN_RELOAD_STEERING = "tests/unit/test_reload_steering.py"
IN_POLICIES = "tests/unit/test_policy_for_a_time.py"
IN_CATALOG = "tests/unit/bridge/test_catalog.py"
IN_INTERVENTIONS = "tests/unit/operations/test_interventions.py"
IN_EPISODES = "tests/unit/steering/test_episodes.py"
IN_NOTICES = "tests/unit/operations/test_notices.py"
IN_SHADOW = "tests/unit/steering/test_shadow.py"
IN_SHADOW_QUEUE = "tests/unit/congestion/test_shadow_queue.py"
IN_WOULD_WAIT = "tests/unit/congestion/test_would_wait.py"
IN_GUARD = "tests/unit/steering/test_retention_guard.py"
IN_AGE = "tests/unit/steering/test_partition_age.py"
IN_RETENTION = "tests/unit/congestion/test_retention.py"
IN_CAPS = "tests/unit/steering/test_caps.py"
IN_CAP_SHARE = "tests/unit/congestion/test_cap_share.py"
IN_LISTENER = "tests/unit/bridge/test_listener.py"
IN_ROTATIONS = "tests/wire/test_rotations.py"
IN_CALM = "tests/wire/test_calm.py"
IN_CONNECTION = "tests/unit/rabbitmq/test_connection.py"
IN_MONITOR = "tests/unit/rabbitmq/test_monitor.py"

MUTATIONS = (
    Mutation(
        "commit before confirm",
        COMMITTER,
        "await self._log.commit({flow.partition: flow.watermark.position for flow in due})",
        "await self._log.commit({flow.partition: flow._queue[0].events[-1].position if flow._queue else "
        "flow.watermark.position for flow in due})",
    ),
    Mutation(
        "watermark off by one",
        OFFSETS,
        "        if start != self.resolved:\n",
        "        if start > self.resolved + 1:\n",
    ),
    Mutation(
        "watermark jumps over what is open",
        OFFSETS,
        "            following = self._ahead.pop(end, None)\n",
        "            following = self._ahead.pop(min(self._ahead, default=end), None)\n",
    ),
    Mutation(
        "final commit ahead of the confirms",
        FLOW,
        "        if outcome is Outcome.CONFIRMED:\n            self._resolve",
        "        if outcome is Outcome.CONFIRMED or self.closing:\n            self._resolve",
    ),
    Mutation(
        "nack taken as ack",
        LEDGER,
        "        outcome = Outcome.CONFIRMED if acked else Outcome.NACKED\n",
        "        outcome = Outcome.CONFIRMED\n",
    ),
    Mutation(
        "unknown outcome taken as confirmed",
        SESSION,
        "                self._outcomes.add(channel.ledger.abandon(Outcome.UNKNOWN))\n",
        "                self._outcomes.add(channel.ledger.abandon(Outcome.CONFIRMED))\n",
    ),
    Mutation(
        "unknown outcome forgotten when the lane ends its connection",
        SESSION,
        "                self._outcomes.add(channel.ledger.abandon(Outcome.UNKNOWN))\n",
        "                channel.ledger.abandon(Outcome.UNKNOWN)\n",
    ),
    Mutation(
        "return taken as confirm",
        LEDGER,
        "            self._looked = max(self._looked, tag)\n            self._returned[tag] = why\n",
        "            self._looked = max(self._looked, tag)\n",
    ),
    Mutation(
        "multiple flag ignored",
        LEDGER,
        "            first, last = 0, tag or self.next_tag - 1\n",
        "            first, last = tag, tag\n",
    ),
    Mutation(
        "multiple reaches one tag too far",
        LEDGER,
        "            first, last = 0, tag or self.next_tag - 1\n",
        "            first, last = 0, tag + 1 or self.next_tag - 1\n",
    ),
    Mutation(
        "delivery tags counted from 0",
        LEDGER,
        "    next_tag: int = 1\n",
        "    next_tag: int = 0\n",
    ),
    Mutation(
        "culprit taken at random among several",
        SESSION,
        "alone = not is_learnt and sum(channel.ledger.count for channel in channels) == 1",
        "alone = not is_learnt",
    ),
    Mutation(
        "retry out of order",
        FLOW,
        "            for chunk in reversed(joined(self._failed)):\n",
        "            for chunk in joined(self._failed):\n",
    ),
    Mutation(
        "nothing held after a nack",
        FLOW,
        "and not self._holding:\n            self._holding = True\n",
        "and not self._holding:\n            self._holding = False\n",
    ),
    Mutation(
        "what waits at the lane is not withdrawn after a nack",
        FLOW,
        "            self._host.withdraw(self)\n",
        "",
    ),
    Mutation(
        "withdraw ignored by the lane",
        LANE,
        "            batch.called_back = True\n",
        "",
    ),
    Mutation(
        "sent again before all outcomes are there",
        FLOW,
        "        elif self._failed and (self._order is Order.NONE or not self.out):\n",
        "        elif self._failed:\n            self._holding = False\n",
    ),
    Mutation(
        "strict sends two",
        FLOW,
        "        return min(count, 1) if self._order is Order.STRICT else count\n",
        "        return min(count, 2) if self._order is Order.STRICT else count\n",
    ),
    Mutation(
        "strict does not wait for the dead letter",
        FLOW,
        "        if self._order is Order.STRICT and (self.out or self.parked):\n",
        "        if self._order is Order.STRICT and self.out:\n",
    ),
    Mutation(
        "uncommitted cap ignored",
        FLOW,
        "            count = max(0, min(self.waiting, self._cap - (self.sent - self.watermark.committed)))\n",
        "            count = self.waiting\n",
    ),
    Mutation(
        "uncommitted cap counts from what is confirmed",
        FLOW,
        "self._cap - (self.sent - self.watermark.committed)",
        "self._cap - (self.sent - self.watermark.resolved)",
    ),
    Mutation(
        "dead letter unconfirmed before commit",
        LETTERS,
        "        self._waiting.append((flow, batch))\n        self._changed.set()\n",
        "        self._waiting.append((flow, batch))\n        self._changed.set()\n"
        "        flow.park_done(first, events)\n",
    ),
    Mutation(
        "an event goes by its own route again although its partition went on past it",
        FLOW,
        "        return self._highest > sent\n",
        "        return False\n",
        tests=(IN_LISTENER,),
    ),
    Mutation(
        "lost dead letter taken as done",
        LETTERS,
        "        if outcome is Outcome.CONFIRMED:\n",
        "        if outcome is not Outcome.UNDELIVERABLE:\n",
    ),
    Mutation(
        "dead letter that its destination refuses taken as done",
        LETTERS,
        "        if outcome is Outcome.CONFIRMED:\n",
        "        if outcome in (Outcome.CONFIRMED, Outcome.UNDELIVERABLE):\n",
    ),
    Mutation(
        "dead letter not sent again",
        LETTERS,
        "            self._again(batch, start, end)\n",
        "            self._open -= end - start\n",
    ),
    Mutation(
        "expired counted as delivered",
        SENDING,
        "                    batch, start, end, Outcome.UNDELIVERABLE, reason=Reason.EXPIRED, detail=detail\n",
        "                    batch, start, end, Outcome.CONFIRMED, reason=Reason.EXPIRED, detail=detail\n",
    ),
    Mutation(
        "lease ignored",
        LISTENER,
        "        return self._around.lease.left(asyncio.get_running_loop().time()) > 0\n",
        "        return True\n",
    ),
    Mutation(
        "assignment renews the lease",
        ASSIGNMENT,
        "        self._lease.ask()\n",
        "        self._lease.renew(asyncio.get_running_loop().time())\n",
    ),
    Mutation(
        "fencing ignored",
        COMMITTER,
        "                self._lease.end()\n",
        "                self._lease.renew(asyncio.get_running_loop().time())\n",
    ),
    Mutation(
        "epoch ignored: flows outlive their revocation",
        ASSIGNMENT,
        "                self.listeners[flow.partition.topic].inbox.close(flow.partition)\n",
        "                pass\n",
    ),
    Mutation(
        "revocation does not stop the sending",
        ASSIGNMENT,
        "            self.listeners[flow.partition.topic].let_go([flow])\n",
        "            pass\n",
        tests=("tests/unit/bridge/test_assignment.py", "tests/unit/bridge/test_listener.py"),
    ),
    Mutation(
        "pause lost on rebalance",
        LISTENER,
        "        return self.inbox.is_paused\n",
        "        return False\n",
    ),
    Mutation(
        "inbox never pauses",
        INBOX,
        "        if row.events >= events or row.bytes >= size:\n",
        "        if row.events > 10 * events:\n",
    ),
    Mutation(
        "inbox never resumes",
        INBOX,
        '            self._press(row, "inbox", on=False)\n',
        "            pass\n",
    ),
    Mutation(
        "bytes of dropped events stay in the budget",
        INBOX,
        "        if counted != row.counted:\n",
        "        if counted > row.counted:\n",
    ),
    Mutation(
        "the budget forgets what events are made of",
        INBOX,
        "counted = row.bytes + OBJECTS * row.events",
        "counted = row.bytes",
    ),
    Mutation(
        "the budget forgets what the lane was handed",
        INBOX,
        " + row.on_way_bytes\n",
        "\n",
    ),
    Mutation(
        "inboxes have nothing of the budget for themselves",
        BUDGET,
        "OWN_SHARE = 0.5\n",
        "OWN_SHARE = 0.0\n",
        tests=(IN_BUDGET,),
    ),
    Mutation(
        "the budget is not shared out anew when an inbox joins",
        BUDGET,
        "        self._holdings[rank][holding] = None\n        self._is_shared_out = False\n",
        "        self._holdings[rank][holding] = None\n",
        tests=(IN_BUDGET,),
    ),
    Mutation(
        "an inbox that left keeps its part of the budget",
        BUDGET,
        "        if holding.is_left and not after:\n",
        "        if False:\n",
        tests=(IN_BUDGET,),
    ),
    Mutation(
        "an inbox takes another fetch though that would exceed its part of the budget",
        BUDGET,
        "_is_reached(self.used + self.step, ",
        "_is_reached(self.used, ",
        tests=(IN_BUDGET,),
    ),
    Mutation(
        "each inbox may exceed its part though all of the budget is used",
        BUDGET,
        "        if self._is_full[holding.rank]:\n",
        "        if False:\n",
        tests=(IN_BUDGET,),
    ),
    Mutation(
        "settle forgotten",
        SENDING,
        "            host.inbox.settle(batches, old=self._old)\n",
        "",
    ),
    Mutation(
        "unwritten events taken as out",
        FLOW,
        "            self.out -= left\n",
        "",
    ),
    Mutation(
        "give back forgotten",
        BUDGETED,
        "        if events != self._granted:\n"
        "            self._gate.give_back(self._tier, (self._granted - events) * self._charge.cost)\n",
        "",
    ),
    Mutation(
        "hard cap ignored",
        BUDGETED,
        "            await pass_in_time(self._gate, tier, granted * each, again=again, patience=self._tiers.patience)\n",  # noqa: E501
        "            await asyncio.sleep(0)\n",
    ),
    Mutation(
        "blocked ignored",
        LANE,
        "                if self._condition.state is LaneState.OPEN:\n                    self._quarantine",
        "                if self._condition.state is not LaneState.LOST:\n                    self._quarantine",
    ),
    Mutation(
        "request for tokens left behind",
        "proxy/steering/gate.py",
        "            self._tell(self._divider.cancel(ticket, self._loop.time()))\n",
        "",
    ),
    Mutation(
        "window ignored",
        LINE,
        "        return self.max_events - self.events\n",
        "        return self.max_events\n",
    ),
    Mutation(
        "a window that adapts never narrows",
        "proxy/publish_lane/window_law.py",
        "        times = max(1 / STEP, min(",
        "        times = max(1, min(",
        tests=("tests/unit/publish_lane/test_adaptive_window.py",),
    ),
    Mutation(
        "slots not given back when the outcome is unknown",
        OUTCOMES,
        "                self.window.give(one.end - one.start, size)\n",
        "                if one.outcome is not Outcome.UNKNOWN:\n"
        "                    self.window.give(one.end - one.start, size)\n",
    ),
    Mutation(
        "no deadline for confirms",
        PATIENCE,
        "and not is_spent else self.deadline\n",
        "and not is_spent else 1_000 * self.deadline\n",
        tests=("tests/unit/publish_lane/test_lane.py",),
    ),
    Mutation(
        "quarantine never ends",
        QUARANTINE,
        "            for request in suspect.requests:\n                self.line.add(request)\n",
        "",
    ),
    Mutation(
        "a flow that was let go may still send",
        FLOW,
        "        self.closing = True\n        self._queue.clear()\n",
        "        self._queue.clear()\n",
    ),
    Mutation(
        "lags wrong",
        POSITIONS,
        "        return {at: max(0, end - heads[at]) for at, end in ends.items()}\n",
        "        return {at: max(0, end - heads[at]) + 1 for at, end in ends.items()}\n",
    ),
    Mutation(
        "resent counted twice",
        TALLY,
        "            tally.resent += count\n",
        "            tally.resent += 2 * count\n",
    ),
    Mutation(
        "metrics lose what came since the last record",
        RECORDER,
        "        deque(self._record_types(assignment, lags), maxlen=0)\n\n    async def _record_routes_and_classes(",
        "\n    async def _record_routes_and_classes(",
    ),
    Mutation(
        "what the log left out of a commit counts as committed",
        COMMITTER,
        "            if flow.partition in taken:\n",
        "            flow.watermark.committed = max(flow.watermark.committed, resolved)\n"
        "            if flow.partition in taken:\n",
    ),
    Mutation(
        "what the log left out of a commit is forgotten",
        COMMITTER,
        "            self._stake.put_back([flow for flow in due if flow.partition not in taken], 0)\n",
        "",
    ),
    Mutation(
        "what a failed commit held is forgotten",
        COMMITTER,
        "                if not is_taken:\n",
        "                if False:\n",
    ),
    Mutation(
        "commits go back when records are handed out again",
        SHARE,
        "            self.done = max(self.done, offset + 1)",
        "            self.done = offset + 1",
    ),
    Mutation(
        "the last commit of an epoch is not booked",
        ASSIGNMENT,
        "                self._account.on_committed(flow, resolved, end)\n",
        "                pass\n",
    ),
    Mutation(
        "a committed range begins where it ends",
        BOOKS,
        "                first=epoch.end,\n",
        "                first=end,\n",
    ),
    Mutation(
        "dead letters are booked as delivered",
        BOOKS,
        "    told.delivered -= count\n",
        "",
    ),
    Mutation(
        "dead letters are booked a commit too early",
        BOOKS,
        "        while epoch.letters and epoch.letters[0][0] <= resolved:\n",
        "        while epoch.letters:\n",
        tests=("tests/unit/recording/test_books.py",),
    ),
    Mutation(
        "delivered events are booked again with every commit",
        BOOKS,
        "        epoch.committed = resolved\n",
        "",
    ),
    Mutation(
        "the last ranges are not written",
        RECORDER,
        "            self.books.write(unwritten[at : at + AT_ONCE])\n",
        "",
    ),
    Mutation(
        "truncation untold",
        ASSIGNMENT,
        "        self._account.on_truncated(partition, at_most, first)\n",
        "        return\n",
    ),
    Mutation(
        "the id of the topic is ignored",
        PLACING,
        "        if told == share.topic_id:\n",
        "        if told == share.topic_id or share.began is not None:\n",
    ),
    Mutation(
        "an offset committed for a topic that is gone is trusted",
        PLACING,
        "share.topic_id, share.next, share.move = committed.topic_id, committed.offset, committed.move\n",
        "share.next, share.move = committed.offset, committed.move\n",
    ),
    Mutation(
        "a topic made anew is read where the old one stood",
        PLACING,
        "        self._restart(share, share.next, first, end)\n",
        "        self._restart(share, share.next, min(share.next, end), end)\n",
    ),
    Mutation(
        "what the log dropped is passed over while events before it are out",
        SHARE,
        "        if not self.gap.start <= self.done < self.gap.stop:\n",
        "        if not self.done < self.gap.stop:\n",
    ),
    Mutation(
        "what is no event waits at the end of a partition until one comes",
        POSITIONS,
        "                self._owner.on_passed(share.partition)\n",
        "                pass\n",
    ),
    Mutation(
        "what is no event is committed unrecorded",
        COMMITTER,
        "                self._account.on_committed(flow, resolved, taken[flow.partition])\n",
        "                if flow.watermark.position is not None:\n"
        "                    self._account.on_committed(flow, resolved, taken[flow.partition])\n",
    ),
    Mutation(
        "what was passed before reading was taken elsewhere counts where it goes on",
        SLICES,
        " if (state := self._state(at)) is not None and _is_at(state, end)}",
        "}",
        tests=(IN_SLICES,),
    ),
    Mutation(
        "what the log dropped is passed over without a word",
        PLACING,
        "            self._owner.on_truncated(share.partition, first - wanted, first)\n",
        "            del wanted\n",
    ),
    Mutation(
        "a share that is placed flows although its owner has paused it",
        PLACING,
        "        if not share.is_paused:\n",
        "        if share.is_placed:\n",
    ),
    Mutation(
        "a new epoch is not held until it is placed",
        PLACING,
        "            self.hold(share)\n            self._fetches.seek(share.partition, 0)\n",
        "            share.is_placed = True\n            self._fetches.seek(share.partition, 0)\n",
    ),
    Mutation(
        "a new epoch goes on where the last one had read",
        PLACING,
        "        share.began = share.done = offset\n",
        "        offset = max(offset, share.next)\n        share.began = share.done = offset\n",
    ),
    Mutation(
        "the new id stands beside offsets of the old topic",
        PLACING,
        "            share.successor = told\n",
        "            share.successor = share.topic_id = told\n",
    ),
    Mutation(
        "the last commit of an epoch names all that was handed out",
        EPOCH,
        "        self.note(ended, positions)\n",
        "        for share in ended:\n            share.finish(share.next - 1)\n",
    ),
    Mutation(
        "an offset that the log lacks is asked for again and again",
        POSITIONS,
        "        share.unavailable = offset\n",
        "",
    ),
    Mutation(
        "a commit counts although the group left it out",
        EPOCH,
        "for at in offsets if at in taken}",
        "for at in offsets}",
    ),
    Mutation(
        "the lag ends where the last look ended",
        POSITIONS,
        "        return {at: max(0, end - heads[at]) for at, end in ends.items()}\n",
        "        return {at: end for at, end in ends.items()}\n",
    ),
    Mutation(
        "messages are not mandatory",
        ENVELOPE,
        '_MANDATORY = b"\\x01"',
        '_MANDATORY = b"\\x00"',
        "wire",
    ),
    Mutation(
        "messages are not persistent",
        CONTENT_HEADER,
        'PERSISTENT = b"\\x02"',
        'PERSISTENT = b"\\x01"',
        "wire",
    ),
    Mutation(
        "milliseconds where seconds belong",
        CONTENT_HEADER,
        "place, timestamp // 1000, self._body_start",
        "place, timestamp, self._body_start",
        "wire",
    ),
    Mutation(
        "a lean message's id tells no exact instant",
        CONTENT_HEADER,
        "{self._high_stamp}{PAIRS[low]}",
        "{self._high_stamp}",
        "wire",
    ),
    Mutation(
        "an empty key is left out",
        ENVELOPE,
        "if key is not None and self",
        "if key and self",
        "wire",
    ),
    Mutation(
        "a null header becomes empty",
        HEADERS,
        '        return b"V"\n',
        '        return b"S" + _length(0)\n',
        "wire",
    ),
    Mutation(
        "of a repeated header only the last counts",
        HEADERS,
        "            repeated.setdefault(short, [values[short]]).append(log_value(data))",
        "            values[short] = log_value(data)",
        "wire",
    ),
    Mutation(
        "a foreign header keeps a name that the broker gives a meaning",
        HEADERS,
        '        return f"log.{name}"',
        "        return name",
        "wire",
    ),
    Mutation(
        "slots of dead letters are not given back",
        LETTERS,
        "        self._slots.give(end - start, octets)\n",
        "",
        tests=(IN_LISTENER,),
    ),
    Mutation(
        "dead letters of flows that were let go stay open",
        LETTERS,
        "            self._count(-1, given_up)\n",
        "",
    ),
    Mutation(
        "a class owes nothing for the slots it takes",
        LINE,
        "        owed[place] = max(0.0, owed.get(place, 0.0) - events)\n",
        "",
        tests=(IN_LINE,),
    ),
    Mutation(
        "slots are always kept for a class above",
        LINE,
        "        return left is not None and bool(self._places) and min(self._places) > left\n",
        "        return bool(self._places)\n",
        tests=(IN_LINE,),
    ),
    Mutation(
        "patience is never lost",
        PATIENCE,
        "        self._lost_at = now\n",
        "        del now\n",
        tests=(IN_LANE,),
    ),
    Mutation(
        "a slice does not say where reading stands",
        ANSWER,
        "            self._state.consumed_to(self.batches.next_fetch_offset)\n",
        "            pass\n",
        tests=(IN_SLICES,),
    ),
    Mutation(
        "reading stands one too far behind a slice",
        ANSWER,
        "            self._state.consumed_to(self.batches.next_fetch_offset)\n",
        "            self._state.consumed_to(self.batches.next_fetch_offset + 1)\n",
        tests=(IN_SLICES,),
    ),
    Mutation(
        "aborted transactions are handed out",
        ANSWER,
        "                    is_passed = True\n",
        "                    is_passed = False\n",
        tests=(IN_BATCHES,),
    ),
    Mutation(
        "a batch is read from its beginning whatever was wanted",
        ANSWER,
        "                if record.offset < position:\n",
        "                if record.offset < 0:\n",
        tests=(IN_BATCHES,),
    ),
    Mutation(
        "reading stands before what compaction took at the end of a batch",
        ANSWER,
        "            position = max(position, self._batch.next_offset)\n",
        "",
        tests=(IN_BATCHES,),
    ),
    Mutation(
        "a partition that a node refuses never rests",
        REFUSALS,
        "        refusal.until = now + refusal.rest\n",
        "        refusal.until = now\n",
        tests=(IN_SLICES,),
    ),
    Mutation(
        "a refusal is remembered when the node answers again",
        FETCHING,
        "                self._refusals.pop(told.at, None)\n",
        "                pass\n",
        tests=(IN_SLICES,),
    ),
    Mutation(
        "a partition that is resumed waits for the next poll",
        FETCHING,
        "            self._wake()  # it may have been resumed\n",
        "            pass\n",
        tests=(IN_SLICES,),
    ),
    Mutation(
        "what is kept of paused partitions has no bound",
        SLICES,
        "        if kept > self.batch_bytes:\n",
        "        if kept > 10 * self.batch_bytes:\n",
        tests=(IN_SLICES,),
    ),
    Mutation(
        "threads share the bound of what they decompress",
        UNPACKING,
        "class _Bound(threading.local):\n",
        "class _Bound:\n",
        tests=(IN_SLICES,),
    ),
    Mutation(
        "the bound of gzip is twice what it is said to be",
        UNPACKING,
        "        if left < 0:\n",
        "        if left < -most:\n",
        tests=(IN_SLICES,),
    ),
    Mutation(
        "a watch over a join never ends",
        ASKING,
        "        watch.cancel()\n",
        "        pass\n",
        tests=(IN_NETWORK,),
    ),
    Mutation(
        "one silent node holds up what any may answer",
        ASKING,
        "timeout=ASK_ANOTHER if waiting else None",
        "timeout=None",
        tests=(IN_NETWORK,),
    ),
    Mutation(
        "a slow node is taken for a silent one for ever",
        NETWORK,
        "bounds.fetch_wait + bounds.answer * (1 << self._stretch.get(node_id, 0))",
        "bounds.fetch_wait + bounds.answer",
        tests=(IN_NETWORK,),
    ),
    Mutation(
        "a request is due before the one ahead of it",
        KAFKA_CONNECTION,
        "max(now, self.muted_until, self._due if self._requests else now)",
        "now",
        tests=(f"{IN_NETWORK}::test_a_question_behind_a_slow_fetch_waits_for_it_when_they_share_a_connection",),
    ),
    Mutation(
        "a closed transport is written to",
        KAFKA_CONNECTION,
        "self._writer is not None and self._writer.is_closing()",
        "self._writer is None",
        tests=(IN_KAFKA_LOG,),
    ),
    Mutation(
        "a silent node is remembered for ever",
        NODES,
        "any(now - at <= REMEMBERED for at, _",
        "any(now >= at for at, _",
        tests=(IN_NETWORK,),
    ),
    Mutation(
        "a node that refuses is connected to without a pause",
        NODES,
        "        failing.next_at = now + wait + failing.pause\n",
        "        failing.next_at = now\n",
        tests=(IN_NETWORK,),
    ),
    Mutation(
        "a partition whose commit can't be told counts as never committed",
        GROUP,
        "    each = {error for _, answers in response.topics for *_, error in answers}\n",
        "    each: set[int] = set()\n",
        tests=(IN_ANSWERS,),
    ),
    Mutation(
        "a heartbeat that fences goes unheard",
        GROUP,
        "    return [error] if error not in {0, errors.RebalanceInProgressError.errno} else []\n",
        "    return [error] if error == errors.RebalanceInProgressError.errno else []\n",
        tests=(IN_ANSWERS,),
    ),
    Mutation(
        "the group is not joined again when its heartbeats have failed",
        READER,
        "            self._on_left()\n",
        "            pass\n",
        tests=(IN_KAFKA_LOG,),
    ),
    Mutation(
        "records are handed out of a partition that is not placed",
        READER,
        "            if share is not None and share.is_placed:\n",
        "            if share is not None:\n",
        tests=(IN_KAFKA_LOG,),
    ),
    Mutation(
        "a partition that can't be read is tried without a pause",
        UNREADABLE,
        "        self._consumer.pause(at)\n",
        "",
        tests=(IN_UNREADABLE,),
    ),
    Mutation(
        "a partition that can't be read is never tried again",
        UNREADABLE,
        "elif stuck.due <= now and",
        "elif stuck.due < 0 and",
        tests=(IN_UNREADABLE,),
    ),
    Mutation(
        "what was damaged on its way is said at once",
        UNREADABLE,
        "TRIES = 3",
        "TRIES = 1",
        tests=(IN_UNREADABLE,),
    ),
    Mutation(
        "a partition that is being moved is read again where it stood",
        UNREADABLE,
        " and _is_to_be_read(share):",
        ":",
        tests=(IN_UNREADABLE,),
    ),
    Mutation(
        "heartbeats end with a refusal that the library does not know",
        COORDINATION,
        "                    await asyncio.sleep(self._heartbeat_interval_ms / 1000)\n",
        "                    return\n",
        tests=(IN_COORDINATION,),
    ),
    Mutation(
        "an assignment of topics that are not read is believed",
        COORDINATION,
        "if topic not in self._subscription.topics or",
        "if",
        tests=(IN_COORDINATION,),
    ),
    Mutation(
        "events of a later leader are handed out unasked",
        LEADER_EPOCHS,
        "        elif epoch > read.epoch:\n",
        "        elif epoch > read.epoch + 100:\n",
        tests=(IN_LEADER_ENDS,),
    ),
    Mutation(
        "a partition that was cut is read on where it stood",
        PLACING,
        "        elif kept is not None and kept < wanted:\n",
        "        elif kept is not None and kept < wanted - 100:\n",
        tests=(IN_LEADER_ENDS,),
    ),
    Mutation(
        "nobody commits by which leader a partition was read",
        GROUP,
        "            epoch = _UNKNOWN if committed.leader_epoch is None else committed.leader_epoch\n",
        "            epoch = _UNKNOWN\n",
        tests=(IN_LEADER_ENDS,),
    ),
    Mutation(
        "what a leader did not tell is taken for all there is",
        PLACING,
        " and share.partition in kept:\n                self._replace(share, *found, kept[share.partition])\n",
        ":\n                self._replace(share, *found, kept.get(share.partition))\n",
        tests=(IN_LEADER_ENDS,),
    ),
    Mutation(
        "an answer about depths that nobody asked for is counted",
        QUESTIONS,
        "        if len(self._told) > self._wanted:\n",
        "        if not self._told and self._wanted < 0:\n",
        tests=(IN_MONITOR,),
    ),
    Mutation(
        "a standstill for another cause is left unsaid",
        STALLS,
        "if stall is None or stall.standing.cause != standing.cause:",
        "if stall is None:",
        tests=(IN_STALLS,),
    ),
    Mutation(
        "heartbeats pile up at a blocked broker",
        RABBIT_CONNECTION,
        "            if frame.payload != _HEARTBEAT:\n",
        "            if frame.payload:\n",
        tests=(IN_CONNECTION,),
    ),
    Mutation(
        "a connection closed over what was written counts as lost",
        RABBIT_CONNECTION,
        "refused, failed = isinstance(error, _REFUSALS), ",
        "refused, failed = False, ",
        tests=(IN_CONNECTION,),
    ),
    Mutation(
        "a new channel takes the number of one just closed",
        RABBIT_CONNECTION,
        "            self._number = self._number % most + 1\n",
        "            self._number = len(channels) + 1\n",
        tests=(IN_CONNECTION,),
    ),
    Mutation(
        "an answer for many partitions is handed out in one step",
        SLICES,
        "len(taken) < SLICE_PARTITIONS",
        "len(taken) < 1 << 30",
        tests=("tests/unit/test_kafka_slices.py::test_a_slice_has_few_partitions_when_an_answer_has_many",),
    ),
    Mutation(
        "an answer for many partitions is taken in in one step",
        "proxy/kafka_log/fetching.py",
        "TAKEN_AT_ONCE = 200\n",
        "TAKEN_AT_ONCE = 1 << 30\n",
        tests=("tests/unit/test_kafka_slices.py::test_an_answer_is_taken_in_in_steps_when_it_has_many_partitions",),
    ),
    Mutation(
        "what one channel tells of queues is taken for another's",
        "proxy/rabbitmq/intake.py",
        "                channel in self._answered and self._is_answer",
        "                self._answered and self._is_answer",
        tests=(
            "tests/properties/test_intake.py::test_what_a_channel_tells_of_queues_is_taken_in_order_and_the_rest_passed_on_however_bytes_come",
        ),
    ),
    Mutation(
        "every fetch takes a task",
        "proxy/kafka_log/fetching.py",
        "        if under_way is None:\n",
        "        if under_way is not None or under_way is None:\n",
        tests=("tests/wire/test_fetching.py::test_a_fetch_takes_no_task_when_its_node_is_connected",),
    ),
    Mutation(
        "a fault of ours in what an answer brings is passed over",
        "proxy/kafka_log/fetching.py",
        "            further = _raise(error)\n",
        "            further = None if error else _raise(error)\n",
        tests=(
            "tests/wire/test_fetching.py::test_reading_ends_with_the_reason_when_what_an_answer_brings_can_not_be_taken_in",
        ),
    ),
    Mutation(
        "an alarm that rang for one wait ends the next one, too",
        "proxy/bridge/alarm.py",
        "                timer.cancel()\n        self._has_rung = False\n",
        "                timer.cancel()\n",
        tests=("tests/unit/bridge/test_alarm.py",),
    ),
    Mutation(
        "Python looks at a hundred thousand objects in one step",
        "proxy/memory.py",
        "GC_THRESHOLDS = (10_000, ",
        "GC_THRESHOLDS = (100_000, ",
        tests=("tests/unit/test_memory.py::test_python_looks_at_few_objects_in_one_step_when_very_many_are_new",),
    ),
    Mutation(
        "the monitor leaves an observer behind for every question",
        QUESTIONS,
        "if queues and not self._closing.done():",
        "if queues and not self._channel.closing.done():",
        tests=(IN_MONITOR,),
    ),
    Mutation(
        "a queue is asked for its kind in every poll",
        "proxy/rabbitmq/monitor.py",
        "(state.kind is None or is_stream) and now - asked >= KIND_INTERVAL",
        "True",
        tests=("tests/unit/rabbitmq/test_monitor.py",),
    ),
    Mutation(
        "a stream passes for a queue",
        QUEUE_KIND,
        "(classic|quorum|stream)",
        "(classic|quorum)",
        tests=(IN_MONITOR,),
    ),
    Mutation(
        "a cut lands on a share of the own rate",
        AIMD,
        "level.excess / DRAINING) * level.target",
        "level.excess / DRAINING) * self.rate",
        tests=("tests/unit/congestion/test_rate_law.py",),
    ),
    Mutation(
        "queues that ran empty show what consumers can take",
        DRAIN_RATE,
        "is_capacity=all(",
        "is_capacity=any(",
        tests=("tests/unit/congestion/test_drain_rate.py",),
    ),
    Mutation(
        "a quorum queue without a leader is taken for an empty one",
        DEPTHS,
        "        return now - self._doubted.setdefault(queue, now) < DOUBT\n",
        "        return False\n",
        tests=("tests/unit/steering/test_depths.py",),
    ),
    Mutation(
        "idle queues are never asked",
        ROTA,
        "idle = list(islice(self._idle, allowed - len(hot)))",
        "idle: list[str] = []",
        tests=("tests/unit/steering/test_rota.py",),
    ),
    Mutation(
        "a partition that changes hands counts as a spike of the others",
        OTHERS,
        "if before is not None and lead is not None:\n                self._rates.count(lead, count - before)",
        "if lead is not None:\n                self._rates.count(lead, count - (before or 0))",
        tests=("tests/unit/steering/test_other_replicas.py",),
    ),
    Mutation(
        "threads share the room in which they decompress",
        UNPACKING,
        "        self.room = bytearray(AT_ONCE)\n",
        '        _Bound.one = getattr(_Bound, "one", bytearray(AT_ONCE))\n        self.room = _Bound.one\n',
        tests=(IN_SLICES,),
    ),
    Mutation(
        "one partition's answer is read to its end before the others'",
        SLICES,
        "            self._records.move_to_end(tp)  #",
        "            pass  #",
        tests=(IN_SLICES,),
    ),
    Mutation(
        "Kafka's session ends without a second login",
        KAFKA_LOGIN,
        "        if lifetime > 0:\n",
        "        if lifetime < 0:\n",
        tests=(IN_ROTATIONS,),
    ),
    Mutation(
        "requests are sent into the midst of a second login",
        KAFKA_LOGIN,
        "        if self._exchange is None:\n            return super().send",
        "        if self._loop is not None:\n            return super().send",
        tests=(IN_ROTATIONS,),
    ),
    Mutation(
        "a new token is sent on no connection to RabbitMQ",
        RABBIT_LOGIN,
        "        self._living[login] = None\n",
        "",
        tests=(IN_ROTATIONS,),
    ),
    Mutation(
        "a refused login ends the process whatever came before",
        LANE,
        "            if not self._logged_in:\n",
        "            if self._limits:\n",
        tests=(IN_LANE,),
    ),
    Mutation(
        "every connection that there ever was is remembered",
        RABBIT_LOGIN,
        "weakref.WeakKeyDictionary[Login, None] = weakref.WeakKeyDictionary()",
        "dict[Login, None] = {}",
        tests=(f"{IN_CALM}::test_nothing_grows_when_connections_are_made_anew",),
    ),
    Mutation(
        "a watch is left behind by every join",
        ASKING,
        "        watch.cancel()\n",
        "        asyncio.get_running_loop().call_later(1e9, watch.cancel)\n",
        tests=(f"{IN_CALM}::test_nothing_grows_when_the_group_rebalances",),
    ),
    Mutation(
        "routes on one connection have the widest of their windows",
        RABBIT_BROKER,
        "return min(route.most_in_flight",
        "return max(route.most_in_flight",
        "wire",
    ),
    Mutation(
        "an event type takes the tokens of another route's cap",
        POLICY,
        "CappedThrottle(throttle, self.caps[event_type.route],",
        "CappedThrottle(throttle, next(iter(self.caps.values())),",
        "wire",
    ),
    Mutation(
        "a lane goes home while something is open at the host it leaves",
        HOME,
        "        while not session.is_empty:\n",
        "        while session.over:\n",
        "wire",
    ),
    Mutation(
        "a lane that has gone home leaves what it came from open",
        LANE,
        "await wire.close(gracefully=not is_lost)",
        "await (wire.close(gracefully=False) if is_lost else asyncio.sleep(0))",
        "wire",
    ),
    Mutation(
        "a stop that is given up leaves its tasks behind",
        KAFKA_CONSUMER,
        "if task is not None and not task.done()]",
        "if task is not None and task.done()]",
        tests=(IN_KAFKA_LOG,),
    ),
    Mutation(
        "nobody who waits is told that the lease is renewed",
        LEASE,
        "        self._renewed.set()\n",
        "        self._renewed.clear()\n",
        "wire",
    ),
    Mutation(
        "what a type waits for is not said",
        STATUS,
        "            if why := awaited(one, now):\n",
        "            if not (why := awaited(one, now)):\n",
        tests=("tests/unit/test_app.py",),
    ),
    Mutation(
        "what is handed to a lane is remembered for ever",
        LANE,
        "                self._requests.pop(batch, None)\n",
        "                self._requests.get(batch)\n",
        "wire",
    ),
    Mutation(
        "a class below is owed nothing",
        LINE,
        "SURE_SHARE = 0.025\n",
        "SURE_SHARE = 0.0\n",
        "wire",
    ),
    Mutation(
        "who came last to a lane is served first",
        LINE,
        "return None if keeps else next(iter(places[top]))",
        "return None if keeps else next(reversed(places[top]))",
        "wire",
    ),
    Mutation(
        "the lane turns without end while slots are short",
        LINE,
        "return bool(self._places) and not self._is_short and self.keeps",
        "return self.keeps",
        tests=("tests/unit/publish_lane/test_line.py",),
    ),
    Mutation(
        "what is given back is counted in events, not in work",
        BUDGETED,
        "self._gate.give_back(self._tier, (self._granted - events) * self._charge.cost)",
        "self._gate.give_back(self._tier, self._granted - events)",
    ),
    Mutation(
        "a topic that was missing is begun at its end",
        PLACING,
        "            self._begun.update(topics)\n",
        "            pass\n",
        tests=("tests/unit/test_positions_placing.py",),
    ),
    Mutation(
        "a new log settles anew after each rebalance",
        PLACING,
        "        if known != topic_id:\n",
        "        if True:\n",
        tests=("tests/unit/test_positions_placing.py",),
    ),
    Mutation(
        "a new epoch waits for the pause of an old failure",
        POSITIONS,
        "        self._begun.set()\n",
        "",
        tests=("tests/unit/test_positions_placing.py",),
    ),
    Mutation(
        "the second question does not wait for the leaders",
        INQUIRY,
        "                await self._client.set_topics(self._topics | topics)\n                self._topics |= topics",
        "                self._topics |= topics\n                await self._client.set_topics(self._topics)",
        tests=("tests/unit/test_kafka_answers.py",),
    ),
    Mutation(
        "the hosts of the settings are asked at the start only",
        NETWORK,
        "        nodes = [*self.nodes.in_turn(known.values(), asked_at), *self.nodes.in_turn(others, asked_at)]\n",
        "        nodes = self.nodes.in_turn(known.values() or others, asked_at)\n",
        tests=("tests/unit/test_kafka_network.py",),
    ),
    Mutation(
        "partitions that no leader shares out are left to it",
        UNSHARED,
        "        return bool(unread)\n",
        "        return False\n",
        tests=("tests/unit/test_kafka_unshared.py",),
    ),
    Mutation(
        "a channel that is being closed is closed again",
        RABBIT_CONNECTION,
        "await channel.close_at_broker()",
        "await channel.close()",
        tests=("tests/unit/rabbitmq/test_connection.py",),
    ),
    Mutation(
        "what must go again waits its patience at each gate",
        BUDGETED,
        "        self.patience = AGAIN_PATIENCE / gates\n",
        "        self.patience = AGAIN_PATIENCE\n",
        tests=("tests/unit/steering/test_budgeted.py",),
    ),
    Mutation(
        "what is done with behind an open event is not told",
        OFFSETS,
        "            self.ahead += end - start\n",
        "            self.ahead += 0\n",
        tests=("tests/unit/recording/test_recorder.py",),
    ),
    Mutation(
        "what waits of thousands of event types is looked at in one step",
        WAITING,
        "        if weight >= _WEIGHT:\n",
        "        if weight >= 100 * _WEIGHT:\n",
        tests=(IN_WAITING,),
    ),
    Mutation(
        "the lag of a class leaves out partitions of which it is not known",
        WAITING,
        "            self.lag = None if self.lag is None or lag is None else self.lag + lag\n",
        "            self.lag = None if self.lag is None else self.lag + (lag or 0)\n",
        tests=(IN_WAITING,),
    ),
    Mutation(
        "the age of what waits is that of the last type",
        WAITING,
        "                self._oldest_ms = min(self._oldest_ms, stamp)\n",
        "                self._oldest_ms = stamp\n",
        tests=(IN_WAITING,),
    ),
    Mutation(
        "a package that was removed stands in the SBOM",
        SBOM,
        '        if state != "installed":\n',
        '        if state == "not-installed":\n',
        tests=("tests/unit/test_sbom.py",),
    ),
    Mutation(
        "a leader of an older epoch is believed",
        LEADERS,
        "max(led, self._newest.get((topic_id, number), led), key=_epoch)",
        "led",
        tests=("tests/unit/test_kafka_leaders.py",),
    ),
    Mutation(
        "all questions of a client share one turn",
        NODES,
        "        return self._asked.get((node, kind), 0)\n",
        "        return max((at for (who, _), at in self._asked.items() if who == node), default=0)\n",
        tests=("tests/unit/test_kafka_network.py",),
    ),
    Mutation(
        "a connection that confirms nothing any more is kept",
        PATIENCE,
        "now - max(self._seen, written) > stalled and not is_spent",
        "False",
        tests=("tests/unit/publish_lane/test_patience.py",),
    ),
    Mutation(
        "patience runs while the process itself stands still",
        "proxy/publish_lane/watch.py",
        "is not LaneState.OPEN or is_late:",
        "is not LaneState.OPEN:",
        tests=(IN_LANE,),
    ),
    Mutation(
        "a queue leaves its group while nobody looks",
        QUEUE_GROUP,
        "min(LONGEST_LOOK, now - self._looked)",
        "now - self._looked",
        tests=("tests/unit/congestion/test_group.py",),
    ),
    Mutation(
        "a silent host is tried again in its turn",
        HOST_TURN,
        "if not self._doubted.has(self._hosts[place], now)), order[0])",
        "if True), order[0])",
        tests=("tests/unit/rabbitmq/test_hosts.py",),
    ),
    Mutation(
        "a budget is not told of the ticks for which nobody looked",
        ROUTE_CONTROL,
        "                    route.pass_over(at)\n",
        "                    pass\n",
        tests=("tests/unit/steering/test_rest.py",),
    ),
    Mutation(
        "every replica gives a class all that it is sure of",
        ROUTE_CONTROL,
        "trickle * self.part(rank)",
        "trickle",
        tests=("tests/unit/steering/test_route_control.py",),
    ),
    Mutation(
        "a fetch session goes on although an answer never came",
        SESSIONS,
        "        if self._asked is not None or not self._is_told_by(ids):\n            self._epoch = _FIRST",
        "        if not self._is_told_by(ids):\n            self._epoch = _FIRST",
        tests=(IN_SESSIONS,),
    ),
    Mutation(
        "a fetch session goes on under the id of a topic that was made anew",
        SESSIONS,
        "        if ids is not before and any(ids.of.get(at.topic) != before.of.get(at.topic) for at in self._told):",
        "        if ids is not before and any(at.topic not in before.of for at in self._told):",
        tests=(IN_SESSIONS,),
    ),
    Mutation(
        "a topic without an id is named by it",
        SESSIONS,
        "        return not self._is_by_id or all(at.topic in ids.of for at in self._changed)",
        "        return True",
        tests=(IN_SESSIONS,),
    ),
    Mutation(
        "ids of topics are believed as they were told first",
        LEADERS,
        "        if told != self.ids:\n            self.ids = told",
        "        if not self.ids.of:\n            self.ids = told",
        tests=("tests/unit/test_kafka_leaders.py",),
    ),
    Mutation(
        "a node of a thousand partitions is asked again at once",
        SESSIONS,
        "            self._rests_until = now + min(MOST_PACE, PACE * len(self._wanted))",
        "            self._rests_until = now",
        tests=(IN_SESSIONS,),
    ),
    Mutation(
        "a node rests although it has more of a partition",
        SESSIONS,
        "        if self._wanted.get(at, inf) < self._ends.get(at, 0):",
        "        if self._ends.get(at, 0) < 0:",
        tests=(IN_SESSIONS,),
    ),
    Mutation(
        "a log that contradicts itself is read again without end",
        "proxy/positions/kept.py",
        "        elif now - share.cut_back_at >= CONTRADICTED_SECONDS:",
        "        elif now < share.cut_back_at:",
        tests=("tests/unit/test_positions_placing.py",),
    ),
    Mutation(
        "a log is said to contradict itself at once",
        "proxy/positions/kept.py",
        "        elif now - share.cut_back_at >= CONTRADICTED_SECONDS:",
        "        else:",
        tests=("tests/unit/test_positions_placing.py",),
    ),
    Mutation(
        "what is no longer wanted is not forgotten by the node",
        SESSIONS,
        "                    forgotten.append(at)\n",
        "                    pass\n",
        tests=(IN_SESSIONS,),
    ),
    Mutation(
        "where a partition was read on is not told",
        SESSIONS,
        "                elif offset is not None and offset != told:\n",
        "                elif offset is not None and told is None:\n",
        tests=(IN_SESSIONS,),
    ),
    Mutation(
        "a partition stays with the node that led it",
        FETCH_PLAN,
        "            if node is not None and (place is None or place.node != node):\n",
        "            if node is not None and place is None:\n",
        tests=(IN_SESSIONS,),
    ),
    Mutation(
        "every fetch begins a session",
        SESSIONS,
        "            self._id, self._epoch = given, self._epoch % _LAST + 1\n",
        "            self._id = given\n",
        tests=(f"{IN_KAFKA_LOG}::test_an_event_is_read_at_once_when_hundreds_of_topics_were_silent",),
    ),
    Mutation(
        "the monitor stays with a node that confirms nothing",
        "proxy/rabbitmq/inquiry.py",
        " or self._hosts.is_better_elsewhere(login.host, now):",
        ":",
        tests=(IN_MONITOR,),
    ),
    Mutation(
        "a host is in doubt although it confirms",
        "proxy/publish_lane/watch.py",
        "            self._connector.trust(wire.host)\n",
        "            pass\n",
        tests=(IN_LANE,),
    ),
    Mutation(
        "a law's rate stands while the route must stop",
        RATE_LAW,
        "        return 0.0 if self._before is not None else self._found\n",
        "        return self._found\n",
        tests=("tests/unit/congestion/test_laws.py",),
    ),
    Mutation(
        "a rate in front of empty queues is left to the law",
        RATE_LAW,
        "        if level.empty_for is not None and level.empty_for >= EMPTY_FOR:\n",
        "        if level.empty_for is not None and level.empty_for >= 1e9:\n",
        tests=("tests/unit/congestion/test_laws.py",),
    ),
    Mutation(
        "CUBIC: time runs on while the rate is not used",
        CUBIC,
        "        self._was_hot = False\n        return True\n",
        "        self._was_hot = False\n        self._used += FEEDBACK\n        return True\n",
        tests=("tests/unit/congestion/test_cubic.py",),
    ),
    Mutation(
        "CUBIC: who is cut below the last flat part leaves no room",
        CUBIC,
        "rate * (2 - share) / 2 if rate < self._most else rate",
        "rate",
        tests=("tests/unit/congestion/test_cubic.py",),
    ),
    Mutation(
        "Vegas: a probe does not hold the limit",
        VEGAS,
        "        self._frozen_until = now + seconds * (1 + factor / (1 + factor))\n",
        "        self._frozen_until = now\n",
        tests=("tests/unit/congestion/test_vegas.py",),
    ),
    Mutation(
        "Vegas: what waits in the sender's buffer is a queue",
        VEGAS,
        "shortest * (1 + factor) / trip.seconds",
        "shortest / trip.seconds",
        tests=("tests/unit/congestion/test_vegas.py",),
    ),
    Mutation(
        "a batch is back although some of it is open",
        TRIPS,
        "        if out.written is None or out.resolved < out.written:\n",
        "        if out.written is None:\n",
        tests=("tests/unit/congestion/test_trips.py",),
    ),
    Mutation(
        "rivals: whoever is above the last class that passes is held to what asked before",
        COHORTS,
        "    found = [inf if rank < last or (rank == last and is_free) else 0.0 for rank in range(len(asked))]\n",
        "    found = [asked[rank] / (seconds or 1) if rank < last else inf if is_free and rank == last else 0.0 "
        "for rank in range(len(asked))]\n",
        tests=("tests/properties/test_cohorts.py",),
    ),
    Mutation(
        "rivals: a stop is left to the rule",
        SHEDDING,
        "        must_stop = verdict.cause in STOPS\n",
        "        must_stop = False\n",
        tests=("tests/unit/simulation/test_rivals.py",),
    ),
    Mutation(
        "DAGOR: rises by a share of the admitted, as before the errata",
        DAGOR,
        "admitted + BETA * asked",
        "admitted + BETA * admitted",
        tests=("tests/unit/simulation/test_dagor.py",),
    ),
    Mutation(
        "Cinnamon: slots are free although requests wait",
        CINNAMON,
        "window.could if window.waiting else min(",
        "min(",
        tests=("tests/unit/simulation/test_cinnamon.py",),
    ),
    Mutation(
        "Cinnamon: an idle minute is saved up",
        CINNAMON,
        "max(before + error, 0.0) - before",
        "error",
        tests=("tests/unit/simulation/test_cinnamon.py",),
    ),
    Mutation(
        "a partition changes rows while the lane has more to write of it",
        INBOX,
        "        if flow in before.on_way or ",
        "        if ",
        tests=(CATCH_UP,),
    ),
    Mutation(
        "a backlog fills the inbox of what is live",
        INBOX,
        "OLD_SHARE = 0.5\n",
        "OLD_SHARE = 1.0\n",
        tests=(CATCH_UP,),
    ),
    Mutation(
        "a partition that changes rows stays paused",
        INBOX,
        "(self._pause if after.pressures else self._resume)([flow.partition])",
        "after.pressures and self._pause([flow.partition])",
        tests=(CATCH_UP,),
    ),
    Mutation(
        "a partition has caught up although old events wait",
        FLOW,
        "self._old_until = first + len(events) if is_old",
        "self._old_until = first + 1 if is_old",
        tests=(CATCH_UP,),
    ),
    Mutation(
        "what is old goes before what is live",
        LADDER,
        "key=lambda tier: (tier % classes, tier)",
        "key=lambda tier: (tier % classes, -tier)",
        tests=(TIERS,),
    ),
    Mutation(
        "what stands behind everything needs no tokens of the lowest class",
        LADDER,
        "                gates.add(lowest)\n",
        "                gates.add(place.rank)\n",
        tests=(TIERS,),
    ),
    Mutation(
        "a backlog gets nothing while what is live takes all",
        DIVIDER,
        "                self._tiers[behind].owed += self._share * size\n",
        "                self._tiers[behind].owed += 0.0\n",
        tests=(TIERS,),
    ),
    Mutation(
        "a backlog saves up its share while none of it waits",
        DIVIDER,
        "            if self._tiers[behind].waiting:\n",
        "            if behind:\n",
        tests=(TIERS,),
    ),
    Mutation(
        "what a cap forgives is not counted",
        POOLS,
        "            self.forgiven += left - (self.balance - size)\n",
        "            self.forgiven += 0.0\n",
        tests=(TIERS,),
    ),
    Mutation(
        "slots owed to a class go to its backlog first",
        LINE,
        "heads[one.rank] = min(one, heads.get(one.rank, one))",
        "heads[one.rank] = max(one, heads.get(one.rank, one))",
        tests=(IN_LINE,),
    ),
    Mutation(
        "what is left of a refill goes to the backlog before a live type can ask anew",
        LADDER,
        "any(self.tiers[above].served == refill for above in self.tiers[tier].rivals)",
        "False",
        tests=(TIERS,),
    ),
    Mutation(
        "a paused type sends on",
        SENDING,
        "if host.is_stopped or host.stance.mode is not Mode.RUN or host.dead_letters.is_full:",
        "if host.is_stopped or host.dead_letters.is_full:",
        tests=(IN_STANCE,),
    ),
    Mutation(
        "what a throttle admits goes although the type was paused meanwhile",
        SENDING,
        "            if host.is_stopped or host.stance.mode is not Mode.RUN:\n                return\n",
        "            if host.is_stopped:\n                return\n",
        tests=(IN_STANCE,),
    ),
    Mutation(
        "what the lane has not written is written although the type is paused",
        LISTENER,
        "        if stance.mode is not Mode.RUN:\n            for flow",
        "        if stance.mode is Mode.DISCARD:\n            for flow",
        tests=(IN_STANCE,),
    ),
    Mutation(
        "a type discards on when it is to run again",
        LISTENER,
        "lambda: self.stance.mode is Mode.DISCARD, self._on_discarded",
        "lambda: bool(self.stance.by), self._on_discarded",
        tests=(IN_INTERVENTIONS,),
    ),
    Mutation(
        "what is discarded counts as delivered",
        BOOKS,
        "            told.delivered -= one.last - one.first\n",
        "",
        tests=(IN_STANCE,),
    ),
    Mutation(
        "what is discarded is recorded before it is committed",
        BOOKS,
        "while epoch.discarded and epoch.discarded[0].last <= resolved:",
        "while epoch.discarded:",
        tests=(IN_STANCE,),
    ),
    Mutation(
        "ranges that are discarded are joined over what was sent between them",
        BOOKS,
        "if epoch.discards and one.first == epoch.discarded_to else None",
        "if epoch.discards else None",
        tests=(IN_STANCE,),
    ),
    Mutation(
        "a listener that is opened does not know what people have asked for",
        LISTENERS,
        "        listener.take(self._stance(event_type))\n",
        "",
        tests=(IN_APP,),
    ),
    Mutation(
        "of several interventions the first one counts",
        EFFECT,
        "return max((one for one in told",
        "return min((one for one in told",
        tests=(IN_INTERVENTIONS,),
    ),
    Mutation(
        "an intervention that is taken back holds on",
        INTERVENTIONS,
        "            if taken_back is not None:\n                self._drop(taken_back)\n",
        "",
        tests=(IN_INTERVENTIONS,),
    ),
    Mutation(
        "a move is made again once it was made",
        MOVING,
        "serial(move.id) > serial(share.move)",
        "serial(move.id) >= serial(share.move)",
    ),
    Mutation(
        "who gets a partition does not know which move was made of it",
        PLACING,
        "share.topic_id, share.next, share.move = committed.topic_id, committed.offset, committed.move",
        "share.topic_id, share.next = committed.topic_id, committed.offset",
    ),
    Mutation(
        "the commits after a move do not repeat it",
        MOVING,
        "            self._placing.go_on(share)\n",
        '            self._placing.go_on(share)\n            share.move = ""\n',
    ),
    Mutation(
        "a partition is moved before what is out has its outcome",
        ASSIGNMENT,
        'PartitionOwner.on_moving`."""\n',
        'PartitionOwner.on_moving`."""\n        self._grace = 0.0\n',
    ),
    Mutation(
        "what was done with before a rewind is committed after it",
        MOVING,
        "share.move, share.done = move.id, to\n",
        "share.move, share.done = move.id, max(to, share.done)\n",
    ),
    Mutation(
        "a partition is moved that was not halted",
        MOVING,
        "                continue  # it has come this far",
        "                pass  # it has come this far",
    ),
    Mutation(
        "a move is made in the topic that has taken the name",
        MOVING,
        "return move.topic_id == share.topic_id and serial",
        "return serial",
    ),
    Mutation(
        "a move goes on although the partition has gone to another",
        MOVING,
        "                return  # whoever owns them next finds the moves\n",
        "                pass  # whoever owns them next finds the moves\n",
    ),
    Mutation(
        "a skip passes over what its plan does not name",
        MOVE,
        "return self.to if self.first <= done < self.to else done",
        "return self.to if done < self.to else done",
        tests=("tests/unit/bridge/test_move.py",),
    ),
    Mutation(
        "a rewind goes forward where the group is behind",
        MOVE,
        "return min(done, self.to)",
        "return self.to",
        tests=("tests/unit/bridge/test_move.py",),
    ),
    Mutation(
        "an older Tidegate takes a moved cursor for one of another topic",
        IDENTITY,
        'f"{_MOVE}{self.move} {topic}".rstrip()',
        'f"{topic} {_MOVE}{self.move}".rstrip()',
        tests=("tests/unit/test_positions_identity.py",),
    ),
    Mutation(
        "a redrive takes an unknown outcome for confirmed",
        REDRIVE,
        "            if outcome is Outcome.CONFIRMED:\n",
        "            if outcome is not Outcome.UNDELIVERABLE:\n",
        tests=(IN_REDRIVE,),
    ),
    Mutation(
        "a redrive takes letters off unrecorded",
        REDRIVE,
        "        await self._audit.write(confirmed)\n",
        "",
        tests=(IN_REDRIVE,),
    ),
    Mutation(
        "a redrive goes on behind a letter that failed",
        REDRIVE,
        "                self.halted.add(going.letter.partition)\n",
        "                pass\n",
        tests=(IN_REDRIVE,),
    ),
    Mutation(
        "a redrive takes on what came after its beginning",
        REDRIVE,
        "            room = self.count.waiting - self.count.taken\n",
        "            room = len(letters)\n",
        tests=(IN_REDRIVE,),
    ),
    Mutation(
        "a dry redrive promises letters whose queue is missing",
        "proxy/redrive/outlook.py",
        "queue: state is not None for",
        "queue: True for",
        tests=(IN_REDRIVE,),
    ),
    Mutation(
        "a pause that a later resume took back is told as held to its own end",
        INTERVENTIONS,
        "            elif not has_effect:\n",
        "            elif not one.id:\n",
        tests=(IN_INTERVENTIONS,),
    ),
    Mutation(
        "a name that is asked twice counts as it was told last",
        "proxy/operations/intervention_request.py",
        "        if name in fields:\n",
        "        if not name:\n",
        tests=("tests/unit/operations/test_desk.py",),
    ),
    Mutation(
        "top counts a replica that is away and whoever has its partitions",
        "proxy/operations/top_group.py",
        "if address in self._gone or here > had}",
        "if address in self._gone}",
        tests=("tests/unit/operations/test_top.py",),
    ),
    Mutation(
        "a command needs the secrets of blocks that it does without",
        "proxy/config/files.py",
        "root = read(file, environ, mistakes, without)",
        "root = read(file, environ, mistakes)",
        tests=("tests/unit/test_config_sources.py",),
    ),
    Mutation(
        "a redrive sends letters once more than it may",
        "proxy/redrive/choice.py",
        "if letter.redriven >= self.wanted.times:",
        "if letter.redriven > self.wanted.times:",
        tests=(IN_REDRIVE,),
    ),
    Mutation(
        "a redrive does not tell of letters that stay",
        REDRIVE,
        "        self.count.on_stay(taken, why, detail)\n        self._stayed",
        "        self._stayed",
        tests=(IN_REDRIVE,),
    ),
    Mutation(
        "a redrive sends every copy of a letter",
        REDRIVE,
        "        if one.name in self._sent:\n",
        "        if not one.name:\n",
        tests=(IN_REDRIVE,),
    ),
    Mutation(
        "a redrive takes copies off whose event is still out",
        REDRIVE,
        "            self._repeats[one.name].append(one.taken)\n",
        "            self._copies.append(one.taken)\n",
        tests=(IN_REDRIVE,),
    ),
    Mutation(
        "a record of a redrive spans what was not confirmed",
        "proxy/redrive/audit.py",
        "keyed[index + 1] == (key, place + 1)",
        "keyed[index + 1][0] == key",
        tests=(IN_REDRIVE,),
    ),
    Mutation(
        "a redrive gives back letters that their queue will drop",
        REDRIVE,
        "        if worn:\n",
        "        if worn and worn[0].returned < RETURNS:\n",
        tests=(IN_REDRIVE,),
    ),
    Mutation(
        "a redrive sends letters as they lie",
        REDRIVE,
        "        going.sort(key=place)\n",
        "",
        tests=(IN_REDRIVE,),
    ),
    Mutation(
        "a redrive goes on while its queues are deep",
        "proxy/redrive/pace.py",
        "self._is_deep.get(queue, True) or now",
        "now",
        tests=("tests/unit/redrive/test_pace.py",),
    ),
    Mutation(
        "a letter forgets what its event was called by",
        "proxy/publish_lane/letters.py",
        "bare if bare != name and carried_name(bare) == name else name",
        "name",
        tests=("tests/properties/test_letters.py",),
    ),
    Mutation(
        "an intervention that was ended before its time holds on",
        INTERVENTIONS,
        "Sorted(self.held)",
        "Sorted(list(self._held.values()))",
        tests=(IN_INTERVENTIONS,),
    ),
    Mutation(
        "an answer to the beginning counts as one to the end",
        PINNED,
        "if (answer.id, answer.has_ended) == (to.id, has_ended)]",
        "if answer.id == to.id and (answer.has_ended or has_ended or not has_ended)]",
        tests=(IN_PINNED,),
    ),
    Mutation(
        "whoever reads for weeks keeps all that ever was pinned",
        PINNED,
        "for key, one in self._interventions.items() if not one.is_past(now_ms)}",
        "for key, one in self._interventions.items()}",
        tests=(IN_PINNED,),
    ),
    Mutation(
        "a question of another type than JSON is taken",
        DESK,
        "if request.content_type != JSON:",
        "if not request.content_type:",
        tests=(IN_DESK,),
    ),
    Mutation(
        "any number of questions wait for Kafka",
        DESK,
        "if self._pending >= MOST_PENDING:",
        "if self._pending < 0:",
        tests=(IN_DESK,),
    ),
    Mutation(
        "a page of another origin acts by the certificate that a browser shows for it",
        DOORS,
        "return Refusal.FOREIGN_NAME if is_led else refusal",
        "return refusal",
        tests=(IN_DOORS,),
    ),
    Mutation(
        "what was said stands where what was proved should",
        DOORS,
        'return "token" if self._settings.asks_proof else address',
        "return address",
        tests=(IN_DOORS,),
    ),
    Mutation(
        "a foreign name opens a loopback address",
        DOORS,
        "return None if _is_loopback(caller.host) and is_own_page else Refusal.FOREIGN_NAME",
        "return None if is_own_page else Refusal.FOREIGN_NAME",
        tests=(IN_DOORS,),
    ),
    Mutation(
        "a type that moves counts as stuck",
        LIVENESS,
        "if old is not None and (old.why, old.progress) == (new.why, new.progress):",
        "if old is not None and old.why == new.why:",
        tests=(IN_LIVENESS,),
    ),
    Mutation(
        "time in which the process stood still counts as being stuck",
        LIVENESS,
        "min(LONGEST_LOOK, now - self._looked_at)",
        "now - self._looked_at",
        tests=(IN_LIVENESS,),
    ),
    Mutation(
        "a type whose connection is gone counts as stuck",
        LIVENESS,
        "if lane.state is not LaneState.OPEN:",
        "if lane.state is None:",
        tests=(IN_LIVENESS,),
    ),
    Mutation(
        "the new listener of a changed type begins before the old one has its outcomes",
        ASSIGNMENT,
        "topic in self.successors and not before.inbox.flows and not self._is_closed",
        "topic in self.successors and not self._is_closed",
        tests=(IN_RELOAD_TYPES,),
    ),
    Mutation(
        "what is done of a changed type is not committed",
        RENEWING,
        "taken = await self._epoch.secure(self._let_go.values()) if self._let_go else {}",
        "taken = {share.partition: share.done for share in self._let_go.values()}",
        tests=(IN_RELOAD_TYPES,),
    ),
    Mutation(
        "every type begins anew when one changes",
        LISTENERS,
        "if not self._is_other(then, self._assignment.latest(topic)):",
        "if then is None:",
        tests=(IN_RELOAD_TYPES,),
    ),
    Mutation(
        "a type goes on as it was when its route leads elsewhere",
        LISTENERS,
        "return address_of(then, rank, route, self._around) != now.address",
        "return False",
        tests=("tests/unit/test_reload_routes.py",),
    ),
    Mutation(
        "a lane is left while events are out on it",
        "proxy/route_lanes.py",
        "kept = {*self.of.values(), *used}",
        "kept = {*self.of.values()}",
        tests=("tests/unit/test_reload_routes.py",),
    ),
    Mutation(
        "a lane that nobody needs runs on",
        LISTENERS,
        "        self._tasks[after.event_type.topic] = [*ending, running]\n        self.leave_lanes()\n",
        "        self._tasks[after.event_type.topic] = [*ending, running]\n",
        tests=("tests/unit/test_reload_routes.py",),
    ),
    Mutation(
        "who waits for a throttle that is gone waits on",
        BUDGETED,
        "        self._wait.end()\n",
        "",
        tests=(IN_RELOAD_STEERING,),
    ),
    Mutation(
        "whoever cancels a wait that is ended as well is not heard",
        "proxy/steering/interruption.py",
        "return task.uncancel() <= self._cancelling and",
        "return task.uncancel() >= 0 and",
        tests=("tests/unit/steering/test_interruption.py",),
    ),
    Mutation(
        "what comes alone goes at once however much is in flight",
        "proxy/publish_lane/lane.py",
        "is_alone = self._is_idle and",
        "is_alone = self._is_idle or",
        tests=("tests/unit/publish_lane/test_lane.py",),
    ),
    Mutation(
        "a type is no longer lifted when its throttle is another",
        BUDGETED,
        "        inner.lift(self._lifted)\n",
        "",
        tests=(IN_RELOAD_STEERING,),
    ),
    Mutation(
        "a batch size is forgotten when another number of its class changes",
        POLICY,
        "followed = None if before is None else _innermost(before).batch_size",
        "followed = None",
        tests=(IN_RELOAD_STEERING,),
    ),
    Mutation(
        "a new law begins at the start rate",
        "proxy/congestion/rate_law.py",
        "self._law = make(self._found)",
        "self._law = make(50.0)",
        tests=(IN_RELOAD_STEERING,),
    ),
    Mutation(
        "the queues that a route had are asked for, whatever it names now",
        "proxy/steering/steering.py",
        "            self.depths.watch(queues)\n",
        "",
        tests=(IN_RELOAD_STEERING,),
    ),
    Mutation(
        "a bound that changed holds only for types that come later",
        LISTENERS,
        "                listener.go_by(self._around)",
        "                pass",
        tests=(IN_RELOAD_STEERING,),
    ),
    Mutation(
        "a deadline of connections is said to be in force",
        "proxy/config/difference.py",
        "key in _LIVE or one.path in live_limits",
        "key in _LIVE or key == 'limits'",
        tests=("tests/unit/test_config_difference.py",),
    ),
    Mutation(
        "what was taken back is told as held",
        EFFECT,
        "            if has_effect:",
        "            if one.mode is not Mode.RUN:",
        tests=("tests/unit/operations/test_effect.py",),
    ),
    Mutation(
        "an event type that becomes idle shows its last lag for good",
        "proxy/recording/recorder.py",
        " and kind.name not in self._behind",
        "",
        tests=("tests/unit/recording/test_recorder.py",),
    ),
    Mutation(
        "a pattern takes what Tidegate writes itself for events",
        "proxy/config/kinds.py",
        "    if topic in settings.own_topics:\n        return None\n",
        "",
        tests=("tests/unit/test_config_topics.py",),
    ),
    Mutation(
        "a list that a missing variable has emptied is said to hold too few",
        "proxy/config/words.py",
        'or (kind == "too_short" and mistakes.has_within(place))',
        "",
        tests=("tests/unit/test_config_topics.py",),
    ),
    Mutation(
        "a policy lasts beyond its end",
        INTERVENTIONS,
        "if one.policy}\n        if policies != self._policies:",
        "if one.policy}\n        if policies:",
        tests=(IN_POLICIES,),
    ),
    Mutation(
        "other files take back the policy that a person asked for",
        "proxy/config/in_force.py",
        "        self.said = settings\n        return self._look()",
        "        self.said, before, self._settings = settings, self._settings, settings\n        self._known.clear()\n"
        "        return before",
        tests=(IN_POLICIES,),
    ),
    Mutation(
        "a resume of types takes back the policy of a route",
        PINNED,
        "            and set(one.routes) <= set(later.routes)\n",
        "",
        tests=("tests/unit/operations/test_pinned.py",),
    ),
    Mutation(
        "a resume of a class forgets what holds its types by name",
        PINNED,
        "if self._class_of(name) in wanted.classes]",
        "if name in wanted.types]",
        tests=(IN_PINNED, IN_INTERVENTIONS),
    ),
    Mutation(
        "a resume of a class forgets what a later pause of the class hides",
        PINNED,
        "standing = [one for one in self._interventions.values() if one.holds(now_ms) and one.mode is not Mode.RUN]",
        "standing = others",
        tests=(IN_PINNED,),
    ),
    Mutation(
        "a route in shadow is named as what holds events back",
        "proxy/operations/questions.py",
        'if _is_congested(one) and not one.get("shadow")',
        "if _is_congested(one)",
        tests=("tests/unit/operations/test_questions.py",),
    ),
    Mutation(
        "the rates of a route in shadow are told as if they held",
        "proxy/operations/top_screen.py",
        'if is_watched := bool(route.get("shadow")):',
        "if is_watched := False:",
        tests=("tests/unit/operations/test_top.py",),
    ),
    Mutation(
        "settings that come into force are not recorded",
        "proxy/recording/recorder.py",
        "(told := told_settings.in_force(settings)) != self._told:",
        "(told := told_settings.in_force(settings)) is None:",
        tests=("tests/unit/test_reload_records.py",),
    ),
    Mutation(
        "what was told of the settings is told again at each reload",
        "proxy/recording/recorder.py",
        "(told := told_settings.in_force(settings)) != self._told:",
        "(told := told_settings.in_force(settings)) is not None:",
        tests=("tests/unit/test_reload_records.py",),
    ),
    Mutation(
        "a load is replayed by the settings of the start",
        "proxy/tuning/recording.py",
        'if start is None or later is None or later["at_ms"] < start["at_ms"]:',
        "if start is None or later is None or later:",
        tests=("tests/unit/tuning/test_in_force.py",),
    ),
    Mutation(
        "who comes to a throttle in shadow waits for the rate that is only watched",
        SHADOW,
        "        self._again, self._size = again, size\n        return want",
        "        self._again, self._size = again, size\n"
        "        return await self.inner.admit(want, size=size, again=again)",
    ),
    Mutation(
        "a change that comes while one is under way is overlooked",
        ASSIGNMENT,
        "return self.successors.get(topic, self.listeners[topic])",
        "return self.listeners[topic]",
        tests=(IN_RELOAD_TYPES,),
    ),
    Mutation(
        "a changed type keeps the throttle of its old class",
        LISTENERS,
        "return event_type.route, event_type.priority, event_type.cost",
        'return event_type.route, "", 1.0',
        tests=(IN_RELOAD_TYPES,),
    ),
    Mutation(
        "a changed type begins with a fresh throttle, whatever has changed",
        LISTENERS,
        "like.throttle if like is not None else self._throttle(event_type)",
        "self._throttle(event_type)",
        tests=(IN_RELOAD_TYPES,),
    ),
    Mutation(
        "settings come into force while the process stops",
        APP,
        "        if not self._stop.is_set():\n            self._go_on",
        "        if True:\n            self._go_on",
        tests=(IN_RELOAD_TYPES,),
    ),
    Mutation(
        "a dropped type is read on",
        CATALOG,
        "topics = frozenset(found)",
        "topics = frozenset(found) | (self._subscribed & survey.readable)",
        tests=(IN_CATALOG, IN_RELOAD_TYPES),
    ),
    Mutation(
        "a dropped type keeps its listener",
        CATALOG,
        "            self._close_listener(topic)\n",
        "",
        tests=(IN_CATALOG, IN_RELOAD_TYPES),
    ),
    Mutation(
        "half of what the files say comes into force",
        RELOAD,
        'return [f"{path} can\'t change while events are moved; restart" for path in what.fixed]',
        "return []",
        tests=(IN_RELOAD,),
    ),
    Mutation(
        "what was refused comes into force all the same",
        RELOAD,
        "            return self._refuse(reasons)\n",
        "            self._refuse(reasons)\n",
        tests=(IN_RELOAD,),
    ),
    Mutation(
        "nobody is told that the files were refused",
        RELOAD,
        "        self._in_force.refused = told\n",
        "",
        tests=(IN_RELOAD,),
    ),
    Mutation(
        "half a file is read",
        RELOAD,
        "            if not is_asked and found != self._seen:\n                found = await self._settled(found)\n",
        "",
        tests=(IN_RELOAD,),
    ),
    Mutation(
        "each replica takes the whole of a cap",
        CAP_SHARE,
        "    return sum(parts[at] + spare for at in own if at in parts)",
        "    return rate",
        tests=(IN_CAP_SHARE, IN_CAPS),
    ),
    Mutation(
        "what waits behind a cap waits on when the cap has ended",
        CAPS,
        "self._gates.pop(id_).set_rate(0, inf, inf)",
        "self._gates.pop(id_)",
        tests=(IN_CAPS,),
    ),
    Mutation(
        "each event type has a cap's rate of its own",
        CAPS,
        "                    self._hold(one.event_type.name, self._gates[id_])",
        "                    own_gate = Gate(Divider(tiers=len(self._settings.classes), strict=True, now=now))\n"
        "                    own_gate.set_rate(0, rate, max(1.0, rate * BURST))\n"
        "                    self._hold(one.event_type.name, own_gate)",
        tests=(IN_CAPS,),
    ),
    Mutation(
        "a cap is answered before it is obeyed",
        INTERVENTIONS,
        "if one.mode is Mode.CAP and not has_ended and self._caps is not None and not self._caps.holds(one.id):",
        "if False:",
        tests=(IN_INTERVENTIONS,),
    ),
    Mutation(
        "a pause takes the place of a cap",
        EFFECT,
        "            if one.mode in {Mode.CAP, Mode.RUN}:",
        "            if one.mode in {Mode.CAP, Mode.RUN, Mode.PAUSE}:",
        tests=(IN_INTERVENTIONS,),
    ),
    Mutation(
        "a type that nears its end in the log is not lifted",
        GUARD,
        "one.lift(rank - 1 if wants else None)",
        "one.lift(None)",
        tests=(IN_GUARD,),
    ),
    Mutation(
        "a type stays lifted when its partitions are somebody else's",
        GUARD,
        "            if one.is_lifted and one.event_type.name not in owned:\n                one.lift(None)\n",
        "            pass\n",
        tests=(IN_GUARD,),
    ),
    Mutation(
        "a topic without the right to know how long it is kept is asked for at every look",
        GUARD,
        "        self._asked_at = now\n",
        "",
        tests=(IN_GUARD,),
    ),
    Mutation(
        "a lifted type goes behind what is live of the class above",
        BUDGETED,
        "if self._catches_up and rank is None else 0",
        "if self._catches_up else self._classes * (rank is not None)",
        tests=(IN_GUARD,),
    ),
    Mutation(
        "a changed type stands where the one before was lifted to",
        LISTENERS,
        "        after.lift(None)  # so may its throttle, if it is that of the one before\n",
        "",
        tests=(IN_RELOAD_TYPES,),
    ),
    Mutation(
        "a lifted type waits for the cap as its own class",
        BUDGETED,
        "        self._tiers.lift(rank)\n        self.inner.lift(rank)\n",
        "        self.inner.lift(rank)\n",
        tests=("tests/unit/steering/test_budgeted.py",),
    ),
    Mutation(
        "every stretch of an episode is told as one of its own",
        EPISODES,
        "now - held.last > (self._quiet if held.number else JOINED)",
        "now > held.last",
        tests=(IN_EPISODES,),
    ),
    Mutation(
        "a moment in which a class is held back is told",
        EPISODES,
        "now - held.since >= self._after and",
        "now >= 0 and",
        tests=(IN_EPISODES,),
    ),
    Mutation(
        "a class is told whose events get through a full queue",
        EPISODES,
        "(is_hot and verdict.reading.waited[rank])",
        "is_hot",
        tests=(IN_EPISODES,),
    ),
    Mutation(
        "a class is told of which hardly anything waits",
        EPISODES,
        "return backlog is None or backlog > _passed(verdict, rank, held)",
        "return True",
        tests=(IN_EPISODES,),
    ),
    Mutation(
        "an end is lost with the process",
        NOTICES,
        "        if self._waiting:\n            self._through.clear()",
        "        if False:\n            self._through.clear()",
        tests=(IN_NOTICES,),
    ),
    Mutation(
        "a process that ends waits out the pause of a notice",
        NOTICES,
        "        self._ending.set()\n",
        "",
        tests=(IN_NOTICES,),
    ),
    Mutation(
        "a notice that can't be delivered now is lost",
        NOTICES,
        "if is_final or is_last or clock() + pause >= end:",
        "if is_final or is_last or clock() < end:",
        tests=(IN_NOTICES,),
    ),
    Mutation(
        "notices wait without end",
        NOTICES,
        "if len(self._waiting) >= WAITING:",
        "if len(self._waiting) < 0:",
        tests=(IN_NOTICES,),
    ),
    Mutation(
        "a notice waits for a server that hangs",
        NOTICES,
        "async with asyncio.timeout(DEADLINE):",
        "async with asyncio.timeout(None):",
        tests=(IN_NOTICES,),
    ),
    Mutation(
        "a notice is signed by the key of the start",
        WEBHOOK,
        "        self._access.look()\n",
        "",
        tests=(IN_NOTICES,),
    ),
    Mutation(
        "a signature says nothing of the body",
        WEBHOOK,
        'b"%d." % seconds + body',
        'b"%d." % seconds',
        tests=(IN_NOTICES,),
    ),
    Mutation(
        "a signed notice goes where an answer sends it",
        WEBHOOK,
        "allow_redirects=False",
        "allow_redirects=True",
        tests=(IN_NOTICES,),
    ),
    Mutation(
        "a notice goes over TLS to anybody",
        WEBHOOK,
        "ssl=self._context or True",
        "ssl=False",
        tests=(IN_NOTICES,),
    ),
    Mutation(
        "the age forgets what is on its way",
        AGE,
        "for stamp in (self._front_ms, seen.front_ms) if",
        "for stamp in (seen.front_ms,) if",
        tests=(IN_AGE,),
    ),
    Mutation(
        "the end of a transaction grows old",
        AGE,
        "is_unread = seen.lag and seen.is_held",
        "is_unread = seen.lag",
        tests=(IN_AGE,),
    ),
    Mutation(
        "what is kept by size is taken to be kept until the last byte has come",
        RETENTION,
        "room = retention.bytes - lag * size",
        "room = retention.bytes",
        tests=(IN_RETENTION,),
    ),
    Mutation(
        "a policy in shadow holds back",
        SHADOW,
        "        self._again, self._size = again, size\n",
        "        self._again, self._size = again, size\n        await self.inner.admit(want, size=size, again=again)\n",
        tests=(IN_SHADOW,),
    ),
    Mutation(
        "what goes again would wait again",
        SHADOW,
        "if events and not self._again:",
        "if events:",
        tests=(IN_SHADOW,),
    ),
    Mutation(
        "refusals of a queue that would not be full are signs in shadow",
        SHADOW,
        "if not reading.queues or sum(reading.confirmed) <= sum(self._sums(self._passed)):",
        "if True:",
        tests=(IN_SHADOW,),
    ),
    Mutation(
        "a type made anew is watched twice",
        SHADOW,
        "            _end(before)\n",
        "",
        tests=(IN_SHADOW,),
    ),
    Mutation(
        "other replicas are taken to hold nothing back in shadow",
        SHADOW,
        "held / self._part()",
        "held",
        tests=(IN_SHADOW,),
    ),
    Mutation(
        "consumers of the queue that would be there do work that is not there yet",
        SHADOW_QUEUE,
        "max(0.0, held - real.ready, self._missed)",
        "max(0.0, self._missed)",
        tests=(IN_SHADOW_QUEUE,),
    ),
    Mutation(
        "work that would have been missed is never done",
        SHADOW_QUEUE,
        "self._missed = max(0.0, self._missed - idle)",
        "self._missed = max(0.0, self._missed)",
        tests=(IN_SHADOW_QUEUE,),
    ),
    Mutation(
        "what would wait takes memory for each instant",
        WOULD_WAIT,
        "            self._join()\n",
        "            pass\n",
        tests=(IN_WOULD_WAIT,),
    ),
    Mutation(
        "a batch of Nakadi's is committed when it is done with in part",
        NAKADI_SESSION,
        "            if sent.place > position:\n                break\n            found = sent",
        "            found = sent\n            if sent.place > position:\n                break",
        tests=(IN_NAKADI_SESSION,),
    ),
    Mutation(
        "a stream of Nakadi's is taken for full while a commit makes room",
        NAKADI_SESSION,
        "self.read - self._asked >= self.window",
        "self.outstanding >= self.window",
        tests=(IN_NAKADI_SESSION,),
    ),
    Mutation(
        "a batch of Nakadi's is held since it was read",
        NAKADI_SESSION,
        "return max(self._empty_at, made_room)",
        "return max(self._empty_at, made_room, self._marks[-1][1] if self._marks else 0.0)",
        tests=(IN_NAKADI_SESSION,),
    ),
    Mutation(
        "a line of Nakadi's that comes in pieces loses the first",
        NAKADI_LINES,
        'line = b"".join(self._pieces)',
        'line = b"".join(self._pieces[1:])',
        tests=(IN_NAKADI_LINES,),
    ),
    Mutation(
        "events of a batch of Nakadi's all stand one further on",
        NAKADI_LINES,
        "enumerate(raw, at + 1 - len(raw))",
        "enumerate(raw, at + 2 - len(raw))",
        tests=(IN_NAKADI_LINES,),
    ),
    Mutation(
        "a type that Nakadi has waited for in vain is sent as much again",
        NAKADI_WINDOW,
        "return max(1, min(full, most, int(fitting)))",
        "return max(1, min(full, most, max(window, int(fitting))))",
        tests=(IN_NAKADI_SESSION,),
    ),
    Mutation(
        "cursors are moved under a replica that reads",
        NAKADI_CURSORS,
        "if not await owners_of(self._bus, subscription, within=within):",
        "if await owners_of(self._bus, subscription, within=within) or True:",
        tests=(IN_NAKADI_LIVE_MOVES,),
    ),
    Mutation(
        "cursors are taken for held before they are",
        NAKADI_GRIP,
        "return is_ours and",
        "return",
        tests=(IN_NAKADI_LIVE_MOVES,),
    ),
    Mutation(
        "cursors are moved although nobody holds them any more",
        NAKADI_CURSORS,
        "if grip is not None and not await grip.holds(",
        "if grip is None and not await grip.holds(",
        tests=(IN_NAKADI_LIVE_MOVES,),
    ),
    Mutation(
        "a skip's end that was passed is gone back to",
        "proxy/bridge/move.py",
        "return self.to if self.first <= done < self.to else done",
        "return self.to if self.first <= done else done",
        tests=(IN_NAKADI_LIVE_MOVES,),
    ),
    Mutation(
        "a skip is believed made because replicas stand beyond it",
        NAKADI_CURSORS,
        "return place(wanted) <= place(stands) < self._stood.get(at, 0) - 1",
        "return place(wanted) <= place(stands)",
        tests=(IN_NAKADI_LIVE_MOVES,),
    ),
    Mutation(
        "cursors are held for a moment only, whatever replicas hold",
        NAKADI_GRIP,
        "_HOLDS = (15, 60)",
        "_HOLDS = (15,)",
        tests=(IN_NAKADI_LIVE_MOVES,),
    ),
    Mutation(
        "a move of cursors that may have been heard is asked for again",
        NAKADI_CURSORS,
        "            except LogError:\n                break\n",
        "            except LogError:\n                if clock() >= end:\n                    raise\n",
        tests=(IN_NAKADI_CURSORS,),
    ),
    Mutation(
        "the first event that is kept is not counted",
        NAKADI_CURSORS,
        "+ (first == BEGIN)",
        "+ 0",
        tests=(IN_NAKADI_CURSORS,),
    ),
    Mutation(
        "a commit that is answered when its stream has ended is told to nobody",
        "proxy/nakadi_log/commits.py",
        "elif is_last and share.done > share.told:",
        "elif is_last and share.done < share.told:",
        tests=(IN_NAKADI_BACKLOG,),
    ),
    Mutation(
        "a first burst into an empty queue is taken for what consumers do",
        NAKADI_WINDOW,
        "AHEAD_SHARE / max(seconds, _PROOF)",
        "AHEAD_SHARE / max(seconds, _SHORTEST)",
        tests=(IN_NAKADI_SESSION,),
    ),
    Mutation(
        "a type that Nakadi sends little is taken for a slow one",
        NAKADI_SESSION,
        "(self.is_spent and 2 * self.outstanding >= self.window)",
        "self.is_spent",
        tests=(IN_NAKADI_SESSION,),
    ),
    Mutation(
        "the lag of what this replica has let go counts as none",
        "proxy/recording/waiting.py",
        "self.lag += self._left.get(one.event_type.topic, 0)",
        "self.lag += 0",
        tests=("tests/unit/recording/test_waiting.py",),
    ),
    Mutation(
        "what was at another replica for a moment is told as dropped by Nakadi",
        "proxy/nakadi_log/shares.py",
        "if done is not None and done > share.next",
        "if done is not None and done < 0",
        tests=("tests/contract/test_nakadi_log.py",),
    ),
    Mutation(
        "a subscription that was deleted begins as on a first day",
        "proxy/nakadi_log/reader.py",
        "if self._was_subscribed:",
        "if self._was_subscribed and self._created_at is None:",
        tests=("tests/contract/test_nakadi_log.py",),
    ),
    Mutation(
        "a subscription is made anew at the cursors of an event type that is gone",
        "proxy/nakadi_log/subscription.py",
        'or told.get("created_at") != created_at',
        "",
        tests=("tests/contract/test_nakadi_log.py",),
    ),
    Mutation(
        "another message goes between the frames of a long one",
        "proxy/publish_lane/pieces.py",
        "(self.long is None and self.size",
        "(self.size",
        tests=("tests/unit/publish_lane/test_lane.py",),
    ),
    Mutation(
        "a broker that closes a channel is answered in the middle of a long message",
        "proxy/publish_lane/pieces.py",
        "if self._long is not None and self._long.channel == channel:",
        "if self._long is not None and self._long.channel != channel:",
        tests=("tests/unit/publish_lane/test_lane.py",),
    ),
    Mutation(
        "an answer is put where one lies that is still read",
        "proxy/kafka_log/answers.py",
        "self._room.append(self._room.pop())",
        "self._room[0]",
        tests=("tests/properties/test_answers.py",),
    ),
    Mutation(
        "the first step of a batch alone counts for its checksum",
        "proxy/kafka_log/raw_batches.py",
        "found = google_crc32c.extend(found, ",
        "found = found or google_crc32c.extend(found, ",
        tests=("tests/properties/test_kafka_batches.py",),
    ),
    Mutation(
        "an answer stays in memory after its last event",
        "proxy/kafka_log/answer.py",
        "self._records_iterator = None",
        "pass",
        tests=("tests/properties/test_kafka_batches.py",),
    ),
    Mutation(
        "as many batches lie open as have come",
        "proxy/kafka_log/opening.py",
        "if self._open >= self.most:",
        "if self._open < 0:",
        tests=("tests/unit/test_kafka_slices.py",),
    ),
    Mutation(
        "threads open as many batches at a time as have come",
        "proxy/kafka_log/opening.py",
        "if self._opening is None:",
        "if self._opening is not batch:",
        tests=("tests/unit/test_kafka_slices.py",),
    ),
    Mutation(
        "a lone event is blamed for what was written to a channel that is closed",
        "proxy/publish_lane/session.py",
        "if (refused or failed) and not self._channels.may_be_blamed:",
        "if refused or failed:",
        tests=("tests/unit/publish_lane/test_lane.py",),
    ),
    Mutation(
        "what a broker takes at most is not kept",
        "proxy/publish_lane/channels.py",
        "self.body_bytes = most",
        "most = 0",
        tests=("tests/unit/publish_lane/test_lane.py",),
    ),
    Mutation(
        "an answer that flows is given up like one that does not come",
        "proxy/kafka_log/connection.py",
        "self.patience is not None and self._is_flowing()",
        "self.patience is None and self._is_flowing()",
        tests=("tests/unit/test_kafka_network.py",),
    ),
    Mutation(
        "a trickle is waited for",
        "proxy/kafka_log/connection.py",
        ">= FLOWING",
        ">= 0",
        tests=("tests/unit/test_kafka_network.py",),
    ),
    Mutation(
        "what came back has no queue although that is only away",
        RETURNS,
        "if self._inquiries is None or self._answers",
        "if self._inquiries is not None or self._answers",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "a queue that is away is taken for one that does not exist",
        "proxy/rabbitmq/finder.py",
        "return Finding(Found.AWAY, said)",
        "return Finding(Found.GONE, said)",
        histories="wire",
    ),
    Mutation(
        "more is sent while it is not known what became of a queue",
        FLOW,
        "self._hold(always=True)",
        "pass",
    ),
    Mutation(
        "what is for a queue that is away is sent again and again",
        RETURNS,
        "flow.wait(now + LEASE if is_away else now)",
        "flow.wait(now)",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "a queue that has just come back was there all the time",
        INSISTENCE,
        "< INSISTENCE:\n            return True\n",
        "< INSISTENCE:\n            return False\n",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "what no queue takes is sent for ever",
        INSISTENCE,
        "< INSISTENCE:",
        "< 1e6:",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "a partition that is given up waits for an answer",
        RETURNS,
        "if is_away or one.flow.closing or (one.places and not one.host):",
        "if is_away or (one.places and not one.host):",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "what came back waits for an answer for ever",
        RETURNS,
        "and not inquiries.is_silent(one.host, since=one.at, now=now):",
        "and now:",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "a confirm is awaited from the write on, however long the way",
        "proxy/publish_lane/passage.py",
        "return max(written, self._looks[0][1] if self._looks else self._moved)",
        "return written",
        tests=("tests/unit/publish_lane/test_lane.py",),
    ),
    Mutation(
        "a line that trickles is waited for",
        "proxy/publish_lane/passage.py",
        ">= FLOWING_BYTES",
        ">= 1",
        tests=("tests/unit/publish_lane/test_passage.py",),
    ),
    Mutation(
        "what was written later holds up the wait for what was written before",
        "proxy/publish_lane/passage.py",
        "self._looks[0][1]",
        "self._looks[-1][1]",
        tests=("tests/unit/publish_lane/test_passage.py",),
    ),
    Mutation(
        "what nobody came round to ask for has no queue",
        INQUIRIES,
        "return silent is not None and now - max(silent, since) >= PATIENCE",
        "return now - since >= PATIENCE",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "the same queues that are away are asked for again and again",
        RETURNS,
        "self._away[place] = now if since is None else since",
        "self._away = {place: now if since is None else since} | self._away",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "nobody waits any more for a queue that is away when one answer is missing",
        RETURNS,
        "        now = clock()\n        self._note(known, now)\n",
        "        now = clock()\n        self._away = self._away if known else {}\n        self._note(known, now)\n",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "an event's own key is not asked for",
        "proxy/bridge/addresses.py",
        "if not self.is_direct or self._key.constant is not None:",
        "if self._places is not None:",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "what is for many queues waits until all are asked for at once",
        RETURNS,
        "        self._heard |= {place: (began, finding.found) for place, finding in known.items()}\n",
        "        self._heard = {place: (began, finding.found) for place, finding in known.items()}\n",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "queues that are away are asked for after all others",
        RETURNS,
        "[*self._rotated(began), *wanted]",
        "[*wanted, *self._rotated(began)]",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "a connection that has just broken is asked what it holds, and the lane ends over it",
        "proxy/rabbitmq/socket_queue.py",
        "except (OSError, ValueError):",
        "except OSError:",
        tests=("tests/unit/rabbitmq/test_connection.py",),
    ),
    Mutation(
        "a message of the oldest format is asked for its time",
        "proxy/kafka_log/events.py",
        "if timestamp is not None and timestamp < 0:",
        "if timestamp < 0:",
        tests=("tests/properties/test_kafka_batches.py",),
    ),
    Mutation(
        "a damaged message of an old format is read",
        "proxy/kafka_log/raw_batches.py",
        "if crc32(message[_OLD_CRC_COUNTS_FROM:]) != ",
        "if crc32(message[_OLD_CRC_COUNTS_FROM:]) == -",
        tests=("tests/properties/test_kafka_batches.py",),
    ),
    Mutation(
        "a connection that ends in good order while a channel is opened ends the process",
        "proxy/rabbitmq/words.py",
        "if type(error) is not Exception:",
        "if True:",
        tests=("tests/unit/rabbitmq/test_connection.py",),
    ),
    Mutation(
        "what comes back from a queue that is there has no queue after a second",
        INSISTENCE,
        "if one.is_direct:",
        "if False:",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "what leads nowhere once leads nowhere for ever",
        INSISTENCE,
        "now - since <= UNBOUND",
        "now > 0",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "an exchange is believed to lead nowhere although a queue was out of sight",
        INSISTENCE,
        "        self._unbound.clear()\n",
        "",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "any node is asked what has become of a queue that another does not see",
        "proxy/rabbitmq/finder.py",
        "HostTurn([host], self._logins.doubted)",
        "self._logins.hosts()",
        tests=("tests/unit/rabbitmq/test_finder.py",),
    ),
    Mutation(
        "what came back over a connection that is lost by now waits for an answer",
        RETURNS,
        "if is_away or one.flow.closing or (one.places and not one.host):",
        "if is_away or one.flow.closing:",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "a queue that is away for one node is away for all",
        RETURNS,
        "is_away = any(place in self._away for place in places)\n        if not is_away or (",
        "is_away = any(place.queue == one.queue for place in places for one in self._away)\n"
        "        if not is_away or (",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "what came back before a slow answer is not sent again",
        INSISTENCE,
        "setdefault(number, now)",
        "setdefault(number, one.at)",
        tests=(IN_RETURNS,),
    ),
    Mutation(
        "whoever ends a task of the group that has not begun is ended with it",
        "proxy/kafka_log/coordination.py",
        "if this is not None and this.cancelling():",
        "if this is not None:",
        tests=("tests/unit/test_kafka_coordination.py",),
    ),
    Mutation(
        "a task that ends by a cancellation nobody asked for ends unheard",
        "proxy/tasks.py",
        "not task.cancelled() or task.cancelling()",
        "not task.cancelled() or True",
        tests=("tests/unit/test_tasks.py",),
    ),
    Mutation(
        "a stranger that leads the group is not named",
        "proxy/kafka_log/assignor.py",
        "frozenset() if leader.startswith(CLIENT) else frozenset({leader})",
        "frozenset()",
        tests=("tests/unit/test_kafka_assignor.py",),
    ),
    Mutation(
        "nothing stands still for want of the group's word",
        "proxy/bridge/standstill.py",
        "return {flow.partition: silent for flow in self._assignment.flows()} | dict(told)",
        "return told",
        tests=("tests/unit/bridge/test_standstill.py",),
    ),
    Mutation(
        "a fenced replica begins to stand still with each failed commit",
        "proxy/bridge/lease.py",
        "max(self._wanted_at, min(self._until, asyncio.get_running_loop().time()))",
        "asyncio.get_running_loop().time()",
        tests=("tests/unit/bridge/test_standstill.py",),
    ),
    Mutation(
        "what is nested too deeply is an error of its own",
        "proxy/json_text.py",
        "except RecursionError as error:",
        "except ZeroDivisionError as error:",
        tests=("tests/unit/test_json_text.py", "tests/unit/rabbitmq/test_management.py"),
    ),
    Mutation(
        "what comes too late by this replica's clock is passed over unsaid",
        "proxy/operations/interventions.py",
        "if asked.is_past(now_ms := self._now_ms()):",
        "if asked.is_past(now_ms := 0):",
        tests=("tests/unit/operations/test_interventions.py",),
    ),
    Mutation(
        "a stranger in the group is given partitions",
        "proxy/kafka_log/assignor.py",
        "return Claim(topics) if name.startswith(CLIENT) else None",
        "return Claim(topics)",
        tests=("tests/unit/test_kafka_assignor.py",),
    ),
    Mutation(
        "a fetch brings as much of each partition, however many there are",
        "proxy/kafka_log/fetching.py",
        "min(most, max(LEAST_SHARE, in_all // partitions))",
        "most",
        tests=("tests/unit/test_kafka_slices.py",),
    ),
    Mutation(
        "fetches under way count for nothing in the budget",
        "proxy/bridge/budget.py",
        "share = (self._in_common + min(self._steps, self._most_under_way)) / self._common",
        "share = self._in_common / self._common",
        tests=("tests/unit/bridge/test_budget.py",),
    ),
    Mutation(
        "it is not said that the process stood still",
        "proxy/operations/liveness.py",
        "if (late := clock() - due) > STOOD_STILL:",
        "if (late := clock() - due) > 1e9:",
        tests=("tests/unit/operations/test_liveness.py",),
    ),
    Mutation(
        "who the broker fails at is sent again for ever",
        QUARANTINE,
        "if strikes >= STRIKES:",
        "if strikes < 0:",
        tests=("tests/unit/publish_lane/test_line.py", "tests/unit/publish_lane/test_lane.py"),
    ),
    Mutation(
        "a text that is no UTF-8 ends the connection",
        "proxy/rabbitmq/intake.py",
        "return close if sound == text else close[:begin] + sound + close[begin + len(text) :]",
        "return close",
        tests=("tests/properties/test_intake.py",),
    ),
    Mutation(
        "one queue that the broker fails at keeps all others from being found",
        "proxy/rabbitmq/inquiry.py",
        "if not has_failed and not isinstance(error, AMQPChannelError):",
        "if not isinstance(error, AMQPChannelError):",
        tests=("tests/unit/rabbitmq/test_finder.py",),
    ),
    Mutation(
        "only the lowest class is sure of a share",
        "proxy/congestion/class_budget.py",
        "below = rulings[1:] or rulings",
        "below = rulings[-1:]",
        tests=("tests/unit/congestion/test_class_budget.py",),
    ),
    Mutation(
        "what was sent and not committed is not counted when its partition is given away",
        ASSIGNMENT,
        "            left += self._count_uncommitted(flow, committed)\n",
        "            pass\n",
        tests=("tests/unit/bridge/test_assignment.py",),
    ),
    Mutation(
        "the log's keeper ends unheard",
        "proxy/kafka_log/event_log.py",
        "if task is None or task.cancelling():",
        "if True:",
        tests=("tests/unit/test_kafka_log.py",),
    ),
    Mutation(
        "what a collector of traces answers is read whole",
        "proxy/tracing/statuses.py",
        "        if length.isdecimal() and int(length) <= BODY_BYTES:",
        "        if not length or length.isdecimal():",
        tests=("tests/unit/tracing/test_traces.py",),
    ),
    Mutation(
        "a queue made anew between two looks stays of the kind it was",
        "proxy/rabbitmq/monitor.py",
        "            self._doubtful.add(queue)\n",
        "            pass\n",
        tests=("tests/unit/rabbitmq/test_monitor.py",),
    ),
    Mutation(
        "a redrive waits for ever for a queue that gives no letter",
        REDRIVE,
        "                if vain * TAKE_SECONDS > STALL_SECONDS:\n",
        "                if vain < 0:\n",
        tests=(IN_REDRIVE,),
    ),
    Mutation(
        "what is old and stands behind everything gets its class's trickle, too",
        "proxy/congestion/ladder.py",
        "        tiers = (rank,) if self._last else (rank, self.catch_up(rank))\n",
        "        tiers = (rank, self.catch_up(rank))\n",
        tests=("tests/unit/congestion/test_divider_catch_up.py",),
    ),
)

"""One connection's life inside a lane: its channels, the piece being written, the open tags.

All but opening channels are plain calls: tags are counted in the same step that hands the frames over, so that no
cancellation can come between the two. A session that is over ignores whatever still arrives.
"""

import asyncio
from collections.abc import Callable

from proxy.bridge.broker import Batch
from proxy.errors import BrokerError
from proxy.model import Outcome, Reason
from proxy.publish_lane.channels import Channels
from proxy.publish_lane.frames import Long
from proxy.publish_lane.headers import UnfitError
from proxy.publish_lane.line import Place
from proxy.publish_lane.outcomes import Outcomes, Resolved
from proxy.publish_lane.passage import Passage
from proxy.publish_lane.patience import Patience
from proxy.publish_lane.pieces import Channel, Outbox, Piece
from proxy.publish_lane.refusals import Refusals
from proxy.publish_lane.window_law import WindowLaw
from proxy.publish_lane.wire import Sent, Wire
from proxy.settings import Limits


class Session:
    """A connection's two channels: one for all, one for who is in quarantine.

    `stir` asks for a turn of the lane, `lost` tells it that the connection is gone, and why.
    """

    def __init__(
        self,
        outcomes: Outcomes,
        limits: Limits,
        patience: Patience,
        refusals: Refusals,
        *,
        stir: Callable[[], None],
        lost: Callable[[str], None],
    ) -> None:
        self.wire: Wire | None = None
        self.over = self.holds = False
        """Whether nothing new is begun, so that another session may take over once nothing is in flight."""
        self._outcomes = outcomes
        self._window = outcomes.window
        self._quarantine = outcomes.quarantine
        self._limits = limits
        self._patience = patience
        self._refusals = refusals
        self._law = WindowLaw(self._window, asyncio.get_running_loop().time())
        self._channels = Channels(patience, refusals, deadline=limits.connect_deadline, opened=stir)
        self._stir = stir
        self._lost = lost
        self._now = asyncio.get_running_loop().time
        self._outbox = Outbox()
        self._passage = Passage()
        self._writing_since: float | None = None
        self._suspects_first = False

    @property
    def oldest(self) -> float | None:
        """Instant at which the oldest open event was written; None if none is open."""
        return None if self.over or (oldest := self._channels.oldest) is None else oldest.written

    @property
    def awaited_since(self) -> float | None:
        """Instant at which the oldest open event reached the broker's host, or else something last did, if any is."""
        oldest = None if self.over else self._channels.oldest
        return None if oldest is None else self._passage.since(oldest.end_byte, oldest.written)

    @property
    def is_empty(self) -> bool:
        """Whether all that was begun is written and resolved."""
        return not self._outbox and self._writing_since is None and not self._window.events

    async def start(self, wire: Wire) -> None:
        """Begin to use a wire. Raises `BrokerError` if it opens no channel."""
        self.wire = wire
        await self._channels.begin(wire)

    async def keep_channels(self) -> None:
        """Open the channels that are missing, whenever one is, until cancelled or over."""
        assert self.wire is not None
        try:
            await self._channels.keep(self.wire)
        except (BrokerError, TimeoutError) as error:
            self.on_lost(f"no channel could be opened: {error}", refused=False)

    def renew_channels(self, now: float) -> float | None:
        """Have channels opened anew on which the broker goes on refusing; return for how many seconds it did.

        None if it is not time, or the broker is only waited for.
        """
        return None if self.over else self._channels.look(now)

    # Writing

    def write(self) -> None:
        """Hand over the next pieces, as long as the wire takes them and something may be written; few in one turn."""
        self._law.look(self._now())
        written = 0
        while self.wire is not None and not self.over and self._writing_since is None and self.wire.writable:
            if self._outbox:
                if not self._outbox.has_next(written):
                    self._stir()
                    return
                written += self._hand_over(*self._outbox.take())
                continue
            if self.holds:
                return
            piece = self._gather()
            if piece.parts:
                self._outbox.put(piece, self._passage.handed)
                if self._outbox.has_next(written):
                    written += self._hand_over(*self._outbox.take())
            told = self._outcomes.tell()
            if not piece.parts and not told:
                return

    def _hand_over(self, frames: bytes, sent: list[Sent]) -> int:
        """Hand over a piece; return its bytes."""
        assert self.wire is not None
        began = self._now()
        self._passage.handed += len(frames)
        self._writing_since = None if self.wire.write(frames, sent) else began
        return len(frames)

    def _gather(self) -> Piece:
        piece = Piece()
        if not self._quarantine.waits:
            return piece
        sources = [self._gather_line, self._gather_suspect]
        for gather in reversed(sources) if self._suspects_first else sources:
            gather(piece)
        if piece.sent:
            # In turn, so that in a narrow window neither starves the other.
            main = self._channels.main
            self._suspects_first = main is not None and piece.sent[0].channel == main.number
        return piece

    def _gather_line(self, piece: Piece) -> None:
        line, main = self._quarantine.line, self._channels.main
        line.serve()
        while main is not None and (request := line.first) is not None:
            batch = request.batch
            if batch is None:
                line.end(request)
            else:
                most = line.most(request)
                want = request.want if most is None else min(most, request.want)
                if not self._window.serves(want) or not self._gather_batch(main, batch, piece, most):
                    line.fall_short()
                    return

    def _gather_suspect(self, piece: Piece) -> None:
        while (request := self._quarantine.first) is not None:
            batch = request.batch
            if batch is None:
                self._quarantine.remove(request)
                request.end()
                continue
            second = self._channels.second
            if second is None:
                self._channels.want_second()
            elif not second.ledger.count and self._window.admits(batch.events[batch.done].size):
                self._quarantine.served(request)
                self._gather_batch(second, batch, piece, most=1)
            return

    def _gather_batch(self, channel: Channel, batch: Batch, piece: Piece, most: int | None = None) -> bool:
        """Add events from the front of a batch, `most` at most; return whether something else may follow."""
        events, window = batch.events, self._window
        start = index = batch.done
        wanted = len(events) if most is None else min(len(events), start + most)
        end = min(wanted, start + min(window.free, channel.room))
        room = window.max_bytes - window.bytes
        taken = 0
        unfit: UnfitError | None = None
        try:
            assert self.wire is not None
            envelope = channel.envelope(batch, self.wire.frame_max, self._limits, self._channels.body_bytes)
            while index < end:
                event = events[index]
                size = event.size
                alone = index == start and not window.events
                if (taken + size > room and not alone) or not piece.has_room(size):
                    break
                message = envelope.encode(event)
                if isinstance(message, Long):
                    piece.long, message = message, message.begin
                piece.parts.append(message)
                piece.size += len(message)
                taken += size
                index += 1
        except UnfitError as error:
            unfit = error
        except Exception as error:  # noqa: BLE001 -- one event must not end the process; its dead letter tells of it
            unfit = UnfitError(Reason.INTERNAL, f"{type(error).__name__}: {error}")
        if index > start:
            piece.sent.append(Sent(channel.number, channel.ledger.add(batch, start, index, now=self._now())))
            window.take(index - start, taken)
            self._quarantine.line.wrote(Place.of(batch), index - start)
            batch.done = index
        if unfit is not None:
            batch.done = index + 1
            outcome = Resolved(batch, index, index + 1, Outcome.UNDELIVERABLE, None, unfit.reason, unfit.detail)
            self._outcomes.add([outcome], written=False)
        return index == wanted

    # What comes back

    def on_written(self) -> None:
        """Go on with the next piece."""
        self._writing_since = None
        self._stir()

    def on_confirm(self, channel: int, tag: int, *, multiple: bool, acked: bool) -> None:
        """Resolve what is confirmed or nacked."""
        if (known := self._known(channel)) is not None:
            now = self._now()
            resolved = known.ledger.confirm(tag, multiple=multiple, acked=acked, now=now)
            if acked:
                known.is_proven = True
                self._refusals.on_ack(now)
                self._patience.saw(max([one.seconds or 0.0 for one in resolved], default=0.0), now)
            else:
                self._refusals.on_nack(now)
            self._law.on_confirm(resolved, acked=acked, now=now)
            self._outcomes.add(resolved)
            self._stir()

    def on_return(self, channel: int, message_id: bytes, why: str) -> None:
        """Remember which message no queue took."""
        if (known := self._known(channel)) is not None:
            known.ledger.on_return(message_id, why)

    def on_channel_closed(self, channel: int, why: str) -> asyncio.Future[None] | None:
        """Find the culprit, or put everyone who had events open into quarantine; see `WireEvents`."""
        if (known := self._known(channel)) is None:
            return None
        self._channels.drop(known)
        rest = self._outbox.forget(channel)
        self._accuse([known], why)
        self._stir()
        return rest

    def on_lost(self, why: str, *, refused: bool, failed: bool = False) -> None:
        """End the session: nothing open will be confirmed any more."""
        if self.over:
            return
        channels = list(self._channels)
        self.over = True
        self._outbox.clear()
        if (refused or failed) and not self._channels.may_be_blamed:
            self._accuse(channels, why, is_sure=refused)
        else:
            for channel in channels:
                self._outcomes.add(channel.ledger.abandon(Outcome.UNKNOWN))
        self._stir()
        self._lost(why)

    def overdue(self, now: float, since: float) -> str | None:
        """Return what has taken too long, with patience counting from `since` at the earliest; None if nothing."""
        if self.wire is not None and self._window.events:
            self._passage.look(self.wire.unsent, now)
        oldest, limits = self.awaited_since, self._limits
        if oldest is not None:
            # What has not left yet can't be confirmed.
            is_out = self._writing_since is None
            limit = self._patience.limit(oldest, now) if is_out else limits.confirm_deadline
            if now - max(oldest, since) > limit:
                return f"no confirm within {limit:g} s"
        waiting, short = self._channels.waiting_since, self._patience.short
        if waiting is not None and now - max(waiting, since) > short:
            return f"refuses what is sent, and of the rest nothing was heard for {short:g} s"
        if self._writing_since is not None and now - max(self._writing_since, since) > limits.write_deadline:
            return f"nothing could be written for {limits.write_deadline:g} s"
        return None

    def _accuse(self, channels: list[Channel], why: str, *, is_sure: bool = True) -> None:
        """Resolve what is open: the broker refused one event and forgot the others; only a lone one is the culprit.

        Not `is_sure`: perhaps it refused none; a lone one is the culprit if that comes again and again.
        """
        is_learnt = self._channels.learn(why)
        alone = not is_learnt and sum(channel.ledger.count for channel in channels) == 1
        if alone and not is_sure and (lone := self._channels.oldest) is not None:
            alone = self._quarantine.strike(lone.batch.partition, next(lone.events).position)
        outcome = Outcome.UNDELIVERABLE if alone else Outcome.UNKNOWN
        for channel in channels:
            resolved = channel.ledger.abandon(outcome, Reason.REFUSED, why)
            for one in resolved:
                self._quarantine.accuse(one.batch.partition.topic, one.end - one.start, why, is_culprit=alone)
            self._outcomes.add(resolved)

    def _known(self, number: int) -> Channel | None:
        return None if self.over else self._channels.known(number)

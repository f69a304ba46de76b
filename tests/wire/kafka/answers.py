"""What one broker answers, from what the cluster is."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from proxy.model import Partition
from proxy.positions.identity import Committed
from tests.wire.kafka.cluster import NOBODY, ScriptedCluster, id_bytes, printed_id
from tests.wire.kafka.groups import ScriptedGroup
from tests.wire.kafka.messages import FORMS, NEWEST, Api, Error, Request
from tests.wire.kafka.mischief import Trick
from tests.wire.kafka.sessions import Session, Sessions

_EARLIEST, _LATEST = -2, -1
_NOWHERE = -1
_READ = 1 << 3
_ALL_BUT_READ = 0b1111_1111_1111_1000 & ~_READ
_WITHOUT_IDS = {Api.METADATA: 9, Api.FETCH: 11}
"""The last versions of requests that know no ids of topics."""
_BROKERS = 0.5
"""Of answers that leave something out, the share that leaves out a broker, not a topic."""
_GROUP = {Api.JOIN_GROUP, Api.SYNC_GROUP, Api.HEARTBEAT, Api.LEAVE_GROUP, Api.OFFSET_COMMIT}
_NOT_JOINED = {"generation": -1, "protocol": "", "leader": "", "members": []}


class Answers:
    """Of the broker with this number."""

    def __init__(self, node: int, cluster: ScriptedCluster) -> None:
        self.node = node
        self._cluster = cluster
        self._sessions = Sessions()
        self._by_api: dict[Api, Callable[[Request, str], Awaitable[dict[str, Any]]]] = {
            Api.API_VERSIONS: self._versions,
            Api.METADATA: self._metadata,
            Api.FETCH: self._fetch,
            Api.LIST_OFFSETS: self._list_offsets,
            Api.LEADER_ENDS: self._leader_ends,
            Api.FIND_COORDINATOR: self._find_coordinator,
            Api.JOIN_GROUP: self._join,
            Api.SYNC_GROUP: self._sync,
            Api.HEARTBEAT: self._heartbeat,
            Api.LEAVE_GROUP: self._leave,
            Api.OFFSET_COMMIT: self._commit,
            Api.OFFSET_FETCH: self._committed,
        }

    async def answer(self, request: Request, client: str) -> dict[str, Any]:
        """Carry out a request of a client process and return its answer."""
        if request.api in _GROUP and self._cluster.mischief.plays(Trick.REFUSED, request.api, self.node):
            return self._refused(request)
        answer = await self._by_api[request.api](request, client)
        self._cluster.mischief.spoil(request.api, self.node, answer)
        return answer

    def _refused(self, request: Request) -> dict[str, Any]:
        error = self._cluster.mischief.error(request.api)
        answer = {"throttle_ms": 0, "error": error}
        match request.api:
            case Api.JOIN_GROUP:
                return answer | _NOT_JOINED | {"member": request.body["member"]}
            case Api.SYNC_GROUP:
                return answer | {"assignment": b""}
            case Api.OFFSET_COMMIT:
                return {"throttle_ms": 0, "topics": _each_partition(request.body["topics"], error)}
        return answer

    async def _versions(self, _: Request, __: str) -> dict[str, Any]:
        knows = {Api.METADATA: self._cluster.knows_ids, Api.FETCH: self._cluster.fetches_by_id}
        newest = NEWEST | {api: version for api, version in _WITHOUT_IDS.items() if not knows[api]}
        least = {api: min(version for one, version in FORMS if one is api) for api in newest}
        apis = [{"api": api, "least": least[api], "most": most} for api, most in sorted(newest.items())]
        return {"error": 0, "apis": apis}

    # -- topics -------------------------------------------------------------------------------------------------------

    async def _metadata(self, request: Request, _: str) -> dict[str, Any]:
        cluster, wanted = self._cluster, request.body["topics"]
        names = sorted({partition.topic for partition in cluster.tracks})
        if wanted is not None:
            names = [one["topic"] if isinstance(one, dict) else one for one in wanted]
            for name in names if request.body["creates"] else ():
                if not cluster.partitions({name}):
                    cluster.create_topic(name)  # as brokers do unless they are told not to
        brokers = [
            {"node": node, "host": host, "port": port, "rack": None}
            for node, (host, port) in cluster.advertised.items()
        ]
        topics = [self._topic(name) for name in names]
        if cluster.mischief.plays(Trick.PART, Api.METADATA, self.node):
            told = brokers if len(brokers) > 1 and cluster.chance.random() < _BROKERS else topics
            if told:
                told.pop(cluster.chance.randrange(len(told)))
        return {
            "throttle_ms": 0,
            "brokers": brokers,
            "cluster": "scripted",
            "controller": cluster.controller,
            "topics": topics,
            "cluster_operations": 0,
        }

    def _topic(self, name: str) -> dict[str, Any]:
        cluster = self._cluster
        partitions = cluster.partitions({name})
        track = cluster.tracks[partitions[0]] if partitions else None
        told = []
        for partition in partitions:
            place = cluster.believed(self.node, partition)
            told.append(
                {
                    "error": Error.LEADER_NOT_AVAILABLE if place.leader == NOBODY else 0,
                    "partition": partition.number,
                    "leader": place.leader,
                    "leader_epoch": place.epoch,
                    "replicas": list(place.replicas),
                    "in_sync": list(place.replicas),
                    "offline": [],
                }
            )
        return {
            "error": 0 if partitions else Error.UNKNOWN_TOPIC_OR_PARTITION,
            "topic": name,
            "topic_id": bytes(16) if track is None else id_bytes(track.topic_id),
            "is_internal": False,
            "partitions": told,
            "operations": _ALL_BUT_READ if name in cluster.refused else _ALL_BUT_READ | _READ,
        }

    # -- partitions ---------------------------------------------------------------------------------------------------

    def _refusal(self, partition: Partition) -> Error:
        cluster = self._cluster
        if not cluster.exists(partition):
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        if partition.topic in cluster.refused:
            return Error.TOPIC_AUTHORIZATION_FAILED
        return Error.NONE if cluster.place(partition).leader == self.node else Error.NOT_LEADER

    async def _fetch(self, request: Request, _: str) -> dict[str, Any]:
        loop, cluster, by_id = asyncio.get_running_loop(), self._cluster, request.version > _WITHOUT_IDS[Api.FETCH]
        body = request.body | {"by_id": by_id}
        for topic in (*body["topics"], *body["forgotten"]) if by_id else ():
            topic["topic"] = printed_id(topic["topic_id"])
        end = loop.time() + body["wait_ms"] / 1000
        cluster.fetched_by_id = by_id
        cluster.named += sum(len(topic["partitions"]) for topic in body["topics"])
        if cluster.mischief.plays(Trick.PART, Api.FETCH, self.node):
            self._sessions.lose(cluster.chance)
        session = self._sessions.of(body) if cluster.keeps_sessions else Session.alone(body)
        if isinstance(session, Error):
            return {"throttle_ms": 0, "error": session, "session": 0, "topics": []}
        while True:
            read, is_worth_telling = self._read(session, body["most_bytes"])
            left = end - loop.time()
            if is_worth_telling or left <= 0:
                topics = session.news(read, is_whole=not session.epoch)
                for topic in topics if by_id else ():
                    topic["topic_id"] = id_bytes(topic["topic"])
                return {"throttle_ms": 0, "error": 0, "session": session.number, "topics": topics}
            await cluster.news({self._named(session, at) for at in session.asked}, left)

    def _read(self, session: Session, left: int) -> tuple[dict[Partition, dict[str, Any]], bool]:
        """Return what there is, and whether that is worth an answer before the wait is over."""
        read, worth = {}, False
        for at, asked in session.asked.items():
            told = read[at] = self._read_one(self._named(session, at), asked, left, is_first=not worth)
            if session.by_id and told["error"] == Error.UNKNOWN_TOPIC_OR_PARTITION:
                told["error"] = Error.UNKNOWN_TOPIC_ID
            left -= len(told["records"])
            worth = worth or bool(told["records"] or told["error"])
        return read, worth

    def _named(self, session: Session, at: Partition) -> Partition:
        """Return a partition by its topic's name; by its id, where no topic has that any more."""
        if not session.by_id:
            return at
        names = {track.topic_id: of.topic for of, track in self._cluster.tracks.items()}
        return Partition(names.get(at.topic, at.topic), at.number)

    def _read_one(self, at: Partition, asked: dict[str, Any], left: int, *, is_first: bool) -> dict[str, Any]:
        told: dict[str, Any] = {
            "partition": at.number,
            "error": self._refusal(at),
            "high_watermark": _NOWHERE,
            "last_stable": _NOWHERE,
            "log_start": _NOWHERE,
            "aborted": [],
            "preferred_replica": NOBODY,
            "records": b"",
        }
        if told["error"]:
            return told
        track, offset = self._cluster.tracks[at], asked["offset"]
        if not track.first <= offset <= track.end:
            return told | {"error": Error.OFFSET_OUT_OF_RANGE}
        told |= {"high_watermark": track.end, "last_stable": track.end, "log_start": track.first}
        most, mischief = min(asked["most_bytes"], left), self._cluster.mischief
        records, count = bytearray(), 0
        for one in self._cluster.batches(at, offset) if offset < track.end else ():
            data = mischief.bytes_of(one, self.node)
            if len(records) + len(data) > most and (records or not is_first):
                break
            if records and mischief.plays(Trick.PART, Api.FETCH, self.node):
                records += data[: self._cluster.chance.randrange(len(data))]
                break
            records += data
            if one.aborted_by is not None:
                told["aborted"].append({"producer": one.aborted_by, "first": one.base})
            count += one.records
            if count >= self._cluster.fetch_events:
                break
        return told | {"records": bytes(records)}

    async def _list_offsets(self, request: Request, _: str) -> dict[str, Any]:
        topics = []
        for topic in request.body["topics"]:
            partitions = []
            for asked in topic["partitions"]:
                at = Partition(topic["topic"], asked["partition"])
                told = {"partition": at.number, "error": self._refusal(at), "timestamp": -1, "offset": _NOWHERE}
                if not told["error"]:
                    told["offset"] = self._offset_at(at, asked["timestamp"])
                partitions.append(told)
            topics.append({"topic": topic["topic"], "partitions": partitions})
        return {"throttle_ms": 0, "topics": topics}

    async def _leader_ends(self, request: Request, _: str) -> dict[str, Any]:
        topics = []
        for topic in request.body["topics"]:
            partitions = []
            for asked in topic["partitions"]:
                at, told = Partition(topic["topic"], asked["partition"]), {"epoch": _NOWHERE, "end": _NOWHERE}
                if not (error := self._refusal(at)):
                    told["epoch"], told["end"] = self._cluster.leader_end(at, asked["epoch"])
                partitions.append({"partition": at.number, "error": error, **told})
            topics.append({"topic": topic["topic"], "partitions": partitions})
        return {"throttle_ms": 0, "topics": topics}

    def _offset_at(self, at: Partition, time: int) -> int:
        track = self._cluster.tracks[at]
        if time == _EARLIEST:
            return track.first
        found = track.end if time == _LATEST else track.at_time(time)
        return found if found < track.end or time == _LATEST else _NOWHERE

    # -- groups -------------------------------------------------------------------------------------------------------

    def _group(self, name: str) -> tuple[ScriptedGroup, Error]:
        group = self._cluster.group(name)
        if group.coordinator != self.node:
            return group, Error.NOT_COORDINATOR
        return group, Error.COORDINATOR_LOADING if group.is_loading else Error.NONE

    async def _find_coordinator(self, request: Request, _: str) -> dict[str, Any]:
        group = self._cluster.group(request.body["key"])
        host, port = self._cluster.advertised.get(group.coordinator, ("", _NOWHERE))
        found = {"node": group.coordinator, "host": host, "port": port}
        if not host:
            found["node"] = NOBODY
        error = Error.NONE if host else Error.COORDINATOR_NOT_AVAILABLE
        return {"throttle_ms": 0, "error": error, "message": None, **found}

    async def _join(self, request: Request, client: str) -> dict[str, Any]:
        group, error = self._group(request.body["group"])
        answer: dict[str, Any] = {"throttle_ms": 0, "error": error, "member": request.body["member"], **_NOT_JOINED}
        if error:
            return answer
        joined = await group.join(client, request.body)
        members = [{"member": name, "instance": instance, "metadata": said} for name, instance, said in joined.members]
        return answer | joined._asdict() | {"members": members}

    async def _sync(self, request: Request, _: str) -> dict[str, Any]:
        group, error = self._group(request.body["group"])
        if error:
            return {"throttle_ms": 0, "error": error, "assignment": b""}
        synced = await group.sync(request.body)
        return {"throttle_ms": 0, **synced._asdict()}

    async def _heartbeat(self, request: Request, _: str) -> dict[str, Any]:
        group, error = self._group(request.body["group"])
        is_loading = error is Error.COORDINATOR_LOADING  # who does not know the group yet believes what it hears
        return {"throttle_ms": 0, "error": Error.NONE if is_loading else error or group.heartbeat(request.body)}

    async def _leave(self, request: Request, _: str) -> dict[str, Any]:
        group, error = self._group(request.body["group"])
        if not error and request.body["member"] not in group.members:
            error = Error.UNKNOWN_MEMBER
        if not error:
            group.leave(request.body["member"])
        return {"throttle_ms": 0, "error": error}

    async def _commit(self, request: Request, client: str) -> dict[str, Any]:
        group, error = self._group(request.body["group"])
        offsets = {
            at: Committed.read(one["offset"], one["metadata"], _known(one["leader_epoch"]))
            for topic in request.body["topics"]
            for one in topic["partitions"]
            if self._cluster.exists(at := Partition(topic["topic"], one["partition"]))
        }
        error = error or group.commit(client, request.body, offsets)
        topics = _each_partition(request.body["topics"], error)
        for topic in topics if not error else ():
            for one in topic["partitions"]:
                if Partition(topic["topic"], one["partition"]) not in offsets:
                    one["error"] = Error.UNKNOWN_TOPIC_OR_PARTITION
        return {"throttle_ms": 0, "topics": topics}

    async def _committed(self, request: Request, _: str) -> dict[str, Any]:
        group, error = self._group(request.body["group"])
        wanted = request.body["topics"]
        if wanted is None:
            places = sorted(group.committed)
        else:
            places = [Partition(one["topic"], number) for one in wanted for number in one["partitions"]]
        by_topic: dict[str, list[dict[str, Any]]] = {}
        for at in places if not error else ():
            told = group.committed.get(at, Committed(_NOWHERE, ""))
            epoch = _NOWHERE if told.leader_epoch is None else told.leader_epoch
            one = {"partition": at.number, "offset": told.offset, "leader_epoch": epoch, "metadata": told.metadata}
            by_topic.setdefault(at.topic, []).append({**one, "error": 0})
        topics = [{"topic": topic, "partitions": partitions} for topic, partitions in by_topic.items()]
        return {"throttle_ms": 0, "topics": topics, "error": error}


def _known(epoch: int) -> int | None:
    return None if epoch == _NOWHERE else epoch


def _each_partition(topics: list[dict[str, Any]], error: Error) -> list[dict[str, Any]]:
    return [
        {
            "topic": topic["topic"],
            "partitions": [{"partition": one["partition"], "error": error} for one in topic["partitions"]],
        }
        for topic in topics
    ]

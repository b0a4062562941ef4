"""A small client with a producer and members of both kinds of groups, right or with planted bugs.

Strategy: it does one thing after another: a member's loop sends a heartbeat where it is due, fetches, and
commits. It answers tasks as a client's program does, in this process.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from crc32c import crc32c

from coordwire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from coordwire.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition
from coordwire.records import ControlType, Record, batches, encode_batch
from tests.conformance.small_links import GaveUp, Habits, JoinAgain, SmallLinks, errors_of

VERSION = struct.pack(">h", 0)
KEY_GROUP, KEY_TRANSACTION = 0, 1


class SmallClient:
    """A client under test. habits: with its bugs."""

    def __init__(self, habits: Habits | None = None) -> None:
        self._habits = habits or Habits()

    async def ask(self, request: dict[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        report: dict[str, Any] = {}
        links = SmallLinks(request["settings"], request["topic"], self._habits)
        try:
            async with asyncio.timeout(request["seconds"]):
                if request["do"] == "consume":
                    await member_of(links, request, report)
                else:
                    await Producer(links, request, report).run()
        except GaveUp as error:
            report["error"] = str(error)
        except TimeoutError:
            if request["do"] != "consume":
                report["error"] = "not in time"
        finally:
            links.close()
        return report

    async def output(self) -> str:
        return ""


# --- producing ---


class Producer:
    """A task to produce, or to do so in a transaction."""

    def __init__(self, links: SmallLinks, task: dict[str, Any], report: dict[str, Any]) -> None:
        self.links, self.task, self.report = links, task, report
        self.id = links.settings.get("transactional.id")
        self.producer = (-1, -1)

    async def run(self) -> None:
        links, values = self.links, self.task["values"]
        await links.refresh()
        kind = KEY_TRANSACTION if self.id else None
        answer = await links.call(
            "InitProducerId",
            lambda version: {"transactional_id": self.id, "transaction_timeout_ms": 30_000},
            key_type=kind,
        )
        self.producer = answer.producer_id, 0 if links.has("its first epoch") else answer.producer_epoch
        if self.id and not links.has("no partitions added"):
            await self._in_transaction(
                "AddPartitionsToTxn", topics=[{"name": links.topic, "partitions": [0]}]
            )
        size = max(1, len(values) // 10)
        for position in range(0, len(values), size):
            await self._send(values[position : position + size], position)
        if self.id:
            await self._end()

    async def _send(self, values: list[str], sequence: int) -> None:
        links = self.links
        records = [Record(timestamp=1, key=None, value=value.encode(), headers=()) for value in values]
        if links.has("sequence from 1"):
            sequence += 1
        numbers: dict[str, Any] = {
            "base_sequence": sequence,
            "producer_id": self.producer[0],
            "producer_epoch": self.producer[1],
        }
        if links.has("no producer id"):
            numbers = {}
        transactional = bool(self.id) and not links.has("no transactional batches")
        data = encode_batch(records, base_offset=0, transactional=transactional, **numbers)
        part = {"index": 0, "records": data}
        body = {
            "transactional_id": None if links.has("no transactional id") else self.id,
            "acks": 1 if links.has("acks 1") else -1, "timeout_ms": 5_000,
            "topic_data": [{"name": links.topic, "partition_data": [part]}],
        }  # fmt: skip
        await links.call("Produce", lambda version: body, partition=0)
        self.report["sent"] = self.report.get("sent", 0) + len(values)
        if links.has("everything twice"):
            await links.call("Produce", lambda version: body, partition=0)

    async def _in_transaction(self, api: str, **values: Any) -> None:
        prefix = "v3_and_below_" if api == "AddPartitionsToTxn" else ""
        names = {
            "transactional_id": self.id,
            "producer_id": self.producer[0],
            "producer_epoch": self.producer[1],
            **values,
        }
        if prefix:
            names["topics"] = values["topics"]
        body = {f"{prefix}{name}": value for name, value in names.items()}
        await self.links.call(api, lambda version: body, key_type=KEY_TRANSACTION)

    async def _end(self) -> None:
        links, task = self.links, self.task
        if task["offset"] is not None:
            links.settings["group.id"] = task["group"]
            await self._in_transaction("AddOffsetsToTxn", group_id=task["group"])
            part = {"partition_index": 0, "committed_offset": task["offset"]}
            body = {
                "transactional_id": self.id, "group_id": task["group"], "producer_id": self.producer[0],
                "producer_epoch": self.producer[1], "topics": [{"name": links.topic, "partitions": [part]}],
            }  # fmt: skip
            kind = KEY_TRANSACTION if links.has("one coordinator") else KEY_GROUP
            await links.call("TxnOffsetCommit", lambda version: body, key_type=kind)
        committed = task["end"] == "commit" or links.has("always commit")
        await self._in_transaction("EndTxn", committed=committed)


# --- consuming ---


async def member_of(links: SmallLinks, task: dict[str, Any], report: dict[str, Any]) -> None:
    """Consume as a member of the group."""
    kind = ConsumerMember if links.settings["group.protocol"] == "consumer" else ClassicMember
    member = kind(links, task, report)
    await links.refresh()
    try:
        while True:
            try:
                await member.join()
                await member.begin()
                while not member.is_done:
                    await member.step()
                break
            except JoinAgain as error:
                member.lose(anew=error.anew)
    finally:
        await asyncio.shield(member.leave())


class Member:
    """What both kinds of members do: positions, fetching, committing."""

    def __init__(self, links: SmallLinks, task: dict[str, Any], report: dict[str, Any]) -> None:
        self.links, self.task = links, task
        self.values: list[str | None] = report.setdefault("values", [])
        self.group = links.settings["group.id"]
        self.name = links.settings.get("group.instance.id")
        self.id = ""
        self.epoch = -1
        self.positions: dict[int, int] = {}
        self.sessions: dict[int, tuple[int, int]] = {}
        self.next_beat = 0.0

    @property
    def is_done(self) -> bool:
        expected: int = self.task["records"]
        return len(self.values) >= expected

    def _named(self, version: int, *, since: int) -> dict[str, Any]:
        """A static member's name, from a version on."""
        has_name = self.name and version >= since and not self.links.has("no name")
        return {"group_instance_id": self.name} if has_name else {}

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def start_at(self, partitions: set[int]) -> None:
        """Find the positions of partitions."""
        links = self.links
        self.positions = {index: place for index, place in self.positions.items() if index in partitions}
        missing = sorted(partitions - self.positions.keys())
        if not missing:
            return

        def values(version: int) -> dict[str, Any]:
            topics = [{**self._topic(version), "partition_indexes": missing}]
            stable = {"require_stable": True} if version >= 7 else {}
            if version < 8:
                return {"group_id": self.group, "topics": topics, **stable}
            group: dict[str, Any] = {"group_id": self.group, "topics": topics}
            if version >= 9 and isinstance(self, ConsumerMember):
                group |= {"member_id": self.id, "member_epoch": self.epoch}
            return {"groups": [group], **stable}

        answer = await links.call("OffsetFetch", values, key_type=KEY_GROUP)
        topics = answer.groups[0].topics if answer.groups else answer.topics
        committed = {
            part.partition_index: part.committed_offset for topic in topics for part in topic.partitions
        }
        for index in missing:
            offset = committed.get(index, -1)
            self.positions[index] = offset if offset >= 0 else await self._reset(index)

    async def _reset(self, index: int) -> int:
        policy = self.links.settings["auto.offset.reset"]
        if policy == "none" and not self.links.has("reset without a policy"):
            raise GaveUp("no offset")
        part = {
            "partition_index": index,
            "timestamp": -1 if policy == "latest" and not self.links.has("always earliest") else -2,
        }
        topics = [{"name": self.links.topic, "partitions": [part]}]
        answer = await self.links.call(
            "ListOffsets", lambda version: {"replica_id": -1, "topics": topics}, partition=index
        )
        offset: int = answer.topics[0].partitions[0].offset
        return offset

    async def fetch(self) -> None:
        for index in sorted(self.positions):
            await self._fetch(index)
            if self.is_done:
                return
        if not self.positions:
            await asyncio.sleep(0.05)

    async def _fetch(self, index: int) -> None:
        links, position = self.links, self.positions[index]
        session, epoch = self.sessions.get(index, (0, 0))
        limit = int(links.settings.get("max.partition.fetch.bytes", 1 << 20))
        part = {"partition": index, "fetch_offset": position, "partition_max_bytes": limit}
        topics = [{"topic": links.topic, "partitions": [part]}]
        level = 1 if links.settings.get("isolation.level") == "read_committed" else 0
        body = {
            "max_wait_ms": 50,
            "min_bytes": 1,
            "max_bytes": int(links.settings.get("fetch.max.bytes", 50 << 20)),
            "isolation_level": level, "session_id": session, "session_epoch": epoch, "topics": topics,
        }  # fmt: skip
        answer = await links.call("Fetch", lambda version: body, partition=index, use="fetch")
        errors = errors_of(answer)
        if errors:
            self.sessions[index] = (session, epoch + 1) if links.has("sessions for ever") else (0, 0)
            if errors[0] == "OFFSET_OUT_OF_RANGE":
                self.positions[index] = await self._reset(index)
            return
        self.sessions[index] = (answer.session_id, epoch + 1) if answer.session_id else (0, 0)
        for topic in answer.responses:
            for piece in topic.partitions:
                await self._take(index, piece, level)

    async def _take(self, index: int, piece: Any, level: int) -> None:
        links, count = self.links, len(self.values)
        waiting = sorted((each.first_offset, each.producer_id) for each in piece.aborted_transactions or ())
        aborted: set[int] = set()
        data = bytes(piece.records or b"")
        if links.has("no checksums") and data:
            data = data[:17] + struct.pack(">I", crc32c(data[21:])) + data[21:]
        for batch in batches(data, on_error="skip"):
            while waiting and waiting[0][0] <= batch.last_offset:
                aborted.add(waiting.pop(0)[1])
            is_aborted = level == 1 and batch.transactional and batch.producer_id in aborted
            size = 0
            if batch.is_control and not links.has("markers are records"):
                if any(mark.type == ControlType.ABORT for mark in batch.control_records()):
                    aborted.discard(batch.producer_id)
            elif not is_aborted or links.has("aborted records"):
                size = self._give(record for record in batch if record.offset >= self.positions[index])
            end = batch.last_offset + 1
            self.positions[index] = (
                self.positions[index] + size
                if links.has("offsets without gaps")
                else max(end, self.positions[index])
            )
        if self.task["commit"] and len(self.values) > count:
            await self.commit(index)

    def _give(self, records: Iterable[Record]) -> int:
        values = [record.value for record in records]
        self.values += [None if value is None else bytes(value).decode(errors="replace") for value in values]
        return len(values)

    def _topic(self, version: int) -> dict[str, Any]:
        """The topic in requests about offsets."""
        return {"topic_id": self.links.topic_id} if version >= 10 else {"name": self.links.topic}

    async def commit(self, index: int) -> None:
        links = self.links
        part = {"partition_index": index, "committed_offset": self.positions[index]}
        epoch = 1 if links.has("first epoch in commits") else self.epoch
        body = {"group_id": self.group, "member_id": self.id, "generation_id_or_member_epoch": epoch}

        def values(version: int) -> dict[str, Any]:
            topics = [{**self._topic(version), "partitions": [part]}]
            return {**body, "topics": topics, **self._named(version, since=7)}

        await links.call("OffsetCommit", values, key_type=KEY_GROUP)


class ClassicMember(Member):
    """A member of a classic group. has_tried: whether it lost its id, and joined with it all the same."""

    has_tried = False

    async def join(self) -> None:
        links = self.links
        metadata = VERSION + ConsumerProtocolSubscription(topics=[links.topic]).encode(version=0)
        settings = links.settings

        def values(version: int) -> dict[str, Any]:
            body = {
                "group_id": self.group, "session_timeout_ms": int(settings["session.timeout.ms"]),
                "rebalance_timeout_ms": 10_000, "member_id": self.id, "protocol_type": "consumer",
                "protocols": [{"name": "range", "metadata": metadata}],
            }  # fmt: skip
            return {**body, **self._named(version, since=5)}

        while True:
            answer = await links.call("JoinGroup", values, key_type=KEY_GROUP)
            if not answer.error_code:
                break
            self.id = "" if links.has("no given id") else answer.member_id
        self.id, self.epoch = answer.member_id, answer.generation_id
        assignments = self._assign(answer) if answer.leader == self.id else []
        sync = await links.call(
            "SyncGroup",
            lambda version: {
                **self._identity(version),
                "assignments": assignments,
                **({"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}),
            },
            key_type=KEY_GROUP,
        )
        assigned = ConsumerProtocolAssignment.decode(sync.assignment[2:], version=0, strict=False)
        self.assigned = {index for topic in assigned.assigned_partitions for index in topic.partitions}
        if links.has("every partition"):
            self.assigned = set(links.leaders)

    def _assign(self, answer: Any) -> list[dict[str, Any]]:
        partitions, members = sorted(self.links.leaders), [member.member_id for member in answer.members]
        if self.links.has("assigns all to each"):
            shares = dict.fromkeys(members, partitions)
        else:
            shares = {member: partitions[number :: len(members)] for number, member in enumerate(members)}
        return [
            {"member_id": member, "assignment": self._assignment(share)} for member, share in shares.items()
        ]

    def _assignment(self, partitions: list[int]) -> bytes:
        topic = ConsumerProtocolAssignmentTopicPartition(topic=self.links.topic, partitions=partitions)
        return VERSION + ConsumerProtocolAssignment(assigned_partitions=[topic]).encode(version=0)

    def _identity(self, version: int) -> dict[str, Any]:
        body = {"group_id": self.group, "member_id": self.id, "generation_id": self.epoch}
        return {**body, **self._named(version, since=3)}

    async def begin(self) -> None:
        self.positions = {}
        self.sessions = {}
        await self.start_at(self.assigned)

    async def step(self) -> None:
        if self.now() >= self.next_beat and not self.links.has("no heartbeats"):
            self.next_beat = self.now() + int(self.links.settings["heartbeat.interval.ms"]) / 1000
            await self.links.call("Heartbeat", lambda version: self._identity(version), key_type=KEY_GROUP)
        await self.fetch()

    def lose(self, *, anew: bool) -> None:
        keeps = self.links.has("keeps its id") or (self.links.has("tries its id") and not self.has_tried)
        self.has_tried = anew
        if (anew and not keeps) or self.links.has("forgets its id"):
            self.id = ""

    async def leave(self) -> None:
        links = self.links
        if not self.id or links.has("never leaves") or (self.name and not links.has("static members leave")):
            return
        try:
            async with asyncio.timeout(1):
                await links.call(
                    "LeaveGroup",
                    lambda version: (
                        {"group_id": self.group, "members": [{"member_id": self.id}]}
                        if version >= 3
                        else {"group_id": self.group, "member_id": self.id}
                    ),
                    key_type=KEY_GROUP,
                )
        except (GaveUp, TimeoutError, JoinAgain):
            if links.has("no unknown tags"):
                raise


class ConsumerMember(Member):
    """A member of a consumer group (KIP-848)."""

    def __init__(self, links: SmallLinks, task: dict[str, Any], report: dict[str, Any]) -> None:
        super().__init__(links, task, report)
        self.id, self.epoch = str(uuid4()), 0
        self.owned: set[int] = set()
        self.is_whole = True
        self.interval = 0.0

    async def join(self) -> None:
        await self._beat()

    async def begin(self) -> None:
        pass

    async def step(self) -> None:
        if self.now() >= self.next_beat:
            await self._beat()
        await self.fetch()

    async def _beat(self) -> None:
        links = self.links

        def values(version: int) -> dict[str, Any]:
            body: dict[str, Any] = {
                "group_id": self.group,
                "member_id": str(uuid4()) if links.has("new ids") else self.id,
                "member_epoch": self.epoch,
            }
            if links.has("epochs from 0") and self.epoch > 1:
                body["member_epoch"] = 1
            if self.name:
                body["instance_id"] = None if links.has("no name") else self.name
            if self.is_whole:
                owned = sorted(self.owned)
                parts = [{"topic_id": links.topic_id, "partitions": owned}] if owned else []
                body |= {
                    "rebalance_timeout_ms": 0 if links.has("no rebalance timeout") else 10_000,
                    "subscribed_topic_names": [links.topic],
                    "topic_partitions": parts,
                }
                if "group.remote.assignor" in links.settings:
                    body["server_assignor"] = links.settings["group.remote.assignor"]
            return body

        answer = await links.call("ConsumerGroupHeartbeat", values, key_type=KEY_GROUP)
        self.epoch, self.is_whole = answer.member_epoch, False
        self.interval = 0.05 if links.has("own interval") else answer.heartbeat_interval_ms / 1000
        self.next_beat = self.now() + self.interval
        if answer.assignment is not None:
            assigned = {index for part in answer.assignment.topic_partitions for index in part.partitions}
            if links.has("never gives back"):
                assigned |= self.owned
            if assigned != self.owned:
                if not links.has("no acknowledgement"):
                    self.is_whole, self.next_beat = True, 0.0
                self.owned = assigned
                self.sessions = {}
                await self.start_at(assigned)

    def lose(self, *, anew: bool) -> None:
        if not self.links.has("keeps its epoch"):
            self.epoch = 0
        if not self.links.has("keeps its partitions"):
            self.owned, self.positions = set(), {}
        self.is_whole = True

    async def leave(self) -> None:
        links = self.links
        if self.epoch <= 0 or links.has("never leaves"):
            return
        self.epoch = -2 if self.name and not links.has("static members leave") else -1
        body = {
            "group_id": self.group,
            "member_id": self.id,
            "member_epoch": self.epoch,
            **({"instance_id": self.name} if self.name else {}),
        }
        try:
            async with asyncio.timeout(1):
                await links.call("ConsumerGroupHeartbeat", lambda version: body, key_type=KEY_GROUP)
        except (GaveUp, TimeoutError, JoinAgain):
            pass

"""A case, and what it works with: clients of the cluster, names of its own, requests from plain values,
checks.

Strategy: requests go by `coordwire.client` where they belong. Every name begins with the run's random prefix,
and is remembered; leaving the stage ends members, transactions, groups and topics of these names, and nothing
else; what a broker keeps until it expires (the state of a transactional id) can't be removed. Rules: an
address is never used for another case. A function's docstring is its rule. `needs` names APIs with the
version from which the rule holds ("JoinGroup 4"); a broker without one skips the case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from coordwire.client import Client, ClientSettings, Session, connect, open_stream
from coordwire.client.streams import Stream, connected_socket
from coordwire.conformance.cases import API_KEYS, Broken, Lacking, code_name, message_of
from coordwire.connection import Connection
from coordwire.errors import CoordwireError
from coordwire.messages import ApiVersionsResponse, find_message

PATIENCE = 15.0
"""Seconds that `until` waits."""

HEARTBEATS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")

UNSETTLED = ("CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE")
"""Errors of a coordinator that is asked again."""


class Stage:
    """A case's surroundings, to be used in `async with`. prefix: of all names; differences: where the broker
    answered within the rule but otherwise than Kafka."""

    def __init__(self, settings: ClientSettings, prefix: str) -> None:
        self.settings = settings
        self.prefix = prefix
        self.differences: list[str] = []
        self._clients: list[Client] = []
        self._streams: list[Stream] = []
        self._groups: dict[str, dict[str, str]] = {}
        self._configs: dict[str, list[str]] = {}
        self._topics: list[str] = []
        self._transactional_ids: list[str] = []
        self._tasks: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Self:
        try:
            await self.client()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await self._remove()
        finally:
            await self._close()

    # --- names ---

    def group(self) -> str:
        """The name of a group that isn't there."""
        name = f"{self.prefix}-group-{len(self._groups)}"
        self._groups[name] = {}
        return name

    async def group_configs(self, group: str, **configs: str) -> None:
        """Set a group's configs: "share_isolation_level" is share.isolation.level."""
        names = {name.replace("_", "."): value for name, value in configs.items()}
        self._configs[group] = list(names)
        changes = [{"name": name, "config_operation": 0, "value": value} for name, value in names.items()]
        answer = await self._alter_group(group, changes)
        self.error("IncrementalAlterConfigs", answer.responses[0].error_code, "NONE")

    async def _alter_group(self, group: str, changes: list[dict[str, Any]]) -> Any:
        resource = {"resource_type": 32, "resource_name": group, "configs": changes}
        return await self.ask("IncrementalAlterConfigs", resources=[resource])

    def transactional_id(self) -> str:
        """A transactional id that isn't there."""
        name = f"{self.prefix}-transaction-{len(self._transactional_ids)}"
        self._transactional_ids.append(name)
        return name

    def topic_name(self) -> str:
        """The name of a topic that isn't there."""
        name = f"{self.prefix}-topic-{len(self._topics)}"
        self._topics.append(name)
        return name

    async def topic(self, partitions: int = 1, **configs: str) -> str:
        """A new topic, whose partitions have leaders. configs: as those of `group_configs`."""
        name = self.topic_name()
        settings = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": -1, "configs": settings}
        answer = await self.ask("CreateTopics", topics=[topic], timeout_ms=10_000)
        self.error("CreateTopics", answer.topics[0].error_code, "NONE")

        async def led() -> bool:
            (topic_answer,) = (await self._metadata([name])).topics
            return len(topic_answer.partitions) == partitions and not any(
                part.error_code for part in [topic_answer, *topic_answer.partitions]
            )

        await self.until(led, "the new topic's partitions have leaders")
        return name

    async def topic_id(self, name: str) -> UUID:
        answer = await self._metadata([name])
        result: UUID = answer.topics[0].topic_id
        return result

    async def _metadata(self, topics: list[str]) -> Any:
        names = [{"name": name} for name in topics]
        return await self.ask("Metadata", topics=names, allow_auto_topic_creation=False)

    # --- requests ---

    async def client(self) -> Client:
        """A client with connections of its own: a broker answers those of one connection in their order."""
        client = connect(self.settings)
        self._clients.append(client)
        return await client.__aenter__()

    async def stream(self, *, authenticates: bool = True) -> Stream:
        """A connection to the first of the brokers, for bytes. authenticates: by SASL, if there is any."""
        settings = self.settings if authenticates else replace(self.settings, sasl=None)
        stream = await open_stream(settings.bootstrap[0], settings)
        self._streams.append(stream)
        return stream

    async def silent_stream(self) -> Stream:
        """A connection to the first of the brokers on which nothing was sent."""
        address, tls = self.settings.bootstrap[0], self.settings.tls
        async with asyncio.timeout(self.settings.connection_timeout_ms / 1000):
            reader, writer = await asyncio.open_connection(
                sock=await connected_socket(address), ssl=tls, server_hostname=address[0] if tls else None
            )
        session = Session(versions={}, lifetime_ms=0, response=ApiVersionsResponse())
        stream = Stream(address, reader, writer, Connection("client"), session)
        self._streams.append(stream)
        return stream

    async def ask(self, api: str, *, at: int | None = None, by: Client | None = None, **values: Any) -> Any:
        """The answer to a request of these values. at: its version, the newest by default; by: another client
        than the stage's own. A coordinator that is not ready is asked again."""
        if at is not None:
            await self.needs(api, at)
        cls: Any = find_message(API_KEYS[api], "request")
        message = message_of(cls, values)
        client = by or self._clients[0]
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while True:
            answer: Any = await client.request(message, version=at)
            code = getattr(answer, "error_code", 0)
            if code_name(code) not in UNSETTLED or asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(0.1)
        if api in HEARTBEATS and code_name(code) == "UNSUPPORTED_VERSION":
            raise Lacking(f"the broker doesn't have {api} switched on")
        if api == "JoinGroup" and answer.member_id:
            self._groups[message.group_id][answer.member_id] = "LeaveGroup"
        if api in HEARTBEATS and answer.member_id and not answer.error_code:
            self._groups[message.group_id][answer.member_id] = api
        return answer

    def later(self, work: Awaitable[Any]) -> asyncio.Task[Any]:
        """Do something meanwhile."""
        task = asyncio.ensure_future(work)
        self._tasks.append(task)
        return task

    async def versions(self) -> dict[str, tuple[int, int]]:
        """The broker's versions by API."""
        session = await self._clients[0].session()
        names = {key: name for name, key in API_KEYS.items()}
        return {
            names[key]: (offered.first, offered.last)
            for key, offered in session.versions.items()
            if key in names
        }

    async def needs(self, api: str, version: int) -> None:
        """Raises `Lacking` where the broker doesn't offer a version."""
        first, last = (await self.versions()).get(api, (0, -1))
        if not first <= version <= last:
            raise Lacking(f"the broker lacks {api} {version}")

    # --- checks ---

    def error(self, subject: str, code: int, expected: str, *allowed: str) -> None:
        """Check an error code. expected: Kafka's; allowed: others within the rule. Raises `Broken`."""
        name = code_name(code)
        if name in allowed:
            self.differences.append(f"{subject}: {name}, where Kafka answers {expected}")
        elif name != expected:
            raise Broken(f"{subject}: {name}, not {expected}")

    def equal(self, subject: str, value: object, expected: object) -> None:
        """Check a value. Raises `Broken`."""
        if value != expected:
            raise Broken(f"{subject}: {value!r}, not {expected!r}")

    def true(self, condition: bool, reason: str) -> None:
        """Check a condition. reason: what is wrong without. Raises `Broken`."""
        if not condition:
            raise Broken(reason)

    async def until_beaten(
        self, beat: Callable[[], Awaitable[object]], condition: Callable[[], bool], subject: str
    ) -> None:
        """Let a member send heartbeats until a condition holds. Raises `Broken`."""

        async def has_beaten() -> bool:
            await beat()
            return condition()

        await self.until(has_beaten, subject)

    async def until(self, check: Callable[[], Awaitable[bool]], subject: str) -> None:
        """Wait for something. Raises `Broken` after `PATIENCE`."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while not await check():
            if asyncio.get_running_loop().time() > deadline:
                raise Broken(f"not within {PATIENCE:g} s: {subject}")
            await asyncio.sleep(0.05)

    # --- the end ---

    async def _remove(self) -> None:
        """Each as if it were alone: one that can't be removed keeps no other."""
        for name in self._transactional_ids:
            with suppress(CoordwireError):
                await self.ask("InitProducerId", transactional_id=name, transaction_timeout_ms=1000)
        for group, members in self._groups.items():
            for member, api in members.items():
                with suppress(CoordwireError):
                    await self._end_member(group, member, api)
        for group, names in self._configs.items():
            with suppress(CoordwireError):
                await self._alter_group(group, [{"name": name, "config_operation": 1} for name in names])
        for step in (self._delete_groups, self._delete_topics):
            with suppress(CoordwireError):
                await step()

    async def _end_member(self, group: str, member: str, api: str) -> None:
        if api in HEARTBEATS:
            await self.ask(api, group_id=group, member_id=member, member_epoch=-1)
        else:
            await self.ask("LeaveGroup", group_id=group, members=[{"member_id": member}])

    async def _delete_groups(self) -> None:
        if self._groups:
            await self.ask("DeleteGroups", groups_names=list(self._groups))

    async def _delete_topics(self) -> None:
        if not self._topics:
            return
        await self.ask("DeleteTopics", topic_names=self._topics, timeout_ms=10_000)

        async def are_gone() -> bool:
            answer = await self._metadata(self._topics)
            return all(topic.error_code for topic in answer.topics)

        await self.until(are_gone, "the topics are deleted")

    async def _close(self) -> None:
        for stream in self._streams:
            await stream.close()
        for client in self._clients:
            await client.close()


Play = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class BrokerCase:
    """A case. document: a KIP or a page of Kafka's documentation; question: what is asked; answer: Kafka's;
    rule: what is checked; needs: APIs with versions; recommended: no implementation is wrong without."""

    address: str
    document: str
    question: str
    answer: str
    rule: str
    needs: tuple[str, ...]
    recommended: bool
    play: Play


CASES: list[BrokerCase] = []


def case(
    address: str, document: str, question: str, answer: str, *, needs: str = "", recommended: bool = False
) -> Callable[[Play], Play]:
    """Make a case of a function. needs: APIs with versions, commas between them."""

    def register(play: Play) -> Play:
        rule = " ".join((play.__doc__ or "").split())
        apis = tuple(api.strip() for api in needs.split(",") if api.strip())
        CASES.append(BrokerCase(address, document, question, answer, rule, apis, recommended, play))
        return play

    return register


def table(
    document: str,
    needs: str,
    play: Callable[..., Awaitable[None]],
    rows: Iterable[tuple[Any, ...]],
    *,
    recommended: bool = False,
) -> None:
    """Make a case of each row: address, question, answer, rule, and what `play` is given after the stage and
    the answer."""
    for address, question, answer, rule, *values in rows:
        register = case(address, document, question, answer, needs=needs, recommended=recommended)
        register(_row(play, rule, answer, *values))


def _row(play: Callable[..., Awaitable[None]], rule: str, *values: Any) -> Play:
    async def played(stage: Stage) -> None:
        await play(stage, *values)

    played.__doc__ = rule
    played.__module__ = play.__module__
    return played

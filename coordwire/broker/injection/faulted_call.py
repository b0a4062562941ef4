"""One request that rules match: it waits, is refused, is carried out, and its answer arrives or not.

Strategy: a coroutine around the handler: wait, work, wait, answer. Rules: elements of a request that a rule
refuses are removed from it before the work, and put in its answer with their error; the others are carried
out. If the client leaves while its request waits before the work, the request is not carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from operator import contains
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from coordwire.broker.cluster.promise import Promise
from coordwire.broker.handlers.api_call import HandlerResult, result_of
from coordwire.broker.injection.fault_registry import FaultHandle, Faults
from coordwire.broker.injection.fault_rule import FaultRule, Incoming
from coordwire.broker.injection.refused_answers import (
    ElementIndex,
    level_of,
    place_of,
    refuse_element,
    refuse_matching,
    refused_response,
)
from coordwire.broker.injection.subjects import CodePlace, Subject, code_places, pruned, subjects
from coordwire.codec import Message
from coordwire.codec.walk import fields_of
from coordwire.enums import ErrorCode
from coordwire.messages import FetchRequest
from coordwire.versions import ApiKey


class FaultedRequest(Protocol):
    """A request on its way, as far as faults need it. refused: partitions of a Fetch that a fault refuses, by
    topic and index, which are put into the answer by what carries it out."""

    request: Any
    refused: Mapping[tuple[str | None, int | None], ErrorCode] | None

    @property
    def version(self) -> int: ...

    @property
    def node(self) -> int: ...

    @property
    def client_id(self) -> str | None: ...

    def topic_name(self, topic_id: UUID) -> str | None:
        """The name of the topic with an id, where it is known."""

    def session_partitions(self) -> Iterable[tuple[str | None, UUID, int]]:
        """The partitions of the fetch session that a Fetch continues: topics by name and id."""


C = TypeVar("C", bound=FaultedRequest)


class Timer(Protocol):
    """An action that can be cancelled before it runs."""

    def cancel(self) -> None: ...


class FaultyLink(Protocol):
    """The connection that a request came on, as far as faults need it."""

    def hang_up(self) -> None:
        """Close the connection; what was answered before is sent."""

    def send_half(self, response: Message) -> None:
        """Send the first half of an answer, and close the connection."""

    def call_later(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Run something later."""

    def request_handled(self) -> None:
        """A request was carried out later than it came: deadlines may have changed."""


def faulted(
    faults: Faults, call: C, api_key: int, handler: Callable[[C], HandlerResult], link: FaultyLink
) -> HandlerResult:
    """Answer as the handler does, with the faults of the rules that match the request."""
    handles = handles_of(faults, call, api_key)
    return FaultedCall(call, api_key, handler, handles, link).run() if handles else handler(call)


def handles_of(faults: Faults, call: FaultedRequest, api_key: int) -> list[FaultHandle]:
    """The rules that take a request."""
    return faults.matching(
        Incoming(call.request, api_key, call.version, call.node, call.client_id, request_subjects(call))
    )


def request_subjects(call: FaultedRequest) -> tuple[Subject, ...]:
    """The subjects of a request, with the partitions of the fetch session that it continues."""
    request, version, name_of = call.request, call.version, call.topic_name
    named = subjects(request, type(request).response_class, version, name_of)
    if isinstance(request, FetchRequest) and request.session_id and request.session_epoch > 0:
        forgotten = {
            (topic_data.topic or name_of(topic_data.topic_id), index)
            for topic_data in request.forgotten_topics_data
            for index in topic_data.partitions
        }
        known = {subject: None for subject in named if subject.partition is not None}
        for name, topic_id, index in call.session_partitions():
            topic = name or name_of(topic_id)
            if (topic, index) not in forgotten:
                known[Subject(topic=topic, topic_id=topic_id if topic_id.int else None, partition=index)] = (
                    None
                )
        named = list(known) or named
    return tuple(named)


class FaultedCall(Generic[C]):
    """A request that rules take, at least one. run: the coroutine of its steps, which awaits promises."""

    def __init__(
        self,
        call: C,
        api_key: int,
        handler: Callable[[C], HandlerResult],
        handles: list[FaultHandle],
        link: FaultyLink,
    ) -> None:
        self.call = call
        self.api_key = api_key
        self.handler = handler
        self.link = link
        self.before = [handle for handle in handles if not handle.rule.after]
        self.after = [handle for handle in handles if handle.rule.after]
        self.rules = [handle.rule for handle in handles]
        self.response_class: Any = type(call.request).response_class
        self.refused: list[tuple[CodePlace, Subject, ErrorCode]] = []
        self.matching: list[tuple[CodePlace, FaultRule]] = []

    # --- the steps ---

    async def run(self) -> Message | None:
        """The answer; None if the client gets none, or not the whole."""
        await self._wait(self.before)
        if any(handle.rule.disconnect for handle in self.before):
            self.link.hang_up()
            return None
        response = self._refuse([handle.rule for handle in self.before if handle.rule.code is not None])
        if response is None:
            response = await result_of(self.handler(self.call))
            assert response is not None  # only faults lose answers
        response = self._changed(response)
        await self._wait(self.after)
        if any(rule.lose for rule in self.rules):
            return None
        if any(rule.disconnect for rule in self.rules):
            self.link.hang_up()
            return None
        if any(rule.half for rule in self.rules):
            self.link.send_half(response)
            return None
        return response

    def _changed(self, response: Message) -> Message:
        """The answer with the errors of refused elements and the throttle time."""
        version = self.call.version
        index: ElementIndex = {}
        for place, subject, code in self.refused:
            refuse_element(response, version, place, subject, code, index)
        for place, rule in self.matching:
            self._overwrite(response, place, rule)
        for handle in self.after:
            if handle.rule.code is not None:
                response = self._overwritten(response, handle.rule)
        throttle = max(rule.throttle for rule in self.rules)
        if throttle and any(
            field.name == "throttle_time_ms" and field.exists(version) for field in fields_of(response)
        ):
            response.throttle_time_ms = round(throttle * 1000)  # type: ignore[attr-defined]
        return response

    async def _wait(self, handles: list[FaultHandle]) -> None:
        """Wait until all rules that hold the request let go, and the delays are over."""
        holds = [handle for handle in handles if handle.rule.hold]
        delay = sum(handle.rule.delay for handle in handles)
        remaining = len(holds) + bool(delay)
        if not remaining:
            return
        release: Promise[None] = Promise()

        def let_go() -> None:
            nonlocal remaining
            remaining -= 1
            if not remaining:
                release.fulfil(None)
                self.link.request_handled()

        timer = self.link.call_later(delay, let_go) if delay else None
        for handle in holds:
            handle.hold(let_go)
        try:
            await release
        except GeneratorExit:  # the client has left
            if timer is not None:
                timer.cancel()
            for handle in holds:
                handle.let_go(let_go)
            raise

    # --- errors ---

    def _place(self, rule: FaultRule) -> CodePlace | None:
        """Where a rule's error goes."""
        assert rule.code is not None
        version = self.call.version
        places = code_places(self.response_class, version)
        condition = rule.condition
        if condition is None and rule.topic is not None and self.api_key not in _OF_TOPICS:
            condition = "partition"
        level = level_of(self.api_key, (place.level for place in places), rule.code, condition)
        return place_of(self.response_class, version, level) if places else None

    def _refuse(self, rules: list[FaultRule]) -> Message | None:
        """Take out of the request what is refused; the answer, if that is all."""
        call, version = self.call, self.call.version
        targets = subjects(call.request, self.response_class, version, call.topic_name)
        for rule in rules:
            assert rule.code is not None
            place = self._place(rule)
            if place is None or not place.path:
                return refused_response(call.request, self.response_class, version, rule.code)
            if self.api_key == ApiKey.FETCH:
                places = {
                    (element.topic, element.partition): rule.code
                    for element in request_subjects(call)
                    if rule.is_about(element)
                }
                call.refused = {**places, **(call.refused or {})}
                continue
            kinds = _needed(place)
            refused = {
                subject: None for subject in targets if rule.is_about(subject) and _names_all(subject, kinds)
            }
            if not kinds and hasattr(call.request, "validate_only"):
                call.request.validate_only = True  # its elements are named by nothing that is known here
            if not refused or (self.api_key == ApiKey.METADATA and not version):  # it asks for all there are
                self.matching.append((place, rule))
                continue
            self.refused.extend((place, element, rule.code) for element in refused)
            remaining = pruned(
                call.request, self.response_class, version, call.topic_name, partial(contains, refused)
            )
            targets = [subject for subject in targets if subject not in refused]
            if remaining is None and self.api_key == ApiKey.METADATA:
                call.request.topics = []
            elif remaining is None:
                empty: Message = self.response_class()
                return empty
            else:
                call.request = remaining
        return None

    def _overwrite(self, response: Message, place: CodePlace, rule: FaultRule) -> None:
        """Write a rule's error over the elements of an answer that it matches."""
        assert rule.code is not None
        name_of, request = self.call.topic_name, self.call.request
        group = getattr(request, "group_id", None)

        def matches(subject: Subject) -> bool:
            if subject.topic_id is not None and not subject.topic:
                subject = subject.with_(topic=name_of(subject.topic_id))
            if subject.group is None:
                subject = subject.with_(group=subject.key or group)
            subject = subject.with_(topic=subject.resource, transactional_id=subject.key)
            return _without(rule, place).is_about(subject)

        refuse_matching(response, self.call.version, place, rule.code, matches)

    def _overwritten(self, response: Message, rule: FaultRule) -> Message:
        assert rule.code is not None
        place = self._place(rule)
        if place is None or not place.path:
            return refused_response(self.call.request, self.response_class, self.call.version, rule.code)
        self._overwrite(response, place, rule)
        return response


_OF_TOPICS = frozenset({ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS})


_KINDS = {"topic", "partition", "group", "transactional_id", "resource", "key", "member", "user"}


def _needed(place: CodePlace) -> frozenset[str]:
    """What a subject must name to have a place of its own."""
    return place.kinds & _KINDS


def _names_all(subject: Subject, kinds: frozenset[str]) -> bool:
    return (
        bool(kinds)
        and all(getattr(subject, kind) is not None or kind == "topic" for kind in kinds)
        and (subject.topic is not None or subject.topic_id is not None or "topic" not in kinds)
    )


def _without(rule: FaultRule, place: CodePlace) -> FaultRule:
    """A rule without the conditions that an answer says nothing of: the request met them."""
    unsaid: dict[str, Any] = {"member": None} if place.level != "member" else {}
    if "transactional_id" not in place.kinds:
        unsaid["transactional_id"] = None
    return replace(rule, **unsaid)

"""Cases sent over sockets to a broker, and what came back, in its normal form."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from coordwire import Connection, decode_response
from coordwire.codec import Message
from coordwire.codec.walk import entity_places
from coordwire.connection.events import ConnectionClosed, ResponseReceived
from coordwire.errors import CoordwireError
from coordwire.messages import find_message
from tests.broker.corners.normal_form import Ids, kind_of, normal_form
from tests.broker.corners.script import Ask, Case, Raw, Receive

Outcome = Any
"""[API, version, fields] of an answer; "closed" or "no answer"."""

_PATIENCE = 10.0
"""Seconds for which a request is sent again while a broker is not ready."""

_PREPARING = 30.0
"""Seconds that a step may take whose outcome is not compared."""


class _Link:
    """One connection of a case."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.connection = Connection("client", client_id="corners")
        self.socket = socket.create_connection(address, timeout=10)
        self.data = b""

    def receive(self, patience: float) -> Message | str:
        """The next answer."""
        self.socket.settimeout(patience)
        while (event := self.connection.next_event()) is None:
            try:
                data = self.socket.recv(1 << 16)
            except TimeoutError:
                return "no answer"
            except OSError:
                return "closed"
            if not data:
                return "closed"
            self.connection.receive_data(data)
        if isinstance(event, ResponseReceived):
            return event.response
        if isinstance(event, ConnectionClosed):
            return "closed"
        return type(event).__name__

    def receive_raw(self, patience: float) -> bytes | str:
        """The next frame."""
        self.socket.settimeout(patience)
        while len(self.data) < 4 or len(self.data) < 4 + int.from_bytes(self.data[:4], "big"):
            try:
                data = self.socket.recv(1 << 16)
            except TimeoutError:
                return "no answer"
            except OSError:
                return "closed"
            if not data:
                return "closed"
            self.data += data
        end = 4 + int.from_bytes(self.data[:4], "big")
        frame, self.data = self.data[:end], self.data[end:]
        return frame


class _Run:
    """A case under way."""

    def __init__(self, one: Case, address: tuple[str, int], kept: Sequence[Outcome]) -> None:
        self.case = one
        self.kept = kept
        self.address = address
        self.ids = Ids()
        self.names: dict[str, Any] = {
            f"${name}": f"{one.name}-{name}" for name in ("t", "t2", "t3", "g", "g2", "x", "x2", "u", "c")
        }
        self.links: dict[str, _Link] = {}
        self.sent: dict[str, list[int]] = {}
        self.outcomes: list[Outcome] = []

    def link(self, name: str) -> _Link:
        if name not in self.links:
            self.links[name] = _Link(self.address)
        return self.links[name]

    def run(self) -> list[Outcome]:
        try:
            for step in self.case.steps:
                if isinstance(step, Ask):
                    self._ask(step)
                elif isinstance(step, Receive):
                    answer = self.link(step.link).receive(self.patience(step))
                    self._take(answer, self.sent[step.link].pop(0), step.link, step.keep, counts=True)
                else:
                    self._raw(step)
        finally:
            for link in self.links.values():
                link.socket.close()
        return self.outcomes

    def patience(self, step: Ask | Receive | Raw) -> float:
        """Seconds until a step has no answer: its own, or many where an answer is expected."""
        expected = self.kept[len(self.outcomes) :][:1]
        answered = bool(expected) and expected[0] != "no answer"
        return _PREPARING if answered else step.patience

    def _ask(self, step: Ask) -> None:
        request: Any = self._made(find_message(step.api, "request"), step.fields)
        deadline = time.monotonic() + _PATIENCE
        while True:
            link = self.link(step.link)
            with suppress(OSError):
                link.socket.sendall(link.connection.send(request, version=step.version))
            if step.waits:
                self.sent.setdefault(step.link, []).append(step.version)
                return
            answer = link.receive(self.patience(step) if step.counts else _PREPARING)
            if isinstance(answer, str) or time.monotonic() > deadline:
                break
            ready = step.until is None or bool(_part(answer, step.until))
            if ready and not any(code in step.again for _, _, _, code in entity_places(answer, "error_code")):
                break
            time.sleep(0.02)
        if not step.counts and isinstance(answer, str):
            raise AssertionError(f"{self.case.name}: {step.api} v{step.version} is {answer}")
        self._take(answer, step.version, step.link, step.keep, counts=step.counts)

    def _raw(self, step: Raw) -> None:
        link = self.link(step.link)
        with suppress(OSError):
            link.socket.sendall(step.data)
        answer = link.receive_raw(self.patience(step))
        if isinstance(answer, bytes) and step.answer is not None:
            key, version = step.answer
            try:
                response = decode_response(answer, api_key=key, version=version)
            except CoordwireError as error:
                self.outcomes.append(f"unreadable: {type(error).__name__}")
                return
            self._take(response.message, response.body_version, step.link, {}, counts=True)
        else:
            self._take(answer if isinstance(answer, str) else "answered", 0, step.link, {}, counts=True)

    def _take(
        self, answer: Message | str, version: int, link: str, keep: Mapping[str, str], *, counts: bool
    ) -> None:
        if isinstance(answer, str):
            self.outcomes.append(answer)
            self.links.pop(link).socket.close()
            return
        for name, path in keep.items():
            value = _part(answer, path)
            key = name if name.startswith("$") else f"${name}"
            self.names[key] = value
            if isinstance(value, UUID) and key.endswith("#id"):
                self.ids.topics[value] = self.names[key.removesuffix("#id")]
        if counts:
            self.outcomes.append([kind_of(answer), version, normal_form(answer, version, self.ids)])

    # --- requests ---

    def _made(self, cls: Any, fields: Mapping[str, Any]) -> Any:
        known = {field.name: field for field in cls._layout_.fields}
        values = {}
        for name, value in fields.items():
            struct = known[name].struct
            if struct is None or value is None:
                values[name] = self._value(value)
            elif known[name].array:
                values[name] = [self._made(struct, element) for element in value]
            else:
                values[name] = self._made(struct, value)
        return cls(**values)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith("$"):
            return self.names[value]
        if isinstance(value, list):
            return [self._value(element) for element in value]
        return value(self.names) if callable(value) else value


def _part(answer: Any, path: str) -> Any:
    """What is at a path in an answer; None where the path leads nowhere."""
    value = answer
    for name in path.split("."):
        if not name.isdigit():
            value = getattr(value, name, None)
        elif value is not None:
            value = value[int(name)] if int(name) < len(value) else None
    return value


def answers(one: Case, address: tuple[str, int], kept: Sequence[Outcome] = ()) -> list[Outcome]:
    """What a broker does in a case; where kept outcomes are answers, a slow machine has time for them."""
    return _Run(one, address, kept).run()

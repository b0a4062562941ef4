"""A step of a history as JSON and as the line that the oracle and our own tests run, and what came out of it.

Rules: `form` and `text` are each other's inverse. A step has `op` and `now`, the milliseconds on the
coordinator's clock; times are never sums of anything else. What is absent is none: no answers, no records.
Bytes of logs are hex; requests and answers are Kafka's JSON, which `Shown` gives for bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from coordwire.codec import Message
from coordwire.jsonform import from_json
from coordwire.messages import find_message
from tests.coordinator.histories import START, Outcome, Record, entry_from_text, entry_text

Step = dict[str, Any]
Shown = Callable[[type[Message], int, bytes], Any]
"""The JSON of a message's bytes."""

ENDING = ("ticket", "producer_id", "producer_epoch", "coordinator_epoch", "result")
LOG_END = ("topic", "partition", "error", "offset")
STATE_VERSIONS = {83: 0, 86: 0, 87: 1}
"""Of the requests to share coordinators, by API key."""


def _encoded(api_key: int, direction: Any, version: int, form: Any) -> bytes:
    message: Message = from_json(find_message(api_key, direction), form, version=version)
    return message.encode(version=version)


class Former:
    """Makes the steps of one history into JSON, in order. shown: gives the JSON of messages."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._now = START
        self._state_keys: dict[int, int] = {}
        self.requests: dict[int, tuple[int, int]] = {}

    def form(self, text: str, outcome: Outcome) -> Step:
        """A step, with what Kafka made of it, sorted where Kafka's order is that of hash tables."""
        op, *words = text.split(" ")
        step = {"op": op, **getattr(self, f"_{op.replace('-', '_')}", _nothing)(*words)}
        return {"op": op, "now": self._now} | step | self._outcome(outcome.sorted(self.requests))

    def _advance(self, now: str) -> Step:
        self._now = max(self._now, int(now))
        return {} if self._now == int(now) else {"to": int(now)}

    def _request(self, ticket: str, api: str, version: str, new_id: str, client: str, body: str = "") -> Step:
        key, number = int(api), int(version)
        self.requests[int(ticket)] = key, number
        return {
            "ticket": int(ticket), "api_key": key, "version": number, "new_id": str(UUID(new_id)),
            "client_id": None if client == "-" else bytes.fromhex(client).decode(),
            "request": self._shown(find_message(key, "request"), number, bytes.fromhex(body)),
        }  # fmt: skip

    def _topics(self, *changes: str) -> Step:
        forms: list[Step] = []
        for change in changes:
            topic_id, *fields = change[1:].split(":", 2)
            added = {"name": fields[1], "partitions": int(fields[0])} if fields else {}
            forms.append({"id": topic_id} | added)
        return {"changes": forms}

    def _fail(self, error: str) -> Step:
        return {"error": error}

    def _end(self, ticket: str, producer_id: str, epoch: str, coordinator_epoch: str, result: str) -> Step:
        numbers = map(int, (ticket, producer_id, epoch, coordinator_epoch))
        return dict(zip(ENDING, [*numbers, result], strict=True))

    def _config(self, group: str, *pairs: str) -> Step:
        return {"group": group, "config": dict(pair.split("=", 1) for pair in pairs)}

    def _load(self, end: str | None = None, *entries: str) -> Step:
        if end is None:
            return {}
        log = [(text, *entry_from_text(text)) for text in entries]
        forms = [
            {"offset": offset}
            | ({"marker": "COMMIT" if text[0] == "C" else "ABORT"} if record.marker else _record(record))
            | ({"producer_id": record.producer_id} if record.producer_id != -1 else {})
            for text, offset, record in log
        ]
        return {"end_offset": int(end), "log": forms}

    def _persisted(self, number: str, answer: str, *ends: str) -> Step:
        step: Step = {"number": int(number)}
        if answer.isupper():
            step["error"] = answer
        else:
            key = self._state_keys[int(number)]
            version = STATE_VERSIONS[key]
            step["response"] = self._shown(find_message(key, "response"), version, bytes.fromhex(answer))
            step |= {"api_key": key, "version": version}
        forms = [dict[str, Any](zip(LOG_END, end.split(":"), strict=True)) for end in ends]
        numbers = [one | {name: int(one[name]) for name in ("partition", "offset")} for one in forms]
        return step | ({"ends": numbers} if numbers else {})

    def _outcome(self, outcome: Outcome) -> Step:
        step: Step = {}
        for ticket, body in outcome.answers.items():
            key, version = self.requests[ticket]
            answer = {"ticket": ticket, "response": self._shown(find_message(key, "response"), version, body)}
            if ticket in outcome.created:
                answer["topics_to_create"] = outcome.created[ticket]
            step.setdefault("answers", []).append(answer)
        if outcome.records:
            step["records"] = [_batched(record) for record in outcome.records]
        if outcome.ended:
            step["ended"] = [{"ticket": one, "error": error} for one, error in outcome.ended.items()]
        if outcome.failed:
            step["failed"] = outcome.failed
        for other in outcome.other:
            if other == "unloadable":
                step["unloadable"] = True
                continue
            word, number, api, data = other.split(" ")
            assert word == "persist", other
            key = self._state_keys[int(number)] = int(api)
            request = self._shown(find_message(key, "request"), STATE_VERSIONS[key], bytes.fromhex(data))
            one = {"number": int(number), "api_key": key, "version": STATE_VERSIONS[key], "request": request}
            step.setdefault("persists", []).append(one)
        return step


def _nothing() -> Step:
    return {}


def _record(record: Record) -> Step:
    return {"key": record.key.hex(), "value": None if record.value is None else record.value.hex()}


def _batched(record: Record) -> Step:
    """A record that was written. producer: of its transaction, if it has one."""
    step = _record(record)
    if record.producer_id != -1:
        step |= {"producer_id": record.producer_id, "producer_epoch": record.producer_epoch}
    return step | ({"marker": True} if record.marker else {})


def text(step: Step) -> str:
    """The line of a step."""
    op = step["op"]
    match op:
        case "advance":
            words = [str(step.get("to", step["now"]))]
        case "request":
            key, version, client = step["api_key"], step["version"], step["client_id"]
            words = [str(step["ticket"]), str(key), str(version), UUID(step["new_id"]).hex]
            words.append("-" if client is None else client.encode().hex())
            words.append(_encoded(key, "request", version, step["request"]).hex())
        case "topics":
            words = [
                f"+{one['id']}:{one['partitions']}:{one['name']}" if "name" in one else f"-{one['id']}"
                for one in step["changes"]
            ]
        case "fail":
            words = [step["error"]]
        case "end":
            words = [str(step[name]) for name in ENDING]
        case "config":
            words = [step["group"], *(f"{name}={value}" for name, value in step["config"].items())]
        case "load" if "log" in step:
            words = [str(step["end_offset"]), *map(_entry, step["log"])]
        case "persisted":
            words = [str(step["number"]), step.get("error", "")]
            if "response" in step:
                response = _encoded(step["api_key"], "response", step["version"], step["response"])
                words[1] = response.hex()
            words += [":".join(str(one[name]) for name in LOG_END) for one in step.get("ends", ())]
        case _:
            words = []
    return " ".join([op, *words])


def _entry(entry: Step) -> str:
    producer = entry.get("producer_id", -1)
    if "marker" in entry:
        return f"{entry['marker'][0]}:-:{producer}:{entry['offset']}"
    value = None if entry["value"] is None else bytes.fromhex(entry["value"])
    return entry_text(entry["offset"], Record(bytes.fromhex(entry["key"]), value, producer))


def outcome_of(step: Step, requests: dict[int, tuple[int, int]]) -> Outcome:
    """What Kafka made of a step. requests: API and version, by ticket."""
    outcome = Outcome(failed=step.get("failed", []))
    for answer in step.get("answers", ()):
        key, version = requests[answer["ticket"]]
        outcome.answers[answer["ticket"]] = _encoded(key, "response", version, answer["response"])
        if "topics_to_create" in answer:
            outcome.created[answer["ticket"]] = answer["topics_to_create"]
    for one in step.get("records", ()):
        value = None if one["value"] is None else bytes.fromhex(one["value"])
        producer = one.get("producer_id", -1), one.get("producer_epoch", -1)
        outcome.records.append(Record(bytes.fromhex(one["key"]), value, *producer, one.get("marker", False)))
    outcome.ended = {one["ticket"]: one["error"] for one in step.get("ended", ())}
    outcome.other += ["unloadable"] * step.get("unloadable", False)
    for one in step.get("persists", ()):
        body = _encoded(one["api_key"], "request", one["version"], one["request"])
        outcome.other.append(f"persist {one['number']} {one['api_key']} {body.hex()}")
    return outcome

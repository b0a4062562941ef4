"""`coordwire call`: one request to a cluster, and its answer.

    call BROKER                      the APIs and versions of a broker
    call BROKER API FIELD=VALUE …    a request
    call BROKER VERB NAME …          a request under a short name: topics, groups, brokers, configs, lag
    call BROKER -                    the requests among the JSON lines of decode on standard input

Strategy: `coordwire.client` sends, splits and merges; request_fields.py makes requests of words and of JSON,
request_defaults.py has what is not given, verbs.py the short names; answer_output.py writes what comes back,
answer_tables.py where it is a table, and what a broker has.
Rules: a request that changes something, by its schema, or that makes the topic of a coordinator, asks first
on a terminal, and needs --yes elsewhere; a field with which a reading request would change something
(`allow_auto_topic_creation`) is off unless it is given. Secrets come from --config and the environment. Exit
status 0: answered; 1: an answer has an error code, or a line could not be sent; 2: usage, settings, no
answer.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordwire.capture.printable import shown
from coordwire.cli import Failure, cluster_options
from coordwire.codec.names import suggestion
from coordwire.messages.keys import FACTS

if TYPE_CHECKING:
    from coordwire.cli.call.answer_output import AnswerOutput
    from coordwire.client import ClientSettings, SyncClient
    from coordwire.codec import Message, Request

__all__ = ["configure", "run"]

_LARGEST = 100 << 20
VERB_NAMES = ("topics", "groups", "brokers", "configs", "lag")
_TO = ("any", "controller", "leader", "coordinator")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", metavar="BROKER", help="HOST:PORT, or several: HOST:PORT,HOST:PORT")
    parser.add_argument(
        "api",
        metavar="API",
        nargs="?",
        help="an API's name; or topics, groups, brokers, configs, lag; none: which APIs it has; -: the "
        "requests among JSON lines of decode",
    )
    parser.add_argument(
        "fields",
        metavar="FIELD=VALUE",
        nargs="*",
        help="a field of the request, such as groups=payments or topics.name=orders",
    )
    parser.set_defaults(later_words="fields")
    parser.add_argument(
        "--json", metavar="@FILE", help="the request's body in Kafka's JSON form; @-: from standard input"
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="Kafka's client.properties: TLS, SASL, times; with bootstrap.servers BROKER may be left out",
    )
    parser.add_argument(
        "--to",
        metavar="NODE",
        help="node:2, any, controller, leader or coordinator, instead of where the request belongs",
    )
    parser.add_argument("--all-brokers", action="store_true", help="ask each broker, an answer each")
    parser.add_argument("--version", type=int, metavar="N", help="the request's version")
    parser.add_argument(
        "--timeout",
        type=cluster_options.seconds,
        metavar="SECONDS",
        help="for each request with all its attempts, the first connection included (default: 60)",
    )
    parser.add_argument("--yes", action="store_true", help="send what changes something without asking")
    parser.add_argument(
        "--format",
        choices=("table", "tree", "json"),
        help="json: a line an answer (default: table for lists, else tree)",
    )
    parser.add_argument("--deep", action="store_true", help="open the bytes inside the answer, too")
    parser.add_argument("--show-secrets", action="store_true", help="show passwords, tokens and keys")


def run(options: argparse.Namespace) -> int:
    from coordwire.client import ClientError, RequestFailed, connect_sync
    from coordwire.errors import EncodeError

    settings = _settings(options)
    to = _to(options)
    verb = _spell(options)
    requests = _requests(options, settings)  # what is wrong with them is reported before anything is sent
    if requests is not None and not isinstance(requests, Iterator):
        _confirm(options, requests[0], settings)
    try:
        with connect_sync(settings) as client:
            if verb == "lag":
                return _lag(client, options)
            if requests is None:
                from coordwire.cli.call.answer_output import write_versions

                write_versions(client.session(), options.format or "table")
                return 0
            if not isinstance(requests, Iterator):
                requests = [_fitted(options, requests[0], client)]
                _confirm_new_topics(options, requests[0], client, to)
            return _call_all(client, requests, options, to, verb)
    except RequestFailed as error:
        print(f"coordwire: {shown(str(error))}", file=sys.stderr)
        return 1 if error.code else 2
    except (ClientError, EncodeError) as error:
        raise Failure(f"call: {shown(str(error))}") from None


def _call_all(
    client: SyncClient,
    requests: list[tuple[Message, int | None]] | Iterator[tuple[Message, int | None]],
    options: argparse.Namespace,
    to: int | str | None,
    verb: str | None,
) -> int:
    from coordwire.cli.call.answer_output import AnswerOutput
    from coordwire.cli.call.verbs import VERBS

    output = AnswerOutput(
        options.format,
        show_secrets=options.show_secrets,
        deep=options.deep,
        verb=None if verb is None else VERBS[verb],
    )
    status = 0
    for message, version in requests:
        status |= _call(client, output, message, version, options, to)
    return status | getattr(options, "refused_lines", 0)


def _call(
    client: SyncClient,
    output: AnswerOutput,
    message: Message,
    version: int | None,
    options: argparse.Namespace,
    to: int | str | None,
) -> int:
    from coordwire.client.requests import whole_answer

    request: Any = message
    start = time.monotonic()
    answers = client.answers(request, to=to, version=version)
    seconds = time.monotonic() - start
    if not options.all_brokers:
        return output.write(message, answers, whole_answer(answers, to), seconds)
    status = 0
    for answer in answers:
        status |= output.write(message, [answer], answer.answer, seconds)
    return status


def _lag(client: SyncClient, options: argparse.Namespace) -> int:
    from coordwire.cli.call import verbs
    from coordwire.cli.call.answer_output import report_nothing, write_table

    groups = options.fields or verbs.group_ids(client)
    if not groups:
        report_nothing("groups")
        return 0
    _confirm_new_topics(options, (verbs.committed(groups), None), client, None)
    table, forms, status = verbs.lag(client, groups)
    if forms:
        write_table(table, forms, options.format or "table")
    else:
        report_nothing("committed offsets")
    return status


# --- arguments ---


def _settings(options: argparse.Namespace) -> ClientSettings:
    from coordwire.client import SettingsError, read_properties, settings_of

    if options.api is None and options.fields:  # an option came between BROKER and API
        options.api = options.fields.pop(0)
    try:
        properties = {} if options.config is None else read_properties(options.config)
        names = {"bootstrap.servers", "bootstrap.controllers"} & properties.keys()
        words = ("-", *VERB_NAMES)
        if names and (
            options.broker in words or _find_api(options.broker) is not None
        ):  # BROKER was left out
            if options.api is not None:
                options.fields.insert(0, options.api)
            options.broker, options.api = None, options.broker
        known = settings_of(properties, bootstrap=options.broker)
        timeout_ms = known.timeout_ms if options.timeout is None else max(int(options.timeout * 1000), 1)
        return replace(known, timeout_ms=timeout_ms)
    except SettingsError as error:
        raise Failure(f"call: {error}") from None


def _find_api(name: str) -> int | None:
    return next((key for key, facts in FACTS.items() if facts.name.lower() == name.lower()), None)


def _spell(options: argparse.Namespace) -> str | None:
    """Replace a verb by the API and fields that it means; the verb."""
    verb: str | None = options.api
    if verb not in VERB_NAMES:
        return None
    from coordwire.cli.call import verbs

    if options.json is not None:
        raise Failure(f"call: {verb}: --json is for APIs")
    if verb == verbs.LAG:
        if any("=" in word for word in options.fields):
            raise Failure("call: lag: expected names of groups, got a field")
        options.api = None
    else:
        options.api, options.fields = verbs.spelled(verb, options.fields)
    return verb


def _to(options: argparse.Namespace) -> int | str | None:
    text: str | None = options.to
    if options.all_brokers:
        if text is not None:
            raise Failure("call: --to names a node, and --all-brokers all of them: expected one of the two")
        return "every"
    if text is None:
        return None
    number = text.removeprefix("node:")
    if number.isdecimal():
        return int(number[:10])
    if text in _TO:
        return text
    raise Failure(f"call: --to: expected node:ID, {', '.join(_TO)}, got {text!r}")


def _requests(
    options: argparse.Namespace, settings: ClientSettings
) -> list[tuple[Message, int | None]] | Iterator[tuple[Message, int | None]] | None:
    """The requests with their versions; None where the broker's APIs are asked for."""
    if options.api is None:
        return None
    if options.api == "-":
        if options.fields or options.json:
            raise Failure("call: with - the requests come from standard input: expected no fields")
        if not options.yes:
            raise Failure("call: lines may hold requests that change something: expected --yes with -")
        return _lines(options)
    key = _find_api(options.api)
    if key is None:
        names = [*VERB_NAMES, *(facts.name for facts in FACTS.values())]
        raise Failure(f"call: no API is called {options.api!r}{suggestion(options.api, names)}")
    return [(_request(key, options, settings.timeout_ms, options.version), options.version)]


def _fitted(
    options: argparse.Namespace, request: tuple[Message, int | None], client: SyncClient
) -> tuple[Message, int | None]:
    """The request; where the broker has no version for it, without the defaults that only newer ones have."""
    from coordwire.client import VersionUnavailable
    from coordwire.client.requests import fit_version
    from coordwire.versions import known_versions

    message, version = request
    key, offered = message.api_key, client.session().versions
    assert key is not None
    if version is not None or options.json is not None or key not in offered:
        return request
    try:
        fit_version(message, offered, None)
    except VersionUnavailable:
        if common := offered[key] & known_versions(key):
            return _request(key, options, client.settings.timeout_ms, common.last), None
    return request


def _request(key: int, options: argparse.Namespace, timeout_ms: int, version: int | None) -> Message:
    from coordwire.cli.call.request_defaults import check_needed, fresh
    from coordwire.cli.call.request_fields import filled
    from coordwire.messages import find_message

    cls: type[Request[Any]] = find_message(key, "request")
    if options.json is not None:
        return filled(_from_json(cls, options, timeout_ms), options.fields)
    request: Any = filled(fresh(cls, timeout_ms, version), options.fields)
    check_needed(request)
    return request  # type: ignore[no-any-return]


def _from_json(cls: type[Request[Any]], options: argparse.Namespace, timeout_ms: int) -> Message:
    """The request of --json."""
    from coordwire.cli.call.request_fields import request_of

    source: str = options.json.removeprefix("@")
    try:
        if source == "-":
            data = sys.stdin.buffer.read(_LARGEST + 1)
        else:
            with Path(source).open("rb") as stream:
                data = stream.read(_LARGEST + 1)
    except OSError as error:
        raise Failure(f"call: --json: {source}: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise Failure(f"call: --json: expected at most {_LARGEST:,} bytes")
    try:
        form = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Failure(f"call: --json: not JSON: {error}") from None
    return request_of(cls, form, options.version, timeout_ms)


def _lines(options: argparse.Namespace) -> Iterator[tuple[Message, int | None]]:
    """The requests among lines of decode, as they are; other lines are left out."""
    from coordwire.cli.encode import encode_line
    from coordwire.errors import CoordwireError
    from coordwire.frames import decode_request

    for number, line in enumerate(sys.stdin.buffer, 1):
        if line.isspace():
            continue
        try:
            if json.loads(line).get("direction") == "response":
                continue
            frame = decode_request(encode_line(line))
        except (CoordwireError, ValueError, AttributeError, RecursionError) as error:
            print(f"coordwire: line {number}: {shown(str(error))}", file=sys.stderr)
            options.refused_lines = 1
            continue
        yield frame.message, frame.api_version if options.version is None else options.version


def _confirm(
    options: argparse.Namespace, request: tuple[Message, int | None], settings: ClientSettings
) -> None:
    """Ask before something is changed. Raises `Failure` unless the answer is yes."""
    from coordwire.client.routing import modifies

    message, _ = request
    if not options.yes and modifies(message):
        _ask(message, "changes something", settings)


def _confirm_new_topics(
    options: argparse.Namespace, request: tuple[Message, int | None], client: SyncClient, to: int | str | None
) -> None:
    """Ask before a look-up of coordinators makes their topic, which a broker does where it has none yet.
    Raises `Failure` unless the answer is yes."""
    from coordwire.client import VersionUnavailable
    from coordwire.client.routing import coordinator_topics, modifies
    from coordwire.enums import ErrorCode
    from coordwire.messages import MetadataRequest
    from coordwire.messages.metadata import MetadataRequestTopic

    message, _ = request
    if options.yes or modifies(message) or not (names := coordinator_topics(message, to)):
        return
    topics = [MetadataRequestTopic(name=name) for name in names]
    try:
        answer = client.request(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
    except VersionUnavailable:  # before Kafka 0.11 a topic that is named is made
        answer = client.request(MetadataRequest(topics=None))
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    known = {topic.name for topic in answer.topics if topic.error_code != missing}
    for name in names:
        if name not in known:
            _ask(message, f"makes the topic {name}, which does not exist yet,", client.settings)


def _ask(message: Message, change: str, settings: ClientSettings) -> None:
    """Ask whether to send a request. Raises `Failure` unless the answer is yes."""
    from coordwire.client.settings import shown_address

    name = FACTS[message.api_key or 0].name
    cluster = ",".join(shown_address(address) for address in settings.bootstrap)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Failure(f"call: {name} {change} at {cluster}: expected --yes")
    print(f"{name} {change} at {cluster}. Send it? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failure(f"call: {name} was not sent")

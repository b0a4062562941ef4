"""The parts of a message that are shown only on request: passwords, tokens, keys.

Strategy: the schemas mark the fields, and a generated table has their paths by message; a secret's place is a
path like those of errors ("topics[0].configs[2].value"). A config is secret unless Kafka's own of that name
is none (`OPEN_CONFIGS`), and if the broker says so. The metadata log's records are looked into.

Rules: better one field too many than one too few: a config that isn't known is a secret, and so is a tagged
field that isn't known, in a message that holds secrets. A field that is null or empty hides nothing and is
left alone, so that it can be encoded again. A value that is removed from a JSON form becomes null; its path
is listed in `redacted` by the caller, so that `encode` refuses the line.

The configs whose values are no secret are those that Apache Kafka has for topics, brokers, groups and client
metrics, and that aren't passwords: the config definitions of Apache Kafka 4.4.0 (all that are not of the type
PASSWORD, and neither name a key nor whose credentials they are), and those that older releases had. What
isn't among them is a secret, as Kafka's own brokers take a config to be whose type they don't know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import takewhile
from operator import eq, ne
from typing import Any
from uuid import UUID

from coordwire.codec import Message
from coordwire.codec.message import Buffer
from coordwire.codec.walk import elements, fields_of
from coordwire.errors import CoordwireError
from coordwire.limits import limits
from coordwire.messages.record_types import RECORD_TYPES, TOPICS, Log
from coordwire.messages.secret_paths import SECRET_PATHS

FIELDS = SECRET_PATHS
"""Where secrets are, by message, as the schemas mark them. A field called `value` is one only beside a name
that isn't known to be that of an open config."""

LEAST = 4
"""Fewer bytes than that aren't a secret, nor a piece of one that helps."""

WIDE = frozenset(("int32", "uint32", "int64", "float64"))
"""Numbers beside a secret, whose bytes aren't shown: they are a piece of it where its length was damaged."""

_LEVELS = frozenset(("OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"))

FETCH = 1
METADATA_TOPIC = TOPICS["metadata"]
METADATA_TOPIC_ID = UUID(int=1)
"""Kafka's fixed id of it (KIP-631)."""

MOST_DAMAGED = 3
"""So many bytes of its name or its id may be others."""

_STEPS = {name: [path.replace("[]", ".[]").split(".") for path in paths] for name, paths in FIELDS.items()}
MOST_RECORDS = 16 << 20
"""Bytes of records that are looked into, on top of four times those that hold them."""


def find(message: Message | None) -> list[str]:
    """The paths of a message's secrets."""
    name = type(message).__name__
    if name == "FetchResponse":
        return _metadata_records(message)
    paths = _STEPS.get(name)
    if paths is None:
        return []
    places = [place for steps in paths for place in _places(message, steps, "", False)]
    if name == "SaslAuthenticateResponse" and _has_stray_text(message):
        places.append("error_message")
    return [*places, *unknown_tags(message)]


def _has_stray_text(answer: Any) -> bool:
    """Whether an answer has the text of an error without an error: its bytes are read as one, since some
    before them are missing."""
    return bool(answer.error_message) and not answer.error_code


def may_hide(log: Log, record_type: int | None) -> bool:
    """Whether the bytes of such a record that couldn't be read may hold a secret: only the metadata log has
    any, in the types that are known for it and, for all we know, in those that aren't known."""
    if log != "metadata":
        return False
    names = None if record_type is None else RECORD_TYPES[log].get(record_type)
    return names is None or names.value in FIELDS


def is_metadata(topic: Any) -> bool:
    """Whether a topic of a Fetch is the metadata log, or may be since its name or its id was damaged."""
    number = topic.topic_id
    return is_metadata_name(topic.topic) or bool(number.int and is_metadata_id(number.bytes))


def is_metadata_id(number: bytes) -> bool:
    """Whether a topic's id is that of the metadata log, but for some bytes."""
    return len(number) - number.count(0) <= MOST_DAMAGED


def is_metadata_name(name: str) -> bool:
    """Whether a topic's name is that of the metadata log, but for some characters: others in their place, or
    more or fewer in one place."""
    size, expected = len(name), len(METADATA_TOPIC)
    if abs(size - expected) > MOST_DAMAGED:
        return False
    if size == expected:
        return bool(sum(map(ne, name, METADATA_TOPIC)) <= MOST_DAMAGED)
    head, tail = _common(name, METADATA_TOPIC), _common(name[::-1], METADATA_TOPIC[::-1])
    return head + tail >= min(size, expected)


def _common(first: str, second: str) -> int:
    """How many characters they begin with in common."""
    return sum(takewhile(bool, map(eq, first, second)))


def _metadata_records(message: Any) -> list[str]:
    """The paths of the record sets of the metadata log that hold a secret, or that are unreadable."""
    return [
        f"responses[{number}].partitions[{index}].records"
        for number, topic in enumerate(message.responses)
        if is_metadata(topic)
        for index, partition in enumerate(topic.partitions)
        if partition.records and records_hide(partition.records)
    ]


def records_hide(records: Buffer) -> bool:
    """Whether a record set of the metadata log holds a secret; if it can't be read whole, it may."""
    from coordwire.logs import open_log_record  # few captures have records of the metadata log
    from coordwire.records import batches

    room = MOST_RECORDS + 4 * len(records)
    try:
        with limits(decompressed=MOST_RECORDS):
            scan = batches(records)
            for batch in scan:
                for record in batch:  # of a control batch too: its checksum says whether it is one
                    opened = None if batch.is_control else open_log_record(METADATA_TOPIC, record)
                    value = None if opened is None else opened.value
                    if find(value) if isinstance(value, Message) else not batch.is_control:
                        return True
                    room -= 32 + len(record.key or b"") + len(record.value or b"")
                    if room < 0:
                        return True
    except CoordwireError:
        return True
    return bool(scan.remainder)


def _places(value: Any, steps: list[str], path: str, named: bool) -> Iterator[str]:
    step, *remaining = steps
    if step == "[]":
        for index, element in enumerate(value or ()):
            yield from _places(element, remaining, f"{path}[{index}]", named)
        return
    named = named or is_secret_value(value)
    content = getattr(value, step)
    field_path = f"{path}.{step}" if path else step
    if remaining:
        yield from _places(content, remaining, field_path, named)
    elif content and _hides(value, step, content, named):
        yield field_path


def _hides(value: Any, step: str, content: Any, named: bool) -> bool:
    """Whether what a field holds that may be a secret is one."""
    if step == "value":
        return is_secret_config(content, named=named)
    if step == "passwd":
        return any(content)  # ZooKeeper's new sessions have zeros
    if step == "id":
        return value.scheme not in OPEN_SCHEMES
    return step != "operations" or not is_open_multi(content)


OPEN_SCHEMES = frozenset(("world", "auth", "ip"))
"""ZooKeeper's schemes whose ids hold no secret."""


def is_open_multi(operations: bytes) -> bool:
    """Whether a multi of ZooKeeper has no ACL with a secret, which is one of the scheme "digest"."""
    return b"digest" not in operations


def is_secret_value(value: Any) -> bool:
    """Whether a config's name, or the broker, calls its value a secret."""
    if not hasattr(value, "value"):
        return False
    name = getattr(value, "name", None)
    return bool(getattr(value, "is_sensitive", False)) or (isinstance(name, str) and is_secret_name(name))


def is_secret_name(name: str) -> bool:
    """Whether a config of this name is a secret, or may be: it isn't known to be none."""
    return not is_open_config(name)


def is_secret_config(value: str, *, named: bool) -> bool:
    """Whether a config's value is a secret. named: its name says so. The level of a logger, which is a config
    too, is none; a value that isn't a text may be another's, since its length was damaged."""
    if named:
        return value not in _LEVELS
    return not all(char.isprintable() or char.isspace() for char in value)


def unknown_tags(value: Any, path: str = "", *, least: int = 0) -> Iterator[str]:
    """The paths of tagged fields that aren't known, at any depth, and have at least so many bytes."""
    if not _finder_of_tags(value._layout_.cls)(value):
        return
    for tag, data in (value.tags or {}).items():
        if len(data) >= least:
            yield f"{path}tags[{tag}]"
    for field in fields_of(value):
        if field.struct is not None:
            for place, element in elements(f"{path}{field.name}", field, getattr(value, field.name)):
                yield from unknown_tags(element, f"{place}.", least=least)


@cache
def _finder_of_tags(cls: Any) -> Callable[[Any], Any]:
    """What finds whether a struct of a class has such tagged fields at any depth, which few have."""
    function: Callable[[Any], Any] = eval(f"lambda value: {_tags_in(cls, 'value')}")
    return function


def _tags_in(cls: Any, value: str) -> str:
    """The expression of what is true where the value of an expression, of a class, has any."""
    parts, element = [f"{value}.tags"], f"{value}_"
    for field in fields_of(cls):
        if field.struct is not None:
            content = f"{value}.{field.name}"
            elements = f"{content} or ()" if field.array else f"({content},) if {element} is not None"
            parts.append(f"any([{_tags_in(field.struct, element)} for {element} in {elements}])")
    return " or ".join(parts)


_UNDERSCORE = re.compile(r"_([a-z0-9])")


def redact(body: Any, paths: Iterable[str]) -> None:
    """Set the values at these paths to null."""
    for path in paths:
        *place, last = _json_steps(path)
        value = body
        for step in place:
            value = value[step]
        if last in value:
            value[last] = None


def _json_steps(path: str) -> list[Any]:
    """A path's steps in the JSON form, where unknown tagged fields have their numbers as text."""
    from coordwire.capture import partial_messages  # which most messages, without secrets, do without

    steps: list[Any] = []
    for step in partial_messages.steps(path):
        if step == "tags":
            steps.append("_tags")
        elif isinstance(step, int):
            steps.append(str(step) if steps[-1:] == ["_tags"] else step)
        else:
            steps.append(_UNDERSCORE.sub(lambda match: match[1].upper(), step))
    return steps


# --- open configs ---


_LISTENER = re.compile(r"listener\.name\.[a-z0-9_-]+\.(?:[a-z0-9-]+\.(?=sasl\.|connections\.))?")
"""Before the name of a config that is for one listener, and perhaps for one of its SASL mechanisms."""


def is_open_config(name: str) -> bool:
    """Whether the value of a config of this name may be shown."""
    return name in _OPEN or name[_end_of_listener(name) :] in _OPEN


def _end_of_listener(name: str) -> int:
    prefix = _LISTENER.match(name)
    return prefix.end() if prefix else 0


_OPEN = frozenset(
    """
add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms advertised.host.name
advertised.listeners advertised.port alter.config.policy.class.name
alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
authorizer.class.name auto.create.topics.enable auto.leader.rebalance.enable background.threads
broker.heartbeat.interval.ms broker.id broker.id.generation.enable broker.rack broker.session.timeout.ms
cleanup.policy client.quota.callback.class compression.gzip.level compression.lz4.level compression.type
compression.zstd.level config.providers connection.failed.authentication.delay.ms connections.max.idle.ms
connections.max.reauth.ms consumer.assignment.interval.ms consumer.assignor.offload.enable
consumer.heartbeat.interval.ms consumer.session.timeout.ms control.plane.listener.name
controlled.shutdown.enable controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms
controller.listener.names controller.performance.always.log.threshold.ms
controller.performance.sample.period.ms controller.quorum.append.linger.ms
controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms
controller.quorum.voters controller.quota.window.num controller.quota.window.size.seconds
controller.socket.timeout.ms cordoned.log.dirs create.topic.policy.class.name default.replication.factor
delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms delegation.token.max.lifetime.ms
delete.records.purgatory.purge.interval.requests delete.retention.ms delete.topic.enable
early.start.listeners eligible.leader.replicas.enable errors.deadletterqueue.auto.create.topics.enable
errors.deadletterqueue.copy.record.enable errors.deadletterqueue.group.enable
errors.deadletterqueue.topic.name errors.deadletterqueue.topic.name.prefix fetch.max.bytes
fetch.purgatory.purge.interval.requests file.delete.delay.ms flush.messages flush.ms
follower.fetch.last.tiered.offset.enable follower.replication.throttled.replicas
group.consumer.assignment.interval.ms group.consumer.assignor.offload.enable group.consumer.assignors
group.consumer.heartbeat.interval.ms group.consumer.max.assignment.interval.ms
group.consumer.max.heartbeat.interval.ms group.consumer.max.session.timeout.ms group.consumer.max.size
group.consumer.migration.policy group.consumer.min.assignment.interval.ms
group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
group.consumer.regex.refresh.interval.ms group.consumer.session.timeout.ms
group.coordinator.append.linger.ms group.coordinator.background.threads
group.coordinator.cached.buffer.max.bytes group.coordinator.rebalance.protocols group.coordinator.threads
group.initial.rebalance.delay.ms group.max.session.timeout.ms group.max.size group.min.session.timeout.ms
group.share.assignment.interval.ms group.share.assignor.offload.enable group.share.assignors
group.share.delivery.count.limit group.share.dlq.manager.class.name group.share.heartbeat.interval.ms
group.share.initialize.retry.interval.ms group.share.max.assignment.interval.ms
group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms
group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms
group.share.max.session.timeout.ms group.share.max.share.sessions group.share.max.size
group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms
group.share.partition.max.record.locks group.share.persister.class.name group.share.record.lock.duration.ms
group.share.session.timeout.ms group.streams.acceptable.recovery.lag group.streams.assignment.interval.ms
group.streams.assignor.offload.enable group.streams.assignors group.streams.heartbeat.interval.ms
group.streams.initial.rebalance.delay.ms group.streams.max.assignment.interval.ms
group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms group.streams.max.size
group.streams.max.standby.replicas group.streams.max.warmup.replicas
group.streams.min.assignment.interval.ms group.streams.min.heartbeat.interval.ms
group.streams.min.session.timeout.ms group.streams.min.task.offset.interval.ms
group.streams.num.standby.replicas group.streams.num.warmup.replicas
group.streams.rack.aware.assignment.tags group.streams.session.timeout.ms
group.streams.task.offset.interval.ms group.streams.topology.description.plugin.class host.name
index.interval.bytes initial.broker.registration.timeout.ms inter.broker.listener.name
inter.broker.protocol.version internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
internal.metadata.max.batch.size.in.bytes internal.segment.bytes interval.ms
kafka.metrics.polling.interval.secs kafka.metrics.reporters leader.imbalance.check.interval.seconds
leader.imbalance.per.broker.percentage leader.replication.throttled.replicas listener.security.protocol.map
listeners local.retention.bytes local.retention.ms log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size
log.cleaner.delete.retention.ms log.cleaner.enable log.cleaner.io.buffer.load.factor
log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second log.cleaner.max.compaction.lag.ms
log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms log.cleaner.threads log.cleanup.policy
log.dir log.dir.failure.timeout.ms log.dirs log.flush.interval.messages log.flush.interval.ms
log.flush.offset.checkpoint.interval.ms log.flush.scheduler.interval.ms
log.flush.start.offset.checkpoint.interval.ms log.index.interval.bytes log.index.size.max.bytes
log.initial.task.delay.ms log.local.retention.bytes log.local.retention.ms log.message.downconversion.enable
log.message.format.version log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms
log.message.timestamp.difference.max.ms log.message.timestamp.type log.preallocate log.remote.copy.lag.bytes
log.remote.copy.lag.ms log.retention.bytes log.retention.check.interval.ms log.retention.hours
log.retention.minutes log.retention.ms log.roll.hours log.roll.jitter.hours log.roll.jitter.ms log.roll.ms
log.segment.bytes log.segment.delete.delay.ms match max.compaction.lag.ms max.connection.creation.rate
max.connections max.connections.per.ip max.connections.per.ip.overrides max.decompressed.message.bytes
max.incremental.fetch.session.cache.slots max.message.bytes max.request.partition.size.limit
message.downconversion.enable message.format.version message.max.bytes message.timestamp.after.max.ms
message.timestamp.before.max.ms message.timestamp.difference.max.ms message.timestamp.type metadata.log.dir
metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
metadata.log.segment.bytes metadata.log.segment.ms metadata.max.idle.interval.ms
metadata.max.retention.bytes metadata.max.retention.ms metric.reporters metrics metrics.num.samples
metrics.recording.level metrics.sample.window.ms min.cleanable.dirty.ratio min.compaction.lag.ms
min.insync.replicas node.id num.io.threads num.network.threads num.partitions
num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads num.replica.fetchers
offset.metadata.max.bytes offsets.commit.required.acks offsets.commit.timeout.ms offsets.load.buffer.size
offsets.retention.check.interval.ms offsets.retention.minutes offsets.topic.compression.codec
offsets.topic.num.partitions offsets.topic.replication.factor offsets.topic.segment.bytes port preallocate
principal.builder.class process.roles producer.id.expiration.check.interval.ms producer.id.expiration.ms
producer.purgatory.purge.interval.requests queued.max.request.bytes queued.max.requests quota.window.num
quota.window.size.seconds remote.copy.lag.bytes remote.copy.lag.ms remote.fetch.max.wait.ms
remote.list.offsets.request.timeout.ms remote.log.copy.disable remote.log.delete.on.disable
remote.log.index.file.cache.total.size.bytes remote.log.index.file.cache.ttl.ms
remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
remote.log.manager.follower.thread.pool.size remote.log.manager.task.interval.ms
remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size
remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads
remote.log.storage.manager.class.name remote.log.storage.manager.class.path
remote.log.storage.manager.impl.prefix remote.log.storage.system.enable remote.storage.enable
replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.min.bytes replica.fetch.response.max.bytes
replica.fetch.wait.max.ms replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms
replica.selector.class replica.socket.receive.buffer.bytes replica.socket.timeout.ms
replication.quota.window.num replication.quota.window.size.seconds request.timeout.ms reserved.broker.max.id
retention.bytes retention.ms sasl.client.callback.handler.class sasl.enabled.mechanisms
sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules
sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
sasl.mechanism.controller.protocol sasl.mechanism.inter.broker.protocol
sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
sasl.oauthbearer.assertion.template.file sasl.oauthbearer.clock.skew.seconds
sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
sasl.server.callback.handler.class sasl.server.max.receive.size security.inter.broker.protocol
security.providers segment.bytes segment.index.bytes segment.jitter.ms segment.ms server.max.startup.time.ms
share.assignment.interval.ms share.assignor.offload.enable share.auto.offset.reset
share.coordinator.append.linger.ms share.coordinator.cached.buffer.max.bytes
share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
share.coordinator.snapshot.update.records.per.snapshot share.coordinator.state.topic.compression.codec
share.coordinator.state.topic.min.isr share.coordinator.state.topic.num.partitions
share.coordinator.state.topic.prune.interval.ms share.coordinator.state.topic.replication.factor
share.coordinator.state.topic.segment.bytes share.coordinator.threads share.coordinator.write.timeout.ms
share.delivery.count.limit share.fetch.purgatory.purge.interval.requests share.heartbeat.interval.ms
share.isolation.level share.partition.max.record.locks share.record.lock.duration.ms
share.renew.acknowledge.enable share.session.timeout.ms socket.connection.setup.timeout.max.ms
socket.connection.setup.timeout.ms socket.listen.backlog.size socket.receive.buffer.bytes
socket.request.max.bytes socket.send.buffer.bytes ssl.allow.dn.changes ssl.allow.san.changes
ssl.cipher.suites ssl.client.auth ssl.enabled.protocols ssl.endpoint.identification.algorithm
ssl.engine.factory.class ssl.keymanager.algorithm ssl.keystore.location ssl.keystore.type
ssl.principal.mapping.rules ssl.protocol ssl.provider ssl.secure.random.implementation
ssl.trustmanager.algorithm ssl.truststore.location ssl.truststore.type streams.acceptable.recovery.lag
streams.assignment.interval.ms streams.assignor.name streams.assignor.offload.enable
streams.heartbeat.interval.ms streams.initial.rebalance.delay.ms streams.num.standby.replicas
streams.num.warmup.replicas streams.rack.aware.assignment.tags streams.session.timeout.ms
streams.task.offset.interval.ms telemetry.max.bytes
transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.max.timeout.ms
transaction.partition.verification.enable transaction.remove.expired.transaction.cleanup.interval.ms
transaction.state.log.load.buffer.size transaction.state.log.min.isr transaction.state.log.num.partitions
transaction.state.log.replication.factor transaction.state.log.segment.bytes
transaction.two.phase.commit.enable transactional.id.expiration.ms unclean.leader.election.enable
unclean.leader.election.interval.ms unstable.api.versions.enable unstable.feature.versions.enable
zookeeper.connect zookeeper.connection.timeout.ms zookeeper.max.in.flight.requests
zookeeper.session.timeout.ms zookeeper.set.acl
""".split()  # noqa: SIM905 - a literal list is three times as long
)

"""Histories of Kafka's own ZooKeeper consumer, each replayed on ours and compared after every action.

    python -m tests.designs.drafts.zookeeper_histories FILE...        .jsonl, .jsonl.xz, or folders of them
    python -m tests.designs.drafts.zookeeper_histories --keep OUT FILE...    also write them, compressed

A history is what `kafka.consumer.ZookeeperConsumerConnector` left in ZooKeeper: every node at and below
/brokers and /consumers after each action, once all was quiet (`tests/interop/java/zookeeper_consumer`).
Strategy: the nodes below /brokers, and which messages were stored, are given; what is below /consumers must
come out: the same paths, the same JSON, the same owners, the same exceptions of those that start. Rules: what
happened at once in one action has no recorded order, so several orders and delays are tried, and one of them
must give all the nodes; timestamps are not compared. Where a consumer's session has ended by itself, as
on a machine that is too busy, the history is compared up to there.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from coordwire.designs.drafts.actions import DraftPartition, Noted
from coordwire.designs.drafts.zookeeper_consumer import ZooKeeperConsumer, ZooKeeperConsumerConfig
from coordwire.designs.drafts.zookeeper_operations import CreateNode, DeleteNode, GetData, SetData
from coordwire.dialects.zookeeper import StaticTopics, WildcardTopics
from tests.designs.drafts.cluster import Cluster

SCHEDULES = 40
"""Orders and delays that are tried for one action."""

SLICE_MS, QUIET_MS, EXPIRY_MS = 100, 2_000, 3_000
_EXCEPTIONS = {"ConsumerRebalanceFailedException", "ZkNodeExistsException"}


@dataclass
class History:
    """One history: its first line, and its steps."""

    header: dict[str, Any]
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.header['kafka']}/{self.header['history']}"


class Difference(NamedTuple):
    """What differs after a step. real, ours: texts, None where there is no node."""

    history: str
    step: int
    path: str
    real: str | None
    ours: str | None


def read_histories(paths: Iterable[Path]) -> Iterator[History]:
    """The histories of files, and of the files in folders."""
    for path in paths:
        if path.is_dir():
            yield from read_histories(sorted(path.glob("*.jsonl*")))
            continue
        history = None
        with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as file:
            for text in file:
                line = json.loads(text)
                if line["kind"] == "history":
                    if history is not None:
                        yield history
                    history = History(line)
                else:
                    assert history is not None
                    history.steps.append(whole_step(line, history.steps))
        if history is not None:
            yield history


def undisturbed(history: History) -> History:
    """A history up to the first step at which the session of a consumer that lives had ended by itself."""
    ids: dict[str, str] = {}
    for number, step in enumerate(history.steps):
        action = step["action"]
        for one in action["actions"] if action["do"] == "burst" else [action]:
            if one["do"] == "start" and one["result"] in ("ok", "ConsumerRebalanceFailedException"):
                ids[one["consumer"]] = f"/consumers/{one['group']}/ids/{one['id']}"
        owners = {node["path"]: node.get("owner") for node in step["nodes"]}
        lost = step.get("sessions_lost_by_themselves") or step.get("not_quiet")
        if lost or any(owners.get(ids[name]) != name for name in step["alive"] if name in ids):
            return History(history.header, history.steps[:number])
    return history


def whole_step(line: dict[str, Any], before: list[dict[str, Any]]) -> dict[str, Any]:
    """A step with all its nodes. Kept data has those alone that have changed ("changed", "gone")."""
    if "nodes" not in line:
        nodes = {node["path"]: node for node in before[-1]["nodes"]} if before else {}
        for path in line.pop("gone"):
            del nodes[path]
        nodes |= {node["path"]: node for node in line.pop("changed")}
        line["nodes"] = [nodes[path] for path in sorted(nodes, key=lambda path: path.split("/"))]
    return line


class Replay:
    """Our consumers under a history's actions."""

    def __init__(self, history: History) -> None:
        self.header = history.header
        self.cluster = Cluster(seed=1, latency=(0, 3))
        self.admin = self.cluster.tree.open_session(1 << 60, 0)
        self.ends: Counter[DraftPartition] = Counter()
        self.leaders: dict[DraftPartition, int] = {}
        self.brokers: frozenset[int] = frozenset()
        self.unread: set[str] = set()
        self.labels: dict[int, str] = {}
        self._activity = 0

    # --- actions ---

    def carry_out(self, step: Mapping[str, Any], schedule: int) -> None:
        """Carry out an action, and let it become quiet.

        schedule: 0 for the order of the list, at once; negative: as the positive one, but what was recorded
        was not quiet yet, so only the recorded time passes (attempts that fail change nothing in ZooKeeper).
        """
        quiet, schedule = schedule >= 0, max(schedule, -schedule - 1)
        action = step["action"]
        actions = action["actions"] if action["do"] == "burst" else [action]
        random = Random(schedule)
        most = random.choice([20, 200, 1_500]) if schedule else 0
        extra = random.randrange(1_500) if schedule else 300
        delays = [random.randint(0, most) for _ in actions]
        begin = self.cluster.now
        self._set_brokers(step["nodes"])
        for delay, _, one in sorted(
            zip(delays, range(len(actions)), actions, strict=True), key=lambda x: x[:2]
        ):
            self._run(begin + delay)
            self._act(one, extra)
        if any(action["do"] == "kill" for action in actions):
            self._run(self.cluster.now + EXPIRY_MS + extra)
        if not quiet:
            self._run(self.cluster.now + step["waited_ms"])
        while quiet:
            self._run(self.cluster.now + QUIET_MS)
            if not self._is_busy():
                break

    def _act(self, action: Mapping[str, Any], extra: int) -> None:
        cluster = self.cluster
        name = action.get("consumer", "")
        match action["do"]:
            case "start":
                self._start(action)
            case "shutdown" if name in cluster.nodes:
                cluster.nodes[name].machine.shut_down()
                cluster.drain(name)
                self._run(cluster.now + 60)
                cluster.crash(name)
            case "kill" if name in cluster.nodes:
                session = cluster.nodes[name].session
                cluster.crash(name)
                cluster.tree.renew(session, cluster.now + extra)
            case "expire" if name in cluster.nodes:
                cluster.tree.close_session(cluster.nodes[name].session)
                cluster.deliver_events()
                cluster.reach_zookeeper(cluster.nodes[name])
                self.labels[cluster.nodes[name].session] = name
            case "produce":
                for number, count in action["messages"].items():
                    self.ends[DraftPartition(action["topic"], number)] += count

    def _start(self, action: Mapping[str, Any]) -> None:
        header, name = self.header, action["consumer"]
        count = (
            StaticTopics(action["topics"]) if "topics" in action
            else WildcardTopics(
                action["regex"], action["streams"], blacklist=action["filter"] == "black_list"
            )
        )  # fmt: skip
        config = ZooKeeperConsumerConfig(
            group_id=action["group"], consumer_id=action["id"], topic_count=count.build(),
            rebalance_max_retries=header["rebalance_max_retries"],
            rebalance_backoff_ms=header["rebalance_backoff_ms"], auto_commit_enable=header["auto_commit"],
            auto_commit_interval_ms=header["auto_commit_interval_ms"],
            partition_assignment_strategy=header["strategy"], kafka_version=header["kafka"],
        )  # fmt: skip
        self.cluster.add(name, ZooKeeperConsumer(config), session_ms=header["session_timeout_ms"])
        self.labels[self.cluster.nodes[name].session] = name
        if action["result"] != "ok":
            self.unread.add(name)  # the driver got no streams from it

    # --- time ---

    def _run(self, until: int) -> None:
        """Let time pass; what is fetched is consumed."""
        while self.cluster.now < until:
            self.cluster.run(min(SLICE_MS, until - self.cluster.now))
            for name, node in list(self.cluster.nodes.items()):
                self._consume(name, node.machine)
            for name in list(self.cluster.nodes):
                if any(note.name == name for note in self.cluster.noted("ZkNodeExistsException")):
                    self.cluster.nodes[name].machine.shut_down()
                    self.cluster.drain(name)
                    self.cluster.crash(name)

    def _consume(self, name: str, consumer: ZooKeeperConsumer) -> None:
        for partition, offset in list(consumer.owned.items()) if consumer.fetching else ():
            if self.leaders.get(partition) in self.brokers:
                begin = max(offset, 0)
                end = begin if name in self.unread else max(begin, self.ends[partition])
                if end != offset:
                    consumer.consumed(partition, end)

    def _is_busy(self) -> bool:
        before = self._activity
        self._activity = self.cluster.tree._zxid + sum(
            node.machine.rebalances for node in self.cluster.nodes.values()
        )
        return self._activity != before

    # --- nodes ---

    def _set_brokers(self, nodes: Iterable[Mapping[str, Any]]) -> None:
        """Give our ZooKeeper the nodes below /brokers that the real one has now."""
        tree, now = self.cluster.tree, self.cluster.now
        given = {"/consumers": b""}
        self.leaders = {}
        for node in nodes:
            path, data = node["path"], node["data"]
            if path.startswith("/brokers"):
                given[path] = (data or "").encode()
                parts = path.split("/")
                if parts[-1] == "state":
                    self.leaders[DraftPartition(parts[3], parts[5])] = json.loads(data)["leader"]
        self.brokers = frozenset(int(path[13:]) for path in given if path.startswith("/brokers/ids/"))
        paths = [path for path in tree.paths() if path.startswith("/brokers/")]
        for path in sorted(set(paths) - set(given), reverse=True):
            tree.apply(self.admin, DeleteNode(path), now)
        for path, data in given.items():
            outcome = tree.apply(self.admin, GetData(path), now)
            if not outcome.ok:
                tree.apply(self.admin, CreateNode(path, data), now)
            elif outcome.data != data:
                tree.apply(self.admin, SetData(path, data), now)
        self.cluster.deliver_events()

    def differences(self, history: str, step: Mapping[str, Any]) -> Iterator[Difference]:
        """What differs after a step."""
        tree = self.cluster.tree
        real = {
            node["path"]: _text(node["path"], node["data"], node.get("owner"))
            for node in step["nodes"]
            if node["path"].startswith("/consumers/")
        }
        ours = {}
        for path in tree.paths():
            if path.startswith("/consumers/"):
                outcome = tree.apply(self.admin, GetData(path), self.cluster.now)
                assert outcome.stat is not None
                owner = self.labels.get(outcome.stat.ephemeral_owner)
                ours[path] = _text(path, outcome.data.decode() or None, owner)
        for path in sorted(real.keys() | ours.keys()):
            if real.get(path) != ours.get(path):
                yield Difference(history, step["step"], path, real.get(path), ours.get(path))
        action = step["action"]
        for one in action["actions"] if action["do"] == "burst" else [action]:
            if one["do"] == "start":
                result = next(
                    (note.what.name for note in self.cluster.history
                     if note.name == one["consumer"] and isinstance(note.what, Noted)
                     and note.what.name in _EXCEPTIONS and self._is_first(note, one)), "ok",
                )  # fmt: skip
                if result != one["result"]:
                    yield Difference(history, step["step"], one["consumer"], one["result"], result)

    def _is_first(self, note: Any, action: Mapping[str, Any]) -> bool:
        """Whether an exception is that of a consumer's first rebalance: no attempt has succeeded before."""
        return not any(
            entry.name == note.name and not isinstance(entry.what, Noted) and entry.time < note.time
            for entry in self.cluster.history
        )


def _text(path: str, data: str | None, owner: str | None) -> str:
    """A node in a form that can be compared: without its time; a registration in the order of its keys."""
    if data and data.startswith("{"):
        form = json.loads(data)
        form.pop("timestamp", None)
        if len(form.get("subscription", ())) > 4:  # in the order of a hash map
            form["subscription"] = dict(sorted(form["subscription"].items()))
        data = json.dumps(form)
    return f"{data or ''} {owner or ''}".strip()


@dataclass(frozen=True)
class Verdict:
    """A history's comparison. schedules: of each step, which order of events gave its nodes."""

    history: History
    differences: tuple[Difference, ...]
    different_steps: frozenset[int]
    schedules: tuple[int, ...]


def replay(history: History, schedules: Iterable[int] = (), *, attempts: int = SCHEDULES) -> Verdict:
    """Replay a history. schedules: those that are known to be right for the first steps."""
    known = list(schedules)
    while len(known) < len(history.steps):
        known += _as_listed(history, known)
        number = len(known)
        if number == len(history.steps):
            break
        for before in _variants(known):
            schedule = next(
                (one for one in range(attempts) if not any(_compare(history, [*before, one])[number - 1 :])),
                None,
            )
            if schedule is not None:
                known = [*before, schedule]
                break
        else:
            known.append(0)
    result = _compare(history, known)
    return Verdict(
        history, tuple(difference for differences in result for difference in differences),
        frozenset(number for number, differences in enumerate(result) if differences), tuple(known),
    )  # fmt: skip


def _as_listed(history: History, known: list[int]) -> list[int]:
    """The schedules of the next steps, as long as the order of the list is right."""
    run = Replay(history)
    for number, step in enumerate(history.steps):
        run.carry_out(step, known[number] if number < len(known) else 0)
        if number >= len(known) and any(run.differences(history.name, step)):
            return [0] * (number - len(known))
    return [0] * (len(history.steps) - len(known))


def _variants(known: list[int]) -> Iterator[list[int]]:
    """The schedules until now, and those in which the step before the next was not quiet yet."""
    yield known
    if known:
        yield [*known[:-1], -known[-1] - 1]


def _compare(history: History, schedules: list[int]) -> list[list[Difference]]:
    run = Replay(history)
    results = []
    for step, schedule in zip(history.steps, schedules, strict=False):
        run.carry_out(step, schedule)
        results.append(list(run.differences(history.name, step)))
    return results


def kept_lines(verdict: Verdict) -> Iterator[str]:
    """A history as test data: with the schedules that are right, and of each step the nodes that changed."""
    yield json.dumps({**verdict.history.header, "schedules": verdict.schedules}, separators=(",", ":"))
    before: dict[str, Any] = {}
    for step in verdict.history.steps:
        nodes = {node["path"]: {key: node[key] for key in _KEPT if key in node} for node in step["nodes"]}
        line = {
            "kind": "step", "step": step["step"], "action": step["action"], "waited_ms": step["waited_ms"],
            "alive": {name: {} for name in step["alive"]},
            "changed": [node for path, node in nodes.items() if before.get(path) != node],
            "gone": [path for path in before if path not in nodes],
        }  # fmt: skip
        yield json.dumps(line, separators=(",", ":"))
        before = nodes


_KEPT = ("path", "data", "owner")


def main(arguments: list[str]) -> int:
    """Print the differences, and how much was alike; 1 if there is a difference."""
    keep = arguments[1] if arguments[:1] == ["--keep"] else None
    histories = recorded = steps = different = 0
    lines: list[str] = []
    for history in read_histories(map(Path, arguments[2 if keep else 0 :])):
        recorded += len(history.steps)
        history = undisturbed(history) if "schedules" not in history.header else history
        verdict = replay(history, history.header.get("schedules", ()))
        lines += kept_lines(verdict) if keep else ()
        histories += 1
        steps += len(history.steps)
        different += len(verdict.different_steps)
        for difference in verdict.differences:
            print(
                f"{difference.history} step {difference.step} {difference.path}: real {difference.real!r}, "
                f"ours {difference.ours!r}",
                flush=True,
            )
    print(f"{histories} histories, {steps} quiet points of {recorded}, {steps - different} alike")
    if keep:
        with lzma.open(keep, "wt", preset=9) as file:
            file.writelines(f"{line}\n" for line in lines)
    return int(different > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

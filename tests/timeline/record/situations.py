"""The situations that are recorded: what is done to whom, in which order.

Strategy: one function a recording, with short pauses between two actions, so that the coordinator's log says
which rebalance is whose. Rules: a group's name says its recording; the timeouts are 1 to 3 s; topics that are
changed belong to their situation.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.timeline.record.stage import Stage

__all__ = ["SITUATIONS"]

CLASSIC = ("group.protocol=classic", "session.timeout.ms=2000", "heartbeat.interval.ms=400")
RANGE = (*CLASSIC, "partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor")
COOPERATIVE = (
    *CLASSIC,
    "partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
)
NEW = ("group.protocol=consumer",)
CURIOUS = ("metadata.max.age.ms=1000",)
STATIC = "group.instance.id="


def classic_causes(stage: Stage) -> None:
    """Whatever makes the members of an eager group join again."""
    stage.operate("create classic-topic 2")
    group = "classic-causes"
    stage.consumer("a", group, "orders,classic-topic", *RANGE, *CURIOUS)
    stage.wait(1.5)
    stage.consumer("b", group, "orders", *RANGE)
    stage.wait(1.5)
    stage.operate("produce orders 20")
    stage.say("b", "subscribe orders,payments")
    stage.wait(2)
    stage.operate("partitions classic-topic 4")
    stage.wait(3)
    stage.say("b", "rejoin")
    stage.wait(2)
    stage.consumer("c", group, "orders", *RANGE)
    stage.wait(1.5)
    stage.kill("b")
    stage.wait(4)
    stage.close("c")
    stage.wait(1.5)
    stage.close("a")
    stage.wait(0.5)


def classic_freezes(stage: Stage) -> None:
    """Members that are frozen, for less and for more than their sessions, and one that polls too seldom."""
    group = "classic-freezes"
    stage.consumer("a", group, "orders", *RANGE)
    stage.consumer("b", group, "orders", *RANGE)
    stage.wait(1.5)
    stage.freeze("b")
    stage.wait(1)
    stage.thaw("b")
    stage.wait(2)
    stage.freeze("b")
    stage.wait(4)
    stage.thaw("b")
    stage.wait(3)
    stage.consumer("slow", group, "orders", *RANGE, "max.poll.interval.ms=2500")
    stage.wait(1.5)
    stage.say("slow", "pause 4500")
    stage.wait(7)
    stage.freeze("a")  # perhaps the leader
    stage.wait(4)
    stage.thaw("a")
    stage.wait(3)
    stage.close("a", "b", "slow")


def classic_static(stage: Stage) -> None:
    """Static members: killed and replaced, closed without leaving, fenced by their doubles, removed."""
    group = "classic-static"
    stage.consumer("a", group, "orders", *RANGE)
    stage.consumer("s1", group, "orders", *RANGE, STATIC + "till-1", "session.timeout.ms=9000")
    stage.wait(1.5)
    stage.kill("s1")
    stage.wait(0.3)
    stage.consumer("s1b", group, "orders", *RANGE, STATIC + "till-1", "session.timeout.ms=9000")
    stage.wait(1.5)
    stage.consumer("s1c", group, "orders", *RANGE, STATIC + "till-1", "session.timeout.ms=9000")
    stage.wait(2)
    stage.consumer("s2", group, "orders,payments", *RANGE, STATIC + "till-2", "session.timeout.ms=2500")
    stage.wait(1.5)
    stage.close("s2")
    stage.wait(4)
    stage.close("s1c")
    stage.wait(0.5)
    stage.operate("remove classic-static till-1")
    stage.wait(2)
    stage.consumer("s3", group, "orders", *RANGE, STATIC + "till-3")
    stage.wait(1.5)
    stage.operate("remove classic-static till-3")
    stage.wait(2.5)
    stage.close("a")


def classic_cooperative(stage: Stage) -> None:
    """Incremental rebalances: partitions are revoked before another gets them."""
    group = "classic-cooperative"
    stage.consumer("a", group, "orders,payments", *COOPERATIVE)
    stage.wait(1)
    stage.consumer("b", group, "orders,payments", *COOPERATIVE)
    stage.wait(2)
    stage.consumer("c", group, "orders,payments", *COOPERATIVE)
    stage.wait(2)
    stage.kill("b")
    stage.wait(4)
    stage.say("c", "subscribe payments")
    stage.wait(2)
    stage.say("c", "rejoin")
    stage.wait(2)
    stage.freeze("c")
    stage.wait(3.5)
    stage.thaw("c")
    stage.wait(3)
    stage.close("a")
    stage.wait(1)
    stage.close("c")


def classic_restart(stage: Stage) -> None:
    """The coordinator goes and comes again, while one of two dies."""
    group = "classic-restart"
    patient = ("session.timeout.ms=6000", "reconnect.backoff.max.ms=300")
    stage.consumer("a", group, "orders", *RANGE, *patient)
    stage.consumer("b", group, "orders", *RANGE, *patient)
    stage.consumer("c", group, "orders", *RANGE, *patient)
    stage.wait(1.5)
    stage.restart()
    stage.wait(2)
    stage.consumer("d", group, "orders", *RANGE, *patient)
    stage.wait(2)
    stage.kill("c")
    stage.restart()
    stage.wait(9)
    stage.close("a", "b", "d")


def classic_refused(stage: Stage) -> None:
    """JoinGroups that are refused: another protocol, a full group, a forgotten member."""
    group = "classic-refused"
    stage.consumer("a", group, "orders", *RANGE)
    odd = ("session.timeout.ms=2000", "heartbeat.interval.ms=400")
    robin = ("partition.assignment.strategy=roundrobin", *odd)
    stage.python_client("confluent", "odd", group, "orders", *robin, wait=False)
    stage.wait(2)
    stage.kill("odd")
    for name in ("b", "c", "d"):
        stage.consumer(name, group, "orders", *RANGE)
    stage.wait(1)
    stage.python_client("confluent", "e", group, "orders", *odd, wait=False)  # the group holds four
    stage.wait(2)
    stage.kill("e")
    stage.freeze("d")
    stage.wait(3)
    stage.operate("remove classic-refused")  # all of them, while one is frozen
    stage.wait(1)
    stage.thaw("d")
    stage.wait(3)
    stage.close("a", "b", "c", "d")


def classic_python(stage: Stage) -> None:
    """Python clients of three kinds in one group each."""
    for library, version in (("confluent", "2.16"), ("kpy", "3"), ("aio", "0.14")):
        group = f"classic-{library}-{version}"
        settings = ("session_timeout_ms=2000", "heartbeat_interval_ms=400")
        if library == "confluent":
            settings = ("session.timeout.ms=2000", "heartbeat.interval.ms=400")
        one, two, three = f"{library}-1", f"{library}-2", f"{library}-3"
        stage.python_client(library, one, group, "orders", *settings)
        stage.python_client(library, two, group, "orders", *settings)
        stage.wait(1.5)
        stage.kill(one)
        stage.wait(4)
        stage.python_client(library, three, group, "orders,payments", *settings)
        stage.wait(1.5)
        stage.freeze(two)
        stage.wait(3.5)
        stage.thaw(two)
        stage.wait(3)
        stage.close(three)
        stage.wait(1)
        stage.close(two)


def classic_franz(stage: Stage) -> None:
    """franz-go's consumers, which move partitions one by one: frozen twice, killed, closed."""
    group = "classic-franz"
    stage.go_client("a", group, "orders")
    stage.go_client("b", group, "orders")
    stage.wait(1.5)
    stage.go_client("c", group, "orders,payments")
    stage.wait(2)
    stage.freeze("a")
    stage.wait(1)
    stage.thaw("a")
    stage.wait(2)
    stage.kill("a")
    stage.wait(4)
    stage.freeze("b")
    stage.wait(4)
    stage.thaw("b")
    stage.wait(3)
    stage.close("c")
    stage.wait(2)
    stage.go_client("d", group, "orders")
    stage.wait(2)
    stage.close("d", "b")
    stage.wait(0.5)


def consumer_causes(stage: Stage) -> None:
    """Whatever changes the assignment of a KIP-848 group."""
    stage.operate("create causes-topic 2")
    group = "consumer-causes"
    stage.consumer("a", group, "orders,causes-topic", *NEW)
    stage.wait(2)
    stage.consumer("b", group, "orders", *NEW)
    stage.wait(2)
    stage.operate("produce orders 20")
    stage.say("b", "subscribe orders,payments")
    stage.wait(2.5)
    stage.operate("partitions causes-topic 4")
    stage.wait(3)
    stage.consumer("c", group, "re2:causes-.*", *NEW, "group.remote.assignor=range")
    stage.wait(2.5)
    stage.operate("create causes-later 1")
    stage.wait(12)  # patterns are looked at again every 10 s
    stage.kill("b")
    stage.wait(5)
    stage.say("c", "pattern causes-t.*|pay.*")
    stage.wait(2.5)
    stage.close("c")
    stage.wait(2)
    stage.close("a")
    stage.wait(0.5)


def consumer_deleted(stage: Stage) -> None:
    """A topic is deleted that members of a KIP-848 group consume; one of them commits to it for ever."""
    stage.operate("create deleted-topic 2")
    group = "consumer-deleted"
    stage.consumer("a", group, "orders,deleted-topic", *NEW)
    stage.consumer("b", group, "orders,deleted-topic", *NEW)
    stage.wait(2)
    stage.operate("delete deleted-topic")
    stage.wait(4)
    stage.kill("b")
    stage.wait(4)
    stage.kill("a")
    stage.wait(4)
    stage.operate("produce payments 1")


def consumer_freezes(stage: Stage) -> None:
    """Frozen members of a KIP-848 group, short and long, the last of them alone; then all die."""
    group = "consumer-freezes"
    stage.consumer("a", group, "orders", *NEW)
    stage.consumer("b", group, "orders", *NEW)
    stage.wait(1.5)
    stage.freeze("b")
    stage.wait(1.5)
    stage.thaw("b")
    stage.wait(2)
    stage.freeze("b")
    stage.wait(5)
    stage.thaw("b")
    stage.wait(3)
    stage.freeze("a")
    stage.wait(5)
    stage.consumer("c", group, "orders", *NEW)
    stage.wait(2)
    stage.thaw("a")
    stage.wait(3)
    stage.kill("a", "b")
    stage.wait(5)
    stage.kill("c")
    stage.wait(4.5)
    stage.operate("produce payments 1")  # the capture goes on


def consumer_static(stage: Stage) -> None:
    """Static members of a KIP-848 group: killed and replaced, doubled, closed for now, removed."""
    group = "consumer-static"
    stage.consumer("a", group, "orders", *NEW)
    stage.consumer("s1", group, "orders", *NEW, STATIC + "till-1")
    stage.wait(2)
    stage.kill("s1")
    stage.wait(0.2)
    stage.python_client("confluent", "s1b", group, "orders", *NEW, STATIC + "till-1", wait=False)
    stage.wait(1)  # it is refused: the first one's session is not over
    stage.kill("s1b")
    stage.wait(4)
    stage.python_client("confluent", "s1c", group, "orders", *NEW, STATIC + "till-1")
    stage.wait(2)
    stage.close("s1c")
    stage.wait(0.5)
    stage.python_client("confluent", "s1d", group, "orders,payments", *NEW, STATIC + "till-1")
    stage.wait(2)
    stage.close("s1d")
    stage.wait(5)
    stage.consumer("s2", group, "orders", *NEW, STATIC + "till-2")
    stage.wait(2)
    stage.operate("remove consumer-static till-2")
    stage.wait(4)
    stage.close("a")


def consumer_restart(stage: Stage) -> None:
    """The coordinator of a KIP-848 group goes and comes again, while one of three dies."""
    group = "consumer-restart"
    quick = ("reconnect.backoff.max.ms=300",)
    stage.consumer("a", group, "orders", *NEW, *quick)
    stage.consumer("b", group, "orders", *NEW, *quick)
    stage.wait(2)
    stage.restart()
    stage.wait(3)
    stage.consumer("c", group, "orders", *NEW, *quick)
    stage.wait(2)
    stage.kill("b")
    stage.restart()
    stage.wait(6)
    stage.close("a", "c")


def consumer_confluent(stage: Stage) -> None:
    """librdkafka in a KIP-848 group whose session timeout an operator sets."""
    group = "consumer-confluent"
    stage.operate("configure consumer-confluent consumer.session.timeout.ms=1500")
    stage.operate("configure consumer-confluent consumer.heartbeat.interval.ms=300")
    for name in ("a", "b", "c"):
        stage.python_client("confluent", name, group, "orders,payments", "group.protocol=consumer")
        stage.wait(1)
    stage.kill("b")
    stage.wait(3)
    stage.freeze("c")
    stage.wait(3)
    stage.thaw("c")
    stage.wait(3)
    stage.kill("a", "c")
    stage.wait(3)


def share_causes(stage: Stage) -> None:
    """Whatever changes the assignment of a share group, with deaths and freezes."""
    stage.operate("create share-topic 2")
    group = "share-causes"
    stage.share("a", group, "orders")
    stage.wait(3)
    stage.share("b", group, "orders,share-topic")
    stage.wait(3)
    stage.operate("partitions share-topic 3")
    stage.wait(3)
    stage.say("a", "subscribe orders,payments")
    stage.wait(3)
    stage.freeze("b")
    stage.wait(5)
    stage.thaw("b")
    stage.wait(3)
    stage.share("c", group, "orders")
    stage.wait(3)
    stage.kill("b")
    stage.wait(5)
    stage.close("c")
    stage.wait(2)
    stage.kill("a")
    stage.wait(4)
    stage.operate("produce payments 1")


def share_restart(stage: Stage) -> None:
    """The coordinator of a share group goes and comes again."""
    group = "share-restart"
    stage.share("a", group, "orders")
    stage.share("b", group, "orders")
    stage.wait(3)
    stage.restart()
    stage.wait(3)
    stage.kill("b")
    stage.wait(5)
    stage.close("a")


def streams_causes(stage: Stage) -> None:
    """A streams group: instances that join, freeze, die and leave, a thread more and one less."""
    stage.operate("create streams-topic 3")
    stage.operate("produce streams-topic 12")
    group = "streams-causes"
    stage.stream("a", group, "streams-topic")
    stage.wait(3)
    stage.stream("b", group, "streams-topic")
    stage.wait(3)
    stage.say("a", "add")
    stage.wait(3)
    stage.say("a", "remove")
    stage.wait(3)
    stage.freeze("b")
    stage.wait(5)
    stage.thaw("b")
    stage.wait(4)
    stage.stream("c", group, "streams-topic")
    stage.wait(3)
    stage.kill("b")
    stage.wait(6)
    stage.close("c")
    stage.wait(4)
    stage.close("a")
    stage.wait(4)


def streams_restart(stage: Stage) -> None:
    """The coordinator of a streams group goes and comes again, and an instance dies meanwhile."""
    stage.operate("create streams-other 2")
    group = "streams-restart"
    stage.stream("a", group, "streams-other")
    stage.stream("b", group, "streams-other")
    stage.wait(3)
    stage.restart()
    stage.wait(4)
    stage.kill("b")
    stage.wait(6)
    stage.kill("a")
    stage.wait(4)
    stage.operate("produce payments 1")


def streams_standby(stage: Stage) -> None:
    """A streams group whose tasks have a standby each: two instances, one of which dies, and a third."""
    stage.operate("create streams-spare 4")
    group = "streams-standby"
    stage.operate(f"configure {group} streams.num.standby.replicas=1")
    stage.stream("a", group, "streams-spare")
    stage.stream("b", group, "streams-spare")
    stage.wait(6)
    stage.kill("b")
    stage.wait(9)
    stage.stream("c", group, "streams-spare")
    stage.wait(6)
    stage.close("c")
    stage.wait(4)


def classic_raw(stage: Stage) -> None:
    """A stale member id, a LeaveGroup behind a JoinGroup that waits, a wrong generation, a sudden silence."""
    group = "classic-raw"
    stage.consumer("a", group, "orders", *RANGE)
    stage.wait(1.5)
    with stage.raw("r", group) as raw:
        stage.note("JoinGroup with a member id of long ago", "r")
        raw.ask(raw.joining("r-of-long-ago"), 9)
        stage.wait(1.5)
        raw.member_id = raw.ask(raw.joining(""), 9).member_id
        stage.note("JoinGroup and LeaveGroup at once", "r")
        raw.send(raw.joining(raw.member_id), 9)
        raw.send(raw.leaving(), 5)
        raw.receive()
        raw.receive()
        stage.wait(2)
        stage.note("joins", "r")
        raw.join()
        for _ in range(3):
            raw.heartbeat(raw.generation)
            stage.wait(0.4)
        stage.note("Heartbeat of a generation that never was", "r")
        raw.heartbeat(raw.generation + 7)
        raw.heartbeat(raw.generation)
        stage.note("is silent", "r")
        stage.wait(4)
    stage.close("a")


def consumer_raw(stage: Stage) -> None:
    """A KIP-848 member with a wrong epoch, and one that doesn't give up what it should."""
    group = "consumer-raw"
    stage.consumer("a", group, "orders", *NEW)
    stage.wait(2)
    with stage.raw_consumer("r", group, "Yx6vT3ZTQ-mH2sJ0dN1qbw") as raw:
        stage.note("joins", "r")
        raw.join()
        with raw.beating():
            stage.wait(3)
        stage.note("heartbeat of an epoch that never was", "r")
        raw.heartbeat(raw.epoch + 7)
        raw.join()
        with raw.beating():
            stage.wait(2)
        raw.keeps = True
        stage.note("keeps what it has", "r")
        with raw.beating():
            stage.python_client("confluent", "c", group, "orders", *NEW)
            stage.python_client("confluent", "d", group, "orders", *NEW, wait=False)  # one of r's is for it
            stage.wait(4)
        stage.wait(1)
    stage.close("a", "c", "d")


def conversions(stage: Stage) -> None:
    """A classic group becomes a KIP-848 group member by member, and a classic one again."""
    group = "conversions"
    stage.consumer("old-1", group, "orders", *RANGE)
    stage.consumer("old-2", group, "orders", *RANGE)
    stage.wait(1.5)
    stage.consumer("new-1", group, "orders", *NEW)
    stage.wait(3)
    stage.kill("old-2")
    stage.wait(4)
    stage.consumer("new-2", group, "orders", *NEW)
    stage.wait(2)
    stage.close("old-1")
    stage.wait(3)
    stage.consumer("old-3", group, "orders", *RANGE)
    stage.wait(3)
    stage.freeze("new-2")
    stage.wait(5)
    stage.thaw("new-2")
    stage.wait(3)
    stage.close("new-2")
    stage.wait(2)
    stage.kill("new-1")
    stage.wait(5)
    stage.consumer("old-4", group, "orders", *RANGE)
    stage.wait(3)
    stage.close("old-3", "old-4")
    stage.wait(0.5)


SITUATIONS: dict[str, Callable[[Stage], None]] = {
    one.__name__.replace("_", "-"): one
    for one in (
        classic_causes, classic_freezes, classic_static, classic_cooperative, classic_restart,
        classic_refused, classic_python, classic_franz, classic_raw, consumer_causes, consumer_deleted,
        consumer_freezes, consumer_static, consumer_restart, consumer_confluent, consumer_raw, share_causes,
        share_restart,
        streams_causes, streams_restart, streams_standby, conversions,
    )
}  # fmt: skip

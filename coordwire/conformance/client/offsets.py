"""Cases: committed offsets: what a client does where the coordinator can't fetch or commit them."""

from __future__ import annotations

from coordwire.conformance.client.recovery import ERRORS, MOVED, gives_up
from coordwire.conformance.client.stage import ClientPlay, ClientStage, case

KIP_447 = "KIP-447"


def _fetches_again(error: str) -> ClientPlay:
    async def play(stage: ClientStage) -> None:
        stage.write("one")
        stage.succeeded(await stage.consume(1, commit=True), "one")
        stage.equal("the committed offset", stage.committed(), 1)
        stage.fault(f"OffsetFetch error={error}")
        stage.write("two")
        report = await stage.consume(1)
        refused = stage.first("OffsetFetch", error)
        if error in MOVED:
            stage.first("FindCoordinator", after=refused)
        stage.first("OffsetFetch", after=refused)
        stage.succeeded(report, "two")

    return play


def _commits_again(error: str) -> ClientPlay:
    async def play(stage: ClientStage) -> None:
        stage.fault(f"OffsetCommit error={error}")
        stage.write("one")
        report = await stage.consume(1, commit=True)
        refused = stage.first("OffsetCommit", error)
        if error in MOVED:
            stage.first("FindCoordinator", after=refused)
        stage.first("OffsetCommit", after=refused)
        stage.succeeded(report, "one")
        stage.equal("the committed offset", stage.committed(), 1)

    return play


def _commits_no_more(error: str) -> ClientPlay:
    async def play(stage: ClientStage) -> None:
        stage.fault(f"OffsetCommit error={error}")
        stage.write("one")
        await stage.consume(1, commit=True)
        refused = stage.first("OffsetCommit", error)
        generation = refused.request.member_id, refused.request.generation_id_or_member_epoch
        for exchange in stage.sent("OffsetCommit", refused):
            later = exchange.request.member_id, exchange.request.generation_id_or_member_epoch
            stage.true(later != generation, "the commit is sent again for the same generation")

    return play


RETRIED_FETCHES = (*MOVED, "COORDINATOR_LOAD_IN_PROGRESS", "UNSTABLE_OFFSET_COMMIT")
RETRIED_COMMITS = (
    *MOVED, "COORDINATOR_LOAD_IN_PROGRESS", "REQUEST_TIMED_OUT", "UNKNOWN_TOPIC_OR_PARTITION",
)  # fmt: skip
RETRIED_BY_ALL = (*MOVED, "COORDINATOR_LOAD_IN_PROGRESS")
"""Errors that say that the coordinator will take the commit. After the others Kafka's client commits again
until the application's time is over; one that reports them at once loses nothing."""

FATAL_FETCHES = ("GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED")
FATAL_COMMITS = (
    "GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "OFFSET_METADATA_TOO_LARGE",
    "INVALID_COMMIT_OFFSET_SIZE",
)  # fmt: skip
LOST_GENERATIONS = ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS")


def _repeated(api: str, error: str) -> str:
    return f"FindCoordinator, then {api} again" if error in MOVED else f"{api} again"


for number, error in enumerate(RETRIED_FETCHES, 1):
    case(
        f"offsets/fetch/{number}",
        KIP_447 if error == "UNSTABLE_OFFSET_COMMIT" else ERRORS,
        f"a group that has committed restarts: {error}, once",
        f"{_repeated('OffsetFetch', error)}, and the offset from that",
        rule="A client asks again for committed offsets after a retriable error, and begins nowhere else.",
    )(_fetches_again(error))

for number, error in enumerate(FATAL_FETCHES, len(RETRIED_FETCHES) + 1):
    case(
        f"offsets/fetch/{number}",
        ERRORS,
        f"{error} to each OffsetFetch",
        "an error for the application",
        rule="Where its offsets may not be read a client says so, and does not begin elsewhere.",
    )(gives_up("OffsetFetch", error))

for number, error in enumerate(RETRIED_COMMITS, 1):
    case(
        f"offsets/commit/{number}",
        ERRORS,
        f"{error}, once, to a commit that the client awaits",
        _repeated("OffsetCommit", error),
        rule="A commit that is awaited is sent again after a retriable error.",
        recommended=error not in RETRIED_BY_ALL,
    )(_commits_again(error))

for number, error in enumerate(FATAL_COMMITS, len(RETRIED_COMMITS) + 1):
    case(
        f"offsets/commit/{number}",
        ERRORS,
        f"{error} to each commit",
        "an error for the application, and no commit more",
        rule="A commit that is refused for good is reported, and not sent again.",
    )(gives_up("OffsetCommit", error))

for number, error in enumerate(LOST_GENERATIONS, len(RETRIED_COMMITS) + len(FATAL_COMMITS) + 1):
    case(
        f"offsets/commit/{number}",
        "KIP-211" if error == "UNKNOWN_MEMBER_ID" else ERRORS,
        f"{error} to a commit",
        "no commit for this generation again",
        rule="A member that has lost its generation commits nothing more in it.",
    )(_commits_no_more(error))

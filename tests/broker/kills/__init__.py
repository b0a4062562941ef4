"""`python -m tests.broker.kills [COUNT] [--seed N]`: a broker on disk is killed while clients write.

Strategy: `coordwire serve --data` in a process of its own gets SIGKILL after a random time, again and again;
the clients go on with the next process on the same folder and port. They are an idempotent producer, a
transactional one whose offsets are in its transactions, a committer, a classic group's member and one of a
consumer group. They repeat what has no answer, as real clients do. After each start the folder is verified.

Rules: what was acknowledged is there, at its offset, once; what was not is there once or not at all; a
transaction is read by readers of committed records if it was committed, and its offset holds; a commit never
goes back below the last that was acknowledged; members go on with their ids and epochs. Exit status 1 if one
of these does not hold.
"""

from tests.broker.kills.killing import run
from tests.broker.kills.repeating_link import Wrong

__all__ = ["Wrong", "run"]

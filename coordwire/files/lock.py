"""Locks on open files, which the kernel takes away from a process that dies.

Rules: a lock is advisory and belongs to the open file, so that it ends when that is closed. A file system or
a system without flock is an answer, not an error. A broker's data folder is not locked by this: Kafka's own
locks are those of fcntl's lockf, and both must see each other.
"""

from __future__ import annotations

__all__ = ["lock"]

import errno

_UNSUPPORTED = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL)


def lock(descriptor: int, operation: int | None = None) -> bool | None:
    """Lock an open file until it is closed: whether it is locked; None where there is no flock.

    operation: as `fcntl.flock` takes it; None: alone, and False at once where another has it. Raises
    `OSError`.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if operation is None else operation)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return None
        raise
    return True

"""Locks on open files, which the kernel takes away from a process that dies.

Rules: a lock is advisory and belongs to the open file, so that it ends when that is closed. A file system or
a system without flock is an answer, not an error. A broker's data folder has lockf's lock instead: Java's
locks are lockf's on Linux, and do not see those of flock. The broker and Kafka's own class for this lock
refuse a folder that the other has (tests/interop/test_folder_lock.py).
"""

from __future__ import annotations

import errno

_UNSUPPORTED = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL)


def lock(descriptor: int, operation: int | None = None) -> bool | None:
    """Lock an open file until it is closed; return whether it is locked, None where there is no flock.

    operation: as `fcntl.flock` takes it. None: an exclusive lock, without waiting: False where another
    open file has the lock. Raises `OSError`.
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

"""ducktape's cluster on one machine, without SSH: each node has processes, /mnt, /opt and /tmp of its own.

Strategy: Linux namespaces of processes and mounts, which root may make; a shell is the first process of each
and outlives the commands that are run in it. Files are reached through /proc/PID/root. Rules: a node's
namespaces are made when it is first used and end, with all its processes, when it is freed; the network is
the machine's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from ducktape.cluster.cluster import ClusterNode
from ducktape.cluster.linux_remoteaccount import LinuxRemoteAccount
from ducktape.cluster.localhost import LocalhostCluster
from ducktape.cluster.node_container import NodeContainer
from ducktape.cluster.remoteaccount import RemoteAccountSSHConfig, RemoteCommandError, SSHOutputIter

_NODES = 40
_INIT = (
    "mount -t tmpfs none /opt && mkdir /opt/kafka-dev && "
    'mount --rbind "$COORDWIRE_KAFKA_HOME" /opt/kafka-dev && '
    "mount -t tmpfs none /mnt && mount -t tmpfs none /tmp && echo ready; cat > /dev/null; exit"
)
"""The node's first process: it ends with its input, that is with ducktape, and until then takes the status of
all processes that end, so that none stays as a zombie."""

_SUDO = 'sudo() { "$@"; }; '
"""Commands are root's already."""


class NodeFiles:
    """The calls of an SFTP client that ducktape makes, on a node's files."""

    def __init__(self, account: NodeAccount) -> None:
        self._account = account

    def _at(self, path: str) -> Path:
        return Path(f"/proc/{self._account.entered()}/root") / path.lstrip("/")

    def open(self, path: str, mode: str = "r") -> IO[Any]:
        return self._at(path).open(mode)

    def get(self, source: str, target: str) -> None:
        shutil.copy(self._at(source), target)

    def put(self, source: str, target: str) -> None:
        shutil.copy(source, self._at(target))

    def listdir(self, path: str) -> list[str]:
        return os.listdir(self._at(path))

    def stat(self, path: str) -> os.stat_result:
        return self._at(path).stat()

    def lstat(self, path: str) -> os.stat_result:
        return self._at(path).lstat()

    def mkdir(self, path: str, mode: int = 0o755) -> None:
        self._at(path).mkdir(mode)


class NodeAccount(LinuxRemoteAccount):  # type: ignore[misc]
    """A node's namespaces, with the methods of an account that is reached by SSH."""

    def __init__(self, name: str) -> None:
        super().__init__(RemoteAccountSSHConfig(name, hostname="localhost"))
        self._init: subprocess.Popen[str] | None = None
        self._first = 0
        self._files = NodeFiles(self)

    def entered(self) -> int:
        """The first process of the node's namespaces, which are made where there are none."""
        if self._init is None:
            command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
            self._init = subprocess.Popen(
                [*command, "bash", "-c", _INIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            assert self._init.stdout is not None
            if self._init.stdout.readline() != "ready\n":
                raise OSError("no namespaces: unshare needs root")
            children = Path(f"/proc/{self._init.pid}/task/{self._init.pid}/children").read_text()
            self._first = int(children.split()[0])
        return self._first

    def close(self) -> None:
        if self._init is not None:
            self._init.kill()
            self._init.wait()
            self._init = None

    @property
    def sftp_client(self) -> NodeFiles:
        return self._files

    def _start(self, command: str, *, joined: bool) -> subprocess.Popen[str]:
        entered = ["nsenter", "-t", str(self.entered()), "-m", "-p", "bash", "-c", _SUDO + command]
        stderr = subprocess.STDOUT if joined else subprocess.PIPE
        return subprocess.Popen(
            entered, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd="/"
        )

    def _ended(self, command: str, status: int, output: str, allow_fail: bool) -> int:
        if status and not allow_fail:
            raise RemoteCommandError(self, command, status, output)
        return status

    def ssh(self, cmd: str, allow_fail: bool = False) -> int:
        process = self._start(cmd, joined=True)
        output = process.communicate()[0]
        return self._ended(cmd, process.returncode, output, allow_fail)

    def ssh_output(
        self,
        cmd: str,
        allow_fail: bool = False,
        combine_stderr: bool = True,
        timeout_sec: float | None = None,
    ) -> bytes:
        process = self._start(cmd, joined=combine_stderr)
        output = process.communicate(timeout=timeout_sec)[0]
        self._ended(cmd, process.returncode, output, allow_fail)
        return output.encode()

    def ssh_capture(
        self,
        cmd: str,
        allow_fail: bool = False,
        callback: Callable[[str], Any] | None = None,
        combine_stderr: bool = True,
        timeout_sec: float | None = None,
    ) -> Any:
        process = self._start(cmd, joined=True)

        def lines() -> Iterator[Any]:
            assert process.stdout is not None
            for line in process.stdout:
                yield line if callback is None else callback(line)
            self._ended(cmd, process.wait(), "", allow_fail)

        return SSHOutputIter(lines, process.stdout)


class NamespaceCluster(LocalhostCluster):  # type: ignore[misc]
    """As many nodes as a test asks for."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__(num_nodes=0)
        self._available_nodes = NodeContainer()
        for number in range(1, _NODES + 1):
            self._available_nodes.add_node(ClusterNode(NodeAccount(f"node{number}")))

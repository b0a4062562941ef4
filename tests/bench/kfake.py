"""kfake, the broker for tests of franz-go, built from the Go proxy: a program that prints its address."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.interop.maven import Unavailable, cache

VERSION = "v0.0.0-20260918054303-01f206a7e32c"
_NEEDED = ("github.com/twmb/franz-go@v1.22.2", "github.com/twmb/franz-go/pkg/kmsg@v1.15.0")
"""What that version is built with in its repository; the versions that its go.mod names are older."""

_SOURCE = """package main

import (
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(cluster.ListenAddrs()[0])
	select {}
}
"""


def kfake() -> Path:
    """The program. Raises `Unavailable`."""
    program = cache() / f"kfake-{VERSION}"
    go = shutil.which("go")
    if program.exists():
        return program
    if go is None:
        raise Unavailable("Go isn't installed")
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache()) as work:
        folder = Path(work)
        (folder / "main.go").write_text(_SOURCE)
        (folder / "go.mod").write_text("module peer\n")
        for command in (
            ["get", f"github.com/twmb/franz-go/pkg/kfake@{VERSION}", *_NEEDED],
            ["build", "-o", "kfake", "."],
        ):
            result = subprocess.run([go, *command], cwd=folder, capture_output=True, text=True, check=False)
            if result.returncode:
                raise Unavailable(f"go {command[0]}: {result.stderr.strip()[-300:]}")
        (folder / "kfake").rename(program)
    return program

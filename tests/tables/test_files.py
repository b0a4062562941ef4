"""Paths in all their forms to files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.errors import CoordwireError
from coordwire.tables.options import Options, milliseconds, parse_options
from coordwire.tables.readers.files import find_files, open_bytes, open_stream
from coordwire.tables.readers.sources import SOURCES, plan, read

LOG = f"{0:020}.log"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (f"orders-0/{LOG}", f"orders-0/{0:020}.index", f"pay-1/{LOG}", "x.pcap", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path


def names(*paths: str, recursive: bool = True) -> list[str]:
    return [os.path.join(*file.path.rsplit("/", 2)[-2:]) for file in find_files(paths, recursive=recursive)]


def test_files_folders_globs_and_lists(tree: Path) -> None:
    assert len(names(str(tree))) == 5
    assert names(str(tree), recursive=False) == [f"{tree.name}/notes.txt", f"{tree.name}/x.pcap"]
    assert names(f"{tree}/*/*.log") == names(f"{tree}/**/*.log") == [f"orders-0/{LOG}", f"pay-1/{LOG}"]
    assert names(f"{tree}/orders-0", f"{tree}/orders-?/*.log") == [
        f"orders-0/{0:020}.index", f"orders-0/{LOG}",
    ]  # fmt: skip
    assert names(f"file://{tree}/x.pcap") == [f"{tree.name}/x.pcap"]
    for missing in (f"{tree}/nothing", f"{tree}/*.nothing"):
        with pytest.raises(FileNotFoundError, match="nothing"):
            find_files([missing])


def test_kinds_topics_and_partitions(tree: Path) -> None:
    actual = {file.name: file for file in find_files([str(tree)])}
    assert [actual[name].kind() for name in sorted(actual)] == ["index", "segment", "other", "capture"]
    assert (actual[LOG].topic, actual[LOG].partition) == ("pay", 1)
    named = find_files([f"{tree}/notes.txt"])
    assert named[0].kind() == "capture"  # the user says so
    assert actual["x.pcap"].topic is None


def test_other_file_systems() -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec isn't installed")
    memory = fsspec.filesystem("memory")
    memory.pipe(f"/backup/orders-0/{LOG}", b"0123456789")
    memory.pipe("/backup/notes.txt", b"")
    [actual] = find_files(["memory://backup/*/*.log"])
    assert (actual.topic, actual.partition, actual.size) == ("orders", 0, 10)
    assert {file.name for file in find_files(["memory://backup"])} == {LOG, "notes.txt"}
    assert bytes(open_bytes(actual.path)) == b"0123456789"
    with open_stream(actual.path) as stream:
        assert stream.read(3) == b"012"
    with pytest.raises(FileNotFoundError):
        find_files(["memory://nowhere"])


def test_what_is_gone_is_a_row(tree: Path) -> None:
    (tree / "orders-0" / LOG).unlink()
    (tree / "orders-0" / LOG).symlink_to("nowhere")
    options, source = Options(paths=(str(tree),), topics=("orders",)), SOURCES["kafka-quarantine"]
    reasons = [
        batch.column("reason")[0].as_py()
        for group in plan(source, options)
        for batch in read(source, group, options, ["input_file", "reason"])
        if "orders" in batch.column("input_file")[0].as_py()
    ]
    assert reasons == ["No such file or directory"]
    strict = replace(options, mode="failfast")
    [group] = plan(SOURCES["kafka-segment"], strict)
    with pytest.raises(FileNotFoundError):
        list(read(SOURCES["kafka-segment"], group, strict, ["log_offset"]))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission_is_a_row(tree: Path) -> None:
    (tree / "x.pcap").chmod(0)
    (tree / "orders-0" / LOG).chmod(0)
    options, source = Options(paths=(str(tree),), topics=("orders",)), SOURCES["kafka-quarantine"]
    rows = [row for group in plan(source, options) for batch in read(source, group, options, ["reason"])
            for row in batch.to_pylist()]  # fmt: skip
    assert rows == [{"reason": "Permission denied"}] * 2


def test_options() -> None:
    texts = {"path": "a", "paths": '["b", "c"]', "mode": "FAILFAST", "partitions": "0, 3-5", "splitsize": "7"}
    options = parse_options(texts)
    assert options.paths == ("a", "b", "c")
    assert options.failfast
    assert (options.partitions, options.split_size) == (((0, 0), (3, 5)), 7)
    assert milliseconds("2023-11-14T22:13:20Z") == milliseconds("2023-11-14T23:13:20.000+01:00")
    assert milliseconds("1700000000000") == milliseconds("2023-11-14T22:13:20")
    for name, text in [
        ("mode", "strict"),
        ("splitSize", "0"),
        ("strict", "yes"),
        ("log", "x"),
        ("nmae", ""),
        ("paths", "a,b"),
        ("paths", '"a"'),
    ]:
        with pytest.raises(CoordwireError, match=name):
            parse_options({name: text})
    with pytest.raises(CoordwireError, match=r"there are apis, batchSize, .*startingOffset"):
        parse_options({"nmae": ""})

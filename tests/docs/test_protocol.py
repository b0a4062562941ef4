"""The pages of the protocol in the site: all are there, well-formed, linked and true to the bytes shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from _protocol import pages as all_pages
from _protocol.catalog import Catalog, anchor, file_of
from _protocol.fields import runs
from _protocol.frames import captured, samples
from _protocol.markup import VOID, join, tag
from _protocol.versions import version_samples, written
from coordwire.capture.redaction.secret_fields import FIELDS
from coordwire.cli.api import wire_layout
from coordwire.cli.api.contents import API, PageEntry, entries
from coordwire.cli.api.fields import rows
from coordwire.frames import read_request, read_response
from coordwire.messages import find_message
from coordwire.messages.keys import FACTS


@dataclass
class Parsed:
    """What a page holds: ids, links, what it loads, its text, the hex in it, and what is wrong with it."""

    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    text: str = ""
    hex: str = ""
    wrong: list[str] = field(default_factory=list)


class Parser(HTMLParser):
    """Holds a page to closing what it opens, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Parsed()
        self.open: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        arguments = dict(attrs)
        if len(arguments) < len(attrs):
            self.page.wrong.append(f"an attribute twice: {attrs}")
        if tag not in VOID:
            self.open.append((tag, arguments.get("class")))
        if "id" in arguments:
            self.page.ids.append(str(arguments["id"]))
        if tag == "a":
            self.page.links.append(str(arguments["href"]))
        if "src" in arguments or tag == "link":
            self.page.loads.append(str(arguments.get("src") or arguments.get("href")))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1][0] != tag:
            self.page.wrong.append(f"</{tag}> in {self.open[-3:]}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.page.text += data
        if self.open and self.open[-1] == ("td", "hex"):
            self.page.hex += data


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    return {f"{name}.html": text for name, text in all_pages()}


@pytest.fixture(scope="module")
def parsed(site: dict[str, str]) -> dict[str, Parsed]:
    results = {}
    for name, text in site.items():
        parser = Parser()
        parser.feed(text)
        parser.close()
        parser.page.wrong += [f"<{remaining}> is not closed" for remaining, _ in parser.open]
        results[name] = parser.page
    return results


def pages() -> Iterator[PageEntry]:
    return iter(entries())


def test_every_message_has_a_page(parsed: dict[str, Parsed]) -> None:
    assert {f"{facts.name}.html" for facts in FACTS.values()} <= set(parsed)
    assert {file_of(page) for page in pages()} < set(parsed)
    assert len({name.lower() for name in parsed}) == len(parsed), "some file systems know no case"


def test_pages_are_well_formed(parsed: dict[str, Parsed]) -> None:
    for name, page in parsed.items():
        assert page.wrong == [], name
        assert len(set(page.ids)) == len(page.ids), name


def test_links_resolve(parsed: dict[str, Parsed]) -> None:
    for name, page in parsed.items():
        for link in page.links:
            file, _, place = link.partition("#")
            target = parsed.get(file or name)
            assert target is not None, (name, link)
            assert not place or place in target.ids, (name, link)
        assert page.loads == [], f"{name} loads something"


def test_the_index_leads_to_every_page(site: dict[str, str], parsed: dict[str, Parsed]) -> None:
    assert {file_of(page) for page in pages()} <= set(parsed["index.html"].links)
    toctree = site["index.html"].rpartition("```{toctree}\n:hidden:\n")[2].removesuffix("```\n")
    assert {f"{name}.html" for name in toctree.split()} == set(site) - {"index.html"}


def test_a_page_is_markdown_around_html(site: dict[str, str]) -> None:
    shape = re.compile("# .+\n\n`{12}{raw} html\n<div class=protocol>\n(.*)\n</div>\n`{12}\n(.*)", re.DOTALL)
    for name, text in site.items():
        match = shape.fullmatch(text)
        assert match is not None, name
        assert "`" * 12 not in match[1], name
        assert bool(match[2]) == (name == "index.html"), name


def test_every_field_is_told_of(parsed: dict[str, Parsed]) -> None:
    for entry in pages():
        page = parsed[file_of(entry)]
        text = " ".join(page.text.split())
        for cls in entry.classes:
            for row in rows(cls):
                assert anchor(cls, row.path) in page.ids
                assert " ".join(row.doc.replace("`", "").split()) in text, (cls, row.path)
        if entry.api_key is not None:
            for message in FACTS[entry.api_key].changes.values():
                assert " ".join(message.replace("`", "").split()) in text


def test_every_version_has_its_layout() -> None:
    for entry in pages():
        for cls in entry.classes:
            assert [version for run in runs(cls) for version in run] == list(cls.versions)
            for version in cls.versions:
                assert {word for line in wire_layout.lines(cls, version) for word in line.words} <= set(
                    wire_layout.WORDS
                )


def test_a_layout(site: dict[str, str]) -> None:
    join_group = re.sub("<[^>]+>", "", site["JoinGroup.html"])
    assert "v5: 20 bytes or more" in join_group
    assert "(before it: INT32 size, RequestHeader v2)\ngroup_id: COMPACT_STRING\n" in join_group
    assert "protocols: COMPACT_ARRAY of STRUCT\n  name: COMPACT_STRING\n" in join_group
    assert "group_instance_id: NULLABLE_STRING\n" in join_group


def test_defaults(site: dict[str, str]) -> None:
    assert ">default &quot;&quot;</span> More about the error" in site["FindCoordinator.html"]
    assert ">default null</span> More about the error" in site["DescribeGroups.html"]
    assert "where no default is shown: 0, false or empty" in site["DescribeGroups.html"]


def test_what_an_api_may_answer_and_where_it_is_served(site: dict[str, str]) -> None:
    page = site["OffsetCommit.html"]
    assert "answered by the group coordinator, listeners: broker<" in page
    assert page.count(">deprecated</span>") == 2  # versions 0 and 1
    assert '<h2 id="errors">' in page
    assert 'href="errors.html#UNKNOWN_MEMBER_ID"' in page
    assert 'href="OffsetCommit.html#errors"' in site["errors.html"]
    assert ">unstable</span>" in site["InitProducerId.html"]
    assert ">topic name</span>" in page
    assert ">secret</span>" in site["SaslAuthenticate.html"]


def test_annotated_bytes_are_the_frames_own(parsed: dict[str, Parsed]) -> None:
    for entry in pages():
        output = b""
        for sample in samples(entry):
            assert all(span.sort not in ("refused", "rest") for span in sample.spans), sample.title
            spans = [(sample.start + span.position, span.length) for span in sample.spans]
            assert spans[0][0] == 0
            assert all(at + length == after for (at, length), (after, _) in pairwise(spans))
            assert sum(spans[-1]) == len(sample.data)
            output += sample.data
        for cls in entry.classes:
            output += b"".join(sample.data for _, sample in version_samples(cls))
        assert bytes.fromhex(parsed[file_of(entry)].hex) == output


def test_each_version_that_kafka_wrote_has_its_bytes(parsed: dict[str, Parsed]) -> None:
    shown = [cls for entry in pages() for cls in entry.classes if cls in written()]
    assert set(shown) >= {cls for cls in written() if cls.api_key is not None}
    for entry in pages():
        for cls in entry.classes:
            versions = [version for some, _ in version_samples(cls) for version in some]
            assert versions == sorted(written()[cls]), cls.__name__
            for some, sample in version_samples(cls):
                assert f"{anchor(cls)}-bytes-v{some[0]}" in parsed[file_of(entry)].ids
                ends = [span.position + span.length for span in sample.spans]
                assert [0, *ends] == [*(span.position for span in sample.spans), len(sample.data)]
                for version in some:
                    assert written()[cls][version][1] == sample.data


def test_a_versions_header_is_named(site: dict[str, str]) -> None:
    table = site["Heartbeat.html"].split('id="HeartbeatRequest-bytes-v4"')[1]
    assert table.startswith("><summary>HeartbeatRequest v4: 14 bytes</summary>")
    assert "after a request header of version 2." in table.split("</details>")[0]
    assert "HeartbeatResponse v1 to v3: 6 bytes" in site["Heartbeat.html"]


def test_captured_frames_are_real_and_hold_no_secrets() -> None:
    keys = {facts.name: key for key, facts in FACTS.items()}
    for name, (version, _, _, request, response) in captured().items():
        sent_request = read_request(request)
        answered = read_response(response, keys[name], version)
        assert (sent_request.api_name, sent_request.api_version) == (name, version)
        assert sent_request.correlation_id == answered.correlation_id
        assert request.endswith(sent_request.message.encode(version=version))
        assert response.endswith(answered.message.encode(version=version))
    assert "SaslAuthenticate" not in captured()
    assert not {f"{name}Request" for name in captured()} & {
        name for name in FIELDS if find_message(name).api_key in (36, 38, 39, 40, 51, 58)
    }


def test_what_nobody_captured_says_so(site: dict[str, str]) -> None:
    for entry in pages():
        product = "captured nowhere" in site[file_of(entry)]
        assert product != (entry.group == API and entry.name in captured()), entry.name


def test_texts_are_escaped() -> None:
    assert tag("td", "<b> & c", title='"<') == '<td title="&quot;&lt;">&lt;b&gt; &amp; c</td>'
    assert join(["<", tag("b", ">")], "&") == "&lt;&amp;<b>&gt;</b>"
    catalog = Catalog()
    assert catalog.prose("<JoinGroup> `x<y`") == (
        '&lt;<a href="JoinGroup.html">JoinGroup</a>&gt; <code>x&lt;y</code>'
    )
    assert catalog.prose("KIP-345: NOT_COORDINATOR & Kafka") == (
        '<a href="kips.html#KIP-345">KIP-345</a>: '
        '<a href="errors.html#NOT_COORDINATOR">NOT_COORDINATOR</a> &amp; Kafka'
    )

"""`--packets` and `--filter`: entries by where they are in the capture and by what any field says.

Rules: an unreadable range is judged by what is known of it; one that is left out is counted, since what it
holds may be what was asked for.
"""

from __future__ import annotations

import argparse

from coordwire.capture.entries import Entry
from coordwire.capture.printable import shown
from coordwire.capture.reader import Capture
from coordwire.cli import Failure
from coordwire.cli.packet_ranges import PacketRanges
from coordwire.cli.topic_names import TopicNames
from coordwire.errors import UnreadableRange

EPILOG = """\
filter expressions:
  --filter 'api == "JoinGroup" and error != 0 and latency > 100ms'
  --filter 'group =~ "^pay" or body.topics[].name in ("orders", "refunds")'
  --filter 'packet in (100..200, 350) and not clientId contains "till"'

  comparisons   == != < <= > >= contains, =~ (or matches: a regular expression,
                (?i) at its beginning ignores case), in (1, 2, 5..9);
                a field alone: it has a value
  combined by   and, or, not and brackets
  values        numbers, "texts", true, false, null; durations with ns, us, ms,
                s, min, h; sizes with B, kB, MB, KiB, MiB; times as for
                --since, in quotes
  fields        {fields};
                header.… and body.… as in the JSON lines (groupId, or
                group_id), [] through an array, [2] for an element;
                request.… of the request that a response answers

  A comparison is true where any value of the field meets it, so != is true
  where one value differs; not (topic == "a") is true where none is a. A field
  that a frame does not have, null and a redacted value meet nothing but
  == null. latency needs a unit; error is the codes of a response by number or
  name (0: none), refused why a frame could not be decoded.

--fields takes the same fields, with commas between them.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("selection", "besides the filters; a frame must match these itself")
    group.add_argument(
        "--packets",
        type=PacketRanges,
        metavar="RANGES",
        help="frames in these packets, as Wireshark counts them: 100-200,350,900-",
    )
    group.add_argument(
        "--filter", metavar="EXPRESSION", help="frames that meet an expression, which is described below"
    )


def epilog() -> str:
    """What the help says of expressions."""
    import textwrap

    from coordwire.cli.filtering.entry_fields import FIELDS

    names = textwrap.wrap(", ".join(FIELDS), 63)
    return EPILOG.replace("{fields}", f"\n{' ' * 16}".join(names))


class Selection:
    """--packets and --filter of a command line, over all inputs. `passed_over`: entries that could not be
    judged."""

    def __init__(self, options: argparse.Namespace, names: TopicNames) -> None:
        self.passed_over = 0
        self._packets: PacketRanges | None = options.packets
        self._show_secrets = options.show_secrets
        self._names = names
        self._condition = None
        if options.filter is not None:
            from coordwire.cli.filtering.conditions import condition
            from coordwire.cli.filtering.language import FilterError

            try:
                self._condition = condition(options.filter)
            except FilterError as error:
                raise Failure(f"--filter: {error.pointed(options.filter)}") from None

    def check(self, capture: Capture) -> None:
        """Refuse what can't be asked of an input."""
        if self._packets is not None and capture.format not in ("pcap", "pcapng"):
            raise Failure(
                f"{shown(capture.name)}: --packets selects from pcap and pcapng, which number their packets; "
                f"this input is {capture.format}"
            )

    def __call__(self, entry: Entry, digits: int) -> bool:
        """Whether to show an entry. digits: decimals of a second that its time has."""
        if self._packets is not None:
            if entry.packet is None:
                self.passed_over += 1
                return False
            if not self._packets.overlap(entry.first_packet or entry.packet, entry.packet):
                return False
        if self._condition is None:
            return True
        from coordwire.cli.filtering.entry_fields import EntryFields

        fields = EntryFields(entry, digits, show_secrets=self._show_secrets, names=self._names)
        if self._condition(fields):
            return True
        self.passed_over += isinstance(entry, UnreadableRange)
        return False

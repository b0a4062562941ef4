"""Recorded traffic: from a capture's bytes to the streams inside it.

Strategy: a chain of generators, each drawing on the one below it. `source` (a window on the input) <
`pcap`, `pcapng` (packets) < `link` (TCP segments) < `tcp` (streams) < `streams` (all of it at once);
`hexdump` reads text, `sniff` tells the formats apart, `model` holds what they yield. `reader` makes entries
of it all, `jsonlines` writes them, with `partial` (a message refused half-way) and `secrets` (what isn't
shown).

Rules: the input is read once, forwards, and may be a pipe. Nothing is left out silently: what can't be read
is an `Unreadable` with its position in the file, what is missing from a stream a `Lost` with its offset.
Only a file that is no capture at all raises, and only `coordwire.errors.DecodeError`.
"""

"""File formats of recorded traffic.

walks.py    the native walk over ordinary packets, as both start it
source.py   the input as a window of bytes that moves forwards
pcap.py     packets of a pcap file, and the entrance for pcapng.py
compressed.py  what is inside of gzip, xz and zstd files
hexdump.py  frames from hex text and from the dumps of common tools; hex_lines.py: a line of it
"""

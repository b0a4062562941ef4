"""File formats of recorded traffic.

source.py   the input as a window of bytes that moves forwards, and the native walk over ordinary packets
pcap.py     packets of a pcap file, and the entrance for pcapng.py
pcap_writer.py  frames as a pcap file
compressed.py  what is inside of gzip, xz and zstd files
hexdump.py  frames from hex text and from the dumps of common tools; hex_lines.py: a line of it
"""
